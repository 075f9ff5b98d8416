//! The HTTP handlers, one file per route family. A handler reads top to bottom: extract, conditions, read, headers.
//!
//! Each file has the specs of its routes and a function `routes()`; `routes` is the one list of them. The router adds what
//! is no handler of the API: the OpenAPI document, its page, and the icon.

pub(crate) mod batch;
pub(crate) mod cache;
pub(crate) mod dap;
pub(crate) mod data;
pub(crate) mod dataset;
pub(crate) mod dependents;
pub(crate) mod dimension_list;
mod documented;
mod export;
pub(crate) mod held;
pub(crate) mod icon;
pub(crate) mod image;
pub(crate) mod json_body;
pub(crate) mod json_response;
pub(crate) mod label_params;
pub(crate) mod metrics;
pub(crate) mod nodes;
pub(crate) mod point_selection;
mod pyramid;
pub(crate) mod query_params;
pub(crate) mod rechunk;
pub(crate) mod s3;
pub(crate) mod selection;
pub(crate) mod service;
pub(crate) mod stats;
pub(crate) mod store;
#[cfg(feature = "vectors")]
pub(crate) mod vectors;
pub(crate) mod versions;
pub(crate) mod view;
pub(crate) mod views;
pub(crate) mod webdav;
mod within;

use crate::services::route::Route;

/// The routes of the API, with their handlers and documentation.
pub(crate) fn routes() -> Vec<Route> {
    [
        service::routes(),
        versions::routes(),
        cache::routes(),
        data::routes(),
        batch::routes(),
        stats::routes(),
        dap::routes(),
        image::routes(),
        #[cfg(feature = "vectors")]
        vectors::routes(),
        nodes::routes(),
        store::routes(),
        views::routes(),
        rechunk::routes(),
        pyramid::routes(),
        view::routes(),
        s3::routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

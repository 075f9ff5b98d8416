//! The HTTP handlers, one file per route family. A handler reads top to bottom: extract, conditions, read, headers.
//!
//! The only list of all routes is in `router`.

pub(crate) mod cache;
pub(crate) mod data;
pub(crate) mod dependents;
pub(crate) mod held;
pub(crate) mod icon;
pub(crate) mod json_body;
pub(crate) mod json_response;
pub(crate) mod metrics;
pub(crate) mod nodes;
pub(crate) mod rechunk;
pub(crate) mod s3;
pub(crate) mod service;
pub(crate) mod store;
#[cfg(feature = "vectors")]
pub(crate) mod vectors;
pub(crate) mod view;
pub(crate) mod views;
pub(crate) mod webdav;

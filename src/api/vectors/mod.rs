//! `/v1/vectors/{mount}/{path}/…`: stores in Zarr Vector Format.
//!
//! A subresource follows the path of its store; `crate::http::vectors_path` splits the two. Each subresource has a file with its handler and
//! its documentation, and `routes` registers both. The module `vectors` reads stores.

pub(crate) mod amplification;
pub(crate) mod chunks;
mod filter;
mod handlers;
mod json;
pub(crate) mod links;
mod memory;
pub(crate) mod objects;
mod params;
mod problem;
mod request;
mod routes;
mod specs;
pub(crate) mod stats;
pub(crate) mod summary;
pub(crate) mod validate;
pub(crate) mod vertices;

pub(crate) use routes::{SUBRESOURCES, documentation, routes};

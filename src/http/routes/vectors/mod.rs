//! `/v1/vectors/{mount}/{path}/…`: stores in Zarr Vector Format.
//!
//! A subresource follows the path of its store; `tail` splits the two. Each subresource has a file with its handler and
//! its documentation, and `routes` registers both. The module `vectors` reads stores.

pub(in crate::http) mod amplification;
pub(in crate::http) mod chunks;
mod filter;
mod handlers;
mod json;
pub(in crate::http) mod links;
pub(in crate::http) mod objects;
mod params;
mod problem;
mod request;
mod routes;
pub(in crate::http) mod stats;
pub(in crate::http) mod summary;
mod tail;
pub(in crate::http) mod validate;
pub(in crate::http) mod vertices;

pub(in crate::http) use routes::routes;
pub(in crate::http) use tail::shortest_store;

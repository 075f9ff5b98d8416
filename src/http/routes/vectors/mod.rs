//! `/v1/vectors/{mount}/{path}/…`: stores in Zarr Vector Format.
//!
//! What is asked of a store stands behind its path; which part of a URL is the path, `tail` finds out. Each question has a
//! file of its own. How a store is read is the business of the room `vectors`.

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

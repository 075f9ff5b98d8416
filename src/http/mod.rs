//! The roof: the routes of the server, and what every request and answer has in common.
//!
//! HTTP semantics are RFC 9110, problem documents RFC 9457, the store routes are the abstract store interface of
//! Zarr core 3.1. Pure grammar and header rules (`range`, `conditions`, `negotiate`, `validators`, `listing`) stand
//! beside the handlers in `routes`, one file per route family, and know nothing of a store. What this room does not
//! do: accept connections, TLS and connection timeouts (`app`), or know what a backend is (`store`).
//!
//! An error of any room becomes an answer through its class alone (`problem`); the outermost layer (`frame`) writes
//! the body of the problem document and the one log record.

mod access;
mod admission;
mod array_headers;
mod base;
mod body;
mod cache_control;
mod caller;
mod coding;
mod compression;
mod conditions;
mod cors;
mod dependents;
mod digest;
mod document;
mod download;
mod elements;
mod extract;
mod forwarded;
mod frame;
mod held;
mod host;
mod json_answer;
mod json_body;
mod kept;
mod levels;
mod listed;
mod listing;
mod memory;
mod metrics;
mod missing;
mod negotiate;
mod network;
mod options;
mod origin;
mod pressure;
mod problem;
mod query;
mod range;
mod read;
mod room;
mod router;
mod routes;
mod shared_text;
mod site;
mod state;
mod timing;
mod too_large;
mod trouble;
mod validators;
mod views;
mod warm;

#[cfg(test)]
mod test_store;
#[cfg(test)]
mod tests;

pub use access::{
    Access, AccessError, AccessFault, AccessOptions, Algorithm, Clock, Environment, FetchKeys, GrantOptions,
    IssuerOptions, Scope, SigningKeyOptions, Timestamp, TokenOptions, new_token, sign,
};
pub use admission::Load;
pub use cache_control::CacheControl;
pub use caller::Peer;
pub use host::{canonical as canonical_host, is_host};
pub use memory::MemoryInfo;
pub use metrics::{BackendCounts, ConnectionCounts, OpenConnection, ProcessMetrics, ProcessUse};
pub use network::{Network, NetworkError};
pub use options::{CorsOptions, HttpOptions, HttpOptionsError, RateOptions};
pub use pressure::MemoryPressure;
pub use router::openapi;
pub use site::Endpoint;
pub use state::{AppState, ArrayEngine, Mount};

//! The grammar of HTTP: headers, conditions, ranges, content negotiation, problem documents, paths.
//!
//! RFC 9110 (semantics), RFC 9457 (problem documents), RFC 9530 (digests), RFC 7239 (`Forwarded`). Nothing here knows a
//! mount, a store that is served, or a handler.

pub(crate) mod array_headers;
pub(crate) mod base_path;
pub(crate) mod body;
pub(crate) mod cache_control;
pub(crate) mod caller;
pub(crate) mod coding;
pub(crate) mod conditions;
pub(crate) mod cors;
pub(crate) mod digest;
pub(crate) mod download;
pub(crate) mod forwarded;
pub(crate) mod host;
pub(crate) mod negotiate;
pub(crate) mod network;
pub(crate) mod options;
pub(crate) mod problem;
pub(crate) mod range;
pub(crate) mod timing;
pub(crate) mod trouble;
pub(crate) mod validators;

pub use cache_control::CacheControl;
pub use caller::Peer;
pub use host::{canonical as canonical_host, is_host};
pub use network::{Network, NetworkError};
pub use options::{CorsOptions, HttpOptions, HttpOptionsError, RateOptions};

//! The HTTP layer without its handlers: headers, conditions, ranges, content negotiation, problem documents, paths.
//!
//! RFC 9110 (semantics), RFC 9457 (problem documents), RFC 9530 (digests), RFC 7239 (`Forwarded`). Nothing here depends on
//! a mount, a served store or a handler.

pub(crate) mod append_query;
pub(crate) mod array_headers;
pub(crate) mod aws_chunked;
pub(crate) mod base_path;
pub(crate) mod body;
pub(crate) mod cache_control;
pub(crate) mod cache_status;
pub(crate) mod chunk_path;
pub(crate) mod coding;
pub(crate) mod collected_body;
pub(crate) mod conditions;
pub(crate) mod consolidated_query;
pub(crate) mod cors;
pub(crate) mod dap_path;
pub(crate) mod digest;
pub(crate) mod download;
pub(crate) mod fixed_text;
pub(crate) mod forwarded;
pub(crate) mod host;
pub(crate) mod multipart;
pub(crate) mod negotiate;
pub(crate) mod network;
pub(crate) mod options;
pub(crate) mod path;
pub(crate) mod peer;
pub(crate) mod problem;
mod problem_text;
pub(crate) mod range;
pub(crate) mod request_id;
pub(crate) mod route;
pub(crate) mod s3_query;
pub(crate) mod switch;
pub(crate) mod target;
pub(crate) mod timing;
pub(crate) mod transfer_query;
pub(crate) mod trouble;
pub(crate) mod validators;
pub(crate) mod vectors_path;
pub(crate) mod viewers;
pub(crate) mod webdav_headers;
pub(crate) mod wrote;

pub use cache_control::CacheControl;
pub use host::{canonical as canonical_host, is_host};
pub use network::{Network, NetworkError};
pub use options::{CorsOptions, HttpOptions, HttpOptionsError, ImageOptions, RateOptions, UploadOptions};
pub use peer::Peer;

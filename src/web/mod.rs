//! The assembly of the server: the router, the middleware, and the `OpenAPI` document.

mod access_log;
mod audit;
mod compression;
mod documentation_page;
mod endpoint;
mod fallback;
mod logged;
pub(crate) mod middleware;
pub(crate) mod openapi;
pub(crate) mod router;
mod snapshots;
mod stale_headers;

#[cfg(test)]
mod tests;

pub use access_log::{ACCESS_LOG_TARGET, AccessLogEntry, set_access_log_writer};
pub use endpoint::Endpoint;
pub use router::openapi;

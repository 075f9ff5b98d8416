//! [`RequestId`]: the id of a request, in its log line, its response and its problem document.

use axum::http::{Extensions, HeaderName, HeaderValue};

/// The header with the id of a request, in both directions.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request extension, where a handler renders problem documents: the id that the middleware gave the request or found in it.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) HeaderValue);

impl RequestId {
    /// The id of a request as text; empty if it has none.
    pub(crate) fn text_of(extensions: &Extensions) -> &str {
        extensions.get::<Self>().and_then(|id| id.0.to_str().ok()).unwrap_or_default()
    }
}

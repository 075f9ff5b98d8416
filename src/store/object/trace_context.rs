//! The `traceparent` header of requests to backends (W3C Trace Context, level 1). A provider supplies it; without one,
//! no header is sent.

use std::sync::OnceLock;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

static CURRENT: OnceLock<fn() -> Option<String>> = OnceLock::new();

/// Sets the provider: requests from now on carry the `traceparent` that `current` returns for the current span.
pub fn set_trace_context_provider(current: fn() -> Option<String>) {
    // The first provider stays, as with subscribers.
    let _ = CURRENT.set(current);
}

/// Adds the header to a request.
pub(super) fn insert_header(headers: &mut HeaderMap) {
    let current = CURRENT.get().and_then(|current| current());
    if let Some(value) = current.and_then(|text| HeaderValue::try_from(text).ok()) {
        headers.insert(TRACEPARENT, value);
    }
}

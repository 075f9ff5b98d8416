//! Which trace a request to a backend belongs to (W3C Trace Context, level 1). Whoever keeps traces says so; where nobody
//! does, backends are told nothing.

use std::sync::OnceLock;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

static CURRENT: OnceLock<fn() -> Option<String>> = OnceLock::new();

/// Backends are told from here on what `current` says of the span that is current: a `traceparent`.
pub fn set_trace_context_provider(current: fn() -> Option<String>) {
    // Who was first stays, as with subscribers.
    let _ = CURRENT.set(current);
}

/// Says it of a request that is about to be sent.
pub(super) fn put(headers: &mut HeaderMap) {
    let current = CURRENT.get().and_then(|current| current());
    if let Some(value) = current.and_then(|text| HeaderValue::try_from(text).ok()) {
        headers.insert(TRACEPARENT, value);
    }
}

//! [`is_repeated`]: whether the response to a request is worth caching.

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use crate::array::Plan;
use crate::services::response_cache::{MAX_CACHED_RESPONSE_BYTES, cache_key};
use crate::services::state::AppState;

/// Whether a response may need none, or only some, of the requested elements.
pub(super) fn is_partial_or_conditional(headers: &HeaderMap) -> bool {
    let names = [
        header::RANGE,
        header::IF_MATCH,
        header::IF_NONE_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_UNMODIFIED_SINCE,
    ];
    names.iter().any(|name| headers.contains_key(name))
}

/// Whether a response that can be cached was requested shortly before.
pub(super) fn is_repeated(state: &AppState, head: &Parts, plan: &Plan) -> bool {
    let bytes = plan.response_bytes();
    bytes <= MAX_CACHED_RESPONSE_BYTES
        && !is_partial_or_conditional(&head.headers)
        && state.responses.fits(bytes, 0)
        && cache_key(head).is_some_and(|key| state.responses.recent.is_repeated(&key))
}

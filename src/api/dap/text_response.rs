//! Responses of DAP that are text: sent whole, with an entity tag derived from their text.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::admission::BufferedBytes;
use crate::error::ErrorClass;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::problem::Problem;
use crate::http::validators::put_validators;
use crate::store::{ValueInfo, Version};

/// What a response is ("DAP 2.0", section 7.1.2).
pub(super) const CONTENT_DESCRIPTION: HeaderName = HeaderName::from_static("content-description");
/// The version of the protocol.
pub(super) const XDAP: HeaderName = HeaderName::from_static("xdap");
/// Its value.
pub(super) const XDAP_VERSION: HeaderValue = HeaderValue::from_static("2.0");
/// The media type of documents.
pub(super) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Sets the headers that say what a response is.
pub(super) fn put_description(headers: &mut HeaderMap, description: HeaderValue) {
    headers.insert(CONTENT_DESCRIPTION, description);
    headers.insert(XDAP, XDAP_VERSION);
}

/// Sets the headers that say what a response of DAP4 is.
pub(super) fn put_dap4_description(headers: &mut HeaderMap, description: HeaderValue) {
    headers.insert(CONTENT_DESCRIPTION, description);
    headers.insert(XDAP, HeaderValue::from_static("4.0"));
}

/// A text and its version, which takes time to derive from a long one: call this on the compute pool.
pub(super) fn with_version(mut text: String) -> (String, Version) {
    // The unused capacity would stay in memory until the client has received everything.
    text.shrink_to_fit();
    let version = Version::from_text(text.as_bytes());
    (text, version)
}

/// The response to GET or HEAD with a text of a version.
pub(super) fn text_response(
    head: &Parts,
    (text, version): (String, Version),
    description: HeaderValue,
) -> Response {
    let mut answer = match Conditions::from_headers(&head.headers).for_read(&version, None) {
        Verdict::Failed => return Problem::from_class(ErrorClass::PreconditionFailed).into_response(),
        Verdict::NotModified => StatusCode::NOT_MODIFIED.into_response(),
        Verdict::Proceed => {
            let length = text.len();
            let body = if head.method == Method::GET { Body::from(text) } else { Body::empty() };
            let mut answer = Response::new(body);
            answer.headers_mut().insert(header::CONTENT_LENGTH, length.into());
            answer.headers_mut().insert(header::CONTENT_TYPE, TEXT);
            BufferedBytes::put(length as u64, answer.extensions_mut());
            answer
        }
    };
    put_validators(answer.headers_mut(), &ValueInfo { size: 0, version, modified: None });
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    put_description(answer.headers_mut(), description);
    answer
}

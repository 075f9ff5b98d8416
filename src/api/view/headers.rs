//! The headers of pages.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use crate::http::conditions::{Conditions, Verdict};
use crate::http::validators::put_validators;
use crate::store::{ValueInfo, Version};

/// Scripts, styles, pictures and data come from this server alone, and nothing in a page itself runs.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'self'",
);
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
const CROSS_ORIGIN_OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Sets the headers that every page has.
pub(super) fn put(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::REFERRER_POLICY, SAME_ORIGIN);
    headers.insert(CROSS_ORIGIN_OPENER_POLICY, SAME_ORIGIN);
    headers.append(header::VARY, HeaderValue::from_static("Accept"));
}

/// The media type of pages.
pub(super) fn media_type() -> HeaderValue {
    HTML
}

/// The response with a page. Its entity tag is made from its text: call this on the compute pool for a long page.
pub(super) fn answer(request: &HeaderMap, page: String) -> Response {
    let version = Version::from_text(page.as_bytes());
    let mut answer = match Conditions::from_headers(request).for_read(&version, None) {
        Verdict::NotModified => StatusCode::NOT_MODIFIED.into_response(),
        // A page cannot be written to, so that `If-Match` has no meaning for it.
        Verdict::Proceed | Verdict::Failed => {
            ([(header::CONTENT_TYPE, HTML)], Bytes::from(page)).into_response()
        }
    };
    let headers = answer.headers_mut();
    put_validators(headers, &ValueInfo { size: 0, version, modified: None });
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    put(headers);
    answer
}

//! The headers of pages.

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::http::conditions::{Conditions, Verdict};
use crate::http::validators::put_validators;
use crate::page::assets::style;
use crate::store::{ValueInfo, Version};

/// Scripts, pictures and data come from this server alone; nothing in a page itself runs, and only its own style sheet, named by its
/// digest, is applied.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let digest = BASE64_STANDARD.encode(Sha256::digest(style()));
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'sha256-{digest}'; img-src 'self' blob:; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
    );
    // The digits of base64 are allowed in headers; without them, no style would be.
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
const CROSS_ORIGIN_OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Sets the headers that every page has. `has_session`: whether callers can sign in.
pub(super) fn put(headers: &mut HeaderMap, has_session: bool) {
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.insert(header::REFERRER_POLICY, SAME_ORIGIN);
    // It costs browsers a new process for the first page, which is a fifth of the time until that is painted. Where all callers may do
    // all, a page that opens this one could do the same without it.
    if has_session {
        headers.insert(CROSS_ORIGIN_OPENER_POLICY, SAME_ORIGIN);
    }
    headers.append(header::VARY, HeaderValue::from_static("Accept"));
}

/// The media type of pages.
pub(super) fn media_type() -> HeaderValue {
    HTML
}

/// The response with a page. Its entity tag is made from its text: call this on the compute pool for a long page.
pub(super) fn answer(request: &HeaderMap, page: String, has_session: bool) -> Response {
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
    put(headers, has_session);
    answer
}

//! Cross-origin rules: the same headers on every answer, whatever its status (Fetch standard, "CORS protocol").
//!
//! Headers are only added; whether the method is offered is the route's matter, and OPTIONS reaches a handler that
//! touches no store. The options were checked when the state was built, so nothing here can fail.

use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

use super::options::CorsOptions;
use super::state::AppState;

/// Request headers that pages may set; `*` would not cover `Authorization`.
const ALLOW_HEADERS: &str = "Authorization, Cache-Control, Content-Digest, Content-MD5, Content-Type, If-Match, \
     If-Modified-Since, If-None-Match, If-Range, If-Unmodified-Since, Range, Repr-Digest, X-Amz-Checksum-Crc32c, \
     X-Amz-Checksum-Sha256, X-Request-Id";
/// Answer headers that pages may read.
const EXPOSE_HEADERS: &str = "Accept-Ranges, Array-Data-Type, Array-Dimension-Names, Array-Shape, \
     Content-Encoding, Content-Length, Content-Range, ETag, Retry-After, Server-Timing, X-Request-Id, Zarrd-Cache";

/// The layer.
pub(super) async fn share(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let preflight = request.method() == Method::OPTIONS;
    let mut response = next.run(request).await;
    put_headers(response.headers_mut(), &state.options().cors, origin.as_ref(), preflight);
    response
}

fn put_headers(
    headers: &mut HeaderMap,
    options: &CorsOptions,
    origin: Option<&HeaderValue>,
    preflight: bool,
) {
    let allowed = if options.is_any() {
        Some(HeaderValue::from_static("*"))
    } else {
        if !options.origins.is_empty() {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
        origin.filter(|origin| options.origins.iter().any(|listed| listed == *origin)).cloned()
    };
    let Some(allowed) = allowed else { return };
    let mut put = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    put(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSE_HEADERS);
    if options.credentials {
        put(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
    }
    if preflight {
        let methods = if options.writes { "GET, HEAD, PUT, DELETE, OPTIONS" } else { "GET, HEAD, OPTIONS" };
        put(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        put(header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOW_HEADERS);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, options.max_age_seconds.into());
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(options: &CorsOptions, origin: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        put_headers(&mut headers, options, Some(&HeaderValue::from_static(origin)), false);
        let named = !options.origins.is_empty() && !options.is_any();
        assert_eq!(headers.get(header::VARY).is_some(), named, "Vary does not depend on the answer");
        let allowed = headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN)?;
        Some(allowed.to_str().unwrap().to_owned())
    }

    #[test]
    fn only_listed_origins_are_let_in_and_they_match_exactly() {
        let options = CorsOptions { origins: vec!["https://good.com".to_owned()], ..Default::default() };
        assert_eq!(allowed(&options, "https://good.com").as_deref(), Some("https://good.com"));
        for origin in [
            "https://good.com.evil.com",
            "https://evilgood.com",
            "http://good.com",
            "https://good.com:444",
            "https://GOOD.com",
            "null",
            "*",
            "",
        ] {
            assert_eq!(allowed(&options, origin), None, "{origin}");
        }
        let off = CorsOptions { origins: vec![], ..Default::default() };
        assert_eq!(allowed(&off, "https://good.com"), None);
        assert_eq!(allowed(&CorsOptions::default(), "null").as_deref(), Some("*"));
    }
}

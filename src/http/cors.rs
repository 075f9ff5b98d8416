//! CORS headers: the same on every response, whatever its status (Fetch standard, "CORS protocol").
//!
//! This module only adds headers. `origin` decides whether a page may write, and the route which methods it supports. The
//! handlers of OPTIONS read no store. The options were checked when the state was built, so nothing here can fail.
//!
//! `tower_http::cors` is not used. Its layer responds to every OPTIONS request itself, with 200 and without `Allow`, so
//! the handlers could no longer say which methods and which WebDAV class a URL supports. It also sends the lists of
//! methods and headers to origins that are not allowed, and the fast path has no layers.

use axum::extract::Request;
use axum::http::Method;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::options::CorsOptions;

/// Request headers that pages may set, including those of WebDAV and of S3 SDKs; `*` would not cover `Authorization`.
const ALLOW_HEADERS: &[&str] = &[
    "Authorization",
    "Cache-Control",
    "Content-Type",
    "Depth",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Range",
    "Traceparent",
    "X-Request-Id",
    "Amz-Sdk-Invocation-Id",
    "Amz-Sdk-Request",
    "X-Amz-Checksum-Mode",
    "X-Amz-Content-Sha256",
    "X-Amz-Date",
    "X-Amz-Security-Token",
    "X-Amz-User-Agent",
];
/// Additional request headers for writes.
const ALLOW_WRITE_HEADERS: &[&str] = &[
    "Content-Digest",
    "Content-Encoding",
    "Content-MD5",
    "Content-Range",
    "Destination",
    "Idempotency-Key",
    "Overwrite",
    "Repr-Digest",
    "X-Amz-Checksum-Crc32",
    "X-Amz-Checksum-Crc32c",
    "X-Amz-Checksum-Crc64nvme",
    "X-Amz-Checksum-Sha1",
    "X-Amz-Checksum-Sha256",
    "X-Amz-Copy-Source",
    "X-Amz-Copy-Source-If-Match",
    "X-Amz-Copy-Source-If-Modified-Since",
    "X-Amz-Copy-Source-If-None-Match",
    "X-Amz-Copy-Source-If-Unmodified-Since",
    "X-Amz-Copy-Source-Range",
    "X-Amz-Decoded-Content-Length",
    "X-Amz-Sdk-Checksum-Algorithm",
    "X-Amz-Trailer",
];
/// Methods that pages may use.
const ALLOW_METHODS: &[&str] = &["GET", "HEAD", "OPTIONS", "PROPFIND"];
/// Additional methods for writes.
const ALLOW_WRITE_METHODS: &[&str] = &["PUT", "PATCH", "DELETE", "MKCOL", "COPY", "MOVE"];
/// Response headers that pages of listed origins may read. Pages of any origin, which send no credentials, may read all:
/// there `*` is enough, and spares each response half a kilobyte.
const EXPOSE_HEADERS: &str = "Accept-Ranges, Age, Array-Data-Type, Array-Dimension-Names, Array-Downsample, Array-Labels, Array-Level, Array-Reduce, Array-Selection, \
     Array-Shape, Array-Slice, Array-Time-Calendar, Array-Time-Units, Cache-Status, Content-Description, Content-Disposition, Content-Encoding, Content-Length, Content-Location, Content-Range, ETag, \
     Image-Range, Image-Range-From, Retry-After, Server-Timing, Variables-Omitted, X-Request-Id, XDAP, Zarrd-Snapshot, Zarrd-Written, \
     X-Amz-Bucket-Region, X-Amz-Request-Id, X-ZVF-Amplification, X-ZVF-Bins, X-ZVF-Chunks, X-ZVF-Cursor, X-ZVF-Errors, \
     X-ZVF-Rows, X-ZVF-Rows-Loaded";

/// The properties of a request that its CORS headers depend on.
#[derive(Debug)]
pub(crate) struct CorsRequest {
    origin: Option<HeaderValue>,
    preflight: bool,
}

impl CorsRequest {
    /// Extracts the properties from a request.
    pub(crate) fn of(request: &Request) -> Self {
        let origin = request.headers().get(header::ORIGIN).cloned();
        Self { origin, preflight: request.method() == Method::OPTIONS }
    }

    /// Sets the headers of the response.
    pub(crate) fn put(&self, options: &CorsOptions, headers: &mut HeaderMap) {
        put_headers(headers, options, self.origin.as_ref(), self.preflight);
    }
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
        if !options.allowed_origins.is_empty() {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
        origin.filter(|origin| options.allowed_origins.iter().any(|listed| listed == *origin)).cloned()
    };
    let Some(allowed) = allowed else { return };
    let mut put = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    put(header::ACCESS_CONTROL_EXPOSE_HEADERS, if options.is_any() { "*" } else { EXPOSE_HEADERS });
    if options.allow_credentials {
        put(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
    }
    if preflight {
        let writes = options.allow_writes;
        for (name, reads, writes) in [
            (header::ACCESS_CONTROL_ALLOW_METHODS, ALLOW_METHODS, writes.then_some(ALLOW_WRITE_METHODS)),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOW_HEADERS, writes.then_some(ALLOW_WRITE_HEADERS)),
        ] {
            let list = [reads, writes.unwrap_or_default()].concat().join(", ");
            headers.extend(HeaderValue::try_from(list).ok().map(|list| (name, list)));
        }
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, options.max_age.as_secs().into());
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(options: &CorsOptions, origin: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        put_headers(&mut headers, options, Some(&HeaderValue::from_static(origin)), false);
        let named = !options.allowed_origins.is_empty() && !options.is_any();
        assert_eq!(headers.get(header::VARY).is_some(), named, "Vary does not depend on the answer");
        let allowed = headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN)?;
        Some(allowed.to_str().unwrap().to_owned())
    }

    #[test]
    fn only_listed_origins_are_allowed_and_they_match_exactly() {
        let options =
            CorsOptions { allowed_origins: vec!["https://good.com".to_owned()], ..Default::default() };
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
        let off = CorsOptions { allowed_origins: vec![], ..Default::default() };
        assert_eq!(allowed(&off, "https://good.com"), None);
        assert_eq!(allowed(&CorsOptions::default(), "null").as_deref(), Some("*"));
    }
}

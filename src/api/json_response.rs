//! Generated JSON responses: sent whole, with an entity tag derived from their text.

use std::convert::Infallible;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{StreamExt, stream};
use serde_json::Value;

use crate::admission::BufferedBytes;
use crate::error::ErrorClass;
use crate::http::body::content_length_body;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::problem::Problem;
use crate::http::validators::{JSON, put_validators};
use crate::store::{ValueInfo, Version};

/// The response to a GET of this document. Serialising a long document takes time: call this on the compute pool.
#[cfg_attr(not(feature = "vectors"), expect(dead_code, reason = "only `/v1/vectors` uses it"))]
pub(crate) fn json_answer(headers: &HeaderMap, document: &Value) -> Response {
    let text = document.to_string();
    let version = Version::from_text(text.as_bytes());
    let bytes = text.len() as u64;
    let mut answer = text_answer(headers, [text.into()], version);
    BufferedBytes::put(bytes, answer.extensions_mut());
    answer
}

/// The response to a GET of JSON text of this version, given in parts.
pub(crate) fn text_answer<const N: usize>(
    headers: &HeaderMap,
    parts: [Bytes; N],
    version: Version,
) -> Response {
    let mut answer = match Conditions::from_headers(headers).for_read(&version, None) {
        Verdict::Failed => return Problem::from_class(ErrorClass::PreconditionFailed).into_response(),
        Verdict::NotModified => StatusCode::NOT_MODIFIED.into_response(),
        Verdict::Proceed => {
            let length = parts.iter().map(|part| part.len() as u64).sum();
            let mut parts = parts.into_iter();
            let first = parts.next().unwrap_or_default();
            let rest = stream::iter(parts.map(Ok::<_, Infallible>)).boxed();
            let mut answer = Response::new(content_length_body(first, rest, length));
            answer.headers_mut().insert(header::CONTENT_LENGTH, length.into());
            answer.headers_mut().insert(header::CONTENT_TYPE, JSON);
            answer
        }
    };
    put_validators(answer.headers_mut(), &ValueInfo { size: 0, version, modified: None });
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

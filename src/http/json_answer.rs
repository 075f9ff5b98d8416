//! JSON answers that are made, not stored: whole, with an entity tag of their text.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::admission::HeldWhole;
use super::conditions::{Conditions, Verdict};
use super::problem::Problem;
use super::validators::{JSON, hex_tag, put_validators};
use crate::error::ErrorClass;
use crate::store::{ValueInfo, Version};

/// The answer to a GET of this document.
pub(super) fn json_answer(headers: &HeaderMap, document: &Value) -> Response {
    let text = document.to_string();
    let version = version_of(&text);
    text_answer(headers, text, version)
}

/// The version of a text: a digest.
pub(super) fn version_of(text: &str) -> Version {
    Version::strong(&hex_tag(&Sha256::digest(text)))
}

/// The answer to a GET of JSON of this version.
pub(super) fn text_answer(headers: &HeaderMap, text: String, version: Version) -> Response {
    let mut answer = match Conditions::from_headers(headers).for_read(&version, None) {
        Verdict::Failed => return Problem::of_class(ErrorClass::PreconditionFailed).into_response(),
        Verdict::NotModified => StatusCode::NOT_MODIFIED.into_response(),
        Verdict::Proceed => {
            let bytes = text.len() as u64;
            let mut answer = Body::from(text).into_response();
            HeldWhole::put(bytes, answer.extensions_mut());
            answer.headers_mut().insert(header::CONTENT_TYPE, JSON);
            answer
        }
    };
    put_validators(answer.headers_mut(), &ValueInfo { size: 0, version, modified: None });
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

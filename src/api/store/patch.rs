//! PATCH of the store routes: `set_partial_values` of Zarr core 3.1 for one value and one part.
//!
//! `Content-Range` gives the position of the body in the value (RFC 9110, sections 14.4 and 14.5). The write replaces the
//! value atomically: readers see the value before or after it. The part is held in memory and charged by its length. The
//! resulting value is charged too where the store takes a value only whole. Rules for uploads are those of PUT (`write`).
//! Writes of many parts are in `partial`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;

use super::write::{Incoming, committed, failed, stored, writable_key};
use crate::api::documented::{WritablePath, WriteConditions, WriteResponses};
use crate::error::ErrorClass;
use crate::http::body::collect;
use crate::http::conditions::Conditions;
use crate::http::digest::Checking;
use crate::http::options::HttpOptions;
use crate::http::problem::Problem;
use crate::http::range;
use crate::http::range::ContentRange;
use crate::services::extract::StoreTarget;
use crate::services::state::AppState;
use crate::store::{PartialWrite, StoreError, ValueInfo, ValuePart, WriteCondition, set_partial_values};

/// The header with the media types that PATCH accepts (RFC 5789, section 3.1).
pub(crate) const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");
/// The only media type that PATCH accepts.
pub(crate) const PATCH_TYPE: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Write a part of a value
///
/// `Content-Range: bytes 10-19/*` gives the position of the body in the value; the body must have that number of bytes. A
/// number in place of `*` is the length that the value must have after the write. A value that does not exist counts as
/// empty, and bytes between its end and the part become zero. The write is atomic.
#[utoipa::path(
    patch,
    path = super::specs::KEY.template,
    tag = "store",
    params(
        WritablePath,
        ("Content-Range" = String, Header, description = "`bytes 10-19/*`, or `bytes 10-19/100`"),
        ("Content-Digest" = Option<String>, Header, description = "`sha-256` or `sha-512` of the body"),
        WriteConditions,
    ),
    request_body(content_type = "application/octet-stream", description = "The bytes of the part"),
    responses(
        WriteResponses,
        (status = 201, description = "Written; there was no value before"),
        (status = 204, description = "Written"),
        (status = 400, description = "The path is not a valid store key, `Content-Range` is missing or invalid, or the body \
                                      has another length than it states; nothing was written"),
        (status = 405, description = "The mount is read-only, or its backend has no object versions"),
        (status = 409, description = "The resulting value would have another length than `Content-Range` states; nothing was written"),
        (status = 413, description = "The value would be too large; nothing was written"),
        (status = 503, description = "Concurrent writers prevented each attempt and nothing was written, or the server is overloaded"),
    )
)]
pub(crate) async fn patch_key(
    State(state): State<AppState>,
    target: StoreTarget,
    request: Request,
) -> Result<Response, Problem> {
    let (mount, key) = writable_key(&target)?;
    let (head, Incoming { body, declared, checking, held }) = Incoming::new(&state, request)?;
    let ContentRange { range, result_bytes } = range::written(&head.headers).ok_or_else(no_place)?;
    let limit_bytes = state.options.max_value_size;
    if range.end > limit_bytes {
        return Err(too_large(limit_bytes));
    }
    let length = range.end.saturating_sub(range.start);
    held.charge(length)?;
    let bytes = part(&state.options, declared, length, checking, body).await?;

    // As with PUT: once all bytes have arrived, a disconnect of the client does not stop the write.
    let parts = vec![ValuePart { offset: range.start, bytes }];
    let write = PartialWrite { key: key.clone(), parts, result_bytes, limit_bytes };
    let (store, conditions) = (Arc::clone(&mount.store), Conditions::from_headers(&head.headers));
    let commit = tokio::spawn(async move {
        let may_write = |current: Option<&ValueInfo>| match conditions.for_write(current) {
            Some(_) => {
                // The store gets the whole resulting value, under a condition.
                let result = range.end.max(current.map_or(0, |info| info.size));
                held.charge_set(&*store, &WriteCondition::IfAbsent, length, result)
            }
            None => Err(StoreError::ConditionFailed),
        };
        set_partial_values(&*store, &write, may_write).await
    });
    committed(&state.options, commit).await?.map(stored).map_err(not_written)
}

/// Reads the body, which must have this length.
async fn part(
    options: &HttpOptions,
    declared: Option<u64>,
    length: u64,
    checking: Checking,
    body: Body,
) -> Result<Bytes, Problem> {
    if declared.is_some_and(|declared| declared != length) {
        return Err(not_as_long(length));
    }
    let bytes = collect(options, declared, length, Some(checking), body, || not_as_long(length)).await?;
    if u64::try_from(bytes.len()) == Ok(length) { Ok(bytes) } else { Err(not_as_long(length)) }
}

fn not_written(error: StoreError) -> Problem {
    match error {
        StoreError::ConditionFailed => failed(),
        StoreError::BodyTooLarge { limit } => too_large(limit),
        StoreError::LengthMismatch { asked, result } => {
            Problem::from(error).extension("asked", asked).extension("result", result)
        }
        // The mount still accepts PUT and DELETE.
        error @ StoreError::NotSupported(_) => {
            Problem::from(error).allow("GET, HEAD, PUT, DELETE, OPTIONS, PROPFIND, MKCOL, COPY, MOVE")
        }
        error => error.into(),
    }
}

fn too_large(limit: u64) -> Problem {
    let detail = format!("the value would be longer than {limit} bytes; nothing was written");
    Problem::from_class(ErrorClass::TooLarge).detail(detail).extension("limit", limit)
}

fn no_place() -> Problem {
    Problem::from_class(ErrorClass::InvalidRequest)
        .detail(
            "send one `Content-Range` with the position of the body in the value: `bytes 10-19/*`, or with the length \
             of the value after the write, `bytes 10-19/100`",
        )
        .header(ACCEPT_PATCH, PATCH_TYPE)
}

fn not_as_long(length: u64) -> Problem {
    Problem::from_class(ErrorClass::InvalidRequest).detail(format!(
        "`Content-Range` states {length} bytes, but the body has another length; nothing was written"
    ))
}

//! `/v1/partial/{mount}` and `/v1/erase/{mount}`: `get_partial_values`, `set_partial_values` and `erase_values` of Zarr
//! core 3.1 over many keys.
//!
//! What is read is put together whole before the head is sent: each part costs one request to the backend, which says its
//! length, so that the answer has a `Content-Length`, every failure has a status, and nothing breaks off. A request for
//! the lengths alone would double the cost. Each key is written whole or not at all; all keys together are not.

use std::collections::HashMap;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use futures::stream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::write::read_only;
use crate::admission::{AdmissionRequest, Priority};
use crate::api::held::Held;
use crate::api::json_body::{Limited, read_json};
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Scope, forbidden, origin};
use crate::error::{Classify, ErrorClass};
use crate::http::body::content_length_body;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::http::validators::entity_tag;
use crate::key::{KeyError, StoreKey};
use crate::services::extract::NodeTarget;
use crate::services::mount::Mount;
use crate::services::state::AppState;
use crate::store::{
    ByteRange, PartFailure, PartialWrite, SharedStore, StoreError, ValuePart, WriteCondition, erase_values,
    get_partial_values, set_partial_values,
};

/// Parts of many values.
pub(crate) const PARTIAL: RouteSpec =
    RouteSpec::new("/v1/partial/{mount}", Resource::Keys).admitted_by(AdmittedBy::Handler).post_reads();

/// Many keys to erase.
pub(crate) const ERASE: RouteSpec =
    RouteSpec::new("/v1/erase/{mount}", Resource::Keys).admitted_by(AdmittedBy::Handler);

/// Keys that are written at a time.
const CONCURRENCY: usize = 16;
/// Stands for the length of a value that does not exist: the sharding index's own word for an empty chunk.
const MISSING: u64 = u64::MAX;

/// Parts to read, or parts to write.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"get": [{"key": "a/c/0", "offset": 0, "length": 10}, {"key": "a/c/0", "suffix": 16}, {"key": "a/zarr.json"}]}))]
pub(crate) struct PartialRequest {
    /// What is read. Not together with `set`.
    #[schema(value_type = Option<Vec<GetPart>>, max_items = 1000)]
    get: Option<Limited<GetPart>>,
    /// What is written. Parts of one key are applied together, in this order. Not together with `get`.
    #[schema(value_type = Option<Vec<SetPart>>, max_items = 1000)]
    set: Option<Limited<SetPart>>,
}

/// A part to read: from `offset`, `length` bytes or to the end; the last `suffix` bytes; or with none of these, the value.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetPart {
    /// The value's key.
    #[schema(example = "a/c/0")]
    key: String,
    /// Where the part begins.
    offset: Option<u64>,
    /// Bytes of it, at least 1; fewer if the value ends before.
    length: Option<u64>,
    /// The last bytes, at least 1; the whole value if that is shorter. Not together with `offset`.
    suffix: Option<u64>,
}

/// A part to write.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetPart {
    /// The value's key. A value that does not exist counts as empty.
    #[schema(example = "a/c/0")]
    key: String,
    /// Where the part begins. What lies between the value's end and this becomes zero.
    offset: u64,
    /// The bytes, in base64 with padding.
    #[schema(example = "AAECAw==")]
    base64: String,
}

/// What was written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WrittenKeys {
    /// The keys, in the order they were first named.
    written: Vec<WrittenKey>,
}

/// A key that was written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WrittenKey {
    /// The key.
    #[schema(example = "a/c/0")]
    key: String,
    /// The entity tag of its value now, if the backend says.
    #[schema(example = "\"3f2a\"")]
    etag: Option<String>,
}

/// Values to erase.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"keys": ["a/c/0", "a/c/1"]}))]
pub(crate) struct EraseRequest {
    /// Their keys.
    #[schema(value_type = Vec<String>, max_items = 1000)]
    keys: Limited<String>,
}

/// What was erased.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Erased {
    /// How many of the keys had a value.
    erased: u64,
}

/// Why a part cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum PartError {
    /// The key is none.
    #[error("part {0}: {1}")]
    Key(usize, KeyError),
    /// Neither `offset`, `length` nor `suffix` make a range.
    #[error("part {0}: a range is `offset`, `offset` and `length`, `suffix`, or nothing for the whole value")]
    Range(usize),
    /// No byte is asked for.
    #[error("part {0}: a part has at least one byte")]
    Empty(usize),
    /// The bytes cannot be read.
    #[error("part {0}: `base64` is not base64 with padding (RFC 4648, section 4)")]
    Base64(usize),
}

impl Classify for PartError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Key(..) | Self::Range(_) | Self::Empty(_) | Self::Base64(_) => ErrorClass::InvalidRequest,
        }
    }
}

/// Read or write parts of many values
///
/// With `get`, the answer has a frame for each part, in the order asked: its length in bytes, an unsigned 64-bit
/// little-endian number, and the bytes. The length 2^64−1, and no bytes, stand for a key that does not exist. Parts of one
/// key are of one version of it.
///
/// With `set`, the parts of one key are written all or not at all; of several keys some may be written and others not,
/// and the problem document says in `written` which were.
#[utoipa::path(
    post,
    path = PARTIAL.template,
    tag = "store",
    params(("mount" = String, Path, description = "Name of a mount")),
    request_body(content = PartialRequest, description = "At most 1000 parts"),
    responses(
        (status = 200, description = "The parts that `get` asks for, or what `set` has written", content(
            (String = "application/octet-stream"),
            (WrittenKeys = "application/json"),
        )),
        (status = 400, description = "The body is not understood; nothing was written"),
        (status = 404, description = "No mount has this name"),
        (status = 403, description = "A page of another origin may not write here"),
        (status = 405, description = "`set` on a read-only mount, or its backend does not name versions"),
        (status = 413, description = "The parts, or a value that would be written, are too large"),
        (status = 416, description = "A part lies outside its value; `part` says which"),
        (status = 502, description = "The backend failed; `written` says what was written"),
        (status = 503, description = "Too busy, or other writers came between each time; `written` says what was written"),
    )
)]
pub(crate) async fn post_partial(
    State(state): State<AppState>,
    target: NodeTarget,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let may_write = state.with_origin_rules(|rules| {
        origin::check_write(rules, request.uri(), request.headers(), request.extensions())
    });
    let entrant = AdmissionRequest::new(Priority::Background, request.extensions());
    let PartialRequest { get, set } = read_json(&state, Priority::Background, request).await?;
    match (get, set) {
        (Some(Limited(parts)), None) => {
            permit(&caller, &target.mount, Scope::Read, parts.iter().map(|part| &part.key))?;
            read(&state, entrant, &target.mount.store, parts).await
        }
        (None, Some(Limited(parts))) => {
            may_write?;
            if !target.mount.writable {
                return Err(refused(&target.mount));
            }
            permit(&caller, &target.mount, Scope::Write, parts.iter().map(|part| &part.key))?;
            write(&state, entrant, &target.mount.store, parts).await
        }
        (Some(_), Some(_)) | (None, None) => {
            Err(Problem::from_class(ErrorClass::InvalidRequest).detail("send either `get` or `set`"))
        }
    }
}

/// Erase many values
///
/// Keys without a value are passed over. On a failure in the middle the problem document has `erased` too.
#[utoipa::path(
    post,
    path = ERASE.template,
    tag = "store",
    params(("mount" = String, Path, description = "Name of a writable mount")),
    request_body(content = EraseRequest, description = "At most 1000 keys"),
    responses(
        (status = 200, description = "None of the keys has a value now", body = Erased),
        (status = 400, description = "The body is not understood; nothing was erased"),
        (status = 403, description = "A page of another origin may not write here"),
        (status = 404, description = "No mount has this name"),
        (status = 405, description = "The mount is read-only"),
        (status = 502, description = "The backend failed; `erased` says how many were erased before"),
    )
)]
pub(crate) async fn post_erase(
    State(state): State<AppState>,
    target: NodeTarget,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let mount: &Mount = &target.mount;
    if !mount.writable {
        return Err(refused(mount));
    }
    let EraseRequest { keys: Limited(texts) } = read_json(&state, Priority::Background, request).await?;
    permit(&caller, mount, Scope::Delete, texts.iter())?;
    let keys = texts.iter().enumerate().map(|(part, text)| parse_key(part, text));
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    match erase_values(&*mount.store, &keys).await {
        (erased, None) => Ok(Json(Erased { erased }).into_response()),
        (erased, Some(PartFailure { part, error })) => {
            Err(at_part(part, keys.get(part), error).extension("erased", erased))
        }
    }
}

/// Refuses the whole request if one of its keys is not for the caller. What is no key is said of the part, later.
fn permit<'a>(
    caller: &Caller,
    mount: &Mount,
    scope: Scope,
    keys: impl Iterator<Item = &'a String>,
) -> Result<(), Problem> {
    let is_refused =
        |key: StoreKey| !caller.rights().allows(&mount.name, &Permission::stored(scope, KeyScope::Key(key)));
    let refused = keys.enumerate().find(|(_, text)| StoreKey::parse(text).is_ok_and(is_refused));
    refused.map_or(Ok(()), |(part, _)| Err(forbidden().extension("part", part)))
}

fn refused(mount: &Mount) -> Problem {
    Problem::from_class(ErrorClass::NotAllowed).detail(read_only(mount)).allow("POST, OPTIONS")
}

fn parse_key(part: usize, text: &str) -> Result<StoreKey, PartError> {
    StoreKey::parse(text).map_err(|error| PartError::Key(part, error))
}

/// A failure, with the part and the key that it is about.
fn at_part(part: usize, key: Option<&StoreKey>, error: StoreError) -> Problem {
    let (class, text) = (error.class(), error.to_string());
    let size = match &error {
        StoreError::RangeNotSatisfiable { size } => Some(*size),
        _ => None,
    };
    let mut problem = Problem::from(error).extension("part", part);
    if let Some(key) = key {
        problem = problem.extension("key", key.as_str());
    }
    if let Some(size) = size {
        problem = problem.extension("size", size);
    }
    if class.is_caller_fault() { problem.detail(format!("part {part}: {text}")) } else { problem }
}

impl GetPart {
    fn parse(self, part: usize) -> Result<(StoreKey, ByteRange), PartError> {
        let key = parse_key(part, &self.key)?;
        let range = match (self.offset, self.length, self.suffix) {
            (_, Some(0), _) | (_, _, Some(0)) => return Err(PartError::Empty(part)),
            (None, None, None) => ByteRange::Whole,
            (Some(offset), None, None) => ByteRange::From(offset),
            (Some(offset), Some(length), None) => ByteRange::Bounded(offset, offset.saturating_add(length)),
            (None, None, Some(suffix)) => ByteRange::Suffix(suffix),
            (None, Some(_), _) | (Some(_), _, Some(_)) => return Err(PartError::Range(part)),
        };
        Ok((key, range))
    }
}

/// Most bytes that a range can have, whatever the value's length.
fn most_bytes(range: ByteRange) -> u64 {
    match range {
        ByteRange::Bounded(start, end) => end.saturating_sub(start),
        ByteRange::Suffix(length) => length,
        ByteRange::Whole | ByteRange::From(_) => u64::MAX,
    }
}

async fn read(
    state: &AppState,
    entrant: AdmissionRequest,
    store: &SharedStore,
    parts: Vec<GetPart>,
) -> Result<Response, Problem> {
    let ranges = parts.into_iter().enumerate().map(|(part, asked)| asked.parse(part));
    let ranges = ranges.collect::<Result<Vec<_>, _>>()?;
    let limit = state.options().whole_bytes;
    let most = ranges.iter().fold(0_u64, |most, (_, range)| most.saturating_add(most_bytes(*range)));
    let permit = state.admission().acquire(entrant, most.min(limit)).await?;
    let values = get_partial_values(&**store, &ranges, limit).await;
    let values = values.map_err(|PartFailure { part, error }| {
        let too_large = matches!(error, StoreError::PartsTooLarge { .. });
        let problem = at_part(part, ranges.get(part).map(|(key, _)| key), error);
        if too_large { problem.extension("limit", limit) } else { problem }
    })?;
    let frames: Vec<Bytes> = values.into_iter().flat_map(frame).collect();
    let length = frames.iter().map(|bytes| bytes.len() as u64).sum();
    let mut frames = frames.into_iter();
    let first = frames.next().unwrap_or_default();
    let body = content_length_body(first, stream::iter(frames.map(Ok::<_, StoreError>)).boxed(), length);
    let head = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_LENGTH, HeaderValue::from(length)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    Ok(permit.hold((head, body).into_response()))
}

/// A part as it is sent: its length, and its bytes.
fn frame(value: Option<Bytes>) -> [Bytes; 2] {
    let length = value.as_ref().map_or(MISSING, |bytes| bytes.len() as u64);
    [Bytes::copy_from_slice(&length.to_le_bytes()), value.unwrap_or_default()]
}

async fn write(
    state: &AppState,
    entrant: AdmissionRequest,
    store: &SharedStore,
    parts: Vec<SetPart>,
) -> Result<Response, Problem> {
    let most = parts.iter().map(|part| part.base64.len() as u64).sum();
    let _held = state.admission().acquire(entrant, most).await?;
    let limit_bytes = state.options().put_body_bytes;
    let writes = state.cpu().run(move || by_key(parts, limit_bytes)).await??;
    let mut written = Vec::with_capacity(writes.len());
    for some in writes.chunks(CONCURRENCY) {
        // All of these are waited for, so that what is told is what was written.
        let results = some.iter().map(|(_, write)| async move {
            let held = Held::new(state.admission().alongside(entrant));
            set_partial_values(&**store, write, |current| {
                let end =
                    write.parts.iter().map(|part| part.offset.saturating_add(part.bytes.len() as u64)).max();
                let length = end.max(current.map(|info| info.size)).unwrap_or_default();
                held.charge_set(&**store, &WriteCondition::IfAbsent, 0, length)
            })
            .await
        });
        let mut failure = None;
        for ((part, write), result) in some.iter().zip(join_all(results).await) {
            match result {
                Ok(outcome) => written.push(WrittenKey {
                    key: write.key.to_string(),
                    etag: outcome.version.as_ref().map(entity_tag),
                }),
                Err(error) => failure = failure.or(Some((*part, &write.key, error))),
            }
        }
        if let Some((part, key, error)) = failure {
            return Err(at_part(part, Some(key), error).extension("written", to_json(&written)));
        }
    }
    Ok(Json(WrittenKeys { written }).into_response())
}

fn to_json(written: &[WrittenKey]) -> Value {
    written.iter().map(|key| json!({ "key": key.key, "etag": key.etag })).collect()
}

/// The writes of each key, in the order in which keys are first named, each with the place of its first part.
fn by_key(parts: Vec<SetPart>, limit_bytes: u64) -> Result<Vec<(usize, PartialWrite)>, PartError> {
    let mut writes: Vec<(usize, PartialWrite)> = Vec::new();
    let mut places = HashMap::<StoreKey, usize>::new();
    for (part, SetPart { key, offset, base64 }) in parts.into_iter().enumerate() {
        let key = parse_key(part, &key)?;
        let bytes = BASE64_STANDARD.decode(base64).map_err(|_not_base64| PartError::Base64(part))?;
        if bytes.is_empty() {
            return Err(PartError::Empty(part));
        }
        let place = *places.entry(key.clone()).or_insert(writes.len());
        let value_part = ValuePart { offset, bytes: bytes.into() };
        if let Some((_, write)) = writes.get_mut(place) {
            write.parts.push(value_part);
        } else {
            let parts = vec![value_part];
            writes.push((part, PartialWrite { key, parts, result_bytes: None, limit_bytes }));
        }
    }
    Ok(writes)
}

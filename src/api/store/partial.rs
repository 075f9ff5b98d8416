//! `/v1/partial/{mount}` and `/v1/erase/{mount}`: `get_partial_values`, `set_partial_values` and `erase_values` of Zarr
//! core 3.1 over many keys.
//!
//! A read assembles all parts in memory before it sends the head. The response therefore has a `Content-Length`, and every
//! failure has a status. Each part costs one backend request; asking for the lengths beforehand would double the cost. Each
//! key is written atomically, but not all keys together.

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

use super::pinned_keys::pinned;
use super::write::read_only;
use crate::admission::text_memory::TextMemory;
use crate::admission::{AdmissionRequest, Permit, Priority};
use crate::api::documented::MountParam;
use crate::api::held::Held;
use crate::api::json_body::{Limited, read_json, read_values};
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Scope, lacks, origin};
use crate::error::{Classify, ErrorClass};
use crate::http::body::content_length_body;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::http::validators::entity_tag;
use crate::http::wrote::Wrote;
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

/// Erasure of many keys.
pub(crate) const ERASE: RouteSpec =
    RouteSpec::new("/v1/erase/{mount}", Resource::Keys).admitted_by(AdmittedBy::Handler);

/// Keys that are written concurrently.
const CONCURRENCY: usize = 16;
/// The length that represents a missing value, as the shard index uses it for an empty inner chunk.
const MISSING: u64 = u64::MAX;

/// Parts to read, or parts to write.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"get": [{"key": "a/c/0", "offset": 0, "length": 10}, {"key": "a/c/0", "suffix": 16}, {"key": "a/zarr.json"}]}))]
pub(crate) struct PartialRequest {
    /// Parts to read. Exactly one of `get` and `set` is required.
    #[schema(value_type = Option<Vec<GetPart>>, max_items = 1000)]
    get: Option<Limited<GetPart>>,
    /// Parts to write. The parts of one key are applied together, in this order.
    #[schema(value_type = Option<Vec<SetPart>>, max_items = 1000)]
    set: Option<Limited<SetPart>>,
}

/// A part to read: with `offset`, the `length` bytes from there, or all bytes to the end; with `suffix`, the last bytes;
/// with neither, the whole value.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetPart {
    /// Key of the value.
    #[schema(example = "a/c/0")]
    key: String,
    /// Position of the first byte.
    offset: Option<u64>,
    /// Number of bytes, at least 1. Fewer are returned if the value ends before.
    length: Option<u64>,
    /// Number of bytes from the end, at least 1; a shorter value is returned whole. Excludes `offset` and `length`.
    suffix: Option<u64>,
}

/// A part to write.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetPart {
    /// Key of the value. A value that does not exist counts as empty.
    #[schema(example = "a/c/0")]
    key: String,
    /// Position of the first byte. Bytes between the end of the value and this position become zero.
    offset: u64,
    /// The bytes, in base64 with padding.
    #[schema(example = "AAECAw==")]
    base64: String,
}

/// The result of a write.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WrittenKeys {
    /// The written keys, in the order of their first part in the request.
    written: Vec<WrittenKey>,
}

/// A key that was written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WrittenKey {
    /// The key.
    #[schema(example = "a/c/0")]
    key: String,
    /// Entity tag of the new value, if the backend reports it.
    #[schema(example = "\"3f2a\"")]
    etag: Option<String>,
}

/// Keys whose values are erased.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"keys": ["a/c/0", "a/c/1"]}))]
pub(crate) struct EraseRequest {
    /// The keys.
    #[schema(value_type = Vec<String>, max_items = 1000)]
    keys: Limited<String>,
}

/// The result of an erasure.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Erased {
    /// Number of keys that had a value.
    erased: u64,
}

/// Why a part is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum PartError {
    /// The key is not a valid store key.
    #[error("part {0}: {1}")]
    Key(usize, KeyError),
    /// The combination of `offset`, `length` and `suffix` is not a range.
    #[error("part {0}: a range is `offset`, `offset` and `length`, `suffix`, or nothing for the whole value")]
    Range(usize),
    /// The part is empty.
    #[error("part {0}: a part has at least one byte")]
    Empty(usize),
    /// The bytes are not valid base64.
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
/// With `get`, the response is a sequence of frames, one for each part, in the order of the request. A frame is the length
/// of the part in bytes as an unsigned 64-bit little-endian integer, followed by these bytes. The length 2^64−1 without
/// bytes means that the key does not exist. All parts of one key are read from the same version of its value, and all keys of
/// a branch of a repository from one snapshot.
///
/// With `set`, the parts of one key are written atomically. Several keys are not: after a failure, `written` in the problem
/// document lists the keys that were written.
#[utoipa::path(
    post,
    path = PARTIAL.template,
    tag = "store",
    params(MountParam),
    request_body(content = PartialRequest, description = "At most 1000 parts"),
    responses(
        (status = 200, description = "The requested parts of `get`, or the written keys of `set`", content(
            (String = "application/octet-stream"),
            (WrittenKeys = "application/json"),
        )),
        (status = 400, description = "The body is invalid; nothing was written"),
        (status = 404, description = "No mount has this name"),
        (status = 403, description = "The caller lacks a right to one of the keys, or a page of another origin may not write"),
        (status = 405, description = "`set` on a read-only mount, or on a backend without object versions"),
        (status = 410, description = "A key that is no document names a version that is not there; `part` is its index"),
        (status = 413, description = "The parts, or a resulting value, exceed a limit"),
        (status = 416, description = "A part starts after the end of its value; `part` is its index"),
        (status = 502, description = "The backend failed; `written` lists the keys that were written"),
        (status = 503, description = "The server is overloaded, or concurrent writers prevented each attempt; `written` lists the keys that were written"),
    )
)]
pub(crate) async fn post_partial(
    State(state): State<AppState>,
    target: NodeTarget,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let may_write = state.access.with_origin_rules(|rules| {
        origin::check_write(rules, request.uri(), request.headers(), request.extensions())
    });
    let entrant = AdmissionRequest::new(Priority::Background, request.extensions());
    let (PartialRequest { get, set }, held) = read_values(&state, (Priority::Background, 0), request).await?;
    match (get, set) {
        (Some(Limited(parts)), None) => {
            // Requests that keep what they have would wait for each other.
            drop(held);
            permit(&caller, &target.mount, Scope::Read, parts.iter().map(|part| &part.key))?;
            read(&state, entrant, &target.mount, parts).await
        }
        (None, Some(Limited(parts))) => {
            let written = async {
                may_write?;
                if !target.mount.writable {
                    return Err(refused(&target.mount));
                }
                permit(&caller, &target.mount, Scope::Write, parts.iter().map(|part| &part.key))?;
                write(&state, entrant, &target.mount.store, parts, held).await
            };
            Ok(Wrote::mark(written.await))
        }
        (Some(_), Some(_)) | (None, None) => {
            Err(Problem::from_class(ErrorClass::InvalidRequest).detail("send either `get` or `set`"))
        }
    }
}

/// Erase many values
///
/// Keys without a value are ignored. After a failure, `erased` in the problem document is the number of values that were
/// erased.
#[utoipa::path(
    post,
    path = ERASE.template,
    tag = "store",
    params(("mount" = String, Path, description = "Name of a writable mount")),
    request_body(content = EraseRequest, description = "At most 1000 keys"),
    responses(
        (status = 200, description = "None of the keys has a value now", body = Erased),
        (status = 400, description = "The body is invalid; nothing was erased"),
        (status = 403, description = "The caller lacks a right to one of the keys, or a page of another origin may not write"),
        (status = 404, description = "No mount has this name"),
        (status = 405, description = "The mount is read-only"),
        (status = 502, description = "The backend failed; `erased` is the number of values that were erased before"),
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

/// Rejects the whole request if the caller lacks the right to one of its keys. Invalid keys are reported later, with the
/// index of their part.
fn permit<'a>(
    caller: &Caller,
    mount: &Mount,
    scope: Scope,
    keys: impl Iterator<Item = &'a String>,
) -> Result<(), Problem> {
    let is_refused =
        |key: StoreKey| !caller.rights().allows(&mount.name, &Permission::stored(scope, KeyScope::Key(key)));
    let refused = keys.enumerate().find(|(_, text)| StoreKey::parse(text).is_ok_and(is_refused));
    refused.map_or(Ok(()), |(part, _)| Err(lacks(scope).extension("part", part)))
}

fn refused(mount: &Mount) -> Problem {
    Problem::from_class(ErrorClass::NotAllowed).detail(read_only(mount)).allow("POST, OPTIONS")
}

fn parse_key(part: usize, text: &str) -> Result<StoreKey, PartError> {
    StoreKey::parse(text).map_err(|error| PartError::Key(part, error))
}

/// The problem for a store error, with the index and the key of the part that caused it.
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

/// Maximum number of bytes of a range, whatever the length of the value.
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
    mount: &Mount,
    parts: Vec<GetPart>,
) -> Result<Response, Problem> {
    let ranges = parts.into_iter().enumerate().map(|(part, asked)| asked.parse(part));
    let ranges = ranges.collect::<Result<Vec<_>, _>>()?;
    let limit = state.options.max_buffered_response_size;
    let most = ranges.iter().fold(0_u64, |most, (_, range)| most.saturating_add(most_bytes(*range)));
    let most = most.min(limit);
    let mut memory = TextMemory::acquire(&state.traffic.admission, entrant, most, |bytes| bytes).await?;
    let (asked, ranges): (Vec<StoreKey>, Vec<ByteRange>) = ranges.into_iter().unzip();
    let keys = pinned(state, mount, asked.clone()).await?;
    let ranges: Vec<(StoreKey, ByteRange)> = keys.into_iter().zip(ranges).collect();
    let values = loop {
        match get_partial_values(&*mount.store, &ranges, memory.limit()).await {
            Err(PartFailure { error: StoreError::PartsTooLarge { limit }, .. })
                if memory.can_extend(Some(limit)) =>
            {
                memory.extend().await?;
            }
            values => break values,
        }
    };
    let values = values.map_err(|PartFailure { part, error }| {
        let too_large = matches!(error, StoreError::PartsTooLarge { .. });
        let problem = at_part(part, asked.get(part), error);
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
    let unused = memory.limit().saturating_sub(length);
    let mut permit = memory.into_permit();
    permit.release(unused);
    Ok(permit.hold((head, body).into_response()))
}

/// The frame of a part: its length and its bytes.
fn frame(value: Option<Bytes>) -> [Bytes; 2] {
    let length = value.as_ref().map_or(MISSING, |bytes| bytes.len() as u64);
    [Bytes::copy_from_slice(&length.to_le_bytes()), value.unwrap_or_default()]
}

/// Writes parts; `held` is for the body that they were in.
async fn write(
    state: &AppState,
    entrant: AdmissionRequest,
    store: &SharedStore,
    parts: Vec<SetPart>,
    mut held: Permit,
) -> Result<Response, Problem> {
    let limit_bytes = state.options.max_value_size;
    let writes = state.engine.cpu.run(move || by_key(parts, limit_bytes)).await??;
    let bytes = |(_, write): &(usize, PartialWrite)| -> u64 {
        write.parts.iter().map(|part| part.bytes.len() as u64).sum()
    };
    held.resize(writes.iter().map(bytes).sum())?;
    let mut written = Vec::with_capacity(writes.len());
    for some in writes.chunks(CONCURRENCY) {
        // Waits for all of them, so that `written` is complete even after a failure.
        let results = some.iter().map(|(_, write)| async move {
            let held = Held::new(state.traffic.admission.alongside(entrant));
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

/// Groups the parts by key, in the order of the first part of each key. Each write has the index of its first part.
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

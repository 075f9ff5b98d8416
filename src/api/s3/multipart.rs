//! Uploads in parts: `CreateMultipartUpload`, `UploadPart`, `UploadPartCopy`, `CompleteMultipartUpload` and
//! `AbortMultipartUpload`.
//!
//! Each part is a value of the store's staging area (`services::uploads`). To complete an upload is one `set` of the parts
//! one after the other, so that the value appears whole and in one step, under the conditions of the request. A part is
//! read at the version that the client names by its entity tag: a part that was sent again meanwhile makes no torn value.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use futures::stream::{StreamExt, TryStreamExt};

use super::copy::{CopySource, held_for, result, soon};
use super::payload::Payload;
use super::tags::{opaque, quote};
use super::xml::Xml;
use super::xml_body::{XmlRecord, records};
use crate::api::store::write;
use crate::api::within::within;
use crate::auth::caller::Caller;
use crate::error::ErrorClass;
use crate::http::path::encode;
use crate::http::problem::Problem;
use crate::http::range;
use crate::http::validators::entity_tag;
use crate::key::StoreKey;
use crate::services::mount::Mount;
use crate::services::state::AppState;
use crate::services::uploads::{UploadError, UploadPlace};
use crate::store::{ByteRange, SharedStore, StoreError, ValueInfo, ValueStream, Version, WriteCondition};

/// The most parts of an upload, and the largest number of one (S3 user guide, "Multipart upload limits").
pub(super) const PARTS: u32 = 10_000;
/// The shortest part but the last, in bytes.
const PART_BYTES: u64 = 5 << 20;
/// Parts that are asked about concurrently.
const HEADS: usize = 16;

/// A part as the client names it and the store has it.
struct Part {
    key: StoreKey,
    size: u64,
    version: Version,
}

/// Begins an upload.
pub(super) async fn begin(state: &AppState, mount: &Mount, key: &StoreKey) -> Result<Response, Problem> {
    let options = &state.options.uploads;
    let id =
        soon(&state.options, async { state.uploads.begin(options, mount, key).await.map_err(problem_of) });
    let id = id.await?;
    let answer = Xml::answer("InitiateMultipartUploadResult", |xml| {
        xml.text("Bucket", &mount.name);
        xml.text("Key", key.as_str());
        xml.text("UploadId", &id);
    });
    Ok(answer.into_response())
}

/// Stores a part.
pub(super) async fn part(
    state: &AppState,
    (mount, key): (&Mount, &StoreKey),
    (id, number): (&str, u32),
    request: Request,
) -> Result<Response, Problem> {
    let (_, incoming, checksums) = Payload::new(state, request)?.into_parts();
    let Some(length) = incoming.declared else {
        return Err(Problem::new(StatusCode::LENGTH_REQUIRED, "missing-content-length").detail(
            "a part needs a `Content-Length`, so that the bytes of unfinished uploads can be counted",
        ));
    };
    let place = find(state, mount, id, key, false).await?;
    let staged = state.uploads.reserve(&state.options.uploads, mount, id, length).map_err(problem_of)?;
    let named = place.part(number).map_err(problem_of)?;
    let outcome = incoming.store(&state.options, &place.staging, &named, WriteCondition::Always).await?;
    staged.keep();
    Ok(checksums.stored(outcome))
}

/// Stores a part that is copied from a value.
pub(super) async fn copy_part(
    state: &AppState,
    (mount, key): (&Mount, &StoreKey),
    caller: &Caller,
    (id, number): (&str, u32),
    request: Request,
) -> Result<Response, Problem> {
    let (mut head, _) = request.into_parts();
    quote(&mut head.headers);
    let source = CopySource::of(state, caller, &head.headers).await?;
    let mut asked = head.headers.clone();
    asked.remove(header::RANGE);
    if let Some(range) = head.headers.get("x-amz-copy-source-range") {
        asked.insert(header::RANGE, range.clone());
    }
    let range = range::requested(&asked);
    let Some(resolved) = range.resolve(source.info.size) else {
        return Err(range::not_satisfiable(source.info.size));
    };
    let length = resolved.end - resolved.start;
    if length > state.options.max_value_size {
        return Err(too_large(state.options.max_value_size));
    }
    let place = find(state, mount, id, key, false).await?;
    let staged = state.uploads.reserve(&state.options.uploads, mount, id, length).map_err(problem_of)?;
    let held = held_for(state, &head);
    held.charge_set(&*place.staging, &WriteCondition::Always, 0, length)?;
    let named = place.part(number).map_err(problem_of)?;
    let work = tokio::spawn(async move {
        let _held = held;
        let value = source.mount.store.get(&source.key, range, source.version()).await?;
        let value = value.ok_or(StoreError::VersionChanged)?;
        place.staging.set(&named, value.into_exact_stream(), WriteCondition::Always).await
    });
    let outcome = within(&state.options, length, work).await?;
    let outcome = outcome.map_err(|error| match error {
        StoreError::VersionChanged => write::failed(),
        error => error.into(),
    })?;
    staged.keep();
    let version = outcome.version.unwrap_or_else(|| Version::weak("unknown"));
    Ok(result("CopyPartResult", &ValueInfo { size: length, version, modified: None }).into_response())
}

/// Makes the parts of an upload one value.
pub(super) async fn complete(
    state: &AppState,
    (mount, key): (&Mount, &StoreKey),
    id: &str,
    request: Request,
) -> Result<Response, Problem> {
    let (head, records, _records_held) = records(state, request, "CompleteMultipartUpload").await?;
    let place = find(state, mount, id, key, true).await?;
    let parts = soon(&state.options, parts_of(&place, &records)).await?;
    let size = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.size));
    if size > state.options.max_value_size {
        return Err(too_large(state.options.max_value_size));
    }
    let condition = write::condition(&state.options, mount, key, &head.headers).await?;
    let held = held_for(state, &head);
    held.charge_set(&*mount.store, &condition, 0, size)?;

    let body = joined(Arc::clone(&place.staging), parts);
    let (store, name) = (Arc::clone(&mount.store), key.clone());
    let (state, mount, id) = (state.clone(), mount.clone(), id.to_owned());
    let options = Arc::clone(&state.options);
    let work = tokio::spawn(async move {
        let _held = held;
        let outcome = store.set(&name, body, condition).await?;
        if let Err(error) = state.uploads.end(&mount, &id, &place).await {
            // They are erased when the upload expires.
            tracing::warn!(%error, mount = mount.name, "the parts of a completed upload could not be erased");
        }
        Ok::<_, StoreError>((outcome, mount))
    });
    let outcome = within(&options, size, work).await?;
    let (outcome, mount) = outcome.map_err(|error| match error {
        // A part was sent again, or erased with its upload.
        StoreError::VersionChanged => invalid_part("a part changed while the upload was completed"),
        error => error.into(),
    })?;
    let answer = Xml::answer("CompleteMultipartUploadResult", |xml| {
        let path: Vec<String> = key.as_str().split('/').map(encode).collect();
        xml.text("Location", &format!("/s3/{}/{}", encode(&mount.name), path.join("/")));
        xml.text("Bucket", &mount.name);
        xml.text("Key", key.as_str());
        if let Some(version) = &outcome.version {
            xml.text("ETag", &entity_tag(version));
        }
    });
    Ok(answer.into_response())
}

/// Aborts an upload.
pub(super) async fn abort(
    state: &AppState,
    mount: &Mount,
    key: &StoreKey,
    id: &str,
) -> Result<Response, Problem> {
    let place = find(state, mount, id, key, true).await?;
    state.uploads.end(mount, id, &place).await.map_err(problem_of)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The place of an upload.
pub(super) async fn find(
    state: &AppState,
    mount: &Mount,
    id: &str,
    key: &StoreKey,
    confirmed: bool,
) -> Result<UploadPlace, Problem> {
    let found = async { state.uploads.find(mount, id, key, confirmed).await.map_err(problem_of) };
    soon(&state.options, found).await
}

/// The parts of an upload, by number: as the staging area has them.
///
/// # Errors
/// Any failure of the store.
pub(super) async fn staged(place: &UploadPlace) -> Result<BTreeMap<u32, ValueInfo>, StoreError> {
    let mut parts = BTreeMap::new();
    let mut entries = place.staging.list_prefix(&place.prefix, None);
    while let Some(entry) = entries.try_next().await? {
        if let Some(number) = place.number(&entry.key).filter(|number| *number <= PARTS) {
            parts.insert(number, entry.info);
        }
    }
    Ok(parts)
}

/// The parts that a client names, after a check that the upload has them all.
async fn parts_of(place: &UploadPlace, records: &[XmlRecord]) -> Result<Vec<Part>, Problem> {
    let mut named = Vec::with_capacity(records.len());
    for record in records.iter().filter(|record| record.name == "Part") {
        let number = record.field("PartNumber").and_then(|number| number.trim().parse::<u32>().ok());
        let number = number.filter(|number| (1..=PARTS).contains(number));
        let number = number.ok_or_else(|| invalid_part("a part has no number of 1 to 10000"))?;
        let tag = record.field("ETag").ok_or_else(|| invalid_part("a part has no `ETag`"))?;
        named.push((number, opaque(tag).to_owned()));
    }
    if named.is_empty() {
        return Err(
            Problem::new(StatusCode::BAD_REQUEST, "malformed-xml").detail("the document names no part")
        );
    }
    if !named.is_sorted_by(|one, next| one.0 < next.0) {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "invalid-part-order")
            .detail("the parts must be in the order of their numbers, each once"));
    }
    let last = named.len() - 1;
    let parts = stream::iter(named.into_iter().enumerate()).map(|(index, (number, tag))| async move {
        let key = place.part(number).map_err(problem_of)?;
        let info = place.staging.head(&key).await?;
        let missing = || invalid_part("the upload has no part of this number and `ETag`");
        let info = info.filter(|info| opaque(&entity_tag(&info.version)) == tag).ok_or_else(missing)?;
        if info.size < PART_BYTES && index < last {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "entity-too-small").detail(format!(
                "a part has {} bytes; all but the last have at least {PART_BYTES}",
                info.size
            )));
        }
        Ok(Part { key, size: info.size, version: info.version })
    });
    parts.buffered(HEADS).try_collect().await
}

/// The bytes of the parts, one after the other.
fn joined(staging: SharedStore, parts: Vec<Part>) -> ValueStream {
    let values = stream::iter(parts.into_iter().map(Ok)).and_then(move |part| {
        let staging = Arc::clone(&staging);
        async move {
            let value = staging.get(&part.key, ByteRange::Whole, part.version.pin()).await?;
            Ok::<_, StoreError>(value.ok_or(StoreError::VersionChanged)?.into_exact_stream())
        }
    });
    values.try_flatten().boxed()
}

fn invalid_part(detail: &'static str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "invalid-part").detail(detail)
}

fn too_large(limit: u64) -> Problem {
    Problem::from_class(ErrorClass::TooLarge)
        .detail(format!("the value would have more than {limit} bytes (`http.max_value_size`)"))
        .extension("limit", limit)
}

pub(super) fn problem_of(error: UploadError) -> Problem {
    match error {
        UploadError::NoSuchUpload => {
            Problem::new(StatusCode::NOT_FOUND, "no-such-upload").detail(error.to_string())
        }
        error => error.into(),
    }
}

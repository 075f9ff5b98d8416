//! A response of known length from its parts: ranges, HEAD, and the first elements before the head.

use std::future::ready;
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use futures::stream::{self, StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};

use super::body::ExportBody;
use super::error::ExportError;
use super::sources::{ExportSource, ExportSources};
use crate::array::{Plan, ReadContext, Snapshot};
use crate::http::body::content_length_body;
use crate::http::range;
use crate::http::timing::put_trace;
use crate::metadata::DataType;
use crate::services::engine::ArrayEngine;
use crate::store::{ByteRange, Version};
use crate::units::hexadecimal::digest_tag;

/// A description shorter than this is sent together with the elements behind it, if they are short too.
const SHORT_BYTES: usize = 256 << 10;
/// Bytes that a stored chunk takes in a snapshot, about.
const CHUNK_BYTES: u64 = 400;
/// Bytes that a variable takes beside its elements and attributes, about.
const VARIABLE_BYTES: u64 = 16 << 10;

/// The memory in bytes of a response in flight: segments of the largest array, what they are encoded to, and the description.
pub(crate) fn held_bytes(sources: &ExportSources, plans: &[Plan]) -> u64 {
    // The segment that is sent and the next one, and the values that one becomes.
    let segments = |(source, plan): (&ExportSource, &Plan)| {
        let segment = plan.segment_bytes();
        let decoded = source.decoding().map_or(0, |decoding| {
            let (value, stored) = (decoding.data_type().element_bytes(), decoding.stored_bytes().max(1));
            // What is decoded is encoded from there.
            segment.saturating_mul(2 * value.div_ceil(stored) as u64)
        });
        let encoded = segment.saturating_mul(growth(&plan.array().metadata().data_type));
        plan.response_bytes().min(segment.saturating_mul(2)).saturating_add(encoded).saturating_add(decoded)
    };
    let segments = sources.sources.iter().zip(plans).map(segments).max().unwrap_or(0);
    let chunks = plans.iter().map(Plan::chunks).fold(0, u64::saturating_add);
    segments.saturating_add(chunks.saturating_mul(CHUNK_BYTES)).saturating_add(described_bytes(sources))
}

/// How many times as large as its elements their values are, at most: DAP widens integers, and small floats are sent as
/// larger ones.
fn growth(data_type: &DataType) -> u64 {
    match (data_type, data_type.element_bytes()) {
        (DataType::UInt8 | DataType::Bool, _) => 1,
        (_, 1) => 4,
        (DataType::UInt32, _) | (_, 2) => 2,
        _ => 1,
    }
}

/// The memory in bytes of the description of arrays.
pub(crate) fn described_bytes(sources: &ExportSources) -> u64 {
    let variables = (sources.sources.len() as u64).saturating_mul(VARIABLE_BYTES);
    sources.attribute_bytes().saturating_mul(4).saturating_add(variables)
}

/// The versions of the chunks of all arrays. Reads none of the chunks.
///
/// # Errors
/// Failures of the store.
pub(crate) async fn snapshots(
    engine: &ArrayEngine,
    plans: &[Plan],
    trace: &ReadContext,
) -> Result<Vec<Snapshot>, ExportError> {
    let mut snapshots = Vec::with_capacity(plans.len());
    for plan in plans {
        snapshots.push(engine.reader.lookup_versions(plan, trace).await?);
    }
    Ok(snapshots)
}

/// The version of a response, derived from the versions of all that it is made from, and from its form.
pub(crate) fn version_of(form: &str, sources: &ExportSources, snapshots: &[Snapshot]) -> Version {
    let (mut strong, mut digest) = (true, Sha256::new());
    // No part has a zero byte: tags are visible ASCII, and `Debug` escapes control characters.
    let mut add = |part: &[u8]| {
        digest.update(part);
        digest.update([0]);
    };
    add(form.as_bytes());
    let mut versions: Vec<Option<&Version>> = Vec::new();
    versions.extend(sources.group.iter().flat_map(|group| group.located.versions()));
    for omitted in &sources.omitted {
        add(format!("{omitted:?}").as_bytes());
    }
    for (source, snapshot) in sources.sources.iter().zip(snapshots) {
        if source.decoding().is_some() {
            add(b"decoded");
        }
        add(format!("{:?} {} {:?}", source.name, source.array.path(), source.subset).as_bytes());
        versions.extend(source.node.located.versions());
        versions.extend(snapshot.versions());
    }
    for version in versions {
        strong &= version.is_none_or(Version::is_strong);
        add(version.map_or(b"", |version| version.tag().as_bytes()));
    }
    let tag = digest_tag(&digest.finalize());
    if strong { Version::strong(&tag) } else { Version::weak(&tag) }
}

/// The response to GET, HEAD, or a POST that reads.
///
/// # Errors
/// Failures of reading the first elements.
pub(crate) async fn respond(
    engine: &ArrayEngine,
    head: &Parts,
    version: &Version,
    content_type: HeaderValue,
    body: ExportBody,
    trace: &Arc<ReadContext>,
) -> Result<Response, ExportError> {
    let size = body.bytes();
    let asked = requested(&head.method, &head.headers, version);
    let Some(wanted) = asked.resolve(size) else {
        return Ok(range::not_satisfiable(size).into_response());
    };
    let mut answer = StatusCode::OK.into_response();
    if asked != ByteRange::Whole {
        *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
        answer.headers_mut().insert(header::CONTENT_RANGE, range::content_range(&wanted, size));
    }
    let length = wanted.end - wanted.start;
    if head.method != Method::HEAD {
        let mut parts = body.stream(engine, &wanted, trace);
        let mut first = parts.try_next().await?.unwrap_or_default();
        // Elements follow the description; a failure to decode the first of them still has a status.
        if (first.len() as u64) < length && first.len() < SHORT_BYTES {
            let next = parts.try_next().await?.unwrap_or_default();
            if next.len() < SHORT_BYTES {
                let mut joined = BytesMut::from(first);
                joined.extend_from_slice(&next);
                first = joined.freeze();
            } else {
                parts = stream::once(ready(Ok(next))).chain(parts).boxed();
            }
        }
        *answer.body_mut() = content_length_body::<ExportError>(first, parts, length);
    }
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    put_trace(headers, trace);
    Ok(answer)
}

/// The requested range; only GET has ranges (RFC 9110, section 14.2).
fn requested(method: &Method, headers: &HeaderMap, version: &Version) -> ByteRange {
    if *method == Method::GET && range::if_range_holds(headers, version) {
        range::requested(headers)
    } else {
        ByteRange::Whole
    }
}

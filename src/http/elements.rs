//! Answering with decoded elements: plan → version → conditions → first band → head → the rest.
//!
//! The length of the answer is known from metadata and its entity tag from the versions of the chunks it touches, so a
//! 304, a 412, a 413 and a 416 read no chunk. The first elements are decoded before the head is sent: what cannot be
//! decoded is told by a status. A failure after that breaks the body off visibly.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};

use super::body::exact_body;
use super::conditions::{Conditions, Verdict};
use super::negotiate::Offer;
use super::problem::Problem;
use super::range;
use super::state::AppState;
use super::validators::{hex_tag, put_validators};
use crate::array::{Array, ArrayError, Opened, Plan, Snapshot, Trace};
use crate::chunk::{self, Subset};
use crate::error::{Classify, ErrorClass};
use crate::metadata::Endianness;
use crate::render::{self, Format, NanMode, RenderError, Writer, json_bytes_estimate, npy, to_big_endian};
use crate::store::{ByteRange, ValueInfo, Version};

/// How often an answer whose chunks change while it is begun is begun again.
const TRIES: usize = 3;
/// Part of every entity tag: changed whenever the same elements would be rendered otherwise.
const RENDERING: &[u8] = b"zarrd elements 1";

const ARRAY_SHAPE: HeaderName = HeaderName::from_static("array-shape");
const ARRAY_DATA_TYPE: HeaderName = HeaderName::from_static("array-data-type");
const ARRAY_DIMENSION_NAMES: HeaderName = HeaderName::from_static("array-dimension-names");
/// Longest header that says what the elements are. Names are as long as their document lets them be; clients and proxies
/// give up on heads of a few kilobytes.
const DESCRIPTION_BYTES: usize = 2 << 10;
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
const ZARRD_CACHE: HeaderName = HeaderName::from_static("zarrd-cache");

/// The formats elements are answered in; the first is the default.
pub(super) const OFFERS: &[Offer] = &[
    Offer { name: "bytes", media_type: "application/octet-stream" },
    Offer { name: "npy", media_type: "application/x-npy" },
    Offer { name: "json", media_type: "application/json" },
];

/// The format that an offer is.
fn format_of(offer: Offer) -> Format {
    match offer.name {
        "npy" => Format::Npy,
        "json" => Format::Json,
        _ => Format::Bytes,
    }
}

/// How elements are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rendering {
    /// One of [`OFFERS`].
    pub(super) offer: Offer,
    /// Byte order of `bytes` and `npy`.
    pub(super) endian: Endianness,
    /// How `json` writes what JSON has no number for.
    pub(super) nan: NanMode,
}

/// What is asked for: a subset of an array, rendered.
pub(super) struct Elements {
    pub(super) node: Arc<Opened>,
    pub(super) array: Arc<Array>,
    pub(super) subset: Subset,
    pub(super) rendering: Rendering,
    /// When the request was first looked at.
    pub(super) started: Instant,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum ElementsError {
    /// The elements cannot be had.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// They cannot be written in the format asked for.
    #[error(transparent)]
    Render(#[from] RenderError),
}

impl Classify for ElementsError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Array(error) => error.class(),
            Self::Render(error) => error.class(),
        }
    }
}

impl Elements {
    /// The answer to a GET or HEAD.
    pub(super) async fn answer(
        &self,
        state: &AppState,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Response, Problem> {
        let plan = Plan::new(&self.array, self.subset.clone(), state.read_limits()).map_err(too_large)?;
        let permit = state.admission().enter(self.memory_bytes(state, &plan)).await?;
        let mut tries = 1;
        let answer = loop {
            match self.attempt(state, method, headers, &plan).await {
                Err(ElementsError::Array(error)) if error.is_changed() && tries < TRIES => tries += 1,
                answer => break answer?,
            }
        };
        Ok(permit.hold(answer))
    }

    /// What the answer holds in memory while it is under way: the band that is sent and the one that is assembled
    /// meanwhile, or the whole text.
    fn memory_bytes(&self, state: &AppState, plan: &Plan) -> u64 {
        let data_type = &self.array.metadata().data_type;
        let whole = match format_of(self.rendering.offer) {
            Format::Json => json_bytes_estimate(data_type, &self.subset.shape()),
            Format::Bytes | Format::Npy if data_type.is_variable() => state.options().whole_bytes,
            Format::Bytes | Format::Npy => {
                return plan.response_bytes().min(plan.band_bytes().saturating_mul(2));
            }
        };
        // What is over the limit is refused as soon as it is begun.
        whole.min(state.options().whole_bytes)
    }

    async fn attempt(
        &self,
        state: &AppState,
        method: &Method,
        headers: &HeaderMap,
        plan: &Plan,
    ) -> Result<Response, ElementsError> {
        let snapshot = Snapshot::take(plan).await?;
        let planned = self.started.elapsed();
        let version = self.version(&snapshot);
        let mut answer = match Conditions::from_headers(headers).for_read(&version, None) {
            Verdict::Failed => return Ok(Problem::of_class(ErrorClass::PreconditionFailed).into_response()),
            Verdict::NotModified => StatusCode::NOT_MODIFIED.into_response(),
            Verdict::Proceed => {
                let trace = Arc::new(Trace::default());
                let limit = state.options().whole_bytes;
                let (shape, nan) = (self.subset.shape(), self.rendering.nan);
                let data_type = &self.array.metadata().data_type;
                let format = format_of(self.rendering.offer);
                let mut answer = match render::writer(format, data_type, &shape, nan, limit)? {
                    Some(writer) => self.whole(state, &snapshot, writer, &trace).await?,
                    None => self.binary(state, method, headers, &snapshot, &version, &trace).await?,
                };
                put_trace(answer.headers_mut(), planned, &trace);
                answer
            }
        };
        let info = ValueInfo { size: 0, version, modified: None };
        put_validators(answer.headers_mut(), &info);
        self.describe(answer.headers_mut());
        Ok(answer)
    }

    /// The version of an answer: of everything it is made of, and how.
    fn version(&self, snapshot: &Snapshot) -> Version {
        let mut hash = Sha256::new();
        let mut strong = true;
        let mut add = |part: &[u8]| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        add(RENDERING);
        add(format!("{:?} {:?}", self.rendering, self.subset).as_bytes());
        let chunks = snapshot.versions();
        for version in self.node.located.versions().chain(chunks.iter().map(|(_, version)| *version)) {
            strong &= version.is_none_or(Version::is_strong);
            add(version.map_or(b"", |version| version.tag().as_bytes()));
        }
        let tag = hex_tag(&hash.finalize());
        if strong { Version::strong(&tag) } else { Version::weak(&tag) }
    }

    /// `bytes` and `npy`: of known length, so that ranges of them can be had, and streamed.
    async fn binary(
        &self,
        state: &AppState,
        method: &Method,
        headers: &HeaderMap,
        snapshot: &Snapshot,
        version: &Version,
        trace: &Arc<Trace>,
    ) -> Result<Response, ArrayError> {
        let data_type = &self.array.metadata().data_type;
        let preamble = match self.rendering.offer.name {
            "npy" => Bytes::from(npy::header(data_type, &self.subset.shape(), self.rendering.endian)),
            _ => Bytes::new(),
        };
        let size = snapshot.plan().response_bytes() + preamble.len() as u64;
        // HEAD has no ranges (RFC 9110, section 14.2).
        let asked = if *method == Method::GET && range::if_range_holds(headers, version) {
            range::requested(headers)
        } else {
            ByteRange::Whole
        };
        let Some(wanted) = asked.resolve(size) else {
            let problem = Problem::range_not_satisfiable(size);
            return Ok(problem.into_response());
        };
        let mut answer = StatusCode::OK.into_response();
        if asked != ByteRange::Whole {
            *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
            answer.headers_mut().insert(header::CONTENT_RANGE, range::content_range(&wanted, size));
        }
        let length = wanted.end - wanted.start;
        if *method == Method::GET {
            let mut parts = self.parts(state, snapshot, &preamble, wanted, trace);
            let first = parts.try_next().await?.unwrap_or_default();
            *answer.body_mut() = exact_body(first, parts, length);
        }
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.rendering.offer.media_type));
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        Ok(answer)
    }

    /// These bytes of the preamble and the elements behind it.
    fn parts(
        &self,
        state: &AppState,
        snapshot: &Snapshot,
        preamble: &Bytes,
        wanted: Range<u64>,
        trace: &Arc<Trace>,
    ) -> BoxStream<'static, Result<Bytes, ArrayError>> {
        let before = preamble.len() as u64;
        let within = |at: u64| usize::try_from(at.min(before)).unwrap_or(preamble.len());
        let preamble = preamble.slice(within(wanted.start)..within(wanted.end));
        let elements = wanted.start.saturating_sub(before)..wanted.end.saturating_sub(before);
        let data_type = &self.array.metadata().data_type;
        let swap = self.rendering.endian == Endianness::Big && data_type.endian_unit_bytes() != Some(1);
        let elements = if swap {
            self.swapped(state, snapshot, elements, trace)
        } else {
            state.reader().elements(snapshot, elements, trace).map_ok(chunk::Elements::into_items).boxed()
        };
        if preamble.is_empty() {
            return elements;
        }
        // Together with the first elements: these are decoded before the head is sent, and one write is enough.
        let mut elements = elements;
        stream::once(async move {
            let mut first = BytesMut::from(preamble);
            if let Some(part) = elements.try_next().await? {
                first.extend_from_slice(&part);
            }
            Ok::<_, ArrayError>(stream::once(async move { Ok(first.freeze()) }).chain(elements))
        })
        .try_flatten()
        .boxed()
    }

    /// Elements in big-endian order. Ranges may begin and end within an element, whole elements are what is swapped.
    fn swapped(
        &self,
        state: &AppState,
        snapshot: &Snapshot,
        wanted: Range<u64>,
        trace: &Arc<Trace>,
    ) -> BoxStream<'static, Result<Bytes, ArrayError>> {
        let data_type = self.array.metadata().data_type.clone();
        let item_bytes = data_type.item_bytes() as u64;
        let whole = wanted.start / item_bytes * item_bytes..wanted.end.next_multiple_of(item_bytes);
        let cpu = state.cpu().clone();
        let mut at = whole.start;
        state
            .reader()
            .elements(snapshot, whole, trace)
            .and_then(move |part| {
                let (cpu, data_type, part) = (cpu.clone(), data_type.clone(), part.into_items());
                let start = at;
                at += part.len() as u64;
                let wanted = wanted.clone();
                async move {
                    let part = cpu
                        .run(move || {
                            let mut part = Vec::from(part);
                            to_big_endian(&data_type, &mut part);
                            Bytes::from(part)
                        })
                        .await?;
                    let within =
                        |place: u64| usize::try_from(place.saturating_sub(start)).unwrap_or(usize::MAX);
                    let length = part.len();
                    Ok(part.slice(within(wanted.start).min(length)..within(wanted.end).min(length)))
                }
            })
            .boxed()
    }

    /// What has a length that depends on the elements is written whole before the head.
    async fn whole(
        &self,
        state: &AppState,
        snapshot: &Snapshot,
        mut writer: Box<dyn Writer>,
        trace: &Arc<Trace>,
    ) -> Result<Response, ElementsError> {
        let limit = state.options().whole_bytes;
        let mut text = Vec::new();
        let mut elements = state.reader().elements(snapshot, 0..snapshot.plan().response_bytes(), trace);
        while let Some(part) = elements.try_next().await? {
            let written = state.cpu().run(move || writer.write(&part, &mut text).map(|()| (writer, text)));
            (writer, text) = written.await.map_err(ArrayError::from)??;
            let bytes = text.len() as u64;
            if bytes > limit {
                return Err(RenderError::TooLarge { bytes, limit }.into());
            }
        }
        writer.finish(&mut text)?;
        let mut answer = Body::from(text).into_response();
        let media_type = HeaderValue::from_static(self.rendering.offer.media_type);
        answer.headers_mut().insert(header::CONTENT_TYPE, media_type);
        Ok(answer)
    }

    /// What the elements are, in headers: but for what is too long for one.
    fn describe(&self, headers: &mut HeaderMap) {
        let metadata = self.array.metadata();
        let mut put = |name: HeaderName, text: &str| {
            let text = ascii(text);
            if let Ok(value) = HeaderValue::from_str(&text)
                && text.len() <= DESCRIPTION_BYTES
            {
                headers.insert(name, value);
            }
        };
        put(ARRAY_SHAPE, &format!("{:?}", self.subset.shape()));
        put(ARRAY_DATA_TYPE, &metadata.data_type.name());
        if let Some(names) = &metadata.dimension_names {
            let kept =
                names.iter().zip(self.subset.axes()).filter(|(_, axis)| axis.keep).map(|(name, _)| name);
            put(ARRAY_DIMENSION_NAMES, &serde_json::json!(kept.collect::<Vec<_>>()).to_string());
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::VARY, HeaderValue::from_static("accept"));
    }
}

/// A text in visible ASCII, which is all that a header can hold safely; the rest is escaped as in JSON.
fn ascii(original: &str) -> String {
    let mut text = String::new();
    for unit in original.chars() {
        if unit.is_ascii() && !unit.is_ascii_control() {
            text.push(unit);
        } else {
            let mut pair = [0; 2];
            for half in unit.encode_utf16(&mut pair) {
                // Writing to a `String` cannot fail.
                let _ = write!(text, "\\u{half:04x}");
            }
        }
    }
    text
}

/// What the request cost so far: at the moment the head is sent.
fn put_trace(headers: &mut HeaderMap, planned: Duration, trace: &Trace) {
    let (fetch, decode) = trace.fetch_and_decode();
    let [plan, fetch, decode] = [planned, fetch, decode].map(|time| time.as_secs_f64() * 1000.0);
    let timing = format!("plan;dur={plan:.3}, fetch;dur={fetch:.3}, decode;dur={decode:.3}");
    if let Ok(timing) = HeaderValue::from_str(&timing) {
        headers.insert(SERVER_TIMING, timing);
    }
    let cache = match trace.hits_and_misses() {
        // Nothing was asked of a cache: HEAD, or fill values alone.
        (0, 0) => return,
        (_, 0) => "hit",
        (0, _) => "miss",
        _ => "partial",
    };
    headers.insert(ZARRD_CACHE, HeaderValue::from_static(cache));
}

/// A limit that is broken says what was asked, what is allowed, and what would fit.
fn too_large(error: ArrayError) -> Problem {
    let extensions = match &error {
        ArrayError::TooLarge { what, asked, limit, suggested_slices } => {
            // Beyond 2^64 the exact number tells nobody more.
            let asked = u64::try_from(*asked).unwrap_or(u64::MAX);
            Some((*what, asked, *limit, suggested_slices.clone()))
        }
        _ => None,
    };
    let problem = Problem::from(error);
    match extensions {
        Some((what, asked, limit, suggested_slices)) => problem
            .extension("limited", what)
            .extension("asked", asked)
            .extension("limit", limit)
            .extension("suggested_slices", suggested_slices),
        None => problem,
    }
}

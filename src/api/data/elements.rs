//! Answering with decoded elements: plan → version → conditions → first band → head → the rest.
//!
//! The length of the answer is known from metadata and its entity tag from the versions of the chunks it touches, so a
//! 304, a 412, a 413 and a 416 read no chunk. Where there is neither a condition nor a range and one band is all there is,
//! versions and elements are read together, which asks the store once for a chunk and not twice. The first elements are
//! decoded before the head is sent: what cannot be decoded is told by a status. A failure after that breaks the body off
//! visibly.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};

use super::error::ElementsError;
use super::too_large::Broken;
use crate::admission::AdmissionRequest;
use crate::array::{
    Array, ArrayError, ChunkVersions, Dependencies, OpenNode, Plan, ReadContext, Snapshot, Suggestions,
};
use crate::chunk::{AxisRange, Subset};
use crate::error::ErrorClass;
use crate::http::array_headers::put_contents;
use crate::http::body::content_length_body;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::negotiate::Offer;
use crate::http::problem::Problem;
use crate::http::timing::put_trace;
use crate::http::validators::{hex_tag, put_validators};
use crate::http::{download, range};
use crate::metadata::Endianness;
use crate::render::{Conversion, Format, FormatOptions, Heading, RenderError, ResultSchema, Writer, npy};
use crate::services::extract::NodeTarget;
use crate::services::response_cache::{CachedResponse, MAX_CACHED_RESPONSE_BYTES};
use crate::services::state::AppState;
use crate::store::{ByteRange, ValueInfo, Version};
use crate::{chunk, render};

/// How often an answer whose chunks change while it is begun is begun again.
const TRIES: usize = 3;
/// Finding, opening and checking a chunk takes about as long as decoding so many bytes.
const CHUNK_WORK_BYTES: u64 = 16 << 10;
/// An answer is kept the first time if this many bytes, or as much other work, went into each byte of memory it takes.
const COSTLY: u64 = 16;
/// Part of every entity tag: changed whenever the same elements would be rendered otherwise.
const RENDERING: &[u8] = b"zarrd elements 2";

/// The formats elements are answered in; the first is the default.
pub(crate) const OFFERS: &[Offer] = &{
    let mut offers = [Offer { name: "", media_type: "" }; Format::ALL.len()];
    let mut at = 0;
    while at < offers.len() {
        let format = Format::ALL[at];
        offers[at] = Offer { name: format.name(), media_type: format.media_type() };
        at += 1;
    }
    offers
};

/// The format that an offer names.
pub(crate) fn format_from_offer(offer: Offer) -> Format {
    // Every offer is one of `Format::ALL`, whose first is the default.
    Format::from_name(offer.name).unwrap_or(Format::ALL[0])
}

/// How elements are written.
#[derive(Clone, Debug)]
pub(crate) struct Rendering {
    /// One of [`OFFERS`].
    pub(crate) offer: Offer,
    pub(crate) style: FormatOptions,
    /// The names of the fields that are asked for; `None` for whole elements.
    pub(crate) fields: Option<String>,
    /// Whether the first line of CSV says what the columns are.
    pub(crate) header: bool,
}

impl Rendering {
    /// The type of an answer, with what it says of its first line (RFC 4180, section 3).
    fn media_type(&self) -> HeaderValue {
        HeaderValue::from_static(match (self.style.format, self.header) {
            (Format::Csv, true) => "text/csv; charset=utf-8; header=present",
            (Format::Csv, false) => "text/csv; charset=utf-8; header=absent",
            _ => self.offer.media_type,
        })
    }
}

/// What is asked for: a subset of an array, rendered.
pub(crate) struct ElementsRequest {
    node: Arc<OpenNode>,
    array: Arc<Array>,
    subset: Subset,
    rendering: Rendering,
    conversion: Arc<Conversion>,
    /// What the answer has in it.
    contents: ResultSchema,
    /// When the request was first looked at.
    started: Instant,
}

/// An answer.
struct ElementsResponse {
    answer: Response,
    /// `None` if it is not worth keeping.
    again: Option<Cacheable>,
}

/// What it takes to give an answer again.
struct Cacheable {
    chunks: ChunkVersions,
    version: Version,
    body: Bytes,
}

impl ElementsRequest {
    /// A subset of an array, in the form that is asked for. `started` is when the request was first looked at.
    ///
    /// # Errors
    /// [`RenderError`] if fields are asked for that elements have not.
    pub(crate) fn new(
        node: Arc<OpenNode>,
        subset: Subset,
        rendering: Rendering,
        started: Instant,
    ) -> Result<Self, Problem> {
        let array = Arc::clone(node.array()?);
        let metadata = array.metadata();
        let endian = match rendering.style.format {
            Format::Bytes | Format::Npy => rendering.style.endian,
            Format::Json | Format::Csv | Format::Arrow => Endianness::Little,
        };
        let conversion = match &rendering.fields {
            None => Conversion::whole(&metadata.data_type, endian),
            Some(names) => Conversion::fields(&metadata.data_type, names, endian)?,
        };
        let contents = contents_of(&array, &subset, &rendering, &conversion);
        let conversion = Arc::new(conversion);
        Ok(Self { node, array, subset, rendering, conversion, contents, started })
    }

    /// The answer to a GET or HEAD. It may be kept.
    pub(crate) async fn respond(
        self,
        state: &AppState,
        target: &NodeTarget,
        head: &Parts,
    ) -> Result<Response, Problem> {
        let plan = Plan::new(&self.array, self.subset.clone(), state.read_limits());
        let plan = plan.map_err(|error| self.check_cost(state, error.into()))?;
        // What has variable length is written whole, and is at least as long as its bytes.
        let plan = plan.with_heap_limit(state.options().max_buffered_response_size);
        let permit = state
            .admission()
            .acquire(AdmissionRequest::to_elements(head), self.memory_bytes(state, &plan))
            .await?;
        let mut tries = 1;
        let ElementsResponse { mut answer, again } = loop {
            match self.attempt(state, &head.method, &head.headers, &plan).await {
                Err(ElementsError::Array(error)) if error.is_changed() && tries < TRIES => tries += 1,
                answered => break answered.map_err(|error| self.check_cost(state, error))?,
            }
        };
        answer.headers_mut().insert(header::CACHE_CONTROL, target.mount.cache_control.of_decoded());
        if answer.status().is_success() {
            let name = download::name_of(&target.mount.name, self.array.path(), &target.path);
            download::put(answer.headers_mut(), &name, download::extension(self.rendering.offer));
        }
        // What is said of a dependent is said of other arrays too.
        if let Some(Cacheable { chunks, version, body }) = again
            && self.node.dependent.is_none()
            && state.answers().fits(chunks.bytes() + body.len() as u64)
        {
            let (opener, path) = (target.opener.clone(), self.array.path().clone());
            let made_of = Dependencies::new(opener, path, &self.node, chunks);
            CachedResponse::store(state.answers(), head, made_of, version, answer.headers(), body).await;
        }
        Ok(permit.hold(answer))
    }

    /// The problem that an error is; of a limit, with slices that are within it.
    fn check_cost(&self, state: &AppState, error: ElementsError) -> Problem {
        let Some(broken) = Broken::of(state, &error) else { return error.into() };
        // What the format has no form for, it has in no part either.
        if let Err(formless) = render::writer(self.rendering.style, &self.contents, u64::MAX) {
            return formless.into();
        }
        let (limits, whole_bytes) = (state.read_limits(), state.options().max_buffered_response_size);
        let fits = |subset: &Subset| {
            let contents = contents_of(&self.array, subset, &self.rendering, &self.conversion);
            !matches!(
                render::writer(self.rendering.style, &contents, whole_bytes),
                Err(RenderError::TooLarge { .. })
            )
        };
        let is_planned = Plan::new(&self.array, self.subset.clone(), limits).is_ok();
        let suggestions = if is_planned && fits(&self.subset) {
            // The elements are longer than their type tells, and so may be those of any slice.
            Suggestions::default()
        } else {
            Suggestions::new(&self.array, &self.subset, limits, fits)
        };
        broken.problem(error, suggestions)
    }

    /// What the answer holds in memory while it is under way: the band that is sent and the one that is assembled
    /// meanwhile, or the whole text.
    fn memory_bytes(&self, state: &AppState, plan: &Plan) -> u64 {
        match self.contents.max_output_bytes(self.rendering.style.format) {
            // What is over the limit is refused as soon as it is begun.
            Some(whole) => whole.min(state.options().max_buffered_response_size),
            None => plan.response_bytes().min(plan.segment_bytes().saturating_mul(2)),
        }
    }

    async fn attempt(
        &self,
        state: &AppState,
        method: &Method,
        headers: &HeaderMap,
        plan: &Plan,
    ) -> Result<ElementsResponse, ElementsError> {
        let limit = state.options().max_buffered_response_size;
        let trace = state.reader().read_context(self.array.mount());
        // What has to be read in any case is read at once. Whatever may need no element looks first.
        let (snapshot, planned) = if *method == Method::GET && !is_partial_or_conditional(headers) {
            render::writer(self.rendering.style, &self.contents, limit)?;
            let planned = self.started.elapsed();
            (state.reader().snapshot(plan, &trace).await?, planned)
        } else {
            (state.reader().lookup_versions(plan, &trace).await?, self.started.elapsed())
        };
        trace.set_plan_time(planned);
        let version = self.version(&snapshot);
        let chunks = snapshot.chunk_versions();
        let mut whole = None;
        let mut answer = match Conditions::from_headers(headers).for_read(&version, None) {
            Verdict::Failed => {
                let answer = Problem::from_class(ErrorClass::PreconditionFailed).into_response();
                return Ok(ElementsResponse { answer, again: None });
            }
            Verdict::NotModified => StatusCode::NOT_MODIFIED.into_response(),
            Verdict::Proceed => {
                let (mut answer, body) = match render::writer(self.rendering.style, &self.contents, limit)? {
                    Some(writer) => self.buffered(state, method, snapshot, writer, &trace).await?,
                    None => self.streamed(state, method, headers, snapshot, &version, &trace).await?,
                };
                put_trace(answer.headers_mut(), &trace);
                whole = body;
                answer
            }
        };
        let info = ValueInfo { size: 0, version, modified: None };
        put_validators(answer.headers_mut(), &info);
        put_contents(answer.headers_mut(), &self.contents);
        // What was in memory already is what is asked for again and again.
        let is_hit = matches!(trace.hits_and_misses(), (1.., 0));
        let again = whole
            .filter(|body| body.len() <= MAX_CACHED_RESPONSE_BYTES)
            .zip(chunks)
            .filter(|(body, chunks)| is_hit || is_costly(plan, body.len() as u64 + chunks.bytes()))
            .map(|(body, chunks)| Cacheable { chunks, version: info.version, body });
        Ok(ElementsResponse { answer, again })
    }

    /// The version of an answer: of everything it is made of, and how.
    fn version(&self, snapshot: &Snapshot) -> Version {
        let mut strong = true;
        let mut text = Vec::with_capacity(1 << 10);
        // Tags are visible ASCII, and what is said of the rendering escapes what is not: no part has a zero in it.
        let mut add = |part: &[u8]| {
            text.extend_from_slice(part);
            text.push(0);
        };
        add(RENDERING);
        add(format!("{:?} {:?}", self.rendering, self.subset).as_bytes());
        for version in self.node.located.versions().chain(snapshot.versions()) {
            strong &= version.is_none_or(Version::is_strong);
            add(version.map_or(b"", |version| version.tag().as_bytes()));
        }
        let tag = hex_tag(&Sha256::digest(&text));
        if strong { Version::strong(&tag) } else { Version::weak(&tag) }
    }

    /// `bytes` and `npy`: of known length, so that ranges of them can be had, and streamed.
    async fn streamed(
        &self,
        state: &AppState,
        method: &Method,
        headers: &HeaderMap,
        snapshot: Snapshot,
        version: &Version,
        trace: &Arc<ReadContext>,
    ) -> Result<(Response, Option<Bytes>), ArrayError> {
        let ResultSchema { data_type, shape, .. } = &self.contents;
        let preamble = match self.rendering.style.format {
            Format::Npy => Bytes::from(npy::header(data_type, shape, self.rendering.style.endian)),
            _ => Bytes::new(),
        };
        let elements = self.conversion.converted_bytes(snapshot.plan().response_bytes());
        let size = elements.saturating_add(preamble.len() as u64);
        // HEAD has no ranges (RFC 9110, section 14.2).
        let asked = if *method == Method::GET && range::if_range_holds(headers, version) {
            range::requested(headers)
        } else {
            ByteRange::Whole
        };
        let Some(wanted) = asked.resolve(size) else {
            return Ok((range::not_satisfiable(size).into_response(), None));
        };
        let mut answer = StatusCode::OK.into_response();
        if asked != ByteRange::Whole {
            *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
            answer.headers_mut().insert(header::CONTENT_RANGE, range::content_range(&wanted, size));
        }
        let length = wanted.end - wanted.start;
        let mut whole = None;
        if *method == Method::GET {
            let mut parts = self.parts(state, snapshot, &preamble, wanted, trace);
            let first = parts.try_next().await?.unwrap_or_default();
            whole = (first.len() as u64 == size).then(|| first.clone());
            *answer.body_mut() = content_length_body(first, parts, length);
        }
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        headers.insert(header::CONTENT_TYPE, self.rendering.media_type());
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        Ok((answer, whole))
    }

    /// These bytes of the preamble and the elements behind it.
    fn parts(
        &self,
        state: &AppState,
        snapshot: Snapshot,
        preamble: &Bytes,
        wanted: Range<u64>,
        trace: &Arc<ReadContext>,
    ) -> BoxStream<'static, Result<Bytes, ArrayError>> {
        let before = preamble.len() as u64;
        let within = |at: u64| usize::try_from(at.min(before)).unwrap_or(preamble.len());
        let preamble = preamble.slice(within(wanted.start)..within(wanted.end));
        let elements = wanted.start.saturating_sub(before)..wanted.end.saturating_sub(before);
        let elements = if self.conversion.is_identity() {
            state.reader().elements(snapshot, elements, trace).map_ok(chunk::Elements::into_items).boxed()
        } else {
            self.converted(state, snapshot, elements, trace)
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

    /// These bytes of converted elements. Ranges may begin and end within an element, whole elements are what is
    /// converted.
    fn converted(
        &self,
        state: &AppState,
        snapshot: Snapshot,
        wanted: Range<u64>,
        trace: &Arc<ReadContext>,
    ) -> BoxStream<'static, Result<Bytes, ArrayError>> {
        let source = self.conversion.source_range(&wanted);
        let mut at = self.conversion.converted_bytes(source.start);
        let (cpu, conversion) = (state.cpu().clone(), Arc::clone(&self.conversion));
        let timed = Arc::clone(trace);
        state
            .reader()
            .elements(snapshot, source, trace)
            .and_then(move |part| {
                let (cpu, conversion, part) = (cpu.clone(), Arc::clone(&conversion), part.into_items());
                let trace = Arc::clone(&timed);
                let start = at;
                at += conversion.converted_bytes(part.len() as u64);
                let wanted = wanted.clone();
                async move {
                    let begun = Instant::now();
                    let part = cpu.run(move || conversion.convert(part)).await?;
                    trace.add_encode_time(begun);
                    let within =
                        |place: u64| usize::try_from(place.saturating_sub(start)).unwrap_or(usize::MAX);
                    let length = part.len();
                    Ok(part.slice(within(wanted.start).min(length)..within(wanted.end).min(length)))
                }
            })
            .boxed()
    }

    /// What has a length that depends on the elements is written whole before the head, for HEAD too.
    async fn buffered(
        &self,
        state: &AppState,
        method: &Method,
        snapshot: Snapshot,
        mut writer: Box<dyn Writer>,
        trace: &Arc<ReadContext>,
    ) -> Result<(Response, Option<Bytes>), ElementsError> {
        let limit = state.options().max_buffered_response_size;
        let mut text = Vec::new();
        let bytes = snapshot.plan().response_bytes();
        let mut elements = state.reader().elements(snapshot, 0..bytes, trace);
        while let Some(part) = elements.try_next().await? {
            let (conversion, begun) = (Arc::clone(&self.conversion), Instant::now());
            let written = state.cpu().run(move || {
                let part = part.map_items(|items| Ok::<_, RenderError>(conversion.convert(items)))?;
                writer.write(&part, &mut text).map(|()| (writer, text))
            });
            (writer, text) = written.await.map_err(ArrayError::from)??;
            trace.add_encode_time(begun);
            check_length(&text, limit)?;
        }
        let begun = Instant::now();
        let finished = state.cpu().run(move || {
            writer.finish(&mut text)?;
            // What it has grown by ahead of its length would be held, too, until the client has all of it.
            text.shrink_to_fit();
            Ok::<_, RenderError>(text)
        });
        let text = finished.await.map_err(ArrayError::from)??;
        trace.add_encode_time(begun);
        check_length(&text, limit)?;
        let length = HeaderValue::from(text.len());
        let whole = (*method == Method::GET).then(|| Bytes::from(text));
        let mut answer = whole.clone().map_or_else(Body::empty, Body::from).into_response();
        answer.headers_mut().insert(header::CONTENT_LENGTH, length);
        answer.headers_mut().insert(header::CONTENT_TYPE, self.rendering.media_type());
        Ok((answer, whole))
    }
}

/// Whether a request may be answered without its elements, or with some of them.
fn is_partial_or_conditional(headers: &HeaderMap) -> bool {
    let names = [
        header::RANGE,
        header::IF_MATCH,
        header::IF_NONE_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_UNMODIFIED_SINCE,
    ];
    names.iter().any(|name| headers.contains_key(name))
}

/// Whether to make an answer again takes far more work than to keep it takes memory.
fn is_costly(plan: &Plan, kept_bytes: u64) -> bool {
    let work = plan.decoded_bytes().saturating_add(plan.chunks().saturating_mul(CHUNK_WORK_BYTES));
    work / COSTLY >= kept_bytes
}

/// Refuses an answer that has grown longer than the limit.
fn check_length(text: &[u8], limit: u64) -> Result<(), RenderError> {
    let bytes = text.len() as u64;
    if bytes > limit { Err(RenderError::TooLarge { bytes, limit }) } else { Ok(()) }
}

/// What an answer with a subset of an array has in it.
fn contents_of(
    array: &Array,
    subset: &Subset,
    rendering: &Rendering,
    conversion: &Conversion,
) -> ResultSchema {
    let inner = conversion.inner_shape();
    let kept = || subset.axes().iter().filter(|axis| axis.keep);
    let dimension_names = array.metadata().dimension_names.as_ref().map(|names| {
        let kept = names.iter().zip(subset.axes()).filter(|(_, axis)| axis.keep);
        kept.map(|(name, _)| name.clone()).chain(inner.iter().map(|_| None)).collect()
    });
    let heading = (rendering.header && rendering.style.format == Format::Csv).then(|| {
        let name = rendering.fields.as_deref().unwrap_or_else(|| array.path().name());
        let name = if name.is_empty() { array.mount() } else { name }.to_owned();
        let whole = |length: &u64| AxisRange::full(*length);
        let columns = inner.last().map(whole).or_else(|| kept().next_back().copied());
        Heading { name, columns: columns.unwrap_or(AxisRange::full(1)) }
    });
    let shape = [&subset.shape(), inner].concat();
    ResultSchema { data_type: conversion.data_type().clone(), shape, dimension_names, heading }
}

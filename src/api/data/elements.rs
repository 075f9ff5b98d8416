//! Responses with decoded elements: plan → version → conditions → first band → head → the rest.
//!
//! The length of a response follows from the metadata, and its entity tag from the versions of the chunks it reads. A 304,
//! a 412, a 413 and a 416 therefore read no chunk. A request without condition and range whose elements fit into one band
//! reads versions and elements together, with one store request per chunk instead of two. The first elements are decoded
//! before the head is sent, so that a decoding failure has a status. A later failure aborts the body visibly.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use http_body::Body as _;
use serde_json::Value;

use super::buffered::BufferedElements;
use super::cacheable::{Cacheable, Worth};
use super::elements_reduction::ElementsReduction;
use super::error::ElementsError;
use super::gathered_plan::GatheredPlan;
use super::rendering::{Rendering, contents_of};
use super::repeated::{is_partial_or_conditional, is_repeated};
use super::slice_version::SliceVersion;
use super::too_large::Broken;
use crate::admission::text_memory::TextMemory;
use crate::admission::{AdmissionRequest, BufferedBytes, Permit};
use crate::api::label_params::LabelPositions;
use crate::array::{
    Array, ArrayError, Dependencies, OpenNode, Plan, ReadContext, ReadLimits, Snapshot, Suggestions,
};
use crate::chunk::Subset;
use crate::error::ErrorClass;
use crate::http::array_headers::{put_contents, put_time_units};
use crate::http::body::content_length_body;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::problem::Problem;
use crate::http::timing::put_trace;
use crate::http::validators::put_validators;
use crate::http::{download, range};
use crate::labels::CfTimes;
use crate::metadata::{DataType, Endianness};
use crate::render::{CfDecoding, Conversion, FormatOptions, RenderError, ResultSchema, Writer};
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::store::{ByteRange, ValueInfo, Version};
use crate::{chunk, render};

/// Maximum number of attempts for a response whose chunks change while it starts.
const TRIES: usize = 3;
/// Elements of more bytes are sent behind their preamble, and not copied to it. No longer response is cached.
const JOINED_BYTES: usize = 8 << 20;

/// A request for a subset of an array in a format.
pub(crate) struct ElementsRequest {
    node: Arc<OpenNode>,
    array: Arc<Array>,
    subset: Subset,
    reduction: Option<ElementsReduction>,
    rendering: Rendering,
    conversion: Arc<Conversion>,
    /// The data type and the shape of the response.
    contents: ResultSchema,
    /// What labels were resolved to, if elements are selected by label.
    positions: Option<Box<LabelPositions>>,
    /// The plan for elements at lists of positions. The subset then stands for their number alone.
    gathered: Option<Box<GatheredPlan>>,
    /// Whether it was requested as a chunk.
    is_chunk: bool,
    /// When processing of the request started.
    started: Instant,
}

/// A response and what is needed to cache it.
struct ElementsResponse {
    answer: Response,
    /// `None` if the response is not worth caching.
    again: Option<Cacheable>,
}

impl ElementsRequest {
    /// A request for a subset of an array in a format. `started` is when processing of the request started.
    ///
    /// # Errors
    /// [`RenderError`] if the data type lacks a requested field.
    pub(crate) fn new(
        node: Arc<OpenNode>,
        subset: Subset,
        reduction: Option<ElementsReduction>,
        rendering: Rendering,
        started: Instant,
    ) -> Result<Self, Problem> {
        let array = Arc::clone(node.array()?);
        let metadata = array.metadata();
        let FormatOptions { format, endian, .. } = rendering.style;
        let endian = if format.has_byte_order() { endian } else { Endianness::Little };
        let stored = &metadata.data_type;
        let data_type =
            reduction.as_ref().map_or_else(|| stored.clone(), |reduction| reduction.data_type(stored));
        let convert = |endian| match &rendering.fields {
            None if rendering.decodes && reduction.is_none() => {
                let decoding = CfDecoding::new(metadata, format.is_text())?;
                Ok(Conversion::decoded(stored, decoding, endian))
            }
            None => Ok(Conversion::whole(&data_type, endian)),
            Some(names) => Ok::<_, Problem>(Conversion::fields(&data_type, names, endian)?),
        };
        let conversion = match &rendering.dtype {
            None => convert(endian)?,
            Some(dtype) => {
                let conversion = convert(Endianness::Little)?;
                match dtype.target(conversion.data_type()) {
                    None => convert(endian)?,
                    Some(target) => conversion.cast_to(&target, endian)?,
                }
            }
        };
        let firsts = reduction.as_ref().map(|reduction| reduction.firsts(&subset));
        let contents = contents_of(&array, firsts.as_ref().unwrap_or(&subset), &rendering, &conversion);
        let conversion = Arc::new(conversion);
        let (positions, gathered) = (None, None);
        Ok(Self {
            node,
            array,
            subset,
            reduction,
            rendering,
            conversion,
            contents,
            positions,
            gathered,
            is_chunk: false,
            started,
        })
    }

    /// The same request, which names a chunk in place of a slice.
    pub(crate) fn of_chunk(self) -> Self {
        Self { is_chunk: true, ..self }
    }

    /// The same request, whose subset was selected by label.
    pub(crate) fn with_positions(self, positions: Option<LabelPositions>) -> Self {
        // Boxed, as what follows is: the rare part of a request would enlarge the future of every one.
        Self { positions: positions.map(Box::new), ..self }
    }

    /// The same request for elements at lists of positions.
    pub(crate) fn with_gathered(self, gathered: GatheredPlan) -> Self {
        let mut contents = self.contents;
        if let Some(names) = &gathered.dimension_names {
            let inner = self.conversion.inner_shape().iter().map(|_| None);
            contents.dimension_names = Some(names.iter().cloned().chain(inner).collect());
        }
        // Those of the inner dimensions of an element are as they were.
        if let Some(heading) = &mut contents.heading
            && self.conversion.inner_shape().is_empty()
            && let Some(columns) = &gathered.columns
        {
            heading.columns = columns.clone();
        }
        Self { gathered: Some(Box::new(gathered)), contents, ..self }
    }

    /// The response to a GET or HEAD. It may enter the response cache.
    pub(crate) async fn respond(
        self,
        state: &AppState,
        target: &NodeTarget,
        head: &Parts,
    ) -> Result<Response, Problem> {
        let plan = match &self.gathered {
            Some(gathered) => Ok(gathered.plan.clone()),
            None => self.plan(&self.subset, &state.engine.read),
        };
        let plan = plan.map_err(|error| self.check_cost(state, error.into()))?;
        // What has variable length is written whole, and is at least as long as its bytes.
        let left = state.engine.read.max_response_size.saturating_sub(plan.response_bytes());
        let most = state.options.max_buffered_response_size;
        let plan = plan.with_heap_limit(most.min(left));
        let is_repeated = is_repeated(state, head, &plan);
        let bytes = self.memory_bytes(&plan, is_repeated, most);
        let (permit, answered) =
            match state.traffic.admission.try_acquire(AdmissionRequest::to_elements(head), bytes) {
                Some(permit) => (permit, self.attempts(state, head, &plan, is_repeated, most).await),
                // Boxed, as few requests wait and the future of every request would be as large.
                None => Box::pin(self.wait(state, head, &plan, is_repeated)).await?,
            };
        let ElementsResponse { mut answer, again } =
            answered.map_err(|error| self.check_cost(state, error))?;
        answer.headers_mut().insert(header::CACHE_CONTROL, target.mount.cache_control.of_decoded());
        if head.method == Method::GET && answer.status() == StatusCode::OK && !plan.is_gathered() {
            let is_near = target.mount.store.capabilities().near;
            let parts = (&*state.engine, &state.traffic.admission);
            state.scans.observe(parts, is_near, &plan, AdmissionRequest::to_elements(head));
        }
        if answer.status().is_success() {
            let name = download::name_of(&target.mount.name, self.array.path(), &target.path);
            download::put(answer.headers_mut(), &name, self.rendering.style.format.extension);
        }
        // The metadata of a dependent array also comes from other arrays, so its responses are not cached.
        if let Some(Cacheable { chunks, contents }) = again
            && self.node.dependent.is_none()
            && self.reduction.as_ref().is_none_or(ElementsReduction::is_cacheable)
            && self.positions.as_ref().is_none_or(|positions| positions.used.is_cacheable())
            && let Some(length) = answer.body().size_hint().exact()
            && state.responses.fits(length, chunks.bytes())
        {
            let (opener, path) = (target.opener.clone(), self.array.path().clone());
            let made_of = Dependencies::new(opener, path, &self.node, chunks);
            let made_of = match &self.reduction {
                None => made_of,
                Some(reduction) => reduction.with_dependencies(made_of),
            };
            let made_of = match &self.positions {
                None => made_of,
                Some(positions) => positions.used.with_dependencies(made_of),
            };
            answer = contents.cache(&state.responses, head, made_of, answer).await;
        }
        Ok(permit.hold(answer))
    }

    /// Waits for memory, and makes the response with as much as there is.
    ///
    /// # Errors
    /// As [`TextMemory::acquire`].
    async fn wait(
        &self,
        state: &AppState,
        head: &Parts,
        plan: &Plan,
        is_repeated: bool,
    ) -> Result<(Permit, Result<ElementsResponse, ElementsError>), Problem> {
        let (admission, entrant) = (&state.traffic.admission, AdmissionRequest::to_elements(head));
        let most = state.options.max_buffered_response_size;
        let memory_bytes = |limit| self.memory_bytes(plan, is_repeated, limit);
        let mut memory = TextMemory::acquire(admission, entrant, most, memory_bytes).await?;
        loop {
            let limit = memory.limit();
            let plan = plan.clone().with_heap_limit(limit);
            match self.attempts(state, head, &plan, is_repeated, limit).await {
                Err(error) if memory.can_extend(error.exceeded_limit()) => memory.extend().await?,
                answered => return Ok((memory.into_permit(), answered)),
            }
        }
    }

    /// Makes the response again if chunks change while it starts.
    async fn attempts(
        &self,
        state: &AppState,
        head: &Parts,
        plan: &Plan,
        is_repeated: bool,
        limit: u64,
    ) -> Result<ElementsResponse, ElementsError> {
        let mut tries = 1;
        loop {
            match self.attempt(state, &head.method, &head.headers, plan, is_repeated, limit).await {
                Err(ElementsError::Array(error)) if error.is_changed() && tries < TRIES => tries += 1,
                answered => return answered,
            }
        }
    }

    /// A plan for a part of the array, reduced as requested.
    fn plan(&self, subset: &Subset, limits: &ReadLimits) -> Result<Plan, ArrayError> {
        match &self.reduction {
            None => Plan::new(&self.array, subset.clone(), limits),
            Some(reduction) => reduction.plan(&self.array, subset, limits),
        }
    }

    /// The problem for an error. For an exceeded limit it suggests slices within the limit.
    fn check_cost(&self, state: &AppState, error: ElementsError) -> Problem {
        let Some(broken) = Broken::of(&state.engine.read, state.options.max_buffered_response_size, &error)
        else {
            return error.into();
        };
        // If the format cannot represent the elements at all, no slice helps.
        if let Err(formless) = render::writer(self.rendering.style, &self.contents, u64::MAX) {
            return formless.into();
        }
        let (limits, whole_bytes) = (&state.engine.read, state.options.max_buffered_response_size);
        let fits = |subset: &Subset| {
            let firsts = self.reduction.as_ref().map(|reduction| reduction.firsts(subset));
            let subset_of_result = firsts.as_ref().unwrap_or(subset);
            let contents = contents_of(&self.array, subset_of_result, &self.rendering, &self.conversion);
            let is_written = !matches!(
                render::writer(self.rendering.style, &contents, whole_bytes),
                Err(RenderError::TooLarge { .. })
            );
            is_written && self.plan(subset, limits).is_ok()
        };
        let suggestions = if self.gathered.is_some() || fits(&self.subset) {
            // Elements of variable length are longer than estimated, and those of any slice may be as well.
            Suggestions::default()
        } else if let Some(reduction) = &self.reduction {
            // What is read may be larger than a response.
            let limits = ReadLimits { max_response_size: u64::MAX, ..*limits };
            let units = reduction.units(&self.subset);
            let windows = Suggestions::along(&self.array, &self.subset, &limits, &units, fits);
            if windows.slices.is_empty() {
                // One window is too large: parts of it.
                let elements: Vec<Option<u64>> = units.into_iter().map(|unit| unit.map(|_| 1)).collect();
                Suggestions::along(&self.array, &self.subset, &limits, &elements, fits)
            } else {
                windows
            }
        } else {
            Suggestions::new(&self.array, &self.subset, limits, fits)
        };
        let broken = if self.is_chunk { broken.of_chunk() } else { broken };
        broken.problem(error, suggestions)
    }

    /// The memory in bytes of a response in flight: the band that is sent and the next one, or the whole text and what it is made of,
    /// or all of what is collected to be cached. Elements that are reduced come on top. `limit` is the most bytes of a text.
    fn memory_bytes(&self, plan: &Plan, is_collected: bool, limit: u64) -> u64 {
        let (format, all) = (self.rendering.style.format, plan.response_bytes());
        let bands = all.min(plan.segment_bytes().saturating_mul(2));
        let (response, elements) = match self.contents.max_output_bytes(format) {
            // What is over the limit is refused as soon as it is begun.
            Some(whole) => {
                let bands_of_texts = if bands > plan.segment_bytes() { 2 } else { 1 };
                let is_variable = self.array.metadata().data_type.is_variable();
                let texts =
                    if is_variable { plan.heap_limit().min(limit).saturating_mul(bands_of_texts) } else { 0 };
                let converted = BufferedElements::converted_bytes(format, bands);
                (whole.min(limit).saturating_add(bands).saturating_add(texts), converted)
            }
            None if is_collected => (all, all),
            None => (bands, bands),
        };
        // What was decoded is held beside what it was decoded from.
        let decoded = if self.conversion.is_copy() { self.conversion.converted_bytes(elements) } else { 0 };
        response.saturating_add(decoded).saturating_add(plan.reduced_source_bytes())
    }

    async fn attempt(
        &self,
        state: &AppState,
        method: &Method,
        headers: &HeaderMap,
        plan: &Plan,
        is_repeated: bool,
        limit: u64,
    ) -> Result<ElementsResponse, ElementsError> {
        let trace = state.engine.reader.read_context(self.array.mount());
        // A request that needs its elements in any case reads versions and elements together. A conditional or partial
        // request, or a HEAD, first reads the versions only.
        let (snapshot, planned) = if *method != Method::HEAD && !is_partial_or_conditional(headers) {
            render::writer(self.rendering.style, &self.contents, limit)?;
            let planned = self.started.elapsed();
            (state.engine.reader.snapshot(plan, &trace).await?, planned)
        } else {
            (state.engine.reader.lookup_versions(plan, &trace).await?, self.started.elapsed())
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
                    // Boxed, as the future of every request would be as large.
                    Some(writer) => {
                        Box::pin(self.buffered(state, method, snapshot, writer, &trace, limit)).await?
                    }
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
        if let Some(reduction) = &self.reduction {
            reduction.put_headers(answer.headers_mut(), &self.subset);
        }
        let metadata = self.array.metadata();
        // Numbers that are left as they are need their units.
        if self.rendering.decodes
            && DataType::NUMPY_REALS.contains(&self.contents.data_type)
            && let Some(times) = CfTimes::of_attributes(&metadata.attributes)
            && let Some(units) = metadata.attributes.get("units").as_ref().and_then(Value::as_str)
        {
            put_time_units(answer.headers_mut(), units, times.calendar().name());
        }
        if let Some(positions) = &self.positions {
            positions.put_headers(answer.headers_mut());
        }
        let is_hit = matches!(trace.hits_and_misses(), (1.., 0));
        let worth = Worth { plan, is_hit, is_repeated };
        let again = chunks
            .filter(|_| answer.status() == StatusCode::OK)
            .and_then(|chunks| Cacheable::new(&worth, chunks, &info.version, whole));
        Ok(ElementsResponse { answer, again })
    }

    /// The version of a response, derived from the versions of all its inputs and from the rendering.
    fn version(&self, snapshot: &Snapshot) -> Version {
        // Lists of positions are not reduced.
        let of_lists = self.gathered.as_ref().map(|gathered| gathered.identity.clone());
        let form = self.reduction.as_ref().map(ElementsReduction::identity).or(of_lists);
        let mut version = SliceVersion::new(&self.subset, form.as_deref());
        self.node.located.versions().chain(snapshot.versions()).for_each(|found| version.add(found));
        if let Some(positions) = &self.positions {
            version.add_labels(positions);
        }
        version.of_representation(&self.rendering)
    }

    /// Formats of known length (`bytes` and `npy`): streamed, with support for ranges.
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
        let FormatOptions { format, endian, .. } = self.rendering.style;
        let preamble = Bytes::from(format.preamble(data_type, shape, endian));
        let elements = self.conversion.converted_bytes(snapshot.plan().response_bytes());
        let size = elements.saturating_add(preamble.len() as u64);
        // Only GET has ranges (RFC 9110, section 14.2).
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
        if *method != Method::HEAD {
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

    /// A byte range of the response: of the preamble and the elements after it.
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
            state
                .engine
                .reader
                .elements(snapshot, elements, trace)
                .map_ok(chunk::Elements::into_items)
                .boxed()
        } else {
            self.converted(state, snapshot, elements, trace)
        };
        if preamble.is_empty() {
            return elements;
        }
        // The preamble is sent together with the first elements, which are decoded before the head: one write suffices.
        let mut elements = elements;
        stream::once(async move {
            let part = elements.try_next().await?.unwrap_or_default();
            let begun = if part.len() <= JOINED_BYTES {
                let mut first = BytesMut::from(preamble);
                first.extend_from_slice(&part);
                [first.freeze(), Bytes::new()]
            } else {
                [preamble, part]
            };
            let begun = begun.into_iter().filter(|bytes| !bytes.is_empty());
            Ok::<_, ArrayError>(stream::iter(begun.map(Ok)).chain(elements))
        })
        .try_flatten()
        .boxed()
    }

    /// A byte range of the converted elements. The range may start and end within an element; whole elements are converted.
    fn converted(
        &self,
        state: &AppState,
        snapshot: Snapshot,
        wanted: Range<u64>,
        trace: &Arc<ReadContext>,
    ) -> BoxStream<'static, Result<Bytes, ArrayError>> {
        let source = self.conversion.source_range(&wanted);
        let mut at = self.conversion.converted_bytes(source.start);
        let (cpu, conversion) = (state.engine.cpu.clone(), Arc::clone(&self.conversion));
        let timed = Arc::clone(trace);
        state
            .engine
            .reader
            .elements(snapshot, source, trace)
            .and_then(move |part| {
                let (cpu, conversion, part) = (cpu.clone(), Arc::clone(&conversion), part.into_items());
                let trace = Arc::clone(&timed);
                let (start, bytes) = (at, part.len() as u64);
                at += conversion.converted_bytes(bytes);
                let wanted = wanted.clone();
                async move {
                    let begun = Instant::now();
                    let convert = move || conversion.try_convert(part);
                    let part = cpu.run_or_inline(bytes, convert).await?.map_err(ArrayError::Cast)?;
                    trace.add_encode_time(begun);
                    let within =
                        |place: u64| usize::try_from(place.saturating_sub(start)).unwrap_or(usize::MAX);
                    let length = part.len();
                    Ok(part.slice(within(wanted.start).min(length)..within(wanted.end).min(length)))
                }
            })
            .boxed()
    }

    /// Formats whose length depends on the elements: written whole before the head is sent, for HEAD too.
    async fn buffered(
        &self,
        state: &AppState,
        method: &Method,
        snapshot: Snapshot,
        writer: Box<dyn Writer>,
        trace: &Arc<ReadContext>,
        limit: u64,
    ) -> Result<(Response, Option<Bytes>), ElementsError> {
        let (engine, format) = (&*state.engine, self.rendering.style.format);
        let buffered = BufferedElements { engine, conversion: &self.conversion, format, limit };
        let text = buffered.write(snapshot, writer, trace).await?;
        let length = text.len();
        let whole = (*method != Method::HEAD).then(|| Bytes::from(text));
        let mut answer = whole.clone().map_or_else(Body::empty, Body::from).into_response();
        if whole.is_some() {
            BufferedBytes::put(length as u64, answer.extensions_mut());
        }
        answer.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        answer.headers_mut().insert(header::CONTENT_TYPE, self.rendering.media_type());
        Ok((answer, whole))
    }
}

//! An array with its coordinates, or the variables of a group, as a NetCDF file.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::Response;

use super::body::ExportBody;
use super::classic_integers::encodings;
use super::empty_dimensions::keep_possible;
use super::error::ExportError;
use super::limits::plans;
use super::respond::{held_bytes, respond};
use super::response::{ExportResponse, respond_to};
use super::sources::{ExportSource, ExportSources};
use super::texts::{check_texts, read_texts};
use crate::admission::AdmissionRequest;
use crate::admission::text_memory::TextMemory;
use crate::api::data::error::ElementsError;
use crate::api::data::too_large::Broken;
use crate::array::{ArrayError, Plan, ReadContext, ReadLimits, Snapshot, Suggestions};
use crate::error::ErrorClass;
use crate::http::download;
use crate::http::problem::Problem;
use crate::render::dataset::{
    DatasetError, ElementEncoding, ExportedDataset, ExportedTexts, VariableEncoding, VariableSource, is_text,
};
use crate::render::netcdf::{FORMAT, NetcdfFile, NetcdfVariant};
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::store::Version;

/// Part of every entity tag. It changes whenever a release writes the same arrays as other bytes.
const FORM: &str = "netcdf 3";

/// A request for a file.
pub(crate) struct NetcdfRequest {
    sources: ExportSources,
    variant: NetcdfVariant,
}

impl NetcdfRequest {
    /// A file of these arrays. Those that it cannot have are left out of a group, unless the request names them.
    ///
    /// # Errors
    /// [`DatasetError::UnsupportedType`].
    pub(crate) fn new(
        mut sources: ExportSources,
        variant: NetcdfVariant,
        are_named: bool,
    ) -> Result<Self, Problem> {
        let is_group = sources.group.is_some();
        let can_have = |source: &ExportSource| {
            let data_type = &source.metadata().data_type;
            let has_type = is_text(data_type) || ElementEncoding::netcdf(data_type).is_some();
            if has_type { Ok(()) } else { Err(data_type.name()) }
        };
        if !is_group || are_named {
            // What belongs to a named array is not named itself, and comes before it.
            if let Some(source) = sources.sources.iter().rev().find(|source| can_have(source).is_err()) {
                return Err(DatasetError::UnsupportedType {
                    variable: source.name.clone(),
                    data_type: source.metadata().data_type.name(),
                }
                .into());
            }
        }
        sources.keep(can_have);
        if is_group && !are_named {
            keep_possible(&mut sources);
        }
        if sources.sources.is_empty() {
            let detail = "the group has no array that a NetCDF file can have";
            return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(detail));
        }
        Ok(Self { sources, variant })
    }

    /// The response to GET or HEAD.
    pub(crate) async fn respond(
        self,
        state: &AppState,
        target: &NodeTarget,
        head: &Parts,
    ) -> Result<Response, Problem> {
        let plans = plans(&self.sources, &state.engine.read).map_err(|error| self.too_large(state, error))?;
        let elements = plans.iter().map(Plan::response_bytes).fold(0, u64::saturating_add);
        let left = state.engine.read.max_response_size.saturating_sub(elements);
        let most_text = state.options.max_buffered_response_size.min(left);
        let has_texts = self.has_texts();
        let held = held_bytes(&self.sources, &plans);
        let texts = |limit| if has_texts { limit } else { 0 };
        let memory_bytes = |limit| held.saturating_add(texts(limit));
        let (admission, entrant) = (&state.traffic.admission, AdmissionRequest::to_elements(head));
        let mut memory = TextMemory::acquire(admission, entrant, most_text, memory_bytes).await?;
        let (mut answer, text_bytes) = loop {
            let most_text = memory.limit();
            let plans: Vec<Plan> = plans.iter().map(|plan| plan.clone().with_heap_limit(most_text)).collect();
            match respond_to(&NetcdfContent { request: &self, most_text }, state, head, &plans).await {
                Err(error) if memory.can_extend(error.exceeded_limit()) => memory.extend().await?,
                // Texts have what elements leave.
                Err(ExportError::Array(ArrayError::TooLarge { requested, limit, .. })) if limit == left => {
                    let (what, limit) = ("bytes of elements", state.engine.read.max_response_size);
                    let requested = requested.saturating_add(elements.into());
                    return Err(self.too_large(state, ArrayError::TooLarge { what, requested, limit }));
                }
                Err(ExportError::Array(error)) => return Err(self.too_large(state, error)),
                sent => break sent?,
            }
        };
        let texts = texts(memory.limit());
        let mut permit = memory.into_permit();
        permit.release(texts.saturating_sub(text_bytes));
        let headers = answer.headers_mut();
        headers.insert(header::CACHE_CONTROL, target.mount.cache_control.of_decoded());
        headers.insert(header::VARY, HeaderValue::from_static("accept"));
        self.sources.put_omitted(headers);
        if answer.status().is_success() {
            let name = download::name_of(&target.mount.name, &target.path, &target.path);
            download::put(answer.headers_mut(), &name, FORMAT.extension);
        }
        Ok(permit.hold(answer))
    }

    fn has_texts(&self) -> bool {
        self.sources.sources.iter().any(|source| is_text(&source.metadata().data_type))
    }

    /// The problem for an error. For an exceeded limit it suggests slices of an array within the limit.
    fn too_large(&self, state: &AppState, error: ArrayError) -> Problem {
        let limits = &state.engine.read;
        let error = ElementsError::from(error);
        let whole_bytes = state.options.max_buffered_response_size;
        let Some(broken) = Broken::of(limits, whole_bytes, &error) else { return error.into() };
        let suggestions = match (&self.sources.group, self.sources.sources.split_last()) {
            // How long texts are is not known before they are read.
            (None, Some((array, others))) if !self.has_texts() => suggestions(array, others, limits),
            _ => Suggestions::default(),
        };
        broken.problem(error, suggestions)
    }

    /// The parts of the file, and the bytes of the texts among them.
    async fn body(
        &self,
        state: &AppState,
        snapshots: Vec<Snapshot>,
        most_text: u64,
        trace: &Arc<ReadContext>,
    ) -> Result<(ExportBody, u64), ExportError> {
        let mut texts: Vec<Option<ExportedTexts>> = Vec::with_capacity(snapshots.len());
        let mut text_bytes = 0;
        for (source, snapshot) in self.sources.sources.iter().zip(&snapshots) {
            let read = if is_text(&source.metadata().data_type) {
                let read = read_texts(&state.engine, snapshot.clone(), most_text, trace).await?;
                // The texts themselves, and the cells that they are in.
                let cells = read.cells_bytes(read.longest_bytes().max(1));
                text_bytes = read.memory_bytes().saturating_add(cells).saturating_add(text_bytes);
                check_texts(text_bytes, most_text)?;
                Some(read)
            } else {
                None
            };
            texts.push(read);
        }
        let encodings = encodings(&state.engine, &self.sources, &snapshots, trace).await?;
        let variables = self.sources.sources.iter().zip(texts.iter().zip(encodings));
        let variables = variables.filter_map(|(source, (texts, encoding))| {
            let encoding = match texts {
                Some(texts) => VariableEncoding::Texts { longest_bytes: texts.longest_bytes() },
                None => VariableEncoding::Numbers(encoding?),
            };
            Some(VariableSource {
                name: source.name.clone(),
                metadata: Arc::clone(source.metadata()),
                dimension_names: source.dimension_names.clone(),
                subset: source.subset.clone(),
                is_coordinate: source.is_coordinate,
                encoding,
            })
        });
        let variables: Vec<VariableSource> = variables.collect();
        let decodings: Vec<_> =
            self.sources.sources.iter().map(|source| source.decoding().cloned()).collect();
        let (attributes, variant) = (self.sources.attributes(), self.variant);
        let bytes = self.sources.attribute_bytes().saturating_add(1024 * variables.len() as u64);
        let make = move || -> Result<ExportBody, DatasetError> {
            let dataset = ExportedDataset::new(&variables, &attributes);
            let file = NetcdfFile::new(&dataset, variant)?;
            let mut body = ExportBody::default();
            body.push_bytes(&file.header);
            let parts = file.places.iter().zip(&dataset.variables).zip(snapshots.into_iter().zip(&texts));
            for (((place, variable), (snapshot, texts)), decoding) in parts.zip(decodings) {
                match (&variable.encoding, texts) {
                    (VariableEncoding::Numbers(encoding), _) => {
                        body.push_decoded(snapshot, decoding, encoding.clone());
                    }
                    (_, Some(texts)) => body.push_long(texts.cells(place.cell_bytes).into()),
                    (_, None) => return Err(DatasetError::ElementCount),
                }
                body.push_bytes(&place.padding);
            }
            if body.bytes() == file.bytes { Ok(body) } else { Err(DatasetError::ElementCount) }
        };
        let body = state.engine.cpu.run_document(bytes.saturating_add(text_bytes), make).await??;
        Ok((body, text_bytes))
    }
}

/// What a request is answered with.
struct NetcdfContent<'r> {
    request: &'r NetcdfRequest,
    /// The most bytes of texts.
    most_text: u64,
}

impl ExportResponse for NetcdfContent<'_> {
    fn sources(&self) -> &ExportSources {
        &self.request.sources
    }

    fn form(&self) -> String {
        format!("{FORM} {:?}", self.request.variant)
    }

    async fn send(
        &self,
        state: &AppState,
        head: &Parts,
        snapshots: Vec<Snapshot>,
        version: &Version,
        trace: &Arc<ReadContext>,
    ) -> Result<(Response, u64), ExportError> {
        let (body, text_bytes) = self.request.body(state, snapshots, self.most_text, trace).await?;
        let content_type = HeaderValue::from_static(FORMAT.media_type);
        Ok((respond(&state.engine, head, version, content_type, body, trace).await?, text_bytes))
    }
}

/// Slices of an array that are within the limits together with the others.
fn suggestions(array: &ExportSource, others: &[ExportSource], limits: &ReadLimits) -> Suggestions {
    let mut left = *limits;
    for other in others {
        let Ok(plan) = Plan::new(&other.array, other.subset.clone(), limits) else {
            return Suggestions::default();
        };
        left.max_response_size = left.max_response_size.saturating_sub(plan.response_bytes());
        left.max_decoded_size = left.max_decoded_size.saturating_sub(plan.decoded_bytes());
        left.max_chunks = left.max_chunks.saturating_sub(plan.chunks());
    }
    Suggestions::new(&array.array, &array.subset, &left, |_| true)
}

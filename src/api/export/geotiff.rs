//! One plane of an array as a GeoTIFF file.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::Response;

use super::body::ExportBody;
use super::error::ExportError;
use super::limits::plans;
use super::plane::FoundPlane;
use super::respond::{held_bytes, respond};
use super::response::{ExportResponse, respond_to};
use super::source_finder::SourceFinder;
use super::sources::ExportSources;
use crate::admission::AdmissionRequest;
use crate::api::data::error::ElementsError;
use crate::api::data::too_large::Broken;
use crate::array::{ArrayError, OpenNode, ReadContext, Snapshot, Suggestions};
use crate::chunk::Subset;
use crate::error::ErrorClass;
use crate::http::download;
use crate::http::problem::Problem;
use crate::metadata::Attributes;
use crate::reduce::read_as;
use crate::render::dataset::{
    DatasetError, ElementEncoding, ExportAttribute, ExportedDataset, VariableEncoding, VariableSource,
};
use crate::render::geotiff::{FORMAT, GeoTiffFile, GeoTiffPlane};
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::store::Version;

/// Part of every entity tag. It changes whenever a release writes the same arrays as other bytes.
const FORM: &str = "geotiff 3";

/// A request for a file.
pub(crate) struct GeoTiffRequest {
    plane: FoundPlane,
    encoding: ElementEncoding,
}

impl GeoTiffRequest {
    /// A file of a selection of an array, with its elements decoded to the numbers that its attributes describe, or as they are
    /// stored.
    ///
    /// # Errors
    /// 400 if the selection is no plane with a place, or the format has no type for its elements; failures of reading.
    pub(crate) async fn new(
        state: &AppState,
        head: &Parts,
        finder: &SourceFinder<'_>,
        node: Arc<OpenNode>,
        subset: Subset,
        decodes: bool,
    ) -> Result<Self, Problem> {
        let variable = node.array()?.path().name().to_owned();
        let mut plane = FoundPlane::of_array((state, head), finder, node, subset).await?;
        let Some(array) = plane.sources.sources.last_mut() else {
            return Err(Problem::from_class(ErrorClass::Internal));
        };
        if decodes {
            let mut decoded = array.clone();
            let bytes = decoded.metadata().attributes.text().len() as u64;
            let decode = move || decoded.decode().map(|()| decoded);
            *array = state.engine.cpu.run_document(bytes, decode).await??;
        }
        let metadata = array.metadata();
        // The bytes are the same.
        let data_type = read_as(&metadata.attributes, &metadata.data_type);
        let Some(encoding) = ElementEncoding::netcdf(&data_type) else {
            return Err(DatasetError::UnsupportedType { variable, data_type: data_type.name() }.into());
        };
        if plane.size.contains(&0) {
            let detail = "`format=tiff` has at least one pixel, and the selection has no element";
            return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(detail));
        }
        Ok(Self { plane, encoding })
    }

    /// The response to GET or HEAD.
    pub(crate) async fn respond(
        self,
        state: &AppState,
        target: &NodeTarget,
        head: &Parts,
    ) -> Result<Response, Problem> {
        let sources = &self.plane.sources;
        let plans = plans(sources, &state.engine.read).map_err(|error| self.too_large(state, error))?;
        let held = held_bytes(sources, &plans).saturating_add(self.described(&[]).header_memory());
        let admission = &state.traffic.admission;
        let permit = admission.acquire(AdmissionRequest::to_elements(head), held).await?;
        let (mut answer, _no_texts) = respond_to(&self, state, head, &plans).await?;
        let headers = answer.headers_mut();
        headers.insert(header::CACHE_CONTROL, target.mount.cache_control.of_decoded());
        headers.insert(header::VARY, HeaderValue::from_static("accept"));
        if answer.status().is_success() {
            let name = download::name_of(&target.mount.name, &target.path, &target.path);
            download::put(answer.headers_mut(), &name, FORMAT.extension);
        }
        Ok(permit.hold(answer))
    }

    /// The problem for an error. For an exceeded limit it suggests slices within the limit.
    fn too_large(&self, state: &AppState, error: ArrayError) -> Problem {
        let limits = &state.engine.read;
        let error = ElementsError::from(error);
        let whole_bytes = state.options.max_buffered_response_size;
        let Some(broken) = Broken::of(limits, whole_bytes, &error) else { return error.into() };
        let array = self.plane.sources.sources.last();
        let suggestions = array.map_or_else(Suggestions::default, |array| {
            Suggestions::new(&array.array, &array.subset, limits, |_| true)
        });
        broken.problem(error, suggestions)
    }

    /// The plane with these attributes.
    fn described<'a>(&self, attributes: &'a [ExportAttribute]) -> GeoTiffPlane<'a> {
        let [rows, columns] = self.plane.size;
        let (external, place) = (self.encoding.external(), self.plane.place.clone());
        GeoTiffPlane { rows, columns, external, attributes, place }
    }

    /// The header of the file.
    async fn file(&self, state: &AppState) -> Result<GeoTiffFile, ExportError> {
        let sources = &self.plane.sources;
        let Some(array) = sources.sources.last() else { return Err(DatasetError::ElementCount.into()) };
        let source = VariableSource {
            name: array.name.clone(),
            metadata: Arc::clone(array.metadata()),
            dimension_names: array.dimension_names.clone(),
            subset: array.subset.clone(),
            is_coordinate: false,
            encoding: VariableEncoding::Numbers(self.encoding.clone()),
        };
        let plane = self.described(&[]);
        let bytes = sources.attribute_bytes().saturating_add(plane.header_memory());
        let make = move || {
            let dataset = ExportedDataset::new(&[source], &Attributes::default());
            let attributes = dataset.variables.first().map_or(&[][..], |variable| &variable.attributes);
            GeoTiffFile::new(&GeoTiffPlane { attributes, ..plane }).ok_or(DatasetError::ElementCount)
        };
        Ok(state.engine.cpu.run_document(bytes, make).await??)
    }
}

impl ExportResponse for GeoTiffRequest {
    fn sources(&self) -> &ExportSources {
        &self.plane.sources
    }

    fn form(&self) -> String {
        format!("{FORM} {:?} {:?}", self.plane.place, self.plane.versions)
    }

    async fn send(
        &self,
        state: &AppState,
        head: &Parts,
        mut snapshots: Vec<Snapshot>,
        version: &Version,
        trace: &Arc<ReadContext>,
    ) -> Result<(Response, u64), ExportError> {
        let file = self.file(state).await?;
        let mut body = ExportBody::default();
        body.push_bytes(&file.header);
        if let Some(snapshot) = snapshots.pop() {
            let decoding = self.plane.sources.sources.last().and_then(|array| array.decoding().cloned());
            body.push_decoded(snapshot, decoding, self.encoding.clone());
        }
        if body.bytes() != file.bytes {
            return Err(DatasetError::ElementCount.into());
        }
        let content_type = HeaderValue::from_static(FORMAT.media_type);
        Ok((respond(&state.engine, head, version, content_type, body, trace).await?, 0))
    }
}

//! [`PutRequest`]: a write of elements, checked as far as that is possible without its body.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use super::body_format::BodyFormat;
use super::outcome::{self, WriteProgress};
use super::query::PutQuery;
use crate::api::data::rendering::Rendering;
use crate::api::data::slice_version::SliceVersion;
use crate::api::held::Held;
use crate::api::label_params::LabelPositions;
use crate::api::nodes::node_changes::writer;
use crate::api::store::write::{check_coding, length_in};
use crate::array::{Array, OpenNode};
use crate::chunk::{Elements, Subset};
use crate::error::ErrorClass;
use crate::http::conditions::Conditions;
use crate::http::problem::Problem;
use crate::http::validators::put_validators;
use crate::metadata::{DataType, Endianness};
use crate::render::{FormatOptions, NanMode};
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::store::{ValueInfo, Version};
use crate::write::{NewValues, VersionCheck, WriteChecks, WriteError, WritePlan, Written};

/// The header that counts what was written.
const ZARRD_WRITTEN: HeaderName = HeaderName::from_static("zarrd-written");

/// The headers with digests of a body.
const DIGESTS: [&str; 5] =
    ["content-digest", "repr-digest", "content-md5", "x-amz-checksum-crc32c", "x-amz-checksum-sha256"];

/// A write of elements whose head is in order.
pub(super) struct PutRequest {
    /// The node of an array that exists.
    node: Option<Arc<OpenNode>>,
    pub(super) array: Arc<Array>,
    pub(super) plan: WritePlan,
    pub(super) format: BodyFormat,
    /// The byte order of plain bytes.
    pub(super) endian: Endianness,
    pub(super) may_cast: bool,
    /// The labels by which it is selected.
    positions: Option<Arc<LabelPositions>>,
    /// The length in `Content-Length`.
    pub(super) declared: Option<u64>,
    /// Whether the body must be in memory before anything is written.
    pub(super) is_held: bool,
    checks: WriteChecks,
}

impl PutRequest {
    /// Checks the head of a request to write elements to a subset of an array.
    ///
    /// # Errors
    /// The problem of what is wrong; nothing was written then.
    pub(super) fn new(
        (state, target): (&AppState, &NodeTarget),
        node: &Arc<OpenNode>,
        (subset, positions): (Subset, Option<LabelPositions>),
        query: &PutQuery,
        head: &Parts,
    ) -> Result<Self, Problem> {
        let array = Arc::clone(node.array()?);
        if node.dependent.is_some() {
            return Err(WriteError::Declared { path: array.path().clone() }.into());
        }
        let mut request =
            Self::of_array(state, (array, Some(Arc::clone(node))), (subset, positions), query, head)?;
        let identity = writer(state, target, &head.extensions).identity(request.array.path(), node);
        request.checks.array = identity.map(Arc::new);
        Ok(request)
    }

    /// A write of all elements of an array that is created.
    ///
    /// # Errors
    /// As [`PutRequest::new`].
    pub(super) fn of_new(
        state: &AppState,
        array: Array,
        query: &PutQuery,
        head: &Parts,
    ) -> Result<Self, Problem> {
        let subset = Subset::full(&array.metadata().shape);
        Self::of_array(state, (Arc::new(array), None), (subset, None), query, head)
    }

    /// The values of an array that is created, once all are stored: each chunk is one.
    ///
    /// # Errors
    /// The problem of a key that is none.
    pub(super) fn new_values(&self) -> Result<NewValues, Problem> {
        let count = self.plan.values();
        let first = vec![0; self.array.metadata().shape.len()];
        let sample = if count > 0 { Some(self.array.stored_key(&first)?.key) } else { None };
        Ok(NewValues { count, sample })
    }

    fn of_array(
        state: &AppState,
        (array, node): (Arc<Array>, Option<Arc<OpenNode>>),
        (subset, positions): (Subset, Option<LabelPositions>),
        query: &PutQuery,
        head: &Parts,
    ) -> Result<Self, Problem> {
        let format = BodyFormat::of(&head.headers, &query.body)?;
        check_coding(&head.headers, &[])?;
        let declared = length_in(&head.headers, &header::CONTENT_LENGTH);
        let options = *state.engine.writer.options();
        let has_digest = DIGESTS.iter().any(|name| head.headers.contains_key(*name));
        let is_whole = matches!(format, BodyFormat::Json | BodyFormat::Arrow);
        let is_held = has_digest || is_whole || array.metadata().data_type.is_variable();
        let band_bytes = if is_held { u64::MAX } else { options.band_size };
        let plan = WritePlan::new(&array, subset.clone(), band_bytes, &options)
            .map_err(|error| outcome::too_large(error, &array, &subset, &options, band_bytes))?;
        let positions = positions.map(Arc::new);
        let value = check_of(&head.headers, node.as_ref(), &plan, positions.as_ref())?;
        let checks = WriteChecks { value, array: None };
        let (endian, may_cast) = (query.body.endian(), query.body.may_cast());
        let request =
            Self { node, array, plan, format, endian, may_cast, positions, declared, is_held, checks };
        request.check_length(options.max_whole_size, has_digest)?;
        Ok(request)
    }

    /// The type of the elements.
    pub(super) fn data_type(&self) -> &DataType {
        &self.array.metadata().data_type
    }

    /// Bytes of the elements in memory (saturated).
    pub(super) fn element_bytes(&self) -> u64 {
        self.plan.elements().saturating_mul(self.data_type().element_bytes() as u64)
    }

    /// Compares the declared length with what the elements take.
    fn check_length(&self, max_whole: u64, has_digest: bool) -> Result<(), Problem> {
        let is_plain = self.format == BodyFormat::Bytes && !self.data_type().is_variable();
        let expected = self.element_bytes();
        if let Some(given) = self.declared.filter(|&given| is_plain && given != expected) {
            let error = crate::parse::ParseError::Length { given: format!("{given} bytes"), expected };
            return Err(outcome::unparsed(error).extension("shape", self.plan.subset().shape()));
        }
        let length = self.declared.unwrap_or(if is_plain { expected } else { 0 });
        if self.is_held && length > max_whole {
            let code = if has_digest { "digest-too-long" } else { ErrorClass::TooLarge.as_str() };
            return Err(outcome::too_long_to_hold(code, Some(length), max_whole));
        }
        Ok(())
    }

    /// Writes a band. It goes on if the client goes away: all of its elements have arrived.
    ///
    /// # Errors
    /// The problem of the first failure.
    pub(super) async fn write(
        &self,
        state: &AppState,
        band: Subset,
        elements: Elements,
        is_same_everywhere: bool,
        permit: &Held,
        progress: &mut WriteProgress,
    ) -> Result<(), Problem> {
        // A chunk of a new array that was left out could be stored by another client that creates the array.
        let engine = &state.engine.writer;
        let writer = if self.node.is_none() { engine.storing_fill() } else { engine.clone() };
        let (array, checks) = (Arc::clone(&self.array), self.checks.clone());
        let (permit, place) = (permit.clone(), band.clone());
        let write = tokio::spawn(async move {
            let _permit = permit;
            writer.write(&array, &place, elements, is_same_everywhere, &checks).await
        });
        match timeout(state.options.response_timeout, write).await {
            Ok(Ok(written)) => progress.add(&band, written),
            Ok(Err(panic)) => Err(progress.lost(Problem::internal(Arc::new(panic)))),
            Err(_) => Err(progress.lost(Problem::unfinished_change())),
        }
    }

    /// The response once everything is written.
    pub(super) fn respond(&self, written: &Written) -> Response {
        let mut answer = StatusCode::NO_CONTENT.into_response();
        let Written { values, whole, .. } = written;
        let counts = format!("values={values}, whole={whole}, merged={}", written.merged());
        if let Ok(counts) = HeaderValue::try_from(counts) {
            answer.headers_mut().insert(ZARRD_WRITTEN, counts);
        }
        if let Some(positions) = &self.positions {
            positions.put_headers(answer.headers_mut());
        }
        let version = written.version.as_ref().filter(|_| self.plan.values() == 1);
        if let Some(((version, format), node)) =
            version.zip(self.format.of_responses()).zip(self.node.as_ref())
        {
            let style = FormatOptions { format, endian: Endianness::default(), nan: NanMode::default() };
            let rendering = Rendering { style, fields: None, header: true, decodes: false, dtype: None };
            let of_slice = slice_version(node, &self.plan, self.positions.as_deref(), Some(version));
            let version = of_slice.of_representation(&rendering);
            put_validators(answer.headers_mut(), &ValueInfo { size: 0, version, modified: None });
        }
        answer
    }
}

/// The version of a selection that lies in one stored value of this version.
fn slice_version(
    node: &OpenNode,
    plan: &WritePlan,
    positions: Option<&LabelPositions>,
    stored: Option<&Version>,
) -> SliceVersion {
    let mut version = SliceVersion::new(plan.subset(), None);
    node.located.versions().chain([stored]).for_each(|found| version.add(found));
    if let Some(positions) = positions {
        version.add_labels(positions);
    }
    version
}

/// The check that the conditions of a request ask for.
fn check_of(
    headers: &HeaderMap,
    node: Option<&Arc<OpenNode>>,
    plan: &WritePlan,
    positions: Option<&Arc<LabelPositions>>,
) -> Result<Option<VersionCheck>, Problem> {
    let conditions = Conditions::from_headers(headers);
    let Some(node) = node else {
        if conditions.is_empty() {
            // Of several clients that create the array, none stores a chunk over that of another.
            return Ok(Some(Arc::new(|stored: Option<&Version>| stored.is_none())));
        }
        return Err(Problem::from_class(ErrorClass::InvalidRequest)
            .detail("an array is created where there is none: leave the conditions out"));
    };
    let invalid = |code, text: &'static str| Problem::new(StatusCode::BAD_REQUEST, code).detail(text);
    if conditions.has_others_than_match() {
        let text = "elements are written under `If-Match` with an entity tag of the same selection, or `*`; leave the other \
                    conditions out";
        return Err(invalid(ErrorClass::InvalidRequest.as_str(), text));
    }
    if !conditions.has_match_list() {
        return Ok(None);
    }
    if plan.values() != 1 {
        let text = "the selection lies in several stored values, which cannot be written in one step under a condition: \
                    select less, or leave `If-Match` out";
        return Err(invalid("condition-spans-values", text).extension("values", plan.values()));
    }
    let (node, plan, positions) = (Arc::clone(node), plan.clone(), positions.cloned());
    Ok(Some(Arc::new(move |stored: Option<&Version>| {
        let version = slice_version(&node, &plan, positions.as_deref(), stored);
        conditions.matches_for_write(|tag| version.is_of(tag))
    })))
}

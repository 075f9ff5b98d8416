//! `/v1/stats/{mount}/{path}`: statistics of a selection of an array, exact or of a sample.

mod document;
mod groups;
mod query;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use utoipa::IntoResponses;
use utoipa_axum::routes;

use crate::admission::AdmissionRequest;
use crate::api::data;
use crate::api::documented::{ArrayResponses, ConditionResponses, MountParam};
use crate::api::json_response::text_answer;
use crate::api::label_params::{LabelPositions, positions};
use crate::api::selection::{ArrayParams, SelectionParams};
use crate::array::{ArrayError, Pieces};
use crate::chunk::Subset;
use crate::error::ErrorClass;
use crate::http::body::NoBody;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::http::timing::put_trace;
use crate::metadata::{ArrayMetadata, DataType};
use crate::reduce::ALGORITHM;
use crate::reduce::statistics::{Bins, MAX_VALUES};
use crate::reduce::{CfError, CfValues};
use crate::services::element_groups::ElementGroups;
use crate::services::extract::NodeTarget;
use crate::services::route::Route;
use crate::services::state::AppState;
use crate::services::statistics::{READS, Statistics, group_bytes};
use crate::services::struct_field::StructField;
use crate::store::Version;
use crate::units::hexadecimal::digest_tag;
use document::{Computed, Distributions, document};
use query::{StatsParams, StatsQuery};

/// Statistics of an array.
pub(crate) const STATS: RouteSpec =
    RouteSpec::new("/v1/stats/{mount}/{*path}", Resource::Node).admitted_by(AdmittedBy::Handler);

/// Statistics of the array at the root of a mount.
pub(crate) const ROOT_STATS: RouteSpec = RouteSpec::new("/v1/stats/{mount}", Resource::Node)
    .with_slash("/v1/stats/{mount}/")
    .admitted_by(AdmittedBy::Handler);

/// The routes of statistics.
pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(&STATS, routes!(get_stats)), Route::new(&ROOT_STATS, routes!(get_root_stats))]
}

/// Part of every entity tag. It changes whenever a release writes the same statistics in another form.
const DOCUMENT: &[u8] = b"statistics 3";

/// Maximum number of attempts for a response whose chunks change while it is computed.
const TRIES: usize = 3;

/// Responses of the routes for statistics.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes the answers for the API document")]
pub(crate) enum StatsResponses {
    /// The statistics. Those without any value are null; `exact` is false for a sample.
    #[response(status = 200, content_type = "application/json")]
    Statistics,
    /// The selection or another parameter is invalid, or the elements are no real numbers.
    #[response(status = 400)]
    NotUnderstood,
    /// The mount or the array does not exist.
    #[response(status = 404)]
    NotFound,
    /// Reading all chunks would exceed a limit.
    #[response(status = 413)]
    TooLarge,
}

/// Compute statistics of a selection
///
/// Returns counts, extremes, mean, standard deviation, sum, and on request percentiles and a histogram of a selection; without
/// `slice`, `isel.NAME` and `sel.NAME`, of the whole array. NaN and missing values are counted and otherwise skipped. Sums of integers are
/// exact. With `over` there is one of each for every index of the dimensions that are left. Statistics of unchanged chunks are
/// cached.
#[utoipa::path(
    method(get, head),
    path = STATS.template,
    tag = "data",
    params(
        MountParam,
        ("path" = String, Path, description = "Path of the array"),
        SelectionParams,
        StatsParams,
        ArrayParams,
    ),
    responses(StatsResponses, ArrayResponses, ConditionResponses)
)]
pub(crate) async fn get_stats(State(state): State<AppState>, request: Request) -> Result<Response, Problem> {
    let head = request.into_parts().0;
    // Boxed, because the large future would enlarge every future around it.
    Box::pin(stats(&state, &head)).await
}

/// Compute statistics of a selection of the array at the root of a mount
#[utoipa::path(
    method(get, head),
    path = ROOT_STATS.template,
    tag = "data",
    params(MountParam, SelectionParams, StatsParams, ArrayParams),
    responses(StatsResponses, ArrayResponses, ConditionResponses)
)]
pub(crate) async fn get_root_stats(state: State<AppState>, request: Request) -> Result<Response, Problem> {
    get_stats(state, request).await
}

/// Statistics that are requested: of these pieces.
struct StatsRequest {
    query: StatsQuery,
    node: Arc<crate::array::OpenNode>,
    subset: Subset,
    positions: Option<LabelPositions>,
    values: Arc<CfValues>,
    field: Option<StructField>,
    pieces: Pieces,
    groups: ElementGroups,
}

async fn stats(state: &AppState, head: &Parts) -> Result<Response, Problem> {
    state.traffic.admission.try_reject(AdmissionRequest::to_elements(head))?;
    let target = NodeTarget::new(&state.mounts, &STATS, &head.uri, &head.extensions)?;
    let query = StatsQuery::from_uri(&head.uri)?;
    let node = data::open(head, &target, &target.path, &query.array).await?;
    let array = Arc::clone(node.array()?);
    query.array.check_shape(&array.metadata().shape)?;
    let (path, request) = (array.path(), (state, head, &target));
    let positions = positions(request, &query.selection, path, array.metadata(), None).await?;
    let selection = positions.as_ref().map_or(&query.selection, |positions| &positions.selection);
    let subset = selection.subset(array.metadata())?;
    let (field, values) = values_of(array.metadata(), &query)?;
    let values = Arc::new(values);
    let groups = groups::of_query(&query, array.metadata(), &subset)?;
    groups::check_size(&query, &groups, state.options.max_buffered_response_size)?;
    let keeps_values = !query.percentiles().is_empty() && (query.stats.over.is_some() || !values.are_few());
    let most_elements = if keeps_values { MAX_VALUES } else { u64::MAX };
    let limits = &state.engine.read;
    let pieces = Pieces::choose(&array, &subset, query.sampling(), limits, most_elements)?;
    let request = StatsRequest { query, node, subset, positions, values, field, pieces, groups };
    let bytes = request.held_bytes(state, keeps_values);
    let mut permit = state.traffic.admission.acquire(AdmissionRequest::to_elements(head), bytes).await?;
    let mut tries = 1;
    let (mut answer, bytes) = loop {
        match request.attempt(state, head).await {
            Err(error) if error.is_changed() && tries < TRIES => tries += 1,
            answered => break answered?,
        }
    };
    answer.headers_mut().insert(header::CACHE_CONTROL, target.mount.cache_control.of_decoded());
    if let Some(positions) = &request.positions {
        positions.put_headers(answer.headers_mut());
    }
    // The chunks are read; what is left is the text.
    permit.resize(bytes)?;
    Ok(permit.hold(answer))
}

/// The numbers that statistics are of: those of the elements, or of a field of them.
fn values_of(
    metadata: &ArrayMetadata,
    query: &StatsQuery,
) -> Result<(Option<StructField>, CfValues), Problem> {
    let Some(path) = &query.stats.fields else {
        if matches!(metadata.data_type, DataType::Struct(_)) {
            let detail = "statistics are of one field of a structured type: name it with `fields`";
            return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(detail));
        }
        return Ok((None, CfValues::of_array(metadata, query.decodes())?));
    };
    let field = StructField::new(&metadata.data_type, path)?;
    if !field.is_single() {
        let detail = format!("the field `{path}` has several numbers in each element");
        return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(detail));
    }
    let values = CfValues::stored(field.data_type());
    if !values.are_real() {
        return Err(CfError::NotReal(field.data_type().name()).into());
    }
    Ok((Some(field), values))
}

impl StatsRequest {
    /// The memory in bytes of the request in flight: elements that are read, those that are kept, the groups with their
    /// histograms, and the text.
    fn held_bytes(&self, state: &AppState, keeps_values: bool) -> u64 {
        let subsets = &self.pieces.subsets;
        let elements = subsets.iter().map(Subset::elements).fold(0_u128, u128::saturating_add);
        let elements = u64::try_from(elements).unwrap_or(u64::MAX);
        let element_bytes = self.node.array().map_or(0, |array| array.metadata().data_type.element_bytes());
        let read = elements.saturating_mul(element_bytes as u64);
        let read = read.min(state.engine.read.segment_size.saturating_mul(2));
        // The numbers of a field are copied out of what was read.
        let read = if self.field.is_some() { read.saturating_mul(2) } else { read };
        let kept = if keeps_values { elements.min(MAX_VALUES).saturating_mul(16) } else { 0 };
        let bins = self.query.stats.histogram.map_or(0, |(bins, _)| bins);
        let largest = subsets.iter().map(|piece| self.groups.count_of(piece)).max().unwrap_or(0);
        let all = group_bytes(&self.values, self.groups.count(), bins);
        let parts = group_bytes(&self.values, largest, bins).saturating_mul(READS as u64 + 1);
        let text = groups::text_bytes(&self.query, &self.groups);
        let fixed = (subsets.len() as u64).saturating_mul(1024);
        [kept, all, parts, text, fixed].into_iter().fold(read, u64::saturating_add)
    }

    /// The response, and the bytes of its text.
    async fn attempt(&self, state: &AppState, head: &Parts) -> Result<(Response, u64), ArrayError> {
        let (node, values) = (Arc::clone(&self.node), Arc::clone(&self.values));
        let (decodes, groups) = (self.query.decodes(), self.groups.clone());
        let field = self.field.clone();
        let statistics =
            Statistics::lookup(state, node, values, decodes, field, &self.pieces, groups).await?;
        let version = self.version(&statistics);
        match Conditions::from_headers(&head.headers).for_read(&version, None) {
            Verdict::Proceed => {}
            _ => return Ok((text_answer(&head.headers, [Bytes::new()], version), 0)),
        }
        let cached = state.responses.statistics.document(version.tag());
        if head.method == Method::HEAD {
            let mut answer = text_answer(&head.headers, [Bytes::new()], version);
            if let Some(text) = cached {
                answer.headers_mut().insert(header::CONTENT_LENGTH, text.len().into());
            } else {
                // Only the statistics themselves have a length.
                *answer.body_mut() = Body::new(NoBody);
                answer.headers_mut().remove(header::CONTENT_LENGTH);
            }
            return Ok((answer, 0));
        }
        let text = if let Some(text) = cached {
            Bytes::clone(&text)
        } else {
            let text = self.compute(state, &statistics).await?;
            state.responses.statistics.insert_document(version.tag(), text.clone());
            text
        };
        let bytes = text.len() as u64;
        let mut answer = text_answer(&head.headers, [text], version).into_response();
        put_trace(answer.headers_mut(), statistics.trace());
        Ok((answer, bytes))
    }

    async fn compute(&self, state: &AppState, statistics: &Statistics) -> Result<Bytes, ArrayError> {
        let mut cells = statistics.cells(state, None).await?;
        let edges = match self.query.stats.histogram {
            None => None,
            Some((bins, range)) => {
                let range = range.or(cells.extent()).unwrap_or((0.0, 1.0));
                let edges: Arc<[f64]> = edges(bins, range).into();
                cells = statistics.cells(state, Some(Arc::clone(&edges))).await?;
                Some(edges.to_vec())
            }
        };
        let distributions = match (self.query.percentiles(), &self.query.stats.over) {
            ([], _) => None,
            (_, None) => Some(Distributions::One(statistics.distribution(state).await?)),
            (_, Some(_)) => Some(Distributions::Groups(statistics.distributions(state).await?)),
        };
        let dimensions = self.query.stats.over.is_some().then(|| groups::named(&self.groups, &self.node));
        let (is_exact, seen) = (self.pieces.is_exact, statistics.seen());
        let computed = Computed { cells, edges, distributions, dimensions, is_exact, seen };
        let (query, values) = (self.query.clone(), Arc::clone(&self.values));
        let write = move || {
            let mut text = document(&query, &values, &computed);
            // Spare capacity would be held, but not charged, as long as the client reads.
            text.shrink_to_fit();
            text
        };
        let text = state.engine.cpu.run(write).await?;
        Ok(text.into())
    }

    /// The version of the response, derived from the versions of all its inputs and from the query.
    fn version(&self, statistics: &Statistics) -> Version {
        let mut strong = true;
        let mut digest = Sha256::new();
        // The parts contain no zero byte: tags are visible ASCII, and `Debug` escapes control characters.
        let mut add = |part: &[u8]| {
            digest.update(part);
            digest.update([0]);
        };
        add(DOCUMENT);
        add(ALGORITHM.as_bytes());
        add(format!("{:?} {} {}", self.subset, self.pieces.subsets.len(), self.query.identity()).as_bytes());
        add(self
            .node
            .array()
            .map_or_else(|_| String::new(), |array| format!("{} {}", array.mount(), array.path()))
            .as_bytes());
        if let Some(positions) = &self.positions {
            add(positions.identity().as_bytes());
        }
        let labels = self.positions.iter().map(|positions| positions.used.version.as_ref());
        for version in statistics.versions().chain(labels) {
            strong &= version.is_none_or(Version::is_strong);
            add(version.map_or(b"", |version| version.tag().as_bytes()));
        }
        let tag = digest_tag(&digest.finalize());
        if strong { Version::strong(&tag) } else { Version::weak(&tag) }
    }
}

/// The edges of bins in a range; a range of one value is widened as numpy does.
fn edges(count: usize, (low, high): (f64, f64)) -> Vec<f64> {
    let (low, high) = match (low.is_finite() && high.is_finite(), low < high) {
        (true, true) => (low, high),
        (true, false) => (low - 0.5, high + 0.5),
        (false, _) => (0.0, 1.0),
    };
    Bins { count, low, high }.edges()
}

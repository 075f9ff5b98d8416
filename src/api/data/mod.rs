//! `/v1/data/{mount}/{path}` and `/v1/chunk/{mount}/{path}/c/…`: decoded elements.

mod append;
mod axis_query;
pub(crate) mod categorical;
pub(crate) mod elements;
mod elements_reduction;
pub(crate) mod error;
mod gathered;
mod gathered_plan;
mod opening;
mod post;
mod put;
pub(crate) mod query;
pub(crate) mod reduction_query;
mod slice_version;
mod specs;
pub(crate) mod too_large;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use futures::future::{BoxFuture, FutureExt, join};
use tracing::Instrument;
use utoipa::IntoResponses;

use crate::admission::AdmissionRequest;
use crate::api::documented::{ArrayResponses, ConditionResponses, MountParam};
use crate::api::export::netcdf::NetcdfRequest;
use crate::api::export::source_finder::SourceFinder;
use crate::api::label_params::positions;
use crate::api::query_params::ParamError;
use crate::api::selection::{ArrayParams, FieldsParams, SelectionParams, VariablesParams};
use crate::array::{Array, OpenNode};
use crate::auth::Rights;
use crate::auth::caller::Caller;
use crate::chunk::{ChunkKeyEncoding, Subset};
use crate::error::ErrorClass;
use crate::hierarchy::Node;
use crate::http::base_path::BasePath;
use crate::http::chunk_path::split_chunk;
use crate::http::negotiate;
use crate::http::path::encode;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::reduce::Method;
use crate::render::netcdf::NetcdfVariant;
use crate::render::{FORMATS, FormatOptions};
use crate::services::extract::NodeTarget;
use crate::services::response_cache::CachedResponse;
use crate::services::route::Route;
use crate::services::state::AppState;
use axis_query::AxisReductionParams;
use categorical::{Categorical, categorical};
use elements::{ElementsRequest, Rendering};
use elements_reduction::ElementsReduction;
use opening::no_such_chunk;
pub(crate) use opening::open;
use query::{DataQuery, FormatParams};
use reduction_query::ReductionParams;
pub(crate) use specs::{CHUNK, DATA, ROOT_DATA};
use utoipa_axum::routes;

/// The routes of elements.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(&DATA, routes!(get_data, put::put_data, post::post_data)),
        Route::new(&ROOT_DATA, routes!(get_root_data, put::put_root_data, post::post_root_data)),
        Route::new(&CHUNK, routes!(get_chunk, put::put_chunk)),
    ]
}

/// Responses of the routes for elements.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes the answers for the API document")]
pub(crate) enum ElementsResponses {
    /// The elements. The headers `Array-Shape` and `Array-Data-Type` describe them.
    #[response(status = 200, content_type = "application/octet-stream")]
    Elements,
    /// The requested byte range of the response.
    #[response(status = 206, content_type = "application/octet-stream")]
    Range,
    /// The selection or another parameter is invalid.
    #[response(status = 400)]
    NotUnderstood,
    /// The mount, the array or the chunk does not exist.
    #[response(status = 404)]
    NotFound,
    /// `Accept` allows none of the formats.
    #[response(status = 406)]
    NotAcceptable,
    /// The response would exceed a limit. `suggested_slices` in the problem document lists slices that fit.
    #[response(status = 413)]
    TooLarge,
    /// The range starts after the end of the response.
    #[response(status = 416)]
    RangeNotSatisfiable,
}

/// Read a selection of an array
///
/// Returns the decoded elements of a selection; without `slice`, `isel.NAME` and `sel.NAME`, of the whole array. Elements are
/// returned as stored; with `decode=cf` they are the values that CF attributes such as `scale_factor`, `add_offset` and `units`
/// describe.
///
/// With `sel.NAME` elements are selected by label. `Array-Selection` has the positions, `Array-Labels` the labels of single
/// positions. A label that no element has is a 400 (`no-such-label`) with those that are near.
///
/// With `downsample`, `downsample.NAME` or `fit` each window of the selected elements gives one element of the same type. Means
/// of integers are exact and rounded half to even; means of floats are computed as `float64`. `Array-Downsample` has the
/// factors.
///
/// With `reduce.NAME` the result has a statistic over these dimensions, and does not have them. Sums are exact, and means and
/// deviations are rounded once. `Array-Reduce` has the dimensions and the statistic.
#[utoipa::path(
    method(get, head),
    path = DATA.template,
    tag = "data",
    params(
        MountParam,
        ("path" = String, Path, description = "Path of the array"),
        SelectionParams,
        ReductionParams,
        AxisReductionParams,
        ArrayParams,
        FieldsParams,
        VariablesParams,
        FormatParams,
    ),
    responses(ElementsResponses, ArrayResponses, ConditionResponses)
)]
pub(crate) async fn get_data(State(state): State<AppState>, request: Request) -> Result<Response, Problem> {
    data(&state, &request.into_parts().0).await
}

/// The response to GET and HEAD of a selection.
pub(crate) async fn data(state: &AppState, head: &Parts) -> Result<Response, Problem> {
    if let Some(answer) = precheck(state, head).await? {
        return Ok(answer);
    }
    let respond = async {
        let started = Instant::now();
        let target = NodeTarget::new(&state.mounts, &DATA, &head.uri, &head.extensions)?;
        let query = match DataQuery::from_uri(&head.uri) {
            Ok(query) => query,
            Err(error) => return Err(Box::pin(about_dimensions(error, &target)).await),
        };
        let rendering = rendering(&head.headers, &query)?;
        if rendering.style.format.is_file() {
            return Box::pin(netcdf(state, head, &target, &query, started)).await;
        }
        if query.variables.vars.is_some() {
            return Err(Problem::from_class(ErrorClass::InvalidRequest)
                .detail("`vars` is of a group's variables, for which there is `format=nc`"));
        }
        let open = || async {
            let node = open(head, &target, &target.path, &query.array).await;
            node.map_err(|problem| with_chunk_route(problem, head, &target))
        };
        let plan = |node: Arc<OpenNode>| async {
            let array = Arc::clone(node.array()?);
            query.array.check_shape(&array.metadata().shape)?;
            let (path, request) = (array.path(), (state, head, &target));
            let positions = positions(request, &query.selection, path, array.metadata(), None).await?;
            let selection = positions.as_ref().map_or(&query.selection, |positions| &positions.selection);
            if let Some(listed) = selection.listed(array.metadata())? {
                let request = gathered::request(state, node, listed, &query, rendering.clone(), started);
                return Ok(Box::pin(request).await?.with_positions(positions));
            }
            let subset = selection.subset(array.metadata())?;
            let rights = Caller::of(&head.extensions).rights();
            let reduction = reduction(state, rights, &target, &array, &query, &subset).await?;
            let request = ElementsRequest::new(node, subset, reduction, rendering.clone(), started)?;
            Ok::<_, Problem>(request.with_positions(positions))
        };
        let span = || tracing::trace_span!(target: "zarrd::span", "plan");
        let respond =
            |node| async { plan(node).instrument(span()).await?.respond(state, &target, head).await };
        match target.opener.unvalidated(&target.path, started) {
            None => respond(open().await?).await,
            Some(unvalidated) => opened_beside(unvalidated, open(), respond).await,
        }
    };
    // Boxed, because the large future would enlarge every future around it.
    Box::pin(respond).await
}

/// The response with a NetCDF file: of an array and its coordinates, or of the variables of a group.
async fn netcdf(
    state: &AppState,
    head: &Parts,
    target: &NodeTarget,
    query: &DataQuery,
    started: Instant,
) -> Result<Response, Problem> {
    if query.reduction.reduces() || query.over.reduces() || query.fields.fields.is_some() {
        return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(
            "`format=nc` has elements as they are stored: leave out `downsample`, `fit`, `reduce.NAME` and `fields`",
        ));
    }
    let node = open(head, target, &target.path, &query.array).await?;
    let rights = Caller::of(&head.extensions).rights();
    let finder = SourceFinder { target, rights, began: started };
    let names = query.variables.vars.as_deref();
    let sources = match &node.node {
        Node::Group(_) if query.selection.has_labels() => {
            return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(
                "labels select in one array: select along the dimensions of a group by position, with `isel.NAME`",
            ));
        }
        Node::Group(_) => finder.of_group(node, names, &query.selection).await?,
        Node::Array(metadata) => {
            if names.is_some() {
                return Err(Problem::from_class(ErrorClass::InvalidRequest)
                    .detail("`vars` names variables of a group, and this is an array"));
            }
            query.array.check_shape(&metadata.shape)?;
            let request = (state, head, target);
            let positions = positions(request, &query.selection, &target.path, metadata, None).await?;
            let selection = positions.as_ref().map_or(&query.selection, |positions| &positions.selection);
            let subset = selection.subset(metadata)?;
            finder.of_array(node, subset).await?
        }
    };
    let variant = if query.format.is_classic() { NetcdfVariant::Classic } else { NetcdfVariant::Smallest };
    NetcdfRequest::new(sources, variant, names.is_some())?.respond(state, target, head).await
}

/// The response for a node that `open` returns. `respond` begins with the node as it was last opened, and begins again if `open`
/// returns another one.
///
/// Boxed, because the rare branch would enlarge the future of every read.
fn opened_beside<'a, R: Future<Output = Result<Response, Problem>> + Send + 'a>(
    unvalidated: Arc<OpenNode>,
    open: impl Future<Output = Result<Arc<OpenNode>, Problem>> + Send + 'a,
    respond: impl Fn(Arc<OpenNode>) -> R + Send + 'a,
) -> BoxFuture<'a, Result<Response, Problem>> {
    let response = async move {
        let (node, answer) = join(open, respond(Arc::clone(&unvalidated))).await;
        let node = node?;
        if node.located == unvalidated.located {
            return answer;
        }
        // With its permit: one request must not wait for what it holds itself.
        drop(answer);
        respond(node).await
    };
    response.boxed()
}

/// A problem with the route of chunks, if what does not exist is named as a chunk.
fn with_chunk_route(problem: Problem, head: &Parts, target: &NodeTarget) -> Problem {
    let is_chunk = split_chunk(&target.path).is_some_and(|(_, chunk)| chunk != "c");
    if problem.code() != ErrorClass::NotFound.as_str() || !is_chunk {
        return problem;
    }
    let (base, mount, path) = (BasePath::of(&head.extensions), &target.mount.name, &target.path);
    let (base, path) = (base.as_str(), path.as_str());
    let detail = format!("{}; one chunk is at `{base}/v1/chunk/{mount}/{path}`", problem.message());
    problem.detail(detail)
}

/// A response before any planning: one from the response cache, or a rejection under overload.
pub(crate) async fn precheck(state: &AppState, head: &Parts) -> Result<Option<Response>, Problem> {
    // A 304 needs no memory budget, so a revalidation is not rejected here.
    if !head.headers.contains_key(header::IF_NONE_MATCH) {
        state.traffic.admission.try_reject(AdmissionRequest::to_elements(head))?;
    }
    CachedResponse::lookup(&state.responses.elements, &state.traffic.admission, head).await
}

/// Read a selection of the array at the root of a mount
#[utoipa::path(
    method(get, head),
    path = ROOT_DATA.template,
    tag = "data",
    params(
        MountParam,
        SelectionParams,
        ReductionParams,
        AxisReductionParams,
        ArrayParams,
        FieldsParams,
        VariablesParams,
        FormatParams,
    ),
    responses(ElementsResponses, ArrayResponses, ConditionResponses)
)]
pub(crate) async fn get_root_data(state: State<AppState>, request: Request) -> Result<Response, Problem> {
    get_data(state, request).await
}

/// Read one decoded chunk
///
/// Returns the elements of one chunk of the chunk grid, trimmed to the shape of the array. The path addresses chunks in the
/// default chunk key encoding (`c/0/1`), whatever encoding the array uses. A chunk of a sharded array is a whole shard.
#[utoipa::path(
    method(get, head),
    path = CHUNK.template,
    tag = "data",
    params(
        MountParam,
        ("path" = String, Path, description = "Path of the array, then `c` and the chunk's coordinates: `a/b/c/0/1`"),
        ArrayParams,
        FieldsParams,
        FormatParams,
    ),
    responses(ElementsResponses, ArrayResponses, ConditionResponses)
)]
pub(crate) async fn get_chunk(State(state): State<AppState>, request: Request) -> Result<Response, Problem> {
    chunk(&state, &request.into_parts().0).await
}

/// The response to GET and HEAD of a decoded chunk.
pub(crate) async fn chunk(state: &AppState, head: &Parts) -> Result<Response, Problem> {
    if let Some(answer) = precheck(state, head).await? {
        return Ok(answer);
    }
    let respond = async {
        let started = Instant::now();
        let target = NodeTarget::new(&state.mounts, &CHUNK, &head.uri, &head.extensions)?;
        let query = DataQuery::from_uri(&head.uri)?;
        if query.selection.selects() || query.reduction.reduces() || query.over.reduces() {
            return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(
                "a chunk is returned whole; use `/v1/data` for a part of the array, or to reduce it",
            ));
        }
        let rendering = rendering(&head.headers, &query)?;
        let (path, chunk) = split_chunk(&target.path).ok_or_else(no_such_chunk)?;
        let elements = |node: Arc<OpenNode>| {
            let array = Arc::clone(node.array()?);
            query.array.check_shape(&array.metadata().shape)?;
            let coords = ChunkKeyEncoding::canonical().decode(chunk, array.metadata().shape.len());
            let ranges =
                coords.and_then(|coords| array.grid().chunk_ranges(&coords)).ok_or_else(no_such_chunk)?;
            ElementsRequest::new(node, Subset(ranges), None, rendering.clone(), started)
        };
        let open = || open(head, &target, &path, &query.array);
        let respond = |node| async { elements(node)?.respond(state, &target, head).await };
        match target.opener.unvalidated(&path, started) {
            None => respond(open().await?).await,
            Some(unvalidated) => opened_beside(unvalidated, open(), respond).await,
        }
    };
    Box::pin(respond).await
}

/// How the query reduces a selection of an array, if it does.
async fn reduction(
    state: &AppState,
    rights: &Rights,
    target: &NodeTarget,
    array: &Array,
    query: &DataQuery,
    subset: &Subset,
) -> Result<Option<ElementsReduction>, Problem> {
    let metadata = array.metadata();
    if let Some(over) = query.over.of_array(metadata, subset)? {
        return Ok(Some(ElementsReduction::axes(over)));
    }
    if !query.reduction.reduces() {
        return Ok(None);
    }
    // Boxed, because the rare branch would enlarge the future of every request.
    Box::pin(windows(state, rights, target, array, &query.reduction, subset)).await.map(Some)
}

/// The reduction of windows that a request asks for.
async fn windows(
    state: &AppState,
    rights: &Rights,
    target: &NodeTarget,
    array: &Array,
    query: &ReductionParams,
    subset: &Subset,
) -> Result<ElementsReduction, Problem> {
    let metadata = array.metadata();
    let asks_around = query.is_auto() && Method::Mode.is_defined_for(&metadata.data_type);
    let found = if asks_around {
        categorical(rights, target, array.path(), metadata, &state.engine.cpu).await?
    } else {
        Categorical::default()
    };
    let requested = query.of_array(metadata, found.has_categories)?;
    Ok(ElementsReduction::windows(requested, found, subset)?)
}

/// The problem of an invalid query. If the unknown parameter is the name of a dimension, the detail shows how to select
/// along it and where its labels are.
async fn about_dimensions(error: ParamError, target: &NodeTarget) -> Problem {
    let ParamError::Unknown { name, .. } = &error else { return error.into() };
    let dimension = name;
    let opened = target.opener.find(&target.path).await.ok().flatten();
    let array = opened.as_ref().and_then(|node| node.array().ok());
    let names = array.and_then(|array| array.metadata().dimension_names.as_ref());
    let is_one = names.is_some_and(|names| names.iter().flatten().any(|known| known == dimension));
    if !is_one {
        return error.into();
    }
    let beside = target.path.parent().unwrap_or_else(NodePath::root).child(dimension);
    let labels = beside.map(|path| format!("; its labels, if they are stored: `{}`", url(target, &path)));
    let detail = format!(
        "`{name}` is not a parameter here. `{dimension}` is a dimension, and elements are selected by index, \
         `isel.{dimension}=0:10`, or by label, `sel.{dimension}=…`{}",
        labels.unwrap_or_default()
    );
    Problem::from(error).detail(detail)
}

/// The path of the elements of a node in the same mount.
fn url(target: &NodeTarget, path: &NodePath) -> String {
    let segments: Vec<String> = path.as_str().split('/').map(encode).collect();
    format!("/v1/data/{}/{}", target.mount.name, segments.join("/"))
}

fn rendering(headers: &HeaderMap, query: &DataQuery) -> Result<Rendering, Problem> {
    let format = negotiate::choose(headers, query.format.name(), FORMATS)?;
    let style = FormatOptions { format, endian: query.format.endian(), nan: query.format.nan() };
    let (fields, header, decodes) =
        (query.fields.fields.clone(), query.format.has_header(), query.format.decodes());
    Ok(Rendering { style, fields, header, decodes })
}

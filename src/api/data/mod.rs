//! `/v1/data/{mount}/{path}` and `/v1/chunk/{mount}/{path}/c/…`: decoded elements.

mod append;
mod axis_query;
mod buffered;
mod cacheable;
pub(crate) mod categorical;
pub(crate) mod elements;
mod elements_reduction;
pub(crate) mod error;
mod file;
mod gathered;
mod gathered_plan;
mod opening;
mod post;
mod put;
pub(crate) mod query;
mod query_body;
pub(crate) mod reduction_query;
pub(crate) mod rendering;
mod repeated;
mod selected;
mod slice_version;
mod specs;
mod table;
pub(crate) mod too_large;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::Response;
use utoipa::IntoResponses;

use crate::admission::AdmissionRequest;
use crate::api::documented::{ArrayResponses, ConditionResponses, MountParam};
use crate::api::selection::{ArrayParams, FieldsParams, SelectionParams, VariablesParams};
use crate::array::OpenNode;
use crate::chunk::{ChunkKeyEncoding, Subset};
use crate::error::ErrorClass;
use crate::http::chunk_path::split_chunk;
use crate::http::problem::Problem;
use crate::services::extract::NodeTarget;
use crate::services::route::Route;
use crate::services::state::AppState;
pub(crate) use append::AppendedSchema;
use axis_query::AxisReductionParams;
use elements::ElementsRequest;
use opening::no_such_chunk;
pub(crate) use opening::open;
pub(crate) use query::DataQuery;
use query::FormatParams;
pub(crate) use query_body::{SelectionBody, SelectionSchema};
use reduction_query::ReductionParams;
pub(crate) use selected::selected;
use selected::{about_dimensions, opened_beside, rendering};
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
/// With `coords=1` the response is a long table, with a row for each element, and its labels. Its length is known before only if it is
/// short, so there are no ranges.
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
        selected(state, head, &target, &query, started).await
    };
    // Boxed, because the large future would enlarge every future around it.
    Box::pin(respond).await
}

/// A response before any planning: one from the response cache, or a rejection under overload.
pub(crate) async fn precheck(state: &AppState, head: &Parts) -> Result<Option<Response>, Problem> {
    // A 304 needs no memory budget, so a revalidation is not rejected here.
    if !head.headers.contains_key(header::IF_NONE_MATCH) {
        state.traffic.admission.try_reject(AdmissionRequest::to_elements(head))?;
    }
    state.responses.lookup(&state.traffic.admission, head).await
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
        let is_table = query.variables.are_tabular();
        if query.selection.selects() || query.reduction.reduces() || query.over.reduces() || is_table {
            return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(
                "a chunk is returned whole; use `/v1/data` for a part of the array, to reduce it, or for a table",
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
            let request = ElementsRequest::new(node, Subset(ranges), None, rendering.clone(), started)?;
            Ok::<_, Problem>(request.of_chunk())
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

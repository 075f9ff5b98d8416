//! `/v1/data/{mount}/{path}` and `/v1/chunk/{mount}/{path}/c/…`: decoded elements.

pub(crate) mod elements;
mod error;
pub(crate) mod query;
pub(crate) mod too_large;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;
use tracing::Instrument;
use utoipa::{IntoParams, IntoResponses};

use crate::admission::AdmissionRequest;
use crate::api::dependents::{check_collision, reading};
use crate::api::nodes::missing;
use crate::array::OpenNode;
use crate::auth::caller::Caller;
use crate::chunk::{ChunkKeyEncoding, Subset};
use crate::error::ErrorClass;
use crate::http::chunk_path::split_chunk;
use crate::http::negotiate;
use crate::http::path::encode;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, FastPath, MediaTypes, Resource, RouteSpec};
use crate::key::NodePath;
use crate::render::FormatOptions;
use crate::services::extract::NodeTarget;
use crate::services::response_cache::CachedResponse;
use crate::services::route::Route;
use crate::services::state::AppState;
use elements::{ElementsRequest, OFFERS, Rendering, format_from_offer};
use query::{DataQuery, QueryError};
use utoipa_axum::routes;

/// Elements of an array.
pub(crate) const DATA: RouteSpec = RouteSpec::new("/v1/data/{mount}/{*path}", Resource::Node)
    .admitted_by(AdmittedBy::Handler)
    .fast_path(FastPath::Elements)
    .media_types(MediaTypes::Elements);

/// Elements of the array at the root of a mount.
pub(crate) const ROOT_DATA: RouteSpec = RouteSpec::new("/v1/data/{mount}", Resource::Node)
    .with_slash("/v1/data/{mount}/")
    .admitted_by(AdmittedBy::Handler)
    .media_types(MediaTypes::Elements);

/// Elements of one chunk.
pub(crate) const CHUNK: RouteSpec = RouteSpec::new("/v1/chunk/{mount}/{*path}", Resource::Chunk)
    .admitted_by(AdmittedBy::Handler)
    .fast_path(FastPath::Chunk)
    .media_types(MediaTypes::Elements);

/// The routes of elements.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(&DATA, routes!(get_data)),
        Route::new(&ROOT_DATA, routes!(get_root_data)),
        Route::new(&CHUNK, routes!(get_chunk)),
    ]
}

/// What is selected, as `DataQuery` reads it.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query for the API document; `DataQuery` reads it")]
pub(crate) struct SliceParams {
    /// numpy's slices: `0:10,::2,...,-1`. Alias `select`.
    slice: Option<String>,
    /// An index or slice for each dimension that has a name, such as `{"isel.time": "0:10", "isel.lat": "5"}` for
    /// `isel.time=0:10&isel.lat=5`; not together with `slice`.
    #[param(rename = "isel.NAME", style = Form, explode, example = json!({}), value_type = Option<std::collections::BTreeMap<String, String>>)]
    isel: Option<String>,
    /// Refuse (409) if the array's shape is another, such as `10,20`.
    expected_shape: Option<String>,
    /// Of a dependent array: read its declaration to the letter.
    strict: Option<String>,
    /// Of a dependent array: read chunks that another array takes for something else.
    allow_collision: Option<String>,
}

/// How elements are written, as `DataQuery` reads it.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query for the API document; `DataQuery` reads it")]
pub(crate) struct FormatParams {
    /// `bytes`, `npy`, `json`, `csv` or `arrow`; wins over `Accept`. Alias `f`.
    format: Option<String>,
    /// Fields of a struct, such as `a,p.x`: of one its elements, of several a struct of them in this order.
    fields: Option<String>,
    /// `little` (default) or `big`, of `bytes` and `npy`.
    endian: Option<String>,
    /// How JSON and CSV write NaN and infinities: `string` (default) or `null`.
    nan: Option<String>,
    /// Whether the first line of CSV says what its columns are: `present` (default) or `absent`.
    header: Option<String>,
}

/// What routes that give elements answer.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes the answers for the API document")]
pub(crate) enum ElementsResponses {
    /// The elements; `Array-Shape` and `Array-Data-Type` say what they are.
    #[response(status = 200, content_type = "application/octet-stream")]
    Elements,
    /// A range of the bytes.
    #[response(status = 206, content_type = "application/octet-stream")]
    Range,
    /// Not modified.
    #[response(status = 304)]
    NotModified,
    /// The selection or a parameter is not understood.
    #[response(status = 400)]
    NotUnderstood,
    /// No such mount, array or chunk.
    #[response(status = 404)]
    NotFound,
    /// None of the formats is acceptable.
    #[response(status = 406)]
    NotAcceptable,
    /// The array has another shape than expected, or its chunks are another's too.
    #[response(status = 409)]
    AnotherShape,
    /// A condition does not hold.
    #[response(status = 412)]
    PreconditionFailed,
    /// Over a limit; the problem suggests slices that fit.
    #[response(status = 413)]
    TooLarge,
    /// The range lies outside the answer.
    #[response(status = 416)]
    RangeNotSatisfiable,
    /// The declaration of a dependent array cannot be used.
    #[response(status = 422)]
    NotUsable,
    /// Stored bytes or metadata are corrupt.
    #[response(status = 500)]
    Corrupt,
    /// A codec, data type or extension is not supported.
    #[response(status = 501)]
    Unsupported,
}

/// The elements of a selection.
///
/// Without `slice` the whole array. Elements are the numbers that are stored: `scale_factor`, `add_offset`, `units` and the
/// like, which CF has in the attributes, are not applied. They are selected by index; labels are in the coordinate arrays.
///
/// - `bytes` (the default) is C order, little-endian, packed: `bool` a byte, dates and time spans `int64`, structs field by
///   field. An element of variable length is its number of bytes, a little-endian `uint32`, and the bytes.
/// - `npy` is a file numpy opens. Text of variable length is as long as the longest.
/// - `json` is nested lists; structs are objects, dates strings in ISO 8601.
/// - `csv` is rows and columns, so of at most two dimensions. The first line names the fields of structs, the array, or the
///   indices of the columns; `header=absent` leaves it out.
/// - `arrow` is a stream of record batches with the outermost dimension as rows: a column `values`, or one for each field of
///   a struct.
#[utoipa::path(
    method(get, head),
    path = DATA.template,
    tag = "data",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("path" = String, Path, description = "Path of the array"),
        SliceParams,
        FormatParams,
    ),
    responses(ElementsResponses)
)]
pub(crate) async fn get_data(State(state): State<AppState>, request: Request) -> Result<Response, Problem> {
    data(&state, &request.into_parts().0).await
}

/// The answer to GET and HEAD of a selection.
pub(crate) async fn data(state: &AppState, head: &Parts) -> Result<Response, Problem> {
    if let Some(answer) = precheck(state, head).await? {
        return Ok(answer);
    }
    let anew = async {
        let started = Instant::now();
        let plan = async {
            let target = NodeTarget::new(state, &DATA, &head.uri, &head.extensions)?;
            let query = match query(&head.uri) {
                Ok(query) => query,
                Err(error) => return Err(Box::pin(about_dimensions(error, &target)).await),
            };
            let rendering = rendering(&head.headers, &query)?;
            let node = open(head, &target, &target.path, &query).await?;
            let array = Arc::clone(node.array()?);
            query.check_shape(&array.metadata().shape)?;
            let subset = query.subset(array.metadata())?;
            Ok::<_, Problem>((ElementsRequest::new(node, subset, rendering, started)?, target))
        };
        let (elements, target) = plan.instrument(tracing::trace_span!(target: "zarrd::span", "plan")).await?;
        elements.respond(state, &target, head).await
    };
    // Its many steps would make every future around it as large.
    Box::pin(anew).await
}

/// The answer that is given before anything is planned: one that is kept, or that there is no room.
async fn precheck(state: &AppState, head: &Parts) -> Result<Option<Response>, Problem> {
    // Whoever has it already may be told so without any room.
    if !head.headers.contains_key(header::IF_NONE_MATCH) {
        state.admission().try_reject(AdmissionRequest::to_elements(head))?;
    }
    CachedResponse::lookup(state.answers(), state.admission(), head).await
}

/// The elements of a selection of the array at the root of a mount.
#[utoipa::path(
    method(get, head),
    path = ROOT_DATA.template,
    tag = "data",
    params(("mount" = String, Path, description = "Name of a mount"), SliceParams, FormatParams),
    responses(ElementsResponses)
)]
pub(crate) async fn get_root_data(state: State<AppState>, request: Request) -> Result<Response, Problem> {
    get_data(state, request).await
}

/// One decoded chunk of the array's chunk grid, trimmed to the array.
///
/// Chunks are addressed as in the default chunk key encoding (`c/0/1`), whatever the array's own is. Of a sharded array
/// a chunk is a whole shard.
#[utoipa::path(
    method(get, head),
    path = CHUNK.template,
    tag = "data",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("path" = String, Path, description = "Path of the array, then `c` and the chunk's coordinates: `a/b/c/0/1`"),
        FormatParams,
    ),
    responses(ElementsResponses)
)]
pub(crate) async fn get_chunk(State(state): State<AppState>, request: Request) -> Result<Response, Problem> {
    chunk(&state, &request.into_parts().0).await
}

/// The answer to GET and HEAD of a decoded chunk.
pub(crate) async fn chunk(state: &AppState, head: &Parts) -> Result<Response, Problem> {
    if let Some(answer) = precheck(state, head).await? {
        return Ok(answer);
    }
    let anew = async {
        let started = Instant::now();
        let target = NodeTarget::new(state, &CHUNK, &head.uri, &head.extensions)?;
        let query = query(&head.uri)?;
        if query.selects() {
            return Err(Problem::from_class(ErrorClass::InvalidRequest)
                .detail("a chunk is answered whole; `/v1/data` takes a `slice`"));
        }
        let rendering = rendering(&head.headers, &query)?;
        let (path, chunk) = split_chunk(&target.path).ok_or_else(no_such_chunk)?;
        let node = open(head, &target, &path, &query).await?;
        let array = Arc::clone(node.array()?);
        query.check_shape(&array.metadata().shape)?;
        let coords = ChunkKeyEncoding::canonical().decode(chunk, array.metadata().shape.len());
        let ranges =
            coords.and_then(|coords| array.grid().chunk_ranges(&coords)).ok_or_else(no_such_chunk)?;
        ElementsRequest::new(node, Subset(ranges), rendering, started)?.respond(state, &target, head).await
    };
    Box::pin(anew).await
}

/// What the query of a URL says of a selection and its form.
fn query(uri: &Uri) -> Result<DataQuery, QueryError> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|error| QueryError::Unreadable(error.body_text()))?;
    DataQuery::parse(&pairs)
}

/// The problem of a query. Whoever asks for a dimension by its name alone is told how to, and where its labels are.
async fn about_dimensions(error: QueryError, target: &NodeTarget) -> Problem {
    let QueryError::Unknown(name) = &error else { return error.into() };
    let dimension = name.strip_prefix("sel.").unwrap_or(name);
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
        "`{name}` is not a parameter here. `{dimension}` is a dimension, and elements are selected by index: \
         `isel.{dimension}=0:10`{}",
        labels.unwrap_or_default()
    );
    Problem::from(error).detail(detail)
}

/// Where the elements of a node of the same mount are.
fn url(target: &NodeTarget, path: &NodePath) -> String {
    let segments: Vec<String> = path.as_str().split('/').map(encode).collect();
    format!("/v1/data/{}/{}", target.mount.name, segments.join("/"))
}

/// The node whose elements are asked for.
async fn open(
    head: &Parts,
    target: &NodeTarget,
    path: &NodePath,
    query: &DataQuery,
) -> Result<Arc<OpenNode>, Problem> {
    let node = match target.opener.open_as(path, reading(query.strict)).await {
        Ok(node) => node,
        Err(error) => {
            let rights = Caller::of(&head.extensions).rights();
            return Err(Box::pin(missing::problem_of(error, rights, target, path)).await);
        }
    };
    check_collision(&node, query.allow_collision)?;
    Ok(node)
}

fn rendering(headers: &HeaderMap, query: &DataQuery) -> Result<Rendering, Problem> {
    let offer = negotiate::choose(headers, query.format.as_deref(), OFFERS)?;
    let style = FormatOptions { format: format_from_offer(offer), endian: query.endian, nan: query.nan };
    Ok(Rendering { offer, style, fields: query.fields.clone(), header: query.header })
}

fn no_such_chunk() -> Problem {
    Problem::from_class(ErrorClass::NotFound).detail(
        "there is no such chunk; after the array's path comes `c` and one decimal number without leading zeros for each \
         dimension, within the grid that `/v1/nodes` shows",
    )
}

//! PUT of `/v1/data` and `/v1/chunk`: elements are written to a selection of an array, or to a chunk.
//!
//! The handler checks everything that is known before the body: the mount, the array, the selection, the format and the length of
//! the body, conditions, and what the write costs. Then `streamed` takes a body of known length band by band, and `held` one that
//! must be in memory as a whole. `write` has the promises of a write.

mod body_format;
mod create;
mod held;
mod outcome;
mod query;
mod request;
mod run;
mod streamed;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use utoipa::{IntoParams, IntoResponses};

use crate::api::data::opening::{no_such_chunk, open};
use crate::api::data::specs::{CHUNK, DATA, ROOT_DATA};
use crate::api::documented::{MountParam, WriteResponses};
use crate::api::label_params::positions;
use crate::api::selection::{ArrayParams, SelectionParams};
use crate::api::store::write::check_writable;
use crate::array::Array;
use crate::chunk::{ChunkKeyEncoding, Subset};
use crate::error::ErrorClass;
use crate::http::chunk_path::split_chunk;
use crate::http::problem::Problem;
use crate::http::route::RouteSpec;
use crate::key::NodePath;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
pub(crate) use body_format::BodyFormat;
pub(crate) use held::{JSON_RATIO, ParseBody};
use outcome::WriteProgress;
pub(crate) use outcome::{over_limit, too_long_to_hold, unparsed};
pub(crate) use query::BodyParams;
use query::PutQuery;
use request::PutRequest;
use run::run;

/// The headers of a write of elements.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes the request for the API document")]
pub(crate) struct PutHeaders {
    /// An entity tag of the same selection, in any format: write only if nothing of it has changed. The selection must lie in one
    /// stored value.
    #[param(rename = "If-Match")]
    if_match: Option<String>,
    /// `sha-256=:…:` or `sha-512=:…:` of the body (RFC 9530); `Repr-Digest` means the same here. The body is held in memory for
    /// that, up to `write.max_whole_size`
    #[param(rename = "Content-Digest")]
    content_digest: Option<String>,
    /// MD5 of the body in base64, as `Content-Digest`
    #[param(rename = "Content-MD5")]
    content_md5: Option<String>,
}

/// Responses to a write of elements.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes the answers for the API document")]
pub(crate) enum PutResponses {
    /// The array of the body is created (`create`). `Location` is its node document.
    #[response(status = 201)]
    Created,
    /// The elements are stored. `Zarrd-Written` counts the stored values: all, those written whole, and those merged with what
    /// was stored. If one value was written, `ETag` is that of the selection in the format of the body.
    #[response(status = 204)]
    Written,
    /// The selection, a parameter or the body is invalid, or the body does not have the type and the shape of the selection;
    /// `written` in the problem document says whether anything was written.
    #[response(status = 400)]
    NotUnderstood,
    /// There is no such array or chunk.
    #[response(status = 404)]
    NotFound,
    /// The mount is read-only.
    #[response(status = 405)]
    ReadOnly,
    /// The array does not have the shape in `expected_shape`, or there is a node where one is to be created.
    #[response(status = 409)]
    AnotherShape,
    /// The write would exceed a limit. `suggested_slices` in the problem document lists slices that fit.
    #[response(status = 413)]
    TooLarge,
    /// Neither `Content-Type` nor `format` names a format of bodies.
    #[response(status = 415)]
    UnknownFormat,
    /// What is stored of the array is corrupt.
    #[response(status = 500)]
    Corrupt,
    /// The array has a codec that cannot encode, or the backend does not check conditions, so that only whole chunks can be
    /// written.
    #[response(status = 501)]
    Unsupported,
    /// Other servers wrote the same values at each attempt, another request makes a node at the path (`create`), or this server is
    /// overloaded.
    #[response(status = 503)]
    Contended,
}

/// Write elements of an array
///
/// Writes the elements of the body to a selection; without `slice`, `isel.NAME` and `sel.NAME`, to the whole array. The body is npy, plain bytes
/// as `format=bytes` returns them, an Arrow stream as `format=arrow` returns it, or JSON: nested lists, or one element for all places. It has the type of the array and the
/// shape of the selection, where an index drops its dimension.
///
/// With `create`, an npy file becomes a new array of its shape and type, which is there once all of it is stored.
///
/// Each stored value (a chunk, or a shard) is written in one step, and no other write of elements is lost, also if several servers
/// write the same values at a time. Several values are not one step. Writing the same elements again is always right.
#[utoipa::path(
    put,
    path = DATA.template,
    tag = "data",
    params(
        MountParam,
        ("path" = String, Path, description = "Path of the array"),
        SelectionParams,
        ArrayParams,
        BodyParams,
        PutHeaders,
    ),
    request_body(content(
        ("application/octet-stream"),
        ("application/x-npy"),
        ("application/json"),
        ("application/vnd.apache.arrow.stream"),
    ), description = "The elements"),
    responses(PutResponses, WriteResponses)
)]
pub(crate) async fn put_data(State(state): State<AppState>, request: Request) -> Result<Response, Problem> {
    write_selection(&state, &DATA, request).await
}

/// Write elements of the array at the root of a mount
#[utoipa::path(
    put,
    path = ROOT_DATA.template,
    tag = "data",
    params(MountParam, SelectionParams, ArrayParams, BodyParams, PutHeaders),
    request_body(content(
        ("application/octet-stream"),
        ("application/x-npy"),
        ("application/json"),
        ("application/vnd.apache.arrow.stream"),
    ), description = "The elements"),
    responses(PutResponses, WriteResponses)
)]
pub(crate) async fn put_root_data(
    State(state): State<AppState>,
    request: Request,
) -> Result<Response, Problem> {
    write_selection(&state, &ROOT_DATA, request).await
}

/// Write one chunk
///
/// Writes all elements of one chunk that lie within the array. The path addresses chunks in the default chunk key encoding, as for
/// reading.
#[utoipa::path(
    put,
    path = CHUNK.template,
    tag = "data",
    params(
        MountParam,
        ("path" = String, Path, description = "Path of the array, then `c` and the chunk's coordinates: `a/b/c/0/1`"),
        ArrayParams,
        BodyParams,
        PutHeaders,
    ),
    request_body(content(
        ("application/octet-stream"),
        ("application/x-npy"),
        ("application/json"),
        ("application/vnd.apache.arrow.stream"),
    ), description = "The elements"),
    responses(PutResponses, WriteResponses)
)]
pub(crate) async fn put_chunk(State(state): State<AppState>, request: Request) -> Result<Response, Problem> {
    let target = NodeTarget::to_write(&state.mounts, &CHUNK, &request)?;
    check_writable(&target.mount)?;
    let query = put_query(&request)?;
    if query.selection.selects() {
        return Err(Problem::from_class(ErrorClass::InvalidRequest)
            .detail("a chunk is written whole; use `/v1/data` for a part of the array")
            .extension("written", false));
    }
    let (path, chunk) = split_chunk(&target.path).ok_or_else(no_such_chunk)?;
    let (path, chunk) = (path, chunk.to_owned());
    let subset_of = move |array: &Array, _: &SelectionParams| {
        let coords = ChunkKeyEncoding::canonical().decode(&chunk, array.metadata().shape.len());
        let ranges = coords.and_then(|coords| array.grid().chunk_ranges(&coords));
        ranges.map(Subset).ok_or_else(no_such_chunk)
    };
    // Boxed, because the large future would enlarge every future around it.
    Box::pin(write(&state, target, path, query, subset_of, request)).await
}

/// The query of a request, of which nothing is written where it is invalid.
fn put_query(request: &Request) -> Result<PutQuery, Problem> {
    PutQuery::from_uri(request.uri()).map_err(|error| Problem::from(error).extension("written", false))
}

async fn write_selection(state: &AppState, spec: &RouteSpec, request: Request) -> Result<Response, Problem> {
    let target = NodeTarget::to_write(&state.mounts, spec, &request)?;
    check_writable(&target.mount).map_err(|problem| problem.allow(target.mount.element_methods()))?;
    let query = put_query(&request)?;
    if query.body.creates() {
        return Box::pin(create::create(state, target, &query, request)).await;
    }
    let path = target.path.clone();
    let subset_of = |array: &Array, selection: &SelectionParams| Ok(selection.subset(array.metadata())?);
    Box::pin(write(state, target, path, query, subset_of, request)).await
}

/// Writes the body of a request to a subset of the array at a path.
async fn write(
    state: &AppState,
    target: NodeTarget,
    path: NodePath,
    query: PutQuery,
    subset_of: impl FnOnce(&Array, &SelectionParams) -> Result<Subset, Problem>,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let prepare = async {
        let node = open(&head, &target, &path, &query.array).await?;
        let array = Arc::clone(node.array()?);
        query.array.check_shape(&array.metadata().shape)?;
        let request = (state, &head, &target);
        let positions = positions(request, &query.selection, &path, array.metadata(), None).await?;
        let selection = positions.as_ref().map_or(&query.selection, |positions| &positions.selection);
        let subset = subset_of(&array, selection)?;
        PutRequest::new((state, &target), &node, (subset, positions), &query, &head)
    };
    let request = prepare.await.map_err(|problem| problem.extension("written", false))?;
    run(&request, state, &head, body, &mut WriteProgress::default()).await
}

//! POST of `/v1/data`: a selection that does not fit in a URL is read, or, with `append`, elements are added to an array.

use axum::extract::{Request, State};
use axum::response::Response;
use utoipa::{IntoParams, IntoResponses};

use super::append::{AppendParams, AppendedSchema, append};
use super::put::BodyParams;
use super::query_body::{self, SelectionSchema};
use super::specs::{DATA, ROOT_DATA};
use crate::api::documented::{MountParam, WriteResponses};
use crate::api::selection::ArrayParams;
use crate::http::append_query;
use crate::http::problem::Problem;
use crate::http::route::RouteSpec;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;

/// The headers of an append.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes the request for the API document")]
pub(crate) struct AppendHeaders {
    /// A text that the client makes up for this append, such as a UUID. Sent again under the same key, the elements are not
    /// appended again, and the response is the same. The last 256 keys of an array are kept.
    #[param(rename = "Idempotency-Key")]
    idempotency_key: Option<String>,
    /// `sha-256=:…:` or `sha-512=:…:` of the body (RFC 9530); `Repr-Digest` means the same here.
    #[param(rename = "Content-Digest")]
    content_digest: Option<String>,
}

/// Responses to an append.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes the answers for the API document")]
pub(crate) enum AppendResponses {
    /// The elements are appended, or those of the selection follow.
    #[response(status = 200)]
    Appended(AppendedSchema),
    /// A parameter or the body is invalid, or the body does not have the type and the lengths of the array.
    #[response(status = 400)]
    NotUnderstood,
    /// There is no such array.
    #[response(status = 404)]
    NotFound,
    /// The mount is read-only.
    #[response(status = 405)]
    ReadOnly,
    /// The array does not have the length in `at` (`not-the-end`; `length` in the problem document), or the shape in
    /// `expected_shape`.
    #[response(status = 409)]
    NotTheEnd,
    /// The body would exceed a limit.
    #[response(status = 413)]
    TooLarge,
    /// Neither `Content-Type` nor `format` names a format of bodies.
    #[response(status = 415)]
    UnknownFormat,
    /// The key was used to append other elements.
    #[response(status = 422)]
    KeyUsed,
    /// The array cannot grow (it is declared by another one, or has chunks of different lengths), a codec of it cannot
    /// encode, or the backend does not check conditions.
    #[response(status = 501)]
    Unsupported,
    /// Another server appends to the array, or this server is overloaded.
    #[response(status = 503)]
    Contended,
}

/// Read a selection that does not fit in a URL, or append elements to an array
///
/// Without `append`, the body is a JSON object with the parameters of GET as members. `isel` and `sel` are objects with a member for
/// each dimension, and take lists; `points` selects elements one by one, and `where` those whose labels satisfy conditions.
/// Parameters of GET in the URL count too. It is a read: the response is that of GET, without ranges, and where an entity tag of
/// `If-None-Match` matches, it is a 412.
///
/// With `append`, adds the elements of the body to the end of the dimension `append`. The body is npy, plain bytes or JSON, and is as long as
/// the array along each other dimension; npy of a single index may leave the dimension out.
///
/// A body in parts (`multipart/form-data`) is for several arrays of the group at the path: all of them grow, or none does.
///
/// Readers see nothing of it before, and all of it afterwards. Appends of many clients, through several servers, are all there, each
/// once. One whose response was lost can be sent again under the same `Idempotency-Key`, or with the same `at`.
#[utoipa::path(
    post,
    path = DATA.template,
    tag = "data",
    params(
        MountParam,
        ("path" = String, Path, description = "Path of the array"),
        AppendParams,
        ArrayParams,
        BodyParams,
        AppendHeaders,
    ),
    request_body(content(
        ("application/octet-stream"),
        ("application/x-npy"),
        (SelectionSchema = "application/json"),
        ("multipart/form-data"),
    ), description = "The selection; or with `append` the elements, which may be JSON too; of several arrays of a group, a part for each, named by the array's path below the group"),
    responses(AppendResponses, WriteResponses)
)]
pub(crate) async fn post_data(State(state): State<AppState>, request: Request) -> Result<Response, Problem> {
    post(&state, &DATA, request).await
}

/// Read a selection of the array at the root of a mount that does not fit in a URL, or append elements to it
#[utoipa::path(
    post,
    path = ROOT_DATA.template,
    tag = "data",
    params(MountParam, AppendParams, ArrayParams, BodyParams, AppendHeaders),
    request_body(content(
        ("application/octet-stream"),
        ("application/x-npy"),
        (SelectionSchema = "application/json"),
        ("multipart/form-data"),
    ), description = "The selection; or with `append` the elements, which may be JSON too; of several arrays of a group, a part for each, named by the array's path below the group"),
    responses(AppendResponses, WriteResponses)
)]
pub(crate) async fn post_root_data(
    State(state): State<AppState>,
    request: Request,
) -> Result<Response, Problem> {
    post(&state, &ROOT_DATA, request).await
}

async fn post(state: &AppState, spec: &RouteSpec, request: Request) -> Result<Response, Problem> {
    if append_query::appends(request.uri()) {
        let target = NodeTarget::to_write(&state.mounts, spec, &request)?;
        // Boxed, because the large future would enlarge every future around it.
        return Box::pin(append(state, target, request)).await;
    }
    let target = NodeTarget::new(&state.mounts, spec, request.uri(), request.extensions())?;
    query_body::respond(state, target, request).await
}

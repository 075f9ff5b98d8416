//! `GetObject` and `HeadObject`: reads of a value, as by `/store`; and `ListParts` of an upload to it.
//!
//! Ranges, conditions and headers are those of `/store`. The only difference: a key that does not exist is an error even if
//! it is a prefix, as S3 has no redirects to listings.

use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;

use super::list_uploads::list_parts;
use super::tags::quote;
use crate::api::store::{consolidated, get_value, head_value};
use crate::error::ErrorClass;
use crate::http::path::KeyOrPrefix;
use crate::http::problem::Problem;
use crate::http::route::{MediaTypes, Resource, RouteSpec};
use crate::http::s3_query::{Query, S3QueryError};
use crate::services::extract::StoreTarget;
use crate::services::state::AppState;

/// A value as an S3 object.
pub(crate) const OBJECT: RouteSpec =
    RouteSpec::new("/s3/{mount}/{*key}", Resource::Object).speaks_s3().media_types(MediaTypes::Values);

/// Read a value through the S3 API
///
/// `GetObject` and `HeadObject`, path-style; `ListParts` with `uploadId`. Signatures are checked once the server has a
/// credential of any kind; other `x-amz-*` headers are accepted and ignored. Errors are S3 error documents in XML.
#[utoipa::path(
    method(get, head),
    path = OBJECT.template,
    tag = "s3",
    params(
        ("mount" = String, Path, description = "Name of a mount: the bucket"),
        ("key" = String, Path, description = "A store key"),
        ("Range" = Option<String>, Header, description = "`bytes=0-99`, `bytes=100-` or `bytes=-20`"),
        ("If-Match" = Option<String>, Header, description = "A list of entity tags, or `*`"),
        ("If-None-Match" = Option<String>, Header, description = "A list of entity tags, or `*`"),
        ("uploadId" = Option<String>, Query, description = "`ListParts` of this upload to a writable mount"),
    ),
    responses(
        (status = 200, description = "The whole value", content_type = "application/octet-stream"),
        (status = 206, description = "The requested byte range of the value", content_type = "application/octet-stream"),
        (status = 304, description = "The value still has an entity tag of `If-None-Match`"),
        (status = 400, description = "`InvalidArgument`: the path is not a valid store key", content_type = "application/xml"),
        (status = 404, description = "`NoSuchBucket` or `NoSuchKey`", content_type = "application/xml"),
        (status = 412, description = "`PreconditionFailed`", content_type = "application/xml"),
        (status = 416, description = "`InvalidRange`", content_type = "application/xml"),
        (status = 501, description = "`NotImplemented`: the operation is not supported", content_type = "application/xml"),
        (status = 502, description = "`InternalError`: the backend failed", content_type = "application/xml"),
        (status = 503, description = "`SlowDown`: the server is overloaded", content_type = "application/xml"),
        (status = 504, description = "`InternalError`: the backend timed out", content_type = "application/xml"),
    )
)]
pub(crate) async fn get_object(
    State(state): State<AppState>,
    target: StoreTarget,
    request: Request,
) -> Result<Response, Problem> {
    let (mut head, _) = request.into_parts();
    quote(&mut head.headers);
    let query = Query::of(&head.uri)?;
    if query.value("versionId")?.is_some_and(|version| version != "null") {
        return Err(
            S3QueryError::Value { name: "versionId", takes: "`null`: values have one version here" }.into()
        );
    }
    query.reject(&["uploads"])?;
    let mount = &target.mount;
    if query.has("uploadId") && mount.writable {
        let KeyOrPrefix::Key(key) = &target.place else { return Err(no_such_key()) };
        return list_parts(&state, mount, key, &query).await;
    }
    query.reject(&["uploadId", "partNumber"])?;
    let KeyOrPrefix::Key(key) = &target.place else {
        return Err(no_such_key());
    };
    let nodes = || target.hierarchy(&state.mounts);
    if let Some(made) =
        consolidated::answer(&state.traffic.admission, (mount, nodes, false), key, &head).await?
    {
        return Ok(made);
    }
    let found = match head.method {
        Method::HEAD => head_value(mount, key, &head.headers).await?,
        _ => get_value(mount, key, &head.headers).await?,
    };
    found.ok_or_else(no_such_key)
}

fn no_such_key() -> Problem {
    Problem::from_class(ErrorClass::NotFound).detail("the store has no value of this key")
}

//! Operations on buckets: `ListBuckets`, `HeadBucket`, `ListObjects`, `GetBucketLocation`, `GetBucketVersioning`, and
//! `CreateBucket` of one that is there.
//!
//! Every mount is a bucket without a real owner, in the region that SDKs assume, and without object versions. Only listing
//! reads from a store.

use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, Method, Uri, header};
use axum::response::{IntoResponse, Response};

use super::list::{ListObjects, list};
use super::list_uploads::list_uploads;
use super::xml::Xml;
use crate::api::service::known;
use crate::auth::caller::Caller;
use crate::http::problem::Problem;
use crate::http::route::{Resource, RouteSpec};
use crate::http::s3_query::{Query, S3QueryError};
use crate::services::extract::StoreTarget;
use crate::services::state::AppState;

/// The mounts as S3 buckets.
pub(crate) const BUCKETS: RouteSpec = RouteSpec::new("/s3/", Resource::Mounts).with_slash("/s3").speaks_s3();

/// A mount as an S3 bucket.
pub(crate) const BUCKET: RouteSpec =
    RouteSpec::new("/s3/{mount}", Resource::Bucket).with_slash("/s3/{mount}/").speaks_s3();

const X_AMZ_BUCKET_REGION: HeaderName = HeaderName::from_static("x-amz-bucket-region");
/// The region that an empty `LocationConstraint` means.
const REGION: HeaderValue = HeaderValue::from_static("us-east-1");

/// List the mounts through the S3 API
///
/// `ListBuckets`: the mounts that the caller may see.
#[utoipa::path(
    method(get, head),
    path = BUCKETS.template,
    tag = "s3",
    responses(
        (status = 200, description = "`ListAllMyBucketsResult`: the mounts", content_type = "application/xml"),
        (status = 501, description = "`NotImplemented`: the operation is not supported", content_type = "application/xml"),
    )
)]
pub(crate) async fn list_buckets(
    State(state): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    Query::of(&uri)?;
    let answer = Xml::answer("ListAllMyBucketsResult", |xml| {
        xml.element("Owner", |xml| xml.text("ID", "zarrd"));
        xml.element("Buckets", |xml| {
            for mount in known(&state.mounts, &caller) {
                xml.element("Bucket", |xml| xml.text("Name", &mount.name));
            }
        });
    });
    Ok(answer.into_response())
}

/// List the keys of a mount through the S3 API
///
/// `ListObjectsV2` with `list-type=2`, otherwise `ListObjects`. `?location` is `GetBucketLocation`, `?versioning` is
/// `GetBucketVersioning`, and `?uploads` of a writable mount is `ListMultipartUploads`. HEAD is `HeadBucket`: it checks that the mount exists, and lists nothing.
#[utoipa::path(
    method(get, head),
    path = BUCKET.template,
    tag = "s3",
    params(
        ("mount" = String, Path, description = "Name of a mount: the bucket"),
        ("list-type" = Option<String>, Query, description = "`2`: list as `ListObjectsV2`"),
        ("prefix" = Option<String>, Query, description = "Text with which the keys begin; it need not end in `/`"),
        ("delimiter" = Option<String>, Query, description = "`/`: group the keys below each further `/` into one common prefix"),
        ("max-keys" = Option<u32>, Query, description = "Maximum number of keys and common prefixes on the page; more than 1000 counts as 1000"),
        ("continuation-token" = Option<String>, Query,
            description = "`NextContinuationToken` of the previous page (`list-type=2`)"),
        ("start-after" = Option<String>, Query, description = "List only keys that sort after this text (`list-type=2`)"),
        ("marker" = Option<String>, Query, description = "List only keys that sort after this text (without `list-type`)"),
        ("encoding-type" = Option<String>, Query, description = "`url`: percent-encode keys and prefixes"),
        ("location" = Option<String>, Query, description = "`GetBucketLocation`"),
        ("versioning" = Option<String>, Query, description = "`GetBucketVersioning`: mounts have no versioning"),
        ("uploads" = Option<String>, Query, description = "`ListMultipartUploads`: the unfinished uploads to keys that begin with `prefix`"),
    ),
    responses(
        (status = 200, description = "`ListBucketResult`, `LocationConstraint` or `VersioningConfiguration`",
            content_type = "application/xml"),
        (status = 400, description = "`InvalidArgument`: the value of a parameter is invalid", content_type = "application/xml"),
        (status = 404, description = "`NoSuchBucket`: no mount has this name", content_type = "application/xml"),
        (status = 405, description = "`MethodNotAllowed`: the backend cannot list", content_type = "application/xml"),
        (status = 501, description = "`NotImplemented`: the operation is not supported, or `delimiter` is not `/`",
            content_type = "application/xml"),
        (status = 502, description = "`InternalError`: the backend failed", content_type = "application/xml"),
        (status = 503, description = "`SlowDown`: the server is overloaded", content_type = "application/xml"),
    )
)]
pub(crate) async fn get_bucket(
    State(state): State<AppState>,
    target: StoreTarget,
    method: Method,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = Query::of(&uri)?;
    let region = [(X_AMZ_BUCKET_REGION, REGION)];
    let answer = if method == Method::HEAD {
        return Ok((region, [(header::CONTENT_TYPE, "application/xml")]).into_response());
    } else if query.has("location") {
        Xml::answer("LocationConstraint", |_| {})
    } else if query.has("versioning") {
        Xml::answer("VersioningConfiguration", |_| {})
    } else if query.has("uploads") {
        // A read-only mount has no place for parts.
        if !target.mount.writable {
            return Err(S3QueryError::Operation("uploads").into());
        }
        return list_uploads(&state, &target.mount, &query).await;
    } else {
        list(&target.mount, ListObjects::parse(&query)?).await?
    };
    Ok((region, answer).into_response())
}

/// Create a bucket that is there
///
/// `CreateBucket`: buckets are the mounts of the configuration, and none is created. Of one that is there, the response is
/// that of S3 in its oldest region, so that tools which create what they write to go on.
#[utoipa::path(
    put,
    path = BUCKET.template,
    tag = "s3",
    params(("mount" = String, Path, description = "Name of a mount: the bucket")),
    responses(
        (status = 200, description = "The mount is there"),
        (status = 404, description = "`NoSuchBucket`: no mount has this name", content_type = "application/xml"),
        (status = 501, description = "`NotImplemented`: the operation is not supported", content_type = "application/xml"),
    )
)]
pub(crate) async fn put_bucket(target: StoreTarget, uri: Uri) -> Result<Response, Problem> {
    Query::of(&uri)?.reject(&["uploads"])?;
    let location = HeaderValue::try_from(format!("/s3/{}", target.mount.name));
    let location = location.unwrap_or(HeaderValue::from_static("/"));
    Ok(([(X_AMZ_BUCKET_REGION, REGION), (header::LOCATION, location)]).into_response())
}

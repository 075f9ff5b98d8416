//! Operations on buckets: `ListBuckets`, `HeadBucket`, `ListObjects`, `GetBucketLocation`, `GetBucketVersioning`.
//!
//! Every mount is a bucket of no owner, in the region that SDKs assume, and has no versions. Only listing touches a
//! store.

use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, Method, Uri, header};
use axum::response::{IntoResponse, Response};

use super::list::{ListObjects, list};
use super::xml::Xml;
use crate::api::service::known;
use crate::auth::caller::Caller;
use crate::http::problem::Problem;
use crate::http::route::{Resource, RouteSpec};
use crate::http::s3_query::Query;
use crate::services::extract::StoreTarget;
use crate::services::state::AppState;

/// The mounts as buckets of S3.
pub(crate) const BUCKETS: RouteSpec = RouteSpec::new("/s3/", Resource::Mounts).with_slash("/s3").speaks_s3();

/// A mount as a bucket of S3.
pub(crate) const BUCKET: RouteSpec =
    RouteSpec::new("/s3/{mount}", Resource::Bucket).with_slash("/s3/{mount}/").speaks_s3();

const X_AMZ_BUCKET_REGION: HeaderName = HeaderName::from_static("x-amz-bucket-region");
/// The region that an empty `LocationConstraint` means.
const REGION: HeaderValue = HeaderValue::from_static("us-east-1");

/// List the mounts as S3 does
///
/// `ListBuckets`.
#[utoipa::path(
    method(get, head),
    path = BUCKETS.template,
    tag = "s3",
    responses(
        (status = 200, description = "`ListAllMyBucketsResult`: the mounts", content_type = "application/xml"),
        (status = 501, description = "`NotImplemented`: another operation", content_type = "application/xml"),
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
            for mount in known(&state, &caller) {
                xml.element("Bucket", |xml| xml.text("Name", &mount.name));
            }
        });
    });
    Ok(answer.into_response())
}

/// List a mount as S3 does
///
/// `ListObjectsV2` with `list-type=2`, else `ListObjects`; `?location` and `?versioning` are answered too. HEAD is
/// `HeadBucket`: it says that there is such a mount, and lists nothing.
#[utoipa::path(
    method(get, head),
    path = BUCKET.template,
    tag = "s3",
    params(
        ("mount" = String, Path, description = "Name of a mount: the bucket"),
        ("list-type" = Option<String>, Query, description = "`2`: list as `ListObjectsV2`"),
        ("prefix" = Option<String>, Query, description = "What the keys begin with: any text"),
        ("delimiter" = Option<String>, Query, description = "`/`: tell what lies deeper by its common prefix alone"),
        ("max-keys" = Option<u32>, Query, description = "Most keys and common prefixes on the page; at most 1000"),
        ("continuation-token" = Option<String>, Query,
            description = "`NextContinuationToken` of the page before (`list-type=2`)"),
        ("start-after" = Option<String>, Query, description = "List what comes after this text (`list-type=2`)"),
        ("marker" = Option<String>, Query, description = "List what comes after this text (without `list-type`)"),
        ("encoding-type" = Option<String>, Query, description = "`url`: percent-encode keys and prefixes"),
        ("location" = Option<String>, Query, description = "`GetBucketLocation`"),
        ("versioning" = Option<String>, Query, description = "`GetBucketVersioning`: there is none"),
    ),
    responses(
        (status = 200, description = "`ListBucketResult`, `LocationConstraint` or `VersioningConfiguration`",
            content_type = "application/xml"),
        (status = 400, description = "`InvalidArgument`: a parameter's value", content_type = "application/xml"),
        (status = 404, description = "`NoSuchBucket`: there is no such mount", content_type = "application/xml"),
        (status = 405, description = "`MethodNotAllowed`: the backend cannot list", content_type = "application/xml"),
        (status = 501, description = "`NotImplemented`: another operation, or another `delimiter` than `/`",
            content_type = "application/xml"),
        (status = 502, description = "`InternalError`: the backend failed", content_type = "application/xml"),
        (status = 503, description = "`SlowDown`", content_type = "application/xml"),
    )
)]
pub(crate) async fn get_bucket(target: StoreTarget, method: Method, uri: Uri) -> Result<Response, Problem> {
    let query = Query::of(&uri)?;
    let region = [(X_AMZ_BUCKET_REGION, REGION)];
    let answer = if method == Method::HEAD {
        return Ok((region, [(header::CONTENT_TYPE, "application/xml")]).into_response());
    } else if query.has("location") {
        Xml::answer("LocationConstraint", |_| {})
    } else if query.has("versioning") {
        Xml::answer("VersioningConfiguration", |_| {})
    } else {
        list(&target.mount, ListObjects::parse(&query)?).await?
    };
    Ok((region, answer).into_response())
}

//! The S3 dialect: the read operations of Amazon's S3 REST API over the same mounts, path-style and anonymous.
//!
//! A mount is a bucket: `GET /s3/`, `GET|HEAD /s3/{mount}` and `GET|HEAD /s3/{mount}/{key}` are `ListBuckets`,
//! `HeadBucket`, `ListObjects` of both versions, `GetBucketLocation`, `GetBucketVersioning`, `GetObject` and
//! `HeadObject`. Values are read exactly as by `/store`. `list` pages through keys, `s3_query` and `xml` parse and write
//! the formats of the dialect, and `error` has its failures. Signatures and `x-amz-*` headers are accepted and ignored.
//! The dialect has no write operations.

pub(crate) mod bucket;
pub(crate) mod object;

mod error;
mod list;
mod page;
mod xml;

pub(crate) use error::ErrorFormat;

use utoipa_axum::router::UtoipaMethodRouter;
use utoipa_axum::routes;

use crate::services::route::Route;
use crate::services::state::AppState;
use error::other_method;

/// The routes of S3. A mount is a bucket, and a trailing slash after its name has no meaning.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(&bucket::BUCKETS, with_s3_errors(routes!(bucket::list_buckets))),
        Route::new(&bucket::BUCKET, with_s3_errors(routes!(bucket::get_bucket))),
        Route::new(&object::OBJECT, with_s3_errors(routes!(object::get_object))),
    ]
}

/// Adds a fallback to a route for all other methods, with S3 errors.
fn with_s3_errors((schemas, paths, methods): UtoipaMethodRouter<AppState>) -> UtoipaMethodRouter<AppState> {
    (schemas, paths, methods.fallback(other_method))
}

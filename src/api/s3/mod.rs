//! The S3 dialect: operations of Amazon's S3 REST API over the same mounts, path-style.
//!
//! A mount is a bucket. `bucket` and `list` have the operations on buckets, `object` reads a value and `write` changes one,
//! both as `/store` does. `payload` is the body of a request: signed, in chunks, with checksums. `multipart` has the uploads
//! in parts and `list_uploads` lists them; `copy` and `delete` have `CopyObject` and `DeleteObjects`. `xml` and `xml_body`
//! write and read the documents of the dialect, `s3_query` the queries, and `error` has its failures. Signatures are for
//! `auth`. Metadata of objects, access lists, versions and all else of S3 is not kept: values have none of it.

pub(crate) mod bucket;
pub(crate) mod object;

mod copy;
mod delete;
mod error;
mod list;
mod list_uploads;
mod multipart;
mod page;
mod payload;
mod tags;
mod write;
mod xml;
mod xml_body;

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
        Route::new(
            &bucket::BUCKET,
            with_s3_errors(routes!(bucket::get_bucket, bucket::put_bucket, delete::post_bucket)),
        ),
        Route::new(&object::OBJECT, with_s3_errors(object_methods())),
    ]
}

fn object_methods() -> UtoipaMethodRouter<AppState> {
    routes!(object::get_object, write::put_object, write::post_object, write::delete_object)
}

/// Adds a fallback to a route for all other methods, with S3 errors.
fn with_s3_errors((schemas, paths, methods): UtoipaMethodRouter<AppState>) -> UtoipaMethodRouter<AppState> {
    (schemas, paths, methods.fallback(other_method))
}

//! The routes of rechunked hierarchies: what `store` answers of a mount, of one that is made anew by a recipe in the path.
//!
//! Nothing is answered otherwise: ranges, conditions, listings and problems are those of `store` and `list`. All of the
//! recipe stands in the path, so that every cache on the way knows what it keeps. What is made of it is the room
//! `views`' business.

use axum::extract::{Request, State};
use axum::http::Uri;
use axum::response::Response;

use super::store;
use super::store::list;
use super::store::listing_page::ListingPage;
use crate::api::store::with_other_methods;
use crate::http::consolidated_query::ConsolidatedQuery;
use crate::http::path::KeyOrPrefix;
use crate::http::problem::Problem;
use crate::http::route::{MediaTypes, Resource, RouteSpec};
use crate::services::extract::StoreTarget;
use crate::services::route::Route;
use crate::services::state::AppState;
use utoipa_axum::routes;

/// A key of a rechunked mount, or a prefix.
pub(crate) const KEY: RouteSpec =
    RouteSpec::new("/rechunk/{mount}/{chunks}/{codec}/{*key}", Resource::Rechunked)
        .media_types(MediaTypes::ValuesAndListings);

/// The root of a rechunked mount.
pub(crate) const ROOT: RouteSpec = RouteSpec::new("/rechunk/{mount}/{chunks}/{codec}/", Resource::Rechunked);

/// A rechunked mount without a slash: a redirect to its root.
pub(crate) const MOUNT: RouteSpec = RouteSpec::new("/rechunk/{mount}/{chunks}/{codec}", Resource::Rechunked);

/// The routes of rechunked mounts.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(&KEY, with_other_methods(routes!(get_key))),
        Route::new(&ROOT, with_other_methods(routes!(list_root))),
        Route::new(&MOUNT, with_other_methods(routes!(get_root))),
    ]
}

/// Read a value of a hierarchy with other chunks, or list a prefix
///
/// Every array that can be read, in chunks of another shape, by another codec, as another data type, decoded and encoded
/// on the way. Each is an array of Zarr v3 and one of v2 at once: `zarr.json` and `c/0/1`, `.zarray` and `0/1`. A chunk of
/// which nothing is stored is 404, which to a Zarr client means fill values. Before the key there may be a segment
/// `dtype=` and a type that real numbers are cast to: `dtype=safe` for what browsers hold (float16 as float32, integers of
/// 64 bits as float64), or a name such as `dtype=float32`. Only between floats is a number ever rounded; any other that
/// the type has not makes the chunk 501. A key of which the first segment begins with `dtype=` is asked for behind
/// `dtype=stored`.
///
/// Ranges, conditions, redirects and listings are those of `/store`. The view is read-only.
#[utoipa::path(
    method(get, head),
    path = KEY.template,
    tag = "views",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("chunks" = String, Path, description = "The shape of chunks, such as `64,64,64`, for arrays of as many \
            dimensions; no chunk is longer than its array. `auto`, and arrays of other ranks, have boxes of up to 1 MiB"),
        ("codec" = String, Path, description = "`raw`, `zstd`, `zstd-1` to `zstd-19`, `gzip`, `gzip-1` to `gzip-9`, \
            `blosc-lz4`, `blosc-zstd`, or either with `-1` to `-9` behind it"),
        ("key" = String, Path, description = "A key of the hierarchy, or a prefix with a slash at its end; perhaps \
            behind a data type"),
        list::ListQuery,
        ConsolidatedQuery,
        ("Range" = Option<String>, Header, description = "`bytes=0-99`, `bytes=100-` or `bytes=-20`"),
        ("If-Match" = Option<String>, Header, description = "A list of entity tags, or `*`"),
        ("If-None-Match" = Option<String>, Header, description = "A list of entity tags, or `*`"),
        ("If-Range" = Option<String>, Header, description = "Entity tag of the value to which `Range` applies; a changed value is returned whole"),
    ),
    responses(
        (status = 200, description = "The whole value", content_type = "application/octet-stream"),
        (status = 206, description = "The requested byte range of the value", content_type = "application/octet-stream"),
        (status = 301, description = "The key is a prefix; redirect to its listing at the path with a trailing slash"),
        (status = 304, description = "The value still has an entity tag of `If-None-Match`; no chunk was decoded"),
        (status = 400, description = "The path is not a valid store key, or there are no such chunks, codec or data type"),
        (status = 404, description = "The view has no value of this key"),
        (status = 405, description = "Rechunked views are read-only"),
        (status = 412, description = "The value has none of the entity tags of `If-Match`"),
        (status = 413, description = "A chunk, or what it is made of, is over the limits, by the metadata alone"),
        (status = 416, description = "The range starts after the end of the value"),
        (status = 500, description = "The stored bytes do not match the metadata"),
        (status = 501, description = "The array cannot be decoded, or an element is not of the type that is asked for"),
        (status = 502, description = "The backend failed"),
        (status = 503, description = "The server is overloaded; retry after the time in `Retry-After`"),
        (status = 504, description = "The backend timed out"),
    )
)]
pub(crate) async fn get_key(
    State(state): State<AppState>,
    target: StoreTarget,
    request: Request,
) -> Result<Response, Problem> {
    let head = request.into_parts().0;
    match &target.place {
        // The recipe's last segment was taken for a key.
        KeyOrPrefix::Prefix(prefix) if prefix.is_root() && !head.uri.path().ends_with('/') => {
            Ok(to_root(&target, &head.uri))
        }
        _ => store::read_or_list(&state, &target, &head).await,
    }
}

/// List the root of a hierarchy with other chunks
#[utoipa::path(
    method(get, head),
    path = ROOT.template,
    tag = "views",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("chunks" = String, Path, description = "The shape of chunks, or `auto`"),
        ("codec" = String, Path, description = "What they are encoded by"),
        list::ListQuery,
    ),
    responses(
        (status = 200, description = "The listing", content(
            (ListingPage = "application/json"),
            (String = "text/html"),
        )),
        (status = 400, description = "There are no such chunks or codec"),
        (status = 404, description = "No mount has this name"),
        (status = 405, description = "The backend cannot list"),
        (status = 413, description = "An array has more chunks side by side than are listed"),
        (status = 502, description = "The backend failed"),
    )
)]
pub(crate) async fn list_root(
    State(state): State<AppState>,
    target: StoreTarget,
    request: Request,
) -> Result<Response, Problem> {
    store::read_or_list(&state, &target, &request.into_parts().0).await
}

/// Redirect to the root of a hierarchy with other chunks
#[utoipa::path(
    method(get, head),
    path = MOUNT.template,
    tag = "views",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("chunks" = String, Path, description = "The shape of chunks, or `auto`"),
        ("codec" = String, Path, description = "What they are encoded by"),
    ),
    responses(
        (status = 301, description = "Redirect to the listing of the root at the path with a trailing slash"),
        (status = 400, description = "There are no such chunks or codec"),
    )
)]
pub(crate) async fn get_root(target: StoreTarget, uri: Uri) -> Response {
    to_root(&target, &uri)
}

fn to_root(target: &StoreTarget, uri: &Uri) -> Response {
    let base = target.base();
    // As it was asked for, escapes and all.
    store::redirect(&format!("./{}/", base.rsplit('/').next().unwrap_or_default()), uri)
}

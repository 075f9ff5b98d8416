//! The routes of rechunked hierarchies: the `store` routes over a mount whose arrays are re-encoded by a recipe in the path.
//!
//! Ranges, conditions, listings and problems are those of `store` and `list`. The whole recipe is in the path, so that
//! every HTTP cache between client and server can key on the URL. The `views` module does the re-encoding.

use axum::http::Uri;
use axum::response::Response;
use utoipa::IntoParams;

use super::documented::{
    ListingResponses, MountParam, ReadHeaders, RootRedirect, ValueResponses, ViewResponses,
};
use super::store;
use super::store::{ListQuery, ReadRequest, with_other_methods};
use crate::http::consolidated_query::ConsolidatedQuery;
use crate::http::path::KeyOrPrefix;
use crate::http::problem::Problem;
use crate::http::route::{MediaTypes, Resource, RouteSpec};
use crate::services::extract::StoreTarget;
use crate::services::route::Route;
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

/// The root of a hierarchy with other chunks, in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path for the API document")]
pub(crate) struct RootPath {
    /// Name of a mount
    mount: String,
    /// Chunk shape in elements, or `auto`
    chunks: String,
    /// Codec of the chunks
    codec: String,
}

/// Read a value of a hierarchy with other chunks, or list a prefix
///
/// Every readable array appears with another chunk shape, codec and, if requested, data type. The server decodes and
/// encodes chunks on demand. Each array is available in Zarr v3 (`zarr.json`, `c/0/1`) and in Zarr v2 (`.zarray`, `0/1`).
/// A chunk for which nothing is stored is a 404, which a Zarr client reads as fill values.
///
/// An optional segment `dtype=` before the key names a data type to which real numbers are cast. `dtype=safe` selects types
/// that browsers support: float32 for float16, float64 for 64-bit integers. `dtype=float32` and the like name one type.
/// Numbers are rounded only between floating-point types; any other number that the type cannot represent makes the chunk
/// a 501. A key whose first segment begins with `dtype=` is read with the segment `dtype=stored` before it.
///
/// Ranges, conditions, redirects and listings are those of `/store`. The view is read-only.
#[utoipa::path(
    method(get, head),
    path = KEY.template,
    operation_id = "get_rechunked_key",
    tag = "views",
    params(
        MountParam,
        ("chunks" = String, Path, description = "Chunk shape in elements, such as `64,64,64`, for arrays of that \
            number of dimensions, limited to the shape of the array. With `auto`, and for arrays of another rank, chunks \
            are boxes of up to 1 MiB"),
        ("codec" = String, Path, description = "`raw`, `zstd`, `zstd-1` to `zstd-19`, `gzip`, `gzip-1` to `gzip-9`, \
            `blosc-lz4` or `blosc-zstd`; a level from `-1` to `-9` can follow the blosc codecs"),
        ("key" = String, Path, description = "A key of the hierarchy, or a prefix with a trailing slash; optionally \
            after a `dtype=` segment"),
        ListQuery,
        ConsolidatedQuery,
        ReadHeaders,
    ),
    responses(
        ValueResponses,
        ViewResponses,
        (status = 304, description = "The value still has an entity tag of `If-None-Match`; no chunk was decoded"),
        (status = 400, description = "The path is not a valid store key, or the chunk shape, codec or data type is invalid"),
        (status = 405, description = "Rechunked views are read-only"),
        (status = 413, description = "A chunk, or its source chunks, would exceed a limit, according to the metadata"),
        (status = 501, description = "The array cannot be decoded, or the requested data type cannot represent an element"),
    )
)]
pub(crate) async fn get_key(read: ReadRequest) -> Result<Response, Problem> {
    respond_below_recipe(&read).await
}

/// List the root of a hierarchy with other chunks
#[utoipa::path(
    method(get, head),
    path = ROOT.template,
    operation_id = "list_rechunked_root",
    tag = "views",
    params(RootPath, ListQuery),
    responses(
        ListingResponses,
        (status = 400, description = "The chunk shape or codec is invalid"),
        (status = 413, description = "An array has more chunks in one directory than the limit of a listing"),
    )
)]
pub(crate) async fn list_root(read: ReadRequest) -> Result<Response, Problem> {
    read.respond().await
}

/// Redirect to the root of a hierarchy with other chunks
#[utoipa::path(
    method(get, head),
    path = MOUNT.template,
    operation_id = "get_rechunked_mount",
    tag = "views",
    params(RootPath),
    responses(
        RootRedirect,
        (status = 400, description = "The chunk shape or codec is invalid"),
    )
)]
pub(crate) async fn get_root(target: StoreTarget, uri: Uri) -> Response {
    to_root(&target, &uri)
}

/// The response for a key below a recipe. Without a key, it is a redirect to the root.
pub(super) async fn respond_below_recipe(read: &ReadRequest) -> Result<Response, Problem> {
    let ReadRequest { target, head, .. } = read;
    match &target.place {
        // The router took the last segment of the recipe for a key.
        KeyOrPrefix::Prefix(prefix) if prefix.is_root() && !head.uri.path().ends_with('/') => {
            Ok(to_root(target, &head.uri))
        }
        _ => read.respond().await,
    }
}

pub(super) fn to_root(target: &StoreTarget, uri: &Uri) -> Response {
    let base = target.base();
    // The segment as the client sent it, with its percent-encoding.
    store::redirect(&format!("./{}/", base.rsplit('/').next().unwrap_or_default()), uri)
}

//! The routes of the plain and the unshard view: the `store` routes over a view of a mount.
//!
//! A view is a store, so ranges, conditions, listings, redirects and problems are those of `store` and `list`. The `views`
//! module defines the contents of a view.

use axum::extract::{Request, State};
use axum::http::Uri;
use axum::response::Response;

use super::store;
use super::store::list;
use super::store::listing_page::ListingPage;
use crate::api::store::with_other_methods;
use crate::http::consolidated_query::ConsolidatedQuery;
use crate::http::problem::Problem;
use crate::http::route::{FastPath, MediaTypes, Resource, RouteSpec};
use crate::services::extract::StoreTarget;
use crate::services::route::Route;
use crate::services::state::AppState;
use utoipa_axum::routes;

/// A key of the plain view, or a prefix.
pub(crate) const PLAIN_KEY: RouteSpec = RouteSpec::new("/plain/{mount}/{*key}", Resource::View)
    .fast_path(FastPath::Value)
    .media_types(MediaTypes::ValuesAndListings);

/// The root of the plain view.
pub(crate) const PLAIN_ROOT: RouteSpec = RouteSpec::new("/plain/{mount}/", Resource::View);

/// The plain view without a slash: a redirect to its root.
pub(crate) const PLAIN_MOUNT: RouteSpec = RouteSpec::new("/plain/{mount}", Resource::View);

/// A key of the unshard view, or a prefix.
pub(crate) const UNSHARD_KEY: RouteSpec = RouteSpec::new("/unshard/{mount}/{*key}", Resource::View)
    .fast_path(FastPath::Value)
    .media_types(MediaTypes::ValuesAndListings);

/// The root of the unshard view.
pub(crate) const UNSHARD_ROOT: RouteSpec = RouteSpec::new("/unshard/{mount}/", Resource::View);

/// The unshard view without a slash: a redirect to its root.
pub(crate) const UNSHARD_MOUNT: RouteSpec = RouteSpec::new("/unshard/{mount}", Resource::View);

/// The routes of views.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(&PLAIN_KEY, with_other_methods(routes!(get_plain_key))),
        Route::new(&PLAIN_ROOT, with_other_methods(routes!(list_plain_root))),
        Route::new(&PLAIN_MOUNT, with_other_methods(routes!(get_plain_mount))),
        Route::new(&UNSHARD_KEY, with_other_methods(routes!(get_unshard_key))),
        Route::new(&UNSHARD_ROOT, with_other_methods(routes!(list_unshard_root))),
        Route::new(&UNSHARD_MOUNT, with_other_methods(routes!(get_unshard_mount))),
    ]
}

/// Read a value of the plain view, or list a prefix
///
/// The plain view replaces metadata that common clients cannot open: extension chunk key encodings become `default`, and
/// short-hand extension names become objects. Each dependent array is a node at its name below the array that declares it.
/// The document of the declaring array omits the declaration. A dependent array whose path would shadow chunks is omitted.
/// Chunks are the stored bytes. Where a chunk has another key in the view, its stored key is a 404.
///
/// Ranges, conditions, redirects and listings are those of `/store`. The view is read-only.
#[utoipa::path(
    method(get, head),
    path = PLAIN_KEY.template,
    tag = "views",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("key" = String, Path, description = "A key of the view, or a prefix with a trailing slash"),
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
        (status = 304, description = "The value still has an entity tag of `If-None-Match`"),
        (status = 400, description = "The path is not a valid store key"),
        (status = 404, description = "The view has no value of this key"),
        (status = 405, description = "Views are read-only"),
        (status = 412, description = "The value has none of the entity tags of `If-Match`"),
        (status = 416, description = "The range starts after the end of the value"),
        (status = 500, description = "The stored bytes do not match the metadata"),
        (status = 502, description = "The backend failed"),
        (status = 503, description = "The server is overloaded; retry after the time in `Retry-After`"),
        (status = 504, description = "The backend timed out"),
    )
)]
pub(crate) async fn get_plain_key(
    State(state): State<AppState>,
    target: StoreTarget,
    request: Request,
) -> Result<Response, Problem> {
    store::read_or_list(&state, &target, &request.into_parts().0).await
}

/// List the root of the plain view
#[utoipa::path(
    method(get, head),
    path = PLAIN_ROOT.template,
    tag = "views",
    params(("mount" = String, Path, description = "Name of a mount"), list::ListQuery),
    responses(
        (status = 200, description = "The listing", content(
            (ListingPage = "application/json"),
            (String = "text/html"),
        )),
        (status = 404, description = "No mount has this name"),
        (status = 405, description = "The backend cannot list"),
        (status = 502, description = "The backend failed"),
    )
)]
pub(crate) async fn list_plain_root(
    State(state): State<AppState>,
    target: StoreTarget,
    request: Request,
) -> Result<Response, Problem> {
    store::read_or_list(&state, &target, &request.into_parts().0).await
}

/// Redirect to the root of the plain view
#[utoipa::path(
    method(get, head),
    path = PLAIN_MOUNT.template,
    tag = "views",
    params(("mount" = String, Path, description = "Name of a mount")),
    responses((status = 301, description = "Redirect to the listing of the root at the path with a trailing slash"))
)]
pub(crate) async fn get_plain_mount(target: StoreTarget, uri: Uri) -> Response {
    store::with_slash(&target.mount.name, &uri)
}

/// Read a value of the view without shards, or list a prefix
///
/// The plain view, with each sharded array as an unsharded array of its inner chunks. Each inner chunk has its own key, and
/// its value is the stored bytes. An absent inner chunk is a 404, which a Zarr client reads as fill values. Shards may
/// vary in shape, and the server need not support the codecs inside them. Arrays with a codec after the sharding codec
/// are unchanged.
///
/// Ranges, conditions, redirects and listings are those of `/store`. The view is read-only.
#[utoipa::path(
    method(get, head),
    path = UNSHARD_KEY.template,
    tag = "views",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("key" = String, Path, description = "A key of the view, or a prefix with a trailing slash"),
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
        (status = 304, description = "The value still has an entity tag of `If-None-Match`"),
        (status = 400, description = "The path is not a valid store key"),
        (status = 404, description = "The view has no value of this key"),
        (status = 405, description = "Views are read-only"),
        (status = 412, description = "The value has none of the entity tags of `If-Match`"),
        (status = 416, description = "The range starts after the end of the value"),
        (status = 500, description = "The stored bytes do not match the metadata"),
        (status = 502, description = "The backend failed"),
        (status = 503, description = "The server is overloaded; retry after the time in `Retry-After`"),
        (status = 504, description = "The backend timed out"),
    )
)]
pub(crate) async fn get_unshard_key(
    State(state): State<AppState>,
    target: StoreTarget,
    request: Request,
) -> Result<Response, Problem> {
    store::read_or_list(&state, &target, &request.into_parts().0).await
}

/// List the root of the view without shards
#[utoipa::path(
    method(get, head),
    path = UNSHARD_ROOT.template,
    tag = "views",
    params(("mount" = String, Path, description = "Name of a mount"), list::ListQuery),
    responses(
        (status = 200, description = "The listing", content(
            (ListingPage = "application/json"),
            (String = "text/html"),
        )),
        (status = 404, description = "No mount has this name"),
        (status = 405, description = "The backend cannot list"),
        (status = 502, description = "The backend failed"),
    )
)]
pub(crate) async fn list_unshard_root(
    State(state): State<AppState>,
    target: StoreTarget,
    request: Request,
) -> Result<Response, Problem> {
    store::read_or_list(&state, &target, &request.into_parts().0).await
}

/// Redirect to the root of the view without shards
#[utoipa::path(
    method(get, head),
    path = UNSHARD_MOUNT.template,
    tag = "views",
    params(("mount" = String, Path, description = "Name of a mount")),
    responses((status = 301, description = "Redirect to the listing of the root at the path with a trailing slash"))
)]
pub(crate) async fn get_unshard_mount(target: StoreTarget, uri: Uri) -> Response {
    store::with_slash(&target.mount.name, &uri)
}

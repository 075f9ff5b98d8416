//! The routes of the plain and the unshard view: the `store` routes over a view of a mount.
//!
//! A view is a store, so ranges, conditions, listings, redirects and problems are those of `store` and `list`. The `views`
//! module defines the contents of a view.

use axum::http::Uri;
use axum::response::Response;
use utoipa::IntoParams;

use super::documented::{
    ListingResponses, MountParam, ReadHeaders, RootRedirect, ValueResponses, ViewResponses,
};
use super::store;
use super::store::{ListQuery, ReadRequest, with_other_methods};
use crate::http::consolidated_query::ConsolidatedQuery;
use crate::http::problem::Problem;
use crate::http::route::{FastPath, MediaTypes, Resource, RouteSpec};
use crate::services::extract::StoreTarget;
use crate::services::route::Route;
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

/// A key of a view, in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path for the API document")]
pub(crate) struct ViewKey {
    /// Name of a mount
    mount: String,
    /// A key of the view, or a prefix with a trailing slash
    key: String,
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
    params(ViewKey, ListQuery, ConsolidatedQuery, ReadHeaders),
    responses(ValueResponses, ViewResponses)
)]
pub(crate) async fn get_plain_key(read: ReadRequest) -> Result<Response, Problem> {
    read.respond().await
}

/// List the root of the plain view
#[utoipa::path(
    method(get, head),
    path = PLAIN_ROOT.template,
    tag = "views",
    params(MountParam, ListQuery),
    responses(ListingResponses)
)]
pub(crate) async fn list_plain_root(read: ReadRequest) -> Result<Response, Problem> {
    read.respond().await
}

/// Redirect to the root of the plain view
#[utoipa::path(
    method(get, head),
    path = PLAIN_MOUNT.template,
    tag = "views",
    params(MountParam),
    responses(RootRedirect)
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
    params(ViewKey, ListQuery, ConsolidatedQuery, ReadHeaders),
    responses(ValueResponses, ViewResponses)
)]
pub(crate) async fn get_unshard_key(read: ReadRequest) -> Result<Response, Problem> {
    read.respond().await
}

/// List the root of the view without shards
#[utoipa::path(
    method(get, head),
    path = UNSHARD_ROOT.template,
    tag = "views",
    params(MountParam, ListQuery),
    responses(ListingResponses)
)]
pub(crate) async fn list_unshard_root(read: ReadRequest) -> Result<Response, Problem> {
    read.respond().await
}

/// Redirect to the root of the view without shards
#[utoipa::path(
    method(get, head),
    path = UNSHARD_MOUNT.template,
    tag = "views",
    params(MountParam),
    responses(RootRedirect)
)]
pub(crate) async fn get_unshard_mount(target: StoreTarget, uri: Uri) -> Response {
    store::with_slash(&target.mount.name, &uri)
}

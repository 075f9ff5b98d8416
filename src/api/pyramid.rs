//! The routes of pyramids: the `store` routes over a mount whose arrays are images with coarser levels.
//!
//! Ranges, conditions, listings and problems are those of `store` and `list`. How levels are made is in the path, so that
//! every HTTP cache between client and server can key on the URL. The `views` module makes them.

use axum::http::Uri;
use axum::response::Response;
use utoipa::IntoParams;
use utoipa_axum::routes;

use super::documented::{
    ListingResponses, MountParam, ReadHeaders, RootRedirect, ValueResponses, ViewResponses,
};
use super::rechunk::{respond_below_recipe, to_root};
use super::store::{ListQuery, ReadRequest, with_other_methods};
use crate::http::consolidated_query::ConsolidatedQuery;
use crate::http::problem::Problem;
use crate::http::route::{MediaTypes, Resource, RouteSpec};
use crate::services::extract::StoreTarget;
use crate::services::route::Route;

/// A key of a mount as pyramids, or a prefix.
pub(crate) const KEY: RouteSpec =
    RouteSpec::new("/pyramid/{mount}/{method}/{chunks}/{codec}/{*key}", Resource::Pyramid)
        .media_types(MediaTypes::ValuesAndListings);

/// The root of a mount as pyramids.
pub(crate) const ROOT: RouteSpec =
    RouteSpec::new("/pyramid/{mount}/{method}/{chunks}/{codec}/", Resource::Pyramid);

/// A mount as pyramids without a slash: a redirect to its root.
pub(crate) const MOUNT: RouteSpec =
    RouteSpec::new("/pyramid/{mount}/{method}/{chunks}/{codec}", Resource::Pyramid);

/// The routes of pyramids.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(&KEY, with_other_methods(routes!(get_level_key))),
        Route::new(&ROOT, with_other_methods(routes!(list_pyramids))),
        Route::new(&MOUNT, with_other_methods(routes!(get_pyramids))),
    ]
}

/// The root of a hierarchy of pyramids, in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path for the API document")]
pub(crate) struct PyramidRootPath {
    /// Name of a mount
    mount: String,
    /// Method that reduces elements, and its options
    method: String,
    /// Chunk shape of the levels in elements, or `auto`
    chunks: String,
    /// Codec of the chunks
    codec: String,
}

/// Read a value of a hierarchy of images with coarser levels, or list a prefix
///
/// Every array of two to five dimensions appears as the group of an OME-Zarr image: version 0.5 in Zarr v3 (`zarr.json`), 0.4
/// in Zarr v2 (`.zattrs`), and with the convention `multiscales` where the array has a place on a map. Level `0` is the array
/// itself with its stored documents and chunks, in the Zarr version that it is stored in; only `dimension_names` are always the
/// names of the axes. Each further level has half as many rows and columns, until neither side has more than 256. An image of the
/// store with too few levels gets the missing ones, and everything else is as it is stored. An array whose dimensions are not in
/// the order of OME-Zarr is a 501.
///
/// A chunk of a level is computed on request if the stored chunks that it is made of have at most `pyramid.direct_size`, decoded.
/// Any other is built in the background: until then the response is 503 `being-built` with `Retry-After`. A chunk for which
/// nothing is stored is a 404. The entity tag of a chunk changes if and only if something that it is made of changes. Where that
/// cannot be checked for each request, because the mount is remote and its freshness is `always`, a chunk that is built in the
/// background is a 409.
///
/// `dtype=` after the codec is as in `/rechunk`, for all levels. Ranges, conditions, redirects and listings are those of
/// `/store`. The view is read-only.
#[utoipa::path(
    method(get, head),
    path = KEY.template,
    tag = "views",
    params(
        MountParam,
        ("method" = String, Path, description = "`auto`, `mean`, `mode`, `min`, `max` or `stride`; `auto` is `mode` for labels, \
            categories and truth values, else `mean`. After it, each optional: `;levels=direct` leaves out levels that are built \
            in the background; `;axes=y,x` names the dimensions that are halved; `;factors=1,2,2` has a 2 for each of these, or \
            of the last dimensions, that is halved; `;range=0,4000` has the stored numbers that viewers draw darkest and brightest"),
        ("chunks" = String, Path, description = "Chunk shape of the levels in elements, as in `/rechunk`"),
        ("codec" = String, Path, description = "Codec of the levels, as in `/rechunk`"),
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
        (status = 400, description = "The path is not a valid store key; the method, chunk shape, codec or data type is invalid; \
            or the method is not defined for the type of the array"),
        (status = 405, description = "Pyramids are read-only"),
        (status = 409, description = "The version of the chunk cannot be checked for each request"),
        (status = 413, description = "A chunk, or its source chunks, would exceed a limit, according to the metadata"),
        (status = 501, description = "The array cannot be decoded or is no image, or the requested data type cannot represent an \
            element"),
        (status = 503, description = "The chunk is being built; `Retry-After` has the seconds after which to retry"),
    )
)]
pub(crate) async fn get_level_key(read: ReadRequest) -> Result<Response, Problem> {
    respond_below_recipe(&read).await
}

/// List the root of a hierarchy of images with coarser levels
#[utoipa::path(
    method(get, head),
    path = ROOT.template,
    tag = "views",
    params(PyramidRootPath, ListQuery),
    responses(
        ListingResponses,
        (status = 400, description = "The method, chunk shape or codec is invalid"),
        (status = 413, description = "An array has more chunks in one directory than the limit of a listing"),
    )
)]
pub(crate) async fn list_pyramids(read: ReadRequest) -> Result<Response, Problem> {
    read.respond().await
}

/// Redirect to the root of a hierarchy of images with coarser levels
#[utoipa::path(
    method(get, head),
    path = MOUNT.template,
    tag = "views",
    params(PyramidRootPath),
    responses(
        RootRedirect,
        (status = 400, description = "The method, chunk shape or codec is invalid"),
    )
)]
pub(crate) async fn get_pyramids(target: StoreTarget, uri: Uri) -> Response {
    to_root(&target, &uri)
}

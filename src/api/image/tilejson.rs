//! `/v1/tilejson/{mount}/{path}`: the tiles of a picture, as `TileJSON` 3.0.

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::json;
use utoipa_axum::routes;

use super::legend::{legend_path, scene};
use super::params::{AxesParams, ColorParams, TileParams};
use super::range::{RangeSource, shown};
use super::request::query;
use super::sampled;
use super::scene::Drawing;
use super::tiles::{DEFAULT_TILE, NATIVE, levels, whole_plane};
use crate::admission::AdmissionRequest;
use crate::api::json_response::text_answer;
use crate::api::selection::SelectionParams;
use crate::http::base_path::BasePath;
use crate::http::path::encode;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::services::extract::NodeTarget;
use crate::services::route::Route;
use crate::services::state::AppState;
use crate::store::Version;

/// The tiles of a node.
pub(crate) const TILEJSON: RouteSpec =
    RouteSpec::new("/v1/tilejson/{mount}/{*path}", Resource::Node).admitted_by(AdmittedBy::Handler);

/// The tiles of the node at the root of a mount.
pub(crate) const ROOT_TILEJSON: RouteSpec = RouteSpec::new("/v1/tilejson/{mount}", Resource::Node)
    .with_slash("/v1/tilejson/{mount}/")
    .admitted_by(AdmittedBy::Handler);

/// The routes of descriptions of tiles.
pub(super) fn routes() -> Vec<Route> {
    vec![Route::new(&TILEJSON, routes!(get_tilejson)), Route::new(&ROOT_TILEJSON, routes!(get_root_tilejson))]
}

/// Describe the tiles of a picture
///
/// Returns a `TileJSON` 3.0 document: the template of the tiles' URLs, with the parameters of this request and with the range
/// that `range=auto` has, and the levels. `extent` is the plane in elements: `native` tiles have no geographic bounds.
#[utoipa::path(
    method(get, head),
    path = TILEJSON.template,
    tag = "images",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("path" = String, Path, description = "Path of the node"),
        SelectionParams,
        AxesParams,
        TileParams,
        ColorParams,
    ),
    responses(
        (status = 200, description = "The description", content_type = "application/json"),
        (status = 304, description = "The document still has an entity tag of `If-None-Match`"),
        (status = 400, description = "A parameter is invalid, or the selection is no plane"),
        (status = 404, description = "The mount or the node does not exist"),
        (status = 422, description = "The node has no picture (`no-picture`)"),
    )
)]
pub(crate) async fn get_tilejson(
    State(state): State<AppState>,
    request: Request,
) -> Result<Response, Problem> {
    Box::pin(tilejson(&state, &request.into_parts().0)).await
}

/// Describe the tiles of a picture of the node at the root of a mount
#[utoipa::path(
    method(get, head),
    path = ROOT_TILEJSON.template,
    tag = "images",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        SelectionParams,
        AxesParams,
        TileParams,
        ColorParams,
    ),
    responses(
        (status = 200, description = "The description", content_type = "application/json"),
        (status = 404, description = "The mount does not exist, or its root is not a node"),
    )
)]
pub(crate) async fn get_root_tilejson(state: State<AppState>, request: Request) -> Result<Response, Problem> {
    get_tilejson(state, request).await
}

async fn tilejson(state: &AppState, head: &Parts) -> Result<Response, Problem> {
    let target = NodeTarget::new(&state.mounts, &TILEJSON, &head.uri, &head.extensions)?;
    let (query, pairs) = query(&head.uri)?;
    let scene = scene(state, head, &target, &query).await?;
    let plane = whole_plane(&scene.subject, &query)?;
    let (rows, columns) = plane.sides();
    let mut permit =
        state.traffic.admission.acquire(AdmissionRequest::to_elements(head), scene.sample_bytes()).await?;
    let is_resolved =
        scene.planes.iter().all(|plane| matches!(plane.range, RangeSource::Known(..) | RangeSource::Sample));
    let ranges = if is_resolved { sampled::ranges(state, &scene).await? } else { Vec::new() };
    let is_range = |name: &str| matches!(name, "range" | "rescale" | "colorscalerange");
    let mut words: Vec<String> = Vec::new();
    for (name, value) in pairs.iter().filter(|(name, _)| ranges.len() != 1 || !is_range(name)) {
        words.push(format!("{}={}", encode(name), encode(value)));
    }
    let is_mapped = matches!(scene.drawing, Drawing::Mapped(_) | Drawing::Gray16);
    if let (true, [(low, high)]) = (is_mapped, &ranges[..]) {
        words.push(format!("range={},{}", shown(*low), shown(*high)));
    }
    let words = if words.is_empty() { String::new() } else { format!("?{}", words.join("&")) };
    let base = BasePath::of(&head.extensions);
    let (base, mount) = (base.as_str(), encode(&target.mount.name));
    let segments: Vec<_> = target.path.as_str().split('/').map(encode).collect();
    let path =
        if target.path.as_str().is_empty() { String::new() } else { format!("/{}", segments.join("/")) };
    let tiles = tile_template(&mount, &path);
    let maxzoom = levels(&plane) - 1;
    let range = ranges.first().filter(|_| is_mapped).map(|(low, high)| json!([low, high]));
    let document = json!({
        "tilejson": "3.0.0",
        "name": if target.path.name().is_empty() { &target.mount.name } else { target.path.name() },
        "scheme": "xyz",
        "tiles": [format!("{base}{tiles}{words}")],
        "minzoom": 0,
        "maxzoom": maxzoom,
        "tms": NATIVE,
        "tile_size": query.tile.tile.unwrap_or(DEFAULT_TILE),
        "extent": [0, 0, columns.count, rows.count],
        "range": range,
        "legend": format!("{base}{}{words}", legend_path(&mount, &path)),
    });
    let text = document.to_string();
    let version = Version::from_text(text.as_bytes());
    // The sample was read; what is left is the text.
    permit.resize(text.len() as u64)?;
    Ok(permit.hold(text_answer(&head.headers, [text.into()], version)))
}

/// The URLs of the tiles of a node, without a base path and a query.
fn tile_template(mount: &str, path: &str) -> String {
    format!("/tiles/{mount}/{NATIVE}/{{z}}/{{x}}/{{y}}{path}")
}

//! `/v1/image/{mount}/{path}`: the picture of an array, an image or a dataset.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use utoipa_axum::routes;

use super::grid::Pictured;
use super::layout::Layout;
use super::montage;
use super::opening;
use super::orientation::orientation;
use super::params::{AxesParams, ColorParams, ImageFormatParams, PlaneParams};
use super::planned::planned;
use super::request::{ImageResponses, check_format, plain, query};
use super::respond;
use super::scene::{PictureFrame, boxed};
use super::words::RowOrigin;
use crate::api::data::precheck;
use crate::api::documented::ConditionResponses;
use crate::api::selection::SelectionParams;
use crate::auth::caller::Caller;
use crate::http::base_path::BasePath;
use crate::http::path::encode;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::http::validators::from_text;
use crate::services::extract::NodeTarget;
use crate::services::route::Route;
use crate::services::state::AppState;

/// The picture of a node.
pub(crate) const IMAGE: RouteSpec = RouteSpec::new("/v1/image/{mount}/{*path}", Resource::Node)
    .admitted_by(AdmittedBy::Handler)
    .never_encoded();

/// The picture of the node at the root of a mount.
pub(crate) const ROOT_IMAGE: RouteSpec = RouteSpec::new("/v1/image/{mount}", Resource::Node)
    .with_slash("/v1/image/{mount}/")
    .admitted_by(AdmittedBy::Handler)
    .never_encoded();

/// The routes of pictures.
pub(super) fn routes() -> Vec<Route> {
    vec![Route::new(&IMAGE, routes!(get_image)), Route::new(&ROOT_IMAGE, routes!(get_root_image))]
}

/// Read a picture of an array
///
/// Draws a plane of an array, an OME image, a plate or a dataset as a PNG file. The picture of a plate has the first image of
/// each well where the well is, that of a well all its images; they share the range of the first. The number of an element is placed within a
/// range, and one of the 256 colours of a colormap belongs to each of 256 equal parts of it.
///
/// Rows and columns are the dimensions that are called so (`y` and `x`, `lat` and `lon`), else the last two. Every other
/// dimension has one index: that of the selection, or a default that depends on the metadata alone; `Array-Slice` says which.
/// A plane that is larger than `size` is halved until it fits, by whole windows. Where no elements are selected and all of a plane
/// would cost more than the limits permit, the middle of it is drawn: `Array-Slice` and `Content-Location` have the selection.
///
/// `range=auto` is the same for all pictures of an array: the window in the metadata of an OME image, `valid_range` or
/// `actual_range` of CF, else the percentiles 1 to 99 of a fixed sample of at most 64 chunks. `Image-Range-From` says which.
#[utoipa::path(
    method(get, head),
    path = IMAGE.template,
    tag = "images",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("path" = String, Path, description = "Path of the node"),
        SelectionParams,
        AxesParams,
        PlaneParams,
        ColorParams,
        ImageFormatParams,
    ),
    responses(ImageResponses, ConditionResponses)
)]
pub(crate) async fn get_image(State(state): State<AppState>, request: Request) -> Result<Response, Problem> {
    Box::pin(image(&state, &plain(request))).await
}

/// Read a picture of the node at the root of a mount
#[utoipa::path(
    method(get, head),
    path = ROOT_IMAGE.template,
    tag = "images",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        SelectionParams,
        AxesParams,
        PlaneParams,
        ColorParams,
        ImageFormatParams,
    ),
    responses(ImageResponses, ConditionResponses)
)]
pub(crate) async fn get_root_image(state: State<AppState>, request: Request) -> Result<Response, Problem> {
    get_image(state, request).await
}

async fn image(state: &AppState, head: &Parts) -> Result<Response, Problem> {
    if let Some(answer) = precheck(state, head).await? {
        return Ok(answer);
    }
    let target = NodeTarget::new(&state.mounts, &IMAGE, &head.uri, &head.extensions)?;
    let (query, pairs) = query(&head.uri)?;
    check_format(&head.headers, query.format.format.as_deref())?;
    // A part of the plane, or a level, is that of one image.
    let is_of_one = query.plane.part_of_plane.is_some() || query.plane.level.is_some();
    let subject = if is_of_one {
        opening::open(state, head, &target).await?
    } else {
        match Pictured::open(state, head, &target).await? {
            Pictured::One(subject) => *subject,
            Pictured::Grid(grid) => {
                let montage = montage::planned(state, head, &target, &query, grid).await?;
                // Each image has a selection of its own, which follows from that of the request.
                let location = content_location(head, &pairs, None);
                return Box::pin(montage::respond(state, &target, head, montage, location)).await;
            }
        }
    };
    let subject = subject.with_labels(state, head, &target, &query).await?;
    let whole = subject.layout(&query)?;
    let layout = boxed(whole.clone(), &query, &subject.array.metadata().shape)?;
    let frame = PictureFrame::of(&query, state.options.image.max_pixels);
    let limits = &state.engine.read;
    let (mut scene, layout) = planned(state, &target, &query, subject, layout, frame, limits).await?;
    // A part of the plane stays one of it: of a plate it is that of the first image.
    let shown = if query.plane.part_of_plane.is_some() { whole } else { layout };
    let location = content_location(head, &pairs, Some(&shown));
    match query.plane.origin.unwrap_or_default() {
        RowOrigin::Upper => {}
        RowOrigin::Lower => scene.flips_rows = true,
        RowOrigin::Auto => {
            let caller = Caller::of(&head.extensions);
            let found = orientation(state, &target, caller, &scene.subject, &scene.layout).await?;
            scene.flips_rows =
                found.ascends != (scene.layout.sides().0.step < 0) && !found.versions.is_empty();
            scene.versions = found.versions;
            scene.depends_on_neighbours = found.requested_neighbours;
        }
    }
    respond::respond(state, &target, head, Arc::new(scene), location).await
}

/// The URL of the same picture: with the selection of this layout, else that of the request.
fn content_location(head: &Parts, pairs: &[(String, String)], layout: Option<&Layout>) -> HeaderMap {
    let is_selection = |name: &str| {
        matches!(name, "slice" | "select" | "wrap") || name.starts_with("isel.") || name.starts_with("sel.")
    };
    let others = pairs.iter().filter(|(name, _)| layout.is_none() || !is_selection(name));
    let others = others.map(|(name, value)| format!("{}={}", encode(name), text_of(value)));
    let slice = layout.map(|layout| format!("slice={}", text_of(&layout.selection().to_string())));
    let query: Vec<String> = slice.into_iter().chain(others).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    let (base, path) = (BasePath::of(&head.extensions), head.uri.path());
    let text = format!("{}{path}{mark}{}", base.as_str(), query.join("&"));
    let mut headers = HeaderMap::new();
    if let Some(location) = from_text(text) {
        headers.insert(header::CONTENT_LOCATION, location);
    }
    headers
}

/// A value in a query, where commas and colons stay readable.
fn text_of(value: &str) -> String {
    encode(value).replace("%2C", ",").replace("%3A", ":")
}

//! `/v1/image/{mount}/{path}`: the picture of an array, an image or a dataset.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use utoipa_axum::routes;

use super::layout::Layout;
use super::orientation::orientation;
use super::params::{AxesParams, ColorParams, ImageFormatParams, PlaneParams};
use super::query::{DEFAULT_SIDE, ImageQuery};
use super::request::{ImageResponses, check_format, plain, query};
use super::respond;
use super::scene::{PictureFrame, Refused, Scene, boxed};
use super::subject::Subject;
use super::words::RowOrigin;
use crate::api::data::precheck;
use crate::api::documented::ConditionResponses;
use crate::api::selection::SelectionParams;
use crate::array::Array;
use crate::auth::caller::Caller;
use crate::chunk::AxisRange;
use crate::error::ErrorClass;
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

/// The sides of the windows that are shown in place of a plane that costs too much, the largest first.
const WINDOWS: [u64; 8] = [8192, 4096, 2048, 1024, 512, 256, 128, 64];

/// Read a picture of an array
///
/// Draws a plane of an array, an OME image, a plate or a dataset as a PNG file. The number of an element is placed within a
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
    let subject = Subject::open(state, head, &target).await?;
    let layout = boxed(subject.layout(&query)?, &query, &subject.array.metadata().shape)?;
    let frame = PictureFrame::of(&query, state.options.image.max_pixels);
    let (mut scene, layout) = planned(state, &target, &query, subject, layout, frame).await?;
    let location = content_location(head, &pairs, &layout);
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

/// The scene of a layout, and the layout in elements of the finest level. Where the request leaves open which elements are drawn,
/// and all of them cost too much, it is that of the largest window in the middle of the plane that does not.
async fn planned(
    state: &AppState,
    target: &NodeTarget,
    query: &ImageQuery,
    subject: Subject,
    layout: Layout,
    frame: PictureFrame,
) -> Result<(Scene, Layout), Problem> {
    let limits = &state.engine.read;
    let is_open = !query.selection.selects()
        && query.plane.part_of_plane.is_none()
        && query.plane.level.is_none()
        && matches!(frame, PictureFrame::Within(width, height, _) if width.max(height) <= DEFAULT_SIDE);
    let mut windows = WINDOWS.iter().filter(|_| is_open);
    let (finest, mut shown) = (Arc::clone(&subject.array), layout.clone());
    loop {
        let (subject, scaled) = level(subject.clone(), shown.clone(), target, query, frame).await?;
        match Scene::new(subject, scaled, query, frame, limits) {
            Ok(scene) => return Ok((scene, shown)),
            Err(Refused::Cost(cost)) => match windows.next() {
                Some(side) => shown = centre(&finest, &layout, *side),
                None => return Err(respond::refused(state, Refused::Cost(cost))),
            },
            Err(refused) => return Err(respond::refused(state, refused)),
        }
    }
}

/// The middle of a plane: at most this many rows and columns. A part of a chunk is moved to within the chunk.
fn centre(array: &Array, layout: &Layout, side: u64) -> Layout {
    let middle = |range: AxisRange, dimension: usize| {
        let count = range.count.min(side);
        let start = (range.count - count) / 2;
        let chunk = array.decoded_axes().get(dimension).map(|axis| axis.chunk_containing(range.count / 2));
        let start = match chunk {
            Some(chunk) if count <= chunk.edge => start.clamp(chunk.start, chunk.start + chunk.edge - count),
            _ => start,
        };
        range.part(start.min(range.count - count), count)
    };
    let (rows, columns) = layout.sides();
    layout.clone().with_sides(middle(rows, layout.rows), middle(columns, layout.columns))
}

/// Chooses the stored level of an image that a picture is made from: the smallest that fills the frame.
async fn level(
    subject: Subject,
    layout: Layout,
    target: &NodeTarget,
    query: &ImageQuery,
    frame: PictureFrame,
) -> Result<(Subject, Layout), Problem> {
    match query.plane.level {
        Some(level) if level == subject.level => return Ok((subject, layout)),
        Some(level) if subject.is_image || subject.levels.len() == 1 => {
            return subject.at_level(target, &layout, level).await;
        }
        Some(_) => {
            return Err(Problem::from_class(ErrorClass::InvalidRequest)
                .detail("`level` belongs to the picture of the image; this is the array of one level"));
        }
        None if !subject.is_image => return Ok((subject, layout)),
        None => {}
    }
    for level in (1..subject.levels.len()).rev() {
        // A level that cannot be opened is passed over.
        let Ok((other, scaled)) = subject.at_level(target, &layout, level).await else { continue };
        let (rows, columns) = scaled.sides();
        if frame.is_filled_by(columns.count, rows.count) {
            return Ok((other, scaled));
        }
    }
    Ok((subject, layout))
}

/// The URL of the same picture with its selection in it.
fn content_location(head: &Parts, pairs: &[(String, String)], layout: &Layout) -> HeaderMap {
    let is_selection = |name: &str| matches!(name, "slice" | "select") || name.starts_with("isel.");
    let others = pairs.iter().filter(|(name, _)| !is_selection(name));
    let others = others.map(|(name, value)| format!("&{}={}", encode(name), encode(value)));
    let (base, path) = (BasePath::of(&head.extensions), head.uri.path());
    let slice = encode(&layout.slice(None)).replace("%2C", ",").replace("%3A", ":");
    let text = format!("{}{path}?slice={slice}{}", base.as_str(), others.collect::<String>());
    let mut headers = HeaderMap::new();
    if let Some(location) = from_text(text) {
        headers.insert(header::CONTENT_LOCATION, location);
    }
    headers
}

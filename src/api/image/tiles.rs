//! `/tiles/{mount}/native/{z}/{x}/{y}/{path}`: square pictures of parts of an array at different levels.
//!
//! The largest `z` has the elements themselves, and each smaller one half as many along both sides; at 0 neither side has
//! more than 256. Tiles are never turned, and what is outside the array is transparent.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use utoipa_axum::routes;

use super::layout::Layout;
use super::opening;
use super::params::{AxesParams, ColorParams, ImageFormatParams, TileParams};
use super::query::ImageQuery;
use super::request::{ImageResponses, check_format, plain, query};
use super::respond;
use super::scene::{PictureFrame, Scene};
use super::subject::Subject;
use super::words::PictureSize;
use crate::api::data::precheck;
use crate::api::documented::{ConditionResponses, MountParam};
use crate::api::selection::SelectionParams;
use crate::chunk::AxisRange;
use crate::error::ErrorClass;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::path::tile_of;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::http::validators::put_validators;
use crate::reduce::halved;
use crate::render::raster::{Picture, Pixels};
use crate::services::extract::NodeTarget;
use crate::services::route::Route;
use crate::services::state::AppState;
use crate::store::{ValueInfo, Version};

/// A tile of a node.
pub(crate) const TILE: RouteSpec = RouteSpec::new("/tiles/{mount}/{tms}/{z}/{x}/{y}/{*path}", Resource::Tile)
    .admitted_by(AdmittedBy::Handler)
    .never_encoded();

/// A tile of the node at the root of a mount.
pub(crate) const ROOT_TILE: RouteSpec = RouteSpec::new("/tiles/{mount}/{tms}/{z}/{x}/{y}", Resource::Tile)
    .with_slash("/tiles/{mount}/{tms}/{z}/{x}/{y}/")
    .admitted_by(AdmittedBy::Handler)
    .never_encoded();

/// The routes of tiles.
pub(super) fn routes() -> Vec<Route> {
    vec![Route::new(&TILE, routes!(get_tile)), Route::new(&ROOT_TILE, routes!(get_root_tile))]
}

/// The grid of tiles that needs no coordinates.
pub(super) const NATIVE: &str = "native";
/// Grids of tiles on maps (OGC Two Dimensional Tile Matrix Set), which are not supported.
const OF_MAPS: [&str; 2] = ["WebMercatorQuad", "WorldCRS84Quad"];
/// The longest side of the smallest level.
const SMALLEST: u64 = 256;
/// The side of a tile whose size is not requested.
pub(super) const DEFAULT_TILE: u32 = 256;

/// The place of a tile in its path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path for the API document; `Address` reads it")]
pub(crate) struct TileAddress {
    /// Grid of tiles: `native`
    tms: String,
    /// Level, from 0 for the coarsest
    z: u32,
    /// Column of the tile
    x: u64,
    /// Row of the tile
    y: u64,
}

/// Where a tile is.
struct Address {
    z: u32,
    x: u64,
    y: u64,
}

/// Read a tile of a picture
///
/// Draws one square of the plane that `/v1/image` draws, with the same parameters for selection and colours. `native` tiles
/// are in the coordinates of the array: at the largest `z` a pixel is an element, at each smaller one a window of twice as many
/// rows and columns, and at `z=0` neither side has more than 256 pixels. `x` counts tiles from the first column, and `y` from
/// the first row. Pixels outside the array are transparent. `/v1/tilejson` has the largest `z`.
#[utoipa::path(
    method(get, head),
    path = TILE.template,
    tag = "images",
    params(
        MountParam,
        TileAddress,
        ("path" = String, Path, description = "Path of the node"),
        SelectionParams,
        AxesParams,
        TileParams,
        ColorParams,
        ImageFormatParams,
    ),
    responses(ImageResponses, ConditionResponses)
)]
pub(crate) async fn get_tile(State(state): State<AppState>, request: Request) -> Result<Response, Problem> {
    Box::pin(tile(&state, &plain(request))).await
}

/// Read a tile of a picture of the node at the root of a mount
#[utoipa::path(
    method(get, head),
    path = ROOT_TILE.template,
    tag = "images",
    params(
        MountParam,
        TileAddress,
        SelectionParams,
        AxesParams,
        TileParams,
        ColorParams,
        ImageFormatParams,
    ),
    responses(ImageResponses, ConditionResponses)
)]
pub(crate) async fn get_root_tile(state: State<AppState>, request: Request) -> Result<Response, Problem> {
    get_tile(state, request).await
}

async fn tile(state: &AppState, head: &Parts) -> Result<Response, Problem> {
    if let Some(answer) = precheck(state, head).await? {
        return Ok(answer);
    }
    let target = NodeTarget::new(&state.mounts, &TILE, &head.uri, &head.extensions)?;
    let address = Address::parse(head.uri.path())?;
    let (query, _) = query(&head.uri)?;
    check_format(&head.headers, query.format.format.as_deref())?;
    let side = query.tile.tile.unwrap_or(DEFAULT_TILE);
    let subject = opening::open(state, head, &target).await?;
    let subject = subject.with_labels(state, head, &target, &query).await?;
    let layout = whole_plane(&subject, &query)?;
    let levels = levels(&layout);
    if address.z >= levels {
        return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(format!(
            "there is no level {}; `z` is from 0 to {}",
            address.z,
            levels - 1
        )));
    }
    let halvings = levels - 1 - address.z;
    let (subject, layout, stored) = stored_level(subject, layout, &target, halvings).await?;
    let Some(layout) = address.part(layout, halvings - stored, side) else {
        return blank(state, &target, head, side).await;
    };
    let frame = PictureFrame::Square(halvings - stored, side);
    let scene = Scene::new(subject, layout, &query, frame, &state.engine.read)
        .map_err(|refused| respond::refused(state, refused))?;
    respond::respond(state, &target, head, Arc::new(scene), HeaderMap::new()).await
}

impl Address {
    /// The address in the path of a tile.
    fn parse(raw_path: &str) -> Result<Self, Problem> {
        let (_, [tms, z, x, y], _) = tile_of(raw_path)?;
        if OF_MAPS.contains(&tms.as_ref()) {
            return Err(Problem::from_class(ErrorClass::Unsupported).detail(format!(
                "tiles of `{tms}` are not supported yet; `{NATIVE}` tiles need no map projection"
            )));
        }
        let bad = |detail: String| Problem::from_class(ErrorClass::InvalidRequest).detail(detail);
        if tms != NATIVE {
            return Err(bad(format!("there is no grid of tiles `{tms}`; there is: {NATIVE}")));
        }
        let number = |name: &str, text: &str| {
            let is_plain = text.bytes().all(|digit| digit.is_ascii_digit());
            let number = text.parse::<u64>().ok().filter(|_| is_plain);
            number.ok_or_else(|| bad(format!("`{name}` of a tile is a whole number from 0")))
        };
        let z = u32::try_from(number("z", &z)?).unwrap_or(u32::MAX);
        Ok(Self { z, x: number("x", &x)?, y: number("y", &y)? })
    }

    /// The part of a plane that is in the tile after some halvings; `None` if there is none.
    fn part(&self, layout: Layout, halvings: u32, side: u32) -> Option<Layout> {
        let (rows, columns) = layout.sides();
        let cut = |range: AxisRange, place: u64| {
            let length =
                u64::from(side).checked_shl(halvings).filter(|length| length >> halvings == u64::from(side));
            let length = length.unwrap_or(u64::MAX);
            let start = place.checked_mul(length).filter(|&start| start < range.count)?;
            Some(range.part(start, length.min(range.count - start)))
        };
        let (rows, columns) = (cut(rows, self.y)?, cut(columns, self.x)?);
        Some(layout.with_sides(rows, columns))
    }
}

/// The layout of a plane with all its rows and columns.
pub(super) fn whole_plane(subject: &Subject, query: &ImageQuery) -> Result<Layout, Problem> {
    let bad = |detail: &'static str| Problem::from_class(ErrorClass::InvalidRequest).detail(detail);
    if query.plane.part_of_plane.is_some() || query.plane.size.is_some_and(|size| size != PictureSize::Max) {
        return Err(bad("a tile has a place and a size of its own, without `box` and `size`"));
    }
    if query.plane.level.is_some() {
        return Err(bad("the level of a tile follows from `z`, without `level`"));
    }
    let layout = subject.layout(query)?;
    let (rows, columns) = layout.sides();
    let shape = &subject.array.metadata().shape;
    if rows != AxisRange::full(shape[layout.rows]) || columns != AxisRange::full(shape[layout.columns]) {
        return Err(bad("tiles are of whole planes; the selection cannot cut rows or columns"));
    }
    Ok(layout)
}

/// How many levels the tiles of a plane have.
pub(super) fn levels(layout: &Layout) -> u32 {
    let (rows, columns) = layout.sides();
    let longest = rows.count.max(columns.count);
    1 + (0..64).find(|&halvings| halved(longest, halvings) <= SMALLEST).unwrap_or(63)
}

/// The smallest stored level of an image that a tile can be made from, and how many halvings it is away from the first.
async fn stored_level(
    subject: Subject,
    layout: Layout,
    target: &NodeTarget,
    halvings: u32,
) -> Result<(Subject, Layout, u32), Problem> {
    if subject.is_image && halvings > 0 {
        let (rows, columns) = layout.sides();
        for level in (1..subject.levels.len()).rev() {
            // A level that cannot be opened is passed over.
            let Ok((other, scaled)) = subject.at_level(target, &layout, level).await else { continue };
            let shape = &other.array.metadata().shape;
            let (height, width) = (shape[scaled.rows], shape[scaled.columns]);
            let is_halved =
                |length: u64, from: u64, by: u32| (from >> by..=halved(from, by)).contains(&length);
            let found = (1..=halvings)
                .find(|&by| is_halved(height, rows.count, by) && is_halved(width, columns.count, by));
            if let Some(found) = found {
                return Ok((other, scaled, found));
            }
        }
    }
    Ok((subject, layout, 0))
}

/// A tile outside the array.
async fn blank(state: &AppState, target: &NodeTarget, head: &Parts, side: u32) -> Result<Response, Problem> {
    let version = Version::strong(&format!("blank-{side}"));
    let mut answer = match Conditions::from_headers(&head.headers).for_read(&version, None) {
        Verdict::Failed => return Err(Problem::from_class(ErrorClass::PreconditionFailed)),
        Verdict::NotModified => StatusCode::NOT_MODIFIED.into_response(),
        Verdict::Proceed => {
            let file = state.engine.cpu.run(move || {
                let picture = Picture::new(1, 1, Pixels::Colors(vec![[0; 4]]));
                picture.map(|picture| picture.on_square(side).encode())
            });
            let file = file.await?.ok_or_else(|| Problem::from_class(ErrorClass::Internal))??;
            let mut answer = file.into_response();
            answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("image/png"));
            answer
        }
    };
    put_validators(answer.headers_mut(), &ValueInfo { size: 0, version, modified: None });
    answer.headers_mut().insert(header::CACHE_CONTROL, target.mount.cache_control.of_decoded());
    Ok(answer)
}

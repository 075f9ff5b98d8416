//! `/v1/image/{mount}/{path}`: pictures of arrays, images and datasets; their tiles and legends.

mod channels;
mod headers;
mod layout;
mod legend;
mod ome;
mod orientation;
mod query;
mod range;
mod reduced;
mod respond;
mod sample;
mod scene;
mod subject;
mod tilejson;
mod tiles;
mod values;

use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::Response;
use utoipa::{IntoParams, IntoResponses};
use utoipa_axum::routes;

use crate::api::data::error::ElementsError;
use crate::api::data::precheck;
use crate::auth::caller::Caller;
use crate::error::ErrorClass;
use crate::http::base_path::BasePath;
use crate::http::negotiate::{self, Offer};
use crate::http::path::encode;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::http::validators::from_text;
use crate::services::extract::NodeTarget;
use crate::services::route::Route;
use crate::services::state::AppState;
use layout::Layout;
use orientation::orientation;
use query::{ImageQuery, ImageQueryError, Origin};
use scene::{Frame, Scene, boxed};
use subject::Subject;

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
pub(crate) fn routes() -> Vec<Route> {
    let mut routes =
        vec![Route::new(&IMAGE, routes!(get_image)), Route::new(&ROOT_IMAGE, routes!(get_root_image))];
    routes.extend(tiles::routes());
    routes.extend(tilejson::routes());
    routes.extend(legend::routes());
    routes
}

/// The formats of pictures.
const OFFERS: &[Offer] = &[Offer { name: "png", media_type: "image/png" }];

/// Parameters that say how numbers become colours, as `ImageQuery` parses them.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query for the API document; `ImageQuery` reads it")]
pub(crate) struct ColorParams {
    /// Colormap: `viridis`, `magma`, `inferno`, `plasma`, `cividis`, `gray`, `turbo`, `RdBu`, `Spectral` or `coolwarm`, each
    /// also with `_r` at its end for the reverse; `categories` for labels; `none` for the numbers of the range as shades of
    /// gray. The default is `viridis`, `gray` for OME images, and `categories` for labels. Alias: `colormap_name`.
    colormap: Option<String>,
    /// Colours of a colormap at equal distances, such as `000000,ff0000,ffffff`.
    colors: Option<String>,
    /// Range of the colours: `lo,hi`, `auto` (default), `slice` (the extremes of the picture), percentiles of the picture such as
    /// `2%,98%`, or `type`. Aliases: `rescale`, `colorscalerange`.
    range: Option<String>,
    /// Scale of the colours within the range: `linear` (default), `log`, `sqrt` or `gamma:0.5`.
    scale: Option<String>,
    /// Colour of numbers below the range: `extend` (default), `transparent`, or a colour such as `ff0000` or `ff000080`.
    below: Option<String>,
    /// Colour of numbers above the range, as `below`.
    above: Option<String>,
    /// Colour of missing values and NaN: `transparent` (default) or a colour.
    missing: Option<String>,
    /// Channels of a composite: an index each, and after colons a colour and the ends of a range, such as
    /// `0:0000ff:0:1500,2:ff0000`; or `omero` for those that the metadata of an OME image shows.
    channels: Option<String>,
    /// Channels of red, green and blue, such as `0,1,2`.
    rgb: Option<String>,
    /// Part of complex numbers: `abs` (default), `real`, `imag` or `arg`.
    part: Option<String>,
    /// A field of a struct data type.
    fields: Option<String>,
    /// Bits of each pixel: `8` (default), or `16` together with `colormap=none`.
    bits: Option<String>,
    /// `cf` (default) applies `_FillValue`, `missing_value`, `scale_factor`, `add_offset` and `_Unsigned`; `none` draws the stored
    /// numbers.
    decode: Option<String>,
    /// How elements are put together in a smaller picture: `auto` (default: `mode` for labels and bool, else `mean`), `mean`,
    /// `mode`, `min`, `max` or `stride`.
    method: Option<String>,
}

/// Parameters that select the elements of a picture, as `ImageQuery` parses them.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query for the API document; `ImageQuery` reads it")]
pub(crate) struct PlaneParams {
    /// Selection by position, as in `/v1/data`. A dimension that is neither rows nor columns and is selected whole has its
    /// default index. Alias: `select`.
    slice: Option<String>,
    /// Selection by dimension name, as in `/v1/data`.
    #[param(rename = "isel.NAME", style = Form, explode, example = json!({}), value_type = Option<std::collections::BTreeMap<String, String>>)]
    isel: Option<String>,
    /// Dimensions of the rows and of the columns, by name or number, such as `y,x`.
    axes: Option<String>,
    /// Most pixels of the longer side (`512`, the default), or of width and height (`640,480`), or `max`.
    size: Option<String>,
    /// Part of the plane: first column, first row, width and height in elements.
    #[param(rename = "box")]
    part_of_plane: Option<String>,
    /// Stored level of an OME image, from 0. The default is the smallest that fills the picture.
    level: Option<String>,
    /// Where the first row is: `upper`, `lower` or `auto` (default).
    origin: Option<String>,
    /// Response format: `png`. Alias: `f`.
    format: Option<String>,
}

/// Responses of the routes for pictures.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes the answers for the API document")]
pub(crate) enum ImageResponses {
    /// The picture. The headers `Array-Slice`, `Array-Downsample` and `Image-Range` describe it.
    #[response(status = 200, content_type = "image/png")]
    Picture,
    /// Not modified: the picture still has an entity tag of `If-None-Match`.
    #[response(status = 304)]
    NotModified,
    /// A parameter is invalid, or the selection is no plane.
    #[response(status = 400)]
    NotUnderstood,
    /// The mount or the node does not exist.
    #[response(status = 404)]
    NotFound,
    /// `Accept` does not allow PNG.
    #[response(status = 406)]
    NotAcceptable,
    /// The precondition failed.
    #[response(status = 412)]
    PreconditionFailed,
    /// More elements would have to be read than the configuration allows.
    #[response(status = 413)]
    TooLarge,
    /// The node has no picture (`no-picture`).
    #[response(status = 422)]
    NoPicture,
}

/// Read a picture of an array
///
/// Draws a plane of an array, an OME image, a plate or a dataset as a PNG file. The number of an element is placed within a
/// range, and one of the 256 colours of a colormap belongs to each of 256 equal parts of it.
///
/// Rows and columns are the dimensions that are called so (`y` and `x`, `lat` and `lon`), else the last two. Every other
/// dimension has one index: that of the selection, or a default that depends on the metadata alone; `Array-Slice` says which.
/// A plane that is larger than `size` is halved until it fits, by whole windows.
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
        PlaneParams,
        ColorParams,
    ),
    responses(ImageResponses)
)]
pub(crate) async fn get_image(State(state): State<AppState>, request: Request) -> Result<Response, Problem> {
    Box::pin(image(&state, &plain(request))).await
}

/// The head of a request. Without an `Accept` that allows PNG, the response depends on the URL alone and can be cached by it.
fn plain(request: Request) -> Parts {
    let mut head = request.into_parts().0;
    if negotiate::choose(&head.headers, None, OFFERS).is_ok() {
        head.headers.remove(header::ACCEPT);
    }
    head
}

/// Read a picture of the node at the root of a mount
#[utoipa::path(
    method(get, head),
    path = ROOT_IMAGE.template,
    tag = "images",
    params(("mount" = String, Path, description = "Name of a mount"), PlaneParams, ColorParams),
    responses(ImageResponses)
)]
pub(crate) async fn get_root_image(state: State<AppState>, request: Request) -> Result<Response, Problem> {
    get_image(state, request).await
}

async fn image(state: &AppState, head: &Parts) -> Result<Response, Problem> {
    if let Some(answer) = precheck(state, head).await? {
        return Ok(answer);
    }
    let target = NodeTarget::new(state, &IMAGE, &head.uri, &head.extensions)?;
    let (query, pairs) = query(&head.uri)?;
    check_format(&head.headers, query.format.as_deref())?;
    let subject = Subject::open(state, head, &target).await?;
    let layout = boxed(subject.layout(&query)?, &query, &subject.array.metadata().shape)?;
    let frame = Frame::of(&query, state.options().image.max_pixels);
    let location = content_location(head, &pairs, &layout);
    let (subject, layout) = level(subject, layout, &target, &query, frame).await?;
    let mut scene = Scene::new(subject, layout, &query, frame, state.read_limits())
        .map_err(|refused| refused.into_problem(state))?;
    match query.origin.unwrap_or_default() {
        Origin::Upper => {}
        Origin::Lower => scene.flips_rows = true,
        Origin::Auto => {
            let caller = Caller::of(&head.extensions);
            let found = orientation(state, &target, caller, &scene.subject, &scene.layout).await?;
            scene.flips_rows =
                found.ascends != (scene.layout.sides().0.step < 0) && !found.versions.is_empty();
            scene.versions = found.versions;
        }
    }
    respond::respond(state, &target, head, Arc::new(scene), location).await
}

/// Chooses the stored level of an image that a picture is made from: the smallest that fills the frame.
async fn level(
    subject: Subject,
    layout: Layout,
    target: &NodeTarget,
    query: &ImageQuery,
    frame: Frame,
) -> Result<(Subject, Layout), Problem> {
    match query.level {
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

/// The pairs of a query, and what they say.
fn query(uri: &Uri) -> Result<(ImageQuery, Vec<(String, String)>), ImageQueryError> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|error| ImageQueryError::Unreadable(error.body_text()))?;
    Ok((ImageQuery::parse(&pairs)?, pairs))
}

/// Rejects a request for another format than PNG.
fn check_format(headers: &HeaderMap, format: Option<&str>) -> Result<(), Problem> {
    if let Some("jpeg" | "jpg" | "webp") = format {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "unknown-format")
            .detail("pictures are PNG files, which lose nothing; other formats are not offered"));
    }
    negotiate::choose(headers, format, OFFERS)?;
    Ok(())
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

/// A scene that cannot be planned.
pub(crate) enum Refused {
    /// For a reason that the problem states.
    Problem(Problem),
    /// Because it costs more than a limit; the selection of the first plane.
    Cost(crate::array::ArrayError, Arc<crate::array::Array>, crate::chunk::Subset),
}

impl Refused {
    fn into_problem(self, state: &AppState) -> Problem {
        match self {
            Self::Problem(problem) => problem,
            Self::Cost(error, array, subset) => {
                respond::problem(state, &array, &subset, ElementsError::from(error))
            }
        }
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

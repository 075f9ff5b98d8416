//! `/v1/legend/{mount}/{path}`: the colours of pictures, and what they stand for.

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::Body as HttpBody;
use serde_json::{Value, json};
use utoipa_axum::routes;

use super::opening;
use super::params::{AxesParams, ColorParams, ImageFormatParams, LegendParams};
use super::query::ImageQuery;
use super::range::RangeSource;
use super::request::query;
use super::respond;
use super::sampled;
use super::scene::{Drawing, PictureFrame, Scene, flag_value};
use super::words::RangeWord;
use crate::admission::AdmissionRequest;
use crate::api::json_response::text_answer;
use crate::api::selection::SelectionParams;
use crate::error::ErrorClass;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::negotiate::{self, Offer};
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::http::validators::put_validators;
use crate::render::raster::{Color, Colormap, Mapping, Outside, Picture, ramps};
use crate::services::extract::NodeTarget;
use crate::services::route::Route;
use crate::services::state::AppState;
use crate::store::{ValueInfo, Version};

/// The legend of a picture.
pub(crate) const LEGEND: RouteSpec =
    RouteSpec::new("/v1/legend/{mount}/{*path}", Resource::Node).admitted_by(AdmittedBy::Handler);

/// The legend of the picture of the node at the root of a mount.
pub(crate) const ROOT_LEGEND: RouteSpec = RouteSpec::new("/v1/legend/{mount}", Resource::Node)
    .with_slash("/v1/legend/{mount}/")
    .admitted_by(AdmittedBy::Handler);

/// The legend of a colormap.
pub(crate) const COLORMAP: RouteSpec =
    RouteSpec::new("/v1/legend", Resource::Public).admitted_by(AdmittedBy::Exempt);

/// The routes of legends.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(&LEGEND, routes!(get_legend)),
        Route::new(&ROOT_LEGEND, routes!(get_root_legend)),
        Route::new(&COLORMAP, routes!(get_colormap)),
    ]
}

/// The formats of legends; the first is the default.
const OFFERS: &[Offer] =
    &[Offer { name: "png", media_type: "image/png" }, Offer { name: "json", media_type: "application/json" }];
/// Pixels of a legend whose size is not requested.
const LEGEND_SIZE: (u32, u32) = (256, 16);
/// Numbers beside the colours of a legend in JSON.
const STOPS: u32 = 5;
/// Part of the entity tag of legends. It changes whenever a release draws them differently.
const RENDERER: &str = "legend 1";

/// What the colours of a picture stand for.
enum Legend {
    Colormap { colormap: Box<Colormap>, mapping: Mapping, outside: (Outside, Outside, Color) },
    Channels(Vec<(Option<u64>, Color, (f64, f64))>),
    Categories(Vec<(i128, Color, Option<String>)>),
}

/// Read the legend of a picture
///
/// Returns the colours of the picture that `/v1/image` draws with the same parameters, from the smallest number to the
/// largest: as a PNG file, or in JSON with the numbers. `range=auto` is resolved; `range=slice` and percentiles belong to one
/// picture, whose header `Image-Range` has them.
#[utoipa::path(
    method(get, head),
    path = LEGEND.template,
    tag = "images",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("path" = String, Path, description = "Path of the node"),
        SelectionParams,
        AxesParams,
        ColorParams,
        LegendParams,
        ImageFormatParams,
    ),
    responses(
        (status = 200, description = "The legend", content((Vec<u8> = "image/png"), (Value = "application/json"))),
        (status = 304, description = "The legend still has an entity tag of `If-None-Match`"),
        (status = 400, description = "A parameter is invalid"),
        (status = 404, description = "The mount or the node does not exist"),
        (status = 406, description = "`Accept` allows neither PNG nor JSON"),
        (status = 422, description = "The node has no picture, or its labels have no names (`no-picture`)"),
    )
)]
pub(crate) async fn get_legend(State(state): State<AppState>, request: Request) -> Result<Response, Problem> {
    Box::pin(legend(&state, &request.into_parts().0)).await
}

/// Read the legend of the picture of the node at the root of a mount
#[utoipa::path(
    method(get, head),
    path = ROOT_LEGEND.template,
    tag = "images",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        SelectionParams,
        AxesParams,
        ColorParams,
        LegendParams,
        ImageFormatParams,
    ),
    responses(
        (status = 200, description = "The legend", content((Vec<u8> = "image/png"), (Value = "application/json"))),
        (status = 404, description = "The mount does not exist, or its root is not a node"),
    )
)]
pub(crate) async fn get_root_legend(state: State<AppState>, request: Request) -> Result<Response, Problem> {
    get_legend(state, request).await
}

/// Read the legend of a colormap
///
/// Returns the colours of `colormap` or `colors` for the range `lo,hi` (`0,1` without one), as a PNG file or in JSON.
#[utoipa::path(
    method(get, head),
    path = COLORMAP.template,
    tag = "images",
    params(ColorParams, LegendParams, ImageFormatParams),
    responses(
        (status = 200, description = "The legend", content((Vec<u8> = "image/png"), (Value = "application/json"))),
        (status = 304, description = "The legend still has an entity tag of `If-None-Match`"),
        (status = 400, description = "A parameter is invalid"),
        (status = 406, description = "`Accept` allows neither PNG nor JSON"),
    )
)]
pub(crate) async fn get_colormap(
    State(state): State<AppState>,
    request: Request,
) -> Result<Response, Problem> {
    colormap(&state, &request.into_parts().0).await
}

/// A scene of one element of a node: its colours are those of every picture of the node.
pub(super) async fn scene(
    state: &AppState,
    head: &Parts,
    target: &NodeTarget,
    query: &ImageQuery,
) -> Result<Scene, Problem> {
    let subject = opening::open(state, head, target).await?;
    let subject = subject.with_labels(state, head, target, query).await?;
    let layout = subject.layout(query)?;
    let (rows, columns) = layout.sides();
    let layout = layout.with_sides(rows.part(0, 1), columns.part(0, 1));
    Scene::new(subject, layout, query, PictureFrame::Square(0, 1), &state.engine.read)
        .map_err(|refused| respond::refused(state, refused))
}

/// The path of the legend of a node.
pub(super) fn legend_path(mount: &str, path: &str) -> String {
    format!("/v1/legend/{mount}{path}")
}

async fn legend(state: &AppState, head: &Parts) -> Result<Response, Problem> {
    let target = NodeTarget::new(&state.mounts, &LEGEND, &head.uri, &head.extensions)?;
    let (query, _) = query(&head.uri)?;
    let offer = negotiate::choose(&head.headers, query.format.format.as_deref(), OFFERS)?;
    let scene = scene(state, head, &target, &query).await?;
    if scene.planes.iter().any(|plane| !matches!(plane.range, RangeSource::Known(..) | RangeSource::Sample)) {
        return Err(Problem::from_class(ErrorClass::InvalidRequest)
            .detail("`range`: a legend needs `lo,hi`, `auto` or `type`; the header `Image-Range` of a picture has its ends"));
    }
    let mut permit =
        state.traffic.admission.acquire(AdmissionRequest::to_elements(head), scene.sample_bytes()).await?;
    let ranges = sampled::ranges(state, &scene).await?;
    let attributes = scene.subject.attributes();
    let text = |name: &str| attributes.get(name).and_then(Value::as_str).map(str::to_owned);
    let legend = of_scene(&scene, &ranges)?;
    let described =
        json!({ "units": text("units"), "name": text("long_name").or_else(|| text("standard_name")) });
    let mut answer = answer(state, &head.headers, &legend, &query, offer, described).await?;
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // The sample was read; what is left is the legend.
    permit.resize(HttpBody::size_hint(answer.body()).upper().unwrap_or_default())?;
    Ok(permit.hold(answer))
}

async fn colormap(state: &AppState, head: &Parts) -> Result<Response, Problem> {
    let (query, _) = query(&head.uri)?;
    let offer = negotiate::choose(&head.headers, query.format.format.as_deref(), OFFERS)?;
    let bad = |detail: &'static str| Problem::from_class(ErrorClass::InvalidRequest).detail(detail);
    let (low, high) = match query.color.range {
        None => (0.0, 1.0),
        Some(RangeWord::Given(low, high)) => (low, high),
        Some(_) => return Err(bad("without an array, `range` is `lo,hi`")),
    };
    let colormap = query
        .color
        .colormap()
        .ok_or_else(|| bad("without an array, `colormap` is a name, or `colors` has the colours"))?;
    let mapping = Mapping::new(low, high, query.color.scale.unwrap_or_default())
        .ok_or_else(|| bad("`scale=log` needs a range that begins above 0, such as `range=0.01,100`"))?;
    let outside = (
        query.color.below.unwrap_or_default(),
        query.color.above.unwrap_or_default(),
        query.color.missing.unwrap_or(Color::TRANSPARENT),
    );
    let legend = Legend::Colormap { colormap: Box::new(colormap), mapping, outside };
    answer(state, &head.headers, &legend, &query, offer, json!({})).await
}

/// The legend of a scene.
fn of_scene(scene: &Scene, ranges: &[(f64, f64)]) -> Result<Legend, Problem> {
    let internal = || Problem::from_class(ErrorClass::Internal);
    let &(low, high) = ranges.first().ok_or_else(internal)?;
    let colormap = match &scene.drawing {
        Drawing::Categories(categories) => {
            let mut named = names(scene);
            for (label, _) in categories.known() {
                if !named.iter().any(|(known, _)| *known == label) {
                    named.push((label, None));
                }
            }
            named.sort_unstable_by_key(|(label, _)| *label);
            let entry = |(label, name)| (label, categories.color(label), name);
            return Ok(Legend::Categories(named.into_iter().map(entry).collect()));
        }
        Drawing::Composite => {
            let channels = scene.planes.iter().zip(ranges);
            return Ok(Legend::Channels(
                channels.map(|(plane, &range)| (plane.channel, plane.color, range)).collect(),
            ));
        }
        Drawing::Mapped(colormap) => colormap.clone(),
        Drawing::Gray16 => Box::new(Colormap::named("gray").ok_or_else(internal)?),
    };
    let mapping = Mapping::new(low, high, scene.scale).ok_or_else(internal)?;
    Ok(Legend::Colormap { colormap, mapping, outside: (scene.below, scene.above, scene.missing) })
}

/// The values of labels in the attributes of an array, with their names (CF Conventions 1.11, section 3.5).
fn names(scene: &Scene) -> Vec<(i128, Option<String>)> {
    let attributes = scene.subject.attributes();
    let values =
        attributes.get("flag_values").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let meanings = attributes.get("flag_meanings").and_then(Value::as_str).unwrap_or_default();
    let mut meanings = meanings.split_whitespace();
    let pair = |value: &Value| {
        let meaning = meanings.next().map(str::to_owned);
        Some((flag_value(value)?, meaning))
    };
    values.iter().take(1 << 16).filter_map(pair).collect()
}

impl Legend {
    fn ramps(&self) -> Vec<Vec<Color>> {
        let light = |color: Color| Colormap::from_stops(&[Color::opaque(0), color]).colors().to_vec();
        match self {
            Self::Colormap { colormap, .. } => vec![colormap.colors().to_vec()],
            Self::Channels(channels) => channels.iter().map(|(_, color, _)| light(*color)).collect(),
            Self::Categories(labels) => vec![labels.iter().map(|(_, color, _)| *color).collect()],
        }
    }

    fn document(&self) -> Value {
        match self {
            Self::Colormap { colormap, mapping, outside: (below, above, missing) } => {
                let colors: Vec<String> = colormap.colors().iter().map(ToString::to_string).collect();
                let stop = |at: u32| {
                    let place = f64::from(at) / f64::from(STOPS - 1);
                    let color = usize::try_from(at * 255 / (STOPS - 1)).unwrap_or_default();
                    json!({ "value": mapping.number(place), "color": colors.get(color) })
                };
                let outside = |outside: &Outside| match outside {
                    Outside::Extend => "extend".to_owned(),
                    Outside::Color(color) => color.to_string(),
                };
                let (low, high) = mapping.range();
                json!({
                    "kind": "colormap",
                    "range": [low, high],
                    "scale": mapping.scale().name(),
                    "stops": (0..STOPS).map(stop).collect::<Vec<_>>(),
                    "colors": colors,
                    "below": outside(below),
                    "above": outside(above),
                    "missing": missing.to_string(),
                })
            }
            Self::Channels(channels) => {
                let channel = |(channel, color, (low, high)): &(Option<u64>, Color, (f64, f64))| json!({ "channel": channel, "color": color.to_string(), "range": [low, high] });
                json!({ "kind": "channels", "channels": channels.iter().map(channel).collect::<Vec<_>>() })
            }
            Self::Categories(labels) => {
                let label = |(value, color, name): &(i128, Color, Option<String>)| json!({ "value": i64::try_from(*value).ok(), "color": color.to_string(), "name": name });
                json!({ "kind": "categories", "categories": labels.iter().map(label).collect::<Vec<_>>() })
            }
        }
    }
}

/// The response with a legend, and in JSON with what describes it.
async fn answer(
    state: &AppState,
    headers: &HeaderMap,
    legend: &Legend,
    query: &ImageQuery,
    offer: Offer,
    described: Value,
) -> Result<Response, Problem> {
    let mut document = legend.document();
    if let (Value::Object(document), Value::Object(described)) = (&mut document, described) {
        document.extend(described.into_iter().filter(|(_, value)| !value.is_null()));
    }
    let text = document.to_string();
    let (width, height) =
        (query.legend.width.unwrap_or(LEGEND_SIZE.0), query.legend.height.unwrap_or(LEGEND_SIZE.1));
    let mut answer = if offer.name == "json" {
        let version = Version::from_text(text.as_bytes());
        text_answer(headers, [text.into()], version)
    } else {
        let version = Version::from_text(format!("{RENDERER} {width} {height} {text}").as_bytes());
        let colors = legend.ramps();
        let file = state.engine.cpu.run(move || ramps(&colors, width, height).map(Picture::encode));
        let file = file.await?.ok_or_else(|| {
            super::layout::no_picture("the labels of the array have no names and no colours".to_owned())
        })??;
        file_answer(headers, file.into(), version)
    };
    answer.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(answer)
}

/// The response to a GET of a PNG file of this version.
fn file_answer(headers: &HeaderMap, file: Bytes, version: Version) -> Response {
    let mut answer = match Conditions::from_headers(headers).for_read(&version, None) {
        Verdict::Failed => return Problem::from_class(ErrorClass::PreconditionFailed).into_response(),
        Verdict::NotModified => StatusCode::NOT_MODIFIED.into_response(),
        Verdict::Proceed => {
            let mut answer = file.into_response();
            answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("image/png"));
            answer
        }
    };
    put_validators(answer.headers_mut(), &ValueInfo { size: 0, version, modified: None });
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

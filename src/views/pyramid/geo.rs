//! The Zarr conventions `multiscales`, `spatial:` and `proj:` of an image that has a place on a map.
//!
//! What the array says of its place, or else the group above it, is true of the image. Each level has the transform of its
//! own elements: the corner of the first stays, and the sizes grow.

use serde_json::{Map, Value, json};

use super::image::Image;
use super::levels::as_f64;
use crate::hierarchy::Node;
use crate::metadata::Attributes;
use crate::reduce::Method;

/// The identifier of the convention `multiscales`.
const MULTISCALES_ID: &str = "d35379db-88df-4056-af3a-620245f8e347";
/// Most bytes of attributes that are copied.
const MAX_BYTES: usize = 256 << 10;

/// The attributes of an image's group that are about its place; `None` if it has none.
pub(super) fn members(image: &Image) -> Option<Map<String, Value>> {
    let own = placed(&image.array.metadata().attributes);
    let above = || match image.above.as_ref().map(|above| &above.node) {
        Some(Node::Group(group)) => placed(&group.attributes),
        _ => None,
    };
    let mut members = own.or_else(above)?;
    let conventions = match members.remove("zarr_conventions") {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let is_other =
        |convention: &Value| convention.get("uuid").and_then(Value::as_str) != Some(MULTISCALES_ID);
    let mut conventions: Vec<Value> = conventions.into_iter().filter(is_other).collect();
    conventions.push(json!({ "uuid": MULTISCALES_ID, "name": "multiscales" }));
    let layout: Vec<Value> = (0..image.names.len()).map(|level| entry(image, level, &members)).collect();
    members.insert("zarr_conventions".to_owned(), Value::Array(conventions));
    members.insert(
        "multiscales".to_owned(),
        json!({ "layout": layout, "resampling_method": resampling(image.method) }),
    );
    Some(members)
}

/// The attributes about the place of a node; `None` if there are none.
fn placed(attributes: &Attributes) -> Option<Map<String, Value>> {
    if attributes.text().len() > MAX_BYTES
        || !["\"spatial:", "\"proj:"].iter().any(|name| attributes.text().contains(name))
    {
        return None;
    }
    let is_place = |name: &str| name.starts_with("spatial:") || name.starts_with("proj:");
    let object = attributes.object();
    if !object.keys().any(|name| is_place(name)) {
        return None;
    }
    let wanted = object.iter().filter(|(name, _)| is_place(name) || *name == "zarr_conventions");
    Some(wanted.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// A level.
fn entry(image: &Image, level: usize, place: &Map<String, Value>) -> Value {
    let name = |level: usize| image.names.get(level).map(String::as_str).unwrap_or_default();
    let mut entry = Map::new();
    entry.insert("asset".to_owned(), json!(name(level)));
    let step = level.checked_sub(1).and_then(|before| image.levels.steps.get(before));
    let scale: Vec<f64> = match step {
        Some(step) => step.iter().copied().map(as_f64).collect(),
        None => vec![1.0; image.axes().len()],
    };
    entry.insert("transform".to_owned(), json!({ "scale": scale }));
    if level > 0 {
        entry.insert("derived_from".to_owned(), json!(name(level - 1)));
    }
    let (rows, columns) = image.levels.plane;
    if let Some(shape) = image.levels.shapes.get(level) {
        entry.insert("spatial:shape".to_owned(), json!([shape.get(rows), shape.get(columns)]));
    }
    let factors = image.levels.factors(level);
    let factor = |axis: usize| factors.get(axis).copied().map_or(1.0, as_f64);
    let is_of_centers = place.get("spatial:registration").and_then(Value::as_str) == Some("node");
    if let Some(transform) = place
        .get("spatial:transform")
        .and_then(|given| scaled(given, factor(rows), factor(columns), is_of_centers))
    {
        entry.insert("spatial:transform".to_owned(), json!(transform));
    }
    Value::Object(entry)
}

/// The transform of a level whose elements are made of this number of rows and columns.
fn scaled(given: &Value, rows: f64, columns: f64, is_of_centers: bool) -> Option<[f64; 6]> {
    let numbers: Vec<f64> = given.as_array()?.iter().map(Value::as_f64).collect::<Option<_>>()?;
    let [of_x @ .., y_by_column, y_by_row, top] = <[f64; 6]>::try_from(numbers).ok()?;
    let [x_by_column, x_by_row, left] = of_x;
    // The centre of the first element is moved by half of the difference of the sizes.
    let (right, down) = if is_of_centers { ((columns - 1.0) / 2.0, (rows - 1.0) / 2.0) } else { (0.0, 0.0) };
    Some([
        x_by_column * columns,
        x_by_row * rows,
        left + x_by_column * right + x_by_row * down,
        y_by_column * columns,
        y_by_row * rows,
        top + y_by_column * right + y_by_row * down,
    ])
}

/// The method in the words of the convention.
fn resampling(method: Method) -> &'static str {
    match method {
        Method::Mean => "average",
        Method::Mode => "mode",
        Method::Min => "min",
        Method::Max => "max",
        Method::Stride => "nearest",
    }
}

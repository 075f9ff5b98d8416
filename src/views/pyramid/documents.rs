//! The documents of an image's group: OME-Zarr 0.5 in `zarr.json`, OME-Zarr 0.4 in `.zattrs`, and the Zarr convention
//! `multiscales` in `zarr.json` where the array has a place on a map.
//!
//! An element of a level is made of a window, so its centre is not that of the first element of the window: it is moved by
//! half of the difference of the sizes.

use serde_json::{Map, Value, json};

use super::image::Image;
use super::levels::as_f64;
use super::{geo, ome, omero};
use crate::hierarchy::Node;
use crate::metadata::{Attributes, GroupMetadata, MetadataLimits, ZarrFormat, parse_document};
use crate::views::rechunk::{ZARR_JSON, ZATTRS, ZGROUP, zgroup};

/// The text of the document of this name of an image's group; `None` if it has none.
pub(super) fn image_text(image: &Image, name: &str) -> Option<String> {
    match name {
        ZARR_JSON => Some(zarr_json(image_attributes(image, ZarrFormat::V3))),
        ZATTRS => Some(image_attributes(image, ZarrFormat::V2).text().to_owned()),
        ZGROUP => Some(zgroup().to_string()),
        _ => None,
    }
}

/// The text of the document of this name of any other group; `None` if it has none.
pub(super) fn group_text(group: &GroupMetadata, name: &str) -> Option<String> {
    let in_format = |format| ome::in_format(&group.attributes, group.zarr_format, format);
    match name {
        ZARR_JSON => Some(zarr_json(in_format(ZarrFormat::V3))),
        ZATTRS => Some(in_format(ZarrFormat::V2).text().to_owned()),
        ZGROUP => Some(zgroup().to_string()),
        _ => None,
    }
}

/// The stored `zarr.json` of an array with other names of its dimensions, which OME-Zarr 0.5 requires to be those of the axes;
/// `None` if it is not that of an array with as many dimensions. All else is as it is stored: the order of members, and the text
/// of numbers.
pub(super) fn with_dimension_names(
    document: &[u8],
    names: &[Option<String>],
    limits: &MetadataLimits,
) -> Option<String> {
    let Ok(Value::Object(mut members)) = parse_document(document, limits) else { return None };
    if members.get("shape")?.as_array()?.len() != names.len() {
        return None;
    }
    members.insert("dimension_names".to_owned(), json!(names));
    Some(Value::Object(members).to_string())
}

fn zarr_json(attributes: Attributes) -> String {
    GroupMetadata { zarr_format: ZarrFormat::V3, is_consolidated: false, attributes }.to_text()
}

/// The attributes of an image's group in one version of the format.
fn image_attributes(image: &Image, format: ZarrFormat) -> Attributes {
    if let Some(Node::Group(group)) = image.group.as_ref().map(|group| &group.node) {
        let extended = with_levels(image, &group.attributes).unwrap_or_else(|| group.attributes.clone());
        return ome::in_format(&extended, group.zarr_format, format);
    }
    let mut attributes = Map::new();
    let (mut multiscale, omero) = (Value::Object(multiscale(image)), omero::of_array(image));
    match format {
        ZarrFormat::V3 => {
            if let Some(members) = geo::members(image) {
                attributes.extend(members);
            }
            let mut ome = Map::new();
            ome.insert("version".to_owned(), json!("0.5"));
            ome.insert("multiscales".to_owned(), json!([multiscale]));
            ome.extend(omero.map(|omero| ("omero".to_owned(), omero)));
            attributes.insert("ome".to_owned(), Value::Object(ome));
        }
        ZarrFormat::V1 | ZarrFormat::V2 => {
            ome::set_version(&mut multiscale);
            attributes.insert("multiscales".to_owned(), json!([multiscale]));
            if let Some(mut omero) = omero {
                ome::set_version(&mut omero);
                attributes.insert("omero".to_owned(), omero);
            }
        }
    }
    Attributes::from(attributes)
}

/// The description of the levels of an array.
fn multiscale(image: &Image) -> Map<String, Value> {
    let mut members = Map::new();
    if !image.path.name().is_empty() {
        members.insert("name".to_owned(), json!(image.path.name()));
    }
    let axes = image.axes().iter().map(|axis| match axis.kind {
        Some(kind) => json!({ "name": axis.name, "type": kind }),
        None => json!({ "name": axis.name }),
    });
    members.insert("axes".to_owned(), axes.collect());
    let (scale, translation) = (vec![1.0; image.axes().len()], vec![0.0; image.axes().len()]);
    let datasets = (0..image.names.len()).map(|level| dataset(image, level, &scale, &translation));
    members.insert("datasets".to_owned(), datasets.collect());
    members.insert("type".to_owned(), json!(image.method.name()));
    members
}

/// A level, where the array that it is made from has this scale and translation.
fn dataset(image: &Image, level: usize, scale: &[f64], translation: &[f64]) -> Value {
    let factors = image.levels.factors(level).into_iter().map(as_f64);
    let scaled: Vec<f64> = factors.zip(scale).map(|(factor, scale)| factor * scale).collect();
    let moved = scaled.iter().zip(scale).zip(translation);
    let moved: Vec<f64> = moved.map(|((scaled, scale), by)| by + (scaled - scale) / 2.0).collect();
    let mut transformations = vec![json!({ "type": "scale", "scale": scaled })];
    if moved.iter().any(|&by| by != 0.0) {
        transformations.push(json!({ "type": "translation", "translation": moved }));
    }
    let path = image.names.get(level).map(String::as_str).unwrap_or_default();
    json!({ "path": path, "coordinateTransformations": transformations })
}

/// The attributes of an image that is stored, with its further levels; `None` if these are not where OME-Zarr has them.
fn with_levels(image: &Image, attributes: &Attributes) -> Option<Attributes> {
    let mut members = Map::clone(&attributes.object());
    let holder = match members.get_mut("ome") {
        Some(Value::Object(ome)) => ome,
        _ => &mut members,
    };
    let datasets = holder.get_mut("multiscales")?.get_mut(0)?.get_mut("datasets")?.as_array_mut()?;
    let (scale, translation) = ome::transform(datasets.last()?, image.axes().len())?;
    for level in 1..image.names.len() {
        datasets.push(dataset(image, level, &scale, &translation));
    }
    Some(Attributes::from(members))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_dimensions_change_in_a_stored_document() {
        let names = ["y", "x"].map(|name| Some(name.to_owned()));
        let renamed =
            |document: &str| with_dimension_names(document.as_bytes(), &names, &MetadataLimits::default());
        assert_eq!(
            renamed(r#"{ "shape":[2, 3],"fill_value":1.50,"x":{"must_understand":false},"attributes":{"b":1,"a":-0.0} }"#).unwrap(),
            r#"{"shape":[2,3],"fill_value":1.50,"x":{"must_understand":false},"attributes":{"b":1,"a":-0.0},"dimension_names":["y","x"]}"#
        );
        assert_eq!(
            renamed(r#"{"dimension_names":["lat",null],"shape":[2,3]}"#).unwrap(),
            r#"{"dimension_names":["y","x"],"shape":[2,3]}"#
        );
        for other in
            ["", "[]", "{}", r#"{"shape":[2]}"#, r#"{"shape":2}"#, r#"{"shape":[2,3],"shape":[2,3]}"#]
        {
            assert_eq!(renamed(other), None, "{other}");
        }
    }
}

//! Attributes of OME-Zarr in both versions of the format: 0.5 below `ome` in v3, 0.4 at the top in v2.

use serde_json::{Map, Value, json};

use crate::metadata::{Attributes, ZarrFormat};

/// The members of OME-Zarr 0.4 that 0.5 has below `ome`.
const MEMBERS: [&str; 8] =
    ["multiscales", "omero", "image-label", "labels", "plate", "well", "bioformats2raw.layout", "series"];
/// Those of them without which a group is not one of OME-Zarr.
const MARKS: [&str; 4] = ["multiscales", "plate", "well", "bioformats2raw.layout"];

/// The attributes of a group of one version of the format, as the other has them. Attributes that are not those of OME-Zarr
/// are unchanged.
pub(super) fn in_format(attributes: &Attributes, from: ZarrFormat, to: ZarrFormat) -> Attributes {
    let is_v3 = |format: ZarrFormat| format == ZarrFormat::V3;
    if is_v3(from) == is_v3(to) {
        return attributes.clone();
    }
    let converted = if is_v3(to) { lowered(attributes) } else { raised(attributes) };
    converted.unwrap_or_else(|| attributes.clone())
}

/// With the members of OME-Zarr below `ome`; `None` if there are none.
fn lowered(attributes: &Attributes) -> Option<Attributes> {
    let has = |name: &&str| attributes.contains_key(name);
    // The Zarr convention `multiscales` is an object.
    let is_list = || attributes.get("multiscales").is_some_and(|list| list.is_array());
    if attributes.contains_key("ome")
        || !MARKS.iter().any(has)
        || (attributes.contains_key("multiscales") && !is_list())
    {
        return None;
    }
    let mut members = Map::clone(&attributes.object());
    let mut ome = Map::new();
    ome.insert("version".to_owned(), json!("0.5"));
    for name in MEMBERS {
        if let Some(mut member) = members.remove(name) {
            remove_versions(&mut member);
            ome.insert(name.to_owned(), member);
        }
    }
    members.insert("ome".to_owned(), Value::Object(ome));
    Some(Attributes::from(members))
}

/// With the members of OME-Zarr at the top; `None` if there are none.
fn raised(attributes: &Attributes) -> Option<Attributes> {
    let Some(Value::Object(ome)) = attributes.get("ome") else { return None };
    let mut members = Map::clone(&attributes.object());
    members.remove("ome");
    for (name, mut member) in ome {
        if name == "version" {
            continue;
        }
        match &mut member {
            Value::Array(list) if name == "multiscales" => list.iter_mut().for_each(set_version),
            Value::Object(_) if matches!(&*name, "plate" | "well" | "image-label" | "omero") => {
                set_version(&mut member);
            }
            _ => {}
        }
        members.insert(name, member);
    }
    Some(Attributes::from(members))
}

/// Sets the version that a member has in OME-Zarr 0.4.
pub(super) fn set_version(member: &mut Value) {
    if let Value::Object(member) = member {
        member.insert("version".to_owned(), json!("0.4"));
    }
}

fn remove_versions(member: &mut Value) {
    match member {
        Value::Object(member) => {
            member.remove("version");
        }
        Value::Array(list) => list.iter_mut().for_each(|item| {
            if let Value::Object(item) = item {
                item.remove("version");
            }
        }),
        _ => {}
    }
}

/// The largest number of a transformation that further levels are described by: larger ones could become infinite.
const MAX_NUMBER: f64 = 1e200;

/// Whether further levels can be described beside those of an image with this number of axes.
pub(super) fn takes_levels(attributes: &Attributes, axes: usize) -> bool {
    let ome = attributes.get("ome");
    let multiscales = match &ome {
        Some(ome) => ome.get("multiscales").cloned(),
        None => attributes.get("multiscales"),
    };
    let last = || multiscales.as_ref()?.get(0)?.get("datasets")?.as_array()?.last();
    last().is_some_and(|last| transform(last, axes).is_some())
}

/// The scale and the translation of a level of an image with this number of axes; `None` if it has none of this form.
pub(super) fn transform(dataset: &Value, axes: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let transformations = dataset.get("coordinateTransformations")?.as_array()?;
    let numbers = |kind: &str| {
        let transformation = transformations
            .iter()
            .find(|transformation| transformation.get("type").and_then(Value::as_str) == Some(kind))?;
        let list = transformation.get(kind)?.as_array().filter(|list| list.len() == axes)?;
        list.iter()
            .map(|number| number.as_f64().filter(|number| number.abs() <= MAX_NUMBER))
            .collect::<Option<Vec<f64>>>()
    };
    Some((numbers("scale")?, numbers("translation").unwrap_or_else(|| vec![0.0; axes])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(value: Value) -> Attributes {
        let Value::Object(members) = value else { panic!("an object") };
        Attributes::from(members)
    }

    fn converted(value: Value, from: ZarrFormat, to: ZarrFormat) -> Value {
        Value::Object(Map::clone(&in_format(&attributes(value), from, to).object()))
    }

    #[test]
    fn an_image_has_its_members_where_each_version_has_them() {
        let v2 = json!({
            "multiscales": [{ "version": "0.4", "axes": [], "datasets": [] }],
            "omero": { "version": "0.4", "channels": [] }, "title": "a",
        });
        let v3 = json!({
            "ome": { "version": "0.5", "multiscales": [{ "axes": [], "datasets": [] }], "omero": { "channels": [] } },
            "title": "a",
        });
        assert_eq!(converted(v2.clone(), ZarrFormat::V2, ZarrFormat::V3), v3);
        assert_eq!(converted(v3.clone(), ZarrFormat::V3, ZarrFormat::V2), v2);
        assert_eq!(converted(v2.clone(), ZarrFormat::V2, ZarrFormat::V2), v2);
    }

    #[test]
    fn other_attributes_are_unchanged() {
        for value in [
            json!({}),
            json!({ "labels": ["a"], "title": 1.50 }),
            json!({ "multiscales": { "layout": [] } }),
            json!({ "ome": 3 }),
        ] {
            for (from, to) in [(ZarrFormat::V2, ZarrFormat::V3), (ZarrFormat::V3, ZarrFormat::V2)] {
                assert_eq!(converted(value.clone(), from, to), value);
            }
        }
    }
}

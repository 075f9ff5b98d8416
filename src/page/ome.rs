//! [`ShownImage`]: what the attributes of a group say about an image or a plate (OME-Zarr 0.4 and 0.5).
//!
//! Attributes are written by others: what is not as the specification has it is left out, and lists are cut.

use serde_json::{Map, Value, json};

/// Most levels, channels and the like that are read.
const MOST: usize = 64;
/// Most wells of a plate.
const MOST_WELLS: usize = 2000;

/// An image of several levels.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownImage {
    /// The paths of its levels below the group, the finest first.
    pub levels: Vec<String>,
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) axes: Vec<OmeAxis>,
    pub(super) channels: Vec<ShownChannel>,
}

/// An axis of an image.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OmeAxis {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) unit: Option<String>,
    /// Of the finest level.
    pub(super) scale: Option<f64>,
}

/// A channel of an image.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShownChannel {
    pub(super) label: String,
    /// Six hexadecimal digits.
    pub(super) color: Option<String>,
    pub(super) window: Option<(f64, f64)>,
    pub(super) is_active: bool,
}

/// A plate of wells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plate {
    pub(super) name: Option<String>,
    pub(super) rows: Vec<String>,
    pub(super) columns: Vec<String>,
    /// Row, column and path of each well.
    pub(super) wells: Vec<(usize, usize, String)>,
}

/// The members that OME-Zarr defines: below `ome` from 0.5 on, else at the root.
fn members(attributes: &Map<String, Value>) -> &Map<String, Value> {
    attributes.get("ome").and_then(Value::as_object).unwrap_or(attributes)
}

fn text(value: Option<&Value>) -> Option<String> {
    let text = value?.as_str()?;
    Some(text.chars().take(200).collect())
}

fn list<'a>(value: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a Map<String, Value>> {
    value.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

impl ShownImage {
    /// The image that the attributes of a group describe.
    #[must_use]
    pub fn of(attributes: &Map<String, Value>) -> Option<Self> {
        let ome = members(attributes);
        let image = list(ome, "multiscales").next()?;
        let scales = |dataset: &Map<String, Value>| -> Option<Vec<f64>> {
            let scale =
                list(dataset, "coordinateTransformations").find_map(|one| one.get("scale")?.as_array())?;
            Some(scale.iter().map(|number| number.as_f64().unwrap_or(f64::NAN)).collect())
        };
        let first = list(image, "datasets").next().and_then(scales).unwrap_or_default();
        let axes = image.get("axes").and_then(Value::as_array).into_iter().flatten().take(MOST).enumerate();
        let axes = axes.map(|(at, axis)| {
            let members = axis.as_object();
            let member = |name: &str| text(members.and_then(|members| members.get(name)));
            OmeAxis {
                name: member("name").or_else(|| text(Some(axis))).unwrap_or_default(),
                kind: member("type").unwrap_or_default(),
                unit: member("unit"),
                scale: first.get(at).copied().filter(|scale| scale.is_finite()),
            }
        });
        let levels: Vec<String> =
            list(image, "datasets").take(MOST).filter_map(|dataset| text(dataset.get("path"))).collect();
        if levels.is_empty() {
            return None;
        }
        let omero = ome.get("omero").and_then(Value::as_object);
        let channels =
            omero.into_iter().flat_map(|omero| list(omero, "channels")).take(MOST).enumerate().map(channel);
        let version = text(ome.get("version")).or_else(|| text(image.get("version")));
        Some(Self {
            levels,
            name: text(image.get("name")),
            version,
            axes: axes.collect(),
            channels: channels.collect(),
        })
    }

    /// The channels for the viewer.
    pub(super) fn channels_json(&self) -> Value {
        let one = |channel: &ShownChannel| {
            json!({
                "label": channel.label, "color": channel.color,
                "window": channel.window.map(|(start, end)| [start, end]), "active": channel.is_active,
            })
        };
        self.channels.iter().map(one).collect()
    }
}

fn channel((at, channel): (usize, &Map<String, Value>)) -> ShownChannel {
    let is_color = |color: &String| color.len() == 6 && color.bytes().all(|byte| byte.is_ascii_hexdigit());
    let window = channel.get("window").and_then(Value::as_object).and_then(|window| {
        let number = |name: &str| window.get(name)?.as_f64();
        Some((number("start").or_else(|| number("min"))?, number("end").or_else(|| number("max"))?))
    });
    ShownChannel {
        label: text(channel.get("label")).unwrap_or_else(|| format!("channel {at}")),
        color: text(channel.get("color")).filter(is_color),
        window: window.filter(|(start, end)| start < end),
        is_active: channel.get("active").and_then(Value::as_bool).unwrap_or(true),
    }
}

/// The label images that a group of labels names.
pub(super) fn labels(attributes: &Map<String, Value>) -> Vec<String> {
    let names = members(attributes).get("labels").and_then(Value::as_array);
    names.into_iter().flatten().take(MOST).filter_map(|name| text(Some(name))).collect()
}

/// Whether the elements of an image are labels.
pub(super) fn is_label(attributes: &Map<String, Value>) -> bool {
    members(attributes).contains_key("image-label")
}

impl Plate {
    /// The plate that the attributes of a group describe.
    pub(super) fn of(attributes: &Map<String, Value>) -> Option<Self> {
        let plate = members(attributes).get("plate")?.as_object()?;
        let names = |name: &str| -> Vec<String> {
            list(plate, name).take(MOST).filter_map(|one| text(one.get("name"))).collect()
        };
        let index = |value: Option<&Value>| value?.as_u64().and_then(|at| usize::try_from(at).ok());
        let well = |well: &Map<String, Value>| {
            let path = text(well.get("path"))?;
            Some((index(well.get("rowIndex"))?, index(well.get("columnIndex"))?, path))
        };
        let wells = list(plate, "wells").take(MOST_WELLS).filter_map(well).collect();
        Some(Self { name: text(plate.get("name")), rows: names("rows"), columns: names("columns"), wells })
    }

    /// The path of the well at a row and a column.
    pub(super) fn well(&self, row: usize, column: usize) -> Option<&str> {
        self.wells.iter().find(|(r, c, _)| (*r, *c) == (row, column)).map(|(_, _, path)| path.as_str())
    }
}

/// The fields of view of a well.
pub(super) fn fields(attributes: &Map<String, Value>) -> Vec<String> {
    let well = members(attributes).get("well").and_then(Value::as_object);
    let images = well.into_iter().flat_map(|well| list(well, "images"));
    images.take(MOST).filter_map(|image| text(image.get("path"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_both_versions_are_read_and_hostile_ones_ignored() {
        let multiscales = json!([{ "name": "a", "version": "0.4", "axes": [{ "name": "c", "type": "channel" },
            { "name": "x", "type": "space", "unit": "micrometer" }], "datasets": [{ "path": "0",
            "coordinateTransformations": [{ "type": "scale", "scale": [1, 0.5] }] }, { "path": "1" }] }]);
        let omero = json!({ "channels": [{ "label": "DAPI", "color": "0000FF", "window": { "start": 1, "end": 9 } },
            { "color": "red; url(x)", "window": { "start": 2, "end": 2 } }] });
        let old = json!({ "multiscales": multiscales, "omero": omero });
        let new = json!({ "ome": { "version": "0.5", "multiscales": multiscales, "omero": omero } });
        for (attributes, version) in [(old, "0.4"), (new, "0.5")] {
            let image = ShownImage::of(attributes.as_object().unwrap()).unwrap();
            assert_eq!(image.version.as_deref(), Some(version));
            assert_eq!(image.levels, ["0", "1"]);
            assert_eq!((image.axes[1].unit.as_deref(), image.axes[1].scale), (Some("micrometer"), Some(0.5)));
            assert_eq!(image.channels[0].window, Some((1.0, 9.0)));
            assert_eq!((&image.channels[1].color, &image.channels[1].window), (&None, &None));
        }
        for hostile in
            [json!({}), json!({ "multiscales": 1 }), json!({ "multiscales": [{ "datasets": [1, {}] }] })]
        {
            assert_eq!(ShownImage::of(hostile.as_object().unwrap()), None);
        }
    }
}

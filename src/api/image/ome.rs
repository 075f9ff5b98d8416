//! [`Ome`]: what an OME-Zarr image says of its picture (OME-NGFF 0.4 and 0.5, "multiscales", "omero" and "image-label").
//!
//! Attributes are written by others: what has another form than the specification's counts as absent.

use serde_json::{Map, Value};

use crate::render::raster::Color;

/// Most levels and channels that are read.
const MOST: usize = 64;
/// Most colours of labels that are read.
const MOST_LABELS: usize = 1 << 12;

/// The image of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ome {
    /// The names of the axes.
    pub(crate) axes: Vec<String>,
    /// The paths of the levels below the group, the largest first.
    pub(crate) levels: Vec<String>,
    pub(crate) channels: Vec<OmeChannel>,
    /// The proposed indices along `z` and `t`.
    pub(crate) proposed: Vec<(&'static str, u64)>,
    /// The colours of labels, if the elements are labels.
    pub(crate) labels: Option<Vec<(i128, Color)>>,
}

/// A channel of an image.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OmeChannel {
    pub(crate) color: Option<Color>,
    pub(crate) window: Option<(f64, f64)>,
    pub(crate) is_active: bool,
}

impl Ome {
    /// The image that the attributes of a group describe, if they do.
    pub(crate) fn parse(attributes: &Map<String, Value>) -> Option<Self> {
        let attributes = attributes.get("ome").and_then(Value::as_object).unwrap_or(attributes);
        let multiscales = attributes.get("multiscales")?.as_array()?.first()?;
        let datasets = multiscales.get("datasets")?.as_array()?;
        let path = |dataset: &Value| Some(dataset.get("path")?.as_str()?.trim_matches('/').to_owned());
        let levels: Vec<String> = datasets.iter().take(MOST).filter_map(path).collect();
        if levels.is_empty() {
            return None;
        }
        let omero = attributes.get("omero");
        let rdefs = omero.and_then(|omero| omero.get("rdefs"));
        let index = |member: &str| rdefs.and_then(|rdefs| rdefs.get(member)?.as_u64());
        let proposed = [("z", "defaultZ"), ("t", "defaultT")];
        Some(Self {
            axes: axes(multiscales),
            levels,
            channels: omero.map(channels).unwrap_or_default(),
            proposed: proposed
                .into_iter()
                .filter_map(|(name, member)| Some((name, index(member)?)))
                .collect(),
            labels: attributes.get("image-label").map(labels),
        })
    }
}

fn axes(multiscales: &Value) -> Vec<String> {
    let Some(axes) = multiscales.get("axes").and_then(Value::as_array) else { return Vec::new() };
    // In 0.3 an axis is its name.
    let name = |axis: &Value| axis.get("name").unwrap_or(axis).as_str().unwrap_or_default().to_owned();
    axes.iter().take(MOST).map(name).collect()
}

fn channels(omero: &Value) -> Vec<OmeChannel> {
    let Some(channels) = omero.get("channels").and_then(Value::as_array) else { return Vec::new() };
    let channel = |channel: &Value| {
        let window = channel.get("window");
        let end =
            |name: &str| window.and_then(|window| window.get(name)?.as_f64()).filter(|end| end.is_finite());
        OmeChannel {
            color: channel.get("color").and_then(|color| Color::parse(color.as_str()?)),
            window: end("start").zip(end("end")).filter(|(start, end)| start <= end),
            is_active: channel.get("active").and_then(Value::as_bool).unwrap_or(true),
        }
    };
    channels.iter().take(MOST).map(channel).collect()
}

fn labels(label: &Value) -> Vec<(i128, Color)> {
    let Some(colors) = label.get("colors").and_then(Value::as_array) else { return Vec::new() };
    let entry = |entry: &Value| {
        let label = entry.get("label-value")?.as_i64()?;
        let parts = entry.get("rgba")?.as_array()?;
        let part = |at: usize| u8::try_from(parts.get(at)?.as_u64()?).ok();
        Some((label.into(), Color([part(0)?, part(1)?, part(2)?, part(3).unwrap_or(u8::MAX)])))
    };
    colors.iter().take(MOST_LABELS).filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(attributes: Value) -> Option<Ome> {
        let Value::Object(attributes) = attributes else { panic!("no object") };
        Ome::parse(&attributes)
    }

    #[test]
    fn an_image_has_levels_axes_and_channels() {
        let image = json!({
            "multiscales": [{
                "axes": [{ "name": "c", "type": "channel" }, { "name": "y", "type": "space" }, { "name": "x" }],
                "datasets": [{ "path": "0" }, { "path": "s/1/" }],
            }],
            "omero": {
                "channels": [
                    { "color": "0000FF", "window": { "start": 0, "end": 1500, "min": 0, "max": 65535 }, "active": true },
                    { "window": { "start": 3 }, "active": false },
                ],
                "rdefs": { "defaultZ": 118, "model": "color" },
            },
        });
        let found = parse(json!({ "ome": image.clone() })).unwrap();
        assert_eq!(Some(&found), parse(image).as_ref());
        assert_eq!(
            (found.axes, found.levels),
            (vec!["c".into(), "y".into(), "x".into()], vec!["0".into(), "s/1".into()])
        );
        assert_eq!(found.proposed, [("z", 118)]);
        assert_eq!(
            found.channels,
            [
                OmeChannel { color: Color::parse("0000ff"), window: Some((0.0, 1500.0)), is_active: true },
                OmeChannel { color: None, window: None, is_active: false },
            ]
        );
        assert_eq!(found.labels, None);
    }

    #[test]
    fn labels_have_colours() {
        let found = parse(json!({
            "multiscales": [{ "axes": ["y", "x"], "datasets": [{ "path": "0" }] }],
            "image-label": { "colors": [{ "label-value": 7, "rgba": [1, 2, 3, 128] }, { "label-value": 8 }] },
        }));
        assert_eq!(found.unwrap().labels, Some(vec![(7, Color([1, 2, 3, 128]))]));
    }

    #[test]
    fn attributes_of_another_form_are_no_image() {
        for attributes in [
            json!({}),
            json!({ "multiscales": {} }),
            json!({ "multiscales": [] }),
            json!({ "multiscales": [{ "datasets": [] }] }),
            json!({ "multiscales": [{ "datasets": [{ "path": 3 }] }] }),
            json!({ "ome": 1, "multiscales": [7] }),
        ] {
            assert_eq!(parse(attributes.clone()), None, "{attributes}");
        }
        let odd = json!({ "multiscales": [{ "axes": 3, "datasets": [{ "path": "0" }] }], "omero": { "channels": [4, { "window": 1 }] } });
        assert_eq!(parse(odd).unwrap().channels.len(), 2);
    }
}

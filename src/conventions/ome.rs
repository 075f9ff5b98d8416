//! [`OmeNode`]: what the attributes of a group say according to OME-Zarr 0.4, 0.5 and 0.6rc.
//!
//! From 0.5 on all members are below the attribute `ome`; before, each is an attribute. Version 0.6rc replaces the axes of an
//! image by coordinate systems. Of coordinate transformations only scale and translation count, alone or in a sequence,
//! which is all that the levels of an image may have.

use serde_json::Value;

use super::axis::SummaryAxis;
use super::values::{Members, items, member_number, member_text, numbers, objects, path, text};
use crate::key::NodePath;
use crate::metadata::Attributes;

/// The members of OME-Zarr.
const MEMBERS: [&str; 11] = [
    "version",
    "multiscales",
    "omero",
    "image-label",
    "labels",
    "plate",
    "well",
    "series",
    "bioformats2raw.layout",
    "scene",
    "name",
];
/// The name of a group of label images.
const LABELS: &str = "labels";
/// Most wells of a plate: one of 1536 wells, and more.
const MAX_WELLS: usize = 2048;
/// Most labels with a colour.
const MAX_LABEL_COLORS: usize = 1 << 12;
/// Most rows, and most columns, of a plate.
const MAX_SIDE: usize = 256;

/// What a group is in OME-Zarr.
#[derive(Clone, Debug, PartialEq)]
pub enum OmeNode {
    /// An image, or a label image.
    Image(OmeImage),
    /// The label images of an image, by name.
    LabelList(Vec<String>),
    /// A plate.
    Plate(PlateSummary),
    /// The paths of the images of a well.
    Well(Vec<String>),
    /// The images of a file that was converted, if they are listed.
    Collection(Vec<String>),
    /// A scene of several images.
    Scene,
}

/// An image of several levels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OmeImage {
    /// Its name.
    pub name: Option<String>,
    /// The axes; without their sizes.
    pub axes: Vec<SummaryAxis>,
    /// The path of each level below the group, the finest first, with its scale along each axis.
    pub levels: Vec<(String, Option<Vec<f64>>)>,
    /// The channels.
    pub channels: Vec<ChannelSummary>,
    /// The indices along `z` and `t` that a viewer should show first.
    pub proposed: Vec<(&'static str, u64)>,
    /// Whether the elements are labels.
    pub is_labels: bool,
    /// The labels that have a colour, with red, green, blue and opacity.
    pub label_colors: Vec<(i64, [u8; 4])>,
}

/// A channel of an image.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelSummary {
    /// Its name.
    pub label: Option<String>,
    /// Its colour: six hexadecimal digits.
    pub color: Option<String>,
    /// The values that are drawn darkest and brightest.
    pub window: Option<(f64, f64)>,
    /// Whether it is shown at first.
    pub is_active: bool,
}

/// A plate of wells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlateSummary {
    /// Its name.
    pub name: Option<String>,
    /// The names of the rows.
    pub rows: Vec<String>,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The wells: path, index of the row, index of the column.
    pub wells: Vec<(String, u64, u64)>,
    /// How many wells the attributes declare; more than are in `wells`, if there are very many.
    pub declared_wells: u64,
    /// The most images of a well, if known.
    pub fields: Option<u64>,
}

impl OmeNode {
    /// What the attributes of a group say, with the version; `None` if they say nothing about OME-Zarr.
    #[must_use]
    pub fn parse(attributes: &Attributes) -> Option<(Self, Option<String>)> {
        let members = if let Some(Value::Object(members)) = attributes.get("ome") {
            members
        } else {
            let present = |name: &str| Some((name.to_owned(), attributes.get(name)?));
            MEMBERS.into_iter().filter_map(present).collect()
        };
        let (node, of_node) = Self::of(&members)?;
        let version = member_text(&members, "version").or(of_node);
        Some((node, version))
    }

    /// The node, with the version that its own member has before 0.5.
    fn of(members: &Members) -> Option<(Self, Option<String>)> {
        let object = |name: &str| members.get(name).and_then(Value::as_object);
        if let Some(plate) = object("plate") {
            return Some((Self::Plate(plate_of(plate)), member_text(plate, "version")));
        }
        if let Some(well) = object("well") {
            let images = objects(well.get("images")).filter_map(|image| path(image.get("path")));
            return Some((Self::Well(images.collect()), member_text(well, "version")));
        }
        if let Some(multiscale) = objects(members.get("multiscales")).next() {
            let version = member_text(multiscale, "version");
            return Some((Self::Image(OmeImage::of(multiscale, members)?), version));
        }
        if members.contains_key("scene") {
            return Some((Self::Scene, None));
        }
        if members.contains_key("bioformats2raw.layout") || members.get("series").is_some_and(Value::is_array)
        {
            return Some((Self::Collection(paths(members.get("series"))), None));
        }
        let labels = members.get("labels").filter(|labels| labels.is_array());
        labels.map(|labels| (Self::LabelList(paths(Some(labels))), None))
    }
}

/// The paths in a list of texts.
fn paths(list: Option<&Value>) -> Vec<String> {
    items(list).filter_map(|item| path(Some(item))).collect()
}

/// The paths of the images of a collection in the attributes of its group `OME`.
pub(super) fn series(attributes: &Attributes) -> Vec<String> {
    match OmeNode::parse(attributes) {
        Some((OmeNode::Collection(images), _)) => images,
        _ => Vec::new(),
    }
}

/// The group that may list an image as one of labels: the one above it, if that is called `labels` (OME-Zarr 0.5, "labels").
pub(super) fn list_of_labels(image: &NodePath) -> Option<NodePath> {
    image.parent().filter(|parent| parent.name() == LABELS)
}

/// Whether the attributes of such a group list the image of this name, which need not say itself that it is one of labels.
pub(super) fn lists_label(list: &Attributes, name: &str) -> bool {
    match OmeNode::parse(list) {
        Some((OmeNode::LabelList(names), _)) => names.iter().any(|listed| listed == name),
        _ => false,
    }
}

impl OmeImage {
    /// The image that the attributes of a group describe, if they describe one.
    #[must_use]
    pub fn parse(attributes: &Attributes) -> Option<Self> {
        match OmeNode::parse(attributes)? {
            (OmeNode::Image(image), _) => Some(image),
            _ => None,
        }
    }

    fn of(multiscale: &Members, members: &Members) -> Option<Self> {
        let datasets = || objects(multiscale.get("datasets"));
        let shared = scale(multiscale.get("coordinateTransformations"));
        let level = |dataset: &Members| {
            let own = scale(dataset.get("coordinateTransformations"));
            Some((path(dataset.get("path"))?, combined(own, shared.as_ref())))
        };
        let levels: Vec<(String, Option<Vec<f64>>)> = datasets().filter_map(level).collect();
        let (_, first) = levels.first()?;
        let mut axes = axes(multiscale, datasets().next());
        for (axis, &scale) in axes.iter_mut().zip(first.iter().flatten()) {
            axis.scale = Some(scale);
        }
        let omero = members.get("omero").and_then(Value::as_object);
        let channels = omero.map(|omero| objects(omero.get("channels")).map(channel).collect());
        let rdefs = omero.and_then(|omero| omero.get("rdefs")?.as_object());
        let proposed = [("z", "defaultZ"), ("t", "defaultT")];
        let proposed = proposed.map(|(axis, member)| Some((axis, rdefs?.get(member)?.as_u64()?)));
        Some(Self {
            name: member_text(multiscale, "name"),
            axes,
            levels,
            channels: channels.unwrap_or_default(),
            proposed: proposed.into_iter().flatten().collect(),
            is_labels: members.get("image-label").is_some_and(Value::is_object),
            label_colors: members.get("image-label").map(label_colors).unwrap_or_default(),
        })
    }

    /// The names of the axes.
    #[must_use]
    pub fn names(&self) -> Vec<Option<String>> {
        self.axes.iter().map(|axis| axis.name.clone()).collect()
    }
}

/// The axes of an image: its own, or those of the coordinate system that the first level maps to, else of the first one.
fn axes(multiscale: &Members, first: Option<&Members>) -> Vec<SummaryAxis> {
    if multiscale.contains_key("axes") {
        return items(multiscale.get("axes")).map(axis).collect();
    }
    let output = |transformation: &Members| match transformation.get("output")? {
        Value::Object(output) => member_text(output, "name"),
        output => text(output),
    };
    let wanted = first.and_then(|first| objects(first.get("coordinateTransformations")).find_map(output));
    let systems = || objects(multiscale.get("coordinateSystems"));
    let is_wanted = |system: &&Members| wanted.is_some() && member_text(system, "name") == wanted;
    let system = systems().find(is_wanted).or_else(|| systems().next());
    items(system.and_then(|system| system.get("axes"))).map(axis).collect()
}

/// An axis; in 0.3 it is its name.
fn axis(axis: &Value) -> SummaryAxis {
    let member = |name: &str| text(axis.get(name)?).filter(|text| !text.is_empty());
    let name = member("name").or_else(|| text(axis).filter(|text| !text.is_empty()));
    SummaryAxis { name, kind: member("type"), unit: member("unit"), ..SummaryAxis::default() }
}

/// The scale in a list of coordinate transformations.
fn scale(transformations: Option<&Value>) -> Option<Vec<f64>> {
    let one = |transformation: &Members| match transformation.get("type")?.as_str()? {
        "scale" => numbers(transformation.get("scale")),
        // Transformations in a sequence are not sequences themselves.
        "sequence" => objects(transformation.get("transformations"))
            .find_map(|inner| (inner.get("type")? == "scale").then(|| numbers(inner.get("scale")))?),
        _ => None,
    };
    let found = objects(transformations).find_map(one)?;
    found.iter().all(|&scale| scale > 0.0).then_some(found)
}

/// The scale of a level, with that of all levels.
fn combined(own: Option<Vec<f64>>, shared: Option<&Vec<f64>>) -> Option<Vec<f64>> {
    match (own, shared) {
        (Some(own), Some(shared)) if own.len() == shared.len() => {
            Some(own.iter().zip(shared).map(|(own, shared)| own * shared).collect())
        }
        (Some(own), _) => Some(own),
        (None, shared) => shared.cloned(),
    }
}

fn channel(channel: &Members) -> ChannelSummary {
    let window = channel.get("window").and_then(Value::as_object);
    let end = |name: &str| member_number(window?, name);
    let is_color = |color: &String| color.len() == 6 && color.bytes().all(|byte| byte.is_ascii_hexdigit());
    ChannelSummary {
        label: member_text(channel, "label").filter(|label| !label.is_empty()),
        color: member_text(channel, "color").filter(is_color),
        window: end("start").zip(end("end")).filter(|(start, end)| start <= end),
        is_active: channel.get("active").and_then(Value::as_bool).unwrap_or(true),
    }
}

/// The colours of labels; an entry of another form than that of the specification is left out.
fn label_colors(label: &Value) -> Vec<(i64, [u8; 4])> {
    let entry = |entry: &Value| {
        let parts = entry.get("rgba")?.as_array()?;
        let part = |at: usize| u8::try_from(parts.get(at)?.as_u64()?).ok();
        let color = [part(0)?, part(1)?, part(2)?, part(3).unwrap_or(u8::MAX)];
        Some((entry.get("label-value")?.as_i64()?, color))
    };
    let entries = label.get("colors").and_then(Value::as_array);
    entries.into_iter().flatten().take(MAX_LABEL_COLORS).filter_map(entry).collect()
}

fn plate_of(plate: &Members) -> PlateSummary {
    let wells = plate.get("wells").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let rows = sides(plate.get("rows"));
    let columns = sides(plate.get("columns"));
    let well = |well: &Value| {
        let path = path(well.get("path"))?;
        let index = |member: &str, names: &[String], part: usize| {
            // Before 0.4, a well has a path alone: its row and its column by name.
            let by_name =
                || names.iter().position(|name| path.split('/').nth(part) == Some(name)).map(|at| at as u64);
            well.get(member).and_then(Value::as_u64).or_else(by_name)
        };
        let (row, column) = (index("rowIndex", &rows, 0)?, index("columnIndex", &columns, 1)?);
        Some((path, row, column))
    };
    PlateSummary {
        name: member_text(plate, "name"),
        wells: wells.iter().take(MAX_WELLS).filter_map(well).collect(),
        declared_wells: wells.len() as u64,
        fields: plate.get("field_count").and_then(Value::as_u64),
        rows,
        columns,
    }
}

/// The names of the rows or the columns of a plate.
fn sides(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten().take(MAX_SIDE);
    list.map(|side| side.get("name").and_then(text).unwrap_or_default()).collect()
}

/// The axes, the scale, the channels and the bounds of a store in Zarr Vector Format are where an image has them.
pub(super) fn axes_and_levels(multiscales: Option<&Value>) -> (Vec<SummaryAxis>, Vec<String>) {
    let Some(multiscale) = objects(multiscales).next() else { return (Vec::new(), Vec::new()) };
    let levels =
        objects(multiscale.get("datasets")).filter_map(|dataset| path(dataset.get("path"))).collect();
    (axes(multiscale, None), levels)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(attributes: Value) -> Option<(OmeNode, Option<String>)> {
        let Value::Object(members) = attributes else { panic!("no object") };
        OmeNode::parse(&Attributes::from(members))
    }

    fn image_of(attributes: Value) -> OmeImage {
        match parse(attributes) {
            Some((OmeNode::Image(image), _)) => image,
            other => panic!("no image: {other:?}"),
        }
    }

    #[test]
    fn an_image_is_the_same_at_the_root_and_below_ome() {
        let image = json!({
            "version": "0.5",
            "multiscales": [{
                "axes": [{ "name": "c", "type": "channel" }, { "name": "y", "type": "space", "unit": "micrometer" }],
                "datasets": [
                    { "path": "0", "coordinateTransformations": [{ "type": "scale", "scale": [1, 0.5] }] },
                    { "path": "s/1/", "coordinateTransformations": [
                        { "type": "scale", "scale": [1, 1.0] }, { "type": "translation", "translation": [0, 0.25] },
                    ] },
                ],
                "coordinateTransformations": [{ "type": "scale", "scale": [1, 2] }],
            }],
            "omero": {
                "channels": [
                    { "label": "DAPI", "color": "0000FF", "window": { "start": 0, "end": 1500, "min": 0, "max": 65535 } },
                    { "color": "blue", "window": { "start": 3 }, "active": false },
                ],
                "rdefs": { "defaultZ": 118, "defaultT": -1, "model": "color" },
            },
        });
        let (found, version) = parse(json!({ "ome": image.clone() })).unwrap();
        assert_eq!(Some((found.clone(), version.clone())), parse(image));
        assert_eq!(version.as_deref(), Some("0.5"));
        let OmeNode::Image(found) = found else { panic!("no image") };
        assert_eq!(found.names(), [Some("c".to_owned()), Some("y".to_owned())]);
        assert_eq!((found.axes[1].unit.as_deref(), found.axes[1].scale), (Some("micrometer"), Some(1.0)));
        assert_eq!(
            found.levels,
            [("0".to_owned(), Some(vec![1.0, 1.0])), ("s/1".to_owned(), Some(vec![1.0, 2.0]))]
        );
        assert_eq!(found.proposed, [("z", 118)]);
        assert_eq!(
            found.channels,
            [
                ChannelSummary {
                    label: Some("DAPI".to_owned()),
                    color: Some("0000FF".to_owned()),
                    window: Some((0.0, 1500.0)),
                    is_active: true,
                },
                ChannelSummary { label: None, color: None, window: None, is_active: false },
            ]
        );
        assert!(!found.is_labels);
    }

    #[test]
    fn axes_of_the_release_candidate_are_those_of_a_coordinate_system() {
        let image = image_of(json!({ "ome": { "version": "0.6.dev3", "image-label": {
            "colors": [{ "label-value": 7, "rgba": [1, 2, 3, 128] }, { "label-value": 8 }, { "label-value": 9, "rgba": [1, 2, 300] }],
        }, "multiscales": [{
            "coordinateSystems": [
                { "name": "array", "axes": [{ "name": "dim_0" }, { "name": "dim_1" }] },
                { "name": "physical", "axes": [{ "name": "y", "type": "space" }, { "name": "x", "type": "space" }] },
            ],
            "datasets": [{ "path": "0", "coordinateTransformations": [{
                "type": "sequence", "input": "0", "output": { "name": "physical" },
                "transformations": [{ "type": "scale", "scale": [2, 3] }, { "type": "translation", "translation": [1, 1] }],
            }] }],
        }] } }));
        assert_eq!(image.names(), [Some("y".to_owned()), Some("x".to_owned())]);
        assert_eq!(image.axes[1].scale, Some(3.0));
        assert!(image.is_labels);
        assert_eq!(image.label_colors, [(7, [1, 2, 3, 128])]);
    }

    #[test]
    fn plates_wells_collections_labels_and_scenes_have_their_members() {
        let plate = json!({ "plate": {
            "version": "0.4", "rows": [{ "name": "A" }, { "name": "B" }], "columns": [{ "name": "1" }, { "name": "2" }],
            "wells": [{ "path": "A/1", "rowIndex": 0, "columnIndex": 0 }, { "path": "B/2" }, { "path": "C/9" }, 7],
            "field_count": 4,
        } });
        let Some((OmeNode::Plate(plate), version)) = parse(plate) else { panic!("no plate") };
        assert_eq!(plate.wells, [("A/1".to_owned(), 0, 0), ("B/2".to_owned(), 1, 1)]);
        assert_eq!((plate.declared_wells, plate.fields, version.as_deref()), (4, Some(4), Some("0.4")));
        let well = json!({ "ome": { "version": "0.5", "well": { "images": [{ "path": "0" }, {}, { "path": "1" }] } } });
        assert_eq!(parse(well), Some((OmeNode::Well(vec!["0".into(), "1".into()]), Some("0.5".into()))));
        let collection = parse(json!({ "bioformats2raw.layout": 3 }));
        assert_eq!(collection, Some((OmeNode::Collection(Vec::new()), None)));
        let listed = Attributes::from(json!({ "series": ["0", "1"] }).as_object().unwrap().clone());
        assert_eq!(series(&listed), ["0", "1"]);
        let labels = parse(json!({ "labels": ["nuclei", 3] }));
        assert_eq!(labels, Some((OmeNode::LabelList(vec!["nuclei".into()]), None)));
        assert_eq!(parse(json!({ "ome": { "scene": {} } })), Some((OmeNode::Scene, None)));
    }

    #[test]
    fn attributes_of_another_form_are_no_node_of_ome() {
        for attributes in [
            json!({}),
            json!({ "multiscales": {} }),
            json!({ "multiscales": { "layout": [{ "asset": "0" }] } }),
            json!({ "multiscales": [] }),
            json!({ "multiscales": [{ "datasets": [] }] }),
            json!({ "multiscales": [{ "datasets": [{ "path": 3 }] }] }),
            json!({ "ome": 1, "multiscales": [7] }),
            json!({ "labels": "nuclei", "plate": [], "well": 3 }),
        ] {
            assert_eq!(parse(attributes.clone()), None, "{attributes}");
        }
        let odd = image_of(json!({
            "multiscales": [{ "axes": 3, "datasets": [{ "path": "0", "coordinateTransformations": [{ "type": "scale", "scale": [0, -1] }] }] }],
            "omero": { "channels": [4, { "window": 1 }] },
        }));
        assert_eq!((odd.axes.len(), odd.channels.len(), &odd.levels[0].1), (0, 1, &None));
    }
}

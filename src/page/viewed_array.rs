//! [`ViewedArray`]: an array as it is shown, and what the scripts of its viewer are given.

use serde_json::{Map, Value, json};

use super::cost::Cost;
use super::facts::{Drawn, ShownArray};
use super::label_layer::LabelLayer;
use super::node_page::NodeLinks;
use super::packing;
use super::state::{PageState, join};
use super::view::{ArrayView, Shown};
use crate::array::Array;
use crate::chunk::AxisRange;
use crate::conventions::{ChannelSummary, OmeImage};
use crate::metadata::DataType;
use crate::reduce::CfValues;

/// The coordinates along a dimension: an array next to the one that is shown.
#[derive(Clone, Debug)]
pub struct Coordinate {
    /// The dimension.
    pub dim: usize,
    /// The path of its elements.
    pub data: String,
    /// Its attribute `units`.
    pub units: Option<String>,
    /// Its attribute `calendar`.
    pub calendar: Option<String>,
    /// Its length.
    pub length: u64,
    /// Whether they are latitudes or northings: pictures have north at the top.
    pub is_northing: bool,
    /// Its data type.
    pub data_type: DataType,
    /// How its elements become numbers; none is missing.
    pub values: CfValues,
    /// Along which axis of a map it goes, `X` or `Y`, if its elements are equally far apart.
    pub map_axis: Option<&'static str>,
}

/// Longer side of the picture without scripts, in pixels.
pub(super) const PAGE_PICTURE: &str = "720";
/// Longer side of the picture that programs show beside a link, in pixels.
pub(super) const SHARED_PICTURE: &str = "512";

/// An array to show.
pub(super) struct ViewedArray<'a> {
    pub(super) facts: &'a ShownArray,
    pub(super) array: Option<&'a Array>,
    pub(super) view: &'a ArrayView,
    pub(super) state: &'a PageState,
    pub(super) links: &'a NodeLinks,
    pub(super) attributes: &'a Map<String, Value>,
    pub(super) coordinates: &'a [Coordinate],
    /// Whether the elements are categories.
    pub(super) has_categories: bool,
    /// Whether there are tables of it with labels.
    pub(super) has_tables: bool,
    /// The image that the array is the finest level of.
    pub(super) image: Option<ViewedImage<'a>>,
}

/// The image that an array is the finest level of.
#[derive(Clone, Copy, Debug)]
pub(super) struct ViewedImage<'a> {
    pub(super) image: &'a OmeImage,
    /// All its levels, the finest first.
    pub(super) levels: &'a [Level],
    /// Its label images.
    pub(super) labels: &'a [LabelLayer],
    /// What a picture of the page's size costs.
    pub(super) cost: Cost,
}

/// A level of an image.
#[derive(Clone, Debug)]
pub(super) struct Level {
    pub(super) name: String,
    pub(super) links: NodeLinks,
    pub(super) facts: ShownArray,
}

impl ViewedArray<'_> {
    /// The cost of the view, if the array can be read.
    pub(super) fn cost(&self) -> Option<Cost> {
        let of_image = self.image.map(|image| image.cost);
        of_image.or_else(|| self.array.map(|array| Cost::of(&self.view.subset, self.facts.item_bytes, array)))
    }

    /// Whether the view is a plane that a page loads without being asked.
    pub(super) fn is_cheap_plane(&self) -> bool {
        let is_plane = matches!(self.view.shown, Shown::Plane { .. }) && self.facts.drawn != Drawn::Text;
        is_plane && self.cost().is_some_and(|cost| self.facts.limits.allow_unasked(cost))
    }

    /// The path of the picture of this view, at most this wide and high.
    pub(super) fn picture(&self, size: &str) -> String {
        let slice = self.view.slice(&self.facts.shape);
        let axes = match self.view.shown {
            Shown::Plane { rows, columns, .. } if rows > columns => Some(format!("{rows},{columns}")),
            _ => None,
        };
        let own = [("slice", slice.as_str()), ("size", size)];
        let axes = axes.as_deref().map(|axes| ("axes", axes));
        // A part of the plane is that of all rows and columns.
        let part = self.state.get("box").filter(|_| self.is_whole_plane()).map(|part| ("box", part));
        join(&self.links.image, own.into_iter().chain(axes).chain(part).chain(self.state.of_picture()))
    }

    /// The width and the height of the plane of the picture, in elements.
    pub(super) fn picture_sides(&self) -> Option<(u64, u64)> {
        let Shown::Plane { rows, columns, .. } = self.view.shown else { return None };
        let part = self.state.get("box").filter(|_| self.is_whole_plane());
        let sides = part.and_then(|part| {
            let sides: Vec<u64> =
                part.split(',').skip(2).filter_map(|side| side.trim().parse().ok()).collect();
            <[u64; 2]>::try_from(sides).ok()
        });
        let side = |dim: usize| self.view.subset.get(dim).map(|range| range.count);
        Some(sides.map_or((side(columns)?, side(rows)?), |[width, height]| (width, height)))
    }

    /// Whether the view has all rows and columns of a plane.
    fn is_whole_plane(&self) -> bool {
        let is_whole = |dim: usize| self.view.subset[dim] == AxisRange::full(self.facts.shape[dim]);
        matches!(self.view.shown, Shown::Plane { rows, columns, .. } if is_whole(rows) && is_whole(columns))
    }

    /// Whether elements are asked for as values in place of the numbers that are stored, because these differ.
    pub(super) fn is_decoded(&self) -> bool {
        let is_stored = self.state.get("decode") == Some("none") || self.state.get("fields").is_some();
        self.facts.is_encoded() && !is_stored
    }

    /// The words of requests for the elements that the page shows, besides the selection and the format.
    pub(super) fn words_of_elements(&self) -> Vec<(&'static str, String)> {
        let fields = self.state.get("fields").map(|fields| ("fields", fields.to_owned()));
        let decode = self.is_decoded().then(|| ("decode", "cf".to_owned()));
        fields.into_iter().chain(decode).collect()
    }

    /// What the viewer is given.
    pub(super) fn config(&self, tab: &str) -> String {
        let facts = self.facts;
        let range = |range: &AxisRange| {
            if range.keep { json!([range.start, range.count, range.step]) } else { json!(range.start) }
        };
        let ranges = |view: &ArrayView| view.subset.iter().map(range).collect::<Value>();
        let unasked = facts.limits.unasked();
        let (rows, columns, colors) = match self.view.shown {
            Shown::Plane { rows, columns, colors } => (Some(rows), Some(columns), colors),
            Shown::Line(line) => (None, Some(line), None),
            Shown::Value | Shown::Table => (None, None, None),
        };
        let level = |level: &Level| {
            json!({
                "name": level.name, "data": level.links.data, "image": level.links.image,
                "shape": level.facts.shape, "chunk": level.facts.decoded_shape,
            })
        };
        let coordinate = |one: &Coordinate| {
            json!({ "dim": one.dim, "data": one.data, "units": one.units, "calendar": one.calendar, "length": one.length,
            "north": one.is_northing, "cf": packing::of_values(&one.values, &one.data_type.name()) })
        };
        let image = self.image.map(|ViewedImage { image, levels, labels, .. }| {
            json!({
                "levels": levels.iter().map(level).collect::<Value>(), "channels": channels(&image.channels),
                "labels": labels.iter().filter_map(LabelLayer::config).collect::<Value>(),
                "axes": image.axes.iter().map(|axis| json!({ "unit": axis.unit, "scale": axis.scale, "kind": axis.kind }))
                    .collect::<Value>(),
            })
        });
        json!({
            "tab": tab, "view": self.links.view, "data": self.links.data, "picture": self.links.image,
            "stats": self.links.stats, "legend": self.links.legend,
            "type": facts.type_name, "complex": facts.drawn == Drawn::Complex, "text": facts.drawn == Drawn::Text,
            "shape": facts.shape, "names": facts.names, "named": facts.is_named,
            "chunk": facts.decoded_shape, "shard": facts.is_sharded.then_some(&facts.chunk_shape),
            "itemBytes": facts.item_bytes,
            "fields": self.state.get("fields"),
            "selected": self.view.slice(&facts.shape),
            "slice": ranges(self.view),
            "plane": self.view.plane.as_deref().and_then(|plane| match plane.shown {
                Shown::Plane { rows, columns, .. } => Some(json!({ "rows": rows, "columns": columns, "slice": ranges(plane) })),
                _ => None,
            }),
            "rows": rows, "columns": columns, "colors": colors, "window": self.view.is_window,
            "budget": { "bytes": unasked.bytes, "chunks": unasked.chunks },
            "most": { "bytes": facts.limits.bytes, "chunks": facts.limits.chunks },
            "decode": self.is_decoded().then_some("cf"),
            "cf": packing::of_array(facts, self.attributes, self.state.get("decode") == Some("none")), "labels": self.has_categories,
            "coordinates": self.coordinates.iter().map(coordinate).collect::<Value>(),
            "ome": image,
        })
        .to_string()
    }
}

/// The channels of an image.
fn channels(channels: &[ChannelSummary]) -> Value {
    let one = |(at, channel): (usize, &ChannelSummary)| {
        let label = channel.label.clone().unwrap_or_else(|| format!("channel {at}"));
        let window = channel.window.filter(|(start, end)| start < end);
        json!({
            "label": label, "color": channel.color,
            "window": window.map(|(start, end)| [start, end]), "active": channel.is_active,
        })
    };
    channels.iter().enumerate().map(one).collect()
}

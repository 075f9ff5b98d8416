//! [`Subject`]: the array that a picture is of, and what the metadata around it says of the picture.

use std::sync::Arc;

use axum::http::request::Parts;
use serde_json::{Map, Value};

use super::layout::{Layout, no_picture};
use super::query::ImageQuery;
use crate::api::label_params::{LabelPositions, positions};
use crate::array::{Array, OpenNode};
use crate::chunk::{AxisRange, Subset};
use crate::conventions::{Dimensions, OmeImage, SummaryAxis};
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::metadata::DataType;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::views::NodeAbove;

/// The attributes that a picture depends on.
const ATTRIBUTES: [&str; 15] = [
    "_FillValue",
    "_Unsigned",
    "missing_value",
    "scale_factor",
    "add_offset",
    "valid_min",
    "valid_max",
    "valid_range",
    "actual_range",
    "flag_values",
    "flag_colors",
    "flag_meanings",
    "units",
    "long_name",
    "standard_name",
];
/// Bytes of the longest of them that is read.
const MOST_ATTRIBUTE_BYTES: usize = 16 << 10;

/// The array that a picture is of.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The nodes whose documents the picture depends on; the first is the array's.
    pub(crate) nodes: Vec<Arc<OpenNode>>,
    pub(crate) array: Arc<Array>,
    /// The array whose sample the default range comes from: the smallest level.
    pub(crate) sampled: Arc<Array>,
    /// The image that the array is a level of.
    pub(crate) ome: Option<Arc<OmeImage>>,
    /// The stored levels, the largest first; the array alone, if it is not a level of an image.
    pub(crate) levels: Vec<NodePath>,
    /// Which of them the array is.
    pub(crate) level: usize,
    /// Whether the request names the image, and not one of its levels.
    pub(crate) is_image: bool,
    /// The nodes above the array that decide whether it is a level of an image; `None` if others decided as well.
    pub(crate) above: Option<Vec<NodeAbove>>,
    /// What the labels of the request were resolved to, if it selects by label.
    pub(crate) positions: Option<Arc<LabelPositions>>,
}

impl Subject {
    /// The attributes of the array that say what its elements stand for. A longer one than anyone writes counts as absent.
    pub(crate) fn attributes(&self) -> Map<String, Value> {
        let attributes = &self.array.metadata().attributes;
        let is_short =
            |name: &&str| attributes.member_text(name).is_some_and(|text| text.len() <= MOST_ATTRIBUTE_BYTES);
        let names = ATTRIBUTES.into_iter().filter(is_short);
        names.filter_map(|name| Some((name.to_owned(), attributes.get(name)?))).collect()
    }

    /// An array that is in no image.
    pub(super) fn alone(node: Arc<OpenNode>, array: Arc<Array>, path: NodePath, is_image: bool) -> Self {
        let sampled = Arc::clone(&array);
        let (nodes, levels, above, positions) = (vec![node], vec![path], None, None);
        Self { nodes, array, sampled, ome: None, levels, level: 0, is_image, above, positions }
    }

    /// The same with positions in place of the labels of a request.
    ///
    /// # Errors
    /// Those of [`positions`].
    pub(super) async fn with_labels(
        self,
        state: &AppState,
        head: &Parts,
        target: &NodeTarget,
        query: &ImageQuery,
    ) -> Result<Self, Problem> {
        let (path, names) = (self.array.path().clone(), self.names());
        let metadata = self.array.metadata();
        let found =
            positions((state, head, target), &query.selection, &path, metadata, Some(names.as_slice()))
                .await?;
        Ok(Self { positions: found.map(Arc::new), ..self })
    }

    /// Adds the group that says whether the image is one of labels, if it was asked.
    pub(super) fn depend_on_list(&mut self, list: Option<&NodeAbove>) {
        if let Some(list) = list {
            self.nodes.extend(list.node().cloned());
            self.above = None;
        }
    }

    /// The names of the array's dimensions: its own, or those of the image that it is a level of.
    pub(crate) fn names(&self) -> Vec<Option<String>> {
        let metadata = self.array.metadata();
        let rank = metadata.shape.len();
        let of_image = self.ome.as_ref().filter(|ome| ome.axes.len() == rank);
        match (of_image, &metadata.dimension_names) {
            (Some(ome), _) => ome.names(),
            (None, Some(names)) => names.clone(),
            (None, None) => vec![None; rank],
        }
    }

    /// The channel of the image that all of a plane is of; `None` if it is of several, or of no image.
    pub(super) fn only_channel(&self, layout: &Layout) -> Option<u64> {
        let ome = self.ome.as_ref()?;
        let is_channels = |axis: &SummaryAxis| match axis.kind.as_deref() {
            None => axis.name.as_deref() == Some("c"),
            Some(kind) => kind == "channel",
        };
        // An image without such an axis has one channel.
        let Some(axis) = ome.axes.iter().position(is_channels) else { return Some(0) };
        let plane = layout.plane(None);
        plane.axes().get(axis).filter(|range| range.count == 1).map(|range| range.start)
    }

    /// The layout of a request's picture.
    ///
    /// # Errors
    /// Those of [`Layout::new`], and those of the selection.
    pub(crate) fn layout(&self, query: &ImageQuery) -> Result<Layout, Problem> {
        let metadata = self.array.metadata();
        let names = self.names();
        let selection = self.positions.as_ref().map_or(&query.selection, |positions| &positions.selection);
        let selected = selection.subset_named(&metadata.shape, &names)?;
        let dimensions = Dimensions {
            shape: &metadata.shape,
            names: &names,
            is_bytes: metadata.data_type == DataType::UInt8,
            proposed: self.ome.as_ref().map_or(&[], |ome| &ome.proposed),
        };
        Layout::new(&dimensions, &selected, query)
    }

    /// Another stored level of the image, with a layout that shows the same.
    pub(crate) async fn at_level(
        &self,
        target: &NodeTarget,
        layout: &Layout,
        level: usize,
    ) -> Result<(Self, Layout), Problem> {
        let path = self.levels.get(level).ok_or_else(|| {
            let (last, name) = (self.levels.len().saturating_sub(1), &target.path);
            Problem::from_class(ErrorClass::InvalidRequest)
                .detail(format!("`level={level}`: the levels of `{name}` are 0 to {last}"))
        })?;
        let node = target.opener.open(path).await?;
        let array = Arc::clone(node.array()?);
        let (from, to) = (&self.array.metadata().shape, &array.metadata().shape);
        if from.len() != to.len() || to.contains(&0) {
            return Err(no_picture(format!(
                "the level `{path}` has another number of dimensions than the first"
            )));
        }
        let mut nodes = vec![node];
        nodes.extend(self.nodes.iter().cloned());
        let layout = layout.scaled(from, to);
        let (ome, levels, sampled) = (self.ome.clone(), self.levels.clone(), Arc::clone(&self.sampled));
        let (is_image, above, positions) = (self.is_image, None, self.positions.clone());
        Ok((Self { nodes, array, sampled, ome, levels, level, is_image, above, positions }, layout))
    }
}

impl Layout {
    /// The same part of a level with another shape.
    fn scaled(&self, from: &[u64], to: &[u64]) -> Self {
        let mut scaled = self.clone();
        let axes = self.plane(None);
        for (axis, range) in axes.axes().iter().enumerate() {
            let (from, to) =
                (from.get(axis).copied().unwrap_or(1).max(1), to.get(axis).copied().unwrap_or(1));
            let at = |place: u64, up: bool| {
                let wide = u128::from(place) * u128::from(to);
                let wide = if up { wide.div_ceil(from.into()) } else { wide / u128::from(from) };
                u64::try_from(wide).unwrap_or(u64::MAX).min(to)
            };
            let range = if range.keep {
                let (start, end) =
                    (at(range.start, false), at(range.start.saturating_add(range.count), true));
                AxisRange { start, count: end.saturating_sub(start).max(1), ..*range }
            } else {
                AxisRange { start: at(range.start, false).min(to.saturating_sub(1)), ..*range }
            };
            scaled.set(axis, range);
        }
        scaled
    }

    /// The selection of a picture as text, in the grammar of `slice`.
    pub(crate) fn slice(&self, all_channels: Option<u64>) -> String {
        Subset(self.shown(all_channels).0).to_string()
    }
}

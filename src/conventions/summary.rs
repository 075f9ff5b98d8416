//! [`NodeSummary`]: what a node is, in the form that people and programs need before they read elements.

use super::axis::SummaryAxis;
use super::geo::CrsSummary;
use super::kind::NodeSummaryKind;
use super::level::SummaryLevel;
use super::ome::{ChannelSummary, PlateSummary};
use super::view::DefaultView;
use super::warning::LayoutWarning;

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSummary {
    /// Its kind.
    pub kind: NodeSummaryKind,
    /// The version of the convention that the kind is from.
    pub version: Option<String>,
    /// The dimensions of an array or an image, or those of all variables of a dataset.
    pub axes: Vec<SummaryAxis>,
    /// The resolution levels of an image, the finest first.
    pub levels: Vec<SummaryLevel>,
    /// The channels of an image.
    pub channels: Vec<ChannelSummary>,
    /// The names of label images; each is the node `labels/NAME` below its image.
    pub labels: Vec<String>,
    /// The paths of the images of a well or a collection, below the group.
    pub images: Vec<String>,
    /// The wells of a plate.
    pub plate: Option<PlateSummary>,
    /// The coordinate reference system.
    pub crs: Option<CrsSummary>,
    /// The smallest coordinates, then the largest, in the order x, y and perhaps z.
    pub bbox: Option<Vec<f64>>,
    /// The first and the last time, as in the attributes, else those of the coordinate in ISO 8601.
    pub time_range: Option<[String; 2]>,
    /// The default picture; of the first level of an image.
    pub view: Option<DefaultView>,
    /// The range of the colours, where metadata gives one.
    pub range: Option<(f64, f64)>,
    /// Whether there is a picture of the node.
    pub has_picture: bool,
    /// What makes the node hard to read or view.
    pub warnings: Vec<LayoutWarning>,
}

impl NodeSummary {
    /// The summary of a node of this kind, with nothing else in it.
    pub(super) fn of(kind: NodeSummaryKind) -> Self {
        Self {
            kind,
            version: None,
            axes: Vec::new(),
            levels: Vec::new(),
            channels: Vec::new(),
            labels: Vec::new(),
            images: Vec::new(),
            plate: None,
            crs: None,
            bbox: None,
            time_range: None,
            view: None,
            range: None,
            has_picture: false,
            warnings: Vec::new(),
        }
    }
}

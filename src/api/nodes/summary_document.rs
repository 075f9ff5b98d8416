//! [`SummaryDocument`]: the summary of a node on the wire.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::conventions::{
    ChannelSummary, CrsSummary, LayoutWarning, NodeSummary, PlateSummary, SummaryAxis, SummaryLevel, WayOut,
};

/// What a node is: its axes, levels, channels and place, by the conventions of its attributes. A list is empty and another
/// member null where nothing is known.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SummaryDocument {
    /// `ome-image`, `ome-labels`, `ome-plate`, `ome-well`, `ome-collection`, `ome-scene`, `geo`, `cf-dataset`, `zvf` or `plain`.
    #[schema(value_type = String)]
    kind: &'static str,
    /// The version of the convention: of OME-Zarr, CF or the Zarr Vector Format.
    version: Option<String>,
    /// The dimensions of an array or of the first level of an image; for a dataset, those of all its variables.
    axes: Vec<AxisDocument>,
    /// The resolution levels that the attributes declare, the finest first.
    levels: Vec<LevelDocument>,
    /// The channels of an image.
    channels: Vec<ChannelDocument>,
    /// The names of label images; each is at `labels/NAME` below its image.
    labels: Vec<String>,
    /// The paths of the images of a well or a collection, below the group.
    images: Vec<String>,
    /// The wells of a plate.
    plate: Option<PlateDocument>,
    /// The coordinate reference system.
    crs: Option<CrsDocument>,
    /// The smallest coordinates, then the largest, in the units of `crs`: x, y, and perhaps z.
    bbox: Option<Vec<f64>>,
    /// The first and the last time, as text in the attributes, else those of the time coordinate (ISO 8601).
    time_range: Option<Vec<String>>,
    /// What a picture shows unless a request says otherwise, in the grammar of `slice`; of the first level of an image.
    default_slice: Option<String>,
    /// The dimensions of the rows and columns of that picture, by name or number.
    default_axes: Option<Vec<String>>,
    /// The range of its colours, if the metadata gives one.
    default_range: Option<Vec<f64>>,
    /// A link to a small picture, if there can be one.
    thumbnail: Option<String>,
    /// Links that open the node in viewers of others.
    open_in: Vec<OpenInDocument>,
    /// What makes the node hard to read or view, and rules of conventions that it breaks.
    warnings: Vec<WarningDocument>,
}

/// A dimension.
#[derive(Debug, Serialize, ToSchema)]
struct AxisDocument {
    name: Option<String>,
    /// `space`, `time`, `channel`, or another word of its author.
    r#type: Option<String>,
    /// The unit of its coordinates.
    unit: Option<String>,
    /// Elements along it.
    size: Option<u64>,
    /// The distance of neighbouring elements, in `unit`.
    scale: Option<f64>,
    /// The first and the last coordinate, in `unit`, of a dataset or its variable.
    ends: Option<Vec<f64>>,
}

/// A resolution level.
#[derive(Debug, Serialize, ToSchema)]
struct LevelDocument {
    /// Its path below the group.
    path: String,
    shape: Option<Vec<u64>>,
    /// Null if its documents cannot be read.
    exists: Option<bool>,
    /// How many elements of the first level one element stands for, along each dimension.
    #[schema(value_type = Option<Vec<f64>>)]
    factors: Option<Vec<Value>>,
}

/// A channel.
#[derive(Debug, Serialize, ToSchema)]
struct ChannelDocument {
    label: Option<String>,
    /// Six hexadecimal digits.
    color: Option<String>,
    /// The values that are drawn darkest and brightest.
    window: Option<Vec<f64>>,
    /// Whether it is shown at first.
    active: bool,
}

/// A plate.
#[derive(Debug, Serialize, ToSchema)]
struct PlateDocument {
    /// The names of the rows.
    rows: Vec<String>,
    /// The names of the columns.
    columns: Vec<String>,
    wells: Vec<WellDocument>,
    /// How many wells the attributes declare, if `wells` has not all of them.
    declared_wells: u64,
    /// The most images of a well.
    fields: Option<u64>,
}

/// A well.
#[derive(Debug, Serialize, ToSchema)]
struct WellDocument {
    /// Its path below the plate.
    path: String,
    /// The index of its row.
    row: u64,
    /// The index of its column.
    column: u64,
}

/// A coordinate reference system.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CrsDocument {
    /// Where it is declared: `proj`, `grid_mapping` or `coordinates`.
    #[schema(value_type = String)]
    source: &'static str,
    /// Authority and code, such as `EPSG:4326`.
    code: Option<String>,
    wkt: Option<String>,
    #[schema(value_type = Option<Object>)]
    projjson: Option<Value>,
    /// The name of the projection in CF.
    grid_mapping_name: Option<String>,
}

/// A viewer of others.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OpenInDocument {
    pub(crate) name: String,
    /// The page, with the node open; null for a command.
    pub(crate) url: Option<String>,
    /// The command, for a viewer that is a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
}

/// A warning.
#[derive(Debug, Serialize, ToSchema)]
struct WarningDocument {
    /// `single-level`, `large-chunks`, `tiny-chunks`, `level-missing`, `no-dimension-names`, `consolidated-stale`, or a rule
    /// of OME-Zarr: `ome-axes`, `ome-axis-order`, `ome-level-rank`, `ome-level-order`, `ome-data-types`.
    #[schema(value_type = String)]
    code: &'static str,
    detail: String,
    /// A link to a view of the node that has not this problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    way_out: Option<String>,
}

impl SummaryDocument {
    /// The document of a summary. `way_out` returns the link to a view of the node.
    pub(crate) fn new(
        summary: NodeSummary,
        thumbnail: Option<String>,
        open_in: Vec<OpenInDocument>,
        way_out: impl Fn(WayOut) -> String,
    ) -> Self {
        let view = summary.view;
        let (default_slice, default_axes) = view.map(|view| (view.slice, view.axes)).unzip();
        Self {
            kind: summary.kind.as_str(),
            version: summary.version,
            axes: summary.axes.into_iter().map(axis).collect(),
            levels: summary.levels.into_iter().map(level).collect(),
            channels: summary.channels.into_iter().map(channel).collect(),
            labels: summary.labels,
            images: summary.images,
            plate: summary.plate.map(plate),
            crs: summary.crs.map(CrsDocument::from),
            bbox: summary.bbox,
            time_range: summary.time_range.map(Vec::from),
            default_slice,
            default_axes: default_axes.flatten().map(Vec::from),
            default_range: summary.range.map(|(low, high)| vec![low, high]),
            thumbnail: thumbnail.filter(|_| summary.has_picture),
            open_in,
            warnings: summary.warnings.into_iter().map(|warning| of_warning(warning, &way_out)).collect(),
        }
    }
}

fn axis(SummaryAxis { name, kind, unit, size, scale, ends }: SummaryAxis) -> AxisDocument {
    let ends = ends.filter(|(first, last)| first.is_finite() && last.is_finite());
    AxisDocument { name, r#type: kind, unit, size, scale, ends: ends.map(|(first, last)| vec![first, last]) }
}

fn level(SummaryLevel { path, shape, exists, factors }: SummaryLevel) -> LevelDocument {
    let factors = factors.map(|factors| factors.into_iter().map(plain_number).collect());
    LevelDocument { path, shape, exists, factors }
}

fn channel(ChannelSummary { label, color, window, is_active }: ChannelSummary) -> ChannelDocument {
    ChannelDocument { label, color, window: window.map(|(start, end)| vec![start, end]), active: is_active }
}

fn plate(plate: PlateSummary) -> PlateDocument {
    let PlateSummary { rows, columns, wells, declared_wells, fields, name: _ } = plate;
    let wells = wells.into_iter().map(|(path, row, column)| WellDocument { path, row, column }).collect();
    PlateDocument { rows, columns, wells, declared_wells, fields }
}

impl From<CrsSummary> for CrsDocument {
    fn from(CrsSummary { source, code, wkt, projjson, grid_mapping_name }: CrsSummary) -> Self {
        Self { source, code, wkt, projjson, grid_mapping_name }
    }
}

fn of_warning(warning: LayoutWarning, way_out: impl Fn(WayOut) -> String) -> WarningDocument {
    let LayoutWarning { code, detail, way_out: cure } = warning;
    WarningDocument { code, detail, way_out: cure.map(way_out) }
}

/// A number without a fraction as an integer, as people write factors.
fn plain_number(number: f64) -> Value {
    let is_plain = number.fract() == 0.0 && (0.0..9e15).contains(&number);
    if is_plain {
        format!("{number:.0}").parse::<u64>().map_or(Value::from(number), Value::from)
    } else {
        number.into()
    }
}

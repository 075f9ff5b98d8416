//! [`DatasetDocument`]: a dataset on the wire, and how it is made from arrays and the extents of their coordinates.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::export::sources::{ExportSource, ExportSources};
use crate::api::nodes::summary_document::CrsDocument;
use crate::conventions::{ArrayFacts, coordinate_axis, named_coordinates, summarize_dataset, text_attribute};
use crate::labels::LabelExtent;
use crate::metadata::Attributes;

/// A dataset: the arrays of a group, or an array, with their coordinates.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DatasetDocument {
    /// The name of the mount.
    mount: String,
    /// The path of the group or the array; empty for the root.
    path: String,
    /// The dimensions of all arrays. Arrays that disagree on the length of one have two of its name.
    dimensions: Vec<DimensionDocument>,
    /// The arrays that have the labels of a dimension, and those that attributes name as coordinates.
    coordinates: Vec<CoordinateDocument>,
    /// The other arrays.
    data_variables: Vec<VariableDocument>,
    /// Which of the other arrays have the same dimensions.
    grids: Vec<SharedGridDocument>,
    /// The first and the last time (ISO 8601): as the attributes of the group state them, else those of the time coordinate.
    time_range: Option<Vec<String>>,
    /// The smallest coordinates, then the largest, in the units of `crs`: x, y, and perhaps z.
    bbox: Option<Vec<f64>>,
    /// The coordinate reference system.
    crs: Option<CrsDocument>,
    /// Arrays that cannot be read.
    omitted: Vec<OmittedDocument>,
}

/// A dimension of a dataset.
#[derive(Debug, Serialize, ToSchema)]
struct DimensionDocument {
    name: String,
    size: u64,
}

/// An array of a dataset.
#[derive(Debug, Serialize, ToSchema)]
struct VariableDocument {
    name: String,
    /// The path of the array in the mount.
    path: String,
    /// The names of its dimensions; null for one without a name.
    dimensions: Vec<Option<String>>,
    shape: Vec<u64>,
    /// The type of its stored elements.
    data_type: String,
    units: Option<String>,
    long_name: Option<String>,
    standard_name: Option<String>,
}

/// A coordinate of a dataset.
#[derive(Debug, Serialize, ToSchema)]
struct CoordinateDocument {
    #[serde(flatten)]
    variable: VariableDocument,
    /// Whether it has the labels of the dimension of its name.
    is_dimension: bool,
    /// `X`, `Y`, `Z` or `T`, as far as attributes or the name say.
    #[schema(value_type = Option<String>)]
    axis: Option<&'static str>,
    /// The calendar of times.
    calendar: Option<String>,
    /// The first label in stored order: a number, or a text for times (ISO 8601) and texts; null if it is not known.
    #[schema(value_type = Option<Object>)]
    first: Value,
    /// The last label in stored order.
    #[schema(value_type = Option<Object>)]
    last: Value,
    /// The distance of neighbouring labels if all have the same: a number, or for times a text such as `6 hours`.
    #[schema(value_type = Option<Object>)]
    step: Value,
    /// `ascending`, `descending` or `unsorted`.
    #[schema(value_type = Option<String>)]
    order: Option<&'static str>,
}

/// Dimensions, and the data variables that have them.
#[derive(Debug, Serialize, ToSchema)]
struct SharedGridDocument {
    dimensions: Vec<Option<String>>,
    shape: Vec<u64>,
    variables: Vec<String>,
}

/// An array that a dataset does not have.
#[derive(Debug, Serialize, ToSchema)]
struct OmittedDocument {
    name: String,
    reason: String,
}

impl DatasetDocument {
    /// The document of arrays and the extents of those that are coordinates, by their names.
    pub(super) fn new(
        mount: &str,
        path: &str,
        sources: &ExportSources,
        mut extents: HashMap<String, LabelExtent>,
    ) -> Self {
        let group = sources.attributes();
        let (time_range, bbox, crs) = place(&group, sources, &extents);
        let named = named(&group, sources);
        let (coordinates, variables): (Vec<&ExportSource>, Vec<&ExportSource>) =
            sources.sources.iter().partition(|source| source.is_coordinate || named.contains(&source.name));
        let coordinates = coordinates.into_iter().map(|source| {
            let extent = extents.remove(&source.name);
            coordinate(source, extent)
        });
        let coordinates = coordinates.collect();
        let data_variables: Vec<VariableDocument> = variables.into_iter().map(variable).collect();
        let omitted = sources
            .omitted
            .iter()
            .map(|omitted| OmittedDocument { name: omitted.name.clone(), reason: omitted.reason.clone() });
        Self {
            mount: mount.to_owned(),
            path: path.to_owned(),
            dimensions: dimensions(sources),
            coordinates,
            grids: grids(&data_variables),
            data_variables,
            time_range,
            bbox,
            crs,
            omitted: omitted.collect(),
        }
    }
}

/// The names of arrays that attributes of the group and of other arrays call coordinates.
pub(super) fn named(group: &Attributes, sources: &ExportSources) -> BTreeSet<String> {
    let of_arrays =
        sources.sources.iter().flat_map(|source| named_coordinates(&source.metadata().attributes));
    named_coordinates(group).into_iter().chain(of_arrays).collect()
}

/// The range of times, the bounding box, and the coordinate reference system.
fn place(
    group: &Attributes,
    sources: &ExportSources,
    extents: &HashMap<String, LabelExtent>,
) -> (Option<Vec<String>>, Option<Vec<f64>>, Option<CrsDocument>) {
    let facts = |source: &ExportSource| {
        let ends = extents.get(&source.name).and_then(|extent| extent.range);
        let facts = ArrayFacts { metadata: source.metadata().clone(), decoded_chunk_shape: None, ends };
        (source.name.clone(), facts)
    };
    let arrays: Vec<(String, ArrayFacts)> = sources.sources.iter().map(facts).collect();
    let summary = summarize_dataset(group, &arrays);
    let of_labels = || {
        let coordinates = sources.sources.iter().filter(|source| source.is_coordinate);
        coordinates.into_iter().find_map(|source| extents.get(&source.name)?.time_range.clone())
    };
    let time_range = summary.time_range.or_else(of_labels).map(Vec::from);
    (time_range, summary.bbox, summary.crs.map(CrsDocument::from))
}

fn variable(source: &ExportSource) -> VariableDocument {
    let metadata = source.metadata();
    let text = |name: &str| text_attribute(&metadata.attributes, name);
    VariableDocument {
        name: source.name.clone(),
        path: source.array.path().as_str().to_owned(),
        dimensions: source.dimension_names.clone(),
        shape: metadata.shape.clone(),
        data_type: metadata.data_type.name(),
        units: text("units"),
        long_name: text("long_name"),
        standard_name: text("standard_name"),
    }
}

fn coordinate(source: &ExportSource, extent: Option<LabelExtent>) -> CoordinateDocument {
    let attributes = &source.metadata().attributes;
    let (first, last, step, order) = match extent {
        Some(extent) => (extent.first, extent.last, extent.step, extent.order),
        None => (Value::Null, Value::Null, Value::Null, None),
    };
    CoordinateDocument {
        variable: variable(source),
        is_dimension: source.is_coordinate,
        axis: coordinate_axis(&source.name, attributes),
        calendar: text_attribute(attributes, "calendar"),
        first,
        last,
        step,
        order,
    }
}

/// The dimensions with names, in the order of the arrays.
fn dimensions(sources: &ExportSources) -> Vec<DimensionDocument> {
    let (mut known, mut dimensions) = (BTreeSet::new(), Vec::new());
    for source in &sources.sources {
        for (name, &size) in source.dimension_names.iter().zip(&source.metadata().shape) {
            let Some(name) = name else { continue };
            if known.insert((name, size)) {
                dimensions.push(DimensionDocument { name: name.clone(), size });
            }
        }
    }
    dimensions
}

/// The variables that have the same dimensions, in the order of the first of each.
fn grids(variables: &[VariableDocument]) -> Vec<SharedGridDocument> {
    let mut places: HashMap<(&[Option<String>], &[u64]), usize> = HashMap::new();
    let mut grids: Vec<SharedGridDocument> = Vec::new();
    for variable in variables {
        let key = (variable.dimensions.as_slice(), variable.shape.as_slice());
        let place = *places.entry(key).or_insert(grids.len());
        match grids.get_mut(place) {
            Some(grid) => grid.variables.push(variable.name.clone()),
            None => grids.push(SharedGridDocument {
                dimensions: variable.dimensions.clone(),
                shape: variable.shape.clone(),
                variables: vec![variable.name.clone()],
            }),
        }
    }
    grids
}

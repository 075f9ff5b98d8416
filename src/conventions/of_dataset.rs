//! The summary of a group of variables and coordinates.

use super::axis::SummaryAxis;
use super::cf;
use super::facts::{ArrayFacts, Neighbour, Neighbours, NodeFacts};
use super::geo::Georeference;
use super::kind::NodeSummaryKind;
use super::of_array::{by_coordinates, times};
use super::plane::DimensionRole;
use super::summary::NodeSummary;
use super::values::{MAX_ITEMS, cut};
use crate::key::NodePath;
use crate::metadata::Attributes;

/// Summarizes arrays and the attributes of their group as a dataset: its axes, its times and its place.
#[must_use]
pub fn summarize_dataset(attributes: &Attributes, arrays: &[(String, ArrayFacts)]) -> NodeSummary {
    let arrays = arrays.iter().map(|(name, array)| (name.as_str(), array)).collect();
    Dataset { attributes, arrays }.summary()
}

/// The arrays directly below a group.
pub(super) struct Dataset<'a> {
    attributes: &'a Attributes,
    arrays: Vec<(&'a str, &'a ArrayFacts)>,
}

impl<'a> Dataset<'a> {
    /// The arrays directly below a group that were read.
    pub(super) fn new(path: &NodePath, attributes: &'a Attributes, neighbours: &'a Neighbours) -> Self {
        let array = |(below, neighbour): (&'a NodePath, &'a Neighbour)| match neighbour {
            Neighbour::Present(NodeFacts::Array(array)) if below.parent().as_ref() == Some(path) => {
                Some((below.name(), array))
            }
            _ => None,
        };
        Self { attributes, arrays: neighbours.0.iter().filter_map(array).collect() }
    }

    /// The summary of the group: as a dataset, if it declares CF or if one of its arrays is the coordinate of a dimension; as
    /// a georeferenced group, if it declares that; else as a plain one.
    pub(super) fn summary(&self) -> NodeSummary {
        let version = cf::version(self.attributes);
        let declared = Georeference::declared(self.attributes);
        let is_dataset =
            version.is_some() || self.arrays.iter().any(|(name, array)| array.is_coordinate(name));
        let kind = match (is_dataset, &declared) {
            (true, _) => NodeSummaryKind::CfDataset,
            (false, Some(_)) => NodeSummaryKind::Geo,
            (false, None) => NodeSummaryKind::Plain,
        };
        let mut summary = NodeSummary { version, ..NodeSummary::of(kind) };
        summary.has_picture = self.arrays.iter().any(|(name, array)| has_picture(name, array));
        let place = if is_dataset {
            summary.axes = self.axes();
            let names = || summary.axes.iter().filter_map(|axis| axis.name.as_deref());
            let of_times = || times(names().filter_map(|name| self.coordinate(name)));
            summary.time_range = cf::time_coverage(self.attributes).or_else(of_times);
            summary.bbox = cf::geospatial_box(self.attributes);
            let mapped = || self.grid_mapping().map(|mapped| self.with_box(mapped, &summary.axes));
            declared.or_else(mapped).or_else(|| self.geographic(&summary.axes))
        } else {
            declared
        };
        if let Some(place) = place {
            summary.bbox = place.bbox.or(summary.bbox);
            summary.crs = place.crs;
        }
        summary
    }

    /// The dimensions of all arrays, those of arrays with the most dimensions first.
    fn axes(&self) -> Vec<SummaryAxis> {
        let mut arrays: Vec<&ArrayFacts> = self.arrays.iter().map(|(_, array)| *array).collect();
        arrays.sort_by_key(|array| std::cmp::Reverse(array.metadata.shape.len()));
        let mut axes: Vec<SummaryAxis> = Vec::new();
        for array in arrays {
            for (name, &size) in array.names().into_iter().zip(&array.metadata.shape) {
                let Some(name) = name else { continue };
                if axes.len() < MAX_ITEMS && !axes.iter().any(|axis| axis.name.as_ref() == Some(&name)) {
                    axes.push(self.axis(&name, size));
                }
            }
        }
        axes
    }

    fn axis(&self, name: &str, size: u64) -> SummaryAxis {
        let coordinate = self.coordinate(name);
        let attributes = coordinate.map(|coordinate| &coordinate.metadata.attributes);
        let by_coordinate = attributes.and_then(|attributes| cf::axis_of(name, attributes));
        let by_name = || DimensionRole::of(name).map(DimensionRole::as_axis_type);
        let kind = by_coordinate.map(cf::CfAxis::as_axis_type).or_else(by_name);
        SummaryAxis {
            name: Some(cut(name)),
            kind: kind.map(str::to_owned),
            unit: attributes.and_then(|attributes| cf::attribute(attributes, "units")),
            size: Some(size),
            scale: None,
            ends: coordinate.and_then(|coordinate| coordinate.ends),
        }
    }

    /// The coordinate of a dimension.
    fn coordinate(&self, name: &str) -> Option<&'a ArrayFacts> {
        let of_name = self.arrays.iter().find(|(known, array)| *known == name && array.is_coordinate(known));
        of_name.map(|(_, array)| *array)
    }

    /// The reference of the first grid mapping that a variable names.
    fn grid_mapping(&self) -> Option<Georeference> {
        let names = self.arrays.iter().flat_map(|(_, array)| cf::grid_mappings(&array.metadata.attributes));
        let mapping = |name: String| self.arrays.iter().find(|(known, _)| *known == name);
        names
            .filter_map(mapping)
            .find_map(|(_, array)| Georeference::of_grid_mapping(&array.metadata.attributes))
    }

    /// A grid mapping with the box of its coordinates, which are in its units.
    fn with_box(&self, mapping: Georeference, axes: &[SummaryAxis]) -> Georeference {
        let along = |wanted: cf::CfAxis| {
            let names = axes.iter().filter_map(|axis| axis.name.as_deref());
            names.filter_map(|name| Some((name, self.coordinate(name)?))).find_map(|(name, found)| {
                (cf::axis_of(name, &found.metadata.attributes) == Some(wanted)).then_some(found)
            })
        };
        let bounds = || {
            let (x, y) = (along(cf::CfAxis::X)?.range()?, along(cf::CfAxis::Y)?.range()?);
            Some(vec![x.0, y.0, x.1, y.1])
        };
        let bbox = mapping.bbox.clone().or_else(bounds);
        Georeference { bbox, ..mapping }
    }

    fn geographic(&self, axes: &[SummaryAxis]) -> Option<Georeference> {
        let names: Vec<Option<String>> = axes.iter().map(|axis| axis.name.clone()).collect();
        by_coordinates(|name| self.coordinate(name), &names)
    }
}

/// Whether there is a picture of a variable that is no bounds of a coordinate.
fn has_picture(name: &str, array: &ArrayFacts) -> bool {
    let shape = &array.metadata.shape;
    let is_bounds = shape.len() == 2 && shape.last() == Some(&2);
    let long = shape.iter().filter(|&&length| length > 1).count();
    array.has_picture() && long >= 2 && !is_bounds && !array.is_coordinate(name)
}

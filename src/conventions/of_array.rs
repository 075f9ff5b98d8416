//! The summary of an array.

use super::axis::SummaryAxis;
use super::cf;
use super::facts::{ArrayFacts, Neighbours};
use super::geo::Georeference;
use super::kind::NodeSummaryKind;
use super::layout::layout;
use super::level_of::DeclaredLevel;
use super::ome::OmeImage;
use super::plane::{DefaultPlane, DimensionRole, Dimensions};
use super::range::default_range;
use super::rules;
use super::summary::NodeSummary;
use super::values::cut;
use crate::key::NodePath;
use crate::labels::CfTimes;
use crate::metadata::{Attributes, DataType};

/// Summarizes an array, given the nodes of [`Needed::of_array`](super::Needed::of_array) and
/// [`Needed::beside_array`](super::Needed::beside_array).
#[must_use]
pub fn summarize_array(path: &NodePath, array: &ArrayFacts, neighbours: &Neighbours) -> NodeSummary {
    let parent = path.parent().and_then(|parent| neighbours.group(&parent)).map(|group| &group.attributes);
    let declared = neighbours.declared_level(path);
    let is_level = declared.is_some();
    // A level has the place of the group that declares it, which need not be the parent.
    let (above, below, level) = match declared {
        Some((above, below, level)) => (Some(above), below, Some(level)),
        None => (parent, path.name().to_owned(), None),
    };
    let (image, level) = match level {
        Some(DeclaredLevel::OfImage(image, level)) => (Some(image), level),
        Some(DeclaredLevel::OfLayout) | None => (None, 0),
    };
    let names = names(array, image.as_ref());
    let beside = Beside { path, below: &below, neighbours };
    let mut axes = axes(array, &names, &beside);
    let mut summary = NodeSummary::of(NodeSummaryKind::Plain);
    if let Some(image) = &image {
        of_image(&mut axes, image, level);
        summary.channels.clone_from(&image.channels);
    }
    let place = georeference(array, &names, above, &beside);
    if let Some(place) = place {
        summary.kind = NodeSummaryKind::Geo;
        summary.bbox = bounds(&place, array, &names);
        scale_axes(&mut axes, &place);
        summary.crs = place.crs;
    }
    let has_times = axes.iter().any(|axis| axis.kind.as_deref() == Some("time"));
    let of_times = || times(names.iter().flatten().filter_map(|name| beside.coordinate(array, name)));
    summary.time_range = above.filter(|_| has_times).and_then(cf::time_coverage).or_else(of_times);
    summary.axes = axes;
    put_view(&mut summary, array, &names, image.as_ref());
    summary.has_picture = array.has_picture();
    let is_pyramid = is_level && image.is_none_or(|image| image.levels.len() > 1);
    let single = if is_pyramid { None } else { rules::of_single_level(array, &names) };
    summary.warnings =
        single.into_iter().chain(rules::of_chunks(array)).chain(rules::of_names(&names)).collect();
    summary
}

/// Adds the default view and range of an array that is shown with the metadata of an image, or without.
pub(super) fn put_view(
    summary: &mut NodeSummary,
    array: &ArrayFacts,
    names: &[Option<String>],
    image: Option<&OmeImage>,
) {
    let dimensions = Dimensions {
        shape: &array.metadata.shape,
        names,
        is_bytes: array.metadata.data_type == DataType::UInt8,
        proposed: image.map_or(&[], |image| &image.proposed),
    };
    let draws_channels = image.is_some_and(|image| !image.channels.is_empty());
    summary.view = Some(dimensions.view(draws_channels));
    let window = image.and_then(|image| image.channels.first()?.window);
    summary.range = default_range(&array.metadata.data_type, &array.metadata.attributes, window);
}

/// The names of the dimensions: those of the image that the array is a level of, else its own.
pub(super) fn names(array: &ArrayFacts, image: Option<&OmeImage>) -> Vec<Option<String>> {
    let own = array.names();
    let of_image = image.map(OmeImage::names).filter(|names| names.len() == own.len());
    of_image.unwrap_or(own)
}

/// The types, units and scales of a level's axes.
pub(super) fn of_image(axes: &mut [SummaryAxis], image: &OmeImage, level: usize) {
    if axes.len() != image.axes.len() {
        return;
    }
    let scale = image.levels.get(level).and_then(|(_, scale)| scale.as_ref());
    for (at, (axis, declared)) in axes.iter_mut().zip(&image.axes).enumerate() {
        axis.kind = declared.kind.clone().or_else(|| axis.kind.take());
        axis.unit.clone_from(&declared.unit);
        axis.scale = scale.and_then(|scale| scale.get(at).copied());
    }
}

/// The nodes beside an array.
struct Beside<'a> {
    path: &'a NodePath,
    /// The path below the group that decides on the array's place.
    below: &'a str,
    neighbours: &'a Neighbours,
}

impl<'a> Beside<'a> {
    /// The array of this name.
    fn array(&self, name: &str) -> Option<&'a ArrayFacts> {
        self.neighbours.array(&self.path.parent()?.child(name).ok()?)
    }

    /// The coordinate of a dimension, which may be the array itself.
    fn coordinate(&self, array: &'a ArrayFacts, name: &str) -> Option<&'a ArrayFacts> {
        let own = (self.path.name() == name).then_some(array);
        own.or_else(|| self.array(name).filter(|found| is_along(found, name)))
    }
}

/// Whether an array can be the coordinate of the dimension of its name, which it need not name.
fn is_along(array: &ArrayFacts, name: &str) -> bool {
    matches!(array.names().as_slice(), [dimension] if dimension.as_deref().is_none_or(|known| known == name))
}

fn axes(array: &ArrayFacts, names: &[Option<String>], beside: &Beside<'_>) -> Vec<SummaryAxis> {
    let axis = |(name, &size): (&Option<String>, &u64)| {
        let coordinate = name.as_deref().and_then(|name| beside.coordinate(array, name));
        let attributes = coordinate.map(|coordinate| &coordinate.metadata.attributes);
        let by_name = || DimensionRole::of(name.as_deref()?).map(DimensionRole::as_axis_type);
        let by_coordinate = attributes.and_then(|attributes| cf::axis_of(name.as_deref()?, attributes));
        let kind = by_coordinate.map(cf::CfAxis::as_axis_type).or_else(by_name);
        SummaryAxis {
            name: name.as_deref().map(cut),
            kind: kind.map(str::to_owned),
            unit: attributes.and_then(|attributes| cf::attribute(attributes, "units")),
            size: Some(size),
            scale: None,
            ends: coordinate.and_then(|coordinate| coordinate.ends),
        }
    };
    names.iter().zip(&array.metadata.shape).map(axis).collect()
}

/// Where the elements of an array are on a map.
fn georeference(
    array: &ArrayFacts,
    names: &[Option<String>],
    above: Option<&Attributes>,
    beside: &Beside<'_>,
) -> Option<Georeference> {
    let attributes = &array.metadata.attributes;
    let inherited = above.and_then(|above| {
        let of_level = layout(above).into_iter().flatten().find(|level| level.asset == beside.below);
        let transform = of_level.and_then(|level| level.transform);
        let declared = Georeference::declared(above);
        match transform {
            Some(_) => Some(Georeference { transform, ..Georeference::default() }.or(declared)),
            None => declared,
        }
    });
    let declared = Georeference::declared(attributes);
    if declared.is_some() || (inherited.is_some() && array.metadata.shape.len() >= 2) {
        return Some(declared.unwrap_or_default().or(inherited));
    }
    let mappings = cf::grid_mappings(attributes);
    let mapped = mappings
        .iter()
        .find_map(|name| Georeference::of_grid_mapping(&beside.array(name)?.metadata.attributes));
    let geographic = || by_coordinates(|name| beside.coordinate(array, name), names);
    mapped.or_else(geographic)
}

/// The reference by coordinates in degrees, if two dimensions have such.
pub(super) fn by_coordinates<'a>(
    coordinate: impl Fn(&str) -> Option<&'a ArrayFacts>,
    names: &[Option<String>],
) -> Option<Georeference> {
    let along = |wanted: cf::CfAxis| {
        names.iter().flatten().find_map(|name| {
            let found = coordinate(name)?;
            let attributes = &found.metadata.attributes;
            let is_one = cf::is_geographic(name, attributes) && cf::axis_of(name, attributes) == Some(wanted);
            is_one.then_some(found)
        })
    };
    let (x, y) = (along(cf::CfAxis::X)?, along(cf::CfAxis::Y)?);
    let ranges = x.range().zip(y.range());
    Some(Georeference::geographic(ranges.map(|(x, y)| vec![x.0, y.0, x.1, y.1])))
}

/// The first and the last time of the first of these coordinates that has times, as text.
pub(super) fn times<'a>(mut coordinates: impl Iterator<Item = &'a ArrayFacts>) -> Option<[String; 2]> {
    coordinates.find_map(|coordinate| {
        let attributes = &coordinate.metadata.attributes;
        let (units, calendar) = (cf::attribute(attributes, "units")?, cf::attribute(attributes, "calendar"));
        let (first, last) = coordinate.ends?;
        let times = CfTimes::parse(&units, calendar.as_deref())?;
        Some([times.utc_text_of(first.min(last))?, times.utc_text_of(first.max(last))?])
    })
}

/// The rows and columns that a reference is about: as it declares, else those of the default plane.
fn plane(place: &Georeference, shape: &[u64], names: &[Option<String>]) -> Option<(usize, usize)> {
    let find = |name: &String| names.iter().position(|known| known.as_ref() == Some(name));
    if let Some([rows, columns]) = &place.dimensions {
        return find(rows).zip(find(columns));
    }
    let kept: Vec<usize> = (0..shape.len()).collect();
    let dimensions = Dimensions { shape, names, is_bytes: false, proposed: &[] };
    let DefaultPlane { rows, columns, .. } = dimensions.default_plane(&kept)?;
    Some((rows, columns))
}

fn bounds(place: &Georeference, array: &ArrayFacts, names: &[Option<String>]) -> Option<Vec<f64>> {
    let shape = &array.metadata.shape;
    // Without the dimensions of the transform, only a declared box is known.
    let Some((rows, columns)) = plane(place, shape, names) else { return place.bbox.clone() };
    place.bounds(*shape.get(rows)?, *shape.get(columns)?)
}

/// Gives the axes of rows and columns the scales of a transform without rotation.
fn scale_axes(axes: &mut [SummaryAxis], place: &Georeference) {
    let Some([width, 0.0, _, 0.0, height, _]) = place.transform else { return };
    let names: Vec<Option<String>> = axes.iter().map(|axis| axis.name.clone()).collect();
    let shape: Vec<u64> = axes.iter().map(|axis| axis.size.unwrap_or_default()).collect();
    let Some((rows, columns)) = plane(place, &shape, &names) else { return };
    for (axis, scale) in [(rows, height), (columns, width)] {
        if let Some(axis) = axes.get_mut(axis) {
            axis.scale = Some(scale);
        }
    }
}

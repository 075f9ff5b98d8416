//! [`FoundPlane`]: the plane that a selection of an array is, from north to south, and where it is on a map.

use std::sync::Arc;

use axum::http::request::Parts;

use super::limits::check_attributes;
use super::plane_crs::{AxisUnit, plane_crs};
use super::source_finder::SourceFinder;
use super::sources::{ExportSource, ExportSources};
use crate::array::OpenNode;
use crate::chunk::{AxisRange, Subset};
use crate::conventions::{DeclaredCrs, coordinate_axis};
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::labels::{DimensionLabels, RegularNumbers};
use crate::metadata::ArrayMetadata;
use crate::render::geotiff::PlanePlace;
use crate::services::coordinates::ReadCoordinate;
use crate::services::state::AppState;
use crate::store::Version;
use crate::units::counted;

/// A plane of an array, and where it is.
pub(super) struct FoundPlane {
    /// The coordinates, the grid mapping, and last the array with its rows from north to south and its columns from west to east.
    pub(super) sources: ExportSources,
    /// The rows and the columns.
    pub(super) size: [u64; 2],
    pub(super) place: PlanePlace,
    /// The versions of the labels that say where it is.
    pub(super) versions: Vec<Option<Version>>,
}

/// The labels along a dimension of a plane.
struct PlaneAxis {
    /// The place of the dimension in the array.
    at: usize,
    name: String,
    /// The attributes of the coordinate.
    metadata: Arc<ArrayMetadata>,
    labels: Arc<DimensionLabels>,
}

/// What the labels along a dimension are.
struct DescribedAxis {
    numbers: RegularNumbers,
    unit: AxisUnit,
}

impl FoundPlane {
    /// The plane that a selection of an array is.
    ///
    /// # Errors
    /// 400 if the selection is no plane, its dimensions have no regular coordinates along y and x, or a file cannot have its
    /// reference system; failures of reading.
    pub(super) async fn of_array(
        (state, head): (&AppState, &Parts),
        finder: &SourceFinder<'_>,
        node: Arc<OpenNode>,
        subset: Subset,
    ) -> Result<Self, Problem> {
        let kept: Vec<usize> =
            subset.axes().iter().enumerate().filter(|(_, axis)| axis.keep).map(|(at, _)| at).collect();
        let &[rows, columns] = kept.as_slice() else {
            let advice = if kept.len() > 2 {
                "select one index or label of every other dimension"
            } else {
                "a plane has two, rows and columns, that are selected by slices such as `:`"
            };
            return Err(invalid(format!(
                "`format=tiff` is one plane, and the selection has {}: {advice}",
                counted(kept.len(), "dimension")
            )));
        };
        let group = finder.group_of(&node).await?;
        let mut sources = ExportSources { group, ..finder.of_array(node, subset).await? };
        check_attributes(&sources)?;
        let mut versions = Vec::new();
        // One after the other: a request that waits for memory must hold none.
        let of_rows = axis((state, head), &sources, rows, &mut versions).await?;
        let of_columns = axis((state, head), &sources, columns, &mut versions).await?;
        let is_used = |source: &ExportSource| {
            // A grid mapping has one element.
            source.metadata().shape.iter().all(|&length| length == 1)
                || [&of_rows.name, &of_columns.name].contains(&&source.name)
        };
        let Some(array) = sources.sources.pop() else {
            return Err(Problem::from_class(ErrorClass::Internal));
        };
        sources.sources.retain(is_used);
        sources.sources.push(array);
        let bytes = sources.attribute_bytes();
        let describe = move || place(sources, &of_rows, &of_columns);
        let (sources, size, place) =
            state.engine.cpu.run_document(bytes, describe).await?.map_err(invalid)?;
        Ok(Self { sources, size, place, versions })
    }
}

fn invalid(detail: String) -> Problem {
    Problem::from_class(ErrorClass::InvalidRequest).detail(detail)
}

/// The labels along a dimension of the last array.
async fn axis(
    (state, head): (&AppState, &Parts),
    sources: &ExportSources,
    at: usize,
    versions: &mut Vec<Option<Version>>,
) -> Result<PlaneAxis, Problem> {
    let Some(array) = sources.sources.last() else { return Err(Problem::from_class(ErrorClass::Internal)) };
    let name = array.dimension_names.get(at).cloned().flatten();
    let of_name = |source: &&ExportSource| source.is_coordinate && Some(&source.name) == name.as_ref();
    let Some(coordinate) = sources.sources.iter().find(of_name) else {
        let name = name.unwrap_or_else(|| at.to_string());
        return Err(invalid(format!(
            "`format=tiff` has the place of its pixels, and the dimension `{name}` has no coordinate: there is no array of one \
             dimension `{name}` beside the array or above it; request `format=npy`, or a picture"
        )));
    };
    let name = coordinate.name.clone();
    let read = ReadCoordinate::of_array(state, head, &name, &coordinate.node, &coordinate.array).await?;
    versions.extend(read.versions);
    Ok(PlaneAxis { at, name, metadata: Arc::clone(coordinate.metadata()), labels: read.coordinate })
}

/// The arrays, of which the last has its rows from north to south and its columns from west to east; the rows and columns; and
/// where they are. The error says what would be right.
fn place(
    mut sources: ExportSources,
    of_rows: &PlaneAxis,
    of_columns: &PlaneAxis,
) -> Result<(ExportSources, [u64; 2], PlanePlace), String> {
    let ranges = sources.sources.last().map_or(Subset(Vec::new()), |array| array.subset.clone());
    let (y, x) = (of_rows.described("Y", &ranges)?, of_columns.described("X", &ranges)?);
    let declared = declared_crs(&sources, [&of_rows.name, &of_columns.name]);
    let crs = plane_crs(declared.as_ref(), [&y.unit, &x.unit])?;
    let (y, x) = (y.numbers, x.numbers);
    let size = [of_rows.at, of_columns.at].map(|at| ranges.axes().get(at).map_or(0, |range| range.count));
    if let Some(array) = sources.sources.last_mut() {
        if y.step > 0.0 {
            reverse(&mut array.subset, of_rows.at);
        }
        if x.step < 0.0 {
            reverse(&mut array.subset, of_columns.at);
        }
    }
    let (width, height) = (x.step.abs(), y.step.abs());
    let (west, north) = (x.low() - width / 2.0, y.high() + height / 2.0);
    Ok((sources, size, PlanePlace { west, north, width, height, crs }))
}

impl PlaneAxis {
    /// What the labels of selected positions are, which have to be along an axis.
    fn described(&self, along: &str, ranges: &Subset) -> Result<DescribedAxis, String> {
        let (name, attributes) = (&self.name, &self.metadata.attributes);
        if coordinate_axis(name, attributes) != Some(along) {
            return Err(format!(
                "the rows of `format=tiff` go along y, and its columns along x; `{name}` is not along {}, as far as its name and its \
                 attributes `axis`, `standard_name` and `units` say",
                along.to_lowercase()
            ));
        }
        let numbers = ranges.axes().get(self.at).and_then(|range| self.labels.regular(range));
        let Some(numbers) = numbers else {
            return Err(format!(
                "the pixels of `format=tiff` have one size, and the selected labels of `{name}` are not equally far apart, or there is \
                 none; request `format=nc`"
            ));
        };
        Ok(DescribedAxis { numbers, unit: AxisUnit::of_coordinate(name, attributes) })
    }
}

/// What is declared of the reference system of the last array, whose dimensions have these names.
fn declared_crs(sources: &ExportSources, dimensions: [&str; 2]) -> Option<DeclaredCrs> {
    let array = sources.sources.last()?;
    let mapping = |name: &str| {
        let found = sources.sources.iter().find(|source| source.name == name)?;
        Some(&found.metadata().attributes)
    };
    let group = sources.attributes();
    DeclaredCrs::of_variable(&array.metadata().attributes, dimensions, mapping, Some(&group))
}

fn reverse(subset: &mut Subset, at: usize) {
    if let Some(range) = subset.0.get_mut(at).filter(|range| range.count > 0) {
        let last = range
            .start
            .checked_add_signed(range.step.saturating_mul(i64::try_from(range.count - 1).unwrap_or(0)));
        *range = AxisRange { start: last.unwrap_or(range.start), step: -range.step, ..*range };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reversed_range_has_the_same_elements() {
        let range = |start, count, step| AxisRange { start, count, step, keep: true };
        for (one, other) in [
            (range(2, 3, 2), range(6, 3, -2)),
            (range(5, 1, 1), range(5, 1, -1)),
            (range(0, 0, 1), range(0, 0, 1)),
        ] {
            let mut subset = Subset(vec![one]);
            reverse(&mut subset, 0);
            assert_eq!(subset.0, [other]);
        }
    }
}

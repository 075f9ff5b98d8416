//! Variables without elements: which of them a NetCDF file can have.
//!
//! A length of 0 stands for the record dimension, of which a file has one, and which is the first of its variables. So of a group
//! a file has the variables that are empty along their first dimension alone, if that is the first empty dimension of the group;
//! other variables without elements are left out.

use super::sources::{ExportSource, ExportSources};
use crate::chunk::AxisRange;

/// A selected dimension: its name, its length and what is selected of it.
type SelectedDimension = (Option<String>, Option<u64>, AxisRange);

/// Leaves the variables out whose empty dimensions a file cannot have.
pub(super) fn keep_possible(sources: &mut ExportSources) {
    let record = sources.sources.iter().find_map(|source| match &empty(source)[..] {
        [(0, dimension)] => Some(dimension.clone()),
        _ => None,
    });
    sources.keep(|source| match &empty(source)[..] {
        [] => Ok(()),
        [(0, dimension)] if record.as_ref() == Some(dimension) => Ok(()),
        [.., (_, (name, ..))] => {
            Err(format!("no element along {}", name.as_deref().unwrap_or("one of its dimensions")))
        }
    });
}

/// The empty dimensions of a variable, with their places among those that are selected as ranges.
fn empty(source: &ExportSource) -> Vec<(usize, SelectedDimension)> {
    let ranges = source.subset.axes().iter().enumerate().filter(|(_, range)| range.keep);
    let dimensions = ranges.enumerate().filter(|(_, (_, range))| range.count == 0);
    let described = dimensions.map(|(place, (axis, range))| {
        let name = source.dimension_names.get(axis).cloned().flatten();
        (place, (name, source.metadata().shape.get(axis).copied(), *range))
    });
    described.collect()
}

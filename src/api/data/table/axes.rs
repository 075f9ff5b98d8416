//! [`TableAxes`]: which rows a table has, and which position along each dimension a row has.

use std::sync::Arc;

use crate::api::selection::ListedPositions;
use crate::chunk::{AxisPositions, AxisRange, Points, Subset};

/// The name of the column that counts points.
const POINTS: &str = "points";

/// A dimension as a column.
#[derive(Clone, Debug)]
pub(super) struct TableAxis {
    /// Its name, which no other dimension has.
    pub(super) name: String,
    /// Its place in the array; `None` for the points.
    pub(super) axis: Option<usize>,
    /// Its positions, one for each label of the column.
    pub(super) positions: AxisPositions,
    /// The rows in a row that have the same position.
    pub(super) repeat: u64,
}

/// The selected elements as rows.
#[derive(Clone, Debug)]
pub(super) struct TableAxes {
    /// The dimensions in the order of their columns.
    pub(super) axes: Vec<TableAxis>,
    /// The number of rows (saturated).
    pub(super) rows: u64,
    /// What is read of each variable.
    pub(super) selected: SelectedElements,
}

/// The elements of an array that are selected.
#[derive(Clone, Debug)]
pub(super) enum SelectedElements {
    Subset(Subset),
    Listed { positions: Vec<AxisPositions>, points: Option<Arc<Points>> },
}

impl TableAxes {
    /// The rows of a selection of an array whose dimensions have these names.
    pub(super) fn new(listed: ListedPositions, names: &[Option<String>]) -> Self {
        let ListedPositions { axes: positions, points } = listed;
        let along = |axis: usize| points.as_ref().and_then(|points| points.along(axis));
        // Behind the points come the other dimensions, in their order; the last changes from row to row.
        let mut repeats = vec![1_u64; positions.len()];
        let mut repeat = 1_u64;
        for (axis, one) in positions.iter().enumerate().rev() {
            if along(axis).is_none() {
                if let Some(slot) = repeats.get_mut(axis) {
                    *slot = repeat;
                }
                repeat = repeat.saturating_mul(one.count());
            }
        }
        let mut axes: Vec<TableAxis> = Vec::with_capacity(positions.len() + 1);
        let mut rows = repeat;
        if let Some(points) = &points {
            let count = points.len() as u64;
            rows = rows.saturating_mul(count);
            let positions = AxisPositions::Range(AxisRange::full(count));
            axes.push(TableAxis { name: POINTS.to_owned(), axis: None, positions, repeat });
        }
        for ((axis, one), &own) in positions.iter().enumerate().zip(&repeats) {
            let name = names.get(axis).cloned().flatten().unwrap_or_else(|| format!("dim_{axis}"));
            let name = unused(name, |name| axes.iter().any(|known| known.name == name));
            let (positions, repeat) = match along(axis) {
                Some(along) => (AxisPositions::of_elements(along.iter().copied()), repeat),
                None => (one.clone(), own),
            };
            axes.push(TableAxis { name, axis: Some(axis), positions, repeat });
        }
        let ranges = positions.iter().map(|positions| match positions {
            AxisPositions::Range(range) if points.is_none() => Some(*range),
            _ => None,
        });
        let selected = match ranges.collect::<Option<Vec<AxisRange>>>() {
            Some(ranges) => SelectedElements::Subset(Subset(ranges)),
            None => SelectedElements::Listed { positions, points },
        };
        Self { axes, rows, selected }
    }

    /// The selection, if it is a range along each dimension.
    pub(super) fn subset(&self) -> Option<&Subset> {
        match &self.selected {
            SelectedElements::Subset(subset) => Some(subset),
            SelectedElements::Listed { .. } => None,
        }
    }
}

/// A name that is not in use, made of one by underscores.
pub(super) fn unused(name: String, is_used: impl Fn(&str) -> bool) -> String {
    let mut unused = name;
    while is_used(&unused) {
        unused.push('_');
    }
    unused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, count: u64, keep: bool) -> AxisPositions {
        AxisPositions::Range(AxisRange { start, count, step: 1, keep })
    }

    fn described(axes: &TableAxes) -> Vec<(String, Vec<u64>, u64)> {
        axes.axes
            .iter()
            .map(|axis| (axis.name.clone(), axis.positions.iter().collect(), axis.repeat))
            .collect()
    }

    #[test]
    fn the_last_dimension_changes_from_row_to_row_and_a_dropped_one_never() {
        let names = ["time", "lat", "lon"].map(|name| Some(name.to_owned()));
        let listed = ListedPositions {
            axes: vec![range(4, 2, true), range(9, 1, false), range(0, 3, true)],
            points: None,
        };
        let axes = TableAxes::new(listed, &names);
        assert_eq!(axes.rows, 6);
        let expected = [("time", vec![4, 5], 3), ("lat", vec![9], 3), ("lon", vec![0, 1, 2], 1)];
        assert_eq!(described(&axes), expected.map(|(name, at, repeat)| (name.to_owned(), at, repeat)));
        assert!(matches!(axes.selected, SelectedElements::Subset(_)));
    }

    #[test]
    fn points_come_first_and_have_a_position_along_each_of_their_dimensions() {
        let names = [Some("x".to_owned()), None, Some("x".to_owned())];
        let points = Points::new(vec![(0, vec![7, 7, 1]), (2, vec![0, 5, 9])]).map(Arc::new);
        let axes = vec![range(0, 1, true), range(3, 2, true), range(0, 1, true)];
        let axes = TableAxes::new(ListedPositions { axes, points }, &names);
        assert_eq!(axes.rows, 6);
        let expected = [
            ("points", vec![0, 1, 2], 2),
            ("x", vec![7, 7, 1], 2),
            ("dim_1", vec![3, 4], 1),
            ("x_", vec![0, 5, 9], 2),
        ];
        assert_eq!(described(&axes), expected.map(|(name, at, repeat)| (name.to_owned(), at, repeat)));
        assert!(matches!(axes.selected, SelectedElements::Listed { .. }));
    }
}

//! [`PointSelection`]: elements that a request selects one by one, by positions or labels along some of the dimensions.

use std::sync::Arc;

use crate::chunk::{AxisPositions, IndexList, Points, SelectionError, dimension_called};
use crate::labels::DimensionQuery;

/// Points of a request, as far as they are resolved. Clones share the lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct PointSelection {
    /// The positions of the points along dimensions.
    pub(crate) isel: Vec<(String, Arc<IndexList>)>,
    /// The labels of the points along other dimensions, which have to be resolved first,
    pub(crate) sel: Vec<(String, DimensionQuery)>,
    /// and the positions that they were resolved to.
    found: Vec<(String, Arc<AxisPositions>)>,
}

impl PointSelection {
    /// The names of the dimensions along which the points have positions or labels.
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        let by_position = self.isel.iter().map(|(name, _)| name.as_str());
        let by_label = self.sel.iter().map(|(name, _)| name.as_str());
        by_position.chain(by_label).chain(self.found.iter().map(|(name, _)| name.as_str()))
    }

    /// The number of points times that of their dimensions.
    pub(crate) fn items(&self) -> usize {
        let by_position = self.isel.iter().map(|(_, list)| list.len());
        let by_label = self.sel.iter().map(|(_, query)| query.labels());
        // A range of positions is as many points.
        let found =
            self.found.iter().map(|(_, positions)| usize::try_from(positions.count()).unwrap_or(usize::MAX));
        by_position.chain(by_label).chain(found).fold(0, usize::saturating_add)
    }

    /// Puts positions in place of the labels along a dimension.
    pub(crate) fn resolve(&mut self, name: String, positions: AxisPositions) {
        self.sel.retain(|(known, _)| *known != name);
        self.found.push((name, Arc::new(positions)));
    }

    /// Checks that each point has a position or a label along each of the dimensions.
    ///
    /// # Errors
    /// [`SelectionError::PointsDiffer`] and [`SelectionError::NoPoints`].
    pub(crate) fn check_counts(&self) -> Result<(), SelectionError> {
        let by_position = self.isel.iter().map(|(name, list)| (name, list.len()));
        let by_label = self.sel.iter().map(|(name, query)| (name, query.labels()));
        let mut counts = by_position.chain(by_label);
        let (name, count) = counts.next().ok_or(SelectionError::NoPoints)?;
        match counts.find(|(_, other)| *other != count) {
            None => Ok(()),
            Some((other, other_count)) => Err(SelectionError::PointsDiffer {
                name: name.clone(),
                count,
                other: other.clone(),
                other_count,
            }),
        }
    }

    /// The points in an array of this shape whose dimensions have these names. Labels must have been resolved.
    ///
    /// # Errors
    /// [`SelectionError`] if the array has no such dimension or index.
    pub(crate) fn points(&self, shape: &[u64], names: &[Option<String>]) -> Result<Points, SelectionError> {
        let mut along = Vec::new();
        for (name, list) in &self.isel {
            let axis = dimension_called(name, names)?;
            let positions = list.resolve_each(axis, shape.get(axis).copied().unwrap_or_default())?;
            along.push((axis, positions.ok_or_else(|| SelectionError::PointIsSlice { name: name.clone() })?));
        }
        for (name, positions) in &self.found {
            along.push((dimension_called(name, names)?, positions.iter().collect()));
        }
        // Counts were checked, and names are different.
        Points::new(along).ok_or(SelectionError::NoPoints)
    }
}

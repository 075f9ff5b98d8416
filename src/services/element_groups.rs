//! [`ElementGroups`]: the groups of a selection's elements that have statistics of their own.

use crate::array::ArrayError;
use crate::chunk::{AxisRange, Subset};
use crate::reduce::statistics::Cursor;

/// The groups of a selection: elements with the same indices in some dimensions, or all elements.
#[derive(Clone, Debug)]
pub(crate) struct ElementGroups {
    subset: Subset,
    /// For each dimension, whether elements with different indices along it are of one group.
    is_reduced: Vec<bool>,
}

impl ElementGroups {
    /// Groups over the dimensions for which `is_reduced` holds.
    pub(crate) fn new(subset: Subset, is_reduced: Vec<bool>) -> Self {
        Self { subset, is_reduced }
    }

    /// The number of groups (saturated).
    pub(crate) fn count(&self) -> u64 {
        self.kept(&self.subset).map(|axis| axis.count).fold(1, u64::saturating_mul)
    }

    /// The number of groups that the elements of a piece of the selection are in (saturated).
    pub(crate) fn count_of(&self, piece: &Subset) -> u64 {
        self.kept(piece).map(|axis| axis.count).fold(1, u64::saturating_mul)
    }

    /// For each dimension of the array that the groups have and an integer index does not drop, its number and length.
    pub(crate) fn dimensions(&self) -> impl Iterator<Item = (usize, u64)> {
        let axes = self.subset.axes().iter().zip(&self.is_reduced).enumerate();
        axes.filter(|(_, (axis, is_reduced))| axis.keep && !**is_reduced)
            .map(|(dimension, (axis, _))| (dimension, axis.count))
    }

    /// The cells of the elements of a piece: among those of the piece alone.
    pub(crate) fn cursor_in(&self, piece: &Subset) -> Result<Cursor, ArrayError> {
        let lengths = lengths(piece.axes())?;
        let distances = Cursor::distances(&lengths, &self.is_reduced);
        Ok(Cursor::new(&pairs(&lengths, &distances), 0))
    }

    /// The cells of the elements of a piece: among those of the selection.
    pub(crate) fn cursor(&self, piece: &Subset) -> Result<Cursor, ArrayError> {
        let (distances, first) = self.place(piece)?;
        Ok(Cursor::new(&pairs(&lengths(piece.axes())?, &distances), first))
    }

    /// The cells of a piece among those of the selection, in C order.
    pub(crate) fn cells(&self, piece: &Subset) -> Result<Cursor, ArrayError> {
        let (distances, first) = self.place(piece)?;
        let lengths = lengths(piece.axes())?;
        let kept: Vec<(usize, usize)> = pairs(&lengths, &distances)
            .into_iter()
            .zip(&self.is_reduced)
            .filter(|(_, is_reduced)| !**is_reduced)
            .map(|(pair, _)| pair)
            .collect();
        Ok(Cursor::new(&kept, first))
    }

    /// For cache keys: which dimensions are of one group.
    pub(crate) fn is_reduced(&self) -> &[bool] {
        &self.is_reduced
    }

    /// The distances of the selection's cells, and the first cell of a piece.
    fn place(&self, piece: &Subset) -> Result<(Vec<usize>, usize), ArrayError> {
        let distances = Cursor::distances(&lengths(self.subset.axes())?, &self.is_reduced);
        let mut first = 0;
        for ((part, whole), distance) in piece.axes().iter().zip(self.subset.axes()).zip(&distances) {
            let place = part.start.abs_diff(whole.start) / whole.step.unsigned_abs().max(1);
            if *distance > 0 {
                first += usize::try_from(place).map_err(|_too_far| ArrayError::Geometry)? * distance;
            }
        }
        Ok((distances, first))
    }

    fn kept<'s>(&'s self, piece: &'s Subset) -> impl Iterator<Item = &'s AxisRange> {
        piece
            .axes()
            .iter()
            .zip(&self.is_reduced)
            .filter(|(_, is_reduced)| !**is_reduced)
            .map(|(axis, _)| axis)
    }
}

fn pairs(lengths: &[usize], distances: &[usize]) -> Vec<(usize, usize)> {
    lengths.iter().copied().zip(distances.iter().copied()).collect()
}

/// The lengths of a box. That of a reduced dimension may be too long for memory, but not for this.
fn lengths(axes: &[AxisRange]) -> Result<Vec<usize>, ArrayError> {
    let lengths = axes.iter().map(|axis| usize::try_from(axis.count));
    lengths.collect::<Result<_, _>>().map_err(|_too_long| ArrayError::Geometry)
}

//! [`Plane`]: the elements of a picture, in rows from the top and columns from the left.

use std::borrow::Cow;

use bytes::Bytes;

/// A two-dimensional array of elements in canonical form. Rows and columns may be in any order in memory.
#[derive(Clone, Debug)]
pub struct Plane {
    items: Bytes,
    element_bytes: usize,
    width: usize,
    height: usize,
    /// The first row of all that are in memory, and the number of these.
    part: (usize, usize),
    /// Whether neighbours in memory are neighbours in a column.
    is_transposed: bool,
    flips_rows: bool,
    flips_columns: bool,
}

impl Plane {
    /// A plane of elements in C order; `None` if their number differs from the shape.
    #[must_use]
    pub fn new(items: Bytes, element_bytes: usize, width: usize, height: usize) -> Option<Self> {
        let bytes = width.checked_mul(height)?.checked_mul(element_bytes)?;
        (element_bytes > 0 && items.len() == bytes).then_some(Self {
            items,
            element_bytes,
            width,
            height,
            part: (0, height),
            is_transposed: false,
            flips_rows: false,
            flips_columns: false,
        })
    }

    /// Columns as rows and rows as columns, for a plane that was neither transposed nor flipped before.
    #[must_use]
    pub fn transposed(self) -> Self {
        let (width, height) = (self.height, self.width);
        Self { width, height, part: (0, height), is_transposed: !self.is_transposed, ..self }
    }

    /// Some of its rows, which share the memory of all; those that it does not have are left out.
    #[must_use]
    pub fn rows(&self, first: usize, count: usize) -> Self {
        let first = first.min(self.height);
        let (above, all) = self.part;
        Self { height: count.min(self.height - first), part: (above + first, all), ..self.clone() }
    }

    /// The same with its rows in reverse, or its columns.
    #[must_use]
    pub fn flipped(self, rows: bool, columns: bool) -> Self {
        Self { flips_rows: self.flips_rows != rows, flips_columns: self.flips_columns != columns, ..self }
    }

    /// Columns.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height
    }

    /// All elements in memory, in its order.
    pub(super) fn items(&self) -> &Bytes {
        &self.items
    }

    /// The elements of a row, one after another.
    pub(super) fn row(&self, row: usize) -> Cow<'_, [u8]> {
        let (above, all) = self.part;
        let row = if self.flips_rows { all.saturating_sub(above + row + 1) } else { above + row };
        let item = self.element_bytes;
        if !self.is_transposed && !self.flips_columns {
            let start = row * self.width * item;
            return Cow::Borrowed(self.items.get(start..start + self.width * item).unwrap_or_default());
        }
        let mut elements = Vec::with_capacity(self.width * item);
        for column in 0..self.width {
            let column = if self.flips_columns { self.width - 1 - column } else { column };
            let place = if self.is_transposed { column * all + row } else { row * self.width + column };
            elements.extend_from_slice(self.items.get(place * item..(place + 1) * item).unwrap_or_default());
        }
        Cow::Owned(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(plane: &Plane) -> Vec<Vec<u8>> {
        (0..plane.height()).map(|row| plane.row(row).into_owned()).collect()
    }

    #[test]
    fn a_plane_can_be_transposed_and_flipped() {
        let plane = Plane::new(Bytes::from_static(&[1, 2, 3, 4, 5, 6]), 1, 3, 2).unwrap();
        assert_eq!(rows(&plane), [[1, 2, 3], [4, 5, 6]]);
        assert_eq!(rows(&plane.clone().flipped(true, false)), [[4, 5, 6], [1, 2, 3]]);
        assert_eq!(rows(&plane.clone().flipped(false, true)), [[3, 2, 1], [6, 5, 4]]);
        let tall = plane.clone().transposed();
        assert_eq!(rows(&tall), [[1, 4], [2, 5], [3, 6]]);
        assert_eq!(rows(&tall.flipped(true, true)), [[6, 3], [5, 2], [4, 1]]);
        assert!(Plane::new(Bytes::from_static(&[1, 2, 3]), 2, 1, 1).is_none());
        for turned in [
            plane.clone(),
            plane.clone().flipped(true, true),
            plane.clone().transposed().flipped(true, false),
        ] {
            let height = turned.height();
            for first in 0..=height {
                let part = turned.rows(first, 1).rows(0, 9);
                assert_eq!(rows(&part), rows(&turned)[first..height.min(first + 1)]);
            }
            assert_eq!(rows(&turned.rows(1, 9)), rows(&turned)[1..]);
        }
        let pairs = Plane::new(Bytes::from_static(&[1, 2, 3, 4, 5, 6, 7, 8]), 2, 2, 2).unwrap();
        assert_eq!(rows(&pairs.transposed()), [[1, 2, 5, 6], [3, 4, 7, 8]]);
    }
}

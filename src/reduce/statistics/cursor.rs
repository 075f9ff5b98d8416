//! [`Cursor`]: which cell each element of a box belongs to.

/// Goes through the elements of a box in C order, and gives the cell of each.
#[derive(Clone, Debug)]
pub struct Cursor {
    /// For each dimension but the innermost its length, the distance of its cells, and where it is.
    outer: Vec<(usize, usize, usize)>,
    /// The first cell of the row.
    row: usize,
    /// The length of a row, and the distance of its cells.
    inner: (usize, usize),
    cell: usize,
    /// Elements that are left in the row.
    left: usize,
}

impl Cursor {
    /// A cursor for a box. Each dimension has a length and the distance between the cells of its indices, which is 0 where all of
    /// them have the same. `first` is the cell of the first element.
    #[must_use]
    pub fn new(dimensions: &[(usize, usize)], first: usize) -> Self {
        // Neighbours that make one row are one dimension.
        let mut merged: Vec<(usize, usize)> = Vec::with_capacity(dimensions.len());
        for &(length, distance) in dimensions.iter().filter(|(length, _)| *length != 1) {
            match merged.last_mut() {
                Some(last) if last.1 == distance * length => *last = (last.0 * length, distance),
                _ => merged.push((length, distance)),
            }
        }
        let inner = merged.pop().unwrap_or((1, 0));
        let outer = merged.into_iter().map(|(length, distance)| (length, distance, 0)).collect();
        Self { outer, row: first, inner, cell: first, left: inner.0 }
    }

    /// The strides of the cells of a box in C order, where some dimensions have one cell only.
    #[must_use]
    pub fn distances(lengths: &[usize], is_reduced: &[bool]) -> Vec<usize> {
        let mut distance = 1;
        let mut distances: Vec<usize> = lengths
            .iter()
            .zip(is_reduced)
            .rev()
            .map(|(&length, &is_reduced)| {
                let this = if is_reduced { 0 } else { distance };
                distance *= if is_reduced { 1 } else { length };
                this
            })
            .collect();
        distances.reverse();
        distances
    }

    /// The cell of the next element.
    #[inline]
    pub(super) fn next(&mut self) -> usize {
        if self.left == 0 {
            self.next_row();
        }
        let cell = self.cell;
        self.cell += self.inner.1;
        self.left -= 1;
        cell
    }

    /// Goes to the next row; after the last one to the first.
    fn next_row(&mut self) {
        for (length, distance, at) in self.outer.iter_mut().rev() {
            *at += 1;
            if *at < *length {
                self.row += *distance;
                break;
            }
            self.row -= *distance * (*length - 1);
            *at = 0;
        }
        self.cell = self.row;
        self.left = self.inner.0.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(lengths: &[usize], is_reduced: &[bool], first: usize) -> Vec<usize> {
        let distances = Cursor::distances(lengths, is_reduced);
        let dimensions: Vec<_> = lengths.iter().copied().zip(distances).collect();
        let mut cursor = Cursor::new(&dimensions, first);
        (0..lengths.iter().product()).map(|_| cursor.next()).collect()
    }

    #[test]
    fn each_element_belongs_to_the_cell_of_its_kept_indices() {
        for lengths in [[2, 3, 4], [1, 3, 4], [2, 1, 4], [2, 3, 1], [1, 1, 1], [3, 1, 1]] {
            for mask in 0..8 {
                let is_reduced = [mask & 1 != 0, mask & 2 != 0, mask & 4 != 0];
                let mut expected = Vec::new();
                for one in 0..lengths[0] {
                    for two in 0..lengths[1] {
                        for three in 0..lengths[2] {
                            let mut cell = 0;
                            for (dim, at) in [one, two, three].into_iter().enumerate() {
                                if !is_reduced[dim] {
                                    cell = cell * lengths[dim] + at;
                                }
                            }
                            expected.push(7 + cell);
                        }
                    }
                }
                assert_eq!(cells(&lengths, &is_reduced, 7), expected, "{lengths:?} {is_reduced:?}");
            }
        }
        assert_eq!(cells(&[], &[], 3), [3]);
    }
}

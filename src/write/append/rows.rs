//! [`Append`]: elements for the end of an array, and their place in it once they are [`Appended`].

use crate::array::OpenNode;
use crate::chunk::{AxisRange, Elements, Subset};
use crate::key::NodePath;
use crate::write::WriteError;
use crate::write::lease::{AppendKey, RecordedAppend};
use crate::write::nodes::ArrayDocument;

/// Elements for the end of an array along a dimension: as long as it is along each other one.
#[derive(Clone, Debug)]
pub struct Append {
    /// The dimension.
    pub axis: usize,
    /// The shape of the elements.
    pub shape: Vec<u64>,
    /// The elements, in C order and canonical form.
    pub elements: Elements,
    /// The length that the array must have before.
    pub at: Option<u64>,
    /// What the client calls it.
    pub key: Option<AppendKey>,
}

/// Where elements were appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The first index along the dimension.
    pub start: u64,
    /// The index behind the last.
    pub stop: u64,
    /// The shape of the array with them.
    pub shape: Vec<u64>,
}

impl Append {
    /// How many indices it appends.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.shape.get(self.axis).copied().unwrap_or(0)
    }

    /// Whether it is as long as an array of this shape along all other dimensions.
    pub(super) fn fits(&self, shape: &[u64]) -> bool {
        let mut lengths = self.shape.iter().zip(shape).enumerate();
        self.shape.len() == shape.len()
            && lengths.all(|(axis, (own, other))| axis == self.axis || own == other)
    }
}

impl From<RecordedAppend> for Appended {
    fn from(append: RecordedAppend) -> Self {
        let RecordedAppend { start, stop, shape, .. } = append;
        Self { start, stop, shape }
    }
}

/// Checks that elements which were made for an open array are of the one in a document.
///
/// # Errors
/// [`WriteError::Replaced`] if that was created since.
pub(super) fn check_array(
    path: &NodePath,
    opened: &OpenNode,
    document: &ArrayDocument,
) -> Result<(), WriteError> {
    let is_same = opened.array().is_ok_and(|array| array.metadata().is_stored_as(&document.metadata));
    if is_same { Ok(()) } else { Err(WriteError::Replaced { path: path.clone() }) }
}

/// The part of an array of this shape from `start` on along a dimension.
pub(super) fn end_of(shape: &[u64], axis: usize, start: u64) -> Subset {
    let mut ranges: Vec<AxisRange> = shape.iter().map(|&length| AxisRange::full(length)).collect();
    if let Some(range) = ranges.get_mut(axis) {
        *range = AxisRange { start, count: range.count.saturating_sub(start), ..*range };
    }
    Subset(ranges)
}

/// The elements of several appends as one, one behind the other along the dimension. They are of a fixed size, in bytes.
pub(super) fn joined(appends: &[&Append], item: usize) -> Elements {
    let [first, ..] = appends else { return Elements::default() };
    if appends.len() == 1 {
        return first.elements.clone();
    }
    let product = |lengths: &[u64]| {
        lengths.iter().fold(1_usize, |product, &length| {
            product.saturating_mul(usize::try_from(length).unwrap_or(usize::MAX))
        })
    };
    let (outer, inner) = first.shape.split_at(first.axis.min(first.shape.len()));
    let outer = product(outer);
    let inner = product(inner.get(1..).unwrap_or_default()).saturating_mul(item);
    let total = appends.iter().map(|append| append.elements.items().len()).sum();
    let mut items = Vec::with_capacity(total);
    for place in 0..outer {
        for append in appends {
            let piece = product(&[append.length()]).saturating_mul(inner);
            let start = place.saturating_mul(piece);
            items.extend_from_slice(
                append.elements.items().get(start..start.saturating_add(piece)).unwrap_or_default(),
            );
        }
    }
    Elements::fixed(items.into())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn append(axis: usize, shape: [u64; 2], items: &'static [u8]) -> Append {
        let elements = Elements::fixed(Bytes::from_static(items));
        Append { axis, shape: shape.to_vec(), elements, at: None, key: None }
    }

    #[test]
    fn appends_are_joined_along_their_dimension() {
        let rows = [append(0, [1, 2], b"ab"), append(0, [2, 2], b"cdef")];
        assert_eq!(joined(&rows.each_ref(), 1).items().as_ref(), b"abcdef");
        let columns = [append(1, [2, 1], b"ab"), append(1, [2, 2], b"cdef")];
        assert_eq!(joined(&columns.each_ref(), 1).items().as_ref(), b"acdbef");
    }
}

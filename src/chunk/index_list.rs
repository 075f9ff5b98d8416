//! [`IndexList`]: a list of indexes and slices along one dimension, as it is requested.
//!
//! ```text
//! list := item ("," item)+ | "[" [item ("," item)*] "]"    item := int | slice
//! ```
//! The elements of each item follow those of the item before. Negative numbers count from the end, as in a [`Selection`](super::Selection).

use super::selection::{DimSelection, SelectionError};
use super::{AxisPositions, AxisRange};

/// The most items of a list.
pub const MAX_LIST_ITEMS: usize = 100_000;

/// A list of indexes and slices, not yet resolved against a length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexList(Vec<DimSelection>);

impl IndexList {
    /// Parses a list. `None` for a text that is a single index or slice, or `...`.
    ///
    /// # Errors
    /// [`SelectionError`] with the item that is wrong.
    pub fn parse(text: &str) -> Result<Option<Self>, SelectionError> {
        let trimmed = text.trim();
        let inner = trimmed.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let listed = inner.unwrap_or(trimmed);
        let listed = listed.trim_end().strip_suffix(',').unwrap_or(listed);
        if !listed.contains(',') {
            return Ok(None);
        }
        let count = listed.split(',').count();
        if count > MAX_LIST_ITEMS {
            return Err(SelectionError::ListTooLong { count, limit: MAX_LIST_ITEMS });
        }
        let mut list = Self(Vec::with_capacity(count));
        for part in listed.split(',') {
            list.push(part.trim())?;
        }
        Ok(Some(list))
    }

    /// Adds an index or a slice, as text, at the end.
    ///
    /// # Errors
    /// [`SelectionError`] if it is neither, or the list has [`MAX_LIST_ITEMS`].
    pub fn push(&mut self, part: &str) -> Result<(), SelectionError> {
        let position = self.0.len();
        match DimSelection::parse(part) {
            Some(DimSelection::Slice { step: 0, .. }) => Err(SelectionError::ZeroStep { position }),
            Some(item @ (DimSelection::Index(_) | DimSelection::Slice { .. })) => self.push_item(item),
            Some(DimSelection::Ellipsis) | None => {
                Err(SelectionError::ListItem { position, part: part.chars().take(40).collect() })
            }
        }
    }

    /// Adds an index at the end.
    ///
    /// # Errors
    /// [`SelectionError::ListTooLong`].
    pub fn push_index(&mut self, index: i64) -> Result<(), SelectionError> {
        self.push_item(DimSelection::Index(index))
    }

    fn push_item(&mut self, item: DimSelection) -> Result<(), SelectionError> {
        if self.0.len() == MAX_LIST_ITEMS {
            return Err(SelectionError::ListTooLong { count: MAX_LIST_ITEMS + 1, limit: MAX_LIST_ITEMS });
        }
        self.0.push(item);
        Ok(())
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one element of each item along an axis of this length; `None` if an item is a slice.
    ///
    /// # Errors
    /// [`SelectionError::OutOfRange`].
    pub fn resolve_each(&self, axis: usize, length: u64) -> Result<Option<Vec<u64>>, SelectionError> {
        let one = |item: &DimSelection| {
            let range = item.resolve(axis, length)?;
            Ok(matches!(item, DimSelection::Index(_)).then_some(range.start))
        };
        self.0.iter().map(one).collect()
    }

    /// The elements of the list along an axis of this length.
    ///
    /// # Errors
    /// [`SelectionError::OutOfRange`].
    pub fn resolve(&self, axis: usize, length: u64) -> Result<AxisPositions, SelectionError> {
        let ranges: Vec<AxisRange> =
            self.0.iter().map(|item| item.resolve(axis, length)).collect::<Result<_, _>>()?;
        if ranges.iter().all(|range| range.count == 1) {
            return Ok(AxisPositions::of_elements(ranges.iter().map(|range| range.start)));
        }
        let kept = ranges.into_iter().filter(|range| range.count > 0);
        Ok(AxisPositions::List(kept.map(|range| AxisRange { keep: true, ..range }).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(text: &str, length: u64) -> Result<Option<Vec<u64>>, SelectionError> {
        let Some(list) = IndexList::parse(text)? else { return Ok(None) };
        let positions = list.resolve(0, length)?;
        let of_range = |range: &AxisRange| (0..range.count).map(|k| range.at(k)).collect::<Vec<_>>();
        Ok(Some(positions.ranges().iter().flat_map(of_range).collect()))
    }

    #[test]
    fn a_list_selects_its_items_in_order() {
        for (text, expected) in [
            ("1,5,9", vec![1, 5, 9]),
            ("[3, -1, 3]", vec![3, 9, 3]),
            ("8:,0:2", vec![8, 9, 0, 1]),
            ("5:5,3,::-4", vec![3, 9, 5, 1]),
        ] {
            assert_eq!(elements(text, 10), Ok(Some(expected)), "{text}");
        }
        for text in ["3", "1:4", "[3]", "3,", "..."] {
            assert_eq!(elements(text, 10), Ok(None), "{text}");
        }
    }

    #[test]
    fn an_item_that_is_wrong_is_named() {
        use SelectionError as E;
        assert_eq!(elements("1,10", 10), Err(E::OutOfRange { axis: 0, length: 10, index: 10 }));
        assert_eq!(elements("1,x", 10), Err(E::ListItem { position: 1, part: "x".to_owned() }));
        assert_eq!(elements("1,::0", 10), Err(E::ZeroStep { position: 1 }));
        let long = "1,".repeat(MAX_LIST_ITEMS + 1);
        let error = E::ListTooLong { count: MAX_LIST_ITEMS + 1, limit: MAX_LIST_ITEMS };
        assert_eq!(elements(&long, 10), Err(error));
    }
}

//! Category codes of a vertex attribute.

use crate::vectors::Column;

/// The index of the category of each code, for codes of any integer type; `None` for a code without a category.
pub(super) fn category_indices(column: &Column, values: &[u8]) -> Vec<Option<usize>> {
    let known = column.categories.as_ref().map_or(0, |categories| categories.len());
    let numbers = crate::vectors::payload::decode_integers(values, &column.kind);
    numbers.iter().map(|&code| usize::try_from(code).ok().filter(|&code| code < known)).collect()
}

//! Codes of categories in a vertex attribute, and the categories they stand for.

use crate::vectors::Column;

/// The category that each code stands for, of codes of any integer type; `None` for a code that stands for none.
pub(super) fn codes(column: &Column, values: &[u8]) -> Vec<Option<usize>> {
    let known = column.categories.as_ref().map_or(0, |categories| categories.len());
    let numbers = crate::vectors::payload::integers(values, &column.kind);
    numbers.iter().map(|&code| usize::try_from(code).ok().filter(|&code| code < known)).collect()
}

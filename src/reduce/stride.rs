//! `stride`: the first element of each window, as it is, for elements of any fixed size.

use super::windows::Windows;

/// Reduces each window of a box of elements of this size to its first one.
pub(super) fn reduce(items: &[u8], windows: &Windows, element_bytes: usize) -> Vec<u8> {
    let mut reduced = Vec::with_capacity(windows.results() * element_bytes);
    let (length, factor, inner) = windows.row();
    let inner_bytes = inner * element_bytes;
    windows.for_each_result_row(|rows| {
        let mut first = true;
        rows.for_each(|start| {
            if std::mem::take(&mut first) {
                let row =
                    items.get(start * element_bytes..(start + length) * element_bytes).unwrap_or_default();
                for window in row.chunks((factor * inner_bytes).max(1)) {
                    reduced.extend_from_slice(window.get(..inner_bytes).unwrap_or_default());
                }
            }
        });
    });
    reduced
}

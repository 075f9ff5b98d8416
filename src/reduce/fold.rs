//! [`Fold`]: a method as a state that takes one element after the other, and the loop over all windows of a box.

use super::number::Real;
use super::windows::{SourceRows, Windows};

/// A method that needs a state of constant size.
pub(super) trait Fold<T>: Send + Sync {
    /// What is kept of the elements so far.
    type State: Copy + Send;

    /// The state before the first element.
    fn start(&self) -> Self::State;

    /// The state after one more element.
    fn add(&self, state: Self::State, number: T) -> Self::State;

    /// The result of a window with this many elements; `None` if the fold has none, because it saw a NaN.
    fn finish(&self, state: Self::State, elements: u64) -> Option<T>;
}

/// Reduces each window of a box by `fast`, and those that it has no result for by `careful`.
pub(super) fn reduce<T: Real>(
    items: &[u8],
    windows: &Windows,
    fast: &impl Fold<T>,
    careful: &impl Fold<T>,
) -> Vec<u8> {
    let raw = T::raw(items);
    let mut states = vec![fast.start(); windows.result_row()];
    let mut reduced = Vec::with_capacity(windows.results() * size_of::<T>());
    let (length, factor, inner) = windows.row();
    windows.for_each_result_row(|rows| {
        states.fill(fast.start());
        rows.for_each(|start| {
            let row = raw.get(start..start + length).unwrap_or_default();
            match (inner, factor) {
                (1, 2) => add_windows::<T, _, 2>(fast, row, &mut states),
                (1, 4) => add_windows::<T, _, 4>(fast, row, &mut states),
                (1, 8) => add_windows::<T, _, 8>(fast, row, &mut states),
                _ => add_row(fast, row, factor, inner, &mut states),
            }
        });
        finish_row(windows, rows, &states, raw, (fast, careful), &mut reduced);
    });
    reduced
}

/// Adds a row to the states of its windows, of which each has this many elements side by side.
fn add_windows<T: Real, F: Fold<T>, const FACTOR: usize>(fold: &F, row: &[T::Raw], states: &mut [F::State]) {
    let (windows, rest) = row.as_chunks::<FACTOR>();
    for (state, window) in states.iter_mut().zip(windows) {
        for &raw in window {
            *state = fold.add(*state, T::get(raw));
        }
    }
    if let Some(state) = states.get_mut(windows.len()) {
        for &raw in rest {
            *state = fold.add(*state, T::get(raw));
        }
    }
}

/// Adds a row to the states of its windows.
fn add_row<T: Real, F: Fold<T>>(
    fold: &F,
    row: &[T::Raw],
    factor: usize,
    inner: usize,
    states: &mut [F::State],
) {
    let inner = inner.max(1);
    if inner == 1 {
        for (state, window) in states.iter_mut().zip(row.chunks(factor)) {
            *state = window.iter().fold(*state, |state, &raw| fold.add(state, T::get(raw)));
        }
        return;
    }
    for (states, window) in states.chunks_mut(inner).zip(row.chunks(factor * inner)) {
        for part in window.chunks(inner) {
            for (state, &raw) in states.iter_mut().zip(part) {
                *state = fold.add(*state, T::get(raw));
            }
        }
    }
}

/// Appends the results of a row.
fn finish_row<T: Real, F: Fold<T>>(
    windows: &Windows,
    rows: &SourceRows,
    states: &[F::State],
    raw: &[T::Raw],
    (fast, careful): (&F, &impl Fold<T>),
    reduced: &mut Vec<u8>,
) {
    let (_, factor, inner) = windows.row();
    let count = rows.count();
    // Windows that are cut off at the end have fewer elements.
    let is_cut = windows.width(states.len().saturating_sub(1)) < factor;
    let (whole, cut) = states.split_at(states.len() - if is_cut { inner } else { 0 });
    let mut place = 0;
    for (states, width) in [(whole, factor), (cut, windows.width(whole.len()))] {
        let elements = (count * width) as u64;
        for &state in states {
            let result = fast.finish(state, elements).unwrap_or_else(|| {
                let state = again(windows, rows, place, raw, careful);
                careful.finish(state, elements).unwrap_or_else(T::undefined)
            });
            result.put(reduced);
            place += 1;
        }
    }
}

/// The state of a fold after the elements of the window at one place of a result row.
fn again<T: Real, F: Fold<T>>(
    windows: &Windows,
    rows: &SourceRows,
    place: usize,
    raw: &[T::Raw],
    fold: &F,
) -> F::State {
    let mut state = fold.start();
    for_each_of_window(windows, rows, place, |at| {
        if let Some(&raw) = raw.get(at) {
            state = fold.add(state, T::get(raw));
        }
    });
    state
}

/// Calls `visit` with the place of each element of the window at one place of a result row, in C order.
pub(super) fn for_each_of_window(
    windows: &Windows,
    rows: &SourceRows,
    place: usize,
    mut visit: impl FnMut(usize),
) {
    let (_, factor, inner) = windows.row();
    let (window, within) = (place / inner.max(1), place % inner.max(1));
    let width = windows.width(place);
    rows.for_each(|start| {
        for index in 0..width {
            visit(start + (window * factor + index) * inner + within);
        }
    });
}

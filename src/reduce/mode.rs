//! `mode`: the most frequent element, and of several the smallest. 0 and -0 are one value, 0.

use std::cmp::Ordering;

use super::fold::for_each_of_window;
use super::number::Real;
use super::present::PresentOnly;
use super::windows::Windows;

/// Reduces each window of a box to its most frequent element.
pub(super) fn reduce<T: Real>(items: &[u8], windows: &Windows, present: &PresentOnly<T>) -> Vec<u8> {
    let raw = T::raw(items);
    let mut reduced = Vec::with_capacity(windows.results() * size_of::<T>());
    let mut numbers: Vec<T> = Vec::with_capacity(windows.largest());
    windows.for_each_result_row(|rows| {
        for place in 0..windows.result_row() {
            numbers.clear();
            for_each_of_window(windows, rows, place, |at| {
                let number = raw.get(at).map(|&raw| T::get(raw));
                numbers.extend(number.filter(|number| present.is_present(*number)));
            });
            most_frequent(&mut numbers).unwrap_or(present.empty()).put(&mut reduced);
        }
    });
    reduced
}

/// The most frequent of these numbers, of several the smallest; `None` of none. None of them is NaN.
fn most_frequent<T: Real>(numbers: &mut [T]) -> Option<T> {
    let first = *numbers.first()?;
    // Most windows of labels have one label.
    if numbers.iter().all(|number| *number == first) {
        return Some(first.unsigned_zero());
    }
    numbers.sort_unstable_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
    let mut best = (first, 0);
    for run in numbers.chunk_by(|one, other| one == other) {
        if let [number, ..] = run
            && run.len() > best.1
        {
            best = (*number, run.len());
        }
    }
    Some(best.0.unsigned_zero())
}

//! [`Distribution`]: how often each value occurs, for percentiles; and [`CellDistributions`], the same of elements in groups.

use std::collections::BTreeMap;

use super::cursor::Cursor;
use crate::reduce::cf::{CfValues, Visitor, double};

/// The most values that are kept one by one, unless there are few different ones.
pub const MAX_VALUES: u64 = 4 << 20;

/// How often each value occurs. Call [`Distribution::sort`] before [`Distribution::percentile`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// By the place of the value in the order of float64, where there are few different values.
    counts: BTreeMap<u64, u64>,
    /// The places of the values, else.
    places: Vec<u64>,
    total: u64,
}

impl Distribution {
    /// The distribution of elements in canonical form.
    #[must_use]
    pub fn of(values: &CfValues, items: &[u8]) -> Self {
        let mut collector = Collector(Vec::with_capacity(items.len() / values.element_bytes()));
        values.visit(items, &mut collector);
        let mut places = collector.0;
        let total = places.len() as u64;
        if !values.are_few() {
            return Self { places, total, ..Self::default() };
        }
        places.sort_unstable();
        let runs = places.chunk_by(u64::eq);
        let counts = runs.filter_map(|run| run.first().map(|&place| (place, run.len() as u64))).collect();
        Self { counts, total, ..Self::default() }
    }

    /// The distribution of a number of equal elements.
    #[must_use]
    pub fn of_equal(values: &CfValues, item: &[u8], times: u64) -> Self {
        let one = Self::of(values, item);
        let counted = one.counts.into_iter().map(|(place, count)| (place, count * times));
        let counts = counted.chain(one.places.into_iter().map(|place| (place, times))).collect();
        Self { counts, places: Vec::new(), total: one.total * times }
    }

    /// Adds the values of another one.
    pub fn merge(&mut self, other: Self) {
        self.total += other.total;
        for (place, count) in other.counts {
            *self.counts.entry(place).or_default() += count;
        }
        self.places.extend(other.places);
    }

    /// Puts the values in order.
    pub fn sort(&mut self) {
        self.places.sort_unstable();
    }

    /// A percentile between 0 and 100, interpolated as numpy does by default; `None` without values.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        interpolated(self.total, percent, |rank| self.value_at(rank))
    }

    /// The value with this rank. Both lists are sorted: the rank is divided between them.
    fn value_at(&self, rank: u64) -> Option<f64> {
        let mut before = 0;
        for (&at, &count) in &self.counts {
            let smaller = self.places.partition_point(|&place| place < at) as u64;
            if before + smaller > rank {
                break;
            }
            if before + smaller + count > rank {
                return Some(value(at));
            }
            before += count;
        }
        let place = usize::try_from(rank.checked_sub(before)?).ok()?;
        self.places.get(place).map(|&place| value(place))
    }
}

/// The values of each cell. Call [`CellDistributions::sort`] before [`CellDistributions::percentile`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellDistributions {
    /// The cell and the place of each value.
    placed: Vec<(u32, u64)>,
}

impl CellDistributions {
    /// Adds elements in canonical form, each to the cell that the cursor gives.
    pub fn add(&mut self, values: &CfValues, items: &[u8], cursor: &mut Cursor) {
        self.placed.reserve(items.len() / values.element_bytes().max(1));
        values.visit(items, &mut CellCollector { placed: &mut self.placed, cursor });
    }

    /// Adds a number of equal elements, each to the cell that the cursor gives.
    pub fn add_equal(&mut self, values: &CfValues, item: &[u8], elements: u64, cursor: &mut Cursor) {
        for _ in 0..elements {
            values.visit(item, &mut CellCollector { placed: &mut self.placed, cursor });
        }
    }

    /// Puts the values in order.
    pub fn sort(&mut self) {
        self.placed.sort_unstable();
    }

    /// A percentile of a cell, as [`Distribution::percentile`].
    #[must_use]
    pub fn percentile(&self, cell: usize, percent: f64) -> Option<f64> {
        let start = self.placed.partition_point(|&(at, _)| (at as usize) < cell);
        let of_cell = self.placed.get(start..)?;
        let total = of_cell.partition_point(|&(at, _)| at as usize == cell) as u64;
        let value_at = |rank: u64| {
            let place = of_cell.get(usize::try_from(rank).ok()?);
            place.map(|&(_, place)| value(place))
        };
        interpolated(total, percent, value_at)
    }
}

/// The percentile of values in order, interpolated as numpy does by default.
fn interpolated(total: u64, percent: f64, value_at: impl Fn(u64) -> Option<f64>) -> Option<f64> {
    let last = total.checked_sub(1)?;
    let at = number(last) * (percent / 100.0);
    let below = floor(at).min(last);
    let (low, high) = (value_at(below)?, value_at((below + 1).min(last))?);
    let part = at - number(below);
    // As numpy: from the nearer end, so that equal values give themselves.
    let difference = high - low;
    Some(if part >= 0.5 { high - difference * (1.0 - part) } else { low + difference * part })
}

struct CellCollector<'a> {
    placed: &'a mut Vec<(u32, u64)>,
    cursor: &'a mut Cursor,
}

impl CellCollector<'_> {
    fn push(&mut self, number: f64) {
        let cell = u32::try_from(self.cursor.next()).unwrap_or(u32::MAX);
        self.placed.push((cell, place(number)));
    }
}

impl Visitor for CellCollector<'_> {
    fn integer(&mut self, number: i128) {
        self.push(double(number));
    }

    fn float(&mut self, number: f64) {
        if number.is_nan() {
            self.missing();
        } else {
            self.push(number);
        }
    }

    fn missing(&mut self) {
        self.cursor.next();
    }
}

struct Collector(Vec<u64>);

impl Visitor for Collector {
    fn integer(&mut self, number: i128) {
        self.0.push(place(double(number)));
    }

    fn float(&mut self, number: f64) {
        if !number.is_nan() {
            self.0.push(place(number));
        }
    }

    fn missing(&mut self) {}
}

/// The place of a float in the order of all of them; -0 has that of 0.
fn place(number: f64) -> u64 {
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn value(place: u64) -> f64 {
    f64::from_bits(if place >> 63 == 1 { place & !(1 << 63) } else { !place })
}

#[expect(clippy::cast_precision_loss, reason = "below 2^53 it is exact")]
fn number(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ranks are in range")]
fn floor(at: f64) -> u64 {
    at.floor() as u64
}

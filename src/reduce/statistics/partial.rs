//! [`Partial`]: the statistics of a piece of an array, which can be merged with those of the next piece.

use crate::reduce::cf::{CfValues, Visitor, double};

/// Values are summed in blocks of this length, which are merged.
const BLOCK: usize = 4096;

/// The edges of a histogram: bins of equal width between two values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bins {
    /// The number of bins, at least 1.
    pub count: usize,
    /// The lower edge of the first bin.
    pub low: f64,
    /// The upper edge of the last bin, which belongs to it.
    pub high: f64,
}

impl Bins {
    /// The edges of all bins, as `numpy.linspace` computes them.
    #[must_use]
    pub fn edges(&self) -> Vec<f64> {
        let step = (self.high - self.low) / length(self.count);
        let edge = |at: usize| if at == self.count { self.high } else { length(at) * step + self.low };
        (0..=self.count).map(edge).collect()
    }
}

/// The smallest and the largest value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extremes {
    /// Of integers.
    pub integers: Option<(i128, i128)>,
    /// Of all values.
    pub floats: Option<(f64, f64)>,
}

/// The statistics of a piece of an array.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Partial {
    /// Values that are neither missing nor NaN.
    pub count: u64,
    /// Elements that the attributes mark as missing.
    pub missing: u64,
    /// Elements that are NaN.
    pub nan: u64,
    /// The extremes.
    pub extent: Extremes,
    /// The exact sum of integers.
    pub integer_sum: i128,
    /// The sum of the other values.
    pub float_sum: f64,
    mean: f64,
    /// The sum of squared differences from the mean.
    squares: f64,
    /// Values in each bin.
    pub counts: Vec<u64>,
}

impl Partial {
    /// The statistics of elements in canonical form, with a histogram of these edges.
    #[must_use]
    pub fn of(values: &CfValues, items: &[u8], edges: Option<&[f64]>) -> Self {
        let counts = vec![0; edges.map_or(0, |edges| edges.len().saturating_sub(1))];
        let mut partial = Self { counts, ..Self::default() };
        for block in items.chunks(BLOCK * values.element_bytes()) {
            let mut numbers = Numbers { partial: &mut partial, numbers: Vec::with_capacity(BLOCK) };
            values.visit(block, &mut numbers);
            let numbers = numbers.numbers;
            partial.add_block(&numbers);
            if let Some(edges) = edges {
                partial.add_to_bins(&numbers, edges);
            }
        }
        partial
    }

    /// The statistics of a number of equal elements.
    #[must_use]
    pub fn of_equal(values: &CfValues, item: &[u8], times: u64, edges: Option<&[f64]>) -> Self {
        let one = Self::of(values, item, edges);
        let factor = i128::from(times);
        Self {
            count: one.count * times,
            missing: one.missing * times,
            nan: one.nan * times,
            integer_sum: one.integer_sum.saturating_mul(factor),
            float_sum: one.float_sum * number(times),
            counts: one.counts.iter().map(|count| count * times).collect(),
            ..one
        }
    }

    /// Adds the statistics of the next piece.
    pub fn merge(&mut self, other: &Self) {
        let (count, others) = (number(self.count), number(other.count));
        if other.count > 0 {
            // Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances".
            let (all, difference) = (count + others, other.mean - self.mean);
            if self.count == 0 {
                (self.mean, self.squares) = (other.mean, other.squares);
            } else {
                self.squares += other.squares + difference * difference * (count * others / all);
                self.mean += difference * (others / all);
            }
        }
        self.count += other.count;
        self.missing += other.missing;
        self.nan += other.nan;
        self.extent.merge(other.extent);
        self.integer_sum = self.integer_sum.saturating_add(other.integer_sum);
        self.float_sum += other.float_sum;
        if self.counts.is_empty() {
            self.counts.clone_from(&other.counts);
        } else {
            for (count, other) in self.counts.iter_mut().zip(&other.counts) {
                *count += other;
            }
        }
    }

    /// The sum as a float64.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "rounded once")]
    pub fn sum(&self) -> f64 {
        self.integer_sum as f64 + self.float_sum
    }

    /// The mean; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum() / number(self.count))
    }

    /// The standard deviation of the values as a whole population; `None` without values.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.squares / number(self.count)).sqrt())
    }

    /// Bytes of memory, about.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (size_of::<Self>() + self.counts.len() * size_of::<u64>()) as u64
    }

    fn add_block(&mut self, numbers: &[f64]) {
        if numbers.is_empty() {
            return;
        }
        let count = length(numbers.len());
        let mean = numbers.iter().sum::<f64>() / count;
        let squares = numbers.iter().map(|number| (number - mean) * (number - mean)).sum();
        // The counts, extremes and sums of these values are there already.
        let all = self.count;
        self.count -= numbers.len() as u64;
        let block = Self { count: numbers.len() as u64, mean, squares, ..Self::default() };
        let counts = std::mem::take(&mut self.counts);
        self.merge(&block);
        self.counts = counts;
        self.count = all;
    }

    /// Counts values as `numpy.histogram` does.
    fn add_to_bins(&mut self, numbers: &[f64], edges: &[f64]) {
        let (Some(&low), Some(&high)) = (edges.first(), edges.last()) else { return };
        for &number in numbers {
            if number >= low && number <= high {
                let at = edges.partition_point(|&edge| edge <= number).saturating_sub(1);
                let last = self.counts.len().saturating_sub(1);
                if let Some(count) = self.counts.get_mut(at.min(last)) {
                    *count += 1;
                }
            }
        }
    }
}

impl Extremes {
    fn merge(&mut self, other: Self) {
        let integers = |one: (i128, i128), other: (i128, i128)| (one.0.min(other.0), one.1.max(other.1));
        let floats = |one: (f64, f64), other: (f64, f64)| (one.0.min(other.0), one.1.max(other.1));
        self.integers = match (self.integers, other.integers) {
            (Some(one), Some(other)) => Some(integers(one, other)),
            (one, other) => one.or(other),
        };
        self.floats = match (self.floats, other.floats) {
            (Some(one), Some(other)) => Some(floats(one, other)),
            (one, other) => one.or(other),
        };
    }
}

/// Collects the values of a block.
struct Numbers<'a> {
    partial: &'a mut Partial,
    numbers: Vec<f64>,
}

impl Visitor for Numbers<'_> {
    fn integer(&mut self, number: i128) {
        let partial = &mut *self.partial;
        partial.count += 1;
        partial.integer_sum += number;
        partial.extent.merge(Extremes {
            integers: Some((number, number)),
            floats: Some((double(number), double(number))),
        });
        self.numbers.push(double(number));
    }

    fn float(&mut self, number: f64) {
        let partial = &mut *self.partial;
        if number.is_nan() {
            partial.nan += 1;
            return;
        }
        partial.count += 1;
        partial.float_sum += number;
        partial.extent.merge(Extremes { integers: None, floats: Some((number, number)) });
        self.numbers.push(number);
    }

    fn missing(&mut self) {
        self.partial.missing += 1;
    }
}

#[expect(clippy::cast_precision_loss, reason = "below 2^53 it is exact")]
fn number(count: u64) -> f64 {
    count as f64
}

fn length(count: usize) -> f64 {
    number(count as u64)
}

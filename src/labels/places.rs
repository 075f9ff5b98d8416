//! [`Keys`]: the positions of labels, found by binary search where they are sorted, as pandas finds them.

use std::ops::{Bound, Range};

/// How the labels of a coordinate follow each other. Equal labels in a row are in either order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Ascending,
    Descending,
    Unsorted,
}

/// A label as it is compared.
pub(super) trait Key: Copy + PartialOrd {
    /// How far labels are from each other.
    type Distance: Copy + PartialOrd;

    /// How far this is from another.
    fn distance(self, other: Self) -> Self::Distance;

    /// Whether a distance is at most half of another.
    fn is_at_most_half(distance: Self::Distance, whole: Self::Distance) -> bool;
}

impl Key for f64 {
    type Distance = f64;

    fn distance(self, other: Self) -> f64 {
        (self - other).abs()
    }

    fn is_at_most_half(distance: f64, whole: f64) -> bool {
        // Nothing is near to what is infinitely far away, although half of an infinite step is as far.
        distance.is_finite() && distance <= whole / 2.0
    }
}

impl Key for i128 {
    type Distance = u128;

    fn distance(self, other: Self) -> u128 {
        self.abs_diff(other)
    }

    fn is_at_most_half(distance: u128, whole: u128) -> bool {
        distance <= whole / 2
    }
}

/// Text has an order but no distances.
impl Key for &str {
    type Distance = ();

    fn distance(self, _other: Self) {}

    fn is_at_most_half(_distance: (), _whole: ()) -> bool {
        true
    }
}

/// The labels of a coordinate in stored order.
#[derive(Clone, Copy)]
pub(super) struct Keys<F> {
    pub(super) length: usize,
    pub(super) order: Order,
    /// The label at a position below the length.
    pub(super) at: F,
}

impl Order {
    /// The order of labels.
    pub(super) fn of<K: PartialOrd>(length: usize, at: impl Fn(usize) -> K) -> Self {
        let (mut ascends, mut descends) = (true, true);
        for place in 1..length {
            let (before, after) = (at(place - 1), at(place));
            // What is no number is neither smaller nor larger.
            ascends &= before <= after;
            descends &= before >= after;
            if !ascends && !descends {
                return Self::Unsorted;
            }
        }
        // A single label is compared with nothing.
        let is_number = length != 1 || at(0).partial_cmp(&at(0)).is_some();
        match (ascends && is_number, descends && is_number) {
            (true, _) => Self::Ascending,
            (false, true) => Self::Descending,
            (false, false) => Self::Unsorted,
        }
    }
}

impl<K: Key, F: Fn(usize) -> K> Keys<F> {
    /// The positions of labels between two, in stored order. They are all there are only if the labels are sorted.
    pub(super) fn between(&self, low: Bound<K>, high: Bound<K>) -> Range<usize> {
        let is_below = |key: K| match low {
            Bound::Included(low) => key < low,
            Bound::Excluded(low) => key <= low,
            Bound::Unbounded => false,
        };
        let is_above = |key: K| match high {
            Bound::Included(high) => key > high,
            Bound::Excluded(high) => key >= high,
            Bound::Unbounded => false,
        };
        let (start, end) = match self.order {
            Order::Descending => (self.partition(is_above), self.partition(|key| !is_below(key))),
            Order::Ascending | Order::Unsorted => {
                (self.partition(is_below), self.partition(|key| !is_above(key)))
            }
        };
        start..end.max(start)
    }

    /// The positions of labels between two, whatever their order.
    pub(super) fn scan(&self, low: Bound<K>, high: Bound<K>) -> Vec<usize> {
        let is_within = |key: K| {
            let is_high = match low {
                Bound::Included(low) => key >= low,
                Bound::Excluded(low) => key > low,
                Bound::Unbounded => true,
            };
            let is_low = match high {
                Bound::Included(high) => key <= high,
                Bound::Excluded(high) => key < high,
                Bound::Unbounded => true,
            };
            is_high && is_low
        };
        (0..self.length).filter(|&place| is_within((self.at)(place))).collect()
    }

    /// The last position, in stored order, whose label is not after `key`. The labels are sorted.
    pub(super) fn forward(&self, key: K) -> Option<usize> {
        let after = match self.order {
            Order::Descending => self.partition(|label| label >= key),
            Order::Ascending | Order::Unsorted => self.partition(|label| label <= key),
        };
        after.checked_sub(1)
    }

    /// The first position, in stored order, whose label is not before `key`. The labels are sorted.
    pub(super) fn backward(&self, key: K) -> Option<usize> {
        let first = match self.order {
            Order::Descending => self.partition(|label| label > key),
            Order::Ascending | Order::Unsorted => self.partition(|label| label < key),
        };
        Some(first).filter(|&first| first < self.length)
    }

    /// The position of the nearest label; of two that are as near, that of the larger. The labels are sorted.
    pub(super) fn nearest(&self, key: K) -> Option<usize> {
        let (Some(left), Some(right)) = (self.forward(key), self.backward(key)) else {
            return self.forward(key).or_else(|| self.backward(key));
        };
        let (to_left, to_right) = ((self.at)(left).distance(key), (self.at)(right).distance(key));
        let is_left = match self.order {
            Order::Descending => to_left <= to_right,
            Order::Ascending | Order::Unsorted => to_left < to_right,
        };
        Some(if is_left { left } else { right })
    }

    /// The positions of the labels that are equal to the one at a position. The labels are sorted.
    pub(super) fn same_as(&self, place: usize) -> Range<usize> {
        let key = (self.at)(place);
        let differs = |other: usize| other >= self.length || (self.at)(other) != key;
        if place.checked_sub(1).is_none_or(differs) && differs(place + 1) {
            return place..place + 1;
        }
        self.between(Bound::Included(key), Bound::Included(key))
    }

    /// Whether a key is not beyond the first and the last label. The labels are sorted.
    pub(super) fn covers(&self, key: K) -> bool {
        let Some(last) = self.length.checked_sub(1) else { return false };
        let (one, other) = ((self.at)(0), (self.at)(last));
        one <= key && key <= other || other <= key && key <= one
    }

    /// The positions of the labels around one: the one before and the one after, in stored order.
    pub(super) fn around(&self, key: K) -> Vec<usize> {
        let mut around: Vec<usize> = self.forward(key).into_iter().chain(self.backward(key)).collect();
        around.dedup();
        around
    }

    /// The smallest position whose label does not satisfy a condition that those before satisfy.
    fn partition(&self, is_before: impl Fn(K) -> bool) -> usize {
        // The number of steps follows from the length alone, so that the processor has no branch to predict.
        let (mut low, mut left) = (0, self.length);
        while left > 1 {
            let half = left / 2;
            low = if is_before((self.at)(low + half - 1)) { low + half } else { low };
            left -= half;
        }
        if left == 1 && is_before((self.at)(low)) { low + 1 } else { low }
    }
}

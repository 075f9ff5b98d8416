//! [`AxisPositions`]: the elements along one dimension that a request selects, in any order.

use super::AxisRange;

/// Elements along one dimension: a range, or several ranges one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AxisPositions {
    /// One range.
    Range(AxisRange),
    /// A list: the elements of each range, in this order. The dimension stays in the response.
    List(Vec<AxisRange>),
}

impl AxisPositions {
    /// The list of these elements, in as few ranges as equal distances permit.
    pub fn of_elements(elements: impl IntoIterator<Item = u64>) -> Self {
        let mut ranges: Vec<AxisRange> = Vec::new();
        for element in elements {
            if let Some(last) = ranges.last_mut()
                && let Some(longer) = with_next(last, element)
            {
                *last = longer;
            } else {
                ranges.push(AxisRange { start: element, count: 1, step: 1, keep: true });
            }
        }
        Self::List(ranges)
    }

    /// The number of elements (saturated).
    #[must_use]
    pub fn count(&self) -> u64 {
        self.ranges().iter().fold(0, |sum: u64, range| sum.saturating_add(range.count))
    }

    /// Whether the dimension stays in the shape of the response.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        match self {
            Self::Range(range) => range.keep,
            Self::List(_) => true,
        }
    }

    /// The elements, in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<'_> {
        self.ranges().iter().flat_map(|range| (0..range.count).map(|k| range.at(k)))
    }

    /// The ranges, in order.
    #[must_use]
    pub fn ranges(&self) -> &[AxisRange] {
        match self {
            Self::Range(range) => std::slice::from_ref(range),
            Self::List(ranges) => ranges,
        }
    }
}

/// A range with one more element at its end, if its distances stay equal and are not 0.
fn with_next(range: &AxisRange, element: u64) -> Option<AxisRange> {
    let last = range.at(range.count.checked_sub(1)?);
    let step = i64::try_from(i128::from(element) - i128::from(last)).ok().filter(|&step| step != 0)?;
    (range.count == 1 || range.step == step).then_some(AxisRange { count: range.count + 1, step, ..*range })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_its_elements_in_order_however_few_ranges_it_takes() {
        for (elements, ranges) in [
            (vec![], 0),
            (vec![5], 1),
            (vec![1, 2, 3, 9, 8, 7], 2),
            (vec![4, 4, 4], 3),
            (vec![350, 355, 0, 5, 10], 2),
        ] {
            let positions = AxisPositions::of_elements(elements.iter().copied());
            let found: Vec<u64> = positions.iter().collect();
            assert_eq!((found, positions.ranges().len()), (elements, ranges));
        }
    }
}

//! [`RegularNumbers`]: labels that are numbers and equally far apart.

use super::dimension_labels::DimensionLabels;
use super::float_precision::FloatPrecision;
use super::label_values::Labels;
use crate::chunk::AxisRange;

/// How far a distance may be from the step, as a part of it: floats of 32 bits have few digits.
const TOLERANCE: f64 = 1e-3;
/// How far a number may be from its place, as a part of the step: small deviations of the distances add up.
const MAX_SHIFT: f64 = 0.01;

/// Numbers that are equally far apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegularNumbers {
    /// The first one.
    pub first: f64,
    /// The last one.
    pub last: f64,
    /// The distance of one to the next; not 0, negative where they descend.
    pub step: f64,
}

impl RegularNumbers {
    /// The smallest.
    #[must_use]
    pub fn low(&self) -> f64 {
        self.first.min(self.last)
    }

    /// The largest.
    #[must_use]
    pub fn high(&self) -> f64 {
        self.first.max(self.last)
    }
}

impl DimensionLabels {
    /// The labels at the positions of a range, if they are numbers that are equally far apart. A single one has the distance of all
    /// labels of the coordinate.
    #[must_use]
    pub fn regular(&self, range: &AxisRange) -> Option<RegularNumbers> {
        let last = range.count.checked_sub(1)?;
        let place = |index: u64| {
            let ahead = i64::try_from(index).ok()?.checked_mul(range.step)?;
            usize::try_from(range.start.checked_add_signed(ahead)?).ok()
        };
        let (first, end) = (self.number_at(place(0)?)?, self.number_at(place(last)?)?);
        if last == 0 {
            let whole = AxisRange::full(self.len() as u64);
            let step = if whole.count > 1 { self.regular(&whole)?.step } else { return None };
            return Some(RegularNumbers { first, last: first, step });
        }
        #[expect(clippy::cast_precision_loss, reason = "a coordinate is shorter than 2^52")]
        let as_f64 = |index: u64| index as f64;
        let step = (end - first) / as_f64(last);
        let mut before = first;
        for index in 1..=last {
            let number = self.number_at(place(index)?)?;
            let deviation = ((number - before) - step).abs();
            let shift = (number - as_f64(index).mul_add(step, first)).abs();
            if !(deviation <= TOLERANCE * step.abs() && shift <= MAX_SHIFT * step.abs()) {
                return None;
            }
            before = number;
        }
        (step != 0.0 && step.is_finite()).then_some(RegularNumbers { first, last: end, step })
    }

    /// The number at a position; one of fewer bits than 64 is that of its shortest text.
    fn number_at(&self, place: usize) -> Option<f64> {
        match &self.labels {
            Labels::Floats { values, precision: FloatPrecision::Double } => values.get(place).copied(),
            Labels::Floats { .. } => self.text(place)?.parse().ok(),
            #[expect(clippy::cast_precision_loss, reason = "coordinates of a map are small")]
            Labels::Integers(values) => values.get(place).map(|value| *value as f64),
            Labels::Times { .. } | Labels::Texts(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regular(values: &[f64], precision: FloatPrecision, range: (u64, u64, i64)) -> Option<(f64, f64, f64)> {
        let labels = Labels::Floats { values: values.into(), precision };
        let (start, count, step) = range;
        let found =
            DimensionLabels::of_labels("x", labels).regular(&AxisRange { start, count, step, keep: true });
        found.map(|found| (found.first, found.last, found.step))
    }

    #[test]
    fn numbers_are_regular_over_what_is_selected_of_them() {
        let values = [0.0, 1.0, 2.0, 4.0, 6.0];
        assert_eq!(regular(&values, FloatPrecision::Double, (0, 3, 1)), Some((0.0, 2.0, 1.0)));
        assert_eq!(regular(&values, FloatPrecision::Double, (4, 3, -1)), Some((6.0, 2.0, -2.0)));
        assert_eq!(regular(&values, FloatPrecision::Double, (0, 5, 1)), None);
        assert_eq!(regular(&values, FloatPrecision::Double, (0, 2, 2)), Some((0.0, 2.0, 2.0)));
        assert_eq!(
            regular(&values, FloatPrecision::Double, (1, 1, 1)),
            None,
            "the coordinate is not regular"
        );
        assert_eq!(regular(&values[..3], FloatPrecision::Double, (1, 1, 1)), Some((1.0, 1.0, 1.0)));
        assert_eq!(regular(&values, FloatPrecision::Double, (0, 0, 1)), None);
        assert_eq!(regular(&[f64::NAN, 1.0], FloatPrecision::Double, (0, 2, 1)), None);
        assert_eq!(regular(&[1.0, 1.0], FloatPrecision::Double, (0, 2, 1)), None);
        let singles: Vec<f64> = (0..9_i16).map(|at| f64::from(45.1_f32 + 0.1 * f32::from(at))).collect();
        let (first, _, step) = regular(&singles, FloatPrecision::Single, (0, 9, 1)).unwrap();
        assert!((first - 45.1).abs() < 1e-12 && (step - 0.1).abs() < 1e-6, "{first} {step}");
    }

    #[test]
    fn numbers_are_regular_only_if_each_is_at_its_place() {
        // Each distance is within its tolerance, and in the middle the numbers are 1.8 steps ahead.
        let step = |at: u32| if at < 2000 { 1.0009 } else { 0.9991 };
        let drifting: Vec<f64> =
            (0..4000).scan(0.0, |number, at| Some(std::mem::replace(number, *number + step(at)))).collect();
        assert_eq!(regular(&drifting, FloatPrecision::Double, (0, 4000, 1)), None);
        assert!(regular(&drifting, FloatPrecision::Double, (0, 2000, 1)).is_some());
        let rounded: Vec<f64> = (0..4000).map(|at| (f64::from(at) / 12.0 * 1e5).round() / 1e5).collect();
        assert!(regular(&rounded, FloatPrecision::Double, (0, 4000, 1)).is_some());
    }
}

//! [`Comparison`]: a condition on labels, such as `>= 60`, that selects the elements whose labels satisfy it.
//!
//! ```text
//! comparison := ("<" | "<=" | ">" | ">=" | "==" | "!=") label
//! ```
//! Numbers are compared as numbers, a label of a `float32` coordinate after rounding to it; times in their own calendar, where a
//! date is the period of its precision: `<= 2020-01` has all of January; texts by their characters. What is no number satisfies
//! `!=` alone. Labels need not be sorted.

use std::sync::Arc;

use super::dimension_labels::{DimensionLabels, SelectedLabels, slice};
use super::error::LabelError;
use super::instant::NOT_A_TIME;
use super::label_values::Labels;
use super::query::{LabelQuery, shortened};
use crate::chunk::{AxisPositions, AxisRange};

/// The operators, the longer ones first.
const OPERATORS: [(&str, Operator); 6] = [
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

/// The most conditions on one dimension: each of them is compared with every label.
const MAX_CONDITIONS: usize = 64;

/// How a label compares with that of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    Unequal,
}

/// A condition on labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    operator: Operator,
    label: String,
}

impl Comparison {
    /// Parses all conditions on the labels of the dimension with this name.
    ///
    /// # Errors
    /// [`LabelError::TooManyConditions`], [`LabelError::Condition`].
    pub fn parse_all(dimension: &str, texts: &[String]) -> Result<Arc<[Self]>, LabelError> {
        if texts.len() > MAX_CONDITIONS {
            let (dimension, given) = (shortened(dimension), texts.len());
            return Err(LabelError::TooManyConditions { dimension, given, most: MAX_CONDITIONS });
        }
        texts.iter().map(|text| Self::parse(dimension, text)).collect()
    }

    /// Parses a condition on the labels of the dimension with this name.
    ///
    /// # Errors
    /// [`LabelError::Condition`].
    pub fn parse(dimension: &str, text: &str) -> Result<Self, LabelError> {
        // A text may begin or end with blanks; one behind the operator separates. `== ` asks for the empty text.
        let split = |(sign, operator): &(&str, Operator)| {
            let behind = text.trim_start().strip_prefix(sign)?;
            Some((behind.strip_prefix(' ').unwrap_or(behind), *operator))
        };
        let found =
            OPERATORS.iter().find_map(split).filter(|(label, _)| !label.is_empty() || text.ends_with(' '));
        let found = found.map(|(label, operator)| Self { operator, label: label.to_owned() });
        found.ok_or_else(|| LabelError::Condition { dimension: shortened(dimension), text: shortened(text) })
    }
}

impl Operator {
    /// Whether a label satisfies the condition, where the label of the condition is all from `low` to `high`.
    fn holds<K: PartialOrd + Copy>(self, label: K, low: K, high: K) -> bool {
        match self {
            Self::Less => label < low,
            Self::LessOrEqual => label <= high,
            Self::Greater => label > high,
            Self::GreaterOrEqual => label >= low,
            Self::Equal => label >= low && label <= high,
            Self::Unequal => !(label >= low && label <= high),
        }
    }
}

impl DimensionLabels {
    /// The positions of the labels that satisfy all of some conditions.
    pub(super) fn select_where(&self, conditions: &[Comparison]) -> Result<SelectedLabels, LabelError> {
        let mut are_found = vec![true; self.len()];
        for condition in conditions {
            self.check_label(&condition.label)?;
            self.mark(condition, &mut are_found)?;
        }
        let found = are_found.iter().enumerate().filter(|(_, is_found)| **is_found);
        let positions = AxisPositions::of_elements(found.map(|(place, _)| place as u64));
        let positions = match positions.ranges() {
            [] => return Ok(slice(&(0..0))),
            &[range] => AxisPositions::Range(AxisRange { keep: true, ..range }),
            _ => positions,
        };
        Ok(SelectedLabels { positions, label: None })
    }

    /// Unmarks the labels that do not satisfy a condition.
    fn mark(&self, condition: &Comparison, are_found: &mut [bool]) -> Result<(), LabelError> {
        let Comparison { operator, label } = condition;
        // What errors repeat.
        let query = LabelQuery::Exact(label.clone());
        match &self.labels {
            Labels::Texts(texts) => {
                keep(are_found, texts, |text| operator.holds(&**text, label.as_str(), label.as_str()));
            }
            Labels::Times { instants, .. } => {
                let (start, end) = self.period(&query, label)?;
                keep(are_found, instants, |&instant| {
                    if instant == NOT_A_TIME {
                        return *operator == Operator::Unequal;
                    }
                    operator.holds(instant, start, end - 1)
                });
            }
            Labels::Integers(values) => {
                let number = self.number(&query, label)?.halves();
                keep(are_found, values, |&value| operator.holds(value * 2, number, number));
            }
            Labels::Floats { values, .. } => {
                let number = self.float(self.number(&query, label)?);
                keep(are_found, values, |&value| operator.holds(value, number, number));
            }
        }
        Ok(())
    }
}

/// Unmarks the labels for which a condition does not hold.
fn keep<T>(are_found: &mut [bool], labels: &[T], holds: impl Fn(&T) -> bool) {
    for (is_found, label) in are_found.iter_mut().zip(labels) {
        *is_found = *is_found && holds(label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::float_precision::FloatPrecision;

    fn selected(labels: Labels, conditions: &[&str]) -> Vec<u64> {
        let dimension = DimensionLabels::of_labels("x", labels);
        let conditions: Vec<_> =
            conditions.iter().map(|text| Comparison::parse("x", text).unwrap()).collect();
        dimension.select_where(&conditions).unwrap().positions.iter().collect()
    }

    #[test]
    fn conditions_select_the_labels_that_satisfy_all_of_them() {
        let floats = || Labels::Floats {
            values: vec![3.0, 1.0, f64::NAN, 2.0, 1.0],
            precision: FloatPrecision::Double,
        };
        for (conditions, expected) in [
            (&[">= 2"][..], vec![0, 3]),
            (&["> 2"], vec![0]),
            (&["<2"], vec![1, 4]),
            (&["<= 2", "!= 1"], vec![3]),
            (&["==1"], vec![1, 4]),
            (&["!= 1"], vec![0, 2, 3]),
            (&["> 3"], vec![]),
            (&[], vec![0, 1, 2, 3, 4]),
        ] {
            assert_eq!(selected(floats(), conditions), expected, "{conditions:?}");
        }
        let integers = || Labels::Integers(vec![5, -1, 7]);
        assert_eq!(selected(integers(), &["> 5"]), [2]);
        assert_eq!(selected(integers(), &["> 4.5"]), [0, 2]);
        let texts = || Labels::Texts(["b", "a..c", "d"].map(Into::into).to_vec());
        assert_eq!(selected(texts(), &["> a..c"]), [0, 2]);
        assert_eq!(selected(texts(), &["== a..c"]), [1]);
        let padded = || Labels::Texts(["a", "a ", " a"].map(Into::into).to_vec());
        for (condition, expected) in [("== a", [0]), ("==a ", [1]), ("== a ", [1]), ("==  a", [2])] {
            assert_eq!(selected(padded(), &[condition]), expected, "{condition}");
        }
        let empty = || Labels::Texts(["", "a"].map(Into::into).to_vec());
        assert_eq!(selected(empty(), &["== "]), [0]);
        assert_eq!(selected(empty(), &["!= "]), [1]);
    }

    #[test]
    fn what_is_no_condition_is_refused_with_what_would_be_right() {
        for text in ["60", "=60", ">=", "==", "", "=> 60"] {
            let error = Comparison::parse("lat", text).unwrap_err().to_string();
            assert!(error.contains("lat") && error.contains("`>= 60`"), "{error}");
        }
    }
}

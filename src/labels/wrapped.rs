//! Labels that repeat themselves, as longitudes do: 285 and -75 are one place with `wrap=360`.

use std::ops::Bound;

use super::dimension_labels::{DimensionLabels, SelectedLabels, slice};
use super::error::LabelError;
use super::float_precision::FloatPrecision;
use super::label_values::Labels;
use super::places::Order;
use super::query::{FillMethod, LabelQuery, shortened};
use crate::chunk::AxisPositions;

impl DimensionLabels {
    /// Whether labels that are `turn` apart are the same place: those of longitudes, and numbers that are once around.
    #[must_use]
    pub fn goes_around(&self, turn: f64) -> bool {
        self.is_longitude || self.is_once_around(turn)
    }

    /// Whether the labels go from one place to the same again, or to the last before it.
    fn is_once_around(&self, turn: f64) -> bool {
        let Some((smallest, largest)) = self.ends().filter(|_| self.order != Order::Unsorted) else {
            return false;
        };
        let span = largest - smallest;
        #[expect(clippy::cast_precision_loss, reason = "a part of a step does not matter")]
        let step = span / (self.len().saturating_sub(1)).max(1) as f64;
        [span, span + step].into_iter().any(|around| (around - turn).abs() < step / 2.0)
    }

    /// The positions that a request selects, if numbers a turn apart are the same label.
    pub(super) fn select_wrapped(&self, query: &LabelQuery, turn: f64) -> Result<SelectedLabels, LabelError> {
        let keys = self.floats();
        let number = |label: &str| self.number(query, label).map(|number| self.float(number));
        let Some((smallest, _)) = self.ends().filter(|_| self.order != Order::Unsorted) else {
            return match query {
                LabelQuery::Exact(label) => match self.nearby(number(label)?, turn) {
                    Some(place) => self.same_as(&keys, query, place),
                    None => self.no_such_number(query, &keys, number(label)?),
                },
                _ if self.is_empty() => self.no_such_label(query, Vec::new()),
                _ => Err(LabelError::Unsorted { dimension: self.dimension.clone() }),
            };
        };
        let ends: Vec<&String> = match query {
            LabelQuery::Exact(label) | LabelQuery::Near { label, .. } => vec![label],
            LabelQuery::Range { start, end } => start.iter().chain(end).collect(),
            LabelQuery::Latest => Vec::new(),
        };
        for label in ends {
            let end = number(label)?;
            if end.is_infinite() {
                return self.no_such_number(query, &keys, end);
            }
        }
        let into_turn = |number: f64| number - ((number - smallest) / turn).floor() * turn;
        match query {
            LabelQuery::Latest => self.no_such_label(query, Vec::new()),
            LabelQuery::Exact(label) => {
                let label = number(label)?;
                let of_rounding = turn * self.rounding();
                let places = turns(into_turn(label), turn).map(|turned| {
                    let place = keys.nearest(turned)?;
                    ((keys.at)(place) - turned).abs().le(&of_rounding).then_some(place)
                });
                match places.into_iter().flatten().next() {
                    Some(place) => self.same_as(&keys, query, place),
                    None => self.no_such_number(query, &keys, into_turn(label)),
                }
            }
            LabelQuery::Near { method, tolerance, label } => {
                let label = into_turn(number(label)?);
                let tolerance = self.tolerance(query, tolerance.as_deref())?;
                let turned =
                    if *method == FillMethod::Nearest { turns(label, turn).to_vec() } else { vec![label] };
                let mut best: Option<(f64, usize)> = None;
                for turned in turned {
                    if let Some(place) = self.near(&keys, *method, turned, tolerance, |distance| distance)? {
                        let away = ((keys.at)(place) - turned).abs();
                        best = best.filter(|(nearest, _)| *nearest <= away).or(Some((away, place)));
                    }
                }
                match best {
                    Some((_, place)) => self.same_as(&keys, query, place),
                    None => self.no_such_number(query, &keys, label),
                }
            }
            LabelQuery::Range { start, end } => {
                let (Some(start), Some(end)) = (start, end) else {
                    return Err(LabelError::Syntax {
                        dimension: self.dimension.clone(),
                        label: shortened(&query.to_string()),
                        takes: "with `wrap` a range has two ends: a circle has none",
                    });
                };
                let (from, to) = (number(start)?, number(end)?);
                if to - from >= turn {
                    return Ok(slice(&(0..self.len())));
                }
                let (from, to) = (into_turn(from), into_turn(to));
                if from <= to {
                    return Ok(slice(&keys.between(Bound::Included(from), Bound::Included(to))));
                }
                let upper = keys.between(Bound::Included(from), Bound::Unbounded);
                let lower = keys.between(Bound::Unbounded, Bound::Included(to));
                if upper.is_empty() {
                    return Ok(slice(&lower));
                }
                if lower.is_empty() {
                    return Ok(slice(&upper));
                }
                // From the first end on: a descending coordinate has the pieces in the same order, each as it is stored.
                let pieces = [upper, lower].map(|piece| match slice(&piece).positions {
                    AxisPositions::Range(range) => vec![range],
                    AxisPositions::List(ranges) => ranges,
                });
                Ok(SelectedLabels { positions: AxisPositions::List(pieces.concat()), label: None })
            }
        }
    }

    /// The smallest and the largest label of a sorted coordinate.
    fn ends(&self) -> Option<(f64, f64)> {
        let keys = self.floats();
        let last = keys.length.checked_sub(1)?;
        let (one, other) = ((keys.at)(0), (keys.at)(last));
        Some((one.min(other), one.max(other)))
    }

    /// The first position of an unsorted coordinate whose label is a whole number of turns from another.
    fn nearby(&self, number: f64, turn: f64) -> Option<usize> {
        let (keys, of_rounding) = (self.floats(), turn * self.rounding());
        let is_same = |label: f64| {
            let distance = (label - number).rem_euclid(turn);
            distance.min(turn - distance) <= of_rounding
        };
        (0..keys.length).find(|&place| is_same((keys.at)(place)))
    }

    fn rounding(&self) -> f64 {
        match &self.labels {
            Labels::Floats { precision, .. } => precision.turn_rounding(),
            _ => FloatPrecision::Double.turn_rounding(),
        }
    }
}

/// A number within the first turn of a coordinate, and those a turn below and above.
fn turns(number: f64, turn: f64) -> [f64; 3] {
    [number, number - turn, number + turn]
}

//! The error of a label that no element has: with the labels near it, those at the ends, and what may be wrong.

use super::date_label::DateLabel;
use super::dimension_labels::DimensionLabels;
use super::error::{LabelError, NoSuchLabel};
use super::instant::{Instant, NOT_A_TIME, span_text};
use super::label_values::Labels;
use super::places::{Key, Keys, Order};
use super::query::{FillMethod, LabelQuery, shortened};

/// The most parts of a text that are compared with labels.
const MOST_PARTS: usize = 8;
/// A full turn, by which longitudes are written in two ways.
const FULL_TURN: f64 = 360.0;

/// The names of methods, which stand before two colons.
const METHODS: [&str; 3] = ["nearest", "ffill", "bfill"];
/// The hint at longitudes in the other convention.
const ADD_WRAP: &str = "; if these are longitudes in the other convention, add `wrap=360`";

impl LabelError {
    /// The error without a hint at `wrap`, for a request that has it.
    pub(super) fn of_wrapped(mut self) -> Self {
        if let Self::NoSuchLabel(missing) = &mut self
            && missing.hint == ADD_WRAP
        {
            missing.hint.clear();
        }
        self
    }
}

impl DimensionLabels {
    /// The error of a time that no element has.
    pub(super) fn no_such_time<T, F: Fn(usize) -> Instant>(
        &self,
        query: &LabelQuery,
        keys: &Keys<F>,
        instant: Instant,
    ) -> Result<T, LabelError> {
        self.no_such_label(query, self.near_texts(keys, instant))
    }

    /// The error of a number that no element has.
    pub(super) fn no_such_number<T, K: Key, F: Fn(usize) -> K>(
        &self,
        query: &LabelQuery,
        keys: &Keys<F>,
        key: K,
    ) -> Result<T, LabelError> {
        self.no_such_label(query, self.near_texts(keys, key))
    }

    /// The labels around a key.
    fn near_texts<K: Key, F: Fn(usize) -> K>(&self, keys: &Keys<F>, key: K) -> Vec<String> {
        let around = match self.order {
            Order::Ascending | Order::Descending => keys.around(key),
            Order::Unsorted => {
                let below = (0..keys.length).filter(|&place| (keys.at)(place) < key);
                let above = (0..keys.length).filter(|&place| (keys.at)(place) > key);
                let nearer = |one: usize, other: usize| {
                    let closer = (keys.at)(other).distance(key) < (keys.at)(one).distance(key);
                    if closer { other } else { one }
                };
                below.reduce(nearer).into_iter().chain(above.reduce(nearer)).collect()
            }
        };
        around.into_iter().filter_map(|place| self.text(place)).collect()
    }

    /// The error of a label that no element has, with those that are near.
    pub(super) fn no_such_label<T>(&self, query: &LabelQuery, near: Vec<String>) -> Result<T, LabelError> {
        let extent = self.text(0).zip(self.len().checked_sub(1).and_then(|last| self.text(last)));
        let extent = extent.map(|(first, last)| (first, last, self.step()));
        let (dimension, label) = (self.dimension.clone(), shortened(&query.to_string()));
        let hint = self.hint(query);
        Err(LabelError::NoSuchLabel(Box::new(NoSuchLabel { dimension, label, near, extent, hint })))
    }

    /// What may be wrong with a label beyond the ends.
    fn hint(&self, query: &LabelQuery) -> String {
        let label = match query {
            LabelQuery::Exact(label) | LabelQuery::Near { label, .. } => label,
            LabelQuery::Latest | LabelQuery::Range { .. } => return String::new(),
        };
        let is_number = matches!(self.labels, Labels::Floats { .. } | Labels::Integers(_));
        if let (true, Ok(number)) = (is_number, label.parse::<f64>()) {
            let keys = self.floats();
            let is_near = |number| Self::is_within_half_a_step(&keys, number);
            let turned = [number - FULL_TURN, number + FULL_TURN].into_iter().any(is_near);
            let can_wrap = self.order != Order::Unsorted && self.goes_around(FULL_TURN);
            if can_wrap && !keys.covers(number) && turned {
                return ADD_WRAP.to_owned();
            }
        }
        match query {
            LabelQuery::Near { method: FillMethod::Nearest, tolerance: None, .. } => {
                format!(
                    "; it is not taken from so far away, unless `nearest(inf)::{}` says so",
                    shortened(label)
                )
            }
            LabelQuery::Exact(_)
                if !matches!(self.labels, Labels::Texts(_)) && self.order != Order::Unsorted =>
            {
                let near =
                    LabelQuery::Near { method: FillMethod::Nearest, tolerance: None, label: label.clone() };
                let how = if self.select(&near, None).is_ok() { "nearest" } else { "nearest(inf)" };
                format!("; `{how}::{}` selects the nearest", shortened(label))
            }
            _ => self.other_form(query),
        }
    }

    /// The form of a query that several labels have, if the label is a list of labels or has a colon between two.
    pub(super) fn other_form(&self, query: &LabelQuery) -> String {
        let LabelQuery::Exact(text) = query else { return String::new() };
        if let Some((method, label)) = text.split_once(':')
            && METHODS.iter().any(|known| method.starts_with(known))
        {
            return format!("; a method has two colons behind it: `{method}::{}`", shortened(label.trim()));
        }
        let are_labels = |parts: &[&str]| parts.iter().all(|part| self.is_label(part));
        if let Some((start, end)) = text.split_once(':').map(|(start, end)| (start.trim(), end.trim()))
            && are_labels(&[start, end])
        {
            return format!(
                "; a range has two points between its ends, and both of them in it: `{start}..{end}`"
            );
        }
        let parts: Vec<&str> = text.split(',').map(str::trim).take(MOST_PARTS).collect();
        let [one, other, ..] = parts[..] else { return String::new() };
        if !are_labels(&parts) {
            return String::new();
        }
        let are_numbers = matches!(self.labels, Labels::Floats { .. } | Labels::Integers(_));
        let [one, other] =
            [one, other].map(|part| if are_numbers { part.to_owned() } else { format!("\"{part}\"") });
        let dimension = shortened(&self.dimension);
        format!(
            "; a list of labels is in the body of a `POST`: `{{\"sel\": {{\"{dimension}\": [{one}, {other}]}}}}`"
        )
    }

    /// Whether a text can be a label of the coordinate; a text of texts, whether it is one.
    fn is_label(&self, text: &str) -> bool {
        match &self.labels {
            Labels::Floats { .. } | Labels::Integers(_) => text.parse::<f64>().is_ok(),
            Labels::Times { .. } => DateLabel::parse(text).is_some(),
            Labels::Texts(texts) => texts.iter().any(|known| **known == *text),
        }
    }

    /// The step from one label to the next, if it is regular.
    pub(super) fn step(&self) -> Option<String> {
        match &self.labels {
            Labels::Integers(values) => regular(values).map(|step| step.to_string()),
            // There is no step to or from what is no time.
            Labels::Times { instants, .. } if instants.contains(&NOT_A_TIME) => None,
            Labels::Times { instants, .. } => regular(instants).map(|step| span_text(step.abs())),
            Labels::Floats { values, .. } => {
                let [first, .., last] = values[..] else { return None };
                #[expect(clippy::cast_precision_loss, reason = "a coordinate is shorter than 2^52")]
                let steps = (values.len() - 1) as f64;
                let step = (last - first) / steps;
                // As many digits as all floats of 32 bits have.
                let is_regular = values.windows(2).all(
                    |pair| matches!(pair, [one, other] if ((other - one) - step).abs() <= 1e-3 * step.abs()),
                );
                is_regular
                    .then(|| format!("{step:.6}").trim_end_matches('0').trim_end_matches('.').to_owned())
            }
            Labels::Texts(_) => None,
        }
    }
}

/// The distance of integers in a row, if all have the same, and its size is one too.
fn regular(values: &[i128]) -> Option<i128> {
    let [first, second, ..] = values[..] else { return None };
    let step = second.checked_sub(first).filter(|step| *step != i128::MIN)?;
    let is_regular =
        values.windows(2).all(|pair| matches!(pair, [one, other] if other.checked_sub(*one) == Some(step)));
    is_regular.then_some(step)
}

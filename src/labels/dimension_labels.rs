//! [`DimensionLabels`]: the labels of a dimension, and the positions that a request selects by them.

use std::ops::Bound;
use std::sync::OnceLock;

use super::date_label::DateLabel;
use super::error::LabelError;
use super::extent::LabelExtent;
use super::instant::{DAY, Instant, SECOND};
use super::label_number::LabelNumber;
use super::label_values::Labels;
use super::longitude::is_longitude;
use super::places::{Key, Keys, Order};
use super::query::{FillMethod, LabelQuery, shortened};
use super::tolerance;
use crate::chunk::{AxisPositions, AxisRange, Elements, MAX_LIST_ITEMS};
use crate::error::nearest;
use crate::metadata::ArrayMetadata;

/// Bytes of memory of a coordinate beside its labels, about.
const COORDINATE_BYTES: u64 = 512;
/// Positions that an error lists.
const LISTED_POSITIONS: usize = 8;
/// Texts that are compared to suggest one.
const MOST_COMPARED: usize = 1000;

/// The labels of a dimension in memory.
#[derive(Debug)]
pub struct DimensionLabels {
    pub(super) dimension: String,
    pub(super) labels: Labels,
    pub(super) order: Order,
    pub(super) is_longitude: bool,
    /// The smallest distance of two times in a row that are not the same; `None` if the labels are no times.
    spacing: Option<i128>,
    extent: OnceLock<LabelExtent>,
}

/// What a request selects along a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedLabels {
    /// The positions; one label drops the dimension.
    pub positions: AxisPositions,
    /// The label of a single position.
    pub label: Option<String>,
}

impl SelectedLabels {
    /// One position, which drops the dimension.
    pub(super) fn one(place: usize) -> Self {
        let range = AxisRange { start: place as u64, count: 1, step: 1, keep: false };
        Self { positions: AxisPositions::Range(range), label: None }
    }
}

impl DimensionLabels {
    /// The coordinate of the dimension with this name: its array has these elements, in one part or several. Its values are never masked.
    ///
    /// # Errors
    /// [`LabelError::NoLabels`] if nothing can be selected by elements of this type.
    pub fn new(dimension: &str, metadata: &ArrayMetadata, elements: &[Elements]) -> Result<Self, LabelError> {
        let labels = Self::of_labels(dimension, Labels::new(dimension, metadata, elements)?);
        Ok(Self { is_longitude: is_longitude(dimension, &metadata.attributes), ..labels })
    }

    /// The coordinate with these labels.
    pub(super) fn of_labels(dimension: &str, labels: Labels) -> Self {
        let order = labels.order();
        let spacing = match &labels {
            Labels::Times { instants, .. } => Some(spacing(instants)),
            _ => None,
        };
        let (dimension, is_longitude) = (dimension.to_owned(), false);
        Self { dimension, labels, order, is_longitude, spacing, extent: OnceLock::new() }
    }

    /// From where to where the labels reach, found once. The first call goes through all labels: make it on the compute pool.
    #[must_use]
    pub fn extent(&self) -> &LabelExtent {
        self.extent.get_or_init(|| LabelExtent::new(&self.labels, self.order, self.step()))
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        COORDINATE_BYTES.saturating_add(self.labels.memory_bytes())
    }

    /// The number of labels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The label at a position, as it can be requested; `None` beyond the end.
    #[must_use]
    pub fn text(&self, place: usize) -> Option<String> {
        self.labels.text(place)
    }

    /// The positions that a request selects, and the label of a single one. With `wrap`, numbers that are this far apart are the
    /// same label.
    ///
    /// # Errors
    /// [`LabelError`], with what would be right.
    pub fn select(&self, query: &LabelQuery, wrap: Option<f64>) -> Result<SelectedLabels, LabelError> {
        let positions = self.positions(query, wrap)?;
        let label = match &positions {
            AxisPositions::Range(AxisRange { start, keep: false, .. }) => {
                usize::try_from(*start).ok().and_then(|place| self.text(place))
            }
            _ => None,
        };
        Ok(SelectedLabels { positions, label })
    }

    /// The positions alone.
    pub(super) fn positions(
        &self,
        query: &LabelQuery,
        wrap: Option<f64>,
    ) -> Result<AxisPositions, LabelError> {
        let selected = self.select_unlabelled(query, wrap);
        let selected = selected.map_err(|error| if wrap.is_some() { error.of_wrapped() } else { error });
        Ok(selected?.positions)
    }

    fn select_unlabelled(&self, query: &LabelQuery, wrap: Option<f64>) -> Result<SelectedLabels, LabelError> {
        match (&self.labels, query) {
            (Labels::Texts(texts), _) => self.select_text(texts, query),
            (_, LabelQuery::Exact(label)) if label.is_empty() => Err(self.syntax(
                query,
                "it takes a label, such as `45.25` or `2020-01-15`, or a range `a..b`; only a text can be empty",
            )),
            (_, query) if query.is_latest() => self.latest().map_or_else(
                || self.no_such_label(query, Vec::new()),
                |place| Ok(SelectedLabels::one(place)),
            ),
            (Labels::Times { instants, .. }, _) => self.select_times(instants, query),
            (Labels::Floats { .. } | Labels::Integers(_), _) => match wrap {
                Some(wrap) => self.select_wrapped(query, wrap),
                None => self.select_numbers(query),
            },
        }
    }

    fn select_text(&self, texts: &[Box<str>], query: &LabelQuery) -> Result<SelectedLabels, LabelError> {
        let keys = Keys {
            length: texts.len(),
            order: self.order,
            at: |place: usize| texts.get(place).map_or("", |text| &**text),
        };
        let label = match query {
            LabelQuery::Latest => "latest",
            LabelQuery::Exact(label) => label,
            LabelQuery::Near { .. } => {
                let (dimension, label) = (self.dimension.clone(), shortened(&query.to_string()));
                return Err(LabelError::TextHasNoDistance { dimension, label });
            }
            LabelQuery::Range { start, end } => {
                let ends = [start.as_deref(), end.as_deref()];
                return self.between(&keys, ends, |one| one);
            }
        };
        let found = self.equal(&keys, label);
        match found.first() {
            Some(_) => self.places(query, &found),
            None if *query == LabelQuery::Latest && !texts.is_empty() => {
                Ok(SelectedLabels::one(texts.len() - 1))
            }
            None => {
                let known = texts.iter().take(MOST_COMPARED).map(|text| &**text);
                let near = nearest(label, known).map(str::to_owned);
                self.no_such_label(query, near.into_iter().collect())
            }
        }
    }

    fn select_times(&self, instants: &[Instant], query: &LabelQuery) -> Result<SelectedLabels, LabelError> {
        let keys = self.instants(instants);
        match query {
            LabelQuery::Latest => self.no_such_label(query, Vec::new()),
            LabelQuery::Exact(label) => {
                let (start, end) = self.period(query, label)?;
                let period = (Bound::Included(start), Bound::Excluded(end));
                let is_sorted = self.order != Order::Unsorted;
                let found = if is_sorted {
                    keys.between(period.0, period.1).collect()
                } else {
                    keys.scan(period.0, period.1)
                };
                // Months and years have different lengths: one is a period of labels that are months apart, too.
                let is_one = end - start <= DAY && self.spacing.is_none_or(|spacing| end - start <= spacing);
                match &found[..] {
                    [place] if is_one => Ok(SelectedLabels::one(*place)),
                    [] if is_one || !is_sorted || !Self::is_amid(&keys, start, end) => {
                        self.no_such_time(query, &keys, start)
                    }
                    [] => Ok(SelectedLabels {
                        positions: AxisPositions::Range(AxisRange {
                            start: 0,
                            count: 0,
                            step: 1,
                            keep: true,
                        }),
                        label: None,
                    }),
                    _ => self.places(query, &found).map(SelectedLabels::with_dimension),
                }
            }
            LabelQuery::Near { method, tolerance, label } => {
                let (instant, _) = self.period(query, label)?;
                let tolerance = match tolerance {
                    None => None,
                    Some(text) => Some(tolerance::of_times(text).ok_or_else(|| {
                        self.syntax(query, "the tolerance of a time is a duration, such as `6h`, or `inf`: `nearest(6h)::2020-01-15`")
                    })?),
                };
                let place = self.near(&keys, *method, instant, tolerance, |distance| distance)?;
                place.map_or_else(
                    || self.no_such_time(query, &keys, instant),
                    |place| self.same_as(&keys, query, place),
                )
            }
            LabelQuery::Range { start, end } => {
                let period = |label: &Option<String>| {
                    label.as_ref().map(|label| self.period(query, label)).transpose()
                };
                let (one, other) = (period(start)?, period(end)?);
                self.check_sorted()?;
                // An open end is that of the coordinate in stored order. A period that the other end lies in is no earlier than that.
                let (from, to) = match (one, other) {
                    (Some(one), Some(other)) if one.0 < other.1 => (Some(one), Some(other)),
                    (Some(_), Some(_)) => (other, one),
                    _ if self.order == Order::Descending => (other, one),
                    _ => (one, other),
                };
                let low = from.map_or(Bound::Unbounded, |(start, _)| Bound::Included(start));
                let high = to.map_or(Bound::Unbounded, |(_, end)| Bound::Excluded(end));
                Ok(slice(&keys.between(low, high)))
            }
        }
    }

    fn select_numbers(&self, query: &LabelQuery) -> Result<SelectedLabels, LabelError> {
        let number = |label: &str| self.number(query, label);
        let Labels::Integers(values) = &self.labels else {
            return self.select_keys(
                &self.floats(),
                query,
                |label| Ok(self.float(number(label)?)),
                |away| away,
            );
        };
        if let LabelQuery::Near { method, tolerance, label } = query
            && let LabelNumber::Float(key) = number(label)?
        {
            // It lies between integers, or beyond all of them. Their order beside it is exact in floats.
            let (keys, tolerance) = (self.floats(), self.tolerance(query, tolerance.as_deref())?);
            let place = self.near(&keys, *method, key, tolerance, |distance| distance)?;
            return place.map_or_else(
                || self.no_such_number(query, &keys, key),
                |place| self.same_as(&self.integers(values), query, place),
            );
        }
        if matches!(query, LabelQuery::Near { .. }) {
            #[expect(clippy::cast_precision_loss, reason = "a tolerance is a float")]
            let distance = |distance: u128| distance as f64;
            let integer = |label: &str| number(label).map(|number| number.halves() / 2);
            return self.select_keys(&self.integers(values), query, integer, distance);
        }
        let integers = self.integers(values);
        let halves =
            Keys { length: integers.length, order: integers.order, at: |place| (integers.at)(place) * 2 };
        self.select_keys(&halves, query, |label| Ok(number(label)?.halves()), |_distance| f64::INFINITY)
    }

    /// Selects by labels that are compared as keys. `parse` gives the key of a label, `distance` that of a tolerance.
    fn select_keys<K: Key, F: Fn(usize) -> K>(
        &self,
        keys: &Keys<F>,
        query: &LabelQuery,
        parse: impl Fn(&str) -> Result<K, LabelError>,
        distance: impl Fn(K::Distance) -> f64,
    ) -> Result<SelectedLabels, LabelError> {
        match query {
            LabelQuery::Latest => self.no_such_label(query, Vec::new()),
            LabelQuery::Exact(label) => {
                let key = parse(label)?;
                let found = self.equal(keys, key);
                if found.is_empty() {
                    self.no_such_number(query, keys, key)
                } else {
                    self.places(query, &found)
                }
            }
            LabelQuery::Near { method, tolerance, label } => {
                let key = parse(label)?;
                let tolerance = self.tolerance(query, tolerance.as_deref())?;
                let place = self.near(keys, *method, key, tolerance, distance)?;
                place.map_or_else(
                    || self.no_such_number(query, keys, key),
                    |place| self.same_as(keys, query, place),
                )
            }
            LabelQuery::Range { start, end } => {
                let key = |label: &Option<String>| label.as_deref().map(&parse).transpose();
                self.between(keys, [key(start)?, key(end)?], |one| one)
            }
        }
    }

    /// The positions between two ends in either order.
    fn between<K: Key, F: Fn(usize) -> K, L>(
        &self,
        keys: &Keys<F>,
        ends: [Option<L>; 2],
        key: impl Fn(L) -> K,
    ) -> Result<SelectedLabels, LabelError> {
        self.check_sorted()?;
        let [one, other] = ends.map(|end| end.map(&key));
        let descends = self.order == Order::Descending;
        let (low, high) = match (one, other) {
            (Some(one), Some(other)) if one <= other => (Some(one), Some(other)),
            (Some(one), Some(other)) => (Some(other), Some(one)),
            // An open end is that of the coordinate in stored order.
            (one, other) if descends => (other, one),
            ends => ends,
        };
        let bound = |end: Option<K>| end.map_or(Bound::Unbounded, Bound::Included);
        Ok(slice(&keys.between(bound(low), bound(high))))
    }

    /// The position at or near a key, if there is one as near as it has to be.
    pub(super) fn near<K: Key, F: Fn(usize) -> K, D: PartialOrd>(
        &self,
        keys: &Keys<F>,
        method: FillMethod,
        key: K,
        tolerance: Option<D>,
        distance: impl Fn(K::Distance) -> D,
    ) -> Result<Option<usize>, LabelError> {
        self.check_sorted()?;
        let place = match method {
            FillMethod::Nearest => keys.nearest(key),
            FillMethod::Forward => keys.forward(key),
            FillMethod::Backward => keys.backward(key),
        };
        let Some(place) = place else { return Ok(None) };
        let away = (keys.at)(place).distance(key);
        let is_near = match tolerance {
            Some(tolerance) => distance(away) <= tolerance,
            None => method != FillMethod::Nearest || Self::is_within_half_a_step(keys, key),
        };
        Ok(is_near.then_some(place))
    }

    /// Whether a key is between the labels, or beyond them by at most half of the step at that end. It must not snap to an end
    /// that is far away.
    pub(super) fn is_within_half_a_step<K: Key, F: Fn(usize) -> K>(keys: &Keys<F>, key: K) -> bool {
        let Some(last) = keys.length.checked_sub(1) else { return false };
        if keys.covers(key) {
            return true;
        }
        let (end, next) = match keys.forward(key) {
            None => (0, 1.min(last)),
            Some(_) => (last, last.saturating_sub(1)),
        };
        let end = (keys.at)(end);
        K::is_at_most_half(end.distance(key), end.distance((keys.at)(next)))
    }

    /// All positions that have the label of one.
    pub(super) fn same_as<K: Key, F: Fn(usize) -> K>(
        &self,
        keys: &Keys<F>,
        query: &LabelQuery,
        place: usize,
    ) -> Result<SelectedLabels, LabelError> {
        let found = match self.order {
            Order::Unsorted => self.equal(keys, (keys.at)(place)),
            Order::Ascending | Order::Descending => {
                let same = keys.same_as(place);
                if same.len() == 1 {
                    return Ok(SelectedLabels::one(place));
                }
                same.collect()
            }
        };
        self.places(query, &found)
    }

    /// The positions of a key, in stored order.
    fn equal<K: Key, F: Fn(usize) -> K>(&self, keys: &Keys<F>, key: K) -> Vec<usize> {
        let (low, high) = (Bound::Included(key), Bound::Included(key));
        match self.order {
            Order::Unsorted => keys.scan(low, high),
            Order::Ascending | Order::Descending => keys.between(low, high).collect(),
        }
    }

    /// What several positions select: one drops the dimension.
    pub(super) fn places(&self, query: &LabelQuery, found: &[usize]) -> Result<SelectedLabels, LabelError> {
        if let [place] = found {
            return Ok(SelectedLabels::one(*place));
        }
        let listed = AxisPositions::of_elements(found.iter().map(|&place| place as u64));
        let positions = match listed.ranges() {
            [] => return Ok(slice(&(0..0))),
            &[range] => AxisPositions::Range(range),
            ranges if ranges.len() > MAX_LIST_ITEMS => {
                let first: Vec<String> = found.iter().take(LISTED_POSITIONS).map(usize::to_string).collect();
                return Err(LabelError::Scattered {
                    dimension: self.dimension.clone(),
                    label: shortened(&query.to_string()),
                    count: found.len(),
                    first: first.join(", "),
                });
            }
            _ => listed,
        };
        Ok(SelectedLabels { positions, label: None })
    }

    /// The position of the largest label; of several the last.
    fn latest(&self) -> Option<usize> {
        let length = self.len();
        let Order::Unsorted = self.order else {
            return if self.order == Order::Descending {
                (length > 0).then_some(0)
            } else {
                length.checked_sub(1)
            };
        };
        match &self.labels {
            Labels::Floats { values, .. } => {
                let numbers = values.iter().enumerate().filter(|(_, value)| !value.is_nan());
                numbers.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(place, _)| place)
            }
            Labels::Integers(values) | Labels::Times { instants: values, .. } => {
                values.iter().enumerate().max_by_key(|(_, value)| **value).map(|(place, _)| place)
            }
            Labels::Texts(texts) => texts.len().checked_sub(1),
        }
    }

    fn check_sorted(&self) -> Result<(), LabelError> {
        match self.order {
            Order::Unsorted => Err(LabelError::Unsorted { dimension: self.dimension.clone() }),
            Order::Ascending | Order::Descending => Ok(()),
        }
    }

    /// Whether a period without labels overlaps with the time from the first to the last label.
    fn is_amid<F: Fn(usize) -> Instant>(keys: &Keys<F>, start: Instant, end: Instant) -> bool {
        let Some(last) = keys.length.checked_sub(1) else { return false };
        let (one, other) = ((keys.at)(0), (keys.at)(last));
        start <= one.max(other) && end > one.min(other)
    }

    fn instants<'a>(&self, instants: &'a [Instant]) -> Keys<impl Fn(usize) -> Instant + use<'a>> {
        let at = |place| instants.get(place).copied().unwrap_or_default();
        Keys { length: instants.len(), order: self.order, at }
    }

    fn integers<'a>(&self, values: &'a [i128]) -> Keys<impl Fn(usize) -> i128 + use<'a>> {
        let at = |place| values.get(place).copied().unwrap_or_default();
        Keys { length: values.len(), order: self.order, at }
    }

    /// The labels as floats.
    pub(super) fn floats(&self) -> Keys<impl Fn(usize) -> f64> {
        #[expect(clippy::cast_precision_loss, reason = "compared with a label that is a float")]
        let at = |place| match &self.labels {
            Labels::Floats { values, .. } => values.get(place).copied().unwrap_or(f64::NAN),
            Labels::Integers(values) | Labels::Times { instants: values, .. } => {
                values.get(place).map_or(f64::NAN, |value| *value as f64)
            }
            Labels::Texts(_) => f64::NAN,
        };
        Keys { length: self.len(), order: self.order, at }
    }

    /// A number as it is compared with labels that are floats.
    pub(super) fn float(&self, number: LabelNumber) -> f64 {
        match &self.labels {
            Labels::Floats { precision, .. } => precision.rounded(number.float()),
            _ => number.float(),
        }
    }

    pub(super) fn number(&self, query: &LabelQuery, label: &str) -> Result<LabelNumber, LabelError> {
        LabelNumber::parse(label).ok_or_else(|| self.not_of_type(query, "numbers"))
    }

    pub(super) fn tolerance(
        &self,
        query: &LabelQuery,
        text: Option<&str>,
    ) -> Result<Option<f64>, LabelError> {
        let Some(text) = text else { return Ok(None) };
        let tolerance = tolerance::of_numbers(text);
        tolerance.map(Some).ok_or_else(|| {
            self.syntax(query, "a tolerance is a number from 0 on, or `inf`: `nearest(0.3)::45.2`")
        })
    }

    pub(super) fn period(&self, query: &LabelQuery, label: &str) -> Result<(Instant, Instant), LabelError> {
        let Labels::Times { calendar, .. } = self.labels else {
            return Err(self.not_of_type(query, "dates"));
        };
        let date = DateLabel::parse(label).ok_or_else(|| self.not_of_type(query, "dates in ISO 8601"))?;
        date.period(calendar).ok_or_else(|| {
            let (dimension, label) = (self.dimension.clone(), shortened(label));
            LabelError::NoSuchDate { dimension, label, calendar }
        })
    }

    fn syntax(&self, query: &LabelQuery, takes: &'static str) -> LabelError {
        let (dimension, label) = (self.dimension.clone(), shortened(&query.to_string()));
        LabelError::Syntax { dimension, label, takes }
    }

    fn not_of_type(&self, query: &LabelQuery, are: &'static str) -> LabelError {
        let (dimension, label) = (self.dimension.clone(), shortened(&query.to_string()));
        let (example, hint) = (self.text(0).unwrap_or_default(), self.other_form(query));
        LabelError::NotOfType { dimension, label, are, example, hint }
    }
}

impl SelectedLabels {
    /// The same positions, with their dimension even if it is one.
    fn with_dimension(self) -> Self {
        let positions = match self.positions {
            AxisPositions::Range(range) => AxisPositions::Range(AxisRange { keep: true, ..range }),
            listed @ AxisPositions::List(_) => listed,
        };
        Self { positions, label: None }
    }
}

/// The positions of a slice.
pub(super) fn slice(positions: &std::ops::Range<usize>) -> SelectedLabels {
    let (start, count) = (positions.start as u64, positions.len() as u64);
    let start = if count == 0 { 0 } else { start };
    let range = AxisRange { start, count, step: 1, keep: true };
    SelectedLabels { positions: AxisPositions::Range(range), label: None }
}

/// The smallest distance of two times in a row that are not the same. With one time, its last unit that is not 0.
fn spacing(instants: &[Instant]) -> i128 {
    let distances = instants.windows(2).filter_map(|pair| match pair {
        [one, other] => i128::try_from(one.abs_diff(*other)).ok().filter(|distance| *distance > 0),
        _ => None,
    });
    let least = || {
        let instant = instants.first().copied().unwrap_or_default();
        let units = [DAY, 3600 * SECOND, 60 * SECOND, SECOND, SECOND / 1000, SECOND / 1_000_000];
        units.into_iter().find(|unit| instant % unit == 0).unwrap_or(1)
    };
    distances.min().unwrap_or_else(least)
}

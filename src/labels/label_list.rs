//! [`LabelList`]: many labels in two allocations, and [`LabelListQuery`]: the elements that have or are near them.

use super::dimension_labels::{DimensionLabels, SelectedLabels};
use super::error::LabelError;
use super::label_values::Labels;
use super::places::Order;
use super::query::{FillMethod, LabelQuery, MAX_BYTES, shortened};
use crate::chunk::{AxisPositions, AxisRange, MAX_LIST_ITEMS};

/// The most comparisons with labels in no order, all of which each label of a list is compared with.
const MAX_COMPARISONS: u64 = 1 << 28;
/// The most elements that the labels of a list select together.
const MAX_ELEMENTS: u64 = 1 << 26;

/// Labels, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelList {
    text: String,
    /// Where in the text each label ends.
    ends: Vec<usize>,
}

/// The elements with some labels, in the order of the labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelListQuery {
    /// The labels. They are taken literally: a `..` is a part of a text.
    pub labels: LabelList,
    /// What to select for a label that no element has.
    pub method: Option<FillMethod>,
    /// With a method: how far away the element may be, as in a [`LabelQuery`].
    pub tolerance: Option<String>,
    /// Whether each label is of a point, so that it has to select one element.
    pub are_points: bool,
}

impl LabelList {
    /// Adds a label at the end.
    ///
    /// # Errors
    /// [`ListFull`] if there are [`MAX_LIST_ITEMS`].
    pub fn push(&mut self, label: &str) -> Result<(), ListFull> {
        if self.ends.len() == MAX_LIST_ITEMS {
            return Err(ListFull);
        }
        self.text.push_str(label);
        self.ends.push(self.text.len());
        Ok(())
    }

    /// The number of labels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The labels, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| self.text.get(start..end).unwrap_or_default())
    }
}

/// A list has as many labels as it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a list has at most {MAX_LIST_ITEMS} items")]
pub struct ListFull;

impl DimensionLabels {
    /// The positions of the elements that a list of labels selects.
    pub(super) fn select_list(
        &self,
        list: &LabelListQuery,
        wrap: Option<f64>,
    ) -> Result<SelectedLabels, LabelError> {
        let (labels, length) = (list.labels.len() as u64, self.len() as u64);
        if self.order == Order::Unsorted && labels.saturating_mul(length) > MAX_COMPARISONS {
            let dimension = self.dimension.clone();
            return Err(LabelError::TooManyLabels {
                dimension,
                labels,
                most: MAX_COMPARISONS / length.max(1),
            });
        }
        let mut query = match list.method {
            None => LabelQuery::Exact(String::new()),
            Some(method) => {
                LabelQuery::Near { method, tolerance: list.tolerance.clone(), label: String::new() }
            }
        };
        let mut ranges: Vec<AxisRange> = Vec::with_capacity(list.labels.len());
        let mut elements = 0_u64;
        for label in list.labels.iter() {
            self.check_label(label)?;
            if let LabelQuery::Exact(slot) | LabelQuery::Near { label: slot, .. } = &mut query {
                slot.clear();
                slot.push_str(label);
            }
            let positions = self.positions(&query, wrap).map_err(|error| with_members(error, list.method))?;
            let count = positions.count();
            if list.are_points && count != 1 {
                let (dimension, label) = (self.dimension.clone(), shortened(label));
                return Err(LabelError::NotOnePlace { dimension, label, count });
            }
            elements = elements.saturating_add(count);
            ranges.extend(positions.ranges());
            if elements > MAX_ELEMENTS {
                let dimension = self.dimension.clone();
                return Err(LabelError::TooManyElements { dimension, limit: MAX_ELEMENTS });
            }
        }
        let positions = if ranges.iter().all(|range| range.count == 1) {
            AxisPositions::of_elements(ranges.iter().map(|range| range.start))
        } else {
            let kept = ranges.into_iter().filter(|range| range.count > 0);
            AxisPositions::List(kept.map(|range| AxisRange { keep: true, ..range }).collect())
        };
        Ok(SelectedLabels { positions, label: None })
    }

    /// Checks the length of a label that was not parsed as a [`LabelQuery`].
    pub(super) fn check_label(&self, label: &str) -> Result<(), LabelError> {
        let may_be_empty = matches!(self.labels, Labels::Texts(_));
        if label.len() <= MAX_BYTES && (may_be_empty || !label.is_empty()) {
            return Ok(());
        }
        let (dimension, label) = (self.dimension.clone(), shortened(label));
        Err(LabelError::Syntax {
            dimension,
            label,
            takes: "a label has 1 to 512 bytes, and that of a text from none",
        })
    }
}

/// The error of a label of a list, whose method and tolerance are members of the body.
fn with_members(mut error: LabelError, method: Option<FillMethod>) -> LabelError {
    if let LabelError::NoSuchLabel(missing) = &mut error
        && missing.hint.contains("nearest")
    {
        let hint = match method {
            None => "; `\"method\": \"nearest\"` in the body selects the nearest",
            Some(_) => {
                "; it is not taken from so far away, unless `\"tolerance\": \"inf\"` in the body says so"
            }
        };
        hint.clone_into(&mut missing.hint);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_listed_as_they_were_added_and_no_more_than_there_may_be() {
        let mut list = LabelList::default();
        for label in ["a", " é..b ", "", "1.5"] {
            list.push(label).unwrap();
        }
        assert_eq!(list.iter().collect::<Vec<_>>(), ["a", " é..b ", "", "1.5"]);
        for _ in list.len()..MAX_LIST_ITEMS {
            list.push("x").unwrap();
        }
        assert_eq!(list.push("x"), Err(ListFull));
    }
}

//! [`DimensionQuery`]: everything that a request can select along a dimension by its labels.

use std::sync::Arc;

use super::comparison::Comparison;
use super::dimension_labels::{DimensionLabels, SelectedLabels};
use super::error::LabelError;
use super::label_list::LabelListQuery;
use super::query::LabelQuery;

/// What a request selects along a dimension by its labels. Clones share long lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimensionQuery {
    /// A label, one near it, or a range.
    Label(LabelQuery),
    /// Elements with or near each of some labels, in their order.
    List(Arc<LabelListQuery>),
    /// The elements whose labels satisfy all of some conditions, in stored order.
    Where(Arc<[Comparison]>),
}

/// Bytes that are moved in the time in which a label of a list is found, about.
const LABEL_WORK_BYTES: u64 = 256;
/// The same for the comparison of one label with a condition.
const COMPARISON_WORK_BYTES: u64 = 16;

impl DimensionQuery {
    /// The work of selecting among this many labels, as bytes that are moved in the same time (saturated).
    #[must_use]
    pub fn work_bytes(&self, length: u64) -> u64 {
        let labels = self.labels() as u64;
        match self {
            Self::Label(_) => length,
            Self::List(_) => length.saturating_add(labels.saturating_mul(LABEL_WORK_BYTES)),
            // Each condition is compared with every label.
            Self::Where(_) => {
                length.saturating_mul(labels.saturating_add(1)).saturating_mul(COMPARISON_WORK_BYTES)
            }
        }
    }

    /// The member of a request that has it.
    #[must_use]
    pub fn member(&self) -> &'static str {
        match self {
            Self::List(list) if list.are_points => "points",
            Self::Label(_) | Self::List(_) => "sel",
            Self::Where(_) => "where",
        }
    }

    /// How many labels the request has.
    #[must_use]
    pub fn labels(&self) -> usize {
        match self {
            Self::Label(_) => 1,
            Self::List(list) => list.labels.len(),
            Self::Where(conditions) => conditions.len(),
        }
    }
}

impl DimensionLabels {
    /// The positions that a request selects. With `wrap`, numbers that are this far apart are the same label of a coordinate that
    /// [goes around](DimensionLabels::goes_around), except in conditions.
    ///
    /// # Errors
    /// [`LabelError`], with what would be right.
    pub fn select_by(&self, query: &DimensionQuery, wrap: Option<f64>) -> Result<SelectedLabels, LabelError> {
        let wrap = wrap.filter(|&turn| self.goes_around(turn));
        match query {
            DimensionQuery::Label(label) => self.select(label, wrap),
            DimensionQuery::List(list) => self.select_list(list, wrap),
            DimensionQuery::Where(conditions) => self.select_where(conditions),
        }
    }
}

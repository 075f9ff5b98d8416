//! [`Near`]: how the labels of a body that no element has are resolved, by its members `method` and `tolerance`.

use std::sync::Arc;

use serde::Deserialize;

use super::named::Named;
use super::values::{LabelValue, Word};
use crate::api::query_params::ParamError;
use crate::chunk::SelectionError;
use crate::labels::{DimensionQuery, FillMethod, LabelList, LabelListQuery, LabelQuery};

/// How far labels may be: along every dimension, or along each of some.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a distance, or an object with one for each dimension")]
pub(super) enum Tolerance {
    All(Word),
    Each(Named<Word>),
}

/// How labels that no element has are resolved.
pub(super) struct Near {
    method: Option<FillMethod>,
    tolerance: Option<Tolerance>,
    is_used: bool,
    /// The dimensions that have a tolerance of their own and were not selected by labels so far.
    unused: Vec<String>,
}

impl Near {
    /// What the members of a body say.
    ///
    /// # Errors
    /// [`ParamError`] for a tolerance without a method.
    pub(super) fn new(method: Option<FillMethod>, tolerance: Option<Tolerance>) -> Result<Self, ParamError> {
        if let (Some(tolerance), None) = (&tolerance, method) {
            let text = match tolerance {
                Tolerance::All(Word(text)) => text,
                Tolerance::Each(_) => "{…}",
            };
            let takes = "a distance where there is a `method` of labels: `nearest`, `ffill` or `bfill`";
            return Err(ParamError::value("tolerance", text, takes));
        }
        let unused = match &tolerance {
            Some(Tolerance::Each(Named(each))) => each.iter().map(|(name, _)| name.clone()).collect(),
            Some(Tolerance::All(_)) | None => Vec::new(),
        };
        Ok(Self { method, tolerance, is_used: false, unused })
    }

    /// What labels select along a dimension.
    ///
    /// # Errors
    /// [`ParamError::Label`].
    pub(super) fn labels(&mut self, name: &str, value: LabelValue) -> Result<DimensionQuery, ParamError> {
        let query = match value {
            LabelValue::Text(text) => match LabelQuery::parse(name, &text)? {
                LabelQuery::Exact(label) => self.near(name, label),
                other => other,
            },
            LabelValue::Literal(label) => self.near(name, label),
            LabelValue::Between(start, end) => LabelQuery::Range { start, end },
            LabelValue::List(labels) => return Ok(self.list(name, labels, false)),
        };
        Ok(DimensionQuery::Label(query))
    }

    /// The labels of points along a dimension.
    ///
    /// # Errors
    /// [`SelectionError::PointsNoList`].
    pub(super) fn points(&mut self, name: &str, value: LabelValue) -> Result<DimensionQuery, ParamError> {
        match value {
            LabelValue::List(labels) => Ok(self.list(name, labels, true)),
            LabelValue::Text(_) | LabelValue::Literal(_) | LabelValue::Between(..) => {
                Err(SelectionError::PointsNoList { name: name.to_owned() }.into())
            }
        }
    }

    /// Checks that the method was of some labels, and each tolerance too.
    ///
    /// # Errors
    /// [`ParamError::Value`].
    pub(super) fn check_used(&self) -> Result<(), ParamError> {
        if let Some(method) = self.method.filter(|_| !self.is_used) {
            let takes = "the way to reduce here, since no labels are selected by `sel` or `points`";
            return Err(ParamError::value("method", method.name(), takes));
        }
        match self.unused.first() {
            Some(name) => {
                let takes = "distances along dimensions that are selected by single labels or lists of them";
                Err(ParamError::value("tolerance", name, takes))
            }
            None => Ok(()),
        }
    }

    fn near(&mut self, name: &str, label: String) -> LabelQuery {
        match self.method {
            None => LabelQuery::Exact(label),
            Some(method) => LabelQuery::Near { method, tolerance: self.take_tolerance(name), label },
        }
    }

    fn list(&mut self, name: &str, labels: LabelList, are_points: bool) -> DimensionQuery {
        let (method, tolerance) = (self.method, self.method.and_then(|_| self.take_tolerance(name)));
        DimensionQuery::List(Arc::new(LabelListQuery { labels, method, tolerance, are_points }))
    }

    /// The tolerance along a dimension that is selected by labels.
    fn take_tolerance(&mut self, name: &str) -> Option<String> {
        self.is_used = true;
        self.unused.retain(|known| known != name);
        match self.tolerance.as_ref()? {
            Tolerance::All(Word(text)) => Some(text.clone()),
            Tolerance::Each(Named(each)) => {
                each.iter().find(|(known, _)| known == name).map(|(_, Word(text))| text.clone())
            }
        }
    }
}

//! [`ElementsReduction`]: how the elements of one response are reduced.

use std::sync::Arc;

use axum::http::HeaderMap;

use super::categorical::{Categorical, and_above, are_known};
use super::reduction_query::{ReductionError, RequestedReduction};
use crate::array::{Array, ArrayError, Dependencies, Plan, ReadLimits};
use crate::chunk::Subset;
use crate::http::array_headers::{put_axis_reduction, put_reduction};
use crate::metadata::DataType;
use crate::reduce::{ALGORITHM, AxisReduction, Reduction};

/// How the elements of one response are reduced.
pub(crate) enum ElementsReduction {
    /// Window by window.
    Windows(Box<WindowReduction>),
    /// By a statistic over whole dimensions.
    Axes(Arc<AxisReduction>),
}

/// How windows of the elements of one response are reduced.
pub(crate) struct WindowReduction {
    requested: RequestedReduction,
    /// The reduction of the selection of this response.
    reduction: Arc<Reduction>,
    /// What the method follows from.
    found: Categorical,
}

impl ElementsReduction {
    /// The windows that were requested, for a selection. `found` is what the method follows from.
    pub(crate) fn windows(
        requested: RequestedReduction,
        found: Categorical,
        subset: &Subset,
    ) -> Result<Self, ReductionError> {
        let reduction = Arc::new(requested.of(subset)?);
        Ok(Self::Windows(Box::new(WindowReduction { requested, reduction, found })))
    }

    /// A statistic over whole dimensions.
    pub(crate) fn axes(reduction: AxisReduction) -> Self {
        Self::Axes(Arc::new(reduction))
    }

    /// A plan to read a selection and to reduce it as requested.
    pub(crate) fn plan(
        &self,
        array: &Arc<Array>,
        subset: &Subset,
        limits: &ReadLimits,
    ) -> Result<Plan, ArrayError> {
        match self {
            Self::Windows(windows) => Plan::reduced(array, subset.clone(), windows.of(subset), limits),
            Self::Axes(axes) => Plan::over(array, subset.clone(), Arc::clone(axes), limits),
        }
    }

    /// A selection of the shape of the result: the first element of each window, or of each reduced dimension.
    pub(crate) fn firsts(&self, subset: &Subset) -> Subset {
        match self {
            Self::Windows(windows) => windows.of(subset).firsts(subset),
            Self::Axes(axes) => axes.result(subset),
        }
    }

    /// The type of the result of elements of a type.
    pub(crate) fn data_type(&self, stored: &DataType) -> DataType {
        match self {
            Self::Windows(_) => stored.clone(),
            Self::Axes(axes) => axes.data_type().clone(),
        }
    }

    /// For each dimension: the number of elements of which parts of a selection need a multiple, so that the result of a part is a
    /// part of the result; `None` if no part has that.
    pub(crate) fn units(&self, subset: &Subset) -> Vec<Option<u64>> {
        let rank = subset.axes().len();
        match self {
            // Windows begin at the first selected element.
            Self::Windows(windows) => windows.of(subset).factors(rank).into_iter().map(Some).collect(),
            Self::Axes(axes) => {
                let is_reduced = |dimension| axes.is_reduced().get(dimension) == Some(&true);
                (0..rank).map(|dimension| (!is_reduced(dimension)).then_some(1)).collect()
            }
        }
    }

    /// Sets the headers that describe the reduction of a selection.
    pub(crate) fn put_headers(&self, headers: &mut HeaderMap, subset: &Subset) {
        match self {
            Self::Windows(windows) => put_reduction(headers, &windows.factors(subset)),
            Self::Axes(axes) => {
                let reduced = axes.is_reduced().iter().enumerate().filter(|(_, is_reduced)| **is_reduced);
                let reduced: Vec<usize> = reduced.map(|(dimension, _)| dimension).collect();
                put_axis_reduction(headers, &reduced, axes.statistic().name());
            }
        }
    }

    /// What of the response's bytes follows from the reduction, for its version. The missing values follow from the metadata.
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::Windows(windows) => {
                let (method, steps) = (windows.reduction.reducer().method(), windows.reduction.steps());
                format!("{ALGORITHM} {} {steps:?}", method.name())
            }
            Self::Axes(axes) => {
                format!("{ALGORITHM} over {} {:?}", axes.statistic().name(), axes.is_reduced())
            }
        }
    }

    /// Whether the method may change without a change of the array, and no lookup would show it: then the response is not cached.
    pub(crate) fn is_cacheable(&self) -> bool {
        self.found().is_none_or(|found| !found.is_private && are_known(&found.above))
    }

    /// The dependencies of a response, with those of the method.
    pub(crate) fn with_dependencies(&self, dependencies: Dependencies) -> Dependencies {
        match self.found() {
            Some(found) => and_above(dependencies, &found.above),
            None => dependencies,
        }
    }

    fn found(&self) -> Option<&Categorical> {
        match self {
            Self::Windows(windows) => Some(&windows.found),
            Self::Axes(_) => None,
        }
    }
}

impl WindowReduction {
    /// The factor of each dimension of the result.
    fn factors(&self, subset: &Subset) -> Vec<u64> {
        let factors = self.of(subset).factors(subset.axes().len());
        let kept = subset.axes().iter().zip(factors).filter(|(axis, _)| axis.keep);
        kept.map(|(_, factor)| factor).collect()
    }

    /// The reduction of a selection, which may be a part of that of the response.
    fn of(&self, subset: &Subset) -> Arc<Reduction> {
        // A part of a selection has its dimensions, so that the request is as valid for it.
        self.requested.of(subset).map_or_else(|_| Arc::clone(&self.reduction), Arc::new)
    }
}

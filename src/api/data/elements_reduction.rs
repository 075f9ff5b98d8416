//! [`ElementsReduction`]: how the elements of one response are reduced.

use std::sync::Arc;

use super::categorical::Around;
use super::reduction_query::{ReductionError, RequestedReduction};
use crate::array::{Array, ArrayError, Dependencies, Plan, ReadLimits};
use crate::chunk::Subset;
use crate::reduce::{ALGORITHM, Reduction};

/// How the elements of one response are reduced.
pub(crate) struct ElementsReduction {
    requested: RequestedReduction,
    /// The reduction of the selection of this response.
    reduction: Arc<Reduction>,
    /// The node around the array, if the method depends on it.
    around: Option<Around>,
}

impl ElementsReduction {
    /// What was requested, for a selection. `around` is the node around the array, if the method depends on it.
    pub(crate) fn new(
        requested: RequestedReduction,
        around: Option<Around>,
        subset: &Subset,
    ) -> Result<Self, ReductionError> {
        let reduction = Arc::new(requested.of(subset)?);
        Ok(Self { requested, reduction, around })
    }

    /// A plan to read a selection and to reduce it as requested.
    pub(crate) fn plan(
        &self,
        array: &Arc<Array>,
        subset: &Subset,
        limits: &ReadLimits,
    ) -> Result<Plan, ArrayError> {
        Plan::reduced(array, subset.clone(), self.of(subset), limits)
    }

    /// The first element of each window: a selection of the shape of the result.
    pub(crate) fn firsts(&self, subset: &Subset) -> Subset {
        self.of(subset).firsts(subset)
    }

    /// The factor of each dimension of the result.
    pub(crate) fn factors(&self, subset: &Subset) -> Vec<u64> {
        let factors = self.of(subset).factors(subset.axes().len());
        let kept = subset.axes().iter().zip(factors).filter(|(axis, _)| axis.keep);
        kept.map(|(_, factor)| factor).collect()
    }

    /// What of the response's bytes follows from the reduction, for its version. The missing values follow from the metadata.
    pub(crate) fn identity(&self) -> String {
        format!("{ALGORITHM} {} {:?}", self.reduction.reducer().method().name(), self.reduction.steps())
    }

    /// Whether the method may change without a change of the array, and no lookup would show it: then the response is not cached.
    pub(crate) fn is_cacheable(&self) -> bool {
        !matches!(self.around, Some((_, None)))
    }

    /// The dependencies of a response, with those of the method.
    pub(crate) fn with_dependencies(&self, dependencies: Dependencies) -> Dependencies {
        match &self.around {
            Some((path, Some(node))) => dependencies.and_node(path.clone(), node),
            _ => dependencies,
        }
    }

    /// The reduction of a selection, which may be a part of that of the response.
    fn of(&self, subset: &Subset) -> Arc<Reduction> {
        // A part of a selection has its dimensions, so that the request is as valid for it.
        self.requested.of(subset).map_or_else(|_| Arc::clone(&self.reduction), Arc::new)
    }
}

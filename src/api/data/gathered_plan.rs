//! [`GatheredPlan`]: the plan for elements at lists of positions or at points, and what the response says about them.

use crate::array::Plan;
use crate::chunk::AxisPositions;

/// The plan for elements at lists of positions or at points.
pub(crate) struct GatheredPlan {
    pub(crate) plan: Plan,
    /// A digest of the positions.
    pub(crate) identity: String,
    /// The positions along the last dimension of the response, if it has one.
    pub(crate) columns: Option<AxisPositions>,
    /// The names of the dimensions of the response, where they are not those of the array.
    pub(crate) dimension_names: Option<Vec<Option<String>>>,
}

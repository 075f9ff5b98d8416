//! [`GatheredPlan`]: the plan for elements at lists of positions, and what the response says about them.

use crate::array::Plan;
use crate::chunk::AxisPositions;

/// The plan for elements at lists of positions.
pub(crate) struct GatheredPlan {
    pub(crate) plan: Plan,
    /// A digest of the positions.
    pub(crate) identity: String,
    /// The positions along the last dimension of the response, if it has one.
    pub(crate) columns: Option<AxisPositions>,
}

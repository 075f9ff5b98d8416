//! Requests for elements at lists of positions: planned off the reactor, since lists can be long.

use std::sync::Arc;
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::elements::{ElementsRequest, Rendering};
use super::error::ElementsError;
use super::gathered_plan::GatheredPlan;
use super::query::DataQuery;
use super::too_large::Broken;
use crate::array::{OpenNode, Plan, Suggestions};
use crate::chunk::{AxisPositions, AxisRange, Subset};
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::http::validators::hex_tag;
use crate::services::state::AppState;

/// Bytes of work that a range of a list takes, about: for where it is planned.
const RANGE_BYTES: u64 = 256;

/// A request for the elements at these positions along each dimension.
///
/// # Errors
/// 400 together with a reduction, 413 over a limit.
pub(crate) async fn request(
    state: &AppState,
    node: Arc<OpenNode>,
    positions: Vec<AxisPositions>,
    query: &DataQuery,
    rendering: Rendering,
    started: Instant,
) -> Result<ElementsRequest, Problem> {
    if query.reduction.reduces() || query.over.reduces() {
        return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(
            "elements at a list of positions are not reduced: leave out `downsample`, `fit` and `reduce.NAME`, or select one range",
        ));
    }
    let stand_in =
        |axis: &AxisPositions| AxisRange { start: 0, count: axis.count(), step: 1, keep: axis.is_kept() };
    let shape = Subset(positions.iter().map(stand_in).collect());
    let ranges: usize = positions.iter().map(|axis| axis.ranges().len()).sum();
    let (array, limits) = (Arc::clone(node.array()?), state.engine.read);
    let planned = state.engine.cpu.run_or_inline((ranges as u64).saturating_mul(RANGE_BYTES), move || {
        let columns = positions.iter().rev().find(|axis| axis.is_kept()).cloned();
        let identity = hex_tag(&Sha256::digest(format!("{positions:?}")));
        Plan::gathered(&array, &positions, &limits).map(|plan| GatheredPlan { plan, identity, columns })
    });
    let planned = planned.await?.map_err(|error| {
        let error = ElementsError::Array(error);
        match Broken::of(&limits, state.options.max_buffered_response_size, &error) {
            Some(broken) => broken.problem(error, Suggestions::default()),
            None => error.into(),
        }
    })?;
    Ok(ElementsRequest::new(node, shape, None, rendering, started)?.with_gathered(planned))
}

//! Requests for elements at lists of positions or at points: planned off the reactor, since lists can be long.

use std::sync::Arc;
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::elements::ElementsRequest;
use super::error::ElementsError;
use super::gathered_plan::GatheredPlan;
use super::query::DataQuery;
use super::rendering::Rendering;
use super::too_large::Broken;
use crate::api::selection::{ListedPositions, SelectionParams};
use crate::array::{ArrayError, OpenNode, Plan, Suggestions};
use crate::chunk::{AxisPositions, AxisRange, SelectionError, Subset};
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::services::state::AppState;
use crate::units::hexadecimal::digest_tag;

/// Bytes of work that a range of a list takes, about: for where it is planned.
const RANGE_BYTES: u64 = 256;
/// The name of the first dimension of elements at points.
const POINTS: &str = "points";

/// Why elements at lists of positions or at points are not planned.
enum Unplanned {
    Selection(SelectionError),
    Array(ArrayError),
}

/// A request for the elements at the positions that a selection has along each dimension.
///
/// # Errors
/// 400 together with a reduction or without such positions, 413 over a limit.
pub(crate) async fn request(
    state: &AppState,
    node: Arc<OpenNode>,
    selection: &SelectionParams,
    query: &DataQuery,
    rendering: Rendering,
    started: Instant,
) -> Result<ElementsRequest, Problem> {
    if query.reduction.reduces() || query.over.reduces() {
        return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(
            "elements at lists of positions or at points are not reduced: leave out `downsample`, `fit` and `reduce.NAME`, or select one range",
        ));
    }
    let (array, limits, selection) = (Arc::clone(node.array()?), state.engine.read, selection.clone());
    let work = (selection.listed_items() as u64).saturating_mul(RANGE_BYTES);
    let planned = state.engine.cpu.run_or_inline(work, move || {
        let listed = selection.listed(array.metadata()).map_err(Unplanned::Selection)?;
        let identity = digest_tag(&Sha256::digest(format!("{listed:?}")));
        let ListedPositions { axes, points } = &listed;
        let plan = Plan::gathered(&array, axes, points.as_ref(), &limits).map_err(Unplanned::Array)?;
        let (shape, columns) = (stand_in(&listed), columns(&listed));
        let names = array.metadata().dimension_names.as_deref();
        let dimension_names = points.as_ref().map(|_| names_of(&listed, names.unwrap_or_default()));
        Ok((shape, GatheredPlan { plan, identity, columns, dimension_names }))
    });
    let (shape, planned) = planned.await?.map_err(|error| match error {
        Unplanned::Selection(error) => error.into(),
        Unplanned::Array(error) => {
            let error = ElementsError::Array(error);
            match Broken::of(&limits, state.options.max_buffered_response_size, &error) {
                Some(broken) => broken.problem(error, Suggestions::default()),
                None => Problem::from(error),
            }
        }
    })?;
    Ok(ElementsRequest::new(node, shape, None, rendering, started)?.with_gathered(planned))
}

/// The positions along each dimension that is not one of points, with its place in the array.
fn others(listed: &ListedPositions) -> impl DoubleEndedIterator<Item = (usize, &AxisPositions)> {
    let of_points = listed.points.as_ref().map_or(&[][..], |points| points.axes());
    listed.axes.iter().enumerate().filter(|(axis, _)| !of_points.contains(axis))
}

/// A subset with as many elements along each dimension of the response.
fn stand_in(listed: &ListedPositions) -> Subset {
    let one = |count: u64, keep: bool| AxisRange { start: 0, count, step: 1, keep };
    let points = listed.points.as_ref().map(|points| one(points.len() as u64, true));
    Subset(
        points.into_iter().chain(others(listed).map(|(_, axis)| one(axis.count(), axis.is_kept()))).collect(),
    )
}

/// The positions along the last dimension of the response.
fn columns(listed: &ListedPositions) -> Option<AxisPositions> {
    let last = others(listed).rev().map(|(_, axis)| axis).find(|axis| axis.is_kept()).cloned();
    let of_points = || Some(AxisPositions::Range(AxisRange::full(listed.points.as_ref()?.len() as u64)));
    last.or_else(of_points)
}

/// The names of the dimensions of elements at points.
fn names_of(listed: &ListedPositions, names: &[Option<String>]) -> Vec<Option<String>> {
    let kept = others(listed).filter(|(_, axis)| axis.is_kept());
    let of_others = kept.map(|(axis, _)| names.get(axis).cloned().flatten());
    std::iter::once(Some(POINTS.to_owned())).chain(of_others).collect()
}

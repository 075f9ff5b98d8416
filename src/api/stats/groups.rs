//! The groups of elements that a request has statistics of, and how much of a response they need.

use super::query::StatsQuery;
use crate::api::dimension_list::DimensionError;
use crate::array::{ArrayError, OpenNode};
use crate::chunk::Subset;
use crate::http::problem::Problem;
use crate::metadata::ArrayMetadata;
use crate::reduce::statistics::Statistic;
use crate::services::element_groups::ElementGroups;

/// The most groups of a request.
const MAX_GROUPS: u64 = 1 << 16;
/// The most characters of a number in the document, with a comma.
const NUMBER_BYTES: u64 = 26;
/// The same of an exact sum.
const SUM_BYTES: u64 = 42;
/// The same of a number of elements in a bin.
const BIN_BYTES: u64 = 11;

/// The groups of the query; without `over` all elements are one.
pub(super) fn of_query(
    query: &StatsQuery,
    metadata: &ArrayMetadata,
    subset: &Subset,
) -> Result<ElementGroups, DimensionError> {
    let rank = metadata.shape.len();
    let is_reduced = match &query.stats.over {
        None => vec![true; rank],
        Some(over) => {
            let mut is_reduced = vec![false; rank];
            over.mark(metadata, subset, &mut is_reduced)?;
            is_reduced
        }
    };
    Ok(ElementGroups::new(subset.clone(), is_reduced))
}

/// The bytes of the document, at most (saturated).
pub(super) fn text_bytes(query: &StatsQuery, groups: &ElementGroups) -> u64 {
    let of_one = |op: &Statistic| if *op == Statistic::Sum { SUM_BYTES } else { NUMBER_BYTES };
    let percentiles = query.percentiles().len() as u64 * NUMBER_BYTES;
    let numbers = query.ops().iter().map(of_one).sum::<u64>().saturating_add(percentiles);
    let bins = query.stats.histogram.map_or(0, |(bins, _)| bins as u64);
    let outside = if bins > 0 { NUMBER_BYTES } else { 0 };
    numbers
        .saturating_add(outside)
        .saturating_add(bins.saturating_mul(BIN_BYTES))
        .saturating_mul(groups.count())
}

/// Refuses more groups than fit in a document.
pub(super) fn check_size(query: &StatsQuery, groups: &ElementGroups, limit: u64) -> Result<(), Problem> {
    if query.stats.over.is_none() {
        return Ok(());
    }
    let asked = [
        ("groups of elements", groups.count(), MAX_GROUPS),
        ("bytes of the answer", text_bytes(query, groups), limit),
    ];
    match asked.into_iter().find(|&(_, requested, limit)| requested > limit) {
        None => Ok(()),
        Some((what, requested, limit)) => {
            let error = ArrayError::TooLarge { what, requested: requested.into(), limit };
            let detail = format!(
                "{error}: name more dimensions in `over`, select less, or read one statistic as an array, with `reduce.NAME` \
                 of `/v1/data`"
            );
            let problem = Problem::from(error).detail(detail);
            Err(problem.extension("limited", what).extension("asked", requested).extension("limit", limit))
        }
    }
}

/// The dimensions of the groups, each with its name and its length.
pub(super) fn named(groups: &ElementGroups, node: &OpenNode) -> Vec<(Option<String>, u64)> {
    let names = node.array().ok().and_then(|array| array.metadata().dimension_names.clone());
    let name = |dimension: usize| names.as_ref().and_then(|names| names.get(dimension).cloned().flatten());
    groups.dimensions().map(|(dimension, length)| (name(dimension), length)).collect()
}

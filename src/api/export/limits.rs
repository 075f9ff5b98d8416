//! The limits on a response with several arrays: those of one read hold for all arrays together.

use super::sources::ExportSources;
use crate::array::{ArrayError, Plan, ReadLimits};

/// Most bytes of attributes and names that a response is described with.
const MAX_ATTRIBUTE_BYTES: u64 = 4 << 20;

/// The plans of all arrays, in their order.
///
/// # Errors
/// [`ArrayError::TooLarge`] with the limit that one array or all together exceed.
pub(crate) fn plans(sources: &ExportSources, limits: &ReadLimits) -> Result<Vec<Plan>, ArrayError> {
    check_attributes(sources)?;
    let mut plans = Vec::with_capacity(sources.sources.len());
    let (mut elements, mut decoded, mut chunks) = (0_u64, 0_u64, 0_u64);
    for source in &sources.sources {
        let plan = Plan::new(&source.array, source.subset.clone(), limits)?;
        elements = elements.saturating_add(plan.response_bytes());
        decoded = decoded.saturating_add(plan.decoded_bytes());
        chunks = chunks.saturating_add(plan.chunks());
        plans.push(plan);
    }
    check("bytes of elements", elements, limits.max_response_size)?;
    check("decoded bytes", decoded, limits.max_decoded_size)?;
    check("decoded chunks", chunks, limits.max_chunks)?;
    Ok(plans)
}

/// Refuses more attributes than a response is described with.
///
/// # Errors
/// [`ArrayError::TooLarge`].
pub(crate) fn check_attributes(sources: &ExportSources) -> Result<(), ArrayError> {
    check_attribute_bytes(sources.attribute_bytes())
}

/// Refuses more bytes of attributes than a response is described with.
///
/// # Errors
/// [`ArrayError::TooLarge`].
pub(crate) fn check_attribute_bytes(bytes: u64) -> Result<(), ArrayError> {
    check("bytes of attributes and names", bytes, MAX_ATTRIBUTE_BYTES)
}

fn check(what: &'static str, requested: u64, limit: u64) -> Result<(), ArrayError> {
    if requested > limit {
        return Err(ArrayError::TooLarge { what, requested: requested.into(), limit });
    }
    Ok(())
}

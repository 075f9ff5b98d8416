//! Integers of 64 bits, which DAP2 has no type for: `Int32` if all of them are known to fit, else `Float64`.
//!
//! They are known to fit if the attributes state a range of valid values, or if the array is small enough to be read for it.
//! Small arrays with integers that no `Float64` equals are left out. Larger ones are sent as `Float64`, and a value that
//! cannot be exact ends the response as an error: none is ever wrapped or rounded.

use std::sync::Arc;

use crate::api::export::error::ExportError;
use crate::api::export::fitting::first_fitting;
use crate::api::export::sources::ExportSource;
use crate::array::{ArrayError, Plan, ReadLimits};
use crate::chunk::Subset;
use crate::metadata::{ArrayMetadata, DataType};
use crate::render::dataset::ElementEncoding;
use crate::services::state::AppState;

/// Most decoded bytes of an array that is read to find out whether its integers fit.
const MAX_READ_BYTES: u64 = 1 << 20;
/// How many times the decoded bytes of such an array are in memory: as chunks, as elements, and encoded.
const READ_COPIES: u64 = 3;

/// Whether DAP2 lacks numbers of this type, so that an array of it is read before it is described.
pub(super) fn is_wide(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int64 | DataType::UInt64 | DataType::DateTime64(_) | DataType::TimeDelta64(_)
    )
}

/// The memory in bytes that [`encoding_of`] takes.
pub(super) fn read_bytes(state: &AppState, source: &ExportSource) -> u64 {
    let plan = read_plan(state, source).ok().flatten();
    plan.map_or(0, |plan| plan.decoded_bytes().saturating_mul(READ_COPIES))
}

/// The plan to read all of an array; `None` if that is too much.
fn read_plan(state: &AppState, source: &ExportSource) -> Result<Option<Plan>, ArrayError> {
    let limits = ReadLimits { max_decoded_size: MAX_READ_BYTES, ..state.engine.read };
    match Plan::new(&source.array, Subset::full(&source.metadata().shape), &limits) {
        Ok(plan) => Ok(Some(plan)),
        Err(ArrayError::TooLarge { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// How the integers of an array are sent; `None` if DAP2 has no number for one of them.
///
/// # Errors
/// Failures of reading.
pub(super) async fn encoding_of(
    state: &AppState,
    source: &ExportSource,
) -> Result<Option<ElementEncoding>, ExportError> {
    let metadata = source.metadata();
    let data_type = &metadata.data_type;
    let (narrow, double) = (ElementEncoding::dap2(data_type, true), ElementEncoding::dap2(data_type, false));
    let is_integer = matches!(data_type, DataType::Int64 | DataType::UInt64);
    let narrow = narrow.filter(|_| is_integer);
    if let Some(narrow) = &narrow
        && states_narrow(metadata)
    {
        return Ok(Some(narrow.clone()));
    }
    let Some(plan) = read_plan(state, source)? else { return Ok(double) };
    let context = state.engine.reader.read_context(source.array.mount());
    let snapshot = state.engine.reader.snapshot(&plan, &context).await?;
    first_fitting(&state.engine, snapshot, narrow.into_iter().chain(double).collect(), &context).await
}

/// Whether the attributes state that every valid value fits in 32 bits.
fn states_narrow(metadata: &Arc<ArrayMetadata>) -> bool {
    let attributes = &metadata.attributes;
    let range = if attributes.contains_key("valid_range") {
        let range = attributes.get_short("valid_range");
        range.and_then(|range| Some(range.as_array()?.iter().map(serde_json::Value::as_i64).collect()))
    } else {
        let end = |name: &str| attributes.get_short(name).and_then(|value| value.as_i64());
        Some(vec![end("valid_min"), end("valid_max")])
    };
    let range: Option<Vec<i64>> = range.and_then(|range: Vec<Option<i64>>| range.into_iter().collect());
    range.is_some_and(|range| range.len() == 2 && range.iter().all(|end| i32::try_from(*end).is_ok()))
}

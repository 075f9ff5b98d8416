//! [`coordinate_ends`]: the first and the last value of a coordinate, of which at most two chunks are read.

use std::sync::Arc;

use futures::TryStreamExt;

use super::state::AppState;
use crate::array::{Array, ArrayError, Plan};
use crate::chunk::{AxisRange, Subset};
use crate::reduce::CfValues;
use crate::store::Version;

/// The first and the last value of a coordinate, and the versions of the chunks that they are in.
#[derive(Clone, Debug, Default)]
pub(crate) struct CoordinateEnds {
    /// The values, if elements are real numbers, there are any, and both are finite. They are never masked.
    pub(crate) values: Option<(f64, f64)>,
    pub(crate) versions: Vec<Option<Version>>,
}

/// The ends of an array of one dimension.
///
/// # Errors
/// Those of reading; [`ArrayError::TooLarge`] if the chunks have more than `most_bytes`.
pub(crate) async fn coordinate_ends(
    state: &AppState,
    array: &Arc<Array>,
    most_bytes: u64,
) -> Result<CoordinateEnds, ArrayError> {
    let metadata = array.metadata();
    let values = CfValues::unmasked(&metadata.data_type, &metadata.attributes);
    let Some(last) = metadata.shape.first().and_then(|length| length.checked_sub(1)) else {
        return Ok(CoordinateEnds::default());
    };
    if metadata.shape.len() != 1 || !values.are_real() {
        return Ok(CoordinateEnds::default());
    }
    // Both ends are one selection, so that their chunks are read together.
    let step = i64::try_from(last.max(1)).map_err(|_too_long| ArrayError::Geometry)?;
    let range = AxisRange { start: 0, count: if last == 0 { 1 } else { 2 }, step, keep: true };
    let mut limits = state.engine.read;
    limits.max_decoded_size = limits.max_decoded_size.min(most_bytes);
    let plan = Plan::new(array, Subset(vec![range]), &limits)?;
    let context = state.engine.reader.read_context(array.mount());
    let snapshot = state.engine.reader.snapshot(&plan, &context).await?;
    let versions = snapshot.versions().map(Option::<&Version>::cloned).collect();
    let mut parts = state.engine.reader.elements(snapshot, 0..plan.response_bytes(), &context);
    let mut numbers = Vec::with_capacity(2);
    while let Some(part) = parts.try_next().await? {
        values.append_numbers(&part.into_items(), &mut numbers);
    }
    let ends = numbers.first().copied().zip(numbers.last().copied());
    let values = ends.filter(|(first, last)| first.is_finite() && last.is_finite());
    Ok(CoordinateEnds { values, versions })
}

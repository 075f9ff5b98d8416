//! Which of several encodings has all elements of an array: only reading them can say.

use std::sync::Arc;

use futures::TryStreamExt;

use super::error::ExportError;
use crate::array::{ReadContext, Snapshot};
use crate::render::dataset::ElementEncoding;
use crate::services::engine::ArrayEngine;

/// The first of these encodings in which every element of a snapshot has its exact value; `None` if there is none.
///
/// # Errors
/// Failures of reading.
pub(crate) async fn first_fitting(
    engine: &ArrayEngine,
    snapshot: Snapshot,
    mut encodings: Vec<ElementEncoding>,
    trace: &Arc<ReadContext>,
) -> Result<Option<ElementEncoding>, ExportError> {
    let bytes = snapshot.plan().response_bytes();
    let mut elements = engine.reader.elements(snapshot, 0..bytes, trace);
    while let Some(part) = elements.try_next().await? {
        let keep = move || {
            encodings.retain(|encoding| encoding.encode(part.items(), &mut Vec::new()).is_ok());
            encodings
        };
        encodings = engine.cpu.run(keep).await?;
    }
    Ok(encodings.into_iter().next())
}

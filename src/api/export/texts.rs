//! Texts of an array, read whole: their lengths decide where the rest of a response is.

use std::sync::Arc;

use futures::TryStreamExt;

use super::error::ExportError;
use crate::array::{ArrayError, ReadContext, Snapshot};
use crate::render::dataset::ExportedTexts;
use crate::services::engine::ArrayEngine;

/// The texts of a snapshot.
///
/// # Errors
/// [`ArrayError::TooLarge`] if they have more than `limit_bytes`; failures of reading.
pub(crate) async fn read_texts(
    engine: &ArrayEngine,
    snapshot: Snapshot,
    limit_bytes: u64,
    trace: &Arc<ReadContext>,
) -> Result<ExportedTexts, ExportError> {
    let data_type = snapshot.plan().array().metadata().data_type.clone();
    let bytes = snapshot.plan().response_bytes();
    let mut elements = engine.reader.elements(snapshot, 0..bytes, trace);
    let mut texts = ExportedTexts::default();
    while let Some(part) = elements.try_next().await? {
        let (data_type, bytes) = (data_type.clone(), part.total_bytes().max(texts.memory_bytes()));
        let append = move || texts.append(&data_type, &part).map(|()| texts);
        texts = engine.cpu.run_or_inline(bytes, append).await??;
        check_texts(texts.memory_bytes(), limit_bytes)?;
    }
    Ok(texts)
}

/// Refuses texts of more bytes than may be put together whole.
///
/// # Errors
/// [`ArrayError::TooLarge`].
pub(crate) fn check_texts(bytes: u64, limit_bytes: u64) -> Result<(), ArrayError> {
    if bytes > limit_bytes {
        return Err(ArrayError::TooLarge {
            what: "bytes of text",
            requested: bytes.into(),
            limit: limit_bytes,
        });
    }
    Ok(())
}

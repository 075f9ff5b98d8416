//! The values of a dataset as text, written whole before the head is sent.

use futures::TryStreamExt;

use super::open_dataset::OpenDataset;
use super::sent_array::SentArray;
use crate::api::export::error::ExportError;
use crate::api::export::sources::ExportSources;
use crate::api::export::texts::{check_texts, read_texts};
use crate::array::Plan;
use crate::render::dap::{AsciiTable, dap_name};
use crate::services::state::AppState;

/// Elements whose text is written before the length is checked.
const ELEMENTS: usize = 4096;
/// The fewest bytes of a value and what separates it from others.
const LEAST_BYTES: u64 = 3;

/// The text of arrays, of up to `limit` bytes.
///
/// # Errors
/// Failures of reading; 413 if the text is longer.
pub(super) async fn ascii(
    state: &AppState,
    opened: &OpenDataset,
    leaves: &ExportSources,
    arrays: &[SentArray],
    plans: &[Plan],
    limit: u64,
) -> Result<String, ExportError> {
    let engine = &state.engine;
    let mut text = format!("Dataset: {}\n", dap_name(&opened.dataset.name));
    for ((source, array), plan) in leaves.sources.iter().zip(arrays).zip(plans) {
        let elements = source.subset.elements();
        let least = u64::try_from(elements).unwrap_or(u64::MAX).saturating_mul(LEAST_BYTES);
        check_texts(least, limit)?;
        let trace = engine.reader.read_context(source.array.mount());
        let snapshot = engine.reader.snapshot(plan, &trace).await?;
        let mut table = AsciiTable::new(&source.name, &array.shape);
        let Some(encoding) = array.encoding.clone() else {
            let texts = read_texts(engine, snapshot, limit, &trace).await?;
            let bytes = texts.memory_bytes().max(text.len() as u64);
            let write = move || {
                for one in texts.iter() {
                    table.text(one, &mut text);
                    check_texts(text.len() as u64, limit)?;
                }
                table.finish(&mut text);
                Ok::<_, ExportError>(text)
            };
            text = engine.cpu.run_or_inline(bytes, write).await??;
            continue;
        };
        let mut elements = engine.reader.elements(snapshot, 0..plan.response_bytes(), &trace);
        while let Some(part) = elements.try_next().await? {
            let (encoding, bytes) = (encoding.clone(), part.total_bytes().max(text.len() as u64));
            let write = move || {
                let mut values = Vec::new();
                for some in part.items().chunks(encoding.element_bytes().saturating_mul(ELEMENTS)) {
                    values.clear();
                    encoding.encode(some, &mut values)?;
                    table.numbers(&encoding, &values, &mut text);
                    check_texts(text.len() as u64, limit)?;
                }
                Ok::<_, ExportError>((table, text))
            };
            (table, text) = engine.cpu.run_or_inline(bytes, write).await??;
        }
        table.finish(&mut text);
    }
    check_texts(text.len() as u64, limit)?;
    Ok(text)
}

//! [`BufferedElements`]: a response whose length depends on its elements, written whole before its head is sent.

use std::sync::Arc;
use std::time::Instant;

use futures::TryStreamExt;

use super::error::ElementsError;
use crate::array::{ArrayError, ReadContext, Snapshot};
use crate::render::{Conversion, Format, RenderError, Writer};
use crate::services::engine::ArrayEngine;

/// Bytes of elements that are written as text before the length is checked. A byte becomes up to six.
const PIECE_BYTES: usize = 64 << 10;

/// How elements are written.
pub(super) struct BufferedElements<'a> {
    pub(super) engine: &'a ArrayEngine,
    pub(super) conversion: &'a Arc<Conversion>,
    pub(super) format: &'static Format,
    /// The most bytes of the response.
    pub(super) limit: u64,
}

impl BufferedElements<'_> {
    /// Bytes of the elements that are converted at a time, of this many in memory.
    pub(super) fn converted_bytes(format: &Format, bytes: u64) -> u64 {
        if format.is_text() { bytes.min(PIECE_BYTES as u64) } else { bytes }
    }

    /// The bytes of the response.
    ///
    /// # Errors
    /// Failures of reading; [`RenderError`], among them [`RenderError::TooLarge`].
    pub(super) async fn write(
        self,
        snapshot: Snapshot,
        mut writer: Box<dyn Writer>,
        trace: &Arc<ReadContext>,
    ) -> Result<Vec<u8>, ElementsError> {
        let Self { engine, conversion, format, limit } = self;
        let item_bytes = snapshot.plan().array().metadata().data_type.element_bytes();
        // Other formats have as many parts as they are written in.
        let piece_bytes = if format.is_text() { PIECE_BYTES } else { usize::MAX };
        let mut text = Vec::new();
        let bytes = snapshot.plan().response_bytes();
        let mut elements = engine.reader.elements(snapshot, 0..bytes, trace);
        while let Some(part) = elements.try_next().await? {
            let (conversion, begun) = (Arc::clone(conversion), Instant::now());
            let bytes = part.total_bytes().max(text.len() as u64);
            let write = move || {
                for piece in part.pieces(item_bytes, piece_bytes) {
                    let converted = piece.map_items(|items| conversion.try_convert(items));
                    writer.write(&converted.map_err(ArrayError::Cast)?, &mut text)?;
                    check_length(&text, limit)?;
                }
                Ok::<_, ElementsError>((writer, text))
            };
            let written = engine.cpu.run_or_inline(bytes, write).await;
            (writer, text) = written.map_err(ArrayError::from)??;
            trace.add_encode_time(begun);
        }
        let (begun, is_begun, bytes) = (Instant::now(), !text.is_empty(), text.len() as u64);
        let finish = move || {
            writer.finish(&mut text)?;
            // The unused capacity would stay in memory until the client has received everything.
            text.shrink_to_fit();
            Ok::<_, RenderError>(text)
        };
        // What is written at once may be long without elements: the lists or the header of an empty selection.
        let finished = if is_begun {
            engine.cpu.run_or_inline(bytes, finish).await
        } else {
            engine.cpu.run(finish).await
        };
        let text = finished.map_err(ArrayError::from)??;
        trace.add_encode_time(begun);
        check_length(&text, limit)?;
        Ok(text)
    }
}

/// Rejects a response that has grown over the limit.
fn check_length(text: &[u8], limit: u64) -> Result<(), RenderError> {
    let bytes = text.len() as u64;
    if bytes > limit { Err(RenderError::TooLarge { bytes, limit }) } else { Ok(()) }
}

//! [`Dap4Body`]: the chunks of a response with values, read and encoded as they are sent.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use futures::stream::{self, BoxStream, Stream};

use crate::api::export::error::ExportError;
use crate::api::export::texts::{check_texts, read_texts};
use crate::array::{ArrayError, ReadContext, Snapshot};
use crate::chunk::Elements;
use crate::codec::RunningCrc32;
use crate::error::Classify;
use crate::http::problem::Problem;
use crate::render::dap4::{ChunkWriter, dap4_error};
use crate::render::dataset::{ElementEncoding, ExportedTexts};
use crate::render::escape_invalid_utf8;
use crate::services::engine::ArrayEngine;

/// The values of one variable.
pub(super) enum Dap4Part {
    Numbers(Snapshot, Arc<ElementEncoding>),
    Texts(Snapshot),
}

/// The values of a variable that is being sent.
struct Current {
    elements: BoxStream<'static, Result<Elements, ArrayError>>,
    encoding: Arc<ElementEncoding>,
}

/// The chunks of a response.
pub(super) struct Dap4Body {
    engine: Arc<ArrayEngine>,
    trace: Arc<ReadContext>,
    parts: VecDeque<Dap4Part>,
    current: Option<Current>,
    /// The checksum of the values of the variable so far.
    checksum: RunningCrc32,
    has_checksums: bool,
    writer: ChunkWriter,
    /// Most bytes of texts of a variable.
    most_text: u64,
    is_finished: bool,
}

impl Dap4Body {
    /// A response with the values of variables, behind the metadata of them.
    pub(super) fn new(
        engine: Arc<ArrayEngine>,
        trace: Arc<ReadContext>,
        parts: VecDeque<Dap4Part>,
        described: &str,
        has_checksums: bool,
        most_text: u64,
    ) -> Self {
        let writer = ChunkWriter::new(described.as_bytes(), has_checksums);
        Self {
            engine,
            trace,
            parts,
            current: None,
            checksum: RunningCrc32::default(),
            has_checksums,
            writer,
            most_text,
            is_finished: false,
        }
    }

    /// Reads the first values.
    ///
    /// # Errors
    /// Failures of reading.
    pub(super) async fn begin(&mut self) -> Result<(), ExportError> {
        self.advance().await
    }

    /// The whole response, of which about `other_bytes` are no texts.
    ///
    /// # Errors
    /// Failures of reading; [`ArrayError::TooLarge`] with the limit of texts for more than both.
    pub(super) async fn whole(mut self, other_bytes: u64) -> Result<Bytes, ExportError> {
        let mut out = BytesMut::new();
        loop {
            while let Some(bytes) = self.writer.pop() {
                out.extend_from_slice(&bytes);
                check_texts((out.len() as u64).saturating_sub(other_bytes), self.most_text)?;
            }
            if self.is_finished {
                return Ok(out.freeze());
            }
            self.advance().await?;
        }
    }

    /// The bytes of the response. A failure becomes an error in the last chunk.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        stream::unfold(self, |mut body| async move { body.next().await.map(|bytes| (Ok(bytes), body)) })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.writer.pop() {
                // Empty data would end the response for some protocols.
                if bytes.is_empty() {
                    continue;
                }
                return Some(bytes);
            }
            if self.is_finished {
                return None;
            }
            if let Err(error) = self.advance().await {
                tracing::warn!(%error, class = error.class().as_str(), "a response of DAP4 ends with an error");
                let problem = Problem::from(error);
                self.writer.fail(&dap4_error(problem.status().as_u16(), problem.message()));
                self.is_finished = true;
            }
        }
    }

    /// Takes one step: a piece of the values of a variable, the end of a variable, the next variable, or the end.
    async fn advance(&mut self) -> Result<(), ExportError> {
        if let Some(Current { elements, encoding }) = &mut self.current {
            let Some(part) = elements.try_next().await? else {
                self.current = None;
                self.end_variable();
                return Ok(());
            };
            let (items, encoding) = (part.into_items(), Arc::clone(encoding));
            let bytes = items.len() as u64;
            return self.encode(bytes, move || Ok(encoding.encode_little(items)?)).await;
        }
        match self.parts.pop_front() {
            Some(Dap4Part::Numbers(snapshot, encoding)) => {
                let bytes = snapshot.plan().response_bytes();
                let elements = Box::pin(self.engine.reader.elements(snapshot, 0..bytes, &self.trace));
                self.current = Some(Current { elements, encoding });
                // Boxed, because it calls itself: once, for there are elements now.
                Box::pin(self.advance()).await
            }
            Some(Dap4Part::Texts(snapshot)) => {
                let texts = read_texts(&self.engine, snapshot, self.most_text, &self.trace).await?;
                let most = self.most_text;
                let bytes = texts.memory_bytes();
                self.encode(bytes, move || counted(&texts, most)).await?;
                self.end_variable();
                Ok(())
            }
            None => {
                self.writer.finish();
                self.is_finished = true;
                Ok(())
            }
        }
    }

    /// Encodes values of this many bytes and adds them to the checksum.
    async fn encode(
        &mut self,
        bytes: u64,
        encode: impl FnOnce() -> Result<Bytes, ExportError> + Send + 'static,
    ) -> Result<(), ExportError> {
        let begun = Instant::now();
        let (mut checksum, has_checksums) = (std::mem::take(&mut self.checksum), self.has_checksums);
        let work = move || {
            let bytes = encode()?;
            if has_checksums {
                checksum.update(&bytes);
            }
            Ok::<_, ExportError>((bytes, checksum))
        };
        let (bytes, checksum) = self.engine.cpu.run_or_inline(bytes, work).await??;
        self.trace.add_encode_time(begun);
        self.checksum = checksum;
        self.writer.push(bytes);
        Ok(())
    }

    fn end_variable(&mut self) {
        let checksum = std::mem::take(&mut self.checksum).sum();
        if self.has_checksums {
            self.writer.push(Bytes::copy_from_slice(&checksum.to_le_bytes()));
        }
    }
}

/// Texts, each behind its number of bytes. A text of DAP4 is UTF-8: what is not is written as it is in JSON.
///
/// # Errors
/// [`ArrayError::TooLarge`] for more bytes than there may be.
fn counted(texts: &ExportedTexts, most_bytes: u64) -> Result<Bytes, ExportError> {
    let mut out = Vec::new();
    for text in texts.iter() {
        let text = match std::str::from_utf8(text) {
            Ok(valid) => Cow::Borrowed(valid),
            Err(_) => escape_invalid_utf8(text),
        };
        out.extend_from_slice(&(text.len() as u64).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
        check_texts(out.len() as u64, most_bytes)?;
    }
    Ok(out.into())
}

//! [`StringsWriter`]: elements of variable length, put together one after the other.
//!
//! For codecs that make their elements anew. The number of elements is known from the array; the bytes of all together
//! have a limit. What the bytes mean is each codec's own business.

use super::{CodecError, buffer};
use crate::chunk::{Elements, VarSlice};

/// Spans, and the heap they point into.
pub(crate) struct StringsWriter {
    spans: Vec<u8>,
    heap: Vec<u8>,
    limit: u64,
}

impl StringsWriter {
    /// Room for so many elements, whose bytes are at most `limit` in all.
    ///
    /// # Errors
    /// [`CodecError::NoMemory`].
    pub(crate) fn new(count: u64, limit: u64) -> Result<Self, CodecError> {
        let spans = buffer::reserved(count.saturating_mul(VarSlice::BYTES as u64))?;
        Ok(Self { spans, heap: Vec::new(), limit: limit.min(u32::MAX.into()) })
    }

    /// Bytes that elements may have, without an element that has them.
    ///
    /// # Errors
    /// [`CodecError::ChunkTooLarge`] if all bytes are more than the limit; [`CodecError::NoMemory`].
    pub(crate) fn store(&mut self, text: &[u8]) -> Result<VarSlice, CodecError> {
        let bytes = self.heap.len() as u64 + text.len() as u64;
        let too_large = || CodecError::ChunkTooLarge { bytes, limit: self.limit };
        if bytes > self.limit {
            return Err(too_large());
        }
        let number = |length: usize| u32::try_from(length).map_err(|_too_long| too_large());
        let span = VarSlice { offset: number(self.heap.len())?, length: number(text.len())? };
        self.heap.try_reserve(text.len()).map_err(|_refused| CodecError::NoMemory { bytes })?;
        self.heap.extend_from_slice(text);
        Ok(span)
    }

    /// The next element: one whose bytes are stored.
    pub(crate) fn push(&mut self, span: VarSlice) {
        self.spans.extend_from_slice(&span.to_item());
    }

    /// The elements.
    pub(crate) fn finish(mut self) -> Elements {
        // What grew by doubling may be kept for long, and is weighed by its length.
        self.heap.shrink_to_fit();
        Elements::variable(self.spans.into(), self.heap.into())
    }
}

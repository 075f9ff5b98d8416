//! [`StringsWriter`]: builds an array of variable-length elements.
//!
//! For codecs whose decoded elements are not slices of the encoded bytes. The number of elements is known from the array; the
//! sum of their bytes has a limit.

use super::buffer;
use crate::chunk::{Elements, VarSlice};
use crate::codec::CodecError;

/// Slices, and the heap that they point into.
pub(crate) struct StringsWriter {
    spans: Vec<u8>,
    heap: Vec<u8>,
    limit: u64,
}

impl StringsWriter {
    /// A writer of `count` elements with at most `limit` bytes in total.
    ///
    /// # Errors
    /// [`CodecError::NoMemory`].
    pub(crate) fn new(count: u64, limit: u64) -> Result<Self, CodecError> {
        let spans = buffer::with_capacity(count.saturating_mul(VarSlice::BYTES as u64))?;
        Ok(Self { spans, heap: Vec::new(), limit: limit.min(u32::MAX.into()) })
    }

    /// Stores bytes that elements can refer to. No element refers to them yet.
    ///
    /// # Errors
    /// [`CodecError::ChunkTooLarge`] if the total exceeds the limit; [`CodecError::NoMemory`].
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

    /// Appends an element with stored bytes.
    pub(crate) fn push(&mut self, span: VarSlice) {
        self.spans.extend_from_slice(&span.to_item());
    }

    /// The elements.
    pub(crate) fn finish(mut self) -> Elements {
        // The heap may have grown by doubling, may live long in a cache, and is charged there by its length.
        self.heap.shrink_to_fit();
        Elements::variable(self.spans.into(), self.heap.into())
    }
}

//! [`BoundedWriter`]: the output buffer of a streaming decoder, which never grows beyond its limit.
//!
//! It knows no format: a decoder is a function that consumes some input, fills some output, and returns both counts.

use super::buffer;
use super::representation::Size;
use crate::codec::CodecError;

/// Progress of a decoder in one call.
pub(crate) struct StreamStep {
    /// Bytes of input consumed.
    pub(crate) consumed: usize,
    /// Bytes written to the front of the output.
    pub(crate) written: usize,
    /// Whether its stream has ended.
    pub(crate) ended: bool,
}

impl StreamStep {
    /// The step between two states of a decoder's counters, `(bytes consumed, bytes written)` each.
    pub(crate) fn between(before: (u64, u64), after: (u64, u64), ended: bool) -> Self {
        let difference =
            |after: u64, before: u64| usize::try_from(after.saturating_sub(before)).unwrap_or(usize::MAX);
        Self { consumed: difference(after.0, before.0), written: difference(after.1, before.1), ended }
    }
}

/// A buffer that is filled from the front and never grows beyond its limit.
pub(crate) struct BoundedWriter {
    codec: &'static str,
    size: Size,
    buffer: Vec<u8>,
    written: usize,
    limit: usize,
}

impl BoundedWriter {
    /// A writer for the decoded form of `encoded` bytes, which typically decode to `ratio` bytes each.
    ///
    /// The first allocation is the whole size if that is known exactly and likely to be reached. Of a mere bound it is at
    /// most four times the input. The buffer grows as needed.
    ///
    /// # Errors
    /// [`CodecError::NoMemory`].
    pub(crate) fn new(
        codec: &'static str,
        encoded: usize,
        ratio: u64,
        size: Size,
    ) -> Result<Self, CodecError> {
        let ratio = match size {
            Size::Exact(_) => ratio,
            Size::AtMost(_) | Size::Limited(_) => 4,
        };
        let first = size.max().min((encoded as u64).saturating_mul(ratio).saturating_add(1 << 10));
        let limit = usize::try_from(size.max()).unwrap_or(usize::MAX);
        Ok(Self { codec, size, buffer: buffer::zeroed(first)?, written: 0, limit })
    }

    /// Runs `decode` to the end of its stream, and returns the input after it.
    ///
    /// # Errors
    /// Errors of `decode`; [`CodecError::Corrupt`] if the stream decodes to more bytes than possible or if the input ends
    /// before the stream; [`CodecError::ChunkTooLarge`] over the limit; [`CodecError::NoMemory`].
    pub(crate) fn fill<'a>(
        &mut self,
        mut input: &'a [u8],
        mut decode: impl FnMut(&[u8], &mut [u8]) -> Result<StreamStep, CodecError>,
    ) -> Result<&'a [u8], CodecError> {
        loop {
            // Once the output is full, one spare byte distinguishes a stream that ends from one that continues.
            let mut one_too_many = [0; 1];
            let full = self.grow()?;
            let output = if full { &mut one_too_many[..] } else { self.spare() };
            let step = decode(input, output)?;
            input = input.get(step.consumed..).unwrap_or_default();
            if full && step.written > 0 {
                return Err(match self.size {
                    Size::Limited(limit) => {
                        CodecError::ChunkTooLarge { bytes: limit.saturating_add(1), limit }
                    }
                    _ => CodecError::corrupt(self.codec, "decodes to more bytes than allowed"),
                });
            }
            self.written += step.written;
            if step.ended {
                return Ok(input);
            }
            if step.consumed == 0 && step.written == 0 {
                return Err(CodecError::corrupt(self.codec, "ends too early"));
            }
        }
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> usize {
        self.written
    }

    /// The bytes written after the first `start`.
    pub(crate) fn written_since(&self, start: usize) -> &[u8] {
        self.buffer.get(start..self.written).unwrap_or_default()
    }

    /// The bytes written.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.buffer.truncate(self.written);
        // The buffer may have grown by doubling, may live long in a cache, and is charged there by its length.
        self.buffer.shrink_to_fit();
        self.buffer
    }

    /// Grows the buffer if it is full. Returns whether it is still full, which means that the limit is reached.
    fn grow(&mut self) -> Result<bool, CodecError> {
        if self.written < self.buffer.len() {
            return Ok(false);
        }
        let length = self.buffer.len().saturating_mul(2).min(self.limit);
        if length > self.buffer.len() {
            let more = length - self.buffer.len();
            let refused = |_error| CodecError::NoMemory { bytes: length as u64 };
            self.buffer.try_reserve_exact(more).map_err(refused)?;
            self.buffer.resize(length, 0);
        }
        Ok(self.written >= self.buffer.len())
    }

    fn spare(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.written..).unwrap_or_default()
    }
}

//! [`BoundedWriter`]: what a streaming decoder writes to. It is filled from the front and never grows beyond its limit.
//!
//! It knows no format: a decoder is a function that takes some input, fills some room, and says how far it came.

use super::representation::Size;
use super::{CodecError, buffer};

/// How far a decoder came.
pub(crate) struct StreamStep {
    /// Bytes of the input it is done with.
    pub(crate) consumed: usize,
    /// Bytes it put at the front of the room.
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
    buffer: Vec<u8>,
    written: usize,
    limit: usize,
}

impl BoundedWriter {
    /// Room for what `encoded` bytes are decoded to, of which a byte is likely to make `ratio`.
    ///
    /// A size known exactly is had at once, if the input is likely to make so much; of a mere bound only what
    /// four times the input is. The rest comes as it is needed.
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
            Size::AtMost(_) => 4,
        };
        let first = size.max().min((encoded as u64).saturating_mul(ratio).saturating_add(1 << 10));
        let limit = usize::try_from(size.max()).unwrap_or(usize::MAX);
        Ok(Self { codec, buffer: buffer::zeroed(first)?, written: 0, limit })
    }

    /// Runs `decode` to the end of its stream, and gives back the input behind it.
    ///
    /// # Errors
    /// What `decode` complains of; [`CodecError::Corrupt`] if the stream makes more than there may be or if the
    /// input ends before it does; [`CodecError::NoMemory`].
    pub(crate) fn fill<'a>(
        &mut self,
        mut input: &'a [u8],
        mut decode: impl FnMut(&[u8], &mut [u8]) -> Result<StreamStep, CodecError>,
    ) -> Result<&'a [u8], CodecError> {
        loop {
            // Once the output is full, one byte more tells a stream that ends from one that goes on.
            let mut one_too_many = [0; 1];
            let full = self.grow()?;
            let room = if full { &mut one_too_many[..] } else { self.room() };
            let step = decode(input, room)?;
            input = input.get(step.consumed..).unwrap_or_default();
            if full && step.written > 0 {
                return Err(CodecError::corrupt(self.codec, "decodes to more bytes than it may"));
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

    /// What was written since `start` bytes were.
    pub(crate) fn since(&self, start: usize) -> &[u8] {
        self.buffer.get(start..self.written).unwrap_or_default()
    }

    /// What was written.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.buffer.truncate(self.written);
        // What grew by doubling may be kept for long, and is weighed by its length.
        self.buffer.shrink_to_fit();
        self.buffer
    }

    /// Makes room if there is none. Whether there is still none: the limit is reached.
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

    fn room(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.written..).unwrap_or_default()
    }
}

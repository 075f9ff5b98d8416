//! The decoding of a deflated entry: piece by piece on the pool, in the memory of one piece for any length.
//!
//! The entry is decoded from its beginning to its end for every range, because its length and its CRC-32 are those of
//! the complete entry. The last piece of the range is sent only after both were checked, so that a client never
//! takes a broken entry for a complete one. The first piece is decoded before the response has a body.

use std::ops::Range;

use bytes::{Buf, Bytes};
use futures::stream::{StreamExt, TryStreamExt, once, try_unfold};

use super::ZipError;
use super::directory::ZipEntry;
use crate::codec::{CodecError, InflateProgress, Inflater};
use crate::cpu::ComputePool;
use crate::store::{StoreError, ValueBody, ValueStream};

/// Bytes that are decoded at a time.
const PIECE_BYTES: u64 = 64 << 10;

/// An entry that is being decoded.
struct InflateStream {
    cpu: ComputePool,
    encoded: ValueStream,
    /// `None` while it works on the pool, and after a failure.
    decoder: Option<Decoder>,
    /// The requested range of the value.
    wanted: Range<u64>,
    /// Bytes decoded so far.
    at: u64,
    /// Whether the complete entry was decoded and checked.
    is_over: bool,
}

/// The state that goes to the pool and back.
struct Decoder {
    inflater: Inflater,
    input: Bytes,
    /// The buffer for a piece, and how much of it is filled.
    buffer: Vec<u8>,
    filled: usize,
}

/// A range of an entry's decoded bytes; `encoded` are its bytes in the file.
pub(super) async fn inflate(
    cpu: ComputePool,
    entry: &ZipEntry<'_>,
    encoded: ValueStream,
    wanted: Range<u64>,
) -> Result<ValueBody, StoreError> {
    let inflater = Inflater::new(entry.compressed, entry.size, entry.crc).map_err(ZipError::Inflate)?;
    // One byte more than expected distinguishes a stream that ends from one that goes on.
    let decoder = Some(Decoder::new(inflater, PIECE_BYTES.min(entry.size.saturating_add(1))));
    let mut inflating = InflateStream { cpu, encoded, decoder, wanted, at: 0, is_over: false };
    let first = inflating.next().await?.unwrap_or_default();
    if inflating.is_over {
        return Ok(ValueBody::Bytes(first));
    }
    let rest = try_unfold(inflating, |mut inflating| async move {
        Ok(inflating.next().await?.map(|piece| (piece, inflating)))
    });
    Ok(ValueBody::Stream(once(async { Ok(first) }).chain(rest).boxed()))
}

impl InflateStream {
    /// The next piece of the requested range.
    async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        let mut last = None;
        while !self.is_over {
            let start = self.at;
            let piece = self.decode().await?;
            self.at = start.saturating_add(piece.len() as u64);
            let requested = self.wanted.start.max(start)..self.wanted.end.min(self.at);
            if requested.is_empty() {
                continue;
            }
            // Both lie in the piece, which is short.
            let place = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
            let piece = piece.slice(place(requested.start)..place(requested.end));
            if self.at < self.wanted.end {
                return Ok(Some(piece));
            }
            last = Some(piece);
        }
        Ok(last)
    }

    /// The next piece of the entry.
    async fn decode(&mut self) -> Result<Bytes, StoreError> {
        let mut decoder = self.decoder.take().ok_or_else(|| corrupt("could not be decoded"))?;
        loop {
            let buffer_bytes = decoder.buffer.len() as u64;
            let filled = self.cpu.run_or_inline(buffer_bytes, move || decoder.filled()).await;
            decoder = filled.map_err(ZipError::Cpu)?.map_err(ZipError::Inflate)?;
            let has_ended = decoder.inflater.has_ended();
            if !has_ended && decoder.is_full() {
                break;
            }
            let Some(input) = self.encoded.try_next().await? else {
                decoder.inflater.finish().map_err(ZipError::Inflate)?;
                self.is_over = true;
                break;
            };
            decoder.input = input;
        }
        let piece = decoder.piece();
        self.decoder = Some(decoder);
        Ok(piece)
    }
}

impl Decoder {
    fn new(inflater: Inflater, buffer_bytes: u64) -> Self {
        let buffer = vec![0; usize::try_from(buffer_bytes).unwrap_or_default()];
        Self { inflater, input: Bytes::new(), buffer, filled: 0 }
    }

    fn is_full(&self) -> bool {
        self.filled >= self.buffer.len()
    }

    /// Decodes until the buffer is full, or the available input is used up.
    fn filled(mut self) -> Result<Self, CodecError> {
        loop {
            if self.is_full() && !self.inflater.has_ended() {
                return Ok(self);
            }
            // Input after the end is an error.
            let buffer = self.buffer.get_mut(self.filled..).unwrap_or_default();
            let InflateProgress { consumed, written } = self.inflater.inflate(&self.input, buffer)?;
            self.input.advance(consumed);
            self.filled += written;
            if consumed == 0 && written == 0 {
                return Ok(self);
            }
        }
    }

    /// Takes the decoded bytes, and leaves a new buffer.
    fn piece(&mut self) -> Bytes {
        let mut piece = std::mem::take(&mut self.buffer);
        piece.truncate(self.filled);
        self.filled = 0;
        if !self.inflater.has_ended() {
            self.buffer = vec![0; usize::try_from(PIECE_BYTES).unwrap_or_default()];
        }
        piece.into()
    }
}

fn corrupt(reason: &str) -> StoreError {
    ZipError::Inflate(CodecError::corrupt("deflate", reason)).into()
}

//! A deflated entry as it is decoded: piece by piece on the pool, in memory for one piece whatever its length.
//!
//! Whatever part is asked for, the entry is decoded from its beginning to its end, as its length and its CRC-32 are of all of
//! it. The last piece that was asked for is given out when both have been found right, so that what is broken never looks
//! whole. The first is decoded before there is a body at all.

use std::ops::Range;

use bytes::{Buf, Bytes};
use futures::stream::{StreamExt, TryStreamExt, once, try_unfold};

use super::ZipError;
use super::directory::Entry;
use crate::codec::{CodecError, InflateProgress, Inflater};
use crate::cpu::ComputePool;
use crate::store::{StoreError, ValueBody, ValueStream};

/// Bytes that are decoded at a time.
const PIECE_BYTES: u64 = 64 << 10;

/// An entry on its way.
struct Inflating {
    cpu: ComputePool,
    encoded: ValueStream,
    /// On the pool while it works; not there any more once it has failed.
    decoder: Option<Decoder>,
    /// Which of the value's bytes are asked for.
    wanted: Range<u64>,
    /// Bytes decoded so far.
    at: u64,
    /// Whether all of the entry was decoded, and found right.
    is_over: bool,
}

/// What goes to the pool and back.
struct Decoder {
    inflater: Inflater,
    input: Bytes,
    /// Room for a piece, and how much of it is filled.
    room: Vec<u8>,
    filled: usize,
}

/// A range of an entry's bytes, of which `encoded` are those in the file.
pub(super) async fn inflated(
    cpu: ComputePool,
    entry: &Entry<'_>,
    encoded: ValueStream,
    wanted: Range<u64>,
) -> Result<ValueBody, StoreError> {
    let inflater = Inflater::new(entry.compressed, entry.size, entry.crc).map_err(ZipError::Inflate)?;
    // One byte more than there should be tells a stream that ends from one that goes on.
    let decoder = Some(Decoder::new(inflater, PIECE_BYTES.min(entry.size.saturating_add(1))));
    let mut inflating = Inflating { cpu, encoded, decoder, wanted, at: 0, is_over: false };
    let first = inflating.next().await?.unwrap_or_default();
    if inflating.is_over {
        return Ok(ValueBody::Bytes(first));
    }
    let rest = try_unfold(inflating, |mut inflating| async move {
        Ok(inflating.next().await?.map(|piece| (piece, inflating)))
    });
    Ok(ValueBody::Stream(once(async { Ok(first) }).chain(rest).boxed()))
}

impl Inflating {
    /// The next piece of what is asked for.
    async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        let mut last = None;
        while !self.is_over {
            let start = self.at;
            let piece = self.decode().await?;
            self.at = start.saturating_add(piece.len() as u64);
            let asked = self.wanted.start.max(start)..self.wanted.end.min(self.at);
            if asked.is_empty() {
                continue;
            }
            // Both lie in the piece, which is short.
            let place = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
            let piece = piece.slice(place(asked.start)..place(asked.end));
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
            let room_bytes = decoder.room.len() as u64;
            let filled = self.cpu.run_or_inline(room_bytes, move || decoder.filled()).await;
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
    fn new(inflater: Inflater, room_bytes: u64) -> Self {
        let room = vec![0; usize::try_from(room_bytes).unwrap_or_default()];
        Self { inflater, input: Bytes::new(), room, filled: 0 }
    }

    fn is_full(&self) -> bool {
        self.filled >= self.room.len()
    }

    /// Decodes until the room is full, or the input at hand is used up.
    fn filled(mut self) -> Result<Self, CodecError> {
        loop {
            if self.is_full() && !self.inflater.has_ended() {
                return Ok(self);
            }
            // Of input behind the end, it complains.
            let room = self.room.get_mut(self.filled..).unwrap_or_default();
            let InflateProgress { consumed, written } = self.inflater.inflate(&self.input, room)?;
            self.input.advance(consumed);
            self.filled += written;
            if consumed == 0 && written == 0 {
                return Ok(self);
            }
        }
    }

    /// What was decoded; from then on, there is new room.
    fn piece(&mut self) -> Bytes {
        let mut piece = std::mem::take(&mut self.room);
        piece.truncate(self.filled);
        self.filled = 0;
        if !self.inflater.has_ended() {
            self.room = vec![0; usize::try_from(PIECE_BYTES).unwrap_or_default()];
        }
        piece.into()
    }
}

fn corrupt(reason: &str) -> StoreError {
    ZipError::Inflate(CodecError::corrupt("deflate", reason)).into()
}

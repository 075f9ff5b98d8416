//! [`Frame`]: a c-blosc 1 frame whose every number has been checked (c-blosc, `README_CHUNK_FORMAT.rst`).
//!
//! The library trusts the frame in places where it must not: it does not know the length of its input, a `BloscLZ` match of
//! 2 GiB overflows its counters, and it leaves blocks that do not split evenly partly unwritten. A frame with any of these is
//! corrupt. Nothing is decompressed here.

use std::ops::Range;

use crate::codec::CodecError;

pub(super) const NAME: &str = "blosc";

/// Most bytes a frame can hold.
pub(super) const MAX_BYTES: u64 = 2_147_483_631;

const HEADER_BYTES: usize = 16;
/// The version of the format that c-blosc 1 writes.
const VERSION: u8 = 2;
const FLAG_BYTE_SHUFFLE: u8 = 0x01;
const FLAG_STORED: u8 = 0x02;
const FLAG_BIT_SHUFFLE: u8 = 0x04;
const FLAG_FUTURE: u8 = 0x08;
const FLAG_WHOLE_BLOCKS: u8 = 0x10;
/// The compressor's number is in the flags' upper bits: 0 is `BloscLZ`, 1 LZ4, 2 Snappy, 3 zlib, 4 zstd.
const FORMAT_SHIFT: u8 = 5;
const BLOSCLZ: u8 = 0;
const LZ4: u8 = 1;
const SNAPPY: u8 = 2;
const LAST_FORMAT: u8 = 4;
/// Blocks are split by byte plane only for types of at most this many bytes …
const MAX_SPLITS: usize = 16;
/// … and if each part has at least this many.
const MIN_SPLIT_BYTES: usize = 128;
/// The largest block the library accepts.
const MAX_BLOCK_BYTES: usize = 715_827_542;
/// The most compressed bytes in which a `BloscLZ` match cannot overflow: each may add 255 to its 32-bit
/// length.
const MAX_BLOSCLZ_BYTES: usize = 8 << 20;

/// A checked frame.
pub(super) struct Frame<'a> {
    layout: Layout<'a>,
    stored: bool,
}

/// A block of a checked frame, in one stream or in several of equal length when decoded.
pub(super) struct Block<'a> {
    /// The streams, each after its length.
    pub(super) bytes: &'a [u8],
    /// Bytes of each stream when decoded.
    pub(super) stream_bytes: usize,
    /// The number of streams.
    pub(super) streams: usize,
}

impl<'a> Block<'a> {
    /// The encoded streams. A stream as long as its decoded form is not compressed.
    pub(super) fn streams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.bytes;
        (0..self.streams).map_while(move |_| {
            let (stream, behind) = rest.get(4..)?.split_at_checked(number(rest, 0)?)?;
            rest = behind;
            Some(stream)
        })
    }
}

fn corrupt(reason: &str) -> CodecError {
    CodecError::corrupt(NAME, reason)
}

impl<'a> Frame<'a> {
    /// Checks a frame, which must fill `bytes`.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`].
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(corrupt("shorter than a header"));
        };
        let &[version, _, flags, type_bytes, ..] = header;
        if version != VERSION {
            return Err(corrupt("not of version 2 of the format"));
        }
        match number(bytes, 12) {
            Some(length) if length == bytes.len() => {}
            Some(length) if (HEADER_BYTES..bytes.len()).contains(&length) => {
                return Err(CodecError::trailing(NAME));
            }
            _ => return Err(corrupt("the header declares another length")),
        }
        let (Some(decoded_bytes), Some(block_bytes)) = (number(bytes, 4), number(bytes, 8)) else {
            return Err(corrupt("a length is negative"));
        };
        if decoded_bytes as u64 > MAX_BYTES {
            return Err(corrupt("the decoded length is out of range"));
        }
        let stored = decoded_bytes == 0 || flags & FLAG_STORED != 0;
        let layout = Layout { bytes, decoded_bytes, block_bytes, type_bytes: usize::from(type_bytes), flags };
        if decoded_bytes == 0 {
            return Ok(Self { layout, stored });
        }
        if flags & FLAG_FUTURE != 0 {
            return Err(corrupt("flags of a later format are set"));
        }
        if stored {
            return if decoded_bytes.checked_add(HEADER_BYTES) == Some(bytes.len()) {
                Ok(Self { layout, stored })
            } else {
                Err(corrupt("the number of stored bytes differs from the header"))
            };
        }
        layout.check()?;
        Ok(Self { layout, stored })
    }

    /// Bytes of the decoded content.
    pub(super) fn decoded_bytes(&self) -> usize {
        self.layout.decoded_bytes
    }

    /// Decoded bytes of each block but the last; not 0 in a compressed frame.
    pub(super) fn block_bytes(&self) -> usize {
        self.layout.block_bytes
    }

    /// Bytes of a unit that is shuffled.
    pub(super) fn type_bytes(&self) -> usize {
        self.layout.type_bytes
    }

    /// Whether the streams are LZ4.
    pub(super) fn is_lz4(&self) -> bool {
        self.layout.flags >> FORMAT_SHIFT == LZ4
    }

    /// Whether blocks are shuffled by bytes; `None` if they are shuffled by bits.
    pub(super) fn is_shuffled(&self) -> Option<bool> {
        (self.layout.flags & FLAG_BIT_SHUFFLE == 0)
            .then_some(self.layout.flags & FLAG_BYTE_SHUFFLE != 0 && self.layout.type_bytes > 1)
    }

    /// The block with this number, if the frame is compressed and has that many.
    pub(super) fn block(&self, index: usize) -> Option<Block<'a>> {
        if self.stored { None } else { self.layout.block(index) }
    }

    /// The range of the content in the frame, if it is not compressed.
    pub(super) fn stored(&self) -> Option<Range<usize>> {
        self.stored.then(|| HEADER_BYTES..HEADER_BYTES + self.layout.decoded_bytes)
    }

    pub(super) fn as_bytes(&self) -> &'a [u8] {
        self.layout.bytes
    }

    /// Most bytes of scratch memory that the library allocates to decompress the frame.
    pub(super) fn scratch_bytes(&self) -> u64 {
        // Two blocks, and four bytes for each part of one.
        2 * self.layout.decoded_bytes.min(self.layout.block_bytes) as u64 + 4 * u64::from(u8::MAX)
    }
}

/// The number at `at`: a little-endian `i32` that is not negative.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    usize::try_from(i32::from_le_bytes(*bytes)).ok()
}

/// The fields of the header that determine where the blocks are.
struct Layout<'a> {
    bytes: &'a [u8],
    decoded_bytes: usize,
    block_bytes: usize,
    type_bytes: usize,
    flags: u8,
}

impl<'a> Layout<'a> {
    fn check(&self) -> Result<(), CodecError> {
        if self.type_bytes == 0 {
            return Err(corrupt("the element size is 0"));
        }
        if self.block_bytes == 0 || self.block_bytes > self.decoded_bytes.min(MAX_BLOCK_BYTES) {
            return Err(corrupt("the block size is out of range"));
        }
        let format = self.flags >> FORMAT_SHIFT;
        if format > LAST_FORMAT {
            return Err(corrupt("the compressor is unknown"));
        }
        let blocks = self.decoded_bytes.div_ceil(self.block_bytes);
        let Some(table) = self.bytes.get(HEADER_BYTES..).and_then(|rest| rest.get(..blocks.checked_mul(4)?))
        else {
            return Err(corrupt("the table of blocks is truncated"));
        };
        for index in 0..table.len() / 4 {
            let block = self.block(index).ok_or_else(|| corrupt("a block begins outside the frame"))?;
            if !self.block_bytes.is_multiple_of(block.streams) {
                return Err(corrupt("the blocks do not split evenly"));
            }
            check_streams(block.bytes, block.stream_bytes, block.streams, format)?;
        }
        Ok(())
    }

    /// The block with this number, and how it is split; the last may be shorter than the others.
    fn block(&self, index: usize) -> Option<Block<'a>> {
        let blocks = self.decoded_bytes.div_ceil(self.block_bytes);
        let table_end = HEADER_BYTES.checked_add(blocks.checked_mul(4)?)?;
        let start = (index < blocks).then(|| number(self.bytes, HEADER_BYTES + 4 * index))??;
        let bytes = self.bytes.get(start..).filter(|_| start >= table_end)?;
        let leftover = self.decoded_bytes % self.block_bytes;
        if index + 1 == blocks && leftover > 0 {
            return Some(Block { bytes, stream_bytes: leftover, streams: 1 });
        }
        let is_split = self.flags & FLAG_WHOLE_BLOCKS == 0
            && self.type_bytes <= MAX_SPLITS
            && self.block_bytes / self.type_bytes >= MIN_SPLIT_BYTES;
        let streams = if is_split { self.type_bytes } else { 1 };
        Some(Block { bytes, stream_bytes: self.block_bytes / streams, streams })
    }
}

/// Checks the parts of a block: each a length and as many bytes, which decode to `part_bytes`.
fn check_streams(mut block: &[u8], part_bytes: usize, count: usize, format: u8) -> Result<(), CodecError> {
    for _ in 0..count {
        let part = number(block, 0).and_then(|length| block.get(4..)?.split_at_checked(length));
        let Some((part, rest)) = part else { return Err(corrupt("a block is truncated")) };
        block = rest;
        if part.len() == part_bytes {
            continue; // Stored.
        }
        // Only Snappy may store a compressed form that is longer than its content.
        let most = if format == SNAPPY { part_bytes + part_bytes / 6 + 32 } else { part_bytes };
        if part.len() > most {
            return Err(corrupt("a block is larger than its content"));
        }
        if format == BLOSCLZ && part.len() > MAX_BLOSCLZ_BYTES {
            return Err(corrupt("a BloscLZ block has more than 8 MiB"));
        }
    }
    Ok(())
}

//! Decodes a part of a frame for less than the whole: LZ4 blocks are decoded no further than the part goes.
//!
//! Only for LZ4 blocks that are not shuffled by bits. Bytes after the part in its block are not checked.

use std::ops::Range;

use super::ffi;
use super::frame::{Block, Frame, NAME};
use crate::chunk::Runs;
use crate::codec::CodecError;
use crate::codec::support::buffer;

/// Factor by which decoding that stops early is slower for each byte.
const SLOWER: usize = 3;

/// Decodes these bytes of a compressed frame's content; `None` if that needs the whole frame.
///
/// # Errors
/// [`CodecError::Corrupt`], [`CodecError::NoMemory`].
pub(super) fn decode(frame: &Frame<'_>, part: &Runs) -> Result<Option<Vec<u8>>, CodecError> {
    let Some(is_shuffled) = frame.is_shuffled().filter(|_| frame.is_lz4()) else { return Ok(None) };
    // Shuffled units are decoded whole, so the part must begin and end at a unit's boundary.
    let unit = if is_shuffled { frame.type_bytes() } else { 1 };
    let block_bytes = frame.block_bytes();
    if ![part.start, part.length, part.stride, block_bytes].iter().all(|bytes| bytes.is_multiple_of(unit)) {
        return Ok(None);
    }
    let mut decoded = buffer::with_capacity(part.bytes() as u64)?;
    let mut planes: Option<(usize, Planes)> = None;
    for run in part.each() {
        let mut at = run.start;
        while at < run.end {
            let (index, start) = (at / block_bytes, at % block_bytes);
            let block_start = at - start;
            let own = match &planes {
                Some((own, planes)) if *own == index => planes,
                _ => {
                    let Some(block) = frame.block(index) else { return Ok(None) };
                    let length = block.stream_bytes * block.streams;
                    let end = (part.end_before(block_start + length) - block_start).min(length);
                    // Bytes after the last whole unit are stored after the planes.
                    if !end.is_multiple_of(unit) || end <= start {
                        return Ok(None);
                    }
                    &planes.insert((index, Planes::decode(&block, unit, end)?)).1
                }
            };
            let end = own.end.min(run.end - block_start);
            if end <= start {
                return Ok(None);
            }
            own.interleave(start / unit..end / unit, &mut decoded);
            at = block_start + end;
        }
    }
    Ok(Some(decoded))
}

/// The decoded but still shuffled beginning of a block: one plane for each byte of a unit, one after another.
struct Planes {
    bytes: Vec<u8>,
    /// Bytes from the start of one plane to the next.
    plane_stride: usize,
    unit: usize,
    /// Bytes of the block that are available.
    end: usize,
}

impl Planes {
    fn decode(block: &Block<'_>, unit: usize, end: usize) -> Result<Self, CodecError> {
        let plane_bytes = block.stream_bytes * block.streams / unit;
        // If each plane has its own stream, each is needed only as far as the part goes.
        let is_split = block.streams == unit;
        let wanted = if is_split { end / unit } else { (unit - 1) * plane_bytes + end / unit };
        // Decoding that stops early is slower for each byte.
        let is_whole = wanted > block.stream_bytes / SLOWER;
        let wanted = if is_whole { block.stream_bytes } else { wanted };
        let mut bytes = buffer::zeroed((wanted * block.streams) as u64)?;
        for (output, stream) in bytes.chunks_exact_mut(wanted.max(1)).zip(block.streams()) {
            if stream.len() < block.stream_bytes {
                ffi::decompress_lz4(stream, output, is_whole)?;
            } else if let Some(stored) = stream.get(..wanted) {
                output.copy_from_slice(stored);
            }
        }
        let plane_stride = if is_split { wanted } else { plane_bytes };
        if bytes.len() < (unit - 1) * plane_stride + end / unit {
            return Err(CodecError::corrupt(NAME, "a block is truncated"));
        }
        Ok(Self { bytes, plane_stride, unit, end })
    }

    /// Appends these units.
    fn interleave(&self, units: Range<usize>, decoded: &mut Vec<u8>) {
        let plane = |number: usize| {
            let start = number * self.plane_stride;
            self.bytes.get(start + units.start..start + units.end).unwrap_or_default()
        };
        let start = decoded.len();
        decoded.resize(start + self.unit * units.len(), 0);
        let to = decoded.get_mut(start..).unwrap_or_default();
        match self.unit {
            1 => to.copy_from_slice(plane(0)),
            2 => {
                let bytes = plane(0).iter().zip(plane(1));
                to.as_chunks_mut().0.iter_mut().zip(bytes).for_each(|(unit, (&a, &b))| *unit = [a, b]);
            }
            4 => {
                let bytes = plane(0).iter().zip(plane(1)).zip(plane(2).iter().zip(plane(3)));
                let units = to.as_chunks_mut().0.iter_mut().zip(bytes);
                units.for_each(|(unit, ((&a, &b), (&c, &d)))| *unit = [a, b, c, d]);
            }
            unit => {
                for number in 0..unit {
                    let places = to.iter_mut().skip(number).step_by(unit);
                    places.zip(plane(number)).for_each(|(place, &byte)| *place = byte);
                }
            }
        }
    }
}

//! A part of a frame, for less than the whole takes: of LZ4, no block is decoded further than the part goes.
//!
//! Only blocks of LZ4 that are not shuffled by bits; of the others, whole blocks are decoded by the library. What is
//! behind the part in its block is not looked at.

use std::ops::Range;

use super::super::CodecError;
use super::super::buffer;
use super::NAME;
use super::ffi;
use super::frame::{Block, Frame};

/// Decodes these bytes of what a compressed frame holds; `None` if it takes all of the frame.
///
/// # Errors
/// [`CodecError::Corrupt`], [`CodecError::NoMemory`].
pub(super) fn decode(frame: &Frame<'_>, part: &Range<usize>) -> Result<Option<Vec<u8>>, CodecError> {
    let Some(is_shuffled) = frame.is_shuffled().filter(|_| frame.is_lz4()) else { return Ok(None) };
    // Units are decoded whole, and a part begins and ends with an element.
    let unit = if is_shuffled { frame.type_bytes() } else { 1 };
    let is_in_units = |at: &usize| at.is_multiple_of(unit);
    if ![part.start, part.end, frame.block_bytes()].iter().all(is_in_units) {
        return Ok(None);
    }
    let mut decoded = buffer::reserved(part.len() as u64)?;
    let mut at = part.start;
    while at < part.end {
        let (index, start) = (at / frame.block_bytes(), at % frame.block_bytes());
        let Some(block) = frame.block(index) else { return Ok(None) };
        let block_bytes = block.stream_bytes * block.streams;
        let end = block_bytes.min(start + (part.end - at));
        // What is left over behind the last unit stands behind the planes.
        if end <= start || end > block_bytes / unit * unit {
            return Ok(None);
        }
        decode_block(&block, unit, start..end, &mut decoded)?;
        at += end - start;
    }
    Ok(Some(decoded))
}

/// Appends these bytes of a block.
fn decode_block(
    block: &Block<'_>,
    unit: usize,
    part: Range<usize>,
    decoded: &mut Vec<u8>,
) -> Result<(), CodecError> {
    // A block is `unit` planes one after the other, each of a byte of every unit.
    let plane_bytes = block.stream_bytes * block.streams / unit;
    let (first, end) = (part.start / unit, part.end / unit);
    // Where the part ends in the last plane; in every plane, where each has a stream of its own.
    let is_split = block.streams == unit;
    let wanted = if is_split { end } else { (unit - 1) * plane_bytes + end };
    let wanted = wanted.min(block.stream_bytes);
    let streams = if is_split { unit } else { block.streams };
    let mut scratch = buffer::zeroed((wanted * streams) as u64)?;
    for (room, stream) in scratch.chunks_exact_mut(wanted.max(1)).zip(block.streams()) {
        if stream.len() == block.stream_bytes {
            let stored = stream.get(..wanted).unwrap_or_default();
            room.copy_from_slice(stored);
        } else {
            ffi::decompress_lz4(stream, room)?;
        }
    }
    let apart = if is_split { wanted } else { plane_bytes };
    let planes: Option<Vec<&[u8]>> =
        (0..unit).map(|plane| scratch.get(plane * apart + first..plane * apart + end)).collect();
    let planes = planes.ok_or_else(|| CodecError::corrupt(NAME, "a block is cut off"))?;
    join(&planes, decoded);
    Ok(())
}

/// Appends units of which each plane has a byte. All planes are of one length.
fn join(planes: &[&[u8]], units: &mut Vec<u8>) {
    let length = planes.first().map_or(0, |plane| plane.len());
    let start = units.len();
    units.resize(start + planes.len() * length, 0);
    let to = units.get_mut(start..).unwrap_or_default();
    match *planes {
        [a] => to.copy_from_slice(a),
        [a, b] => {
            let units = to.as_chunks_mut().0.iter_mut().zip(a.iter().zip(b));
            units.for_each(|(unit, (&a, &b))| *unit = [a, b]);
        }
        [a, b, c, d] => {
            let units = to.as_chunks_mut().0.iter_mut().zip(a.iter().zip(b).zip(c.iter().zip(d)));
            units.for_each(|(unit, ((&a, &b), (&c, &d)))| *unit = [a, b, c, d]);
        }
        _ => {
            for (at, unit) in to.chunks_exact_mut(planes.len().max(1)).enumerate() {
                for (byte, plane) in unit.iter_mut().zip(planes) {
                    *byte = plane.get(at).copied().unwrap_or_default();
                }
            }
        }
    }
}

//! [`Overlay`]: the new bytes of a stored chunk: what is stored, with parts laid over it.
//!
//! Of a shard (Zarr codecs, "sharding-indexed"), only the inner chunks that a part touches are decoded and encoded, at any depth;
//! the others are copied as they are stored, and the new shard has no gaps. Stored bytes are hostile: what is copied is bounded by
//! the longest legal shard, however often an index names the same bytes.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

use super::chunk_part::ChunkPart;
use crate::chunk::{AssembleError, ChunkGrid, Elements, ElementsMut};
use crate::codec::{CodecChain, CodecError, IndexLocation, Sharded};
use crate::metadata::{ArrayMetadata, DataType};

/// The codec that errors about stored shards name.
const SHARDING: &str = "sharding_indexed";

/// What all chunks of an array have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overlay<'a> {
    data_type: &'a DataType,
    fill: &'a [u8],
}

impl<'a> Overlay<'a> {
    /// For the chunks of an array.
    pub(super) fn of(array: &'a ArrayMetadata) -> Self {
        Self { data_type: &array.data_type, fill: array.fill_value.as_bytes() }
    }

    /// The bytes of a chunk of this shape: those that are stored now, or the fill value, with the parts laid over them in their
    /// order. `None` if `leaves_out_fill` and all of its elements are the fill value now.
    ///
    /// # Errors
    /// [`CodecError`] if the stored bytes do not decode or the elements cannot be encoded.
    pub(super) fn encode(
        &self,
        chain: &CodecChain,
        shape: &[u64],
        stored: Option<Bytes>,
        parts: &[ChunkPart],
        leaves_out_fill: bool,
    ) -> Result<Option<Bytes>, CodecError> {
        // What a part covers completely need not be read.
        let first = parts.iter().rposition(|part| part.covers(shape));
        let stored = stored.filter(|_| first.is_none());
        let parts = parts.get(first.unwrap_or(0)..).unwrap_or_default();
        if let Some(sharding) = chain.sharding() {
            return self.shard(chain, sharding, shape, stored.as_ref(), parts, leaves_out_fill);
        }
        let elements = self.elements(chain, shape, stored, parts)?;
        if leaves_out_fill && elements.are_all(self.data_type, self.fill) {
            return Ok(None);
        }
        chain.encode(elements).map(Some)
    }

    /// The elements of a chunk that is decoded as a whole.
    fn elements(
        &self,
        chain: &CodecChain,
        shape: &[u64],
        stored: Option<Bytes>,
        parts: &[ChunkPart],
    ) -> Result<Elements, CodecError> {
        chain.check_encodable()?;
        let bytes = chain.decoded_bytes();
        let length = usize::try_from(bytes).map_err(|_too_long| CodecError::NoMemory { bytes })?;
        if let [only] = parts
            && only.region.is_identity(shape, self.data_type.element_bytes())
            && length <= only.elements.items().len()
        {
            return Ok(only.elements.slice(0..length));
        }
        let failed = |error| match error {
            AssembleError::Geometry => CodecError::encode("codecs", "a part does not fit its chunk"),
            AssembleError::HeapTooLarge => {
                CodecError::ChunkTooLarge { bytes: u32::MAX.into(), limit: u32::MAX.into() }
            }
            AssembleError::NoMemory => CodecError::NoMemory { bytes },
        };
        let mut elements = if let Some(stored) = stored {
            ElementsMut::of(chain.decode(stored)?, self.data_type, u32::MAX.into())
        } else {
            let mut items = Vec::new();
            items.try_reserve_exact(length).map_err(|_refused| CodecError::NoMemory { bytes })?;
            items.resize(length, 0);
            let empty = if self.data_type.is_variable() {
                ElementsMut::variable(items, u32::MAX.into())
            } else {
                ElementsMut::fixed(items, self.data_type.element_bytes())
            };
            empty.filled_with(self.fill).map_err(failed)?
        };
        for part in parts {
            elements.place(&part.elements, shape, &part.region).map_err(failed)?;
        }
        Ok(elements.freeze())
    }

    /// The bytes of a shard.
    fn shard(
        &self,
        chain: &CodecChain,
        sharding: &dyn Sharded,
        shape: &[u64],
        stored: Option<&Bytes>,
        parts: &[ChunkPart],
        leaves_out_fill: bool,
    ) -> Result<Option<Bytes>, CodecError> {
        let touched = touched(sharding, shape, parts);
        let chunks =
            sharding.chunks_per_shard().iter().try_fold(1, |count: u64, &along| count.checked_mul(along));
        let chunks = chunks.and_then(|chunks| usize::try_from(chunks).ok());
        let chunks = chunks.ok_or(CodecError::NoMemory { bytes: u64::MAX })?;
        let index = match stored {
            Some(stored) => {
                let shard_bytes = stored.len() as u64;
                let encoded = slice(stored, &sharding.index_range(shard_bytes)?)?;
                Some(sharding.decode_index(&encoded, shard_bytes)?)
            }
            None => None,
        };
        let index_bytes = usize::try_from(sharding.index_bytes())
            .map_err(|_too_long| CodecError::NoMemory { bytes: sharding.index_bytes() })?;
        let mut shard = match sharding.index_location() {
            IndexLocation::Start => vec![0; index_bytes],
            IndexLocation::End => Vec::new(),
        };
        let mut entries: Vec<Option<Range<u64>>> = Vec::new();
        entries.try_reserve_exact(chunks).map_err(|_refused| CodecError::NoMemory { bytes: u64::MAX })?;
        for inner_chunk in 0..chunks {
            let range = index.as_ref().and_then(|index| index.get(inner_chunk));
            let known = match (stored, &range) {
                (Some(stored), Some(range)) => Some(slice(stored, range)?),
                _ => None,
            };
            let encoded = match touched.get(&inner_chunk) {
                None => known,
                Some(parts) => {
                    self.encode(sharding.inner_chain(), sharding.inner_shape(), known, parts, true)?
                }
            };
            let Some(encoded) = encoded else {
                entries.push(None);
                continue;
            };
            let start = shard.len() as u64;
            let end = start.saturating_add(encoded.len() as u64);
            if end.saturating_add(sharding.index_bytes()) > chain.encoded_limit() {
                return Err(CodecError::corrupt(
                    SHARDING,
                    "the inner chunks are longer than any that were written",
                ));
            }
            shard.try_reserve(encoded.len()).map_err(|_refused| CodecError::NoMemory { bytes: end })?;
            shard.extend_from_slice(&encoded);
            entries.push(Some(start..end));
        }
        if leaves_out_fill && entries.iter().all(Option::is_none) {
            return Ok(None);
        }
        let index = sharding.encode_index(&entries)?;
        match (sharding.index_location(), shard.get_mut(..index.len())) {
            (IndexLocation::Start, Some(place)) if index.len() == index_bytes => {
                place.copy_from_slice(&index);
            }
            (IndexLocation::End, _) => shard.extend_from_slice(&index),
            (IndexLocation::Start, _) => {
                return Err(CodecError::encode(SHARDING, "the index has another size than it was bound to"));
            }
        }
        Ok(Some(shard.into()))
    }
}

/// The parts of each inner chunk that a part touches, by its number in C order.
fn touched(sharding: &dyn Sharded, shape: &[u64], parts: &[ChunkPart]) -> BTreeMap<usize, Vec<ChunkPart>> {
    let order = sharding.order();
    let shape: Vec<u64> = order.iter().filter_map(|&axis| shape.get(axis).copied()).collect();
    let grid = ChunkGrid::regular(&shape, sharding.inner_shape());
    let mut touched: BTreeMap<usize, Vec<ChunkPart>> = BTreeMap::new();
    for part in parts {
        for (coords, region) in part.region.transpose(order).split_by_chunks(grid.axes()) {
            let along = coords.iter().zip(sharding.chunks_per_shard());
            let number = along
                .fold(0_u64, |number, (coord, along)| number.saturating_mul(*along).saturating_add(*coord));
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            touched.entry(number).or_default().push(ChunkPart { region, elements: part.elements.clone() });
        }
    }
    touched
}

/// A range of a shard, which the index has checked.
fn slice(shard: &Bytes, range: &Range<u64>) -> Result<Bytes, CodecError> {
    let within = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
    match within.filter(|(start, end)| start <= end && *end <= shard.len()) {
        Some((start, end)) => Ok(shard.slice(start..end)),
        None => Err(CodecError::corrupt(SHARDING, "an inner chunk lies outside the shard")),
    }
}

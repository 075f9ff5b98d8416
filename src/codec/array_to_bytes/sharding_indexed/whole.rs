//! Whole shards: all inner chunks decoded into one array, and one array encoded as a shard.
//!
//! Used for writing, for reads of whole shards, and for chains with a codec after the sharding codec. The chain has compared
//! the shard's decoded size with the limit before.

use std::ops::Range;

use bytes::Bytes;

use super::sharding::{NAME, Sharding, count};
use crate::chunk::strided::{Dimension, copy, strides};
use crate::chunk::{AssembleError, Elements, ElementsMut};
use crate::codec::CodecError;
use crate::codec::contract::ArrayToBytes;
use crate::codec::shard_index::IndexLocation;
use crate::codec::support::buffer;
use crate::codec::support::representation::Size;

/// The shapes and strides of a shard in memory.
struct Geometry {
    element_bytes: usize,
    inner_shape: Vec<usize>,
    inner_strides: Vec<isize>,
    shard_strides: Vec<isize>,
    chunks_per_shard: Vec<usize>,
}

impl Geometry {
    /// `None` if the shard does not fit the address space.
    fn new(sharding: &Sharding) -> Option<Self> {
        let lengths =
            |shape: &[u64]| shape.iter().map(|&edge| usize::try_from(edge).ok()).collect::<Option<Vec<_>>>();
        let element_bytes = sharding.shard.data_type.element_bytes();
        let shard_shape = lengths(&sharding.shard.shape)?;
        let inner_shape = lengths(&sharding.inner_shape)?;
        Some(Self {
            element_bytes,
            inner_strides: strides(&inner_shape, element_bytes),
            shard_strides: strides(&shard_shape, element_bytes),
            inner_shape,
            chunks_per_shard: lengths(&sharding.chunks_per_shard)?,
        })
    }

    /// The offset in the shard, in bytes, of the inner chunk with this C-order number.
    fn origin(&self, mut inner_chunk: usize) -> usize {
        let mut origin = 0;
        for axis in (0..self.chunks_per_shard.len()).rev() {
            let along = self.chunks_per_shard[axis];
            origin +=
                (inner_chunk % along) * self.inner_shape[axis] * self.shard_strides[axis].unsigned_abs();
            inner_chunk /= along;
        }
        origin
    }

    fn dimensions(&self, to: &[isize], from: &[isize]) -> Vec<Dimension> {
        let strides = to.iter().zip(from);
        let dimensions = self.inner_shape.iter().zip(strides);
        dimensions.map(|(&length, (&to, &from))| Dimension { length, to, from }).collect()
    }

    /// Copies an inner chunk into the shard.
    fn copy_in(
        &self,
        inner_chunk: usize,
        inner: &Elements,
        shard: &mut ElementsMut,
    ) -> Result<(), AssembleError> {
        let dimensions = self.dimensions(&self.shard_strides, &self.inner_strides);
        shard.copy(dimensions, self.origin(inner_chunk), inner, 0)
    }

    /// Copies the items of an inner chunk out of those of the shard.
    fn copy_out(&self, inner_chunk: usize, shard: &[u8], inner: &mut [u8]) {
        let dimensions = self.dimensions(&self.inner_strides, &self.shard_strides);
        copy(dimensions, self.element_bytes, (inner, 0), (shard, self.origin(inner_chunk)));
    }
}

/// A range of a value as a range in memory.
fn memory_range(range: &Range<u64>) -> Option<Range<usize>> {
    Some(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}

impl Sharding {
    fn geometry(&self) -> Result<Geometry, CodecError> {
        Geometry::new(self).ok_or(CodecError::NoMemory { bytes: u64::MAX })
    }

    fn shard_bytes(&self) -> Result<u64, CodecError> {
        self.shard.bytes().ok_or(CodecError::NoMemory { bytes: u64::MAX })
    }

    /// A shard whose elements are all the fill value.
    fn filled(&self) -> Result<ElementsMut, CodecError> {
        let (fill, bytes) = (self.shard.fill_value.as_bytes(), self.shard_bytes()?);
        if self.shard.data_type.is_variable() {
            let shard = ElementsMut::variable(buffer::zeroed(bytes)?, self.limit);
            return shard.filled_with(fill).map_err(|error| self.assembly_error(error));
        }
        Ok(ElementsMut::fixed(buffer::repeated(fill, bytes)?, self.shard.data_type.element_bytes()))
    }

    fn assembly_error(&self, error: AssembleError) -> CodecError {
        let limit = self.limit;
        match error {
            AssembleError::HeapTooLarge => {
                CodecError::ChunkTooLarge { bytes: limit.saturating_add(1), limit }
            }
            AssembleError::NoMemory => CodecError::NoMemory { bytes: limit },
            AssembleError::Geometry => CodecError::corrupt(NAME, "an inner chunk does not fit the shard"),
        }
    }
}

impl ArrayToBytes for Sharding {
    fn encoded_size(&self) -> Size {
        self.encoded_size
    }

    /// Decodes a whole shard.
    fn decode(&self, encoded: Bytes) -> Result<Elements, CodecError> {
        let shard_bytes = encoded.len() as u64;
        let index = memory_range(&self.range_of_index(shard_bytes)?).and_then(|range| encoded.get(range));
        let index = self.decode_entries(index.unwrap_or_default(), shard_bytes)?;
        let geometry = self.geometry()?;
        let mut decoded = self.filled()?;
        for inner_chunk in 0..index.len() {
            let Some(range) = index.get(inner_chunk).as_ref().and_then(memory_range) else { continue };
            let inner = self.inner_chain.decode(encoded.slice(range))?;
            geometry
                .copy_in(inner_chunk, &inner, &mut decoded)
                .map_err(|error| self.assembly_error(error))?;
        }
        Ok(decoded.freeze())
    }

    /// Encodes a whole shard: the inner chunks one after another. Inner chunks that consist of the fill value, bit for bit,
    /// are left out.
    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        let geometry = self.geometry()?;
        let chunks = count(&self.chunks_per_shard).and_then(|chunks| usize::try_from(chunks).ok());
        let chunks = chunks.ok_or(CodecError::NoMemory { bytes: u64::MAX })?;
        let mut encoded = match self.index_location {
            IndexLocation::Start => buffer::zeroed(self.index_bytes)?,
            IndexLocation::End => Vec::new(),
        };
        let mut entries = Vec::new();
        for inner_chunk in 0..chunks {
            let mut inner = buffer::zeroed(self.inner_chain.decoded_bytes())?;
            geometry.copy_out(inner_chunk, decoded.items(), &mut inner);
            // Variable-length data is not copied: the slices of the inner chunk point into the shard's heap.
            let inner = Elements::variable(inner.into(), decoded.heap().clone());
            if inner.are_all(&self.shard.data_type, self.shard.fill_value.as_bytes()) {
                entries.push(None);
                continue;
            }
            let inner = self.inner_chain.encode(inner)?;
            let start = encoded.len() as u64;
            encoded.try_reserve(inner.len()).map_err(|_refused| CodecError::NoMemory { bytes: start })?;
            encoded.extend_from_slice(&inner);
            entries.push(Some(start..encoded.len() as u64));
        }
        let index = self.encode_entries(&entries)?;
        match self.index_location {
            IndexLocation::End => encoded.extend_from_slice(&index),
            IndexLocation::Start => match encoded.get_mut(..index.len()) {
                Some(reserved) => reserved.copy_from_slice(&index),
                None => {
                    return Err(CodecError::encode(NAME, "the index has another size than it was bound to"));
                }
            },
        }
        Ok(Bytes::from(encoded))
    }
}

//! [`CodecChain`]: the bound codecs of a chunk, and how a chunk is decoded and encoded by them.
//!
//! Zarr core 3.1, "Codecs". Decoding runs the codecs backwards; encoding runs them forwards. A chain knows codecs only by
//! the traits of their stages; [`Sharded`] is the one trait that shows more, so that readers can fetch parts of a shard.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::chain_id::part_id;
use super::contract::{ArrayToArray, ArrayToBytes, BytesToBytes, PartialArrayDecode, PartialBytesDecode};
use super::error::CodecError;
use super::limits::FETCH_SLACK_BYTES;
use super::shard_index::{IndexLocation, ShardIndex};
use super::support::buffer;
use super::support::representation::Size;
use crate::chunk::{Elements, Runs};

/// The name in errors about the chain itself.
pub(super) const NAME: &str = "codecs";

/// A part is decoded on its own if it has at most this many …
const MAX_PART_NUMERATOR: u64 = 3;
/// … of this many parts of a chunk.
const MAX_PART_DENOMINATOR: u64 = 4;

/// A bound sharding codec, for readers that fetch parts of a shard.
///
/// *Shard space* is the codec's input: the chunk's dimensions after the `transpose` codecs before it.
pub trait Sharded: fmt::Debug + Send + Sync {
    /// For each dimension of shard space, the dimension of the chunk: `shard_pos[i] = chunk_pos[order[i]]`.
    fn order(&self) -> &[usize];
    /// The shape of an inner chunk in elements, in shard space.
    fn inner_shape(&self) -> &[u64];
    /// Number of inner chunks along each dimension of shard space.
    fn chunks_per_shard(&self) -> &[u64];
    /// The chain of an inner chunk, which may itself be sharded.
    fn inner_chain(&self) -> &Arc<CodecChain>;
    /// Where the index is stored.
    fn index_location(&self) -> IndexLocation;
    /// Size of the encoded index in bytes.
    fn index_bytes(&self) -> u64;
    /// The byte range of the index in a shard of the given length.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`] if the shard is shorter than its index.
    fn index_range(&self, shard_bytes: u64) -> Result<Range<u64>, CodecError>;
    /// Decodes the index, given as [`Sharded::index_bytes`] bytes, of a shard of `shard_bytes` bytes.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`], also if an entry points outside the shard or into the index.
    fn decode_index(&self, encoded: &[u8], shard_bytes: u64) -> Result<ShardIndex, CodecError>;
    /// Encodes an index, in [`Sharded::index_bytes`] bytes: the range of each inner chunk in the shard, in C order; absent
    /// inner chunks are `None`.
    ///
    /// # Errors
    /// Those of [`CodecChain::encode`].
    fn encode_index(&self, entries: &[Option<Range<u64>>]) -> Result<Bytes, CodecError>;
}

/// A bound sharding codec, for its own chain.
pub(crate) trait ShardingCodec: ArrayToBytes + Sharded {
    /// Sets [`Sharded::order`], which the codecs before this one determine.
    fn set_order(&mut self, order: Vec<usize>);
    /// The chain of the index.
    fn index_chain(&self) -> &CodecChain;
}

/// A bound codec from an array to bytes. Sharding codecs are apart because parts of their values can be read.
#[derive(Debug)]
pub(crate) enum BoundArrayToBytes {
    Whole(Box<dyn ArrayToBytes>),
    Sharding(Box<dyn ShardingCodec>),
}

impl BoundArrayToBytes {
    pub(super) fn get(&self) -> &dyn ArrayToBytes {
        match self {
            Self::Whole(codec) => codec.as_ref(),
            Self::Sharding(codec) => codec.as_ref(),
        }
    }

    fn sharding(&self) -> Option<&dyn ShardingCodec> {
        match self {
            Self::Whole(_) => None,
            Self::Sharding(codec) => Some(codec.as_ref()),
        }
    }
}

/// A chain of codecs bound to a data type, a chunk shape and a fill value. It decodes whole chunks, or a part of each chunk
/// ([`CodecChain::part`]).
#[derive(Debug)]
pub struct CodecChain {
    pub(super) codecs: Arc<BoundCodecs>,
    /// The bytes of the decoded items to return, if not all.
    pub(super) part: Option<Runs>,
    pub(super) id: u64,
}

/// The bound codecs of a chain.
#[derive(Debug)]
pub(super) struct BoundCodecs {
    pub(super) decoded_bytes: u64,
    /// Largest number of bytes between two codecs, apart from the decoded elements.
    pub(super) between_bytes: u64,
    pub(super) limit: u64,
    pub(super) arrays: Vec<Box<dyn ArrayToArray>>,
    pub(super) array_to_bytes: BoundArrayToBytes,
    /// Each with the size of its decoded bytes.
    pub(super) bytes: Vec<(Box<dyn BytesToBytes>, Size)>,
    pub(super) encoded_size: Size,
    /// Whether inner chunks of an encoded chunk can be read on their own.
    pub(super) partial: bool,
    /// The name of an unknown codec that a reader need not understand, according to the document.
    pub(super) skipped: Option<String>,
}

impl CodecChain {
    /// The chain that decodes only these bytes of the chunk's items, and returns them one run after the other. `None` if that
    /// would take about as long as decoding all. The runs must begin and end at an element's boundary.
    ///
    /// The rest of the chunk may stay undecoded, so errors in it may go unnoticed. Checksums are still verified.
    #[must_use]
    pub fn part(&self, items: Runs) -> Option<Self> {
        let codecs = &self.codecs;
        let is_part = items.bytes() > 0
            && items.bytes() as u64 <= codecs.decoded_bytes / MAX_PART_DENOMINATOR * MAX_PART_NUMERATOR
            && items.end() as u64 <= codecs.decoded_bytes
            && (items.count == 1 || items.stride >= items.length);
        if !is_part || self.part.is_some() || codecs.partial_decoders().is_none() {
            return None;
        }
        let id = part_id(self.id, &items);
        Some(Self { codecs: Arc::clone(codecs), part: Some(items), id })
    }

    /// Bytes of the decoded chunk's items: the product of the chunk shape × bytes of an element; or those of the part. The
    /// heap of variable-length elements is not included, since its size is unknown before decoding.
    #[must_use]
    pub fn decoded_bytes(&self) -> u64 {
        self.part.as_ref().map_or(self.codecs.decoded_bytes, |part| part.bytes() as u64)
    }

    /// Bytes that decoding may need in addition to the encoded chunk: those of the whole chunk's items, and the largest
    /// number between two codecs.
    #[must_use]
    pub fn working_bytes(&self) -> u64 {
        self.codecs.decoded_bytes.saturating_add(self.codecs.between_bytes)
    }

    /// Largest possible size of an encoded chunk in bytes. Readers fetch no more.
    ///
    /// It is exact for uncompressed chunks. With compressors it is generous, because encoders differ: twice the decoded
    /// bytes and 1 KiB for the first compressor, a sixteenth and 1 KiB for each after it, twice the sum of the inner chunks
    /// and the index for a shard, and 64 KiB on top. With compressors it is never more than twice the largest chunk and
    /// 64 KiB.
    #[must_use]
    pub fn encoded_limit(&self) -> u64 {
        match self.codecs.encoded_size {
            Size::Exact(bytes) => bytes,
            Size::AtMost(bytes) | Size::Limited(bytes) => bytes.saturating_add(FETCH_SLACK_BYTES),
        }
    }

    /// The identity of this chain within the process, for cache keys: a 64-bit hash of codecs, data type, chunk shape, fill
    /// value and part. Equal inputs have equal ids.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Decodes a chunk to its elements: C order, canonical form, items of exactly [`CodecChain::decoded_bytes`].
    ///
    /// # Errors
    /// [`CodecError::Corrupt`] if the bytes are not a chunk of this chain; [`CodecError::ChunkTooLarge`];
    /// [`CodecError::NoMemory`].
    pub fn decode(&self, encoded: Bytes) -> Result<Elements, CodecError> {
        self.codecs.check_limit()?;
        match &self.part {
            None => self.codecs.decode(encoded),
            Some(part) => self.codecs.decode_part(encoded, part),
        }
    }

    /// Encodes a chunk's elements (C order, canonical form).
    ///
    /// # Errors
    /// [`CodecError::Encode`] if there are not exactly the bytes of a whole chunk;
    /// [`CodecError::Unsupported`] if the chain contains a codec that was skipped;
    /// [`CodecError::ChunkTooLarge`]; [`CodecError::NoMemory`].
    pub fn encode(&self, elements: Elements) -> Result<Bytes, CodecError> {
        self.check_encodable()?;
        self.codecs.encode(elements)
    }

    /// Checks that chunks can be encoded.
    ///
    /// # Errors
    /// [`CodecError::Unsupported`] if the chain contains a codec that was skipped; [`CodecError::ChunkTooLarge`].
    pub fn check_encodable(&self) -> Result<(), CodecError> {
        self.codecs.check_limit()?;
        match self.skipped() {
            Some(name) => Err(CodecError::unsupported(name)),
            None => Ok(()),
        }
    }

    /// The sharding codec, if inner chunks can be read on their own: it is the array→bytes codec, with nothing but
    /// `transpose` before it and nothing after it.
    #[must_use]
    pub fn sharding(&self) -> Option<&dyn Sharded> {
        self.codecs
            .array_to_bytes
            .sharding()
            .filter(|_| self.codecs.partial)
            .map(|codec| codec as &dyn Sharded)
    }

    pub(super) fn encoded_size(&self) -> Size {
        self.codecs.encoded_size
    }

    /// A codec that was skipped, in this chain or inside its shards.
    fn skipped(&self) -> Option<&str> {
        let inner = self.codecs.array_to_bytes.sharding();
        let inner =
            inner.and_then(|codec| codec.inner_chain().skipped().or_else(|| codec.index_chain().skipped()));
        self.codecs.skipped.as_deref().or(inner)
    }
}

impl BoundCodecs {
    fn check_limit(&self) -> Result<(), CodecError> {
        let (bytes, limit) = (self.decoded_bytes, self.limit);
        if bytes > limit { Err(CodecError::ChunkTooLarge { bytes, limit }) } else { Ok(()) }
    }

    fn decode(&self, encoded: Bytes) -> Result<Elements, CodecError> {
        let mut bytes = encoded;
        for (codec, size) in self.bytes.iter().rev() {
            bytes = codec.decode(bytes, *size)?;
        }
        let mut elements = self.array_to_bytes.get().decode(bytes)?;
        for codec in self.arrays.iter().rev() {
            elements = codec.decode(elements)?;
        }
        Ok(elements)
    }

    /// The partial decoders of the last two codecs to decode, if both have one and no array→array codec follows.
    fn partial_decoders(&self) -> Option<(&dyn PartialArrayDecode, &dyn PartialBytesDecode)> {
        let ((codec, _), true) = (self.bytes.first()?, self.arrays.is_empty()) else { return None };
        Some((self.array_to_bytes.get().partial()?, codec.partial()?))
    }

    fn decode_part(&self, encoded: Bytes, part: &Runs) -> Result<Elements, CodecError> {
        let (Some((items, codec)), Some(((_, size), behind))) =
            (self.partial_decoders(), self.bytes.split_first())
        else {
            return self.decode(encoded)?.map_items(|items| buffer::gather(items, part));
        };
        let mut bytes = encoded;
        for (codec, size) in behind.iter().rev() {
            bytes = codec.decode(bytes, *size)?;
        }
        let bytes = codec.decode_partial(bytes, *size, part)?;
        Size::Exact(part.bytes() as u64).check(NAME, bytes.len())?;
        items.decode_partial(bytes)
    }

    fn encode(&self, elements: Elements) -> Result<Bytes, CodecError> {
        if elements.items().len() as u64 != self.decoded_bytes {
            let (given, expected) = (elements.items().len(), self.decoded_bytes);
            return Err(CodecError::encode(NAME, format!("given {given} bytes instead of {expected}")));
        }
        let mut elements = elements;
        for codec in &self.arrays {
            elements = codec.encode(elements)?;
        }
        let mut bytes = self.array_to_bytes.get().encode(elements)?;
        for (codec, _) in &self.bytes {
            bytes = codec.encode(bytes)?;
        }
        Ok(bytes)
    }
}

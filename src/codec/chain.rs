//! [`CodecChain`]: a document's codecs, bound (Zarr core 3.1, "Codecs").
//!
//! Binding walks the codecs in encoding order and threads what each is given to the next; decoding runs
//! backwards with nothing left to check but the bytes. Nothing here knows what any codec does.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use serde_json::Value;

use super::CodecError;
use super::buffer;
use super::config::Config;
use super::registry::{
    ArrayToArray, BindContext, BoundBytes, BytesToBytes, CodecFactory, PartialArrayDecode,
    PartialBytesDecode, lookup,
};
use super::representation::{Representation, Size};
use super::sharding_indexed::Sharding;
use crate::chunk::{Elements, Runs};
use crate::metadata::{CodecMetadata, DataType, FillValue};

/// The name under which complaints about the chain itself are raised.
const NAME: &str = "codecs";

/// What a reader may fetch beyond the bound of the codecs, where they have one.
const FETCH_SLACK_BYTES: u64 = 64 << 10;

/// A part is worth decoding on its own if it has no more than so many …
const MOST_PARTS: u64 = 3;
/// … of so many parts of a chunk.
const PART_OF: u64 = 4;

/// Limits on what a chain may be asked to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodecLimits {
    /// Largest decoded chunk (the outermost, so a whole shard for sharded arrays only if it must be decoded
    /// whole), in bytes.
    pub chunk_bytes: u64,
    /// Most inner chunks in a shard.
    pub shard_chunks: u64,
    /// Deepest nesting of shards in shards.
    pub sharding_depth: usize,
    /// Most codecs in one chain: that of an array, of inner chunks, of an index. Those inside `conditional` count too.
    pub codecs: usize,
}

impl CodecLimits {
    /// The most bytes that may stand between two codecs, whatever an encoder may have made of them.
    pub(super) fn between_bytes(&self) -> u64 {
        self.chunk_bytes.saturating_mul(2).saturating_add(FETCH_SLACK_BYTES)
    }
}

impl Default for CodecLimits {
    fn default() -> Self {
        Self { chunk_bytes: 512 << 20, shard_chunks: 1 << 24, sharding_depth: 3, codecs: 16 }
    }
}

/// A chain of codecs bound to a data type, a chunk shape and a fill value; or one that decodes a part of such a chunk.
#[derive(Debug)]
pub struct CodecChain {
    codecs: Arc<Codecs>,
    /// The bytes of the decoded items that are wanted, if not all are.
    part: Option<Runs>,
    id: u64,
}

/// The codecs of a chain, bound.
#[derive(Debug)]
struct Codecs {
    decoded_bytes: u64,
    /// The most bytes that stand between two codecs, beside those of the decoded elements.
    between_bytes: u64,
    limit: u64,
    arrays: Vec<Box<dyn ArrayToArray>>,
    array_to_bytes: BoundBytes,
    /// Each with the size of what it decodes to.
    bytes: Vec<(Box<dyn BytesToBytes>, Size)>,
    encoded_size: Size,
    /// Whether parts of an encoded chunk can be read.
    partial: bool,
    /// An unknown codec that the document says a reader need not understand.
    skipped: Option<String>,
}

impl CodecChain {
    /// Binds a document's codecs.
    ///
    /// A codec of an unknown name that need not be understood is passed over; such a chain decodes and does
    /// not encode.
    ///
    /// # Errors
    /// [`CodecError`]: unknown codecs, bad configurations, wrong order, limits. A sharded chunk that can be
    /// read in parts may be larger than the limit if its inner chunks are not.
    pub fn bind(
        codecs: &[CodecMetadata],
        data_type: &DataType,
        chunk_shape: &[u64],
        fill_value: &FillValue,
        limits: &CodecLimits,
    ) -> Result<Self, CodecError> {
        let chunk = Representation {
            shape: chunk_shape.to_vec(),
            data_type: data_type.clone(),
            fill_value: fill_value.clone(),
        };
        Self::bind_within(codecs, chunk, limits, 0)
    }

    /// Binds codecs inside `depth` shards.
    pub(super) fn bind_within(
        codecs: &[CodecMetadata],
        chunk: Representation,
        limits: &CodecLimits,
        depth: usize,
    ) -> Result<Self, CodecError> {
        let most = limits.codecs;
        let too_many = || CodecError::invalid(NAME, format!("more than {most} codecs"));
        if codecs.len() > most {
            return Err(too_many());
        }
        if !chunk.data_type.is_variable() && chunk.fill_value.as_bytes().len() != chunk.data_type.item_bytes()
        {
            return Err(CodecError::invalid(NAME, "the fill value has not the size of an element"));
        }
        let id = identity(codecs, &chunk);
        let too_large = |bytes| CodecError::ChunkTooLarge { bytes, limit: limits.chunk_bytes };
        let decoded_bytes = chunk.bytes().ok_or(too_large(u64::MAX))?;
        let mut binding = Binding::new(chunk, decoded_bytes);
        for codec in codecs {
            binding.add(codec, limits, depth)?;
        }
        let Binding { size, arrays, widest, array_to_bytes, bytes, order, skipped, .. } = binding;
        // Those inside others as well: what may stand between two of many grows with each.
        let inside: usize = bytes.iter().map(|(codec, _)| codec.inside()).sum();
        if codecs.len().saturating_add(inside) > most {
            return Err(too_many());
        }
        let Some(mut array_to_bytes) = array_to_bytes else {
            return Err(CodecError::invalid(NAME, "no codec makes bytes of the array"));
        };
        let partial = match (&mut array_to_bytes, order) {
            (BoundBytes::Sharding(sharding), Some(order)) if bytes.is_empty() => {
                sharding.set_order(order);
                true
            }
            (BoundBytes::Sharding(_) | BoundBytes::Whole(_), _) => false,
        };
        if decoded_bytes > limits.chunk_bytes && !partial {
            return Err(too_large(decoded_bytes));
        }
        let limit = limits.chunk_bytes;
        let codecs = Codecs {
            decoded_bytes,
            between_bytes: between_bytes(&bytes).max(widest),
            limit,
            arrays,
            array_to_bytes,
            bytes,
            encoded_size: size,
            partial,
            skipped,
        };
        Ok(Self { codecs: Arc::new(codecs), part: None, id })
    }

    /// The chain that decodes no more than these bytes of the chunk's items, which it gives one after the other; `None`
    /// if that would take about as long as to decode all of them. The runs must begin and end with an element.
    ///
    /// What stands behind the part in a chunk may be left undecoded, and what is wrong with it is not found then; bytes
    /// that have a checksum are compared with it all the same.
    #[must_use]
    pub fn part(&self, items: Runs) -> Option<Self> {
        let codecs = &self.codecs;
        let is_part = items.bytes() > 0
            && items.bytes() as u64 <= codecs.decoded_bytes / PART_OF * MOST_PARTS
            && items.end() as u64 <= codecs.decoded_bytes
            && (items.count == 1 || items.stride >= items.length);
        if !is_part || self.part.is_some() || codecs.in_parts().is_none() {
            return None;
        }
        let id = KEYS.hash_one((self.id, &items));
        Some(Self { codecs: Arc::clone(codecs), part: Some(items), id })
    }

    /// Bytes of the chunk's items when decoded: product of the chunk shape × bytes of an element; or those of the part.
    /// Of elements of variable length, what stands in the heap is not counted: nobody knows before.
    #[must_use]
    pub fn decoded_bytes(&self) -> u64 {
        self.part.as_ref().map_or(self.codecs.decoded_bytes, |part| part.bytes() as u64)
    }

    /// Bytes that decoding may take beside the encoded ones: those of the whole chunk's items, and the most that stand
    /// between two codecs.
    #[must_use]
    pub fn working_bytes(&self) -> u64 {
        self.codecs.decoded_bytes.saturating_add(self.codecs.between_bytes)
    }

    /// The most bytes an encoded chunk may have: what a reader may fetch before it must give up.
    ///
    /// Exact for uncompressed chunks. Behind compressors it is generous, because encoders differ: twice the
    /// decoded bytes and 1 KiB for the first compressor, a sixteenth and 1 KiB for each behind it, twice the
    /// sum of the inner chunks and the index for a shard, and 64 KiB on top. Behind compressors it is never more than
    /// twice the largest chunk and 64 KiB.
    #[must_use]
    pub fn encoded_limit(&self) -> u64 {
        match self.codecs.encoded_size {
            Size::Exact(bytes) => bytes,
            Size::AtMost(bytes) => bytes.saturating_add(FETCH_SLACK_BYTES),
        }
    }

    /// A number for this chain while the process lives: equal for chains bound from equal codecs, data type,
    /// chunk shape and fill value, different for others but for the chance of a 64-bit hash. Of use as part
    /// of a cache key.
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
    /// [`CodecError::Unsupported`] if the chain holds a codec that was passed over;
    /// [`CodecError::ChunkTooLarge`]; [`CodecError::NoMemory`].
    pub fn encode(&self, elements: Elements) -> Result<Bytes, CodecError> {
        self.codecs.check_limit()?;
        if let Some(name) = self.skipped() {
            return Err(CodecError::unsupported(name));
        }
        self.codecs.encode(elements)
    }

    /// The sharding codec, if parts of an encoded chunk can be read through its index: it is the array→bytes
    /// codec, only `transpose` stands before it and nothing after it.
    #[must_use]
    pub fn sharding(&self) -> Option<&Sharding> {
        self.codecs.array_to_bytes.sharding().filter(|_| self.codecs.partial)
    }

    pub(super) fn encoded_size(&self) -> Size {
        self.codecs.encoded_size
    }

    /// A codec that was passed over, in this chain or inside its shards.
    fn skipped(&self) -> Option<&str> {
        let inner = self.codecs.array_to_bytes.sharding();
        let inner = inner.and_then(|sharding| sharding.chains().find_map(Self::skipped));
        self.codecs.skipped.as_deref().or(inner)
    }
}

impl Codecs {
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

    /// What decodes parts: the last two codecs to decode, where nothing but these moves an element.
    fn in_parts(&self) -> Option<(&dyn PartialArrayDecode, &dyn PartialBytesDecode)> {
        let ((codec, _), true) = (self.bytes.first()?, self.arrays.is_empty()) else { return None };
        Some((self.array_to_bytes.get().in_parts()?, codec.in_parts()?))
    }

    fn decode_part(&self, encoded: Bytes, part: &Runs) -> Result<Elements, CodecError> {
        let (Some((items, codec)), Some(((_, size), behind))) = (self.in_parts(), self.bytes.split_first())
        else {
            return self.decode(encoded)?.map_items(|items| buffer::cut(items, part));
        };
        let mut bytes = encoded;
        for (codec, size) in behind.iter().rev() {
            bytes = codec.decode(bytes, *size)?;
        }
        let bytes = codec.decode_part(bytes, *size, part)?;
        Size::Exact(part.bytes() as u64).check(NAME, bytes.len())?;
        items.decode_part(bytes)
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

/// A chain in the making.
struct Binding {
    /// What the next codec is given, as an array; once there are bytes, what they were made of.
    array: Representation,
    /// What the next codec is given, in bytes.
    size: Size,
    arrays: Vec<Box<dyn ArrayToArray>>,
    /// Bytes of the largest array that codecs make, if it is larger than the chunk.
    widest: u64,
    array_to_bytes: Option<BoundBytes>,
    bytes: Vec<(Box<dyn BytesToBytes>, Size)>,
    /// For each dimension of `array`, the dimension of the chunk it is, while the codecs only move elements.
    order: Option<Vec<usize>>,
    skipped: Option<String>,
}

impl Binding {
    fn new(chunk: Representation, decoded_bytes: u64) -> Self {
        let order = Some((0..chunk.shape.len()).collect());
        let (arrays, bytes) = (Vec::new(), Vec::new());
        let size = Size::Exact(decoded_bytes);
        Self { array: chunk, size, arrays, widest: 0, array_to_bytes: None, bytes, order, skipped: None }
    }

    fn add(&mut self, codec: &CodecMetadata, limits: &CodecLimits, depth: usize) -> Result<(), CodecError> {
        let Some(kind) = lookup(&codec.name) else {
            if codec.must_understand {
                return Err(CodecError::unsupported(&codec.name));
            }
            self.skipped.get_or_insert_with(|| codec.name.clone());
            return Ok(());
        };
        let config = Config::new(codec);
        let context = BindContext { input: &self.array, size: self.size, limits, depth };
        match (kind, &self.array_to_bytes) {
            (CodecFactory::ArrayToArray(bind), None) => {
                let (codec, output) = bind(&config, &context)?;
                self.order = self.order.take().and_then(|order| compose(&order, codec.order()?));
                let bytes = output
                    .bytes()
                    .ok_or(CodecError::ChunkTooLarge { bytes: u64::MAX, limit: limits.chunk_bytes })?;
                // What only moves elements may stand before a shard that is never decoded whole.
                if bytes > limits.chunk_bytes && codec.order().is_none() {
                    return Err(CodecError::ChunkTooLarge { bytes, limit: limits.chunk_bytes });
                }
                if bytes > self.size.max() {
                    self.widest = self.widest.max(bytes);
                }
                self.size = Size::Exact(bytes);
                self.array = output;
                self.arrays.push(codec);
            }
            (CodecFactory::ArrayToBytes(bind), None) => {
                let codec = bind(&config, &context)?;
                self.size = codec.get().encoded_size();
                self.array_to_bytes = Some(codec);
            }
            (CodecFactory::BytesToBytes(bind), Some(_)) => {
                let most = limits.between_bytes();
                let decoded = self.size.within(most);
                let codec = bind(&config, &BindContext { size: decoded, ..context })?;
                self.size = codec.encoded_size(decoded).within(most);
                if self.size.max() > most {
                    return Err(CodecError::ChunkTooLarge { bytes: self.size.max(), limit: most });
                }
                self.bytes.push((codec, decoded));
            }
            (CodecFactory::ArrayToArray(_) | CodecFactory::ArrayToBytes(_), Some(_)) => {
                return Err(config.invalid("stands behind the codec that makes bytes of the array"));
            }
            (CodecFactory::BytesToBytes(_), None) => {
                return Err(config.invalid("stands before any codec that makes bytes of the array"));
            }
        }
        Ok(())
    }
}

/// The most bytes that stand between two of these codecs. Those that the first of them decodes to are, if their number is
/// known, the elements' own.
fn between_bytes(codecs: &[(Box<dyn BytesToBytes>, Size)]) -> u64 {
    let sizes = codecs.iter().enumerate().map(|(place, (codec, size))| {
        let own = match size {
            Size::Exact(_) if place == 0 => 0,
            Size::Exact(bytes) | Size::AtMost(bytes) => *bytes,
        };
        own.max(codec.between_bytes(*size))
    });
    sizes.max().unwrap_or(0)
}

/// The order of two transpositions, one after the other.
fn compose(first: &[usize], then: &[usize]) -> Option<Vec<usize>> {
    then.iter().map(|&axis| first.get(axis).copied()).collect()
}

/// The keys of the hash behind [`CodecChain::id`], made anew by each process: nobody can make two documents collide on
/// purpose.
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The hash behind [`CodecChain::id`].
fn identity(codecs: &[CodecMetadata], chunk: &Representation) -> u64 {
    let mut hasher = KEYS.build_hasher();
    codecs.len().hash(&mut hasher);
    for codec in codecs {
        codec.name.hash(&mut hasher);
        codec.must_understand.hash(&mut hasher);
        hash_members(&codec.configuration, &mut hasher);
    }
    (&chunk.data_type, &chunk.shape, &chunk.fill_value).hash(&mut hasher);
    hasher.finish()
}

/// Hashes JSON so that the order of members does not matter.
fn hash_json(value: &Value, hasher: &mut impl Hasher) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Value::Null => {}
        Value::Bool(flag) => flag.hash(hasher),
        Value::Number(number) => number.to_string().hash(hasher),
        Value::String(text) => text.hash(hasher),
        Value::Array(values) => {
            values.len().hash(hasher);
            for value in values {
                hash_json(value, hasher);
            }
        }
        Value::Object(members) => hash_members(members, hasher),
    }
}

fn hash_members(members: &serde_json::Map<String, Value>, hasher: &mut impl Hasher) {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    sorted.len().hash(hasher);
    for (name, value) in sorted {
        name.hash(hasher);
        hash_json(value, hasher);
    }
}

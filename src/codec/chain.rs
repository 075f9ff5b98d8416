//! [`CodecChain`]: a document's codecs, bound.

use bytes::Bytes;

use super::CodecError;
use super::sharding_indexed::Sharding;
use crate::metadata::{CodecMetadata, DataType, FillValue};

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
}

impl Default for CodecLimits {
    fn default() -> Self {
        Self { chunk_bytes: 512 << 20, shard_chunks: 1 << 24, sharding_depth: 3 }
    }
}

/// A chain of codecs bound to a data type, a chunk shape and a fill value.
#[derive(Debug)]
pub struct CodecChain;

impl CodecChain {
    /// Binds a document's codecs.
    ///
    /// # Errors
    /// [`CodecError`]: unknown codecs, bad configurations, wrong order, limits.
    pub fn bind(
        _codecs: &[CodecMetadata],
        _data_type: DataType,
        _chunk_shape: &[u64],
        _fill_value: &FillValue,
        _limits: &CodecLimits,
    ) -> Result<Self, CodecError> {
        Err(CodecError::Unsupported("any".to_owned()))
    }

    /// Bytes of the chunk when decoded: product of the chunk shape × bytes of an element.
    #[must_use]
    pub fn decoded_bytes(&self) -> u64 {
        0
    }

    /// The most bytes an encoded chunk may have: what a reader may fetch before it must give up.
    #[must_use]
    pub fn encoded_limit(&self) -> u64 {
        0
    }

    /// Decodes a chunk to its elements: C order, canonical form, exactly [`CodecChain::decoded_bytes`] long.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`] if the bytes are not a chunk of this chain; [`CodecError::ChunkTooLarge`].
    pub fn decode(&self, _encoded: Bytes) -> Result<Bytes, CodecError> {
        Err(CodecError::Unsupported("any".to_owned()))
    }

    /// Encodes a chunk's elements (C order, canonical form).
    ///
    /// # Errors
    /// [`CodecError`] if there are not exactly [`CodecChain::decoded_bytes`], or the chain cannot encode.
    pub fn encode(&self, _elements: Bytes) -> Result<Bytes, CodecError> {
        Err(CodecError::Unsupported("any".to_owned()))
    }

    /// Names what this chain does: equal for chains bound alike, in this process.
    #[must_use]
    pub fn id(&self) -> u64 {
        0
    }

    /// The sharding codec, if parts of an encoded chunk can be read through its index: it is the array→bytes codec,
    /// only `transpose` stands before it and nothing after it.
    #[must_use]
    pub fn sharding(&self) -> Option<&Sharding> {
        None
    }
}

//! [`ArrayError`]: why elements cannot be read.

use crate::chunk::ChunkCoords;
use crate::codec::CodecError;
use crate::cpu::ComputePoolError;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::HierarchyError;
use crate::key::{KeyError, NodePath, StoreKey};
use crate::reduce::SumOverflow;
use crate::store::StoreError;

/// Why elements cannot be read. It can be cloned, because all requests that waited for one load get its error.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ArrayError {
    /// The node cannot be opened.
    #[error(transparent)]
    Hierarchy(#[from] HierarchyError),
    /// The node is a group.
    #[error("`{path}` is a group, and only arrays have elements: `/v1/nodes` lists the arrays in it")]
    NotAnArray {
        /// The requested path.
        path: NodePath,
    },
    /// The array's codecs cannot be used.
    #[error("the codecs of `{path}`: {source}")]
    Codecs {
        /// The array.
        path: NodePath,
        /// Why.
        source: CodecError,
    },
    /// The array's codecs cannot be used on a chunk of this shape.
    #[error("the codecs of `{path}`, for chunk {coords:?} of shape {shape:?}: {source}")]
    ChunkCodecs {
        /// The array.
        path: NodePath,
        /// The chunk.
        coords: ChunkCoords,
        /// Its shape as stored.
        shape: Vec<u64>,
        /// Why.
        source: CodecError,
    },
    /// A chunk's key is not valid in a store.
    #[error("chunk {coords:?} of `{path}` has no valid key: {source}")]
    ChunkKey {
        /// The array.
        path: NodePath,
        /// The chunk.
        coords: ChunkCoords,
        /// Why.
        source: KeyError,
    },
    /// A chunk could not be read.
    #[error("`{key}` cannot be read: {source}")]
    Store {
        /// The chunk's key.
        key: StoreKey,
        /// Why.
        source: StoreError,
    },
    /// A chunk's bytes do not decode.
    #[error("`{key}`, bytes {start} to {end}: {source}")]
    Chunk {
        /// The chunk's key.
        key: StoreKey,
        /// The first byte that was decoded.
        start: u64,
        /// The byte after the last.
        end: u64,
        /// Why.
        source: CodecError,
    },
    /// A chunk is longer than any encoding of it can be.
    #[error("`{key}` has {size} bytes; an encoded chunk of this array has at most {limit}")]
    ChunkTooLong {
        /// The chunk's key.
        key: StoreKey,
        /// Its bytes.
        size: u64,
        /// The most bytes that it may have.
        limit: u64,
    },
    /// The request exceeds a limit.
    #[error("the selection needs {requested} {what}; the limit is {limit}")]
    TooLarge {
        /// What is limited, with its unit.
        what: &'static str,
        /// How much of it was requested.
        requested: u128,
        /// How much is allowed.
        limit: u64,
    },
    /// An element cannot be cast to the type that was requested.
    #[error("`dtype`: {0}")]
    Cast(CodecError),
    /// A geometry that does not fit its own buffers: a bug.
    #[error("a chunk's geometry does not fit its bytes")]
    Geometry,
    /// A sum is too large for its type.
    #[error(transparent)]
    SumOverflow(#[from] SumOverflow),
    /// Decoding returned no result.
    #[error(transparent)]
    Cpu(#[from] ComputePoolError),
    /// The request that was loading the chunk or node was cancelled.
    #[error("the load of `{what}` was cancelled")]
    LoadCancelled {
        /// The chunk's key, or the node's path.
        what: String,
    },
}

impl ArrayError {
    /// Whether a stored value changed while it was read, so that starting again can help.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        matches!(self, Self::Store { source: StoreError::VersionChanged, .. })
    }

    /// The limit that a request exceeds.
    #[must_use]
    pub fn exceeded_limit(&self) -> Option<u64> {
        match self {
            Self::TooLarge { limit, .. } => Some(*limit),
            _ => None,
        }
    }
}

impl Classify for ArrayError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Hierarchy(error) => error.class(),
            Self::NotAnArray { .. } => ErrorClass::NotFound,
            Self::Codecs { source, .. } | Self::ChunkCodecs { source, .. } | Self::Chunk { source, .. } => {
                source.class()
            }
            Self::Cast(error) => error.class(),
            Self::ChunkKey { .. } => ErrorClass::InvalidMetadata,
            Self::Store { source, .. } => source.class(),
            Self::ChunkTooLong { .. } => ErrorClass::CorruptData,
            Self::TooLarge { .. } => ErrorClass::TooLarge,
            Self::SumOverflow(_) => ErrorClass::InvalidRequest,
            Self::Geometry => ErrorClass::Internal,
            Self::Cpu(error) => error.class(),
            Self::LoadCancelled { .. } => ErrorClass::Overloaded,
        }
    }
}

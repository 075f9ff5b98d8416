//! [`WriteError`]: why elements cannot be written.

use crate::array::ArrayError;
use crate::chunk::ChunkCoords;
use crate::codec::CodecError;
use crate::cpu::ComputePoolError;
use crate::error::{Classify, ErrorClass, WriteEffect};
use crate::key::{NodePath, StoreKey};
use crate::store::StoreError;

/// Why elements cannot be written. It can be cloned, because all writes that share one store request get its error.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    /// The array, or a stored value of it, cannot be read.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The selection has a step that is not positive.
    #[error(
        "dimension {dimension} of the selection has the step {step}; elements are written with positive steps"
    )]
    Step {
        /// The dimension, from 0.
        dimension: usize,
        /// The step.
        step: i64,
    },
    /// The array is declared by another array, and has no documents of its own.
    #[error("`{path}` is declared by another array; write to an array that has documents of its own")]
    Declared {
        /// The array.
        path: NodePath,
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
    /// The elements of a chunk cannot be encoded, or what is stored of it cannot be decoded.
    #[error("chunk {coords:?}: {source}")]
    Codecs {
        /// The chunk.
        coords: ChunkCoords,
        /// Why.
        source: CodecError,
    },
    /// The stored value could not be read, so nothing was written to it.
    #[error("`{key}` cannot be read: {source}")]
    Read {
        /// Its key.
        key: StoreKey,
        /// Why.
        source: StoreError,
    },
    /// The value could not be stored.
    #[error("`{key}` cannot be stored: {source}")]
    Store {
        /// Its key.
        key: StoreKey,
        /// Why.
        source: StoreError,
    },
    /// The backend does not check conditions, so that a part of a value cannot be written without losing other writes.
    #[error(
        "writing a part of `{key}` is not supported: the backend does not check conditions, so that other writes could be \
         lost; write whole chunks, or set `writers = \"one\"` of the mount if this server alone writes to it"
    )]
    NoConditions {
        /// The key of the value.
        key: StoreKey,
    },
    /// The array is gone, or another one is at its path.
    #[error(
        "the array at `{path}` was erased, or created again as another one, after the request began; open it again"
    )]
    Replaced {
        /// The path.
        path: NodePath,
    },
    /// The condition of the write does not hold; nothing was written.
    #[error("the condition does not hold; nothing was written")]
    ConditionFailed,
    /// Other processes changed the value at each attempt.
    #[error("others are writing `{key}` just now")]
    Contended {
        /// The key of the value.
        key: StoreKey,
    },
    /// The work on the pool of threads failed.
    #[error(transparent)]
    Cpu(#[from] ComputePoolError),
    /// The line of writers broke off.
    #[error("it is not known whether `{key}` was written")]
    Lost {
        /// The key of the value.
        key: StoreKey,
    },
}

impl WriteError {
    /// Whether the value that it is about certainly was not changed.
    #[must_use]
    pub fn is_without_effect(&self) -> bool {
        match self {
            Self::Store { source, .. } => {
                source.class().is_caller_fault() || source.written() == Some(WriteEffect::No)
            }
            Self::Lost { .. } => false,
            Self::Array(_)
            | Self::Step { .. }
            | Self::Declared { .. }
            | Self::TooLarge { .. }
            | Self::Codecs { .. }
            | Self::Read { .. }
            | Self::NoConditions { .. }
            | Self::Replaced { .. }
            | Self::ConditionFailed
            | Self::Contended { .. }
            | Self::Cpu(_) => true,
        }
    }
}

impl Classify for WriteError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Array(error) => error.class(),
            Self::Step { .. } => ErrorClass::InvalidRequest,
            Self::Declared { .. } | Self::NoConditions { .. } => ErrorClass::Unsupported,
            Self::TooLarge { .. } => ErrorClass::TooLarge,
            // A chunk that its codecs cannot represent: the request has the wrong elements for the array.
            Self::Codecs { source: CodecError::Encode { .. } | CodecError::NotCast { .. }, .. } => {
                ErrorClass::InvalidRequest
            }
            Self::Codecs { source, .. } => source.class(),
            Self::Read { source, .. } | Self::Store { source, .. } => source.class(),
            Self::Replaced { .. } => ErrorClass::Conflict,
            Self::ConditionFailed => ErrorClass::PreconditionFailed,
            Self::Contended { .. } => ErrorClass::Overloaded,
            Self::Cpu(error) => error.class(),
            Self::Lost { .. } => ErrorClass::Internal,
        }
    }

    fn written(&self) -> Option<WriteEffect> {
        Some(if self.is_without_effect() { WriteEffect::No } else { WriteEffect::Unknown })
    }
}

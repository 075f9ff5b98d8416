//! [`CodecError`]: errors of binding codecs and of decoding and encoding chunks.

use crate::error::{Classify, ErrorClass};
use crate::metadata::shortened;

/// Why a chain cannot be bound, or bytes cannot be decoded or encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The codec, or an option of it, is not implemented.
    #[error("the codec `{0}` is not supported")]
    Unsupported(String),
    /// The codec's configuration breaks the specification, or the codec is at a wrong position in the chain.
    #[error("codec `{codec}`: {reason}")]
    Invalid {
        /// The codec's name.
        codec: String,
        /// What is wrong.
        reason: String,
    },
    /// A decoded chunk would exceed the limit.
    #[error(
        "a chunk has {bytes} bytes or more when decoded; the limit is {limit} (`limits.max_chunk_size`, of texts less 8 bytes for each; with little memory it is lower)"
    )]
    ChunkTooLarge {
        /// Bytes of a decoded chunk (saturated).
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The bytes are not a valid output of the codec.
    #[error("codec `{codec}`: {reason}")]
    Corrupt {
        /// The codec's name.
        codec: &'static str,
        /// What is wrong with the bytes.
        reason: String,
    },
    /// Elements could not be encoded.
    #[error("codec `{codec}` cannot encode: {reason}")]
    Encode {
        /// The codec's name.
        codec: &'static str,
        /// Why not.
        reason: String,
    },
    /// A number that the target type of a cast cannot represent.
    #[error("cannot be cast to `{data_type}`: an element {reason}")]
    NotCast {
        /// The target type.
        data_type: Box<str>,
        /// The number, and why it cannot be cast.
        reason: Box<str>,
    },
    /// An allocation for a chunk failed.
    #[error("no memory for {bytes} bytes")]
    NoMemory {
        /// Bytes of the buffer that could not be allocated.
        bytes: u64,
    },
}

impl CodecError {
    /// Something valid that is not implemented.
    #[must_use]
    pub fn unsupported(name: impl Into<String>) -> Self {
        Self::Unsupported(shortened(name.into()))
    }

    /// A configuration that breaks the specification.
    #[must_use]
    pub fn invalid(codec: &str, reason: impl Into<String>) -> Self {
        Self::Invalid { codec: shortened(codec.to_owned()), reason: shortened(reason.into()) }
    }

    /// Bytes that are not a valid output of the codec.
    #[must_use]
    pub fn corrupt(codec: &'static str, reason: impl Into<String>) -> Self {
        Self::Corrupt { codec, reason: reason.into() }
    }

    /// Trailing bytes. Other readers ignore them; here they are a sign that the value is not the one that was written.
    #[must_use]
    pub fn trailing(codec: &'static str) -> Self {
        Self::corrupt(codec, "has trailing bytes after the compressed data, which are not ignored")
    }

    /// Elements that could not be encoded.
    #[must_use]
    pub fn encode(codec: &'static str, reason: impl Into<String>) -> Self {
        Self::Encode { codec, reason: reason.into() }
    }
}

impl Classify for CodecError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unsupported(_) | Self::NotCast { .. } => ErrorClass::Unsupported,
            Self::Invalid { .. } => ErrorClass::InvalidMetadata,
            Self::ChunkTooLarge { .. } => ErrorClass::TooLarge,
            Self::Corrupt { .. } => ErrorClass::CorruptData,
            Self::Encode { .. } => ErrorClass::Internal,
            Self::NoMemory { .. } => ErrorClass::Overloaded,
        }
    }
}

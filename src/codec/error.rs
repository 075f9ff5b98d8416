//! [`CodecError`]: what can go wrong between bytes and elements.

use crate::error::{Classify, ErrorClass};
use crate::metadata::shortened;

/// Why a chain cannot be bound, or bytes cannot be decoded or encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The codec is not implemented here.
    #[error("the codec `{0}` is not supported")]
    Unsupported(String),
    /// The codec's configuration breaks the specification, or it cannot stand where it stands.
    #[error("codec `{codec}`: {reason}")]
    Invalid {
        /// The codec's name.
        codec: String,
        /// What is wrong.
        reason: String,
    },
    /// A chunk would be larger than the limit when decoded.
    #[error("a chunk has {bytes} bytes when decoded; the limit is {limit}")]
    ChunkTooLarge {
        /// Bytes of a decoded chunk (saturated).
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The bytes are not what the codec makes.
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
    /// A number that the type it is cast to has not.
    #[error("cannot be cast to `{data_type}`: an element {reason}")]
    NotCast {
        /// The type that was asked for.
        data_type: Box<str>,
        /// Which number it is.
        reason: Box<str>,
    },
    /// The machine has no memory left for a chunk.
    #[error("no memory for {bytes} bytes")]
    NoMemory {
        /// Bytes of the buffer that could not be had.
        bytes: u64,
    },
}

impl CodecError {
    /// Something valid that is not implemented here.
    #[must_use]
    pub fn unsupported(name: impl Into<String>) -> Self {
        Self::Unsupported(shortened(name.into()))
    }

    /// A configuration that breaks the specification.
    #[must_use]
    pub fn invalid(codec: &str, reason: impl Into<String>) -> Self {
        Self::Invalid { codec: shortened(codec.to_owned()), reason: shortened(reason.into()) }
    }

    /// Bytes that are not what the codec makes.
    #[must_use]
    pub fn corrupt(codec: &'static str, reason: impl Into<String>) -> Self {
        Self::Corrupt { codec, reason: reason.into() }
    }

    /// Bytes behind what the codec makes. Other readers pass over them; here they are a sign that the value is not what was
    /// written.
    #[must_use]
    pub fn trailing(codec: &'static str) -> Self {
        Self::corrupt(
            codec,
            "something stands behind the end of the compressed data, which is not passed over here",
        )
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

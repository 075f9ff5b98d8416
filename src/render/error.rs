//! [`RenderError`]: why elements cannot be rendered.

use crate::error::{Classify, ErrorClass};

/// Why elements cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The answer could be longer than the limit.
    #[error("the answer may have {bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// The most bytes the answer may have (saturated).
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The format has no form for such elements.
    #[error("the format asked for has no form for elements of type {data_type}")]
    NoForm {
        /// The type.
        data_type: String,
    },
    /// The bytes given are not as many elements as the shape says.
    #[error("the bytes given are not the elements of the shape given")]
    ElementCount,
    /// An element that should be text holds a number that is no character of Unicode.
    #[error("a text holds the number {number:#x}, which is no character of Unicode")]
    NotText {
        /// The number.
        number: u32,
    },
}

impl Classify for RenderError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::TooLarge { .. } => ErrorClass::TooLarge,
            Self::NoForm { .. } => ErrorClass::InvalidRequest,
            Self::ElementCount => ErrorClass::Internal,
            Self::NotText { .. } => ErrorClass::CorruptData,
        }
    }
}

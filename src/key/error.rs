//! [`KeyError`]: why a text is not a key, prefix or node path; and the limits on their length.

use crate::error::{Classify, ErrorClass};

/// Longest key or prefix, in bytes of UTF-8 (the limit of S3).
pub const MAX_KEY_BYTES: usize = 1024;
/// Most segments in a key or prefix.
pub const MAX_KEY_SEGMENTS: usize = 64;

/// Why a text is not a key, prefix or path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A key must name something.
    #[error("a key must not be empty")]
    Empty,
    /// `//`, or a slash at an end where none may be.
    #[error("a key must not have an empty segment, nor begin or end with `/`")]
    EmptySegment,
    /// A prefix is empty (the root) or ends in `/`.
    #[error("a prefix must be empty or end with `/`")]
    PrefixWithoutSlash,
    /// `.` or `..` as a whole segment; `a..b` and `...` are fine.
    #[error("the segment `{0}` is not allowed in a key")]
    DotSegment(&'static str),
    /// A byte below 0x20, or 0x7f.
    #[error("a key must not contain control characters")]
    ControlCharacter,
    /// Longer than [`MAX_KEY_BYTES`].
    #[error("a key is at most {MAX_KEY_BYTES} bytes long; this one has {0}")]
    TooLong(usize),
    /// More than [`MAX_KEY_SEGMENTS`].
    #[error("a key has at most {MAX_KEY_SEGMENTS} segments; this one has {0}")]
    TooDeep(usize),
    /// A node name the specification reserves or forbids.
    #[error("`{0}` is not a node name (Zarr core, \"Node names\")")]
    NodeName(String),
}

impl Classify for KeyError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Empty
            | Self::EmptySegment
            | Self::PrefixWithoutSlash
            | Self::DotSegment(_)
            | Self::ControlCharacter
            | Self::TooLong(_)
            | Self::TooDeep(_)
            | Self::NodeName(_) => ErrorClass::InvalidRequest,
        }
    }
}

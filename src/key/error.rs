//! [`KeyError`]: why a text is not a key, prefix or node path; and the limits on keys.

use crate::error::{Classify, ErrorClass};

/// Longest key or prefix, in bytes of UTF-8 (the limit of S3).
pub const MAX_KEY_BYTES: usize = 1024;
/// Maximum number of segments in a key or prefix.
pub const MAX_KEY_SEGMENTS: usize = 64;

/// Why a text is not a key, prefix or path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text is empty.
    #[error("a key must not be empty")]
    Empty,
    /// The text has `//`, begins with `/`, or ends with `/` although it is not a prefix.
    #[error("a key must not have an empty segment, nor begin or end with `/`")]
    EmptySegment,
    /// The prefix is neither empty (the root) nor ends in `/`.
    #[error("a prefix must be empty or end with `/`")]
    PrefixWithoutSlash,
    /// A segment is `.` or `..`. Segments such as `a..b` and `...` are valid.
    #[error("the segment `{0}` is not allowed in a key")]
    DotSegment(&'static str),
    /// The text has a byte below 0x20, or 0x7f.
    #[error("a key must not contain control characters")]
    ControlCharacter,
    /// Longer than [`MAX_KEY_BYTES`].
    #[error("a key is at most {MAX_KEY_BYTES} bytes long; this one has {0}")]
    TooLong(usize),
    /// More than [`MAX_KEY_SEGMENTS`].
    #[error("a key has at most {MAX_KEY_SEGMENTS} segments; this one has {0}")]
    TooDeep(usize),
    /// The specification reserves or forbids the node name.
    #[error(
        "`{0}` is not the name of a node: names begin with something else than `__`, have more than periods, and are not those of \
         metadata documents (Zarr core, \"Node names\")"
    )]
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

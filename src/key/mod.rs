//! Store keys, store prefixes and node paths: parsed once, and valid ever after.
//!
//! Zarr core 3.1, "Abstract store interface" (keys and prefixes) and "Node names" (paths). Beyond the
//! specification's rules, what no store can hold safely is refused here, at the only door: empty, `.` and `..`
//! segments, control characters, and keys no object store accepts for their length. There is no Unicode
//! normalisation and no case folding: keys are compared byte for byte. Percent-decoding is not done here: it
//! belongs to `http`, which decodes a URL's segments exactly once.

mod node_path;
mod store_key;

pub use node_path::NodePath;
pub(crate) use node_path::is_reserved_in_v3;
pub use store_key::{StoreKey, StorePrefix};

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

/// Checks one segment of a key: not empty, not `.` or `..`, no control characters.
fn check_segment(segment: &str) -> Result<(), KeyError> {
    match segment {
        "" => Err(KeyError::EmptySegment),
        "." => Err(KeyError::DotSegment(".")),
        ".." => Err(KeyError::DotSegment("..")),
        _ if segment.bytes().any(|byte| byte < 0x20 || byte == 0x7f) => Err(KeyError::ControlCharacter),
        _ => Ok(()),
    }
}

/// Checks the segments and the measures of a key without a trailing slash.
fn check_key(text: &str) -> Result<(), KeyError> {
    if text.is_empty() {
        return Err(KeyError::Empty);
    }
    if text.len() > MAX_KEY_BYTES {
        return Err(KeyError::TooLong(text.len()));
    }
    let mut segments = 0;
    for segment in text.split('/') {
        check_segment(segment)?;
        segments += 1;
    }
    if segments > MAX_KEY_SEGMENTS { Err(KeyError::TooDeep(segments)) } else { Ok(()) }
}

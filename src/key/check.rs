//! The rules for every key and prefix (Zarr core 3.1, "Abstract store interface"), and what no store can hold.

use super::error::{KeyError, MAX_KEY_BYTES, MAX_KEY_SEGMENTS};

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

/// Checks the segments and the length of a key without a trailing slash.
pub(super) fn check_key(text: &str) -> Result<(), KeyError> {
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

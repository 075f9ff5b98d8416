//! The rules for every key and prefix (Zarr core 3.1, "Abstract store interface"), and what no store can hold.

use super::error::{KeyError, MAX_KEY_BYTES, MAX_KEY_SEGMENTS};

/// Checks one segment of a key: not empty, not `.` or `..`, no control characters.
fn check_segment(segment: &[u8]) -> Result<(), KeyError> {
    match segment {
        b"" => Err(KeyError::EmptySegment),
        b"." => Err(KeyError::DotSegment(".")),
        b".." => Err(KeyError::DotSegment("..")),
        _ if segment.iter().any(|byte| *byte < 0x20 || *byte == 0x7f) => Err(KeyError::ControlCharacter),
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
    // By bytes: every request has a key, and the searchers of `str` take longer to set up than a segment to search.
    for segment in text.as_bytes().split(|byte| *byte == b'/') {
        check_segment(segment)?;
        segments += 1;
    }
    if segments > MAX_KEY_SEGMENTS { Err(KeyError::TooDeep(segments)) } else { Ok(()) }
}

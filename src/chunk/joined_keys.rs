//! The keys of the encodings `default` and `v2`: coordinates joined by a separator (Zarr core 3.1, "Chunk key encoding").

use std::fmt::Write;

use crate::metadata::Separator;

/// Appends the key of the encoding `default`: `c`, then each coordinate after a separator.
pub(super) fn push_default(key: &mut String, separator: Separator, coords: &[u64]) {
    key.push('c');
    for coord in coords {
        key.push(separator.as_char());
        // Writing to a String cannot fail.
        let _ = write!(key, "{coord}");
    }
}

/// Appends the key of the encoding `v2`: the coordinates joined by a separator; `0` for rank 0.
pub(super) fn push_v2(key: &mut String, separator: Separator, coords: &[u64]) {
    if coords.is_empty() {
        key.push('0');
    }
    for (place, coord) in coords.iter().enumerate() {
        if place > 0 {
            key.push(separator.as_char());
        }
        // Writing to a String cannot fail.
        let _ = write!(key, "{coord}");
    }
}

/// The inverse of [`push_default`]; `None` if the key is not in its canonical spelling.
pub(super) fn default_coords(key: &str, separator: Separator, rank: usize) -> Option<Vec<u64>> {
    match (key.strip_prefix('c')?, rank) {
        ("", 0) => Some(Vec::new()),
        (rest, _) => joined_coords(rest.strip_prefix(separator.as_char())?, separator, rank),
    }
}

/// The inverse of [`push_v2`]; `None` if the key is not in its canonical spelling.
pub(super) fn v2_coords(key: &str, separator: Separator, rank: usize) -> Option<Vec<u64>> {
    match (key, rank) {
        ("0", 0) => Some(Vec::new()),
        _ => joined_coords(key, separator, rank),
    }
}

fn joined_coords(text: &str, separator: Separator, rank: usize) -> Option<Vec<u64>> {
    let coords: Vec<u64> = text.split(separator.as_char()).map(parse_canonical).collect::<Option<_>>()?;
    (coords.len() == rank).then_some(coords)
}

fn parse_canonical(digits: &str) -> Option<u64> {
    let canonical = digits == "0" || !digits.starts_with('0');
    (canonical && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

//! [`escaped`]: paths as they are in the log.

use std::borrow::Cow;

/// The bytes of a path that are logged as they are.
static PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        plain[byte as usize] = !matches!(byte, b'"' | b'\'' | b'\\');
        byte += 1;
    }
    plain
};

/// A raw path as visible ASCII, so that it cannot forge or reverse a log line.
pub(super) fn escaped(path: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| PLAIN.get(usize::from(byte)).is_some_and(|plain| *plain);
    if path.bytes().all(is_plain) { path.into() } else { path.escape_default().to_string().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logged_paths_are_visible_ascii() {
        assert_eq!(escaped("/a\u{202e}b\u{1b}"), "/a\\u{202e}b\\u{1b}");
        assert_eq!(escaped("/a'b\"c\\d"), "/a\\'b\\\"c\\\\d");
        assert_eq!(escaped("/store/m/a%20b"), "/store/m/a%20b");
    }
}

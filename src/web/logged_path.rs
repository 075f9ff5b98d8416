//! [`escaped`]: paths in log lines.

use std::borrow::Cow;

/// A raw path as visible ASCII, so that it cannot forge or reverse a log line.
pub(super) fn escaped(path: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if path.bytes().all(is_plain) { path.into() } else { path.escape_default().to_string().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logged_paths_are_visible_ascii() {
        assert_eq!(escaped("/a\u{202e}b\u{1b}"), "/a\\u{202e}b\\u{1b}");
    }
}

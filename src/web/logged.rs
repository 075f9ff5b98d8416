//! Parts of log lines about requests: [`escaped`] paths and [`address_text`].
//!
//! Every request has a log line, so the usual values are made without `fmt`.

use std::borrow::Cow;
use std::net::IpAddr;

/// A raw path as visible ASCII, so that it cannot forge or reverse a log line.
pub(super) fn escaped(path: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if path.bytes().all(is_plain) { path.into() } else { path.escape_default().to_string().into() }
}

/// The text of an address.
pub(super) fn address_text(address: IpAddr) -> String {
    let IpAddr::V4(address) = address else { return address.to_string() };
    let mut text = String::with_capacity("255.255.255.255".len());
    for octet in address.octets() {
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(itoa::Buffer::new().format(octet));
    }
    text
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

    #[test]
    fn logged_addresses_are_those_of_the_standard_library() {
        for text in ["0.0.0.0", "127.0.0.1", "255.255.255.255", "10.0.200.9", "::1", "2001:db8:1:2::"] {
            assert_eq!(address_text(text.parse().unwrap()), text);
        }
    }
}

//! Host names: the target host of a request (RFC 9110, section 7.2), and validation of the host names of mounts.
//!
//! Comparison ignores case, port and a trailing dot. No name is resolved here.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};

/// Whether a text is a valid host of a `Host` header: a name or an address, without a port.
#[must_use]
pub fn is_host(text: &str) -> bool {
    let name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let address = |byte: u8| byte.is_ascii_hexdigit() || b":.".contains(&byte);
    match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some(text) => !text.is_empty() && text.bytes().all(address),
        None => !canonical(text).is_empty() && text.bytes().all(name),
    }
}

/// The canonical form of a host name for comparison: lower case, without a trailing dot.
#[must_use]
pub fn canonical(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// The target host and port of a request: from its URL if that has them, else from `Host`.
pub(crate) fn authority(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    match uri.authority() {
        Some(authority) => Some(authority.clone()),
        None => headers.get(header::HOST)?.to_str().ok()?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_without_a_port() {
        for text in ["data.example", "DATA", "127.0.0.1", "[::1]", "a_b-c.example."] {
            assert!(is_host(text), "{text}");
        }
        for text in ["", ".", "a:80", "::1", "[::1]:80", "[]", "a/b", "a b", "http://a", "u@a", "a,b", "é"] {
            assert!(!is_host(text), "{text}");
        }
    }

    #[test]
    fn the_host_of_the_url_takes_precedence_over_the_header() {
        let headers = |host: &str| HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
        for (url, host, expected) in [
            ("/a", "Data.Example:8000", Some("data.example")),
            ("/a", "[::1]:8000", Some("[::1]")),
            ("http://data.example./a", "other", Some("data.example")),
            ("/a", "a b", None),
            ("/a", "", None),
        ] {
            let found = authority(&url.parse().unwrap(), &headers(host));
            assert_eq!(found.map(|found| canonical(found.host())).as_deref(), expected, "{url} {host}");
        }
        assert_eq!(authority(&"/a".parse().unwrap(), &HeaderMap::new()), None);
    }
}

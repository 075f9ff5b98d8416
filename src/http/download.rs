//! The file name of a download: `Content-Disposition` (RFC 6266), so that a browser saves `air.npy` and not `air`.
//!
//! Names come from URLs and stores, so they are untrusted. The quoted form has only letters, digits and `-._`; other
//! characters are in the percent-encoded form of RFC 8187.

use axum::http::{HeaderMap, header};

use super::path::encode;
use super::validators::from_text;
use crate::key::NodePath;

/// Maximum length of a name in bytes: file systems allow 255 with the extension.
const MOST_BYTES: usize = 160;

/// The file name for data of an array: the name of the array, or of the mount for an array at its root, followed by the
/// remaining segments of the requested path (such as the chunk), separated by dots.
pub(crate) fn name_of(mount: &str, array: &NodePath, asked: &NodePath) -> String {
    let name = if array.name().is_empty() { mount } else { array.name() };
    let rest = asked.as_str().strip_prefix(array.as_str()).unwrap_or_default();
    let parts = rest.split('/').filter(|part| !part.is_empty());
    parts.fold(name.to_owned(), |name, part| name + "." + part)
}

/// Sets the file name of a response.
pub(crate) fn put(headers: &mut HeaderMap, name: &str, extension: &str) {
    // A leading dot would hide the file.
    let name = name.trim_start_matches('.');
    let end = name.char_indices().map(|(at, _)| at).take_while(|&at| at <= MOST_BYTES).last();
    let name = if name.len() > MOST_BYTES { name.get(..end.unwrap_or(0)).unwrap_or_default() } else { name };
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    let safe: String = name.chars().map(|letter| if is_safe(letter) { letter } else { '_' }).collect();
    let mut text = format!("inline; filename=\"{safe}.{extension}\"");
    if safe != name {
        text = format!("{text}; filename*=UTF-8''{}.{extension}", encode(name));
    }
    if let Some(value) = from_text(text) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str) -> String {
        let mut headers = HeaderMap::new();
        put(&mut headers, name, "npy");
        headers[header::CONTENT_DISPOSITION].to_str().unwrap().to_owned()
    }

    #[test]
    fn a_name_is_ascii_and_other_characters_are_percent_encoded() {
        assert_eq!(said("air-2.m_x"), "inline; filename=\"air-2.m_x.npy\"");
        assert_eq!(said("..x"), "inline; filename=\"x.npy\"");
        for (name, quoted, encoded) in [
            ("t\u{e9}mp", "t_mp", "t%C3%A9mp"),
            ("a b", "a_b", "a%20b"),
            ("a\"; filename=\"b.exe", "a___filename__b.exe", "a%22%3B%20filename%3D%22b.exe"),
            ("a\r\nset-cookie: x", "a__set-cookie__x", "a%0D%0Aset-cookie%3A%20x"),
            ("a\\b/c", "a_b_c", "a%5Cb%2Fc"),
        ] {
            assert_eq!(
                said(name),
                format!("inline; filename=\"{quoted}.npy\"; filename*=UTF-8''{encoded}.npy")
            );
        }
        assert!(said(&"\u{e9}".repeat(5000)).len() < 1000);
        assert!(said(&"x".repeat(5000)).len() < 200);
    }

    #[test]
    fn a_chunk_is_named_after_its_array_and_its_coordinates() {
        let path = |text: &str| NodePath::parse(text).unwrap();
        for (array, asked, name) in [
            ("a/air", "a/air", "air"),
            ("a/air", "a/air/c/0/1", "air.c.0.1"),
            ("", "", "demo"),
            ("", "c/0", "demo.c.0"),
        ] {
            assert_eq!(name_of("demo", &path(array), &path(asked)), name);
        }
    }
}

//! Entity tags as clients of S3 send them: with quotes, as HTTP has them (RFC 9110, section 8.8.3), or without.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// The headers that have entity tags.
const CONDITIONS: [HeaderName; 4] = [
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    HeaderName::from_static("x-amz-copy-source-if-match"),
    HeaderName::from_static("x-amz-copy-source-if-none-match"),
];

/// Puts quotes around the tags of conditions that have none.
pub(super) fn quote(headers: &mut HeaderMap) {
    for name in &CONDITIONS {
        let Some(value) = headers.get(name).and_then(|value| value.to_str().ok()) else { continue };
        if value.contains('"') || value.trim() == "*" {
            continue;
        }
        let tags: Vec<String> = value.split(',').map(|tag| format!("\"{}\"", tag.trim())).collect();
        if let Ok(value) = HeaderValue::try_from(tags.join(", ")) {
            headers.insert(name, value);
        }
    }
}

/// An entity tag without its quotes and without the mark of a weak one.
pub(super) fn opaque(tag: &str) -> &str {
    let tag = tag.trim();
    tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_the_same_with_and_without_quotes() {
        for (sent, read) in [
            ("abc", "\"abc\""),
            ("\"abc\"", "\"abc\""),
            ("W/\"abc\"", "W/\"abc\""),
            ("*", "*"),
            ("a, b", "\"a\", \"b\""),
            ("", "\"\""),
        ] {
            let mut headers = HeaderMap::from_iter([(header::IF_MATCH, HeaderValue::from_static(sent))]);
            quote(&mut headers);
            assert_eq!(headers[header::IF_MATCH], read);
        }
        assert_eq!([opaque("W/\"a\""), opaque(" a "), opaque("\"a\"")], ["a"; 3]);
    }
}

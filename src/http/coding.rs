//! Content codings: those that a request accepts (`Accept-Encoding`, RFC 9110, section 12.5.3), and the entity tags of
//! encoded responses.
//!
//! A text and its codings are different representations of one resource, so each has its own strong tag: that of the text,
//! followed by a semicolon and the name of the coding. No backend is known to issue tags with this ending; a value with
//! such a tag is not encoded. Encoding itself is in `compression`.

use axum::http::{HeaderMap, HeaderValue, header};

use super::negotiate::quality;
use crate::codec::ContentCoding;

/// The codings that a request accepts, each with its weight in thousandths; 0 means not acceptable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    weights: [u16; ContentCoding::ALL.len()],
    /// The weight of the unencoded text, if the request states it.
    identity: Option<u16>,
}

impl Accepted {
    /// The codings that a request accepts. A range selects bytes of the unencoded text, so with `Range` there are none.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let mut accepted = Self::default();
        if !headers.contains_key(header::ACCEPT_ENCODING) || headers.contains_key(header::RANGE) {
            return accepted;
        }
        let (mut named, mut others) = ([None; ContentCoding::ALL.len()], None);
        let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
        for item in lines.flat_map(|line| line.split(',')) {
            let Some((name, weight)) = weighed(item) else { continue };
            if name == "*" {
                others = Some(weight);
            } else if name.eq_ignore_ascii_case("identity") {
                accepted.identity = Some(weight);
            }
            for (coding, place) in ContentCoding::ALL.iter().zip(&mut named) {
                // `x-gzip` is equivalent (RFC 9110, section 8.4.1.3).
                let is_alias = *coding == ContentCoding::Gzip && name.eq_ignore_ascii_case("x-gzip");
                if name.eq_ignore_ascii_case(coding.name()) || is_alias {
                    *place = Some(weight);
                }
            }
        }
        accepted.weights = named.map(|weight| weight.or(others).unwrap_or(0));
        accepted
    }

    /// The coding of the response: the one with the highest weight, unless the unencoded text has a higher one.
    pub(crate) fn chosen(self) -> Option<ContentCoding> {
        let most = self.weights.into_iter().max().filter(|&weight| weight > 0)?;
        if self.identity.is_some_and(|identity| identity > most) {
            return None;
        }
        let mut found = ContentCoding::ALL.into_iter().zip(self.weights);
        found.find_map(|(coding, weight)| (weight == most).then_some(coding))
    }

    /// Whether a coding is acceptable.
    pub(crate) fn has(self, coding: ContentCoding) -> bool {
        ContentCoding::ALL.into_iter().zip(self.weights).any(|(known, weight)| known == coding && weight > 0)
    }
}

/// Parses `gzip;q=0.5` into a name and its weight in thousandths.
fn weighed(item: &str) -> Option<(&str, u16)> {
    let mut parts = item.split(';').map(str::trim);
    let name = parts.next().filter(|name| !name.is_empty())?;
    let weight = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| quality(value.trim()))
    });
    Some((name, weight.unwrap_or(Some(1000))?))
}

/// Splits the tag of an encoded text into the tag of the text and the coding; `None` for the tag of an unencoded text.
pub(crate) fn split_tag(tag: &[u8]) -> Option<(&[u8], ContentCoding)> {
    ContentCoding::ALL.into_iter().find_map(|coding| {
        let text = tag.strip_suffix(coding.name().as_bytes())?.strip_suffix(b";")?;
        Some((text, coding))
    })
}

/// The tag of an encoded text, derived from the tag of the text; both include the quotes. `None` if the tag of the text
/// already has the form of one.
pub(crate) fn coded_tag(tag: &HeaderValue, coding: ContentCoding) -> Option<HeaderValue> {
    let text = tag.to_str().ok()?.strip_suffix('"')?;
    if split_tag(text.as_bytes()).is_some() {
        return None;
    }
    HeaderValue::try_from(format!("{text};{}\"", coding.name())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(text: &str) -> Accepted {
        let value = HeaderValue::from_str(text).unwrap();
        Accepted::from_headers(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, value)]))
    }

    #[test]
    fn the_coding_with_the_highest_weight_is_chosen_and_zstd_among_equals() {
        use ContentCoding::{Gzip, Zstd};
        for (text, coding) in [
            ("", None),
            ("identity", None),
            ("br", None),
            ("gzip", Some(Gzip)),
            ("GZIP", Some(Gzip)),
            ("x-gzip", Some(Gzip)),
            ("zstd", Some(Zstd)),
            ("gzip, deflate, br, zstd", Some(Zstd)),
            ("gzip, zstd;q=0.9", Some(Gzip)),
            ("gzip;q=0", None),
            ("gzip;q=0.0, zstd;q=0.001", Some(Zstd)),
            ("*", Some(Zstd)),
            ("*;q=0, gzip", Some(Gzip)),
            ("zstd;q=0, *", Some(Gzip)),
            ("identity, gzip;q=0.5", None),
            ("identity;q=0.5, gzip", Some(Gzip)),
            ("identity;q=0, gzip;q=0.1", Some(Gzip)),
            ("gzip;q=2", None),
            ("gzip;q=x, zstd", Some(Zstd)),
            (";;,,;q=1", None),
        ] {
            assert_eq!(accepted(text).chosen(), coding, "{text}");
        }
        assert_eq!(Accepted::from_headers(&HeaderMap::new()).chosen(), None);
    }

    #[test]
    fn with_a_range_there_is_no_coding() {
        let mut headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"))]);
        headers.insert(header::RANGE, HeaderValue::from_static("bytes=0-1"));
        let accepted = Accepted::from_headers(&headers);
        assert!(accepted.chosen().is_none() && !accepted.has(ContentCoding::Gzip));
    }

    #[test]
    fn the_tags_of_a_text_and_of_its_codings_differ() {
        let tag = HeaderValue::from_static("W/\"a-b\"");
        let coded = coded_tag(&tag, ContentCoding::Gzip).unwrap();
        assert_eq!(coded, "W/\"a-b;gzip\"");
        assert_eq!(split_tag(b"a-b;gzip"), Some((&b"a-b"[..], ContentCoding::Gzip)));
        assert_eq!(split_tag(b"a-b-gzip"), None);
        // A tag of a backend that has the form of the tag of a coding.
        assert_eq!(coded_tag(&coded, ContentCoding::Zstd), None);
    }
}

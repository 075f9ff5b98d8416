//! The `Range`, `If-Range` and `Content-Range` headers of byte ranges (RFC 9110, section 14).
//!
//! A single range is honoured. Several ranges in one header, and anything that is not a byte range, are ignored: the
//! response is then the whole value, which RFC 9110 allows and clients without multipart support need.
//! [`ByteRange::resolve`] decides whether a range lies inside a value. The `Content-Range` of a request is the position at
//! which its body is written.
//!
//! `headers::Range` is not used: it has no range for a suffix that is longer than the value, where RFC 9110 selects the whole
//! value, and it leaves invalid ranges out of a list instead of ignoring the header.

use std::ops::Range;

use axum::http::{HeaderMap, HeaderValue, header};

use super::conditions::EntityTag;
use super::problem::Problem;
use crate::error::ErrorClass;
use crate::store::{ByteRange, Version};

/// The requested range; [`ByteRange::Whole`] if there is none or it is ignored.
pub(crate) fn requested(headers: &HeaderMap) -> ByteRange {
    let mut lines = headers.get_all(header::RANGE).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) => line.to_str().ok().and_then(parse).unwrap_or_default(),
        _ => ByteRange::Whole,
    }
}

/// Parses `bytes=0-9`, `bytes=10-` or `bytes=-5`; `None` for anything else, including several ranges.
fn parse(line: &str) -> Option<ByteRange> {
    let (unit, set) = line.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    // A list may have empty elements (RFC 9110, section 5.6.1.2).
    let mut specs = set.split(',').map(str::trim).filter(|spec| !spec.is_empty());
    let (spec, None) = (specs.next()?, specs.next()) else { return None };
    match spec.split_once('-')? {
        ("", length) => Some(ByteRange::Suffix(number(length)?)),
        (first, "") => Some(ByteRange::From(number(first)?)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then(|| ByteRange::Bounded(first, last.saturating_add(1)))
        }
    }
}

/// Digits only: `u64::from_str` alone would take `+4`.
fn number(digits: &str) -> Option<u64> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// Whether the range applies to a value of this version, according to `If-Range`.
///
/// Without the header it does. Only a strong entity tag can match: a date has a resolution of one second, in which a value
/// may change twice. With a date the response is therefore the whole value.
pub(crate) fn if_range_holds(headers: &HeaderMap, version: &Version) -> bool {
    match headers.get(header::IF_RANGE) {
        None => true,
        Some(line) => EntityTag::parse_one(line.as_bytes()).is_some_and(|tag| tag.matches_strongly(version)),
    }
}

/// The position at which the body of a request is written, from its `Content-Range`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContentRange {
    /// Half-open and not empty.
    pub(crate) range: Range<u64>,
    /// The length of the value after the write, if the header states it.
    pub(crate) result_bytes: Option<u64>,
}

/// Parses the `Content-Range` of a request: `bytes 0-9/*` or `bytes 0-9/100`. `None` if the header is missing, repeated or
/// invalid.
pub(crate) fn written(headers: &HeaderMap) -> Option<ContentRange> {
    let mut lines = headers.get_all(header::CONTENT_RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let (unit, place) = line.to_str().ok()?.trim().split_once(' ')?;
    let (range, result) = place.trim_start().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let range = number(first)?..number(last)?.checked_add(1)?;
    let result_bytes = if result == "*" { None } else { Some(number(result)?) };
    let is_possible = !range.is_empty() && result_bytes.is_none_or(|result| range.end <= result);
    (unit.eq_ignore_ascii_case("bytes") && is_possible).then_some(ContentRange { range, result_bytes })
}

/// `Content-Range` of a part; `range` is half-open and not empty.
pub(crate) fn content_range(range: &Range<u64>, size: u64) -> HeaderValue {
    ascii(&format!("bytes {}-{}/{size}", range.start, range.end.saturating_sub(1)))
}

/// `Content-Range` of a 416 response.
pub(crate) fn unsatisfied(size: u64) -> HeaderValue {
    ascii(&format!("bytes */{size}"))
}

/// A header value of text that is visible ASCII by construction.
fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

/// The problem of a range that contains no byte of the value; `size` is the length of the value.
pub(crate) fn not_satisfiable(size: u64) -> Problem {
    Problem::from_class(ErrorClass::RangeNotSatisfiable)
        .detail(format!("the range has no byte of the value, which is {size} bytes long"))
        .extension("size", size)
        .header(header::CONTENT_RANGE, unsatisfied(size))
        .header(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(range: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::RANGE, HeaderValue::from_static(range))])
    }

    #[test]
    fn a_single_byte_range_is_honoured_and_anything_else_is_ignored() {
        use ByteRange::{Bounded, From, Suffix, Whole};
        for (line, range) in [
            ("bytes=0-9", Bounded(0, 10)),
            ("bytes=5-5", Bounded(5, 6)),
            ("BYTES=0-9", Bounded(0, 10)),
            ("bytes= 0-9 ,", Bounded(0, 10)),
            ("bytes=7-", From(7)),
            ("bytes=-5", Suffix(5)),
            ("bytes=-0", Suffix(0)),
            ("bytes=0-18446744073709551615", Bounded(0, u64::MAX)),
            ("bytes=5-2", Whole),
            ("bytes=-", Whole),
            ("bytes=", Whole),
            ("bytes=,", Whole),
            ("bytes=a-b", Whole),
            ("bytes=+1-2", Whole),
            ("bytes=1-+2", Whole),
            ("bytes=--5", Whole),
            ("bytes=1 - 2", Whole),
            ("bytes=0-99999999999999999999999", Whole),
            ("bytes=99999999999999999999999-", Whole),
            ("bytes=8-11, 20-23", Whole),
            ("bytes 0-9", Whole),
            ("items=0-9", Whole),
            ("0-9", Whole),
            ("", Whole),
        ] {
            assert_eq!(requested(&headers(line)), range, "{line}");
        }
        assert_eq!(requested(&HeaderMap::new()), Whole);
    }

    #[test]
    fn content_range_of_a_request_is_parsed_strictly() {
        let of = |lines: &[&'static str]| {
            written(
                &lines.iter().map(|line| (header::CONTENT_RANGE, HeaderValue::from_static(line))).collect(),
            )
        };
        for (line, range, result_bytes) in [
            ("bytes 0-9/*", 0..10, None),
            ("bytes 5-5/6", 5..6, Some(6)),
            ("BYTES 5-7/100", 5..8, Some(100)),
            ("bytes 0-18446744073709551614/*", 0..u64::MAX, None),
        ] {
            assert_eq!(of(&[line]), Some(ContentRange { range, result_bytes }), "{line}");
        }
        for line in [
            "",
            "bytes",
            "bytes 0-9",
            "bytes */10",
            "bytes */*",
            "bytes=0-9/10",
            "bytes 5-2/10",
            "bytes 0-9/9",
            "bytes -5/10",
            "bytes 5-/10",
            "bytes 0-9/",
            "bytes 0-9/x",
            "bytes 0-9/+10",
            "bytes +0-9/10",
            "bytes 0 - 9/10",
            "bytes 0-18446744073709551615/*",
            "bytes 0-99999999999999999999999/*",
            "items 0-9/10",
            "bytes 0-9/10, bytes 0-9/10",
        ] {
            assert_eq!(of(&[line]), None, "{line}");
        }
        assert_eq!(of(&["bytes 0-9/*", "bytes 0-9/*"]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn two_range_lines_are_ignored() {
        let mut lines = headers("bytes=0-1");
        lines.append(header::RANGE, HeaderValue::from_static("bytes=4-5"));
        assert_eq!(requested(&lines), ByteRange::Whole);
    }

    #[test]
    fn if_range_holds_only_for_the_same_strong_tag() {
        let version = Version::strong("v1");
        let with =
            |line: &'static str| HeaderMap::from_iter([(header::IF_RANGE, HeaderValue::from_static(line))]);
        assert!(if_range_holds(&HeaderMap::new(), &version));
        assert!(if_range_holds(&with("\"v1\""), &version));
        for line in ["\"v2\"", "W/\"v1\"", "v1", "*", "", "Sun, 06 Nov 1994 08:49:37 GMT"] {
            assert!(!if_range_holds(&with(line), &version), "{line}");
        }
        assert!(!if_range_holds(&with("\"v1\""), &Version::weak("v1")));
    }

    #[test]
    fn content_range_has_inclusive_ends_and_the_total() {
        assert_eq!(content_range(&(2..5), 10), "bytes 2-4/10");
        assert_eq!(unsatisfied(10), "bytes */10");
    }
}

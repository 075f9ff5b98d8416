//! Parsing untrusted JSON documents, bounded in size and depth (RFC 8259; Zarr core 3.1, "Metadata").
//!
//! Bare `NaN`, `Infinity` and `-Infinity` are accepted, as many writers emit them. The meaning of members is the
//! business of the callers.

use serde_json::{Map, Value};

use super::attributes::not_an_object;
use super::limits::MetadataLimits;
use super::parser::{ATTRIBUTES, DuplicateNames, parse_entire};
use super::{Attributes, MetadataError};

/// Parses a document. Everything outside members named `attributes` is structure, in which repeated names are errors.
///
/// A byte order mark is skipped. Bare `NaN`, `Infinity` and `-Infinity` become strings of those names, also in attributes,
/// because JSON has no other spelling for them; they are never emitted bare.
///
/// # Errors
/// [`MetadataError::TooLarge`]; [`MetadataError::Json`] for text that is not JSON, is nested deeper than `limits.depth`, or
/// repeats a name outside attributes.
pub fn parse_document(document: &[u8], limits: &MetadataLimits) -> Result<Value, MetadataError> {
    parse(document, limits, DuplicateNames::Reject, |_| false)
}

/// Parses a document in whose attributes the members chosen by `is_structure` are structure. Otherwise as
/// [`parse_document`].
///
/// # Errors
/// As [`parse_document`], also for repeated names in these members.
pub(super) fn parse_declaring(
    document: &[u8],
    limits: &MetadataLimits,
    is_structure: fn(&str) -> bool,
) -> Result<Value, MetadataError> {
    parse(document, limits, DuplicateNames::Reject, is_structure)
}

/// Parses a document and returns its attributes separately, as text; `None` if they are absent or not an object. Otherwise
/// as [`parse_document`].
///
/// # Errors
/// As [`parse_document`].
pub(super) fn parse_with_attributes(
    document: &[u8],
    limits: &MetadataLimits,
) -> Result<(Value, Option<Attributes>), MetadataError> {
    let mut attributes = None;
    let value = parse_entire(
        document,
        limits,
        |_| false,
        |parser| {
            parser.skip_whitespace();
            if parser.peek() != Some(b'{') {
                return parser.value(limits.depth, DuplicateNames::Reject);
            }
            let depth = parser.descend(limits.depth)?;
            let mut members = Map::new();
            parser.members(DuplicateNames::Reject, &mut |parser, name| {
                parser.skip_whitespace();
                let value = if name == ATTRIBUTES && parser.peek() == Some(b'{') {
                    attributes = Some(Attributes::parse(parser, depth)?);
                    Value::Object(Map::new())
                } else {
                    parser.value(depth, parser.duplicates_within(&name, DuplicateNames::Reject))?
                };
                parser.insert(&mut members, name, value, DuplicateNames::Reject)
            })?;
            Ok(Value::Object(members))
        },
    )?;
    Ok((value, attributes))
}

/// Parses a v2 `.zattrs`. All of it is user data. Otherwise as [`parse_document`].
///
/// # Errors
/// As [`parse_document`]; [`MetadataError::Invalid`] if it is not an object.
pub fn parse_attributes(
    document: &[u8],
    limits: &MetadataLimits,
) -> Result<Map<String, Value>, MetadataError> {
    match parse(document, limits, DuplicateNames::LastWins, |_| false)? {
        Value::Object(attributes) => Ok(attributes),
        _ => Err(not_an_object()),
    }
}

/// Parses a value that is user data, such as an element of an array of JSON values. Of a repeated name, the last value
/// counts. Otherwise as [`parse_document`].
///
/// # Errors
/// As [`parse_document`], except for repeated names.
pub fn parse_value(text: &[u8], limits: &MetadataLimits) -> Result<Value, MetadataError> {
    parse(text, limits, DuplicateNames::LastWins, |_| false)
}

fn parse(
    document: &[u8],
    limits: &MetadataLimits,
    repeated: DuplicateNames,
    is_structure: fn(&str) -> bool,
) -> Result<Value, MetadataError> {
    parse_entire(document, limits, is_structure, |parser| parser.value(limits.depth, repeated))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Result<Value, MetadataError> {
        parse_document(text.as_bytes(), &MetadataLimits::default())
    }

    fn emitted(text: &str) -> String {
        document(text).unwrap().to_string()
    }

    #[test]
    fn numbers_keep_their_text() {
        for text in
            ["18446744073709551615", "1e400", "-0", "-0.0", "1.50", "123456789012345678901234567890", "1E5"]
        {
            let Value::Number(number) = document(text).unwrap() else { panic!("{text} is not a number") };
            assert_eq!(number.to_string().to_ascii_lowercase().replace('+', ""), text.to_ascii_lowercase());
        }
    }

    #[test]
    fn members_keep_their_order_and_text_round_trips() {
        let text = r#"{"b":[1,2.0,{"z":null,"a":true}],"a":"é\n\"\\","":{},"c":[]}"#;
        assert_eq!(emitted(text), text);
    }

    #[test]
    fn bare_nan_and_infinity_tokens_are_parsed_as_strings() {
        assert_eq!(
            emitted(r#"{"a":[NaN, Infinity,-Infinity ],"b":"NaN, -Infinity","c":NaN}"#),
            r#"{"a":["NaN","Infinity","-Infinity"],"b":"NaN, -Infinity","c":"NaN"}"#
        );
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(document("\u{feff} {}").unwrap(), Value::Object(Map::new()));
    }

    #[test]
    fn text_that_is_not_json_is_rejected() {
        for text in [
            "",
            " ",
            "{",
            "}",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,}",
            "{a:1}",
            "'a'",
            "\"a",
            "\"\\",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\n\"",
            "01",
            "+1",
            ".5",
            "1.",
            "1e",
            "--1",
            "-",
            "-In",
            "nul",
            "nan",
            "NaNa",
            "1 2",
            "{} {}",
            "tru",
            "[1 2]",
            "{\"a\" 1}",
            "/* c */ 1",
            "\u{a0}1",
            "\0",
        ] {
            assert!(matches!(document(text), Err(MetadataError::Json(_))), "{text:?} was accepted");
        }
        assert!(parse_document(b"\"\xff\"", &MetadataLimits::default()).is_err());
        assert!(parse_document(b"\"\xed\xa0\x80\"", &MetadataLimits::default()).is_err());
    }

    #[test]
    fn a_document_over_the_size_limit_is_rejected() {
        let limits = MetadataLimits { document_bytes: 4, ..MetadataLimits::default() };
        assert_eq!(parse_document(b"[  ]", &limits), Ok(Value::Array(Vec::new())));
        assert_eq!(parse_document(b"[   ]", &limits), Err(MetadataError::TooLarge { size: 5, limit: 4 }));
    }

    #[test]
    fn nesting_is_accepted_up_to_the_limit_and_rejected_beyond_it() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(document(&nested(64)).is_ok());
        assert!(document(&nested(65)).is_err());
        assert!(document(&"[".repeat(1_000_000)).is_err());
        assert!(document(&"{\"a\":".repeat(500_000)).is_err());
    }

    #[test]
    fn repeated_names_are_rejected_in_the_structure_and_the_last_counts_in_attributes() {
        assert!(document(r#"{"shape":[1],"shape":[2]}"#).is_err());
        assert!(document(r#"{"codecs":[{"a":1,"a":1}]}"#).is_err());
        assert!(document(r#"{"attributes":{},"attributes":{}}"#).is_err());
        assert_eq!(emitted(r#"{"attributes":{"x":[{"a":1,"a":2}]}}"#), r#"{"attributes":{"x":[{"a":2}]}}"#);
        let zattrs = parse_attributes(br#"{"a":1,"a":2}"#, &MetadataLimits::default()).unwrap();
        assert_eq!(zattrs.get("a"), Some(&Value::from(2)));
    }

    #[test]
    fn names_with_nul_are_rejected_in_the_structure_and_kept_in_attributes() {
        assert!(document(r#"{"shape\u0000": [1]}"#).is_err());
        assert!(document(r#"{"codecs": [{"na\u0000me": 1}]}"#).is_err());
        let attributes = r#"{"attributes":{"a\u0000b":{"\u0000":1}}}"#;
        assert_eq!(emitted(attributes), attributes);
    }

    #[test]
    fn a_value_of_any_kind_is_parsed_with_the_last_of_repeated_names() {
        let limits = MetadataLimits { depth: 2, ..MetadataLimits::default() };
        let value = parse_value(br#" [{"a":1,"a":NaN}] "#, &limits).unwrap();
        assert_eq!(value.to_string(), r#"[{"a":"NaN"}]"#);
        assert_eq!(parse_value(b"7", &limits).unwrap().to_string(), "7");
        assert!(parse_value(b"[[[]]]", &limits).is_err());
        assert!(parse_value(b"1,2", &limits).is_err());
    }

    #[test]
    fn attributes_must_be_an_object() {
        assert!(parse_attributes(b"[]", &MetadataLimits::default()).is_err());
        assert!(parse_attributes(b"null", &MetadataLimits::default()).is_err());
    }
}

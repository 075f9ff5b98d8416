//! [`Attributes`]: the user attributes of a node, stored as JSON text.
//!
//! Attributes are the largest part of long documents, and are mostly passed on unread. As text they are cheap to copy, write
//! and drop, and their memory is about their length. A member is parsed on access.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::MetadataError;
use super::compact::{CompactWriter, MemberSpan, slice};
use super::limits::MetadataLimits;
use super::parser::{DuplicateNames, Parser, parse_entire};

/// Maximum memory of a parsed object that is cached beside its text, in bytes. Larger ones are parsed on each access.
const MAX_CACHED_BYTES: u64 = 1 << 20;

/// The user attributes of a node: a JSON object. Clones share it.
#[derive(Clone)]
pub struct Attributes(Arc<Inner>);

struct Inner {
    /// JSON without whitespace, each name once.
    text: String,
    /// The positions of the members in the text, sorted by name.
    spans: Box<[MemberSpan]>,
    /// Upper bound on the memory of the parsed object, in bytes.
    parsed_bytes: u64,
    parsed: OnceLock<Arc<Map<String, Value>>>,
}

impl Attributes {
    /// Parses the object at the parser's position. Of a repeated name, the last value counts.
    pub(super) fn parse(parser: &mut Parser<'_>, depth: usize) -> Result<Self, MetadataError> {
        let mut compact = CompactWriter::default();
        let depth = parser.descend(depth)?;
        let spans = compact.object(parser, depth)?.into();
        let parsed_bytes = compact.parsed_bytes();
        let mut text = compact.text;
        text.shrink_to_fit();
        Ok(Self(Arc::new(Inner { text, spans, parsed_bytes, parsed: OnceLock::new() })))
    }

    /// The JSON text, without whitespace.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Whether there are no attributes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.spans.is_empty()
    }

    /// Whether there is an attribute with this name.
    #[must_use]
    pub fn contains_key(&self, name: &str) -> bool {
        self.member_text(name).is_some()
    }

    /// The JSON text of an attribute's value, if present.
    #[must_use]
    pub fn member_text(&self, name: &str) -> Option<&str> {
        let (text, name) = (self.text(), Value::from(name).to_string());
        let index = self.0.spans.binary_search_by(|span| slice(text, &span.name).cmp(&name)).ok()?;
        self.0.spans.get(index).map(|span| slice(text, &span.value))
    }

    /// The value of an attribute, if present. Each call parses it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value> {
        self.member_text(name).and_then(|text| serde_json::from_str(text).ok())
    }

    /// All attributes, parsed. Small objects are cached; larger ones are parsed by each call.
    #[must_use]
    pub fn object(&self) -> Arc<Map<String, Value>> {
        let parse = || Arc::new(serde_json::from_str(self.text()).unwrap_or_default());
        if self.is_cacheable() { Arc::clone(self.0.parsed.get_or_init(parse)) } else { parse() }
    }

    /// A copy without an attribute.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        if !self.contains_key(name) {
            return self.clone();
        }
        let name = Value::from(name).to_string();
        let mut spans: Vec<&MemberSpan> =
            self.0.spans.iter().filter(|span| slice(self.text(), &span.name) != name).collect();
        spans.sort_unstable_by_key(|span| span.name.start);
        let mut text = String::with_capacity(self.text().len());
        for span in spans {
            text.push(if text.is_empty() { '{' } else { ',' });
            text.push_str(slice(self.text(), &(span.name.start..span.value.end)));
        }
        text.push_str(if text.is_empty() { "{}" } else { "}" });
        Self::from_text(&text)
    }

    /// A copy with an attribute appended, whose name must be new.
    #[must_use]
    pub fn with(&self, name: &str, value: &Value) -> Self {
        let comma = if self.is_empty() { "" } else { "," };
        let text = self.text().strip_suffix('}').unwrap_or_default();
        Self::from_text(&format!("{text}{comma}{}:{value}}}", Value::from(name)))
    }

    /// Parses text that this module has written.
    fn from_text(text: &str) -> Self {
        // Its nesting is within the default limit.
        let limits = MetadataLimits { document_bytes: usize::MAX, ..MetadataLimits::default() };
        parse_zattrs(text.as_bytes(), &limits).unwrap_or_default()
    }

    /// Upper bound on their memory in bytes, with the parsed object if it may be cached.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let parsed = if self.is_cacheable() { self.0.parsed_bytes } else { 0 };
        let spans = size_of_val(&*self.0.spans) as u64;
        (self.0.text.len() as u64).saturating_add(spans).saturating_add(parsed)
    }

    fn is_cacheable(&self) -> bool {
        self.0.parsed_bytes <= MAX_CACHED_BYTES
    }
}

impl From<Map<String, Value>> for Attributes {
    fn from(object: Map<String, Value>) -> Self {
        Self::from_text(&Value::Object(object).to_string())
    }
}

impl Default for Attributes {
    fn default() -> Self {
        let text = "{}".to_owned();
        Self(Arc::new(Inner { text, spans: Box::default(), parsed_bytes: 0, parsed: OnceLock::new() }))
    }
}

impl PartialEq for Attributes {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Parses a v2 `.zattrs` and keeps it as text. All of it is user data. Otherwise as [`super::parse_document`].
///
/// # Errors
/// As [`super::parse_document`]; [`MetadataError::Invalid`] if it is not an object.
pub(super) fn parse_zattrs(document: &[u8], limits: &MetadataLimits) -> Result<Attributes, MetadataError> {
    parse_entire(
        document,
        limits,
        |_| false,
        |parser| {
            parser.skip_whitespace();
            match parser.peek() {
                Some(b'{') => Attributes::parse(parser, limits.depth).map(Ok),
                _ => parser.value(limits.depth, DuplicateNames::LastWins).map(|_| Err(not_an_object())),
            }
        },
    )?
}

pub(super) fn not_an_object() -> MetadataError {
    MetadataError::invalid(".zattrs", "must be an object")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::parse_attributes;
    use super::*;

    fn attributes(text: &str) -> Attributes {
        parse_zattrs(text.as_bytes(), &MetadataLimits::default()).unwrap()
    }

    #[test]
    fn text_equals_the_serialised_parsed_object() {
        for text in [
            "{}",
            " { } ",
            r#"{"a":1}"#,
            r#" { "b" : [ 1 , -0, -0.0, 1.50, 1E5, 1e400, 123456789012345678901234567890 ] , "a" : { } } "#,
            r#"{"a":"\u00e9\n\/\"é","\u0041":"\ud83d\ude00","":null}"#,
            "{\"a\":\"\x7f\"}",
            r#"{"a":[true,false,null,NaN,Infinity,-Infinity]}"#,
            r#"{"a":1,"b":2,"a":3}"#,
            r#"{"x":{"a":1,"b":[{"c":1,"c":{"d":1,"d":2}}],"\u0061":{"e":1}},"y":1,"x":{"z":1,"y":2,"z":[]}}"#,
        ] {
            let parsed = parse_attributes(text.as_bytes(), &MetadataLimits::default()).unwrap();
            let found = attributes(text);
            assert_eq!(found.text(), Value::Object(parsed.clone()).to_string(), "{text}");
            assert_eq!(*found.object(), parsed, "{text}");
            for (name, value) in &parsed {
                assert_eq!(found.get(name).as_ref(), Some(value), "{text}");
            }
            assert_eq!(found.get("none"), None);
            assert_eq!(Attributes::from(parsed), found, "{text}");
        }
    }

    #[test]
    fn invalid_text_is_rejected_with_the_errors_of_the_value_parser() {
        let limits = MetadataLimits { depth: 3, document_bytes: 60, ..MetadataLimits::default() };
        for text in [
            "",
            "[]",
            "1",
            "{",
            r#"{"a""#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":01}"#,
            r#"{"a":1.}"#,
            r#"{"a":-}"#,
            r#"{"a":"\x"}"#,
            "{\"a\":\"\n\"}",
            r#"{"a":"b}"#,
            r#"{"a":[1 2]}"#,
            r#"{"a":nul}"#,
            r#"{"a":[[1]]} "#,
            r#"{"a":[[[1]]]}"#,
            r#"{"a":1} x"#,
            r"{a:1}",
            r#"{"a":"0123456789012345678901234567890123456789012345678901234567890"}"#,
        ] {
            let parsed = parse_attributes(text.as_bytes(), &limits).map(|_| ());
            assert_eq!(parse_zattrs(text.as_bytes(), &limits).map(|_| ()), parsed, "{text}");
        }
    }

    #[test]
    fn an_attribute_can_be_removed_or_appended() {
        let found = attributes(r#"{"b":[1.50],"a":{"b":1},"c":2}"#);
        assert_eq!(found.without("b").text(), r#"{"a":{"b":1},"c":2}"#);
        assert_eq!(found.without("a").without("c").text(), r#"{"b":[1.50]}"#);
        assert_eq!(found.without("x"), found);
        assert_eq!(attributes(r#"{"a":1}"#).without("a").text(), "{}");
        assert_eq!(found.with("\"", &json!(["y"])).get("\""), Some(json!(["y"])));
        assert_eq!(Attributes::default().with("a", &json!(1)).text(), r#"{"a":1}"#);
    }

    #[test]
    fn small_parsed_attributes_are_cached_and_large_ones_kept_as_text_only() {
        let short = Attributes::from(Map::from_iter([("a".to_owned(), json!([1, 2]))]));
        assert!(Arc::ptr_eq(&short.object(), &short.object()));
        let long = Attributes::from(Map::from_iter([("a".to_owned(), json!(vec![json!({"": 1}); 20_000]))]));
        assert!(!Arc::ptr_eq(&long.object(), &long.object()));
        assert!(long.memory_bytes() < long.text().len() as u64 * 2);
    }

    proptest::proptest! {
        #[test]
        fn any_text_parses_as_by_the_value_parser(text in "[{}\\[\\]\":,0-9a-b\\\\ eE.+-]{0,24}") {
            let limits = MetadataLimits::default();
            let parsed = parse_attributes(text.as_bytes(), &limits).map(|object| Value::Object(object).to_string());
            let found = parse_zattrs(text.as_bytes(), &limits).map(|found| found.text().to_owned());
            proptest::prop_assert_eq!(found, parsed);
        }
    }
}

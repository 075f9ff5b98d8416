//! [`Attributes`]: what a user says of a node, as text.
//!
//! Attributes are most of what long documents hold, and hardly ever looked at: they are handed on. As text they are copied,
//! written and dropped at once, and take about as much memory as they are long. A member is parsed when it is asked for.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::MetadataError;
use super::compact::{Compact, Span, part};
use super::limits::MetadataLimits;
use super::parser::{Parser, Repeated, whole};

/// Parsed attributes are kept beside their text if they take at most so many bytes. Others are parsed whenever they are
/// asked for.
const KEPT_BYTES: u64 = 1 << 20;

/// The user's attributes of a node: a JSON object. Clones share it.
#[derive(Clone)]
pub struct Attributes(Arc<Inner>);

struct Inner {
    /// Without blanks, each name once.
    text: String,
    /// The members in the order of their names.
    spans: Box<[Span]>,
    /// Bytes of memory that the parsed object takes, at most.
    parsed_bytes: u64,
    parsed: OnceLock<Arc<Map<String, Value>>>,
}

impl Attributes {
    /// The object that begins where the parser stands, in which names may repeat: the last one counts.
    pub(super) fn parse(parser: &mut Parser<'_>, depth: usize) -> Result<Self, MetadataError> {
        let mut compact = Compact::default();
        let depth = parser.deeper(depth)?;
        let spans = compact.object(parser, depth)?.into();
        let parsed_bytes = compact.parsed_bytes();
        let mut text = compact.text;
        text.shrink_to_fit();
        Ok(Self(Arc::new(Inner { text, spans, parsed_bytes, parsed: OnceLock::new() })))
    }

    /// The JSON text, without blanks.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.spans.is_empty()
    }

    /// Whether there is one of this name.
    #[must_use]
    pub fn contains_key(&self, name: &str) -> bool {
        self.text_of(name).is_some()
    }

    /// The text of one, if it is there.
    #[must_use]
    pub fn text_of(&self, name: &str) -> Option<&str> {
        let (text, name) = (self.text(), Value::from(name).to_string());
        let place = self.0.spans.binary_search_by(|span| part(text, &span.name).cmp(&name)).ok()?;
        self.0.spans.get(place).map(|span| part(text, &span.value))
    }

    /// One of them, if it is there. To parse it takes as long as it is long.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value> {
        self.text_of(name).and_then(|text| serde_json::from_str(text).ok())
    }

    /// All of them. To parse them takes as long as they are long.
    #[must_use]
    pub fn object(&self) -> Arc<Map<String, Value>> {
        let parse = || Arc::new(serde_json::from_str(self.text()).unwrap_or_default());
        if self.is_kept() { Arc::clone(self.0.parsed.get_or_init(parse)) } else { parse() }
    }

    /// The same without one of them.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        if !self.contains_key(name) {
            return self.clone();
        }
        let name = Value::from(name).to_string();
        let mut spans: Vec<&Span> =
            self.0.spans.iter().filter(|span| part(self.text(), &span.name) != name).collect();
        spans.sort_unstable_by_key(|span| span.name.start);
        let mut text = String::with_capacity(self.text().len());
        for span in spans {
            text.push(if text.is_empty() { '{' } else { ',' });
            text.push_str(part(self.text(), &(span.name.start..span.value.end)));
        }
        text.push_str(if text.is_empty() { "{}" } else { "}" });
        Self::of_text(&text)
    }

    /// The same with one more behind them, of which there is none yet.
    #[must_use]
    pub fn with(&self, name: &str, value: &Value) -> Self {
        let comma = if self.is_empty() { "" } else { "," };
        let text = self.text().strip_suffix('}').unwrap_or_default();
        Self::of_text(&format!("{text}{comma}{}:{value}}}", Value::from(name)))
    }

    /// Of text that was written here.
    fn of_text(text: &str) -> Self {
        // It is nested no deeper than may be parsed.
        let limits = MetadataLimits { document_bytes: usize::MAX, ..MetadataLimits::default() };
        parse_zattrs(text.as_bytes(), &limits).unwrap_or_default()
    }

    /// Bytes of memory that they take, at most.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let parsed = if self.is_kept() { self.0.parsed_bytes } else { 0 };
        let spans = size_of_val(&*self.0.spans) as u64;
        (self.0.text.len() as u64).saturating_add(spans).saturating_add(parsed)
    }

    fn is_kept(&self) -> bool {
        self.0.parsed_bytes <= KEPT_BYTES
    }
}

impl From<Map<String, Value>> for Attributes {
    fn from(object: Map<String, Value>) -> Self {
        Self::of_text(&Value::Object(object).to_string())
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

/// Parses a v2 `.zattrs` and keeps it as text: an object that is the user's throughout. Otherwise as [`parse_document`].
///
/// # Errors
/// As [`parse_document`]; [`MetadataError::Invalid`] if it is not an object.
pub(super) fn parse_zattrs(document: &[u8], limits: &MetadataLimits) -> Result<Attributes, MetadataError> {
    whole(
        document,
        limits,
        |_| false,
        |parser| {
            parser.skip_whitespace();
            match parser.peek() {
                Some(b'{') => Attributes::parse(parser, limits.depth).map(Ok),
                _ => parser.value(limits.depth, Repeated::LastWins).map(|_| Err(not_an_object())),
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
    fn the_text_is_what_the_parsed_object_would_be_written_as() {
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
    fn what_cannot_be_parsed_is_refused_with_the_same_words() {
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
    fn one_is_left_out_or_put_behind_the_others() {
        let found = attributes(r#"{"b":[1.50],"a":{"b":1},"c":2}"#);
        assert_eq!(found.without("b").text(), r#"{"a":{"b":1},"c":2}"#);
        assert_eq!(found.without("a").without("c").text(), r#"{"b":[1.50]}"#);
        assert_eq!(found.without("x"), found);
        assert_eq!(attributes(r#"{"a":1}"#).without("a").text(), "{}");
        assert_eq!(found.with("\"", &json!(["y"])).get("\""), Some(json!(["y"])));
        assert_eq!(Attributes::default().with("a", &json!(1)).text(), r#"{"a":1}"#);
    }

    #[test]
    fn short_attributes_are_kept_parsed_and_long_ones_take_little_more_than_their_text() {
        let short = Attributes::from(Map::from_iter([("a".to_owned(), json!([1, 2]))]));
        assert!(Arc::ptr_eq(&short.object(), &short.object()));
        let long = Attributes::from(Map::from_iter([("a".to_owned(), json!(vec![json!({"": 1}); 20_000]))]));
        assert!(!Arc::ptr_eq(&long.object(), &long.object()));
        assert!(long.memory_bytes() < long.text().len() as u64 * 2);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_as_the_parser_of_values_reads_it(text in "[{}\\[\\]\":,0-9a-b\\\\ eE.+-]{0,24}") {
            let limits = MetadataLimits::default();
            let parsed = parse_attributes(text.as_bytes(), &limits).map(|object| Value::Object(object).to_string());
            let found = parse_zattrs(text.as_bytes(), &limits).map(|found| found.text().to_owned());
            proptest::prop_assert_eq!(found, parsed);
        }
    }
}

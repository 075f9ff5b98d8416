//! [`Attributes`]: the user attributes of a node, stored as JSON text.
//!
//! Attributes are the largest part of long documents, and are mostly passed on unread. As text they are cheap to copy, write
//! and drop, and their memory is about their length. A member is parsed on access.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::MetadataError;
use super::compact::{CompactWriter, MemberSpan, slice};
use super::limits::MetadataLimits;
use super::parser::{DuplicateNames, Parser, parse_entire};

/// Maximum memory of a parsed object that is cached beside its text, in bytes. Larger ones are parsed on each access.
const MAX_CACHED_BYTES: u64 = 1 << 20;
/// Maximum length of the text of an attribute of which a number, a name or a few of them is expected, in bytes. A longer one
/// is not parsed where it is expected: that takes long, and it is none.
pub const MAX_SHORT_BYTES: usize = 4 << 10;

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
        let spans = compact.object(parser, depth)?;
        let parsed_bytes = compact.parsed_bytes();
        Ok(Self::new(compact.text, spans, parsed_bytes))
    }

    fn new(mut text: String, spans: Vec<MemberSpan>, parsed_bytes: u64) -> Self {
        text.shrink_to_fit();
        Self(Arc::new(Inner { text, spans: spans.into(), parsed_bytes, parsed: OnceLock::new() }))
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
        self.span(name).map(|span| slice(self.text(), &span.value))
    }

    fn span(&self, name: &str) -> Option<&MemberSpan> {
        let (text, name) = (self.text(), Value::from(name).to_string());
        let index = self.0.spans.binary_search_by(|span| slice(text, &span.name).cmp(&name)).ok()?;
        self.0.spans.get(index)
    }

    /// The value of an attribute, if present. Each call parses it, which takes long if it is long: such calls are for the
    /// compute pool.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value> {
        self.member_text(name).and_then(|text| serde_json::from_str(text).ok())
    }

    /// As [`Attributes::get`], but `None` if the text of the value is longer than [`MAX_SHORT_BYTES`].
    #[must_use]
    pub fn get_short(&self, name: &str) -> Option<Value> {
        let text = self.member_text(name).filter(|text| text.len() <= MAX_SHORT_BYTES)?;
        serde_json::from_str(text).ok()
    }

    /// The beginning of an attribute that is a text, of at most [`MAX_SHORT_BYTES`] as JSON; `None` if it is none.
    #[must_use]
    pub fn beginning(&self, name: &str) -> Option<String> {
        let text = self.member_text(name).filter(|text| text.starts_with('"'))?;
        if text.len() <= MAX_SHORT_BYTES {
            return serde_json::from_str(text).ok();
        }
        // An escape sequence has at most six bytes, and a character four.
        let parsed = |end: usize| serde_json::from_str::<String>(&format!("{}\"", text.get(..end)?)).ok();
        (MAX_SHORT_BYTES - 6..MAX_SHORT_BYTES).rev().find_map(parsed)
    }

    /// All attributes, parsed. Small objects are cached; larger ones are parsed by each call.
    #[must_use]
    pub fn object(&self) -> Arc<Map<String, Value>> {
        let parse = || Arc::new(serde_json::from_str(self.text()).unwrap_or_default());
        if self.is_cacheable() { Arc::clone(self.0.parsed.get_or_init(parse)) } else { parse() }
    }

    /// A copy without some attributes. The others are copied as text.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        let mut removed: Vec<&MemberSpan> = names.iter().filter_map(|name| self.span(name)).collect();
        if removed.is_empty() {
            return self.clone();
        }
        removed.sort_unstable_by_key(|span| span.name.start);
        removed.dedup();
        // Each is removed with the comma or the brace before it.
        let cuts: Vec<Range<u32>> =
            removed.into_iter().map(|span| span.name.start - 1..span.value.end).collect();
        let mut text = String::with_capacity(self.text().len());
        let mut copied = 0;
        for cut in &cuts {
            text.push_str(slice(self.text(), &(copied..cut.start)));
            copied = cut.end;
        }
        text.push_str(self.text().get(copied as usize..).unwrap_or_default());
        if text.starts_with(',') {
            text.replace_range(..1, "{");
        } else if !text.starts_with('{') {
            text.insert(0, '{');
        }
        let moved = |span: &MemberSpan| {
            let before = cuts.iter().take_while(|cut| cut.start < span.name.start);
            let by: u32 = before.map(|cut| cut.end - cut.start).sum();
            MemberSpan {
                name: span.name.start - by..span.name.end - by,
                value: span.value.start - by..span.value.end - by,
            }
        };
        let is_kept = |span: &&MemberSpan| !cuts.iter().any(|cut| cut.end == span.value.end);
        let spans = self.0.spans.iter().filter(is_kept).map(moved).collect();
        Self::new(text, spans, self.0.parsed_bytes)
    }

    /// A copy with an attribute appended, whose name must be new. The others are copied as text.
    #[must_use]
    pub fn with(&self, name: &str, value: &Value) -> Self {
        let added = Self::from_text(&format!("{{{}:{value}}}", Value::from(name)));
        let Some(span) = added.0.spans.first().filter(|_| !self.is_empty()) else { return added };
        let (own, member) = (self.text(), slice(added.text(), &(span.name.start..span.value.end)));
        let mut text = String::with_capacity(own.len() + 1 + member.len());
        text.push_str(own.strip_suffix('}').unwrap_or_default());
        // It has a comma where it had a brace.
        let by = u32::try_from(text.len()).unwrap_or(u32::MAX);
        text.extend([",", member, "}"]);
        let mut spans: Vec<MemberSpan> = Vec::with_capacity(self.0.spans.len() + 1);
        spans.extend_from_slice(&self.0.spans);
        let name = slice(added.text(), &span.name);
        let place = spans.partition_point(|known| slice(own, &known.name) < name);
        let moved = |range: &Range<u32>| range.start + by..range.end + by;
        spans.insert(place, MemberSpan { name: moved(&span.name), value: moved(&span.value) });
        Self::new(text, spans, self.0.parsed_bytes.saturating_add(added.0.parsed_bytes))
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
    fn attributes_can_be_removed_or_appended() {
        let found = attributes(r#"{"b":[1.50],"a":{"b":1},"c":2}"#);
        let cases: [(&[&str], &str); 8] = [
            (&["b"], r#"{"a":{"b":1},"c":2}"#),
            (&["a"], r#"{"b":[1.50],"c":2}"#),
            (&["c", "x"], r#"{"b":[1.50],"a":{"b":1}}"#),
            (&["a", "b", "a"], r#"{"c":2}"#),
            (&["c", "b"], r#"{"a":{"b":1}}"#),
            (&["c", "a", "b"], "{}"),
            (&["x"], found.text()),
            (&[], found.text()),
        ];
        for (names, expected) in cases {
            is_as_if_parsed(&found.without(names), expected);
        }
        is_as_if_parsed(&found.with("\"", &json!(["y"])), r#"{"b":[1.50],"a":{"b":1},"c":2,"\"":["y"]}"#);
        is_as_if_parsed(&found.with("bb", &json!("é")), r#"{"b":[1.50],"a":{"b":1},"c":2,"bb":"é"}"#);
        is_as_if_parsed(&found.without(&["b"]).with("b", &json!(null)), r#"{"a":{"b":1},"c":2,"b":null}"#);
        is_as_if_parsed(&Attributes::default().with("a", &json!(1)), r#"{"a":1}"#);
        is_as_if_parsed(&found.without(&["c", "a", "b"]).with("z", &json!({})), r#"{"z":{}}"#);
    }

    /// Asserts that attributes have this text, and are in every way as those parsed from it.
    fn is_as_if_parsed(found: &Attributes, text: &str) {
        let parsed = attributes(text);
        assert_eq!(found.text(), text);
        assert_eq!(found.0.spans, parsed.0.spans, "{text}");
        assert!(found.0.parsed_bytes >= parsed.0.parsed_bytes, "{text}");
        assert_eq!(found.object(), parsed.object(), "{text}");
    }

    #[test]
    fn what_is_expected_to_be_short_is_not_parsed_if_it_is_long() {
        let list = |count: usize| json!({ "a": vec![1; count] });
        let of = |document: &Value| Attributes::from(document.as_object().unwrap().clone());
        let (short, long) = (list((MAX_SHORT_BYTES - 2) / 2), list(MAX_SHORT_BYTES / 2));
        assert_eq!(of(&short).get_short("a").as_ref(), short.get("a"));
        assert_eq!(of(&long).get_short("a"), None);
        assert_eq!(of(&long).get("a").as_ref(), long.get("a"));
        assert_eq!(of(&short).get_short("b"), None);
    }

    #[test]
    fn a_long_text_has_a_beginning() {
        let of = |value: Value| Attributes::from(Map::from_iter([("a".to_owned(), value)])).beginning("a");
        assert_eq!(of(json!("é\n")).as_deref(), Some("é\n"));
        assert_eq!(of(json!(["x"])), None);
        assert_eq!(of(json!("x".repeat(MAX_SHORT_BYTES))), Some("x".repeat(MAX_SHORT_BYTES - 2)));
        for text in ["\u{1}", "\n", "\\", "\"", "é", "😀", "x\u{1}😀\\"] {
            let long = text.repeat(MAX_SHORT_BYTES);
            for at in 0..12 {
                let long = "x".repeat(at) + &long;
                let beginning = of(json!(long)).unwrap();
                assert!(long.starts_with(&beginning) && beginning.len() > MAX_SHORT_BYTES / 8, "{text:?}");
            }
        }
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

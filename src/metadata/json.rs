//! JSON from hostile bytes: bounded in size and depth, and lenient about bare `NaN`, `Infinity`, `-Infinity`.
//!
//! RFC 8259, as Zarr core 3.1 "Metadata" asks. The structure is read here, so that depth, repeated names and the
//! bare tokens are ours to judge; single strings and numbers are `serde_json`'s. Numbers keep their text. What a
//! member means is not decided here.

use std::ops::Range;

use serde_json::{Map, Number, Value};

use super::{Attributes, MetadataError};

/// Limits on what a metadata document may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataLimits {
    /// Longest document, in bytes.
    pub document_bytes: usize,
    /// Deepest nesting of arrays and objects.
    pub depth: usize,
    /// Most dimensions of an array.
    pub rank: usize,
    /// Most codecs in one chain.
    pub codecs: usize,
    /// Longest document that holds copies of others (consolidated metadata), in bytes, read or made.
    pub consolidated_bytes: usize,
    /// Most nodes looked at to make one.
    pub consolidated_nodes: usize,
}

impl Default for MetadataLimits {
    fn default() -> Self {
        Self {
            document_bytes: 4 << 20,
            depth: 64,
            rank: 32,
            codecs: 16,
            consolidated_bytes: 64 << 20,
            consolidated_nodes: 50_000,
        }
    }
}

/// What a name that an object gives twice means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeated {
    /// An error: two readers would differ about the structure.
    Refused,
    /// The last one counts, as nearly every JSON reader has it.
    LastWins,
}

/// The member whose value is the user's, in which repeated names are tolerated.
pub(super) const ATTRIBUTES: &str = "attributes";

/// Parses a document, of which everything but the members named `attributes` is structure.
///
/// A byte order mark is skipped. Bare `NaN`, `Infinity` and `-Infinity` become the strings of those names, in attributes
/// too, as JSON has no other way to say them: they are never emitted bare again.
///
/// # Errors
/// [`MetadataError::TooLarge`], and [`MetadataError::Json`] for whatever is not JSON, is nested deeper than
/// `limits.depth`, or gives a name twice outside attributes.
pub fn parse_document(document: &[u8], limits: &MetadataLimits) -> Result<Value, MetadataError> {
    parse(document, limits, Repeated::Refused, |_| false)
}

/// Parses a document in whose attributes some members, told by their names, are structure. Otherwise as
/// [`parse_document`].
///
/// # Errors
/// As [`parse_document`], also for names given twice in these members.
pub(super) fn parse_declaring(
    document: &[u8],
    limits: &MetadataLimits,
    is_structure: fn(&str) -> bool,
) -> Result<Value, MetadataError> {
    parse(document, limits, Repeated::Refused, is_structure)
}

/// Parses a document, and keeps its attributes apart, as text; `None` if they are missing or no object. Otherwise as
/// [`parse_document`].
///
/// # Errors
/// As [`parse_document`].
pub(super) fn parse_with_attributes(
    document: &[u8],
    limits: &MetadataLimits,
) -> Result<(Value, Option<Attributes>), MetadataError> {
    let mut attributes = None;
    let value = whole(
        document,
        limits,
        |_| false,
        |parser| {
            parser.skip_whitespace();
            if parser.peek() != Some(b'{') {
                return parser.value(limits.depth, Repeated::Refused);
            }
            let depth = parser.deeper(limits.depth)?;
            let mut members = Map::new();
            parser.members(Repeated::Refused, &mut |parser, name| {
                parser.skip_whitespace();
                let value = if name == ATTRIBUTES && parser.peek() == Some(b'{') {
                    attributes = Some(Attributes::parse(parser, depth)?);
                    Value::Object(Map::new())
                } else {
                    parser.value(depth, parser.within(&name, Repeated::Refused))?
                };
                parser.insert(&mut members, name, value, Repeated::Refused)
            })?;
            Ok(Value::Object(members))
        },
    )?;
    Ok((value, attributes))
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

fn not_an_object() -> MetadataError {
    MetadataError::invalid(".zattrs", "must be an object")
}

/// Parses a v2 `.zattrs`: an object that is the user's throughout. Otherwise as [`parse_document`].
///
/// # Errors
/// As [`parse_document`]; [`MetadataError::Invalid`] if it is not an object.
pub fn parse_attributes(
    document: &[u8],
    limits: &MetadataLimits,
) -> Result<Map<String, Value>, MetadataError> {
    match parse(document, limits, Repeated::LastWins, |_| false)? {
        Value::Object(attributes) => Ok(attributes),
        _ => Err(not_an_object()),
    }
}

/// Parses a value that is the user's throughout, such as an element of an array of JSON values. Otherwise as
/// [`parse_document`].
///
/// # Errors
/// As [`parse_document`], but for names given twice: the last one counts.
pub fn parse_value(text: &[u8], limits: &MetadataLimits) -> Result<Value, MetadataError> {
    parse(text, limits, Repeated::LastWins, |_| false)
}

/// Shows each member of an object: its name, and where in `text` its value stands. Nothing is made of the values, so
/// that a long document costs no more than its text; that they are valid JSON is not checked.
///
/// # Errors
/// [`MetadataError::Json`] for what is no object or nested deeper than `depth`; those of `visit`.
pub(super) fn visit_members(
    text: &[u8],
    depth: usize,
    mut visit: impl FnMut(String, Range<usize>) -> Result<(), MetadataError>,
) -> Result<(), MetadataError> {
    let mut parser = Parser { text, at: 0, is_structure: |_| false };
    parser.take(BYTE_ORDER_MARK);
    parser.skip_whitespace();
    if parser.peek() != Some(b'{') {
        return Err(parser.error("expected an object"));
    }
    parser.skip_members(depth, Parser::string, &mut visit)?;
    parser.skip_whitespace();
    match parser.peek() {
        None => Ok(()),
        Some(_) => Err(parser.error("trailing characters")),
    }
}

/// U+FEFF, which some editors put before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

fn parse(
    document: &[u8],
    limits: &MetadataLimits,
    repeated: Repeated,
    is_structure: fn(&str) -> bool,
) -> Result<Value, MetadataError> {
    whole(document, limits, is_structure, |parser| parser.value(limits.depth, repeated))
}

/// What `read` makes of a whole document.
fn whole<T>(
    document: &[u8],
    limits: &MetadataLimits,
    is_structure: fn(&str) -> bool,
    read: impl FnOnce(&mut Parser<'_>) -> Result<T, MetadataError>,
) -> Result<T, MetadataError> {
    if document.len() > limits.document_bytes {
        return Err(MetadataError::TooLarge {
            size: document.len() as u64,
            limit: limits.document_bytes as u64,
        });
    }
    let text = document.strip_prefix(BYTE_ORDER_MARK).unwrap_or(document);
    if let Err(error) = std::str::from_utf8(text) {
        return Err(MetadataError::Json(error.to_string()));
    }
    let mut parser = Parser { text, at: 0, is_structure };
    let value = read(&mut parser)?;
    parser.skip_whitespace();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.error("trailing characters")),
    }
}

/// A place in a text. Descends one call for each level of nesting, so never deeper than the limit.
pub(super) struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    /// Which members are structure although they stand in what is the user's.
    is_structure: fn(&str) -> bool,
}

impl Parser<'_> {
    pub(super) fn error(&self, what: &str) -> MetadataError {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line = before.split(|&byte| byte == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|&&byte| byte != b'\n').count();
        MetadataError::Json(format!("{what} at byte {} (line {line}, column {column})", self.at))
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(super) fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Whether `token` stands here; if so, it is behind us afterwards.
    fn take(&mut self, token: &[u8]) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn value(&mut self, depth: usize, repeated: Repeated) -> Result<Value, MetadataError> {
        self.skip_whitespace();
        match self.peek() {
            Some(b'{') => self.object(self.deeper(depth)?, repeated).map(Value::Object),
            Some(b'[') => self.array(self.deeper(depth)?, repeated).map(Value::Array),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') if !self.rest().starts_with(b"-I") => self.number().map(Value::Number),
            _ => self.word(),
        }
    }

    pub(super) fn deeper(&self, depth: usize) -> Result<usize, MetadataError> {
        depth.checked_sub(1).ok_or_else(|| self.error("nested too deeply"))
    }

    /// The words of JSON, and the three that are not JSON but stand in many documents.
    pub(super) fn word(&mut self) -> Result<Value, MetadataError> {
        const WORDS: [(&str, Value); 3] =
            [("null", Value::Null), ("true", Value::Bool(true)), ("false", Value::Bool(false))];
        const BARE: [&str; 3] = ["NaN", "Infinity", "-Infinity"];
        for (word, value) in WORDS {
            if self.take(word.as_bytes()) {
                return Ok(value);
            }
        }
        for word in BARE {
            if self.take(word.as_bytes()) {
                return Ok(Value::from(word));
            }
        }
        Err(self.error("expected a value"))
    }

    fn object(&mut self, depth: usize, repeated: Repeated) -> Result<Map<String, Value>, MetadataError> {
        let mut members = Map::new();
        self.members(repeated, &mut |parser, name| {
            let value = parser.value(depth, parser.within(&name, repeated))?;
            parser.insert(&mut members, name, value, repeated)
        })?;
        Ok(members)
    }

    /// What repeated names mean in the value of a member.
    fn within(&self, name: &str, repeated: Repeated) -> Repeated {
        match name {
            ATTRIBUTES => Repeated::LastWins,
            name if (self.is_structure)(name) => Repeated::Refused,
            _ => repeated,
        }
    }

    fn insert(
        &self,
        members: &mut Map<String, Value>,
        name: String,
        value: Value,
        repeated: Repeated,
    ) -> Result<(), MetadataError> {
        if members.insert(name, value).is_some() && repeated == Repeated::Refused {
            return Err(self.error("a name given twice, before here"));
        }
        Ok(())
    }

    /// Reads the members of an object: `read` is given the name of each, and reads its value.
    fn members(
        &mut self,
        repeated: Repeated,
        read: &mut dyn FnMut(&mut Self, String) -> Result<(), MetadataError>,
    ) -> Result<(), MetadataError> {
        self.each(b'}', "expected `,` or `}`", &mut |parser| {
            parser.skip_whitespace();
            if parser.peek() != Some(b'"') {
                return Err(parser.error("expected a name"));
            }
            let name = parser.string()?;
            if repeated == Repeated::Refused && name.contains('\0') {
                // Readers that end a text there would see another name.
                return Err(parser.error("a name with a NUL, before here"));
            }
            parser.colon()?;
            read(parser, name)
        })
    }

    pub(super) fn colon(&mut self) -> Result<(), MetadataError> {
        self.skip_whitespace();
        if self.take(b":") { Ok(()) } else { Err(self.error("expected `:`")) }
    }

    /// Reads what stands between the bracket that is here and the one that closes it: `read` is called for each item.
    pub(super) fn each(
        &mut self,
        close: u8,
        expected: &str,
        read: &mut dyn FnMut(&mut Self) -> Result<(), MetadataError>,
    ) -> Result<(), MetadataError> {
        self.at += 1;
        self.skip_whitespace();
        if self.take(&[close]) {
            return Ok(());
        }
        loop {
            read(self)?;
            self.skip_whitespace();
            if self.take(&[close]) {
                return Ok(());
            }
            if !self.take(b",") {
                return Err(self.error(expected));
            }
        }
    }

    fn array(&mut self, depth: usize, repeated: Repeated) -> Result<Vec<Value>, MetadataError> {
        let mut items = Vec::new();
        self.each(b']', "expected `,` or `]`", &mut |parser| {
            items.push(parser.value(depth, repeated)?);
            Ok(())
        })?;
        Ok(items)
    }

    /// Moves past an object, and shows its members: `name` reads or skips the name of each, and `visit` is given where its
    /// value stands.
    fn skip_members<N>(
        &mut self,
        depth: usize,
        name: fn(&mut Self) -> Result<N, MetadataError>,
        visit: &mut dyn FnMut(N, Range<usize>) -> Result<(), MetadataError>,
    ) -> Result<(), MetadataError> {
        let depth = self.deeper(depth)?;
        self.each(b'}', "expected `,` or `}`", &mut |parser| {
            parser.skip_whitespace();
            if parser.peek() != Some(b'"') {
                return Err(parser.error("expected a name"));
            }
            let name = name(parser)?;
            parser.colon()?;
            parser.skip_whitespace();
            let start = parser.at;
            parser.skip(depth)?;
            visit(name, start..parser.at)
        })
    }

    /// Moves past a value of any kind.
    fn skip(&mut self, depth: usize) -> Result<(), MetadataError> {
        match self.peek() {
            Some(b'"') => self.skip_string(),
            Some(b'{') => self.skip_members(depth, Self::skip_string, &mut |(), _| Ok(())),
            Some(b'[') => {
                let depth = self.deeper(depth)?;
                self.each(b']', "expected `,` or `]`", &mut |parser| {
                    parser.skip_whitespace();
                    parser.skip(depth)
                })
            }
            _ => {
                let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
                let length = self.rest().iter().take_while(|byte| !ends(byte)).count();
                if length == 0 {
                    return Err(self.error("expected a value"));
                }
                self.at += length;
                Ok(())
            }
        }
    }

    pub(super) fn string(&mut self) -> Result<String, MetadataError> {
        let length = self.string_length();
        self.token(length, "a string")
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "one of the ways in which names are passed, of which others fail"
    )]
    fn skip_string(&mut self) -> Result<(), MetadataError> {
        self.at = self.at.saturating_add(self.string_length()).min(self.text.len());
        Ok(())
    }

    /// Moves past the next bytes, and gives them.
    pub(super) fn pass(&mut self, length: usize) -> &[u8] {
        let start = self.at;
        self.at = start.saturating_add(length).min(self.text.len());
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Bytes of the string that begins here, its quotes included; more than there are, if it does not end.
    pub(super) fn string_length(&self) -> usize {
        let mut escaped = false;
        let inside = self.rest().iter().skip(1).take_while(|&&byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            !ends
        });
        inside.count() + 2
    }

    pub(super) fn number(&mut self) -> Result<Number, MetadataError> {
        let length = self.number_length();
        self.token(length, "a number")
    }

    /// Bytes of what may be a number that begins here.
    pub(super) fn number_length(&self) -> usize {
        let digits = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        self.rest().iter().take_while(digits).count()
    }

    /// The next `length` bytes as one JSON token.
    fn token<T: serde::de::DeserializeOwned>(
        &mut self,
        length: usize,
        what: &str,
    ) -> Result<T, MetadataError> {
        let token =
            self.rest().get(..length).ok_or_else(|| self.error("the document ends within a string"))?;
        let value = serde_json::from_slice(token)
            .map_err(|error| self.error(&format!("{what} with {error}, read")))?;
        self.at += length;
        Ok(value)
    }
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
    fn bare_nan_tokens_are_read_as_strings_and_never_emitted_bare() {
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
    fn what_is_not_json_is_an_error() {
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
    fn a_document_over_the_limit_is_too_large() {
        let limits = MetadataLimits { document_bytes: 4, ..MetadataLimits::default() };
        assert_eq!(parse_document(b"[  ]", &limits), Ok(Value::Array(Vec::new())));
        assert_eq!(parse_document(b"[   ]", &limits), Err(MetadataError::TooLarge { size: 5, limit: 4 }));
    }

    #[test]
    fn nesting_up_to_the_limit_is_read_and_beyond_it_refused() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(document(&nested(64)).is_ok());
        assert!(document(&nested(65)).is_err());
        assert!(document(&"[".repeat(1_000_000)).is_err());
        assert!(document(&"{\"a\":".repeat(500_000)).is_err());
    }

    #[test]
    fn a_repeated_name_is_refused_in_the_structure_and_the_last_one_wins_in_attributes() {
        assert!(document(r#"{"shape":[1],"shape":[2]}"#).is_err());
        assert!(document(r#"{"codecs":[{"a":1,"a":1}]}"#).is_err());
        assert!(document(r#"{"attributes":{},"attributes":{}}"#).is_err());
        assert_eq!(emitted(r#"{"attributes":{"x":[{"a":1,"a":2}]}}"#), r#"{"attributes":{"x":[{"a":2}]}}"#);
        let zattrs = parse_attributes(br#"{"a":1,"a":2}"#, &MetadataLimits::default()).unwrap();
        assert_eq!(zattrs.get("a"), Some(&Value::from(2)));
    }

    #[test]
    fn a_name_with_a_nul_is_refused_in_the_structure_and_kept_in_attributes() {
        assert!(document(r#"{"shape\u0000": [1]}"#).is_err());
        assert!(document(r#"{"codecs": [{"na\u0000me": 1}]}"#).is_err());
        let attributes = r#"{"attributes":{"a\u0000b":{"\u0000":1}}}"#;
        assert_eq!(emitted(attributes), attributes);
    }

    #[test]
    fn members_are_shown_with_the_text_of_their_values() {
        let text =
            "\u{feff} {\"a\" : [1, {\"b\": \"}\\\"]\"}] ,\"\\u0062\":NaN,\"c\":\"\",\"a\":{ } }\n".as_bytes();
        let mut found = Vec::new();
        let shown = visit_members(text, 4, |name, span| {
            found.push((name, std::str::from_utf8(&text[span]).unwrap()));
            Ok(())
        });
        assert_eq!(shown, Ok(()));
        let expected = [("a", r#"[1, {"b": "}\"]"}]"#), ("b", "NaN"), ("c", "\"\""), ("a", "{ }")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
        for text in
            ["", "[]", "{", "{\"a\"", "{\"a\":", "{\"a\":}", "{\"a\":1", "{\"a\":\"", "{\"a\":[1}", "{} {}"]
        {
            assert!(visit_members(text.as_bytes(), 4, |_, _| Ok(())).is_err(), "{text}");
        }
        let deep = format!("{{\"a\":{}", "[".repeat(1_000_000));
        assert!(visit_members(deep.as_bytes(), 64, |_, _| Ok(())).is_err());
    }

    #[test]
    fn a_value_is_of_any_kind_and_the_last_of_a_repeated_name_wins() {
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

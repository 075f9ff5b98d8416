//! [`Parser`]: a parser of untrusted JSON, bounded in size and depth (RFC 8259).
//!
//! The structure is parsed here and not by `serde_json`, to control depth, repeated names and the bare tokens `NaN`,
//! `Infinity` and `-Infinity`. `serde_json` parses single strings and numbers. Numbers keep their text.

use std::ops::Range;

use serde_json::{Map, Number, Value};

use super::MetadataError;
use super::limits::MetadataLimits;

/// The treatment of a repeated name in an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DuplicateNames {
    /// An error, because readers could disagree about the structure.
    Reject,
    /// The last one counts, as in nearly every JSON parser.
    LastWins,
}

/// The member with user data, in which repeated names are accepted.
pub(super) const ATTRIBUTES: &str = "attributes";

/// U+FEFF, which some editors write at the start of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Checks the size and encoding of a document, runs `read` on it, and rejects trailing characters.
pub(super) fn parse_entire<T>(
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

/// Calls `visit` for each member of an object, with its name and the byte range of its value in `text`. Values are neither
/// built nor fully validated, so a long document needs no memory beside its text.
///
/// # Errors
/// [`MetadataError::Json`] if the text is not an object or is nested deeper than `depth`; those of `visit`.
pub(super) fn visit_members(
    text: &[u8],
    depth: usize,
    mut visit: impl FnMut(String, Range<usize>) -> Result<(), MetadataError>,
) -> Result<(), MetadataError> {
    let mut parser = Parser { text, at: 0, is_structure: |_| false };
    parser.consume(BYTE_ORDER_MARK);
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

/// A position in a text. The parser is recursive in the nesting, which the depth limit bounds.
pub(super) struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    /// Whether a member within user data is structure.
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

    /// Moves past `token` if it is next. Returns whether it was.
    fn consume(&mut self, token: &[u8]) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    pub(super) fn value(&mut self, depth: usize, repeated: DuplicateNames) -> Result<Value, MetadataError> {
        self.skip_whitespace();
        match self.peek() {
            Some(b'{') => self.object(self.descend(depth)?, repeated).map(Value::Object),
            Some(b'[') => self.array(self.descend(depth)?, repeated).map(Value::Array),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') if !self.rest().starts_with(b"-I") => self.number().map(Value::Number),
            _ => self.literal(),
        }
    }

    pub(super) fn descend(&self, depth: usize) -> Result<usize, MetadataError> {
        depth.checked_sub(1).ok_or_else(|| self.error("nested too deeply"))
    }

    /// Parses a literal of JSON, or one of the three bare tokens that many documents have.
    pub(super) fn literal(&mut self) -> Result<Value, MetadataError> {
        const WORDS: [(&str, Value); 3] =
            [("null", Value::Null), ("true", Value::Bool(true)), ("false", Value::Bool(false))];
        const BARE: [&str; 3] = ["NaN", "Infinity", "-Infinity"];
        for (word, value) in WORDS {
            if self.consume(word.as_bytes()) {
                return Ok(value);
            }
        }
        for word in BARE {
            if self.consume(word.as_bytes()) {
                return Ok(Value::from(word));
            }
        }
        Err(self.error("expected a value"))
    }

    fn object(
        &mut self,
        depth: usize,
        repeated: DuplicateNames,
    ) -> Result<Map<String, Value>, MetadataError> {
        let mut members = Map::new();
        self.members(repeated, &mut |parser, name| {
            let value = parser.value(depth, parser.duplicates_within(&name, repeated))?;
            parser.insert(&mut members, name, value, repeated)
        })?;
        Ok(members)
    }

    /// The treatment of repeated names within the value of a member.
    pub(super) fn duplicates_within(&self, name: &str, repeated: DuplicateNames) -> DuplicateNames {
        match name {
            ATTRIBUTES => DuplicateNames::LastWins,
            name if (self.is_structure)(name) => DuplicateNames::Reject,
            _ => repeated,
        }
    }

    pub(super) fn insert(
        &self,
        members: &mut Map<String, Value>,
        name: String,
        value: Value,
        repeated: DuplicateNames,
    ) -> Result<(), MetadataError> {
        if members.insert(name, value).is_some() && repeated == DuplicateNames::Reject {
            return Err(self.error("repeated name, before here"));
        }
        Ok(())
    }

    /// Parses the members of an object: `read` gets the name of each and parses its value.
    pub(super) fn members(
        &mut self,
        repeated: DuplicateNames,
        read: &mut dyn FnMut(&mut Self, String) -> Result<(), MetadataError>,
    ) -> Result<(), MetadataError> {
        self.each_item(b'}', "expected `,` or `}`", &mut |parser| {
            parser.skip_whitespace();
            if parser.peek() != Some(b'"') {
                return Err(parser.error("expected a name"));
            }
            let name = parser.string()?;
            if repeated == DuplicateNames::Reject && name.contains('\0') {
                // Readers with NUL-terminated strings would see another name.
                return Err(parser.error("a name with a NUL, before here"));
            }
            parser.colon()?;
            read(parser, name)
        })
    }

    pub(super) fn colon(&mut self) -> Result<(), MetadataError> {
        self.skip_whitespace();
        if self.consume(b":") { Ok(()) } else { Err(self.error("expected `:`")) }
    }

    /// Parses the items between the opening bracket at the position and its closing one: `read` is called for each item.
    pub(super) fn each_item(
        &mut self,
        close: u8,
        expected: &str,
        read: &mut dyn FnMut(&mut Self) -> Result<(), MetadataError>,
    ) -> Result<(), MetadataError> {
        self.at += 1;
        self.skip_whitespace();
        if self.consume(&[close]) {
            return Ok(());
        }
        loop {
            read(self)?;
            self.skip_whitespace();
            if self.consume(&[close]) {
                return Ok(());
            }
            if !self.consume(b",") {
                return Err(self.error(expected));
            }
        }
    }

    fn array(&mut self, depth: usize, repeated: DuplicateNames) -> Result<Vec<Value>, MetadataError> {
        let mut items = Vec::new();
        self.each_item(b']', "expected `,` or `]`", &mut |parser| {
            items.push(parser.value(depth, repeated)?);
            Ok(())
        })?;
        Ok(items)
    }

    /// Moves past an object: for each member, `name` parses or skips the name, and `visit` gets the byte range of the value.
    fn skip_members<N>(
        &mut self,
        depth: usize,
        name: fn(&mut Self) -> Result<N, MetadataError>,
        visit: &mut dyn FnMut(N, Range<usize>) -> Result<(), MetadataError>,
    ) -> Result<(), MetadataError> {
        let depth = self.descend(depth)?;
        self.each_item(b'}', "expected `,` or `}`", &mut |parser| {
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
            Some(b'"') => {
                self.skip_string();
                Ok(())
            }
            Some(b'{') => {
                let skipped = |parser: &mut Self| {
                    parser.skip_string();
                    Ok(())
                };
                self.skip_members(depth, skipped, &mut |(), _| Ok(()))
            }
            Some(b'[') => {
                let depth = self.descend(depth)?;
                self.each_item(b']', "expected `,` or `]`", &mut |parser| {
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

    fn skip_string(&mut self) {
        self.at = self.at.saturating_add(self.string_length()).min(self.text.len());
    }

    /// Moves past the next bytes and returns them.
    pub(super) fn advance(&mut self, length: usize) -> &[u8] {
        let start = self.at;
        self.at = start.saturating_add(length).min(self.text.len());
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Length in bytes of the string at the position, including quotes; more than the remaining bytes if it does not end.
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

    /// Length in bytes of the possible number at the position.
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

    #[test]
    fn members_are_visited_with_the_text_of_their_values() {
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
}

//! [`CompactWriter`]: normalises JSON text: no whitespace, each name once, one spelling of strings and numbers.
//!
//! It writes the text directly, without building a value: a value takes up to a hundred times the memory of its text, and
//! long to build and drop. Of a repeated name, the last value counts, at the position of the first.

use std::ops::Range;

use serde_json::Value;

use super::MetadataError;
use super::parser::Parser;

/// A text being written, and counters to bound the memory of its parsed values.
#[derive(Debug, Default)]
pub(super) struct CompactWriter {
    pub(super) text: String,
    /// Number of values of any kind.
    values: u64,
    /// Number of members of all objects.
    members: u64,
    /// Number of objects and arrays.
    containers: u64,
}

/// The byte ranges of a member in a text: its quoted name and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemberSpan {
    pub(super) name: Range<u32>,
    pub(super) value: Range<u32>,
}

/// The part of a text in a byte range.
pub(super) fn slice<'a>(text: &'a str, range: &Range<u32>) -> &'a str {
    text.get(range.start as usize..range.end as usize).unwrap_or_default()
}

/// Memory of a member beside its value, in bytes: its name and its entries in a table.
const MEMBER_BYTES: u64 = 64;
/// Memory of an object's tables before it has members, in bytes.
const CONTAINER_BYTES: u64 = 256;

impl CompactWriter {
    /// Upper bound on the memory of the parsed values, in bytes. Arrays and tables grow by doubling.
    pub(super) fn parsed_bytes(&self) -> u64 {
        let values = self.values.saturating_mul(size_of::<Value>() as u64);
        let members = self.members.saturating_mul(MEMBER_BYTES);
        let doubled = values.saturating_add(members).saturating_add(self.text.len() as u64).saturating_mul(2);
        doubled.saturating_add(self.containers.saturating_mul(CONTAINER_BYTES))
    }

    /// Writes the object at the parser's position. Returns its members sorted by name.
    pub(super) fn object(
        &mut self,
        parser: &mut Parser<'_>,
        depth: usize,
    ) -> Result<Vec<MemberSpan>, MetadataError> {
        let start = self.text.len();
        let mut spans = Vec::new();
        self.containers += 1;
        self.text.push('{');
        parser.each_item(b'}', "expected `,` or `}`", &mut |parser| {
            parser.skip_whitespace();
            if parser.peek() != Some(b'"') {
                return Err(parser.error("expected a name"));
            }
            if !spans.is_empty() {
                self.text.push(',');
            }
            let name = self.span_of(|compact| compact.string(parser))?;
            parser.colon()?;
            self.text.push(':');
            let value = self.span_of(|compact| compact.value(parser, depth))?;
            self.members += 1;
            spans.push(MemberSpan { name, value });
            Ok(())
        })?;
        self.text.push('}');
        if spans.len() > 1 {
            spans = self.sort_and_deduplicate(start, spans);
        }
        Ok(spans)
    }

    /// Runs `write` and returns the byte range that it has written.
    fn span_of(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), MetadataError>,
    ) -> Result<Range<u32>, MetadataError> {
        // Limits keep documents far below 4 GiB.
        let end = |text: &str| u32::try_from(text.len()).unwrap_or(u32::MAX);
        let start = end(&self.text);
        write(self)?;
        Ok(start..end(&self.text))
    }

    /// Sorts members by name. If a name is repeated, the object that begins at `start` is rewritten with each name once.
    fn sort_and_deduplicate(&mut self, start: usize, mut spans: Vec<MemberSpan>) -> Vec<MemberSpan> {
        let by_name = |text: &str, spans: &mut Vec<MemberSpan>| {
            spans.sort_unstable_by(|one, other| {
                let names = slice(text, &one.name).cmp(slice(text, &other.name));
                names.then(one.name.start.cmp(&other.name.start))
            });
        };
        by_name(&self.text, &mut spans);
        let is_twice = |pair: &[MemberSpan]| matches!(pair, [one, other] if slice(&self.text, &one.name) == slice(&self.text, &other.name));
        if !spans.windows(2).any(is_twice) {
            return spans;
        }
        let mut once: Vec<MemberSpan> = Vec::with_capacity(spans.len());
        for span in spans {
            match once.last_mut() {
                Some(first) if slice(&self.text, &first.name) == slice(&self.text, &span.name) => {
                    first.value = span.value;
                }
                _ => once.push(span),
            }
        }
        once.sort_unstable_by_key(|span| span.name.start);
        let written = self.text.split_off(start);
        let base = u32::try_from(start).unwrap_or(u32::MAX);
        let old = |range: &Range<u32>| slice(&written, &(range.start - base..range.end - base));
        self.text.push('{');
        let append = |text: &mut String, part: &str| {
            let from = u32::try_from(text.len()).unwrap_or(u32::MAX);
            text.push_str(part);
            from..u32::try_from(text.len()).unwrap_or(u32::MAX)
        };
        let mut rewritten = Vec::with_capacity(once.len());
        for span in &once {
            if !rewritten.is_empty() {
                self.text.push(',');
            }
            let name = append(&mut self.text, old(&span.name));
            self.text.push(':');
            let value = append(&mut self.text, old(&span.value));
            rewritten.push(MemberSpan { name, value });
        }
        self.text.push('}');
        by_name(&self.text, &mut rewritten);
        rewritten
    }

    fn value(&mut self, parser: &mut Parser<'_>, depth: usize) -> Result<(), MetadataError> {
        parser.skip_whitespace();
        self.values += 1;
        match parser.peek() {
            Some(b'{') => {
                let depth = parser.descend(depth)?;
                self.object(parser, depth).map(drop)
            }
            Some(b'[') => {
                let depth = parser.descend(depth)?;
                self.list(parser, depth)
            }
            Some(b'"') => self.string(parser),
            Some(b'-' | b'0'..=b'9') if !parser.rest().starts_with(b"-I") => self.number(parser),
            _ => {
                let word = parser.literal()?;
                self.text.push_str(&word.to_string());
                Ok(())
            }
        }
    }

    fn list(&mut self, parser: &mut Parser<'_>, depth: usize) -> Result<(), MetadataError> {
        let mut is_first = true;
        self.containers += 1;
        self.text.push('[');
        parser.each_item(b']', "expected `,` or `]`", &mut |parser| {
            if !is_first {
                self.text.push(',');
            }
            is_first = false;
            self.value(parser, depth)
        })?;
        self.text.push(']');
        Ok(())
    }

    fn string(&mut self, parser: &mut Parser<'_>) -> Result<(), MetadataError> {
        let length = parser.string_length();
        let is_plain = |token: &[u8]| {
            token.len() == length
                && !token.iter().any(|&byte| byte == b'\\' || byte.is_ascii_control() && byte != 0x7f)
        };
        if parser.rest().get(..length).is_some_and(is_plain) {
            return self.copy_token(parser, length);
        }
        let text = Value::String(parser.string()?);
        self.text.push_str(&text.to_string());
        Ok(())
    }

    fn number(&mut self, parser: &mut Parser<'_>) -> Result<(), MetadataError> {
        let length = parser.number_length();
        if parser.rest().get(..length).is_some_and(is_plain_integer) {
            return self.copy_token(parser, length);
        }
        let number = parser.number()?;
        self.text.push_str(number.as_str());
        Ok(())
    }

    /// Copies the next bytes unchanged.
    fn copy_token(&mut self, parser: &mut Parser<'_>, length: usize) -> Result<(), MetadataError> {
        // The text is valid UTF-8, and a token ends at a character boundary.
        let token = std::str::from_utf8(parser.advance(length));
        self.text.push_str(token.map_err(|error| MetadataError::Json(error.to_string()))?);
        Ok(())
    }
}

/// Whether a token is an integer in canonical spelling.
fn is_plain_integer(token: &[u8]) -> bool {
    match token.strip_prefix(b"-").unwrap_or(token) {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

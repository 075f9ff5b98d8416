//! JSON as it is written again: a text without blanks, each name once, strings and numbers in one spelling.
//!
//! What a value would be written as is made without making the value: a value takes up to a hundred times the memory of
//! its text, and long to make and to drop. Of a name that an object gives twice, the last value counts, at the first
//! place.

use std::ops::Range;

use serde_json::Value;

use super::MetadataError;
use super::parser::Parser;

/// A text in the making, and what its values would take in memory.
#[derive(Debug, Default)]
pub(super) struct Compact {
    pub(super) text: String,
    /// Values of any kind.
    values: u64,
    /// Members of all objects.
    members: u64,
    /// Objects and lists.
    nests: u64,
}

/// Where a member stands in a text: its name, with quotes, and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) name: Range<u32>,
    pub(super) value: Range<u32>,
}

/// The part of a text at a place.
pub(super) fn part<'a>(text: &'a str, place: &Range<u32>) -> &'a str {
    text.get(place.start as usize..place.end as usize).unwrap_or_default()
}

/// Bytes that a member takes in memory beside its value: its name and its places in a table.
const MEMBER_BYTES: u64 = 64;
/// Bytes that the tables of an object take before it has members.
const NEST_BYTES: u64 = 256;

impl Compact {
    /// Bytes of memory that the values take if they are made, at most. Lists and tables grow by doubling.
    pub(super) fn parsed_bytes(&self) -> u64 {
        let values = self.values.saturating_mul(size_of::<Value>() as u64);
        let members = self.members.saturating_mul(MEMBER_BYTES);
        let doubled = values.saturating_add(members).saturating_add(self.text.len() as u64).saturating_mul(2);
        doubled.saturating_add(self.nests.saturating_mul(NEST_BYTES))
    }

    /// Writes the object that begins here. Returns its members in the order of their names.
    pub(super) fn object(
        &mut self,
        parser: &mut Parser<'_>,
        depth: usize,
    ) -> Result<Vec<Span>, MetadataError> {
        let start = self.text.len();
        let mut spans = Vec::new();
        self.nests += 1;
        self.text.push('{');
        parser.each(b'}', "expected `,` or `}`", &mut |parser| {
            parser.skip_whitespace();
            if parser.peek() != Some(b'"') {
                return Err(parser.error("expected a name"));
            }
            if !spans.is_empty() {
                self.text.push(',');
            }
            let name = self.written(|compact| compact.string(parser))?;
            parser.colon()?;
            self.text.push(':');
            let value = self.written(|compact| compact.value(parser, depth))?;
            self.members += 1;
            spans.push(Span { name, value });
            Ok(())
        })?;
        self.text.push('}');
        if spans.len() > 1 {
            spans = self.settled(start, spans);
        }
        Ok(spans)
    }

    /// Where what `write` writes stands.
    fn written(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), MetadataError>,
    ) -> Result<Range<u32>, MetadataError> {
        // Documents are no longer than memory, and far from 4 GiB.
        let end = |text: &str| u32::try_from(text.len()).unwrap_or(u32::MAX);
        let start = end(&self.text);
        write(self)?;
        Ok(start..end(&self.text))
    }

    /// The members in the order of their names. If a name stands there twice, the object that began at `start` is written
    /// anew, with each name once.
    fn settled(&mut self, start: usize, mut spans: Vec<Span>) -> Vec<Span> {
        let by_name = |text: &str, spans: &mut Vec<Span>| {
            spans.sort_unstable_by(|one, other| {
                let names = part(text, &one.name).cmp(part(text, &other.name));
                names.then(one.name.start.cmp(&other.name.start))
            });
        };
        by_name(&self.text, &mut spans);
        let is_twice = |pair: &[Span]| matches!(pair, [one, other] if part(&self.text, &one.name) == part(&self.text, &other.name));
        if !spans.windows(2).any(is_twice) {
            return spans;
        }
        let mut once: Vec<Span> = Vec::with_capacity(spans.len());
        for span in spans {
            match once.last_mut() {
                Some(first) if part(&self.text, &first.name) == part(&self.text, &span.name) => {
                    first.value = span.value;
                }
                _ => once.push(span),
            }
        }
        once.sort_unstable_by_key(|span| span.name.start);
        let written = self.text.split_off(start);
        let base = u32::try_from(start).unwrap_or(u32::MAX);
        let of = |place: &Range<u32>| part(&written, &(place.start - base..place.end - base));
        self.text.push('{');
        let place = |text: &mut String, part: &str| {
            let from = u32::try_from(text.len()).unwrap_or(u32::MAX);
            text.push_str(part);
            from..u32::try_from(text.len()).unwrap_or(u32::MAX)
        };
        let mut anew = Vec::with_capacity(once.len());
        for span in &once {
            if !anew.is_empty() {
                self.text.push(',');
            }
            let name = place(&mut self.text, of(&span.name));
            self.text.push(':');
            let value = place(&mut self.text, of(&span.value));
            anew.push(Span { name, value });
        }
        self.text.push('}');
        by_name(&self.text, &mut anew);
        anew
    }

    fn value(&mut self, parser: &mut Parser<'_>, depth: usize) -> Result<(), MetadataError> {
        parser.skip_whitespace();
        self.values += 1;
        match parser.peek() {
            Some(b'{') => {
                let depth = parser.deeper(depth)?;
                self.object(parser, depth).map(drop)
            }
            Some(b'[') => {
                let depth = parser.deeper(depth)?;
                self.list(parser, depth)
            }
            Some(b'"') => self.string(parser),
            Some(b'-' | b'0'..=b'9') if !parser.rest().starts_with(b"-I") => self.number(parser),
            _ => {
                let word = parser.word()?;
                self.text.push_str(&word.to_string());
                Ok(())
            }
        }
    }

    fn list(&mut self, parser: &mut Parser<'_>, depth: usize) -> Result<(), MetadataError> {
        let mut is_first = true;
        self.nests += 1;
        self.text.push('[');
        parser.each(b']', "expected `,` or `]`", &mut |parser| {
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
            return self.push(parser, length);
        }
        let text = Value::String(parser.string()?);
        self.text.push_str(&text.to_string());
        Ok(())
    }

    fn number(&mut self, parser: &mut Parser<'_>) -> Result<(), MetadataError> {
        let length = parser.number_length();
        if parser.rest().get(..length).is_some_and(is_plain_integer) {
            return self.push(parser, length);
        }
        let number = parser.number()?;
        self.text.push_str(number.as_str());
        Ok(())
    }

    /// Takes the next bytes as they are.
    fn push(&mut self, parser: &mut Parser<'_>, length: usize) -> Result<(), MetadataError> {
        // The whole text was found to be UTF-8, and a token ends where a character does.
        let token = std::str::from_utf8(parser.pass(length));
        self.text.push_str(token.map_err(|error| MetadataError::Json(error.to_string()))?);
        Ok(())
    }
}

/// Whether these are the digits of an integer in its one spelling.
fn is_plain_integer(token: &[u8]) -> bool {
    match token.strip_prefix(b"-").unwrap_or(token) {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

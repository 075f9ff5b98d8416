//! Texts of JSON, and the error for what is not JSON.

use std::borrow::Cow;
use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

use super::ReferenceError;

/// The error of the parser, without its text, which repeats parts of the document.
pub(super) fn syntax(error: &serde_json::Error) -> ReferenceError {
    ReferenceError::Syntax { line: error.line(), column: error.column() }
}

/// A text of JSON, copied only if it has escapes.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(TextVisitor)
    }
}

/// Numbers that Python writes and JSON does not have.
const WORDS: [&str; 3] = ["NaN", "-Infinity", "Infinity"];

/// The bytes that [`with_quoted_numbers`] allocates for a document.
pub(super) fn quoted_bytes(document: &str) -> u64 {
    let count = document.matches("NaN").count() + document.matches("Infinity").count();
    if count == 0 { 0 } else { (document.len() + 2 * count) as u64 }
}

/// A document with quotes around `NaN` and infinities, which are no JSON: the metadata of Zarr v2 has them so.
pub(super) fn with_quoted_numbers(document: &str) -> Cow<'_, str> {
    if !WORDS.iter().any(|word| document.contains(word)) {
        return Cow::Borrowed(document);
    }
    let capacity = usize::try_from(quoted_bytes(document)).unwrap_or(document.len());
    let (mut quoted, mut rest) = (String::with_capacity(capacity), document);
    let mut is_text = false;
    while let Some(next) = rest.chars().next() {
        let word = WORDS.iter().find(|word| !is_text && rest.starts_with(**word));
        let length = match word {
            Some(word) => word.len(),
            // What follows a backslash ends no text.
            None if is_text && next == '\\' => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            None => next.len_utf8(),
        };
        is_text ^= next == '"';
        let (taken, behind) = rest.split_at(length);
        let quote = if word.is_some() { "\"" } else { "" };
        quoted.extend([quote, taken, quote]);
        rest = behind;
    }
    Cow::Owned(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_no_json_are_quoted_and_texts_stay() {
        for (document, quoted) in [
            (r#"{"a": NaN, "b": [-Infinity, Infinity]}"#, r#"{"a": "NaN", "b": ["-Infinity", "Infinity"]}"#),
            (r#"{"NaN": "an \" NaN \\", "b": NaN}"#, r#"{"NaN": "an \" NaN \\", "b": "NaN"}"#),
            (r#"{"a": "é NaN \"#, r#"{"a": "é NaN \"#),
            ("{}", "{}"),
        ] {
            let outcome = with_quoted_numbers(document);
            assert_eq!(outcome, quoted);
            let bytes = quoted_bytes(document);
            match outcome {
                Cow::Owned(text) => assert!(text.capacity() as u64 <= bytes && text.len() as u64 <= bytes),
                Cow::Borrowed(_) => assert_eq!(bytes, 0),
            }
        }
    }
}

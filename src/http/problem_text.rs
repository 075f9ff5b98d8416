//! Bounds of the texts in a problem document: what it repeats of stored names and labels may be megabytes long, and no permit is
//! charged for an error.

use std::borrow::Cow;
use std::fmt::{self, Display, Write};

use serde_json::Value;

/// The most bytes of a text.
const TEXT_BYTES: usize = 4 << 10;
/// The most bytes of all texts in a member.
const MEMBER_BYTES: usize = 128 << 10;
/// What stands for the rest of a text.
const REST: &str = "…";

/// What is wrong with the value of a query parameter, from the text of its parser: `limit: invalid digit found in string`.
pub(super) fn query_text(text: &str) -> String {
    let Some((name, reason)) = text.split_once(": ") else { return text.to_owned() };
    let known = reason.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", expected "));
    match (reason, known) {
        (_, Some((given, known))) => {
            let known = known.strip_prefix("one of ").unwrap_or(known);
            format!("`{name}`: {given} is not known here; there is: {known}")
        }
        (NOT_DIGITS | NO_DIGITS, _) => format!("`{name}` takes a whole number, without a unit"),
        (TOO_LARGE, _) => format!("`{name}`: the number is too large"),
        _ => format!("`{name}`: {reason}"),
    }
}

/// What the parser of integers says.
const NOT_DIGITS: &str = "invalid digit found in string";
const NO_DIGITS: &str = "cannot parse integer from empty string";
const TOO_LARGE: &str = "number too large to fit in target type";

/// A text, without what is beyond the bound.
pub(super) fn bounded(text: Cow<'static, str>) -> Cow<'static, str> {
    if text.len() <= TEXT_BYTES { text } else { Cow::Owned(cut(&text, TEXT_BYTES)) }
}

/// The text of an error, of which no more is written than the bound.
pub(super) fn text_of(error: &impl Display) -> String {
    struct Bounded(String);
    impl Write for Bounded {
        fn write_str(&mut self, piece: &str) -> fmt::Result {
            let left = TEXT_BYTES.saturating_sub(self.0.len());
            if piece.len() <= left {
                self.0.push_str(piece);
                return Ok(());
            }
            self.0.push_str(&cut(piece, left));
            Err(fmt::Error)
        }
    }
    let mut text = Bounded(String::new());
    // It fails where the text ends.
    let _ = write!(text, "{error}");
    text.0
}

/// A member, all of whose texts are within the bounds.
pub(super) fn bounded_member(mut value: Value) -> Value {
    let mut left = MEMBER_BYTES;
    bound(&mut value, &mut left);
    value
}

fn bound(value: &mut Value, left: &mut usize) {
    match value {
        Value::String(text) => {
            let most = TEXT_BYTES.min(*left);
            if text.len() > most {
                *text = cut(text, most);
            }
            *left = left.saturating_sub(text.len());
        }
        Value::Array(items) => items.iter_mut().for_each(|item| bound(item, left)),
        Value::Object(members) => members.values_mut().for_each(|member| bound(member, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn cut(text: &str, most: usize) -> String {
    format!("{}{REST}", text.get(..text.floor_char_boundary(most)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_parsers_say_of_a_query_is_said_in_words() {
        for (text, said) in [
            ("limit: invalid digit found in string", "`limit` takes a whole number, without a unit"),
            ("limit: cannot parse integer from empty string", "`limit` takes a whole number, without a unit"),
            ("limit: number too large to fit in target type", "`limit`: the number is too large"),
            (
                "level: unknown variant `foo`, expected `a` or `b`",
                "`level`: `foo` is not known here; there is: `a` or `b`",
            ),
            (
                "level: unknown variant `foo`, expected one of `a`, `b`, `c`",
                "`level`: `foo` is not known here; there is: `a`, `b`, `c`",
            ),
            ("at: something else", "`at`: something else"),
            ("duplicate field `limit`", "duplicate field `limit`"),
        ] {
            assert_eq!(query_text(text), said);
        }
    }

    #[test]
    fn texts_are_cut_at_a_character_and_short_ones_are_whole() {
        assert_eq!(bounded("a".into()), "a");
        let long = "ä".repeat(TEXT_BYTES);
        assert_eq!(bounded(long.clone().into()).len(), TEXT_BYTES + REST.len());
        let texts = [text_of(&long), text_of(&format_args!("{}{long}", "a")), text_of(&"short")];
        assert_eq!(texts.each_ref().map(String::len), [TEXT_BYTES + 3, TEXT_BYTES + 2, 5]);
    }

    #[test]
    fn all_texts_of_a_member_have_one_bound() {
        let long = "x".repeat(2 * TEXT_BYTES);
        let member = bounded_member(json!({"first": [&long, 1, {"deep": &long}], "many": vec![&long; 1000]}));
        let text = member.to_string();
        assert!(text.len() < MEMBER_BYTES + 1000 * (REST.len() + 3) + 1000, "{}", text.len());
        assert_eq!(bounded_member(json!(["a", 1, null])), json!(["a", 1, null]));
    }
}

//! [`KeyTemplate`]: the chunk key encoding `template` (formerly `generic`), a text with placeholders for coordinates.
//!
//! The Zarr extension of that name: `{0}` is the first coordinate, `{-1}` the last, `{*}` all others, joined by a
//! separator; `:03` pads with zeros; `{{` and `}}` are braces. Every coordinate has exactly one placeholder, so a template
//! is parsed for the rank of its array.

use serde_json::{Map, Value, json};

use super::MetadataError;
use super::extension::Extension;

const SEPARATOR: &str = "separator";
/// The extension's text uses both names for the member.
const FORMATS: [&str; 2] = ["format", "template"];
/// Maximum number of digits to which a coordinate is padded.
const MAX_DIGITS: usize = 255;

/// A template, for arrays of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTemplate {
    format: String,
    separator: Option<String>,
    parts: Vec<KeyPart>,
}

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// A text that is not empty.
    Literal(String),
    /// A coordinate, in decimal.
    Number {
        /// The dimension of the coordinate.
        axis: usize,
        /// Minimum number of digits.
        digits: usize,
    },
}

/// A part of the template's text, independent of the rank.
enum Token {
    Literal(String),
    Axis { index: i64, digits: usize },
    Others { digits: usize },
}

impl KeyTemplate {
    /// The parts of a key; each dimension of the array has exactly one number.
    #[must_use]
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// Whether the end of each number in a key is unambiguous.
    #[must_use]
    pub fn is_unambiguous(&self) -> bool {
        self.parts.windows(2).all(|pair| match pair {
            [KeyPart::Number { .. }, KeyPart::Literal(text)] => {
                !text.starts_with(|c: char| c.is_ascii_digit())
            }
            [KeyPart::Number { .. }, KeyPart::Number { .. }] => false,
            _ => true,
        })
    }

    pub(super) fn parse(encoding: &Extension, rank: usize) -> Result<Self, MetadataError> {
        encoding.require_only(&[FORMATS[0], FORMATS[1], SEPARATOR])?;
        let configuration = &encoding.configuration;
        let format = either(configuration, FORMATS).and_then(Value::as_str);
        let format = format.ok_or_else(|| encoding.invalid("`format` must be a string"))?.to_owned();
        let separator = match configuration.get(SEPARATOR) {
            None => None,
            Some(Value::String(separator)) => {
                check_literal(encoding, separator)?;
                Some(separator.clone())
            }
            Some(_) => return Err(encoding.invalid("`separator` must be a string")),
        };
        let tokens = tokens(encoding, &format)?;
        let parts = parts(encoding, &tokens, separator.as_deref(), rank)?;
        Ok(Self { format, separator, parts })
    }

    pub(super) fn to_document(&self) -> Value {
        match &self.separator {
            None => json!({ FORMATS[0]: self.format }),
            Some(separator) => json!({ FORMATS[0]: self.format, SEPARATOR: separator }),
        }
    }

    /// The key for the coordinates 0, without padding.
    pub(super) fn sample(&self) -> String {
        let text = |part: &KeyPart| match part {
            KeyPart::Literal(text) => text.clone(),
            KeyPart::Number { .. } => "0".to_owned(),
        };
        self.parts.iter().map(text).collect()
    }
}

/// Parses the text of a template.
fn tokens(encoding: &Extension, format: &str) -> Result<Vec<Token>, MetadataError> {
    let unbalanced = || encoding.invalid("has an unbalanced brace; write `{{` and `}}` for braces");
    let (mut tokens, mut literal, mut rest) = (Vec::new(), String::new(), format);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("{{") {
            literal.push('{');
            rest = after;
        } else if let Some(after) = rest.strip_prefix("}}") {
            literal.push('}');
            rest = after;
        } else if let Some(after) = rest.strip_prefix('{') {
            let (expression, after) = after.split_once('}').ok_or_else(unbalanced)?;
            let token = token(expression).ok_or_else(unbalanced)?;
            tokens.extend([Token::Literal(std::mem::take(&mut literal)), token]);
            rest = after;
        } else {
            let end = rest.find(['{', '}']).unwrap_or(rest.len());
            let (text, after) = rest.split_at_checked(end).filter(|_| end > 0).ok_or_else(unbalanced)?;
            literal.push_str(text);
            rest = after;
        }
    }
    if format.starts_with('/') {
        return Err(encoding.invalid("a key cannot begin with `/`"));
    }
    tokens.push(Token::Literal(literal));
    for token in &tokens {
        if let Token::Literal(text) = token {
            check_literal(encoding, text)?;
        }
    }
    Ok(tokens)
}

/// Parses the text between braces: `0`, `-1` or `*`, each with or without `:03`.
fn token(expression: &str) -> Option<Token> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (what, digits) = match expression.split_once(':') {
        None => (expression, 0),
        Some((what, digits)) => {
            let digits = digits.strip_prefix('0').filter(|digits| is_number(digits))?;
            (what, digits.parse().ok().filter(|&digits| digits <= MAX_DIGITS)?)
        }
    };
    if what == "*" {
        return Some(Token::Others { digits });
    }
    is_number(what.strip_prefix('-').unwrap_or(what)).then_some(())?;
    Some(Token::Axis { index: what.parse().ok()?, digits })
}

/// The parts of keys for a rank. Rejects templates that do not have each dimension exactly once.
fn parts(
    encoding: &Extension,
    tokens: &[Token],
    separator: Option<&str>,
    rank: usize,
) -> Result<Vec<KeyPart>, MetadataError> {
    let axis_of = |index: i64| {
        let from_end = index < 0;
        let distance = usize::try_from(index.unsigned_abs()).ok()?;
        let axis = if from_end { rank.checked_sub(distance)? } else { distance };
        (axis < rank).then_some(axis)
    };
    let mut is_taken = vec![false; rank];
    for token in tokens {
        let Token::Axis { index, .. } = token else { continue };
        let taken = axis_of(*index).and_then(|axis| is_taken.get_mut(axis));
        let taken = taken.ok_or_else(|| encoding.invalid(&format!("has no dimension {index}")))?;
        if std::mem::replace(taken, true) {
            return Err(encoding.invalid(&format!("names dimension {index} twice")));
        }
    }
    let others: Vec<usize> = (0..rank).filter(|&axis| is_taken.get(axis) == Some(&false)).collect();
    let placeholders = tokens.iter().filter(|token| matches!(token, Token::Others { .. })).count();
    match (placeholders, others.is_empty(), separator) {
        (0, true, _) if rank > 0 => {}
        (1, false, Some(_)) => {}
        (1, false, None) => return Err(encoding.invalid("`{*}` needs a `separator`")),
        _ => return Err(encoding.invalid(&format!("does not hold each of {rank} dimensions once"))),
    }
    let mut parts = Vec::new();
    for token in tokens {
        match token {
            Token::Literal(text) => push_literal(&mut parts, text),
            Token::Axis { index, digits } => {
                parts.extend(axis_of(*index).map(|axis| KeyPart::Number { axis, digits: *digits }));
            }
            Token::Others { digits } => {
                for (index, &axis) in others.iter().enumerate() {
                    if index > 0 {
                        push_literal(&mut parts, separator.unwrap_or_default());
                    }
                    parts.push(KeyPart::Number { axis, digits: *digits });
                }
            }
        }
    }
    Ok(parts)
}

fn push_literal(parts: &mut Vec<KeyPart>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(KeyPart::Literal(before)) => before.push_str(text),
        _ => parts.push(KeyPart::Literal(text.to_owned())),
    }
}

/// The value of the first of two members that is present.
fn either<'a>(configuration: &'a Map<String, Value>, [one, other]: [&str; 2]) -> Option<&'a Value> {
    configuration.get(one).or_else(|| configuration.get(other))
}

/// Rejects text that must not occur in a part of a key.
pub(super) fn check_literal(encoding: &Extension, text: &str) -> Result<(), MetadataError> {
    const REFUSED: [&str; 5] = ["..", "\\", "\0", "//", "zarr.json"];
    match REFUSED.into_iter().find(|&refused| text.contains(refused)) {
        None => Ok(()),
        Some(refused) => Err(encoding.invalid(&format!("a key cannot hold {refused:?}"))),
    }
}

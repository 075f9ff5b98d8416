//! [`Template`]: a text with `{{expression}}` in it.

use std::fmt::Write;

use super::expression::{Expression, Fault, Names, Templates, Value};
use super::table::MAX_URL_BYTES;

/// The most parts of a template.
const MAX_PARTS: usize = 64;

/// A text with expressions.
#[derive(Clone, Debug)]
pub(super) struct Template(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Expression(Expression),
}

impl Template {
    /// Parses a text. Statements (`{% … %}`) and comments (`{# … #}`) of Jinja are refused.
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            let (expression, behind) = after.split_once("}}").ok_or("a template is not closed")?;
            parts.push(Part::Text(plain(before)?));
            parts.push(Part::Expression(Expression::parse(expression)?));
            if parts.len() > MAX_PARTS {
                return Err("a template has too many expressions");
            }
            rest = behind;
        }
        parts.push(Part::Text(plain(rest)?));
        Ok(Self(parts))
    }

    /// The text with the values of its expressions.
    pub(super) fn render(&self, names: &Names, templates: &Templates) -> Result<String, Fault> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Expression(expression) => match &*expression.evaluate(names, templates)? {
                    Value::Text(value) => text.push_str(value),
                    Value::Integer(value) => {
                        // Writing to a text cannot fail.
                        let _ = write!(text, "{value}");
                    }
                },
            }
            if text.len() > MAX_URL_BYTES {
                return Err("a template gives a text of more than 4096 bytes");
            }
        }
        Ok(text)
    }
}

fn plain(text: &str) -> Result<String, Fault> {
    if text.contains("{%") || text.contains("{#") {
        return Err("a template has a statement or a comment");
    }
    Ok(text.to_owned())
}

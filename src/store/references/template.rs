//! [`Template`]: a text with `{{expression}}` in it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use super::expression::{Expression, TemplateFault, TemplateValue};
use super::table::MAX_URL_BYTES;
use super::work::TemplateWork;

/// Names and their values.
pub(super) type TemplateNames = BTreeMap<String, TemplateValue>;

/// The templates that can be called, by name.
pub(super) type Templates = BTreeMap<String, Template>;

/// The names that a template sees: those of its rule, and those of the document.
#[derive(Clone, Copy, Debug)]
pub(super) struct TemplateScope<'a> {
    pub(super) own: &'a TemplateNames,
    pub(super) outer: Option<&'a TemplateNames>,
}

impl<'a> TemplateScope<'a> {
    fn get(self, name: &str) -> Option<&'a TemplateValue> {
        self.own.get(name).or_else(|| self.outer?.get(name))
    }
}

/// The templates of a document: those with expressions can be called, the others are values.
#[derive(Debug, Default)]
pub(super) struct TemplateSet {
    pub(super) names: TemplateNames,
    pub(super) templates: Templates,
}

impl TemplateSet {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.templates.is_empty()
    }
}

/// The most parts of a template.
const MAX_PARTS: usize = 64;

/// The longest template with expressions, in bytes.
const MAX_TEMPLATE_BYTES: usize = 16 << 10;
/// The most bytes of memory for a byte of a template: a node of an expression for each of its characters, twice as large, because
/// vectors double.
const BYTES_OF_BYTE: usize = 2 * size_of::<Expression>();
/// The bytes of memory for a template beside those of its text.
const OVERHEAD_BYTES: u64 = 128;

/// The most bytes of memory that a text takes as a template.
pub(super) fn memory_bytes(text: &str) -> u64 {
    let of_byte = if text.contains("{{") { BYTES_OF_BYTE } else { 1 };
    (text.len() as u64).saturating_mul(of_byte as u64).saturating_add(OVERHEAD_BYTES)
}

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
    pub(super) fn parse(text: &str) -> Result<Self, TemplateFault> {
        if text.len() > MAX_TEMPLATE_BYTES {
            return Err("a template is too long");
        }
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
    pub(super) fn render(
        &self,
        names: TemplateScope<'_>,
        templates: &Templates,
        work: &mut TemplateWork,
    ) -> Result<String, TemplateFault> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(part) => {
                    work.spend(1, part.len())?;
                    text.push_str(part);
                }
                Part::Expression(expression) => match &*evaluate(expression, names, templates, work)? {
                    TemplateValue::Text(value) => {
                        work.spend(1, value.len())?;
                        text.push_str(value);
                    }
                    TemplateValue::Integer(value) => {
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

fn plain(text: &str) -> Result<String, TemplateFault> {
    if text.contains("{%") || text.contains("{#") {
        return Err("a template has a statement or a comment");
    }
    Ok(text.to_owned())
}

/// The value of an expression.
fn evaluate<'a>(
    expression: &'a Expression,
    names: TemplateScope<'a>,
    templates: &Templates,
    work: &mut TemplateWork,
) -> Result<Cow<'a, TemplateValue>, TemplateFault> {
    work.spend(1, 0)?;
    match expression {
        Expression::Literal(value) => Ok(Cow::Borrowed(value)),
        Expression::Name(name) => {
            work.spend(1, name.len())?;
            names.get(name).map(Cow::Borrowed).ok_or("a template has a name that is not defined")
        }
        Expression::Call(name, arguments) => {
            work.spend(8, name.len())?;
            let template = templates.get(name).ok_or("a template calls one that is not defined")?;
            let mut given = TemplateNames::new();
            for (name, argument) in arguments {
                let value = evaluate(argument, names, templates, work)?;
                work.spend(4, name.len().saturating_add(value.bytes()))?;
                given.insert(name.clone(), value.into_owned());
            }
            // A template that is called sees its arguments alone, so no call leads to another.
            let text =
                template.render(TemplateScope { own: &given, outer: None }, &Templates::new(), work)?;
            Ok(Cow::Owned(TemplateValue::Text(text)))
        }
        Expression::Binary(operator, operands) => {
            let (left, right) = &**operands;
            let left = evaluate(left, names, templates, work)?;
            let operands = (left, evaluate(right, names, templates, work)?);
            let (TemplateValue::Integer(left), TemplateValue::Integer(right)) = (&*operands.0, &*operands.1)
            else {
                return Err("a template calculates with a text");
            };
            operator.apply(*left, *right).map(|value| Cow::Owned(TemplateValue::Integer(value)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<TemplateValue, TemplateFault> {
        let names = TemplateNames::from([
            ("i".to_owned(), TemplateValue::Integer(3)),
            ("u".to_owned(), TemplateValue::Text("server".to_owned())),
        ]);
        let templates = Templates::from([("f".to_owned(), Template::parse("<{{c}}>").unwrap())]);
        let scope = TemplateScope { own: &names, outer: None };
        evaluate(&Expression::parse(text)?, scope, &templates, &mut TemplateWork::new(0)).map(Cow::into_owned)
    }

    #[test]
    fn expressions_are_evaluated_as_python_does() {
        for (text, number) in [
            ("i", 3),
            ("(i + 1) * 1000", 4000),
            ("i - 1 - 1", 1),
            ("2 + 3 * i", 11),
            ("7 // 2", 3),
            ("-7 // 2", -4),
            ("-7 % 3", 2),
            ("7 % -3", -2),
            (" - i ", -3),
        ] {
            assert_eq!(value(text), Ok(TemplateValue::Integer(number)), "{text}");
        }
        for (text, expected) in
            [("u", "server"), ("'a b'", "a b"), ("f(c=u)", "<server>"), ("f(c=i+1)", "<4>")]
        {
            assert_eq!(value(text), Ok(TemplateValue::Text(expected.to_owned())), "{text}");
        }
    }

    #[test]
    fn each_node_of_an_expression_is_a_step() {
        for (text, steps) in [("1", 1), ("1+1", 3), ("1+1+1", 5), ("f(c='abc')", 19)] {
            let (template, names) = (Expression::parse(text).unwrap(), TemplateNames::new());
            let templates = Templates::from([("f".to_owned(), Template::parse("<{{c}}>").unwrap())]);
            let evaluated = |left| {
                let scope = TemplateScope { own: &names, outer: None };
                evaluate(&template, scope, &templates, &mut TemplateWork::of_steps(left)).is_ok()
            };
            assert!(evaluated(steps) && !evaluated(steps - 1), "{text}");
        }
    }

    #[test]
    fn what_is_not_in_the_grammar_is_refused() {
        for text in [
            "",
            "x",
            "i |abs",
            "i / 2",
            "i ** 2",
            "u.upper()",
            "u[0]",
            "1 +",
            "(1",
            "f(1)",
            "f(c=1",
            "g(c=1)",
            "u + 1",
            "1 // 0",
            "1 % 0",
            "9223372036854775808",
            "9223372036854775807 + 1",
            "'a",
            "1x",
        ] {
            value(text).expect_err(text);
        }
        let deep = format!("{}1{}", "(".repeat(1000), ")".repeat(1000));
        value(&deep).expect_err("deep");
        value(&"1+".repeat(1000)).expect_err("long");
    }
}

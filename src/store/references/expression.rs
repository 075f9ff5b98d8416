//! Expressions in templates: whole numbers, texts, names, `+ - * // %`, and calls of templates by name.
//!
//! The part of Jinja's grammar that kerchunk's documents have. An expression is parsed once and evaluated for each
//! reference. What is not in this grammar is refused: filters, attributes, conditions, division with a fraction.

/// The deepest nesting of an expression.
const MAX_DEPTH: usize = 16;

/// The value of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplateValue {
    Integer(i64),
    Text(String),
}

impl TemplateValue {
    /// The bytes of a text; 0 for a number.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Integer(_) => 0,
            Self::Text(text) => text.len(),
        }
    }
}

/// Why an expression is refused.
pub(super) type TemplateFault = &'static str;

#[derive(Clone, Debug)]
pub(super) enum Expression {
    Literal(TemplateValue),
    Name(String),
    Call(String, Vec<(String, Expression)>),
    Binary(Operator, Box<(Expression, Expression)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    FloorDivide,
    Modulo,
}

const SYNTAX: TemplateFault = "a template has an expression that is not supported";
const OVERFLOW: TemplateFault = "a number in a template is too large";

impl Expression {
    /// Parses the text between `{{` and `}}`.
    pub(super) fn parse(text: &str) -> Result<Self, TemplateFault> {
        let mut parser = Parser { rest: text };
        let expression = parser.sum(0)?;
        parser.skip();
        if parser.rest.is_empty() { Ok(expression) } else { Err(SYNTAX) }
    }
}

impl Operator {
    pub(super) fn apply(self, left: i64, right: i64) -> Result<i64, TemplateFault> {
        let value = match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
            Self::FloorDivide | Self::Modulo if right == 0 => return Err("a template divides by zero"),
            // Rounded down, as Python does.
            Self::FloorDivide => left.checked_div(right).map(|quotient| {
                let is_inexact = left.checked_rem(right).is_some_and(|rest| rest != 0);
                quotient - i64::from(is_inexact && (left < 0) != (right < 0))
            }),
            Self::Modulo => left
                .checked_rem(right)
                .map(|rest| if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest }),
        };
        value.ok_or(OVERFLOW)
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Takes a sign, if it is next.
    fn takes(&mut self, sign: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes the longest beginning of these characters.
    fn take_while(&mut self, is_taken: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|next| !is_taken(next)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn sum(&mut self, depth: usize) -> Result<Expression, TemplateFault> {
        if depth > MAX_DEPTH {
            return Err("a template has a nested expression that is too deep");
        }
        let (mut left, mut count) = (self.product(depth)?, 0);
        loop {
            let operator = if self.takes("+") {
                Operator::Add
            } else if self.takes("-") {
                Operator::Subtract
            } else {
                return Ok(left);
            };
            count += 1;
            if count > MAX_DEPTH {
                return Err("a template has an expression that is too long");
            }
            left = Expression::Binary(operator, Box::new((left, self.product(depth)?)));
        }
    }

    fn product(&mut self, depth: usize) -> Result<Expression, TemplateFault> {
        let (mut left, mut count) = (self.unary(depth)?, 0);
        loop {
            let operator = if self.takes("**") {
                return Err(SYNTAX);
            } else if self.takes("*") {
                Operator::Multiply
            } else if self.takes("//") {
                Operator::FloorDivide
            } else if self.takes("%") {
                Operator::Modulo
            } else {
                return Ok(left);
            };
            count += 1;
            if count > MAX_DEPTH {
                return Err("a template has an expression that is too long");
            }
            left = Expression::Binary(operator, Box::new((left, self.unary(depth)?)));
        }
    }

    fn unary(&mut self, depth: usize) -> Result<Expression, TemplateFault> {
        if !self.takes("-") {
            return self.primary(depth);
        }
        let zero = Expression::Literal(TemplateValue::Integer(0));
        Ok(Expression::Binary(Operator::Subtract, Box::new((zero, self.primary(depth)?))))
    }

    fn primary(&mut self, depth: usize) -> Result<Expression, TemplateFault> {
        if self.takes("(") {
            let inner = self.sum(depth + 1)?;
            return if self.takes(")") { Ok(inner) } else { Err(SYNTAX) };
        }
        for quote in ["'", "\""] {
            if self.takes(quote) {
                let (text, rest) = self.rest.split_once(quote).ok_or(SYNTAX)?;
                if text.contains('\\') {
                    return Err(SYNTAX);
                }
                self.rest = rest;
                return Ok(Expression::Literal(TemplateValue::Text(text.to_owned())));
            }
        }
        self.skip();
        let word = self.take_while(|next| next.is_ascii_alphanumeric() || next == '_').to_owned();
        match word.chars().next() {
            None => Err(SYNTAX),
            Some(first) if first.is_ascii_digit() => {
                let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
                let number = is_number.then(|| word.parse()).ok_or(SYNTAX)?;
                number
                    .map(|number| Expression::Literal(TemplateValue::Integer(number)))
                    .map_err(|_large| OVERFLOW)
            }
            Some(_) if self.takes("(") => {
                self.arguments(depth).map(|arguments| Expression::Call(word, arguments))
            }
            Some(_) => Ok(Expression::Name(word)),
        }
    }

    /// `name=value, …)`.
    fn arguments(&mut self, depth: usize) -> Result<Vec<(String, Expression)>, TemplateFault> {
        let mut arguments = Vec::new();
        while !self.takes(")") {
            if !arguments.is_empty() && !self.takes(",") {
                return Err(SYNTAX);
            }
            self.skip();
            let name = self.take_while(|next| next.is_ascii_alphanumeric() || next == '_').to_owned();
            if name.is_empty() || !self.takes("=") || arguments.len() >= MAX_DEPTH {
                return Err(SYNTAX);
            }
            arguments.push((name, self.sum(depth + 1)?));
        }
        Ok(arguments)
    }
}

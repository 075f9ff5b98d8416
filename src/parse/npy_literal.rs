//! [`Literal`]: the literals of Python that the head of an npy file is made of (`numpy.lib.format`).

/// The deepest nesting of lists and tuples.
const MAX_DEPTH: usize = 16;

/// A literal of Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Text(String),
    Number(u64),
    Truth(bool),
    Nothing,
    List(Vec<Literal>),
    Tuple(Vec<Literal>),
    Dictionary(Vec<(Literal, Literal)>),
}

impl Literal {
    /// Parses a text that consists of one literal; `None` if it does not.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let literal = take(&mut rest, MAX_DEPTH)?;
        rest.trim().is_empty().then_some(literal)
    }
}

fn take(rest: &mut &str, depth: usize) -> Option<Literal> {
    let depth = depth.checked_sub(1)?;
    *rest = rest.trim_start();
    match rest.chars().next()? {
        quote @ ('\'' | '"') => text(rest, quote).map(Literal::Text),
        '[' => items(rest, ']', |rest| take(rest, depth)).map(|(items, _)| Literal::List(items)),
        '(' => {
            let (mut items, has_comma) = items(rest, ')', |rest| take(rest, depth))?;
            // One item without a comma is in parentheses, and no tuple.
            if items.len() == 1 && !has_comma { items.pop() } else { Some(Literal::Tuple(items)) }
        }
        '{' => {
            let member = |rest: &mut &str| {
                let name = take(rest, depth)?;
                *rest = rest.trim_start().strip_prefix(':')?;
                Some((name, take(rest, depth)?))
            };
            items(rest, '}', member).map(|(members, _)| Literal::Dictionary(members))
        }
        _ => word(rest),
    }
}

/// A number, which Python 2 may have written with an `L` at its end, or one of the constants.
fn word(rest: &mut &str) -> Option<Literal> {
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (word, after) = rest.split_at_checked(end)?;
    *rest = after;
    match word {
        "True" => Some(Literal::Truth(true)),
        "False" => Some(Literal::Truth(false)),
        "None" => Some(Literal::Nothing),
        number => number.trim_end_matches('L').parse().ok().map(Literal::Number),
    }
}

/// Items between brackets, with commas between them and perhaps after the last; and whether there was a comma.
fn items<T>(
    rest: &mut &str,
    close: char,
    mut item: impl FnMut(&mut &str) -> Option<T>,
) -> Option<(Vec<T>, bool)> {
    let mut chars = rest.chars();
    chars.next()?;
    *rest = chars.as_str();
    let (mut items, mut has_comma) = (Vec::new(), false);
    loop {
        *rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(close) {
            *rest = after;
            return Some((items, has_comma));
        }
        if !items.is_empty() && !has_comma {
            return None;
        }
        items.push(item(rest)?);
        *rest = rest.trim_start();
        has_comma = match rest.strip_prefix(',') {
            Some(after) => {
                *rest = after;
                true
            }
            None => items.len() > 1 && rest.starts_with(close),
        };
    }
}

/// A text in quotes, with the escapes that numpy writes.
fn text(rest: &mut &str, quote: char) -> Option<String> {
    let mut chars = rest.chars();
    chars.next()?;
    let mut text = String::new();
    loop {
        match chars.next()? {
            c if c == quote => {
                *rest = chars.as_str();
                return Some(text);
            }
            '\\' => {
                let digits = match chars.next()? {
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    other => {
                        text.push(match other {
                            'n' => '\n',
                            't' => '\t',
                            'r' => '\r',
                            itself => itself,
                        });
                        continue;
                    }
                };
                let code: String = chars.by_ref().take(digits).collect();
                text.push(char::from_u32(u32::from_str_radix(&code, 16).ok()?)?);
            }
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_as_numpy_writes_them_are_parsed() {
        let head = Literal::parse(
            "{'descr': [('a', '<i4'), ('b', '<f8', (2,))], 'fortran_order': False, 'shape': (3L, 4), }  \n",
        );
        let Some(Literal::Dictionary(members)) = head else { panic!("{head:?}") };
        assert_eq!(members.len(), 3);
        assert_eq!(members[2].1, Literal::Tuple(vec![Literal::Number(3), Literal::Number(4)]));
        assert_eq!(Literal::parse("(5)"), Some(Literal::Number(5)));
        assert_eq!(Literal::parse("(5,)"), Some(Literal::Tuple(vec![Literal::Number(5)])));
        assert_eq!(Literal::parse("()"), Some(Literal::Tuple(vec![])));
        assert_eq!(Literal::parse(r"'\U0001f600\'\x41'"), Some(Literal::Text("😀'A".to_owned())));
        for wrong in ["", "(1 2)", "'a", "{'a' 1}", "[1", "-1", "1e5", "(1,,)", &"[".repeat(100)] {
            assert_eq!(Literal::parse(wrong), None, "{wrong}");
        }
    }
}

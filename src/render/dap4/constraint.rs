//! [`Dap4Constraint`]: the query of a request ("DAP4", volume 1, section 8): projections, dimensions, and checksums.
//!
//! `dap4.ce=/time=[0:9];/g/air[][0:2:8][7]` selects ten times, and of the variable `air` of the group `g` these times and indices
//! of its other dimensions. A hyperslab is `[start:stride:last]`, `[start:last]`, `[index]`, or `[]` for the whole dimension
//! or what is selected of it; `*` is the last index there is.

use std::fmt::{self, Display, Formatter};

use super::error::Dap4Error;
use crate::render::dap::percent_decoded;

/// Most parts of an expression.
const MAX_PARTS: usize = 4096;
/// Most hyperslabs of a projection.
const MAX_RANK: usize = 64;
/// Most names of a path.
const MAX_NAMES: usize = 32;
/// Characters of a part that an error repeats.
const SHOWN_CHARACTERS: usize = 60;

/// The query of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dap4Constraint {
    /// What is selected of dimensions.
    pub(super) dimensions: Vec<(Vec<String>, Dap4Slab)>,
    /// What is selected of variables; all of them if there is none.
    pub(super) projections: Vec<(Vec<String>, Vec<Option<Dap4Slab>>)>,
    /// Whether a checksum follows the values of each variable.
    pub has_checksums: bool,
}

/// Indices along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dap4Slab {
    /// The first index.
    pub start: u64,
    /// The distance of indices, at least 1.
    pub stride: u64,
    /// The index that no selected one is beyond; `None` for the last one there is.
    pub last: Option<u64>,
}

impl Dap4Constraint {
    /// Parses the query of a URL as it was sent. Parameters of other names than those of DAP4 mean nothing.
    ///
    /// # Errors
    /// [`Dap4Error`] with the part that is wrong.
    pub fn parse(query: &str) -> Result<Self, Dap4Error> {
        let mut parsed = Self { dimensions: Vec::new(), projections: Vec::new(), has_checksums: true };
        for parameter in query.split('&') {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let (name, value) = (percent_decoded(name), percent_decoded(value));
            match (name.as_str(), value.to_ascii_lowercase().as_str()) {
                ("dap4.ce", _) => parsed.add(&value)?,
                ("dap4.checksum", "true" | "1" | "") => parsed.has_checksums = true,
                ("dap4.checksum", "false" | "0") => parsed.has_checksums = false,
                _ if name.starts_with("dap4.") => {
                    return Err(Dap4Error::Parameter { name: shown(&name), value: shown(&value) });
                }
                _ => {}
            }
        }
        Ok(parsed)
    }

    fn add(&mut self, text: &str) -> Result<(), Dap4Error> {
        for part in parts(text) {
            if part.trim().is_empty() {
                continue;
            }
            if self.dimensions.len() + self.projections.len() >= MAX_PARTS {
                return Err(Dap4Error::TooMany(MAX_PARTS));
            }
            self.add_part(part.trim())?;
        }
        Ok(())
    }

    fn add_part(&mut self, part: &str) -> Result<(), Dap4Error> {
        let syntax = || Dap4Error::Syntax { part: shown(part) };
        let (names, rest) = path(part).ok_or_else(syntax)?;
        if rest.starts_with('|') {
            return Err(Dap4Error::Filter { part: shown(part) });
        }
        if let Some(slab) = rest.strip_prefix('=') {
            return match slabs(slab).ok_or_else(syntax)?.as_slice() {
                [Some(slab)] => {
                    self.dimensions.push((names, *slab));
                    Ok(())
                }
                _ => Err(syntax()),
            };
        }
        let (brackets, behind) = rest.split_at(rest.rfind(']').map_or(0, |last| last + 1));
        if behind.starts_with('|') {
            return Err(Dap4Error::Filter { part: shown(part) });
        }
        if !behind.is_empty() {
            return Err(syntax());
        }
        self.projections.push((names, slabs(brackets).ok_or_else(syntax)?));
        Ok(())
    }
}

impl Display for Dap4Slab {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { start, stride, last } = self;
        match last {
            Some(last) => write!(formatter, "[{start}:{stride}:{last}]"),
            None => write!(formatter, "[{start}:{stride}:*]"),
        }
    }
}

/// The parts of an expression. A backslash takes away the meaning of the character behind it.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut is_escaped = false;
    text.split(move |character| {
        let ends = character == ';' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        ends
    })
}

/// The names of a path, and what is behind it; `None` if there is no path.
fn path(part: &str) -> Option<(Vec<String>, &str)> {
    let (mut names, mut name, mut is_escaped) = (Vec::new(), String::new(), false);
    let mut end = part.len();
    for (place, character) in part.char_indices() {
        match character {
            _ if is_escaped => {
                name.push(character);
                is_escaped = false;
            }
            '\\' => is_escaped = true,
            '/' if name.is_empty() && names.is_empty() && place == 0 => {}
            '/' if names.len() < MAX_NAMES => names.push(std::mem::take(&mut name)),
            '/' | ']' | '{' | '}' | '(' | ')' => return None,
            '[' | '=' | '|' => {
                end = place;
                break;
            }
            _ => name.push(character),
        }
    }
    names.push(name);
    let rest = part.get(end..)?;
    (!is_escaped && names.iter().all(|name| !name.is_empty())).then_some((names, rest))
}

/// Hyperslabs one after the other; `None` if the text is no such list.
fn slabs(mut text: &str) -> Option<Vec<Option<Dap4Slab>>> {
    let mut slabs = Vec::new();
    while !text.is_empty() {
        let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
        if slabs.len() >= MAX_RANK {
            return None;
        }
        slabs.push(slab(inside.trim())?);
        text = rest;
    }
    Some(slabs)
}

/// A hyperslab; of the outer option, `None` if the text is none, and of the inner one for the whole dimension.
#[expect(clippy::option_option, reason = "the whole dimension is no hyperslab")]
fn slab(text: &str) -> Option<Option<Dap4Slab>> {
    if text.is_empty() || text == "*" {
        return Some(None);
    }
    let mut numbers = text.split(':').map(str::trim);
    let (first, second, third) = (numbers.next()?, numbers.next(), numbers.next());
    if numbers.next().is_some() {
        return None;
    }
    let (start, stride, last) = match (second, third) {
        (None, _) => (first, "1", first),
        (Some(last), None) => (first, "1", last),
        (Some(stride), Some(last)) => (first, stride, last),
    };
    let (start, stride) = (index(start)?, index(stride)?);
    let last = if last == "*" { None } else { Some(index(last)?) };
    if stride == 0 || last.is_some_and(|last| last < start) {
        return None;
    }
    Some(Some(Dap4Slab { start, stride, last }))
}

/// An index: digits only.
fn index(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn shown(part: &str) -> String {
    part.chars().take(SHOWN_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn slab(start: u64, stride: u64, last: u64) -> Dap4Slab {
        Dap4Slab { start, stride, last: Some(last) }
    }

    #[test]
    fn a_constraint_selects_of_dimensions_and_of_variables() {
        let query = "dap4.checksum=false&dap4.ce=%2Ftime%3D[0:9]%3B/g/a%5C;b%20c[][0:2:8]%5B7%5D[*][3:*];x";
        let parsed = Dap4Constraint::parse(query).unwrap();
        assert!(!parsed.has_checksums);
        assert_eq!(parsed.dimensions, [(names(&["time"]), slab(0, 1, 9))]);
        let open = Some(Dap4Slab { start: 3, stride: 1, last: None });
        let slabs = vec![None, Some(slab(0, 2, 8)), Some(slab(7, 1, 7)), None, open];
        assert_eq!(parsed.projections, [(names(&["g", "a;b c"]), slabs), (names(&["x"]), vec![])]);
        assert!(Dap4Constraint::parse("").unwrap().has_checksums);
        assert!(Dap4Constraint::parse("_=3&dap4.ce=").unwrap().projections.is_empty());
    }

    #[test]
    fn what_is_no_constraint_is_refused() {
        for part in [
            "/a[",
            "/a]",
            "/a[1:0]",
            "/a[0:0:1]",
            "/a[-1]",
            "/a//b",
            "/",
            "/a=[]",
            "/a=[1][2]",
            "/a{b}",
            "f(a)",
            "/a[1]b",
            "a\\",
        ] {
            let found = Dap4Constraint::parse(&format!("dap4.ce={part}"));
            assert!(matches!(found, Err(Dap4Error::Syntax { .. })), "{part}: {found:?}");
        }
        for part in ["/a|a>3", "/a[0:3]|b>2"] {
            let found = Dap4Constraint::parse(&format!("dap4.ce={part}"));
            assert!(matches!(found, Err(Dap4Error::Filter { .. })), "{part}: {found:?}");
        }
        assert!(matches!(Dap4Constraint::parse("dap4.function=f()"), Err(Dap4Error::Parameter { .. })));
        let many = format!("dap4.ce={}", "/a;".repeat(5000));
        assert_eq!(Dap4Constraint::parse(&many), Err(Dap4Error::TooMany(4096)));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[a-c%0-9A-F\\[\\]:;/=|*\\\\ ]{0,40}") {
            let _ = Dap4Constraint::parse(&format!("dap4.ce={text}"));
        }
    }
}

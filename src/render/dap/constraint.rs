//! [`Constraint`]: a constraint expression ("DAP 2.0", section 6.1.1): projections with hyperslabs.
//!
//! `air[0:1:9][2:4][7],time` selects indices along the dimensions of variables: `[start:stride:last]`, `[start:last]` or
//! `[index]`, with the last index included. A member of a grid is `air.air` or `air.time`. Clients encode brackets, colons and
//! commas in URLs or do not.

use super::error::DapError;
use super::name::decoded;

/// Most projections, and most relations, of an expression.
const MAX_PARTS: usize = 4096;
/// Most hyperslabs of a projection.
const MAX_RANK: usize = 64;
/// Characters of a part that an error repeats.
const SHOWN_CHARACTERS: usize = 60;

/// A constraint expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constraint {
    /// What is selected; all variables if there is none.
    pub projections: Vec<Projection>,
}

/// A variable, or a member of a grid, and what is selected of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    /// The name of the variable.
    pub name: String,
    /// The name of the member, if one is selected.
    pub member: Option<String>,
    /// A hyperslab for each dimension; none for all elements.
    pub slabs: Vec<Hyperslab>,
}

/// Indices along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hyperslab {
    /// The first index.
    pub start: u64,
    /// The distance of indices, at least 1.
    pub stride: u64,
    /// The index that no selected one is beyond.
    pub last: u64,
}

impl Constraint {
    /// Parses the query of a URL as it was sent.
    ///
    /// # Errors
    /// [`DapError`] with the part that is wrong.
    pub fn parse(query: &str) -> Result<Self, DapError> {
        let text = signs_decoded(query);
        let mut parts = text.split('&');
        let projected = parts.next().unwrap_or_default();
        if let Some(part) = parts.find(|part| !part.is_empty()) {
            return Err(DapError::Relation { part: shown(part) });
        }
        let mut projections = Vec::new();
        for part in projected.split(',').filter(|part| !part.is_empty()) {
            if projections.len() >= MAX_PARTS {
                return Err(DapError::TooManyParts(MAX_PARTS));
            }
            projections.push(Projection::parse(part)?);
        }
        Ok(Self { projections })
    }
}

impl Projection {
    fn parse(part: &str) -> Result<Self, DapError> {
        if part.contains(['(', ')']) {
            return Err(DapError::Function { part: shown(part) });
        }
        let syntax = || DapError::Syntax { part: shown(part) };
        let (mut names, mut slabs) = (Vec::new(), Vec::new());
        // A client may put the hyperslabs of a grid behind its name, and the member behind them.
        for piece in part.split('.') {
            let (name, rest) = piece.split_at(piece.find('[').unwrap_or(piece.len()));
            if name.is_empty() {
                return Err(syntax());
            }
            names.push(decoded(name));
            let given = hyperslabs(rest).ok_or_else(syntax)?;
            if !given.is_empty() && !slabs.is_empty() {
                return Err(syntax());
            }
            if !given.is_empty() {
                slabs = given;
            }
        }
        let mut names = names.into_iter();
        match (names.next(), names.next(), names.next()) {
            (Some(name), member, None) => Ok(Self { name, member, slabs }),
            _ => Err(syntax()),
        }
    }
}

/// Hyperslabs one after the other; `None` if the text is no such list.
fn hyperslabs(mut text: &str) -> Option<Vec<Hyperslab>> {
    let mut slabs = Vec::new();
    while !text.is_empty() {
        let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
        let mut numbers = inside.split(':').map(index);
        let slab = match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
            (Some(one), None, None, None) => Hyperslab { start: one?, stride: 1, last: one? },
            (Some(start), Some(last), None, None) => Hyperslab { start: start?, stride: 1, last: last? },
            (Some(start), Some(stride), Some(last), None) => {
                Hyperslab { start: start?, stride: stride?, last: last? }
            }
            _ => return None,
        };
        if slab.stride == 0 || slab.last < slab.start || slabs.len() >= MAX_RANK {
            return None;
        }
        slabs.push(slab);
        text = rest;
    }
    Some(slabs)
}

/// An index: digits only.
fn index(text: &str) -> Option<u64> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// The query with the signs of the grammar decoded. Other encoded characters belong to names.
fn signs_decoded(query: &str) -> String {
    let mut text = query.to_owned();
    for (encoded, sign) in
        [("%5B", "["), ("%5D", "]"), ("%3A", ":"), ("%2C", ","), ("%28", "("), ("%29", ")")]
    {
        if text.contains('%') {
            text = text.replace(encoded, sign).replace(&encoded.to_lowercase(), sign);
        }
    }
    text
}

fn shown(part: &str) -> String {
    part.chars().take(SHOWN_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name, the member, and start, stride and last index of each hyperslab.
    type Parsed = (String, Option<String>, Vec<[u64; 3]>);

    fn parsed(query: &str) -> Result<Vec<Parsed>, DapError> {
        let list = |slabs: Vec<Hyperslab>| {
            slabs.into_iter().map(|slab| [slab.start, slab.stride, slab.last]).collect()
        };
        let projections = Constraint::parse(query)?.projections;
        Ok(projections.into_iter().map(|one| (one.name, one.member, list(one.slabs))).collect())
    }

    #[test]
    fn a_constraint_selects_indices_with_the_last_one_included() {
        let air = |slabs: &[[u64; 3]]| ("air".to_owned(), None, slabs.to_vec());
        for (query, expected) in [
            ("", vec![]),
            ("air", vec![air(&[])]),
            ("air[3]", vec![air(&[[3, 1, 3]])]),
            ("air[1:2]", vec![air(&[[1, 1, 2]])]),
            ("air[0:2:9][1:1:1]", vec![air(&[[0, 2, 9], [1, 1, 1]])]),
            ("air%5B0%3A2%3A9%5d", vec![air(&[[0, 2, 9]])]),
            ("air,air", vec![air(&[]), air(&[])]),
        ] {
            assert_eq!(parsed(query), Ok(expected), "{query}");
        }
        let member = ("a.b".to_owned(), Some("c d".to_owned()), vec![[0, 1, 1]]);
        for query in ["a%2Eb.c%20d[0:1]", "a%2eb[0:1].c%20d"] {
            assert_eq!(parsed(query), Ok(vec![member.clone()]), "{query}");
        }
    }

    #[test]
    fn what_is_no_hyperslab_is_refused() {
        for query in [
            "air[",
            "air[]",
            "air[1:0]",
            "air[0:0:1]",
            "air[-1]",
            "air[a]",
            "air]0[",
            "[0]",
            "a.b.c",
            "air[0:1:2:3]",
        ] {
            assert!(matches!(parsed(query), Err(DapError::Syntax { .. })), "{query}");
        }
        assert!(matches!(parsed("air&time>3"), Err(DapError::Relation { .. })));
        assert!(matches!(parsed("grid(air)"), Err(DapError::Function { .. })));
        assert_eq!(parsed(&"a,".repeat(5000)), Err(DapError::TooManyParts(4096)));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(query in "[a-c%0-9A-F\\[\\]:,.&()> ]{0,40}") {
            let _ = Constraint::parse(&query);
        }
    }
}

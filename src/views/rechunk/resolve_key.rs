//! The meaning of a key in a rechunked hierarchy: a document of a node, a chunk by its v3 or v2 key, or neither.
//!
//! The key of a chunk ends in numbers, and so may the names of groups and arrays above it. Arrays contain no nodes, so
//! the array nearest to the root is the right one, and the search begins there. Dependent arrays are opened like all
//! others.

use std::sync::Arc;
use std::time::Instant;

use crate::array::{ArrayError, NodeOpener, OpenNode};
use crate::chunk::ChunkCoords;
use crate::hierarchy::HierarchyError;
use crate::key::{NodePath, StoreKey};
use crate::views::error::ViewError;

/// A chunk that a key may name, judging by its form.
pub(in crate::views) struct Candidate {
    pub(in crate::views) path: NodePath,
    pub(in crate::views) coords: ChunkCoords,
}

/// A chunk of an array.
#[derive(Debug)]
pub(in crate::views) struct NamedChunk {
    pub(in crate::views) path: NodePath,
    pub(in crate::views) opened: Arc<OpenNode>,
    pub(in crate::views) coords: ChunkCoords,
}

/// The node at a path, if there is one, for a request that began at `began`.
///
/// # Errors
/// Its documents cannot be read or used.
pub(in crate::views) async fn find_node(
    opener: &NodeOpener,
    path: &NodePath,
    began: Instant,
) -> Result<Option<Arc<OpenNode>>, ViewError> {
    if let Some(opened) = opener.open_cached(path, began).await? {
        return Ok(Some(opened));
    }
    // It may be one of a draft, which is an error.
    match opener.hierarchy().missing_node_error(path.clone()).await {
        HierarchyError::NoSuchNode { .. } => Ok(None),
        error => Err(ArrayError::from(error).into()),
    }
}

/// The chunk that a key names; `None` if it names none.
///
/// # Errors
/// As [`find_node`].
pub(in crate::views) async fn find_chunk(
    opener: &NodeOpener,
    key: &StoreKey,
) -> Result<Option<NamedChunk>, ViewError> {
    let began = Instant::now();
    for Candidate { path, coords } in candidates(key) {
        let Some(opened) = find_node(opener, &path, began).await? else { continue };
        match opened.array() {
            Ok(array) if array.grid().axes().len() == coords.len() => {
                return Ok(Some(NamedChunk { path, opened, coords }));
            }
            // A key has one number for each dimension. In v2 the key of an array without dimensions has one number,
            // too.
            Ok(array) if array.grid().axes().is_empty() && coords == [0] && !is_default_key(key) => {
                return Ok(Some(NamedChunk { path, opened, coords: Vec::new() }));
            }
            Ok(_) => return Ok(None),
            Err(ArrayError::NotAnArray { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// The chunks that a key may name, with the paths nearest to the root first: by its form in v3, then in v2.
pub(in crate::views) fn candidates(key: &StoreKey) -> Vec<Candidate> {
    let segments: Vec<&str> = key.as_str().split('/').collect();
    let numbers = segments.iter().rev().map_while(|segment| parse_number(segment)).count();
    let names = segments.len() - numbers;
    let candidate = |names: usize, first: usize| {
        let path = NodePath::parse(&segments.get(..names)?.join("/")).ok()?;
        let coords =
            segments.get(first..)?.iter().map(|segment| parse_number(segment)).collect::<Option<_>>()?;
        Some(Candidate { path, coords })
    };
    let default = names.checked_sub(1).filter(|_| is_default_key(key)).and_then(|at| candidate(at, names));
    default.into_iter().chain((names..segments.len()).filter_map(|at| candidate(at, at))).collect()
}

/// Whether a key ends in `c` followed by numbers only.
pub(in crate::views) fn is_default_key(key: &StoreKey) -> bool {
    let mut segments = key.as_str().split('/').rev().skip_while(|segment| parse_number(segment).is_some());
    segments.next() == Some("c")
}

/// A number without leading zeros.
pub(in crate::views) fn parse_number(digits: &str) -> Option<u64> {
    let is_plain = digits == "0" || !digits.starts_with('0');
    (is_plain && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(key: &str) -> Vec<(String, Vec<u64>)> {
        let candidates = candidates(&StoreKey::parse(key).unwrap()).into_iter();
        candidates.map(|Candidate { path, coords }| (path.as_str().to_owned(), coords)).collect()
    }

    fn all(expected: &[(&str, &[u64])]) -> Vec<(String, Vec<u64>)> {
        expected.iter().map(|(path, coords)| ((*path).to_owned(), coords.to_vec())).collect()
    }

    #[test]
    fn a_key_may_name_chunks_of_several_arrays() {
        assert_eq!(named("a/b/c/0/12"), all(&[("a/b", &[0, 12]), ("a/b/c", &[0, 12]), ("a/b/c/0", &[12])]));
        assert_eq!(named("img/0/1/2"), all(&[("img", &[0, 1, 2]), ("img/0", &[1, 2]), ("img/0/1", &[2])]));
        assert_eq!(named("c"), all(&[("", &[])]));
        assert_eq!(named("a/c"), all(&[("a", &[])]));
        assert_eq!(named("0"), all(&[("", &[0])]));
    }

    #[test]
    fn accepts_one_spelling_of_a_number() {
        for key in ["a/c/00", "a/01", "a/+1", "a/1.0", "a/c/0/x", "README", "a/c/18446744073709551616"] {
            assert_eq!(named(key), all(&[]), "{key}");
        }
        assert_eq!(named("a/c/18446744073709551615").len(), 2);
    }
}

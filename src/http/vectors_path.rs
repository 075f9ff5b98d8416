//! [`SubresourcePath`]: a path split into the path of a vector store and the subresource after it.
//!
//! A store may have any path, so its path may itself end like a subresource. All splits are candidates, the longest
//! subresource first; a candidate without a store is skipped.

use crate::key::NodePath;

/// A subresource of a store, as the URL names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubresourcePath {
    /// The level as text, if the path has one.
    pub(crate) level: Option<String>,
    pub(crate) subresource: Subresource,
}

/// A subresource of a store or of a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    Store,
    Level,
    Chunks,
    Chunk(String),
    Vertices,
    Objects,
    Object(String),
    ObjectVertices(String),
    ObjectEdges(String),
    Links,
    Amplification,
    Stats,
    Validate,
}

/// The number of segments of the longest subresource: `levels/0/objects/7/vertices`.
const MAX_SEGMENTS: usize = 5;

/// The stores that a path may name, with the subresource of each: the longest subresource first.
pub(crate) fn split_candidates(path: &NodePath) -> Vec<(NodePath, SubresourcePath)> {
    let segments: Vec<&str> = path.as_str().split('/').filter(|segment| !segment.is_empty()).collect();
    let mut found = Vec::new();
    for length in (0..=MAX_SEGMENTS.min(segments.len())).rev() {
        let Some((store, tail)) = segments.split_at_checked(segments.len() - length) else { continue };
        if let (Ok(store), Some(tail)) = (NodePath::parse(&store.join("/")), parse(tail)) {
            found.push((store, tail));
        }
    }
    found
}

/// The shortest store path that a request for `path` may read.
pub(crate) fn shortest_store(path: &NodePath) -> NodePath {
    split_candidates(path).into_iter().next().map_or_else(|| path.clone(), |(store, _)| store)
}

fn parse(segments: &[&str]) -> Option<SubresourcePath> {
    let (level, rest) = match segments {
        ["levels", level, rest @ ..] => (Some((*level).to_owned()), rest),
        rest => (None, rest),
    };
    let what = match rest {
        [] if level.is_some() => Subresource::Level,
        [] => Subresource::Store,
        ["chunks"] => Subresource::Chunks,
        ["chunks", chunk] => Subresource::Chunk((*chunk).to_owned()),
        ["vertices"] => Subresource::Vertices,
        ["objects"] => Subresource::Objects,
        ["objects", id] => Subresource::Object((*id).to_owned()),
        ["objects", id, "vertices"] => Subresource::ObjectVertices((*id).to_owned()),
        ["objects", id, "edges"] => Subresource::ObjectEdges((*id).to_owned()),
        ["links"] => Subresource::Links,
        ["amplification"] => Subresource::Amplification,
        ["stats"] => Subresource::Stats,
        ["validate"] if level.is_none() => Subresource::Validate,
        _ => return None,
    };
    Some(SubresourcePath { level, subresource: what })
}

/// Parses a decimal number without leading zeros.
#[cfg_attr(not(feature = "vectors"), expect(dead_code, reason = "only `/v1/vectors` uses it"))]
pub(crate) fn parse_number(text: &str) -> Option<u64> {
    let is_plain = text == "0" || !text.starts_with('0');
    (is_plain && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_at_every_possible_store() {
        let found = |text: &str| {
            let tails = split_candidates(&NodePath::parse(text).unwrap());
            tails
                .into_iter()
                .map(|(store, tail)| (store.as_str().to_owned(), tail.subresource))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(""), [(String::new(), Subresource::Store)]);
        assert_eq!(found("a/b"), [("a/b".to_owned(), Subresource::Store)]);
        assert_eq!(
            found("a/levels/0/vertices"),
            [
                ("a".to_owned(), Subresource::Vertices),
                ("a/levels/0".to_owned(), Subresource::Vertices),
                ("a/levels/0/vertices".to_owned(), Subresource::Store)
            ]
        );
        assert_eq!(
            found("levels/1/objects/-7/edges").first(),
            Some(&(String::new(), Subresource::ObjectEdges("-7".to_owned())))
        );
        assert_eq!(found("a/levels/0/validate").len(), 2);
    }
}

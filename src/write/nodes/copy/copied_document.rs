//! [`CopiedDocument`]: a metadata document of the source, and the order in which documents are stored.

use std::cmp::Reverse;

use bytes::Bytes;

use crate::store::Version;
use crate::write::nodes::consolidated_copies::ZMETADATA;
use crate::write::nodes::documents::{ZARR_JSON, ZARRAY, ZATTRS, ZGROUP};

/// The names of documents.
const NAMES: [&str; 5] = [ZARR_JSON, ZARRAY, ZGROUP, ZATTRS, ZMETADATA];

/// A metadata document of the source.
#[derive(Clone, Debug)]
pub(super) struct CopiedDocument {
    /// Its key, relative to the node.
    pub(super) relative: String,
    pub(super) text: Bytes,
    /// The version of the source that was read.
    pub(super) version: Version,
}

/// The place of a document in the order in which documents are stored: those of nodes further down are first, and of each node the
/// one that makes it a node is last.
type DocumentOrder = (Reverse<usize>, u8);

/// The document names among the last names of keys.
pub(super) fn document_name(relative: &str) -> Option<&'static str> {
    let name = relative.rsplit('/').next().unwrap_or_default();
    NAMES.into_iter().find(|known| *known == name)
}

impl CopiedDocument {
    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        document_name(&self.relative).unwrap_or_default()
    }

    /// The path of its node, relative to the copied one.
    pub(super) fn node(&self) -> &str {
        self.relative.rsplit_once('/').map_or("", |(node, _)| node)
    }

    /// Whether it makes the copied node a node.
    pub(super) fn makes_the_node(&self) -> bool {
        self.order() == (Reverse(0), 2)
    }

    pub(super) fn order(&self) -> DocumentOrder {
        let rank = match self.name() {
            ZATTRS => 0,
            // Who reads it sees all below it, which is there by then.
            ZMETADATA => 1,
            _ => 2,
        };
        (Reverse(self.relative.matches('/').count()), rank)
    }
}

/// Documents that may be stored together, in the order in which they are stored.
pub(super) fn steps(documents: &[CopiedDocument]) -> impl DoubleEndedIterator<Item = &[CopiedDocument]> {
    let steps: Vec<_> = documents.chunk_by(|one, other| one.order() == other.order()).collect();
    steps.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_of_a_node_is_stored_after_all_below_it() {
        let document = |relative: &str| CopiedDocument {
            relative: relative.to_owned(),
            text: Bytes::new(),
            version: Version::strong("v"),
        };
        let names =
            [".zgroup", "g/zarr.json", ".zattrs", "g/a/.zarray", ".zmetadata", "g/a/.zattrs", "b/.zarray"];
        let mut documents: Vec<_> = names.into_iter().map(document).collect();
        documents
            .sort_by(|one, other| one.order().cmp(&other.order()).then(one.relative.cmp(&other.relative)));
        let stored: Vec<Vec<&str>> =
            steps(&documents).map(|step| step.iter().map(|one| one.relative.as_str()).collect()).collect();
        let expected: [&[&str]; 6] = [
            &["g/a/.zattrs"],
            &["g/a/.zarray"],
            &["b/.zarray", "g/zarr.json"],
            &[".zattrs"],
            &[".zmetadata"],
            &[".zgroup"],
        ];
        assert_eq!(stored, expected);
        assert!(document("zarr.json").makes_the_node() && !document("a/zarr.json").makes_the_node());
        assert_eq!((document("g/a/.zarray").node(), document(".zgroup").node()), ("g/a", ""));
        assert_eq!((document_name("c/0/0"), document_name("a/zarr.json")), (None, Some("zarr.json")));
    }
}

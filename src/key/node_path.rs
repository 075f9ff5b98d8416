//! [`NodePath`]: the path of a node in a hierarchy (Zarr core 3.1, "Node names").

use std::fmt;

use super::last_segment::last_segment;
use super::{KeyError, StoreKey, StorePrefix};

/// The names of metadata documents.
const DOCUMENTS: [&str; 5] = ["zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"];

/// The path of a node, without the specification's leading slash: empty for the root, else such as `a/b`.
///
/// Invariants: those of a [`StorePrefix`]. Names that the specification reserves (`__…`, only periods, `zarr.json`) can
/// be read, because existing hierarchies may hold them. [`NodePath::check_names`] rejects them for writing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodePath(StorePrefix);

impl NodePath {
    /// The root of the hierarchy.
    #[must_use]
    pub fn root() -> Self {
        Self(StorePrefix::root())
    }

    /// Parses a path such as `a/b`; empty is the root. One trailing slash is accepted.
    ///
    /// # Errors
    /// [`KeyError`] as for store keys.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        match text.strip_suffix('/').unwrap_or(text) {
            "" if text.is_empty() => Ok(Self::root()),
            path => StoreKey::parse(path).map(|key| Self(key.as_prefix())),
        }
    }

    /// The path's text: empty for the root, no slash at either end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str().strip_suffix('/').unwrap_or_default()
    }

    /// The prefix of all keys of this node.
    #[must_use]
    pub fn prefix(&self) -> &StorePrefix {
        &self.0
    }

    /// The last name of the path; empty for the root.
    #[must_use]
    pub fn name(&self) -> &str {
        last_segment(self.as_str())
    }

    /// The parent node; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.0.as_key().map(|key| Self(key.parent()))
    }

    /// The child of this node with a name.
    ///
    /// # Errors
    /// [`KeyError`] if the name is not one segment of a key.
    pub fn child(&self, name: &str) -> Result<Self, KeyError> {
        if name.contains('/') {
            return Err(KeyError::NodeName(name.to_owned()));
        }
        self.0.join(name).map(Self)
    }

    /// Whether v3 reserves the node's name (Zarr core 3.1, "Node names": names that begin with `__`). v2 reserves none.
    #[must_use]
    pub fn is_reserved_in_v3(&self) -> bool {
        is_reserved_in_v3(self.name())
    }

    /// Checks each name against the rules for new nodes of any format: not only periods, no leading `__`, and no name of a metadata
    /// document.
    ///
    /// # Errors
    /// [`KeyError::NodeName`] with the first name that breaks a rule.
    pub fn check_names(&self) -> Result<(), KeyError> {
        for name in self.as_str().split('/').filter(|name| !name.is_empty()) {
            if name.bytes().all(|byte| byte == b'.') || is_reserved_in_v3(name) || DOCUMENTS.contains(&name) {
                return Err(KeyError::NodeName(name.to_owned()));
            }
        }
        Ok(())
    }
}

/// As [`NodePath::is_reserved_in_v3`], for a name alone.
pub(crate) fn is_reserved_in_v3(name: &str) -> bool {
    name.starts_with("__")
}

impl fmt::Display for NodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_empty_and_has_no_parent() {
        let root = NodePath::parse("").unwrap();
        assert_eq!((root.as_str(), root.name(), root.parent()), ("", "", None));
        assert_eq!(root.child("a").unwrap().as_str(), "a");
        assert_eq!(NodePath::parse("a/b").unwrap().parent(), Some(NodePath::parse("a/").unwrap()));
    }

    #[test]
    fn reserved_names_are_accepted_for_reading_and_rejected_for_new_nodes() {
        for text in ["__zarr", "a/__x", "a/...", "zarr.json", ".zarray/a"] {
            assert!(NodePath::parse(text).unwrap().check_names().is_err(), "{text}");
        }
        assert!(NodePath::parse("a/b..c/_x").unwrap().check_names().is_ok());
        assert!(NodePath::root().child("a/b").is_err());
    }
}

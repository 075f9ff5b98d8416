//! [`ChangedNode`]: a node whose documents have changed, and the groups that have copies of them.

use super::array_document::ArrayDocument;
use super::consolidated_copies::{CopyChange, ZMETADATA};
use super::documents::ZARR_JSON;
use super::stored_document::ancestors;
use crate::key::NodePath;
use crate::metadata::ZarrFormat;

/// A node whose documents have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::write) struct ChangedNode {
    pub(super) path: NodePath,
    format: ZarrFormat,
    pub(super) change: CopyChange,
}

/// A group that may have copies of documents, and where it has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupWithCopies {
    pub(super) path: NodePath,
    pub(super) document: &'static str,
}

impl ChangedNode {
    pub(super) fn new(path: &NodePath, format: ZarrFormat, change: CopyChange) -> Self {
        Self { path: path.clone(), format, change }
    }

    /// An array whose document has this text now.
    pub(in crate::write) fn stored(path: &NodePath, document: &ArrayDocument, text: String) -> Self {
        Self::new(path, document.metadata.zarr_format, CopyChange::Stored(vec![(document.name, text)]))
    }

    /// The same node with these documents.
    pub(super) fn with_documents(&self, documents: Vec<(&'static str, String)>) -> Self {
        Self { change: CopyChange::Stored(documents), ..self.clone() }
    }

    /// The document with copies of this node's documents.
    fn copies_in(&self) -> &'static str {
        if self.format == ZarrFormat::V3 { ZARR_JSON } else { ZMETADATA }
    }
}

impl GroupWithCopies {
    /// What changes in this group's copies because of a node, and the path of the node relative to the group.
    pub(super) fn change_of(&self, node: &ChangedNode) -> Option<(CopyChange, String)> {
        if node.copies_in() != self.document {
            return None;
        }
        if node.path == self.path {
            return Some((node.change.clone(), String::new()));
        }
        let relative = node.path.as_str().strip_prefix(self.path.prefix().as_str())?;
        Some((node.change.clone(), relative.to_owned()))
    }
}

/// The groups that may have copies of the nodes' documents, each once, those above first.
pub(super) fn groups_with_copies(changed: &[ChangedNode]) -> Vec<GroupWithCopies> {
    let mut groups: Vec<GroupWithCopies> = Vec::new();
    for node in changed {
        // A group of v2 has its own documents among its copies.
        let has_own = node.format != ZarrFormat::V3 && matches!(node.change, CopyChange::Stored(_));
        for path in ancestors(&node.path).chain(has_own.then(|| node.path.clone())) {
            let group = GroupWithCopies { path, document: node.copies_in() };
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
    }
    groups
}

//! [`NodeCopy`]: what is copied or moved, and where to.

use crate::key::{NodePath, StoreKey};
use crate::store::SharedStore;
use crate::write::nodes::error::NodeWriteError;
use crate::write::nodes::stored_document::document_key;
use crate::write::nodes::writer::NodeWriter;

/// What becomes of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeTransfer {
    /// It stays.
    Copy,
    /// It is erased when it is at its target.
    Move,
}

/// A node, or the place of one, and the writer of its mount.
#[derive(Debug)]
pub struct NodePlace {
    /// The writer.
    pub writer: NodeWriter,
    /// The path.
    pub path: NodePath,
}

/// A copy of a node.
#[derive(Debug)]
pub struct NodeCopy {
    /// The source.
    pub from: NodePlace,
    /// The target.
    pub to: NodePlace,
    /// What becomes of the source.
    pub transfer: NodeTransfer,
    /// Whether both are in the same store.
    pub is_within_store: bool,
    /// Whether a move whose node is at its target already goes on there with the erasure of its source.
    pub resumes: bool,
    /// The most bytes of a value.
    pub max_value_bytes: u64,
}

impl NodePlace {
    pub(super) fn store(&self) -> &SharedStore {
        self.writer.store()
    }

    /// The key of the node that is relative to it.
    pub(super) fn key(&self, relative: &str) -> Result<StoreKey, NodeWriteError> {
        document_key(&self.path, relative)
    }

    /// A key of the node, relative to it.
    pub(super) fn relative<'k>(&self, key: &'k StoreKey) -> &'k str {
        key.as_str().strip_prefix(self.path.prefix().as_str()).unwrap_or_default()
    }
}

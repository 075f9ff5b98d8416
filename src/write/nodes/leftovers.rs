//! What an erasure or a move that broke off has left below a path: values, and nodes further down, but no node at the path itself.
//!
//! An erasure takes a node's document first, so that readers see no part of the node. If it breaks off after that, the node is gone
//! for readers, and what is left is erased by the next erasure of the same path. A node that is being made at the path or above it has
//! the lease of its own path.

use futures::stream::StreamExt;

use super::changed_node::ChangedNode;
use super::consolidated_copies::CopyChange;
use super::error::NodeWriteError;
use super::stored_document::ancestors;
use super::writer::NodeWriter;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::{HierarchyError, Node};
use crate::key::NodePath;
use crate::metadata::ZarrFormat;
use crate::store::StoreError;
use crate::write::lease::LeaseError;

impl NodeWriter {
    /// Erases what is left below a path at which there is no node, and its copies in consolidated metadata.
    ///
    /// # Errors
    /// [`HierarchyError::NoSuchNode`] if nothing is left; [`NodeWriteError::Lease`] if a node is being made there or above it, which the
    /// values are of; [`NodeWriteError::StillStored`]; a failure of the backend.
    pub(super) async fn erase_leftovers(&self, path: &NodePath) -> Result<(), NodeWriteError> {
        let has_leftovers = self.has_leftovers(path).await?;
        // The document that would say of which format the node was is gone.
        let formats = [ZarrFormat::V3, ZarrFormat::V2];
        let changed = formats.map(|format| ChangedNode::new(path, format, CopyChange::Erased));
        self.update_copies(&changed).await?;
        if !has_leftovers {
            return Err(HierarchyError::NoSuchNode { path: path.clone() }.into());
        }
        let owner = self.writer.new_owner();
        for above in ancestors(path) {
            self.check_not_made(&above, &owner).await?;
        }
        let lease = match self.take_lease(path, &owner).await {
            Err(NodeWriteError::Lease(LeaseError::NoConditions)) => None,
            taken => Some(taken?),
        };
        let erased = self.erase_all_below(path, &changed).await;
        match (lease, &erased) {
            (Some(lease), Ok(())) => lease.end_made().await,
            (Some(lease), Err(error)) if error.is_settled() => lease.release().await,
            // While an erasure may still arrive, no node is made at the path: the lease ends by itself.
            (Some(_) | None, _) => {}
        }
        erased
    }

    /// Whether there are values below a path, which is not the root, not in an array, and not below a document that cannot be read.
    ///
    /// # Errors
    /// A failure of the backend.
    pub(super) async fn has_leftovers(&self, path: &NodePath) -> Result<bool, NodeWriteError> {
        if path.parent().is_none() {
            return Ok(false);
        }
        for above in ancestors(path) {
            match self.find(&above).await {
                Ok(Some(opened)) if matches!(opened.node, Node::Array(_)) => return Ok(false),
                Ok(_) => {}
                // It may be an array.
                Err(error) if is_of_document(error.class()) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        let prefix = path.prefix();
        match self.store().list_prefix(prefix, None).next().await {
            None | Some(Err(StoreError::NotListable)) => Ok(false),
            Some(Ok(_)) => Ok(true),
            Some(Err(source)) => Err(NodeWriteError::Store { key: prefix.as_str().to_owned(), source }),
        }
    }
}

/// Whether an error is about a document, and not about the backend.
fn is_of_document(class: ErrorClass) -> bool {
    matches!(class, ErrorClass::InvalidMetadata | ErrorClass::Unsupported | ErrorClass::TooLarge)
}

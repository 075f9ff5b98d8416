//! Nodes are erased: documents first, so that a node is gone at once, and then all values below it.
//!
//! A node may be made below the path meanwhile, by a creation, a copy or a move. Either all of it is erased, or none of it, or it is not
//! made:
//!
//! - An erasure lists what is below the path after its last pass, and makes another pass if there is anything. It ends well only with an
//!   empty listing.
//! - A creation stores its values, lists them, stores its documents, and then asks for one of its values again. It ends well only if
//!   all are listed, and that one is still there.
//!
//! If the node's document was stored before the erasure came to it in its last listing, that listing is not empty, and the next pass
//! erases the node. Otherwise all passes had ended before the document was stored. Let one of them have erased a value of the node. If
//! the value that is asked for at the end was stored before the last listing came to it, it is erased, and the creation notices at its
//! end. If it was stored after that, the creation has listed its values later still, and one was missing.

use futures::stream::{StreamExt, TryStreamExt};

use super::changed_node::ChangedNode;
use super::consolidated_copies::CopyChange;
use super::documents::{META, ZARR_JSON, ZARRAY, ZGROUP};
use super::error::NodeWriteError;
use super::stored_document::{condition, document_key, makes_node};
use super::writer::NodeWriter;
use crate::array::OpenNode;
use crate::hierarchy::HierarchyError;
use crate::key::NodePath;
use crate::store::{StoreError, Version, WriteCondition};
use crate::write::pause::{ATTEMPTS, pause};
use crate::write::uncached::as_stored;

/// The most documents that are erased at once.
const MAX_ERASURES: usize = 16;

impl NodeWriter {
    /// Erases a node with all that is below it: its documents first, so that it is gone at once. A node whose documents cannot
    /// be read is erased too, and so is what an erasure has left that broke off. With `expected`, the node must still be as it was
    /// opened.
    ///
    /// # Errors
    /// [`HierarchyError::NoSuchNode`]; [`NodeWriteError::ConditionFailed`]; [`NodeWriteError::StillStored`]; a failure of the backend.
    /// What was erased until then stays erased.
    pub async fn erase(&self, path: &NodePath, expected: Option<&OpenNode>) -> Result<(), NodeWriteError> {
        let located = match self.opener.hierarchy().locate(path).await {
            Err(HierarchyError::NoSuchNode { .. }) if expected.is_none() => {
                return self.erase_leftovers(path).await;
            }
            located => located?,
        };
        let format = located.zarr_format();
        if expected.is_some_and(|node| node.located != located) {
            return Err(NodeWriteError::ConditionFailed);
        }
        // Below one that cannot be read there may be others. Listing the chunks of an array would take long.
        let is_array = matches!(self.find(path).await, Ok(Some(node)) if node.array().is_ok());
        let known: Vec<&Version> = located.versions().flatten().collect();
        for name in [ZARR_JSON, ZARRAY, ZGROUP, META] {
            let key = document_key(path, name)?;
            let is_expected = expected.is_some() && makes_node(format, name);
            let current = if is_expected { self.read_known(&key, &known).await? } else { None };
            let condition = match &current {
                Some(_) => condition(&key, current.as_ref())?,
                None => WriteCondition::Always,
            };
            match self.store().erase(&key, condition).await {
                Ok(_existed) => {}
                Err(StoreError::ConditionFailed | StoreError::VersionChanged) => {
                    return Err(NodeWriteError::ConditionFailed);
                }
                Err(StoreError::NotSupported(_)) if current.is_some() => {
                    return Err(NodeWriteError::NoConditions { key });
                }
                Err(source) => return Err(NodeWriteError::store(&key, source)),
            }
        }
        if !is_array {
            self.erase_documents_below(path).await?;
        }
        self.wait_for_writes_below(path).await;
        // Before the values: what is left of them lets another erasure of the path come here.
        let changed = [ChangedNode::new(path, format, CopyChange::Erased)];
        self.update_copies(&changed).await?;
        self.erase_all_below(path, &changed).await
    }

    /// Erases all that is below a path, also nodes that were made there meanwhile.
    ///
    /// # Errors
    /// [`NodeWriteError::StillStored`] if others go on to store values; a failure of the backend.
    pub(super) async fn erase_all_below(
        &self,
        path: &NodePath,
        changed: &[ChangedNode],
    ) -> Result<(), NodeWriteError> {
        for attempt in 0..ATTEMPTS {
            pause(attempt).await;
            if attempt > 0 {
                self.erase_documents_below(path).await?;
                self.wait_for_writes_below(path).await;
                self.update_copies(changed).await?;
            }
            self.erase_below(path).await?;
            if self.is_empty_below(path).await? {
                return Ok(());
            }
        }
        Err(NodeWriteError::StillStored { path: path.clone() })
    }

    /// Whether nothing is stored below a path, as far as the backend lists keys.
    ///
    /// # Errors
    /// A failure of the backend.
    pub(super) async fn is_empty_below(&self, path: &NodePath) -> Result<bool, NodeWriteError> {
        let prefix = path.prefix();
        match as_stored(&**self.store()).list_prefix(prefix, None).next().await {
            None | Some(Err(StoreError::NotListable)) => Ok(true),
            Some(Ok(_)) => Ok(false),
            Some(Err(source)) => Err(NodeWriteError::Store { key: prefix.as_str().to_owned(), source }),
        }
    }

    /// Erases the documents of all nodes below a group, so that none of these is read without some of its values.
    async fn erase_documents_below(&self, path: &NodePath) -> Result<(), NodeWriteError> {
        let failed = |key: &str, source| NodeWriteError::Store { key: key.to_owned(), source };
        let listed = as_stored(&**self.store()).list_prefix(path.prefix(), None);
        listed
            .map_err(|source| failed(path.as_str(), source))
            .try_for_each_concurrent(MAX_ERASURES, |entry| async move {
                let (_, name) = entry.key.as_str().rsplit_once('/').unwrap_or_default();
                if ![ZARR_JSON, ZARRAY, ZGROUP, META].contains(&name) {
                    return Ok(());
                }
                let erased = self.store().erase(&entry.key, WriteCondition::Always).await;
                erased.map(|_existed| ()).map_err(|source| failed(entry.key.as_str(), source))
            })
            .await
    }

    /// Waits until the writes of elements have ended that this process had begun before documents were erased: what one of them stores
    /// after the values are erased would be read as a value of the next array at the path.
    pub(super) async fn wait_for_writes_below(&self, path: &NodePath) {
        self.writer.lines().wait_below(self.opener.mount(), path.prefix()).await;
    }

    /// Erases all values below a path.
    async fn erase_below(&self, path: &NodePath) -> Result<(), NodeWriteError> {
        let prefix = path.prefix();
        let erased = self.store().erase_prefix(prefix).await;
        erased.map_err(|source| NodeWriteError::Store { key: prefix.as_str().to_owned(), source })?;
        Ok(())
    }
}

//! [`NodeWriter`]: creates, changes and erases nodes of one mount.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::array_document::{ArrayDocument, check_kind};
use super::changed_node::{ChangedNode, GroupWithCopies, groups_with_copies};
use super::consolidated_copies::CopyChange;
use super::documents::{ZARR_JSON, ZATTRS};
use super::error::NodeWriteError;
use super::mark::marked_as;
use super::patch::NodePatch;
use super::resize::{DocumentGuard, Resize};
use super::stored_document::{StoredDocument, condition, document_key, is_known, main_document};
use crate::array::{NodeOpener, OpenNode};
use crate::cpu::ComputePool;
use crate::key::{NodePath, StoreKey};
use crate::metadata::{MetadataLimits, ZarrFormat};
use crate::store::{
    ByteRange, MemoryBudget, Reservation, SharedStore, StoreError, ValueBody, Version, WriteCondition,
};
use crate::write::pause::{ATTEMPTS, pause};
use crate::write::uncached::as_stored;
use crate::write::{ArrayIdentity, ArrayWriter};

/// Documents that are read concurrently.
const READS: usize = 16;
/// Bytes of memory for each byte of a document that is parsed and written again.
const PARSED_RATIO: u64 = 16;

/// Creates, changes and erases nodes of one mount, for one request.
#[derive(Debug)]
pub struct NodeWriter {
    pub(super) opener: NodeOpener,
    pub(super) writer: ArrayWriter,
    pub(super) cpu: ComputePool,
    pub(super) limits: MetadataLimits,
    pub(super) budget: Arc<dyn MemoryBudget>,
}

impl NodeWriter {
    /// A writer of nodes. Memory for documents is reserved from `budget`.
    #[must_use]
    pub fn new(
        opener: NodeOpener,
        (writer, cpu): (ArrayWriter, ComputePool),
        limits: MetadataLimits,
        budget: Arc<dyn MemoryBudget>,
    ) -> Self {
        Self { opener, writer, cpu, limits, budget }
    }

    /// The array of an open node, as far as it can be checked again whether it is still the one at its path.
    #[must_use]
    pub fn identity(&self, path: &NodePath, opened: &OpenNode) -> Option<ArrayIdentity> {
        ArrayIdentity::new((self.store(), path), opened, (self.limits, &self.cpu, &self.budget))
    }

    pub(in crate::write) fn store(&self) -> &SharedStore {
        self.opener.hierarchy().store()
    }

    /// Changes the attributes or the shape of a node. With `is_expected`, the node must still be as it was opened.
    ///
    /// # Errors
    /// [`NodeWriteError`]; nothing of the node has changed for readers, unless the error says otherwise.
    pub async fn patch(
        &self,
        path: &NodePath,
        node: Arc<OpenNode>,
        patch: &NodePatch,
        is_expected: bool,
    ) -> Result<(), NodeWriteError> {
        check_kind(&node)?;
        let Some(shape) = &patch.shape else {
            return self.patch_leased(path, node, patch, is_expected).await;
        };
        let (document, mut lease) = self.take_settled(path, &node, &self.writer.new_owner()).await?;
        let is_growing = shape.iter().zip(&document.metadata.shape).any(|(new, old)| new > old);
        if is_growing {
            // An element that arrived later would be seen in place of the fill value.
            lease.wait_for_late_writes().await?;
        }
        let outcome = self.patch_leased(path, node, patch, is_expected).await;
        // With a change in flight, the lease ends by itself, and who takes it next makes sure that the change comes to nothing.
        if outcome.as_ref().err().is_none_or(NodeWriteError::is_settled) {
            if outcome.is_ok() {
                lease.invalidate_outside(shape);
            }
            lease.release().await;
        }
        outcome
    }

    async fn patch_leased(
        &self,
        path: &NodePath,
        mut node: Arc<OpenNode>,
        patch: &NodePatch,
        is_expected: bool,
    ) -> Result<(), NodeWriteError> {
        for attempt in 0..ATTEMPTS {
            pause(attempt).await;
            match self.patch_once(path, &node, patch, is_expected).await {
                Err(NodeWriteError::ConditionFailed) => {
                    let now = self.opener.open(path).await?;
                    // A write to a chunk that is cleared overtakes the change as well, and leaves the node as it was opened.
                    if is_expected && now.located != node.located {
                        return Err(NodeWriteError::ConditionFailed);
                    }
                    node = now;
                }
                outcome => return outcome,
            }
        }
        Err(NodeWriteError::Contended { key: document_key(path, main_document(&node))? })
    }

    async fn patch_once(
        &self,
        path: &NodePath,
        node: &OpenNode,
        patch: &NodePatch,
        is_expected: bool,
    ) -> Result<(), NodeWriteError> {
        check_kind(node)?;
        patch.check_names(&node.node)?;
        let format = node.node.zarr_format();
        let known: Vec<&Version> =
            if is_expected { node.located.versions().flatten().collect() } else { Vec::new() };
        let mut stored = Vec::new();
        let mut shrunk = None;
        if patch.shape.is_some() {
            let document = self.array_document(path, node).await?;
            if !is_known(&known, document.version()) {
                return Err(NodeWriteError::ConditionFailed);
            }
            let resize = self.resize(path, &document, patch)?;
            let store = as_stored(&**self.store());
            let ArrayDocument { name, key, stored: current, .. } = &document;
            let guard = DocumentGuard { store, key, version: document.version() };
            resize.clear_new_part(&self.writer, &guard).await?;
            let text = self.applied(name, Some(current), patch).await?;
            let version = self.set(key, &text, condition(key, Some(current))?).await?;
            shrunk = version.map(|version| (resize, key.clone(), version));
            stored.push((*name, text));
        }
        let attributes = if format == ZarrFormat::V3 { ZARR_JSON } else { ZATTRS };
        if patch.changes_attributes() && stored.iter().all(|(name, _)| *name != attributes) {
            let changed = self.change(path, attributes, &known, patch).await;
            let changed = changed.map_err(|error| match stored.len() {
                0 => error,
                _ => error.after_storing("its attributes could not be changed"),
            });
            stored.push((attributes, changed?));
        }
        if let Some((resize, key, version)) = &shrunk {
            let guard = DocumentGuard { store: as_stored(&**self.store()), key, version };
            match resize.erase_outside(&self.writer, &guard).await {
                // Others have changed the array since. Who lets it grow erases first.
                Ok(()) | Err(NodeWriteError::ConditionFailed) => {}
                Err(error) => {
                    return Err(error.after_storing("chunks outside of its shape could not be erased"));
                }
            }
        }
        self.update_copies(&[ChangedNode::new(path, format, CopyChange::Stored(stored))]).await
    }

    /// The change of shape of an array, as its document is now.
    fn resize(
        &self,
        path: &NodePath,
        document: &ArrayDocument,
        patch: &NodePatch,
    ) -> Result<Resize, NodeWriteError> {
        let before = self.opener.bind(path, &document.metadata)?;
        let after = self.array_of_shape(path, document, patch.shape_of(&document.metadata)?)?;
        Resize::new(Arc::new(before), Arc::new(after), self.writer.options().max_values)
    }

    /// The node at a path; `None` if there is none.
    pub(in crate::write) async fn find(
        &self,
        path: &NodePath,
    ) -> Result<Option<Arc<OpenNode>>, NodeWriteError> {
        Ok(self.opener.find(path).await?)
    }

    /// Applies a patch to a document, on the condition that it has not changed, and again if it has. If there are `known`
    /// versions, it must have one of them.
    async fn change(
        &self,
        path: &NodePath,
        name: &'static str,
        known: &[&Version],
        patch: &NodePatch,
    ) -> Result<String, NodeWriteError> {
        let key = document_key(path, name)?;
        for attempt in 0..ATTEMPTS {
            pause(attempt).await;
            let current = self.read_known(&key, known).await?;
            let text = self.applied(name, current.as_ref(), patch).await?;
            match self.set(&key, &text, condition(&key, current.as_ref())?).await {
                Ok(_version) => return Ok(text),
                Err(NodeWriteError::ConditionFailed) if known.is_empty() => {}
                Err(error) => return Err(error),
            }
        }
        Err(NodeWriteError::Contended { key })
    }

    /// A document with a patch applied to it, and the mark that it has.
    pub(super) async fn applied(
        &self,
        name: &'static str,
        current: Option<&StoredDocument>,
        patch: &NodePatch,
    ) -> Result<String, NodeWriteError> {
        let (text, patch, limits) = (current.map(|current| current.text.clone()), patch.clone(), self.limits);
        let bytes = patch.attribute_bytes.saturating_add(text.as_ref().map_or(0, Bytes::len) as u64);
        let apply = move || {
            let patched = patch.apply(name, text.as_deref(), &limits)?;
            Ok(marked_as(patched, text.as_deref().unwrap_or_default()))
        };
        self.cpu.run_document(bytes, apply).await?
    }

    /// A document, which must have one of these versions if there are any.
    pub(super) async fn read_known(
        &self,
        key: &StoreKey,
        known: &[&Version],
    ) -> Result<Option<StoredDocument>, NodeWriteError> {
        let current = self.read(key).await?;
        if current.as_ref().is_none_or(|current| is_known(known, &current.version)) {
            return Ok(current);
        }
        Err(NodeWriteError::ConditionFailed)
    }

    /// Changes the copies of documents in the groups above their nodes, and in the nodes themselves: each group in one step.
    ///
    /// # Errors
    /// [`NodeWriteError::Incomplete`].
    pub(in crate::write) async fn update_copies(
        &self,
        changed: &[ChangedNode],
    ) -> Result<(), NodeWriteError> {
        for group in groups_with_copies(changed) {
            let updated = self.change_copies(&group, changed).await;
            updated.map_err(|error| {
                error.after_storing("consolidated metadata above it could not be changed")
            })?;
        }
        Ok(())
    }

    pub(super) async fn change_copies(
        &self,
        group: &GroupWithCopies,
        changed: &[ChangedNode],
    ) -> Result<(), NodeWriteError> {
        let key = document_key(&group.path, group.document)?;
        for attempt in 0..ATTEMPTS {
            pause(attempt).await;
            let Some(current) = self.read(&key).await? else { return Ok(()) };
            let Some(mut text) = self.with_copies(group, &current, changed).await? else { return Ok(()) };
            // Others may have changed the nodes since, and these copies before. Of all that change them, the last one stores what its
            // nodes' documents are then.
            let present = self.present(changed).await?;
            let mut memory = Reservation::new(Some(&self.budget));
            memory.grow(present.iter().map(|node| node.change.bytes()).sum())?;
            if present != changed {
                let Some(of_present) = self.with_copies(group, &current, &present).await? else {
                    return Ok(());
                };
                text = of_present;
            }
            let (size, limit) = (text.len() as u64, self.limits.consolidated_bytes as u64);
            if size > limit {
                return Err(NodeWriteError::store(&key, StoreError::ValueTooLarge { size, limit }));
            }
            match self.set(&key, &text, condition(&key, Some(&current))?).await {
                Ok(_version) => return Ok(()),
                Err(NodeWriteError::ConditionFailed) => {}
                Err(error) => return Err(error),
            }
        }
        Err(NodeWriteError::Contended { key })
    }

    /// The document of a group with the copies of nodes; `None` if it has none, or they are true already.
    async fn with_copies(
        &self,
        group: &GroupWithCopies,
        current: &StoredDocument,
        changed: &[ChangedNode],
    ) -> Result<Option<String>, NodeWriteError> {
        let changes: Vec<_> = changed.iter().filter_map(|node| group.change_of(node)).collect();
        let added: u64 = changes.iter().map(|(change, _)| change.bytes()).sum();
        let (text, limits, name) = (current.text.clone(), self.limits, group.document);
        let bytes = added.saturating_add(text.len() as u64);
        Ok(self.cpu.run_document(bytes, move || CopyChange::apply(&changes, name, &text, &limits)).await?)
    }

    /// Nodes that have changed, with their documents as they are stored now. Those that are gone are left out.
    async fn present(&self, changed: &[ChangedNode]) -> Result<Vec<ChangedNode>, NodeWriteError> {
        let present: Vec<_> = changed.iter().map(|node| self.present_node(node).boxed()).collect();
        stream::iter(present).buffered(READS).try_collect().await
    }

    async fn present_node(&self, node: &ChangedNode) -> Result<ChangedNode, NodeWriteError> {
        let CopyChange::Stored(documents) = &node.change else { return Ok(node.clone()) };
        let mut texts = Vec::with_capacity(documents.len());
        for (name, _text) in documents {
            if let Some(stored) = self.read(&document_key(&node.path, name)?).await? {
                texts.push((*name, String::from_utf8_lossy(&stored.text).into_owned()));
            }
        }
        Ok(node.with_documents(texts))
    }

    /// A document; `None` if there is none.
    pub(super) async fn read(&self, key: &StoreKey) -> Result<Option<StoredDocument>, NodeWriteError> {
        let failed = |source| NodeWriteError::store(key, source);
        let value = as_stored(&**self.store()).get(key, ByteRange::Whole, None).await.map_err(failed)?;
        let Some(value) = value else { return Ok(None) };
        let mut memory = Reservation::new(Some(&self.budget));
        memory.grow(value.info.size.saturating_mul(PARSED_RATIO))?;
        let version = value.info.version.clone();
        let text = value.bytes(self.limits.consolidated_bytes as u64).await.map_err(failed)?;
        Ok(Some(StoredDocument { text, version, _memory: memory }))
    }

    /// Stores a document. Returns its version, if the backend reports it.
    pub(super) async fn set(
        &self,
        key: &StoreKey,
        text: &str,
        condition: WriteCondition,
    ) -> Result<Option<Version>, NodeWriteError> {
        let is_conditional = condition != WriteCondition::Always;
        let body = ValueBody::Bytes(Bytes::copy_from_slice(text.as_bytes())).into_stream();
        match self.store().set(key, body, condition).await {
            Ok(stored) => Ok(stored.version),
            Err(StoreError::ConditionFailed | StoreError::VersionChanged) => {
                Err(NodeWriteError::ConditionFailed)
            }
            Err(StoreError::NotSupported(_)) if is_conditional => {
                Err(NodeWriteError::NoConditions { key: key.clone() })
            }
            Err(source) => Err(NodeWriteError::store(key, source)),
        }
    }
}

//! [`NodeWriter`]: creates, changes and erases nodes of one mount.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{StreamExt, TryStreamExt};

use super::array_document::{ArrayDocument, check_kind};
use super::changed_node::{ChangedNode, GroupWithCopies, groups_with_copies};
use super::consolidated_copies::CopyChange;
use super::creation_claim::CreationClaim;
use super::documents::{META, NodeDocuments, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP};
use super::error::NodeWriteError;
use super::patch::NodePatch;
use super::resize::{DocumentGuard, Resize};
use super::stored_document::{
    StoredDocument, ancestors, condition, document_key, is_known, main_document, makes_node,
};
use crate::array::{Array, NodeOpener, OpenNode};
use crate::cpu::ComputePool;
use crate::hierarchy::{HierarchyError, Node};
use crate::key::{NodePath, StoreKey};
use crate::metadata::{MetadataLimits, ZarrFormat};
use crate::store::{
    ByteRange, MemoryBudget, Reservation, SharedStore, StoreError, ValueBody, Version, WriteCondition,
};
use crate::write::lease::ArrayLease;
use crate::write::pause::{ATTEMPTS, pause};
use crate::write::uncached::as_stored;
use crate::write::{ArrayIdentity, ArrayWriter};

/// Bytes of memory for each byte of a document that is parsed and written again.
const PARSED_RATIO: u64 = 16;
/// The most documents that are erased at once.
const MAX_ERASURES: usize = 16;

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

    /// Checks that a node can be created at a path, and binds it if it is an array. `may_make` says whether the caller may
    /// make a group.
    ///
    /// # Errors
    /// [`NodeWriteError::Exists`], [`NodeWriteError::BelowArray`], [`NodeWriteError::NoGroupAbove`],
    /// [`NodeWriteError::NotEmpty`], [`NodeWriteError::Unreadable`].
    pub async fn check_new(
        &self,
        path: &NodePath,
        documents: &NodeDocuments,
        may_make: impl Fn(&NodePath) -> bool,
    ) -> Result<Option<Array>, NodeWriteError> {
        self.check_place(path, may_make).await?;
        let Some(array) = documents.array() else { return Ok(None) };
        // What is left of another array would be read as chunks of this one.
        if let Some(entry) = self.store().list_dir_after(path.prefix(), "").next().await {
            match entry {
                Ok(_) => return Err(NodeWriteError::NotEmpty { path: path.clone() }),
                Err(StoreError::NotListable) => {}
                Err(source) => {
                    return Err(NodeWriteError::Store { key: path.prefix().as_str().to_owned(), source });
                }
            }
        }
        let array = self.opener.bind(path, array).map_err(NodeWriteError::Unreadable)?;
        Ok(Some(array))
    }

    /// Checks that there is no node at a path, and that the nodes above it are groups, or can be made.
    ///
    /// # Errors
    /// [`NodeWriteError::Invalid`] for a name that no new node may have; [`NodeWriteError::Exists`], [`NodeWriteError::BelowArray`],
    /// [`NodeWriteError::NoGroupAbove`].
    pub(super) async fn check_place(
        &self,
        path: &NodePath,
        may_make: impl Fn(&NodePath) -> bool,
    ) -> Result<(), NodeWriteError> {
        path.check_names().map_err(|error| NodeWriteError::Invalid(error.to_string()))?;
        if self.find(path).await?.is_some() {
            return Err(NodeWriteError::Exists { path: path.clone() });
        }
        for above in ancestors(path) {
            match self.find(&above).await?.as_deref() {
                Some(OpenNode { node: Node::Array(_), .. }) => {
                    return Err(NodeWriteError::BelowArray { array: above });
                }
                None if !may_make(&above) => return Err(NodeWriteError::NoGroupAbove { group: above }),
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    /// Stores the documents of a new node, after the groups above it. `claim` was made before any of its values was stored.
    ///
    /// # Errors
    /// [`NodeWriteError::Exists`] if another client has made it meanwhile; [`NodeWriteError::ConditionFailed`] if another one may have
    /// erased its values since the claim; a failure of the backend.
    pub async fn create(
        &self,
        path: &NodePath,
        documents: &NodeDocuments,
        claim: Option<CreationClaim>,
    ) -> Result<(), NodeWriteError> {
        self.make_groups_above(path, documents.format, &mut false).await?;
        self.store_new(path, documents, claim).await
    }

    /// Makes the groups above a node that do not exist, and sets `has_made` if there were any.
    ///
    /// # Errors
    /// A failure of the backend; some of the groups may be there then.
    pub(super) async fn make_groups_above(
        &self,
        path: &NodePath,
        format: ZarrFormat,
        has_made: &mut bool,
    ) -> Result<(), NodeWriteError> {
        for above in ancestors(path) {
            if self.find(&above).await?.is_none() {
                match self.store_new(&above, &NodeDocuments::of_group_above(format), None).await {
                    Ok(()) => *has_made = true,
                    Err(NodeWriteError::Exists { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Stores a new node, to which nothing was appended yet: the keys of appends to a node that was there before are free again.
    async fn store_new(
        &self,
        path: &NodePath,
        documents: &NodeDocuments,
        claim: Option<CreationClaim>,
    ) -> Result<(), NodeWriteError> {
        let former = self.take_lease_if_used(path).await?;
        let epoch = former.as_ref().map(ArrayLease::epoch);
        let outcome = if claim.is_none_or(|claim| claim.is_next(epoch)) {
            self.store_documents(path, documents).await
        } else {
            Err(NodeWriteError::ConditionFailed)
        };
        if let Some(mut lease) = former {
            if outcome.is_ok() {
                lease.clear_appends();
            }
            lease.release().await;
        }
        outcome?;
        self.update_copies(&[ChangedNode::new(
            path,
            documents.format,
            CopyChange::Stored(documents.texts.clone()),
        )])
        .await
    }

    /// Stores the documents of a node, each on the condition that there is none. What was stored is revoked where another
    /// client has created the node in the meantime.
    async fn store_documents(
        &self,
        path: &NodePath,
        documents: &NodeDocuments,
    ) -> Result<(), NodeWriteError> {
        let mut stored = Vec::new();
        for (name, text) in &documents.texts {
            let key = document_key(path, name)?;
            match self.set(&key, text, WriteCondition::IfAbsent).await {
                Ok(version) => stored.push((key, version)),
                Err(error) => {
                    self.revoke(stored).await;
                    return Err(match error {
                        NodeWriteError::ConditionFailed => NodeWriteError::Exists { path: path.clone() },
                        error => error,
                    });
                }
            }
        }
        // Two clients that create nodes of both formats store different keys. Each of them sees the other's, or one does.
        let of_other: &[&str] =
            if documents.format == ZarrFormat::V3 { &[ZARRAY, ZGROUP] } else { &[ZARR_JSON] };
        for name in of_other {
            let key = document_key(path, name)?;
            let found = as_stored(&**self.store()).head(&key).await;
            if found.map_err(|source| NodeWriteError::store(&key, source))?.is_some() {
                self.revoke(stored).await;
                return Err(NodeWriteError::Exists { path: path.clone() });
            }
        }
        Ok(())
    }

    /// Erases documents as far as they are still those that were stored.
    async fn revoke(&self, stored: Vec<(StoreKey, Option<Version>)>) {
        for (key, version) in stored.into_iter().rev() {
            let Some(version) = version.as_ref().and_then(Version::pin) else { continue };
            // What cannot be erased is refused by the next creation, which says so.
            let condition = WriteCondition::IfVersion(version.clone());
            drop(self.store().erase(&key, condition).await);
        }
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
        let lease = match patch.shape {
            Some(_) => {
                let mut lease = self.take_lease(path, &self.writer.new_owner()).await?;
                self.settled_document(path, &node, &mut lease).await?;
                Some(lease)
            }
            None => None,
        };
        let outcome = self.patch_leased(path, node, patch, is_expected).await;
        // With a change in flight, the lease ends by itself, and who takes it next makes sure that the change comes to nothing.
        if let (Some(lease), true) = (lease, outcome.as_ref().err().is_none_or(NodeWriteError::is_settled)) {
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

    /// Erases a node with all that is below it: its documents first, so that it is gone at once. A node whose documents cannot
    /// be read is erased too, and so is what an erasure has left that broke off. With `expected`, the node must still be as it was
    /// opened.
    ///
    /// # Errors
    /// [`HierarchyError::NoSuchNode`](crate::hierarchy::HierarchyError::NoSuchNode); [`NodeWriteError::ConditionFailed`]; a failure of
    /// the backend. What was erased until then stays erased.
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
        self.update_copies(&[ChangedNode::new(path, format, CopyChange::Erased)]).await?;
        self.erase_below(path).await
    }

    /// Erases the documents of all nodes below a group, so that none of these is read without some of its values.
    async fn erase_documents_below(&self, path: &NodePath) -> Result<(), NodeWriteError> {
        let failed = |key: &str, source| NodeWriteError::Store { key: key.to_owned(), source };
        let listed = self.store().list_prefix(path.prefix(), None);
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
    pub(super) async fn erase_below(&self, path: &NodePath) -> Result<(), NodeWriteError> {
        let prefix = path.prefix();
        let erased = self.store().erase_prefix(prefix).await;
        erased.map_err(|source| NodeWriteError::Store { key: prefix.as_str().to_owned(), source })?;
        Ok(())
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

    /// A document with a patch applied to it.
    pub(super) async fn applied(
        &self,
        name: &'static str,
        current: Option<&StoredDocument>,
        patch: &NodePatch,
    ) -> Result<String, NodeWriteError> {
        let (text, patch, limits) = (current.map(|current| current.text.clone()), patch.clone(), self.limits);
        let bytes = text.as_ref().map_or(0, Bytes::len) as u64;
        self.cpu.run_document(bytes, move || patch.apply(name, text.as_deref(), &limits)).await?
    }

    /// A document, which must have one of these versions if there are any.
    async fn read_known(
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
        let changes: Arc<[(CopyChange, String)]> =
            changed.iter().filter_map(|node| group.change_of(node)).collect();
        let added: u64 = changes.iter().map(|(change, _)| change.bytes()).sum();
        for attempt in 0..ATTEMPTS {
            pause(attempt).await;
            let Some(current) = self.read(&key).await? else { return Ok(()) };
            let (text, limits, name) = (current.text.clone(), self.limits, group.document);
            let changes = Arc::clone(&changes);
            let apply = move || CopyChange::apply(&changes, name, &text, &limits);
            let bytes = added.saturating_add(current.text.len() as u64);
            let Some(text) = self.cpu.run_document(bytes, apply).await? else { return Ok(()) };
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

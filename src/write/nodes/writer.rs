//! [`NodeWriter`]: creates, changes and erases nodes of one mount.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::StreamExt;

use super::consolidated_copies::{CopyChange, ZMETADATA};
use super::documents::{NodeDocuments, ZARR_JSON};
use super::error::NodeWriteError;
use super::patch::NodePatch;
use super::resize::Resize;
use crate::array::{Array, NodeOpener, OpenNode};
use crate::cpu::ComputePool;
use crate::hierarchy::{HierarchyError, Node};
use crate::key::{NodePath, StoreKey};
use crate::metadata::{ArrayMetadata, ChunkGridMetadata, MetadataLimits, ZarrFormat};
use crate::store::{
    ByteRange, MemoryBudget, Reservation, SharedStore, StoreError, ValueBody, Version, WriteCondition,
};
use crate::write::ArrayWriter;
use crate::write::pause::{ATTEMPTS, pause};

/// Bytes of memory for each byte of a document that is parsed and written again.
const PARSED_RATIO: u64 = 16;

/// Creates, changes and erases nodes of one mount, for one request.
#[derive(Debug)]
pub struct NodeWriter {
    opener: NodeOpener,
    writer: ArrayWriter,
    cpu: ComputePool,
    limits: MetadataLimits,
    budget: Arc<dyn MemoryBudget>,
}

/// What is done where values are stored below the path of a new array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfLeft {
    /// The array is not created.
    Refuse,
    /// They stay: all chunks of the array are written over them.
    Overwrite,
}

/// A stored document.
struct StoredDocument {
    text: Bytes,
    version: Version,
    /// The memory for it, and for what is made of it.
    _memory: Reservation,
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

    fn store(&self) -> &SharedStore {
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
        if_left: IfLeft,
    ) -> Result<Option<Array>, NodeWriteError> {
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
        let Some(array) = documents.array() else { return Ok(None) };
        // What is left of another array would be read as chunks of this one.
        let mut left = self.store().list_dir_after(path.prefix(), "");
        if if_left == IfLeft::Refuse
            && let Some(entry) = left.next().await
        {
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

    /// Stores the documents of a new node, after the groups above it.
    ///
    /// # Errors
    /// [`NodeWriteError::Exists`] if another client has made it meanwhile; a failure of the backend.
    pub async fn create(&self, path: &NodePath, documents: &NodeDocuments) -> Result<(), NodeWriteError> {
        for above in ancestors(path) {
            if self.find(&above).await?.is_none() {
                let group = NodeDocuments::of_group(documents.format, &serde_json::Map::new());
                match self.store_new(&above, &group).await {
                    Ok(()) | Err(NodeWriteError::Exists { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        self.store_new(path, documents).await
    }

    async fn store_new(&self, path: &NodePath, documents: &NodeDocuments) -> Result<(), NodeWriteError> {
        let Some(((main, text), others)) = documents.texts.split_last() else { return Ok(()) };
        for (name, text) in others {
            let key = document_key(path, name)?;
            self.set(&key, text, WriteCondition::Always).await?;
        }
        let key = document_key(path, main)?;
        match self.set(&key, text, WriteCondition::IfAbsent).await {
            Ok(()) => {}
            Err(NodeWriteError::ConditionFailed) => {
                return Err(NodeWriteError::Exists { path: path.clone() });
            }
            Err(error) => return Err(error),
        }
        self.update_copies(path, documents.format, &CopyChange::Stored(documents.texts.clone())).await
    }

    /// Changes the attributes or the shape of a node. `expected` is the node as the request knows it, if it names one.
    ///
    /// # Errors
    /// [`NodeWriteError`]; nothing of the node has changed for readers, unless the error says otherwise.
    pub async fn patch(
        &self,
        path: &NodePath,
        node: &OpenNode,
        patch: &NodePatch,
        is_expected: bool,
    ) -> Result<(), NodeWriteError> {
        if node.dependent.is_some() {
            return Err(NodeWriteError::Unsupported(
                "the array is declared by another array; change that one",
            ));
        }
        let format = node.node.zarr_format();
        if format == ZarrFormat::V1 {
            return Err(NodeWriteError::Unsupported("nodes of Zarr v1 are only read"));
        }
        let resize = match (&patch.shape, &node.node) {
            (None, _) => None,
            (Some(_), Node::Group(_)) => {
                return Err(NodeWriteError::Invalid("a group has no shape".to_owned()));
            }
            (Some(_), Node::Array(metadata)) => Some(self.resize(path, node, metadata, patch)?),
        };
        if let Some(resize) = &resize {
            resize.clear_new_part(&self.writer).await?;
        }
        let mut stored = Vec::new();
        for name in patch.documents(format == ZarrFormat::V3) {
            let known = node.located.versions().flatten();
            let known: Vec<Version> = if is_expected { known.cloned().collect() } else { Vec::new() };
            let text = self.change(path, name, known, patch).await?;
            stored.push((name, text));
        }
        if let Some(resize) = &resize {
            resize.erase_outside(&self.writer).await?;
        }
        self.update_copies(path, format, &CopyChange::Stored(stored)).await
    }

    fn resize(
        &self,
        path: &NodePath,
        node: &OpenNode,
        metadata: &ArrayMetadata,
        patch: &NodePatch,
    ) -> Result<Resize, NodeWriteError> {
        if !matches!(metadata.chunk_grid, ChunkGridMetadata::Regular { .. }) {
            return Err(NodeWriteError::Unsupported(
                "an array with chunks of different lengths keeps its shape",
            ));
        }
        let shape = patch.shape_of(metadata)?;
        let after = Arc::new(ArrayMetadata { shape, ..metadata.clone() });
        let after = self.opener.bind(path, &after)?;
        Resize::new(Arc::clone(node.array()?), Arc::new(after), self.writer.options().max_values)
    }

    /// Erases a node with all that is below it: its documents first, so that it is gone at once.
    ///
    /// # Errors
    /// A failure of the backend. What was erased until then stays erased.
    pub async fn erase(&self, path: &NodePath, node: &OpenNode) -> Result<(), NodeWriteError> {
        if node.dependent.is_some() {
            return Err(NodeWriteError::Unsupported(
                "the array is declared by another array; change that one",
            ));
        }
        let format = node.node.zarr_format();
        for name in [ZARR_JSON, ".zarray", ".zgroup", "meta"] {
            let key = document_key(path, name)?;
            let erased = self.store().erase(&key, WriteCondition::Always).await;
            erased.map_err(|source| NodeWriteError::store(&key, source))?;
        }
        let prefix = path.prefix();
        let erased = self.store().erase_prefix(prefix).await;
        erased.map_err(|source| NodeWriteError::Store { key: prefix.as_str().to_owned(), source })?;
        self.update_copies(path, format, &CopyChange::Erased).await
    }

    /// The node at a path; `None` if there is none.
    async fn find(&self, path: &NodePath) -> Result<Option<Arc<OpenNode>>, NodeWriteError> {
        Ok(self.opener.find(path).await?)
    }

    /// Applies a patch to a document, on the condition that it has not changed, and again if it has. If
    /// there are `known` versions, it must have one of them.
    async fn change(
        &self,
        path: &NodePath,
        name: &'static str,
        known: Vec<Version>,
        patch: &NodePatch,
    ) -> Result<String, NodeWriteError> {
        let key = document_key(path, name)?;
        for attempt in 0..ATTEMPTS {
            pause(attempt).await;
            let current = self.read(&key).await?;
            let is_known = current.as_ref().is_none_or(|current| known.contains(&current.version));
            if !known.is_empty() && !is_known {
                return Err(NodeWriteError::ConditionFailed);
            }
            let (stored, patch, limits) =
                (current.as_ref().map(|current| current.text.clone()), patch.clone(), self.limits);
            let bytes = stored.as_ref().map_or(0, Bytes::len) as u64;
            let made = self.cpu.run_document(bytes, move || patch.apply(name, stored.as_deref(), &limits));
            let text = made.await??;
            match self.set(&key, &text, condition(&key, current.as_ref())?).await {
                Ok(()) => return Ok(text),
                Err(NodeWriteError::ConditionFailed) if known.is_empty() => {}
                Err(error) => return Err(error),
            }
        }
        Err(NodeWriteError::Contended { key })
    }

    /// Changes the copies of a node's documents in the groups above it, and in itself.
    async fn update_copies(
        &self,
        path: &NodePath,
        format: ZarrFormat,
        change: &CopyChange,
    ) -> Result<(), NodeWriteError> {
        let name = if format == ZarrFormat::V3 { ZARR_JSON } else { ZMETADATA };
        let of_itself =
            (format != ZarrFormat::V3 && matches!(change, CopyChange::Stored(_))).then(|| path.clone());
        for group in ancestors(path).chain(of_itself) {
            let key = document_key(&group, name)?;
            let relative = path.as_str().strip_prefix(group.prefix().as_str()).unwrap_or_default();
            for attempt in 0..ATTEMPTS {
                pause(attempt).await;
                let Some(current) = self.read(&key).await? else { break };
                let (text, limits) = (current.text.clone(), self.limits);
                let (change, relative) = (change.clone(), relative.to_owned());
                let changed = self
                    .cpu
                    .run_document(text.len() as u64, move || change.apply(name, &text, &relative, &limits));
                let Some(text) = changed.await? else { break };
                match self.set(&key, &text, condition(&key, Some(&current))?).await {
                    Ok(()) => break,
                    Err(NodeWriteError::ConditionFailed) if attempt.saturating_add(1) < ATTEMPTS => {}
                    Err(NodeWriteError::ConditionFailed) => return Err(NodeWriteError::Contended { key }),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// A document; `None` if there is none.
    async fn read(&self, key: &StoreKey) -> Result<Option<StoredDocument>, NodeWriteError> {
        let failed = |source| NodeWriteError::store(key, source);
        let value = self.store().get(key, ByteRange::Whole, None).await.map_err(failed)?;
        let Some(value) = value else { return Ok(None) };
        let mut memory = Reservation::new(Some(&self.budget));
        memory.grow(value.info.size.saturating_mul(PARSED_RATIO))?;
        let version = value.info.version.clone();
        let text = value.bytes(self.limits.consolidated_bytes as u64).await.map_err(failed)?;
        Ok(Some(StoredDocument { text, version, _memory: memory }))
    }

    async fn set(&self, key: &StoreKey, text: &str, condition: WriteCondition) -> Result<(), NodeWriteError> {
        let is_conditional = condition != WriteCondition::Always;
        let body = ValueBody::Bytes(Bytes::copy_from_slice(text.as_bytes())).into_stream();
        match self.store().set(key, body, condition).await {
            Ok(_) => Ok(()),
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

/// The condition that a document is still the one that was read.
fn condition(key: &StoreKey, current: Option<&StoredDocument>) -> Result<WriteCondition, NodeWriteError> {
    let Some(current) = current else { return Ok(WriteCondition::IfAbsent) };
    let version = current.version.pin().ok_or_else(|| NodeWriteError::NoConditions { key: key.clone() })?;
    Ok(WriteCondition::IfVersion(version.clone()))
}

/// The paths above a node, from the root down.
fn ancestors(path: &NodePath) -> impl Iterator<Item = NodePath> + use<> {
    let mut above: Vec<_> = std::iter::successors(path.parent(), NodePath::parent).collect();
    above.reverse();
    above.into_iter()
}

/// The key of a node's document.
fn document_key(path: &NodePath, name: &str) -> Result<StoreKey, NodeWriteError> {
    let key = path.prefix().key(name);
    key.map_err(|source| HierarchyError::Path { path: path.clone(), source }.into())
}

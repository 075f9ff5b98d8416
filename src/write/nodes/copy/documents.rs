//! Documents of the target are stored after all values, and the copies of them above it are changed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::copied_document::{CopiedDocument, steps};
use super::error::NodeCopyError;
use super::node_copy::{NodeCopy, NodeTransfer};
use super::plan::NodeCopyPlan;
use super::values::leased;
use crate::key::{NodePath, StoreKey};
use crate::metadata::ZarrFormat;
use crate::store::{StoreError, ValueBody, Version, WriteCondition};
use crate::write::each::{BATCH, each};
use crate::write::nodes::changed_node::{ChangedNode, GroupWithCopies};
use crate::write::nodes::consolidated_copies::{CopyChange, ZMETADATA};
use crate::write::nodes::documents::{ZARR_JSON, ZARRAY, ZGROUP};
use crate::write::nodes::error::NodeWriteError;
use crate::write::nodes::new_documents::StoredDocuments;
use crate::write::nodes::stored_document::{ancestors, array_of};
use crate::write::uncached::as_stored;

impl NodeCopy {
    /// Checks that the source is still the one whose documents were read: for a copy, that no array has shrunk since, whose chunks
    /// may have been erased before they were copied.
    pub(super) async fn check_source(&self, plan: &NodeCopyPlan) -> Result<(), NodeCopyError> {
        for batch in plan.documents.chunks(BATCH) {
            each(batch.iter().map(|document| self.check_document(document)).collect()).await?;
        }
        Ok(())
    }

    async fn check_document(&self, document: &CopiedDocument) -> Result<(), NodeCopyError> {
        let key = self.from.key(&document.relative)?;
        let found = as_stored(&**self.from.store()).head(&key).await;
        let found = found.map_err(|source| NodeCopyError::value(key.as_str(), source))?;
        if found.as_ref().is_some_and(|found| document.version.matches(&found.version)) {
            return Ok(());
        }
        if self.transfer == NodeTransfer::Copy && found.is_some() && !self.has_shrunk(document).await? {
            return Ok(());
        }
        Err(NodeCopyError::SourceChanged { key })
    }

    /// Whether an array whose document has changed has less elements along any dimension than it had.
    async fn has_shrunk(&self, document: &CopiedDocument) -> Result<bool, NodeCopyError> {
        let (name, limits) = (document.name(), self.from.writer.limits);
        if !matches!(name, ZARR_JSON | ZARRAY) {
            return Ok(false);
        }
        let Some(now) = self.from.writer.read(&self.from.key(&document.relative)?).await? else {
            return Ok(true);
        };
        let (before, bytes) = (document.text.clone(), (document.text.len() + now.text.len()) as u64);
        let shapes = self.from.writer.cpu.run_document(bytes, move || {
            let shape = |text: &[u8]| array_of(name, text, &limits).map(|array| array.shape).ok();
            (shape(&before), shape(&now.text))
        });
        Ok(match shapes.await.map_err(NodeWriteError::from)? {
            (Some(before), Some(now)) => {
                before.len() != now.len() || before.iter().zip(&now).any(|(before, now)| now < before)
            }
            (Some(_), None) => true,
            (None, _) => false,
        })
    }

    /// Stores the documents, the node's own at the end, if all that was stored before it is there. Otherwise, or if it is not afterwards,
    /// the node is not made, and the documents of nodes below it are erased again. `values` are the number of values, and the first one.
    pub(super) async fn store_documents(
        &self,
        plan: &mut NodeCopyPlan,
        values: (u64, Option<StoreKey>),
        has_written: &AtomicBool,
    ) -> Result<(), NodeCopyError> {
        let mut stored = StoredDocuments::new();
        let outcome = self.store_steps(plan, values, &mut stored, has_written).await;
        let is_overtaken = matches!(
            outcome,
            Err(NodeCopyError::Node(NodeWriteError::ValuesChanged { .. } | NodeWriteError::Exists { .. }))
        );
        // Without the lease, they may be those of another copy as well.
        if is_overtaken && plan.lease.check().await.is_ok() {
            self.to.writer.revoke(stored).await;
        }
        outcome
    }

    async fn store_steps(
        &self,
        plan: &mut NodeCopyPlan,
        (mut count, mut first): (u64, Option<StoreKey>),
        stored: &mut StoredDocuments,
        has_written: &AtomicBool,
    ) -> Result<(), NodeCopyError> {
        let NodeCopyPlan { documents, lease, .. } = plan;
        self.check_all_stored(count).await?;
        for step in steps(documents) {
            let is_last = step.iter().any(CopiedDocument::makes_the_node);
            if is_last && step.len() < documents.len() {
                self.check_all_stored(count).await?;
            }
            for batch in step.chunks(BATCH) {
                let store = batch.iter().map(|document| self.store_document(document, has_written));
                let versions = leased(lease, each(store.collect())).await?;
                for (document, version) in batch.iter().zip(versions) {
                    stored.push((self.to.key(&document.relative)?, version));
                }
            }
            if is_last {
                self.check_formats(step).await?;
                if let Some(first) = &first {
                    self.check_stored(first).await?;
                }
            }
            count = count.saturating_add(step.len() as u64);
            if first.is_none() {
                first = stored.first().map(|(key, _)| key.clone());
            }
        }
        Ok(())
    }

    /// Checks that as many values are stored below the target as were copied.
    async fn check_all_stored(&self, count: u64) -> Result<(), NodeCopyError> {
        let path = &self.to.path;
        let listed = self.to.writer.count_below(path, count).await;
        let listed = listed.map_err(|source| NodeCopyError::value(path.prefix().as_str(), source))?;
        if listed.is_some_and(|listed| listed < count) { Err(self.values_changed()) } else { Ok(()) }
    }

    /// Stores a document. Returns its version, if the backend reports it.
    async fn store_document(
        &self,
        document: &CopiedDocument,
        has_written: &AtomicBool,
    ) -> Result<Option<Version>, NodeCopyError> {
        let key = self.to.key(&document.relative)?;
        let body = ValueBody::Bytes(document.text.clone()).into_stream();
        match self.to.store().set(&key, body, WriteCondition::IfAbsent).await {
            Ok(stored) => {
                has_written.store(true, Ordering::Relaxed);
                Ok(stored.version)
            }
            Err(StoreError::ConditionFailed | StoreError::VersionChanged) => {
                if document.makes_the_node() {
                    return Err(NodeWriteError::Exists { path: self.to.path.clone() }.into());
                }
                match self.to.writer.read(&key).await? {
                    Some(found) if found.text == document.text => Ok(None),
                    Some(_) | None => Err(NodeCopyError::NotOfSource { key }),
                }
            }
            Err(source) => Err(NodeCopyError::value(key.as_str(), source)),
        }
    }

    /// Checks that no other client has made a node of another format at the path meanwhile.
    async fn check_formats(&self, step: &[CopiedDocument]) -> Result<(), NodeCopyError> {
        for name in [ZARR_JSON, ZARRAY, ZGROUP] {
            let is_own = step.iter().any(|document| document.name() == name);
            if !is_own && self.to.writer.is_stored(&self.to.key(name)?).await? {
                return Err(NodeWriteError::Exists { path: self.to.path.clone() }.into());
            }
        }
        Ok(())
    }

    /// Adds the documents to consolidated metadata that is stored above the target.
    pub(super) async fn update_copies_above(&self, plan: &NodeCopyPlan) -> Result<(), NodeCopyError> {
        let mut nodes: BTreeMap<(&str, bool), Vec<(&'static str, String)>> = BTreeMap::new();
        let documents = plan.at_target.as_ref().unwrap_or(&plan.documents);
        for document in documents.iter().filter(|document| document.name() != ZMETADATA) {
            let of_node = nodes.entry((document.node(), document.name() == ZARR_JSON)).or_default();
            of_node.push((document.name(), String::from_utf8_lossy(&document.text).into_owned()));
        }
        let changed = nodes.into_iter().map(|((node, is_v3), texts)| {
            let format = if is_v3 { ZarrFormat::V3 } else { ZarrFormat::V2 };
            // A path without a node is the copied node's own.
            let path = NodePath::parse(&format!("{}{node}", self.to.path.prefix().as_str()));
            let path = path.unwrap_or_else(|_key_checked| self.to.path.clone());
            ChangedNode::new(&path, format, CopyChange::Stored(texts))
        });
        let changed: Vec<ChangedNode> = changed.collect();
        for path in ancestors(&self.to.path) {
            for document in [ZARR_JSON, ZMETADATA] {
                let group = GroupWithCopies { path: path.clone(), document };
                self.to.writer.change_copies(&group, &changed).await?;
            }
        }
        Ok(())
    }
}

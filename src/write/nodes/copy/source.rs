//! A node that was moved is erased at its source: its documents first, and each value if it is the one that was copied.

use std::collections::HashSet;

use futures::stream::{TryChunksError, TryStreamExt};

use super::copied_document::{CopiedDocument, document_name, steps};
use super::copied_versions::CopiedVersions;
use super::error::NodeCopyError;
use super::node_copy::NodeCopy;
use super::plan::NodeCopyPlan;
use crate::key::StoreKey;
use crate::store::{ListEntry, StoreError, Version, WriteCondition};
use crate::write::each::{BATCH, each};
use crate::write::nodes::changed_node::ChangedNode;
use crate::write::nodes::consolidated_copies::CopyChange;
use crate::write::uncached::as_stored;

impl NodeCopy {
    /// Erases the source, whose documents must still be those that were copied.
    pub(super) async fn erase_source(
        &self,
        plan: &NodeCopyPlan,
        versions: &CopiedVersions,
    ) -> Result<(), NodeCopyError> {
        if !self.is_within_store {
            self.check_apart(plan).await?;
        }
        for batch in steps(&plan.documents).rev().flat_map(|step| step.chunks(BATCH)) {
            each(batch.iter().map(|document| self.erase_document(document)).collect()).await?;
        }
        self.from.writer.wait_for_writes_below(&self.from.path).await;
        // As long as values are left, the same move can be made again, and comes here.
        let erased = ChangedNode::new(&self.from.path, plan.format, CopyChange::Erased);
        self.from.writer.update_copies(&[erased]).await?;
        let kept = self.erase_values(versions).await?;
        if kept > 0 { Err(NodeCopyError::Kept { values: kept }) } else { Ok(()) }
    }

    /// Checks that the target is no part of the source by ways that no store knows, such as a link from one mount into the other:
    /// then its documents are among those of the source by now.
    async fn check_apart(&self, plan: &NodeCopyPlan) -> Result<(), NodeCopyError> {
        let from = &self.from;
        let Some(own) = plan.documents.iter().rfind(|document| document.makes_the_node()) else {
            return Ok(());
        };
        let key = self.to.key(own.name())?;
        let stored = as_stored(&**self.to.store()).head(&key).await;
        let stored = stored.map_err(|source| NodeCopyError::value(key.as_str(), source))?;
        let tag = stored.as_ref().map(|stored| stored.version.backend_tag());
        let copied: HashSet<&str> =
            plan.documents.iter().map(|document| document.relative.as_str()).collect();
        let mut listing = from.store().list_prefix(from.path.prefix(), None);
        let failed = |source| NodeCopyError::value(from.path.prefix().as_str(), source);
        while let Some(entry) = listing.try_next().await.map_err(failed)? {
            let relative = from.relative(&entry.key);
            if document_name(relative) == Some(own.name())
                && !copied.contains(relative)
                && Some(entry.info.version.backend_tag()) == tag
            {
                return Err(NodeCopyError::Overlapping);
            }
        }
        Ok(())
    }

    async fn erase_document(&self, document: &CopiedDocument) -> Result<(), NodeCopyError> {
        let key = self.from.key(&document.relative)?;
        let is_erased = self.erase_copied(&key, &document.version).await?;
        if is_erased { Ok(()) } else { Err(NodeCopyError::SourceChanged { key }) }
    }

    /// Erases the values that were copied. Returns how many others there are.
    async fn erase_values(&self, versions: &CopiedVersions) -> Result<u64, NodeCopyError> {
        let from = &self.from;
        let mut kept = 0_u64;
        let next = |ended: TryChunksError<ListEntry, StoreError>| {
            NodeCopyError::value(from.path.prefix().as_str(), ended.1)
        };
        let mut batches = from.store().list_prefix(from.path.prefix(), None).try_chunks(BATCH);
        while let Some(batch) = batches.try_next().await.map_err(next)? {
            let erased = batch.into_iter().map(|entry| async move {
                let version = &entry.info.version;
                Ok::<_, NodeCopyError>(
                    versions.has(from.relative(&entry.key), version)
                        && self.erase_copied(&entry.key, version).await?,
                )
            });
            let others = each(erased.collect()).await?.into_iter().filter(|is_erased| !is_erased).count();
            kept = kept.saturating_add(others as u64);
        }
        Ok(kept)
    }

    /// Erases a value if it still has the version that was copied. Returns whether it is erased.
    async fn erase_copied(&self, key: &StoreKey, version: &Version) -> Result<bool, NodeCopyError> {
        // A weak version cannot be a condition.
        let condition = version.pin().cloned().map_or(WriteCondition::Always, WriteCondition::IfVersion);
        match self.from.store().erase(key, condition).await {
            Ok(_was_there) => Ok(true),
            Err(StoreError::ConditionFailed | StoreError::VersionChanged) => Ok(false),
            Err(source) => Err(NodeCopyError::value(key.as_str(), source)),
        }
    }
}

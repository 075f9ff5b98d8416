//! The rest of a move that broke off when its node was at its target: what is left of the source is erased.
//!
//! Only what is at the target as it is at the source is erased, so nothing is lost, also if the node at the target has nothing to do
//! with this one. Between two buckets it cannot be known whether they are one, so there only an erasure of the source does it.

use std::collections::HashMap;

use bytes::Bytes;
use futures::stream::{TryChunksError, TryStreamExt};

use super::copied_document::{CopiedDocument, document_name};
use super::copied_versions::CopiedVersions;
use super::error::NodeCopyError;
use super::node_copy::{NodeCopy, NodePlace, NodeTransfer};
use super::plan::NodeCopyPlan;
use super::values::leased;
use crate::store::{Extent, ListEntry, Reservation, StoreError, Version};
use crate::write::each::{BATCH, each};
use crate::write::nodes::error::NodeWriteError;
use crate::write::uncached::as_stored;

/// The metadata documents below a place, and how many values and bytes there are.
#[derive(Default)]
struct Listed {
    documents: Vec<ListEntry>,
    values: u64,
    bytes: u64,
}

impl NodeCopy {
    /// What is left to do of a move whose node is at its target; `None` if it is not there, or nothing is left of the source.
    ///
    /// # Errors
    /// [`NodeWriteError::Exists`] if the source is a node, and another one than that at the target;
    /// [`NodeCopyError::NotAtTarget`] if what is left of it is not at the target.
    pub(super) async fn plan_rest(&self) -> Result<Option<NodeCopyPlan>, NodeCopyError> {
        let (from, to) = (&self.from, &self.to);
        if self.transfer != NodeTransfer::Move || !self.resumes || !self.knows_places().await? {
            return Ok(None);
        }
        let Some(node) = to.writer.find(&to.path).await? else { return Ok(None) };
        if !from.writer.has_leftovers(&from.path).await? {
            return Ok(None);
        }
        let overlaps = self.overlaps().await;
        if overlaps.map_err(|source| NodeCopyError::value(from.path.as_str(), source))? {
            return Err(NodeCopyError::Overlapping);
        }
        let lease = to.writer.take_lease(&to.path, &to.writer.writer.new_owner()).await?;
        let mut memory = Reservation::new(Some(&to.writer.budget));
        match self.read_both(&mut memory).await {
            Ok((left, at_target, bytes)) => Ok(Some(NodeCopyPlan {
                lease,
                format: node.node.zarr_format(),
                documents: left,
                has_leftovers: true,
                at_target: Some(at_target),
                bytes,
                _memory: memory,
            })),
            Err(error) => {
                lease.release().await;
                Err(error)
            }
        }
    }

    /// Whether it can be known that source and target are two places.
    async fn knows_places(&self) -> Result<bool, NodeCopyError> {
        if self.is_within_store {
            return Ok(true);
        }
        for place in [&self.from, &self.to] {
            let resolved = place.store().resolve(&Extent::Below(place.path.prefix().clone())).await;
            if resolved.map_err(|source| NodeCopyError::value(place.path.as_str(), source))?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The documents that are left of the source, of which each is at the target, those of the target, and the bytes of what is left.
    async fn read_both(
        &self,
        memory: &mut Reservation,
    ) -> Result<(Vec<CopiedDocument>, Vec<CopiedDocument>, u64), NodeCopyError> {
        let listed = self.from.list_documents().await?;
        let limit = self.from.writer.writer.options().max_values;
        if listed.values > limit {
            return Err(NodeCopyError::TooManyValues { limit });
        }
        let left = self.from.read_documents(&listed.documents, memory).await?;
        let at_target = self.to.list_documents().await?.documents;
        let at_target = self.to.read_documents(&at_target, memory).await?;
        let texts: HashMap<&str, &Bytes> =
            at_target.iter().map(|document| (document.relative.as_str(), &document.text)).collect();
        let other = left.iter().find(|document| texts.get(&*document.relative) != Some(&&document.text));
        if let Some(other) = other {
            if left.iter().any(CopiedDocument::makes_the_node) {
                return Err(NodeWriteError::Exists { path: self.to.path.clone() }.into());
            }
            return Err(NodeCopyError::NotAtTarget { key: self.from.key(&other.relative)? });
        }
        Ok((left, at_target, listed.bytes))
    }

    /// Erases what is left of the source, after it has made sure that all of it is at the target.
    ///
    /// # Errors
    /// [`NodeCopyError::NotAtTarget`]: nothing was erased; [`NodeCopyError::Incomplete`], [`NodeCopyError::Kept`].
    pub(super) async fn erase_rest(&self, plan: &mut NodeCopyPlan) -> Result<(), NodeCopyError> {
        let versions = self.compare_values(plan).await?;
        let updated = self.update_copies_above(plan).await;
        updated
            .map_err(|error| error.after_storing("consolidated metadata above it could not be changed"))?;
        self.erase_moved(plan, &versions).await
    }

    /// Compares all values of the source with those at the target. Returns which they are.
    async fn compare_values(&self, plan: &mut NodeCopyPlan) -> Result<CopiedVersions, NodeCopyError> {
        let from = &self.from;
        let mut versions = CopiedVersions::new(&self.to.writer.budget);
        let next = |ended: TryChunksError<ListEntry, StoreError>| {
            NodeCopyError::value(from.path.prefix().as_str(), ended.1)
        };
        let mut batches = from.store().list_prefix(from.path.prefix(), None).try_chunks(BATCH);
        while let Some(batch) = batches.try_next().await.map_err(next)? {
            let compared = batch.iter().map(|entry| self.compare_value(entry));
            leased(&mut plan.lease, each(compared.collect())).await?;
            for entry in batch {
                versions.insert(from.relative(&entry.key), &entry.info.version)?;
            }
        }
        Ok(versions)
    }

    async fn compare_value(&self, entry: &ListEntry) -> Result<(), NodeCopyError> {
        let to = self.to.key(self.from.relative(&entry.key))?;
        let failed = |source| NodeCopyError::value(entry.key.as_str(), source);
        let Some(found) = as_stored(&**self.to.store()).head(&to).await.map_err(failed)? else {
            return Err(NodeCopyError::NotAtTarget { key: entry.key.clone() });
        };
        // One file that both mounts have is no copy of itself.
        if !self.is_within_store && is_one_file(&entry.info.version, &found.version) {
            return Err(NodeCopyError::Overlapping);
        }
        match self.is_same((&entry.key, &entry.info), (&to, &found)).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(NodeCopyError::NotAtTarget { key: entry.key.clone() }),
            Err(StoreError::VersionChanged) => Err(NodeCopyError::SourceChanged { key: entry.key.clone() }),
            Err(source) => Err(failed(source)),
        }
    }
}

impl NodePlace {
    async fn list_documents(&self) -> Result<Listed, NodeCopyError> {
        let failed = |source| NodeCopyError::value(self.path.prefix().as_str(), source);
        let mut listing = self.store().list_prefix(self.path.prefix(), None);
        let mut listed = Listed::default();
        while let Some(entry) = listing.try_next().await.map_err(failed)? {
            listed.values = listed.values.saturating_add(1);
            listed.bytes = listed.bytes.saturating_add(entry.info.size);
            if document_name(self.relative(&entry.key)).is_some() {
                listed.documents.push(entry);
                if listed.documents.len() > self.writer.limits.consolidated_nodes {
                    break;
                }
            }
        }
        Ok(listed)
    }
}

/// Whether two versions are those of one file of this machine.
fn is_one_file(one: &Version, other: &Version) -> bool {
    one.backend_tag() == other.backend_tag()
}

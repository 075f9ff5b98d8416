//! [`NodeCopyPlan`]: what a copy costs, and the documents of its source, which are read before any value is.

use std::cmp::Ordering;

use futures::stream::{BoxStream, TryStreamExt};

use super::copied_document::{CopiedDocument, document_name};
use super::error::NodeCopyError;
use super::node_copy::{NodeCopy, NodePlace};
use crate::hierarchy::HierarchyError;
use crate::key::{NodePath, StoreKey};
use crate::metadata::ZarrFormat;
use crate::store::{ByteRange, Extent, ListEntry, Reservation, StoreError};
use crate::write::each::{BATCH, each};
use crate::write::lease::ArrayLease;
use crate::write::nodes::error::NodeWriteError;
use crate::write::uncached::as_stored;

/// Bytes of memory for each byte of a document: its text, and what consolidated metadata is made of.
const HELD_RATIO: u64 = 8;

/// A copy that can be made, and the lease of its target.
#[derive(Debug)]
pub struct NodeCopyPlan {
    pub(super) lease: ArrayLease,
    /// The format of the node.
    pub(super) format: ZarrFormat,
    /// In the order in which they are stored.
    pub(super) documents: Vec<CopiedDocument>,
    /// Whether there may be values at the target.
    pub(super) has_leftovers: bool,
    /// The documents at the target, of a move whose node is there already: only the source is left to be erased.
    pub(super) at_target: Option<Vec<CopiedDocument>>,
    pub(super) bytes: u64,
    pub(super) _memory: Reservation,
}

/// What a listing of the source and the target says.
struct ListedSource {
    documents: Vec<ListEntry>,
    bytes: u64,
    has_leftovers: bool,
}

/// The keys at the target, in their order, which are compared with those of the source.
struct TargetKeys<'a> {
    place: &'a NodePlace,
    listing: BoxStream<'static, Result<ListEntry, StoreError>>,
    next: Option<StoreKey>,
    /// Whether there are any, or it cannot be known.
    has_any: bool,
}

impl NodeCopyPlan {
    /// How many bytes are copied.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl NodeCopy {
    /// Checks that the copy can be made, and counts what it costs. `may_make` says whether the caller may make a group of the
    /// target's mount.
    ///
    /// # Errors
    /// [`NodeCopyError`]; nothing was written.
    pub async fn plan(&self, may_make: impl Fn(&NodePath) -> bool) -> Result<NodeCopyPlan, NodeCopyError> {
        let (from, to) = (&self.from, &self.to);
        if let Some(plan) = self.plan_rest().await? {
            return Ok(plan);
        }
        let located =
            from.writer.opener.hierarchy().locate(&from.path).await.map_err(NodeWriteError::from)?;
        let format = located.zarr_format();
        if format == ZarrFormat::V1 {
            return Err(NodeCopyError::OfV1);
        }
        let overlaps = self.overlaps().await;
        if overlaps.map_err(|source| NodeCopyError::value(from.path.as_str(), source))? {
            return Err(NodeCopyError::Overlapping);
        }
        to.writer.check_place(&to.path, may_make).await?;
        let lease = to.writer.take_lease_to_make(&to.path).await?;
        let mut memory = Reservation::new(Some(&to.writer.budget));
        match self.documents(&mut memory).await {
            Ok((listed, documents)) => {
                let (bytes, has_leftovers) = (listed.bytes, listed.has_leftovers);
                let at_target = None;
                Ok(NodeCopyPlan {
                    lease,
                    format,
                    documents,
                    has_leftovers,
                    at_target,
                    bytes,
                    _memory: memory,
                })
            }
            Err(error) => {
                lease.end_unmade(false).await;
                Err(error)
            }
        }
    }

    /// Whether one of the nodes is in the other, also through links between the directories of two stores.
    pub(super) async fn overlaps(&self) -> Result<bool, StoreError> {
        let extent = |place: &NodePlace| Extent::Below(place.path.prefix().clone());
        let (from, to) = (self.from.store(), self.to.store());
        if self.is_within_store {
            return from.overlap(&extent(&self.from), &extent(&self.to)).await;
        }
        match to.resolve(&extent(&self.to)).await? {
            Some(target) => from.overlaps_resolved(&extent(&self.from), &target).await,
            None => Ok(false),
        }
    }

    /// Lists the source, and reads its documents.
    async fn documents(
        &self,
        memory: &mut Reservation,
    ) -> Result<(ListedSource, Vec<CopiedDocument>), NodeCopyError> {
        // Of those who make a node at the path, this one alone goes on now: one that has ended since may have made it.
        self.to.writer.check_no_document(&self.to.path).await?;
        let listed = self.list().await?;
        let documents = self.from.read_documents(&listed.documents, memory).await?;
        if !documents.last().is_some_and(CopiedDocument::makes_the_node) {
            let path = self.from.path.clone();
            return Err(NodeWriteError::from(HierarchyError::NoSuchNode { path }).into());
        }
        Ok((listed, documents))
    }

    /// Lists what is copied, beside what is at the target.
    async fn list(&self) -> Result<ListedSource, NodeCopyError> {
        let (from, limit) = (&self.from, self.from.writer.writer.options().max_values);
        let failed = |source| NodeCopyError::value(from.path.prefix().as_str(), source);
        let mut target = TargetKeys::of(&self.to).await?;
        let mut source = from.store().list_prefix(from.path.prefix(), None);
        let (mut documents, mut bytes, mut values) = (Vec::new(), 0_u64, 0_u64);
        while let Some(entry) = source.try_next().await.map_err(failed)? {
            let relative = from.relative(&entry.key);
            // A key that is too long for the target is rejected before anything is written.
            self.to.key(relative)?;
            target.pass(relative).await?;
            let (size, limit_bytes) = (entry.info.size, self.max_value_bytes);
            if size > limit_bytes {
                return Err(NodeCopyError::ValueTooLarge { key: entry.key, size, limit: limit_bytes });
            }
            values = values.saturating_add(1);
            if values > limit {
                return Err(NodeCopyError::TooManyValues { limit });
            }
            bytes = bytes.saturating_add(size);
            if document_name(relative).is_some() {
                documents.push(entry);
                if documents.len() > from.writer.limits.consolidated_nodes {
                    break;
                }
            }
        }
        if let Some(error) = target.unmatched() {
            return Err(error);
        }
        Ok(ListedSource { documents, bytes, has_leftovers: target.has_any })
    }
}

impl NodePlace {
    /// Reads documents that were listed, in the order in which they are stored.
    pub(super) async fn read_documents(
        &self,
        listed: &[ListEntry],
        memory: &mut Reservation,
    ) -> Result<Vec<CopiedDocument>, NodeCopyError> {
        let bytes: u64 = listed.iter().map(|entry| entry.info.size).sum();
        let limits = &self.writer.limits;
        let (number, limit) = (limits.consolidated_nodes, limits.consolidated_bytes as u64);
        if listed.len() > number || bytes > limit {
            return Err(NodeCopyError::TooManyDocuments { number, bytes: limit });
        }
        memory.grow(bytes.saturating_mul(HELD_RATIO))?;
        let mut documents: Vec<CopiedDocument> = Vec::with_capacity(listed.len());
        for batch in listed.chunks(BATCH) {
            let read = batch.iter().map(|entry| self.read_document(entry));
            documents.extend(each(read.collect()).await?.into_iter().flatten());
        }
        documents
            .sort_by(|one, other| one.order().cmp(&other.order()).then(one.relative.cmp(&other.relative)));
        Ok(documents)
    }

    /// A document; `None` if it was erased since it was listed.
    async fn read_document(&self, entry: &ListEntry) -> Result<Option<CopiedDocument>, NodeCopyError> {
        let key = &entry.key;
        let failed = |source| NodeCopyError::value(key.as_str(), source);
        let value = as_stored(&**self.store()).get(key, ByteRange::Whole, None).await.map_err(failed)?;
        let Some(value) = value else { return Ok(None) };
        let version = value.info.version.clone();
        // It may have become longer since.
        let text = match value.bytes(entry.info.size).await {
            Err(StoreError::ValueTooLarge { .. }) => {
                return Err(NodeCopyError::SourceChanged { key: key.clone() });
            }
            text => text.map_err(failed)?,
        };
        Ok(Some(CopiedDocument { relative: self.relative(key).to_owned(), text, version }))
    }
}

impl<'a> TargetKeys<'a> {
    async fn of(place: &'a NodePlace) -> Result<Self, NodeCopyError> {
        let listing = place.store().list_prefix(place.path.prefix(), None);
        let mut keys = Self { place, listing, next: None, has_any: false };
        keys.advance().await?;
        keys.has_any |= keys.next.is_some();
        Ok(keys)
    }

    async fn advance(&mut self) -> Result<(), NodeCopyError> {
        self.next = match self.listing.try_next().await {
            Ok(entry) => entry.map(|entry| entry.key),
            // What is there is found key by key.
            Err(StoreError::NotListable) => {
                self.has_any = true;
                None
            }
            Err(source) => return Err(NodeCopyError::value(self.place.path.prefix().as_str(), source)),
        };
        Ok(())
    }

    /// Goes on to the keys behind this one of the source.
    ///
    /// # Errors
    /// [`NodeCopyError::NotOfSource`] with a key before it.
    async fn pass(&mut self, relative: &str) -> Result<(), NodeCopyError> {
        let Some(next) = &self.next else { return Ok(()) };
        match self.place.relative(next).cmp(relative) {
            Ordering::Less => self.unmatched().map_or(Ok(()), Err),
            Ordering::Equal => self.advance().await,
            Ordering::Greater => Ok(()),
        }
    }

    /// The error of a key that the source does not have; `None` if there is no other key.
    fn unmatched(&self) -> Option<NodeCopyError> {
        self.next.as_ref().map(|key| NodeCopyError::NotOfSource { key: key.clone() })
    }
}

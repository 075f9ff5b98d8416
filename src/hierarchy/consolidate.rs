//! Making consolidated metadata of the documents of all nodes below a group.
//!
//! Level by level, as many documents at a time as one request may ask for. Only groups are listed, so that the chunks
//! of arrays cost nothing, unless what is below arrays is asked for. What is made has every node or is not made: a document that is no JSON is an error.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::future::try_join3;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::locate::{ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, document_key};
use super::shared_build::SharedBuild;
use super::{Hierarchy, HierarchyError};
use crate::key::NodePath;
use crate::metadata::{DocumentCopy, MetadataError, MetadataLimits, NodeKind, to_inline, to_zmetadata};
use crate::store::{BudgetExceeded, ByteRange, MemoryBudget, Reservation, SharedStore, StoreError, Version};

/// Listings and nodes asked for at a time.
const CONCURRENCY: usize = 16;

/// A node with the copies of its documents, by their names.
struct Copied {
    path: NodePath,
    kind: NodeKind,
    documents: Vec<(&'static str, DocumentCopy)>,
}

/// Consolidated metadata that was made. Clones share it.
#[derive(Clone, Debug)]
pub struct Consolidated {
    /// The document.
    pub text: Bytes,
    /// Its version.
    pub version: Version,
}

/// Documents that are being made, by what they show, where they stand, and how.
pub(super) type Makings =
    SharedBuild<(Arc<str>, NodePath, How), Result<Option<Consolidated>, HierarchyError>>;

/// No document in the making. Those who wait for one share it, and its failure where that is about what is stored.
pub(super) fn makings() -> Makings {
    Makings::new(|made| !made.as_ref().is_err_and(HierarchyError::is_of_caller))
}

/// How a document is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum How {
    Zmetadata,
    Inline { anew: bool, below_arrays: bool },
}

impl Hierarchy {
    /// The `.zmetadata` of a v2 group, made of the documents as they are now, once for all who ask for it at the same time.
    /// `None` if there is no such group. What is held meanwhile, and the text as long as it is, is taken of `room`.
    ///
    /// # Errors
    /// [`HierarchyError::TooManyNodes`], [`HierarchyError::TooLong`], [`HierarchyError::NotListable`],
    /// [`HierarchyError::NoRoom`], [`HierarchyError::NeverRoom`]; a document that cannot be read.
    pub async fn make_zmetadata(
        &self,
        path: &NodePath,
        room: Arc<dyn MemoryBudget>,
    ) -> Result<Option<Consolidated>, HierarchyError> {
        let key = (Arc::clone(&self.name), path.clone(), How::Zmetadata);
        let caller = room.client();
        self.makings.get(&key, caller, self.zmetadata(path, room)).await
    }

    /// The `zarr.json` of a v3 group with consolidated metadata made of the documents as they are now. `None` if there
    /// is no such group; also, if `anew` is false, if its document holds copies already. What is below arrays is left out
    /// but if `below_arrays` is asked for: not every reader takes it. Otherwise as [`Hierarchy::make_zmetadata`].
    ///
    /// # Errors
    /// As [`Hierarchy::make_zmetadata`].
    pub async fn make_inline(
        &self,
        path: &NodePath,
        anew: bool,
        below_arrays: bool,
        room: Arc<dyn MemoryBudget>,
    ) -> Result<Option<Consolidated>, HierarchyError> {
        let key = (Arc::clone(&self.name), path.clone(), How::Inline { anew, below_arrays });
        let caller = room.client();
        self.makings.get(&key, caller, self.inline(path, anew, below_arrays, room)).await
    }

    async fn zmetadata(
        &self,
        path: &NodePath,
        room: Arc<dyn MemoryBudget>,
    ) -> Result<Option<Consolidated>, HierarchyError> {
        let making = Making::new(self, path, &room);
        let Some(group) = making.v2(path.clone()).await?.filter(|node| node.kind == NodeKind::Group) else {
            return Ok(None);
        };
        let _turn = self.makers.acquire().await;
        let mut copies = BTreeMap::new();
        for node in std::iter::once(group).chain(making.below(Format::V2).await?) {
            let prefix = making.relative(&node.path);
            let slash = if prefix.is_empty() { "" } else { "/" };
            for (name, copy) in node.documents {
                copies.insert(format!("{prefix}{slash}{name}"), copy.text);
            }
        }
        making.written(move || to_zmetadata(&copies)).await.map(Some)
    }

    async fn inline(
        &self,
        path: &NodePath,
        anew: bool,
        below_arrays: bool,
        room: Arc<dyn MemoryBudget>,
    ) -> Result<Option<Consolidated>, HierarchyError> {
        let making = Making { below_arrays, ..Making::new(self, path, &room) };
        let group = match making.copy(path, ZARR_JSON).await? {
            Some(group) if group.kind == Some(NodeKind::Group) && (anew || !group.is_consolidated) => group,
            _ => return Ok(None),
        };
        let _turn = self.makers.acquire().await;
        let mut copies = BTreeMap::new();
        for node in making.below(Format::V3).await? {
            let text = node.documents.into_iter().map(|(_, copy)| copy.text).collect();
            copies.insert(making.relative(&node.path).to_owned(), text);
        }
        making.written(move || to_inline(&group, &copies)).await.map(Some)
    }
}

/// A text, and what it takes of a room.
struct Held {
    text: String,
    _lot: Reservation,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// The versions that have groups.
#[derive(Clone, Copy)]
enum Format {
    V2,
    V3,
}

/// One consolidated metadata in the making.
struct Making<'a> {
    hierarchy: &'a Hierarchy,
    root: &'a NodePath,
    /// Bytes of documents that may still be held.
    bytes_left: AtomicU64,
    /// What is listed and read.
    store: SharedStore,
    /// What is held of the room.
    lot: Mutex<Reservation>,
    /// Whether what is below arrays is looked at too.
    below_arrays: bool,
}

impl<'a> Making<'a> {
    fn new(hierarchy: &'a Hierarchy, root: &'a NodePath, room: &Arc<dyn MemoryBudget>) -> Self {
        let bytes_left = AtomicU64::new(hierarchy.limits.consolidated_bytes as u64);
        let store = hierarchy.store.with_budget(room).unwrap_or_else(|| Arc::clone(&hierarchy.store));
        let lot = Mutex::new(Reservation::new(Some(room)));
        Self { hierarchy, root, bytes_left, store, lot, below_arrays: false }
    }

    /// Bytes of documents that are held.
    fn held_bytes(&self) -> u64 {
        let most = self.hierarchy.limits.consolidated_bytes as u64;
        most.saturating_sub(self.bytes_left.load(Ordering::Relaxed))
    }

    /// Has so many bytes in all be held of the room.
    fn hold(&self, bytes: u64) -> Result<(), HierarchyError> {
        let path = || self.root.clone();
        self.lot().resize(bytes).map_err(|error| match error {
            BudgetExceeded::Now => HierarchyError::NoRoom { path: path() },
            BudgetExceeded::Ever { limit } => HierarchyError::NeverRoom { path: path(), limit },
        })
    }

    fn lot(&self) -> MutexGuard<'_, Reservation> {
        // No code panics while it holds the lock.
        self.lot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The document that `write` writes of the copies, which are dropped with it.
    async fn written(
        &self,
        write: impl FnOnce() -> String + Send + 'static,
    ) -> Result<Consolidated, HierarchyError> {
        let copied = self.held_bytes();
        // The copies, and the text that is made of them.
        self.hold(copied.saturating_mul(2))?;
        let work = move || {
            let text = write();
            let version = Version::from_text(text.as_bytes());
            (text, version)
        };
        let (text, version) = self.hierarchy.cpu.run_document(copied, work).await?;
        self.hold(text.len() as u64)?;
        let lot = std::mem::take(&mut *self.lot());
        let text = Bytes::from_owner(Held { text, _lot: lot });
        Ok(Consolidated { text, version })
    }

    /// A node's path below the root.
    fn relative<'p>(&self, path: &'p NodePath) -> &'p str {
        path.as_str().strip_prefix(self.root.prefix().as_str()).unwrap_or_default()
    }

    /// All nodes below the root.
    async fn below(&self, format: Format) -> Result<Vec<Copied>, HierarchyError> {
        let limit = self.hierarchy.limits.consolidated_nodes;
        let (mut nodes, mut looked_at) = (Vec::new(), 0_usize);
        let mut groups = vec![self.root.clone()];
        // Each level is one segment deeper than the last, and keys have so many at most.
        while !groups.is_empty() {
            let mut candidates = Vec::new();
            let mut listings =
                stream::iter(groups).map(|group| self.list(group, format)).buffered(CONCURRENCY);
            while let Some(listing) = listings.try_next().await? {
                looked_at = looked_at.saturating_add(listing.len());
                if looked_at > limit {
                    return Err(HierarchyError::TooManyNodes { path: self.root.clone(), limit });
                }
                candidates.extend(listing);
            }
            groups = Vec::new();
            let mut found = stream::iter(candidates)
                .map(|child| async move {
                    match format {
                        Format::V2 => self.v2(child).await,
                        Format::V3 => self.v3(child).await,
                    }
                })
                .buffered(CONCURRENCY);
            while let Some(node) = found.try_next().await? {
                let Some(node) = node else { continue };
                if node.kind == NodeKind::Group || self.below_arrays {
                    groups.push(node.path.clone());
                }
                nodes.push(node);
            }
        }
        Ok(nodes)
    }

    /// What may be nodes directly below a group.
    async fn list(&self, group: NodePath, format: Format) -> Result<Vec<NodePath>, HierarchyError> {
        let listing = match self.store.list_dir(group.prefix()).await {
            Ok(listing) => listing,
            Err(StoreError::NotListable) => {
                return Err(HierarchyError::NotListable { path: self.root.clone() });
            }
            Err(source) => return Err(HierarchyError::Store { key: group.prefix().to_string(), source }),
        };
        let paths = listing.prefixes.iter().filter_map(|prefix| NodePath::parse(prefix.as_str()).ok());
        Ok(match format {
            Format::V2 => paths.collect(),
            Format::V3 => paths.filter(|path| !path.is_reserved_in_v3()).collect(),
        })
    }

    async fn v2(&self, path: NodePath) -> Result<Option<Copied>, HierarchyError> {
        let (zarray, zgroup, zattrs) =
            try_join3(self.copy(&path, ZARRAY), self.copy(&path, ZGROUP), self.copy(&path, ZATTRS)).await?;
        let (kind, document) = match (zarray, zgroup) {
            (Some(zarray), _) => (NodeKind::Array, (ZARRAY, zarray)),
            (None, Some(zgroup)) => (NodeKind::Group, (ZGROUP, zgroup)),
            (None, None) => return Ok(None),
        };
        let zattrs = zattrs.map(|zattrs| (ZATTRS, zattrs));
        Ok(Some(Copied { path, kind, documents: std::iter::once(document).chain(zattrs).collect() }))
    }

    async fn v3(&self, path: NodePath) -> Result<Option<Copied>, HierarchyError> {
        let Some(copy) = self.copy(&path, ZARR_JSON).await? else { return Ok(None) };
        let Some(kind) = copy.kind else {
            let source = MetadataError::invalid("node_type", "must be \"array\" or \"group\"");
            return Err(HierarchyError::Metadata { key: document_key(&path, ZARR_JSON)?, source });
        };
        Ok(Some(Copied { path, kind, documents: vec![(ZARR_JSON, copy)] }))
    }

    /// The copy of a document, if it is there.
    async fn copy(&self, path: &NodePath, name: &str) -> Result<Option<DocumentCopy>, HierarchyError> {
        // Many are at hand, and others are to have their turn.
        tokio::task::consume_budget().await;
        let key = document_key(path, name)?;
        let failed = |source| HierarchyError::Store { key: key.to_string(), source };
        let value = self.store.get(&key, ByteRange::Whole, None).await.map_err(failed)?;
        let Some(value) = value else { return Ok(None) };
        let length = value.len();
        self.take(length)?;
        let _room = self.hierarchy.room_for(length).await;
        let document = value.bytes(length).await.map_err(failed)?;
        let (is_attributes, limits) = (name == ZATTRS, self.hierarchy.limits);
        let cpu = &self.hierarchy.cpu;
        let copy = cpu.run_document(length, move || parse(is_attributes, &document, &limits)).await?;
        let copy = copy.map_err(|source| HierarchyError::Metadata { key: key.clone(), source })?;
        // Blanks and copies of others are not held any longer; what is longer than it was, is by little.
        self.bytes_left.fetch_add(length.saturating_sub(copy.text.len() as u64), Ordering::Relaxed);
        Ok(Some(copy))
    }

    /// Takes so many bytes of those that may be held.
    fn take(&self, bytes: u64) -> Result<(), HierarchyError> {
        let take = |left: u64| left.checked_sub(bytes);
        match self.bytes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => self.hold(self.held_bytes()),
            Err(_) => Err(HierarchyError::TooLong {
                path: self.root.clone(),
                limit: self.hierarchy.limits.consolidated_bytes,
            }),
        }
    }
}

fn parse(
    is_attributes: bool,
    document: &[u8],
    limits: &MetadataLimits,
) -> Result<DocumentCopy, MetadataError> {
    if is_attributes {
        DocumentCopy::of_attributes(document, limits)
    } else {
        DocumentCopy::of_document(document, limits)
    }
}

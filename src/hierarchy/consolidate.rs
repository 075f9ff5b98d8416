//! Building consolidated metadata from the documents of all nodes below a group.
//!
//! A build proceeds level by level with bounded concurrency. It lists only groups, so that the chunks of arrays cost
//! nothing, unless nodes below arrays are requested. The result has every node, or the build fails: a document that is
//! not JSON is an error.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::future::try_join3;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::candidates::next_candidates;
use super::consolidated::{BuildTarget, Consolidated};
use super::documents::{ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, document_key};
use super::{Hierarchy, HierarchyError};
use crate::cpu::DropOnPool;
use crate::key::NodePath;
use crate::metadata::{DocumentCopy, MetadataError, MetadataLimits, NodeKind, to_inline, to_zmetadata};
use crate::store::{BudgetExceeded, ByteRange, MemoryBudget, Reservation, SharedStore, StoreError, Version};

/// Number of concurrent listings, and of nodes whose documents are requested concurrently.
const CONCURRENCY: usize = 16;

/// A node with the copies of its documents, by their names.
struct NodeCopy {
    path: NodePath,
    kind: NodeKind,
    documents: Vec<(&'static str, DocumentCopy)>,
}

impl Hierarchy {
    /// Builds the `.zmetadata` of a v2 group from the current documents; concurrent requests share one build. `None` if
    /// there is no such group. Memory is reserved in `budget` for the build, and for the text for as long as it lives.
    ///
    /// # Errors
    /// [`HierarchyError::TooManyNodes`], [`HierarchyError::TooLong`], [`HierarchyError::NotListable`],
    /// [`HierarchyError::BudgetExhausted`], [`HierarchyError::OverBudget`]; a document that cannot be read.
    pub async fn build_zmetadata(
        &self,
        path: &NodePath,
        budget: Arc<dyn MemoryBudget>,
    ) -> Result<Option<Consolidated>, HierarchyError> {
        let key = (Arc::clone(&self.name), path.clone(), BuildTarget::Zmetadata);
        let caller = budget.client();
        self.builds.get_or_build(&key, caller, self.assemble_zmetadata(path, budget)).await
    }

    /// Builds the `zarr.json` of a v3 group with inline consolidated metadata from the current documents. `None` if there
    /// is no such group, or if its document already has consolidated metadata and `rebuild` is false. Nodes below arrays are
    /// included only with `below_arrays`, because some readers reject them. Otherwise as [`Hierarchy::build_zmetadata`].
    ///
    /// # Errors
    /// As [`Hierarchy::build_zmetadata`].
    pub async fn build_inline(
        &self,
        path: &NodePath,
        rebuild: bool,
        below_arrays: bool,
        budget: Arc<dyn MemoryBudget>,
    ) -> Result<Option<Consolidated>, HierarchyError> {
        let key = (Arc::clone(&self.name), path.clone(), BuildTarget::Inline { rebuild, below_arrays });
        let caller = budget.client();
        self.builds
            .get_or_build(&key, caller, self.assemble_inline(path, rebuild, below_arrays, budget))
            .await
    }

    async fn assemble_zmetadata(
        &self,
        path: &NodePath,
        budget: Arc<dyn MemoryBudget>,
    ) -> Result<Option<Consolidated>, HierarchyError> {
        let build = Build::new(self, path, &budget);
        let Some(group) = build.v2_node(path.clone()).await?.filter(|node| node.kind == NodeKind::Group)
        else {
            return Ok(None);
        };
        let _slot = self.build_slots.acquire().await;
        let (nodes, root) = (build.nodes_below(GroupFormat::V2).await?, path.clone());
        let write = move || {
            let mut copies = BTreeMap::new();
            for node in std::iter::once(group).chain(nodes.into_inner()) {
                let prefix = relative(&root, &node.path);
                let slash = if prefix.is_empty() { "" } else { "/" };
                for (name, copy) in node.documents {
                    copies.insert(format!("{prefix}{slash}{name}"), copy.text);
                }
            }
            to_zmetadata(&copies)
        };
        build.finish(write).await.map(Some)
    }

    async fn assemble_inline(
        &self,
        path: &NodePath,
        rebuild: bool,
        below_arrays: bool,
        budget: Arc<dyn MemoryBudget>,
    ) -> Result<Option<Consolidated>, HierarchyError> {
        let build = Build { below_arrays, ..Build::new(self, path, &budget) };
        let group = match build.read_copy(path, ZARR_JSON).await? {
            Some(group) if group.kind == Some(NodeKind::Group) && (rebuild || !group.is_consolidated) => {
                group
            }
            _ => return Ok(None),
        };
        let _slot = self.build_slots.acquire().await;
        let (nodes, root) = (build.nodes_below(GroupFormat::V3).await?, path.clone());
        let write = move || {
            let mut copies = BTreeMap::new();
            for node in nodes.into_inner() {
                let text = node.documents.into_iter().map(|(_, copy)| copy.text).collect();
                copies.insert(relative(&root, &node.path).to_owned(), text);
            }
            to_inline(&group, &copies)
        };
        build.finish(write).await.map(Some)
    }
}

/// A text and the memory reserved for it.
struct ReservedText {
    text: String,
    _reservation: Reservation,
}

impl AsRef<[u8]> for ReservedText {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// The Zarr formats that have groups.
#[derive(Clone, Copy)]
enum GroupFormat {
    V2,
    V3,
}

/// One build of consolidated metadata.
struct Build<'a> {
    hierarchy: &'a Hierarchy,
    root: &'a NodePath,
    /// Bytes of documents that the build may still hold.
    bytes_left: AtomicU64,
    /// The store to list and read.
    store: SharedStore,
    /// The memory reserved for the build.
    reservation: Mutex<Reservation>,
    /// Whether nodes below arrays are included.
    below_arrays: bool,
}

impl<'a> Build<'a> {
    fn new(hierarchy: &'a Hierarchy, root: &'a NodePath, budget: &Arc<dyn MemoryBudget>) -> Self {
        let bytes_left = AtomicU64::new(hierarchy.limits.consolidated_bytes as u64);
        let store = hierarchy.store.with_budget(budget).unwrap_or_else(|| Arc::clone(&hierarchy.store));
        let reservation = Mutex::new(Reservation::new(Some(budget)));
        Self { hierarchy, root, bytes_left, store, reservation, below_arrays: false }
    }

    /// Bytes of the documents in memory.
    fn copied_bytes(&self) -> u64 {
        let limit = self.hierarchy.limits.consolidated_bytes as u64;
        limit.saturating_sub(self.bytes_left.load(Ordering::Relaxed))
    }

    /// Resizes the reservation to a total number of bytes.
    fn reserve(&self, bytes: u64) -> Result<(), HierarchyError> {
        let path = || self.root.clone();
        self.reservation().resize(bytes).map_err(|error| match error {
            BudgetExceeded::Now => HierarchyError::BudgetExhausted { path: path() },
            BudgetExceeded::Ever { limit } => HierarchyError::OverBudget { path: path(), limit },
        })
    }

    fn reservation(&self) -> MutexGuard<'_, Reservation> {
        // No code panics while it holds the lock.
        self.reservation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `write`, which consumes the copies and returns the document's text.
    async fn finish(
        &self,
        write: impl FnOnce() -> String + Send + 'static,
    ) -> Result<Consolidated, HierarchyError> {
        let copied = self.copied_bytes();
        // The copies, and the text built from them.
        self.reserve(copied.saturating_mul(2))?;
        let work = move || {
            let text = write();
            let version = Version::from_text(text.as_bytes());
            (text, version)
        };
        let (text, version) = self.hierarchy.cpu.run_document(copied, work).await?;
        self.reserve(text.len() as u64)?;
        let reservation = std::mem::take(&mut *self.reservation());
        let text = Bytes::from_owner(ReservedText { text, _reservation: reservation });
        Ok(Consolidated { text, version })
    }

    /// All nodes below the root.
    async fn nodes_below(&self, format: GroupFormat) -> Result<DropOnPool<Vec<NodeCopy>>, HierarchyError> {
        let limit = self.hierarchy.limits.consolidated_nodes;
        let (mut nodes, mut visited) = (DropOnPool::new(Vec::new(), &self.hierarchy.cpu), 0_usize);
        let mut groups = vec![self.root.clone()];
        // Each level is one segment deeper than the last, and the number of segments of a key is bounded.
        while !groups.is_empty() {
            let mut candidates = Vec::new();
            let mut listings =
                stream::iter(groups).map(|group| self.list_children(group, format)).buffered(CONCURRENCY);
            while let Some(listing) = listings.try_next().await? {
                visited = visited.saturating_add(listing.len());
                if visited > limit {
                    return Err(HierarchyError::TooManyNodes { path: self.root.clone(), limit });
                }
                candidates.extend(listing);
            }
            groups = Vec::new();
            let mut found = stream::iter(candidates)
                .map(|child| async move {
                    match format {
                        GroupFormat::V2 => self.v2_node(child).await,
                        GroupFormat::V3 => self.v3_node(child).await,
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

    /// The paths of possible nodes directly below a group, at most one more than nodes are allowed.
    async fn list_children(
        &self,
        group: NodePath,
        format: GroupFormat,
    ) -> Result<Vec<NodePath>, HierarchyError> {
        let most = self.hierarchy.limits.consolidated_nodes.saturating_add(1);
        let mut listing = self.store.list_dir_after(group.prefix(), "");
        let paths = next_candidates(&mut listing, matches!(format, GroupFormat::V3), most).await;
        paths.map_err(|error| match error {
            StoreError::NotListable => HierarchyError::NotListable { path: self.root.clone() },
            source => HierarchyError::Store { key: group.prefix().to_string(), source },
        })
    }

    async fn v2_node(&self, path: NodePath) -> Result<Option<NodeCopy>, HierarchyError> {
        let (zarray, zgroup, zattrs) = try_join3(
            self.read_copy(&path, ZARRAY),
            self.read_copy(&path, ZGROUP),
            self.read_copy(&path, ZATTRS),
        )
        .await?;
        let (kind, document) = match (zarray, zgroup) {
            (Some(zarray), _) => (NodeKind::Array, (ZARRAY, zarray)),
            (None, Some(zgroup)) => (NodeKind::Group, (ZGROUP, zgroup)),
            (None, None) => return Ok(None),
        };
        let zattrs = zattrs.map(|zattrs| (ZATTRS, zattrs));
        Ok(Some(NodeCopy { path, kind, documents: std::iter::once(document).chain(zattrs).collect() }))
    }

    async fn v3_node(&self, path: NodePath) -> Result<Option<NodeCopy>, HierarchyError> {
        let Some(copy) = self.read_copy(&path, ZARR_JSON).await? else { return Ok(None) };
        let Some(kind) = copy.kind else {
            let source = MetadataError::invalid("node_type", "must be \"array\" or \"group\"");
            return Err(HierarchyError::Metadata { key: document_key(&path, ZARR_JSON)?, source });
        };
        Ok(Some(NodeCopy { path, kind, documents: vec![(ZARR_JSON, copy)] }))
    }

    /// The copy of a document; `None` if it is not stored.
    async fn read_copy(&self, path: &NodePath, name: &str) -> Result<Option<DocumentCopy>, HierarchyError> {
        // Documents may be available without waiting; yield to other tasks from time to time.
        tokio::task::consume_budget().await;
        let key = document_key(path, name)?;
        let failed = |source| HierarchyError::Store { key: key.to_string(), source };
        let value = self.store.get(&key, ByteRange::Whole, None).await.map_err(failed)?;
        let Some(value) = value else { return Ok(None) };
        let length = value.len();
        self.charge(length)?;
        let _slot = self.hierarchy.acquire_document_slot(length).await;
        let document = value.bytes(length).await.map_err(failed)?;
        let (is_attributes, limits) = (name == ZATTRS, self.hierarchy.limits);
        let cpu = &self.hierarchy.cpu;
        let copy = cpu.run_document(length, move || parse(is_attributes, &document, &limits)).await?;
        let copy = copy.map_err(|source| HierarchyError::Metadata { key: key.clone(), source })?;
        // The copy lacks whitespace and nested copies; it is at most slightly longer than the document.
        self.bytes_left.fetch_add(length.saturating_sub(copy.text.len() as u64), Ordering::Relaxed);
        Ok(Some(copy))
    }

    /// Counts bytes towards the limit on documents in memory, and reserves them.
    fn charge(&self, bytes: u64) -> Result<(), HierarchyError> {
        let take = |left: u64| left.checked_sub(bytes);
        match self.bytes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => self.reserve(self.copied_bytes()),
            Err(_) => Err(HierarchyError::TooLong {
                path: self.root.clone(),
                limit: self.hierarchy.limits.consolidated_bytes,
            }),
        }
    }
}

/// A node's path below the root of a build.
fn relative<'p>(root: &NodePath, path: &'p NodePath) -> &'p str {
    path.as_str().strip_prefix(root.prefix().as_str()).unwrap_or_default()
}

fn parse(
    is_attributes: bool,
    document: &[u8],
    limits: &MetadataLimits,
) -> Result<DocumentCopy, MetadataError> {
    if is_attributes {
        DocumentCopy::from_attributes(document, limits)
    } else {
        DocumentCopy::from_document(document, limits)
    }
}

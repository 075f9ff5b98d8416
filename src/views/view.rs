//! [`ViewStore`]: a view of a store, and what each of its keys refers to.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Semaphore;

use super::dependent_set::{DependentSet, KeyMatch};
use super::derived_store::resolve_range;
use super::document::DocumentRewriter;
use super::error::to_store_error;
use super::geometry::StoredLocation;
use super::kind::ViewKind;
use super::node_finder::{NodeFinder, StoredArray};
use super::view_array::ViewArray;
use crate::array::{ArrayError, ChunkData, ChunkLookup, ChunkSource, NodeOpener, ReadContext, StoredValue};
use crate::codec::CodecLimits;
use crate::cpu::ComputePool;
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::metadata::MetadataLimits;
use crate::store::{
    ByteRange, ListEntry, MemoryBudget, Reservation, SharedStore, StoreError, Value, ValueBody, ValueInfo,
    Version,
};

/// How often a read of a shard that changes meanwhile is attempted.
pub(super) const MAX_ATTEMPTS: usize = 3;

/// How many documents above the size limit of nodes are rewritten at the same time.
const MAX_LONG_DOCUMENTS: usize = 4;

/// Longer documents are not held in memory unless they are rewritten.
const SHORT_DOCUMENT_BYTES: u64 = 256 << 10;

/// The document of a v3 node.
const ZARR_JSON: &str = "zarr.json";

/// A view of the store of one mount. Clones share their caches.
#[derive(Clone, Debug)]
pub struct ViewStore {
    node_finder: NodeFinder,
    source: Arc<dyn ChunkSource>,
    cpu: ComputePool,
    rewriter: DocumentRewriter,
    /// Limits how many long documents are rewritten at the same time.
    long_documents: Arc<Semaphore>,
    /// The memory budget of the current request.
    budget: Option<Arc<dyn MemoryBudget>>,
}

/// What a key of a view refers to.
pub(super) enum ViewEntry {
    /// No value.
    Absent,
    /// A complete value in memory, generated or read.
    Bytes(Bytes, ValueInfo),
    /// The stored value of a key.
    Stored(StoreKey),
    /// The stored value of the requested key, as long as it has this version.
    Unchanged(ValueInfo),
    /// A byte range of a stored value.
    Part(Arc<StoredValue>, Range<u64>),
}

impl ViewStore {
    /// A view of the store behind `opener`. `source` supplies shard indexes.
    #[must_use]
    pub fn new(
        kind: ViewKind,
        opener: NodeOpener,
        source: Arc<dyn ChunkSource>,
        cpu: ComputePool,
        metadata: MetadataLimits,
        codec: CodecLimits,
    ) -> Self {
        let long_documents = Arc::new(Semaphore::new(MAX_LONG_DOCUMENTS));
        Self {
            node_finder: NodeFinder::new(opener),
            source,
            cpu,
            rewriter: DocumentRewriter { kind, metadata, codec },
            long_documents,
            budget: None,
        }
    }

    /// The same view for one request, with its memory budget.
    pub(super) fn with_request_budget(&self, budget: &Arc<dyn MemoryBudget>) -> Self {
        Self { budget: Some(Arc::clone(budget)), ..self.clone() }
    }

    /// The underlying store.
    pub(super) fn base_store(&self) -> &SharedStore {
        self.node_finder.store()
    }

    /// Finds the nodes of the underlying store.
    pub(super) fn node_finder(&self) -> &NodeFinder {
        &self.node_finder
    }

    /// The source of shard indexes.
    pub(super) fn source(&self) -> &dyn ChunkSource {
        &*self.source
    }

    /// The pool for long computations.
    pub(super) fn cpu(&self) -> &ComputePool {
        &self.cpu
    }

    /// An empty reservation on the memory budget of the request.
    pub(super) fn reservation(&self) -> Reservation {
        Reservation::new(self.budget.as_ref())
    }

    /// A context for the reads of one request.
    pub(super) fn read_context(&self) -> Arc<ReadContext> {
        Arc::new(ReadContext::new(self.source.concurrency()))
    }

    /// The set of a stored array, if the view changes any of it.
    pub(super) fn dependent_set(&self, stored: StoredArray) -> Option<Arc<DependentSet>> {
        DependentSet::for_array(self.rewriter.kind, &self.node_finder, stored).map(Arc::new)
    }

    /// The set of the nearest array at a prefix or above, if the view changes any of it.
    pub(super) async fn nearest_dependent_set(
        &self,
        prefix: &StorePrefix,
    ) -> Result<Option<Arc<DependentSet>>, StoreError> {
        Ok(self.node_finder.nearest_array(prefix).await?.and_then(|stored| self.dependent_set(stored)))
    }

    /// The set of the array that contains everything below a prefix, if the view changes any of it.
    pub(super) async fn enclosing_dependent_set(
        &self,
        prefix: &StorePrefix,
    ) -> Result<Option<Arc<DependentSet>>, StoreError> {
        Ok(self.node_finder.enclosing_array(prefix).await?.and_then(|stored| self.dependent_set(stored)))
    }

    /// The listed entry of the document of a declared array; `None` if it no longer exists.
    pub(super) async fn declared_entry(
        &self,
        dependents: &DependentSet,
        key: StoreKey,
    ) -> Result<Option<ListEntry>, StoreError> {
        Ok(match self.declared_document(dependents, &key).await? {
            ViewEntry::Bytes(_, info) => Some(ListEntry { key, info }),
            ViewEntry::Absent | ViewEntry::Stored(_) | ViewEntry::Unchanged(_) | ViewEntry::Part(..) => None,
        })
    }

    /// A listed key with size and version of its value in the view.
    pub(super) async fn in_view(&self, entry: ListEntry) -> Result<ListEntry, StoreError> {
        if entry.key.name() != ZARR_JSON {
            return Ok(entry);
        }
        Ok(match self.document(&entry.key).await? {
            ViewEntry::Bytes(_, info) | ViewEntry::Unchanged(info) => ListEntry { key: entry.key, info },
            // Erased since it was listed, or not a document.
            ViewEntry::Absent | ViewEntry::Stored(_) | ViewEntry::Part(..) => entry,
        })
    }

    /// What a key refers to.
    pub(super) async fn lookup(&self, key: &StoreKey) -> Result<ViewEntry, StoreError> {
        match key.name() {
            ZARR_JSON => return self.document(key).await,
            ".zarray" | ".zgroup" | ".zattrs" | ".zmetadata" => return Ok(ViewEntry::Stored(key.clone())),
            _ => {}
        }
        let Some(dependents) = self.nearest_dependent_set(&key.parent()).await? else {
            return Ok(ViewEntry::Stored(key.clone()));
        };
        match dependents.match_key(key.as_str()) {
            KeyMatch::Chunk(array, coords) => match array.geometry().locate(&coords) {
                Some(location) => self.chunk(&array, &location).await,
                None => Ok(ViewEntry::Absent),
            },
            // The key of a stored chunk has no value unless it is also that of a view chunk.
            KeyMatch::Hidden => Ok(ViewEntry::Absent),
            KeyMatch::Other => Ok(ViewEntry::Stored(key.clone())),
        }
    }

    /// What the key of a `zarr.json` refers to.
    async fn document(&self, key: &StoreKey) -> Result<ViewEntry, StoreError> {
        let Some(value) = self.base_store().get(key, ByteRange::Whole, None).await? else {
            return match self.nearest_dependent_set(&key.parent()).await? {
                Some(dependents) => self.declared_document(&dependents, key).await,
                None => Ok(ViewEntry::Absent),
            };
        };
        let limits = &self.rewriter.metadata;
        let max_bytes = limits.document_bytes.max(limits.consolidated_bytes) as u64;
        // Nodes have shorter paths.
        let path = NodePath::parse(key.parent().as_str()).ok().filter(|_| value.len() <= max_bytes);
        let Some(path) = path else { return Ok(ViewEntry::Stored(key.clone())) };
        let info = value.info.clone();
        let (rewriter, cpu, long_documents) =
            (self.rewriter, self.cpu.clone(), Arc::clone(&self.long_documents));
        let key = key.clone();
        let derived = self.derived_version(&info.version);
        // A long document is read only if it must be rewritten.
        let (stored, value) = if value.len() <= SHORT_DOCUMENT_BYTES {
            let stored = value.bytes(max_bytes).await?;
            let body = ValueBody::Bytes(stored.clone());
            (Some(stored), Value::new(info.clone(), 0..info.size, body))
        } else {
            (None, value)
        };
        let rewritten = Box::pin(async move {
            let is_long = value.len() > rewriter.metadata.document_bytes as u64;
            // The semaphore is never closed.
            let _permit = if is_long { long_documents.acquire().await.ok() } else { None };
            let document =
                value.bytes(max_bytes).await.map_err(|source| ArrayError::Store { key, source })?;
            let bytes = document.len() as u64;
            let text = cpu.run_document(bytes, move || rewriter.rewrite(&document)).await?;
            Ok(text.map(|text| (text.into(), derived)))
        });
        let versions = vec![Some(info.version.clone())];
        let form = self.rewriter.kind.name();
        let generated = self
            .node_finder
            .opener()
            .rendered_text(&path, form, versions, rewritten)
            .await
            .map_err(to_store_error)?;
        Ok(match (generated, stored) {
            (Some((text, version)), _) => {
                let info = ValueInfo { size: text.len() as u64, version, ..info };
                ViewEntry::Bytes(text, info)
            }
            (None, Some(stored)) => ViewEntry::Bytes(stored, info),
            (None, None) => ViewEntry::Unchanged(info),
        })
    }

    /// The document of a declared array, if no document is stored at its path.
    async fn declared_document(
        &self,
        dependents: &DependentSet,
        key: &StoreKey,
    ) -> Result<ViewEntry, StoreError> {
        // Nodes have shorter paths.
        let Ok(path) = NodePath::parse(key.parent().as_str()) else { return Ok(ViewEntry::Absent) };
        let Some((declared, version)) = dependents.declared(&path) else { return Ok(ViewEntry::Absent) };
        let rebased = match &declared.rebased {
            Some(rebased) => Some(Arc::clone(rebased)),
            // Not kept with the set: the array is one of many, or its document is long.
            None => self.node_finder.rebased_document(&path).await?,
        };
        let Some(rebased) = rebased else { return Ok(ViewEntry::Absent) };
        let mapping = dependents.view_array(declared).map(|array| array.mapping().clone());
        let (rewriter, cpu, length) = (self.rewriter, self.cpu.clone(), rebased.len() as u64);
        let (versions, derived) = (vec![Some(version.clone())], self.derived_version(version));
        let rewritten = Box::pin(async move {
            let text =
                cpu.run_document(length, move || rewriter.rewrite_declared(&rebased, mapping.as_deref()));
            Ok(Some((text.await?.into(), derived)))
        });
        let form = format!("{} declared", self.rewriter.kind.name());
        let generated = self
            .node_finder
            .opener()
            .rendered_text(&path, &form, versions, rewritten)
            .await
            .map_err(to_store_error)?;
        Ok(generated.map_or(ViewEntry::Absent, |(text, version)| {
            let info = ValueInfo { size: text.len() as u64, version, modified: None };
            ViewEntry::Bytes(text, info)
        }))
    }

    /// The version of a document that is derived from one of this version.
    fn derived_version(&self, version: &Version) -> Version {
        // Another release may derive another text from the same document.
        derive_version(version, &format!("{}.{}", self.rewriter.kind.name(), env!("CARGO_PKG_VERSION")))
    }

    /// What the key of a view chunk refers to.
    async fn chunk(&self, array: &ViewArray, location: &StoredLocation) -> Result<ViewEntry, StoreError> {
        let stored = array.array().stored_key(&location.stored).map_err(to_store_error)?;
        if location.index_positions.is_empty() {
            return Ok(ViewEntry::Stored(stored.key));
        }
        let trace = self.read_context();
        for _ in 0..MAX_ATTEMPTS {
            let part = async {
                let chain = array.chain(&location.stored)?;
                let ChunkLookup { value, data } =
                    self.source.fetch_or_lookup(&stored, &chain, &trace).await?;
                let Some(value) = value else { return Ok(ViewEntry::Absent) };
                let index = match data {
                    ChunkData::Index(index) => Some(index),
                    ChunkData::NotRead | ChunkData::Elements(_) => None,
                };
                let part = array.byte_range(&*self.source, &value, index, location, &trace).await?;
                Ok::<_, ArrayError>(part.map_or(ViewEntry::Absent, |part| ViewEntry::Part(value, part)))
            };
            match part.await {
                Err(error) if error.is_changed() => {}
                part => return part.map_err(to_store_error),
            }
        }
        Err(StoreError::VersionChanged)
    }

    /// Reads a range of a part of a stored value.
    pub(super) async fn read_part(
        value: &StoredValue,
        part: &Range<u64>,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Value, StoreError> {
        let info = part_info(&value.info, part);
        let range = resolve_range(&info, range, if_match)?;
        if range.is_empty() {
            return Ok(Value::new(info, range, ValueBody::Bytes(Bytes::new())));
        }
        let requested = part.start + range.start..part.start + range.end;
        let bounds = ByteRange::Bounded(requested.start, requested.end);
        let found = value.store.get(&value.key, bounds, value.info.version.pin()).await?;
        // It existed when its version was read, so an absence now is a change.
        let found = found.filter(|found| found.info.version == value.info.version);
        let found = found.ok_or(StoreError::VersionChanged)?;
        if found.range != requested {
            return Err(StoreError::WrongLength);
        }
        Ok(Value::new(info, range, found.body))
    }
}

/// Size and version of a part of a stored value.
pub(super) fn part_info(info: &ValueInfo, part: &Range<u64>) -> ValueInfo {
    let (start, size) = (part.start, part.end.saturating_sub(part.start));
    let version = derive_version(&info.version, &format!("{start}+{size}"));
    ValueInfo { size, version, modified: info.modified }
}

/// The version of a derived value, as strong as the source's.
fn derive_version(version: &Version, how: &str) -> Version {
    let tag = format!("{}.{how}", version.tag());
    if version.is_strong() { Version::strong(&tag) } else { Version::weak(&tag) }
}

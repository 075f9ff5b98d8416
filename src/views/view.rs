//! [`ViewStore`]: a view as a store (Zarr core 3.1, "Abstract store interface").
//!
//! Index and data of a shard are read at one version: a change between them starts anew, a few times. Writes are
//! refused.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use tokio::sync::Semaphore;

use super::dependent_set::{DependentSet, KeyMatch};
use super::document::Changes;
use super::error::failed;
use super::geometry::Place;
use super::list;
use super::nodes::{Nodes, StoredArray};
use super::view_array::ViewArray;
use crate::array::{ArrayError, ChunkData, ChunkLookup, ChunkSource, NodeOpener, ReadContext, StoredValue};
use crate::codec::CodecLimits;
use crate::cpu::ComputePool;
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::metadata::MetadataLimits;
use crate::store::{
    ByteRange, Capabilities, DirEntries, ListEntry, MemoryBudget, Reservation, SharedStore, Shortcuts, Store,
    StoreError, StoreKind, Value, ValueBody, ValueInfo, Version,
};

/// A shard that changes while it is read is read anew this often.
pub(super) const TRIES: usize = 3;

/// Documents longer than a node's may be that are changed at a time.
const LONG_DOCUMENTS: usize = 4;

/// Longer documents are not held for what is shown as it is stored.
const SHORT_BYTES: u64 = 256 << 10;

/// The documents of v3.
const ZARR_JSON: &str = "zarr.json";

/// What a view changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    /// What clients in use cannot open is shown as what they can.
    Plain,
    /// The same, and sharded arrays are shown as arrays of their inner chunks.
    Unshard,
}

impl ViewKind {
    /// The kind as a stable word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Unshard => "unshard",
        }
    }
}

/// A view of the store of one mount. Clones share what they remember.
#[derive(Clone, Debug)]
pub struct ViewStore {
    nodes: Nodes,
    source: Arc<dyn ChunkSource>,
    cpu: ComputePool,
    changes: Changes,
    /// How many long documents are changed at a time.
    gate: Arc<Semaphore>,
    /// The room of the request that it is for.
    room: Option<Arc<dyn MemoryBudget>>,
}

/// What a key of a view is.
enum ViewEntry {
    /// Nothing.
    Nothing,
    /// What was made or read here, whole.
    Bytes(Bytes, ValueInfo),
    /// What is stored under a key.
    Stored(StoreKey),
    /// What is stored under the key that is asked for, as long as it is what was found there.
    Unchanged(ValueInfo),
    /// A part of a stored value.
    Part(Arc<StoredValue>, Range<u64>),
}

impl ViewStore {
    /// The view of this kind of the store whose nodes `opener` opens. Indexes of shards come from `source`.
    #[must_use]
    pub fn new(
        kind: ViewKind,
        opener: NodeOpener,
        source: Arc<dyn ChunkSource>,
        cpu: ComputePool,
        metadata: MetadataLimits,
        codec: CodecLimits,
    ) -> Self {
        let gate = Arc::new(Semaphore::new(LONG_DOCUMENTS));
        Self {
            nodes: Nodes::new(opener),
            source,
            cpu,
            changes: Changes { kind, metadata, codec },
            gate,
            room: None,
        }
    }

    /// The store below.
    pub(super) fn below(&self) -> &SharedStore {
        self.nodes.store()
    }

    /// The nodes of the store below.
    pub(super) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Where indexes come from.
    pub(super) fn source(&self) -> &dyn ChunkSource {
        &*self.source
    }

    /// Where what takes long is done.
    pub(super) fn cpu(&self) -> &ComputePool {
        &self.cpu
    }

    /// What something takes of the request's room: nothing yet.
    pub(super) fn lot(&self) -> Reservation {
        Reservation::new(self.room.as_ref())
    }

    /// For the reads of one request.
    pub(super) fn trace(&self) -> Arc<ReadContext> {
        Arc::new(ReadContext::new(self.source.concurrency()))
    }

    /// The family of a stored array, if any of it is shown otherwise than it is stored.
    pub(super) fn family(&self, stored: StoredArray) -> Option<Arc<DependentSet>> {
        DependentSet::of(self.changes.kind, &self.nodes, stored).map(Arc::new)
    }

    /// The family that a prefix is in, if any of it is shown otherwise than it is stored.
    pub(super) async fn family_above(
        &self,
        prefix: &StorePrefix,
    ) -> Result<Option<Arc<DependentSet>>, StoreError> {
        Ok(self.nodes.above(prefix).await?.and_then(|stored| self.family(stored)))
    }

    /// The family that all below a prefix is of, if any of it is shown otherwise than it is stored.
    pub(super) async fn family_around(
        &self,
        prefix: &StorePrefix,
    ) -> Result<Option<Arc<DependentSet>>, StoreError> {
        Ok(self.nodes.around(prefix).await?.and_then(|stored| self.family(stored)))
    }

    /// What is listed of the document of an array that is declared; `None` if it is no longer there.
    pub(super) async fn made(
        &self,
        family: &DependentSet,
        key: StoreKey,
    ) -> Result<Option<ListEntry>, StoreError> {
        Ok(match self.declared_document(family, &key).await? {
            ViewEntry::Bytes(_, info) => Some(ListEntry { key, info }),
            ViewEntry::Nothing | ViewEntry::Stored(_) | ViewEntry::Unchanged(_) | ViewEntry::Part(..) => None,
        })
    }

    /// A listed key with what the view shows under it.
    pub(super) async fn in_view(&self, entry: ListEntry) -> Result<ListEntry, StoreError> {
        if entry.key.name() != ZARR_JSON {
            return Ok(entry);
        }
        Ok(match self.document(&entry.key).await? {
            ViewEntry::Bytes(_, info) | ViewEntry::Unchanged(info) => ListEntry { key: entry.key, info },
            // Erased since it was listed, or no document.
            ViewEntry::Nothing | ViewEntry::Stored(_) | ViewEntry::Part(..) => entry,
        })
    }

    /// What a key is.
    async fn shows(&self, key: &StoreKey) -> Result<ViewEntry, StoreError> {
        match key.name() {
            ZARR_JSON => return self.document(key).await,
            ".zarray" | ".zgroup" | ".zattrs" | ".zmetadata" => return Ok(ViewEntry::Stored(key.clone())),
            _ => {}
        }
        let Some(family) = self.family_above(&key.parent()).await? else {
            return Ok(ViewEntry::Stored(key.clone()));
        };
        match family.find(key.as_str()) {
            KeyMatch::Chunk(shown, coords) => match shown.geometry().place(&coords) {
                Some(place) => self.chunk(&shown, &place).await,
                None => Ok(ViewEntry::Nothing),
            },
            // A stored chunk's own key shows nothing where it is not also a shown one's.
            KeyMatch::Hidden => Ok(ViewEntry::Nothing),
            KeyMatch::Other => Ok(ViewEntry::Stored(key.clone())),
        }
    }

    /// What a `zarr.json` is shown as.
    async fn document(&self, key: &StoreKey) -> Result<ViewEntry, StoreError> {
        let Some(value) = self.below().get(key, ByteRange::Whole, None).await? else {
            return match self.family_above(&key.parent()).await? {
                Some(family) => self.declared_document(&family, key).await,
                None => Ok(ViewEntry::Nothing),
            };
        };
        let limits = &self.changes.metadata;
        let most = limits.document_bytes.max(limits.consolidated_bytes) as u64;
        // Too long a path has no nodes.
        let path = NodePath::parse(key.parent().as_str()).ok().filter(|_| value.len() <= most);
        let Some(path) = path else { return Ok(ViewEntry::Stored(key.clone())) };
        let info = value.info.clone();
        let (changes, cpu, gate) = (self.changes, self.cpu.clone(), Arc::clone(&self.gate));
        let key = key.clone();
        let made_of = self.made_of(&info.version);
        // Long ones are read only if something has to be made of them.
        let (stored, value) = if value.len() <= SHORT_BYTES {
            let stored = value.bytes(most).await?;
            let body = ValueBody::Bytes(stored.clone());
            (Some(stored), Value { info: info.clone(), range: 0..info.size, body })
        } else {
            (None, value)
        };
        let making = Box::pin(async move {
            let is_long = value.len() > changes.metadata.document_bytes as u64;
            // The gate is never closed.
            let _room = if is_long { gate.acquire().await.ok() } else { None };
            let document = value.bytes(most).await.map_err(|source| ArrayError::Store { key, source })?;
            let bytes = document.len() as u64;
            let text = cpu.run_document(bytes, move || changes.of(&document)).await?;
            Ok(text.map(|text| (text.into(), made_of)))
        });
        let versions = vec![Some(info.version.clone())];
        let form = self.changes.kind.name();
        let made = self.nodes.opener().text(&path, form, versions, making).await.map_err(failed)?;
        Ok(match (made, stored) {
            (Some((text, version)), _) => {
                let info = ValueInfo { size: text.len() as u64, version, ..info };
                ViewEntry::Bytes(text, info)
            }
            (None, Some(stored)) => ViewEntry::Bytes(stored, info),
            (None, None) => ViewEntry::Unchanged(info),
        })
    }

    /// The document of an array that another of its family declares, where nothing is stored.
    async fn declared_document(
        &self,
        family: &DependentSet,
        key: &StoreKey,
    ) -> Result<ViewEntry, StoreError> {
        // Too long a path has no nodes.
        let Ok(path) = NodePath::parse(key.parent().as_str()) else { return Ok(ViewEntry::Nothing) };
        let Some((declared, version)) = family.declared(&path) else { return Ok(ViewEntry::Nothing) };
        let rebased = match &declared.rebased {
            Some(rebased) => Some(Arc::clone(rebased)),
            // One of many, or long.
            None => self.nodes.rebased(&path).await?,
        };
        let Some(rebased) = rebased else { return Ok(ViewEntry::Nothing) };
        let shape = family.shown(declared).map(|shown| shown.shape().clone());
        let (changes, cpu, length) = (self.changes, self.cpu.clone(), rebased.len() as u64);
        let (versions, made_of) = (vec![Some(version.clone())], self.made_of(version));
        let making = Box::pin(async move {
            let text = cpu.run_document(length, move || changes.of_declared(&rebased, shape.as_deref()));
            Ok(Some((text.await?.into(), made_of)))
        });
        let form = format!("{} declared", self.changes.kind.name());
        let made = self.nodes.opener().text(&path, &form, versions, making).await.map_err(failed)?;
        Ok(made.map_or(ViewEntry::Nothing, |(text, version)| {
            let info = ValueInfo { size: text.len() as u64, version, modified: None };
            ViewEntry::Bytes(text, info)
        }))
    }

    /// The version of a document that is made of one of this version.
    fn made_of(&self, version: &Version) -> Version {
        // Another build may make another text of the same document.
        derived(version, &format!("{}.{}", self.changes.kind.name(), env!("CARGO_PKG_VERSION")))
    }

    /// What a shown chunk is.
    async fn chunk(&self, shown: &ViewArray, place: &Place) -> Result<ViewEntry, StoreError> {
        let stored = shown.array().stored_key(&place.stored).map_err(failed)?;
        if place.numbers.is_empty() {
            return Ok(ViewEntry::Stored(stored.key));
        }
        let trace = self.trace();
        for _ in 0..TRIES {
            let part = async {
                let chain = shown.chain(&place.stored)?;
                let ChunkLookup { value, part } =
                    self.source.fetch_or_lookup(&stored, &chain, &trace).await?;
                let Some(value) = value else { return Ok(ViewEntry::Nothing) };
                let index = match part {
                    ChunkData::Index(index) => Some(index),
                    ChunkData::Nothing | ChunkData::Elements(_) => None,
                };
                let part = shown.part(&*self.source, &value, index, place, &trace).await?;
                Ok::<_, ArrayError>(part.map_or(ViewEntry::Nothing, |part| ViewEntry::Part(value, part)))
            };
            match part.await {
                Err(error) if error.is_changed() => {}
                part => return part.map_err(failed),
            }
        }
        Err(StoreError::VersionChanged)
    }

    /// A range of a part of a stored value.
    async fn read_part(
        value: &StoredValue,
        part: &Range<u64>,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Value, StoreError> {
        let info = part_info(&value.info, part);
        let range = resolve(&info, range, if_match)?;
        if range.is_empty() {
            return Ok(Value { info, range, body: ValueBody::Bytes(Bytes::new()) });
        }
        let asked = part.start + range.start..part.start + range.end;
        let bounds = ByteRange::Bounded(asked.start, asked.end);
        let found = value.store.get(&value.key, bounds, value.info.version.pin()).await?;
        // Present when its version was asked for: an absence now is a change.
        let found = found.filter(|found| found.info.version == value.info.version);
        let found = found.ok_or(StoreError::VersionChanged)?;
        if found.range != asked {
            return Err(StoreError::WrongLength);
        }
        Ok(Value { info, range, body: found.body })
    }
}

/// What is known of a part of a stored value.
pub(super) fn part_info(info: &ValueInfo, part: &Range<u64>) -> ValueInfo {
    let (start, size) = (part.start, part.end.saturating_sub(part.start));
    let version = derived(&info.version, &format!("{start}+{size}"));
    ValueInfo { size, version, modified: info.modified }
}

/// The version of what is made of a value: as strong as the value's.
fn derived(version: &Version, how: &str) -> Version {
    let tag = format!("{}.{how}", version.tag());
    if version.is_strong() { Version::strong(&tag) } else { Version::weak(&tag) }
}

/// The range, if the value is still of the version that is asked for.
pub(super) fn resolve(
    info: &ValueInfo,
    range: ByteRange,
    if_match: Option<&Version>,
) -> Result<Range<u64>, StoreError> {
    if if_match.is_some_and(|version| *version != info.version) {
        return Err(StoreError::VersionChanged);
    }
    range.resolve(info.size).ok_or(StoreError::RangeNotSatisfiable { size: info.size })
}

#[async_trait]
impl Store for ViewStore {
    fn kind(&self) -> StoreKind {
        self.below().kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        Ok(match self.shows(key).await? {
            ViewEntry::Nothing => None,
            ViewEntry::Bytes(_, info) | ViewEntry::Unchanged(info) => Some(info),
            ViewEntry::Stored(key) => self.below().head(&key).await?,
            ViewEntry::Part(value, part) => Some(part_info(&value.info, &part)),
        })
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        for _ in 0..TRIES {
            let (value, part) = match self.shows(key).await? {
                ViewEntry::Nothing => return Ok(None),
                ViewEntry::Unchanged(info) => {
                    if if_match.is_some_and(|version| *version != info.version) {
                        return Err(StoreError::VersionChanged);
                    }
                    let found = self.below().get(key, range, info.version.pin()).await;
                    match found {
                        Ok(Some(value)) if value.info.version == info.version => return Ok(Some(value)),
                        // It may be shown otherwise by now, or be no longer there.
                        Ok(_) | Err(StoreError::VersionChanged) => {}
                        Err(error) => return Err(error),
                    }
                    if if_match.is_some() {
                        return Err(StoreError::VersionChanged);
                    }
                    continue;
                }
                ViewEntry::Stored(key) => return self.below().get(&key, range, if_match).await,
                ViewEntry::Bytes(bytes, info) => {
                    let range = resolve(&info, range, if_match)?;
                    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                    let body = ValueBody::Bytes(bytes.slice(place(range.start)..place(range.end)));
                    return Ok(Some(Value { info, range, body }));
                }
                ViewEntry::Part(value, part) => (value, part),
            };
            match Self::read_part(&value, &part, range, if_match).await {
                // Between index and data; what is asked for may still be there, or no longer.
                Err(StoreError::VersionChanged) if if_match.is_none() => {}
                read => return read.map(Some),
            }
        }
        Err(StoreError::VersionChanged)
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        list::list_dir(self.clone(), prefix.clone(), after.to_owned())
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        list::list_prefix(self.clone(), prefix.clone(), after.cloned())
    }

    fn with_budget(&self, room: &Arc<dyn MemoryBudget>) -> Option<SharedStore> {
        Some(Arc::new(Self { room: Some(Arc::clone(room)), ..self.clone() }))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.below().check().await
    }
}

impl Shortcuts for ViewStore {
    fn capabilities(&self) -> Capabilities {
        self.below().capabilities()
    }

    fn freshness_horizon(&self, began: Instant) -> Instant {
        self.below().freshness_horizon(began)
    }
}

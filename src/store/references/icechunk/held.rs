//! [`HeldFiles`]: the snapshots and manifests that were read last.
//!
//! What they are never changes, so each is read once, as long as it is held; callers that come while it is read wait. One
//! that is refused is read again after a while: it may have been a part of a file that is being copied. Others are evicted
//! where the budget is not enough.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::file::FileKind;
use super::id::ObjectId;
use super::manifest::ChunkManifest;
use super::snapshot::RepositorySnapshot;
use crate::cpu::ComputePool;
use crate::key::StoreKey;
use crate::store::container::{ContainerBudget, ContainerError as _};
use crate::store::references::ReferenceError;
use crate::store::{ByteRange, SharedStore, StoreError};

/// The most files that are held at one time.
const MAX_HELD: usize = 256;
/// The most files that are read at one time.
const LANES: usize = 8;
/// How long a file that is refused is not read again: parsing it may take long.
const REFUSED_FOR: Duration = Duration::from_secs(5);

type Outcome<T> = Result<Arc<T>, ReferenceError>;

/// A file that was read, or why it is refused.
#[derive(Clone, Debug)]
enum Part {
    Snapshot(Outcome<RepositorySnapshot>),
    Manifest(Outcome<ChunkManifest>),
}

/// What kinds of files have in common.
trait Kind: Sized + Send + Sync + 'static {
    const KIND: FileKind;
    const DIRECTORY: &'static str;

    fn parse(file: &Bytes, id: ObjectId, budget: &ContainerBudget) -> Result<Self, ReferenceError>;
    fn of(part: &Part) -> Option<Outcome<Self>>;
    fn part(outcome: Outcome<Self>) -> Part;
}

impl Kind for RepositorySnapshot {
    const KIND: FileKind = FileKind::Snapshot;
    const DIRECTORY: &'static str = "snapshots";

    fn parse(file: &Bytes, id: ObjectId, budget: &ContainerBudget) -> Result<Self, ReferenceError> {
        Self::parse(file, id, budget)
    }

    fn of(part: &Part) -> Option<Outcome<Self>> {
        if let Part::Snapshot(outcome) = part { Some(outcome.clone()) } else { None }
    }

    fn part(outcome: Outcome<Self>) -> Part {
        Part::Snapshot(outcome)
    }
}

impl Kind for ChunkManifest {
    const KIND: FileKind = FileKind::Manifest;
    const DIRECTORY: &'static str = "manifests";

    fn parse(file: &Bytes, id: ObjectId, budget: &ContainerBudget) -> Result<Self, ReferenceError> {
        Self::parse(file, id, budget)
    }

    fn of(part: &Part) -> Option<Outcome<Self>> {
        if let Part::Manifest(outcome) = part { Some(outcome.clone()) } else { None }
    }

    fn part(outcome: Outcome<Self>) -> Part {
        Part::Manifest(outcome)
    }
}

/// A part that is held.
#[derive(Debug)]
struct HeldPart {
    kind: FileKind,
    id: ObjectId,
    part: Part,
    read: Instant,
}

/// The files that were read last, the last one at the end.
#[derive(Debug)]
pub(super) struct HeldFiles {
    inner: SharedStore,
    cpu: ComputePool,
    budget: ContainerBudget,
    parts: Mutex<Vec<HeldPart>>,
    /// How often everything was evicted on request: what was read before that is not kept.
    purges: AtomicU64,
    refused_for: Duration,
    /// One is held while a file is read.
    lanes: [tokio::sync::Mutex<()>; LANES],
}

impl HeldFiles {
    pub(super) fn new(inner: SharedStore, cpu: ComputePool, budget: ContainerBudget) -> Self {
        let (parts, purges, lanes) = (Mutex::default(), AtomicU64::default(), Default::default());
        Self { inner, cpu, budget, parts, purges, refused_for: REFUSED_FOR, lanes }
    }

    /// The same, where what is refused is read again after another time.
    #[cfg(test)]
    pub(super) fn with_refused_for(self, refused_for: Duration) -> Self {
        Self { refused_for, ..self }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<HeldPart>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find<T: Kind>(&self, id: ObjectId) -> Option<Outcome<T>> {
        self.find_read_within(id, Duration::MAX)
    }

    /// What was read of a file within this time.
    fn find_read_within<T: Kind>(&self, id: ObjectId, age: Duration) -> Option<Outcome<T>> {
        let mut parts = self.lock();
        let is_found = |held: &HeldPart| held.kind == T::KIND && held.id == id && held.read.elapsed() <= age;
        let at = parts.iter().position(is_found)?;
        let found = parts.remove(at);
        let outcome = T::of(&found.part)?;
        if outcome.is_err() && found.read.elapsed() >= self.refused_for {
            return None;
        }
        parts.push(found);
        Some(outcome)
    }

    /// Evicts everything, and what is being read just now is not kept.
    pub(super) fn purge(&self) {
        let mut parts = self.lock();
        self.purges.fetch_add(1, Ordering::Relaxed);
        let evicted = std::mem::take(&mut *parts);
        drop(parts);
        drop(evicted);
    }

    /// Removes a snapshot, whose file was deleted.
    pub(super) fn remove_snapshot(&self, id: ObjectId) {
        let mut parts = self.lock();
        let at = parts.iter().position(|held| held.kind == RepositorySnapshot::KIND && held.id == id);
        let removed = at.map(|at| parts.remove(at));
        drop(parts);
        drop(removed);
    }

    /// Evicts what was not used for the longest time. `false` if nothing is held.
    pub(super) fn evict(&self) -> bool {
        let mut parts = self.lock();
        let is_held = !parts.is_empty();
        let evicted = is_held.then(|| parts.remove(0));
        drop(parts);
        drop(evicted);
        is_held
    }

    /// Keeps a file that was read when there had been this many purges.
    fn insert<T: Kind>(&self, id: ObjectId, outcome: Outcome<T>, purges: u64) {
        let mut parts = self.lock();
        if self.purges.load(Ordering::Relaxed) != purges {
            return;
        }
        if parts.len() >= MAX_HELD {
            parts.remove(0);
        }
        parts.push(HeldPart { kind: T::KIND, id, part: T::part(outcome), read: Instant::now() });
    }

    /// A snapshot; `None` if there is no such file.
    pub(super) async fn snapshot(&self, id: ObjectId) -> Result<Option<Arc<RepositorySnapshot>>, StoreError> {
        self.get(id).await
    }

    /// A snapshot that is needed once, so that none is evicted for it that is in use, as it was within this time; `None` if there is no
    /// such file.
    pub(super) async fn passing_snapshot(
        &self,
        id: ObjectId,
        age: Duration,
    ) -> Result<Option<Arc<RepositorySnapshot>>, StoreError> {
        match self.find_read_within(id, age) {
            Some(outcome) => Ok(Some(outcome?)),
            None => Ok(self.read_evicting(id).await?.map(Arc::new)),
        }
    }

    /// Whether a snapshot has a file.
    pub(super) async fn has_snapshot_file(&self, id: ObjectId) -> Result<bool, StoreError> {
        Ok(self.find::<RepositorySnapshot>(id).is_some() || self.stores_snapshot(id).await?)
    }

    /// Whether the backend has the file of a snapshot.
    pub(super) async fn stores_snapshot(&self, id: ObjectId) -> Result<bool, StoreError> {
        let Ok(key) = StoreKey::parse(&format!("{}/{id}", RepositorySnapshot::DIRECTORY)) else {
            return Ok(false);
        };
        Ok(self.inner.head(&key).await?.is_some())
    }

    /// A snapshot that is held.
    pub(super) fn held_snapshot(&self, id: ObjectId) -> Option<Arc<RepositorySnapshot>> {
        self.find(id)?.ok()
    }

    /// A manifest; `None` if there is no such file.
    pub(super) async fn manifest(&self, id: ObjectId) -> Result<Option<Arc<ChunkManifest>>, StoreError> {
        self.get(id).await
    }

    async fn get<T: Kind>(&self, id: ObjectId) -> Result<Option<Arc<T>>, StoreError> {
        if let Some(outcome) = self.find(id) {
            return Ok(Some(outcome?));
        }
        let lane = id.0.first().map_or(0, |first| usize::from(*first) % LANES);
        let Some(lane) = self.lanes.get(lane) else { return Ok(None) };
        let _loading = lane.lock().await;
        if let Some(outcome) = self.find(id) {
            return Ok(Some(outcome?));
        }
        let purges = self.purges.load(Ordering::Relaxed);
        let outcome = match self.read_evicting(id).await {
            Ok(None) => return Ok(None),
            Ok(Some(part)) => Ok(Arc::new(part)),
            Err(StoreError::References(error)) if error.is_lasting() => Err(error),
            Err(error) => return Err(error),
        };
        self.insert(id, outcome.clone(), purges);
        Ok(Some(outcome?))
    }

    /// Reads a file. Others are evicted for it.
    async fn read_evicting<T: Kind>(&self, id: ObjectId) -> Result<Option<T>, StoreError> {
        loop {
            match self.read(id).await {
                Err(StoreError::References(ReferenceError::OverBudget { .. })) if self.evict() => {}
                outcome => return outcome,
            }
        }
    }

    async fn read<T: Kind>(&self, id: ObjectId) -> Result<Option<T>, StoreError> {
        let Ok(key) = StoreKey::parse(&format!("{}/{id}", T::DIRECTORY)) else { return Ok(None) };
        let Some(value) = self.inner.get(&key, ByteRange::Whole, None).await? else { return Ok(None) };
        let size = value.info.size;
        // Held until the file is parsed.
        let mut reserved = self.budget.empty();
        reserved.resize(size).map_err(ReferenceError::from)?;
        let bytes = value.bytes(size).await?;
        let budget = self.budget.clone();
        let parse = move || {
            let _held = reserved;
            T::parse(&bytes, id, &budget)
        };
        // A short file may decompress to a long one.
        Ok(Some(self.cpu.run_long(parse).await.map_err(ReferenceError::Cpu)??))
    }
}

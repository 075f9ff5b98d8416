//! [`Source`]: which snapshot a version is.
//!
//! In version 2 of the format, one file lists them all: it is asked for its version, and read when that has changed. In
//! version 1, each branch and each tag has a file. What is fixed (a tag, a snapshot) is not asked for again where it is
//! known. A snapshot is served while the repository lists it: in version 1, while a branch or a tag leads to it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::TryStreamExt;
use futures::future::join;
use serde::Deserialize;

use super::held::HeldFiles;
use super::id::ObjectId;
use super::repository::{NamedSnapshot, Repository, SnapshotInfo};
use super::snapshot::RepositorySnapshot;
use super::version::PinnedVersion;
use crate::cpu::ComputePool;
use crate::key::{KeyError, StoreKey, StorePrefix};
use crate::store::container::{ContainerBudget, IndexCache};
use crate::store::references::load::parsed;
use crate::store::references::{BrokenReference, ReferenceError};
use crate::store::{ByteRange, DirEntry, SharedStore, StoreError, ValueInfo};

/// The file that lists everything, in version 2.
const REPOSITORY: &str = "repo";
/// The directory of branches and tags, in version 1.
const REFS: &str = "refs/";
/// The longest file of a branch or tag, in bytes.
const MAX_REF_BYTES: u64 = 4096;
/// The most snapshots that are read for the history of a repository in version 1.
const MAX_HISTORY: usize = 4096;
/// The most branches and tags of a repository in version 1.
const MAX_REFS: usize = 4096;

/// What the file of a branch or tag has.
#[derive(Deserialize)]
struct RefFile {
    snapshot: String,
}

/// All branches, tags and snapshots.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) branches: Vec<NamedSnapshot>,
    pub(super) tags: Vec<NamedSnapshot>,
    pub(super) snapshots: Vec<SnapshotInfo>,
}

/// Where the versions of a repository are read.
#[derive(Debug)]
pub(super) struct Source {
    inner: SharedStore,
    file: StoreKey,
    cpu: ComputePool,
    budget: ContainerBudget,
    pub(super) held: HeldFiles,
    repository: IndexCache<Repository, ReferenceError>,
    /// Whether there was no `repo`.
    is_old: AtomicBool,
    /// Snapshots of version 1 that are known to be listed.
    listed: Mutex<HashSet<ObjectId>>,
}

impl Source {
    pub(super) fn new(
        inner: SharedStore,
        cpu: ComputePool,
        budget: ContainerBudget,
    ) -> Result<Self, KeyError> {
        Ok(Self {
            file: StoreKey::parse(REPOSITORY)?,
            held: HeldFiles::new(Arc::clone(&inner), cpu.clone(), budget.clone()),
            repository: IndexCache::default(),
            is_old: AtomicBool::new(false),
            listed: Mutex::default(),
            inner,
            cpu,
            budget,
        })
    }

    /// What `repo` lists now; `None` if there is no such file.
    async fn repository(&self) -> Result<Option<Arc<Repository>>, StoreError> {
        let file = (&self.inner, &self.file);
        let load = async |info: ValueInfo| loop {
            let parse = |bytes: &Bytes, budget: &ContainerBudget| Repository::parse(bytes, budget);
            match parsed(file, info.clone(), (&self.cpu, &self.budget), parse).await {
                Err(StoreError::References(ReferenceError::OverBudget { .. })) if self.held.evict() => {}
                outcome => break outcome,
            }
        };
        match self.repository.current(file, load).await {
            Ok(repository) => Ok(Some(repository)),
            Err(StoreError::References(ReferenceError::NoDocument)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The snapshot that a version is now; `None` if there is no such version.
    pub(super) async fn resolve(&self, version: &PinnedVersion) -> Result<Option<ObjectId>, StoreError> {
        if let Some(id) = self.known(version) {
            return Ok(Some(id));
        }
        let (repository, old) = if self.is_old.load(Ordering::Relaxed) {
            let (repository, old) = join(self.repository(), self.resolve_old(version)).await;
            (repository?, Some(old))
        } else {
            (self.repository().await?, None)
        };
        self.is_old.store(repository.is_none(), Ordering::Relaxed);
        match (repository, old) {
            (Some(repository), _) => Ok(resolve_in(&repository, version)),
            (None, Some(old)) => old,
            (None, None) => self.resolve_old(version).await,
        }
    }

    /// What a version that never changes is known to be.
    fn known(&self, version: &PinnedVersion) -> Option<ObjectId> {
        if !version.is_fixed() {
            return None;
        }
        if let Some(repository) = self.repository.last() {
            return resolve_in(&repository, version);
        }
        match version {
            PinnedVersion::Snapshot(id) => self.listed().contains(id).then_some(*id),
            PinnedVersion::Branch(_) | PinnedVersion::Tag(_) => None,
        }
    }

    fn listed(&self) -> std::sync::MutexGuard<'_, HashSet<ObjectId>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Source::resolve`], in version 1.
    async fn resolve_old(&self, version: &PinnedVersion) -> Result<Option<ObjectId>, StoreError> {
        let found = match version {
            PinnedVersion::Branch(name) => self.old_ref("branch", name).await?,
            PinnedVersion::Tag(name) => {
                let deleted = StoreKey::parse(&format!("{REFS}tag.{name}/ref.json.deleted"));
                let Ok(deleted) = deleted else { return Ok(None) };
                let (found, deleted) = join(self.old_ref("tag", name), self.inner.head(&deleted)).await;
                let is_deleted = deleted?.is_some();
                found?.filter(|_| !is_deleted)
            }
            PinnedVersion::Snapshot(id) => {
                // All that are listed are kept.
                self.old_history(Some(*id)).await?;
                return Ok(self.listed().contains(id).then_some(*id));
            }
        };
        // The history may be longer than what is walked of it.
        if let Some(id) = found {
            self.record_listed(id);
        }
        Ok(found)
    }

    /// Records that a branch or tag leads to a snapshot.
    fn record_listed(&self, id: ObjectId) {
        let mut listed = self.listed();
        if listed.len() >= 2 * MAX_HISTORY {
            listed.clear();
        }
        listed.insert(id);
    }

    async fn old_ref(&self, kind: &str, name: &str) -> Result<Option<ObjectId>, StoreError> {
        let Ok(key) = StoreKey::parse(&format!("{REFS}{kind}.{name}/ref.json")) else { return Ok(None) };
        let Some(value) = self.inner.get(&key, ByteRange::Whole, None).await? else { return Ok(None) };
        let bytes = value.bytes(MAX_REF_BYTES).await?;
        let refused = || ReferenceError::Repository("the file of a branch or tag is not one");
        let file: RefFile = serde_json::from_slice(&bytes).map_err(|_invalid| refused())?;
        Ok(Some(ObjectId::parse(&file.snapshot).ok_or_else(refused)?))
    }

    /// The branches and tags of version 1.
    async fn old_refs(&self) -> Result<History, StoreError> {
        let (mut history, refs) = (History::default(), StorePrefix::parse(REFS));
        let Ok(refs) = refs else { return Ok(history) };
        let mut entries = self.inner.list_dir_after(&refs, "");
        let mut names = Vec::new();
        while let Some(entry) = entries.try_next().await? {
            let DirEntry::Prefix(prefix) = entry else { continue };
            let name = prefix.as_str().strip_prefix(REFS).and_then(|name| name.strip_suffix('/'));
            if let Some(version) = name.and_then(PinnedVersion::of_segment).filter(|_| names.len() < MAX_REFS)
            {
                names.push(version);
            }
        }
        for version in names {
            let Some(snapshot) = Box::pin(self.resolve_old(&version)).await? else { continue };
            match version {
                PinnedVersion::Branch(name) => history.branches.push(NamedSnapshot { name, snapshot }),
                PinnedVersion::Tag(name) => history.tags.push(NamedSnapshot { name, snapshot }),
                PinnedVersion::Snapshot(_) => {}
            }
        }
        Ok(history)
    }

    /// The history of version 1, as far as a snapshot if one is given: the files of all ancestors are read.
    async fn old_history(&self, wanted: Option<ObjectId>) -> Result<History, StoreError> {
        let mut history = self.old_refs().await?;
        let mut seen = HashSet::new();
        let mut next: Vec<ObjectId> =
            history.branches.iter().chain(&history.tags).map(|named| named.snapshot).collect();
        while let Some(id) = next.pop() {
            if seen.len() >= MAX_HISTORY || !seen.insert(id) {
                continue;
            }
            let Some(snapshot) = self.held.snapshot(id).await? else { continue };
            history.snapshots.push(SnapshotInfo {
                id,
                parent: snapshot.parent,
                time: snapshot.time,
                message: snapshot.message.clone(),
            });
            self.record_listed(id);
            if wanted == Some(id) {
                break;
            }
            next.extend(snapshot.parent);
        }
        Ok(history)
    }

    /// All branches, tags and snapshots.
    pub(super) async fn history(&self) -> Result<History, StoreError> {
        match self.repository().await? {
            None => self.old_history(None).await,
            Some(repository) => Ok(History {
                branches: repository.branches().to_vec(),
                tags: repository.tags().to_vec(),
                snapshots: repository.snapshots().to_vec(),
            }),
        }
    }

    /// What a version was when that was last found out, if it is held.
    pub(super) fn last(&self, version: &PinnedVersion) -> Option<Arc<RepositorySnapshot>> {
        let id = match self.repository.last() {
            Some(repository) => resolve_in(&repository, version),
            None => self.known(version),
        };
        self.held.held_snapshot(id?)
    }

    /// The snapshot of a version; `None` if there is no such version.
    pub(super) async fn snapshot(
        &self,
        version: &PinnedVersion,
    ) -> Result<Option<Arc<RepositorySnapshot>>, StoreError> {
        let Some(id) = self.resolve(version).await? else { return Ok(None) };
        match self.held.snapshot(id).await? {
            Some(snapshot) => Ok(Some(snapshot)),
            None => Err(BrokenReference::Missing.of(&format!("snapshots/{id}")).into()),
        }
    }
}

fn resolve_in(repository: &Repository, version: &PinnedVersion) -> Option<ObjectId> {
    match version {
        PinnedVersion::Branch(name) => repository.branch(name),
        PinnedVersion::Tag(name) => repository.tag(name),
        PinnedVersion::Snapshot(id) => repository.snapshot(id).map(|snapshot| snapshot.id),
    }
}

//! [`Source`]: which snapshot a version is.
//!
//! In version 2 of the format, one file lists them all: it is asked for its version, and read when that has changed. In
//! version 1, each branch and each tag has a file (`ref_files`). A snapshot is served while the repository lists it: in
//! version 1, while a branch or a tag leads to it. What is fixed (a tag, a snapshot) may be deleted, but not changed, so it is
//! asked for again once in [`FIXED_FOR`], and served on where the backend fails then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::join;
use tokio::time::timeout;

use super::held::HeldFiles;
use super::history::History;
use super::id::ObjectId;
use super::ref_files::RefFiles;
use super::repository::Repository;
use super::snapshot::RepositorySnapshot;
use super::version::PinnedVersion;
use crate::cpu::ComputePool;
use crate::key::{KeyError, StoreKey};
use crate::store::container::{ContainerBudget, IndexCache};
use crate::store::references::load::parsed;
use crate::store::references::{BrokenReference, ReferenceError};
use crate::store::{SharedStore, StoreError, ValueInfo, is_unanswered};

/// The file that lists everything, in version 2.
const REPOSITORY: &str = "repo";
/// How long a tag or a snapshot is taken to be there without a request.
const FIXED_FOR: Duration = Duration::from_mins(1);
/// How long a request waits to find out whether it still is.
const SLOW: Duration = Duration::from_secs(1);
/// How long none waits after that was in vain.
const RETRY: Duration = Duration::from_secs(10);

/// Where the versions of a repository are read.
#[derive(Debug)]
pub(super) struct Source {
    inner: SharedStore,
    file: StoreKey,
    pub(super) cpu: ComputePool,
    budget: ContainerBudget,
    pub(super) held: HeldFiles,
    repository: IndexCache<Repository, ReferenceError>,
    /// Whether there was no `repo`.
    is_old: AtomicBool,
    refs: RefFiles,
    /// For how long what is fixed is not asked for.
    fixed_for: Duration,
    times: Mutex<Times>,
}

/// When the repository was asked for.
#[derive(Debug, Default)]
struct Times {
    /// When the last request for `repo` was sent that had a response.
    asked: Option<Instant>,
    /// Until when what is fixed is not asked for, after a failure.
    waits_until: Option<Instant>,
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
            refs: RefFiles::new(Arc::clone(&inner), budget.clone()),
            fixed_for: FIXED_FOR,
            times: Mutex::default(),
            inner,
            cpu,
            budget,
        })
    }

    /// Evicts what was read of files, and which snapshots were found in them.
    pub(super) fn purge(&self) {
        self.held.purge();
        self.refs.purge();
    }

    /// The same, where what is fixed is asked for again after another time.
    #[cfg(test)]
    pub(super) fn with_fixed_for(self, fixed_for: Duration) -> Self {
        Self { fixed_for, ..self }
    }

    /// The same, where the parents of snapshots are read again after another time.
    #[cfg(test)]
    pub(super) fn with_parents_for(self, parents_for: Duration) -> Self {
        Self { refs: self.refs.with_parents_for(parents_for), ..self }
    }

    /// The same, where what is refused is read again after another time.
    #[cfg(test)]
    pub(super) fn with_refused_for(self, refused_for: Duration) -> Self {
        Self { held: self.held.with_refused_for(refused_for), ..self }
    }

    /// No code panics while it holds the lock.
    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
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
        let asked = Instant::now();
        let found = match self.repository.current(file, load).await {
            Ok(repository) => Some(repository),
            Err(StoreError::References(ReferenceError::NoDocument)) => None,
            Err(error) => return Err(error),
        };
        self.times().asked = Some(asked);
        Ok(found)
    }

    /// The snapshot that a version is; `None` if there is no such version.
    ///
    /// # Errors
    /// [`ReferenceError::NoRepository`], if there is nothing at all.
    pub(super) async fn resolve(&self, version: &PinnedVersion) -> Result<Option<ObjectId>, StoreError> {
        let Some((known, asked)) = self.known(version) else { return self.find_out(version).await };
        let waits = self.times().waits_until.is_some_and(|until| Instant::now() < until);
        if asked.elapsed() < self.fixed_for || waits {
            return Ok(Some(known));
        }
        match timeout(SLOW, self.find_out(version)).await {
            Ok(Err(error)) if !is_unanswered(&error) => Err(error),
            Ok(Ok(found)) => Ok(found),
            Ok(Err(_)) | Err(_) => {
                self.times().waits_until = Some(Instant::now() + RETRY);
                Ok(Some(known))
            }
        }
    }

    /// As [`Source::resolve`], by requests.
    async fn find_out(&self, version: &PinnedVersion) -> Result<Option<ObjectId>, StoreError> {
        let in_files = || self.refs.resolve(&self.held, version);
        let (repository, old) = if self.is_old.load(Ordering::Relaxed) {
            let (repository, old) = join(self.repository(), in_files()).await;
            (repository?, Some(old))
        } else {
            (self.repository().await?, None)
        };
        self.is_old.store(repository.is_none(), Ordering::Relaxed);
        let found = match (repository, old) {
            (Some(repository), _) => return Ok(resolve_in(&repository, version)),
            (None, Some(old)) => old?,
            (None, None) => in_files().await?,
        };
        // Clients take what is absent in a repository for fill values, or for a place where they can create something.
        if found.is_none() && !self.refs.exist().await? {
            return Err(ReferenceError::NoRepository(
                "there is no Icechunk repository: it has neither the file `repo` nor branches below `refs/`"
                    .into(),
            )
            .into());
        }
        Ok(found)
    }

    /// What a version that never changes was when that was last found out, and when that was.
    fn known(&self, version: &PinnedVersion) -> Option<(ObjectId, Instant)> {
        if !version.is_fixed() {
            return None;
        }
        match self.repository.last() {
            Some(repository) => resolve_in(&repository, version).zip(self.times().asked),
            None => self.refs.known(version),
        }
    }

    /// All branches, tags and snapshots.
    pub(super) async fn history(&self) -> Result<History, StoreError> {
        match self.repository().await? {
            None => self.refs.history(&self.held).await,
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
            None => self.known(version).map(|(id, _)| id),
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

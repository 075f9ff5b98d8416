//! [`RefFiles`]: the branches and tags of a repository in version 1, each of which has a file, and what they lead to.
//!
//! A snapshot is listed if a branch or tag leads to it, so their histories are followed: all heads before any parent, and from
//! there on one parent after the other. Callers that come while a history is followed wait for that. The parent of a snapshot is
//! read again after [`PARENTS_FOR`]: where Icechunk expires snapshots, it writes the oldest that it keeps again, without
//! its parent. Branches and tags are listed again after [`LISTED_FOR`], so that requests for
//! snapshots that are not there cost one request each.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use futures::future::{join, try_join_all};
use futures::stream::{StreamExt, iter};
use serde::Deserialize;

use super::held::HeldFiles;
use super::history::History;
use super::id::ObjectId;
use super::repository::{NamedSnapshot, SnapshotInfo};
use super::version::PinnedVersion;
use crate::key::{StoreKey, StorePrefix};
use crate::store::container::{ContainerBudget, ContainerReservation};
use crate::store::references::ReferenceError;
use crate::store::{ByteRange, DirEntry, SharedStore, StoreError};

/// The directory of branches and tags.
const REFS: &str = "refs/";
/// The longest file of a branch or tag, in bytes.
const MAX_REF_BYTES: u64 = 4096;
/// The most snapshots whose parents are followed.
pub(super) const MAX_HISTORY: usize = if cfg!(test) { 64 } else { 4096 };
/// The most branches and tags.
const MAX_REFS: usize = 4096;
/// The most files that are read at one time.
const CONCURRENCY: usize = 8;
/// How long a list of the branches and tags is used to find a snapshot.
const LISTED_FOR: Duration = Duration::from_secs(10);
/// How long it is used which parents snapshots have, and how old the file may be that said so.
const PARENTS_FOR: Duration = Duration::from_mins(30);

/// What the file of a branch or tag has.
#[derive(Deserialize)]
struct RefFile {
    snapshot: String,
}

/// The branches and tags, and what is known of the snapshots that they lead to.
#[derive(Debug)]
pub(super) struct RefFiles {
    inner: SharedStore,
    budget: ContainerBudget,
    /// What tags and snapshots were found to be, and when that was asked.
    known: Mutex<HashMap<PinnedVersion, (ObjectId, Instant)>>,
    /// Locked while a history is followed.
    followed: tokio::sync::Mutex<Followed>,
    /// How often everything was evicted on request.
    purges: AtomicU64,
    parents_for: Duration,
}

/// What is known of histories.
#[derive(Debug, Default)]
struct Followed {
    parents: HashMap<ObjectId, SnapshotInfo>,
    /// When the first of them was read, and how often everything had been evicted by then.
    since: Option<Instant>,
    purges: u64,
    reserved: Option<ContainerReservation>,
    walk: Option<Walk>,
}

/// The way from all branches and tags to their first ancestors, as far as it was taken.
#[derive(Debug)]
struct Walk {
    /// When branches and tags were asked for.
    listed: Instant,
    next: VecDeque<ObjectId>,
    seen: HashSet<ObjectId>,
    /// Those of branches and tags.
    heads: HashSet<ObjectId>,
    /// Whether there is more than is followed.
    is_cut: bool,
}

/// What a repository lists a snapshot as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListedAs {
    /// No branch or tag leads to it.
    Nothing,
    /// It is that of a branch or tag. Without a file of it, the repository is broken.
    Head,
    /// A head was made from it.
    Ancestor,
}

/// All branches and tags that were listed.
struct Refs {
    named: History,
    is_cut: bool,
}

impl RefFiles {
    pub(super) fn new(inner: SharedStore, budget: ContainerBudget) -> Self {
        let (known, followed) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { inner, budget, known, followed, purges: AtomicU64::default(), parents_for: PARENTS_FOR }
    }

    /// The same, where the parents of snapshots are read again after another time.
    #[cfg(test)]
    pub(super) fn with_parents_for(self, parents_for: Duration) -> Self {
        Self { parents_for, ..self }
    }

    /// Evicts everything.
    pub(super) fn purge(&self) {
        self.purges.fetch_add(1, Ordering::Relaxed);
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PinnedVersion, (ObjectId, Instant)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a tag or snapshot was found to be, and when that was asked.
    pub(super) fn known(&self, version: &PinnedVersion) -> Option<(ObjectId, Instant)> {
        self.lock().get(version).copied()
    }

    fn record(&self, version: PinnedVersion, id: ObjectId, asked: Instant) {
        let mut known = self.lock();
        if known.len() >= 2 * MAX_HISTORY {
            known.clear();
        }
        known.insert(version, (id, asked));
    }

    /// Whether there are any branches or tags.
    pub(super) async fn exist(&self) -> Result<bool, StoreError> {
        let Ok(refs) = StorePrefix::parse(REFS) else { return Ok(false) };
        match self.inner.list_dir_after(&refs, "").try_next().await {
            // It cannot be deleted.
            Err(StoreError::NotListable) => Ok(self.file("branch", "main").await?.is_some()),
            first => Ok(first?.is_some()),
        }
    }

    /// The snapshot that a version is now; `None` if there is no such version.
    pub(super) async fn resolve(
        &self,
        held: &HeldFiles,
        version: &PinnedVersion,
    ) -> Result<Option<ObjectId>, StoreError> {
        let asked = Instant::now();
        let found = match version {
            PinnedVersion::Branch(name) => self.file("branch", name).await?,
            PinnedVersion::Tag(name) => self.tag(name).await?,
            PinnedVersion::Snapshot(id) => {
                let is_there = match self.listed_as(held, *id).await? {
                    ListedAs::Nothing => false,
                    ListedAs::Head => true,
                    // It may have expired since its descendants were read, and its file have been deleted.
                    ListedAs::Ancestor if self.known(version).is_some() => {
                        let is_there = held.stores_snapshot(*id).await?;
                        if !is_there {
                            held.remove_snapshot(*id);
                        }
                        is_there
                    }
                    // Its file is needed next anyway.
                    ListedAs::Ancestor => held.snapshot(*id).await?.is_some(),
                };
                is_there.then_some(*id)
            }
        };
        if version.is_fixed() {
            match found {
                Some(id) => self.record(version.clone(), id, asked),
                None => drop(self.lock().remove(version)),
            }
        }
        if let Some(id) = found {
            self.record(PinnedVersion::Snapshot(id), id, asked);
        }
        Ok(found)
    }

    async fn tag(&self, name: &str) -> Result<Option<ObjectId>, StoreError> {
        let deleted = StoreKey::parse(&format!("{REFS}tag.{name}/ref.json.deleted"));
        let Ok(deleted) = deleted else { return Ok(None) };
        let (found, deleted) = join(self.file("tag", name), self.inner.head(&deleted)).await;
        let is_deleted = deleted?.is_some();
        Ok(found?.filter(|_| !is_deleted))
    }

    async fn file(&self, kind: &str, name: &str) -> Result<Option<ObjectId>, StoreError> {
        let Ok(key) = StoreKey::parse(&format!("{REFS}{kind}.{name}/ref.json")) else { return Ok(None) };
        let Some(value) = self.inner.get(&key, ByteRange::Whole, None).await? else { return Ok(None) };
        let bytes = value.bytes(MAX_REF_BYTES).await?;
        let refused = || ReferenceError::Repository("the file of a branch or tag is not one");
        let file: RefFile = serde_json::from_slice(&bytes).map_err(|_invalid| refused())?;
        Ok(Some(ObjectId::parse(&file.snapshot).ok_or_else(refused)?))
    }

    /// All branches and tags.
    async fn refs(&self) -> Result<Refs, StoreError> {
        let mut refs = Refs { named: History::default(), is_cut: false };
        let Ok(directory) = StorePrefix::parse(REFS) else { return Ok(refs) };
        let mut entries = self.inner.list_dir_after(&directory, "");
        let mut names = Vec::new();
        while let Some(entry) = entries.try_next().await? {
            let DirEntry::Prefix(prefix) = entry else { continue };
            let name = prefix.as_str().strip_prefix(REFS).and_then(|name| name.strip_suffix('/'));
            let Some(version) = name.and_then(PinnedVersion::of_segment) else { continue };
            if names.len() >= MAX_REFS {
                refs.is_cut = true;
                break;
            }
            names.push(version);
        }
        let mut found = iter(names)
            .map(|version| async move {
                let snapshot = match &version {
                    PinnedVersion::Branch(name) => self.file("branch", name).await?,
                    PinnedVersion::Tag(name) => self.tag(name).await?,
                    PinnedVersion::Snapshot(_) => None,
                };
                Ok::<_, StoreError>((version, snapshot))
            })
            .buffered(CONCURRENCY);
        while let Some((version, snapshot)) = found.try_next().await? {
            let Some(snapshot) = snapshot else { continue };
            match version {
                PinnedVersion::Branch(name) => refs.named.branches.push(NamedSnapshot { name, snapshot }),
                PinnedVersion::Tag(name) => refs.named.tags.push(NamedSnapshot { name, snapshot }),
                PinnedVersion::Snapshot(_) => {}
            }
        }
        drop(found);
        Ok(refs)
    }

    /// Whether a branch or tag leads to a snapshot.
    async fn listed_as(&self, held: &HeldFiles, id: ObjectId) -> Result<ListedAs, StoreError> {
        let followed = &mut *self.followed.lock().await;
        let purges = self.purges.load(Ordering::Relaxed);
        let is_recent = |walk: &Walk| walk.listed.elapsed() < LISTED_FOR && followed.purges == purges;
        if !followed.walk.as_ref().is_some_and(is_recent) {
            let listed = Instant::now();
            match self.refs().await {
                Ok(refs) => followed.begin(Walk::new(&refs, listed), self.parents_for, purges),
                Err(StoreError::NotListable) => return self.listed_as_without_list(held, id).await,
                Err(error) => return Err(error),
            }
        }
        let Some(walk) = &mut followed.walk else { return Ok(ListedAs::Nothing) };
        walk.advance(&followed.parents);
        if let found @ (ListedAs::Head | ListedAs::Ancestor) = walk.listed_as(id) {
            return Ok(found);
        }
        let is_complete = walk.next.is_empty() && !walk.is_cut;
        // Most that are asked for in vain do not exist at all.
        if is_complete || !held.has_snapshot_file(id).await? {
            return Ok(ListedAs::Nothing);
        }
        self.follow(held, followed, Some(id)).await?;
        let Some(walk) = &followed.walk else { return Ok(ListedAs::Nothing) };
        match walk.listed_as(id) {
            ListedAs::Nothing if walk.is_cut => Err(ReferenceError::Repository(
                "more than 4096 snapshots, branches or tags of it would have to be read to find this one: name a branch or a tag",
            )
            .into()),
            found => Ok(found),
        }
    }

    /// As [`RefFiles::listed_as`], at a backend that cannot list: of a snapshot that exists, that is known only if a branch or a
    /// tag was asked for that leads to it.
    async fn listed_as_without_list(&self, held: &HeldFiles, id: ObjectId) -> Result<ListedAs, StoreError> {
        if self.known(&PinnedVersion::Snapshot(id)).is_some() {
            return Ok(ListedAs::Ancestor);
        }
        if !held.has_snapshot_file(id).await? {
            return Ok(ListedAs::Nothing);
        }
        let reason = "its version 1 and its backend cannot list branches and tags, so only snapshots that one was asked for \
             lead to are served: name a branch or a tag";
        Err(ReferenceError::Repository(reason).into())
    }

    /// Follows the histories as far as a snapshot if one is wanted.
    async fn follow(
        &self,
        held: &HeldFiles,
        followed: &mut Followed,
        wanted: Option<ObjectId>,
    ) -> Result<(), StoreError> {
        let Followed { parents, since, reserved, walk, purges: _ } = followed;
        let Some(walk) = walk else { return Ok(()) };
        since.get_or_insert_with(Instant::now);
        let reserved = reserved.get_or_insert_with(|| self.budget.empty());
        loop {
            walk.advance(parents);
            if walk.next.is_empty() || wanted.is_some_and(|id| walk.seen.contains(&id)) {
                return Ok(());
            }
            let ids: Vec<ObjectId> = walk.next.iter().copied().take(CONCURRENCY).collect();
            let found =
                try_join_all(ids.iter().map(|id| held.passing_snapshot(*id, self.parents_for))).await?;
            for (id, snapshot) in ids.into_iter().zip(found) {
                let Some(snapshot) = snapshot else {
                    walk.next.pop_front();
                    // It has expired, unless a branch or tag leads to it: then the repository is broken.
                    if !walk.heads.contains(&id) {
                        walk.seen.remove(&id);
                    }
                    continue;
                };
                let bytes = (size_of::<SnapshotInfo>() + snapshot.message.len()) as u64;
                while let Err(over) = reserved.grow(bytes) {
                    if !held.evict() {
                        return Err(ReferenceError::from(over).into());
                    }
                }
                // Only now: of a failure, the next request goes on from here.
                walk.next.pop_front();
                walk.add_parent(snapshot.parent);
                let (parent, time) = (snapshot.parent, snapshot.time);
                parents.insert(id, SnapshotInfo { id, parent, time, message: snapshot.message.clone() });
            }
        }
    }

    /// The branches and tags, and the snapshots that they lead to.
    pub(super) async fn history(&self, held: &HeldFiles) -> Result<History, StoreError> {
        let (listed, refs) = (Instant::now(), self.refs().await?);
        let followed = &mut *self.followed.lock().await;
        followed.begin(Walk::new(&refs, listed), self.parents_for, self.purges.load(Ordering::Relaxed));
        self.follow(held, followed, None).await?;
        let mut history = refs.named;
        if let Some(walk) = &followed.walk {
            history.snapshots.extend(walk.seen.iter().filter_map(|id| followed.parents.get(id).cloned()));
        }
        Ok(history)
    }
}

impl Followed {
    /// Begins to follow the histories of all branches and tags.
    fn begin(&mut self, walk: Walk, parents_for: Duration, purges: u64) {
        let is_old = self.since.is_some_and(|since| since.elapsed() >= parents_for);
        if is_old || self.purges != purges || self.parents.len() >= 2 * MAX_HISTORY {
            *self = Self { purges, ..Self::default() };
        }
        self.walk = Some(walk);
    }
}

impl Walk {
    fn new(refs: &Refs, listed: Instant) -> Self {
        let named = refs.named.branches.iter().chain(&refs.named.tags);
        let heads: HashSet<ObjectId> = named.map(|named| named.snapshot).collect();
        Self {
            listed,
            next: heads.iter().copied().collect(),
            seen: heads.clone(),
            heads,
            is_cut: refs.is_cut,
        }
    }

    fn listed_as(&self, id: ObjectId) -> ListedAs {
        match (self.seen.contains(&id), self.heads.contains(&id)) {
            (false, _) => ListedAs::Nothing,
            (true, true) => ListedAs::Head,
            (true, false) => ListedAs::Ancestor,
        }
    }

    fn add_parent(&mut self, parent: Option<ObjectId>) {
        let Some(id) = parent.filter(|id| !self.seen.contains(id)) else { return };
        if self.seen.len() >= MAX_HISTORY {
            self.is_cut = true;
            return;
        }
        self.seen.insert(id);
        self.next.push_back(id);
    }

    /// Follows what is known, until only snapshots are next whose parents are not.
    fn advance(&mut self, parents: &HashMap<ObjectId, SnapshotInfo>) {
        let mut unknown = VecDeque::new();
        while let Some(id) = self.next.pop_front() {
            match parents.get(&id) {
                Some(info) => self.add_parent(info.parent),
                None => unknown.push_back(id),
            }
        }
        self.next = unknown;
    }
}

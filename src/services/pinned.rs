//! [`Pins`]: mounts of hierarchies with versions, each at the snapshot that a request sees.
//!
//! A branch may get a new snapshot while a request reads documents and chunks. So the branch is resolved once, when the
//! request begins, and everything in it reads that snapshot. The mounts at the last snapshots are kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::http::{Extensions, StatusCode};

use super::mount::Mount;
use super::mounts::Mounts;
use crate::cache::BackendAnswer;
use crate::http::problem::Problem;
use crate::store::{ObjectId, PinnedVersion, StoreError};

/// The problem of a version that a mount does not have. Clients take 404 of a chunk for fill values, so what is no document and
/// no node is 410: a version may be deleted while an array of it is open.
pub(crate) fn no_such_version(mount: &Mount, version: &PinnedVersion, is_document: bool) -> Problem {
    let detail = format!(
        "the repository has no version `@{version}`: `/v1/versions/{}` lists its branches, tags and snapshots",
        mount.name
    );
    let problem = if is_document {
        Problem::from_status(StatusCode::NOT_FOUND)
    } else {
        Problem::new(StatusCode::GONE, "no-such-version")
    };
    problem.detail(detail)
}

/// Whether a key of this name is a metadata document.
pub(crate) fn is_document(name: &str) -> bool {
    matches!(name, "zarr.json" | ".zarray" | ".zgroup" | ".zattrs" | ".zmetadata")
}

/// The most mounts at a snapshot, and the most resolved branches of a mount, that are kept.
const MAX_HELD: usize = 64;

/// A request extension: the mount of the request at one snapshot, in place of all mounts.
#[derive(Clone, Debug)]
pub(crate) struct PinnedMounts {
    pub(crate) mounts: Arc<Mounts>,
    snapshot: ObjectId,
}

impl PinnedMounts {
    /// The mounts that a request sees.
    pub(crate) fn of<'a>(extensions: &'a Extensions, mounts: &'a Mounts) -> &'a Mounts {
        extensions.get().map_or(mounts, |pinned: &Self| &pinned.mounts)
    }

    /// The snapshot.
    pub(crate) fn snapshot(&self) -> ObjectId {
        self.snapshot
    }
}

/// A branch of a mount, by the mount's name in caches.
type VersionName = (Arc<str>, PinnedVersion);

/// The mounts, of which the one of this name in caches is at a snapshot: with the version of that mount that was named, if any.
type HeldMounts = (Arc<str>, Option<PinnedVersion>, ObjectId, Arc<Mounts>);

/// A snapshot that a branch was at, and when that was asked.
type ResolvedVersion = (VersionName, ObjectId, Instant);

/// The mounts at the last snapshots, and which snapshots branches are at.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    /// The last one at the end.
    mounts: Mutex<Vec<HeldMounts>>,
    resolved: Arc<Mutex<Vec<ResolvedVersion>>>,
}

impl Pins {
    /// The snapshot that a version of a mount is, as fresh as the mount requires; `None` if there is no such version. While the
    /// backend fails or is slow, it is the last one, as far as the mount's freshness has `stale`.
    pub(crate) async fn resolve(
        &self,
        mount: &Arc<Mount>,
        version: &PinnedVersion,
    ) -> Result<Option<ObjectId>, StoreError> {
        // The store itself keeps what is fixed and how long it may rely on that. What it knows is no answer of the backend, and must not
        // take the place of branches here.
        if version.is_fixed() {
            let Some(answer) = mount.store.resolve_version(version) else { return Ok(None) };
            return answer.await;
        }
        let now = Instant::now();
        let name = (Arc::clone(&mount.cache_name), version.clone());
        let known = lock(&self.resolved).iter().find(|(known, _, _)| *known == name).cloned();
        if let Some((_, id, when)) = known
            && when >= mount.store.freshness_horizon(now)
            && when < now
        {
            self.keep(&name);
            return Ok(Some(id));
        }
        let request = resolved_by(Arc::clone(&self.resolved), Arc::clone(mount), name.clone());
        let Some(staleness) = &mount.staleness else { return request.await };
        let last = known.map(|(_, id, when)| (when, id));
        match staleness.ask(&mount.cache_name, last, request).await {
            BackendAnswer::Received(outcome) => outcome,
            BackendAnswer::Stale(id) => {
                self.keep(&name);
                Ok(Some(id))
            }
        }
    }

    /// Marks a branch as used last.
    fn keep(&self, name: &VersionName) {
        let mut resolved = lock(&self.resolved);
        if let Some(at) = resolved.iter().position(|(known, _, _)| known == name) {
            let used = resolved.remove(at);
            resolved.push(used);
        }
    }

    /// A mount with a version at a snapshot.
    pub(crate) fn mounts(
        &self,
        all: &Mounts,
        mount: &Mount,
        version: Option<&PinnedVersion>,
        snapshot: ObjectId,
    ) -> Option<PinnedMounts> {
        let mut held = lock(&self.mounts);
        let is_it = |(name, known, id, _): &HeldMounts| {
            *name == mount.cache_name && known.as_ref() == version && *id == snapshot
        };
        if let Some(at) = held.iter().position(is_it) {
            let found = held.remove(at);
            let mounts = Arc::clone(&found.3);
            held.push(found);
            return Some(PinnedMounts { mounts, snapshot });
        }
        let mounts = Arc::new(all.at_snapshot(&mount.name, version, snapshot)?);
        if held.len() >= MAX_HELD {
            held.remove(0);
        }
        held.push((Arc::clone(&mount.cache_name), version.cloned(), snapshot, Arc::clone(&mounts)));
        Some(PinnedMounts { mounts, snapshot })
    }
}

/// Asks the store which snapshot a branch is at, and keeps the answer.
async fn resolved_by(
    resolved: Arc<Mutex<Vec<ResolvedVersion>>>,
    mount: Arc<Mount>,
    name: VersionName,
) -> Result<Option<ObjectId>, StoreError> {
    let asked = Instant::now();
    let Some(answer) = mount.store.resolve_version(&name.1) else { return Ok(None) };
    let found = answer.await?;
    let mut resolved = lock(&resolved);
    resolved.retain(|(known, _, _)| *known != name);
    let Some(id) = found else { return Ok(None) };
    let of_mount = |((mount, _), _, _): &ResolvedVersion| *mount == name.0;
    if resolved.iter().filter(|known| of_mount(known)).count() >= MAX_HELD
        && let Some(oldest) = resolved.iter().position(of_mount)
    {
        resolved.remove(oldest);
    }
    resolved.push((name, id, asked));
    Ok(Some(id))
}

/// No code panics while it holds such a lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

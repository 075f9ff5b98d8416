//! [`IcechunkStore`]: the verbs of the store interface over a repository.

use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::{BoxFuture, join};
use futures::stream::{BoxStream, StreamExt, TryStreamExt, once};

use super::ObjectId;
use super::found::{self, Places};
use super::list::Listed;
use super::reader::RepositoryReader;
use super::repository_versions::RepositoryVersions;
use super::snapshot::RepositorySnapshot;
use super::source::Source;
use super::version::{PinnedVersion, split};
use crate::cpu::ComputePool;
use crate::key::{KeyError, StoreKey, StorePrefix};
use crate::store::container::ContainerBudget;
use crate::store::references::ReferenceError;
use crate::store::references::allowed::AllowList;
use crate::store::{
    BackendState, ByteRange, Capabilities, DirEntries, ListEntry, SharedStore, Shortcuts, Store, StoreError,
    StoreKind, Value, ValueInfo, Version,
};

/// A read-only store over a repository. Clones share what is read of it.
#[derive(Clone, Debug)]
pub struct IcechunkStore {
    reader: RepositoryReader,
    /// The version whose keys are those without a version.
    version: PinnedVersion,
}

/// A key or prefix, without its version.
struct Pinned<'a> {
    version: PinnedVersion,
    /// The text of the version in the key, with a slash, or nothing.
    pin: &'a str,
    rest: &'a str,
}

impl IcechunkStore {
    /// A store over the repository in `inner`.
    ///
    /// # Errors
    /// None: the keys of a repository's files are keys.
    pub(in crate::store) fn new(
        inner: SharedStore,
        allowed: AllowList,
        version: PinnedVersion,
        cpu: ComputePool,
        budget: ContainerBudget,
    ) -> Result<Self, KeyError> {
        let source = Source::new(Arc::clone(&inner), cpu, budget.clone())?;
        let reader = RepositoryReader::new(source, Places { inner, allowed }, budget);
        Ok(Self { reader, version })
    }

    /// The version and the rest of a key or prefix; `None` if its first segment is no version but has the mark of one.
    fn pinned<'a>(&self, text: &'a str) -> Option<Pinned<'a>> {
        match split(text) {
            None => Some(Pinned { version: self.version.clone(), pin: "", rest: text }),
            Some((version, pin, rest)) => Some(Pinned { version: version.ok()?, pin, rest }),
        }
    }

    /// The snapshot of a key's version; `None` if there is no such version.
    ///
    /// # Errors
    /// [`ReferenceError::NoRepository`], if it is the mount's version that is not there.
    async fn snapshot(&self, pinned: &Pinned<'_>) -> Result<Option<Arc<RepositorySnapshot>>, StoreError> {
        let found = self.reader.source().snapshot(&pinned.version).await?;
        if found.is_none() && pinned.pin.is_empty() {
            return Err(missing(&pinned.version).into());
        }
        Ok(found)
    }

    async fn read(&self, pinned: &Pinned<'_>, range: ByteRange) -> Result<Option<Value>, StoreError> {
        let Some(known) = self.reader.source().last(&pinned.version) else {
            return match self.snapshot(pinned).await? {
                None => Ok(None),
                Some(snapshot) => self.reader.read_in(&snapshot, pinned.rest, range).await,
            };
        };
        // Whether the version is still this snapshot is found out while the value is read.
        let (snapshot, value) =
            join(self.snapshot(pinned), self.reader.read_in(&known, pinned.rest, range)).await;
        match snapshot? {
            None => Ok(None),
            Some(snapshot) if snapshot.id == known.id => value,
            Some(snapshot) => self.reader.read_in(&snapshot, pinned.rest, range).await,
        }
    }

    /// What a listing below a prefix lists: the snapshot, and the prefix without its version.
    async fn listed(&self, prefix: &str) -> Result<Option<(Listed, String)>, StoreError> {
        let Some(pinned) = self.pinned(prefix) else { return Ok(None) };
        let Some(snapshot) = self.snapshot(&pinned).await? else { return Ok(None) };
        let listed = Listed { reader: self.reader.clone(), snapshot, pin: pinned.pin.into() };
        Ok(Some((listed, pinned.rest.to_owned())))
    }
}

/// The error for a version of the mount that is not there.
fn missing(version: &PinnedVersion) -> ReferenceError {
    let (kind, name) = match version {
        PinnedVersion::Branch(name) => ("branch", name.to_string()),
        PinnedVersion::Tag(name) => ("tag", name.to_string()),
        PinnedVersion::Snapshot(id) => ("snapshot", id.to_string()),
    };
    let text =
        format!("the Icechunk repository has no {kind} `{name}`, which the mount serves: see its `ref`");
    ReferenceError::NoRepository(text.into())
}

/// A text to list after, without the version that comes before it.
fn after_pin(after: &str, pin: &str) -> Option<String> {
    match after.strip_prefix(pin) {
        Some(rest) => Some(rest.to_owned()),
        // All keys come after it, or none.
        None => (after < pin).then(String::new),
    }
}

#[async_trait]
impl Store for IcechunkStore {
    fn kind(&self) -> StoreKind {
        StoreKind::ICECHUNK
    }

    fn is_replaced(&self) -> bool {
        let Places { inner, allowed } = self.reader.places();
        inner.is_replaced() || allowed.stores().any(|store| store.is_replaced())
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        let Some(pinned) = self.pinned(key.as_str()) else { return Ok(None) };
        match self.snapshot(&pinned).await? {
            None => Ok(None),
            Some(snapshot) => self.reader.info_in(&snapshot, pinned.rest).await,
        }
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        let Some(pinned) = self.pinned(key.as_str()) else { return Ok(None) };
        let value = self.read(&pinned, range).await?;
        if let (Some(version), Some(value)) = (if_match, &value)
            && !version.matches(&value.info.version)
        {
            return Err(StoreError::VersionChanged);
        }
        Ok(value.map(|value| value.with_requested_version(if_match)))
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        let (store, prefix, after) = (self.clone(), prefix.clone(), after.to_owned());
        let entries = async move {
            let found = store.listed(prefix.as_str()).await?;
            let Some((listed, prefix)) = found else { return Ok(futures::stream::empty().boxed()) };
            let Some(after) = after_pin(&after, &listed.pin) else {
                return Ok(futures::stream::empty().boxed());
            };
            Ok::<_, StoreError>(listed.directly_in(prefix, after).await?.boxed())
        };
        once(entries).try_flatten().boxed()
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        let (store, prefix) = (self.clone(), prefix.clone());
        let after = after.map(|after| after.as_str().to_owned()).unwrap_or_default();
        let entries = async move {
            let found = store.listed(prefix.as_str()).await?;
            let Some((listed, prefix)) = found else { return Ok(futures::stream::empty().boxed()) };
            let Some(after) = after_pin(&after, &listed.pin) else {
                return Ok(futures::stream::empty().boxed());
            };
            Ok::<_, StoreError>(listed.below(prefix, after).boxed())
        };
        once(entries).try_flatten().boxed()
    }

    /// Finds out what the mount's version is, and reads the snapshot unless it is held.
    async fn check(&self) -> Result<(), StoreError> {
        let pinned = Pinned { version: self.version.clone(), pin: "", rest: "" };
        self.snapshot(&pinned).await.map(drop)
    }
}

impl Shortcuts for IcechunkStore {
    fn capabilities(&self) -> Capabilities {
        let Places { inner, allowed } = self.reader.places();
        allowed.capabilities(inner)
    }

    fn backend(&self) -> Option<BackendState> {
        self.reader.places().inner.backend()
    }

    /// What a tag or snapshot has never changes.
    fn validate_cached(&self, key: &StoreKey, version: Option<&Version>) -> bool {
        let is_pinned = self.pinned(key.as_str()).is_some_and(|pinned| pinned.version.is_fixed());
        is_pinned && version.is_some_and(found::is_fixed)
    }

    fn is_closed(&self) -> bool {
        self.reader.places().allowed.stores().next().is_none()
    }

    fn purge_held(&self) {
        self.reader.source().purge();
    }

    fn served_version(&self) -> Option<PinnedVersion> {
        Some(self.version.clone())
    }

    fn resolve_version<'a>(
        &'a self,
        version: &'a PinnedVersion,
    ) -> Option<BoxFuture<'a, Result<Option<ObjectId>, StoreError>>> {
        Some(self.reader.source().resolve(version).boxed())
    }

    fn versions(&self) -> Option<BoxFuture<'_, Result<RepositoryVersions, StoreError>>> {
        let listed = async move {
            let history = self.reader.source().history().await?;
            let mut snapshots = history.snapshots;
            snapshots.sort_unstable_by_key(|snapshot| std::cmp::Reverse((snapshot.time, snapshot.id)));
            let served = self.version.clone();
            Ok(RepositoryVersions { served, branches: history.branches, tags: history.tags, snapshots })
        };
        Some(listed.boxed())
    }
}

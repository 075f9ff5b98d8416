//! [`Repository`]: the branches, tags and snapshots that the file `repo` of version 2 lists.

use std::collections::HashSet;

use bytes::Bytes;

use super::file::{self, FileKind};
use super::flat::{FlatTable, Malformed, Vector};
use super::id::ObjectId;
use crate::store::container::{ContainerBudget, ContainerReservation};
use crate::store::references::ReferenceError;

/// The places of the fields of a repository.
mod repo {
    pub(super) const VERSION: usize = 0;
    pub(super) const TAGS: usize = 1;
    pub(super) const BRANCHES: usize = 2;
    pub(super) const SNAPSHOTS: usize = 4;
    pub(super) const STATUS: usize = 5;
}

/// The places of the fields of a snapshot in it.
mod info {
    pub(super) const ID: usize = 0;
    pub(super) const PARENT: usize = 1;
    pub(super) const TIME: usize = 2;
    pub(super) const MESSAGE: usize = 3;
}

/// The value of a repository's status that means that it must not be read.
const OFFLINE: u8 = 2;

/// A branch or tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSnapshot {
    /// Its name.
    pub name: Box<str>,
    /// The snapshot that it leads to.
    pub snapshot: ObjectId,
}

/// A snapshot as a repository describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its id.
    pub id: ObjectId,
    /// The one that it was made from.
    pub parent: Option<ObjectId>,
    /// When it was committed, in microseconds since 1970.
    pub time: u64,
    /// The text of its author.
    pub message: Box<str>,
}

/// What a repository lists.
#[derive(Debug)]
pub(super) struct Repository {
    branches: Vec<NamedSnapshot>,
    tags: Vec<NamedSnapshot>,
    /// Sorted by id.
    snapshots: Vec<SnapshotInfo>,
    /// Released with it.
    _reserved: ContainerReservation,
}

impl Repository {
    /// Parses the file `repo`.
    pub(super) fn parse(file: &Bytes, budget: &ContainerBudget) -> Result<Self, ReferenceError> {
        let opened = file::open(file, FileKind::Repository, budget)?;
        let root = FlatTable::root(&opened.bytes)?;
        let version = root.u8(repo::VERSION)?;
        if version != 2 {
            return Err(ReferenceError::SpecVersion { found: version });
        }
        let status = root.table(repo::STATUS)?.ok_or(Malformed)?;
        if status.u8(0)? == OFFLINE {
            return Err(ReferenceError::Repository("its status is `offline`"));
        }
        let vector = |field| Ok::<_, ReferenceError>(root.vector_of_tables(field)?.ok_or(Malformed)?);
        let (snapshots, branches, tags) =
            (vector(repo::SNAPSHOTS)?, vector(repo::BRANCHES)?, vector(repo::TAGS)?);
        // What is held of it is little more than what is there, unless texts are shared.
        let mut reserved = budget.empty();
        let items = snapshots.len().saturating_add(branches.len()).saturating_add(tags.len());
        let item = size_of::<SnapshotInfo>().max(size_of::<NamedSnapshot>()) as u64;
        let mut held = (items as u64).saturating_mul(item);
        reserved.resize(held)?;
        let mut hold = |text: &str| {
            held = held.saturating_add(text.len() as u64);
            reserved.resize(held)
        };
        let id_of = |at: usize| -> Result<ObjectId, ReferenceError> {
            Ok(ObjectId(snapshots.table(at)?.fixed(info::ID)?.ok_or(Malformed)?))
        };
        let mut described = Vec::with_capacity(snapshots.len());
        for table in snapshots.tables() {
            let table = table?;
            let message = table.text(info::MESSAGE)?.ok_or(Malformed)?;
            hold(message)?;
            let parent = match table.i32(info::PARENT)? {
                -1 => None,
                at => Some(id_of(usize::try_from(at).map_err(|_negative| Malformed)?)?),
            };
            let id = ObjectId(table.fixed(info::ID)?.ok_or(Malformed)?);
            described.push(SnapshotInfo {
                id,
                parent,
                time: table.u64(info::TIME)?,
                message: message.into(),
            });
        }
        let mut names = |refs: Vector<'_>| -> Result<Vec<NamedSnapshot>, ReferenceError> {
            let mut named = Vec::with_capacity(refs.len());
            for table in refs.tables() {
                let table = table?;
                let name = table.text(0)?.ok_or(Malformed)?;
                hold(name)?;
                let at = usize::try_from(table.u32(1)?).map_err(|_narrow| Malformed)?;
                named.push(NamedSnapshot { name: name.into(), snapshot: id_of(at)? });
            }
            named.sort_unstable_by(|one, two| one.name.cmp(&two.name));
            if named.iter().zip(named.iter().skip(1)).any(|(one, two)| one.name == two.name) {
                return Err(ReferenceError::Repository("two of its branches or tags have one name"));
            }
            Ok(named)
        };
        let (branches, tags) = (names(branches)?, names(tags)?);
        described.sort_unstable_by_key(|snapshot| snapshot.id);
        let repository = Self { branches, tags, snapshots: described, _reserved: reserved };
        repository.check()?;
        Ok(repository)
    }

    fn check(&self) -> Result<(), ReferenceError> {
        let twins = self.snapshots.iter().zip(self.snapshots.iter().skip(1));
        if twins.into_iter().any(|(one, two)| one.id == two.id) {
            return Err(ReferenceError::Repository("it lists a snapshot twice"));
        }
        // From each snapshot up to one that is known to have a first ancestor.
        let (mut ends, mut path) = (HashSet::new(), HashSet::new());
        for snapshot in &self.snapshots {
            path.clear();
            let mut next = Some(snapshot);
            while let Some(at) = next.filter(|at| !ends.contains(&at.id)) {
                if !path.insert(at.id) {
                    return Err(ReferenceError::Repository("a snapshot of it is its own ancestor"));
                }
                next = at.parent.as_ref().and_then(|parent| self.snapshot(parent));
            }
            ends.extend(path.iter().copied());
        }
        Ok(())
    }

    /// Its branches, sorted by name.
    pub(super) fn branches(&self) -> &[NamedSnapshot] {
        &self.branches
    }

    /// Its tags, sorted by name.
    pub(super) fn tags(&self) -> &[NamedSnapshot] {
        &self.tags
    }

    /// All its snapshots, sorted by id.
    pub(super) fn snapshots(&self) -> &[SnapshotInfo] {
        &self.snapshots
    }

    /// A snapshot that it lists.
    pub(super) fn snapshot(&self, id: &ObjectId) -> Option<&SnapshotInfo> {
        let at = self.snapshots.binary_search_by_key(id, |snapshot| snapshot.id).ok()?;
        self.snapshots.get(at)
    }

    /// The snapshot that a branch leads to.
    pub(super) fn branch(&self, name: &str) -> Option<ObjectId> {
        named(&self.branches, name)
    }

    /// The snapshot that a tag leads to.
    pub(super) fn tag(&self, name: &str) -> Option<ObjectId> {
        named(&self.tags, name)
    }
}

fn named(refs: &[NamedSnapshot], name: &str) -> Option<ObjectId> {
    let at = refs.binary_search_by(|known| (*known.name).cmp(name)).ok()?;
    refs.get(at).map(|known| known.snapshot)
}

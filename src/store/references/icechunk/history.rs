//! [`History`]: what a repository lists.

use super::repository::{NamedSnapshot, SnapshotInfo};

/// All branches, tags and snapshots.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) branches: Vec<NamedSnapshot>,
    pub(super) tags: Vec<NamedSnapshot>,
    pub(super) snapshots: Vec<SnapshotInfo>,
}

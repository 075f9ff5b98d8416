//! [`RepositoryVersions`]: all versions of a repository.

use super::repository::{NamedSnapshot, SnapshotInfo};
use super::version::PinnedVersion;

/// All versions of a repository.
#[derive(Debug)]
pub struct RepositoryVersions {
    /// What the mount serves without a version in the path.
    pub served: PinnedVersion,
    /// Its branches.
    pub branches: Vec<NamedSnapshot>,
    /// Its tags.
    pub tags: Vec<NamedSnapshot>,
    /// Its snapshots, the last one first.
    pub snapshots: Vec<SnapshotInfo>,
}

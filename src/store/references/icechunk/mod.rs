//! Icechunk repositories, versions 1 and 2 of the format, as stores that are only read.
//!
//! A repository has snapshots of a hierarchy. `repository` has what the file `repo` of version 2 lists: branches, tags and
//! snapshots; of version 1, `ref_files` reads a file for each branch and tag. A snapshot (`snapshot`) has the documents of all
//! nodes, and for each array the manifests (`manifest`) that say where its chunks are: in the manifest itself, in a file of
//! the repository, or in another place, which the mount must allow. Snapshots, manifests and files of chunks never
//! change, so they are read once, and held within the budget of references. Of the three kinds of files, which `file` and
//! `flat` open, everything is checked as it is parsed.
//!
//! The keys of a store are those of the version that the mount names, and below `@branch.NAME/`, `@tag.NAME/` and
//! `@SNAPSHOT/` those of others.

mod check;
mod file;
mod flat;
mod found;
mod held;
mod history;
mod icechunk_store;
mod id;
mod list;
mod location;
mod manifest;
mod pinned_store;
mod reader;
mod ref_files;
mod repository;
mod repository_versions;
mod snapshot;
mod source;
mod version;

#[cfg(test)]
mod tests;

pub use check::check_icechunk;
pub use icechunk_store::IcechunkStore;
pub use id::ObjectId;
pub use manifest::ChunkReference;
pub use pinned_store::PinnedStore;
pub use repository::{NamedSnapshot, SnapshotInfo};
pub use repository_versions::RepositoryVersions;
pub use version::PinnedVersion;

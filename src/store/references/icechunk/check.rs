//! Checks of single files, for fuzzing.

use bytes::Bytes;

use super::file::{self, FileKind, HEAD_BYTES};
use super::flat::{FlatTable, Malformed};
use super::id::ObjectId;
use super::manifest::ChunkManifest;
use super::repository::Repository;
use super::snapshot::{KeysOf, RepositorySnapshot};
use crate::store::ContainerBudget;
use crate::store::references::ReferenceError;

/// Parses a file of a repository, of whatever kind it says it is, within a budget, and reads everything in it. Returns how much
/// there is.
///
/// # Errors
/// [`ReferenceError`].
#[doc(hidden)]
pub fn check_icechunk(file: &Bytes, budget: &ContainerBudget) -> Result<usize, ReferenceError> {
    let id_of = |kind| -> Result<ObjectId, ReferenceError> {
        let opened = file::open(file, kind, budget)?;
        Ok(ObjectId(FlatTable::root(&opened.bytes)?.fixed(0)?.ok_or(Malformed)?))
    };
    match file.get(HEAD_BYTES - 2) {
        Some(1) => {
            let snapshot = RepositorySnapshot::parse(file, id_of(FileKind::Snapshot)?, budget)?;
            let mut count = 0;
            while let Some(keys) = snapshot.keys_at(count) {
                let (KeysOf::Document(node) | KeysOf::Chunks(node)) = keys;
                snapshot.document(&node);
                if node.is_array {
                    let first = vec![0; node.rank()?];
                    for manifest in node.all_manifests() {
                        manifest?.has(&first)?;
                    }
                }
                count += 1;
            }
            Ok(count)
        }
        Some(2) => ChunkManifest::parse(file, id_of(FileKind::Manifest)?, budget)?.find_all(),
        _ => Ok(Repository::parse(file, budget)?.snapshots().len()),
    }
}

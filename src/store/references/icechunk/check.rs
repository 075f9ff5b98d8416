//! Checks of single files, for fuzzing.

use bytes::Bytes;

use super::ObjectId;
use super::file::HEAD_BYTES;
use super::manifest::Manifest;
use super::repository::Repository;
use super::snapshot::{KeysOf, Snapshot};
use crate::store::references::ReferenceError;
use crate::store::references::ReferencesBudget;

/// Parses a file of a repository, of whatever kind it says it is, within a budget, and reads everything in it.
///
/// # Errors
/// [`ReferenceError`].
#[doc(hidden)]
pub fn check_icechunk(
    file: &Bytes,
    id: ObjectId,
    budget: &ReferencesBudget,
) -> Result<usize, ReferenceError> {
    match file.get(HEAD_BYTES - 2) {
        Some(1) => {
            let snapshot = Snapshot::parse(file, id, budget)?;
            let mut count = 0;
            while let Some(keys) = snapshot.keys_at(count) {
                let (KeysOf::Document(node) | KeysOf::Chunks(node)) = keys;
                snapshot.document(&node);
                for manifest in node.all_manifests() {
                    manifest?.has(&vec![0; node.rank()?])?;
                }
                count += 1;
            }
            Ok(count)
        }
        Some(2) => Manifest::parse(file, id, budget)?.find_all(),
        _ => Ok(Repository::parse(file, budget)?.snapshots().len()),
    }
}

//! The paths directly below a group that may be those of nodes, from a listing.

use futures::stream::TryStreamExt;

use crate::key::NodePath;
use crate::store::{DirEntries, DirEntry, StoreError};

/// The next paths in a listing, at most this many; fewer only at its end. Without names that v3 reserves, if the nodes are of v3.
pub(super) async fn next_candidates(
    listing: &mut DirEntries,
    is_v3: bool,
    most: usize,
) -> Result<Vec<NodePath>, StoreError> {
    let mut candidates = Vec::new();
    while candidates.len() < most
        && let Some(entry) = listing.try_next().await?
    {
        // Many entries may be ready at once; let other tasks run.
        tokio::task::consume_budget().await;
        if let DirEntry::Prefix(prefix) = entry
            && let Ok(path) = NodePath::parse(prefix.as_str())
            && !(is_v3 && path.is_reserved_in_v3())
        {
            candidates.push(path);
        }
    }
    Ok(candidates)
}

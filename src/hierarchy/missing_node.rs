//! Nodes of the drafts of Zarr v3: their documents stood apart from their chunks, below `meta/root`.
//!
//! They are looked for only where there is no node, so that the answer is "a draft" rather than "nothing". A
//! hierarchy that begins below the root of the store is known by its `zarr.json`, which says what it is.

use super::{Hierarchy, HierarchyError};
use crate::key::{NodePath, StoreKey};
use crate::metadata::draft;

impl Hierarchy {
    /// Why there is no node at this path: because nothing is there, or because what is there is a draft's.
    pub async fn missing_node_error(&self, path: NodePath) -> HierarchyError {
        let (slash, below) = if path.as_str().is_empty() { ("", "") } else { ("/", path.as_str()) };
        let keys =
            ["array", "group"].map(|kind| StoreKey::parse(&format!("meta/root{slash}{below}.{kind}.json")));
        for key in keys.into_iter().flatten() {
            // That there is no node, the store has said: a failure here changes nothing about it.
            if let Ok(Some(_)) = self.store.head(&key).await {
                return HierarchyError::Metadata { key, source: draft::unsupported() };
            }
        }
        HierarchyError::NoSuchNode { path }
    }
}

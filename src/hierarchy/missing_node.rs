//! The error for a missing node, which reports documents of drafts of Zarr v3.
//!
//! Drafts kept documents apart from chunks, below `meta/root`. They are requested only if there is no node, so that the
//! error can name the draft. A draft hierarchy below the root of the store is recognised by its `zarr.json`.

use super::{Hierarchy, HierarchyError};
use crate::key::{NodePath, StoreKey};
use crate::metadata::draft;

impl Hierarchy {
    /// The error for a path without a node: unsupported if a document of a draft is stored for it, else not found.
    pub async fn missing_node_error(&self, path: NodePath) -> HierarchyError {
        let (slash, below) = if path.as_str().is_empty() { ("", "") } else { ("/", path.as_str()) };
        let keys =
            ["array", "group"].map(|kind| StoreKey::parse(&format!("meta/root{slash}{below}.{kind}.json")));
        for key in keys.into_iter().flatten() {
            // The store has already confirmed that there is no node, so a failure here does not matter.
            if let Ok(Some(_)) = self.store.head(&key).await {
                return HierarchyError::Metadata { key, source: draft::unsupported() };
            }
        }
        HierarchyError::NoSuchNode { path }
    }
}

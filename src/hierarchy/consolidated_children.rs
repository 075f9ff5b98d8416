//! The children of a group according to stored consolidated metadata.
//!
//! It replaces listings where the store cannot list, and saves a request per child where it can. It may be stale or hostile:
//! an invalid document counts as absent, and a node is only ever opened by its own documents.

use super::documents::{ZARR_JSON, document_key};
use super::{Hierarchy, HierarchyError};
use crate::key::NodePath;
use crate::metadata::{
    ConsolidatedChildren, GroupMetadata, MetadataError, MetadataLimits, ZarrFormat, inline_children,
    zmetadata_children,
};
use crate::store::{ByteRange, StoreError};

/// The key of consolidated metadata in v2, relative to its group.
pub(super) const ZMETADATA: &str = ".zmetadata";

impl Hierarchy {
    /// The first `limit` children of a group in its own consolidated metadata.
    pub(super) async fn own_consolidated_children(
        &self,
        path: &NodePath,
        group: &GroupMetadata,
        limit: usize,
    ) -> Result<Option<ConsolidatedChildren>, HierarchyError> {
        if group.zarr_format == ZarrFormat::V3 && !group.is_consolidated {
            return Ok(None);
        }
        self.read_consolidated_children(path, group.zarr_format, NodePath::root(), limit).await
    }

    /// The first `limit` children of a group in the consolidated metadata of the nearest group above.
    pub(super) async fn inherited_consolidated_children(
        &self,
        path: &NodePath,
        format: ZarrFormat,
        limit: usize,
    ) -> Result<Option<ConsolidatedChildren>, HierarchyError> {
        let mut above = path.parent();
        while let Some(at) = above {
            let below = path.as_str().strip_prefix(at.prefix().as_str()).unwrap_or_default();
            let below = NodePath::parse(below)
                .map_err(|source| HierarchyError::Path { path: path.clone(), source })?;
            if let Some(found) = self.read_consolidated_children(&at, format, below, limit).await? {
                return Ok(Some(found));
            }
            above = at.parent();
        }
        Ok(None)
    }

    /// The children of the group `below`, which is relative to `at`, in the consolidated metadata of `at`.
    async fn read_consolidated_children(
        &self,
        at: &NodePath,
        format: ZarrFormat,
        below: NodePath,
        limit: usize,
    ) -> Result<Option<ConsolidatedChildren>, HierarchyError> {
        let (name, read): (_, ReadChildren) = match format {
            ZarrFormat::V1 => return Ok(None),
            ZarrFormat::V2 => (ZMETADATA, zmetadata_children),
            ZarrFormat::V3 => (ZARR_JSON, inline_children),
        };
        let key = document_key(at, name)?;
        let failed = |source| HierarchyError::Store { key: key.to_string(), source };
        let value = self.store.get(&key, ByteRange::Whole, None).await.map_err(failed)?;
        let Some(value) = value else { return Ok(None) };
        let _slot = self.acquire_document_slot(value.len()).await;
        let document = match value.bytes(self.limits.consolidated_bytes as u64).await {
            Ok(document) => document,
            Err(StoreError::ValueTooLarge { .. }) => return Ok(None),
            Err(source) => return Err(failed(source)),
        };
        let limits = self.limits;
        let bytes = document.len() as u64;
        let found = self.cpu.run_document(bytes, move || read(&document, &below, limit, &limits)).await?;
        Ok(found.unwrap_or_else(|error| {
            tracing::debug!(%key, %error, "ignoring invalid consolidated metadata");
            None
        }))
    }
}

/// A parser of consolidated metadata, which returns the children of a group.
type ReadChildren =
    fn(&[u8], &NodePath, usize, &MetadataLimits) -> Result<Option<ConsolidatedChildren>, MetadataError>;

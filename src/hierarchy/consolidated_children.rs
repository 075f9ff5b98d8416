//! Stored consolidated metadata: which nodes it says are below a group.
//!
//! It answers for stores that cannot list, and spares the others a look at each node. It may be stale or hostile:
//! what of it cannot be read counts as not there, and a node is only ever opened by its own documents.

use super::documents::{ZARR_JSON, document_key};
use super::{Hierarchy, HierarchyError};
use crate::key::NodePath;
use crate::metadata::{
    ConsolidatedChildren, GroupMetadata, MetadataError, MetadataLimits, ZarrFormat, inline_children,
    zmetadata_children,
};
use crate::store::{ByteRange, StoreError};

/// The document of v2 that holds copies of others.
pub(super) const ZMETADATA: &str = ".zmetadata";

impl Hierarchy {
    /// The first `most` nodes below a group, as its own consolidated metadata has them.
    pub(super) async fn copies(
        &self,
        path: &NodePath,
        group: &GroupMetadata,
        most: usize,
    ) -> Result<Option<ConsolidatedChildren>, HierarchyError> {
        if group.zarr_format == ZarrFormat::V3 && !group.is_consolidated {
            return Ok(None);
        }
        self.copies_at(path, group.zarr_format, NodePath::root(), most).await
    }

    /// The same as the nearest group above has them.
    pub(super) async fn copies_above(
        &self,
        path: &NodePath,
        format: ZarrFormat,
        most: usize,
    ) -> Result<Option<ConsolidatedChildren>, HierarchyError> {
        let mut above = path.parent();
        while let Some(at) = above {
            let below = path.as_str().strip_prefix(at.prefix().as_str()).unwrap_or_default();
            let below = NodePath::parse(below)
                .map_err(|source| HierarchyError::Path { path: path.clone(), source })?;
            if let Some(found) = self.copies_at(&at, format, below, most).await? {
                return Ok(Some(found));
            }
            above = at.parent();
        }
        Ok(None)
    }

    /// The nodes below `below`, as the document at `at` has them.
    async fn copies_at(
        &self,
        at: &NodePath,
        format: ZarrFormat,
        below: NodePath,
        most: usize,
    ) -> Result<Option<ConsolidatedChildren>, HierarchyError> {
        let (name, read): (_, ReadCopies) = match format {
            ZarrFormat::V1 => return Ok(None),
            ZarrFormat::V2 => (ZMETADATA, zmetadata_children),
            ZarrFormat::V3 => (ZARR_JSON, inline_children),
        };
        let key = document_key(at, name)?;
        let failed = |source| HierarchyError::Store { key: key.to_string(), source };
        let value = self.store.get(&key, ByteRange::Whole, None).await.map_err(failed)?;
        let Some(value) = value else { return Ok(None) };
        let _room = self.room_for(value.len()).await;
        let document = match value.bytes(self.limits.consolidated_bytes as u64).await {
            Ok(document) => document,
            Err(StoreError::ValueTooLarge { .. }) => return Ok(None),
            Err(source) => return Err(failed(source)),
        };
        let limits = self.limits;
        let bytes = document.len() as u64;
        let found = self.cpu.run_document(bytes, move || read(&document, &below, most, &limits)).await?;
        Ok(found.unwrap_or_else(|error| {
            tracing::debug!(%key, %error, "consolidated metadata is passed over");
            None
        }))
    }
}

/// Reads which nodes a document has copies of.
type ReadCopies =
    fn(&[u8], &NodePath, usize, &MetadataLimits) -> Result<Option<ConsolidatedChildren>, MetadataError>;

//! [`ArrayDocument`]: the main document of an array as it is stored now.

use std::sync::Arc;

use super::error::NodeWriteError;
use super::stored_document::StoredDocument;
use crate::array::OpenNode;
use crate::key::StoreKey;
use crate::metadata::{ArrayMetadata, ZarrFormat};
use crate::store::Version;

/// The main document of an array: `zarr.json`, or `.zarray`.
pub(in crate::write) struct ArrayDocument {
    pub(super) name: &'static str,
    pub(in crate::write) key: StoreKey,
    pub(super) stored: StoredDocument,
    pub(in crate::write) metadata: Arc<ArrayMetadata>,
}

impl ArrayDocument {
    /// The version that is stored.
    pub(super) fn version(&self) -> &Version {
        &self.stored.version
    }

    /// What is stored.
    pub(in crate::write) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stored.text).into_owned()
    }
}

/// Rejects nodes whose shape never changes.
pub(super) fn check_kind(opened: &OpenNode) -> Result<(), NodeWriteError> {
    if opened.dependent.is_some() {
        return Err(NodeWriteError::Unsupported("the array is declared by another array; change that one"));
    }
    if opened.node.zarr_format() == ZarrFormat::V1 {
        return Err(NodeWriteError::Unsupported("nodes of Zarr v1 are only read"));
    }
    Ok(())
}

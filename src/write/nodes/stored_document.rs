//! [`StoredDocument`]: a document as it is stored, and the keys and conditions of documents.

use bytes::Bytes;

use super::documents::{META, ZARR_JSON, ZARRAY, ZGROUP};
use super::error::NodeWriteError;
use crate::array::OpenNode;
use crate::codec::v2_codec;
use crate::hierarchy::HierarchyError;
use crate::key::{NodePath, StoreKey};
use crate::metadata::{ArrayMetadata, MetadataLimits, ZarrFormat, v2, v3};
use crate::store::{Reservation, Version, WriteCondition};

/// A stored document.
pub(super) struct StoredDocument {
    pub(super) text: Bytes,
    pub(super) version: Version,
    /// The memory for it, and for what is made of it.
    pub(super) _memory: Reservation,
}

/// Whether a version is one of those that are known. Where none is, any version will do.
pub(super) fn is_known(known: &[&Version], version: &Version) -> bool {
    known.is_empty() || known.iter().any(|known| known.matches(version))
}

/// The document that makes an array what it is, by the format.
pub(super) fn main_document(node: &OpenNode) -> &'static str {
    if node.node.zarr_format() == ZarrFormat::V3 { ZARR_JSON } else { ZARRAY }
}

/// Whether a node of a format is there because of a document of this name.
pub(super) fn makes_node(format: ZarrFormat, name: &str) -> bool {
    match format {
        ZarrFormat::V3 => name == ZARR_JSON,
        ZarrFormat::V2 => name == ZARRAY || name == ZGROUP,
        ZarrFormat::V1 => name == META,
    }
}

/// The metadata of the array that a document describes.
pub(super) fn array_of(
    name: &str,
    text: &[u8],
    limits: &MetadataLimits,
) -> Result<ArrayMetadata, NodeWriteError> {
    if name == ZARRAY {
        return v2::parse_array(text, None, v2_codec, limits).map_err(NodeWriteError::Document);
    }
    match v3::parse(text, limits).map_err(NodeWriteError::Document)? {
        v3::V3Node::Array(array) => Ok(array),
        v3::V3Node::Group(_) => Err(NodeWriteError::ConditionFailed),
    }
}

/// The condition that a document is still the one that was read.
pub(super) fn condition(
    key: &StoreKey,
    current: Option<&StoredDocument>,
) -> Result<WriteCondition, NodeWriteError> {
    let Some(current) = current else { return Ok(WriteCondition::IfAbsent) };
    let version = current.version.pin().ok_or_else(|| NodeWriteError::NoConditions { key: key.clone() })?;
    Ok(WriteCondition::IfVersion(version.clone()))
}

/// The paths above a node, from the root down.
pub(super) fn ancestors(path: &NodePath) -> impl Iterator<Item = NodePath> + use<> {
    let mut above: Vec<_> = std::iter::successors(path.parent(), NodePath::parent).collect();
    above.reverse();
    above.into_iter()
}

/// The key of a node's document.
pub(super) fn document_key(path: &NodePath, name: &str) -> Result<StoreKey, NodeWriteError> {
    let key = path.prefix().key(name);
    key.map_err(|source| HierarchyError::Path { path: path.clone(), source }.into())
}

//! [`Node`]: the parsed documents of a node, read at the versions at which they were located.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join;

use super::documents::{ATTRS, Documents, META, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, document_key};
use super::{FoundDocuments, Hierarchy, HierarchyError};
use crate::codec::v2_codec;
use crate::key::NodePath;
use crate::metadata::v3::V3Node;
use crate::metadata::{ArrayMetadata, GroupMetadata, MetadataError, MetadataLimits, ZarrFormat, v1, v2, v3};
use crate::store::{ByteRange, StoreError, Version};

/// Maximum attempts to read a node's documents at their located versions while a writer changes them.
pub(super) const MAX_ATTEMPTS: usize = 3;

/// A node of a hierarchy.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// An array.
    Array(Arc<ArrayMetadata>),
    /// A group.
    Group(Arc<GroupMetadata>),
}

impl Node {
    /// The Zarr format of its documents.
    #[must_use]
    pub fn zarr_format(&self) -> ZarrFormat {
        match self {
            Self::Array(array) => array.zarr_format,
            Self::Group(group) => group.zarr_format,
        }
    }
}

impl Hierarchy {
    /// The node at a path.
    ///
    /// # Errors
    /// [`HierarchyError::NoSuchNode`]; a document that cannot be read or is invalid.
    pub async fn open(&self, path: &NodePath) -> Result<Node, HierarchyError> {
        let found = self.locate_to_read(path).await?;
        self.load(path, &found).await
    }

    /// Reads and parses the documents of a node that was found, at the versions found or newer ones. Detects the separator of
    /// chunk keys if the document gives none.
    ///
    /// # Errors
    /// A document that cannot be read or is invalid; [`HierarchyError::NoSuchNode`] if it was erased.
    pub async fn load(&self, path: &NodePath, found: &FoundDocuments) -> Result<Node, HierarchyError> {
        match self.load_documents(path, found).await? {
            Node::Array(array) => self.detect_separator(path, array).await.map(Node::Array),
            group @ Node::Group(_) => Ok(group),
        }
    }

    /// Reads and parses the documents of a node that was found without detecting the separator.
    pub(super) async fn load_documents(
        &self,
        path: &NodePath,
        found: &FoundDocuments,
    ) -> Result<Node, HierarchyError> {
        let mut outcome = self.load_found(path, found).await;
        for _ in 1..MAX_ATTEMPTS {
            let Err(HierarchyError::Store { source: StoreError::VersionChanged, .. }) = outcome else {
                break;
            };
            outcome = self.load_found(path, &self.locate_to_read(path).await?).await;
        }
        outcome
    }

    async fn load_found(&self, path: &NodePath, found: &FoundDocuments) -> Result<Node, HierarchyError> {
        let FoundDocuments { located, texts: known } = found;
        let read = |name: &'static str, version: &Version| {
            let known = known.get(name, version);
            let version = version.clone();
            async move {
                match known {
                    Some(text) => Ok(text),
                    None => self.read_document(path, name, &version).await,
                }
            }
        };
        // A document, and the one of the attributes beside it. Boxed, because two reads would enlarge the future of one.
        let read_both =
            |name: &'static str, version: &Version, beside: &'static str, other: Option<&Version>| {
                let other = other.map(|version| read(beside, version));
                let other = async move {
                    match other {
                        Some(read) => read.await.map(Some),
                        None => Ok(None),
                    }
                };
                Box::pin(try_join(read(name, version), other))
            };
        let _slot = self.acquire_document_slot(located.bytes).await;
        let texts = match &located.documents {
            Documents::V3 { zarr_json } => RawDocuments::V3(read(ZARR_JSON, zarr_json).await?),
            // A dependent array has no document of its own; `dependent` reads the primary's.
            Documents::Dependent { .. } => return Err(HierarchyError::NoSuchNode { path: path.clone() }),
            Documents::V2Array { zarray, zattrs } => {
                let (zarray, zattrs) = read_both(ZARRAY, zarray, ZATTRS, zattrs.as_ref()).await?;
                RawDocuments::V2Array(zarray, zattrs)
            }
            Documents::V2Group { zgroup, zattrs } => {
                let (zgroup, zattrs) = read_both(ZGROUP, zgroup, ZATTRS, zattrs.as_ref()).await?;
                RawDocuments::V2Group(zgroup, zattrs)
            }
            Documents::V1Array { meta, attrs } => {
                match read_both(META, meta, ATTRS, attrs.as_ref()).await {
                    Ok((meta, attrs)) => RawDocuments::V1Array(meta, attrs),
                    // Too long for a document of Zarr: `meta` and `attrs` are unrelated files.
                    Err(HierarchyError::Metadata { source: MetadataError::TooLarge { .. }, .. }) => {
                        return Err(HierarchyError::NoSuchNode { path: path.clone() });
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        let limits = self.limits;
        let (name, parsed) = self.cpu.run_document(located.bytes, move || texts.parse(&limits)).await?;
        match parsed {
            Ok(Some(node)) => Ok(node),
            Ok(None) => Err(HierarchyError::NoSuchNode { path: path.clone() }),
            Err(source) => Err(HierarchyError::Metadata { key: document_key(path, name)?, source }),
        }
    }

    pub(super) async fn read_document(
        &self,
        path: &NodePath,
        name: &str,
        version: &Version,
    ) -> Result<Bytes, HierarchyError> {
        let key = document_key(path, name)?;
        let document = async {
            // The document was present when it was located, so an absence is a change.
            let value = self.store.get(&key, ByteRange::Whole, version.pin()).await?;
            let value =
                value.filter(|value| value.info.version == *version).ok_or(StoreError::VersionChanged)?;
            // Inline consolidated metadata does not count towards the document's own limit; its parser checks that.
            let limit = match name {
                ZARR_JSON => self.limits.document_bytes.max(self.limits.consolidated_bytes),
                _ => self.limits.document_bytes,
            };
            value.bytes(limit as u64).await
        };
        match document.await {
            Ok(document) => Ok(document),
            Err(StoreError::ValueTooLarge { size, limit }) => {
                Err(HierarchyError::Metadata { key, source: MetadataError::TooLarge { size, limit } })
            }
            Err(source) => Err(HierarchyError::Store { key: key.to_string(), source }),
        }
    }
}

/// The texts of a node's documents, by format.
enum RawDocuments {
    V3(Bytes),
    V2Array(Bytes, Option<Bytes>),
    V2Group(Bytes, Option<Bytes>),
    V1Array(Bytes, Option<Bytes>),
}

impl RawDocuments {
    /// The name of the main document, and the node; `None` if the documents are not Zarr metadata.
    fn parse(&self, limits: &MetadataLimits) -> (&'static str, Result<Option<Node>, MetadataError>) {
        let array = |array: ArrayMetadata| Some(Node::Array(Arc::new(array)));
        let group = |group: GroupMetadata| Some(Node::Group(Arc::new(group)));
        match self {
            Self::V3(zarr_json) => (
                ZARR_JSON,
                v3::parse(zarr_json, limits).map(|node| match node {
                    V3Node::Array(found) => array(found),
                    V3Node::Group(found) => group(found),
                }),
            ),
            Self::V2Array(zarray, zattrs) => {
                (ZARRAY, v2::parse_array(zarray, zattrs.as_deref(), v2_codec, limits).map(array))
            }
            Self::V2Group(zgroup, zattrs) => {
                (ZGROUP, v2::parse_group(zgroup, zattrs.as_deref(), limits).map(group))
            }
            Self::V1Array(meta, attrs) => {
                let found = v1::parse_array(meta, attrs.as_deref(), v2_codec, limits);
                (META, found.map(|found| found.and_then(array)))
            }
        }
    }
}

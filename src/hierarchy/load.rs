//! [`Node`]: what the documents of a node say together, read at the versions at which they were located.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join;

use super::documents::{ATTRS, Documents, Located, META, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, document_key};
use super::{Hierarchy, HierarchyError};
use crate::key::NodePath;
use crate::metadata::v3::V3Node;
use crate::metadata::{ArrayMetadata, GroupMetadata, MetadataError, MetadataLimits, ZarrFormat, v1, v2, v3};
use crate::store::{ByteRange, StoreError, Version};

/// Each document is read at the version it was located at; a writer in between makes us start again this often.
pub(super) const TRIES: usize = 3;

/// A node: what its documents say.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// An array.
    Array(Arc<ArrayMetadata>),
    /// A group.
    Group(Arc<GroupMetadata>),
}

impl Node {
    /// The version of its documents.
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
    /// [`HierarchyError::NoSuchNode`]; a document that cannot be read or used.
    pub async fn open(&self, path: &NodePath) -> Result<Node, HierarchyError> {
        let located = self.locate(path).await?;
        self.load(path, &located).await
    }

    /// Reads and parses the documents of a located node, at the versions it was located at or, if a writer was faster,
    /// at newer ones. What the documents leave open about the keys of chunks is settled.
    ///
    /// # Errors
    /// A document that cannot be read or used; [`HierarchyError::NoSuchNode`] if it went away.
    pub async fn load(&self, path: &NodePath, located: &Located) -> Result<Node, HierarchyError> {
        match self.load_documents(path, located).await? {
            Node::Array(array) => self.detect_separator(path, array).await.map(Node::Array),
            group @ Node::Group(_) => Ok(group),
        }
    }

    /// What the documents of a located node say, and no more.
    pub(super) async fn load_documents(
        &self,
        path: &NodePath,
        located: &Located,
    ) -> Result<Node, HierarchyError> {
        let mut located = located.clone();
        for _ in 1..TRIES {
            match self.load_at(path, &located).await {
                Err(HierarchyError::Store { source: StoreError::VersionChanged, .. }) => {
                    located = self.locate(path).await?;
                }
                outcome => return outcome,
            }
        }
        self.load_at(path, &located).await
    }

    async fn load_at(&self, path: &NodePath, located: &Located) -> Result<Node, HierarchyError> {
        let _room = self.room_for(located.bytes).await;
        let texts = match &located.documents {
            Documents::V3 { zarr_json } => Texts::V3(self.read(path, ZARR_JSON, zarr_json).await?),
            // What is not stored has no document of its own; `dependent` reads the primary's.
            Documents::Dependent { .. } => return Err(HierarchyError::NoSuchNode { path: path.clone() }),
            Documents::V2Array { zarray, zattrs } => Texts::V2Array(
                self.read(path, ZARRAY, zarray).await?,
                self.read_if_present(path, ZATTRS, zattrs.as_ref()).await?,
            ),
            Documents::V2Group { zgroup, zattrs } => Texts::V2Group(
                self.read(path, ZGROUP, zgroup).await?,
                self.read_if_present(path, ZATTRS, zattrs.as_ref()).await?,
            ),
            Documents::V1Array { meta, attrs } => {
                let texts =
                    try_join(self.read(path, META, meta), self.read_if_present(path, ATTRS, attrs.as_ref()));
                match texts.await {
                    Ok((meta, attrs)) => Texts::V1Array(meta, attrs),
                    // Too long for a document: these are somebody else's.
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

    async fn read_if_present(
        &self,
        path: &NodePath,
        name: &str,
        version: Option<&Version>,
    ) -> Result<Option<Bytes>, HierarchyError> {
        match version {
            Some(version) => self.read(path, name, version).await.map(Some),
            None => Ok(None),
        }
    }

    pub(super) async fn read(
        &self,
        path: &NodePath,
        name: &str,
        version: &Version,
    ) -> Result<Bytes, HierarchyError> {
        let key = document_key(path, name)?;
        let document = async {
            // Present a moment ago: an absence now is a change.
            let value = self.store.get(&key, ByteRange::Whole, version.pin()).await?;
            let value =
                value.filter(|value| value.info.version == *version).ok_or(StoreError::VersionChanged)?;
            // The copies that it may hold do not count as the document's own; its parser looks closer.
            let most = match name {
                ZARR_JSON => self.limits.document_bytes.max(self.limits.consolidated_bytes),
                _ => self.limits.document_bytes,
            };
            value.bytes(most as u64).await
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

/// The texts of a node's documents.
enum Texts {
    V3(Bytes),
    V2Array(Bytes, Option<Bytes>),
    V2Group(Bytes, Option<Bytes>),
    V1Array(Bytes, Option<Bytes>),
}

impl Texts {
    /// The name of the first document, and the node they describe; `None` if they are no documents of Zarr.
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
                (ZARRAY, v2::parse_array(zarray, zattrs.as_deref(), limits).map(array))
            }
            Self::V2Group(zgroup, zattrs) => {
                (ZGROUP, v2::parse_group(zgroup, zattrs.as_deref(), limits).map(group))
            }
            Self::V1Array(meta, attrs) => {
                let found = v1::parse_array(meta, attrs.as_deref(), limits);
                (META, found.map(|found| found.and_then(array)))
            }
        }
    }
}

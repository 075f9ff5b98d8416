//! Which documents stand under a path, at which versions, and what they say together.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::{try_join, try_join3};

use super::dependents::conditions;
use super::{Hierarchy, HierarchyError};
use crate::codec::v2_codec;
use crate::key::{NodePath, StoreKey};
use crate::metadata::v3::V3Node;
use crate::metadata::{ArrayMetadata, GroupMetadata, MetadataError, MetadataLimits, ZarrFormat, v1, v2, v3};
use crate::store::{ByteRange, StoreError, ValueInfo, Version};

pub(super) const ZARR_JSON: &str = "zarr.json";
pub(super) const ZARRAY: &str = ".zarray";
pub(super) const ZGROUP: &str = ".zgroup";
pub(super) const ZATTRS: &str = ".zattrs";
pub(super) const META: &str = "meta";
const ATTRS: &str = "attrs";

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

/// The documents of a node and their versions. Equal values of one path mean an unchanged node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Located {
    pub(super) documents: Documents,
    pub(super) bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Documents {
    V3 {
        zarr_json: Version,
    },
    V2Array {
        zarray: Version,
        zattrs: Option<Version>,
    },
    V2Group {
        zgroup: Version,
        zattrs: Option<Version>,
    },
    V1Array {
        meta: Version,
        attrs: Option<Version>,
    },
    /// Nothing is stored under the path itself: the array above declares it.
    Dependent {
        primary: NodePath,
        zarr_json: Version,
    },
}

impl Located {
    /// The versions of the documents, in a fixed order.
    pub fn versions(&self) -> impl Iterator<Item = Option<&Version>> {
        let (first, second) = match &self.documents {
            Documents::V3 { zarr_json } | Documents::Dependent { zarr_json, .. } => (zarr_json, None),
            Documents::V2Array { zarray: first, zattrs: second }
            | Documents::V2Group { zgroup: first, zattrs: second }
            | Documents::V1Array { meta: first, attrs: second } => (first, second.as_ref()),
        };
        [Some(first), second].into_iter()
    }

    /// Whether another look at unchanged documents is sure to find the same.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.versions().flatten().all(Version::is_settled)
    }

    /// Bytes of the documents together.
    #[must_use]
    pub fn document_bytes(&self) -> u64 {
        self.bytes
    }
}

impl Hierarchy {
    /// Which documents stand under the path. Reads none of them, so that a `meta` that is no document of Zarr v1 counts
    /// until it is read.
    ///
    /// # Errors
    /// [`HierarchyError::NoSuchNode`] if there is none; failures of the store.
    pub async fn locate(&self, path: &NodePath) -> Result<Located, HierarchyError> {
        if let Some(zarr_json) = self.look(path, ZARR_JSON).await? {
            let bytes = zarr_json.size;
            return Ok(Located { documents: Documents::V3 { zarr_json: zarr_json.version }, bytes });
        }
        let (zarray, zgroup, zattrs) =
            try_join3(self.look(path, ZARRAY), self.look(path, ZGROUP), self.look(path, ZATTRS)).await?;
        let (is_array, document) = match (zarray, zgroup) {
            (Some(zarray), _) => (true, zarray),
            (None, Some(zgroup)) => (false, zgroup),
            (None, None) => return self.locate_v1(path).await,
        };
        let bytes = document.size.saturating_add(zattrs.as_ref().map_or(0, |zattrs| zattrs.size));
        let (version, zattrs) = (document.version, zattrs.map(|zattrs| zattrs.version));
        let documents = if is_array {
            Documents::V2Array { zarray: version, zattrs }
        } else {
            Documents::V2Group { zgroup: version, zattrs }
        };
        Ok(Located { documents, bytes })
    }

    /// Whether it is plain, without any waiting, that these documents still stand under the path as they were located.
    #[must_use]
    pub fn is_still(&self, path: &NodePath, located: &Located) -> bool {
        let still = |name, version| {
            document_key(path, name).is_ok_and(|key| self.store.validate_cached(&key, version))
        };
        match &located.documents {
            Documents::V3 { zarr_json } => still(ZARR_JSON, Some(zarr_json)),
            Documents::V2Array { zarray, zattrs } => {
                still(ZARR_JSON, None) && still(ZARRAY, Some(zarray)) && still(ZATTRS, zattrs.as_ref())
            }
            Documents::V2Group { zgroup, zattrs } => {
                still(ZARR_JSON, None)
                    && still(ZARRAY, None)
                    && still(ZGROUP, Some(zgroup))
                    && still(ZATTRS, zattrs.as_ref())
            }
            Documents::Dependent { primary, zarr_json } => {
                conditions(path, primary, zarr_json).is_ok_and(|keys| {
                    keys.iter().all(|(key, version)| self.store.validate_cached(key, *version))
                })
            }
            Documents::V1Array { .. } => false,
        }
    }

    async fn locate_v1(&self, path: &NodePath) -> Result<Located, HierarchyError> {
        let Some(meta) = self.look(path, META).await? else {
            return Err(HierarchyError::NoSuchNode { path: path.clone() });
        };
        let attrs = self.look(path, ATTRS).await?;
        let bytes = meta.size.saturating_add(attrs.as_ref().map_or(0, |attrs| attrs.size));
        let attrs = attrs.map(|attrs| attrs.version);
        Ok(Located { documents: Documents::V1Array { meta: meta.version, attrs }, bytes })
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

    pub(super) async fn look(
        &self,
        path: &NodePath,
        name: &str,
    ) -> Result<Option<ValueInfo>, HierarchyError> {
        let key = document_key(path, name)?;
        let info = self.store.head(&key).await;
        info.map_err(|source| HierarchyError::Store { key: key.to_string(), source })
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

/// The key of a node's document.
pub(super) fn document_key(path: &NodePath, name: &str) -> Result<StoreKey, HierarchyError> {
    path.prefix().key(name).map_err(|source| HierarchyError::Path { path: path.clone(), source })
}

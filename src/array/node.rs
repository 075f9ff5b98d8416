//! [`OpenNode`]: a node whose documents are parsed and bound, and [`NodeCache`]: the cache of such nodes.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use super::bound_array::Array;
use super::declared::DeclaredArrays;
use super::error::ArrayError;
use crate::hierarchy::{Dependent, Located, Node};
use crate::key::NodePath;
use crate::metadata::ChunkKeyEncodingMetadata;
use crate::store::Version;

/// Bytes that a node takes beside the contents of its documents, about.
const NODE_BYTES: u64 = 8 << 10;

/// A node whose documents are parsed, and bound if it is an array.
#[derive(Debug)]
pub struct OpenNode {
    /// Its documents, at their versions.
    pub located: Located,
    /// The contents of the documents.
    pub node: Node,
    /// More about an array that another array declares.
    pub dependent: Option<Arc<Dependent>>,
    /// The bound array; an error if its codecs cannot be used, or if the node is a group.
    pub(super) array: Result<Arc<Array>, ArrayError>,
    /// The arrays that it declares, once they were requested.
    pub(super) declared: OnceCell<Arc<DeclaredArrays>>,
}

impl OpenNode {
    /// The array.
    ///
    /// # Errors
    /// [`ArrayError::NotAnArray`]; [`ArrayError::Codecs`].
    pub fn array(&self) -> Result<&Arc<Array>, ArrayError> {
        self.array.as_ref().map_err(Clone::clone)
    }

    /// The most bytes of memory that it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let texts = self.dependent.as_ref().map_or(0, |dependent| dependent.text_bytes());
        let metadata = match &self.node {
            Node::Group(group) => group.attributes.memory_bytes(),
            Node::Array(array) => array.memory_bytes(self.located.document_bytes()),
        };
        NODE_BYTES.saturating_add(metadata).saturating_add(texts)
    }

    /// Whether this is an array of version 2 whose dimension separator is unknown, because no chunk was stored to show it.
    pub(super) fn is_separator_unknown(&self) -> bool {
        matches!(&self.node, Node::Array(array)
            if array.chunk_key_encoding == ChunkKeyEncodingMetadata::V2Unspecified)
    }
}

/// The key of an opened node in a cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeId {
    /// The mount's name.
    pub mount: Arc<str>,
    /// The node's path.
    pub path: NodePath,
    /// Its documents, at their versions.
    pub located: Located,
}

/// The key of a path without a node in a cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AbsentId {
    /// The mount's name.
    pub mount: Arc<str>,
    /// The path.
    pub path: NodePath,
    /// Whether no array declares a node there either.
    pub of_declared: bool,
}

/// The key of a rendered text in a cache: the documents that it was rendered from, and its form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TextId {
    /// The mount's name.
    pub mount: Arc<str>,
    /// The node's path.
    pub path: NodePath,
    /// What kind of text it is.
    pub form: Arc<str>,
    /// The versions of the documents.
    pub versions: Vec<Option<Version>>,
}

/// A text that was rendered from documents, with its own version.
pub type RenderedText = (Bytes, Version);

/// Renders a text; `None` if there is nothing to render. The cache runs it on a miss.
pub type TextFuture = BoxFuture<'static, Result<Option<RenderedText>, ArrayError>>;

/// Loads a node. The cache runs it on a miss.
pub type LoadFuture = BoxFuture<'static, Result<Arc<OpenNode>, ArrayError>>;

/// A cache of opened nodes. Without its entries the server is slower, never wrong.
#[async_trait]
pub trait NodeCache: std::fmt::Debug + Send + Sync {
    /// The node as it was last opened, and when that lookup began, if it is cached. It may have changed since.
    fn latest(&self, _mount: &Arc<str>, _path: &NodePath) -> Option<(Arc<OpenNode>, Instant)> {
        None
    }

    /// When the last lookup began that found no node, if that is cached. There may be one since.
    fn absent_at(&self, _id: &AbsentId) -> Option<Instant> {
        None
    }

    /// Caches that a lookup found no node, unless the path was purged after that lookup began, at `located_at`.
    fn insert_absent(&self, _id: &AbsentId, _located_at: Instant) {}

    /// The node from the cache or from `load`, for documents that were located by a lookup that began at `located_at`.
    ///
    /// # Errors
    /// Those of `load`.
    async fn get_or_load(
        &self,
        id: NodeId,
        located_at: Instant,
        load: LoadFuture,
    ) -> Result<Arc<OpenNode>, ArrayError>;

    /// A text from the cache or from `render`; `None` if there is nothing to render.
    ///
    /// # Errors
    /// Those of `render`.
    async fn get_or_render(
        &self,
        _id: TextId,
        render: TextFuture,
    ) -> Result<Option<RenderedText>, ArrayError> {
        render.await
    }
}

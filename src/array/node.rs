//! [`OpenNode`]: a node whose documents are parsed and bound, and [`NodeCache`]: what caches opened nodes.

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

/// Bytes that a node takes beside what its documents say.
const NODE_BYTES: u64 = 8 << 10;

/// A node that was opened: parsed, and bound if it is an array.
#[derive(Debug)]
pub struct OpenNode {
    /// Which documents, at which versions.
    pub located: Located,
    /// What they say.
    pub node: Node,
    /// What else there is to say of an array that is declared by another.
    pub dependent: Option<Arc<Dependent>>,
    /// The array, bound; why not, if its codecs cannot be used or it is a group.
    pub(super) array: Result<Arc<Array>, ArrayError>,
    /// The arrays that it declares, if anybody asked.
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

    /// Bytes of memory that it takes, at most.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let texts = self.dependent.as_ref().map_or(0, |dependent| dependent.text_bytes());
        let metadata = match &self.node {
            Node::Group(group) => group.attributes.memory_bytes(),
            Node::Array(array) => array.memory_bytes(self.located.document_bytes()),
        };
        NODE_BYTES.saturating_add(metadata).saturating_add(texts)
    }

    /// Whether this is an array that had no chunks which would have shown how their keys are written.
    pub(super) fn is_separator_unknown(&self) -> bool {
        matches!(&self.node, Node::Array(array)
            if array.chunk_key_encoding == ChunkKeyEncodingMetadata::V2Unspecified)
    }
}

/// What an opened node is remembered under.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeId {
    /// The mount's name.
    pub mount: Arc<str>,
    /// The node's path.
    pub path: NodePath,
    /// Its documents, at their versions.
    pub located: Located,
}

/// What a text was made of: documents at their versions, in one way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TextId {
    /// The mount's name.
    pub mount: Arc<str>,
    /// The node's path.
    pub path: NodePath,
    /// What is made, in a word, or several.
    pub form: Arc<str>,
    /// The versions of the documents.
    pub versions: Vec<Option<Version>>,
}

/// A text that was made of documents, with the version it goes under.
pub type RenderedText = (Bytes, Version);

/// The making of a text, to be run by whoever remembers it.
pub type TextFuture = BoxFuture<'static, Result<Option<RenderedText>, ArrayError>>;

/// The opening of a node, to be run by whoever remembers it.
pub type LoadFuture = BoxFuture<'static, Result<Arc<OpenNode>, ArrayError>>;

/// Remembers opened nodes. Forgetting one makes the server slower, never wrong.
#[async_trait]
pub trait NodeCache: std::fmt::Debug + Send + Sync {
    /// The node as it was when it was last opened, and when that began, if it is remembered. It may have changed since.
    fn last(&self, _mount: &Arc<str>, _path: &NodePath) -> Option<(Arc<OpenNode>, Instant)> {
        None
    }

    /// The node, as remembered or by running `opening`, for documents that were located by a look that began at `looked`.
    ///
    /// # Errors
    /// Those of `opening`.
    async fn node(
        &self,
        id: NodeId,
        located_at: Instant,
        load: LoadFuture,
    ) -> Result<Arc<OpenNode>, ArrayError>;

    /// A text, as remembered or by running `making`; `None` if nothing is to be made.
    ///
    /// # Errors
    /// Those of `making`.
    async fn text(&self, _id: TextId, render: TextFuture) -> Result<Option<RenderedText>, ArrayError> {
        render.await
    }
}

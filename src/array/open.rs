//! Opening nodes, and remembering what was opened at which version.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use super::dependent::DeclaredArrays;
use super::{Array, ArrayError, CHEAP_REVALIDATION_WINDOW};
use crate::codec::CodecLimits;
use crate::hierarchy::{Dependent, Hierarchy, HierarchyError, Located, Node};
use crate::key::NodePath;
use crate::metadata::dependents::Reading;
use crate::metadata::{ArrayMetadata, ChunkKeyEncodingMetadata};
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
    fn is_separator_unknown(&self) -> bool {
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
        looked: Instant,
        opening: LoadFuture,
    ) -> Result<Arc<OpenNode>, ArrayError>;

    /// A text, as remembered or by running `making`; `None` if nothing is to be made.
    ///
    /// # Errors
    /// Those of `making`.
    async fn text(&self, _id: TextId, making: TextFuture) -> Result<Option<RenderedText>, ArrayError> {
        making.await
    }
}

/// Opens the nodes of one mount.
#[derive(Clone, Debug)]
pub struct NodeOpener {
    pub(super) mount: Arc<str>,
    pub(super) hierarchy: Hierarchy,
    pub(super) limits: CodecLimits,
    pub(super) memo: Arc<dyn NodeCache>,
}

impl NodeOpener {
    /// Opens nodes of `hierarchy` under the name of a mount, which keeps what is remembered of mounts apart.
    #[must_use]
    pub fn new(mount: Arc<str>, hierarchy: Hierarchy, limits: CodecLimits, memo: Arc<dyn NodeCache>) -> Self {
        Self { mount, hierarchy, limits, memo }
    }

    /// The hierarchy.
    #[must_use]
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// A text that is made of documents of these versions below a path, once for each version and form.
    ///
    /// # Errors
    /// Those of `making`.
    pub async fn text(
        &self,
        path: &NodePath,
        form: &str,
        versions: Vec<Option<Version>>,
        making: TextFuture,
    ) -> Result<Option<RenderedText>, ArrayError> {
        let (mount, path, form) = (Arc::clone(&self.mount), path.clone(), form.into());
        self.memo.text(TextId { mount, path, form, versions }, making).await
    }

    /// Binds metadata as that of an array of this mount.
    ///
    /// # Errors
    /// [`ArrayError::Codecs`].
    pub fn bind(&self, path: &NodePath, metadata: &Arc<ArrayMetadata>) -> Result<Array, ArrayError> {
        let (mount, store) = (Arc::clone(&self.mount), Arc::clone(self.hierarchy.store()));
        Array::bind(mount, store, path.clone(), Arc::clone(metadata), &self.limits)
    }

    /// The node at a path as it is now. Where nothing is stored, it may be an array that another declares.
    ///
    /// # Errors
    /// [`ArrayError::Hierarchy`].
    pub async fn open(&self, path: &NodePath) -> Result<Arc<OpenNode>, ArrayError> {
        match self.find(path).await? {
            Some(opened) => Ok(opened),
            None => self.open_dependent(path.clone(), Reading::Lenient).await,
        }
    }

    /// The node at a path as it is now; `None` if no documents stand there. Why there are none is not looked into, nor
    /// whether an array above declares it, unless that is remembered.
    ///
    /// # Errors
    /// [`ArrayError::Hierarchy`].
    pub async fn find(&self, path: &NodePath) -> Result<Option<Arc<OpenNode>>, ArrayError> {
        if let Some((opened, _)) = self.try_find(path, Instant::now()) {
            return Ok(Some(opened));
        }
        if let Some((opened, _)) = self.memo.last(&self.mount, path)
            && opened.located.is_dependent()
            && Box::pin(self.hierarchy.revalidate_dependent(path, &opened.located)).await?
        {
            return Ok(Some(opened));
        }
        let looked = Instant::now();
        let located = match self.hierarchy.locate(path).await {
            Ok(located) => located,
            Err(HierarchyError::NoSuchNode { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let id = NodeId { mount: Arc::clone(&self.mount), path: path.clone(), located };
        let (opener, wanted) = (self.clone(), id.clone());
        let opening = Box::pin(async move { opener.load(wanted).await });
        let opened = self.memo.node(id.clone(), looked, opening).await?;
        // By now there may be some.
        if opened.is_separator_unknown() { self.clone().load(id).await.map(Some) } else { Ok(Some(opened)) }
    }

    /// The node at a path, and when the look began that found it, new enough for a request that began then; `None` if it is
    /// not remembered, or if whether it is still the same takes a closer look.
    #[must_use]
    pub fn try_find(&self, path: &NodePath, began: Instant) -> Option<(Arc<OpenNode>, Instant)> {
        let (opened, looked) = self.memo.last(&self.mount, path)?;
        if opened.is_separator_unknown() {
            return None;
        }
        if looked >= self.hierarchy.store().freshness_horizon(began) {
            return Some((opened, looked));
        }
        let now = Instant::now();
        let is_still = now.saturating_duration_since(looked) < CHEAP_REVALIDATION_WINDOW
            && self.hierarchy.validate_cached(path, &opened.located);
        is_still.then_some((opened, now))
    }

    /// Reads, parses and binds a node.
    async fn load(self, id: NodeId) -> Result<Arc<OpenNode>, ArrayError> {
        let NodeId { path, located, .. } = id;
        let node = self.hierarchy.load(&path, &located).await?;
        let array = match &node {
            Node::Group(_) => Err(ArrayError::NotAnArray { path }),
            Node::Array(metadata) => self.bind(&path, metadata).map(Arc::new),
        };
        Ok(Arc::new(OpenNode { located, node, dependent: None, array, declared: OnceCell::new() }))
    }
}

//! Opening nodes, and remembering what was opened at which version.

use std::sync::Arc;

use super::{Array, ArrayError};
use crate::codec::CodecLimits;
use crate::hierarchy::{Hierarchy, Located, Node};
use crate::key::NodePath;

/// A node that was opened: parsed, and bound if it is an array.
#[derive(Debug)]
pub struct Opened {
    /// Which documents, at which versions.
    pub located: Located,
    /// What they say.
    pub node: Node,
    /// The array, bound; why not, if its codecs cannot be used or it is a group.
    array: Result<Arc<Array>, ArrayError>,
}

impl Opened {
    /// The array.
    ///
    /// # Errors
    /// [`ArrayError::NotAnArray`]; [`ArrayError::Codecs`].
    pub fn array(&self) -> Result<&Arc<Array>, ArrayError> {
        self.array.as_ref().map_err(Clone::clone)
    }
}

/// Remembers opened nodes. Forgetting one makes the server slower, never wrong.
pub trait NodeMemo: std::fmt::Debug + Send + Sync {
    /// The node of this mount and path as it was at these versions.
    fn get(&self, mount: &Arc<str>, path: &NodePath, located: &Located) -> Option<Arc<Opened>>;
    /// Remembers a node.
    fn put(&self, mount: &Arc<str>, path: &NodePath, opened: &Arc<Opened>);
}

/// Opens the nodes of one mount.
#[derive(Clone, Debug)]
pub struct Opener {
    mount: Arc<str>,
    hierarchy: Hierarchy,
    limits: CodecLimits,
    memo: Arc<dyn NodeMemo>,
}

impl Opener {
    /// Opens nodes of `hierarchy` under the name of a mount, which keeps what is remembered of mounts apart.
    #[must_use]
    pub fn new(mount: Arc<str>, hierarchy: Hierarchy, limits: CodecLimits, memo: Arc<dyn NodeMemo>) -> Self {
        Self { mount, hierarchy, limits, memo }
    }

    /// The hierarchy.
    #[must_use]
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// The node at a path as it is now.
    ///
    /// # Errors
    /// [`ArrayError::Hierarchy`].
    pub async fn open(&self, path: &NodePath) -> Result<Arc<Opened>, ArrayError> {
        let located = self.hierarchy.locate(path).await?;
        if let Some(opened) = self.memo.get(&self.mount, path, &located) {
            return Ok(opened);
        }
        let node = self.hierarchy.load(path, &located).await?;
        let array = match &node {
            Node::Group(_) => Err(ArrayError::NotAnArray { path: path.clone() }),
            Node::Array(metadata) => Array::bind(
                Arc::clone(&self.mount),
                Arc::clone(self.hierarchy.store()),
                path.clone(),
                Arc::clone(metadata),
                &self.limits,
            )
            .map(Arc::new),
        };
        let opened = Arc::new(Opened { located, node, array });
        self.memo.put(&self.mount, path, &opened);
        Ok(opened)
    }
}

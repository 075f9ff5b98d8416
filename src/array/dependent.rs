//! Opening arrays that others declare: their documents are made of the primary's, and their chunks stand below its prefix.

use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;

use super::{Array, ArrayError, NodeId, Opened, Opener};
use crate::hierarchy::{Dependents, HierarchyError, Located, Node};
use crate::key::NodePath;
use crate::metadata::ZarrFormat;
use crate::metadata::dependents::{Reading, is_declared};

impl Opener {
    /// The node at a path, where declarations are read in this way.
    ///
    /// # Errors
    /// [`ArrayError::Hierarchy`].
    pub async fn open_as(&self, path: &NodePath, reading: Reading) -> Result<Arc<Opened>, ArrayError> {
        let opened = self.open(path).await;
        let is_dependent = match &opened {
            Ok(opened) => opened.dependent.is_some(),
            Err(ArrayError::Hierarchy(error)) => {
                matches!(error, HierarchyError::NoSuchDependent { .. } | HierarchyError::Dependent { .. })
            }
            Err(_) => false,
        };
        match reading {
            Reading::Strict if is_dependent => self.open_dependent(path.clone(), reading).await,
            Reading::Strict | Reading::Lenient => opened,
        }
    }

    /// The node that the nearest array above a path declares there. Boxed, since that array is opened for it.
    pub(super) fn open_dependent(
        &self,
        path: NodePath,
        reading: Reading,
    ) -> BoxFuture<'_, Result<Arc<Opened>, ArrayError>> {
        Box::pin(self.find_dependent(path, reading))
    }

    async fn find_dependent(&self, path: NodePath, reading: Reading) -> Result<Arc<Opened>, ArrayError> {
        let looked = Instant::now();
        let Some((primary, located)) = self.hierarchy.locate_primary(&path).await? else {
            return Err(self.hierarchy.why_missing(path).await.into());
        };
        let (declares, is_broken) = match self.open(&primary).await {
            Ok(opened) => (declares(&opened), false),
            // It may be wrong about itself and right about its dependents.
            Err(ArrayError::Hierarchy(HierarchyError::Metadata { .. })) => (true, true),
            Err(error) => return Err(error),
        };
        let Some(of_dependent) = located.of_dependent(&primary).filter(|_| declares) else {
            return Err(self.hierarchy.why_missing(path).await.into());
        };
        let id = NodeId { mount: Arc::clone(&self.mount), path, located: of_dependent };
        let opening = self.clone().load_dependent(id.clone(), primary, located, reading);
        let opened = match reading {
            Reading::Lenient => self.memo.node(id, looked, Box::pin(opening)).await,
            // Rarely asked for: a reader's own check of what it wrote.
            Reading::Strict => opening.await,
        };
        match opened {
            // What is above is no array that anybody knows, nor does it declare anything.
            Err(ArrayError::Hierarchy(HierarchyError::NoSuchDependent { path, .. })) if is_broken => {
                Err(self.hierarchy.why_missing(path).await.into())
            }
            opened => opened,
        }
    }

    /// The dependents that an opened array declares; `None` if it declares none, or is none.
    ///
    /// # Errors
    /// [`ArrayError::Hierarchy`].
    pub async fn dependents(
        &self,
        path: &NodePath,
        opened: &Opened,
        reading: Reading,
    ) -> Result<Option<Dependents>, ArrayError> {
        if opened.dependent.is_some() || !declares(opened) {
            return Ok(None);
        }
        Ok(Some(self.hierarchy.dependents(path, &opened.located, reading).await?))
    }

    async fn load_dependent(
        self,
        id: NodeId,
        primary: NodePath,
        located: Located,
        reading: Reading,
    ) -> Result<Arc<Opened>, ArrayError> {
        let dependent = self.hierarchy.dependent(&id.path, &primary, &located, reading).await?;
        let (store, metadata) = (Arc::clone(self.hierarchy.store()), Arc::clone(&dependent.array));
        let node = Node::Array(Arc::clone(&metadata));
        let array = Array::bind(self.mount, store, primary, metadata, &self.limits).map(Arc::new);
        Ok(Arc::new(Opened { located: id.located, node, dependent: Some(dependent), array }))
    }
}

/// Whether a node is an array that may declare others.
fn declares(opened: &Opened) -> bool {
    match &opened.node {
        Node::Array(array) => array.zarr_format == ZarrFormat::V3 && is_declared(&array.attributes),
        Node::Group(_) => false,
    }
}

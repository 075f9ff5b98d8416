//! Opening of arrays that other arrays declare. Their documents are derived from that of the primary array, and their chunks
//! are stored below its prefix.

use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use super::declared::{Declared, DeclaredArrays};
use super::error::ArrayError;
use super::node::{NodeId, OpenNode};
use super::open::NodeOpener;
use crate::hierarchy::{Dependents, HierarchyError, Located, Node};
use crate::key::NodePath;
use crate::metadata::ZarrFormat;
use crate::metadata::dependents::{Reading, is_declared};

impl NodeOpener {
    /// The node at a path, with declarations read strictly or leniently.
    ///
    /// # Errors
    /// [`ArrayError::Hierarchy`].
    pub async fn open_as(&self, path: &NodePath, reading: Reading) -> Result<Arc<OpenNode>, ArrayError> {
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

    /// The node that the nearest array above a path declares there. Boxed, because opening that array is recursive.
    pub(super) fn open_dependent(
        &self,
        path: NodePath,
        reading: Reading,
    ) -> BoxFuture<'_, Result<Arc<OpenNode>, ArrayError>> {
        Box::pin(self.find_dependent(path, reading))
    }

    async fn find_dependent(&self, path: NodePath, reading: Reading) -> Result<Arc<OpenNode>, ArrayError> {
        match self.declared_at(&path, reading).await? {
            Some(opened) => Ok(opened),
            None => Err(self.hierarchy.missing_node_error(path).await.into()),
        }
    }

    /// The array that the nearest array above a path declares there, where nothing is stored; `None` if it declares none
    /// that can be used.
    ///
    /// # Errors
    /// [`ArrayError::Hierarchy`]: failures of the store.
    pub async fn find_declared(&self, path: &NodePath) -> Result<Option<Arc<OpenNode>>, ArrayError> {
        match self.declared_at(path, Reading::Lenient).await {
            Err(ArrayError::Hierarchy(
                HierarchyError::NoSuchNode { .. }
                | HierarchyError::NoSuchDependent { .. }
                | HierarchyError::Dependent { .. }
                | HierarchyError::Metadata { .. }
                | HierarchyError::Path { .. },
            )) => Ok(None),
            found => found,
        }
    }

    /// The array that is declared at a path; `None` if no array above declares one.
    pub(super) async fn declared_at(
        &self,
        path: &NodePath,
        reading: Reading,
    ) -> Result<Option<Arc<OpenNode>>, ArrayError> {
        let located_at = Instant::now();
        let Some((primary, located)) = self.hierarchy.locate_primary(path).await? else { return Ok(None) };
        let (declares, is_broken) = match self.find(&primary).await {
            Ok(opened) => (opened.is_some_and(|opened| declares(&opened)), false),
            // A document that is invalid for the primary may still declare its dependents correctly.
            Err(ArrayError::Hierarchy(HierarchyError::Metadata { .. })) => (true, true),
            Err(error) => return Err(error),
        };
        let of_dependent = located.for_dependent(&primary).filter(|_| declares);
        let Some(of_dependent) = of_dependent else { return Ok(None) };
        let id = NodeId { mount: Arc::clone(&self.mount), path: path.clone(), located: of_dependent };
        let opening = self.clone().load_dependent(id.clone(), primary, located, reading);
        let opened = match reading {
            Reading::Lenient => self.cache.get_or_load(id, located_at, Box::pin(opening)).await,
            // Rare: a client checks what it wrote.
            Reading::Strict => opening.await,
        };
        match opened {
            // The node above is not a known kind of array, and it declares nothing.
            Err(ArrayError::Hierarchy(HierarchyError::NoSuchDependent { .. })) if is_broken => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// The arrays that the array at a path declares and that are served from paths of their own. `opened` is that array, if
    /// it can be opened: a document that is invalid for the array itself may still declare others correctly.
    ///
    /// # Errors
    /// [`ArrayError::Hierarchy`]: failures of the store.
    pub async fn declared(
        &self,
        path: &NodePath,
        opened: Option<&OpenNode>,
    ) -> Result<Arc<DeclaredArrays>, ArrayError> {
        let load = async |located: &Located| {
            let declared = self.hierarchy.declared_dependents(path, located).await?;
            let version = located.versions().next().flatten().cloned();
            let arrays = declared.into_iter().filter_map(Declared::new).collect();
            Ok::<_, ArrayError>(Arc::new(DeclaredArrays { version, arrays }))
        };
        match opened {
            Some(opened) if !declares(opened) => Ok(Arc::default()),
            Some(opened) => opened.declared.get_or_try_init(|| load(&opened.located)).await.cloned(),
            None => match self.hierarchy.locate(path).await {
                Ok(located) if located.for_dependent(path).is_some() => load(&located).await,
                Ok(_) | Err(HierarchyError::NoSuchNode { .. }) => Ok(Arc::default()),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// The dependents that an opened array declares, with their rebased documents if `is_rebased`; `None` if it declares none
    /// or is a dependent itself.
    ///
    /// # Errors
    /// [`ArrayError::Hierarchy`].
    pub async fn dependents(
        &self,
        path: &NodePath,
        opened: &OpenNode,
        reading: Reading,
        is_rebased: bool,
    ) -> Result<Option<Dependents>, ArrayError> {
        if opened.dependent.is_some() || !declares(opened) {
            return Ok(None);
        }
        Ok(Some(self.hierarchy.dependents(path, &opened.located, reading, is_rebased).await?))
    }

    async fn load_dependent(
        self,
        id: NodeId,
        primary: NodePath,
        located: Located,
        reading: Reading,
    ) -> Result<Arc<OpenNode>, ArrayError> {
        let dependent = self.hierarchy.dependent(&id.path, &primary, &located, reading).await?;
        let node = Node::Array(Arc::clone(&dependent.array));
        let array = self.bind(&primary, &dependent.array).map(Arc::new);
        let (located, dependent) = (id.located, Some(dependent));
        Ok(Arc::new(OpenNode { located, node, dependent, array, declared: OnceCell::new() }))
    }
}

/// Whether a node is an array that may declare others.
fn declares(opened: &OpenNode) -> bool {
    match &opened.node {
        Node::Array(array) => array.zarr_format == ZarrFormat::V3 && is_declared(&array.attributes),
        Node::Group(_) => false,
    }
}

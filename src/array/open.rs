//! [`NodeOpener`]: opens the nodes of a mount, from the cache where their documents have not changed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;

use super::bound_array::Array;
use super::error::ArrayError;
use super::node::{AbsentId, NodeCache, NodeId, OpenNode, RenderedText, TextFuture, TextId};
use super::stored::CHEAP_REVALIDATION_WINDOW;
use crate::codec::CodecLimits;
use crate::hierarchy::{FoundDocuments, Hierarchy, HierarchyError, Node};
use crate::key::NodePath;
use crate::metadata::ArrayMetadata;
use crate::metadata::dependents::Reading;
use crate::store::Version;

/// How long a lookup that found no node counts where found nodes need no check at all: a group may be written after the
/// arrays in it.
const MOST_ABSENT: Duration = Duration::from_mins(1);

/// What is at a path.
#[derive(Clone, Debug)]
pub enum CachedLookup {
    /// This node.
    Node(Arc<OpenNode>),
    /// No node, by a lookup that began then.
    Absent(Instant),
}

/// Opens the nodes of one mount.
#[derive(Clone, Debug)]
pub struct NodeOpener {
    pub(super) mount: Arc<str>,
    pub(super) hierarchy: Hierarchy,
    pub(super) limits: CodecLimits,
    pub(super) cache: Arc<dyn NodeCache>,
}

impl NodeOpener {
    /// Opens nodes of `hierarchy`. The mount's name keeps the entries of different mounts apart in the cache.
    #[must_use]
    pub fn new(
        mount: Arc<str>,
        hierarchy: Hierarchy,
        limits: CodecLimits,
        cache: Arc<dyn NodeCache>,
    ) -> Self {
        Self { mount, hierarchy, limits, cache }
    }

    /// The name of the mount.
    #[must_use]
    pub fn mount(&self) -> &str {
        &self.mount
    }

    /// The hierarchy.
    #[must_use]
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// A text that `render` renders from documents of these versions below a path, once for each form and set of versions.
    ///
    /// # Errors
    /// Those of `render`.
    pub async fn rendered_text(
        &self,
        path: &NodePath,
        form: &str,
        versions: Vec<Option<Version>>,
        render: TextFuture,
    ) -> Result<Option<RenderedText>, ArrayError> {
        let (mount, path, form) = (Arc::clone(&self.mount), path.clone(), form.into());
        self.cache.get_or_render(TextId { mount, path, form, versions }, render).await
    }

    /// Binds the metadata of an array of this mount.
    ///
    /// # Errors
    /// [`ArrayError::Codecs`].
    pub fn bind(&self, path: &NodePath, metadata: &Arc<ArrayMetadata>) -> Result<Array, ArrayError> {
        let (mount, store) = (Arc::clone(&self.mount), Arc::clone(self.hierarchy.store()));
        Array::bind(mount, store, path.clone(), Arc::clone(metadata), &self.limits)
    }

    /// The node at a path as it is now. Where nothing is stored, it may be an array that another array declares.
    ///
    /// # Errors
    /// [`ArrayError::Hierarchy`].
    pub async fn open(&self, path: &NodePath) -> Result<Arc<OpenNode>, ArrayError> {
        match self.find(path).await? {
            Some(opened) => Ok(opened),
            None => self.open_dependent(path.clone(), Reading::Lenient).await,
        }
    }

    /// The node at a path as it is now; `None` if no documents are stored there. This neither finds out why there are none,
    /// nor whether an array above declares the node, unless that is cached.
    ///
    /// # Errors
    /// [`ArrayError::Hierarchy`].
    pub async fn find(&self, path: &NodePath) -> Result<Option<Arc<OpenNode>>, ArrayError> {
        self.find_since(path, Instant::now()).await
    }

    /// As [`Self::find`], for a request that began at `began`, as fresh as the store requires for that: a request that needs
    /// the node several times requests it once. That there is no node is cached as well, for at most a minute.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub async fn find_cached(&self, path: &NodePath, began: Instant) -> Result<CachedLookup, ArrayError> {
        let id = self.absent_id(path, false);
        if let Some(located_at) = self.cached_absence(&id)
            && let Some(checked_at) = self.absent_since(path, located_at, began)
            && self.is_latest(path, checked_at)
        {
            return Ok(CachedLookup::Absent(located_at));
        }
        let located_at = Instant::now();
        if let Some(opened) = self.find_since(path, began).await? {
            return Ok(CachedLookup::Node(opened));
        }
        self.cache.insert_absent(&id, located_at);
        Ok(CachedLookup::Absent(located_at))
    }

    /// As [`Self::open`], for a request that began at `began`; `None` if there is no node, without finding out why. What is
    /// there is as fresh, and its absence cached as long, as by [`Self::find_cached`].
    ///
    /// # Errors
    /// [`ArrayError::Hierarchy`].
    pub async fn open_cached(
        &self,
        path: &NodePath,
        began: Instant,
    ) -> Result<Option<Arc<OpenNode>>, ArrayError> {
        let id = self.absent_id(path, true);
        // Without a request it is not known whether an array declares the node by now.
        if let Some(located_at) = self.cached_absence(&id)
            && located_at >= self.hierarchy.store().freshness_horizon(began)
            && self.is_latest(path, located_at)
        {
            return Ok(None);
        }
        let located_at = Instant::now();
        if let CachedLookup::Node(opened) = self.find_cached(path, began).await? {
            return Ok(Some(opened));
        }
        match Box::pin(self.declared_at(path, Reading::Lenient)).await {
            Ok(Some(opened)) => Ok(Some(opened)),
            Ok(None)
            | Err(ArrayError::Hierarchy(
                HierarchyError::NoSuchNode { .. }
                | HierarchyError::NoSuchDependent { .. }
                | HierarchyError::Path { .. },
            )) => {
                self.cache.insert_absent(&id, located_at);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn absent_id(&self, path: &NodePath, of_declared: bool) -> AbsentId {
        AbsentId { mount: Arc::clone(&self.mount), path: path.clone(), of_declared }
    }

    fn cached_absence(&self, id: &AbsentId) -> Option<Instant> {
        self.cache.absent_at(id).filter(|located_at| located_at.elapsed() < MOST_ABSENT)
    }

    /// Whether no node was found at a path since then.
    fn is_latest(&self, path: &NodePath, absent_at: Instant) -> bool {
        self.cache.latest(&self.mount, path).is_none_or(|(_, found_at)| found_at < absent_at)
    }

    async fn find_since(&self, path: &NodePath, began: Instant) -> Result<Option<Arc<OpenNode>>, ArrayError> {
        if let Some((opened, _)) = self.try_find(path, began) {
            return Ok(Some(opened));
        }
        if let Some((opened, _)) = self.cache.latest(&self.mount, path)
            && opened.located.is_dependent()
            && Box::pin(self.hierarchy.revalidate_dependent(path, &opened.located)).await?
        {
            return Ok(Some(opened));
        }
        let located_at = Instant::now();
        // A node that is cached most likely need not be read again.
        let found = if self.cache.latest(&self.mount, path).is_some() {
            self.hierarchy.locate(path).await.map(FoundDocuments::from)
        } else {
            self.hierarchy.locate_to_read(path).await
        };
        let found = match found {
            Ok(found) => found,
            Err(HierarchyError::NoSuchNode { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let located = found.located.clone();
        let id = NodeId { mount: Arc::clone(&self.mount), path: path.clone(), located: located.clone() };
        let load = Box::pin(self.clone().load(path.clone(), found));
        let opened = self.cache.get_or_load(id, located_at, load).await?;
        if !opened.is_separator_unknown() {
            return Ok(Some(opened));
        }
        // By now there may be chunks, which show the separator.
        self.clone().load(path.clone(), located.into()).await.map(Some)
    }

    /// The node at a path, with the time at which the check that found it began: fresh enough for a request that began at
    /// `began`. `None` if it is not cached, or cannot be revalidated without I/O
    /// ([without suspending](super#answers-from-memory-without-suspending)).
    #[must_use]
    pub fn try_find(&self, path: &NodePath, began: Instant) -> Option<(Arc<OpenNode>, Instant)> {
        let (opened, located_at) = self.cache.latest(&self.mount, path)?;
        if opened.is_separator_unknown() {
            return None;
        }
        if located_at >= self.hierarchy.store().freshness_horizon(began) {
            return Some((opened, located_at));
        }
        let now = Instant::now();
        let is_current = now.saturating_duration_since(located_at) < CHEAP_REVALIDATION_WINDOW
            && self.hierarchy.validate_cached(path, &opened.located);
        is_current.then_some((opened, now))
    }

    /// When a check began that found no node at a path, after the lookup at `located_at` had found none: fresh enough for a
    /// request that began at `began`. `None` if that takes I/O.
    #[must_use]
    pub(super) fn absent_since(
        &self,
        path: &NodePath,
        located_at: Instant,
        began: Instant,
    ) -> Option<Instant> {
        if located_at >= self.hierarchy.store().freshness_horizon(began) {
            return Some(located_at);
        }
        let now = Instant::now();
        let is_absent = now.saturating_duration_since(located_at) < CHEAP_REVALIDATION_WINDOW
            && self.hierarchy.validate_absent(path);
        is_absent.then_some(now)
    }

    /// The node at a path as it was last opened, if it takes a network request to know whether it is unchanged. Requests for
    /// what it describes can be sent beside that one.
    #[must_use]
    pub fn unvalidated(&self, path: &NodePath, began: Instant) -> Option<Arc<OpenNode>> {
        if self.hierarchy.store().capabilities().near || self.try_find(path, began).is_some() {
            return None;
        }
        let (opened, _) = self.cache.latest(&self.mount, path)?;
        (!opened.located.is_dependent() && !opened.is_separator_unknown()).then_some(opened)
    }

    /// Reads, parses and binds a node.
    async fn load(self, path: NodePath, found: FoundDocuments) -> Result<Arc<OpenNode>, ArrayError> {
        let node = self.hierarchy.load(&path, &found).await?;
        let array = match &node {
            Node::Group(_) => Err(ArrayError::NotAnArray { path }),
            Node::Array(metadata) => self.bind(&path, metadata).map(Arc::new),
        };
        let located = found.located;
        Ok(Arc::new(OpenNode { located, node, dependent: None, array, declared: OnceCell::new() }))
    }
}

//! [`Dependencies`]: the node and chunks that a response was computed from, to check whether it is still current.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use futures::future::{BoxFuture, FutureExt};
use tokio::sync::Mutex;

use super::node::OpenNode;
use super::open::NodeOpener;
use super::snapshot::ChunkVersions;
use crate::hierarchy::Hierarchy;
use crate::key::{NodePath, StoreKey};
use crate::store::{ChangeWatch, WatchTurn};

/// More chunks are not watched.
const MOST_WATCHED: usize = 4096;

/// The documents and chunks that a response was computed from.
#[derive(Debug)]
pub struct Dependencies {
    opener: NodeOpener,
    path: NodePath,
    /// A weak reference, because the node may be large; it is cached as long as it is used.
    node: Weak<OpenNode>,
    /// Other paths that the response depends on.
    others: Vec<(NodePath, Other)>,
    chunks: ChunkVersions,
    /// The chunks of other arrays.
    other_chunks: Vec<ChunkVersions>,
    /// What the response has in common with others.
    shared: Vec<Arc<Self>>,
    /// When the last check began, if it found all of them current. It is locked during a check, which serves all requests that
    /// began before it.
    validated_at: Mutex<Option<Instant>>,
    /// The watch of all but what is shared, which has its own.
    watch: OnceLock<ChangeWatch>,
}

/// What was found at another path.
#[derive(Debug)]
enum Other {
    /// This node, whose attributes the response depends on.
    Node(Weak<OpenNode>),
    /// No node, by a lookup that began then.
    Absent(Instant),
}

impl Dependencies {
    /// The dependencies of a response: a node, and chunks of it.
    #[must_use]
    pub fn new(opener: NodeOpener, path: NodePath, node: &Arc<OpenNode>, chunks: ChunkVersions) -> Self {
        Self {
            opener,
            path,
            node: Arc::downgrade(node),
            others: Vec::new(),
            chunks,
            other_chunks: Vec::new(),
            shared: Vec::new(),
            validated_at: Mutex::default(),
            watch: OnceLock::new(),
        }
    }

    /// These dependencies, and others that several responses have in common: one check of them serves all of these.
    #[must_use]
    pub fn and_shared(mut self, shared: Arc<Self>) -> Self {
        self.shared.push(shared);
        self
    }

    /// Whether they are in the hierarchy that this opens nodes of.
    #[must_use]
    pub fn are_of(&self, opener: &NodeOpener) -> bool {
        Arc::ptr_eq(self.opener.hierarchy().store(), opener.hierarchy().store())
    }

    /// These dependencies and another node of the same hierarchy.
    #[must_use]
    pub fn and_node(mut self, path: NodePath, node: &Arc<OpenNode>) -> Self {
        self.others.push((path, Other::Node(Arc::downgrade(node))));
        self
    }

    /// These dependencies and the absence of a node of the same hierarchy, which a lookup found that began at `located_at`.
    #[must_use]
    pub fn and_absent(mut self, path: NodePath, located_at: Instant) -> Self {
        self.others.push((path, Other::Absent(located_at)));
        self
    }

    /// These dependencies and chunks of another array of the same hierarchy.
    #[must_use]
    pub fn and_chunks(mut self, chunks: ChunkVersions) -> Self {
        self.other_chunks.push(chunks);
        self
    }

    /// Bytes of memory, about.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let path =
            |(path, _): &(NodePath, Other)| (path.as_str().len() + size_of::<(NodePath, Other)>()) as u64;
        let shared = self.shared.iter().map(|shared| shared.bytes());
        let chunks = self.other_chunks.iter().map(ChunkVersions::bytes).chain(shared);
        self.others.iter().map(path).chain(chunks).fold(self.chunks.bytes(), u64::saturating_add)
    }

    /// Whether all of them are known without I/O to be current, as fresh as the store requires for a request that began at
    /// `began`. One check serves all requests that began before it.
    pub async fn is_fresh(self: &Arc<Self>, began: Instant) -> bool {
        // Requests that arrived in the meantime begin now: the checks from here on are fresh enough for all of them.
        tokio::task::yield_now().await;
        self.validated_since(began).await.is_some()
    }

    /// When the first of the checks began that found all of them current, as fresh as the store requires for a request that
    /// began at `began`; `None` if something has changed, or if that is not known without I/O.
    pub async fn validated_since(self: &Arc<Self>, began: Instant) -> Option<Instant> {
        let store = &**self.opener.hierarchy().store();
        let mut validated_at = self.validated_at.lock().await;
        let horizon = store.freshness_horizon(began);
        if let Some(at) = validated_at.filter(|&at| at >= horizon) {
            return Some(at);
        }
        let watch = self.watch();
        if let Some(at) = watch.unchanged_since(store, horizon) {
            *validated_at = self.validate_shared(at, began).await;
            return *validated_at;
        }
        let now = Instant::now();
        *validated_at = self.revalidate(began).await;
        if validated_at.is_some()
            && watch.record_check(store, now)
            && self.chunk_count() <= MOST_WATCHED
            && let Some(turn) = watch.try_begin()
        {
            let dependencies = Arc::clone(self);
            tokio::spawn(async move { dependencies.begin_watch(turn).await });
        }
        *validated_at
    }

    fn watch(&self) -> &ChangeWatch {
        self.watch.get_or_init(|| ChangeWatch::new(self.chunk_count() + self.others.len() + 1))
    }

    /// Lets the store report changes from now on.
    async fn begin_watch(&self, turn: WatchTurn) {
        let store = &**self.opener.hierarchy().store();
        let is_current = async { self.revalidate(Instant::now()).await.is_some() };
        self.watch().begin(turn, store, self.keys(), is_current).await;
    }

    fn chunk_count(&self) -> usize {
        let others = self.other_chunks.iter().map(ChunkVersions::len);
        others.fold(self.chunks.len(), usize::saturating_add)
    }

    /// When the first of the checks began that found all dependencies current, all of them fresh enough for a request that
    /// began at `began`; `None` if something has changed, or if that is not known without I/O.
    async fn revalidate(&self, began: Instant) -> Option<Instant> {
        let mut checked_at = self.validate_node(&self.path, &self.node, began)?;
        for (path, other) in &self.others {
            let other_at = match other {
                Other::Node(node) => self.validate_node(path, node, began)?,
                Other::Absent(located_at) => self.opener.absent_since(path, *located_at, began)?,
            };
            checked_at = checked_at.min(other_at);
        }
        for chunks in &self.other_chunks {
            if chunks.len() > 0 {
                checked_at = checked_at.min(chunks.validated_since(began).await?);
            }
        }
        if self.chunks.len() > 0 {
            checked_at = checked_at.min(self.chunks.validated_since(began).await?);
        }
        self.validate_shared(checked_at, began).await
    }

    /// When the first check began of all dependencies, where those that are not shared were checked at `checked_at`.
    async fn validate_shared(&self, mut checked_at: Instant, began: Instant) -> Option<Instant> {
        for shared in &self.shared {
            checked_at = checked_at.min(shared.boxed_validated_since(began).await?);
        }
        Some(checked_at)
    }

    /// [`Self::validated_since`], of which a call is within another.
    fn boxed_validated_since(self: &Arc<Self>, began: Instant) -> BoxFuture<'_, Option<Instant>> {
        self.validated_since(began).boxed()
    }

    /// When a check began that found a node unchanged.
    fn validate_node(&self, path: &NodePath, known: &Weak<OpenNode>, began: Instant) -> Option<Instant> {
        let (node, checked_at) = self.opener.try_find(path, began)?;
        std::ptr::eq(Arc::as_ptr(&node), known.as_ptr()).then_some(checked_at)
    }

    /// The keys of all chunks and documents but those that are shared.
    fn keys(&self) -> Vec<StoreKey> {
        let nodes = std::iter::once(&self.path).chain(self.others.iter().map(|(path, _)| path));
        let documents = nodes.flat_map(Hierarchy::checked_documents);
        let chunks = std::iter::once(&self.chunks).chain(&self.other_chunks).flat_map(ChunkVersions::keys);
        chunks.cloned().chain(documents).collect()
    }
}

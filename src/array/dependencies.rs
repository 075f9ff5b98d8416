//! [`Dependencies`]: the node and chunks that a response was computed from, to check whether it is still current.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt};
use tokio::sync::Mutex;

use super::node::OpenNode;
use super::open::NodeOpener;
use super::snapshot::ChunkVersions;
use crate::key::{NodePath, StoreKey};
use crate::store::WatchToken;

/// A response with this many chunks is worth a watch: checking each chunk takes longer than the rest of the request.
const WORTH_WATCHING: usize = 16;
/// More chunks are not watched.
const MOST_WATCHED: usize = 4096;
/// Successful checks before a watch is started; twice as many after each time that there was none to be had.
const CHECKS_BEFORE_WATCH: u32 = 8;
/// It is doubled at most this often.
const MOST_DOUBLED: u32 = 10;
/// What is watched is still checked after this long.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

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
    /// Whether many requests check these dependencies, so that they are worth a watch however few they are.
    are_shared: bool,
    validity: Mutex<Validity>,
}

/// What was found at another path.
#[derive(Debug)]
enum Other {
    /// This node, whose attributes the response depends on.
    Node(Weak<OpenNode>),
    /// No node, by a lookup that began then.
    Absent(Instant),
}

/// What is known of whether the dependencies are current. It is locked during a check, which serves all requests that began
/// before it.
#[derive(Debug, Default)]
struct Validity {
    /// When the last check began, if it found all of them current.
    validated_at: Option<Instant>,
    /// When the last full check began, and the watch that has reported no change since.
    watched: Option<(Instant, WatchToken)>,
    /// Successful checks since a watch was last tried.
    checks: u32,
    /// How often in a row there was no watch to be had.
    refusals: u32,
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
            are_shared: false,
            validity: Mutex::default(),
        }
    }

    /// These dependencies, for several responses.
    #[must_use]
    pub fn into_shared(self) -> Arc<Self> {
        Arc::new(Self { are_shared: true, ..self })
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
        let store = self.opener.hierarchy().store();
        let mut validity = self.validity.lock().await;
        let horizon = store.freshness_horizon(began);
        if let Some(at) = validity.validated_at.filter(|&at| at >= horizon) {
            return Some(at);
        }
        let now = Instant::now();
        if let Some((checked_at, watch)) = validity.watched
            && now - checked_at < CHECK_INTERVAL
            && let Some(at) = store.unchanged_since(watch, horizon)
        {
            validity.validated_at = Some(at);
            return validity.validated_at;
        }
        validity.validated_at = self.revalidate(began).await;
        let is_valid = validity.validated_at.is_some();
        let watch = validity
            .watched
            .take()
            .filter(|(_, watch)| is_valid && store.unchanged_since(*watch, now).is_some());
        validity.watched = watch.map(|(_, watch)| (now, watch));
        validity.checks = if is_valid { validity.checks.saturating_add(1) } else { 0 };
        let enough = CHECKS_BEFORE_WATCH << validity.refusals.min(MOST_DOUBLED);
        if validity.watched.is_none() && validity.checks >= enough && self.is_watchable() {
            validity.checks = 0;
            let dependencies = Arc::clone(self);
            tokio::spawn(async move { dependencies.watch().await });
        }
        validity.validated_at
    }

    /// Whether a watch is worth its cost.
    fn is_watchable(&self) -> bool {
        let others = self.other_chunks.iter().map(ChunkVersions::len);
        let chunks = others.fold(self.chunks.len(), usize::saturating_add);
        (self.are_shared || chunks >= WORTH_WATCHING) && chunks <= MOST_WATCHED
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
        for shared in &self.shared {
            checked_at = checked_at.min(shared.boxed_validated_since(began).await?);
        }
        if self.chunks.len() > 0 {
            checked_at = checked_at.min(self.chunks.validated_since(began).await?);
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

    /// The keys of all chunks and documents.
    fn keys(&self) -> Vec<StoreKey> {
        let nodes = std::iter::once(&self.path).chain(self.others.iter().map(|(path, _)| path));
        let documents = nodes.filter_map(|path| path.prefix().key("zarr.json").ok());
        let chunks = std::iter::once(&self.chunks).chain(&self.other_chunks).flat_map(ChunkVersions::keys);
        let shared = self.shared.iter().flat_map(|shared| shared.keys());
        chunks.cloned().chain(documents).chain(shared).collect()
    }

    /// Lets the store report changes from now on.
    async fn watch(&self) {
        let keys = self.keys();
        let watch = self.opener.hierarchy().store().watch(keys).await;
        let mut validity = self.validity.lock().await;
        let Some(watch) = watch else {
            validity.refusals = validity.refusals.saturating_add(1);
            return;
        };
        validity.refusals = 0;
        // A check after the start of the watch, which does not report earlier changes.
        let now = Instant::now();
        validity.watched = self.revalidate(now).await.map(|_| (now, watch));
    }
}

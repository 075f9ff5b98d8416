//! [`Dependencies`]: the node and chunks that a response was computed from, to check whether it is still current.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::node::OpenNode;
use super::open::NodeOpener;
use super::snapshot::ChunkVersions;
use crate::key::{NodePath, StoreKey};
use crate::store::WatchToken;

/// Responses with this many chunks are worth a watch: checking each chunk takes longer than the rest of the request.
const WATCHED_CHUNKS: std::ops::RangeInclusive<usize> = 16..=4096;
/// Successful checks before a watch is started.
const CHECKS_BEFORE_WATCH: u32 = 8;
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
            validity: Mutex::default(),
        }
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
        let chunks = self.other_chunks.iter().map(ChunkVersions::bytes);
        self.others.iter().map(path).chain(chunks).fold(self.chunks.bytes(), u64::saturating_add)
    }

    /// Whether all of them are known without I/O to be current, as fresh as the store requires for a request that began at
    /// `began`. One check serves all requests that began before it.
    pub async fn is_fresh(self: &Arc<Self>, began: Instant) -> bool {
        // Requests that arrived in the meantime begin now: the checks from here on are fresh enough for all of them.
        tokio::task::yield_now().await;
        let store = self.opener.hierarchy().store();
        let mut validity = self.validity.lock().await;
        if validity.validated_at.is_some_and(|at| at >= store.freshness_horizon(began)) {
            return true;
        }
        let now = Instant::now();
        if let Some((checked_at, watch)) = validity.watched
            && now - checked_at < CHECK_INTERVAL
            && store.unchanged_since(watch)
        {
            validity.validated_at = Some(now);
            return true;
        }
        validity.validated_at = self.revalidate(began).await;
        let is_valid = validity.validated_at.is_some();
        let watch = validity.watched.take().filter(|(_, watch)| is_valid && store.unchanged_since(*watch));
        validity.watched = watch.map(|(_, watch)| (now, watch));
        validity.checks = if is_valid { validity.checks.saturating_add(1) } else { 0 };
        if validity.watched.is_none()
            && validity.checks >= CHECKS_BEFORE_WATCH
            && WATCHED_CHUNKS.contains(&self.chunks.len())
        {
            validity.checks = 0;
            let dependencies = Arc::clone(self);
            tokio::spawn(async move { dependencies.watch().await });
        }
        is_valid
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
        Some(self.chunks.validated_since(began).await?.min(checked_at))
    }

    /// When a check began that found a node unchanged.
    fn validate_node(&self, path: &NodePath, known: &Weak<OpenNode>, began: Instant) -> Option<Instant> {
        let (node, checked_at) = self.opener.try_find(path, began)?;
        std::ptr::eq(Arc::as_ptr(&node), known.as_ptr()).then_some(checked_at)
    }

    fn all_chunks(&self) -> impl Iterator<Item = &ChunkVersions> {
        std::iter::once(&self.chunks).chain(&self.other_chunks)
    }

    /// Lets the store report changes from now on.
    async fn watch(&self) {
        let nodes = std::iter::once(&self.path).chain(self.others.iter().map(|(path, _)| path));
        let documents = nodes.filter_map(|path| path.prefix().key("zarr.json").ok());
        let keys: Vec<StoreKey> =
            self.all_chunks().flat_map(ChunkVersions::keys).cloned().chain(documents).collect();
        let Some(watch) = self.opener.hierarchy().store().watch(keys).await else { return };
        let mut validity = self.validity.lock().await;
        // A check after the start of the watch, which does not report earlier changes.
        let now = Instant::now();
        validity.watched = self.revalidate(now).await.map(|_| (now, watch));
    }
}

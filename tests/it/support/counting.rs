//! Wrappers that count: what a store is asked for, and what a source decodes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use tokio::sync::Semaphore;
use zarrd::array::{ArrayError, ChunkData, ChunkLookup, ChunkSource, ReadContext, StoredKey, StoredValue};
use zarrd::chunk::Elements;
use zarrd::codec::{CodecChain, ShardIndex};
use zarrd::key::{StoreKey, StorePrefix};
use zarrd::store::{
    ByteRange, Capabilities, DirEntries, FileBody, ListEntry, SetResult, SharedStore, Shortcuts, Store,
    StoreError, StoreKind, Value, ValueBody, ValueInfo, ValueStream, Version, WriteCondition,
};

/// A read of a chunk.
#[derive(Clone, Debug)]
pub struct ChunkRead {
    pub key: String,
    pub range: Range<u64>,
    /// The name of the thread that asked for it, or that read it from the open file.
    pub thread: String,
    /// How often it was tried to read it from the open file at once.
    pub tries: usize,
}

impl ChunkRead {
    /// Whether that is a thread of the pool.
    pub fn is_on_pool(&self) -> bool {
        self.thread.starts_with("cpu-")
    }
}

/// Counts of a store's reads, and faults that a test injects into reads of chunks; metadata passes freely.
#[derive(Debug)]
pub struct Counting {
    inner: SharedStore,
    is_remote: bool,
    /// What `FileBody` says of files, if not the truth.
    in_memory: Option<InMemory>,
    /// Open files that are not being read yet.
    unread_files: Arc<AtomicUsize>,
    reads: Arc<Mutex<Vec<ChunkRead>>>,
    /// Reads of chunks wait for a permit each.
    gate: Semaphore,
    failing: AtomicBool,
    failures: AtomicUsize,
    given_up: Arc<AtomicUsize>,
    /// The latency of a response about a chunk; its content is from before the wait.
    latency: Duration,
    in_flight: Arc<AtomicUsize>,
    most: AtomicUsize,
    lists: AtomicUsize,
    heads: AtomicUsize,
    blind: AtomicUsize,
    documents: AtomicUsize,
    /// The keys of documents that were requested, by HEAD or by GET.
    asked: Mutex<Vec<String>>,
}

/// More permits than any test takes.
const OPEN: usize = Semaphore::MAX_PERMITS / 2;

impl Counting {
    pub fn new(inner: SharedStore) -> Arc<Self> {
        Self::slow(inner, Duration::ZERO)
    }

    /// The same, with this latency of requests for chunks.
    pub fn slow(inner: SharedStore, latency: Duration) -> Arc<Self> {
        Arc::new(Self::over(inner, latency))
    }

    /// The same, which says that each read takes a request over the network.
    pub fn remote(inner: SharedStore) -> Arc<Self> {
        Arc::new(Self { is_remote: true, ..Self::over(inner, Duration::ZERO) })
    }

    /// The same, with nothing of any open file in memory.
    pub fn not_in_memory(inner: SharedStore) -> Arc<Self> {
        let in_memory = Some(InMemory::Nothing);
        Arc::new(Self { in_memory, ..Self::over(inner, Duration::ZERO) })
    }

    /// The same, with only the beginning of each open file in memory.
    pub fn partly_in_memory(inner: SharedStore) -> Arc<Self> {
        let in_memory = Some(InMemory::Beginning);
        Arc::new(Self { in_memory, ..Self::over(inner, Duration::ZERO) })
    }

    fn over(inner: SharedStore, latency: Duration) -> Self {
        Self {
            inner,
            is_remote: false,
            in_memory: None,
            unread_files: Arc::default(),
            latency,
            in_flight: Arc::default(),
            most: AtomicUsize::new(0),
            lists: AtomicUsize::new(0),
            reads: Arc::default(),
            gate: Semaphore::new(OPEN),
            failing: AtomicBool::new(false),
            failures: AtomicUsize::new(0),
            given_up: Arc::default(),
            heads: AtomicUsize::new(0),
            blind: AtomicUsize::new(0),
            documents: AtomicUsize::new(0),
            asked: Mutex::default(),
        }
    }

    /// The same, whose reads of chunks wait for [`Counting::open`].
    pub fn gated(inner: SharedStore) -> Arc<Self> {
        Arc::new(Self { gate: Semaphore::new(0), ..Self::over(inner, Duration::ZERO) })
    }

    /// Lets all reads go on.
    pub fn open(&self) {
        self.gate.add_permits(OPEN);
    }

    /// Lets this many reads go on.
    pub fn pass(&self, reads: usize) {
        self.gate.add_permits(reads);
    }

    /// From now on, GET and HEAD requests for chunks fail, or no longer fail.
    pub fn fail(&self, failing: bool) {
        self.failing.store(failing, SeqCst);
    }

    /// How many requests failed since the store was made.
    pub fn failures(&self) -> usize {
        self.failures.load(SeqCst)
    }

    fn failure(&self) -> StoreError {
        self.failures.fetch_add(1, SeqCst);
        let error = Arc::new(std::io::Error::other("as the test wants"));
        // A remote store that does not respond is one that may respond later.
        if self.is_remote { StoreError::TimedOut(error) } else { StoreError::Backend(error) }
    }

    /// The byte ranges of chunks that were read, in order.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        self.reads.lock().unwrap().iter().map(|read| read.range.clone()).collect()
    }

    /// The reads of chunks, in order.
    pub fn reads(&self) -> Vec<ChunkRead> {
        self.reads.lock().unwrap().clone()
    }

    /// The keys of chunks that were read, in order.
    pub fn keys(&self) -> Vec<String> {
        self.reads.lock().unwrap().iter().map(|read| read.key.clone()).collect()
    }

    /// How many bytes of chunks were read.
    pub fn bytes(&self) -> u64 {
        self.ranges().iter().map(|range| range.end - range.start).sum()
    }

    /// Resets all counts.
    pub fn reset(&self) {
        self.reads.lock().unwrap().clear();
        self.asked.lock().unwrap().clear();
        for counter in [&self.most, &self.lists, &self.heads, &self.blind, &self.documents] {
            counter.store(0, SeqCst);
        }
    }

    /// How many HEAD requests for chunks there were.
    pub fn heads(&self) -> usize {
        self.heads.load(SeqCst)
    }

    /// How many listings there were.
    pub fn lists(&self) -> usize {
        self.lists.load(SeqCst)
    }

    /// The maximum number of requests for chunks in flight at a time.
    pub fn max_in_flight(&self) -> usize {
        self.most.load(SeqCst)
    }

    /// How many requests for chunks are in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(SeqCst)
    }

    /// How many files are open that are not being read yet.
    pub fn unread_files(&self) -> usize {
        self.unread_files.load(SeqCst)
    }

    /// Waits for the latency of a response.
    async fn arrive(&self) {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
    }

    fn begin(&self) -> Question {
        let now = self.in_flight.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(now, SeqCst);
        Question(Arc::clone(&self.in_flight))
    }

    /// How many metadata documents were read.
    pub fn documents(&self) -> usize {
        self.documents.load(SeqCst)
    }

    /// The keys of documents that were requested, by HEAD or by GET, in order.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// How many reads of chunks were given up before they ended.
    pub fn given_up(&self) -> usize {
        self.given_up.load(SeqCst)
    }

    /// Waits until this many requests have asked for a chunk, by HEAD or by a read of any version, and have gone on from there as far as they get
    /// while the gate is shut. For runtimes of one thread, on which nothing else runs meanwhile.
    pub async fn waiting(&self, requests: usize) {
        until(|| self.heads.load(SeqCst) + self.blind.load(SeqCst) >= requests && !self.ranges().is_empty())
            .await;
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
    }
}

/// Waits for something to become true, at most ten seconds.
pub async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), wait).await.expect("it never happened");
}

fn is_chunk(key: &StoreKey) -> bool {
    !(key.name() == "zarr.json" || key.name().starts_with('.'))
}

/// Counts a read that is given up.
struct Underway(Option<Arc<AtomicUsize>>);

impl Drop for Underway {
    fn drop(&mut self) {
        if let Some(given_up) = &self.0 {
            given_up.fetch_add(1, SeqCst);
        }
    }
}

/// How much of an open file is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InMemory {
    Nothing,
    Beginning,
}

/// A body that records the thread that reads it at once.
struct CountedFile {
    file: Box<dyn FileBody>,
    in_memory: Option<InMemory>,
    _unread: Question,
    reads: Arc<Mutex<Vec<ChunkRead>>>,
    position: usize,
}

impl FileBody for CountedFile {
    fn into_stream(self: Box<Self>) -> ValueStream {
        self.file.into_stream()
    }

    fn begins_in_memory(&self) -> bool {
        self.in_memory.map_or_else(|| self.file.begins_in_memory(), |part| part == InMemory::Beginning)
    }

    fn try_read(self: Box<Self>) -> Result<Bytes, Box<dyn FileBody>> {
        if let Some(read) = self.reads.lock().unwrap().get_mut(self.position) {
            read.thread = thread_name();
            read.tries += 1;
        }
        if self.in_memory.is_some() { Err(self) } else { self.file.try_read() }
    }
}

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

/// A request in flight.
struct Question(Arc<AtomicUsize>);

impl Drop for Question {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[async_trait]
impl Store for Counting {
    fn kind(&self) -> StoreKind {
        self.inner.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        if is_chunk(key) {
            let _question = self.begin();
            self.heads.fetch_add(1, SeqCst);
            if self.failing.load(SeqCst) {
                return Err(self.failure());
            }
            let info = self.inner.head(key).await;
            self.arrive().await;
            return info;
        }
        self.asked.lock().unwrap().push(key.to_string());
        self.inner.head(key).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        if !is_chunk(key) {
            self.documents.fetch_add(1, SeqCst);
            self.asked.lock().unwrap().push(key.to_string());
            return self.inner.get(key, range, if_match).await;
        }
        let _question = self.begin();
        let size = self.inner.head(key).await?.map_or(0, |info| info.size);
        let range_read = range.resolve(size).unwrap_or(0..0);
        let read = ChunkRead { key: key.to_string(), range: range_read, thread: thread_name(), tries: 0 };
        let position = {
            let mut reads = self.reads.lock().unwrap();
            reads.push(read);
            reads.len() - 1
        };
        if if_match.is_none() {
            self.blind.fetch_add(1, SeqCst);
        }
        let mut underway = Underway(Some(Arc::clone(&self.given_up)));
        self.gate.acquire().await.unwrap().forget();
        let value = if self.failing.load(SeqCst) {
            Err(self.failure())
        } else {
            self.inner.get(key, range, if_match).await
        };
        self.arrive().await;
        underway.0 = None;
        let counted = |value: Value| match value.body {
            ValueBody::File(file) => {
                self.unread_files.fetch_add(1, SeqCst);
                let _unread = Question(Arc::clone(&self.unread_files));
                let (in_memory, reads) = (self.in_memory, Arc::clone(&self.reads));
                let body = CountedFile { file, in_memory, _unread, reads, position };
                Value { body: ValueBody::File(Box::new(body)), ..value }
            }
            _ => value,
        };
        Ok(value?.map(counted))
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        self.inner.set(key, body, condition).await
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        self.inner.erase(key, condition).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        self.inner.erase_prefix(prefix).await
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        self.lists.fetch_add(1, SeqCst);
        self.inner.list_dir_after(prefix, after)
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        self.lists.fetch_add(1, SeqCst);
        self.inner.list_prefix(prefix, after)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }
}

impl Shortcuts for Counting {
    fn capabilities(&self) -> Capabilities {
        if self.is_remote { Capabilities::REMOTE } else { self.inner.capabilities() }
    }

    /// Of values that exist, each check is a request that is counted.
    fn validate_cached(&self, key: &StoreKey, version: Option<&Version>) -> bool {
        version.is_none() && self.inner.validate_cached(key, None)
    }
}

/// How often each part of a value was decoded.
pub type Decodes = Arc<Mutex<HashMap<(String, u64), usize>>>;

/// A source that counts the chunks it decodes.
#[derive(Debug)]
pub struct CountingSource {
    pub inner: Arc<dyn ChunkSource>,
    pub decodes: Decodes,
}

#[async_trait]
impl ChunkSource for CountingSource {
    fn concurrency(&self) -> usize {
        self.inner.concurrency()
    }

    async fn fetch_or_lookup(
        &self,
        key: &StoredKey,
        chain: &Arc<CodecChain>,
        trace: &Arc<ReadContext>,
    ) -> Result<ChunkLookup, ArrayError> {
        let found = self.inner.fetch_or_lookup(key, chain, trace).await?;
        if matches!(found.data, ChunkData::Elements(_)) {
            *self.decodes.lock().unwrap().entry((key.key.to_string(), 0)).or_default() += 1;
        }
        Ok(found)
    }

    async fn elements(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        trace: &Arc<ReadContext>,
    ) -> Vec<Result<Elements, ArrayError>> {
        for range in ranges {
            *self.decodes.lock().unwrap().entry((value.key.to_string(), range.start)).or_default() += 1;
        }
        self.inner.elements(value, chain, ranges, trace).await
    }

    async fn shard_index(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        shard: Range<u64>,
        trace: &Arc<ReadContext>,
    ) -> Result<Arc<ShardIndex>, ArrayError> {
        self.inner.shard_index(value, chain, shard, trace).await
    }
}

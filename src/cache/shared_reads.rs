//! [`SharedReads`]: a store that reads a value once for all callers that want the same bytes of it at the same time.
//!
//! Many clients ask for one chunk at once: a page that everyone opens, workers that begin together. The first read goes to the
//! backend; those that come while it waits for the response get what it gets. Nothing is held for a read that no other waits for, and
//! long values are read by each on its own. Where every read must be no older than its request, those that join also ask for the
//! version, a request without bytes, and read on their own if it is another one.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::join;
use futures::stream::BoxStream;

use super::generation::Generation;
use super::single_flight::{Follower, Join, Leader, SingleFlight};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{
    ByteRange, CachePolicy, CopyResult, DirEntries, ListEntry, SetResult, SharedStore, Shortcuts, Store,
    StoreError, StoreKind, Value, ValueBody, ValueInfo, ValueStream, Version, WriteCondition,
};

/// Longer bodies are not shared: they would be in memory as a whole.
const LARGEST_BYTES: u64 = 4 << 20;

/// A key, the requested part, and the version that it must have.
type ReadKey = (StoreKey, ByteRange, Option<Version>);

/// What a read found that others wait for.
#[derive(Clone, Debug)]
enum SharedRead {
    Found(ValueInfo, Range<u64>, Bytes),
    Absent,
    Failed(StoreError),
    /// It is too long to be shared.
    Long,
}

/// A store whose reads are shared.
#[derive(Debug)]
pub struct SharedReads {
    inner: SharedStore,
    policy: CachePolicy,
    reads: SingleFlight<ReadKey, SharedRead>,
    shared: Arc<AtomicU64>,
}

impl SharedReads {
    /// The store with its reads shared, and the count of reads that got what another one read. A store whose reads are cheap
    /// stays as it is.
    #[must_use]
    pub fn wrap(store: SharedStore, policy: CachePolicy) -> (SharedStore, Arc<AtomicU64>) {
        let shared = Arc::<AtomicU64>::default();
        if store.capabilities().near {
            return (store, shared);
        }
        let reads = SingleFlight::new();
        (Arc::new(Self { inner: store, policy, reads, shared: Arc::clone(&shared) }), shared)
    }

    /// Reads from the backend, for others too if there are any by then.
    async fn lead(
        &self,
        leader: Leader<ReadKey, SharedRead>,
        (key, range, if_match): (&StoreKey, ByteRange, Option<&Version>),
    ) -> Result<Option<Value>, StoreError> {
        let read = self.inner.get(key, range, if_match).await;
        if !leader.is_awaited() {
            // Who joins from now on gets nothing, and reads on its own.
            drop(leader);
            return read;
        }
        match read {
            Ok(Some(value)) if value.len() <= LARGEST_BYTES => {
                let (info, part) = (value.info.clone(), value.range.clone());
                match value.bytes(LARGEST_BYTES).await {
                    Ok(bytes) => {
                        leader.complete(SharedRead::Found(info.clone(), part.clone(), bytes.clone()));
                        Ok(Some(Value::new(info, part, ValueBody::Bytes(bytes))))
                    }
                    Err(error) => {
                        leader.complete(SharedRead::Failed(error.clone()));
                        Err(error)
                    }
                }
            }
            Ok(Some(value)) => {
                leader.complete(SharedRead::Long);
                Ok(Some(value))
            }
            Ok(None) => {
                leader.complete(SharedRead::Absent);
                Ok(None)
            }
            Err(error) => {
                leader.complete(SharedRead::Failed(error.clone()));
                Err(error)
            }
        }
    }

    /// What another read got, if it is what a read of now may return.
    async fn follow(
        &self,
        key: &StoreKey,
        follower: Follower<SharedRead>,
    ) -> Result<Option<SharedRead>, StoreError> {
        if self.policy != CachePolicy::Always {
            return Ok(follower.wait().await);
        }
        let (now, read) = join(self.inner.head(key), follower.wait()).await;
        let now = now?;
        Ok(read.filter(|read| match (read, &now) {
            (SharedRead::Found(info, ..), Some(now)) => {
                info.version == now.version && info.version.is_strong()
            }
            (SharedRead::Absent, None) | (SharedRead::Failed(_), _) => true,
            _ => false,
        }))
    }
}

#[async_trait]
impl Store for SharedReads {
    fn kind(&self) -> StoreKind {
        self.inner.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        self.inner.head(key).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        let may_share = match self.policy {
            CachePolicy::Uncached => false,
            // A read of a version that is not stored any more must fail.
            CachePolicy::Always => if_match.is_none(),
            CachePolicy::Ttl(_) | CachePolicy::Immutable => true,
        };
        if !may_share {
            return self.inner.get(key, range, if_match).await;
        }
        let name = (key.clone(), range, if_match.cloned());
        match self.reads.join_one(&name, Generation::default(), |_| None) {
            Join::Hit(_) => {}
            Join::Leader(leader, follower) => {
                drop(follower);
                // Boxed, because it would make the future of every read larger.
                return Box::pin(self.lead(leader, (key, range, if_match))).await;
            }
            Join::Follower(follower) => match Box::pin(self.follow(key, follower)).await? {
                Some(SharedRead::Found(info, part, bytes)) => {
                    self.shared.fetch_add(1, Ordering::Relaxed);
                    return Ok(Some(Value::new(info, part, ValueBody::Bytes(bytes))));
                }
                Some(SharedRead::Absent) => return Ok(None),
                Some(SharedRead::Failed(error)) => return Err(error),
                Some(SharedRead::Long) | None => {}
            },
        }
        self.inner.get(key, range, if_match).await
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        let outcome = self.inner.set(key, body, condition).await;
        self.reads.detach(|(known, ..)| known == key);
        outcome
    }

    async fn copy(
        &self,
        from: &StoreKey,
        if_match: Option<&Version>,
        to: &StoreKey,
        condition: WriteCondition,
    ) -> Result<Option<CopyResult>, StoreError> {
        let copied = self.inner.copy(from, if_match, to, condition).await;
        self.reads.detach(|(known, ..)| known == to);
        copied
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        let erased = self.inner.erase(key, condition).await;
        self.reads.detach(|(known, ..)| known == key);
        erased
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        let erased = self.inner.erase_prefix(prefix).await;
        self.reads.detach(|_| true);
        erased
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        self.inner.list_dir_after(prefix, after)
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        self.inner.list_prefix(prefix, after)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }
}

impl Shortcuts for SharedReads {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::future::join_all;
    use futures::stream::{self, StreamExt};
    use tokio::sync::Semaphore;

    use super::*;

    /// A remote store with one value, whose reads wait until they are let through.
    #[derive(Debug)]
    struct Gated {
        value: Mutex<Option<(Version, Bytes)>>,
        gate: Semaphore,
        gets: AtomicU64,
        heads: AtomicU64,
        fails: bool,
    }

    impl Gated {
        fn of(bytes: Option<Bytes>, fails: bool) -> Arc<Self> {
            let value = Mutex::new(bytes.map(|bytes| (Version::strong("1"), bytes)));
            let (gets, heads) = (AtomicU64::new(0), AtomicU64::new(0));
            Arc::new(Self { value, gate: Semaphore::new(0), gets, heads, fails })
        }

        fn found(&self) -> Option<(ValueInfo, Bytes)> {
            let (version, bytes) = self.value.lock().unwrap().clone()?;
            Some((ValueInfo { size: bytes.len() as u64, version, modified: None }, bytes))
        }

        fn requests(&self) -> (u64, u64) {
            (self.gets.load(Ordering::SeqCst), self.heads.load(Ordering::SeqCst))
        }
    }

    #[async_trait]
    impl Store for Gated {
        fn kind(&self) -> StoreKind {
            StoreKind::S3
        }

        async fn head(&self, _: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
            self.heads.fetch_add(1, Ordering::SeqCst);
            Ok(self.found().map(|(info, _)| info))
        }

        async fn get(
            &self,
            _: &StoreKey,
            range: ByteRange,
            _: Option<&Version>,
        ) -> Result<Option<Value>, StoreError> {
            self.gets.fetch_add(1, Ordering::SeqCst);
            let found = self.found();
            let _open = self.gate.acquire().await.unwrap();
            if self.fails {
                return Err(StoreError::WrongLength);
            }
            let Some((info, bytes)) = found else { return Ok(None) };
            let range = range.resolve(info.size).unwrap();
            let part =
                bytes.slice(usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap());
            let pieces = stream::iter([Ok(part)]).boxed();
            Ok(Some(Value::new(info, range, ValueBody::Stream(pieces))))
        }

        fn list_dir_after(&self, _: &StorePrefix, _: &str) -> DirEntries {
            stream::empty().boxed()
        }

        fn list_prefix(
            &self,
            _: &StorePrefix,
            _: Option<&StoreKey>,
        ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
            stream::empty().boxed()
        }

        async fn check(&self) -> Result<(), StoreError> {
            Ok(())
        }
    }

    impl Shortcuts for Gated {}

    const CALLERS: u64 = 20;

    fn key() -> StoreKey {
        StoreKey::parse("a/c/0").unwrap()
    }

    async fn read(store: &SharedStore, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
        match store.get(&key(), range, None).await? {
            Some(value) => value.bytes(u64::MAX).await.map(Some),
            None => Ok(None),
        }
    }

    /// Reads by many callers at once, which all wait before the backend responds.
    async fn together(
        gated: &Arc<Gated>,
        policy: CachePolicy,
    ) -> (Vec<Result<Option<Bytes>, StoreError>>, u64) {
        let (store, shared) = SharedReads::wrap(Arc::clone(gated) as SharedStore, policy);
        let all = join_all((0..CALLERS).map(|_| read(&store, ByteRange::Whole)));
        let let_through = async {
            tokio::task::yield_now().await;
            gated.gate.add_permits(1000);
        };
        let (all, ()) = join(all, let_through).await;
        (all, shared.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn callers_at_the_same_time_share_one_read() {
        for policy in [CachePolicy::Immutable, CachePolicy::Ttl(std::time::Duration::from_secs(1))] {
            let gated = Gated::of(Some(Bytes::from_static(b"value")), false);
            let (all, shared) = together(&gated, policy).await;
            assert!(all.into_iter().all(|found| found.unwrap().unwrap() == "value"));
            assert_eq!((gated.requests(), shared), ((1, 0), CALLERS - 1));
        }
    }

    #[tokio::test]
    async fn where_reads_must_be_current_each_asks_for_the_version() {
        let gated = Gated::of(Some(Bytes::from_static(b"value")), false);
        let (all, shared) = together(&gated, CachePolicy::Always).await;
        assert!(all.into_iter().all(|found| found.unwrap().unwrap() == "value"));
        assert_eq!((gated.requests(), shared), ((1, CALLERS - 1), CALLERS - 1));
    }

    #[tokio::test]
    async fn a_caller_after_a_change_does_not_get_what_was_read_before() {
        let gated = Gated::of(Some(Bytes::from_static(b"one")), false);
        let (store, _) = SharedReads::wrap(Arc::clone(&gated) as SharedStore, CachePolicy::Always);
        let first = tokio::spawn({
            let store = Arc::clone(&store);
            async move { read(&store, ByteRange::Whole).await }
        });
        while gated.requests().0 == 0 {
            tokio::task::yield_now().await;
        }
        *gated.value.lock().unwrap() = Some((Version::strong("2"), Bytes::from_static(b"two")));
        let (second, ()) = join(read(&store, ByteRange::Whole), async { gated.gate.add_permits(2) }).await;
        assert_eq!(second.unwrap().unwrap(), "two");
        assert_eq!(first.await.unwrap().unwrap().unwrap(), "one");
    }

    #[tokio::test]
    async fn absence_and_failures_are_shared_and_long_values_are_not() {
        let absent = Gated::of(None, false);
        let (all, _) = together(&absent, CachePolicy::Immutable).await;
        assert!(all.into_iter().all(|found| found.unwrap().is_none()));
        assert_eq!(absent.requests().0, 1);

        let failing = Gated::of(None, true);
        let (all, _) = together(&failing, CachePolicy::Immutable).await;
        assert!(all.into_iter().all(|found| found.is_err()));
        assert_eq!(failing.requests().0, 1);

        let length = usize::try_from(LARGEST_BYTES).unwrap() + 1;
        let long = Gated::of(Some(Bytes::from(vec![7; length])), false);
        let (all, shared) = together(&long, CachePolicy::Immutable).await;
        assert!(all.into_iter().all(|found| found.unwrap().unwrap().len() == length));
        assert_eq!((long.requests().0, shared), (CALLERS, 0));
    }

    #[tokio::test]
    async fn other_ranges_are_other_reads_and_a_caller_who_leaves_takes_nothing_from_the_others() {
        let gated = Gated::of(Some(Bytes::from_static(b"value")), false);
        let (store, _) = SharedReads::wrap(Arc::clone(&gated) as SharedStore, CachePolicy::Immutable);
        let mut first = Box::pin(read(&store, ByteRange::Whole));
        assert!(futures::poll!(first.as_mut()).is_pending());
        let (second, other) = (read(&store, ByteRange::Whole), read(&store, ByteRange::Bounded(1, 3)));
        let mut both = Box::pin(join(second, other));
        assert!(futures::poll!(both.as_mut()).is_pending());
        assert_eq!(gated.requests().0, 2);
        drop(first);
        gated.gate.add_permits(10);
        let (second, other) = both.await;
        assert_eq!((second.unwrap().unwrap(), other.unwrap().unwrap()), ("value".into(), "al".into()));
        assert_eq!(gated.requests().0, 3);
    }
}

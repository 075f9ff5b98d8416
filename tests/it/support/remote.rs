//! A store that is far away: each request takes a while, and is recorded. It can fail.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{BoxStream, StreamExt};
use zarrd::key::{StoreKey, StorePrefix};
use zarrd::store::{
    ByteRange, Capabilities, DirEntries, ListEntry, SetResult, SharedStore, Shortcuts, Store, StoreError,
    StoreKind, Value, ValueInfo, ValueStream, Version, WriteCondition,
};

/// How long each request takes, on the clock of the runtime.
pub const LATENCY: Duration = Duration::from_millis(50);

/// What is wrong with the store.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// No request gets a response.
    Fails,
    /// Requests get no response, and no error.
    Hangs,
    /// Requests are refused.
    Refuses,
}

/// A store whose responses take [`LATENCY`]. What they contain is from before the wait.
#[derive(Debug)]
pub struct Remote {
    inner: SharedStore,
    requests: Mutex<Vec<String>>,
    fault: Mutex<Option<Fault>>,
}

impl Remote {
    pub fn new(inner: SharedStore) -> Arc<Self> {
        Arc::new(Self { inner, requests: Mutex::default(), fault: Mutex::default() })
    }

    /// The requests since the last call, as `HEAD a/zarr.json`, in the order in which they were sent.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }

    /// Breaks the store, or mends it.
    pub fn set_fault(&self, fault: Option<Fault>) {
        *self.fault.lock().unwrap() = fault;
    }

    async fn answered<T>(
        &self,
        request: String,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.requests.lock().unwrap().push(request);
        let fault = *self.fault.lock().unwrap();
        let error = || Arc::new(std::io::Error::other("out of order"));
        match fault {
            None => {}
            Some(Fault::Fails) => return Err(StoreError::TimedOut(error())),
            Some(Fault::Hangs) => std::future::pending().await,
            Some(Fault::Refuses) => return Err(StoreError::Backend(error())),
        }
        let answer = answer.await;
        tokio::time::sleep(LATENCY).await;
        answer
    }
}

#[async_trait]
impl Store for Remote {
    fn kind(&self) -> StoreKind {
        self.inner.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        self.answered(format!("HEAD {key}"), self.inner.head(key)).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        self.answered(format!("GET {key}"), self.inner.get(key, range, if_match)).await
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        self.answered(format!("PUT {key}"), self.inner.set(key, body, condition)).await
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        self.requests.lock().unwrap().push(format!("LIST {prefix}"));
        if matches!(*self.fault.lock().unwrap(), Some(Fault::Hangs)) {
            return futures::stream::pending().boxed();
        }
        self.inner.list_dir_after(prefix, after)
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        self.requests.lock().unwrap().push(format!("LIST {prefix}"));
        self.inner.list_prefix(prefix, after)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.answered("CHECK".to_owned(), self.inner.check()).await
    }
}

impl Shortcuts for Remote {
    fn capabilities(&self) -> Capabilities {
        Capabilities::REMOTE
    }
}

//! [`Value`] and [`ValueBody`]: what a read returns.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::StoreError;
use super::types::{ValueInfo, Version};
use crate::cpu::on_pool_thread;

/// Bytes of a value that is read or stored.
pub type ValueStream = BoxStream<'static, Result<Bytes, StoreError>>;

/// The bytes of a value: in memory, as a stream, or in an open file.
pub enum ValueBody {
    /// In memory already.
    Bytes(Bytes),
    /// As the backend sends them. Ends in an error rather than short.
    Stream(ValueStream),
    /// In a file that is open.
    File(Box<dyn FileBody>),
}

/// A body in an open file. Which bytes of the file these are is known to the file's store.
pub trait FileBody: Send {
    /// The body as a stream, whose pieces take little memory.
    fn into_stream(self: Box<Self>) -> ValueStream;

    /// Whether the beginning of the body is in memory, so that [`FileBody::try_read`] is likely to succeed.
    fn begins_in_memory(&self) -> bool;

    /// All bytes of the body's range, in memory of their own. A long body takes long, so call this on the compute pool.
    ///
    /// # Errors
    /// The body as it was, if not all of it can be read without blocking: its stream reads it, or says why not.
    fn try_read(self: Box<Self>) -> Result<Bytes, Box<dyn FileBody>>;
}

/// A value, or a part of one.
#[derive(Debug)]
pub struct Value {
    /// Size of the complete value and version.
    pub info: ValueInfo,
    /// Which of its bytes the body holds.
    pub range: Range<u64>,
    /// The bytes.
    pub body: ValueBody,
    /// Whether the bytes come from a cache of this server.
    pub is_cached: bool,
    /// Whether a cache counts their memory until they are dropped, so that a response with them takes no more.
    pub is_accounted: bool,
}

impl Value {
    /// A value, or a part of it, as a backend has it.
    #[must_use]
    pub fn new(info: ValueInfo, range: Range<u64>, body: ValueBody) -> Self {
        Self { info, range, body, is_cached: false, is_accounted: false }
    }

    /// As [`Value::new`], from a cache of this server.
    #[must_use]
    pub fn cached(info: ValueInfo, range: Range<u64>, body: ValueBody) -> Self {
        Self { info, range, body, is_cached: true, is_accounted: false }
    }

    /// How many bytes the body holds.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether the body is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The body, collected: refuses, before reading, one that is longer than `limit_bytes`, and checks that it is
    /// exactly as long as [`Value::range`] promises. The caller may keep it, so bytes that a cache accounts for are copied.
    ///
    /// # Errors
    /// [`StoreError::ValueTooLarge`], [`StoreError::WrongLength`], or the body's own error.
    pub async fn bytes(self, limit_bytes: u64) -> Result<Bytes, StoreError> {
        let (bytes, is_accounted) = self.borrowed_bytes(limit_bytes).await?;
        Ok(if is_accounted { Bytes::copy_from_slice(&bytes) } else { bytes })
    }

    /// As [`Value::bytes`], for a caller that is soon done with them. Returns also whether a cache accounts for them: such bytes
    /// are not copied, and must not be kept.
    ///
    /// # Errors
    /// As [`Value::bytes`].
    pub async fn borrowed_bytes(mut self, limit_bytes: u64) -> Result<(Bytes, bool), StoreError> {
        if on_pool_thread() && self.len() <= limit_bytes && self.begins_in_memory() {
            match self.try_read() {
                Ok(bytes) => return Ok((bytes, false)),
                Err(unread) => self = unread,
            }
        }
        self.streamed_bytes(limit_bytes).await
    }

    /// As [`Value::borrowed_bytes`], without an attempt to read all of an open file at once.
    ///
    /// # Errors
    /// As [`Value::bytes`].
    pub async fn streamed_bytes(self, limit_bytes: u64) -> Result<(Bytes, bool), StoreError> {
        let length = self.len();
        let too_large = StoreError::ValueTooLarge { size: length, limit: limit_bytes };
        let (true, Ok(capacity)) = (length <= limit_bytes, usize::try_from(length)) else {
            return Err(too_large);
        };
        let bytes = match self.body {
            ValueBody::Bytes(bytes) => bytes,
            ValueBody::Stream(stream) => collect(stream, capacity).await?,
            ValueBody::File(file) if on_pool_thread() => {
                collect_on_reactor(file.into_stream(), capacity).await?
            }
            ValueBody::File(file) => collect(file.into_stream(), capacity).await?,
        };
        if bytes.len() == capacity { Ok((bytes, self.is_accounted)) } else { Err(StoreError::WrongLength) }
    }

    /// Whether the body is in an open file and its beginning in memory, so that [`Value::try_read`] is likely to succeed.
    #[must_use]
    pub fn begins_in_memory(&self) -> bool {
        matches!(&self.body, ValueBody::File(file) if file.begins_in_memory())
    }

    /// The body, if it is in an open file and all of it is in memory. Call this on the compute pool.
    ///
    /// # Errors
    /// The value as it was, if not all of its body can be read without blocking, or it is in no open file.
    pub fn try_read(self) -> Result<Bytes, Self> {
        let Self { info, range, body, is_cached, is_accounted } = self;
        let body = match body {
            ValueBody::File(file) => match file.try_read() {
                Ok(bytes) => return Ok(bytes),
                Err(file) => ValueBody::File(file),
            },
            other => other,
        };
        Err(Self { info, range, body, is_cached, is_accounted })
    }

    /// The same value under the version that the caller requested, which is equal to its own unless it is unsettled.
    #[must_use]
    pub(super) fn with_requested_version(mut self, if_match: Option<&Version>) -> Self {
        if let Some(version) = if_match {
            self.info.version = version.clone();
        }
        self
    }

    /// The body as a stream that ends in an error unless it is exactly as long as [`Value::range`] promises.
    #[must_use]
    pub fn into_exact_stream(self) -> ValueStream {
        let state = (self.len(), self.body.into_stream());
        try_unfold(state, |(left, mut stream)| async move {
            let Some(part) = stream.try_next().await? else {
                return if left == 0 { Ok(None) } else { Err(StoreError::WrongLength) };
            };
            let left = u64::try_from(part.len()).ok().and_then(|length| left.checked_sub(length));
            Ok(Some((part, (left.ok_or(StoreError::WrongLength)?, stream))))
        })
        .boxed()
    }
}

/// The bytes of a stream, which should be this many.
async fn collect(mut stream: ValueStream, capacity: usize) -> Result<Bytes, StoreError> {
    let Some(first) = stream.try_next().await? else { return Ok(Bytes::new()) };
    if first.len() == capacity {
        return if stream.try_next().await?.is_none() { Ok(first) } else { Err(StoreError::WrongLength) };
    }
    let mut bytes = BytesMut::with_capacity(capacity);
    bytes.extend_from_slice(&first);
    while let Some(part) = stream.try_next().await? {
        if part.len() > capacity - bytes.len().min(capacity) {
            return Err(StoreError::WrongLength);
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes.freeze())
}

/// [`collect`] for a caller on the pool: there, each piece that is not in memory would wait for its turn.
async fn collect_on_reactor(stream: ValueStream, capacity: usize) -> Result<Bytes, StoreError> {
    // Ends the task when it is dropped.
    let mut task = JoinSet::new();
    task.spawn(collect(stream, capacity).in_current_span());
    match task.join_next().await {
        Some(Ok(collected)) => collected,
        Some(Err(error)) => Err(StoreError::Backend(Arc::new(error))),
        // The set has one task.
        None => Err(StoreError::WrongLength),
    }
}

impl ValueBody {
    /// The body as a stream.
    #[must_use]
    pub fn into_stream(self) -> ValueStream {
        match self {
            Self::Bytes(bytes) => futures::stream::once(std::future::ready(Ok(bytes))).boxed(),
            Self::Stream(stream) => stream,
            Self::File(file) => file.into_stream(),
        }
    }
}

impl fmt::Debug for ValueBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
            Self::File(_) => f.write_str("File"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{ComputePool, ComputePoolOptions};

    #[tokio::test]
    async fn a_body_of_another_length_than_its_range_is_rejected() {
        let value = |parts: Vec<&'static [u8]>, range: Range<u64>| {
            let info = ValueInfo { size: 100, version: Version::strong("v"), modified: None };
            let parts = futures::stream::iter(parts.into_iter().map(|part| Ok(Bytes::from_static(part))));
            Value::new(info, range, ValueBody::Stream(parts.boxed()))
        };
        assert_eq!(value(vec![b"ab", b"cd"], 0..4).bytes(10).await.unwrap(), "abcd");
        assert_eq!(value(vec![b"abcd"], 0..4).bytes(10).await.unwrap(), "abcd");
        assert_eq!(value(vec![], 4..4).bytes(10).await.unwrap(), "");
        let stream = value(vec![b"ab", b"cd"], 0..4).into_exact_stream();
        assert_eq!(stream.try_collect::<Vec<_>>().await.unwrap().concat(), b"abcd");
        for (parts, range) in [
            (vec![b"ab" as &[u8]], 0..4),
            (vec![b"ab", b"cde"], 0..4),
            (vec![b"abcd", b"e"], 0..4),
            (vec![], 0..1),
        ] {
            assert!(matches!(
                value(parts.clone(), range.clone()).bytes(10).await,
                Err(StoreError::WrongLength)
            ));
            let stream: Result<Vec<Bytes>, _> = value(parts, range).into_exact_stream().try_collect().await;
            assert!(matches!(stream, Err(StoreError::WrongLength)));
        }
        assert!(matches!(value(vec![b"abcd"], 0..4).bytes(3).await, Err(StoreError::ValueTooLarge { .. })));
    }

    /// A body of which only the beginning is in memory. Its stream records on what threads it is polled.
    struct PartlyInMemory(std::sync::mpsc::Sender<bool>);

    impl FileBody for PartlyInMemory {
        fn into_stream(self: Box<Self>) -> ValueStream {
            let pieces = futures::stream::iter([b"ab", b"cd"]).map(move |piece| {
                self.0.send(on_pool_thread()).unwrap();
                Ok(Bytes::from_static(piece))
            });
            pieces.boxed()
        }

        fn begins_in_memory(&self) -> bool {
            true
        }

        fn try_read(self: Box<Self>) -> Result<Bytes, Box<dyn FileBody>> {
            Err(self)
        }
    }

    #[tokio::test]
    async fn what_is_not_in_memory_is_not_read_by_threads_of_the_pool() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let info = ValueInfo { size: 4, version: Version::strong("v"), modified: None };
        let value = Value::new(info, 0..4, ValueBody::File(Box::new(PartlyInMemory(sender))));
        assert_eq!(cpu.spawn_future(value.bytes(4)).await.unwrap().unwrap(), "abcd");
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [false, false]);
    }
}

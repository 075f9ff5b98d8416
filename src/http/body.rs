//! Response and request bodies: exactly as long as declared, or visibly aborted.
//!
//! The head of a response declares a length. [`value_body`] sends this length or ends with an error, which closes the
//! connection (HTTP/1.1) or resets the stream (HTTP/2), so that a client never takes a short body for complete. An upload
//! reaches the store through [`upload`]: the store sees its end only after the client has sent everything.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::mpsc::{self, Sender};
use tokio::time::timeout;

use super::aws_chunked::ChunkedError;
use super::digest::{Checking, DigestError};
use super::options::HttpOptions;
use super::problem::Problem;
use crate::cpu::ComputePoolError;
use crate::store::{StoreError, Value, ValueBody, ValueStream};

/// A body of at most this length, in bytes, is read before its response begins.
const SHORT_BODY: u64 = 64 << 10;

/// The body of a response with a value or a part of one.
///
/// Waits for the whole of a short body and for the first bytes of a long one, so that a failure of the backend still has a
/// status. A proxy requests a response again only if it has not begun to send it to the client.
///
/// # Errors
/// Any failure of the backend, and [`StoreError::WrongLength`] if it sends another length than declared.
pub(crate) async fn value_body(value: Value) -> Result<Body, StoreError> {
    let length = value.len();
    match value.body {
        ValueBody::Bytes(bytes) if u64::try_from(bytes.len()) == Ok(length) => Ok(Body::from(bytes)),
        ValueBody::Bytes(_) => Err(StoreError::WrongLength),
        _ if length == 0 => Ok(Body::empty()),
        // Boxed, because it would make the future of every read larger.
        _ if length <= SHORT_BODY => Box::pin(value.bytes(SHORT_BODY)).await.map(Body::from),
        body => {
            let mut stream = body.into_stream();
            let first = stream.try_next().await?.ok_or(StoreError::WrongLength)?;
            Ok(content_length_body(first, stream, length))
        }
    }
}

/// A body that is an error unless `first` and `rest` have `length` bytes together.
pub(crate) fn content_length_body<E>(
    first: Bytes,
    rest: BoxStream<'static, Result<Bytes, E>>,
    length: u64,
) -> Body
where
    E: Error + Send + Sync + 'static,
{
    Body::new(ContentLengthBody { first: Some(first), rest, remaining: length })
}

/// Why a body is aborted.
#[derive(Debug, thiserror::Error)]
enum ShortBody<E: Error + 'static> {
    /// The source of the body failed.
    #[error(transparent)]
    Source(E),
    /// The body does not have the declared length.
    #[error("the body is of another length than its head says")]
    Length,
}

/// A stream that is an error unless it has `remaining` bytes.
struct ContentLengthBody<E> {
    first: Option<Bytes>,
    rest: BoxStream<'static, Result<Bytes, E>>,
    remaining: u64,
}

impl<E: Error + Send + Sync + 'static> HttpBody for ContentLengthBody<E> {
    type Data = Bytes;
    type Error = ShortBody<E>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ShortBody<E>>>> {
        let part = match self.first.take() {
            Some(first) => Some(Ok(first)),
            None if self.remaining == 0 => None,
            None => ready!(self.rest.as_mut().poll_next(context)),
        };
        Poll::Ready(match part {
            Some(Ok(part)) => {
                let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
                Some(match self.remaining.checked_sub(length) {
                    Some(remaining) => {
                        self.remaining = remaining;
                        Ok(Frame::data(part))
                    }
                    None => Err(ShortBody::Length),
                })
            }
            Some(Err(error)) => Some(Err(ShortBody::Source(error))),
            None if self.remaining > 0 => Some(Err(ShortBody::Length)),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

/// The body of a 204 or 304, or of a response to HEAD whose length is not known: empty and without a length, which in a 304 would
/// mean that of the value.
pub(crate) struct NoBody;

impl HttpBody for NoBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }
}

/// A message from the connection to the store.
enum Part {
    Bytes(Bytes),
    /// The client has sent the whole body.
    End,
    Failed(StoreError),
}

/// The connection's end of an upload.
pub(crate) struct Upload {
    feed: Sender<Part>,
    limits: Limits,
    checking: Option<Checking>,
}

struct Limits {
    bytes: u64,
    declared: Option<u64>,
    stall: Duration,
    bytes_per_second: u64,
    deadline: Duration,
}

/// The two ends of an upload: one that reads from the client, and the stream that a store reads.
///
/// The stream ends without an error only after [`Upload::run`] has received a complete body. If `run` is dropped because the
/// client disconnected, the stream ends with an error and the store keeps nothing.
pub(crate) fn upload(options: &HttpOptions, declared: Option<u64>) -> (Upload, ValueStream) {
    let (feed, parts) = mpsc::channel(1);
    let limits = Limits {
        bytes: options.max_value_size,
        declared,
        stall: options.body_stall_timeout,
        bytes_per_second: options.min_body_rate,
        deadline: options.response_timeout,
    };
    let stream = futures::stream::try_unfold(parts, |mut parts| async move {
        match parts.recv().await {
            Some(Part::Bytes(bytes)) => Ok(Some((bytes, parts))),
            Some(Part::End) => Ok(None),
            Some(Part::Failed(error)) => Err(error),
            None => Err(StoreError::BodyAborted("the client went away")),
        }
    });
    (Upload { feed, limits, checking: None }, stream.boxed())
}

impl Upload {
    /// Adds a check of the digests of the body, which runs on the compute pool before the store sees the end.
    pub(crate) fn checked(self, checking: Checking) -> Self {
        Self { checking: Some(checking), ..self }
    }

    /// Forwards a request body until it ends, exceeds a limit, or the store stops reading.
    ///
    /// # Errors
    /// 400 for a body that ends early or does not match its digest, 408 for one that arrives too slowly, 413 for one over
    /// the limit, 504 if the store reads nothing until the request deadline.
    pub(crate) async fn run(self, body: Body) -> Result<(), Problem> {
        let Self { feed, limits, checking } = self;
        let result = limits.pass(body.into_data_stream(), &feed, checking).await;
        let (part, result) = match result {
            Ok(()) => (Part::End, Ok(())),
            Err(UploadError::Stalled) => (
                Part::Failed(StoreError::BodyAborted("it was too slow")),
                Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "body-too-slow")
                    .detail("the body came too slowly; nothing was written")),
            ),
            Err(UploadError::StoreBusy) => {
                // Dropping the feed ends the stream of the store with an error.
                return Err(Problem::from_class(crate::error::ErrorClass::TimedOut));
            }
            Err(UploadError::StoreDone) => return Ok(()),
            Err(UploadError::Digest(error)) => {
                (Part::Failed(StoreError::BodyAborted("it is not what its digest says")), Err(error.into()))
            }
            Err(UploadError::Cpu(error)) => {
                (Part::Failed(StoreError::BodyAborted("it could not be checked")), Err(error.into()))
            }
            Err(UploadError::Body(error)) => (Part::Failed(error.clone()), Err(error.into())),
            Err(UploadError::Chunked(error)) => (
                Part::Failed(StoreError::BodyAborted("it is not signed or chunked as it says")),
                Err(error.into()),
            ),
        };
        // A store that stopped reading returns its own result.
        let _ = timeout(limits.deadline, feed.send(part)).await;
        result
    }
}

/// Reads a request body of at most `limit` bytes into memory, under the same rules as an upload. Its memory must have been
/// admitted before. A longer body is the problem `too_long`.
///
/// # Errors
/// 400 for a body that ends early, 408 for one that arrives too slowly, and `too_long`.
pub(crate) async fn collect(
    options: &HttpOptions,
    declared: Option<u64>,
    limit: u64,
    checking: Option<Checking>,
    body: Body,
    too_long: impl FnOnce() -> Problem,
) -> Result<Bytes, Problem> {
    let (upload, stream) = upload(&HttpOptions { max_value_size: limit, ..options.clone() }, declared);
    let upload = Upload { checking, ..upload };
    // One allocation, so that a body of many small pieces costs no more memory than one of few.
    let expected = declared.unwrap_or_default().min(limit);
    let held = BytesMut::with_capacity(usize::try_from(expected).unwrap_or_default());
    let held = stream.try_fold(held, |mut held, piece| async move {
        held.extend_from_slice(&piece);
        Ok(held)
    });
    match futures::join!(upload.run(body), held) {
        (_, Err(StoreError::BodyTooLarge { .. })) => Err(too_long()),
        (Err(problem), _) => Err(problem),
        (Ok(()), held) => Ok(held?.freeze()),
    }
}

/// Why an upload did not complete.
enum UploadError {
    Body(StoreError),
    Chunked(ChunkedError),
    Digest(DigestError),
    Cpu(ComputePoolError),
    Stalled,
    StoreBusy,
    StoreDone,
}

impl UploadError {
    /// The failure of a body: what its decoder found, or else the connection.
    fn of_body(error: &axum::Error) -> Self {
        let mut next: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(cause) = next {
            if let Some(found) = cause.downcast_ref().filter(|found| **found != ChunkedError::Broken) {
                return Self::Chunked(*found);
            }
            next = cause.source();
        }
        Self::Body(StoreError::BodyAborted("the connection broke"))
    }
}

impl Limits {
    async fn pass<S>(
        &self,
        mut body: S,
        feed: &Sender<Part>,
        mut checking: Option<Checking>,
    ) -> Result<(), UploadError>
    where
        S: Stream<Item = Result<Bytes, axum::Error>> + Unpin,
    {
        let (mut received, mut waited) = (0_u64, Duration::ZERO);
        loop {
            let asked = tokio::time::Instant::now();
            let Ok(part) = timeout(self.stall, body.next()).await else { return Err(UploadError::Stalled) };
            // Only time spent waiting for the client counts towards its rate.
            waited += asked.elapsed();
            let Some(part) = part else { break };
            let bytes = part.map_err(|error| UploadError::of_body(&error))?;
            received = received.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            if received > self.bytes {
                return Err(UploadError::Body(StoreError::BodyTooLarge { limit: self.bytes }));
            }
            if waited > self.stall && received < self.bytes_per_second.saturating_mul(waited.as_secs()) {
                return Err(UploadError::Stalled);
            }
            if let Some(checking) = &mut checking {
                checking.add(&bytes).await.map_err(UploadError::Cpu)?;
            }
            match timeout(self.deadline, feed.send(Part::Bytes(bytes))).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(UploadError::StoreDone),
                Err(_) => return Err(UploadError::StoreBusy),
            }
        }
        if self.declared.is_some_and(|declared| declared != received) {
            return Err(UploadError::Body(StoreError::BodyAborted(
                "it is not as long as `Content-Length` says",
            )));
        }
        match checking {
            Some(mut checking) => {
                checking.check().await.map_err(UploadError::Cpu)?.map_err(UploadError::Digest)
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{ValueInfo, Version};

    fn value(parts: Vec<Result<&'static [u8], StoreError>>, length: u64) -> Value {
        let stream = futures::stream::iter(parts.into_iter().map(|part| part.map(Bytes::from_static)));
        let info = ValueInfo { size: 100, version: Version::strong("v"), modified: None };
        Value::new(info, 0..length, ValueBody::Stream(stream.boxed()))
    }

    async fn sent(value: Value) -> Result<Vec<u8>, String> {
        let body = value_body(value).await.map_err(|error| error.to_string())?;
        let parts: Result<Vec<Bytes>, _> = body.into_data_stream().try_collect().await;
        parts.map(|parts| parts.concat()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_body_has_the_declared_length_or_is_an_error() {
        assert_eq!(sent(value(vec![Ok(b"ab"), Ok(b"cd")], 4)).await.unwrap(), b"abcd");
        assert_eq!(sent(value(vec![], 0)).await.unwrap(), b"");
        assert!(sent(value(vec![Ok(b"ab")], 4)).await.is_err());
        assert!(sent(value(vec![Ok(b"ab"), Ok(b"cde")], 4)).await.is_err());
        assert!(sent(value(vec![Ok(b"ab"), Err(StoreError::WrongLength)], 4)).await.is_err());
        assert!(value_body(value(vec![], 1)).await.is_err());
        assert!(value_body(value(vec![Err(StoreError::WrongLength)], 1)).await.is_err());
    }

    #[tokio::test]
    async fn a_failure_within_a_short_body_has_a_status() {
        let long: &[u8] = vec![7; usize::try_from(SHORT_BODY).unwrap()].leak();
        for (first, is_begun) in [(&b"ab"[..], false), (long, true)] {
            let length = first.len() as u64 + 1;
            let failing = value(vec![Ok(first), Err(StoreError::WrongLength)], length);
            assert_eq!(value_body(failing).await.is_ok(), is_begun, "{length} bytes");
            let failing = value(vec![Ok(first), Err(StoreError::WrongLength)], length);
            assert!(sent(failing).await.is_err());
            let whole = sent(value(vec![Ok(first), Ok(b"c")], length)).await.unwrap();
            assert_eq!(whole, [first, b"c"].concat());
        }
    }

    #[tokio::test]
    async fn an_upload_whose_client_disconnects_is_an_error_for_the_store() {
        let (upload, mut stream) = upload(&HttpOptions::default(), None);
        let body =
            futures::stream::once(async { Ok::<_, axum::Error>("abc") }).chain(futures::stream::pending());
        let client = tokio::spawn(upload.run(Body::from_stream(body)));
        assert_eq!(stream.try_next().await.unwrap().unwrap(), "abc");
        client.abort();
        assert!(matches!(stream.try_next().await, Err(StoreError::BodyAborted(_))));
    }
}

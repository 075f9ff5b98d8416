//! Admission: how many bytes of answers may be under way at one time, and the short queue before that.
//!
//! The currency is bytes, not requests, and the queue is bounded by time, not by length. A [`Permit`] lives until
//! the body of the answer has ended or was dropped, because it is the body that holds memory. Health routes do not
//! come through here.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::problem::Problem;
use super::state::AppState;

/// Bytes that one permit of the semaphore stands for; a semaphore counts in 32 bits.
const UNIT_BYTES: u64 = 1024;

/// The gate.
#[derive(Debug)]
pub(super) struct Admission {
    permits: Arc<Semaphore>,
    units: u32,
    queue: Duration,
    waiting: AtomicU64,
}

/// How full the gate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// Bytes that may be under way.
    pub(super) limit_bytes: u64,
    /// Bytes that are, as they were admitted.
    pub(super) under_way_bytes: u64,
    /// Requests that wait.
    pub(super) waiting: u64,
}

/// A request that waits, until it is dropped.
struct Waiting<'a>(&'a AtomicU64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// The right to have an answer under way.
#[derive(Debug)]
pub(super) struct Permit {
    _permit: OwnedSemaphorePermit,
}

impl Admission {
    /// A gate for this many bytes, where a request waits no longer than `queue`.
    pub(super) fn new(bytes: u64, queue: Duration) -> Self {
        let units = units(bytes);
        let permits = usize::try_from(units).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(permits)), units, queue, waiting: AtomicU64::new(0) }
    }

    /// How full it is now.
    pub(super) fn level(&self) -> Level {
        let limit_bytes = u64::from(self.units).saturating_mul(UNIT_BYTES);
        let free_bytes = (self.permits.available_permits() as u64).saturating_mul(UNIT_BYTES);
        let under_way_bytes = limit_bytes.saturating_sub(free_bytes);
        Level { limit_bytes, under_way_bytes, waiting: self.waiting.load(Relaxed) }
    }

    /// Waits for room for `bytes`. More than the whole budget means the whole budget: such an answer goes alone.
    ///
    /// # Errors
    /// 503 with `Retry-After` once the queue's time has passed.
    pub(super) async fn enter(&self, bytes: u64) -> Result<Permit, Problem> {
        let units = units(bytes).min(self.units);
        // Fails while anybody waits, so nobody is overtaken.
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_many_owned(units) {
            return Ok(Permit { _permit: permit });
        }
        self.waiting.fetch_add(1, Relaxed);
        let _waiting = Waiting(&self.waiting);
        match timeout(self.queue, Arc::clone(&self.permits).acquire_many_owned(units)).await {
            Ok(Ok(permit)) => Ok(Permit { _permit: permit }),
            _ => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded")
                .detail("the server is busy; nothing was done; `Retry-After` says when to ask again")),
        }
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).max(1)
}

/// Admits requests to the routes that move stored bytes; what is streamed holds little memory, whatever its length.
pub(super) async fn admit(state: &AppState, answer: impl Future<Output = Response>) -> Response {
    match state.admission().enter(state.options().stream_bytes).await {
        Ok(permit) => permit.hold(answer.await),
        Err(problem) => problem.into_response(),
    }
}

impl Permit {
    /// Ties the permit to an answer's body.
    pub(super) fn hold(self, response: Response) -> Response {
        response.map(|body| Body::new(Held { body, permit: Some(self) }))
    }
}

/// A body with its permit.
struct Held {
    body: Body,
    permit: Option<Permit>,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let poll = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = &poll {
            self.permit = None;
        }
        poll
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    #[tokio::test]
    async fn a_permit_lives_until_the_body_ends_or_is_dropped() {
        let gate = Admission::new(2 * UNIT_BYTES, Duration::from_millis(1));
        let answer = || async {
            let permit = gate.enter(UNIT_BYTES).await.unwrap();
            permit.hold(Response::new(Body::from_stream(futures::stream::iter([Ok::<_, axum::Error>("x")]))))
        };
        let (first, second) = (answer().await, answer().await);
        assert!(gate.enter(1).await.is_err());
        drop(first);
        assert!(gate.enter(1).await.is_ok());
        let third = answer().await;
        assert!(gate.enter(1).await.is_err());
        let mut parts = second.into_body().into_data_stream();
        while parts.next().await.is_some() {}
        assert!(gate.enter(1).await.is_ok());
        drop(third);
        assert!(gate.enter(u64::MAX).await.is_ok());
    }
}

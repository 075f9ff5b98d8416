//! A response body that fails when the backend stalls, and otherwise may take as long as its reader does.
//!
//! Only the time in which the reader waits counts: bytes that have arrived are returned before the timer is polled, so
//! a pause of the reader is not taken for a slow backend. The complete body has no timeout.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::client::{HttpError, HttpErrorKind, HttpResponse, HttpResponseBody};
use tokio::time::{Sleep, sleep};

/// The backend sends nothing.
#[derive(Debug, thiserror::Error)]
#[error("the backend sent nothing for too long")]
struct ReadStalled;

/// The failure of a backend that stalls.
pub(super) fn stalled() -> HttpError {
    HttpError::new(HttpErrorKind::Timeout, ReadStalled)
}

/// The same response, with a body that fails after `stall` without a byte.
pub(super) fn with_stall_timeout(response: HttpResponse, stall: Duration) -> HttpResponse {
    response.map(|body| HttpResponseBody::new(StallTimeoutBody { body, stall, clock: None }))
}

struct StallTimeoutBody {
    body: HttpResponseBody,
    stall: Duration,
    /// Runs while the reader waits.
    clock: Option<Pin<Box<Sleep>>>,
}

impl Body for StallTimeoutBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let Self { body, stall, clock } = &mut *self;
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(context) {
            *clock = None;
            return Poll::Ready(frame);
        }
        let clock = clock.get_or_insert_with(|| Box::pin(sleep(*stall)));
        clock.as_mut().poll(context).map(|()| Some(Err(stalled())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

//! A response's body that may take as long as its reader does, and is given up when the backend stalls.
//!
//! Only time in which the reader waits counts: bytes that are there are taken before the clock is looked at, so a reader
//! that pauses does not make the backend look slow. Nothing limits the time of a whole body.

use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use http_body::{Body, Frame};
use object_store::client::{HttpError, HttpErrorKind, HttpResponse, HttpResponseBody};
use tokio::time::{Sleep, sleep};

/// The backend sends nothing.
#[derive(Debug, thiserror::Error)]
#[error("the backend sent nothing for too long")]
struct Stalled;

/// The failure of a backend that stalls.
pub(super) fn stalled() -> HttpError {
    HttpError::new(HttpErrorKind::Timeout, Stalled)
}

/// The same answer, whose body is given up after `stall` without a byte.
pub(super) fn patient(response: HttpResponse, stall: Duration) -> HttpResponse {
    response.map(|body| {
        let stream = Mutex::new(body.bytes_stream());
        HttpResponseBody::new(Patient { stream, stall, clock: None })
    })
}

struct Patient {
    /// Never locked, as there is one reader; it lets the body pass between threads.
    stream: Mutex<BoxStream<'static, Result<Bytes, HttpError>>>,
    stall: Duration,
    /// Runs while the reader waits.
    clock: Option<Pin<Box<Sleep>>>,
}

impl Body for Patient {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let Self { stream, stall, clock } = &mut *self;
        let Ok(stream) = stream.get_mut() else { return Poll::Ready(Some(Err(stalled()))) };
        if let Poll::Ready(piece) = stream.poll_next_unpin(context) {
            *clock = None;
            return Poll::Ready(piece.map(|piece| piece.map(Frame::data)));
        }
        let clock = clock.get_or_insert_with(|| Box::pin(sleep(*stall)));
        match clock.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Some(Err(stalled()))),
            Poll::Pending => Poll::Pending,
        }
    }
}

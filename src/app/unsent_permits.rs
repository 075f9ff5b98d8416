//! [`Unsent`]: a response body that is in flight until its last byte is sent, on a connection that is shared with others.
//!
//! Over HTTP/1.1 a response is written before the next one begins, and its unwritten rest when its body has ended is part of the
//! memory of a connection. Over HTTP/2, as many bodies as a connection has streams can have ended while their bytes wait for the
//! client's window. There each piece keeps the body alive, and with it the permit of the response.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// A body that lives until all its pieces are dropped.
#[derive(Debug)]
pub(crate) struct Unsent(Arc<Mutex<Body>>);

/// A piece of a body.
struct Piece {
    bytes: Bytes,
    _body: Arc<Mutex<Body>>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Unsent {
    /// A body whose pieces keep it alive.
    pub(crate) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(body)))
    }

    fn body(&self) -> MutexGuard<'_, Body> {
        // It is polled by one task only.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpBody for Unsent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = Pin::new(&mut *self.body()).poll_frame(cx);
        let held = |bytes| Bytes::from_owner(Piece { bytes, _body: Arc::clone(&self.0) });
        frame.map_ok(|frame| frame.map_data(held))
    }

    fn is_end_stream(&self) -> bool {
        self.body().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body().size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use futures::stream;

    use super::*;

    #[tokio::test]
    async fn a_response_is_charged_until_its_last_piece_is_dropped() {
        let charged = Arc::new(());
        let charge = Arc::clone(&charged);
        let pieces = stream::iter(["a", "b"]).map(move |piece| {
            let _ = &charge;
            Ok::<_, axum::Error>(piece)
        });
        let mut body = Body::new(Unsent::new(Body::from_stream(pieces))).into_data_stream();
        let (first, last) = (body.next().await.unwrap().unwrap(), body.next().await.unwrap().unwrap());
        assert!(body.next().await.is_none());
        drop(body);
        assert_eq!((&*first, &*last, Arc::strong_count(&charged)), (&b"a"[..], &b"b"[..], 2));
        drop(last);
        assert_eq!(Arc::strong_count(&charged), 2, "one piece is not yet sent");
        drop(first);
        assert_eq!(Arc::strong_count(&charged), 1);
    }
}

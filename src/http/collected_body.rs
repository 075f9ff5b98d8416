//! [`collected`]: a body whose parts are collected while it is sent.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

/// A body of known length. Once it was read to its end, its parts are passed to `then`, in their order.
pub(crate) fn collected(body: Body, then: impl FnOnce(Vec<Bytes>) + Unpin + Send + 'static) -> Body {
    match body.size_hint().exact() {
        Some(missing) => {
            Body::new(CollectedBody { inner: body, parts: Vec::new(), missing, then: Some(then) })
        }
        None => body,
    }
}

struct CollectedBody<F> {
    inner: Body,
    parts: Vec<Bytes>,
    /// Bytes that were not read yet.
    missing: u64,
    then: Option<F>,
}

impl<F: FnOnce(Vec<Bytes>) + Unpin + Send + 'static> HttpBody for CollectedBody<F> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let body = self.get_mut();
        let frame = ready!(Pin::new(&mut body.inner).poll_frame(context));
        if let Some(part) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
            body.parts.push(part.clone());
            body.missing = body.missing.saturating_sub(part.len() as u64);
            // The server does not ask for more than the length that the head says.
            if body.missing == 0
                && let Some(then) = body.then.take()
            {
                then(std::mem::take(&mut body.parts));
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::mpsc;

    use futures::{StreamExt, stream};

    use super::*;
    use crate::http::body::content_length_body;

    /// A body that says that it has this length.
    fn abc(length: u64) -> Body {
        let rest = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"c"))]).boxed();
        content_length_body(Bytes::from_static(b"ab"), rest, length)
    }

    #[tokio::test]
    async fn the_parts_of_a_body_are_there_once_it_is_read_to_its_end() {
        let (sender, receiver) = mpsc::channel();
        let body = collected(abc(3), move |parts| sender.send(parts).unwrap());
        assert_eq!(axum::body::to_bytes(body, 3).await.unwrap(), "abc");
        assert_eq!(receiver.recv().unwrap(), ["ab", "c"]);
    }

    #[tokio::test]
    async fn the_parts_of_a_body_that_is_not_read_or_is_too_short_are_dropped() {
        for (length, reads) in [(3, 1), (4, 3)] {
            let (sender, receiver) = mpsc::channel();
            let body = collected(abc(length), move |parts| sender.send(parts).unwrap());
            let mut read = body.into_data_stream();
            for _ in 0..reads {
                let _ = read.next().await;
            }
            drop(read);
            receiver.recv().unwrap_err();
        }
    }
}

//! The body of a write of which nothing more is sent once its deadline has passed: the connection ends then, and the backend does not get
//! the whole request.
//!
//! A client hands the pieces of a body to the connection, which asks for the next one when it has sent the one before. So they are short:
//! what is asked for before the deadline may be sent after it, if the process was paused in between.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::client::{
    HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
};

use crate::store::{DeadlinePassed, WriteDeadline};

/// The longest piece, in bytes. A connection holds up to 16 of them.
const PIECE_BYTES: usize = 16 << 10;

/// The response to a write has no document, or a short one that says why it failed. About as much of it is read, in bytes.
const MAX_DOCUMENT_BYTES: usize = 64 << 10;

/// Sends a PUT request, whose body breaks off at the deadline.
pub(super) async fn send_before(
    deadline: WriteDeadline,
    client: &reqwest::Client,
    request: HttpRequest,
) -> Result<HttpResponse, HttpError> {
    let (parts, body) = request.into_parts();
    let url = parts.uri.to_string().parse();
    let url = url.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
    let mut sent = reqwest::Request::new(parts.method, url);
    *sent.headers_mut() = parts.headers;
    *sent.body_mut() = Some(reqwest::Body::wrap(DeadlineBody { body, piece: Bytes::new(), deadline }));
    let mut response = client.execute(sent).await.map_err(failure)?;
    let mut document = Vec::new();
    while document.len() < MAX_DOCUMENT_BYTES
        && let Ok(Some(piece)) = response.chunk().await
    {
        document.extend_from_slice(&piece);
    }
    let mut found = HttpResponse::new(HttpResponseBody::from(document));
    *found.status_mut() = response.status();
    *found.headers_mut() = std::mem::take(response.headers_mut());
    Ok(found)
}

/// The error of a request, with what is known of whether it was sent.
fn failure(error: reqwest::Error) -> HttpError {
    let kind = match &error {
        error if error.is_connect() => HttpErrorKind::Connect,
        error if error.is_timeout() => HttpErrorKind::Timeout,
        error if error.is_decode() => HttpErrorKind::Decode,
        _ => HttpErrorKind::Interrupted,
    };
    HttpError::new(kind, error.without_url())
}

struct DeadlineBody {
    body: HttpRequestBody,
    /// What is left of a piece of it.
    piece: Bytes,
    deadline: WriteDeadline,
}

impl Body for DeadlineBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if self.deadline.has_passed() {
            return Poll::Ready(Some(Err(HttpError::new(HttpErrorKind::Timeout, DeadlinePassed))));
        }
        while self.piece.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => self.piece = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let length = self.piece.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.piece.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.piece.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.body.size_hint().exact().unwrap_or_default();
        SizeHint::with_exact(rest + self.piece.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::Request;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;
    use tokio::time::{Instant, sleep_until};

    use super::super::client::{Connector, TimeoutOptions};
    use super::*;

    #[tokio::test]
    async fn what_the_backend_has_not_taken_of_a_body_before_the_deadline_is_not_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/value", listener.local_addr().unwrap());
        let second = Duration::from_secs(1);
        let timeouts =
            TimeoutOptions { connect: second, read: second, tries: 1, retry: second, retry_percent: 0 };
        let connector = Connector::new(false, &timeouts).unwrap();
        // More than the system takes before anyone reads it.
        let body = vec![7; 64 << 20];
        for is_late in [false, true] {
            let end = Instant::now() + Duration::from_millis(if is_late { 300 } else { 600_000 });
            let request = Request::put(&url).header("content-length", body.len());
            let request = request.body(HttpRequestBody::from(body.clone())).unwrap();
            let sent =
                async { send_before(WriteDeadline::new(end), connector.client(), request).await.is_ok() };
            let taken = async {
                let (mut socket, _) = listener.accept().await.unwrap();
                if is_late {
                    sleep_until(end).await;
                }
                let (mut bytes, mut piece) = (0, vec![0; 1 << 20]);
                while bytes < body.len()
                    && let Ok(length @ 1..) = socket.read(&mut piece).await
                {
                    bytes += length;
                }
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                let _ = tokio::io::AsyncWriteExt::write_all(&mut socket, answer).await;
                bytes
            };
            let (is_sent, bytes) = tokio::join!(sent, taken);
            assert_eq!((is_sent, bytes < body.len()), (!is_late, is_late), "{bytes} bytes");
        }
    }
}

//! [`ConnectionService`]: between hyper and the endpoints: rules of framing, and response bodies that report to the monitor.
//!
//! RFC 9112 §3.2 (Host), §6.1 (Transfer-Encoding), §9.6 (Connection). hyper rejects most malformed heads by itself;
//! the rules here are those that it leaves open. What a request means does not matter here.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::{Body, HttpBody};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use axum::http::{HeaderValue, Request, Response, StatusCode, Version};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::Service;

use super::connection_timeouts::{ConnectionMonitor, RequestGuard};
use super::unsent_permits::Unsent;
use crate::http::Peer;
use crate::metrics::ConnectionCounts;
use crate::web::Endpoint;

/// The handler of the requests of a listener.
pub trait RequestHandler: Clone + Send + Sync + Unpin + 'static {
    /// The response to a request from a peer.
    fn handle(self, request: Request<Body>, from: Peer) -> impl Future<Output = Response<Body>> + Send;

    /// Whether connections are kept alive after their responses.
    fn keeps_connections(&self) -> bool {
        true
    }

    /// The counters of connections, if there are any.
    fn connections(&self) -> Option<Arc<ConnectionCounts>> {
        None
    }
}

impl RequestHandler for Endpoint {
    fn handle(self, request: Request<Body>, from: Peer) -> impl Future<Output = Response<Body>> + Send {
        Self::handle(&self, request, from)
    }

    fn keeps_connections(&self) -> bool {
        Self::keeps_connections(self)
    }

    fn connections(&self) -> Option<Arc<ConnectionCounts>> {
        Some(Self::connections(self))
    }
}

/// The handler for one connection.
#[derive(Clone, Debug)]
pub(super) struct ConnectionService<R> {
    pub(super) routes: R,
    pub(super) peer: Peer,
    pub(super) monitor: ConnectionMonitor,
}

impl<R: RequestHandler> Service<Request<Incoming>> for ConnectionService<R> {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = ResponseFuture<R>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let is_http2 = request.version() == Version::HTTP_2;
        let guard = Some(self.monitor.begin_request(is_http2));
        let routes = self.routes.clone();
        if let Some(refusal) = refusal(&request) {
            let response = Box::pin(std::future::ready(refusal));
            // The end of a request with invalid framing is unknown, and so is whether another one follows.
            return ResponseFuture { response, routes, is_http2, is_read: None, is_last: true, guard };
        }
        // HTTP/2 ends one stream. In HTTP/1.1 an unread body ends the connection, and without `Connection: close` a client would send
        // its next request in vain.
        let is_read =
            (!is_http2 && !request.body().is_end_stream()).then(|| Arc::new(AtomicBool::new(false)));
        let request = match &is_read {
            Some(is_read) => {
                request.map(|body| Body::new(RequestBody { body, is_read: Arc::clone(is_read) }))
            }
            None if request.body().is_end_stream() => request.map(|_| Body::empty()),
            None => request.map(Body::new),
        };
        let response = Box::pin(self.routes.clone().handle(request, self.peer));
        ResponseFuture { response, routes, is_http2, is_read, is_last: false, guard }
    }
}

/// The response to a request, and whether its connection is kept open. The handler's future is large: this moves only a pointer to it.
pub(super) struct ResponseFuture<R> {
    response: Pin<Box<dyn Future<Output = Response<Body>> + Send>>,
    routes: R,
    is_http2: bool,
    /// Whether the body of the request was read to its end, if it has one.
    is_read: Option<Arc<AtomicBool>>,
    /// Whether the connection ends in any case.
    is_last: bool,
    /// Until the response begins.
    guard: Option<RequestGuard>,
}

impl<R: RequestHandler> Future for ResponseFuture<R> {
    type Output = Result<Response<ResponseBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut response = ready!(self.response.as_mut().poll(cx));
        // It is not polled again.
        let Some(guard) = self.guard.take() else { return Poll::Pending };
        let is_unread = self.is_read.as_ref().is_some_and(|is_read| !is_read.load(Ordering::Relaxed));
        if !self.is_http2 && (self.is_last || is_unread || !self.routes.keeps_connections()) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let is_http2 = self.is_http2;
        Poll::Ready(Ok(response.map(|body| {
            let body = if is_http2 { Body::new(Unsent::new(body)) } else { body };
            ResponseBody { body, guard }
        })))
    }
}

/// A request body that records whether it was read to its end.
#[derive(Debug)]
struct RequestBody {
    body: Incoming,
    is_read: Arc<AtomicBool>,
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.is_read.store(true, Ordering::Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The response to a request that must not reach the endpoint.
fn refusal<B>(request: &Request<B>) -> Option<Response<Body>> {
    let (mut hosts, mut length, mut encodings, mut are_chunked) = (0, None, 0, true);
    // One pass: most requests have few headers, and each lookup takes longer than to compare their names.
    for (name, value) in request.headers() {
        if name == HOST {
            hosts += 1;
        } else if name == CONTENT_LENGTH {
            length = length.or(Some(value));
        } else if name == TRANSFER_ENCODING {
            encodings += 1;
            are_chunked &= value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
        }
    }
    if hosts > 1 || (hosts == 0 && request.version() == Version::HTTP_11) {
        let detail = "the request must have exactly one Host header";
        return Some(problem(StatusCode::BAD_REQUEST, "Bad Request", "invalid-request", detail));
    }
    // No value is that long, and what follows would be read as its bytes.
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| i64::try_from(length).is_err()) {
        let detail = "the Content-Length is larger than any body can be";
        return Some(problem(StatusCode::BAD_REQUEST, "Bad Request", "invalid-request", detail));
    }
    if !are_chunked || encodings > 1 {
        let detail = "the only Transfer-Encoding this server knows is chunked";
        return Some(problem(StatusCode::NOT_IMPLEMENTED, "Not Implemented", "unsupported", detail));
    }
    None
}

/// A problem document (RFC 9457); its texts are constants and need no escaping.
fn problem(status: StatusCode, title: &str, code: &str, detail: &str) -> Response<Body> {
    let number = status.as_u16();
    let document = format!(
        r#"{{"type":"about:blank","title":"{title}","status":{number},"code":"{code}","detail":"{detail}"}}"#
    );
    let mut response = Response::new(Body::from(document));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}

/// A response body that reports whether the server or the client is being waited for. The request is in flight until it is dropped.
#[derive(Debug)]
pub(super) struct ResponseBody {
    body: Body,
    guard: RequestGuard,
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        match &frame {
            Poll::Pending => self.guard.on_server_working(),
            // What has ended is dropped at once.
            Poll::Ready(_) if self.body.is_end_stream() => {}
            Poll::Ready(_) => self.guard.on_body_ready(Instant::now()),
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

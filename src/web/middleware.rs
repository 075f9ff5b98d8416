//! What every request passes through: request id, access log, problem documents, limits, panics and deadlines.
//!
//! `router` says in which order they stand. Connection timeouts are `app`'s.

use std::any::Any;
use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::future::FutureExt;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, timeout};
use tracing::{Span, field};

use super::compression::{self, Wish};
use crate::admission::ClientBucket;
use crate::admission::memory_pressure::MemoryPressure;
use crate::admission::overloaded;
use crate::api::s3;
use crate::auth::Refusal;
use crate::auth::caller::Administrator;
use crate::auth::caller::Caller;
use crate::auth::origin;
use crate::error::ErrorClass;
use crate::http::body::NoBody;
use crate::http::cors;
use crate::http::problem;
use crate::http::problem::{Problem, READ_METHODS};
use crate::http::route::{Resource, RouteSpec};
use crate::http::validators::{from_text, hex_tag};
use crate::metrics::RouteCounts;
use crate::services::mount::Mount;
use crate::services::state::AppState;
use tracing::Instrument;

/// Names a request, on its way in and out.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Names the trace that a request belongs to (W3C Trace Context).
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Longest request id that is taken over from a client or proxy.
const REQUEST_ID_BYTES: usize = 128;

/// A request id as text.
fn text(id: &HeaderValue) -> &str {
    id.to_str().unwrap_or_default()
}

/// The request id that came with the request, if it is one that can be logged, or a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    match headers.get(X_REQUEST_ID) {
        Some(id)
            if (1..=REQUEST_ID_BYTES).contains(&id.as_bytes().len()) && id.as_bytes().iter().all(plain) =>
        {
            id.clone()
        }
        _ => {
            // Keyed and counted: unlike any other of this process, and unlikely to be like another process's.
            let number = KEY.hash_one(COUNT.fetch_add(1, Ordering::Relaxed));
            from_text(hex_tag(&number.to_be_bytes())).unwrap_or(HeaderValue::from_static("none"))
        }
    }
}

/// A raw path as visible ASCII, so that no log line can be forged or turned around.
fn escaped(path: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if path.bytes().all(is_plain) { path.into() } else { path.escape_default().to_string().into() }
}

/// A request that has a name and is watched to the end of its answer.
pub(crate) struct RequestRecord {
    started: Instant,
    id: HeaderValue,
    from: IpAddr,
    method: Method,
    route: Option<&'static RouteSpec>,
    uri: Uri,
    state: AppState,
    counts: Arc<RouteCounts>,
    is_answered: bool,
    span: Span,
}

impl RequestRecord {
    /// Names a request.
    pub(crate) fn begin(state: &AppState, route: Option<&'static RouteSpec>, request: &mut Request) -> Self {
        let started = Instant::now();
        let (state, counts) = (state.clone(), Arc::clone(state.counts().begin(route)));
        if !request.body().is_end_stream() {
            let body = std::mem::take(request.body_mut());
            *request.body_mut() = Body::new(CountedBody { body, counts: Arc::clone(&counts) });
        }
        let id = request_id(request.headers());
        request.headers_mut().insert(X_REQUEST_ID, id.clone());
        let from = Caller::of(request.extensions()).address();
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let span = tracing::trace_span!(
            target: "zarrd::span",
            "request",
            method = method.as_str(),
            route = route.map_or("unmatched", |route| route.template),
            request_id = text(&id),
            traceparent = request.headers().get(TRACEPARENT).and_then(|value| value.to_str().ok()),
            status = field::Empty,
        );
        Self { started, id, from, method, route, uri, state, counts, is_answered: false, span }
    }

    /// What it is in a trace, if there is one.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// The request's id.
    pub(crate) fn id(&self) -> &HeaderValue {
        &self.id
    }

    /// Writes the problem document of an answer that is an error.
    pub(crate) fn render(&self, answer: Response) -> Response {
        if let Some(problem) = answer.extensions().get::<Problem>() {
            self.state.counts().codes.add(problem.code());
        }
        problem::render(answer, text(&self.id))
    }

    /// Logs the request when the answer's body has ended.
    pub(crate) fn finish(mut self, mut answer: Response) -> Response {
        let headers = answer.headers_mut();
        headers.insert(X_REQUEST_ID, self.id.clone());
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if matches!(answer.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            *answer.body_mut() = Body::new(NoBody);
        }
        self.is_answered = true;
        self.counts.answered(&self.method, answer.status(), self.started.elapsed());
        let status = answer.status().as_u16();
        self.span.record("status", status);
        answer.map(|body| {
            let expected = if self.method == Method::HEAD { Some(0) } else { body.size_hint().exact() };
            Body::new(AccessLogBody { body, request: self, status, expected, sent: 0 })
        })
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        self.state.counts().end();
        if !self.is_answered {
            self.counts.left(&self.method);
        }
    }
}

/// A request's body, whose bytes are counted.
struct CountedBody {
    body: Body,
    counts: Arc<RouteCounts>,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let poll = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &poll {
            self.counts.received(frame.data_ref().map_or(0, Bytes::len));
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

/// A body that counts itself and writes the access log when it ends, breaks or is dropped. What it writes is put into
/// words only then, and only if somebody reads it.
struct AccessLogBody {
    body: Body,
    request: RequestRecord,
    status: u16,
    expected: Option<u64>,
    sent: u64,
}

impl HttpBody for AccessLogBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        // What is made of it meanwhile belongs to the request.
        let poll = {
            let Self { body, request, .. } = &mut *self;
            request.span.in_scope(|| Pin::new(body).poll_frame(context))
        };
        match &poll {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.sent = self.sent.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
            }
            Poll::Ready(Some(Err(error))) => {
                self.request.counts.cut_off();
                let causes = problem::causes(error);
                tracing::error!(request_id = text(&self.request.id), causes, "answer cut off");
            }
            Poll::Ready(None) | Poll::Pending => {}
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

impl Drop for AccessLogBody {
    fn drop(&mut self) {
        let took = self.request.started.elapsed();
        self.request.counts.ended(self.sent, took);
        tracing::info!(
            request_id = text(&self.request.id),
            from = %self.request.from,
            method = self.request.method.as_str(),
            route = self.request.route.map_or("unmatched", |route| route.template),
            path = &*escaped(self.request.uri.path()),
            status = self.status,
            bytes = self.sent,
            complete = self.expected.is_none_or(|expected| self.sent >= expected),
            duration_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            "request"
        );
    }
}

/// Refuses whatever comes while there is no memory left for it.
pub(crate) fn check_pressure(state: &AppState) -> Result<(), Problem> {
    if state.pressure() == MemoryPressure::Critical { Err(overloaded()) } else { Ok(()) }
}

/// Refuses URLs and headers that are too long and methods that no route offers.
pub(crate) fn check_limits(state: &AppState, request: &Request) -> Result<(), Problem> {
    let limit = state.options().max_url_size;
    let length = request.uri().path_and_query().map_or(0, |url| url.as_str().len());
    if length > limit {
        let detail =
            format!("the URL has {length} bytes; at most {limit} are read; send a long selection by POST");
        return Err(Problem::new(StatusCode::URI_TOO_LONG, "url-too-long").detail(detail));
    }
    check_headers(state, request.headers())?;
    if matches!(*request.method(), Method::TRACE | Method::CONNECT) {
        return Err(Problem::from_status(StatusCode::METHOD_NOT_ALLOWED).allow(READ_METHODS));
    }
    Ok(())
}

/// Refuses headers that are too many, or too long together. A parser further out has limits of its own.
fn check_headers(state: &AppState, headers: &HeaderMap) -> Result<(), Problem> {
    let (most, most_bytes) = (state.options().max_headers, state.options().max_headers_size);
    // As on a line of HTTP/1.1: name, colon, blank, value, line end.
    let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>();
    if headers.len() <= most && bytes <= most_bytes {
        return Ok(());
    }
    let detail = format!("at most {most} headers of {most_bytes} bytes together are read");
    Err(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "headers-too-large").detail(detail))
}

/// Answers 504 when a handler takes too long to its answer's head. PUT and PATCH keep their own time, as most of it is
/// the client's; so do COPY and MOVE, as how much they copy is the client's. An async function would hold `answer` twice.
pub(crate) fn with_deadline(
    state: &AppState,
    method: &Method,
    answer: impl Future<Output = Response>,
) -> impl Future<Output = Response> {
    let takes_its_time = matches!(method.as_str(), "PUT" | "PATCH" | "COPY" | "MOVE");
    let most = if takes_its_time { Duration::MAX } else { state.deadline() };
    let too_late = |_| Problem::from_class(ErrorClass::TimedOut).into_response();
    timeout(most, answer).map(move |answer| answer.unwrap_or_else(too_late))
}

/// A handler's panic.
#[derive(Debug, thiserror::Error)]
#[error("a handler panicked: {0}")]
struct Panicked(String);

/// The answer for a handler that panicked.
pub(crate) fn panicked(payload: Box<dyn Any + Send + 'static>) -> Response {
    let text = match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast::<&str>().map_or_else(|_| "?".to_owned(), |text| text.to_string()),
    };
    Problem::internal(Arc::new(Panicked(text))).into_response()
}

/// The answer for URLs that are no route.
pub(crate) async fn no_route(request: Request) -> Response {
    // A preflight must succeed, or the page would see a network error in place of the 404.
    if request.method() == Method::OPTIONS {
        return (StatusCode::NO_CONTENT, [(header::ALLOW, READ_METHODS)]).into_response();
    }
    Problem::from_status(StatusCode::NOT_FOUND).into_response()
}

/// The answer for methods that a route does not have; the router adds `Allow`.
pub(crate) async fn no_method(request: Request) -> Response {
    if request.method() == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let problem = Problem::from_status(StatusCode::METHOD_NOT_ALLOWED);
    let route = request.extensions().get::<&'static RouteSpec>();
    let reads = route.is_some_and(|route| matches!(route.resource, Resource::Node | Resource::Chunk));
    let problem = if reads {
        problem.detail(
            "this route is for reading, by GET and HEAD. What is stored is written by PUT, PATCH and DELETE of \
             `/store/{mount}/{key}`, where the mount is writable",
        )
    } else {
        problem
    };
    problem.into_response()
}

/// The way of a request to its route and back.
///
/// Into it: request id, limits of the request and of memory, whether the caller and its page may do that and how often, the
/// deadline. Out of it: the dialect of S3, cross-origin headers, problem documents, content codings, the log. Further in stand
/// the catching of panics and, where stored bytes are moved, admission. `rooted` is the mount that is the store at the root
/// path, if one is.
pub(crate) async fn run_middleware<F: Future<Output = Response>>(
    state: &AppState,
    spec: Option<&'static RouteSpec>,
    root: Option<&Arc<Mount>>,
    mut request: Request,
    next: impl FnOnce(Request) -> F + Clone,
) -> Response {
    let dialect = s3::ErrorFormat::of(spec, request.uri());
    let is_health = spec.is_some_and(|spec| spec.answers_under_load);
    // What a request is given on its way does not count.
    let checked = check_limits(state, &request);
    let observed = RequestRecord::begin(state, spec, &mut request);
    // Nothing at the listener of whoever runs the server is for pages of other origins.
    let is_admins = Administrator::is_asking(request.extensions());
    let sharing = (!is_admins).then(|| cors::CorsRequest::of(&request));
    let method = request.method().clone();
    let wish = Wish::of(spec, &request);
    let let_in = async {
        checked?;
        if !is_health {
            check_pressure(state)?;
        }
        let leave =
            state.authorizer().authorize(spec, root.map(|mount| mount.name.as_str()), &mut request).await?;
        state.with_origin_rules(|rules| origin::check(rules, spec, &request))?;
        let rates = state.rates().filter(|_| !is_health && !is_admins);
        let rated = rates.map(|rates| (rates, ClientBucket::of(request.extensions())));
        if let Some((rates, share)) = rated {
            rates.check(share)?;
        }
        Ok::<_, Refusal>((leave, rated))
    };
    let mut answer = match let_in.await {
        Ok((leave, rated)) => {
            // The rarer way is boxed: a future is as large as its largest branch.
            let mut answer = if wish.as_ref().is_some_and(Wish::is_of_head) {
                let answers = head_of_body(state, &method, request, next);
                Box::pin(answers.instrument(observed.span().clone())).await
            } else {
                let next = with_deadline(state, &method, next(request));
                next.instrument(observed.span().clone()).await
            };
            leave.apply(&mut answer);
            if let Some((rates, share)) = rated {
                rates.record_bytes(share, answer.body().size_hint().lower());
            }
            answer
        }
        Err(refusal) => refusal.into_response(),
    };
    if let Some(dialect) = dialect {
        dialect.render(observed.id(), &mut answer);
    }
    if let Some(sharing) = sharing {
        sharing.put(&state.options().cors, answer.headers_mut());
    }
    let mut answer = observed.render(answer);
    if let Some(wish) = wish
        && let Some(coding) = wish.judge(&mut answer)
    {
        answer = Box::pin(compression::coded(state, wish, coding, answer)).await;
    }
    observed.finish(answer)
}

/// The answer to HEAD of what may be sent in a content coding: with the body, where the length depends on it. The caller
/// drops it.
async fn head_of_body<F: Future<Output = Response>>(
    state: &AppState,
    method: &Method,
    request: Request,
    next: impl FnOnce(Request) -> F + Clone,
) -> Response {
    let (again, with_body) = (next.clone(), compression::with_body(&request));
    let answer = with_deadline(state, method, next(request)).await;
    if !compression::lacks_body(&answer) {
        return answer;
    }
    // What it holds is given back before the same is asked for once more.
    drop(answer);
    with_deadline(state, method, again(with_body)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_are_taken_over_only_if_they_can_be_logged() {
        let id = |text: &str| {
            let headers =
                HeaderMap::from_iter([(X_REQUEST_ID, HeaderValue::from_bytes(text.as_bytes()).unwrap())]);
            request_id(&headers).to_str().unwrap().to_owned()
        };
        assert_eq!(id("abc-1.2:3_4"), "abc-1.2:3_4");
        for odd in ["", "a b", "a\"b", "é", &"x".repeat(129)] {
            assert_ne!(id(odd), odd);
            assert_eq!(id(odd).len(), 16);
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }

    #[test]
    fn logged_paths_are_visible_ascii() {
        assert_eq!(escaped("/a\u{202e}b\u{1b}"), "/a\\u{202e}b\\u{1b}");
    }
}

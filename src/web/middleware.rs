//! The middleware of all requests: request id, access log, problem documents, limits, panics and deadlines.
//!
//! [`run_middleware`] has the order. Connection timeouts are in `app`.
//!
//! Requests on the fast path pass through the same function, so the layers of `tower_http` are used only for panics.
//! `tower_http::request_id` keeps any id that a client sends, while an id here has to be safe to log, and problem documents
//! and log lines need it too. `tower_http::timeout` has one duration for all methods, and its response has no body,
//! while a missed deadline here is a problem document.

use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, timeout};
use tracing::{Span, field};

use super::access_log::AccessLogEntry;
use super::audit::{AuditEntry, AuditedRequest};
use super::compression::{self, Wish};
use super::logged::escaped;
use super::snapshots::SnapshotHeaders;
use super::stale_headers::StaleHeaders;
use crate::admission::ClientBucket;
use crate::admission::memory_pressure::MemoryPressure;
use crate::admission::overloaded;
use crate::api::{dap, s3, view};
use crate::auth::Refusal;
use crate::auth::caller::Administrator;
use crate::auth::caller::Caller;
use crate::auth::origin;
use crate::error::ErrorClass;
use crate::http::body::NoBody;
use crate::http::cors;
use crate::http::options::HttpOptions;
use crate::http::problem;
use crate::http::problem::{Problem, READ_METHODS};
use crate::http::request_id::{RequestId, X_REQUEST_ID};
use crate::http::route::{Resource, RouteSpec};
use crate::metrics::{Counts, RouteCounts};
use crate::services::lifecycle::Lifecycle;
use crate::services::mount::Mount;
use crate::services::state::AppState;
use crate::units::hexadecimal;
use tracing::Instrument;

/// The header with the trace of a request (W3C Trace Context).
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Longest request id that is accepted from a client or proxy, in bytes.
const REQUEST_ID_BYTES: usize = 128;

/// A request id as text.
fn text(id: &HeaderValue) -> &str {
    id.to_str().unwrap_or_default()
}

/// The id that the request has, if it is safe to log, or a new one.
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
            // Keyed and counted: unique in this process, and unlikely to repeat that of another process.
            let number = KEY.hash_one(COUNT.fetch_add(1, Ordering::Relaxed));
            let digits = number.to_be_bytes().map(hexadecimal::digits);
            HeaderValue::from_bytes(digits.as_flattened()).unwrap_or(HeaderValue::from_static("none"))
        }
    }
}

/// The record of a request, from its start to the end of its response.
pub(crate) struct RequestRecord {
    started: Instant,
    id: HeaderValue,
    from: IpAddr,
    method: Method,
    route: Option<&'static RouteSpec>,
    uri: Uri,
    all_counts: Arc<Counts>,
    counts: Arc<RouteCounts>,
    status: Option<StatusCode>,
    audit: Option<Box<AuditEntry>>,
    span: Span,
}

impl RequestRecord {
    /// Starts the record: gives the request an id and counts it.
    pub(crate) fn begin(
        all_counts: &Arc<Counts>,
        route: Option<&'static RouteSpec>,
        request: &mut Request,
    ) -> Self {
        let started = Instant::now();
        let (all_counts, counts) = (Arc::clone(all_counts), Arc::clone(all_counts.begin(route)));
        let audit = AuditEntry::begin(request.method(), route, request.uri(), request.headers());
        if !request.body().is_end_stream() {
            let body = std::mem::take(request.body_mut());
            let received = audit.as_ref().map(|audit| Arc::clone(audit.received()));
            *request.body_mut() = Body::new(CountedBody { body, counts: Arc::clone(&counts), received });
        }
        let id = request_id(request.headers());
        if route.is_some_and(|route| route.resource == Resource::Nodes) {
            // Its response has parts with problem documents of their own.
            request.extensions_mut().insert(RequestId(id.clone()));
        }
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
        Self { started, id, from, method, route, uri, all_counts, counts, status: None, audit, span }
    }

    /// The trace span of the request, which may be disabled.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// The request's id.
    pub(crate) fn id(&self) -> &HeaderValue {
        &self.id
    }

    /// Takes the name of the caller, which authorization found.
    fn set_caller(&mut self, extensions: &Extensions) {
        if let Some(audit) = &mut self.audit {
            audit.set_caller(Caller::of(extensions).rights().name());
        }
    }

    /// Renders the problem document of an error response.
    pub(crate) fn render(&self, answer: Response) -> Response {
        if let Some(problem) = answer.extensions().get::<Problem>() {
            self.all_counts.codes.add(problem.code());
        }
        problem::render(answer, text(&self.id))
    }

    /// Completes the head; the access log line follows when the body has ended.
    pub(crate) fn finish(mut self, mut answer: Response) -> Response {
        let headers = answer.headers_mut();
        headers.insert(X_REQUEST_ID, self.id.clone());
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if matches!(answer.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            *answer.body_mut() = Body::new(NoBody);
        }
        set_length(&mut answer);
        self.status = Some(answer.status());
        self.audit = self.audit.take().filter(|audit| audit.is_kept(answer.extensions()));
        self.counts.answered(&self.method, answer.status(), self.started.elapsed());
        let status = answer.status().as_u16();
        self.span.record("status", status);
        answer.map(|body| {
            // Of unknown length, so that nothing after this takes a length from it.
            let body = if self.method == Method::HEAD { Body::new(NoBody) } else { body };
            let expected = if self.method == Method::HEAD { Some(0) } else { body.size_hint().exact() };
            Body::new(AccessLogBody { body, request: self, status, expected, sent: 0 })
        })
    }
}

/// Sets `Content-Length` to the length of the body, if it is known and the handler did not set it.
fn set_length(answer: &mut Response) {
    if let Some(length) = answer.body().size_hint().exact() {
        answer.headers_mut().entry(header::CONTENT_LENGTH).or_insert_with(|| length.into());
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        self.all_counts.end();
        if self.status.is_none() {
            self.counts.left(&self.method);
        }
        if let Some(audit) = &self.audit {
            let request = AuditedRequest {
                id: text(&self.id),
                from: self.from,
                method: &self.method,
                route: self.route.map_or("unmatched", |route| route.template),
                path: &escaped(self.uri.path()),
            };
            audit.log(&request, self.status);
        }
    }
}

/// A request body that counts its bytes.
struct CountedBody {
    body: Body,
    counts: Arc<RouteCounts>,
    /// The counter of this request alone, if there is one.
    received: Option<Arc<AtomicU64>>,
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
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            self.counts.received(bytes);
            if let Some(received) = &self.received {
                received.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
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

/// A response body that counts its bytes and writes the access log when it ends, fails or is dropped.
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
        // Work on the body belongs to the request's span.
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
        let duration = self.request.started.elapsed();
        self.request.counts.ended(self.sent, duration);
        AccessLogEntry {
            request_id: text(&self.request.id),
            from: self.request.from,
            method: self.request.method.as_str(),
            route: self.request.route.map_or("unmatched", |route| route.template),
            path: &escaped(self.request.uri.path()),
            status: self.status,
            bytes: self.sent,
            complete: self.expected.is_none_or(|expected| self.sent >= expected),
            duration,
        }
        .log();
    }
}

/// Rejects requests under critical memory pressure.
pub(crate) fn check_pressure(lifecycle: &Lifecycle) -> Result<(), Problem> {
    if lifecycle.pressure() == MemoryPressure::Critical { Err(overloaded()) } else { Ok(()) }
}

/// Rejects URLs and headers that are too long, and methods that no route offers.
pub(crate) fn check_limits(options: &HttpOptions, request: &Request) -> Result<(), Problem> {
    let limit = options.max_url_size;
    let length = request.uri().path_and_query().map_or(0, |url| url.as_str().len());
    if length > limit {
        let detail = format!("the URL has {length} bytes; at most {limit} are read: request less at a time");
        return Err(Problem::new(StatusCode::URI_TOO_LONG, "url-too-long").detail(detail));
    }
    check_headers(options, request.headers())?;
    if matches!(*request.method(), Method::TRACE | Method::CONNECT) {
        return Err(Problem::from_status(StatusCode::METHOD_NOT_ALLOWED).allow(READ_METHODS));
    }
    Ok(())
}

/// Rejects headers that are too many or too long in total. The HTTP parser has limits of its own.
fn check_headers(options: &HttpOptions, headers: &HeaderMap) -> Result<(), Problem> {
    let (most, most_bytes) = (options.max_headers, options.max_headers_size);
    // As on a line of HTTP/1.1: name, colon, blank, value, line end.
    let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>();
    if headers.len() <= most && bytes <= most_bytes {
        return Ok(());
    }
    let detail = format!("at most {most} headers of {most_bytes} bytes together are read");
    Err(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "headers-too-large").detail(detail))
}

/// Responds with 504 if a handler misses the deadline for its response head. PUT, PATCH and appends have no deadline, because
/// most of their time is the client's; nor have COPY, MOVE and POST of an S3 object, because the client decides how much
/// they copy.
pub(crate) async fn with_deadline(
    options: &HttpOptions,
    (method, writes): (&Method, bool),
    spec: Option<&RouteSpec>,
    mut answer: Pin<&mut impl Future<Output = Response>>,
) -> Response {
    // Most responses are ready at once, and to make a timer takes longer than to ask.
    if let Poll::Ready(answer) = futures::poll!(answer.as_mut()) {
        return answer;
    }
    let is_post_of = |resource| *method == Method::POST && spec.is_some_and(|spec| spec.resource == resource);
    let appends = writes && is_post_of(Resource::Node);
    let takes_its_time = appends
        || is_post_of(Resource::Object)
        || matches!(method.as_str(), "PUT" | "PATCH" | "COPY" | "MOVE");
    let most = if takes_its_time { Duration::MAX } else { options.response_timeout };
    match timeout(most, answer).await {
        Ok(answer) => answer,
        Err(_) if writes => Problem::late_change().into_response(),
        Err(_) => {
            let detail = format!(
                "the response did not begin within {} s (`http.response_timeout`): ask again, or for less at a time",
                most.as_secs_f64()
            );
            Problem::from_class(ErrorClass::TimedOut).detail(detail).into_response()
        }
    }
}

/// A handler's panic.
#[derive(Debug, thiserror::Error)]
#[error("a handler panicked: {0}")]
struct Panicked(String);

/// The response for a handler that panicked.
pub(crate) fn panicked(payload: Box<dyn Any + Send + 'static>) -> Response {
    let text = match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast::<&str>().map_or_else(|_| "?".to_owned(), |text| text.to_string()),
    };
    Problem::internal(Arc::new(Panicked(text))).into_response()
}

/// Runs the middleware around a route.
///
/// Before the handler: request id, limits of the request and of memory, authorization, the origin check, rate limits,
/// the deadline. After it: the S3 dialect, cross-origin headers, problem documents, content codings, the length, no body
/// for HEAD, the log. Panics
/// are caught and stored bytes are admitted inside of it. `root` is the mount at the root path, if there is one.
pub(crate) async fn run_middleware<F: Future<Output = Response>>(
    state: &AppState,
    spec: Option<&'static RouteSpec>,
    root: Option<&Arc<Mount>>,
    request: &mut Request,
    next: impl FnOnce(Request) -> F + Clone,
) -> Response {
    let dialect = s3::ErrorFormat::of(spec, request.uri());
    let dap_errors = dap::DapErrors::of(spec, request.uri());
    let error_page = view::ErrorPage::of(state, spec, request);
    let is_health = spec.is_some_and(|spec| spec.answers_under_load);
    // Headers that the middleware adds do not count towards the limits.
    let checked = check_limits(&state.options, request);
    let mut observed = RequestRecord::begin(&state.counts, spec, request);
    // The administrator's listener has nothing for pages of other origins.
    let is_admins = Administrator::is_asking(request.extensions());
    let sharing = (!is_admins).then(|| cors::CorsRequest::of(request));
    let method = request.method().clone();
    let wish = Wish::of(spec, request);
    let let_in = async {
        checked?;
        if !is_health {
            check_pressure(&state.lifecycle)?;
        }
        let leave =
            state.access.authorizer().authorize(spec, root.map(|mount| mount.name.as_str()), request).await?;
        state.access.with_origin_rules(|rules| origin::check(rules, spec, request))?;
        let rates = state.traffic.rates.as_ref().filter(|_| !is_health && !is_admins);
        let rated = rates.map(|rates| (rates, ClientBucket::of(request.extensions())));
        if let Some((rates, share)) = rated {
            rates.check(share)?;
        }
        Ok::<_, Refusal>((leave, rated))
    };
    let let_in = let_in.await;
    observed.set_caller(request.extensions());
    let mut answer = match let_in {
        Ok((leave, rated)) => {
            let stale = StaleHeaders::of(state, spec, root, request);
            // Boxed, because it is rare.
            let pinned = if state.mounts.has_versions() {
                Box::pin(SnapshotHeaders::pin(state, spec, root, request)).await
            } else {
                Ok(None)
            };
            let (snapshot, failed) = match pinned {
                Ok(snapshot) => (snapshot, None),
                Err(problem) => (None, Some(problem)),
            };
            // The rare branch is boxed, because a future is as large as its largest branch.
            let mut answer = if let Some(problem) = failed {
                problem.into_response()
            } else if wish.as_ref().is_some_and(Wish::is_of_head) {
                let answers = head_of_body(&state.options, &method, std::mem::take(request), next);
                Box::pin(answers.instrument(observed.span().clone())).await
            } else {
                let writes = origin::writes(&method, spec, request.uri());
                // Pinned here, because each layer around it would move it, and it is large.
                let answer = pin!(next(std::mem::take(request)));
                let answer = with_deadline(&state.options, (&method, writes), spec, answer);
                answer.instrument(observed.span().clone()).await
            };
            if let Some(snapshot) = snapshot {
                snapshot.put(&method, &mut answer);
            }
            leave.apply(&mut answer);
            if let Some(stale) = stale {
                stale.put(&mut answer);
            }
            if let Some((rates, share)) = rated {
                // The body of a HEAD is not sent.
                let sent = if method == Method::HEAD { 0 } else { answer.body().size_hint().lower() };
                rates.record_bytes(share, sent);
            }
            answer
        }
        Err(refusal) => refusal.into_response(),
    };
    if let Some(dialect) = dialect {
        dialect.render(observed.id(), &mut answer);
    }
    if let Some(dap_errors) = dap_errors {
        dap_errors.render(&mut answer);
    }
    if let Some(error_page) = error_page {
        error_page.render(&mut answer);
    }
    if let Some(sharing) = sharing {
        sharing.put(&state.options.cors, answer.headers_mut());
    }
    let mut answer = observed.render(answer);
    if let Some(wish) = wish
        && let Some(coding) = wish.judge(&mut answer)
    {
        answer =
            Box::pin(compression::coded(&state.traffic.admission, &state.engine.cpu, wish, coding, answer))
                .await;
    }
    observed.finish(answer)
}

/// The response to a HEAD request that may be encoded: with the body, if the length depends on it. The caller drops the
/// body.
async fn head_of_body<F: Future<Output = Response>>(
    options: &HttpOptions,
    method: &Method,
    request: Request,
    next: impl FnOnce(Request) -> F + Clone,
) -> Response {
    let (again, with_body) = (next.clone(), compression::with_body(&request));
    let answer = with_deadline(options, (method, false), None, pin!(next(request))).await;
    if !compression::lacks_body(&answer) {
        return answer;
    }
    // The first response returns its permit before the second request needs one.
    drop(answer);
    with_deadline(options, (method, false), None, pin!(again(with_body))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_are_accepted_only_if_they_are_safe_to_log() {
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
}

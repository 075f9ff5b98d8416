//! Admission: a budget for the bytes of responses in flight, and the short wait queue in front of it.
//!
//! The budget counts bytes, not requests, and time bounds the queue, not length. Every response counts at least its
//! share of the budget, so that the number of responses is bounded as well. A `Permit` lives until the body of the
//! response is dropped, because the body holds the memory; the connection keeps the body while more of it waits to be
//! sent than a connection is assumed to hold. Where the size of a response is not known in advance, its permit grows
//! with it (`Permit::grow`): at once or not at all, so that two growing responses cannot wait for each other. Where it is
//! made as a whole, it may be made with little memory first, and wait for more (`text_memory`).
//! Requests for stored bytes are admitted as streams (`admit`); a handler that holds more than a stream asks for the
//! rest with `Admission::uncharged`. The module `queue` decides who goes first: by `Priority`, and between callers
//! (`ClientBucket`) by what each has in flight. The module `rate_limit` decides how often a caller may ask. Health
//! routes bypass admission.

mod client_bucket;
pub(crate) mod memory_pressure;
mod priority;
mod queue;
mod rate_limit;
pub(crate) mod text_memory;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::timeout;

pub(crate) use client_bucket::ClientBucket;
pub use memory_pressure::MemoryPressure;
pub(crate) use priority::Priority;
pub(crate) use rate_limit::RateLimiter;

use crate::http::options::HttpOptions;
use crate::http::problem::Problem;
use crate::http::route::RouteSpec;
use crate::store::BudgetExceeded;
use queue::{Gate, PermitRequest};

/// Bytes per unit of the budget.
const UNIT_BYTES: u64 = 1024;
/// A response that holds more than this fraction (1 / `SHORT_PARTS`) of the budget is long, unless a stream may hold as
/// much.
const SHORT_PARTS: u64 = 128;

/// The gate, and the limits on waiting in front of it.
#[derive(Debug)]
pub(crate) struct Admission {
    gate: Arc<Gate>,
    least_units: u64,
    /// The most units of a short response.
    short_units: u64,
    /// The longest time that a request waits in the queue.
    max_wait: Duration,
    /// Bytes with which requests for stored bytes are admitted.
    stream_bytes: u64,
}

/// The caller and the priority of a request for admission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmissionRequest {
    class: Priority,
    share: ClientBucket,
}

/// The right to hold a number of bytes for a response in flight. Dropping it returns the bytes to the budget.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<Gate>,
    ask: PermitRequest,
    /// The units that it holds at least.
    least_units: u64,
    /// Bytes held now.
    bytes: u64,
    /// Those of the bytes that another permit of the same request covers.
    covered_bytes: u64,
}

/// A response extension: the whole body is in memory until the client has taken the last byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferedBytes(u64);

impl BufferedBytes {
    /// Marks a response whose body has `bytes` bytes. Bodies that every response may hold need no mark.
    pub(crate) fn put(bytes: u64, extensions: &mut Extensions) {
        if bytes > LAST_BYTES as u64 {
            extensions.insert(Self(bytes));
        }
    }
}

/// The load of admission at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The budget for responses in flight, in bytes.
    pub budget_bytes: u64,
    /// Bytes of responses in flight.
    pub in_flight_bytes: u64,
    /// Requests that wait in the queue.
    pub waiting: usize,
    /// Requests that were rejected since the start, by priority.
    pub rejected: [(&'static str, u64); Priority::ALL.len()],
}

impl AdmissionRequest {
    /// The admission request for a request's caller and a priority.
    pub(crate) fn new(class: Priority, extensions: &Extensions) -> Self {
        Self { class, share: ClientBucket::of(extensions) }
    }

    /// The admission request for a caller and a priority.
    pub(crate) const fn of(class: Priority, share: ClientBucket) -> Self {
        Self { class, share }
    }

    /// The admission request for a request to a route that moves stored bytes.
    pub(crate) fn stored(
        spec: &RouteSpec,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Self {
        Self::new(Priority::of_stored(spec, method, uri, headers), extensions)
    }

    /// The same caller with another priority.
    pub(crate) const fn with_priority(self, class: Priority) -> Self {
        Self { class, share: self.share }
    }

    /// The admission request for a request for decoded elements.
    pub(crate) fn to_elements(head: &Parts) -> Self {
        Self::new(Priority::Elements, &head.extensions)
    }
}

impl Admission {
    /// The admission that the options configure.
    pub(crate) fn new(options: &HttpOptions) -> Self {
        let capacity = units(options.inflight_size);
        let short_units = units(options.streamed_response_size).max(capacity / SHORT_PARTS);
        // A request whose estimated wait is longer is rejected at once. The estimate is a guess: an early rejection is
        // better than a rejection after a wait.
        let max_estimated_wait = options.admission_timeout / 2;
        Self {
            gate: Arc::new(Gate::new(capacity, short_units, max_estimated_wait)),
            least_units: capacity / options.max_inflight_requests.max(1),
            short_units,
            max_wait: options.admission_timeout,
            stream_bytes: options.streamed_response_size,
        }
    }

    /// Waits for a permit for `bytes`. A size beyond the largest permit of a priority counts as the largest: such a
    /// response goes alone.
    ///
    /// # Errors
    /// 503 with `Retry-After` once the maximum wait has passed, or at once if the estimated wait is too long.
    pub(crate) async fn acquire(&self, entrant: AdmissionRequest, bytes: u64) -> Result<Permit, Problem> {
        let ask = self.gate.request(entrant.class, entrant.share, units(bytes).max(self.least_units));
        if !self.gate.try_take(ask) {
            // Boxed, as few requests wait and the future of every request would be as large.
            Box::pin(self.wait(ask)).await?;
        }
        Ok(self.permit(ask, bytes, 0))
    }

    /// A permit for what a request holds beyond what [`admit`] charged. It starts at zero, and [`Permit::grow`] counts
    /// from the request's first byte: what a stream may hold costs nothing more. A request needs one only.
    pub(crate) fn uncharged(&self, entrant: AdmissionRequest) -> Permit {
        self.permit(PermitRequest::nothing(entrant.class, entrant.share), 0, self.stream_bytes)
    }

    /// A permit that starts at zero, for what a request holds beside everything else that it was charged for.
    pub(crate) fn alongside(&self, entrant: AdmissionRequest) -> Permit {
        self.permit(PermitRequest::nothing(entrant.class, entrant.share), 0, 0)
    }

    fn permit(&self, ask: PermitRequest, bytes: u64, covered_bytes: u64) -> Permit {
        // A permit that starts at zero may return to it. Any other counts its share of the budget to its end.
        let least_units = self.least_units.max(1).min(ask.units());
        Permit { gate: Arc::clone(&self.gate), ask, least_units, bytes, covered_bytes }
    }

    /// A permit for `bytes` if one is free now: for work that can be left out.
    pub(crate) fn try_acquire(&self, entrant: AdmissionRequest, bytes: u64) -> Option<Permit> {
        let ask = self.gate.request(entrant.class, entrant.share, units(bytes).max(self.least_units));
        self.gate.try_take(ask).then(|| self.permit(ask, bytes, 0))
    }

    /// Rejects a request that even the smallest permit would keep waiting too long, before any work is done for its
    /// response: under overload a rejection must be cheap.
    ///
    /// # Errors
    /// As [`Admission::acquire`].
    pub(crate) fn try_reject(&self, entrant: AdmissionRequest) -> Result<(), Problem> {
        let least = self.gate.request(entrant.class, entrant.share, self.least_units.max(1));
        if self.gate.would_exceed_wait(least) { Err(reject(&self.gate, least)) } else { Ok(()) }
    }

    /// The most bytes that a request can hold, with nothing else in flight.
    pub(crate) fn most_bytes(&self, entrant: AdmissionRequest) -> u64 {
        self.gate.max_units(entrant.class).saturating_mul(UNIT_BYTES)
    }

    /// The most bytes of a short response.
    pub(crate) fn short_bytes(&self) -> u64 {
        self.short_units.saturating_mul(UNIT_BYTES)
    }

    /// Waits until the gate has taken the requested units.
    async fn wait(&self, ask: PermitRequest) -> Result<(), Problem> {
        if let Some(turn) = self.gate.join(ask)
            && timeout(self.max_wait, turn.wait()).await.is_ok()
        {
            return Ok(());
        }
        Err(reject(&self.gate, ask))
    }

    /// The current load.
    pub(crate) fn load(&self) -> Load {
        let (capacity, free) = (self.gate.capacity(), self.gate.free());
        let count = |class: Priority| (class.name(), self.gate.rejected(class));
        Load {
            budget_bytes: capacity.saturating_mul(UNIT_BYTES),
            in_flight_bytes: capacity.saturating_sub(free).saturating_mul(UNIT_BYTES),
            waiting: self.gate.waiting(),
            rejected: Priority::ALL.map(count),
        }
    }
}

fn reject(gate: &Gate, ask: PermitRequest) -> Problem {
    gate.count_rejected(ask.class());
    overloaded()
}

/// The response to a request for which the budget has no free bytes.
pub(crate) fn overloaded() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded")
        .detail("the server is busy and has not processed the request; `Retry-After` says when to ask again")
}

/// The response to a request that does not fit into the free part of the budget, or into the whole of it.
fn out_of_memory(error: BudgetExceeded) -> Problem {
    match error {
        BudgetExceeded::Now => overloaded(),
        BudgetExceeded::Ever { limit } => Problem::from(error).extension("limit", limit),
    }
}

fn units(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT_BYTES).max(1)
}

/// Admits a request to a route that moves stored bytes; a stream holds little memory, whatever its length. `answer`
/// starts the response: a future that is passed in would be stored twice.
pub(crate) async fn admit<F: Future<Output = Response>>(
    admission: &Admission,
    entrant: AdmissionRequest,
    bytes: u64,
    answer: impl FnOnce() -> F,
) -> Response {
    match admission.acquire(entrant, bytes).await {
        Ok(permit) => permit.hold(answer().await),
        Err(problem) => problem.into_response(),
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gate.release(self.ask);
    }
}

impl Permit {
    /// Adds `bytes` to the permit, without waiting.
    ///
    /// # Errors
    /// 503 with `Retry-After` if the budget has not enough free bytes, 413 if it never can; the permit is then
    /// unchanged. A response whose head was sent has to break off.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), Problem> {
        self.take(bytes).map_err(out_of_memory)
    }

    /// As [`Permit::grow`].
    ///
    /// # Errors
    /// [`BudgetExceeded`].
    pub(crate) fn take(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        self.try_resize(self.bytes.saturating_add(bytes))
    }

    /// Removes `bytes` from the permit.
    pub(crate) fn release(&mut self, bytes: u64) {
        // A smaller permit is always granted.
        let _ = self.try_resize(self.bytes.saturating_sub(bytes));
    }

    /// Makes the permit at least as large as `bytes`, without waiting.
    ///
    /// # Errors
    /// As [`Permit::grow`].
    pub(crate) fn grow_to(&mut self, bytes: u64) -> Result<(), Problem> {
        if bytes > self.bytes { self.resize(bytes) } else { Ok(()) }
    }

    /// Sets the permit to `bytes`, without waiting.
    ///
    /// # Errors
    /// As [`Permit::grow`]; a smaller permit is always granted.
    pub(crate) fn resize(&mut self, bytes: u64) -> Result<(), Problem> {
        self.try_resize(bytes).map_err(out_of_memory)
    }

    fn try_resize(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        let wanted = bytes.saturating_sub(self.covered_bytes).div_ceil(UNIT_BYTES).max(self.least_units);
        let has = self.ask.units();
        if wanted < has {
            self.gate.shrink(&mut self.ask, has - wanted);
        } else if wanted > has && wanted > self.most_units() {
            return Err(BudgetExceeded::Ever { limit: self.most_bytes() });
        } else if wanted > has && !self.gate.try_grow(&mut self.ask, wanted - has) {
            self.gate.count_rejected(self.ask.class());
            return Err(BudgetExceeded::Now);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// The largest permit with nothing else in flight.
    pub(crate) fn most_bytes(&self) -> u64 {
        self.most_units().saturating_mul(UNIT_BYTES)
    }

    /// The largest permit, in units, with nothing else in flight.
    fn most_units(&self) -> u64 {
        let covered = self.covered_bytes.div_ceil(UNIT_BYTES);
        self.gate.max_units(self.ask.class()).saturating_sub(covered)
    }

    /// Ties the permit to a response's body. For a response that is in memory as a whole ([`BufferedBytes`]), the permit is
    /// reduced to that: what the response was made of is gone. If the response is longer than what was charged and the
    /// permit cannot grow, the response is 503 or 413.
    pub(crate) fn hold(mut self, mut response: Response) -> Response {
        if let Some(BufferedBytes(bytes)) = response.extensions_mut().remove() {
            if let Err(problem) = self.grow_to(bytes) {
                return problem.into_response();
            }
            self.release(self.bytes - bytes);
        }
        response.map(|body| Body::new(PermitBody { body, permit: Some(self) }))
    }
}

/// A body that holds its permit.
struct PermitBody {
    body: Body,
    permit: Option<Permit>,
}

/// A last frame longer than this counts as in flight until it is sent: nothing polls the body afterwards, and the body
/// is dropped. A connection is assumed to hold shorter frames in any case; a connection that many responses share keeps
/// the bodies.
const LAST_BYTES: usize = 128 << 10;

/// The last frame of a body, with the permit.
struct LastBytes {
    bytes: Bytes,
    _permit: Permit,
}

impl AsRef<[u8]> for LastBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl PermitBody {
    /// The last frame, which takes over the permit if it is long.
    fn last(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        let bytes = match frame.into_data() {
            Ok(bytes) => bytes,
            Err(trailers) => return trailers,
        };
        if bytes.len() <= LAST_BYTES {
            return Frame::data(bytes);
        }
        match self.permit.take() {
            Some(permit) => Frame::data(Bytes::from_owner(LastBytes { bytes, _permit: permit })),
            None => Frame::data(bytes),
        }
    }
}

impl HttpBody for PermitBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) if self.body.is_end_stream() => {
                Poll::Ready(Some(Ok(self.last(frame))))
            }
            ended @ Poll::Ready(None | Some(Err(_))) => {
                // The source is no longer needed. Frames that were returned may still wait to be sent, so the permit
                // stays.
                self.body = Body::empty();
                ended
            }
            poll => poll,
        }
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

    fn gate(units: u64) -> Admission {
        Admission::new(&HttpOptions {
            inflight_size: units * UNIT_BYTES,
            admission_timeout: Duration::from_millis(1),
            ..HttpOptions::default()
        })
    }

    #[tokio::test]
    async fn a_permit_in_flight_grows_and_shrinks() {
        let gate = gate(4);
        let mut permit = gate.acquire(ONE, UNIT_BYTES).await.unwrap();
        let in_flight = || gate.load().in_flight_bytes / UNIT_BYTES;
        permit.grow(1).unwrap();
        assert_eq!(in_flight(), 2);
        permit.grow(UNIT_BYTES - 1).unwrap();
        assert_eq!(in_flight(), 2, "bytes are added up before they are rounded");
        let other = gate
            .acquire(AdmissionRequest::of(Priority::Metadata, ClientBucket::numbered(2)), UNIT_BYTES)
            .await
            .unwrap();
        assert_eq!(permit.grow(2 * UNIT_BYTES).unwrap_err().status(), 503);
        assert_eq!(permit.grow(4 * UNIT_BYTES).unwrap_err().status(), 413, "nor if it were alone");
        assert_eq!(in_flight(), 3, "a refused request changes nothing");
        drop(other);
        for (bytes, units) in [(3 * UNIT_BYTES, 3), (UNIT_BYTES, 3)] {
            permit.grow_to(bytes).unwrap();
            assert_eq!(in_flight(), units, "it has as much already");
        }
        permit.resize(0).unwrap();
        assert_eq!(in_flight(), 1, "at least a unit until it ends");
        drop(permit);
        assert_eq!((in_flight(), gate.load().rejected[0]), (0, ("metadata", 1)));
    }

    #[tokio::test]
    async fn a_buffered_response_is_charged_in_full_or_rejected() {
        let gate = Admission::new(&HttpOptions { inflight_size: 16 << 20, ..HttpOptions::default() });
        let answer = async |bytes: u64| {
            let mut answer = Response::new(Body::empty());
            BufferedBytes::put(bytes, answer.extensions_mut());
            gate.acquire(ONE, 1 << 20).await.unwrap().hold(answer)
        };
        let short = answer(1 << 10).await;
        assert_eq!((short.status().as_u16(), gate.load().in_flight_bytes), (200, 1 << 20));
        let long = answer(10 << 20).await;
        assert_eq!((long.status().as_u16(), gate.load().in_flight_bytes), (200, 11 << 20));
        let other = answer(10 << 20).await;
        assert_eq!((other.status().as_u16(), gate.load().in_flight_bytes), (503, 11 << 20));
        assert_eq!(answer(20 << 20).await.status(), 413, "nor if it were alone");
    }

    #[tokio::test]
    async fn a_permit_shrinks_to_what_is_left_when_the_work_is_done() {
        let options = HttpOptions {
            inflight_size: 64 * UNIT_BYTES,
            max_inflight_requests: 32,
            ..HttpOptions::default()
        };
        let gate = Admission::new(&options);
        let mut permit = gate.acquire(ONE, 40 * UNIT_BYTES).await.unwrap();
        permit.resize(3 * UNIT_BYTES).unwrap();
        assert_eq!(gate.load().in_flight_bytes, 3 * UNIT_BYTES);
        permit.resize(0).unwrap();
        assert_eq!(gate.load().in_flight_bytes, 2 * UNIT_BYTES, "its share of the budget to its end");
        let other = gate.acquire(ONE, 40 * UNIT_BYTES).await.unwrap();
        assert!(permit.grow(30 * UNIT_BYTES).is_err(), "what it gave back may be taken");
        drop((permit, other));
        assert_eq!(gate.load().in_flight_bytes, 0);
    }

    #[tokio::test]
    async fn a_permit_grows_up_to_the_largest_permit() {
        let gate = gate(64);
        let mut permit = gate.alongside(ONE);
        let refused = loop {
            if let Err(refused) = permit.grow(UNIT_BYTES) {
                break refused;
            }
        };
        assert_eq!((refused.status().as_u16(), gate.load().in_flight_bytes), (413, 64 * UNIT_BYTES));
        drop(permit);
        let largest = gate.acquire(ONE, 64 * UNIT_BYTES).await.unwrap();
        assert_eq!(gate.alongside(ONE).grow(UNIT_BYTES).unwrap_err().status(), 503, "it may fit later");
        drop(largest);
    }

    #[tokio::test]
    async fn bytes_within_the_stream_allowance_are_not_charged_twice() {
        let options = HttpOptions {
            inflight_size: 8 * UNIT_BYTES,
            streamed_response_size: 2 * UNIT_BYTES,
            ..HttpOptions::default()
        };
        let gate = Admission::new(&options);
        let mut extra = gate.uncharged(ONE);
        for (bytes, units) in [(1, 0), (2 * UNIT_BYTES - 1, 0), (1, 1), (UNIT_BYTES, 2)] {
            extra.grow(bytes).unwrap();
            assert_eq!(gate.load().in_flight_bytes, units * UNIT_BYTES);
        }
        extra.resize(0).unwrap();
        assert_eq!(gate.load().in_flight_bytes, 0);
    }

    const ONE: AdmissionRequest = AdmissionRequest::of(Priority::Metadata, ClientBucket::numbered(1));

    #[tokio::test]
    async fn a_permit_lives_until_the_body_is_dropped() {
        let gate = gate(2);
        let answer = || async {
            let permit = gate.acquire(ONE, UNIT_BYTES).await.unwrap();
            permit.hold(Response::new(Body::from_stream(futures::stream::iter([Ok::<_, axum::Error>("x")]))))
        };
        let (first, second) = (answer().await, answer().await);
        assert!(gate.acquire(ONE, 1).await.is_err());
        drop(first);
        assert!(gate.acquire(ONE, 1).await.is_ok());
        let third = answer().await;
        assert!(gate.acquire(ONE, 1).await.is_err());
        let mut parts = second.into_body().into_data_stream();
        while parts.next().await.is_some() {}
        assert!(gate.acquire(ONE, 1).await.is_err(), "its bytes may still wait to be sent");
        drop(parts);
        assert!(gate.acquire(ONE, 1).await.is_ok());
        drop(third);
        assert!(gate.acquire(ONE, u64::MAX).await.is_ok());
        assert_eq!(gate.load().rejected, [("metadata", 3), ("values", 0), ("elements", 0), ("bulk", 0)]);
    }

    #[tokio::test]
    async fn a_long_last_frame_is_in_flight_until_it_is_sent() {
        let gate = gate(1);
        for (length, is_held) in [(LAST_BYTES, false), (LAST_BYTES + 1, true)] {
            let permit = gate.acquire(ONE, UNIT_BYTES).await.unwrap();
            let mut body =
                permit.hold(Response::new(Body::from(vec![7; length]))).into_body().into_data_stream();
            let bytes = body.next().await.unwrap().unwrap();
            assert_eq!(bytes, vec![7; length]);
            drop(body);
            assert_eq!(gate.load().in_flight_bytes, if is_held { UNIT_BYTES } else { 0 });
            drop(bytes);
            assert_eq!(gate.load().in_flight_bytes, 0);
        }
    }

    #[tokio::test]
    async fn every_response_counts_at_least_its_share_of_the_budget() {
        let options = HttpOptions {
            inflight_size: 64 << 20,
            max_inflight_requests: 64,
            admission_timeout: Duration::from_millis(1),
            ..Default::default()
        };
        let gate = Admission::new(&options);
        let mut held = Vec::new();
        for caller in 0.. {
            let entrant = AdmissionRequest::of(Priority::Metadata, ClientBucket::numbered(caller));
            let Ok(permit) = gate.acquire(entrant, 1).await else { break };
            held.push(permit);
        }
        assert_eq!(held.len(), 64);
        assert_eq!(gate.load().in_flight_bytes, 64 << 20);
        held.clear();
        assert_eq!(gate.load().in_flight_bytes, 0);
    }
}

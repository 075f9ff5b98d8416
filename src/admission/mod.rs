//! Admission: how many bytes of answers may be under way at one time, and the short line before that.
//!
//! The currency is bytes, not requests, and the line is bounded by time, not by length. No answer counts less than its part
//! of the budget, so that their number is bounded as well. A [`Permit`] lives until the body of the answer is dropped, because
//! it is the body that holds memory; whoever sends the answer keeps the body for as long as more of it waits to be sent than a
//! connection is taken to hold. Where it is not known beforehand how much an answer holds, its permit
//! grows with it ([`Permit::grow`]): at once or not at all, never by waiting, so that two that grow cannot wait for each
//! other. Requests to stored bytes are admitted as streams ([`admit`]); a handler that holds more than a stream does asks for
//! the rest by [`Admission::uncharged`]. Who goes first is `gate`'s business: by [`Priority`], and between
//! callers ([`ClientBucket`]) by what each has under way. How often a caller may ask is `rates`'. Health routes do not come through
//! here.

mod client_bucket;
pub(crate) mod memory_pressure;
mod priority;
mod queue;
mod rate_limit;

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

/// Bytes that one unit of the budget stands for.
const UNIT_BYTES: u64 = 1024;
/// An answer that holds more than one of so many parts of the budget is long, unless a stream may hold as much.
const SHORT_PARTS: u64 = 128;

/// The gate, and how long is waited in front of it.
#[derive(Debug)]
pub(crate) struct Admission {
    gate: Arc<Gate>,
    least_units: u64,
    /// The longest wait.
    patience: Duration,
    /// Who would wait longer than this is turned away at once. How long somebody will wait is a guess: it is better not to
    /// have waited than to have waited in vain.
    hope: Duration,
    /// What requests to stored bytes are admitted with.
    stream_bytes: u64,
}

/// Who comes, and for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmissionRequest {
    class: Priority,
    share: ClientBucket,
}

/// The right to hold so many bytes for an answer in flight. They are given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<Gate>,
    ask: PermitRequest,
    /// Units that it never has less than.
    least_units: u64,
    /// Bytes held by now.
    bytes: u64,
    /// Bytes of these that another permit of the same request is for.
    covered_bytes: u64,
}

/// In an answer's extensions: its body is in memory, all of it, until the client has taken the last byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferedBytes(u64);

impl BufferedBytes {
    /// Says so of an answer whose body is so long. What any answer may hold need not be said.
    pub(crate) fn put(bytes: u64, extensions: &mut Extensions) {
        if bytes > LAST_BYTES as u64 {
            extensions.insert(Self(bytes));
        }
    }
}

/// What is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Bytes of answers that may be under way.
    pub budget_bytes: u64,
    /// Bytes of answers that are.
    pub under_way_bytes: u64,
    /// Requests that wait for room.
    pub waiting: usize,
    /// Requests that were turned away since the start, by class.
    pub turned_away: [(&'static str, u64); Priority::ALL.len()],
}

impl AdmissionRequest {
    /// The caller of a request for work of a class.
    pub(crate) fn new(class: Priority, extensions: &Extensions) -> Self {
        Self { class, share: ClientBucket::of(extensions) }
    }

    /// A caller for work of a class.
    pub(crate) const fn of(class: Priority, share: ClientBucket) -> Self {
        Self { class, share }
    }

    /// The caller of a request to a route that moves stored bytes.
    pub(crate) fn stored(
        spec: &RouteSpec,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Self {
        Self::new(Priority::of_stored(spec, method, uri, headers), extensions)
    }

    /// The caller of a request for decoded elements.
    pub(crate) fn to_elements(head: &Parts) -> Self {
        Self::new(Priority::Elements, &head.extensions)
    }
}

impl Admission {
    /// The gate that the options ask for.
    pub(crate) fn new(options: &HttpOptions) -> Self {
        let capacity = units(options.inflight_size);
        let short_units = units(options.streamed_response_size).max(capacity / SHORT_PARTS);
        Self {
            gate: Arc::new(Gate::new(capacity, short_units)),
            least_units: capacity / options.max_inflight_requests.max(1),
            patience: options.admission_timeout,
            hope: options.admission_timeout / 2,
            stream_bytes: options.streamed_response_size,
        }
    }

    /// Waits for room for `bytes`. More than a class can have means all that it can have: such an answer goes alone.
    ///
    /// # Errors
    /// 503 with `Retry-After` once the time has passed, or at once if it is likely to.
    pub(crate) async fn acquire(&self, entrant: AdmissionRequest, bytes: u64) -> Result<Permit, Problem> {
        let ask = self.gate.request(entrant.class, entrant.share, units(bytes).max(self.least_units));
        if !self.gate.try_take(ask) {
            // Boxed, as few come here and all futures would be as long.
            Box::pin(self.wait(ask)).await?;
        }
        Ok(self.permit(ask, bytes, 0))
    }

    /// A permit for what a request holds beyond what [`admit`] let it in with. It is for nothing yet, and [`Permit::grow`]
    /// counts from the request's first byte: what a stream may hold costs nothing more. One for a request is enough.
    pub(crate) fn uncharged(&self, entrant: AdmissionRequest) -> Permit {
        self.permit(PermitRequest::nothing(entrant.class, entrant.share), 0, self.stream_bytes)
    }

    /// A permit for nothing yet, for what a request holds beside all that it has been admitted for.
    pub(crate) fn alongside(&self, entrant: AdmissionRequest) -> Permit {
        self.permit(PermitRequest::nothing(entrant.class, entrant.share), 0, 0)
    }

    fn permit(&self, ask: PermitRequest, bytes: u64, covered_bytes: u64) -> Permit {
        Permit { gate: Arc::clone(&self.gate), ask, least_units: ask.units(), bytes, covered_bytes }
    }

    /// Room for `bytes` if there is any now: for what can be done without.
    pub(crate) fn try_acquire(&self, entrant: AdmissionRequest, bytes: u64) -> Option<Permit> {
        let ask = self.gate.request(entrant.class, entrant.share, units(bytes).max(self.least_units));
        self.gate.try_take(ask).then(|| self.permit(ask, bytes, 0))
    }

    /// Turns away whoever will find no room however little is asked for, before anything is done for the answer: to say no
    /// must cost little when there is too much to do.
    ///
    /// # Errors
    /// As [`Admission::acquire`].
    pub(crate) fn try_reject(&self, entrant: AdmissionRequest) -> Result<(), Problem> {
        let least = self.gate.request(entrant.class, entrant.share, self.least_units.max(1));
        if self.gate.would_exceed_wait(least, self.hope) { Err(reject(&self.gate, least)) } else { Ok(()) }
    }

    /// Waits until what is asked for is taken.
    async fn wait(&self, ask: PermitRequest) -> Result<(), Problem> {
        if let Some(turn) = self.gate.join(ask, self.hope)
            && timeout(self.patience, turn.wait()).await.is_ok()
        {
            return Ok(());
        }
        Err(reject(&self.gate, ask))
    }

    /// What is under way now.
    pub(crate) fn load(&self) -> Load {
        let (capacity, free) = (self.gate.capacity(), self.gate.free());
        let count = |class: Priority| (class.name(), self.gate.rejected(class));
        Load {
            budget_bytes: capacity.saturating_mul(UNIT_BYTES),
            under_way_bytes: capacity.saturating_sub(free).saturating_mul(UNIT_BYTES),
            waiting: self.gate.waiting(),
            turned_away: Priority::ALL.map(count),
        }
    }
}

fn reject(gate: &Gate, ask: PermitRequest) -> Problem {
    gate.count_rejected(ask.class());
    overloaded()
}

/// The answer to those for whom there is no room.
pub(crate) fn overloaded() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded")
        .detail("the server is busy; nothing was done; `Retry-After` says when to ask again")
}

/// The answer to those for whom there is no room, or would be none if they were alone.
fn out_of_memory(error: BudgetExceeded) -> Problem {
    match error {
        BudgetExceeded::Now => overloaded(),
        BudgetExceeded::Ever { limit } => Problem::from(error).extension("limit", limit),
    }
}

fn units(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT_BYTES).max(1)
}

/// Admits requests to the routes that move stored bytes; what is streamed holds little memory, whatever its length.
/// `answer` begins the answer: a future that is passed in would be held twice.
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
    /// Makes it a permit for so many bytes more, without waiting.
    ///
    /// # Errors
    /// 503 with `Retry-After` if there is no room, 413 if there never is; then it is what it was. After the head, the answer
    /// has to break off.
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

    /// Makes it a permit for so many bytes less.
    pub(crate) fn release(&mut self, bytes: u64) {
        // Less is always granted.
        let _ = self.try_resize(self.bytes.saturating_sub(bytes));
    }

    /// Makes it a permit for so many bytes, more or less than before, without waiting.
    ///
    /// # Errors
    /// As [`Permit::grow`]; less is always granted.
    pub(crate) fn resize(&mut self, bytes: u64) -> Result<(), Problem> {
        self.try_resize(bytes).map_err(out_of_memory)
    }

    fn try_resize(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        let wanted = bytes.saturating_sub(self.covered_bytes).div_ceil(UNIT_BYTES).max(self.least_units);
        let has = self.ask.units();
        if wanted < has {
            self.gate.shrink(&mut self.ask, has - wanted);
        } else if wanted > has && wanted > self.most_units() {
            return Err(BudgetExceeded::Ever { limit: self.most_units().saturating_mul(UNIT_BYTES) });
        } else if wanted > has && !self.gate.try_grow(&mut self.ask, wanted - has) {
            self.gate.count_rejected(self.ask.class());
            return Err(BudgetExceeded::Now);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// What it can be for if nothing else is in flight.
    fn most_units(&self) -> u64 {
        let covered = self.covered_bytes.div_ceil(UNIT_BYTES);
        self.gate.max_units(self.ask.class()).saturating_sub(covered)
    }

    /// Ties the permit to an answer's body. Where the answer says that it is held whole ([`BufferedBytes`]) and is longer than
    /// what it was admitted for, the permit grows first, or the answer is 503.
    pub(crate) fn hold(mut self, mut response: Response) -> Response {
        if let Some(BufferedBytes(bytes)) = response.extensions_mut().remove()
            && bytes > self.bytes
            && let Err(problem) = self.resize(bytes)
        {
            return problem.into_response();
        }
        response.map(|body| Body::new(PermitBody { body, permit: Some(self) }))
    }
}

/// A body with its permit.
struct PermitBody {
    body: Body,
    permit: Option<Permit>,
}

/// Longer bytes that are the last of a body are under way until they are sent: nobody asks for more then, and the body is
/// dropped. Shorter ones are what a connection is taken to hold in any case; one that many answers share keeps the bodies.
const LAST_BYTES: usize = 128 << 10;

/// The last bytes of a body, with its permit.
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
    /// The last frame, which holds the permit if it is long.
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
                // What it was made of is no longer needed. What it has given may still wait to be sent.
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
    async fn a_permit_in_flight_grows_and_shrinks_with_what_is_held() {
        let gate = gate(4);
        let mut permit = gate.acquire(ONE, UNIT_BYTES).await.unwrap();
        let in_flight = || gate.load().under_way_bytes / UNIT_BYTES;
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
        assert_eq!(in_flight(), 3, "what is refused changes nothing");
        drop(other);
        permit.resize(0).unwrap();
        assert_eq!(in_flight(), 1, "never less than it came in with");
        drop(permit);
        assert_eq!((in_flight(), gate.load().turned_away[0]), (0, ("metadata", 1)));
    }

    #[tokio::test]
    async fn an_answer_that_is_held_whole_is_charged_whole_or_not_given() {
        let gate = Admission::new(&HttpOptions { inflight_size: 16 << 20, ..HttpOptions::default() });
        let answer = async |bytes: u64| {
            let mut answer = Response::new(Body::empty());
            BufferedBytes::put(bytes, answer.extensions_mut());
            gate.acquire(ONE, 1 << 20).await.unwrap().hold(answer)
        };
        let short = answer(1 << 10).await;
        assert_eq!((short.status().as_u16(), gate.load().under_way_bytes), (200, 1 << 20));
        let long = answer(10 << 20).await;
        assert_eq!((long.status().as_u16(), gate.load().under_way_bytes), (200, 11 << 20));
        let other = answer(10 << 20).await;
        assert_eq!((other.status().as_u16(), gate.load().under_way_bytes), (503, 11 << 20));
        assert_eq!(answer(20 << 20).await.status(), 413, "nor if it were alone");
    }

    #[tokio::test]
    async fn what_a_permit_may_grow_to_is_what_it_may_have_at_once() {
        let gate = gate(64);
        let mut permit = gate.alongside(ONE);
        let refused = loop {
            if let Err(refused) = permit.grow(UNIT_BYTES) {
                break refused;
            }
        };
        assert_eq!((refused.status().as_u16(), gate.load().under_way_bytes), (413, 64 * UNIT_BYTES));
        drop(permit);
        let whole = gate.acquire(ONE, 64 * UNIT_BYTES).await.unwrap();
        assert_eq!(
            gate.alongside(ONE).grow(UNIT_BYTES).unwrap_err().status(),
            503,
            "there may be room later"
        );
        drop(whole);
    }

    #[tokio::test]
    async fn what_a_stream_may_hold_costs_a_request_nothing_more() {
        let options = HttpOptions {
            inflight_size: 8 * UNIT_BYTES,
            streamed_response_size: 2 * UNIT_BYTES,
            ..HttpOptions::default()
        };
        let gate = Admission::new(&options);
        let mut extra = gate.uncharged(ONE);
        for (bytes, units) in [(1, 0), (2 * UNIT_BYTES - 1, 0), (1, 1), (UNIT_BYTES, 2)] {
            extra.grow(bytes).unwrap();
            assert_eq!(gate.load().under_way_bytes, units * UNIT_BYTES);
        }
        extra.resize(0).unwrap();
        assert_eq!(gate.load().under_way_bytes, 0);
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
        assert_eq!(gate.load().turned_away, [("metadata", 3), ("values", 0), ("elements", 0), ("bulk", 0)]);
    }

    #[tokio::test]
    async fn long_bytes_that_are_the_last_are_under_way_until_they_are_sent() {
        let gate = gate(1);
        for (length, is_held) in [(LAST_BYTES, false), (LAST_BYTES + 1, true)] {
            let permit = gate.acquire(ONE, UNIT_BYTES).await.unwrap();
            let mut body =
                permit.hold(Response::new(Body::from(vec![7; length]))).into_body().into_data_stream();
            let bytes = body.next().await.unwrap().unwrap();
            assert_eq!(bytes, vec![7; length]);
            drop(body);
            assert_eq!(gate.load().under_way_bytes, if is_held { UNIT_BYTES } else { 0 });
            drop(bytes);
            assert_eq!(gate.load().under_way_bytes, 0);
        }
    }

    #[tokio::test]
    async fn no_answer_counts_less_than_its_part_of_the_budget() {
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
        assert_eq!(gate.load().under_way_bytes, 64 << 20);
        held.clear();
        assert_eq!(gate.load().under_way_bytes, 0);
    }
}

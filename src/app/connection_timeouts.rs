//! [`ConnectionMonitor`]: what one connection has done lately, and whether that was too little.
//!
//! hyper's own timers leave gaps: the sniffing of HTTP/1 or 2 has none, so a silent connection stays for ever; a
//! client that takes nothing of its response stays too; a graceful end waits for half a request head. So the IO
//! wrapper and the service note facts here, and one pure question, [`ConnectionMonitor::timed_out`], answers for all of them.
//! Nothing here sleeps or closes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::ServerOptions;

/// The settings of connections. Clones share them.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// Timeouts, and limits of HTTP/1 and HTTP/2.
    pub server: Arc<ServerOptions>,
    /// Most headers of a request in HTTP/1.
    pub max_headers: usize,
}

impl ConnectionLimits {
    /// The settings of a configuration, with its `http.max_headers`.
    #[must_use]
    pub fn new(server: ServerOptions, max_headers: usize) -> Self {
        Self { server: Arc::new(server), max_headers }
    }
}

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeoutReason {
    FirstByte,
    Header,
    Idle,
    WriteStall,
    WritePace,
}

impl TimeoutReason {
    /// Whether the client has not taken what it was sent.
    pub(crate) fn is_of_a_reader(self) -> bool {
        match self {
            Self::WriteStall | Self::WritePace => true,
            Self::FirstByte | Self::Header | Self::Idle => false,
        }
    }
}

/// Fewer bytes than this are no progress: HTTP/2 pings and their answers flow past a client that takes nothing.
const PROGRESS_BYTES: usize = 1024;

/// What one connection has done lately. Shared between its IO, its requests and its task.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionMonitor(Arc<Mutex<ConnectionState>>);

#[derive(Debug)]
struct ConnectionState {
    /// Since when there has been no request under way.
    quiet_since: Instant,
    /// When the first byte after that came.
    head_since: Option<Instant>,
    /// Whether anything ever came.
    heard: bool,
    /// Whether requests come by HTTP/2, where bytes between requests need not be a head.
    http2: bool,
    /// Since when the socket has refused bytes.
    blocked_since: Option<Instant>,
    /// When enough bytes to be called progress were last written, and how many since.
    written: (Instant, usize),
    /// Since when at every look nothing but the client was waited for, and how many bytes it has taken since.
    slow: Option<(Instant, u64)>,
    /// Whether what is not yet sent shall not be.
    given_up: bool,
    /// Requests under way, a few at most: since when each waits for the client to take more, if it does.
    requests: Vec<(u64, Option<Instant>)>,
    next_request: u64,
}

impl ConnectionMonitor {
    pub(crate) fn new(now: Instant) -> Self {
        Self(Arc::new(Mutex::new(ConnectionState {
            quiet_since: now,
            head_since: None,
            heard: false,
            http2: false,
            blocked_since: None,
            written: (now, 0),
            slow: None,
            given_up: false,
            requests: Vec::new(),
            next_request: 0,
        })))
    }

    fn facts(&self) -> MutexGuard<'_, ConnectionState> {
        // The facts are plain values: a panic elsewhere cannot have left them half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes came.
    pub(crate) fn on_read(&self, now: Instant) {
        let mut facts = self.facts();
        facts.heard = true;
        if facts.requests.is_empty() {
            facts.head_since.get_or_insert(now);
        }
    }

    /// The socket took bytes.
    pub(crate) fn on_write(&self, bytes: usize, now: Instant) {
        let mut facts = self.facts();
        facts.blocked_since = None;
        if let Some((_, taken)) = &mut facts.slow {
            *taken = taken.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
        facts.written.1 = facts.written.1.saturating_add(bytes);
        if facts.written.1 >= PROGRESS_BYTES {
            facts.written = (now, 0);
        }
    }

    /// The socket takes no more for now.
    pub(crate) fn on_write_blocked(&self, now: Instant) {
        self.facts().blocked_since.get_or_insert(now);
    }

    /// A request begins; it is under way until the ticket is dropped.
    pub(crate) fn begin_request(&self, http2: bool) -> RequestGuard {
        let mut facts = self.facts();
        facts.http2 |= http2;
        facts.head_since = None;
        let request = facts.next_request;
        facts.next_request += 1;
        facts.requests.push((request, None));
        RequestGuard { patience: self.clone(), request }
    }

    /// TLS is set up: what comes now is the first byte.
    pub(crate) fn is_encrypted(&self, now: Instant) {
        let mut facts = self.facts();
        (facts.quiet_since, facts.head_since, facts.heard) = (now, None, false);
    }

    /// Why the connection should be closed now, if it should. It is to be asked often: what lies between two looks is
    /// taken to be like them.
    pub(crate) fn timed_out(&self, limits: &ServerOptions, now: Instant) -> Option<TimeoutReason> {
        let mut facts = self.facts();
        if facts.is_too_slow(limits, now) {
            return Some(TimeoutReason::WritePace);
        }
        let passed = |since: Instant, limit: Duration| now.saturating_duration_since(since) >= limit;
        if facts.blocked_since.is_some_and(|since| passed(since, limits.write_stall_timeout)) {
            return Some(TimeoutReason::WriteStall);
        }
        let last_written = facts.written.0;
        let stalled = |since: &Instant| passed((*since).max(last_written), limits.write_stall_timeout);
        if facts.requests.iter().filter_map(|(_, since)| since.as_ref()).any(stalled) {
            return Some(TimeoutReason::WriteStall);
        }
        if !facts.requests.is_empty() {
            return None;
        }
        match facts.head_since {
            _ if !facts.heard => {
                passed(facts.quiet_since, limits.first_byte_timeout).then_some(TimeoutReason::FirstByte)
            }
            Some(since) if !facts.http2 => {
                passed(since, limits.header_timeout).then_some(TimeoutReason::Header)
            }
            _ => passed(facts.quiet_since, limits.idle_timeout).then_some(TimeoutReason::Idle),
        }
    }

    /// What the client has not taken until now, it shall not get.
    pub(crate) fn abort(&self) {
        self.facts().given_up = true;
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.facts().given_up
    }

    /// Whether nothing would be lost by closing now: no request is under way and all that was answered is sent.
    pub(crate) fn is_idle(&self) -> bool {
        let facts = self.facts();
        facts.requests.is_empty() && facts.blocked_since.is_none()
    }
}

impl ConnectionState {
    /// Whether a client has taken too little in a while in which nothing else was waited for.
    fn is_too_slow(&mut self, limits: &ServerOptions, now: Instant) -> bool {
        let is_waited_for =
            self.blocked_since.is_some() || self.requests.iter().any(|(_, since)| since.is_some());
        let Some((since, taken)) = self.slow.filter(|_| is_waited_for) else {
            self.slow = is_waited_for.then_some((now, 0));
            return false;
        };
        let waited = now.saturating_duration_since(since);
        if waited < limits.min_write_rate_window {
            return false;
        }
        self.slow = Some((now, 0));
        u128::from(taken) * 1000 < u128::from(limits.min_write_rate) * waited.as_millis()
    }
}

/// One request under way.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    patience: ConnectionMonitor,
    request: u64,
}

impl RequestGuard {
    /// The next bytes of the response are being made: it is not the client who is late.
    pub(crate) fn on_server_working(&self) {
        self.note(None);
    }

    /// The client has bytes to take.
    pub(crate) fn on_body_ready(&self, now: Instant) {
        self.note(Some(now));
    }

    fn note(&self, waiting: Option<Instant>) {
        let mut facts = self.patience.facts();
        if let Some((_, since)) = facts.requests.iter_mut().find(|(request, _)| *request == self.request) {
            *since = waiting;
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut facts = self.patience.facts();
        facts.requests.retain(|(request, _)| *request != self.request);
        if facts.requests.is_empty() {
            facts.quiet_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limits() -> ServerOptions {
        ServerOptions {
            first_byte_timeout: 10 * SECOND,
            header_timeout: 20 * SECOND,
            idle_timeout: 30 * SECOND,
            write_stall_timeout: 40 * SECOND,
            min_write_rate: 1000,
            min_write_rate_window: 60 * SECOND,
            ..ServerOptions::default()
        }
    }

    #[test]
    fn a_silent_connection_is_overdue_after_the_first_byte_limit() {
        let start = Instant::now();
        let patience = ConnectionMonitor::new(start);
        assert_eq!(patience.timed_out(&limits(), start + 9 * SECOND), None);
        assert_eq!(patience.timed_out(&limits(), start + 10 * SECOND), Some(TimeoutReason::FirstByte));
    }

    #[test]
    fn a_head_is_overdue_counted_from_its_first_byte_however_it_dribbles() {
        let start = Instant::now();
        let patience = ConnectionMonitor::new(start);
        for second in 5..25 {
            patience.on_read(start + second * SECOND);
            assert_eq!(patience.timed_out(&limits(), start + second * SECOND), None, "{second}");
        }
        assert_eq!(patience.timed_out(&limits(), start + 25 * SECOND), Some(TimeoutReason::Header));
    }

    #[test]
    fn a_request_under_way_is_never_overdue_while_the_server_works() {
        let start = Instant::now();
        let patience = ConnectionMonitor::new(start);
        patience.on_read(start);
        let ticket = patience.begin_request(false);
        assert_eq!(patience.timed_out(&limits(), start + 1000 * SECOND), None);
        assert!(!patience.is_idle());
        ticket.on_body_ready(start + 1000 * SECOND);
        ticket.on_server_working();
        assert_eq!(patience.timed_out(&limits(), start + 2000 * SECOND), None);
        drop(ticket);
        assert!(patience.is_idle());
    }

    #[test]
    fn a_connection_without_a_request_is_overdue_after_the_idle_limit() {
        let patience = ConnectionMonitor::new(Instant::now());
        patience.on_read(Instant::now());
        drop(patience.begin_request(false));
        let ended = Instant::now();
        assert_eq!(patience.timed_out(&limits(), ended + 29 * SECOND), None);
        assert_eq!(patience.timed_out(&limits(), ended + 30 * SECOND), Some(TimeoutReason::Idle));
    }

    #[test]
    fn frames_between_requests_of_http2_are_no_head() {
        let patience = ConnectionMonitor::new(Instant::now());
        drop(patience.begin_request(true));
        let ended = Instant::now();
        patience.on_read(ended);
        assert_eq!(patience.timed_out(&limits(), ended + 29 * SECOND), None);
        assert_eq!(patience.timed_out(&limits(), ended + 31 * SECOND), Some(TimeoutReason::Idle));
    }

    #[test]
    fn a_client_that_takes_nothing_is_overdue_even_while_pings_flow() {
        let start = Instant::now();
        let patience = ConnectionMonitor::new(start);
        let ticket = patience.begin_request(true);
        ticket.on_body_ready(start);
        for second in 0..40 {
            assert_eq!(patience.timed_out(&limits(), start + second * SECOND), None, "{second}");
            patience.on_write(17, start + second * SECOND);
        }
        assert_eq!(patience.timed_out(&limits(), start + 40 * SECOND), Some(TimeoutReason::WriteStall));
    }

    #[test]
    fn a_slow_client_that_takes_something_is_not_overdue() {
        let start = Instant::now();
        let patience = ConnectionMonitor::new(start);
        let ticket = patience.begin_request(false);
        ticket.on_body_ready(start);
        for second in 0..200 {
            patience.on_write_blocked(start + second * SECOND);
            assert_eq!(patience.timed_out(&limits(), start + second * SECOND), None, "{second}");
            patience.on_write(2048, start + second * SECOND);
        }
    }

    #[test]
    fn a_client_that_takes_too_little_for_long_is_overdue() {
        for (bytes, expected) in [(999, Some(TimeoutReason::WritePace)), (1000, None), (1001, None)] {
            let start = Instant::now();
            let patience = ConnectionMonitor::new(start);
            let ticket = patience.begin_request(false);
            let mut found = None;
            for second in 0..200 {
                let now = start + second * SECOND;
                ticket.on_body_ready(now);
                found = found.or(patience.timed_out(&limits(), now));
                patience.on_write(bytes, now + SECOND / 2);
            }
            assert_eq!(found, expected, "{bytes} a second");
        }
    }

    #[test]
    fn a_client_is_not_slow_while_the_server_works() {
        let start = Instant::now();
        let patience = ConnectionMonitor::new(start);
        let ticket = patience.begin_request(false);
        for second in 0..200 {
            let now = start + second * SECOND;
            // One byte a second is all that there is to send.
            ticket.on_body_ready(now);
            patience.on_write(1, now);
            assert_eq!(patience.timed_out(&limits(), now), None, "{second}");
            ticket.on_server_working();
            assert_eq!(patience.timed_out(&limits(), now + SECOND / 2), None, "{second}");
        }
    }

    #[test]
    fn after_the_handshake_the_first_byte_is_waited_for_again() {
        let start = Instant::now();
        let patience = ConnectionMonitor::new(start);
        patience.on_read(start);
        patience.is_encrypted(start + 19 * SECOND);
        assert_eq!(patience.timed_out(&limits(), start + 28 * SECOND), None);
        assert_eq!(patience.timed_out(&limits(), start + 29 * SECOND), Some(TimeoutReason::FirstByte));
    }

    #[test]
    fn a_socket_that_refuses_bytes_is_overdue_and_not_at_rest() {
        let start = Instant::now();
        let patience = ConnectionMonitor::new(start);
        patience.on_read(start);
        drop(patience.begin_request(false));
        patience.on_write_blocked(start);
        patience.on_write_blocked(start + 39 * SECOND);
        assert!(!patience.is_idle());
        assert_eq!(patience.timed_out(&limits(), start + 40 * SECOND), Some(TimeoutReason::WriteStall));
    }
}

//! [`ConnectionMonitor`]: the recent activity of one connection, and whether it exceeds a timeout.
//!
//! hyper's own timers leave gaps: the detection of HTTP/1 or HTTP/2 has none, so a silent connection stays open without end; so
//! does a client that reads nothing of its response; and a graceful shutdown waits for an incomplete request head. So the socket
//! and the service record their events here, and one function without I/O, [`ConnectionMonitor::timed_out`], decides for all of
//! them. Nothing here sleeps or closes.
//!
//! The body timeouts of `tower_http::timeout` do not serve here: they limit the time that a body takes to produce its next
//! frame, which is the server's work. Here the client's side counts, in bytes that the socket accepts.

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
    /// Whether the client did not read what was sent.
    pub(crate) fn is_slow_reader(self) -> bool {
        match self {
            Self::WriteStall | Self::WritePace => true,
            Self::FirstByte | Self::Header | Self::Idle => false,
        }
    }
}

/// Fewer bytes than this are no progress: HTTP/2 pings and their replies are exchanged even if a client reads no response.
const PROGRESS_BYTES: usize = 1024;

/// The recent activity of one connection. Shared by its socket, its requests and its task.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionMonitor(Arc<Mutex<ConnectionState>>);

#[derive(Debug)]
struct ConnectionState {
    /// Since when no request has been in flight.
    quiet_since: Instant,
    /// When the first byte after that arrived.
    head_since: Option<Instant>,
    /// Whether anything has arrived.
    has_read: bool,
    /// Whether requests are HTTP/2, where bytes between requests need not be a head.
    http2: bool,
    /// Since when the socket has accepted no bytes.
    blocked_since: Option<Instant>,
    /// When the last progress in writing was, and how many bytes have been written since.
    written: (Instant, usize),
    /// Since when each check has found the server waiting for nothing but the client, and how many bytes it has read since.
    slow: Option<(Instant, u64)>,
    /// Whether unsent bytes are to be discarded.
    is_aborted: bool,
    /// Requests in flight, a few at most: since when each waits for the client to read more, if it does.
    requests: Vec<(u64, Option<Instant>)>,
    next_request: u64,
}

impl ConnectionMonitor {
    pub(crate) fn new(now: Instant) -> Self {
        Self(Arc::new(Mutex::new(ConnectionState {
            quiet_since: now,
            head_since: None,
            has_read: false,
            http2: false,
            blocked_since: None,
            written: (now, 0),
            slow: None,
            is_aborted: false,
            requests: Vec::new(),
            next_request: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        // The state has simple values only: a panic in another thread cannot have left it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes arrived.
    pub(crate) fn on_read(&self, now: impl FnOnce() -> Instant) {
        let mut state = self.state();
        state.has_read = true;
        if state.requests.is_empty() {
            state.head_since.get_or_insert_with(now);
        }
    }

    /// The socket accepted bytes.
    pub(crate) fn on_write(&self, bytes: usize, now: Instant) {
        let mut state = self.state();
        state.blocked_since = None;
        if let Some((_, taken)) = &mut state.slow {
            *taken = taken.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
        state.written.1 = state.written.1.saturating_add(bytes);
        if state.written.1 >= PROGRESS_BYTES {
            state.written = (now, 0);
        }
    }

    /// The socket accepts no more for now.
    pub(crate) fn on_write_blocked(&self, now: Instant) {
        self.state().blocked_since.get_or_insert(now);
    }

    /// A request begins; it is in flight until the guard is dropped.
    pub(crate) fn begin_request(&self, http2: bool) -> RequestGuard {
        let mut state = self.state();
        state.http2 |= http2;
        state.head_since = None;
        let request = state.next_request;
        state.next_request += 1;
        state.requests.push((request, None));
        RequestGuard { monitor: self.clone(), request }
    }

    /// The TLS handshake has ended: the next byte is the first.
    pub(crate) fn on_encrypted(&self, now: Instant) {
        let mut state = self.state();
        (state.quiet_since, state.head_since, state.has_read) = (now, None, false);
    }

    /// The timeout that the connection exceeds, if any. It must be called often: the time between two calls is assumed to be like
    /// both.
    pub(crate) fn timed_out(&self, limits: &ServerOptions, now: Instant) -> Option<TimeoutReason> {
        let mut state = self.state();
        if state.is_too_slow(limits, now) {
            return Some(TimeoutReason::WritePace);
        }
        let passed = |since: Instant, limit: Duration| now.saturating_duration_since(since) >= limit;
        if state.blocked_since.is_some_and(|since| passed(since, limits.write_stall_timeout)) {
            return Some(TimeoutReason::WriteStall);
        }
        let last_written = state.written.0;
        let stalled = |since: &Instant| passed((*since).max(last_written), limits.write_stall_timeout);
        if state.requests.iter().filter_map(|(_, since)| since.as_ref()).any(stalled) {
            return Some(TimeoutReason::WriteStall);
        }
        if !state.requests.is_empty() {
            return None;
        }
        match state.head_since {
            _ if !state.has_read => {
                passed(state.quiet_since, limits.first_byte_timeout).then_some(TimeoutReason::FirstByte)
            }
            Some(since) if !state.http2 => {
                passed(since, limits.header_timeout).then_some(TimeoutReason::Header)
            }
            _ => passed(state.quiet_since, limits.idle_timeout).then_some(TimeoutReason::Idle),
        }
    }

    /// Discards what the client has not read.
    pub(crate) fn abort(&self) {
        self.state().is_aborted = true;
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.state().is_aborted
    }

    /// Whether closing now would lose nothing: no request is in flight and all responses are sent.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        state.requests.is_empty() && state.blocked_since.is_none()
    }
}

impl ConnectionState {
    /// Whether a client has read too slowly, in a time in which the server waited for nothing else.
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

/// A request in flight.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    monitor: ConnectionMonitor,
    request: u64,
}

impl RequestGuard {
    /// The server produces the next bytes of the response: the client is not late.
    pub(crate) fn on_server_working(&self) {
        self.set_waiting(None);
    }

    /// The client has bytes to read.
    pub(crate) fn on_body_ready(&self, now: Instant) {
        self.set_waiting(Some(now));
    }

    fn set_waiting(&self, waiting: Option<Instant>) {
        let mut state = self.monitor.state();
        if let Some((_, since)) = state.requests.iter_mut().find(|(request, _)| *request == self.request) {
            *since = waiting;
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut state = self.monitor.state();
        state.requests.retain(|(request, _)| *request != self.request);
        if state.requests.is_empty() {
            state.quiet_since = Instant::now();
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
    fn a_silent_connection_exceeds_the_first_byte_timeout() {
        let start = Instant::now();
        let monitor = ConnectionMonitor::new(start);
        assert_eq!(monitor.timed_out(&limits(), start + 9 * SECOND), None);
        assert_eq!(monitor.timed_out(&limits(), start + 10 * SECOND), Some(TimeoutReason::FirstByte));
    }

    #[test]
    fn a_slow_head_exceeds_the_header_timeout_from_its_first_byte() {
        let start = Instant::now();
        let monitor = ConnectionMonitor::new(start);
        for second in 5..25 {
            monitor.on_read(|| start + second * SECOND);
            assert_eq!(monitor.timed_out(&limits(), start + second * SECOND), None, "{second}");
        }
        assert_eq!(monitor.timed_out(&limits(), start + 25 * SECOND), Some(TimeoutReason::Header));
    }

    #[test]
    fn a_request_in_flight_has_no_timeout_while_the_server_works() {
        let start = Instant::now();
        let monitor = ConnectionMonitor::new(start);
        monitor.on_read(|| start);
        let guard = monitor.begin_request(false);
        assert_eq!(monitor.timed_out(&limits(), start + 1000 * SECOND), None);
        assert!(!monitor.is_idle());
        guard.on_body_ready(start + 1000 * SECOND);
        guard.on_server_working();
        assert_eq!(monitor.timed_out(&limits(), start + 2000 * SECOND), None);
        drop(guard);
        assert!(monitor.is_idle());
    }

    #[test]
    fn a_connection_without_a_request_exceeds_the_idle_timeout() {
        let monitor = ConnectionMonitor::new(Instant::now());
        monitor.on_read(Instant::now);
        drop(monitor.begin_request(false));
        let ended = Instant::now();
        assert_eq!(monitor.timed_out(&limits(), ended + 29 * SECOND), None);
        assert_eq!(monitor.timed_out(&limits(), ended + 30 * SECOND), Some(TimeoutReason::Idle));
    }

    #[test]
    fn http2_frames_between_requests_are_not_a_head() {
        let monitor = ConnectionMonitor::new(Instant::now());
        drop(monitor.begin_request(true));
        let ended = Instant::now();
        monitor.on_read(|| ended);
        assert_eq!(monitor.timed_out(&limits(), ended + 29 * SECOND), None);
        assert_eq!(monitor.timed_out(&limits(), ended + 31 * SECOND), Some(TimeoutReason::Idle));
    }

    #[test]
    fn a_client_that_reads_nothing_exceeds_the_stall_timeout_despite_pings() {
        let start = Instant::now();
        let monitor = ConnectionMonitor::new(start);
        let guard = monitor.begin_request(true);
        guard.on_body_ready(start);
        for second in 0..40 {
            assert_eq!(monitor.timed_out(&limits(), start + second * SECOND), None, "{second}");
            monitor.on_write(17, start + second * SECOND);
        }
        assert_eq!(monitor.timed_out(&limits(), start + 40 * SECOND), Some(TimeoutReason::WriteStall));
    }

    #[test]
    fn a_slow_client_above_the_minimum_rate_does_not_time_out() {
        let start = Instant::now();
        let monitor = ConnectionMonitor::new(start);
        let guard = monitor.begin_request(false);
        guard.on_body_ready(start);
        for second in 0..200 {
            monitor.on_write_blocked(start + second * SECOND);
            assert_eq!(monitor.timed_out(&limits(), start + second * SECOND), None, "{second}");
            monitor.on_write(2048, start + second * SECOND);
        }
    }

    #[test]
    fn a_client_below_the_minimum_rate_exceeds_the_write_timeout() {
        for (bytes, expected) in [(999, Some(TimeoutReason::WritePace)), (1000, None), (1001, None)] {
            let start = Instant::now();
            let monitor = ConnectionMonitor::new(start);
            let guard = monitor.begin_request(false);
            let mut found = None;
            for second in 0..200 {
                let now = start + second * SECOND;
                guard.on_body_ready(now);
                found = found.or(monitor.timed_out(&limits(), now));
                monitor.on_write(bytes, now + SECOND / 2);
            }
            assert_eq!(found, expected, "{bytes} a second");
        }
    }

    #[test]
    fn a_client_is_not_slow_while_the_server_works() {
        let start = Instant::now();
        let monitor = ConnectionMonitor::new(start);
        let guard = monitor.begin_request(false);
        for second in 0..200 {
            let now = start + second * SECOND;
            // One byte a second is all that there is to send.
            guard.on_body_ready(now);
            monitor.on_write(1, now);
            assert_eq!(monitor.timed_out(&limits(), now), None, "{second}");
            guard.on_server_working();
            assert_eq!(monitor.timed_out(&limits(), now + SECOND / 2), None, "{second}");
        }
    }

    #[test]
    fn the_first_byte_timeout_restarts_after_the_tls_handshake() {
        let start = Instant::now();
        let monitor = ConnectionMonitor::new(start);
        monitor.on_read(|| start);
        monitor.on_encrypted(start + 19 * SECOND);
        assert_eq!(monitor.timed_out(&limits(), start + 28 * SECOND), None);
        assert_eq!(monitor.timed_out(&limits(), start + 29 * SECOND), Some(TimeoutReason::FirstByte));
    }

    #[test]
    fn a_socket_that_accepts_no_bytes_exceeds_the_stall_timeout_and_is_not_idle() {
        let start = Instant::now();
        let monitor = ConnectionMonitor::new(start);
        monitor.on_read(|| start);
        drop(monitor.begin_request(false));
        monitor.on_write_blocked(start);
        monitor.on_write_blocked(start + 39 * SECOND);
        assert!(!monitor.is_idle());
        assert_eq!(monitor.timed_out(&limits(), start + 40 * SECOND), Some(TimeoutReason::WriteStall));
    }
}

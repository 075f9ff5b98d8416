//! [`AccessLogEntry`]: the line of a request in the log, and [`set_access_log_writer`].
//!
//! Every request has a line, and `tracing` takes as long to pass the fields on as it takes to format them. So where lines are text,
//! a function writes them directly. The lines are the same.

use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

/// The `tracing` target of the access log.
pub const ACCESS_LOG_TARGET: &str = "zarrd::access";

/// The line of a request, whose response has ended.
#[derive(Clone, Copy, Debug)]
pub struct AccessLogEntry<'a> {
    /// The request's id.
    pub request_id: &'a str,
    /// The client's address.
    pub from: IpAddr,
    /// The method.
    pub method: &'a str,
    /// The template of the route, or `unmatched`.
    pub route: &'static str,
    /// The path of the request, escaped.
    pub path: &'a str,
    /// The status of the response.
    pub status: u16,
    /// How many bytes of its body were sent.
    pub bytes: u64,
    /// Whether that is all of it.
    pub complete: bool,
    /// The time from the head of the request to the end of the response.
    pub duration: Duration,
}

type Writer = Box<dyn Fn(&AccessLogEntry<'_>) + Send + Sync>;

static WRITER: OnceLock<Writer> = OnceLock::new();

/// Sets the function that writes the access log of this process, in place of `tracing`. A second one is ignored.
pub fn set_access_log_writer(write: impl Fn(&AccessLogEntry<'_>) + Send + Sync + 'static) {
    let _ = WRITER.set(Box::new(write));
}

impl AccessLogEntry<'_> {
    /// Writes the line.
    pub(super) fn log(&self) {
        match WRITER.get() {
            Some(write) => write(self),
            None => self.emit_event(),
        }
    }

    /// The duration in microseconds.
    #[must_use]
    pub fn duration_us(&self) -> u64 {
        u64::try_from(self.duration.as_micros()).unwrap_or(u64::MAX)
    }

    /// Emits the line as a `tracing` event.
    pub fn emit_event(&self) {
        tracing::info!(
            target: ACCESS_LOG_TARGET,
            message = "request",
            request_id = self.request_id,
            from = display(self.from),
            method = self.method,
            route = self.route,
            path = self.path,
            status = self.status,
            bytes = self.bytes,
            complete = self.complete,
            duration_us = self.duration_us(),
        );
    }
}

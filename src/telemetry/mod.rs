//! What the process tells of itself while it runs: lines of a log on standard error (so that standard output stays the
//! user's), and, where a collector is configured, spans of traces.
//!
//! Neither ever holds up a request: both wait in queues of bounded size, and what does not fit is dropped and counted.
//! Metrics are not here: they are asked for, and `http` answers.

mod install;
mod log_writer;
mod otlp;
mod spans;
mod text_format;

pub(crate) use install::Telemetry;

//! Logs and traces of the process: log lines on standard error, which leaves standard output to the user, and trace
//! spans for the configured collector.
//!
//! Neither delays a request: both have bounded queues, and what does not fit is dropped and counted. Metrics are in
//! `http`, which serves them on request.

#[cfg(test)]
mod captured_output;
mod install;
mod log_writer;
mod otlp;
mod spans;
mod text_access_log;
mod text_layer;

pub(crate) use install::Telemetry;

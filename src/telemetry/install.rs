//! [`Telemetry`]: installs the log and the trace exporter, and flushes both at exit.

use std::io::{IsTerminal, Write};
use std::time::{Duration, SystemTime};

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};
use zarrd::config::{LogFormat, LogOptions, TelemetryOptions};
use zarrd::metrics::ProcessMetrics;
use zarrd::web::ACCESS_LOG_TARGET;

use super::log_writer::{self, LogWriter};
use super::otlp::Exporter;
use super::spans::{self, SpanLayer};
use super::text_layer::TextLayer;

/// The `tracing` target of all spans that belong to traces, and of nothing else.
const SPAN_TARGET: &str = "zarrd::span";
/// The `tracing` target of the audit log.
const AUDIT_TARGET: &str = "zarrd::audit";
/// The `tracing` target of the client of object stores.
const OBJECT_STORE: &str = "object_store";
/// Maximum time for the flush of queued lines, and of queued spans, at exit.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The log writer and the trace exporter of the process.
#[derive(Debug)]
pub(crate) struct Telemetry {
    writer: LogWriter,
    audit: Option<LogWriter>,
    exporter: Option<Exporter>,
}

impl Telemetry {
    /// Installs the global subscriber, which writes events to standard error and to the file of the audit log, and queues
    /// spans for export. `now` is the clock.
    pub(crate) fn install(
        log: &LogOptions,
        telemetry: &TelemetryOptions,
        audit_file: Option<impl Write + Send + 'static>,
        now: fn() -> SystemTime,
    ) -> Self {
        let writer = LogWriter::start(std::io::stderr());
        // `config` has validated the levels; should the two parsers ever disagree, log at INFO.
        let filter: Targets = log.level.parse().unwrap_or_else(|_| Targets::new().with_default(Level::INFO));
        let filter = filter.with_target(SPAN_TARGET, LevelFilter::OFF);
        // It says of each retry that there is one, without the mount; the failure has a line of its own.
        let is_usual = filter.default_level() == Some(LevelFilter::INFO) && !log.level.contains(OBJECT_STORE);
        let filter = if is_usual { filter.with_target(OBJECT_STORE, Level::WARN) } else { filter };
        let audit = audit_file.map(LogWriter::start);
        let filter = match &audit {
            Some(_) => filter.with_target(AUDIT_TARGET, LevelFilter::OFF),
            None => filter,
        };
        let audit_layer = audit.clone().map(|writer| {
            let layer = fmt::layer().with_writer(writer).json().flatten_event(true);
            layer.with_filter(Targets::new().with_target(AUDIT_TARGET, Level::INFO))
        });
        let (spans, exporter) = match &telemetry.otlp_endpoint {
            Some(endpoint) => {
                let (exporter, queue) =
                    Exporter::new(endpoint, &telemetry.service_name, telemetry.max_queued_spans);
                let spans = SpanLayer::new(queue, telemetry.sample_ratio, now);
                zarrd::store::set_trace_context_provider(spans::current_traceparent);
                (
                    Some(spans.with_filter(Targets::new().with_target(SPAN_TARGET, Level::TRACE))),
                    Some(exporter),
                )
            }
            None => (None, None),
        };
        let layer = match log.format {
            LogFormat::Text => {
                let is_coloured = std::io::stderr().is_terminal();
                let layer = || TextLayer::new(writer.clone(), is_coloured, now);
                if filter.would_enable(ACCESS_LOG_TARGET, &Level::INFO) {
                    let access_log = layer();
                    zarrd::web::set_access_log_writer(move |entry| access_log.write_entry(entry));
                }
                layer().with_filter(filter).boxed()
            }
            LogFormat::Json => {
                let layer = fmt::layer().with_writer(writer.clone());
                layer.json().flatten_event(true).with_filter(filter).boxed()
            }
        };
        // Installing a second subscriber fails; the first one then stays, which is fine.
        let _ = registry().with(layer).with(audit_layer).with(spans).try_init();
        Self { writer, audit, exporter }
    }

    /// The sources of the process metrics.
    pub(crate) fn process_metrics() -> ProcessMetrics {
        ProcessMetrics {
            process: zarrd::config::process::in_use,
            dropped_log_lines: log_writer::dropped_lines,
            dropped_spans: spans::dropped_spans,
        }
    }

    /// Starts the task that exports spans; requires a Tokio runtime.
    pub(crate) fn start_export(&mut self) {
        if let Some(exporter) = &mut self.exporter {
            exporter.start();
        }
    }

    /// Waits at most 2 seconds for the export of queued spans.
    pub(crate) async fn flush_spans(&mut self) {
        if let Some(exporter) = &mut self.exporter {
            exporter.finish(FLUSH_TIMEOUT).await;
        }
    }

    /// Waits at most 2 seconds until queued lines are written.
    pub(crate) fn flush_log(&self) {
        for writer in [Some(&self.writer), self.audit.as_ref()].into_iter().flatten() {
            writer.flush(FLUSH_TIMEOUT);
        }
    }
}

//! What the process tells of itself while it runs: lines of a log on standard error (so that standard output stays the
//! user's), and, where a collector is configured, spans of traces.
//!
//! Neither ever holds up a request: both wait in queues of bounded size, and what does not fit is dropped and counted.
//! Metrics are not here: they are asked for, and `http` answers.

mod lines;
mod otlp;
mod spans;
mod text;

use std::io::IsTerminal;
use std::time::{Duration, SystemTime};

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};
use zarrd::config::{LogFormat, LogOptions, TelemetryOptions};
use zarrd::http::ProcessMetrics;

use lines::Lines;
use otlp::Exporter;
use spans::Spans;
use text::Text;

/// What all spans of traces are filed under; nothing else is.
const SPANS: &str = "zarrd::span";
/// How long lines and spans that still wait at the end may take.
const LAST: Duration = Duration::from_secs(2);

/// What is told, and where it waits.
#[derive(Debug)]
pub(crate) struct Telemetry {
    lines: Lines,
    exporter: Option<Exporter>,
}

impl Telemetry {
    /// Sends every event of the process to standard error from here on, and spans to be exported. `now` is the clock.
    pub(crate) fn install(log: &LogOptions, telemetry: &TelemetryOptions, now: fn() -> SystemTime) -> Self {
        let lines = Lines::start(std::io::stderr());
        // `config` has checked the levels; should the two ever disagree, more is better than nothing.
        let filter: Targets = log.level.parse().unwrap_or_else(|_| Targets::new().with_default(Level::INFO));
        let filter = filter.with_target(SPANS, tracing::level_filters::LevelFilter::OFF);
        let layer = fmt::layer().with_writer(lines.clone());
        let (spans, exporter) = match &telemetry.otlp_endpoint {
            Some(endpoint) => {
                let (exporter, queue) =
                    Exporter::new(endpoint, &telemetry.service_name, telemetry.max_queued_spans);
                let spans = Spans::new(queue, telemetry.sample_ratio, now);
                zarrd::store::set_trace_context_provider(spans::current);
                (Some(spans.with_filter(Targets::new().with_target(SPANS, Level::TRACE))), Some(exporter))
            }
            None => (None, None),
        };
        let layer = match log.format {
            LogFormat::Text => {
                let text = Text { is_coloured: std::io::stderr().is_terminal() };
                layer.event_format(text).with_filter(filter).boxed()
            }
            LogFormat::Json => layer.json().flatten_event(true).with_filter(filter).boxed(),
        };
        // A second subscriber is refused; the first then stays, which is as good.
        let _ = registry().with(layer).with(spans).try_init();
        Self { lines, exporter }
    }

    /// What is known here for those who ask for metrics.
    pub(crate) fn surroundings() -> ProcessMetrics {
        ProcessMetrics {
            process: zarrd::config::process::in_use,
            dropped_log_lines: lines::dropped,
            dropped_spans: spans::dropped,
        }
    }

    /// Sends spans until the process ends; to be run beside what makes them.
    pub(crate) fn export(&mut self) {
        if let Some(exporter) = &mut self.exporter {
            exporter.start();
        }
    }

    /// Waits a moment for spans that were not sent yet.
    pub(crate) async fn finish(&mut self) {
        if let Some(exporter) = &mut self.exporter {
            exporter.finish(LAST).await;
        }
    }

    /// Waits a moment for lines that were not written yet.
    pub(crate) fn flush(&self) {
        self.lines.flush(LAST);
    }
}

//! [`Exporter`]: sends spans to a collector by OTLP 1.x over HTTP, encoded as JSON.
//!
//! Of the two encodings that collectors accept, JSON needs no generated code and no further dependency. A collector that
//! is down or slow loses spans, but never delays a request: the queue is bounded, each batch is sent once, and the flush
//! at exit has a timeout.
//!
//! `opentelemetry-otlp` is not used: with `tracing-opentelemetry` it brings many dependencies, and this server needs only
//! spans with string attributes; the price is that `OTEL_*` environment variables, baggage and protobuf are not supported.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::spans::FinishedSpan;

/// Maximum number of spans in one request.
const MAX_BATCH_SPANS: usize = 512;
/// How long a batch that is not full waits for more spans.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// Timeout of one request to the collector.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Exports the spans of a queue to a collector.
#[derive(Debug)]
pub(super) struct Exporter {
    url: String,
    service_name: String,
    spans: Option<Receiver<FinishedSpan>>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Exporter {
    /// An exporter to the collector at `endpoint`, and the sender of its queue, which holds at most `queue_spans` spans.
    pub(super) fn new(
        endpoint: &str,
        service_name: &str,
        queue_spans: usize,
    ) -> (Self, Sender<FinishedSpan>) {
        let (queue, spans) = channel(queue_spans.max(1));
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let exporter = Self { url, service_name: service_name.to_owned(), spans: Some(spans), running: None };
        (exporter, queue)
    }

    /// Starts the task that exports queued spans.
    pub(super) fn start(&mut self) {
        let Some(spans) = self.spans.take() else { return };
        // Fails if a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client =
            reqwest::Client::builder().timeout(REQUEST_TIMEOUT).redirect(reqwest::redirect::Policy::none());
        let client = match client.build() {
            Ok(client) => client,
            Err(error) => {
                tracing::error!(%error, "cannot export traces");
                return;
            }
        };
        let (stop, stopped) = oneshot::channel();
        let sending = ExportTask { client, url: self.url.clone(), service_name: self.service_name.clone() };
        self.running = Some((stop, tokio::spawn(sending.run(spans, stopped))));
    }

    /// Exports the queued spans, but waits at most `longest`.
    pub(super) async fn finish(&mut self, longest: Duration) {
        if let Some((stop, task)) = self.running.take() {
            let _ = stop.send(());
            let _ = timeout(longest, task).await;
        }
    }
}

struct ExportTask {
    client: reqwest::Client,
    url: String,
    service_name: String,
}

impl ExportTask {
    async fn run(self, mut spans: Receiver<FinishedSpan>, mut stopped: oneshot::Receiver<()>) {
        let mut batch = Vec::with_capacity(MAX_BATCH_SPANS);
        loop {
            tokio::select! {
                _ = &mut stopped => break,
                received = spans.recv_many(&mut batch, MAX_BATCH_SPANS) => if received == 0 { break },
            }
            if batch.len() < MAX_BATCH_SPANS {
                tokio::select! {
                    _ = &mut stopped => break,
                    () = sleep(BATCH_DELAY) => {}
                }
                while batch.len() < MAX_BATCH_SPANS
                    && let Ok(span) = spans.try_recv()
                {
                    batch.push(span);
                }
            }
            self.send(&mut batch).await;
        }
        loop {
            while batch.len() < MAX_BATCH_SPANS
                && let Ok(span) = spans.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() {
                return;
            }
            self.send(&mut batch).await;
        }
    }

    /// Sends a batch once.
    async fn send(&self, batch: &mut Vec<FinishedSpan>) {
        let document = document(&self.service_name, batch).to_string();
        batch.clear();
        let request = self.client.post(&self.url).header(CONTENT_TYPE, "application/json").body(document);
        match request.send().await {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => {
                tracing::warn!(status = response.status().as_u16(), "the collector rejected traces");
            }
            Err(error) => tracing::warn!(error = %error.without_url(), "the collector cannot be reached"),
        }
    }
}

/// The request body with these spans (`ExportTraceServiceRequest`).
fn document(service_name: &str, spans: &[FinishedSpan]) -> Value {
    let service = [("service.name", service_name), ("service.version", env!("CARGO_PKG_VERSION"))];
    let service: Vec<Value> = service.iter().map(|(key, value)| attribute(key, value)).collect();
    let spans: Vec<Value> = spans.iter().map(span).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": service },
        "scopeSpans": [{ "scope": { "name": "zarrd" }, "spans": spans }],
    }] })
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn span(span: &FinishedSpan) -> Value {
    // OTLP span kinds: server, client, internal.
    let kind = match span.name {
        "request" => 2,
        "backend" => 3,
        _ => 1,
    };
    let nanos = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string();
    let attributes: Vec<Value> = span.fields.iter().map(|(key, value)| attribute(key, value)).collect();
    let failed = span.fields.iter().any(|(key, value)| *key == "status" && value.starts_with('5'));
    let mut document = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": nanos(span.started_at),
        "endTimeUnixNano": nanos(span.started_at + span.duration),
        "attributes": attributes,
        "status": { "code": if failed { 2 } else { 0 } },
    });
    if span.context.parent != 0
        && let Some(document) = document.as_object_mut()
    {
        document.insert("parentSpanId".to_owned(), json!(format!("{:016x}", span.context.parent)));
    }
    document
}

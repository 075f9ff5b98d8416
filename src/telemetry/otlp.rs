//! [`Exporter`]: spans on their way to a collector: OTLP 1.x over HTTP, encoded as JSON.
//!
//! Of the two encodings that collectors take, JSON needs no generated code, and nothing that the program has not got
//! already. A collector that is down or slow costs spans, never requests: the queue before this is bounded, a batch is sent
//! once, and what waits at the end has a moment.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::spans::Finished;

/// Spans that are sent together, at most.
const BATCH: usize = 512;
/// How long spans wait for others to be sent together with.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends spans.
#[derive(Debug)]
pub(super) struct Exporter {
    url: String,
    service_name: String,
    spans: Option<Receiver<Finished>>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Exporter {
    /// To a collector; so many spans wait at most. They are to be put into the queue.
    pub(super) fn new(endpoint: &str, service_name: &str, queue_spans: usize) -> (Self, Sender<Finished>) {
        let (queue, spans) = channel(queue_spans.max(1));
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let exporter = Self { url, service_name: service_name.to_owned(), spans: Some(spans), running: None };
        (exporter, queue)
    }

    /// Sends what comes, in a task.
    pub(super) fn start(&mut self) {
        let Some(spans) = self.spans.take() else { return };
        // Refused if somebody has chosen a provider already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none());
        let client = match client.build() {
            Ok(client) => client,
            Err(error) => {
                tracing::error!(%error, "no traces are sent");
                return;
            }
        };
        let (stop, stopped) = oneshot::channel();
        let sending = Sending { client, url: self.url.clone(), service_name: self.service_name.clone() };
        self.running = Some((stop, tokio::spawn(sending.run(spans, stopped))));
    }

    /// Sends what waits, if it takes no longer than this.
    pub(super) async fn finish(&mut self, longest: Duration) {
        if let Some((stop, task)) = self.running.take() {
            let _ = stop.send(());
            let _ = timeout(longest, task).await;
        }
    }
}

struct Sending {
    client: reqwest::Client,
    url: String,
    service_name: String,
}

impl Sending {
    async fn run(self, mut spans: Receiver<Finished>, mut stopped: oneshot::Receiver<()>) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                _ = &mut stopped => break,
                received = spans.recv_many(&mut batch, BATCH) => if received == 0 { break },
            }
            if batch.len() < BATCH {
                tokio::select! {
                    _ = &mut stopped => break,
                    () = sleep(PAUSE) => {}
                }
                while batch.len() < BATCH
                    && let Ok(span) = spans.try_recv()
                {
                    batch.push(span);
                }
            }
            self.send(&mut batch).await;
        }
        loop {
            while batch.len() < BATCH
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
    async fn send(&self, batch: &mut Vec<Finished>) {
        let document = document(&self.service_name, batch).to_string();
        batch.clear();
        let request = self.client.post(&self.url).header(CONTENT_TYPE, "application/json").body(document);
        match request.send().await {
            Ok(answer) if answer.status().is_success() => {}
            Ok(answer) => tracing::warn!(status = answer.status().as_u16(), "the collector refuses traces"),
            Err(error) => tracing::warn!(error = %error.without_url(), "the collector cannot be reached"),
        }
    }
}

/// Spans as a request for a collector (`ExportTraceServiceRequest`).
fn document(service_name: &str, spans: &[Finished]) -> Value {
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

fn span(span: &Finished) -> Value {
    // Whoever answers, whoever asks, and what is inside.
    let kind = match span.name {
        "request" => 2,
        "backend" => 3,
        _ => 1,
    };
    let nanos = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string();
    let attributes: Vec<Value> = span.fields.iter().map(|(key, value)| attribute(key, value)).collect();
    let failed = span.fields.iter().any(|(key, value)| *key == "status" && value.starts_with('5'));
    let mut document = json!({
        "traceId": format!("{:032x}", span.place.trace),
        "spanId": format!("{:016x}", span.place.span),
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": nanos(span.began),
        "endTimeUnixNano": nanos(span.began + span.took),
        "attributes": attributes,
        "status": { "code": if failed { 2 } else { 0 } },
    });
    if span.place.parent != 0
        && let Some(document) = document.as_object_mut()
    {
        document.insert("parentSpanId".to_owned(), json!(format!("{:016x}", span.place.parent)));
    }
    document
}

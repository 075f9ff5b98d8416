//! [`TelemetryOptions`]: where traces are sent.

use serde::{Deserialize, Serialize};

/// Traces, which are sent to a collector by OTLP over HTTP (JSON). Each request is a span, with spans for its parts below it. The
/// `traceparent` of a request is continued (W3C Trace Context), and requests to remote backends carry one.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryOptions {
    /// URL of the collector. No traces are sent without it. Also: the environment variable `OTEL_EXPORTER_OTLP_ENDPOINT`.
    ///
    /// Example: `"http://127.0.0.1:4318"`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp_endpoint: Option<String>,
    /// Name of this server in traces.
    pub service_name: String,
    /// Part of the requests that are traced if their `traceparent` does not decide it: 0.0 to 1.0.
    pub sample_ratio: f64,
    /// Spans that wait to be sent. Further ones are dropped and counted.
    pub max_queued_spans: usize,
}

impl Default for TelemetryOptions {
    fn default() -> Self {
        Self {
            otlp_endpoint: None,
            service_name: "zarrd".to_owned(),
            sample_ratio: 1.0,
            max_queued_spans: 4096,
        }
    }
}

impl TelemetryOptions {
    /// The first setting that is out of its range, and what is wrong with it.
    pub(super) fn first_error(&self) -> Option<(&'static str, String)> {
        let is_http = |url: &url::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let endpoint = self.otlp_endpoint.as_ref();
        let is_fine = |text: &String| {
            url::Url::parse(text).is_ok_and(|url| {
                is_http(&url)
                    && url.username().is_empty()
                    && url.password().is_none()
                    && url.query().is_none()
            })
        };
        if !endpoint.is_none_or(is_fine) {
            let reason = "expected http://HOST:PORT or https://HOST:PORT, without credentials or query";
            return Some(("otlp_endpoint", reason.to_owned()));
        }
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            return Some(("sample_ratio", "must be between 0.0 and 1.0".to_owned()));
        }
        (!(1..=1_000_000).contains(&self.max_queued_spans))
            .then(|| ("max_queued_spans", "must be between 1 and 1000000".to_owned()))
    }
}

//! [`SpanLayer`]: queues the finished spans of sampled traces for export (W3C Trace Context, level 1).
//!
//! A root span joins the trace named by its field `traceparent`, or starts a new trace. The service that starts a trace
//! decides whether it is sampled. A span exports only its recorded fields. `otlp` sends the spans.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc::Sender;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

/// The field with the caller's trace context.
const TRACEPARENT: &str = "traceparent";
/// Number of dropped spans.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// The number of spans dropped since the start of the process.
pub(super) fn dropped_spans() -> u64 {
    DROPPED.load(Relaxed)
}

/// The `traceparent` header value of the current span, for requests to a backend.
pub(super) fn current_traceparent() -> Option<String> {
    tracing::dispatcher::get_default(|dispatch| {
        let current = dispatch.current_span();
        let span = dispatch.downcast_ref::<Registry>()?.span(current.id()?)?;
        // Spans that belong to no trace may lie between.
        span.scope().find_map(|span| Some(span.extensions().get::<OpenSpan>()?.context.traceparent()))
    })
}

/// A finished span.
#[derive(Clone, Debug)]
pub(super) struct FinishedSpan {
    pub(super) context: SpanContext,
    pub(super) name: &'static str,
    pub(super) started_at: SystemTime,
    pub(super) duration: Duration,
    pub(super) fields: Vec<(&'static str, String)>,
}

/// The trace of a span, and its parent in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanContext {
    pub(super) trace: u128,
    pub(super) span: u64,
    /// The parent span's id; 0 if there is none.
    pub(super) parent: u64,
    is_sampled: bool,
}

impl SpanContext {
    fn traceparent(&self) -> String {
        let Self { trace, span, is_sampled, .. } = self;
        format!("00-{trace:032x}-{span:016x}-{:02x}", u8::from(*is_sampled))
    }
}

/// A span in flight.
struct OpenSpan {
    context: SpanContext,
    started_at: SystemTime,
    started: Instant,
    fields: SpanFields,
}

/// The layer that queues each finished span of a sampled trace.
#[derive(Debug)]
pub(super) struct SpanLayer {
    queue: Sender<FinishedSpan>,
    sample: f64,
    clock: fn() -> SystemTime,
    key: RandomState,
    count: AtomicU64,
}

impl SpanLayer {
    /// A layer that samples the fraction `sample` (0 to 1) of the traces that start here.
    pub(super) fn new(queue: Sender<FinishedSpan>, sample: f64, clock: fn() -> SystemTime) -> Self {
        Self { queue, sample, clock, key: RandomState::new(), count: AtomicU64::new(0) }
    }

    /// A pseudo-random number that is never 0.
    fn next_id(&self) -> u64 {
        self.key.hash_one(self.count.fetch_add(1, Relaxed)).max(1)
    }

    /// The context of a span without a local parent.
    fn root_context(&self, traceparent: Option<&str>) -> SpanContext {
        let span = self.next_id();
        if let Some((trace, parent, is_sampled)) = traceparent.and_then(parse_traceparent) {
            return SpanContext { trace, span, parent, is_sampled };
        }
        let trace = u128::from(self.next_id()) << 64 | u128::from(self.next_id());
        // 53 pseudo-random bits as a fraction from 0 to 1.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let fraction = (self.next_id() >> 11) as f64 / (1_u64 << 53) as f64;
        SpanContext { trace, span, parent: 0, is_sampled: fraction < self.sample }
    }
}

/// The trace id, parent span id and sampled flag of a `traceparent`; `None` if it is invalid.
fn parse_traceparent(text: &str) -> Option<(u128, u64, bool)> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_valid = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    // Later versions may have more fields; version 00 has exactly four.
    if !is_valid || version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
    let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
    Some((trace, span, u8::from_str_radix(flags, 16).ok()? & 1 == 1))
}

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = SpanFields::default();
        attributes.record(&mut fields);
        let parent =
            span.parent().and_then(|parent| parent.extensions().get::<OpenSpan>().map(|open| open.context));
        let span_context = match parent {
            Some(parent) => SpanContext { span: self.next_id(), parent: parent.span, ..parent },
            None => self.root_context(fields.take(TRACEPARENT).as_deref()),
        };
        span.extensions_mut().insert(OpenSpan {
            context: span_context,
            started_at: (self.clock)(),
            started: Instant::now(),
            fields,
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(open) = span.extensions_mut().get_mut::<OpenSpan>()
        {
            values.record(&mut open.fields);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(OpenSpan { context: span_context, started_at, started, fields }) =
            span.extensions_mut().remove::<OpenSpan>()
        else {
            return;
        };
        let metadata: &Metadata<'static> = span.metadata();
        let (name, duration, fields) = (metadata.name(), started.elapsed(), fields.0);
        if span_context.is_sampled
            && self
                .queue
                .try_send(FinishedSpan { context: span_context, name, started_at, duration, fields })
                .is_err()
        {
            DROPPED.fetch_add(1, Relaxed);
        }
    }
}

/// The recorded fields of a span.
#[derive(Debug, Default)]
struct SpanFields(Vec<(&'static str, String)>);

impl SpanFields {
    fn take(&mut self, name: &str) -> Option<String> {
        let index = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(index).1)
    }
}

impl Visit for SpanFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_traceparent_is_ignored() {
        let rest = "-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let good = &format!("00{rest}");
        assert_eq!(
            parse_traceparent(good),
            Some((0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7, true))
        );
        assert_eq!(parse_traceparent(&good.replace("-01", "-00")).map(|found| found.2), Some(false));
        assert!(parse_traceparent(&format!("cc{rest}-more")).is_some());
        for odd in [
            String::new(),
            good.to_uppercase(),
            format!("{good}-more"),
            format!("ff{rest}"),
            good.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            good.replace("00f067aa0ba902b7", &"0".repeat(16)),
            good.replace("-01", "-1"),
            good.replace('-', "_"),
            good.trim_end_matches("02b7-01").to_owned(),
            "é".repeat(30),
        ] {
            assert_eq!(parse_traceparent(&odd), None, "{odd}");
        }
    }
}

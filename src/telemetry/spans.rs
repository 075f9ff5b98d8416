//! [`Spans`]: spans of traces as they end, for those who asked for them (W3C Trace Context, level 1).
//!
//! A span without one above it belongs to the trace that its field `traceparent` names, or begins one. Whether a trace is
//! kept is decided once, by whoever began it. What a span says are the fields it was made with, so nothing gets out here
//! that the program does not write there. How spans are sent is for `otlp`.

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

/// The field that names the trace of whoever asks.
const TRACEPARENT: &str = "traceparent";
/// Spans that were dropped.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// How many spans were dropped so far.
pub(super) fn dropped() -> u64 {
    DROPPED.load(Relaxed)
}

/// The span that is current, as whoever is asked on its behalf is to be told: a `traceparent`.
pub(super) fn current() -> Option<String> {
    tracing::dispatcher::get_default(|dispatch| {
        let current = dispatch.current_span();
        let span = dispatch.downcast_ref::<Registry>()?.span(current.id()?)?;
        // Other spans may stand between.
        span.scope().find_map(|span| Some(span.extensions().get::<Open>()?.place.traceparent()))
    })
}

/// A span that has ended.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    pub(super) place: Place,
    pub(super) name: &'static str,
    pub(super) began: SystemTime,
    pub(super) took: Duration,
    pub(super) fields: Vec<(&'static str, String)>,
}

/// Where a span stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) trace: u128,
    pub(super) span: u64,
    /// The span above it; 0 if there is none.
    pub(super) parent: u64,
    is_kept: bool,
}

impl Place {
    fn traceparent(&self) -> String {
        let Self { trace, span, is_kept, .. } = self;
        format!("00-{trace:032x}-{span:016x}-{:02x}", u8::from(*is_kept))
    }
}

/// A span under way.
struct Open {
    place: Place,
    began: SystemTime,
    since: Instant,
    fields: Fields,
}

/// Gives every span that ends to whoever sends them.
#[derive(Debug)]
pub(super) struct Spans {
    queue: Sender<Finished>,
    sample: f64,
    now: fn() -> SystemTime,
    key: RandomState,
    count: AtomicU64,
}

impl Spans {
    /// Keeps this part of the traces that begin here.
    pub(super) fn new(queue: Sender<Finished>, sample: f64, now: fn() -> SystemTime) -> Self {
        Self { queue, sample, now, key: RandomState::new(), count: AtomicU64::new(0) }
    }

    /// A number that is unlike any other; never 0.
    fn number(&self) -> u64 {
        self.key.hash_one(self.count.fetch_add(1, Relaxed)).max(1)
    }

    /// The place of a span that has none above it here.
    fn place_of_root(&self, traceparent: Option<&str>) -> Place {
        let span = self.number();
        if let Some((trace, parent, is_kept)) = traceparent.and_then(parse) {
            return Place { trace, span, parent, is_kept };
        }
        let trace = u128::from(self.number()) << 64 | u128::from(self.number());
        // 53 bits of a number that is as good as random, as a part of one.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let part = (self.number() >> 11) as f64 / (1_u64 << 53) as f64;
        Place { trace, span, parent: 0, is_kept: part < self.sample }
    }
}

/// The trace and span that `traceparent` names, and whether they are kept.
fn parse(text: &str) -> Option<(u128, u64, bool)> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_whole = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    // Later versions may say more; this one says nothing else.
    if !is_whole || version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
    let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
    Some((trace, span, u8::from_str_radix(flags, 16).ok()? & 1 == 1))
}

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let above = span.parent().and_then(|parent| parent.extensions().get::<Open>().map(|open| open.place));
        let place = match above {
            Some(above) => Place { span: self.number(), parent: above.span, ..above },
            None => self.place_of_root(fields.take(TRACEPARENT).as_deref()),
        };
        span.extensions_mut().insert(Open { place, began: (self.now)(), since: Instant::now(), fields });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(open) = span.extensions_mut().get_mut::<Open>()
        {
            values.record(&mut open.fields);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(Open { place, began, since, fields }) = span.extensions_mut().remove::<Open>() else {
            return;
        };
        let metadata: &Metadata<'static> = span.metadata();
        let (name, took, fields) = (metadata.name(), since.elapsed(), fields.0);
        if place.is_kept && self.queue.try_send(Finished { place, name, began, took, fields }).is_err() {
            DROPPED.fetch_add(1, Relaxed);
        }
    }
}

/// What a span says of itself.
#[derive(Debug, Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn take(&mut self, name: &str) -> Option<String> {
        let place = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(place).1)
    }
}

impl Visit for Fields {
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
    fn a_traceparent_is_taken_over_only_if_it_is_one() {
        let rest = "-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let good = &format!("00{rest}");
        assert_eq!(
            parse(good),
            Some((0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7, true))
        );
        assert_eq!(parse(&good.replace("-01", "-00")).map(|found| found.2), Some(false));
        assert!(parse(&format!("cc{rest}-more")).is_some());
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
            assert_eq!(parse(&odd), None, "{odd}");
        }
    }
}

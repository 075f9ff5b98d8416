//! The `/metrics` response: all metrics as OpenMetrics 1.0 text. A labelled metric has no series until its first event.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::http::HeaderValue;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet, text::encode};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::cache::{CacheKind, CacheUsage, DiskReport};
use crate::metrics::Counts;
use crate::metrics::histogram::{Counted, Histogram};
use crate::services::engine::ArrayEngine;
use crate::services::mounts::Mounts;
use crate::services::readiness::MountStates;
use crate::services::response_caches::ResponseCaches;
use crate::services::scans::PrefetchTotals;
use crate::services::state::AppState;
use crate::store::{BackendState, CircuitState};

pub(crate) const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// Prefixes the name of a metric with `zarrd_`. Only the standard `process_` metrics have no such prefix.
macro_rules! name {
    ($name:literal) => {
        concat!("zarrd_", $name)
    };
}

/// The current value of every metric of a server, as OpenMetrics text.
pub(crate) async fn text(state: &AppState) -> String {
    let readiness = state.readiness.check().await;
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Now { state: state.clone(), readiness }));
    let mut text = String::with_capacity(32 << 10);
    // Writing to a `String` cannot fail.
    let _ = encode(&mut text, &registry);
    // The buffer has grown by doubling, and lives until the response was sent.
    text.shrink_to_fit();
    text
}

/// Collects the metrics at the moment of a scrape.
#[derive(Debug)]
struct Now {
    state: AppState,
    readiness: Arc<MountStates>,
}

impl Collector for Now {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut writer = Writer(encoder);
        let Self { state, readiness } = self;
        http(&state.counts, &mut writer)?;
        reads(&state.counts, &mut writer)?;
        caches(&state.engine, &state.responses, &mut writer)?;
        prefetches(&state.scans.totals(), &mut writer)?;
        backends(&state.mounts, &mut writer)?;
        let ready = readiness
            .iter()
            .map(|(mount, state)| ([("mount", mount.as_str())], u64::from(state.is_backend_up())));
        writer.gauge(name!("mount_ready"), "Whether the mount's backend responds", ready)?;
        server(state, &mut writer)
    }
}

/// Writes metrics one at a time.
struct Writer<'a>(DescriptorEncoder<'a>);

impl Writer<'_> {
    fn counter<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in series {
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }

    fn gauge<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in series {
            metric.encode_family(&labels)?.encode_gauge(&i64::try_from(value).unwrap_or(i64::MAX))?;
        }
        Ok(())
    }

    /// A metric with a single series and no labels.
    fn one(&mut self, kind: MetricType, name: &str, help: &str, value: u64) -> fmt::Result {
        let is_counter = matches!(kind, MetricType::Counter);
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        if is_counter {
            metric.encode_counter::<NoLabelSet, _, f64>(&value, None)
        } else {
            metric.encode_gauge(&i64::try_from(value).unwrap_or(i64::MAX))
        }
    }

    fn histogram<'h, L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (L, &'h Histogram)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, histogram) in series {
            if let Some(Counted { classes, seconds, times }) = histogram.counted() {
                let mut family = metric.encode_family(&labels)?;
                family.encode_histogram::<NoLabelSet>(seconds, times, &classes, None)?;
            }
        }
        Ok(())
    }
}

/// The current value of a counter.
fn load(cell: &AtomicU64) -> u64 {
    cell.load(Relaxed)
}

fn http(counts: &Counts, writer: &mut Writer<'_>) -> fmt::Result {
    let routes = counts.routes().all();
    let by_route = |count: fn(&crate::metrics::RouteCounts) -> u64| {
        let counted = routes.iter().map(move |(route, counts)| ([("route", *route)], count(counts)));
        counted.filter(|(_, count)| *count > 0).collect::<Vec<_>>()
    };
    let answers = routes.iter().flat_map(|(route, counts)| {
        let labelled = |(method, status, count)| {
            ([("route", (*route).to_owned()), ("method", String::from(method)), ("status", status)], count)
        };
        counts.answers().into_iter().map(labelled).collect::<Vec<_>>()
    });
    writer.counter(
        name!("http_requests"),
        "Requests by route, method and response status; status `left` if the client disconnected before the response",
        answers,
    )?;
    writer.one(
        MetricType::Gauge,
        name!("http_requests_in_flight"),
        "Requests in flight: received, and their response not yet complete",
        load(&counts.in_flight),
    )?;
    writer.counter(
        name!("http_request_bytes"),
        "Bytes of request bodies received",
        by_route(|counts| load(&counts.received_bytes)),
    )?;
    writer.counter(
        name!("http_response_bytes"),
        "Bytes of response bodies sent",
        by_route(|counts| load(&counts.sent_bytes)),
    )?;
    writer.counter(
        name!("http_cut_off"),
        "Responses aborted after their headers were sent",
        by_route(|counts| load(&counts.cut_off)),
    )?;
    writer.counter(
        name!("http_problems"),
        "Problem responses sent to clients, by problem code",
        counts.codes.counted().map(|(code, count)| ([("code", code)], count)),
    )?;
    let head = routes.iter().map(|(route, counts)| ([("route", *route)], &counts.head_seconds));
    writer.histogram(
        name!("http_head_seconds"),
        "Seconds from the receipt of a request to its response headers",
        head,
    )?;
    let whole = routes.iter().map(|(route, counts)| ([("route", *route)], &counts.seconds));
    writer.histogram(
        name!("http_request_seconds"),
        "Seconds from the receipt of a request to the end of its response",
        whole,
    )
}

fn reads(counts: &Counts, writer: &mut Writer<'_>) -> fmt::Result {
    let reads = &counts.reads;
    let stages = [
        ("plan", &reads.plan),
        ("fetch", &reads.fetch),
        ("decode", &reads.decode),
        ("encode", &reads.encode),
    ];
    writer.histogram(
        name!("stage_seconds"),
        "Seconds that a request for elements spent in each stage, summed over concurrent tasks",
        stages.map(|(stage, histogram)| ([("stage", stage)], histogram)),
    )?;
    let chunks = reads.chunks();
    let chunks = chunks.iter().flat_map(|(mount, hits, misses)| {
        [("memory", *hits), ("store", *misses)]
            .map(|(from, count)| ([("mount", &**mount), ("from", from)], count))
    });
    writer.counter(
        name!("chunks"),
        "Chunks from which elements were read, by origin: memory (cache hit) or store",
        chunks,
    )
}

fn caches(engine: &ArrayEngine, responses: &ResponseCaches, writer: &mut Writer<'_>) -> fmt::Result {
    let mut usage = engine.caches.usage();
    usage.push((CacheKind::Answers, responses.usage()));
    let by_kind = |of: fn(&CacheUsage) -> u64| {
        usage.iter().map(move |(kind, usage)| ([("kind", kind.as_str())], of(usage))).collect::<Vec<_>>()
    };
    writer.counter(name!("cache_hits"), "Cache hits", by_kind(|usage| usage.hits))?;
    writer.counter(
        name!("cache_misses"),
        "Cache misses: entries that had to be loaded or computed",
        by_kind(|usage| usage.misses),
    )?;
    writer.counter(
        name!("cache_evictions"),
        "Entries evicted because the cache was full",
        by_kind(|usage| usage.evictions),
    )?;
    writer.gauge(name!("cache_entries"), "Entries in the cache", by_kind(|usage| usage.entries))?;
    writer.gauge(
        name!("cache_bytes"),
        "Bytes of the cached entries, including overhead",
        by_kind(|usage| usage.bytes),
    )?;
    match engine.caches.disk_report() {
        Some(report) => disk_cache(&report, writer),
        None => Ok(()),
    }
}

fn prefetches(totals: &PrefetchTotals, writer: &mut Writer<'_>) -> fmt::Result {
    let PrefetchTotals { chunks, bytes, skipped, failed } = totals;
    writer.counter(
        name!("prefetched_chunks"),
        "Chunks that were read ahead of requests that step through an array: used by a later one, or wasted",
        [([("outcome", "used")], chunks.used), ([("outcome", "wasted")], chunks.wasted)],
    )?;
    writer.one(MetricType::Counter, name!("prefetched_bytes"), "Bytes of these chunks, decoded", *bytes)?;
    writer.counter(
        name!("prefetches_not_made"),
        "Steps whose chunks were not read ahead: over a budget, or the read failed",
        [([("reason", "budget")], *skipped), ([("reason", "failed")], *failed)],
    )
}

fn disk_cache(report: &DiskReport, writer: &mut Writer<'_>) -> fmt::Result {
    let reads = report.mounts.iter().flat_map(|(mount, reads)| {
        [("disk", reads.hits), ("backend", reads.misses)]
            .map(|(from, count)| ([("mount", &**mount), ("from", from)], count))
    });
    writer.counter(
        name!("disk_cache_reads"),
        "Reads of stored values that may be on the disk, by origin: disk (cache hit) or backend",
        reads,
    )?;
    let derived = report.derived.iter().flat_map(|(mount, reads)| {
        [("disk", reads.hits), ("encoder", reads.misses)]
            .map(|(from, count)| ([("mount", &**mount), ("from", from)], count))
    });
    writer.counter(
        name!("disk_cache_derived_reads"),
        "Chunks of /rechunk and /pyramid that were not in memory, by origin: disk (cache hit) or encoder",
        derived,
    )?;
    let read_bytes = report.mounts.iter().map(|reads| ("stored", reads));
    let read_bytes = read_bytes.chain(report.derived.iter().map(|reads| ("derived", reads)));
    writer.counter(
        name!("disk_cache_read_bytes"),
        "Bytes read from the disk cache: of stored values, and of derived chunks",
        read_bytes.map(|(what, (mount, reads))| ([("mount", &**mount), ("what", what)], reads.hit_bytes)),
    )?;
    writer.one(
        MetricType::Gauge,
        name!("disk_cache_limit_bytes"),
        "Bytes that the files of the disk cache may take",
        report.size,
    )?;
    writer.one(
        MetricType::Gauge,
        name!("disk_cache_paused"),
        "Whether the disk cache is not written for now because the disk failed or is full",
        u64::from(report.is_paused),
    )?;
    for (name, help, count) in [
        (name!("disk_cache_written_bytes"), "Bytes written to the disk cache", report.written_bytes),
        (
            name!("disk_cache_dropped"),
            "Parts of values not written to the disk cache because they came too fast or the disk failed",
            report.dropped,
        ),
        (
            name!("disk_cache_damaged"),
            "Records of the disk cache that were not as they were written, and were read from the backend",
            report.damaged,
        ),
        (
            name!("disk_cache_failures"),
            "Reads and writes of files of the disk cache that failed",
            report.failures,
        ),
    ] {
        writer.one(MetricType::Counter, name, help, count)?;
    }
    Ok(())
}

fn backends(mounts: &Mounts, writer: &mut Writer<'_>) -> fmt::Result {
    let asked = mounts.iter().flat_map(|mount| {
        let outcomes = mount.backend.outcomes();
        outcomes.map(|(verb, outcome, count)| {
            let labels =
                [("mount", mount.name.as_str()), ("verb", verb.as_str()), ("outcome", outcome.as_str())];
            (labels, count)
        })
    });
    writer.counter(name!("backend_requests"), "Requests to backends, by operation and outcome", asked)?;
    writer.gauge(
        name!("backend_requests_in_flight"),
        "Requests to backends in flight",
        mounts.iter().map(|mount| ([("mount", mount.name.as_str())], mount.backend.in_flight())),
    )?;
    writer.counter(
        name!("backend_bytes"),
        "Bytes of values read from backends",
        mounts.iter().map(|mount| ([("mount", mount.name.as_str())], mount.backend.bytes())),
    )?;
    let seconds = mounts.iter().flat_map(|mount| {
        let verbs = mount.backend.seconds();
        verbs.map(|(verb, histogram)| ([("mount", mount.name.as_str()), ("verb", verb.as_str())], histogram))
    });
    writer.histogram(name!("backend_seconds"), "Seconds that backends took to respond", seconds)?;
    let restrained: Vec<_> = mounts.backend_states().collect();
    let by_mount = |of: fn(&BackendState) -> u64| {
        restrained.iter().map(move |(mount, state)| ([("mount", *mount)], of(state))).collect::<Vec<_>>()
    };
    writer.counter(
        name!("backend_shared_reads"),
        "Reads that got what another read of the same time got from the backend",
        mounts.iter().map(|mount| ([("mount", mount.name.as_str())], mount.shared_reads.load(Relaxed))),
    )?;
    let stale = mounts.iter().filter_map(|mount| {
        let staleness = mount.staleness.as_ref()?;
        Some(([("mount", mount.name.as_str())], staleness.uses()))
    });
    writer.counter(
        name!("backend_stale_lookups"),
        "Earlier lookups of values that were used because the backend failed or was slow",
        stale,
    )?;
    writer.gauge(
        name!("backend_circuit_open"),
        "Whether the circuit breaker of a backend is open or half-open after repeated failures",
        by_mount(|state| u64::from(state.circuit != CircuitState::Closed)),
    )?;
    writer.counter(
        name!("backend_circuit_opened"),
        "Times that the circuit breaker of a backend opened",
        by_mount(|state| state.opened_total),
    )?;
    writer.gauge(
        name!("backend_waiting"),
        "Requests queued for a backend because its concurrency limit is reached",
        by_mount(|state| state.waiting as u64),
    )?;
    writer.gauge(
        name!("backend_limit"),
        "Concurrency limit of a backend: requests that may be in flight",
        by_mount(|state| state.limit as u64),
    )
}

fn server(state: &AppState, writer: &mut Writer<'_>) -> fmt::Result {
    let answers = state.traffic.load();
    writer.one(
        MetricType::Gauge,
        name!("admission_limit_bytes"),
        "Memory budget for responses in flight, in bytes",
        answers.budget_bytes,
    )?;
    writer.one(
        MetricType::Gauge,
        name!("admission_in_flight_bytes"),
        "Bytes of responses in flight, as estimated at admission",
        answers.in_flight_bytes,
    )?;
    writer.one(
        MetricType::Gauge,
        name!("admission_waiting"),
        "Requests that wait for admission",
        answers.waiting as u64,
    )?;
    writer.counter(
        name!("admission_rejected"),
        "Requests rejected because the memory budget was exhausted, by priority class",
        answers.rejected.map(|(class, count)| ([("class", class)], count)),
    )?;
    if let Some(budget) = state.engine.reader.source().budget() {
        writer.one(
            MetricType::Gauge,
            name!("fetch_limit_bytes"),
            "Memory budget for fetching and decoding chunks, in bytes",
            budget.limit_bytes,
        )?;
        writer.one(
            MetricType::Gauge,
            name!("fetch_in_flight_bytes"),
            "Estimated bytes of the chunks being fetched and decoded",
            budget.in_flight_bytes,
        )?;
    }
    let connections = state.counts.connections();
    writer.one(MetricType::Gauge, name!("connections_open"), "Open connections", load(&connections.open))?;
    writer.one(
        MetricType::Counter,
        name!("connections_accepted"),
        "Accepted connections",
        load(&connections.accepted),
    )?;
    writer.one(
        MetricType::Counter,
        name!("connections_refused"),
        "Connections closed on arrival because the connection limit was reached",
        load(&connections.refused),
    )?;
    writer.one(
        MetricType::Gauge,
        name!("draining"),
        "Whether the server is draining before it stops",
        u64::from(state.lifecycle.is_draining()),
    )?;
    writer.gauge(
        name!("build_info"),
        "Version of the server, as a label; the value is always 1",
        [([("version", env!("CARGO_PKG_VERSION"))], 1)],
    )?;
    let Some(surroundings) = state.counts.surroundings.get() else { return Ok(()) };
    writer.one(
        MetricType::Counter,
        name!("log_lines_dropped"),
        "Log lines dropped because the log output was too slow",
        (surroundings.dropped_log_lines)(),
    )?;
    writer.one(
        MetricType::Counter,
        name!("spans_dropped"),
        "Trace spans dropped because their export was too slow",
        (surroundings.dropped_spans)(),
    )?;
    let Some(process) = (surroundings.process)() else { return Ok(()) };
    writer.one(
        MetricType::Gauge,
        "process_resident_memory_bytes",
        "Resident memory size in bytes",
        process.resident_bytes,
    )?;
    writer.one(
        MetricType::Gauge,
        "process_open_fds",
        "Number of open file descriptors",
        process.open_files,
    )?;
    let mut metric = writer.0.encode_descriptor(
        "process_cpu_seconds",
        "Total user and system CPU time spent in seconds",
        None,
        MetricType::Counter,
    )?;
    metric.encode_counter::<NoLabelSet, _, f64>(&process.cpu_seconds, None)
}

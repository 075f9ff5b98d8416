//! Response headers with the cost of a request: `Server-Timing` (W3C) and `Cache-Status` (RFC 9211).

use std::fmt::Write;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};

use super::cache_status::{CACHE_STATUS, HIT, MISS, PARTIAL};
use super::validators::from_text;
use crate::array::{ReadContext, ReadStats};

pub(crate) const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// Sets both headers from the cost of the request up to the moment the head is sent.
pub(crate) fn put_trace(headers: &mut HeaderMap, trace: &ReadContext) {
    let work = trace.stats();
    put_timing(headers, &work);
    let cache = match (work.hits, work.misses) {
        // No cache lookup took place: HEAD, or only fill values.
        (0, 0) => return,
        (_, 0) => HIT,
        (0, _) => MISS,
        _ => PARTIAL,
    };
    headers.insert(CACHE_STATUS, cache);
}

/// Sets both headers for a hit in the response cache.
pub(crate) fn put_hit(headers: &mut HeaderMap, planned: Duration) {
    put_timing(headers, &ReadStats { plan: planned, ..ReadStats::default() });
    headers.insert(CACHE_STATUS, HIT);
}

fn put_timing(headers: &mut HeaderMap, work: &ReadStats) {
    let mut timing = String::with_capacity(80);
    let stages =
        [("plan", work.plan), (", fetch", work.fetch), (", decode", work.decode), (", encode", work.encode)];
    for (name, time) in stages {
        let (millis, micros) = (time.as_millis(), time.subsec_micros() % 1000);
        // Writing to a `String` cannot fail.
        let _ = write!(timing, "{name};dur={millis}.{micros:03}");
    }
    if let Some(timing) = from_text(timing) {
        headers.insert(SERVER_TIMING, timing);
    }
}

//! [`RouteCounts`]: counts of the requests and responses of one route.
//!
//! A route is identified by its template, and the router has a fixed number of them: a label never has text from a
//! client. All counters exist from the start, so that counting is an addition without a lookup of labels.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ahash::RandomState;
use axum::http::{Method, StatusCode};

use super::histogram::Histogram;

/// Methods that have counts of their own.
const METHODS: [&str; 12] =
    ["GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS", "PROPFIND", "MKCOL", "COPY", "MOVE", OTHER];
/// Statuses that have counts of their own.
const STATUSES: [u16; 35] = [
    200, 201, 204, 206, 207, 301, 304, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 410, 411, 412, 413,
    414, 415, 416, 417, 421, 422, 429, 431, 500, 501, 502, 503, 504, 507,
];
/// Requests whose client left before the response.
const LEFT: usize = STATUSES.len();
/// All other statuses.
const OTHERS: usize = STATUSES.len() + 1;
const OUTCOMES: usize = STATUSES.len() + 2;
/// The label of everything that has no count of its own.
const OTHER: &str = "other";
/// The template of requests that match no route.
const UNMATCHED: &str = "unmatched";

/// Counts of one route.
#[derive(Debug)]
pub(crate) struct RouteCounts {
    answers: Box<[AtomicU64]>,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) cut_off: AtomicU64,
    pub(crate) head_seconds: Histogram,
    pub(crate) seconds: Histogram,
}

impl RouteCounts {
    fn new() -> Self {
        Self {
            answers: (0..METHODS.len() * OUTCOMES).map(|_| AtomicU64::new(0)).collect(),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            cut_off: AtomicU64::new(0),
            head_seconds: Histogram::default(),
            seconds: Histogram::default(),
        }
    }

    fn count(&self, method: &Method, outcome: usize) {
        let other = METHODS.len() - 1;
        let method = METHODS.iter().position(|known| *known == method.as_str()).unwrap_or(other);
        if let Some(cell) = self.answers.get(method * OUTCOMES + outcome) {
            cell.fetch_add(1, Relaxed);
        }
    }

    /// Records the start of a response, `took` after its request.
    pub(crate) fn answered(&self, method: &Method, status: StatusCode, took: Duration) {
        let known = STATUSES.iter().position(|known| *known == status.as_u16());
        self.count(method, known.unwrap_or(OTHERS));
        self.head_seconds.add(took);
    }

    /// Records that a client left before its response started.
    pub(crate) fn left(&self, method: &Method) {
        self.count(method, LEFT);
    }

    /// Records the end of a response, `took` after its request, with `bytes` bytes sent.
    pub(crate) fn ended(&self, bytes: u64, took: Duration) {
        self.sent_bytes.fetch_add(bytes, Relaxed);
        self.seconds.add(took);
    }

    /// Records received bytes of a request body.
    pub(crate) fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Records a response that broke off after its start.
    pub(crate) fn cut_off(&self) {
        self.cut_off.fetch_add(1, Relaxed);
    }

    /// The number of responses by method and status, without zeros.
    pub(crate) fn answers(&self) -> Vec<(&'static str, String, u64)> {
        let status = |outcome: usize| match outcome {
            LEFT => "left".to_owned(),
            _ => STATUSES.get(outcome).map_or_else(|| OTHER.to_owned(), u16::to_string),
        };
        let counted = self.answers.chunks(OUTCOMES).zip(METHODS).flat_map(|(outcomes, method)| {
            outcomes.iter().enumerate().map(move |(outcome, count)| (method, outcome, count.load(Relaxed)))
        });
        counted
            .filter(|(_, _, count)| *count > 0)
            .map(|(method, outcome, count)| (method, status(outcome), count))
            .collect()
    }
}

/// Counts of all routes, by template.
#[derive(Debug)]
pub(crate) struct RouteTable {
    by_template: HashMap<Box<str>, Arc<RouteCounts>, RandomState>,
    unmatched: Arc<RouteCounts>,
}

impl RouteTable {
    /// A table for routes of these templates.
    pub(crate) fn new<'a>(templates: impl IntoIterator<Item = &'a str>) -> Self {
        let unmatched = Arc::new(RouteCounts::new());
        let by_template =
            templates.into_iter().map(|template| (template.into(), Arc::new(RouteCounts::new()))).collect();
        Self { by_template, unmatched }
    }

    /// The counts of a route; a template that differs only in a final slash counts as the same route.
    pub(crate) fn of(&self, template: Option<&str>) -> &Arc<RouteCounts> {
        let find = |template: &str| self.by_template.get(template);
        let found = template.and_then(|template| {
            find(template).or_else(|| find(template.strip_suffix('/').unwrap_or(template)))
        });
        found.unwrap_or(&self.unmatched)
    }

    /// All counts, sorted by template.
    pub(crate) fn all(&self) -> BTreeMap<&str, &RouteCounts> {
        let known = self.by_template.iter().map(|(template, counts)| (&**template, &**counts));
        known.chain([(UNMATCHED, &*self.unmatched)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_counted_by_method_and_status_and_others_together() {
        let table = RouteTable::new(["/a", "/a/{*key}"]);
        let route = table.of(Some("/a/"));
        let took = Duration::from_millis(1);
        route.answered(&Method::GET, StatusCode::OK, took);
        route.answered(&Method::GET, StatusCode::OK, took);
        route.answered(&Method::from_bytes(b"BREW").unwrap(), StatusCode::IM_A_TEAPOT, took);
        route.left(&Method::HEAD);
        let row = |method, status: &str, count| (method, status.to_owned(), count);
        assert_eq!(
            table.all()["/a"].answers(),
            [row("GET", "200", 2), row("HEAD", "left", 1), row("other", "other", 1)]
        );
        for odd in [None, Some("/b"), Some("/a/b"), Some("")] {
            let (found, unmatched) =
                (Arc::as_ptr(table.of(odd)), std::ptr::from_ref(table.all()["unmatched"]));
            assert!(std::ptr::eq(found, unmatched), "{odd:?}");
        }
    }
}

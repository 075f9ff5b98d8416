//! Metrics: counts of the server's work, exposed to Prometheus (OpenMetrics 1.0).
//!
//! Each layer counts its own work: routes and problems here, connections in `app`, cache entries in `cache`. Layers
//! below report to small traits of their own ([`crate::store::Observer`], [`crate::array::ReadObserver`]), so that none
//! of them depends on metrics. Counting is an addition to a number that exists from the start: no lock, no allocation,
//! no label. Labels are route templates, mount names and words of the program, so that requests cannot create new
//! series. One place has all metric names (`api::metrics`); a test compares the dashboard in `config/deploy` with it.

mod codes;
pub(crate) mod histogram;
mod mounts;
mod routes;

pub use mounts::BackendCounts;

pub(crate) use routes::RouteCounts;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use crate::http::route::RouteSpec;
use codes::Codes;
use mounts::Reads;
use routes::RouteTable;

/// All counts of this module.
#[derive(Debug)]
pub(crate) struct Counts {
    routes: OnceLock<RouteTable>,
    /// Problem documents that were sent, by code.
    pub(crate) codes: Codes,
    /// Requests in flight.
    pub(crate) in_flight: AtomicU64,
    pub(crate) reads: Arc<Reads>,
    connections: Arc<ConnectionCounts>,
    pub(crate) surroundings: OnceLock<ProcessMetrics>,
}

impl Counts {
    /// Counts without routes.
    pub(crate) fn new() -> Self {
        Self {
            routes: OnceLock::new(),
            codes: Codes::default(),
            in_flight: AtomicU64::new(0),
            reads: Arc::default(),
            connections: Arc::default(),
            surroundings: OnceLock::new(),
        }
    }

    /// Sets the routes to count by.
    pub(crate) fn register_routes<'t>(&self, templates: impl IntoIterator<Item = &'t str>) {
        // The first call wins: a process has one set of routes.
        self.routes.get_or_init(|| RouteTable::new(templates));
    }

    /// Records the start of a request to a route.
    pub(crate) fn begin(&self, route: Option<&RouteSpec>) -> &Arc<RouteCounts> {
        self.in_flight.fetch_add(1, Relaxed);
        self.routes().of(route.map(|route| route.template))
    }

    /// The counts by route.
    pub(crate) fn routes(&self) -> &RouteTable {
        self.routes.get_or_init(|| RouteTable::new([]))
    }

    /// Records the end of a request.
    pub(crate) fn end(&self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }

    /// Adds mounts to count for; counts of known mounts stay.
    pub(crate) fn know_mounts<'m>(&self, names: impl Iterator<Item = &'m str>) {
        self.reads.know(names);
    }

    /// The observer of reads.
    pub(crate) fn reads(&self) -> Arc<dyn crate::array::ReadObserver> {
        Arc::clone(&self.reads) as Arc<dyn crate::array::ReadObserver>
    }

    /// The counts of connections.
    pub(crate) fn connections(&self) -> &Arc<ConnectionCounts> {
        &self.connections
    }

    /// Sets the source of process metrics, which the exposition then includes.
    pub(crate) fn set_process_metrics(&self, surroundings: ProcessMetrics) {
        // The first call wins: there is one process.
        let _ = self.surroundings.set(surroundings);
    }
}

/// Counts of connections, updated by the accept loop.
#[derive(Debug, Default)]
pub struct ConnectionCounts {
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) open: AtomicU64,
}

impl ConnectionCounts {
    /// Records an accepted connection, which is open until the value is dropped.
    pub fn opened(self: &Arc<Self>) -> OpenConnection {
        self.accepted.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
        OpenConnection(Arc::clone(self))
    }

    /// Records a connection that was closed at once because there were too many.
    pub fn refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }
}

/// An open connection.
#[derive(Debug)]
pub struct OpenConnection(Arc<ConnectionCounts>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

/// The resources that this process uses, as the system reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessUse {
    /// Bytes of resident memory.
    pub resident_bytes: u64,
    /// Open files and sockets.
    pub open_files: u64,
    /// Time spent on processors so far, in seconds.
    pub cpu_seconds: f64,
}

/// Metrics of the process from outside this module, read at each exposition.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMetrics {
    /// The resource use, if the system reports it.
    pub process: fn() -> Option<ProcessUse>,
    /// Log lines that were dropped because the writer was too slow.
    pub dropped_log_lines: fn() -> u64,
    /// Trace spans that were dropped because the exporter was too slow.
    pub dropped_spans: fn() -> u64,
}

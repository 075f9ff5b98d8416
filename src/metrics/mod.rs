//! What the server counts of itself, and how it is told to Prometheus (OpenMetrics 1.0).
//!
//! Everybody counts what is theirs: routes and problems here, connections in `app`, what is remembered in `cache`. Rooms
//! below tell what they do to a small trait of their own ([`crate::store::Observer`], [`crate::array::ReadObserver`]),
//! so that none of them knows of metrics. To count is to add to a number that was made when the server started: no lock,
//! nothing allocated, no label written. Labels are templates of routes, names of mounts and words of the program, so what
//! clients send makes no new series. Names are written in one place ([`exposition`]), where the dashboard in
//! `config/deploy` is held to them.

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

/// Everything that this room counts.
#[derive(Debug)]
pub(crate) struct Counts {
    routes: OnceLock<RouteTable>,
    /// Problems that were told.
    pub(crate) codes: Codes,
    /// Requests under way.
    pub(crate) under_way: AtomicU64,
    pub(crate) reads: Arc<Reads>,
    connections: Arc<ConnectionCounts>,
    pub(crate) surroundings: OnceLock<ProcessMetrics>,
}

impl Counts {
    /// Without routes.
    pub(crate) fn new() -> Self {
        Self {
            routes: OnceLock::new(),
            codes: Codes::default(),
            under_way: AtomicU64::new(0),
            reads: Arc::default(),
            connections: Arc::default(),
            surroundings: OnceLock::new(),
        }
    }

    /// Counts by these routes from now on.
    pub(crate) fn register_routes<'t>(&self, templates: impl IntoIterator<Item = &'t str>) {
        // The first stay: a process has one set of routes.
        self.routes.get_or_init(|| RouteTable::new(templates));
    }

    /// A request begins, by this route.
    pub(crate) fn begin(&self, route: Option<&RouteSpec>) -> &Arc<RouteCounts> {
        self.under_way.fetch_add(1, Relaxed);
        self.routes().of(route.map(|route| route.template))
    }

    /// The counts by route.
    pub(crate) fn routes(&self) -> &RouteTable {
        self.routes.get_or_init(|| RouteTable::new([]))
    }

    /// A request has ended.
    pub(crate) fn end(&self) {
        self.under_way.fetch_sub(1, Relaxed);
    }

    /// From now on counts for mounts of these names; what was counted of them stays.
    pub(crate) fn know_mounts<'m>(&self, names: impl Iterator<Item = &'m str>) {
        self.reads.know(names);
    }

    /// Who is told what was read.
    pub(crate) fn reads(&self) -> Arc<dyn crate::array::ReadObserver> {
        Arc::clone(&self.reads) as Arc<dyn crate::array::ReadObserver>
    }

    /// The connections.
    pub(crate) fn connections(&self) -> &Arc<ConnectionCounts> {
        &self.connections
    }

    /// From now on what those above know of the process is told too.
    pub(crate) fn set_process_metrics(&self, surroundings: ProcessMetrics) {
        // The first stays: there is one process.
        let _ = self.surroundings.set(surroundings);
    }
}

/// Counts of connections, kept by whoever accepts them.
#[derive(Debug, Default)]
pub struct ConnectionCounts {
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) open: AtomicU64,
}

impl ConnectionCounts {
    /// A connection was accepted; it is open until this is dropped.
    pub fn opened(self: &Arc<Self>) -> OpenConnection {
        self.accepted.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
        OpenConnection(Arc::clone(self))
    }

    /// A connection was closed at once, for there are too many.
    pub fn refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }
}

/// A connection that is open.
#[derive(Debug)]
pub struct OpenConnection(Arc<ConnectionCounts>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

/// What the system says of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessUse {
    /// Bytes of memory that are resident.
    pub resident_bytes: u64,
    /// Files and sockets that are open.
    pub open_files: u64,
    /// Time spent on processors so far, in seconds.
    pub cpu_seconds: f64,
}

/// What is known of the process outside of this room, asked each time that metrics are.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMetrics {
    /// What the system says of it, if it says anything.
    pub process: fn() -> Option<ProcessUse>,
    /// Lines of the log that nobody took in time.
    pub dropped_log_lines: fn() -> u64,
    /// Spans of traces that nobody took in time.
    pub dropped_spans: fn() -> u64,
}

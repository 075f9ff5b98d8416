//! [`Hierarchy`]: the nodes of one store, with the limits and builds that all requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::consolidated::{Builds, new_builds};
use crate::cpu::ComputePool;
use crate::metadata::{MetadataLimits, Separator};
use crate::store::SharedStore;

/// The nodes of one store.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    pub(super) store: SharedStore,
    pub(super) limits: MetadataLimits,
    pub(super) cpu: ComputePool,
    pub(super) separator: Option<Separator>,
    /// Bounds the number of long documents in memory.
    long_document_slots: Arc<Semaphore>,
    /// Bounds the number of builds of consolidated metadata in flight.
    pub(super) build_slots: Arc<Semaphore>,
    /// Coalesces equal builds.
    pub(super) builds: Arc<Builds>,
    /// Name of the view; empty for the store itself.
    pub(super) name: Arc<str>,
    /// Whether the node that was found last is of v3. It decides which documents are requested first.
    v3_likely: Arc<AtomicBool>,
}

/// Maximum number of documents of one store in memory that are longer than `MetadataLimits::document_bytes`.
const MAX_LONG_DOCUMENTS: usize = 4;
/// Maximum number of builds in flight for one store: each may hold `MetadataLimits::consolidated_bytes` and sends many
/// requests.
const MAX_BUILDS: usize = 2;

impl Hierarchy {
    /// The hierarchy of a store. Long documents are parsed on `cpu`.
    #[must_use]
    pub fn new(store: SharedStore, limits: MetadataLimits, cpu: ComputePool) -> Self {
        let (long_document_slots, build_slots) =
            (Arc::new(Semaphore::new(MAX_LONG_DOCUMENTS)), Arc::new(Semaphore::new(MAX_BUILDS)));
        Self {
            store,
            limits,
            cpu,
            separator: None,
            long_document_slots,
            build_slots,
            builds: Arc::new(new_builds()),
            name: Arc::default(),
            v3_likely: Arc::default(),
        }
    }

    /// Sets the separator for chunk keys of v2 arrays whose documents give none. Without it, the separator is detected
    /// from the keys of each such array.
    #[must_use]
    pub fn with_separator(self, separator: Option<Separator>) -> Self {
        Self { separator, ..self }
    }

    /// The nodes of another store that is a view of this one, under a name. Both share the concurrency limits.
    #[must_use]
    pub fn view_over(&self, store: SharedStore, name: &Arc<str>) -> Self {
        Self { store, name: Arc::clone(name), ..self.clone() }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// The pool on which documents are parsed.
    #[must_use]
    pub fn cpu(&self) -> &ComputePool {
        &self.cpu
    }

    /// Whether the next node is likely of v3, as the last one.
    pub(super) fn is_v3_likely(&self) -> bool {
        self.v3_likely.load(Relaxed)
    }

    /// Records whether a node that was found is of v3.
    pub(super) fn set_v3_likely(&self, is_v3: bool) {
        self.v3_likely.store(is_v3, Relaxed);
    }

    /// Waits for a slot if a document is longer than `MetadataLimits::document_bytes`.
    pub(super) async fn acquire_document_slot(&self, bytes: u64) -> Option<SemaphorePermit<'_>> {
        if bytes <= self.limits.document_bytes as u64 {
            return None;
        }
        // The semaphore is never closed.
        self.long_document_slots.acquire().await.ok()
    }
}

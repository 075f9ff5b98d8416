//! [`Hierarchy`]: the nodes of one store, and what all requests for them share.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::consolidated::{Makings, makings};
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
    /// How many long documents are held in memory at a time.
    gate: Arc<Semaphore>,
    /// How many consolidated metadata are being made at a time.
    pub(super) makers: Arc<Semaphore>,
    /// Those that are being made.
    pub(super) makings: Arc<Makings>,
    /// What this shows of the store that it shares all this with.
    pub(super) name: Arc<str>,
}

/// Documents longer than a node's may be that are held in memory at a time, of one store.
const LONG_DOCUMENTS: usize = 4;
/// Consolidated metadata being made at a time, of one store: each may hold as much and asks for many documents.
const MAKERS: usize = 2;

impl Hierarchy {
    /// The hierarchy in a store, whose long documents are parsed on `cpu`.
    #[must_use]
    pub fn new(store: SharedStore, limits: MetadataLimits, cpu: ComputePool) -> Self {
        let (gate, makers) = (Arc::new(Semaphore::new(LONG_DOCUMENTS)), Arc::new(Semaphore::new(MAKERS)));
        let (makings, name) = (Arc::new(makings()), Arc::default());
        Self { store, limits, cpu, separator: None, gate, makers, makings, name }
    }

    /// The same, where `separator` stands in the chunks' keys of v2 arrays whose documents do not give one. Without it,
    /// each such array is asked for it.
    #[must_use]
    pub fn with_separator(self, separator: Option<Separator>) -> Self {
        Self { separator, ..self }
    }

    /// The nodes of another store, as a view of this one of this name, within the same limits: what may be done at a time
    /// is counted for both together.
    #[must_use]
    pub fn over(&self, store: SharedStore, name: &Arc<str>) -> Self {
        Self { store, name: Arc::clone(name), ..self.clone() }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// Waits for room for a document, if it is longer than a node's may be.
    pub(super) async fn room_for(&self, bytes: u64) -> Option<SemaphorePermit<'_>> {
        if bytes <= self.limits.document_bytes as u64 {
            return None;
        }
        // The gate is never closed.
        self.gate.acquire().await.ok()
    }
}

//! [`LoadedTable`]: the references of the last version of a document that was checked.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use super::{ReferenceError, ReferenceTable};
use crate::store::{StoreError, ValueInfo, Version};

/// The references of one version of the document.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) info: ValueInfo,
    pub(super) table: ReferenceTable,
}

pub(super) type DocumentResult = Result<Arc<Document>, ReferenceError>;

/// The references of the last version of the document that was checked, or why it has none.
#[derive(Debug, Default)]
pub(super) struct LoadedTable {
    last: Mutex<Option<(Version, DocumentResult)>>,
    /// Held while the document is read. Holds the last failure that is not a property of the document.
    pub(super) loading: tokio::sync::Mutex<Option<StoreError>>,
    /// How many such failures there were.
    pub(super) failures: AtomicU64,
}

impl LoadedTable {
    /// The cached references. The document may have changed since.
    pub(super) fn last(&self) -> Option<Arc<Document>> {
        self.lock().as_ref().and_then(|(_, outcome)| outcome.clone().ok())
    }

    /// The cached outcome for this version.
    pub(super) fn outcome_for(&self, version: &Version) -> Option<DocumentResult> {
        self.lock().as_ref().filter(|(known, _)| known == version).map(|(_, outcome)| outcome.clone())
    }

    /// Replaces the outcome. An unsettled version is not cached: the document may still change unnoticed.
    pub(super) fn replace(&self, known: Option<(Version, DocumentResult)>) {
        let known = known.filter(|(version, _)| version.is_settled());
        let before = std::mem::replace(&mut *self.lock(), known);
        drop(before);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Version, DocumentResult)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

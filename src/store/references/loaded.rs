//! [`Loaded`]: what was parsed of the last version of a document that was checked.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use super::{ReferenceError, ReferenceTable};
use crate::store::{StoreError, ValueInfo, Version};

/// The references of one version of the document.
#[derive(Debug)]
pub(super) struct LoadedReferences {
    pub(super) info: ValueInfo,
    pub(super) table: ReferenceTable,
}

pub(super) type LoadOutcome<T> = Result<Arc<T>, ReferenceError>;

/// What was parsed of the last version of the document that was checked, or why nothing was.
#[derive(Debug)]
pub(super) struct Loaded<T> {
    last: Mutex<Option<(Version, LoadOutcome<T>)>>,
    /// Held while the document is read. Holds the last failure that is not a property of the document.
    pub(super) loading: tokio::sync::Mutex<Option<StoreError>>,
    /// How many such failures there were.
    pub(super) failures: AtomicU64,
}

impl<T> Default for Loaded<T> {
    fn default() -> Self {
        Self { last: Mutex::default(), loading: tokio::sync::Mutex::default(), failures: AtomicU64::new(0) }
    }
}

impl<T> Loaded<T> {
    /// What is cached. The document may have changed since.
    pub(super) fn last(&self) -> Option<Arc<T>> {
        self.lock().as_ref().and_then(|(_, outcome)| outcome.clone().ok())
    }

    /// The cached outcome for this version.
    pub(super) fn outcome_for(&self, version: &Version) -> Option<LoadOutcome<T>> {
        self.lock().as_ref().filter(|(known, _)| known == version).map(|(_, outcome)| outcome.clone())
    }

    /// Replaces the outcome. An unsettled version is not cached: the document may still change unnoticed.
    pub(super) fn replace(&self, known: Option<(Version, LoadOutcome<T>)>) {
        let known = known.filter(|(version, _)| version.is_settled());
        let before = std::mem::replace(&mut *self.lock(), known);
        drop(before);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Version, LoadOutcome<T>)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

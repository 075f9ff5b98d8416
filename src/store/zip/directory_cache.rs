//! [`DirectoryCache`]: the central directory of the last version of a zip file that was checked.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use super::ZipError;
use super::directory::Directory;
use crate::store::{StoreError, Version};

pub(super) type Outcome = Result<Arc<Directory>, ZipError>;

/// What is known of the last version of the file that was looked at.
#[derive(Debug, Default)]
pub(super) struct DirectoryCache {
    last: Mutex<Option<(Version, Outcome)>>,
    /// Held by whoever reads the directory: the last failure that says nothing of the file.
    pub(super) loading: tokio::sync::Mutex<Option<StoreError>>,
    /// How many such failures there were.
    pub(super) failures: AtomicU64,
}

impl DirectoryCache {
    pub(super) fn last(&self) -> Option<(Version, Outcome)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What came of this version.
    pub(super) fn of(&self, version: &Version) -> Option<Outcome> {
        self.last().filter(|(known, _)| known == version).map(|(_, outcome)| outcome)
    }

    /// A file that may still change unseen is not remembered.
    pub(super) fn set(&self, known: Option<(Version, Outcome)>) {
        let known = known.filter(|(version, _)| version.is_settled());
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}

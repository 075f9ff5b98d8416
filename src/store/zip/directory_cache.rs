//! [`DirectoryCache`]: the central directory of the last version of a zip file that was checked.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use super::ZipError;
use super::directory::Directory;
use crate::store::{StoreError, Version};

pub(super) type DirectoryResult = Result<Arc<Directory>, ZipError>;

/// The directory of the last version of the file that was checked, or why it has none.
#[derive(Debug, Default)]
pub(super) struct DirectoryCache {
    last: Mutex<Option<(Version, DirectoryResult)>>,
    /// Held while the directory is read. Holds the last failure that is not a property of the file.
    pub(super) loading: tokio::sync::Mutex<Option<StoreError>>,
    /// How many such failures there were.
    pub(super) failures: AtomicU64,
}

impl DirectoryCache {
    pub(super) fn last(&self) -> Option<(Version, DirectoryResult)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The cached outcome for this version.
    pub(super) fn outcome_for(&self, version: &Version) -> Option<DirectoryResult> {
        self.last().filter(|(known, _)| known == version).map(|(_, outcome)| outcome)
    }

    /// Replaces the outcome. An unsettled version is not cached: the file may still change unnoticed.
    pub(super) fn replace(&self, known: Option<(Version, DirectoryResult)>) {
        let known = known.filter(|(version, _)| version.is_settled());
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}

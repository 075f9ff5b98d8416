//! [`IndexCache`]: the index of the last version of a container file that was checked.
//!
//! Callers that come while it is read wait for it instead of reading it too, and share its failure. The fact that a
//! version of a file is refused is cached like its index; a failure of the backend is not. The memory for an index is
//! reserved before it is read, and that of the previous version is released first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::key::StoreKey;
use crate::store::{SharedStore, StoreError, ValueInfo, Version};

/// The most attempts of a read, if the file changes meanwhile.
pub(in crate::store) const TRIES: usize = 3;

/// The errors of one kind of container.
pub(in crate::store) trait ContainerError: Clone + Into<StoreError> {
    /// There is no file.
    const NO_FILE: Self;

    /// The error, if it is one of this kind of container.
    fn of(error: &StoreError) -> Option<&Self>;

    /// Whether it is a property of this version of the file, and so will occur again.
    fn is_lasting(&self) -> bool;
}

type Outcome<T, E> = Result<Arc<T>, E>;

/// The index of the last version of the file that was checked, or why it has none.
#[derive(Debug)]
pub(in crate::store) struct IndexCache<T, E> {
    last: Mutex<Option<(Version, Outcome<T, E>)>>,
    /// Held while the index is read. Holds the last failure that is not a property of the file.
    loading: tokio::sync::Mutex<Option<StoreError>>,
    /// How many such failures there were.
    failures: AtomicU64,
}

impl<T, E> Default for IndexCache<T, E> {
    fn default() -> Self {
        Self { last: Mutex::default(), loading: tokio::sync::Mutex::default(), failures: AtomicU64::new(0) }
    }
}

impl<T, E: ContainerError> IndexCache<T, E> {
    /// The cached index. The file may have changed since.
    pub(in crate::store) fn last(&self) -> Option<Arc<T>> {
        self.lock().as_ref().and_then(|(_, outcome)| outcome.clone().ok())
    }

    /// The index of the current version of `file`, by `load` if it is not cached.
    pub(in crate::store) async fn current<F: Future<Output = Result<T, StoreError>>>(
        &self,
        (inner, file): (&SharedStore, &StoreKey),
        load: impl Fn(ValueInfo) -> F,
    ) -> Result<Arc<T>, StoreError> {
        for _ in 0..TRIES {
            let info = inner.head(file).await?.ok_or_else(|| E::NO_FILE.into())?;
            if let Some(outcome) = self.outcome_for(&info.version) {
                return outcome.map_err(Into::into);
            }
            let failures = self.failures.load(Ordering::Relaxed);
            let mut failure = self.loading.lock().await;
            if let Some(outcome) = self.outcome_for(&info.version) {
                return outcome.map_err(Into::into);
            }
            if let Some(failure) = &*failure
                && self.failures.load(Ordering::Relaxed) != failures
            {
                // The load that this call waited for failed.
                return Err(failure.clone());
            }
            // The budget need not hold two versions at once.
            self.replace(None);
            let version = info.version.clone();
            let outcome = match load(info).await {
                Ok(index) => Ok(Arc::new(index)),
                Err(StoreError::VersionChanged) => continue,
                Err(error) => {
                    let Some(refused) = E::of(&error).filter(|error| error.is_lasting()).cloned() else {
                        self.failures.fetch_add(1, Ordering::Relaxed);
                        return Err(failure.insert(error).clone());
                    };
                    Err(refused)
                }
            };
            self.replace(Some((version, outcome.clone())));
            return outcome.map_err(Into::into);
        }
        Err(StoreError::VersionChanged)
    }

    /// The cached outcome for this version.
    fn outcome_for(&self, version: &Version) -> Option<Outcome<T, E>> {
        self.lock().as_ref().filter(|(known, _)| known == version).map(|(_, outcome)| outcome.clone())
    }

    /// Replaces the outcome. An unsettled version is not cached: the file may still change unnoticed.
    fn replace(&self, known: Option<(Version, Outcome<T, E>)>) {
        let known = known.filter(|(version, _)| version.is_settled());
        let before = std::mem::replace(&mut *self.lock(), known);
        drop(before);
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Version, Outcome<T, E>)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

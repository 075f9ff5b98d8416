//! [`AppendGuard`]: what must hold for elements to be appended: the lease of the array, and that it is there.

use super::error::AppendError;
use crate::key::{NodePath, StoreKey};
use crate::store::SharedStore;
use crate::write::WriteError;
use crate::write::guarded::WriteGuard;
use crate::write::lease::ArrayLease;
use crate::write::uncached::as_stored;

/// The lease of an array, and its document.
pub(super) struct AppendGuard<'a> {
    pub(super) lease: &'a mut ArrayLease,
    pub(super) store: &'a SharedStore,
    pub(super) path: &'a NodePath,
    pub(super) document: &'a StoreKey,
}

impl WriteGuard for AppendGuard<'_> {
    type Error = AppendError;

    /// Checks that the lease is still held, and that the document is stored: after its erasure only the values that are being stored
    /// are waited for, before all values are erased.
    ///
    /// # Errors
    /// [`LeaseError::Lost`](crate::write::lease::LeaseError::Lost), [`WriteError::Replaced`]; a failure of the backend.
    async fn check(&mut self) -> Result<(), AppendError> {
        self.lease.check().await?;
        let found = as_stored(&**self.store).head(self.document).await;
        match found.map_err(|source| WriteError::Read { key: self.document.clone(), source })? {
            Some(_) => Ok(()),
            None => Err(WriteError::Replaced { path: self.path.clone() }.into()),
        }
    }

    async fn hold<T: Send>(&mut self, work: impl Future<Output = T> + Send) -> Result<T, AppendError> {
        Ok(self.lease.hold(work).await?)
    }

    fn note_in_flight(&mut self) {
        self.lease.has_broken_off = true;
    }
}

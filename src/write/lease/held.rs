//! An [`ArrayLease`] is held while other work is done.

use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

use super::array_lease::ArrayLease;
use super::error::LeaseError;
use crate::write::guarded::WriteGuard;

/// How often the lease is checked, and renewed where it ends soon.
const CHECKED_EVERY: Duration = Duration::from_secs(1);

impl ArrayLease {
    /// Does a part of the work under the lease, which is held to the end of it.
    ///
    /// # Errors
    /// [`LeaseError::Lost`]; a failure of the backend: the work has broken off, and what it has begun may still arrive.
    pub(in crate::write) async fn hold<T>(&mut self, work: impl Future<Output = T>) -> Result<T, LeaseError> {
        let mut work = pin!(work);
        loop {
            match timeout(CHECKED_EVERY, work.as_mut()).await {
                Ok(done) => return Ok(done),
                Err(_not_yet) => self.check().await?,
            }
        }
    }
}

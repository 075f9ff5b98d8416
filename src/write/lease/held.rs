//! An [`ArrayLease`] is held while other work is done.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use tokio::time::{Instant, sleep, timeout};

use super::array_lease::ArrayLease;
use super::error::LeaseError;
use super::record::LEASE;
use crate::store::StoreError;

/// How often the lease is checked, and renewed where it ends soon.
const CHECKED_EVERY: Duration = Duration::from_secs(1);
/// The pause after a check that failed.
const PAUSE: Duration = Duration::from_millis(50);

impl ArrayLease {
    /// Does a part of the work under the lease, which is held to the end of it. While the lease has ended and is not renewed, nothing of
    /// the work goes on, and no write of it is sent. A failure to check it breaks nothing off before its end.
    ///
    /// # Errors
    /// [`LeaseError::Lost`]; a failure of the backend: the work has broken off, and what it has sent may still arrive. The lease is not
    /// given back then, but ends by itself.
    pub(in crate::write) async fn hold<T>(&mut self, work: impl Future<Output = T>) -> Result<T, LeaseError> {
        let deadline = self.deadline.clone();
        let mut work = pin!(deadline.clone().scope(work));
        loop {
            if let Ok(Some(done)) = timeout(CHECKED_EVERY, deadline.before(work.as_mut())).await {
                return Ok(done);
            }
            let checked = {
                // The work goes on meanwhile: the backend may take long to answer.
                let check = pin!(self.check_in_time());
                match select(pin!(deadline.before(work.as_mut())), check).await {
                    Either::Left((Some(done), _)) => return Ok(done),
                    Either::Left((None, check)) => check.await,
                    Either::Right((checked, _)) => checked,
                }
            };
            match checked {
                Ok(()) => {}
                Err(error) if matches!(error, LeaseError::Lost) || Instant::now() >= self.ends => {
                    self.has_broken_off = true;
                    return Err(error);
                }
                // It is held for now, and checked again soon.
                Err(_failure) => sleep(PAUSE).await,
            }
        }
    }

    async fn check_in_time(&mut self) -> Result<(), LeaseError> {
        match timeout(LEASE, self.check()).await {
            Ok(checked) => checked,
            Err(late) => Err(LeaseError::Record(StoreError::TimedOut(Arc::new(late)))),
        }
    }
}

//! An [`ArrayLease`] is held while other work is done.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::array_lease::ArrayLease;
use super::error::LeaseError;

/// How often the lease is checked, and renewed where it ends soon.
const CHECKED_EVERY: Duration = Duration::from_secs(1);

impl ArrayLease {
    /// Does a part of the work under the lease, which is held to the end of it. While the lease has ended and is not renewed, nothing of
    /// the work goes on. A failure to check it breaks nothing off before its end.
    ///
    /// # Errors
    /// [`LeaseError::Lost`]; a failure of the backend: the work has broken off, and what it has begun may still arrive. The lease is not
    /// given back then, but ends by itself.
    pub(in crate::write) async fn hold<T>(&mut self, work: impl Future<Output = T>) -> Result<T, LeaseError> {
        let mut work = pin!(work);
        loop {
            let part = before(self.ends, work.as_mut());
            if let Ok(Some(done)) = timeout(CHECKED_EVERY, part).await {
                return Ok(done);
            }
            match self.check().await {
                Ok(()) => {}
                Err(error) if matches!(error, LeaseError::Lost) || Instant::now() >= self.ends => {
                    self.has_broken_off = true;
                    return Err(error);
                }
                // It is held for now, and checked again soon.
                Err(_failure) => {}
            }
        }
    }
}

/// Does work before a time; `None` if it is not done by then. A process that was paused sends nothing after it.
async fn before<T>(ends: Instant, mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    poll_fn(
        |context| {
            if Instant::now() < ends { work.as_mut().poll(context).map(Some) } else { Poll::Ready(None) }
        },
    )
    .await
}

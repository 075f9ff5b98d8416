//! [`WriteDeadline`]: until when a conditional write may be sent.
//!
//! Who writes under a lease sends nothing after its end. A write goes on in a task of its own, and is sent again where that is safe:
//! that task inherits the deadline, and checks it each time that it goes on, also after the process was paused.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use tokio::time::Instant;

tokio::task_local! {
    /// The deadline of the current task.
    static CURRENT: WriteDeadline;
}

/// Until when writes may be sent. Clones share it, and it can be extended.
#[derive(Clone, Debug)]
pub(crate) struct WriteDeadline(Arc<Mutex<Instant>>);

impl WriteDeadline {
    /// A deadline at a time.
    pub(crate) fn new(at: Instant) -> Self {
        Self(Arc::new(Mutex::new(at)))
    }

    /// Sets another time.
    pub(crate) fn set(&self, at: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    fn has_passed(&self) -> bool {
        Instant::now() >= *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does work before the deadline; `None` if it is not done by then. Work that is not awaited to its end may go on later.
    pub(crate) async fn before<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(
            |context| {
                if self.has_passed() { Poll::Ready(None) } else { work.as_mut().poll(context).map(Some) }
            },
        )
        .await
    }

    /// Does work whose conditional writes are sent before the deadline, or not at all.
    pub(crate) async fn scope<T>(self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self, work).await
    }

    /// The same work in another task, with the deadline of this one.
    pub(super) fn inherit<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
        let current = CURRENT.try_with(Clone::clone).ok();
        async move {
            match current {
                Some(deadline) => deadline.scope(work).await,
                None => work.await,
            }
        }
    }

    /// Sends a write before the deadline of the current task; `None` if it has no response by then.
    pub(super) async fn send<T>(write: impl Future<Output = T>) -> Option<T> {
        match CURRENT.try_with(Clone::clone) {
            Ok(deadline) => deadline.before(write).await,
            Err(_none) => Some(write.await),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_sends_nothing_after_the_deadline_that_it_inherited() {
        let deadline = WriteDeadline::new(Instant::now() + Duration::from_secs(1));
        let attempts = async |pause| {
            let mut sent = 0;
            while WriteDeadline::send(sleep(pause)).await.is_some() {
                sent += 1;
            }
            sent
        };
        let task = deadline.clone().scope(async {
            tokio::spawn(WriteDeadline::inherit(attempts(Duration::from_millis(400)))).await.unwrap()
        });
        assert_eq!(task.await, 2);
        deadline.set(Instant::now() + Duration::from_secs(1));
        assert_eq!(deadline.clone().scope(attempts(Duration::from_millis(300))).await, 3);
        assert_eq!(WriteDeadline::send(sleep(Duration::from_secs(5))).await, Some(()), "without a deadline");
    }
}

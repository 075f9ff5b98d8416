//! [`WriteDeadline`]: until when a conditional write may be sent.
//!
//! Who writes under a lease sends nothing after its end. A write goes on in a task of its own, and is sent again where that is safe:
//! that task inherits the deadline, and breaks off when it has passed. The clock is read each time that something goes on, because after
//! a pause of the process timers may come late.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

tokio::task_local! {
    /// The deadline of the current task.
    static CURRENT: WriteDeadline;
}

/// A write was not sent as a whole, or not answered, before its deadline.
#[derive(Debug, thiserror::Error)]
#[error("the time was over in which the write could be sent")]
pub(crate) struct DeadlinePassed;

/// Until when writes may be sent. Clones share it, and it can be extended.
#[derive(Clone, Debug)]
pub(crate) struct WriteDeadline(Arc<watch::Sender<Instant>>);

impl WriteDeadline {
    /// A deadline at a time.
    pub(crate) fn new(at: Instant) -> Self {
        Self(Arc::new(watch::Sender::new(at)))
    }

    /// The deadline of the current task, if it has one.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Sets another time.
    pub(crate) fn set(&self, at: Instant) {
        self.0.send_replace(at);
    }

    pub(crate) fn has_passed(&self) -> bool {
        Instant::now() >= *self.0.borrow()
    }

    /// Waits until it has passed.
    async fn passed(&self) {
        let mut deadline = self.0.subscribe();
        loop {
            let at = *deadline.borrow_and_update();
            if timeout_at(at, deadline.changed()).await.is_err() {
                return;
            }
        }
    }

    /// Does work before the deadline; `None` if it is not done by then. Work that is not awaited to its end may go on later.
    pub(crate) async fn before<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut passed, mut work) = (pin!(self.passed()), pin!(work));
        poll_fn(|context| {
            if self.has_passed() || passed.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            work.as_mut().poll(context).map(Some)
        })
        .await
    }

    /// Does work whose conditional writes are sent before the deadline, or not at all.
    pub(crate) async fn scope<T>(self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self, work).await
    }

    /// The same work in another task, with the deadline of this one.
    pub(crate) fn inherit<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
        let current = Self::current();
        async move {
            match current {
                Some(deadline) => deadline.scope(work).await,
                None => work.await,
            }
        }
    }

    /// Sends a write before the deadline of the current task; `None` if it has no response by then, and is dropped.
    pub(super) async fn send<T>(write: impl Future<Output = T>) -> Option<T> {
        match Self::current() {
            Some(deadline) => deadline.before(write).await,
            None => Some(write.await),
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

    #[tokio::test(start_paused = true)]
    async fn a_write_without_a_response_breaks_off_at_the_deadline_as_it_is_by_then() {
        for (set, end) in [(None, 1000), (Some(3000), 3000), (Some(200), 300)] {
            let begun = Instant::now();
            let after = |millis| Instant::now() + Duration::from_millis(millis);
            let deadline = WriteDeadline::new(after(1000));
            let at = set.map(after);
            let task =
                tokio::spawn(deadline.clone().scope(WriteDeadline::send(std::future::pending::<()>())));
            sleep(Duration::from_millis(300)).await;
            if let Some(at) = at {
                deadline.set(at);
            }
            assert_eq!(task.await.unwrap(), None);
            assert_eq!(begun.elapsed(), Duration::from_millis(end), "{set:?}");
        }
    }
}

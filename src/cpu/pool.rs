//! [`Pool`]: threads that take work from one queue, first come first served.
//!
//! A thread without work sleeps at once. What comes is long compared to waking up, and threads that spin for it would
//! take the cores from those who bring it. Work that panics ends alone.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A piece of work.
pub(super) type Work = Box<dyn FnOnce() + Send>;

/// The threads. Dropped, they end once the queue is empty.
pub(super) struct Pool(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    /// Something was pushed, or the queue was closed.
    changed: Condvar,
}

struct Queue {
    works: VecDeque<Work>,
    is_closed: bool,
}

impl Pool {
    /// Starts so many threads.
    ///
    /// # Errors
    /// The system's, if it refuses one.
    pub(super) fn start(threads: usize) -> io::Result<Self> {
        let queue = Mutex::new(Queue { works: VecDeque::new(), is_closed: false });
        let pool = Self(Arc::new(Shared { queue, changed: Condvar::new() }));
        for number in 0..threads {
            let shared = Arc::clone(&pool.0);
            thread::Builder::new().name(format!("cpu-{number}")).spawn(move || shared.work())?;
        }
        Ok(pool)
    }

    /// Queues a piece of work.
    pub(super) fn push(&self, work: Work) {
        self.0.lock().works.push_back(work);
        self.0.changed.notify_one();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn work(&self) {
        while let Some(work) = self.next() {
            // Whoever waits for it is told by its being dropped.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    }

    /// Waits for a piece of work; `None` once there will be none.
    fn next(&self) -> Option<Work> {
        let is_idle = |queue: &mut Queue| queue.works.is_empty() && !queue.is_closed;
        let queue = self.changed.wait_while(self.lock(), is_idle);
        queue.unwrap_or_else(PoisonError::into_inner).works.pop_front()
    }

    /// No code panics while it holds the lock; were it to, the queue would still be whole.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

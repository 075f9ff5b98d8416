//! [`Pool`]: threads that take work from one queue, first come first served.
//!
//! A thread without work sleeps at once. What comes is long compared to waking up, and threads that spin for it would
//! take the cores from those who bring it. Of those that sleep, the last to fall asleep is woken: what it worked with is
//! still in the caches of its core, and most often the next piece of work goes on with that. Work that panics ends alone.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

thread_local! {
    static IS_OF_A_POOL: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is a thread of a pool.
pub(super) fn on_pool_thread() -> bool {
    IS_OF_A_POOL.get()
}

/// A piece of work.
pub(super) type Work = Box<dyn FnOnce() + Send>;

/// The threads. Dropped, they end once the queue is empty.
pub(super) struct Pool(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    /// Of each thread, that it is to look at the queue.
    awake: Box<[Condvar]>,
}

struct Queue {
    works: VecDeque<Work>,
    /// The threads that sleep, the last to fall asleep last.
    asleep: Vec<usize>,
    is_closed: bool,
}

impl Pool {
    /// Starts so many threads.
    ///
    /// # Errors
    /// The system's, if it refuses one.
    pub(super) fn start(threads: usize) -> io::Result<Self> {
        let queue = Queue { works: VecDeque::new(), asleep: Vec::with_capacity(threads), is_closed: false };
        let awake = (0..threads).map(|_| Condvar::new()).collect();
        let pool = Self(Arc::new(Shared { queue: Mutex::new(queue), awake }));
        for number in 0..threads {
            let shared = Arc::clone(&pool.0);
            thread::Builder::new().name(format!("cpu-{number}")).spawn(move || shared.work(number))?;
        }
        Ok(pool)
    }

    /// Queues a piece of work.
    pub(super) fn push(&self, work: Work) {
        let mut queue = self.0.lock();
        queue.works.push_back(work);
        let woken = queue.asleep.pop();
        drop(queue);
        if let Some(number) = woken {
            self.0.awake[number].notify_one();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.awake.iter().for_each(Condvar::notify_one);
    }
}

impl Shared {
    /// What a thread does.
    fn work(&self, number: usize) {
        IS_OF_A_POOL.set(true);
        while let Some(work) = self.next(number) {
            // Whoever waits for it is told by its being dropped.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    }

    /// Waits for a piece of work; `None` once there will be none.
    fn next(&self, number: usize) -> Option<Work> {
        let mut queue = self.lock();
        loop {
            if let Some(work) = queue.works.pop_front() {
                return Some(work);
            }
            if queue.is_closed {
                return None;
            }
            queue.asleep.push(number);
            let is_asleep = |queue: &mut Queue| queue.asleep.contains(&number) && !queue.is_closed;
            let woken = self.awake[number].wait_while(queue, is_asleep);
            queue = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No code panics while it holds the lock; were it to, the queue would still be whole.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! [`Pool`]: threads that run tasks from one queue in the order of their arrival.
//!
//! A thread without a task sleeps at once: tasks are long compared to a wake-up, and threads that spin would take the cores
//! from the threads that bring tasks. A new task wakes the thread that fell asleep last, because its data is still in the
//! caches of its core, and the next task most often goes on with that data. Threads that are woken together run on different cores
//! ([`HomeCore`]). A task that panics ends alone.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::home_core::HomeCore;

thread_local! {
    static ON_POOL_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Whether the current thread belongs to a pool.
pub(crate) fn on_pool_thread() -> bool {
    ON_POOL_THREAD.get()
}

/// A piece of work.
pub(super) type Task = Box<dyn FnOnce() + Send>;

/// The threads and their queue. When it is dropped, the threads end once the queue is empty.
pub(super) struct Pool(Arc<PoolState>);

struct PoolState {
    queue: Mutex<Queue>,
    /// One per thread, to wake it.
    wake_ups: Box<[Condvar]>,
    /// One per thread, or none.
    home_cores: Vec<HomeCore>,
}

struct Queue {
    tasks: VecDeque<Task>,
    /// The threads that sleep, in the order in which they fell asleep.
    asleep: Vec<usize>,
    is_closed: bool,
}

impl Pool {
    /// Starts this many threads.
    ///
    /// # Errors
    /// The system's error, if it cannot start one.
    pub(super) fn start(threads: usize) -> io::Result<Self> {
        let queue = Queue { tasks: VecDeque::new(), asleep: Vec::with_capacity(threads), is_closed: false };
        let wake_ups = (0..threads).map(|_| Condvar::new()).collect();
        let home_cores = HomeCore::of_threads(threads);
        let pool = Self(Arc::new(PoolState { queue: Mutex::new(queue), wake_ups, home_cores }));
        for number in 0..threads {
            let shared = Arc::clone(&pool.0);
            thread::Builder::new().name(format!("cpu-{number}")).spawn(move || shared.run_tasks(number))?;
        }
        Ok(pool)
    }

    /// Queues a task, and wakes a thread if one sleeps.
    pub(super) fn push(&self, task: Task) {
        let mut queue = self.0.lock();
        queue.tasks.push_back(task);
        let woken = queue.asleep.pop();
        drop(queue);
        if let Some(number) = woken {
            self.0.wake_ups[number].notify_one();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.wake_ups.iter().for_each(Condvar::notify_one);
    }
}

impl PoolState {
    /// Runs tasks until the pool is dropped and its queue is empty.
    fn run_tasks(&self, number: usize) {
        ON_POOL_THREAD.set(true);
        while let Some(task) = self.next(number) {
            // A task that panics drops its channel, which its caller notices.
            let _ = catch_unwind(AssertUnwindSafe(task));
        }
    }

    /// Waits for a task; `None` once there will be no more.
    fn next(&self, number: usize) -> Option<Task> {
        let home = self.home_cores.get(number);
        let mut is_home = false;
        let mut queue = self.lock();
        loop {
            if let Some(task) = queue.tasks.pop_front() {
                drop(queue);
                if is_home {
                    home.inspect(|home| home.leave());
                }
                return Some(task);
            }
            if queue.is_closed {
                return None;
            }
            if !is_home {
                // Not under the lock: it is a system call. A task may come meanwhile.
                drop(queue);
                home.inspect(|home| home.enter());
                is_home = true;
                queue = self.lock();
                continue;
            }
            queue.asleep.push(number);
            let is_asleep = |queue: &mut Queue| queue.asleep.contains(&number) && !queue.is_closed;
            let woken = self.wake_ups[number].wait_while(queue, is_asleep);
            queue = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No code panics while it holds the lock; even then the queue would be consistent.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

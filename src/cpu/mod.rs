//! The pool of threads for CPU work: the only way from asynchronous code to long computations.
//!
//! The pool has as many threads as there are cores, and one queue. Queued work belongs to the pool and not to its caller: a
//! caller that is not polled (a client that does not read) holds up no other work, and the work of a caller that was dropped
//! is discarded when its turn comes. Decoding or rendering more than a few kilobytes, and copying more than a few hundred,
//! never runs on a thread of the reactor. A future that consists mostly of such work runs on the pool as a whole
//! ([`ComputePool::spawn_future`]).

mod compute_pool;
mod drop_on_pool;
mod home_core;
mod pool;

pub(crate) use compute_pool::expect_pool_for;
pub use compute_pool::{ComputePool, ComputePoolError, ComputePoolOptions, check_threads};
pub use drop_on_pool::DropOnPool;
pub(crate) use pool::on_pool_thread;

//! The one door from async to CPU work.
//!
//! A pool of as many threads as there are cores, and one queue before it. What waits there belongs to the pool and not
//! to whoever waits for it: a caller who stands still (a client that does not read) holds nobody up, and the work of one
//! who has left is dropped when its turn comes. Nothing that decodes or renders more than a few kilobytes, or copies
//! more than a hundred or so, runs on the reactor. What is little else than such work, from its reads to its result, is
//! driven there as a whole ([`ComputePool::spawn_future`]).

mod compute_pool;
mod drop_on_pool;
mod pool;

pub(crate) use compute_pool::expects_pool;
pub use compute_pool::{ComputePool, ComputePoolError, ComputePoolOptions};
pub use drop_on_pool::DropOnPool;

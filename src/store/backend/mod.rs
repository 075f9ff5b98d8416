//! Limits on the load of a remote backend: concurrent requests, and a circuit breaker.
//!
//! Each store has a [`ConcurrencyLimit`](concurrency_limit::ConcurrencyLimit) and a
//! [`CircuitBreaker`](circuit_breaker::CircuitBreaker) of its own, so that one backend's trouble does not slow another
//! mount. A request holds its permit until the response begins: the body flows as fast as its reader. An upload takes
//! no permit, since it flows as fast as its sender. The inner store defines what the verbs mean; without this wrapper a
//! failing backend gets no rest, and nothing else changes.

mod circuit_breaker;
mod concurrency_limit;
mod state;
mod throttled_store;

pub use state::{BackendState, CircuitState};
pub(super) use throttled_store::{ThrottleOptions, ThrottledStore};

//! [`BackendState`]: circuit breaker and concurrency limit of a backend, as metrics show them.

/// The state of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitState {
    /// Requests go to the backend.
    Closed,
    /// Requests are rejected: too many failed.
    Open,
    /// One request is in flight, to find out whether the backend works again.
    Probing,
}

impl CircuitState {
    /// The state as a stable identifier.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::Probing => "probing",
        }
    }
}

/// Circuit breaker and concurrency limit of a backend, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendState {
    /// The circuit breaker.
    pub circuit: CircuitState,
    /// How often the circuit opened since the start.
    pub opened_total: u64,
    /// Requests in flight.
    pub in_flight: usize,
    /// Requests in the queue.
    pub waiting: usize,
    /// The most requests in flight.
    pub limit: usize,
}

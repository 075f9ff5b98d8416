//! [`BackendState`]: circuit breaker and concurrency limit of a backend, as metrics show them.

/// Whether a backend is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitState {
    /// It is.
    Closed,
    /// It is not: it has failed too often.
    Open,
    /// One question is under way, to see whether it answers again.
    Probing,
}

impl CircuitState {
    /// The state as a stable word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::Probing => "probing",
        }
    }
}

/// How much a backend is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendState {
    /// Whether it is asked at all.
    pub circuit: CircuitState,
    /// How often it was left alone for a while since the start.
    pub times_opened: u64,
    /// Questions under way.
    pub under_way: usize,
    /// Questions that wait for their turn.
    pub waiting: usize,
    /// Questions that may be under way.
    pub limit: usize,
}

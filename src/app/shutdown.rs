//! [`Shutdown`]: the phase of the shutdown, from the signals to all listeners and connections.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The phases of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// No shutdown was requested.
    Serving,
    /// No new connections; requests in flight are finished.
    Draining,
    /// Connections are closed at once.
    Forced,
}

/// Requests the shutdown of a server: first gracefully, then at once. Clones share the phase.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Sender<Phase>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(watch::Sender::new(Phase::Serving))
    }
}

impl Shutdown {
    /// The next phase: draining, and then forced.
    pub fn advance(&self) {
        self.0.send_modify(|phase| {
            *phase = match phase {
                Phase::Serving => Phase::Draining,
                Phase::Draining | Phase::Forced => Phase::Forced,
            };
        });
    }

    /// Closes all connections now.
    pub fn force(&self) {
        self.0.send_replace(Phase::Forced);
    }

    /// Waits until a phase or a later one is reached, and returns it.
    pub async fn reached(&self, phase: Phase) -> Phase {
        // The sender is `self`, so waiting cannot fail; if it did, the forced phase would be the safe answer.
        self.0.subscribe().wait_for(|now| *now >= phase).await.map_or(Phase::Forced, |now| *now)
    }
}

/// SIGTERM and SIGINT, which no longer end the process by themselves once this exists. Neither does SIGXFSZ, which is sent for a
/// write beyond the largest file that the system permits: only that write fails.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// SIGHUP, which no longer ends the process.
///
/// # Errors
/// If the system refuses.
pub(super) fn hangups() -> std::io::Result<Signal> {
    signal(SignalKind::hangup())
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn catch() -> std::io::Result<Self> {
        // The handler stays installed, although nothing receives the signal.
        drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Advances the shutdown with each signal, as long as this is polled.
    pub async fn advance(mut self, shutdown: &Shutdown) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
            }
            shutdown.advance();
        }
    }
}

//! [`Shutdown`]: the one word from the signals to everyone who serves.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nobody has asked for an end.
    Serving,
    /// No new connections; what is under way is finished.
    Draining,
    /// At once.
    Forced,
}

/// Asks a server to stop: first gracefully, then at once. Clones are the same word.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Sender<Phase>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(watch::Sender::new(Phase::Serving))
    }
}

impl Shutdown {
    /// One step towards the end: drain; when draining already, cut.
    pub fn advance(&self) {
        self.0.send_modify(|phase| {
            *phase = match phase {
                Phase::Serving => Phase::Draining,
                Phase::Draining | Phase::Forced => Phase::Forced,
            };
        });
    }

    /// Everything ends now.
    pub fn force(&self) {
        self.0.send_replace(Phase::Forced);
    }

    /// Waits until a phase, or a later one, is reached, and says which.
    pub async fn reached(&self, phase: Phase) -> Phase {
        // The sender is `self`, so that waiting cannot fail; if it did, the end would be the safe answer.
        self.0.subscribe().wait_for(|now| *now >= phase).await.map_or(Phase::Forced, |now| *now)
    }
}

/// SIGTERM and SIGINT, caught from when this is made: they no longer end the process by themselves. Nor does SIGXFSZ, which
/// comes with a write beyond the longest file that the system allows: that write fails, and only it.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// SIGHUP, caught from now on: it no longer ends the process.
///
/// # Errors
/// If the system refuses.
pub(super) fn hangups() -> std::io::Result<Signal> {
    signal(SignalKind::hangup())
}

impl Signals {
    /// Begins to catch them.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn catch() -> std::io::Result<Self> {
        // What was caught once never ends the process again, though nobody listens.
        drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Advances the shutdown with every one of them, for as long as this is polled.
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

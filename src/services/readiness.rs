//! [`Readiness`]: whether the backends of the mounts respond, checked at most once a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::mount::{Mount, MountFailure};
use super::mounts::Mounts;
use crate::error::ErrorClass;

/// The time for which a result stays valid.
const RESULT_AGE: Duration = Duration::from_secs(1);

/// The state of each mount's backend, by mount name.
pub(crate) type MountStates = BTreeMap<String, MountState>;

/// The state of a mount's backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MountState {
    /// The backend responds.
    Ready,
    /// The backend fails, and the mount's freshness allows what is cached from the time before.
    Stale(ErrorClass),
    /// The backend fails with this class of error.
    Unavailable(ErrorClass),
}

impl MountState {
    /// Whether the mount has responses: from its backend, or from what is cached.
    pub(crate) fn is_ready(self) -> bool {
        !matches!(self, Self::Unavailable(_))
    }

    /// Whether the backend responds.
    pub(crate) fn is_backend_up(self) -> bool {
        self == Self::Ready
    }

    /// The state as a word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Stale(_) => "stale",
            Self::Unavailable(_) => "unavailable",
        }
    }

    /// The class of the failure, as a word.
    pub(crate) fn why(self) -> Option<&'static str> {
        match self {
            Self::Ready => None,
            Self::Stale(why) | Self::Unavailable(why) => Some(why.as_str()),
        }
    }

    /// The state of a mount whose backend fails. A refusal is a response of the backend, in place of which nothing is served.
    fn failing(failure: &MountFailure, mount: &Mount) -> Self {
        let is_served = mount.staleness.as_ref().is_some_and(|staleness| staleness.has_results());
        if is_served && !failure.is_refusal {
            Self::Stale(failure.class)
        } else {
            Self::Unavailable(failure.class)
        }
    }
}

/// The checks of backends.
#[derive(Debug)]
pub struct Readiness {
    mounts: Arc<Mounts>,
    max_wait: Duration,
    /// The last results and their time; locked while new ones are fetched.
    last: Mutex<Option<(Instant, Arc<MountStates>)>>,
}

impl Readiness {
    /// Checks that wait for each backend up to `max_wait`.
    pub(super) fn new(mounts: Arc<Mounts>, max_wait: Duration) -> Self {
        Self { mounts, max_wait, last: Mutex::new(None) }
    }

    /// The state of each mount's backend; backends are checked at most once a second, whatever the number of requests.
    /// Changes are logged.
    pub(crate) async fn check(&self) -> Arc<MountStates> {
        let mut last = self.last.lock().await;
        if let Some((when, states)) = &*last
            && when.elapsed() < RESULT_AGE
        {
            return Arc::clone(states);
        }
        let before = last.as_ref().map(|(_, states)| Arc::clone(states)).unwrap_or_default();
        // As many at a time as the configuration has mounts.
        let checks = self.mounts.iter().map(|mount| {
            let before = before.get(&mount.name).copied();
            async move { (mount.name.clone(), self.check_mount(mount, before).await) }
        });
        let states = Arc::new(join_all(checks).await.into_iter().collect());
        *last = Some((Instant::now(), Arc::clone(&states)));
        states
    }

    async fn check_mount(&self, mount: &Mount, before: Option<MountState>) -> MountState {
        let (state, cause) = match mount.answers_within(self.max_wait).await {
            Ok(()) => {
                if let Some(staleness) = &mount.staleness {
                    staleness.record_result(std::time::Instant::now());
                }
                (MountState::Ready, String::new())
            }
            Err(failure) => (MountState::failing(&failure, mount), failure.cause),
        };
        // Only changes are logged, so that frequent requests do not fill the log.
        if before.is_none_or(MountState::is_ready) && !state.is_ready() {
            tracing::warn!(mount = mount.name, cause, "mount is not ready");
        } else if before.is_none_or(MountState::is_backend_up) && !state.is_backend_up() {
            tracing::warn!(
                mount = mount.name,
                cause,
                "the backend fails or is slow: what was read before is served as far as it is known"
            );
        } else if before.is_some_and(|before| !before.is_backend_up()) && state.is_backend_up() {
            tracing::info!(mount = mount.name, "mount is ready again");
        }
        state
    }
}

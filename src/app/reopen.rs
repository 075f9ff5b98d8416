//! The directory of a mount that was removed and made again, as programs do that overwrite a hierarchy, is opened again without a
//! signal: each for itself, with the configuration in effect. Certificates and access files are not read again.

use std::collections::BTreeMap;
use std::time::Duration;

use super::error::in_one_line;
use super::mounts::ServedMount;
use super::server::App;
use crate::web::Endpoint;

/// How often the directories of mounts are checked for having been removed.
pub(super) const REMOVED_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The most checks from one warning of a mount to the next.
const MAX_CHECKS: u32 = 600;

/// What was warned of, so that a directory that stays unusable is named ever less often.
#[derive(Debug, Default)]
pub(super) struct ReopenWarnings(BTreeMap<String, Backoff>);

/// The checks of a mount since a warning.
#[derive(Debug)]
struct Backoff {
    since: u32,
    /// The checks to the next warning.
    until: u32,
}

impl ReopenWarnings {
    /// Whether to warn of a mount that could not be opened: at its first failure, and after 2, 4, 8, … more checks.
    fn is_due(&mut self, name: &str) -> bool {
        let Some(backoff) = self.0.get_mut(name) else {
            self.0.insert(name.to_owned(), Backoff { since: 0, until: 2 });
            return true;
        };
        backoff.since += 1;
        let is_due = backoff.since >= backoff.until;
        if is_due {
            *backoff = Backoff { since: 0, until: (backoff.until * 2).min(MAX_CHECKS) };
        }
        is_due
    }

    /// Keeps what was warned of those that failed again.
    fn keep(&mut self, failed: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| failed(name));
    }
}

impl App {
    /// Opens the directories again that were removed and made again.
    pub(super) async fn reopen_removed(&mut self, sites: &[Endpoint], warnings: &mut ReopenWarnings) {
        let served = self.served.clone();
        if blocking(move || served.iter().any(ServedMount::is_removed)).await != Some(true) {
            return;
        }
        let (mut opener, config, mut served) =
            (self.opener.clone(), self.config.clone(), self.served.clone());
        let work = move || {
            let reopened = opener.reopen_removed(&config, &mut served);
            (opener, served, reopened)
        };
        let Some((opener, served, reopened)) = blocking(work).await else { return };
        let has_failed = |name: &str| reopened.iter().any(|(known, result)| known == name && result.is_err());
        warnings.keep(has_failed);
        for (mount, result) in &reopened {
            if let Err(error) = result
                && warnings.is_due(mount)
            {
                let error = in_one_line(error);
                tracing::warn!(
                    mount,
                    error,
                    "the mount's directory was removed and made again, and cannot be opened"
                );
            }
        }
        let opened: Vec<&String> =
            reopened.iter().filter(|(_, result)| result.is_ok()).map(|(name, _)| name).collect();
        if opened.is_empty() {
            return;
        }
        match self.serve_mounts((opener, served), None, sites) {
            Ok(()) => {
                for mount in opened {
                    self.config.missing_directories.remove(mount);
                    tracing::info!(
                        mount,
                        "the mount's directory was removed and made again, and is open again"
                    );
                }
            }
            Err(error) => tracing::error!(error = in_one_line(&error), "mounts cannot be served again"),
        }
    }
}

/// What work returns that blocks for file operations; `None` if it panicked.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    #[expect(
        clippy::disallowed_methods,
        reason = "one at a time; a file system that hangs delays only the next reload"
    )]
    let done = tokio::task::spawn_blocking(work).await;
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_that_stays_unusable_is_warned_of_ever_less_often() {
        let mut warnings = ReopenWarnings::default();
        let due: Vec<u32> = (0..32).filter(|_| warnings.is_due("a")).collect();
        assert_eq!(due, [0, 2, 6, 14, 30]);
        assert!(warnings.is_due("b"));
        warnings.keep(|name| name != "a");
        assert!(warnings.is_due("a"), "it was open in between");
        let mut longest = 0;
        let mut since = 0;
        for _ in 0..10_000 {
            since = if warnings.is_due("a") { 0 } else { since + 1 };
            longest = longest.max(since);
        }
        assert_eq!(longest, MAX_CHECKS - 1);
    }
}

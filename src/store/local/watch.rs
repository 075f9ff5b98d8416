//! [`Watcher`]: being told by the kernel that something changed, so that nobody need look at every name (`inotify(7)`).
//!
//! The directories above some keys are watched, up to the root, and the files themselves: these may be written to by
//! other names, made before or later. Whatever changes what a name there leads to, or what is in the file it leads to, is
//! told before the call that did it returns; so where nothing was told, every name still is what it was. What happened is
//! of no interest: anything at all ends the quiet, for all who rely on it. What is behind links or on other devices is not
//! watched. What is written through a memory map is not told: who relies on the quiet looks all the same now and then.
//! The kernel watches only so much for a user. Where it refuses more, what is watched stays so, and every other name is
//! looked at each time. This is for Linux and its own file systems; elsewhere nothing is watched.

#[cfg(target_os = "linux")]
pub(super) use linux::Watcher;
#[cfg(not(target_os = "linux"))]
pub(super) use nowhere::Watcher;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::sync::{Mutex, MutexGuard, Once, PoisonError};
    use std::time::{Duration, Instant};

    use rustix::fs::fstat;
    use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
    use rustix::io::Errno;

    use crate::key::StoreKey;
    use crate::store::WatchToken;
    use crate::store::local::paths::{ancestors, parent_path};
    use crate::store::local::root::{Root, is_file};

    /// Directories and files of one store that are watched at most: each takes about a kilobyte of the kernel's memory.
    const MOST_WATCHED: usize = 16 << 10;
    /// Where there is no room for more, all is begun anew, but not more often than this.
    const BETWEEN_BEGINNINGS: Duration = Duration::from_mins(1);
    /// Where the kernel refused, it is asked no more often than this.
    const BETWEEN_TRIES: Duration = Duration::from_mins(1);
    /// What is told is read in pieces of this length,
    const TOLD_BYTES: usize = 4 << 10;
    /// and when more than so much was told, it is dropped with all that is watched.
    const MOST_TOLD: usize = 4 << 10;
    const CHANGES: WatchFlags = WatchFlags::MODIFY
        .union(WatchFlags::ATTRIB)
        .union(WatchFlags::CREATE)
        .union(WatchFlags::DELETE)
        .union(WatchFlags::DELETE_SELF)
        .union(WatchFlags::MOVE)
        .union(WatchFlags::MOVE_SELF);

    /// What is watched of one store.
    #[derive(Debug, Default)]
    pub(in crate::store::local) struct Watcher(Mutex<State>);

    #[derive(Debug, Default)]
    struct State {
        told: Option<OwnedFd>,
        watched: BTreeSet<i32>,
        begun: Option<Instant>,
        /// When the kernel refused to watch more.
        refused: Option<Instant>,
        /// How often something had been told.
        changes: u64,
    }

    impl Watcher {
        /// Watches all that could give these keys other values. `None` if that cannot be, or if something changes just now.
        pub(in crate::store::local) fn watch(&self, root: &Root, keys: &[StoreKey]) -> Option<WatchToken> {
            if !root.now {
                return None;
            }
            let prefixes: BTreeSet<_> = keys.iter().map(StoreKey::parent).collect();
            // Those above come before those below: what changes on the way is told.
            let directories: BTreeSet<&str> = prefixes
                .iter()
                .flat_map(|prefix| ancestors(parent_path(prefix.as_str())))
                .chain([""])
                .collect();
            let before = self.state().begin(directories.len().saturating_add(keys.len()))?;
            for directory in directories {
                self.state().add(root, directory, true)?;
            }
            for key in keys {
                self.state().add(root, key.as_str(), false)?;
            }
            (self.state().changes_by_now() == before).then_some(WatchToken(before))
        }

        /// Whether nothing was told since then.
        pub(in crate::store::local) fn is_quiet(&self, since: WatchToken) -> bool {
            self.state().changes_by_now() == since.0
        }

        /// No code panics while it holds the lock.
        fn state(&self) -> MutexGuard<'_, State> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl State {
        /// Makes room for so many directories and files. Returns how often something had been told.
        fn begin(&mut self, more: usize) -> Option<u64> {
            let now = Instant::now();
            if self.refused.is_some_and(|refused| now - refused < BETWEEN_TRIES) {
                return None;
            }
            if self.watched.len().saturating_add(more) > MOST_WATCHED {
                let is_early = self.begun.is_some_and(|begun| now - begun < BETWEEN_BEGINNINGS);
                if is_early || more > MOST_WATCHED {
                    return None;
                }
                self.forget();
            }
            if self.told.is_none() {
                let told = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
                self.told = Some(self.unless_refused(told)?);
                self.begun = Some(now);
            }
            Some(self.changes_by_now())
        }

        /// Watches a directory that must be there, or a file that may be.
        fn add(&mut self, root: &Root, path: &str, is_directory: bool) -> Option<()> {
            let opened = match root.open_plainly(path, is_directory) {
                // It would be made in a directory that is watched.
                Err(Errno::NOENT) if !is_directory => return Some(()),
                opened => opened.ok()?,
            };
            let stat = fstat(&opened).ok()?;
            if stat.st_dev != root.device() || !(is_directory || is_file(&stat)) {
                return None;
            }
            // The very one that was opened, wherever its name leads by now.
            let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
            let watch = add_watch(self.told.as_ref()?, path, CHANGES);
            let watch = self.unless_refused(watch)?;
            self.watched.insert(watch);
            Some(())
        }

        /// Notes that the kernel watches no more for this user, and has the log say so for the first time.
        fn unless_refused<T>(&mut self, outcome: Result<T, Errno>) -> Option<T> {
            static TOLD: Once = Once::new();
            let limit = match outcome {
                Ok(made) => return Some(made),
                Err(Errno::NOSPC) => "fs.inotify.max_user_watches",
                Err(Errno::MFILE | Errno::NFILE) => "fs.inotify.max_user_instances",
                Err(_) => return None,
            };
            self.refused = Some(Instant::now());
            TOLD.call_once(|| {
                tracing::warn!(
                    limit,
                    "the kernel watches no more files for this user: stored files are looked at with every request, which \
                     is slower and as right"
                );
            });
            None
        }

        /// How often something was told, with what is told now.
        fn changes_by_now(&mut self) -> u64 {
            let Some(told) = &self.told else { return self.changes };
            let mut buffer = [MaybeUninit::uninit(); TOLD_BYTES];
            let mut events = Reader::new(told, &mut buffer);
            for _ in 0..MOST_TOLD {
                match events.next() {
                    Err(Errno::AGAIN) => return self.changes,
                    Ok(event) => {
                        self.changes += 1;
                        // What is gone is watched no more.
                        if event.events().contains(ReadFlags::IGNORED) {
                            self.watched.remove(&event.wd());
                        }
                    }
                    Err(_) => break,
                }
            }
            self.forget();
            self.changes
        }

        /// Nothing is watched any more, and nothing is taken for quiet.
        fn forget(&mut self) {
            self.told = None;
            self.watched.clear();
            self.changes += 1;
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod nowhere {
    use crate::key::StoreKey;
    use crate::store::WatchToken;
    use crate::store::local::root::Root;

    /// Watches nothing.
    #[derive(Debug, Default)]
    pub(in crate::store::local) struct Watcher;

    impl Watcher {
        pub(in crate::store::local) fn watch(&self, _root: &Root, _keys: &[StoreKey]) -> Option<WatchToken> {
            None
        }

        pub(in crate::store::local) fn is_quiet(&self, _since: WatchToken) -> bool {
            false
        }
    }
}

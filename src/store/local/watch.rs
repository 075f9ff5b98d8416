//! [`Watcher`]: change notifications from the kernel (`inotify(7)`), so that cached values need no `stat` each time.
//!
//! The watcher covers the files of some keys and the directories above them, up to the root. Files are watched
//! themselves because other hard links may write to them. The kernel reports changes of a name or of a file's bytes
//! before the system call that made them returns; so without a report, every name still has its value. Not reported are
//! writes through a memory map, writes of Linux AIO (`io_submit`), and file systems that are mounted on the path, so
//! callers must still validate now and then. The watcher does not care what changed: any event invalidates every token.
//! Files behind links or on other devices are not watched. The kernel limits the watches of a user. When it refuses
//! more, existing watches stay, and all other names take a `stat` each time. This is for Linux and its own file systems;
//! on others nothing is watched.

#[cfg(target_os = "linux")]
pub(super) use linux::Watcher;
#[cfg(not(target_os = "linux"))]
pub(super) use unsupported::Watcher;

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
    const MAX_WATCHES: usize = 16 << 10;
    /// When [`MAX_WATCHES`] is reached, all watches are dropped, but not more often than this.
    const MIN_RESET_INTERVAL: Duration = Duration::from_mins(1);
    /// After the kernel refused a watch, none is requested for this time.
    const RETRY_AFTER: Duration = Duration::from_mins(1);
    /// Events are read in pieces of this length, in bytes,
    const EVENT_BUFFER_BYTES: usize = 4 << 10;
    /// and after this many events all watches are dropped instead.
    const MAX_EVENTS: usize = 4 << 10;
    const CHANGES: WatchFlags = WatchFlags::MODIFY
        .union(WatchFlags::ATTRIB)
        .union(WatchFlags::CREATE)
        .union(WatchFlags::DELETE)
        .union(WatchFlags::DELETE_SELF)
        .union(WatchFlags::MOVE)
        .union(WatchFlags::MOVE_SELF);

    /// The watches of one store.
    #[derive(Debug, Default)]
    pub(in crate::store::local) struct Watcher(Mutex<State>);

    #[derive(Debug, Default)]
    struct State {
        inotify: Option<OwnedFd>,
        watched: BTreeSet<i32>,
        begun: Option<Instant>,
        /// When the kernel refused to watch more.
        refused: Option<Instant>,
        /// How many events were reported.
        changes: u64,
        /// When the last reading of all events began.
        read_at: Option<Instant>,
    }

    impl Watcher {
        /// Watches everything that could give these keys other values. `None` if that is impossible, or if something
        /// changes meanwhile.
        pub(in crate::store::local) fn watch(&self, root: &Root, keys: &[StoreKey]) -> Option<WatchToken> {
            if !root.nonblocking {
                return None;
            }
            let prefixes: BTreeSet<_> = keys.iter().map(StoreKey::parent).collect();
            // Parents before children, so that a change on the path between them is reported.
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
            (self.state().count_changes() == before).then_some(WatchToken(before))
        }

        /// When events were last read, at `horizon` or later, if there was none since the token was given.
        pub(in crate::store::local) fn unchanged_since(
            &self,
            since: WatchToken,
            horizon: Instant,
        ) -> Option<Instant> {
            let mut state = self.state();
            let read_at = if let Some(read_at) = state.read_at.filter(|&read_at| read_at >= horizon) {
                read_at
            } else {
                let now = Instant::now();
                state.count_changes();
                *state.read_at.insert(now)
            };
            (state.changes == since.0).then_some(read_at)
        }

        /// No code panics while it holds the lock.
        fn state(&self) -> MutexGuard<'_, State> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl State {
        /// Prepares for this many more watches. Returns the number of events so far.
        fn begin(&mut self, more: usize) -> Option<u64> {
            let now = Instant::now();
            if self.refused.is_some_and(|refused| now - refused < RETRY_AFTER) {
                return None;
            }
            if self.watched.len().saturating_add(more) > MAX_WATCHES {
                let is_early = self.begun.is_some_and(|begun| now - begun < MIN_RESET_INTERVAL);
                if is_early || more > MAX_WATCHES {
                    return None;
                }
                self.reset();
            }
            if self.inotify.is_none() {
                let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
                self.inotify = Some(self.note_refusal(inotify)?);
                self.begun = Some(now);
            }
            Some(self.count_changes())
        }

        /// Watches a directory, which must exist, or a file, which need not.
        fn add(&mut self, root: &Root, path: &str, is_directory: bool) -> Option<()> {
            let opened = match root.open_without_links(path, is_directory) {
                // Its creation would be an event of a watched directory.
                Err(Errno::NOENT) if !is_directory => return Some(()),
                opened => opened.ok()?,
            };
            let stat = fstat(&opened).ok()?;
            if stat.st_dev != root.device() || !(is_directory || is_file(&stat)) {
                return None;
            }
            // The file that was opened, even if its name leads to another by now.
            let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
            let watch = add_watch(self.inotify.as_ref()?, path, CHANGES);
            let watch = self.note_refusal(watch)?;
            self.watched.insert(watch);
            Some(())
        }

        /// Records that the kernel refuses more watches for this user, and logs the first refusal.
        fn note_refusal<T>(&mut self, outcome: Result<T, Errno>) -> Option<T> {
            static LOGGED: Once = Once::new();
            let limit = match outcome {
                Ok(created) => return Some(created),
                Err(Errno::NOSPC) => "fs.inotify.max_user_watches",
                Err(Errno::MFILE | Errno::NFILE) => "fs.inotify.max_user_instances",
                Err(_) => return None,
            };
            self.refused = Some(Instant::now());
            LOGGED.call_once(|| {
                tracing::warn!(
                    limit,
                    "the kernel watches no more files for this user: cached values are validated by a system call with \
                     every request, which is slower and equally correct"
                );
            });
            None
        }

        /// The number of events, including those that are pending now.
        fn count_changes(&mut self) -> u64 {
            let Some(inotify) = &self.inotify else { return self.changes };
            let mut buffer = [MaybeUninit::uninit(); EVENT_BUFFER_BYTES];
            let mut events = Reader::new(inotify, &mut buffer);
            for _ in 0..MAX_EVENTS {
                match events.next() {
                    Err(Errno::AGAIN) => return self.changes,
                    Ok(event) => {
                        self.changes += 1;
                        // The kernel has dropped the watch of a removed file.
                        if event.events().contains(ReadFlags::IGNORED) {
                            self.watched.remove(&event.wd());
                        }
                    }
                    Err(_) => break,
                }
            }
            self.reset();
            self.changes
        }

        /// Drops all watches, and with that invalidates all tokens.
        fn reset(&mut self) {
            self.inotify = None;
            self.watched.clear();
            self.changes += 1;
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod unsupported {
    use std::time::Instant;

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

        pub(in crate::store::local) fn unchanged_since(
            &self,
            _since: WatchToken,
            _horizon: Instant,
        ) -> Option<Instant> {
            None
        }
    }
}

//! [`Watcher`]: being told by the kernel that something changed, so that nobody need look at every name (`inotify(7)`).
//!
//! The directories above some keys are watched, up to the root. Whatever changes what a name there leads to, or what is in
//! the file it leads to, is told before the call that did it returns; so where nothing was told, every name still is what
//! it was. What happened is of no interest: anything at all ends the quiet, for all who rely on it. A file that has other
//! names elsewhere could be written to by these, so such keys are not watched; nor is what is behind links or on other
//! devices. What is written through a memory map is not told: who relies on the quiet looks all the same now and then.
//! This is for Linux and its own file systems; elsewhere nothing is watched.

#[cfg(target_os = "linux")]
pub(super) use linux::Watcher;
#[cfg(not(target_os = "linux"))]
pub(super) use nowhere::Watcher;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::{Duration, Instant};

    use rustix::fs::fstat;
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
    use rustix::io::{Errno, read};

    use crate::key::StoreKey;
    use crate::store::Quiet;
    use crate::store::local::directories::{ancestors, parent_path};
    use crate::store::local::root::{LookNow, Root};

    /// Directories of one store that are watched at most: each takes about a kilobyte of the kernel's memory.
    const MOST_DIRECTORIES: usize = 8192;
    /// Where there is no room for more, all is begun anew, but not more often than this.
    const BETWEEN_BEGINNINGS: Duration = Duration::from_mins(1);
    /// What is told is read in pieces of this length,
    const TOLD_BYTES: usize = 4 << 10;
    /// and when it is more than so many pieces, it is dropped with all that is watched.
    const TOLD_PIECES: usize = 16;
    const CHANGES: WatchFlags = WatchFlags::MODIFY
        .union(WatchFlags::ATTRIB)
        .union(WatchFlags::CREATE)
        .union(WatchFlags::DELETE)
        .union(WatchFlags::DELETE_SELF)
        .union(WatchFlags::MOVE)
        .union(WatchFlags::MOVE_SELF)
        .union(WatchFlags::ONLYDIR);

    /// What is watched of one store.
    #[derive(Debug, Default)]
    pub(in crate::store::local) struct Watcher(Mutex<State>);

    #[derive(Debug, Default)]
    struct State {
        told: Option<OwnedFd>,
        watched: BTreeSet<i32>,
        begun: Option<Instant>,
        /// How often something had been told.
        changes: u64,
    }

    impl Watcher {
        /// Watches all that could give these keys other values. `None` if that cannot be, or if something changes just now.
        pub(in crate::store::local) fn watch(&self, root: &Root, keys: &[StoreKey]) -> Option<Quiet> {
            if !root.now || root.follows_links() {
                return None;
            }
            let prefixes: BTreeSet<_> = keys.iter().map(StoreKey::parent).collect();
            // Those above come before those below: what changes on the way is told.
            let directories: BTreeSet<&str> = prefixes
                .iter()
                .flat_map(|prefix| ancestors(parent_path(prefix.as_str())))
                .chain([""])
                .collect();
            let before = self.state().begin(directories.len())?;
            for directory in directories {
                self.state().add(root, directory)?;
            }
            let has_one_name = |key: &StoreKey| match root.look_now(key.as_str()) {
                LookNow::Found(stat) => stat.st_nlink == 1,
                LookNow::Absent => true,
                LookNow::Unknown => false,
            };
            let is_quiet = keys.iter().all(has_one_name) && self.state().changes_by_now() == before;
            is_quiet.then_some(Quiet(before))
        }

        /// Whether nothing was told since then.
        pub(in crate::store::local) fn is_quiet(&self, since: Quiet) -> bool {
            self.state().changes_by_now() == since.0
        }

        /// No code panics while it holds the lock.
        fn state(&self) -> MutexGuard<'_, State> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl State {
        /// Makes room for so many directories. Returns how often something had been told.
        fn begin(&mut self, directories: usize) -> Option<u64> {
            let now = Instant::now();
            if self.watched.len().saturating_add(directories) > MOST_DIRECTORIES {
                let is_early = self.begun.is_some_and(|begun| now - begun < BETWEEN_BEGINNINGS);
                if is_early || directories > MOST_DIRECTORIES {
                    return None;
                }
                self.forget();
            }
            if self.told.is_none() {
                self.told = Some(init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?);
                self.begun = Some(now);
            }
            Some(self.changes_by_now())
        }

        fn add(&mut self, root: &Root, directory: &str) -> Option<()> {
            let opened = root.try_directory(directory).ok()?;
            if fstat(&opened).ok()?.st_dev != root.device() {
                return None;
            }
            // The very directory that was opened, wherever its name leads by now.
            let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
            self.watched.insert(add_watch(self.told.as_ref()?, path, CHANGES).ok()?);
            Some(())
        }

        /// How often something was told, with what is told now.
        fn changes_by_now(&mut self) -> u64 {
            let Some(told) = &self.told else { return self.changes };
            let mut buffer = [0; TOLD_BYTES];
            for _ in 0..TOLD_PIECES {
                match read(told, &mut buffer) {
                    Err(Errno::AGAIN) => return self.changes,
                    Ok(1..) => self.changes += 1,
                    Ok(_) | Err(_) => break,
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
    use crate::store::Quiet;
    use crate::store::local::root::Root;

    /// Watches nothing.
    #[derive(Debug, Default)]
    pub(in crate::store::local) struct Watcher;

    impl Watcher {
        pub(in crate::store::local) fn watch(&self, _root: &Root, _keys: &[StoreKey]) -> Option<Quiet> {
            None
        }

        pub(in crate::store::local) fn is_quiet(&self, _since: Quiet) -> bool {
            false
        }
    }
}

//! [`NewDirectories`]: the directories that this process created and that may not be durable yet.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Directories made here that may not be on the disk yet, and which making of each was the last.
#[derive(Debug, Default)]
pub(super) struct NewDirectories(Mutex<Notes>);

#[derive(Debug, Default)]
struct Notes {
    made: BTreeMap<String, u64>,
    count: u64,
}

impl NewDirectories {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, directory: &str) {
        let mut notes = self.notes();
        notes.count += 1;
        let count = notes.count;
        notes.made.insert(directory.to_owned(), count);
    }

    pub(super) fn noted(&self, directory: &str) -> Option<u64> {
        self.notes().made.get(directory).copied()
    }

    /// Strikes a directory off, unless it was removed and made again since it was looked up.
    pub(super) fn strike(&self, directory: &str, noted: u64) {
        let mut notes = self.notes();
        if notes.made.get(directory) == Some(&noted) {
            notes.made.remove(directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_made_again_while_it_is_made_durable_stays_noted() {
        let directories = NewDirectories::default();
        directories.note("a");
        let noted = directories.noted("a").unwrap();
        directories.note("a");
        directories.strike("a", noted);
        let again = directories.noted("a").expect("it is another directory");
        directories.strike("a", again);
        assert_eq!(directories.noted("a"), None);
    }
}

//! [`NewDirectories`]: the directories that this process created and that may not be durable yet.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Directories that this process created and that may not be on the disk yet, each with the number of its last
/// creation.
#[derive(Debug, Default)]
pub(super) struct NewDirectories(Mutex<Records>);

#[derive(Debug, Default)]
struct Records {
    created: BTreeMap<String, u64>,
    count: u64,
}

impl NewDirectories {
    fn records(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn record(&self, directory: &str) {
        let mut records = self.records();
        records.count += 1;
        let count = records.count;
        records.created.insert(directory.to_owned(), count);
    }

    pub(super) fn recorded(&self, directory: &str) -> Option<u64> {
        self.records().created.get(directory).copied()
    }

    /// Removes the record of a directory, unless the directory was removed and created again since the lookup.
    pub(super) fn remove(&self, directory: &str, recorded: u64) {
        let mut records = self.records();
        if records.created.get(directory) == Some(&recorded) {
            records.created.remove(directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_created_again_during_its_sync_stays_recorded() {
        let directories = NewDirectories::default();
        directories.record("a");
        let recorded = directories.recorded("a").unwrap();
        directories.record("a");
        directories.remove("a", recorded);
        let again = directories.recorded("a").expect("it is another directory");
        directories.remove("a", again);
        assert_eq!(directories.recorded("a"), None);
    }
}

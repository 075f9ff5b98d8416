//! What a directory does that other stores do not.

mod faults;
mod links;
mod nonblocking;
mod races;
mod tree;
mod watch;
mod writes;

use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Durability, LocalOptions, LocalStore, Symlinks};
use crate::store::StoreError;
use crate::store::reserved_keys::RESERVED;

/// A writable store in a directory of its own. Without fsync: its promise is power's, and cannot be seen here.
fn store() -> (TempDir, LocalStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = writable(directory.path());
    (directory, store)
}

fn writable(root: &Path) -> LocalStore {
    let durability = Durability::Rename;
    let options = LocalOptions { writable: true, durability, ..LocalOptions::default() };
    let start = Instant::now();
    loop {
        match LocalStore::open(root, &options) {
            // A store that was here before keeps the root until the last of its threads has tidied up.
            Err(StoreError::RootInUse(_)) if start.elapsed() < Duration::from_secs(10) => {
                std::thread::sleep(Duration::from_millis(1));
            }
            store => return store.unwrap(),
        }
    }
}

fn with_links(root: &Path, symlinks: Symlinks) -> LocalStore {
    LocalStore::open(root, &LocalOptions { symlinks, ..LocalOptions::default() }).unwrap()
}

/// The staging files below a root.
fn staged(root: &Path) -> Vec<std::path::PathBuf> {
    let staging = root.join(RESERVED).join("staging");
    std::fs::read_dir(staging).unwrap().map(|entry| entry.unwrap().path()).collect()
}

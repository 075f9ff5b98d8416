//! The last lookups of mounts, which are written at the end although the cache is still used, into a file of the cache's own.

use std::time::Instant;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

/// Lookups of the mount `m`: these keys, and when each was sent.
#[derive(Debug, Default)]
struct Sent(Mutex<Vec<(&'static str, Instant)>>);

impl Sent {
    fn now(names: &[&'static str]) -> Arc<Self> {
        let sent = Arc::new(Self::default());
        sent.send(names);
        sent
    }

    /// Lookups of these keys, in place of those before.
    fn send(&self, names: &[&'static str]) {
        let mut sent = self.0.lock().unwrap();
        sent.retain(|(known, _)| !names.contains(known));
        sent.extend(names.iter().map(|name| (*name, Instant::now())));
    }
}

impl LookupSource for Sent {
    fn lookups(&self) -> Vec<Lookup> {
        let info = ValueInfo { size: 7, version: Version::strong("tag"), modified: None };
        let lookup = |(name, sent): &(&str, Instant)| ("m".into(), key(name), Some(info.clone()), *sent);
        self.0.lock().unwrap().iter().map(lookup).collect()
    }
}

/// The keys of the lookups that the next server finds in the folder.
fn found(scene: &Scene) -> Vec<String> {
    let cache = opened(scene.folder.path(), scene.size);
    let _store = wrapped(&cache, &scene.remote, CachePolicy::Always);
    cache.take_lookups("m").into_iter().map(|(key, ..)| key.to_string()).collect()
}

#[tokio::test]
async fn lookups_are_written_at_the_end_although_the_cache_is_still_used() {
    let scene = Scene::new(4 * MIB);
    let (store, sent) = (scene.store(), Sent::now(&["a", "b"]));
    scene.cache().keep_lookups(Arc::clone(&sent) as Arc<dyn LookupSource>);
    scene.cache().purge("m", &StorePrefix::root());
    sent.send(&["a", "b"]);
    scene.remote.put("a", "1", noise(1, 500));
    whole(&store, "a").await;
    // As of a store that a cache in memory does not release before the end of the process.
    scene.cache().close();
    assert_eq!(found(&scene), ["a", "b"]);
    assert_eq!(whole(&store, "a").await, noise(1, 500), "reads go on");
    scene.cache().close();
}

#[tokio::test]
async fn lookups_from_before_a_purge_of_them_are_not_written_and_those_that_were_not_purged_are() {
    let scene = Scene::new(4 * MIB);
    let (_store, sent) = (scene.store(), Sent::now(&["a/x", "a/y", "b/x"]));
    scene.cache().keep_lookups(Arc::clone(&sent) as Arc<dyn LookupSource>);
    scene.cache().purge("m", &StorePrefix::parse("a/").unwrap());
    sent.send(&["a/y"]);
    scene.cache().close();
    assert_eq!(found(&scene), ["b/x", "a/y"]);

    let scene = Scene::new(4 * MIB);
    let (_store, sent) = (scene.store(), Sent::now(&["a/x", "b/x"]));
    scene.cache().keep_lookups(Arc::clone(&sent) as Arc<dyn LookupSource>);
    // More than are kept apart.
    for _ in 0..300 {
        scene.cache().purge("m", &StorePrefix::parse("a/").unwrap());
    }
    scene.cache().close();
    assert_eq!(found(&scene), [""; 0]);
}

#[tokio::test]
async fn a_link_or_a_pipe_in_place_of_the_file_that_is_written_is_replaced() {
    for is_link in [true, false] {
        let scene = Scene::new(4 * MIB);
        let store = scene.store();
        let victim = tempfile::NamedTempFile::new().unwrap();
        fs::write(victim.path(), "precious").unwrap();
        let new = scene.folder.path().join("lookups.new");
        if is_link {
            std::os::unix::fs::symlink(victim.path(), &new).unwrap();
        } else {
            mknodat(CWD, &new, FileType::Fifo, Mode::RWXU, 0).unwrap();
        }
        scene.cache().keep_lookups(Sent::now(&["a"]));
        scene.cache().close();
        assert_eq!(fs::read(victim.path()).unwrap(), b"precious", "link: {is_link}");
        assert!(fs::symlink_metadata(scene.folder.path().join("lookups")).unwrap().is_file());
        assert_eq!(found(&scene), ["a"]);
        drop(store);
    }
}

#[tokio::test]
async fn lookups_are_read_from_no_link_and_no_pipe() {
    let written = Scene::new(4 * MIB);
    let _store = written.store();
    written.cache().keep_lookups(Sent::now(&["a"]));
    written.cache().close();
    for is_link in [true, false] {
        let mut scene = Scene::new(4 * MIB);
        let lookups = scene.folder.path().join("lookups");
        if is_link {
            std::os::unix::fs::symlink(written.folder.path().join("lookups"), &lookups).unwrap();
        } else {
            mknodat(CWD, &lookups, FileType::Fifo, Mode::RWXU, 0).unwrap();
        }
        scene.cache = None;
        assert_eq!(found(&scene), [""; 0], "link: {is_link}");
    }
}

#[tokio::test]
async fn a_link_or_a_pipe_is_no_lock() {
    for is_link in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (cache, victim) = (folder.path().join("cache"), folder.path().join("victim"));
        fs::create_dir(&cache).unwrap();
        if is_link {
            std::os::unix::fs::symlink(&victim, cache.join("lock")).unwrap();
        } else {
            mknodat(CWD, cache.join("lock"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        }
        let outcome = DiskCache::open(&options(&cache, 4 * MIB));
        assert!(matches!(outcome, Err(DiskCacheError::Directory { .. })), "link: {is_link}: {outcome:?}");
        assert!(!victim.exists());
    }
}

//! Symbolic links: no key leads out of the root.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use super::*;
use crate::store::tests::{body, key, keys, prefix, read};
use crate::store::{Store, StoreError, WriteCondition};

/// A root with links of every kind, and a directory outside of it.
fn tree() -> (TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let (root, outside) = (directory.path().join("root"), directory.path().join("outside"));
    for made in [root.join("inside"), outside.clone()] {
        std::fs::create_dir_all(made).unwrap();
    }
    std::fs::write(root.join("inside/file"), "inside").unwrap();
    std::fs::write(outside.join("file"), "outside").unwrap();
    let link = |to: &Path, name: &str| symlink(to, root.join(name)).unwrap();
    link(Path::new("inside/file"), "link-in");
    link(Path::new("inside"), "directory-in");
    link(Path::new("link-in"), "link-to-link");
    link(Path::new("../outside/file"), "link-out");
    link(Path::new("../outside"), "directory-out");
    link(&outside.join("file"), "absolute-out");
    link(&root.join("inside/file"), "absolute-in");
    link(Path::new("loop"), "loop");
    link(Path::new("."), "here");
    link(Path::new("nowhere"), "dangling");
    link(Path::new("/proc/self/root"), "magic");
    (directory, root)
}

/// Names are resolved one segment at a time, as where the kernel cannot.
fn resolve_by_hand_unless(by_kernel: bool, store: &mut LocalStore) {
    let root = &mut Arc::get_mut(&mut store.area).unwrap().root;
    root.by_kernel = by_kernel;
    root.now &= by_kernel;
}

const OUT: [&str; 4] = ["link-out", "directory-out/file", "absolute-out", "magic/etc/passwd"];

#[tokio::test]
async fn by_default_a_link_is_no_key() {
    let (_directory, root) = tree();
    for by_kernel in [true, false] {
        let mut store = with_links(&root, Symlinks::Deny);
        resolve_by_hand_unless(by_kernel, &mut store);
        for text in OUT.iter().chain(&[
            "link-in",
            "directory-in/file",
            "link-to-link",
            "loop",
            "dangling",
            "here/inside/file",
        ]) {
            assert_eq!(read(&store, text).await, None, "{text}");
            assert_eq!(store.head(&key(text)).await.unwrap(), None, "{text}");
        }
        assert_eq!(read(&store, "inside/file").await.unwrap(), "inside");
        assert_eq!(keys(&store, "").await, ["inside/file"]);
        assert_eq!(store.list_dir(&prefix("")).await.unwrap().prefixes, [prefix("inside/")]);
        assert!(keys(&store, "directory-out/").await.is_empty());
    }
}

#[tokio::test]
async fn links_within_the_root_are_followed_if_that_is_allowed() {
    let (_directory, root) = tree();
    let store = with_links(&root, Symlinks::Within);
    for text in OUT.iter().chain(&["loop", "dangling", "absolute-in"]) {
        assert_eq!(read(&store, text).await, None, "{text}");
    }
    for text in ["link-in", "directory-in/file", "link-to-link", "here/inside/file"] {
        assert_eq!(read(&store, text).await.unwrap(), "inside", "{text}");
    }
    let listed = keys(&store, "").await;
    assert_eq!(
        listed,
        ["directory-in/file", "inside/file", "link-in", "link-to-link"],
        "and a link to above ends"
    );
}

#[tokio::test]
async fn links_that_lead_in_circles_make_no_endless_ways_through_directories_without_keys() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    // From each of these there are three ways on, 64 levels deep: whoever tries all of them never ends.
    for (made, next) in [("a", "b"), ("b", "c"), ("c", "a")] {
        std::fs::create_dir(root.join(made)).unwrap();
        for (link, to) in [("x", "."), ("y", &*format!("../{next}")), ("z", "..")] {
            symlink(to, root.join(made).join(link)).unwrap();
        }
    }
    for policy in [Symlinks::Within, Symlinks::Follow] {
        let store = with_links(root, policy);
        assert_eq!(store.list_dir(&prefix("")).await.unwrap().prefixes, []);
        assert!(keys(&store, "a/").await.is_empty());
    }
    std::fs::write(root.join("c/file"), "found").unwrap();
    let store = with_links(root, Symlinks::Within);
    let found = store.list_dir(&prefix("")).await.unwrap().prefixes;
    assert_eq!(found, [prefix("a/"), prefix("b/"), prefix("c/")]);
}

#[tokio::test]
async fn all_links_are_followed_if_the_operator_says_so() {
    let (_directory, root) = tree();
    let store = with_links(&root, Symlinks::Follow);
    for text in ["link-out", "directory-out/file", "absolute-out"] {
        assert_eq!(read(&store, text).await.unwrap(), "outside", "{text}");
    }
    for text in ["loop", "dangling"] {
        assert_eq!(read(&store, text).await, None, "{text}");
    }
}

#[tokio::test]
async fn nothing_is_written_through_a_link() {
    let (directory, root) = tree();
    for by_kernel in [true, false] {
        let mut store = writable(&root);
        resolve_by_hand_unless(by_kernel, &mut store);
        for text in ["directory-out/new", "directory-in/new", "directory-out/a/b", "magic/tmp/zarrd-new"] {
            let error = store.set(&key(text), body("x"), WriteCondition::Always).await.unwrap_err();
            assert!(matches!(error, StoreError::InvalidKey(_) | StoreError::KeyClash), "{text}: {error:?}");
            assert!(!store.erase(&key(text), WriteCondition::Always).await.unwrap());
        }
        assert!(!store.erase(&key("directory-out/file"), WriteCondition::Always).await.unwrap());
        assert!(staged(&root).is_empty());
    }
    assert_eq!(std::fs::read_dir(directory.path().join("outside")).unwrap().count(), 1);
    assert_eq!(std::fs::read(directory.path().join("outside/file")).unwrap(), b"outside");

    // A link in the value's own place is replaced, and what it led to stays.
    let store = writable(&root);
    store.set(&key("link-out"), body("new"), WriteCondition::Always).await.unwrap();
    assert_eq!(read(&store, "link-out").await.unwrap(), "new");
    assert_eq!(std::fs::read(directory.path().join("outside/file")).unwrap(), b"outside");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_put_in_place_of_a_directory_while_it_is_read_never_leads_out() {
    let (_directory, root) = tree();
    let stop = Arc::new(AtomicBool::new(false));
    let swap = {
        let (root, stop) = (root.clone(), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut swaps = 0;
            while !stop.load(Ordering::Relaxed) {
                std::fs::rename(root.join("inside"), root.join("aside")).unwrap();
                symlink("../outside", root.join("inside")).unwrap();
                std::fs::remove_file(root.join("inside")).unwrap();
                std::fs::rename(root.join("aside"), root.join("inside")).unwrap();
                swaps += 1;
            }
            swaps
        })
    };
    let mut found = 0;
    for policy in [Symlinks::Deny, Symlinks::Within] {
        let store = with_links(&root, policy);
        for _ in 0..3_000 {
            if let Some(bytes) = read(&store, "inside/file").await {
                assert_eq!(bytes, "inside");
                found += 1;
            }
        }
    }
    let mut store = with_links(&root, Symlinks::Deny);
    resolve_by_hand_unless(false, &mut store);
    for _ in 0..3_000 {
        if let Some(bytes) = read(&store, "inside/file").await {
            assert_eq!(bytes, "inside");
            found += 1;
        }
    }
    stop.store(true, Ordering::Relaxed);
    assert!(swap.join().unwrap() > 0 && found > 0);
}

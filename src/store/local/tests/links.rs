//! Symbolic links: no key leads out of the root.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tempfile::TempDir;

use super::writes::nothing_is_staged;
use super::*;
use crate::store::tests::{body, key, keys, prefix, read};
use crate::store::{ByteRange, LinkFault, Shortcuts, Store, StoreError, WriteCondition};

/// A root with links of every kind, and a directory outside of it.
fn tree() -> (TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let (root, outside) = (directory.path().join("root"), directory.path().join("outside"));
    for created in [root.join("inside"), outside.clone()] {
        std::fs::create_dir_all(created).unwrap();
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
    link(Path::new("file/none"), "inside/below-a-file");
    link(Path::new("/proc/self/root"), "magic");
    (directory, root)
}

/// Names are resolved one segment at a time, as where the kernel cannot.
fn resolve_by_hand_unless(by_kernel: bool, store: &mut LocalStore) {
    let root = &mut Arc::get_mut(&mut store.shared).unwrap().root;
    root.by_kernel = by_kernel;
    root.nonblocking &= by_kernel;
}

/// Keys at and behind links that lead out of the root, and why they are refused.
const OUT: [(&str, LinkFault); 6] = [
    ("link-out", LinkFault::LeadsOut),
    ("directory-out/file", LinkFault::LeadsOut),
    ("directory-out/none", LinkFault::LeadsOut),
    ("absolute-out", LinkFault::LeadsOut),
    ("absolute-in", LinkFault::LeadsOut),
    ("magic/etc/passwd", LinkFault::LeadsOut),
];
/// Keys at and behind links that lead nowhere.
const BAD: [(&str, LinkFault); 3] =
    [("loop", LinkFault::Loops), ("dangling", LinkFault::Dangles), ("dangling/c/0", LinkFault::Dangles)];
/// Keys at and behind links that lead to a file below the root.
const GOOD: [&str; 4] = ["link-in", "directory-in/file", "link-to-link", "here/inside/file"];

/// Every verb fails with this fault for the key, and never reports it as absent.
async fn refuses(store: &LocalStore, text: &str, expected: LinkFault) {
    let fault = |error: StoreError| match error {
        StoreError::Link { key, fault } => (key.to_string(), fault),
        error => panic!("{text}: {error:?}"),
    };
    let expected = (text.to_owned(), expected);
    assert_eq!(fault(store.head(&key(text)).await.unwrap_err()), expected);
    assert_eq!(fault(store.get(&key(text), ByteRange::Whole, None).await.unwrap_err()), expected);
    assert!(!store.validate_cached(&key(text), None), "{text}");
}

#[tokio::test]
async fn unfollowed_links_are_rejected_and_not_absent() {
    let (_directory, root) = tree();
    for (policy, by_kernel) in [(Symlinks::Deny, true), (Symlinks::Deny, false), (Symlinks::Within, false)] {
        let mut store = with_links(&root, policy);
        resolve_by_hand_unless(by_kernel, &mut store);
        let bad = OUT.iter().chain(&BAD).map(|(text, _)| *text);
        for text in bad.chain(GOOD) {
            refuses(&store, text, LinkFault::Refused).await;
        }
        assert_eq!(read(&store, "inside/file").await.unwrap(), "inside");
        assert_eq!(read(&store, "inside/none").await, None);
        let links = ["absolute-in", "absolute-out", "dangling", "directory-in", "directory-out", "here"];
        let more =
            ["inside/below-a-file", "inside/file", "link-in", "link-out", "link-to-link", "loop", "magic"];
        assert_eq!(
            keys(&store, "").await,
            [&links[..], &more].concat(),
            "they are seen, and refused when read"
        );
        assert_eq!(store.list_dir(&prefix("")).await.unwrap().prefixes, [prefix("inside/")]);
        let below = store.list_dir(&prefix("directory-out/")).await;
        assert!(matches!(below, Err(StoreError::Link { .. })), "{below:?}");
    }
}

#[tokio::test]
async fn links_within_the_root_are_followed_by_default_and_others_rejected() {
    let (_directory, root) = tree();
    assert_eq!(LocalOptions::default().symlinks, Symlinks::Within);
    let store = with_links(&root, Symlinks::Within);
    for (text, fault) in OUT.iter().chain(&BAD) {
        refuses(&store, text, *fault).await;
    }
    for text in GOOD {
        assert_eq!(read(&store, text).await.unwrap(), "inside", "{text}");
    }
    for absent in [
        "link-in/below",
        "link-in/far/below",
        "directory-in/none",
        "directory-in/none/below",
        "here/none",
        "here/link-in/below",
        "inside/none",
        "none/none",
    ] {
        assert_eq!(read(&store, absent).await, None, "{absent}");
        assert!(keys(&store, &format!("{absent}/")).await.is_empty(), "{absent}");
    }
    let listed = keys(&store, "").await;
    let files = ["directory-in/file", "inside/file", "link-in", "link-to-link"];
    let refused = [
        "absolute-in",
        "absolute-out",
        "dangling",
        "directory-in/below-a-file",
        "directory-out",
        "inside/below-a-file",
        "link-out",
        "loop",
        "magic",
    ];
    assert!(listed.is_sorted());
    let mut expected = [&files[..], &refused].concat();
    expected.sort_unstable();
    assert_eq!(listed, expected, "and a link to above ends");
}

#[tokio::test]
async fn no_link_leads_to_the_stores_own_files() {
    let (_directory, root) = tree();
    let store = writable(&root);
    symlink(".zarr-server", root.join("own")).unwrap();
    symlink(".zarr-server/lock", root.join("lock")).unwrap();
    for text in ["own/lock", "own/staging/x", "lock"] {
        let found = store.head(&key(text)).await;
        assert!(matches!(found, Err(StoreError::Link { .. })), "{text}: {found:?}");
    }
    let written = store.set(&key("own/staging/x"), body("x"), WriteCondition::Always).await;
    assert!(matches!(written, Err(StoreError::InvalidKey(_))), "{written:?}");
}

#[tokio::test]
async fn circular_links_do_not_make_a_walk_endless() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    // From each of these there are three paths on, 64 levels deep: a walk of all of them never ends.
    for (created, next) in [("a", "b"), ("b", "c"), ("c", "a")] {
        std::fs::create_dir(root.join(created)).unwrap();
        for (link, to) in [("x", "."), ("y", &*format!("../{next}")), ("z", "..")] {
            symlink(to, root.join(created).join(link)).unwrap();
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
async fn links_out_of_the_root_are_followed_if_configured() {
    let (_directory, root) = tree();
    let store = with_links(&root, Symlinks::Follow);
    for text in ["link-out", "directory-out/file", "absolute-out"] {
        assert_eq!(read(&store, text).await.unwrap(), "outside", "{text}");
    }
    for (text, fault) in BAD {
        refuses(&store, text, fault).await;
    }
}

#[tokio::test]
async fn nothing_is_written_through_a_link_out_of_the_root() {
    let (directory, root) = tree();
    for by_kernel in [true, false] {
        let mut store = writable(&root);
        resolve_by_hand_unless(by_kernel, &mut store);
        for text in ["directory-out/new", "dangling/new", "directory-out/a/b", "magic/tmp/zarrd-new"] {
            let error = store.set(&key(text), body("x"), WriteCondition::Always).await.unwrap_err();
            assert!(matches!(error, StoreError::InvalidKey(_)), "{text}: {error:?}");
            let error = store.erase(&key(text), WriteCondition::Always).await.unwrap_err();
            assert!(matches!(error, StoreError::Link { .. }), "{text}: {error:?}");
        }
        assert!(store.erase(&key("directory-out/file"), WriteCondition::Always).await.is_err());
        nothing_is_staged(&root).await;
    }
    assert_eq!(std::fs::read_dir(directory.path().join("outside")).unwrap().count(), 1);
    assert_eq!(std::fs::read(directory.path().join("outside/file")).unwrap(), b"outside");

    // A link in the value's own place is replaced, and what it led to stays.
    let store = writable(&root);
    store.set(&key("link-out"), body("new"), WriteCondition::Always).await.unwrap();
    assert_eq!(read(&store, "link-out").await.unwrap(), "new");
    assert_eq!(std::fs::read(directory.path().join("outside/file")).unwrap(), b"outside");

    // And so is one erased that leads to no value.
    for text in ["dangling", "loop", "absolute-out"] {
        let held = store.erase(&key(text), WriteCondition::IfAbsent).await;
        assert!(matches!(held, Err(StoreError::Link { .. })), "{text}: {held:?}");
        assert!(store.erase(&key(text), WriteCondition::Always).await.unwrap());
        assert_eq!(read(&store, text).await, None);
    }
    assert_eq!(std::fs::read(directory.path().join("outside/file")).unwrap(), b"outside");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_put_in_place_of_a_directory_while_it_is_read_never_leads_out() {
    let (_directory, root) = tree();
    let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let swap = {
        let (root, stop, swaps) = (root.clone(), Arc::clone(&stop), Arc::clone(&swaps));
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                std::fs::rename(root.join("inside"), root.join("aside")).unwrap();
                symlink("../outside", root.join("inside")).unwrap();
                std::fs::remove_file(root.join("inside")).unwrap();
                std::fs::rename(root.join("aside"), root.join("inside")).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let mut by_hand = with_links(&root, Symlinks::Deny);
    resolve_by_hand_unless(false, &mut by_hand);
    for store in [with_links(&root, Symlinks::Deny), with_links(&root, Symlinks::Within), by_hand] {
        let (before, mut reads, mut found) = (swaps.load(Ordering::Relaxed), 0, 0);
        // Until enough was read, and enough was swapped meanwhile.
        while reads < 3_000 || found == 0 || swaps.load(Ordering::Relaxed) < before + 100 {
            reads += 1;
            // While the link is there, the read may be refused.
            let value = store.get(&key("inside/file"), ByteRange::Whole, None).await;
            if let Ok(Some(value)) = value {
                assert_eq!(value.bytes(1 << 30).await.unwrap(), "inside");
                found += 1;
            }
            assert!(!swap.is_finished(), "the directory cannot be swapped");
        }
    }
    stop.store(true, Ordering::Relaxed);
    swap.join().unwrap();
}

#[tokio::test]
async fn a_place_has_one_name_however_many_links_lead_there() {
    let (_directory, root) = tree();
    symlink("../inside", root.join("inside/back")).unwrap();
    for by_kernel in [true, false] {
        for (symlinks, follows) in
            [(Symlinks::Deny, false), (Symlinks::Within, true), (Symlinks::Follow, true)]
        {
            let options = LocalOptions { symlinks, ..LocalOptions::default() };
            let mut store = LocalStore::open(&root, &options).unwrap();
            resolve_by_hand_unless(by_kernel, &mut store);
            for (named, place) in [
                ("", ""),
                ("inside/", "inside"),
                ("inside/none/deeper/", "inside/none/deeper"),
                ("none/deeper/", "none/deeper"),
                ("directory-in/", "inside"),
                ("directory-in/none/deeper/", "inside/none/deeper"),
                ("inside/back/back/x/", "inside/x"),
                ("here/here/inside/", "inside"),
                ("here/", ""),
            ] {
                let name = store.place_name(&prefix(named)).await.unwrap();
                let expected = if follows { place } else { named.trim_end_matches('/') };
                assert_eq!(String::from_utf8(name).unwrap(), expected, "{named} {symlinks:?} {by_kernel}");
            }
            // Behind a link that is not followed there is no array.
            let out = store.place_name(&prefix("directory-out/")).await.unwrap();
            assert_eq!(out.ends_with(b"outside"), follows, "{symlinks:?}");
        }
    }
}

//! What is admitted to the disk, what is evicted, and what a purge removes.

use super::*;

#[tokio::test]
async fn the_files_never_take_more_than_their_size() {
    let mut scene = Scene::new(4 * MIB);
    for round in 0..3 {
        for number in 0..60 {
            let name = format!("{round}/{number}");
            scene.remote.put(&name, "1", noise(number, 200_000));
            // The second read admits it.
            for _ in 0..2 {
                assert_eq!(whole(&scene.store(), &name).await, noise(number, 200_000));
            }
            scene.cache().flush();
            assert!(scene.bytes_on_disk() <= 4 * MIB as u64, "{}", scene.bytes_on_disk());
        }
        scene.restart();
    }
    assert!(scene.bytes_on_disk() > 2 * MIB as u64, "{}", scene.bytes_on_disk());
    scene.cache = None;
    scene.cache = Some(opened(scene.folder.path(), 4 * MIB));
    let smaller = options(scene.folder.path(), 4 * MIB);
    scene.cache = None;
    let smaller = DiskCacheOptions { index_size: 128 << 10, ..smaller };
    let cache = DiskCache::open(&smaller).unwrap().unwrap();
    assert!(cache.engine().state().index.parts() <= (128 << 10) * 7 / 8 / 192);
}

#[tokio::test]
async fn a_scan_does_not_evict_what_is_used() {
    let scene = Scene::new(8 * MIB);
    let store = scene.store();
    let (hot, scanned, rounds) = (96, 1200, 8);
    let value = |number: usize| noise(number, 8_000);
    for number in 0..hot + rounds * scanned {
        scene.remote.put(&format!("v/{number}"), "1", value(number));
    }
    let (mut reads, mut misses) = (0, 0);
    for round in 0..rounds {
        // Between two reads of what is used, more is scanned than fits into the cache. Some of it is read twice, so that
        // segments are evicted all the time.
        let scan = hot + round * scanned..hot + (round + 1) * scanned;
        let twice = scan.clone().step_by(12);
        for number in (0..hot).chain(scan).chain(twice) {
            scene.remote.requests();
            assert_eq!(whole(&store, &format!("v/{number}")).await, value(number));
            // By then, all of that was read twice while the cache was full.
            if number < hot && round > 2 {
                reads += 1;
                misses += scene.remote.requests().1;
            }
            scene.cache().flush();
        }
    }
    assert!(scene.cache().usage()[0].1.evictions > 300);
    assert!(misses * 50 < reads, "{misses} of {reads} reads of what is used were misses");
}

#[tokio::test]
async fn what_is_prefetched_is_admitted_at_once() {
    let scene = Scene::new(4 * MIB);
    let store = scene.store();
    for number in 0..40 {
        scene.remote.put(&format!("scan/{number}"), "1", noise(number, 200_000));
        whole(&store, &format!("scan/{number}")).await;
        scene.cache().flush();
    }
    scene.remote.put("a/b", "1", noise(1, 1000));
    whole(&store, "a/b").await;
    scene.cache().flush();
    whole(&store, "a/b").await;
    scene.remote.put("a/c", "1", noise(2, 1000));
    let admitted = scene.cache().admit_all("m", &StorePrefix::parse("a/").unwrap());
    whole(&store, "a/c").await;
    scene.cache().flush();
    drop(admitted);
    scene.remote.requests();
    whole(&store, "a/c").await;
    assert_eq!(scene.remote.requests(), (1, 0));
}

#[tokio::test]
async fn a_purge_holds_at_once_and_after_a_restart() {
    let mut scene = Scene::new(16 * MIB);
    for name in ["a/x", "ab/x", "b/x"] {
        scene.remote.put(name, "1", noise(1, 1000));
        whole(&scene.store(), name).await;
    }
    scene.cache().flush();
    assert!(scene.cache().purge("m", &StorePrefix::parse("a/").unwrap()).is_durable);
    let gets = async |scene: &Scene, name: &str| {
        scene.remote.requests();
        // Changed without another version: this is what a purge is for.
        whole(&scene.store(), name).await;
        scene.remote.requests().1
    };
    // Not written again by this read, so that the restart reads the purge.
    scene.cache().engine().generation.advance();
    scene.restart();
    assert_eq!((gets(&scene, "a/x").await, gets(&scene, "ab/x").await, gets(&scene, "b/x").await), (1, 0, 0));
    scene.cache().flush();
    assert_eq!(gets(&scene, "a/x").await, 0, "it was written again");
    scene.cache().purge("m", &StorePrefix::root());
    assert_eq!((gets(&scene, "a/x").await, gets(&scene, "b/x").await), (1, 1));
    assert!(scene.cache().purge("other", &StorePrefix::root()).is_durable, "nothing of it was cached");
}

#[tokio::test]
async fn a_purge_that_can_neither_be_written_nor_empty_the_directory_says_that_it_is_not_durable() {
    let scene = Scene::new(16 * MIB);
    scene.remote.put("a/x", "1", noise(1, 1000));
    whole(&scene.store(), "a/x").await;
    scene.cache().flush();
    let name = scene.files().pop().unwrap();
    fs::remove_file(&name).unwrap();
    fs::create_dir(&name).unwrap();
    // More purges than are kept: the next empties the directory in place of being written.
    let outcomes: Vec<bool> = (0..300)
        .map(|_| scene.cache().purge("m", &StorePrefix::parse("a/").unwrap()).is_durable)
        .take_while(|is_durable| *is_durable)
        .collect();
    assert!(outcomes.len() < 300, "a purge was called durable, and its file is still there");
    let requests = |scene: &Scene| scene.remote.requests().1;
    requests(&scene);
    whole(&scene.store(), "a/x").await;
    assert_eq!(requests(&scene), 1, "in this process it holds all the same");
}

#[tokio::test]
async fn a_purge_holds_while_what_was_read_of_its_segment_is_written_again() {
    // However many segments are written after it: the purged value was read, so it is written again if nothing prevents that.
    for others in (20..=110).step_by(6) {
        let scene = Scene::new(4 * MIB);
        let store = wrapped(scene.cache(), &scene.remote, CachePolicy::Immutable);
        let read_twice = async |name: String| {
            scene.remote.put(&name, "1", noise(2, 60_000));
            for _ in 0..2 {
                whole(&store, &name).await;
                scene.cache().flush();
            }
        };
        for at in 0..70 {
            read_twice(format!("first/{at}")).await;
        }
        scene.remote.put("a", "1", noise(1, 4000));
        for _ in 0..4 {
            whole(&store, "a").await;
            scene.cache().flush();
        }
        scene.remote.requests();
        whole(&store, "a").await;
        assert_eq!(scene.remote.requests(), (0, 0), "it is on the disk");
        scene.cache().purge("m", &StorePrefix::root());
        for at in 0..others {
            read_twice(format!("then/{at}")).await;
        }
        scene.remote.requests();
        whole(&store, "a").await;
        assert_eq!(scene.remote.requests().1, 1, "after {others} other values");
    }
}

#[tokio::test]
async fn a_mount_that_is_served_with_other_options_keeps_what_is_on_the_disk() {
    let scene = Scene::new(16 * MIB);
    scene.remote.put("a", "1", noise(1, 1000));
    whole(&scene.store(), "a").await;
    scene.cache().flush();
    let policy = CachePolicy::Always;
    let mount = CachedMount { name: "m", cache_name: "m-2", place: "here", policy, writable: false };
    let store = scene.cache().wrap(&mount, Arc::clone(&scene.remote) as SharedStore);
    scene.cache().drop_mount("m");
    scene.remote.requests();
    whole(&store, "a").await;
    assert_eq!(scene.remote.requests(), (1, 0));
    scene.cache().drop_mount("m-2");
    whole(&store, "a").await;
    assert_eq!(scene.remote.requests().1, 1);
}

#[tokio::test]
async fn a_read_that_began_before_a_purge_is_not_written() {
    let scene = Scene::new(16 * MIB);
    scene.remote.put("a", "1", noise(1, 1000));
    let value = scene.store().get(&key("a"), ByteRange::Whole, None).await.unwrap().unwrap();
    scene.cache().purge("m", &StorePrefix::root());
    value.bytes(1000).await.unwrap();
    scene.cache().flush();
    scene.remote.requests();
    whole(&scene.store(), "a").await;
    assert_eq!(scene.remote.requests(), (0, 1));
}

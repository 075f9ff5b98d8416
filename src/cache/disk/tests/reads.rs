//! What is read through the cache is what the store has.

use futures::future::join_all;

use super::super::engine::{Unread, ValueName};
use super::super::record::MAX_DATA;
use super::super::segment::Wait;
use super::*;

#[tokio::test]
async fn what_was_read_before_a_restart_costs_one_head_after_it() {
    let mut scene = Scene::new(16 * MIB);
    scene.remote.put("a/b", "1", noise(1, 100_000));
    assert_eq!(whole(&scene.store(), "a/b").await, noise(1, 100_000));
    assert_eq!(scene.remote.requests(), (0, 1));
    scene.cache().flush();
    assert_eq!(whole(&scene.store(), "a/b").await, noise(1, 100_000));
    assert_eq!(scene.remote.requests(), (1, 0));
    scene.restart();
    let store = scene.store();
    assert_eq!(whole(&store, "a/b").await, noise(1, 100_000));
    assert_eq!(scene.remote.requests(), (1, 0));
    let pinned = store.get(&key("a/b"), ByteRange::Suffix(10), Some(&Version::strong("1"))).await;
    assert_eq!(pinned.unwrap().unwrap().bytes(10).await.unwrap(), noise(1, 100_000)[99_990..]);
    assert_eq!(scene.remote.requests(), (0, 0), "the caller knows the version");
    assert_eq!(scene.reads(), DiskReads { hits: 2, misses: 0, hit_bytes: 100_010 });
}

#[tokio::test]
async fn a_changed_version_has_its_own_bytes_and_an_erased_value_has_none() {
    let mut scene = Scene::new(16 * MIB);
    for (tag, seed) in [("1", 1), ("2", 2), ("3", 3)] {
        scene.remote.put("a", tag, noise(seed, 1000));
        for _ in 0..2 {
            assert_eq!(whole(&scene.store(), "a").await, noise(seed, 1000));
            scene.cache().flush();
        }
        scene.restart();
    }
    let stale = scene.store().get(&key("a"), ByteRange::Whole, Some(&Version::strong("2"))).await;
    assert!(matches!(stale, Err(StoreError::VersionChanged)), "{stale:?}");
    scene.remote.values.lock().unwrap().clear();
    assert!(scene.store().get(&key("a"), ByteRange::Whole, None).await.unwrap().is_none());
}

#[tokio::test]
async fn every_range_of_a_long_value_is_the_same_from_the_disk() {
    let mut scene = Scene::new(64 * MIB);
    let size = 5 * MIB as u64 + 17;
    let bytes = noise(7, 5 * MIB + 17);
    scene.remote.put("long", "1", bytes.clone());
    assert_eq!(whole(&scene.store(), "long").await, bytes);
    scene.cache().flush();
    scene.restart();
    let (store, edge) = (scene.store(), MAX_DATA as u64);
    scene.remote.requests();
    for range in [
        ByteRange::Whole,
        ByteRange::Bounded(0, 1),
        ByteRange::Bounded(edge - 1, edge + 1),
        ByteRange::Bounded(edge, 2 * edge),
        ByteRange::Bounded(3, size - 3),
        ByteRange::From(size - 1),
        ByteRange::Suffix(17),
        ByteRange::Suffix(size + 5),
        ByteRange::Bounded(4 * edge - 7, 8 * edge + 9),
    ] {
        let expected = bytes.slice(slice(&range.resolve(size).unwrap()));
        assert_eq!(read(&store, "long", range).await, expected, "{range:?}");
        assert_eq!(scene.remote.requests(), (1, 0), "{range:?}");
    }
    let outside = store.get(&key("long"), ByteRange::From(size), None).await;
    assert!(matches!(outside, Err(StoreError::RangeNotSatisfiable { .. })), "{outside:?}");
}

#[tokio::test]
async fn only_what_was_fetched_is_cached() {
    let scene = Scene::new(16 * MIB);
    let bytes = noise(3, 2 * MIB);
    scene.remote.put("a", "1", bytes.clone());
    let store = scene.store();
    for (range, gets) in [
        (ByteRange::Bounded(1000, 2000), 1),
        (ByteRange::Bounded(1000, 2000), 0),
        (ByteRange::Bounded(1500, 1501), 0),
        (ByteRange::Bounded(1500, 2500), 1),
        (ByteRange::Bounded(1000, 2500), 0),
        (ByteRange::Bounded(999, 2500), 1),
        (ByteRange::Whole, 1),
        (ByteRange::Suffix(1), 0),
    ] {
        let expected = bytes.slice(slice(&range.resolve(2 * MIB as u64).unwrap()));
        assert_eq!(read(&store, "a", range).await, expected);
        assert_eq!(scene.remote.requests().1, gets, "{range:?}");
        scene.cache().flush();
    }
}

#[tokio::test]
async fn values_that_never_change_need_no_request_after_a_restart() {
    let mut scene = Scene::new(16 * MIB);
    scene.remote.put("a", "1", noise(1, 1000));
    whole(&scene.store(), "a").await;
    scene.cache().flush();
    scene.restart();
    scene.remote.requests();
    let store = wrapped(scene.cache(), &scene.remote, CachePolicy::Immutable);
    assert_eq!(whole(&store, "a").await, noise(1, 1000));
    let info = store.head(&key("a")).await.unwrap().unwrap();
    assert_eq!((info.size, info.version), (1000, Version::strong("1")));
    assert_eq!(scene.remote.requests(), (0, 0));
    let uncached = wrapped(scene.cache(), &scene.remote, CachePolicy::Uncached);
    whole(&uncached, "a").await;
    assert_eq!(scene.remote.requests(), (0, 1));
}

#[tokio::test]
async fn weak_versions_and_stores_of_this_machine_are_not_cached() {
    let scene = Scene::new(16 * MIB);
    let weak = (Version::weak("1"), noise(1, 1000));
    scene.remote.values.lock().unwrap().insert("a".to_owned(), weak);
    for _ in 0..2 {
        assert_eq!(whole(&scene.store(), "a").await, noise(1, 1000));
        assert_eq!(scene.remote.requests(), (0, 1));
        scene.cache().flush();
    }
    assert_eq!(scene.files().len(), 0);
}

#[tokio::test]
async fn a_long_read_goes_on_at_the_backend_where_the_disk_ends() {
    let scene = Scene::new(64 * MIB);
    let bytes = noise(5, 6 * MIB);
    scene.remote.put("long", "1", bytes.clone());
    let store = scene.store();
    whole(&store, "long").await;
    scene.cache().flush();
    let value = store.get(&key("long"), ByteRange::Whole, None).await.unwrap().unwrap();
    let ValueBody::Stream(mut body) = value.body else { panic!("it is short") };
    let mut read = body.try_next().await.unwrap().unwrap().to_vec();
    scene.cache().purge("m", &StorePrefix::root());
    scene.remote.requests();
    while let Some(part) = body.try_next().await.unwrap() {
        read.extend_from_slice(&part);
    }
    assert!(read == bytes);
    assert_eq!(scene.remote.requests(), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_at_the_same_time_as_writes_purges_and_evictions_are_right() {
    let scene = Arc::new(Scene::new(4 * MIB));
    let store = scene.store();
    for number in 0..64 {
        scene.remote.put(&format!("k/{number}"), "0", noise(number, 10_000 + number * 4_000));
    }
    let readers = (0..4).map(|reader| {
        let (scene, store) = (Arc::clone(&scene), Arc::clone(&store));
        tokio::spawn(async move {
            for step in 0..400 {
                let number = (step * (reader + 3) + step / 7) % 64;
                let name = format!("k/{number}");
                if reader == 0 && step % 10 == 0 {
                    let seed = number + 64 * step;
                    scene.remote.put(&name, &seed.to_string(), noise(seed, 10_000 + number * 4_000));
                }
                let value = store.get(&key(&name), ByteRange::Whole, None).await.unwrap().unwrap();
                let seed: usize = value.info.version.tag().parse().unwrap();
                let seed = if seed == 0 { number } else { seed };
                assert!(
                    value.bytes(u64::MAX).await.unwrap() == noise(seed, 10_000 + number * 4_000),
                    "{name}"
                );
                if reader == 1 && step % 50 == 0 {
                    let cache = scene.cache().clone();
                    let purge = move || cache.purge("m", &StorePrefix::parse("k/").unwrap());
                    std::thread::spawn(purge).join().unwrap();
                }
            }
        })
    });
    for ended in join_all(readers).await {
        ended.unwrap();
    }
    assert!(scene.reads().hits > 0, "{:?}", scene.reads());
    assert_eq!(scene.cache().disk_report().unwrap().damaged, 0);
}

#[tokio::test]
async fn what_the_system_no_longer_has_in_memory_is_read_from_the_disk_and_not_from_the_backend() {
    let mut scene = Scene::new(16 * MIB);
    scene.remote.put("a", "1", noise(1, 400_000));
    whole(&scene.store(), "a").await;
    scene.cache().flush();
    scene.restart();
    for path in scene.files() {
        let file = fs::File::open(path).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    }
    let engine = scene.cache().engine();
    let name = ValueName { scope: "m@here".into(), key: key("a") };
    let try_read = || {
        let parts = engine.covering(&name, None, &(0..400_000)).unwrap();
        engine.read((&name, None), &(0..400_000), &parts, Wait::Never).map(|(_, bytes)| bytes)
    };
    let found = try_read();
    // A file system in memory has it still.
    assert!(matches!(found, Err(Unread::WouldBlock) | Ok(_)), "{found:?}");
    scene.remote.requests();
    assert_eq!(whole(&scene.store(), "a").await, noise(1, 400_000));
    assert_eq!(scene.remote.requests(), (1, 0));
    let report = scene.cache().disk_report().unwrap();
    assert_eq!((report.damaged, report.failures), (0, 0));
    if crate::store::nonblocking::is_supported(&fs::File::open(&scene.files()[0]).unwrap()) {
        assert_eq!(try_read(), Ok(noise(1, 400_000)), "the system has it in memory now");
    }
}

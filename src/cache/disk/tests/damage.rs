//! Files that are damaged, cut off or gone cost time, never a wrong byte.

use super::*;

/// A folder as a server that was killed leaves it, with these values, and the table of its segment if it is complete.
async fn left_behind(values: &[(&str, Bytes)], is_complete: bool) -> (Arc<Remote>, TempDir, String) {
    let scene = Scene::new(4 * MIB);
    for (name, bytes) in values {
        scene.remote.put(name, "1", bytes.clone());
        whole(&scene.store(), name).await;
    }
    scene.cache().flush();
    let copy = tempfile::tempdir().unwrap();
    let Scene { remote, folder, cache, .. } = scene;
    let cache = if is_complete { None } else { cache };
    let name = "segment-0000000000000000".to_owned();
    fs::copy(folder.path().join(&name), copy.path().join(&name)).unwrap();
    drop(cache);
    (remote, copy, name)
}

#[tokio::test]
async fn whatever_bit_is_flipped_no_wrong_byte_is_served_and_damaged_records_are_read_again() {
    let value = noise(9, 120);
    for is_complete in [false, true] {
        let (remote, folder, name) = left_behind(&[("a/b", value.clone())], is_complete).await;
        let path = folder.path().join(&name);
        let intact = fs::read(&path).unwrap();
        let record = 64..64 + 88 + "m@here".len() + "a/b".len() + 1 + value.len();
        for at in 0..intact.len() {
            let mut damaged = intact.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&path, &damaged).unwrap();
            let cache = opened(folder.path(), 4 * MIB);
            let store = wrapped(&cache, &remote, CachePolicy::Always);
            remote.requests();
            assert_eq!(whole(&store, "a/b").await, value, "byte {at}");
            if record.contains(&at) {
                assert_eq!(remote.requests().1, 1, "byte {at} was not found to be damaged");
            }
            drop((store, cache));
            for entry in fs::read_dir(folder.path()).unwrap() {
                fs::remove_file(entry.unwrap().path()).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn of_a_file_that_ends_anywhere_the_whole_records_are_served() {
    let (one, two) = (noise(1, 300), noise(2, 400));
    for is_complete in [false, true] {
        let values = [("a", one.clone()), ("b", two.clone())];
        let (remote, folder, name) = left_behind(&values, is_complete).await;
        let path = folder.path().join(&name);
        let intact = fs::read(&path).unwrap();
        let lengths = [300, 400].map(|data: usize| (88 + "m@here".len() + 1 + 1 + data).next_multiple_of(64));
        // Every remainder of a block is among them.
        for length in (0..intact.len()).step_by(5) {
            fs::write(&path, &intact[..length]).unwrap();
            let cache = opened(folder.path(), 4 * MIB);
            let store = wrapped(&cache, &remote, CachePolicy::Always);
            remote.requests();
            assert_eq!((whole(&store, "a").await, whole(&store, "b").await), (one.clone(), two.clone()));
            let missing =
                u64::from(length < 64 + lengths[0]) + u64::from(length < 64 + lengths[0] + lengths[1]);
            assert_eq!(remote.requests().1, missing, "{length} bytes");
            drop((store, cache));
            for entry in fs::read_dir(folder.path()).unwrap() {
                fs::remove_file(entry.unwrap().path()).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_hole_in_a_file_costs_the_records_in_it_and_no_others() {
    let values: Vec<(String, Bytes)> = (0..8).map(|n| (format!("k{n}"), noise(n, 5000))).collect();
    let named: Vec<(&str, Bytes)> = values.iter().map(|(name, bytes)| (&**name, bytes.clone())).collect();
    let (remote, folder, name) = left_behind(&named, false).await;
    let path = folder.path().join(&name);
    let mut bytes = fs::read(&path).unwrap();
    // As a power cut leaves pages that were not written: of the third and the fourth value.
    bytes[64 + 2 * 5120 + 100..64 + 3 * 5120 + 200].fill(0);
    fs::write(&path, bytes).unwrap();
    let cache = opened(folder.path(), 4 * MIB);
    let store = wrapped(&cache, &remote, CachePolicy::Always);
    remote.requests();
    for (name, bytes) in &values {
        assert_eq!(whole(&store, name).await, bytes);
    }
    assert_eq!(remote.requests(), (7, 2), "one has its head, so its version is requested");
}

#[tokio::test]
async fn a_value_cannot_pass_for_a_record() {
    let (_, folder, name) = left_behind(&[("a", noise(1, 500))], false).await;
    let forged = fs::read(folder.path().join(name)).unwrap();
    for padding in (0..64).step_by(8) {
        // Another cache stores a value with these bytes, at every alignment, and its own record is damaged.
        let value = [vec![0; padding], forged.clone()].concat();
        let (_, folder, name) = left_behind(&[("b", value.into())], false).await;
        let path = folder.path().join(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes[64] ^= 1;
        fs::write(&path, bytes).unwrap();
        let cache = opened(folder.path(), 4 * MIB);
        assert_eq!(cache.engine().state().index.parts(), 0);
    }
}

#[tokio::test]
async fn files_of_others_stay_and_a_second_server_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "notes.txt",
        "segment-1",
        "segment-00000000000000zz",
        "segment-000000000000000F",
        "segment-ffffffffffffffff",
        "lock2",
    ];
    for name in names {
        fs::write(folder.path().join(name), "mine").unwrap();
    }
    fs::create_dir(folder.path().join("segment-0000000000000007")).unwrap();
    let cache = opened(folder.path(), 4 * MIB);
    let second = DiskCache::open(&options(folder.path(), 4 * MIB));
    assert!(matches!(second, Err(DiskCacheError::InUse(_))), "{second:?}");
    drop(cache);
    drop(opened(folder.path(), 4 * MIB));
    for name in names {
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"mine", "{name}");
    }
    let file = DiskCache::open(&options(&folder.path().join("notes.txt"), 4 * MIB));
    assert!(matches!(file, Err(DiskCacheError::NotADirectory(_))), "{file:?}");
}

#[tokio::test]
async fn a_directory_that_vanishes_makes_reads_slower_and_is_used_again_when_it_is_back() {
    let scene = Scene::new(4 * MIB);
    let store = scene.store();
    for number in 0..40 {
        scene.remote.put(&number.to_string(), "1", noise(number, 200_000));
    }
    whole(&store, "0").await;
    scene.cache().flush();
    fs::remove_dir_all(scene.folder.path()).unwrap();
    for number in 0..30 {
        assert_eq!(whole(&store, &number.to_string()).await, noise(number, 200_000));
        scene.cache().flush();
    }
    let report = scene.cache().disk_report().unwrap();
    assert!(report.is_paused && report.failures > 0, "{report:?}");
    fs::create_dir(scene.folder.path()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    for number in 30..40 {
        for _ in 0..2 {
            assert_eq!(whole(&store, &number.to_string()).await, noise(number, 200_000));
        }
        scene.cache().flush();
    }
    assert!(!scene.cache().disk_report().unwrap().is_paused);
    assert!(!scene.files().is_empty());
}

#[tokio::test]
async fn what_is_cached_is_readable_by_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/cache");
    let remote = Arc::<Remote>::default();
    remote.put("a", "1", noise(1, 500));
    let cache = opened(&path, 4 * MIB);
    whole(&wrapped(&cache, &remote, CachePolicy::Always), "a").await;
    cache.flush();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    let files: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.iter().any(|file| file.to_str().unwrap().contains("segment-")), "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{file:?}");
    }
}

#[tokio::test]
async fn a_file_with_the_last_number_does_not_end_the_numbers_of_segments() {
    let scene = Scene::new(4 * MIB);
    drop(scene.cache);
    fs::write(scene.folder.path().join("segment-ffffffffffffffff"), "not ours").unwrap();
    let cache = opened(scene.folder.path(), 4 * MIB);
    scene.remote.put("a", "1", noise(1, 500));
    let store = wrapped(&cache, &scene.remote, CachePolicy::Always);
    whole(&store, "a").await;
    cache.flush();
    scene.remote.requests();
    assert_eq!(whole(&store, "a").await, noise(1, 500));
    assert_eq!(scene.remote.requests().1, 0, "it was written");
}

#[tokio::test]
async fn a_directory_that_another_server_took_is_left_to_it() {
    let scene = Scene::new(4 * MIB);
    let store = scene.store();
    for number in 0..40 {
        scene.remote.put(&number.to_string(), "1", noise(number, 200_000));
    }
    for number in 0..3 {
        whole(&store, &number.to_string()).await;
    }
    scene.cache().flush();
    // The directory is replaced, and another server begins to use it.
    fs::remove_dir_all(scene.folder.path()).unwrap();
    fs::create_dir(scene.folder.path()).unwrap();
    let other = opened(scene.folder.path(), 4 * MIB);
    let other_store = wrapped(&other, &scene.remote, CachePolicy::Always);
    whole(&other_store, "0").await;
    other.flush();
    let files = || -> BTreeMap<_, _> {
        scene.files().into_iter().map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
    };
    let before = files();
    assert_eq!(before.len(), 1);
    for number in 0..40 {
        assert_eq!(whole(&store, &number.to_string()).await, noise(number, 200_000));
        scene.cache().flush();
    }
    assert!(scene.cache().disk_report().unwrap().is_paused);
    assert_eq!(files(), before, "neither written nor removed");
    scene.remote.requests();
    assert_eq!(whole(&other_store, "0").await, noise(0, 200_000));
    assert_eq!(scene.remote.requests().1, 0);
}

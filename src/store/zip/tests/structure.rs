//! Valid zip files of every shape: ranges, listings, zip64, comments, bytes before the file.

use futures::stream::TryStreamExt;

use super::{Below, Zip, deflated, over, stored};
use crate::store::tests::{body, directories_go_on_after_any_text, key, keys, prefix, read};
use crate::store::{ByteRange, DirListing, Store, StoreError, StoreKind, WriteCondition};

#[tokio::test]
async fn ranges_of_stored_and_deflated_entries_are_exact() {
    let numbers = |count: u32| (0..count).map(|at| u8::try_from(at % 251).unwrap()).collect::<Vec<_>>();
    let (small, large) = (numbers(1000), numbers(200_000));
    let entries = [
        stored("before", "x"),
        stored("large", &large),
        stored("small", &small),
        deflated("deflated", &small),
        stored("after", "y"),
    ];
    let store = over(Zip::of(entries).bytes()).await;
    for (text, bytes) in [("large", &large), ("small", &small), ("deflated", &small)] {
        let size = bytes.len() as u64;
        let version = store.head(&key(text)).await.unwrap().unwrap().version;
        assert!(version.is_strong());
        for range in [
            ByteRange::Whole,
            ByteRange::Bounded(0, 1),
            ByteRange::Bounded(100, 999),
            ByteRange::Bounded(size - 1, u64::MAX),
            ByteRange::From(500),
            ByteRange::Suffix(16),
            ByteRange::Suffix(u64::MAX),
        ] {
            for if_match in [None, Some(&version)] {
                let value = store.get(&key(text), range, if_match).await.unwrap().unwrap();
                let resolved = range.resolve(size).unwrap();
                assert_eq!(
                    (value.range.clone(), value.info.size),
                    (resolved.clone(), size),
                    "{text} {range:?}"
                );
                assert_eq!(value.info.version, version);
                let at = |end: u64| usize::try_from(end).unwrap();
                let expected = &bytes[at(resolved.start)..at(resolved.end)];
                assert_eq!(value.bytes(size).await.unwrap(), expected, "{text} {range:?}");
            }
        }
        for range in [ByteRange::From(size), ByteRange::Bounded(5, 5), ByteRange::Suffix(0)] {
            let error = store.get(&key(text), range, None).await.unwrap_err();
            assert!(matches!(error, StoreError::RangeNotSatisfiable { size: s } if s == size), "{error:?}");
        }
    }
    assert!(store.get(&key("nothing"), ByteRange::Suffix(0), None).await.unwrap().is_none());
}

#[tokio::test]
async fn a_range_of_a_large_stored_entry_reads_only_that_range() {
    let below = Below::new(false);
    below.holds(Zip::of([stored("large", vec![7; 1 << 20])]).bytes()).await;
    let store = below.zip();
    let version = store.head(&key("large")).await.unwrap().unwrap().version;
    below.gets();
    for _ in 0..2 {
        let range = ByteRange::Bounded(1000, 1010);
        let value = store.get(&key("large"), range, Some(&version)).await.unwrap().unwrap();
        assert_eq!(value.bytes(10).await.unwrap(), [7; 10].as_slice());
    }
    let part = ByteRange::Bounded(1035, 1045);
    assert_eq!(below.gets(), [ByteRange::Bounded(0, 35), part, part], "the header is read once");
    assert_eq!(*below.heads.lock().unwrap(), 1, "a read of a version needs no other proof");
}

#[tokio::test]
async fn listings_are_complete_and_in_order() {
    let mut all = ["a", "b-c", "b.d", "b/a/0", "b/a/1", "b/b", "b0", "c/d/e/f", "zarr.json", "é/0"];
    let store = over(Zip::of(all.iter().rev().map(|name| stored(name, name))).bytes()).await;
    all.sort_unstable();
    assert_eq!(keys(&store, "").await, all);
    assert_eq!(keys(&store, "b/").await, ["b/a/0", "b/a/1", "b/b"]);
    assert!(keys(&store, "nothing/").await.is_empty());
    assert!(keys(&store, "a/").await.is_empty(), "a key is not a prefix");
    for under in ["", "b/"] {
        for after in ["0", "a", "b", "b-", "b/a/0", "b/a/0/x", "b/a/00", "b/z", "zz", "\u{ff}"] {
            let entries = store.list_prefix(&prefix(under), Some(&key(after)));
            let rest: Vec<_> = entries.map_ok(|entry| entry.key.to_string()).try_collect().await.unwrap();
            let is_wanted = |text: &&&str| **text > after && text.starts_with(under);
            let expected: Vec<_> = all.iter().filter(is_wanted).copied().collect();
            assert_eq!(rest, expected, "{under} after {after}");
        }
    }
    let sequence = ["a", "b-c", "b.d", "b/", "b0", "c/", "zarr.json", "é/"];
    let directories = [("", &sequence[..]), ("b/", &["b/a/", "b/b"]), ("a/", &[])];
    directories_go_on_after_any_text(&store, &directories).await;
    let root = store.list_dir(&prefix("")).await.unwrap();
    let names: Vec<_> = root.keys.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(names, ["a", "b-c", "b.d", "b0", "zarr.json"]);
    assert_eq!(root.prefixes, [prefix("b/"), prefix("c/"), prefix("é/")]);
    let under = store.list_dir(&prefix("b/")).await.unwrap();
    assert_eq!((under.keys[0].key.clone(), under.prefixes), (key("b/b"), vec![prefix("b/a/")]));
    assert_eq!(Some(&under.keys[0].info), store.head(&key("b/b")).await.unwrap().as_ref());
    assert_eq!(store.list_dir(&prefix("a/")).await.unwrap(), DirListing::default());
    assert_eq!(store.kind(), StoreKind::ZIP);
}

#[tokio::test]
async fn prefixes_with_any_number_of_entries_are_listed_once() {
    let names = |count: usize| (0..count).map(move |at| format!("{count:02}/{at:02}/zarr.json"));
    let all: Vec<_> = (1..=33).flat_map(names).chain(["zarr.json".to_owned()]).collect();
    let store = over(Zip::of(all.iter().map(|name| stored(name, name))).bytes()).await;
    let root = store.list_dir(&prefix("")).await.unwrap();
    let expected: Vec<_> = (1..=33).map(|count| prefix(&format!("{count:02}/"))).collect();
    assert_eq!(root.prefixes, expected);
    assert_eq!(root.keys.len(), 1, "what follows the last prefix is listed too");
    let within = store.list_dir(&prefix("33/")).await.unwrap();
    assert_eq!(within.prefixes.len(), 33);
}

#[tokio::test]
async fn bytes_before_after_and_between_entries_do_no_harm() {
    let entries = || {
        let padded =
            crate::store::zip::tests::Entry { local_extra: 300, ..stored("padded", "after an extra field") };
        [stored("a", "first"), padded, deflated("c/0", b"deflated")]
    };
    let mut wide = entries();
    for entry in &mut wide {
        entry.zip64 = true;
    }
    // An end record that fits, but for its directory; one whose comment does not end with the file.
    let lying = [b"PK\x05\x06\0\0\0\0\x01\0\x01\0".as_slice(), &[0xf0; 8], &[0, 0]].concat();
    let short = [b"PK\x05\x06".as_slice(), &[0; 18], b" and more"].concat();
    let simple = Zip::of(entries());
    for zip in [
        simple.clone(),
        Zip { before: vec![b'P'; 1000], ..simple.clone() },
        Zip { comment: vec![b'P'; 0xffff], ..simple.clone() },
        Zip { comment: lying, ..simple.clone() },
        Zip { comment: short, ..simple.clone() },
        Zip { zip64: true, ..Zip::of(wide.clone()) },
        Zip { zip64: true, before: vec![0; 300_000], ..Zip::of(wide.clone()) },
        Zip { zip64: true, comment: b"PK\x06\x06".to_vec(), ..simple.clone() },
        Zip::of(wide),
    ] {
        let store = over(zip.bytes()).await;
        assert_eq!(keys(&store, "").await, ["a", "c/0", "padded"], "{zip:?}");
        for (text, bytes) in [("a", "first"), ("padded", "after an extra field"), ("c/0", "deflated")] {
            assert_eq!(read(&store, text).await.unwrap(), bytes, "{zip:?}");
        }
    }
    let empty = over(Zip::default().bytes()).await;
    assert!(keys(&empty, "").await.is_empty());
    empty.check().await.unwrap();
}

#[tokio::test]
async fn more_entries_than_sixteen_bits_count_are_read_without_zip64_too() {
    let below = Below::new(false);
    let entries = (0..65_537).map(|number| stored(format!("c/{number}"), number.to_string()));
    below.holds(Zip::of(entries).bytes()).await;
    let store = below.zip();
    assert_eq!(keys(&store, "").await.len(), 65_537);
    assert_eq!(read(&store, "c/65536").await.unwrap(), "65536");
    assert!(matches!(below.gets().first(), Some(ByteRange::Bounded(start, _)) if *start > 0));
}

#[tokio::test]
async fn a_zip_file_cannot_be_written() {
    let store = over(Zip::of([stored("a", "one")]).bytes()).await;
    let set = store.set(&key("b"), body("x"), WriteCondition::Always).await.map(drop);
    let erase = store.erase(&key("a"), WriteCondition::Always).await.map(drop);
    let prefix = store.erase_prefix(&prefix("")).await.map(drop);
    for outcome in [set, erase, prefix] {
        assert!(matches!(outcome, Err(StoreError::ReadOnly)), "{outcome:?}");
    }
    assert_eq!(keys(&store, "").await, ["a"]);
}

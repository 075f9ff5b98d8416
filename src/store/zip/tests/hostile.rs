//! Broken and hostile zip files: a right value or a clean error, and no memory for the sake of a number in them.

use std::pin::Pin;

use futures::stream::TryStreamExt;

use super::super::ZipError;
use super::{Below, ENCRYPTED, Entry, Zip, deflated, over, refusal, stored};
use crate::error::{Classify, ErrorClass};
use crate::store::tests::{key, keys, prefix, read};
use crate::store::{ByteRange, Store, StoreError};

/// Why nothing can be listed.
async fn broken(bytes: Vec<u8>) -> ZipError {
    let store = over(bytes).await;
    let listed: Result<Vec<_>, _> = store.list_prefix(&prefix(""), None).try_collect().await;
    let head = store.head(&key("zarr.json")).await;
    match (listed, head) {
        (Err(StoreError::Zip(error)), Err(StoreError::Zip(again))) => {
            assert_eq!(error, again);
            error
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_file_that_is_not_a_zip_file_is_broken_and_not_empty() {
    let zeros = vec![0; 100_000];
    for bytes in [&b""[..], b"PK", b"no zip file at all", b"PK\x05\x06", &zeros] {
        let error = broken(bytes.to_vec()).await;
        assert!(matches!(error, ZipError::Broken(_)), "{error:?}");
        assert_eq!(error.class(), ErrorClass::CorruptData);
    }
}

#[tokio::test]
async fn a_file_cut_short_anywhere_is_broken() {
    for zip64 in [false, true] {
        let entries = [stored("a", "one"), deflated("b", b"two")];
        let complete = Zip { zip64, comment: b"a comment".to_vec(), ..Zip::of(entries) }.bytes();
        for length in 0..complete.len() {
            assert!(matches!(broken(complete[..length].to_vec()).await, ZipError::Broken(_)), "{length}");
        }
    }
}

#[tokio::test]
async fn any_changed_byte_gives_an_error_or_a_value() {
    let mut wide = stored("wide", "three");
    wide.zip64 = true;
    let zip = Zip { zip64: true, ..Zip::of([stored("a", "one"), deflated("b/c", b"two"), wide]) };
    let complete = zip.bytes();
    let mut values = 0;
    for at in 0..complete.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut changed = complete.clone();
            changed[at] ^= mask;
            let store = over(changed).await;
            let Ok(listing) = store.list_prefix(&prefix(""), None).try_collect::<Vec<_>>().await else {
                continue;
            };
            for entry in listing {
                let Ok(value) = store.get(&entry.key, ByteRange::Whole, None).await else { continue };
                let value = value.expect("what is listed is there");
                let size = value.info.size;
                assert!(size <= complete.len() as u64, "a value cannot be larger than its file here");
                assert_eq!(value.bytes(size).await.unwrap().len() as u64, size);
                values += 1;
            }
        }
    }
    assert!(values > complete.len(), "most changes leave most values as they are");
}

#[tokio::test]
async fn overlapping_entries_are_rejected_and_the_others_read() {
    // The first spans the second, whose header and bytes are its own bytes, too.
    let mut first = stored("first", "");
    (first.compressed, first.size) = (40, 40);
    let store = over(Zip::of([first, stored("second", "0123456789"), stored("last", "z")]).bytes()).await;
    assert!(matches!(refusal(&store, "first").await, ZipError::Broken(_)));
    assert_eq!(read(&store, "second").await.unwrap(), "0123456789");

    // The last reaches into the directory, which is known to be there.
    let mut last = stored("last", "z");
    (last.compressed, last.size) = (20, 20);
    let store = over(Zip::of([stored("first", "a"), last]).bytes()).await;
    assert!(matches!(refusal(&store, "last").await, ZipError::Broken(_)));
    assert_eq!(read(&store, "first").await.unwrap(), "a");
}

#[tokio::test]
async fn an_entry_that_contradicts_itself_is_rejected() {
    let good = || stored("a", "0123456789");
    let cases: Vec<(&str, Entry)> = vec![
        ("another name", Entry { local_name: b"b".to_vec(), ..good() }),
        ("a longer name", Entry { local_name: b"a/b".to_vec(), ..good() }),
        ("another method", Entry { local_method: 8, ..good() }),
        ("two sizes", Entry { size: 11, ..good() }),
        ("an extra field beyond all", Entry { offset: Some(0), size: 1000, compressed: 1000, ..good() }),
        ("too large", Entry { size: u64::MAX, compressed: u64::MAX, zip64: true, ..good() }),
        ("nowhere", Entry { offset: Some(1 << 40), zip64: true, ..good() }),
        ("no header there", Entry { offset: Some(3), ..good() }),
        ("in the directory", Entry { offset: Some(41), ..good() }),
        ("deflated to more", Entry { size: 9, ..deflated("a", b"0123456789") }),
        ("deflated to less", Entry { size: 11, ..deflated("a", b"0123456789") }),
        ("another checksum", Entry { crc: 1, ..deflated("a", b"0123456789") }),
        ("deflated from nothing", Entry { compressed: 0, ..deflated("a", b"0123456789") }),
        ("deflated and cut", Entry { compressed: 9, ..deflated("a", b"0123456789") }),
        ("deflated and longer", Entry { method: 8, local_method: 8, ..stored("a", [1, 0, 0, 255, 255, 9]) }),
    ];
    for (what, entry) in cases {
        let store = over(Zip::of([entry]).bytes()).await;
        let error = refusal(&store, "a").await;
        assert_eq!(error.class(), ErrorClass::CorruptData, "{what}: {error:?}");
    }
    let beyond = Entry { offset: Some(u64::MAX), zip64: true, ..good() };
    let zip = Zip { before: vec![0; 10], ..Zip::of([beyond]) };
    assert!(matches!(broken(zip.bytes()).await, ZipError::Broken(_)), "an offset that overflows");
}

#[tokio::test]
async fn unsupported_features_are_named_and_other_entries_read() {
    let bomb = Entry { size: (64 << 20) + 1, ..deflated("a", b"x") };
    let encrypted = Entry { flags: ENCRYPTED, ..stored("a", "x") };
    let newest = Entry { method: 93, local_method: 93, ..stored("a", "x") };
    for (entry, says) in [(bomb, "67108865"), (encrypted, "encrypted"), (newest, "93")] {
        let store = over(Zip::of([entry, stored("b", "fine")]).bytes()).await;
        let error = refusal(&store, "a").await;
        assert_eq!(error.class(), ErrorClass::Unsupported);
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(keys(&store, "").await, ["a", "b"], "it is listed nevertheless");
        assert_eq!(read(&store, "b").await.unwrap(), "fine");
    }
    let parts = Zip { disk: 1, ..Zip::of([stored("a", "x")]) };
    assert!(matches!(broken(parts.bytes()).await, ZipError::Feature("several parts")));
}

#[tokio::test]
async fn a_directory_that_contradicts_itself_is_rejected() {
    let entries = || [stored("a", "one"), stored("b", "two")];
    let length = 2 * 47;
    for (what, zip) in [
        ("fewer entries", Zip { count: Some(1), ..Zip::of(entries()) }),
        ("more entries", Zip { count: Some(3), ..Zip::of(entries()) }),
        ("as many in 16 bits", Zip { count: Some(65_538), zip64: true, ..Zip::of(entries()) }),
        ("a longer directory", Zip { directory: Some((length + 1, 0)), ..Zip::of(entries()) }),
        ("a shorter directory", Zip { directory: Some((length - 1, 0)), ..Zip::of(entries()) }),
        ("before the file", Zip { directory: Some((length, 1 << 20)), ..Zip::of(entries()) }),
        ("longer than the file", Zip { directory: Some((1 << 20, 0)), ..Zip::of(entries()) }),
        ("all ones", Zip { directory: Some((u64::MAX, u64::MAX)), zip64: true, ..Zip::of(entries()) }),
    ] {
        let error = broken(zip.bytes()).await;
        assert!(matches!(error, ZipError::Broken(_)), "{what}: {error:?}");
    }
}

#[tokio::test]
async fn a_directory_that_claims_too_much_is_rejected_before_it_is_read() {
    let below = Below::new(false);
    // Its directory begins at the beginning of the file, and is said to be as long as all of it.
    let claimed = (1 << 27) + 1;
    let zip = Zip {
        before: vec![0; claimed],
        directory: Some((claimed as u64 + 2, 0)),
        zip64: true,
        ..Zip::of([stored("a", "x")])
    };
    below.holds(zip.bytes()).await;
    let store = below.zip();
    for _ in 0..3 {
        let error = store.head(&key("a")).await.unwrap_err();
        assert!(
            matches!(error, StoreError::Zip(ZipError::OverBudget { needed, .. }) if needed > 1 << 27),
            "{error:?}"
        );
    }
    assert_eq!(below.gets().len(), 1, "and that is cached for this version of the file");
}

#[tokio::test]
async fn a_zip64_field_is_found_among_the_first_64_extra_fields_only() {
    let with = |extra_fields: usize, zip64: bool| Entry { zip64, extra_fields, ..stored("a", "0123456789") };
    // Beyond the fields that are searched, and where real programs write it.
    for entry in [with(16_383, false), with(0, true), with(60, true)] {
        let store = over(Zip::of([entry]).bytes()).await;
        assert_eq!(keys(&store, "").await, ["a"]);
        assert_eq!(read(&store, "a").await.unwrap(), "0123456789");
    }
    for extra_fields in [64, 16_000] {
        let error = broken(Zip::of([with(extra_fields, true)]).bytes()).await;
        assert_eq!(error, ZipError::Feature("entries of more than 64 extra fields"), "{extra_fields}");
        assert_eq!(error.class(), ErrorClass::Unsupported);
    }
}

#[tokio::test]
async fn a_listing_yields_to_other_tasks() {
    let zip = Zip::of((0..2000).map(|number| stored(format!("a/{number}"), "")));
    let store = over(zip.bytes()).await;
    store.check().await.unwrap();
    let all = async || store.list_prefix(&prefix(""), None).try_collect::<Vec<_>>().await.unwrap().len();
    let under = async || {
        let entries = store.list_dir_after(&prefix("a/"), "").try_collect::<Vec<_>>().await;
        entries.unwrap().len()
    };
    let (mut all, mut under) = (Box::pin(all()), Box::pin(under()));
    let listings: [Pin<&mut dyn Future<Output = usize>>; 2] = [all.as_mut(), under.as_mut()];
    for mut listing in listings {
        let mut turns = 0;
        while futures::poll!(listing.as_mut()).is_pending() {
            turns += 1;
            tokio::task::yield_now().await;
        }
        assert!(turns >= 10, "{turns} turns for 2,000 entries");
    }
}

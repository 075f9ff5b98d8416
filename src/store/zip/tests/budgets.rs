//! The memory that a zip file and its entries take, and for how long.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::future::join_all;
use futures::stream::TryStreamExt;

use super::{Below, Entry, Zip, compressed, over, stored};
use crate::error::{Classify, ErrorClass};
use crate::store::ContainerBudget;
use crate::store::tests::{key, keys, read};
use crate::store::zip::ZipError;
use crate::store::{ByteRange, Store, StoreError, ValueBody};

const MIB: usize = 1 << 20;

/// Bytes that are compressed, but not to nothing.
fn numbers(count: usize) -> Vec<u8> {
    (0..count as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as u8).collect()
}

/// The pieces of a value, and how it ended.
async fn pieces(store: &impl Store, name: &str, range: ByteRange) -> (Vec<Bytes>, Result<(), StoreError>) {
    let value = match store.get(&key(name), range, None).await {
        Ok(value) => value.unwrap(),
        Err(error) => return (Vec::new(), Err(error)),
    };
    let mut stream = value.body.into_stream();
    let mut pieces = Vec::new();
    loop {
        match stream.try_next().await {
            Ok(Some(piece)) => pieces.push(piece),
            Ok(None) => return (pieces, Ok(())),
            Err(error) => return (pieces, Err(error)),
        }
    }
}

#[tokio::test]
async fn a_deflated_entry_of_any_length_streams_in_pieces() {
    let all = numbers(3 * MIB + 17);
    let store = over(Zip::of([compressed("long", &all), stored("after", "x")]).bytes()).await;
    for (range, expected) in [
        (ByteRange::Whole, 0..all.len()),
        (ByteRange::Bounded(1, 2), 1..2),
        (ByteRange::Bounded(65_535, 65_537), 65_535..65_537),
        (ByteRange::Bounded(MIB as u64, 2 * MIB as u64), MIB..2 * MIB),
        (ByteRange::From(3 * MIB as u64), 3 * MIB..all.len()),
        (ByteRange::Suffix(5), all.len() - 5..all.len()),
    ] {
        let (pieces, end) = pieces(&store, "long", range).await;
        end.unwrap();
        assert!(pieces.iter().all(|piece| piece.len() <= 64 << 10), "{range:?}");
        assert!(pieces.concat() == all[expected], "{range:?}");
    }
}

#[tokio::test]
async fn a_value_that_contradicts_its_entry_is_never_complete() {
    let all = numbers(MIB);
    let complete = compressed("a", &all);
    let (size, crc) = (complete.size, complete.crc ^ 1);
    let mut cut = complete.data.clone();
    cut.truncate(cut.len() - 100);
    let compressed = cut.len() as u64;
    let behind = [complete.data.as_slice(), &[0]].concat();
    for (what, entry) in [
        ("shorter", Entry { size: size + 1, ..complete.clone() }),
        ("longer", Entry { size: size - 1, ..complete.clone() }),
        ("another checksum", Entry { crc, ..complete.clone() }),
        ("cut", Entry { data: cut, compressed, ..complete.clone() }),
        ("something behind", Entry { compressed: behind.len() as u64, data: behind, ..complete.clone() }),
    ] {
        let store = over(Zip::of([entry.clone()]).bytes()).await;
        for range in [ByteRange::Whole, ByteRange::Bounded(0, size - 1), ByteRange::Bounded(100, 1 << 19)] {
            let (pieces, end) = pieces(&store, "a", range).await;
            assert_eq!(end.unwrap_err().class(), ErrorClass::CorruptData, "{what} {range:?}");
            let sent: usize = pieces.iter().map(Bytes::len).sum();
            let requested = range.resolve(entry.size).unwrap();
            assert!((sent as u64) < requested.end - requested.start, "{what} {range:?}: {sent}");
        }
        // A short entry is rejected before there is a body.
        let short = store.get(&key("a"), ByteRange::Bounded(5, 10), None).await;
        assert!(matches!(short, Err(StoreError::Zip(ZipError::Inflate(_)))), "{what}: {short:?}");
    }
}

#[tokio::test]
async fn an_entry_too_short_for_its_declared_size_is_rejected_before_there_is_a_body() {
    let entry = Entry { size: 64 << 20, ..compressed("a", &[0; 1000]) };
    let store = over(Zip::of([entry]).bytes()).await;
    let outcome = store.get(&key("a"), ByteRange::Whole, None).await;
    assert!(matches!(outcome, Err(StoreError::Zip(ZipError::Inflate(_)))), "{outcome:?}");
}

#[tokio::test]
async fn a_long_entry_is_a_stream_of_its_declared_length() {
    let store = over(Zip::of([compressed("a", &vec![0; 8 * MIB])]).bytes()).await;
    let value = store.get(&key("a"), ByteRange::Whole, None).await.unwrap().unwrap();
    assert!(matches!(value.body, ValueBody::Stream(_)), "not held completely");
    assert_eq!(value.len(), 8 << 20);
    let (pieces, end) = pieces(&store, "a", ByteRange::Whole).await;
    assert!(end.is_ok() && pieces.len() > 1, "{end:?}");
    assert!(pieces.concat() == vec![0; 8 * MIB]);
}

#[tokio::test]
async fn a_directory_over_budget_is_rejected_and_the_others_are_kept() {
    // Records of 46 bytes and a name of one, and twelve bytes for each.
    let budget = ContainerBudget::new(3 * 59);
    let file = |names: &[&str]| Zip::of(names.iter().map(|name| stored(name, name))).bytes();
    let (one, two) = (Below::new(false), Below::new(false));
    one.holds(file(&["a", "b"])).await;
    two.holds(file(&["c", "d"])).await;
    let (first, second) = (one.zip_within(&budget), two.zip_within(&budget));
    first.check().await.unwrap();
    for _ in 0..2 {
        let refused = second.check().await.unwrap_err();
        assert_eq!(refused.class(), ErrorClass::OverBudget);
        assert!(refused.to_string().contains("`cache.zip_directory_size`"), "{refused}");
        assert_eq!(read(&first, "a").await.unwrap(), "a", "the other is served");
    }
    // Another version of the first replaces the previous one, and leaves enough for the second.
    one.holds(file(&["a"])).await;
    assert_eq!(keys(&first, "").await, ["a"]);
    assert_eq!(keys(&second, "").await, ["c", "d"]);
    one.holds(file(&["a", "b"])).await;
    assert!(first.check().await.is_err());
    drop(second);
    assert_eq!(keys(&first, "").await, ["a", "b"], "what is given back can be had");
}

#[tokio::test]
async fn a_directory_larger_than_the_budget_is_requested_once() {
    let below = Below::new(false);
    below.holds(Zip::of([stored("a", "one")]).bytes()).await;
    let store = below.zip_within(&ContainerBudget::new(58));
    for _ in 0..3 {
        let error = store.check().await.unwrap_err();
        assert!(
            matches!(error, StoreError::Zip(ZipError::OverBudget { needed: 59, limit: 58 })),
            "{error:?}"
        );
    }
    assert_eq!(below.gets().len(), 1);
}

#[tokio::test]
async fn a_failed_directory_read_fails_for_all_its_waiters() {
    let below = Below::new(false);
    below.holds(Zip::of([stored("a", "one")]).bytes()).await;
    let store = below.zip();
    below.fails.store(true, Ordering::Relaxed);
    let checks = join_all((0..16).map(|_| store.check())).await;
    assert!(checks.iter().all(Result::is_err));
    assert_eq!(below.gets().len(), 1);
    below.fails.store(false, Ordering::Relaxed);
    store.check().await.expect("a later request retries");
}

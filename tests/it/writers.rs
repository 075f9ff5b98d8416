//! Many writers at once, over HTTP: conditions let exactly one through, values are complete, and races cause no error.
//!
//! Longer by hand: `ZARRD_ROUNDS=10000 cargo test --test it writers -- --nocapture`.

use std::collections::{BTreeSet, HashMap};
use std::fs::FileTimes;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use axum::body::Body;
use axum::http::{Method, Request};
use futures::future::join_all;
use tempfile::TempDir;
use zarrd::services::Mount;
use zarrd::store::{Durability, LocalOptions, LocalStore, SharedStore};

use crate::support::hierarchy::memory;
use crate::support::server::{Answer, Server};
use crate::support::stamped::{Dice, by_hand, number_of, value};

const WRITERS: u64 = 32;

/// The stores that have a say of their own in this: each with its kind, and its directory if it has one.
fn stores() -> Vec<(&'static str, SharedStore, Option<TempDir>)> {
    let directory = tempfile::tempdir().unwrap();
    // Without fsync, which only a power cut would show: so more writers meet in the same time.
    let options = LocalOptions { writable: true, durability: Durability::Rename, ..LocalOptions::default() };
    let local = LocalStore::open(directory.path(), &options).unwrap();
    vec![("local", Arc::new(local), Some(directory)), ("memory", memory(), None)]
}

fn serve(store: SharedStore) -> Server {
    Server::build(Mount { writable: true, ..Mount::read_only("m", store) }).finish()
}

impl Server {
    async fn put(&self, key: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
        let mut request = Request::put(format!("/store/m/{key}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    async fn delete(&self, key: &str) -> u16 {
        self.ask(Method::DELETE, &format!("/store/m/{key}"), &[]).await.status.as_u16()
    }

    async fn value(&self, key: &str) -> Answer {
        self.get(&format!("/store/m/{key}")).await
    }

    async fn listed(&self) -> BTreeSet<String> {
        let listing = self.get("/store/m/?recursive&format=json").await.json();
        let keys = listing["keys"].as_array().unwrap().iter();
        keys.map(|entry| entry["key"].as_str().unwrap().to_owned()).collect()
    }
}

/// Runs one task per writer concurrently; returns their results.
async fn all<T, F>(writer: impl Fn(u64) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let tasks = (0..WRITERS).map(|n| tokio::spawn(writer(n)));
    join_all(tasks).await.into_iter().map(Result::unwrap).collect()
}

/// The files of a store's staging area.
fn staged(directory: Option<&TempDir>) -> usize {
    directory.map_or(0, |root| std::fs::read_dir(root.path().join(".zarr-server/staging")).unwrap().count())
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_one_of_concurrent_writers_under_one_condition_succeeds() {
    for (kind, store, _directory) in stores() {
        let server = serve(store);
        for round in 0..by_hand("ZARRD_ROUNDS", 16) {
            let key = format!("c/{round}/0");
            let mut condition = ("if-none-match", "*".to_owned());
            for (number, status) in [(0, 201), (1, 204), (2, 204)] {
                let answers = all(|n| {
                    let (server, key, condition) = (server.clone(), key.clone(), condition.clone());
                    let body = value(&key, number * WRITERS + n, 100);
                    async move { (n, server.put(&key, &[(condition.0, &condition.1)], body).await) }
                });
                let (won, lost): (Vec<_>, Vec<_>) =
                    answers.await.into_iter().partition(|(_, answer)| answer.status.is_success());
                assert_eq!(won.len(), 1, "{kind}, round {round}: winners");
                let (n, winner) = &won[0];
                assert_eq!(winner.status.as_u16(), status, "{kind}");
                for (_, answer) in lost {
                    answer.refuses(412, "precondition-failed", kind);
                }
                let stored = server.value(&key).await;
                assert_eq!(number_of(&key, &stored.body), number * WRITERS + n, "{kind}: the winner's");
                assert_eq!(stored.header("etag"), winner.header("etag"), "{kind}");
                condition = ("if-match", stored.header("etag").to_owned());
            }
            assert_eq!(server.delete(&key).await, 204);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_acknowledged_increment_is_stored() {
    let each = by_hand("ZARRD_ROUNDS", 16) / 8;
    for (kind, store, _directory) in stores() {
        let server = serve(store);
        assert_eq!(server.put("count", &[], "0").await.status.as_u16(), 201);
        let refused = Arc::new(AtomicU64::new(0));
        let _: Vec<()> = all(|_| {
            let (server, refused) = (server.clone(), Arc::clone(&refused));
            async move {
                let mut done = 0;
                while done < each {
                    let read = server.value("count").await;
                    let count: u64 = std::str::from_utf8(&read.body).unwrap().parse().unwrap();
                    let tag = read.header("etag").to_owned();
                    let answer = server.put("count", &[("if-match", &tag)], (count + 1).to_string()).await;
                    match answer.status.as_u16() {
                        204 => done += 1,
                        412 => drop(refused.fetch_add(1, Ordering::Relaxed)),
                        other => panic!("{other}: {:?}", answer.body),
                    }
                }
            }
        })
        .await;
        let count = server.value("count").await;
        assert_eq!(count.body, (WRITERS * each).to_string(), "{kind}");
        println!("{kind}: {} increments, {} refused", WRITERS * each, refused.load(Ordering::Relaxed));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_readers_see_complete_values_and_one_value_per_etag() {
    const KEY: &str = "x/y";
    let rounds = by_hand("ZARRD_ROUNDS", 16) / 4;
    for (kind, store, directory) in stores() {
        let server = serve(store);
        let first = server.put(KEY, &[], value(KEY, 0, 64)).await;
        assert_eq!(first.status.as_u16(), 201);
        let seen = all(|n| {
            let server = server.clone();
            async move {
                let (mut dice, mut seen) = (Dice::of(n), Vec::new());
                for round in 0..rounds {
                    if n % 2 == 0 {
                        let number = 1 + n * rounds + round;
                        let body = value(KEY, number, 64 + dice.length(3 << 20));
                        let answer = server.put(KEY, &[], body).await;
                        assert_eq!(answer.status.as_u16(), 204);
                        seen.push((answer.header("etag").to_owned(), number));
                    } else {
                        let answer = server.value(KEY).await;
                        assert_eq!(answer.status.as_u16(), 200);
                        seen.push((answer.header("etag").to_owned(), number_of(KEY, &answer.body)));
                    }
                }
                seen
            }
        });
        let mut tags = HashMap::new();
        for (tag, number) in seen.await.into_iter().flatten() {
            assert_eq!(*tags.entry(tag).or_insert(number), number, "{kind}: one tag, two values");
        }
        assert_eq!(staged(directory.as_ref()), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_created_and_erased_in_one_directory_do_not_conflict() {
    let rounds = by_hand("ZARRD_ROUNDS", 16);
    for (kind, store, directory) in stores() {
        let server = serve(store);
        let _: Vec<()> = all(|n| {
            let server = server.clone();
            async move {
                // Some alone in their innermost directory, some beside others.
                let key = if n % 2 == 0 { format!("a/b/{n}") } else { format!("a/b/c{}/{n}", n % 3) };
                for round in 0..rounds {
                    let answer = server.put(&key, &[], value(&key, round, 50)).await;
                    assert_eq!(answer.status.as_u16(), 201, "{kind} {:?}", answer.body);
                    assert_eq!(number_of(&key, &server.value(&key).await.body), round, "{kind}");
                    assert_eq!(server.delete(&key).await, 204, "{kind}");
                    assert_eq!(server.value(&key).await.status.as_u16(), 404, "{kind}");
                }
            }
        })
        .await;
        assert!(server.listed().await.is_empty(), "{kind}");
        if let Some(root) = &directory {
            assert!(!root.path().join("a").exists(), "the directories are gone with their keys");
        }
        assert_eq!(staged(directory.as_ref()), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_below_another_key_is_only_a_conflict() {
    const KEYS: [&str; 4] = ["a", "a/b", "a/b/c", "a/d"];
    let rounds = by_hand("ZARRD_ROUNDS", 16);
    for (kind, store, directory) in stores() {
        let server = serve(store);
        let conflicts = Arc::new(AtomicU64::new(0));
        let _: Vec<()> = all(|n| {
            let (server, conflicts) = (server.clone(), Arc::clone(&conflicts));
            async move {
                let mut dice = Dice::of(n);
                for round in 0..rounds {
                    let key = KEYS[usize::try_from(dice.below(4)).unwrap()];
                    let answer = server.put(key, &[], value(key, round, 50)).await;
                    match answer.status.as_u16() {
                        201 | 204 => {}
                        409 => drop(conflicts.fetch_add(1, Ordering::Relaxed)),
                        other => panic!("{kind}: {other} {:?}", answer.body),
                    }
                    let read = server.value(key).await;
                    match read.status.as_u16() {
                        200 => drop(number_of(key, &read.body)),
                        // Gone, or a prefix by now.
                        404 | 301 => {}
                        other => panic!("{kind}: {other} {:?}", read.body),
                    }
                    assert_eq!(server.delete(key).await, 204, "{kind}");
                }
            }
        })
        .await;
        let conflicts = conflicts.load(Ordering::Relaxed);
        assert_eq!(conflicts > 0, directory.is_some(), "{kind}: {conflicts} conflicts");
        assert!(server.listed().await.is_empty(), "{kind}");
        assert_eq!(staged(directory.as_ref()), 0);
    }
}

/// Gives a file a time, as other programs may.
fn touch(path: &Path, time: SystemTime) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_times(FileTimes::new().set_modified(time)).unwrap();
}

#[tokio::test]
async fn a_replaced_value_has_a_new_etag_even_with_equal_length_and_time() {
    for (kind, store, directory) in stores() {
        let server = serve(store);
        let now = SystemTime::now();
        let mut last = String::new();
        for number in 0..200 {
            server.put("a", &[], value("a", number, 64)).await;
            if let Some(root) = &directory {
                touch(&root.path().join("a"), now);
            }
            let read = server.value("a").await;
            assert_eq!(number_of("a", &read.body), number);
            assert_ne!(read.header("etag"), last, "{kind}: write {number}");
            let late = server.put("a", &[("if-match", &last)], "lost update").await;
            assert_eq!(late.status.as_u16(), 412, "{kind}: write {number}");
            read.header("etag").clone_into(&mut last);
        }
    }
}

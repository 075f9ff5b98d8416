//! The disk cache of the real server in front of a bucket: restarts, changed objects, kills, a full disk, a second server.
//!
//! Longer by hand: `ZARRD_DISK_KILLS=500 cargo test --test it disk_cache -- --nocapture`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use reqwest::{Client, StatusCode};
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::support::client;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::Array;
use crate::support::model::{Dim, spell};
use crate::support::process::{Running, text, zarrd};
use crate::support::s3::{Kind, TestS3};
use crate::support::stamped::{Dice, by_hand, value};

/// A bucket, and a folder for the cache and the configuration.
struct Scene {
    s3: TestS3,
    folder: TempDir,
    size: &'static str,
    freshness: &'static str,
}

impl Scene {
    async fn new() -> Self {
        let (s3, folder) = (TestS3::start().await, tempfile::tempdir().unwrap());
        Self { s3, folder, size: "64MiB", freshness: "always" }
    }

    fn cache(&self) -> std::path::PathBuf {
        self.folder.path().join("cache")
    }

    /// The command that serves the bucket, with no caches in memory, so that every read reaches the disk.
    fn command(&self) -> Command {
        let file = self.folder.path().join("zarrd.toml");
        let endpoint = self.s3.options().bucket.endpoint.unwrap();
        let config = format!(
            "[cache]\ndecoded_size = 0\nindex_size = 0\nnode_size = 0\nvalue_size = 0\n\
             [cache.disk]\npath = '{}'\nsize = '{}'\n\
             [http]\npublic_metrics = true\n\
             [mounts.m]\nurl = '{}'\nfreshness = '{}'\n\
             [mounts.m.options]\nendpoint = '{endpoint}'\nallow_http = true\n",
            self.cache().display(),
            self.size,
            TestS3::s3_url(),
            self.freshness,
        );
        std::fs::write(&file, config).unwrap();
        let mut command = zarrd(&["serve", "--config", file.to_str().unwrap()]);
        command.env("ZARRD__LOG__LEVEL", "error");
        command
    }

    fn start(&self) -> Running {
        Running::of(self.command())
    }

    /// Data requests of the bucket since the last call.
    fn gets(&self, before: &mut usize) -> usize {
        let now = self.s3.requests(Kind::Get);
        now - std::mem::replace(before, now)
    }
}

/// Ends a server as an operator does, which writes what is queued.
fn stop(mut server: Running) {
    server.signal(Signal::TERM);
    assert!(server.child.wait().unwrap().success());
}

async fn body(server: &Running, path: &str) -> Bytes {
    let answer = client::get(format!("http://{}{path}", server.address)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    answer.bytes().await.unwrap()
}

/// The value of a metric.
async fn metric(server: &Running, name: &str) -> u64 {
    let metrics = text(&body(server, "/metrics").await);
    let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
}

#[tokio::test]
async fn a_restarted_server_asks_the_bucket_for_versions_alone() {
    for freshness in ["always", "immutable"] {
        let scene = Scene { freshness, ..Scene::new().await };
        let shards = Shards::of(&[4, 8, 8], &[Codec::Bytes { big: false }]);
        let sharded = Array::of(&[16, 64, 64]).chunks(&[16, 32, 32]).codecs([shards.codec()]);
        let plain = Array::of(&[32, 32]).chunks(&[8, 8]);
        let store = scene.s3.store();
        let (sharded, plain) = (sharded.store(&store, "s").await, plain.store(&store, "p").await);
        let long = value("long", 1, 3 << 20);
        scene.s3.insert("long", long.clone());
        let (all, one) = (Dim::Slice { start: None, stop: None, step: None }, Dim::Index(3));
        let check = async |server: &Running| {
            let dims = [one, all, all];
            let slice = body(server, &format!("/v1/data/m/s?slice={}", spell(&dims))).await;
            assert_eq!(&*slice, &*sharded.select(&dims).elements);
            let dims = [all, one];
            let slice = body(server, &format!("/v1/data/m/p?slice={}", spell(&dims))).await;
            assert_eq!(&*slice, &*plain.select(&dims).elements);
            assert!(body(server, "/store/m/long").await == long);
        };
        let mut before = 0;
        let server = scene.start();
        check(&server).await;
        assert!(scene.gets(&mut before) > 10);
        stop(server);
        let server = scene.start();
        let heads = scene.s3.requests(Kind::Head);
        check(&server).await;
        // Absence is not cached: of each array, a document of another version of Zarr is asked for, and the check at the start
        // asks whether there is a bucket. No bytes come: no read of the disk is a miss, below.
        let gets = scene.gets(&mut before);
        assert!(gets <= 3, "{freshness}: {gets}");
        let heads = scene.s3.requests(Kind::Head) - heads;
        // The places of documents that are absent are asked for in any case.
        assert!(freshness == "always" || heads <= 6, "{heads}");
        let mounts = server.get("/v1/mounts");
        let reads = &mounts["mounts"][0]["reads"]["disk"];
        assert!(reads["hits"].as_u64().unwrap() > 10 && reads["misses"] == 0, "{mounts}");
        assert!(mounts["disk_cache"]["bytes"].as_u64().unwrap() > 3 << 20, "{mounts}");
        assert_eq!(mounts["memory"]["budgets"]["cache.disk.index_size"], 64 << 20);
        assert_eq!(metric(&server, "zarrd_disk_cache_damaged_total").await, 0);
    }
}

#[tokio::test]
async fn an_object_that_changed_is_read_again_and_its_old_tag_fails() {
    let scene = Scene::new().await;
    scene.s3.insert("a", "the first value");
    let server = scene.start();
    assert_eq!(body(&server, "/store/m/a").await, "the first value");
    stop(server);
    let server = scene.start();
    let url = format!("http://{}/store/m/a", server.address);
    let get = async |tag: &str| {
        let request = client::client().get(&url).header("if-match", tag).header("range", "bytes=4-8");
        let answer = request.send().await.unwrap();
        (answer.status(), answer.bytes().await.unwrap())
    };
    let first = client::get(&url).await.unwrap().headers()["etag"].to_str().unwrap().to_owned();
    assert_eq!(get(&first).await, (StatusCode::PARTIAL_CONTENT, Bytes::from("first")));
    scene.s3.insert("a", "the other value");
    assert_eq!(get(&first).await.0, StatusCode::PRECONDITION_FAILED);
    assert_eq!(body(&server, "/store/m/a").await, "the other value");
    scene.s3.insert("a", "the third value");
    stop(server);
    let server = scene.start();
    assert_eq!(body(&server, "/store/m/a").await, "the third value");
}

#[tokio::test]
async fn a_second_server_with_the_same_directory_does_not_start_and_check_says_why() {
    let scene = Scene::new().await;
    let server = scene.start();
    let second = scene.command().args(["--listen", "127.0.0.1:0"]).output().unwrap();
    assert!(!second.status.success());
    let message = text(&second.stderr);
    assert!(message.contains("cache.disk") && message.contains("another server uses"), "{message}");
    let file = scene.folder.path().join("zarrd.toml");
    let check = || zarrd(&["check", "--config", file.to_str().unwrap()]).output().unwrap();
    let checked = check();
    assert!(checked.status.success() && text(&checked.stderr).contains("another server"), "{checked:?}");
    stop(server);
    let checked = check();
    assert!(checked.status.success() && !text(&checked.stderr).contains("another server"), "{checked:?}");
    std::fs::remove_dir_all(scene.cache()).unwrap();
    std::fs::write(scene.cache(), "a file").unwrap();
    let checked = check();
    assert!(!checked.status.success());
    assert!(text(&checked.stderr).contains("is not a directory"), "{checked:?}");
}

#[tokio::test]
async fn a_full_disk_makes_reads_slower_and_never_wrong() {
    let scene = Scene::new().await;
    let keys: Vec<String> = (0..40).map(|number| format!("k/{number}")).collect();
    // Of some values a segment can have one, of others none.
    let length = |key: &str| if key.ends_with('9') { 200_000 } else { 100_000 };
    for key in &keys {
        scene.s3.insert(key, value(key, 1, length(key)));
    }
    let inner = scene.command();
    let mut command = Command::new("/bin/sh");
    // No file grows beyond 150 kB, so a write within a record fails.
    command.args(["-c", "ulimit -f 300; exec \"$0\" \"$@\""]).arg(inner.get_program()).args(inner.get_args());
    command.env_clear().env("ZARRD__LOG__LEVEL", "error");
    let server = Running::of(command);
    for _ in 0..3 {
        for key in &keys {
            assert!(body(&server, &format!("/store/m/{key}")).await == value(key, 1, length(key)), "{key}");
        }
    }
    assert!(metric(&server, "zarrd_disk_cache_failures_total").await > 0);
    stop(server);
    let server = scene.start();
    for key in &keys {
        assert!(body(&server, &format!("/store/m/{key}")).await == value(key, 1, length(key)), "{key}");
    }
    assert_eq!(metric(&server, "zarrd_disk_cache_damaged_total").await, 0);
}

#[tokio::test]
async fn a_directory_that_vanishes_and_files_that_are_damaged_change_no_answer() {
    let scene = Scene::new().await;
    let keys: Vec<String> = (0..30).map(|number| format!("k/{number}")).collect();
    for key in &keys {
        scene.s3.insert(key, value(key, 1, 60_000));
    }
    let check = async |server: &Running| {
        for key in &keys {
            assert!(body(server, &format!("/store/m/{key}")).await == value(key, 1, 60_000), "{key}");
        }
    };
    let server = scene.start();
    check(&server).await;
    stop(server);
    for file in std::fs::read_dir(scene.cache()).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        for at in (100..bytes.len()).step_by(50_000) {
            bytes[at] ^= 0x10;
        }
        std::fs::write(path, bytes).unwrap();
    }
    let server = scene.start();
    check(&server).await;
    assert!(metric(&server, "zarrd_disk_cache_damaged_total").await > 20);
    std::fs::remove_dir_all(scene.cache()).unwrap();
    check(&server).await;
    check(&server).await;
}

/// What a client may be sent: the number and the length of each value that a key had, by its entity tag; and the latest.
#[derive(Default)]
struct Written {
    by_tag: BTreeMap<String, (u64, usize)>,
    latest: u64,
}

type Values = Arc<Vec<(String, Mutex<Written>)>>;

fn write(s3: &TestS3, values: &Values, chosen: usize, number: u64, length: usize) {
    let (key, written) = &values[chosen];
    let mut written = written.lock().unwrap();
    let tag = s3.insert(key, value(key, number, length));
    written.by_tag.insert(tag.trim_matches('"').to_owned(), (number, length));
    written.latest = number;
}

/// Reads until the server is killed. Returns the number of answers, each of which was right and as new as its request.
async fn read(client: Client, base: String, values: Values, mut dice: Dice) -> u64 {
    let mut answers = 0;
    loop {
        let chosen = usize::try_from(dice.below(values.len() as u64)).unwrap();
        let (key, written) = &values[chosen];
        let oldest = written.lock().unwrap().latest;
        let mut request = client.get(format!("{base}/{key}"));
        let start = usize::try_from(dice.below(2_000)).unwrap();
        let is_part = dice.below(3) == 0;
        if is_part {
            request = request.header("range", format!("bytes={start}-{}", start + 999));
        }
        let Ok(answer) = request.send().await else { return answers };
        let (status, tag) = (answer.status(), answer.headers().get("etag").cloned());
        let Ok(bytes) = answer.bytes().await else { return answers };
        let expected = if is_part { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
        assert_eq!(status, expected, "{key}: {bytes:?}");
        let tag = tag.unwrap().to_str().unwrap().trim_matches('"').to_owned();
        let (number, length) = written.lock().unwrap().by_tag[&tag];
        let right = value(key, number, length);
        let right = if is_part { right.slice(start..start + 1000) } else { right };
        assert!(bytes == right, "{key} has other bytes under the tag of {number}");
        assert!(number >= oldest, "{key} is of {number}, and {oldest} was stored before");
        answers += 1;
    }
}

fn segments(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_with_a_disk_cache_serves_no_wrong_byte() {
    let kills = by_hand("ZARRD_DISK_KILLS", 4);
    // Too small for all values, so that segments are completed and evicted all the time.
    let scene = Scene { size: "4MiB", ..Scene::new().await };
    let mut dice = Dice::of(u64::from(std::process::id()));
    let values: Values = Arc::new((0..60).map(|n| (format!("d/{n}"), Mutex::default())).collect());
    let mut number = 0;
    for chosen in 0..values.len() {
        number += 1;
        write(&scene.s3, &values, chosen, number, 3_000 + dice.length(400_000));
    }
    let (mut answers, mut hits, mut damaged) = (0, 0, 0);
    for _ in 0..kills {
        let mut server = scene.start();
        let base = format!("http://{}/store/m", server.address);
        let mut readers = JoinSet::new();
        for _ in 0..6 {
            readers.spawn(read(client::client(), base.clone(), Arc::clone(&values), Dice::of(dice.roll())));
        }
        for _ in 0..20 + dice.below(20) {
            tokio::time::sleep(Duration::from_micros(5_000 + dice.below(10_000))).await;
            number += 1;
            let chosen = usize::try_from(dice.below(10)).unwrap();
            write(&scene.s3, &values, chosen, number, 3_000 + dice.length(400_000));
        }
        hits += metric(&server, "zarrd_disk_cache_reads_total{mount=\"m\",from=\"disk\"}").await;
        damaged += metric(&server, "zarrd_disk_cache_damaged_total").await;
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        answers += readers.join_all().await.into_iter().sum::<u64>();
        assert!(segments(&scene.cache()) <= 4 << 20);
    }
    println!(
        "{kills} kills, {answers} answers, {hits} of them from the disk: 0 wrong, 0 old, {damaged} records damaged"
    );
    assert!(answers > kills && hits > 0, "{answers} answers, {hits} from the disk");
}

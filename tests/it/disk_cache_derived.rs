//! Chunks of `/rechunk` and `/pyramid` on the disk of the real server: a restart encodes nothing again, and nothing is stale.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::StatusCode;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use zarrd::store::{LocalOptions, LocalStore, SharedStore};

use crate::support::client;
use crate::support::data_types::data_type;
use crate::support::hierarchy::Array;
use crate::support::process::{Running, text, zarrd};

/// The chunks that are read: of a rechunked array, of a level that is computed on request, and of one that is built.
const PATHS: [&str; 4] = [
    "/rechunk/m/16,32/zstd/g/a/c/5/6",
    "/rechunk/m/16,32/zstd/g/a/c/0/0",
    "/pyramid/m/mean/64,64/zstd/g/a/1/c/0/1",
    "/pyramid/m/mean/64,64/zstd/g/a/2/c/0/0",
];

/// A directory that is served, without caches in memory, and its disk cache.
struct Scene {
    folder: TempDir,
}

impl Scene {
    async fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(scene.data()).unwrap();
        let options = LocalOptions { writable: true, ..LocalOptions::default() };
        let store: SharedStore = Arc::new(LocalStore::open(&scene.data(), &options).unwrap());
        Array::of(&[600, 700])
            .chunks(&[50, 100])
            .data_type(data_type("int16"))
            .random(7, &[])
            .store(&store, "g/a")
            .await;
        // Versions of files that were written a moment ago do not hold yet.
        tokio::time::sleep(Duration::from_millis(100)).await;
        scene
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn start(&self) -> Running {
        let file = self.folder.path().join("zarrd.toml");
        let config = format!(
            "[cache]\ndecoded_size = 0\nindex_size = 0\nnode_size = 0\nvalue_size = 0\nencoded_size = 0\n\
             [cache.disk]\npath = '{}'\nsize = '16MiB'\n\
             [pyramid]\ndirect_size = '64KiB'\n\
             [http]\npublic_metrics = true\n\
             [server]\nadmin_listen = '127.0.0.1:0'\n\
             [mounts.m]\nurl = '{}'\n",
            self.cache().display(),
            self.data().display(),
        );
        fs::write(&file, config).unwrap();
        let mut command: Command = zarrd(&["serve", "--config", file.to_str().unwrap()]);
        command.env("ZARRD__LOG__LEVEL", "error");
        Running::of(command)
    }

    fn segments(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.cache()).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("segment-")).collect()
    }
}

/// Ends a server as an operator does, which writes what is queued.
fn stop(mut server: Running) {
    server.signal(Signal::TERM);
    assert!(server.child.wait().unwrap().success());
}

/// The chunks at [`PATHS`], with their entity tags. One that is built is waited for.
async fn chunks(server: &Running) -> BTreeMap<&'static str, (String, Bytes)> {
    let mut found = BTreeMap::new();
    for path in PATHS {
        let url = format!("http://{}{path}", server.address);
        let answer = loop {
            let answer = client::get(url.clone()).await.unwrap();
            if answer.status() != StatusCode::SERVICE_UNAVAILABLE {
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let tag = answer.headers()["etag"].to_str().unwrap().to_owned();
        found.insert(path, (tag, answer.bytes().await.unwrap()));
    }
    found
}

/// How many chunks came from the disk, and how many were encoded.
async fn reads(server: &Running) -> (u64, u64) {
    let answer = client::get(format!("http://{}/metrics", server.address)).await.unwrap();
    let metrics = text(&answer.bytes().await.unwrap());
    let value = |from: &str| -> u64 {
        let name = format!("zarrd_disk_cache_derived_reads_total{{mount=\"m\",from=\"{from}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
        line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
    };
    (value("disk"), value("encoder"))
}

/// Sends a request to the admin address, which the banner has.
async fn admin(server: &mut Running, method: reqwest::Method, path: &str) -> Value {
    use std::io::BufRead;
    let address = loop {
        let mut line = String::new();
        assert!(server.stdout.read_line(&mut line).unwrap() > 0, "no admin address in the banner");
        if let Some((address, _)) = line.trim().split_once("/metrics") {
            break address.to_owned();
        }
    };
    let request = client::client().request(method, format!("{address}{path}"));
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
}

#[tokio::test]
async fn a_restarted_server_encodes_no_chunk_of_a_view_again() {
    let scene = Scene::new().await;
    let server = scene.start();
    let expected = chunks(&server).await;
    assert!(reads(&server).await.1 >= PATHS.len() as u64);
    stop(server);

    let server = scene.start();
    assert!(chunks(&server).await == expected);
    let (hits, encoded) = reads(&server).await;
    assert_eq!(encoded, 0);
    assert!(hits >= PATHS.len() as u64);
    let derived = &server.get("/v1/mounts")["mounts"][0]["reads"]["derived"];
    assert_eq!((derived["hits"].as_u64(), derived["misses"].as_u64()), (Some(hits), Some(0)));
    // A chunk that was built is there at the first request.
    let built = format!("http://{}{}", server.address, PATHS[3]);
    let answer = client::get(built).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["cache-status"], "zarrd; hit");
    stop(server);
}

#[tokio::test]
async fn a_chunk_of_a_view_whose_source_changed_is_encoded_again() {
    let scene = Scene::new().await;
    let server = scene.start();
    let before = chunks(&server).await;
    stop(server);

    let changed = scene.data().join("g/a/c/0/0");
    let mut bytes = fs::read(&changed).unwrap();
    bytes.rotate_left(1);
    fs::write(&changed, &bytes).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let server = scene.start();
    let after = chunks(&server).await;
    // Of these, the first alone is made of other chunks.
    assert_eq!(after[PATHS[0]], before[PATHS[0]]);
    for path in [PATHS[1], PATHS[3]] {
        assert!(after[path].0 != before[path].0 && after[path].1 != before[path].1, "{path}");
    }
    stop(server);
}

#[tokio::test]
async fn a_purge_and_damage_reach_the_chunks_of_views() {
    let scene = Scene::new().await;
    let mut server = scene.start();
    let expected = chunks(&server).await;
    let purged = admin(&mut server, reqwest::Method::DELETE, "/v1/cache/m/g").await;
    assert_eq!(purged["durable"], true);
    stop(server);
    let server = scene.start();
    assert!(chunks(&server).await == expected);
    assert!(reads(&server).await.1 >= PATHS.len() as u64, "the purge holds over a restart");
    stop(server);

    for file in scene.segments() {
        let mut bytes = fs::read(&file).unwrap();
        // Behind the heads, so that they are found by the start and not by a read.
        for at in (4096..bytes.len()).step_by(101) {
            bytes[at] ^= 4;
        }
        fs::write(&file, bytes).unwrap();
    }
    let server = scene.start();
    assert!(chunks(&server).await == expected, "what is damaged is encoded again");
    stop(server);
}

#[tokio::test]
async fn a_prefetch_of_a_view_makes_all_of_its_chunks() {
    let scene = Scene::new().await;
    let mut server = scene.start();
    let path = "/v1/cache/m/g?view=pyramid/mean/64,64/zstd&bytes=100000000";
    let report = admin(&mut server, reqwest::Method::POST, path).await;
    assert_eq!((report["complete"].as_bool(), report["failed"].as_u64()), (Some(true), Some(0)), "{report}");
    // Two levels of 300 × 350 and 150 × 175 elements, beside the stored chunks.
    assert_eq!(report["chunks"], 12 * 7 + 5 * 6 + 3 * 3, "{report}");
    stop(server);
    let server = scene.start();
    chunks(&server).await;
    let (hits, encoded) = reads(&server).await;
    assert!(hits >= 2 && encoded == 2, "{hits} and {encoded}: only those of the other view are encoded");
    stop(server);
}

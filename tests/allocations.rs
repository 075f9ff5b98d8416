//! How often and how much is allocated for an answer: counts that do not depend on the clock, so that what makes the
//! server slower is noticed where time cannot be measured.
//!
//! The requests go through the routes as the configuration builds them, files and caches included, from the request to
//! the end of the body; the connection is not counted. A test binary of its own, with one test: the allocator counts for
//! all threads, and nothing else may run.
//!
//! [`TAKES`] is what was measured. More is a regression; where less is measured (`-- --nocapture` shows it), lower it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use futures::TryStreamExt;
use serde_json::json;
use zarrd::app::App;
use zarrd::cache::CacheOptions;
use zarrd::config::Config;
use zarrd::http::Peer;
use zarrd::web::Endpoint;

use counting::Allocated;

/// A request and its cost: its name, what is cached, its method, path and header; allocations, and bytes of them.
type Row = (&'static str, Caches, &'static str, &'static str, Option<(&'static str, &'static str)>, u64, u64);

/// What each takes. Three of each are for who asks, which travels with the request; one of each question to a backend is for
/// counting it.
#[rustfmt::skip]
const TAKES: [Row; 11] = [
    // Kept: nothing of the value; extractors, boxed futures, headers, and bodies within bodies.
    ("16 KiB", Caches::Default, "GET", "/store/m/16", None, 16, 3_840),
    // The value's buffer, and that of the try to read it at once.
    ("16 KiB, not kept", Caches::None, "GET", "/store/m/16", None, 25, 37_960),
    ("its head", Caches::Default, "HEAD", "/store/m/16", None, 19, 5_440),
    ("not modified", Caches::Default, "GET", "/store/m/16", Some(("if-none-match", "*")), 13, 3_430),
    ("64 KiB of 1 MiB", Caches::Default, "GET", "/store/m/1024", Some(("range", "bytes=65536-131071")), 19, 3_916),
    // Streamed: a buffer for each piece of 512 KiB, and the last is in flight until it is sent.
    ("4 MiB", Caches::Default, "GET", "/store/m/4096", None, 40, 4_269_310),
    // Kept whole: the head is copied, the body shared.
    ("warm patch of 4 chunks", Caches::Default, "GET", "/v1/data/m/plane?slice=128:384,128:384", None, 18, 6_050),
    // Cached as well: however many chunks there are, each is only revalidated.
    ("warm pixel of 64 chunks", Caches::Default, "GET", "/v1/data/m/series?slice=:64,3,3", None, 18, 6_050),
    ("warm pixel of 128 chunks", Caches::Default, "GET", "/v1/data/m/series?slice=:128,3,3", None, 16, 6_000),
    // The node's document read and bound, the index, and 4 inner chunks in one range.
    ("cold row of a shard", Caches::None, "GET", "/v1/data/m/shards?slice=:16", None, 430, 70_840),
    // The node; the chunk read and shown as it is: its bytes once, and those of the answer once.
    ("cold chunk", Caches::None, "GET", "/v1/data/m/plane?slice=:256,:256", None, 239, 299_632),
];
/// Allocations for one chunk more in a warm pixel.
const TAKES_PER_CHUNK: u64 = 0;
/// One part in this many more than that is no regression: what waits for what is a matter of chance.
const SLACK: u64 = 50;

/// Rounds of which the least counts: tables grow now and then, the system may drop a page, and what is revalidated often is
/// watched only after some checks.
const ROUNDS: usize = 64;
/// How often as many are asked again: the watches of the files that a kept answer is made from are set up by other threads, and
/// until then each answer asks for the times of all files.
const ATTEMPTS: usize = 20;

/// What is cached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caches {
    Default,
    None,
}

/// Writes the requested keys below a directory.
fn fill(root: &Path) {
    let write = |path: &str, bytes: &[u8]| {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, bytes).unwrap();
    };
    let array = |path: &str, shape: &[usize], chunk_shape: &[usize], codecs: serde_json::Value| {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint16", "fill_value": 0,
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunk_shape } },
            "chunk_key_encoding": { "name": "default" }, "codecs": codecs,
        });
        write(&format!("{path}/zarr.json"), document.to_string().as_bytes());
    };
    for kib in [16, 1024, 4096] {
        write(&kib.to_string(), &vec![7; kib << 10]);
    }
    let little = json!({ "name": "bytes", "configuration": { "endian": "little" } });
    array("plane", &[512, 512], &[256, 256], json!([little]));
    for chunk in ["0/0", "0/1", "1/0", "1/1"] {
        write(&format!("plane/c/{chunk}"), &vec![7; 256 * 256 * 2]);
    }
    array("series", &[128, 16, 16], &[1, 16, 16], json!([little]));
    for chunk in 0..128 {
        write(&format!("series/c/{chunk}/0/0"), &[7; 16 * 16 * 2]);
    }
    let sharding = json!({ "name": "sharding_indexed", "configuration": {
        "chunk_shape": [16, 16], "codecs": [little], "index_codecs": [little, { "name": "crc32c" }],
    } });
    array("shards", &[64, 64], &[64, 64], json!([sharding]));
    let inner_bytes = 16 * 16 * 2_u64;
    let index: Vec<u8> =
        (0..16).flat_map(|chunk| [chunk * inner_bytes, inner_bytes]).flat_map(u64::to_le_bytes).collect();
    let shard = [vec![7; 64 * 64 * 2], index.clone(), crc32c::crc32c(&index).to_le_bytes().to_vec()].concat();
    write("shards/c/0/0", &shard);
}

/// A server of a directory.
async fn site(root: &Path, caches: Caches) -> Endpoint {
    let mut config = Config::default();
    let mount = json!({ "url": root });
    config.mounts.insert("m".to_owned(), serde_json::from_value(mount).unwrap());
    config.cpu.threads = 1;
    if caches == Caches::None {
        config.cache = CacheOptions {
            decoded_size: 0,
            index_size: 0,
            node_size: 0,
            value_size: 0,
            encoded_size: 0,
            zip_directory_size: 0,
            references_size: 0,
            ..CacheOptions::default()
        };
    }
    App::build(config).await.unwrap().site()
}

/// Asks, takes the whole body, and counts.
async fn ask(site: &Endpoint, method: &str, path: &str, header: Option<(&str, &str)>) -> Allocated {
    let mut request = Request::builder().method(method).uri(path);
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    let request = request.body(Body::empty()).unwrap();
    let before = Allocated::so_far();
    let answer: Response = site.handle(request, Peer::LOOPBACK).await;
    assert!(answer.status().is_success() || answer.status() == 304, "{method} {path}: {}", answer.status());
    let mut body = answer.into_body().into_data_stream();
    while body.try_next().await.unwrap().is_some() {}
    Allocated::so_far().since(before)
}

#[tokio::test]
async fn an_answer_takes_no_more_allocations_than_it_did() {
    // Files of a file system that is the same everywhere. It reads nothing without waiting: bytes are read by a thread.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    fill(folder.path());
    let (warm, cold) = (site(folder.path(), Caches::Default).await, site(folder.path(), Caches::None).await);
    let mut broken = Vec::new();
    let mut counts = Vec::new();
    for (name, caches, method, path, header, most, most_bytes) in TAKES {
        let site = if caches == Caches::None { &cold } else { &warm };
        let mut least = Allocated::MOST;
        let is_more = |Allocated { times, bytes }| {
            times > most + most / SLACK || bytes > most_bytes + most_bytes / SLACK
        };
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            for _ in 0..ROUNDS {
                least = least.least(ask(site, method, path, header).await);
            }
            if !is_more(least) {
                break;
            }
        }
        let Allocated { times, bytes } = least;
        println!("{name}: {times} allocations ({most}) of {bytes} bytes ({most_bytes})");
        if is_more(least) {
            broken.push(format!("{name}: {times} of {bytes} bytes, not {most} of {most_bytes}"));
        }
        counts.push((name, times));
    }
    let of = |name| counts.iter().find(|count| count.0 == name).unwrap().1;
    let (few, many) = (of("warm pixel of 64 chunks"), of("warm pixel of 128 chunks"));
    let per_chunk = many.saturating_sub(few).div_ceil(64);
    println!("{per_chunk} for one chunk more ({TAKES_PER_CHUNK})");
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!(per_chunk, TAKES_PER_CHUNK);
}

/// The system's allocator, which counts.
#[expect(unsafe_code, reason = "an allocator cannot be written otherwise; it passes on what it is given")]
mod counting {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[global_allocator]
    static ALLOCATOR: Counting = Counting { times: AtomicU64::new(0), bytes: AtomicU64::new(0) };

    struct Counting {
        times: AtomicU64,
        bytes: AtomicU64,
    }

    /// Counts of allocations.
    #[derive(Clone, Copy)]
    pub(super) struct Allocated {
        pub(super) times: u64,
        pub(super) bytes: u64,
    }

    impl Allocated {
        pub(super) const MOST: Self = Self { times: u64::MAX, bytes: u64::MAX };

        pub(super) fn so_far() -> Self {
            Self { times: ALLOCATOR.times.load(Relaxed), bytes: ALLOCATOR.bytes.load(Relaxed) }
        }

        pub(super) fn since(self, before: Self) -> Self {
            Self { times: self.times - before.times, bytes: self.bytes - before.bytes }
        }

        pub(super) fn least(self, other: Self) -> Self {
            Self { times: self.times.min(other.times), bytes: self.bytes.min(other.bytes) }
        }
    }

    impl Counting {
        fn count(&self, bytes: usize) {
            self.times.fetch_add(1, Relaxed);
            self.bytes.fetch_add(bytes as u64, Relaxed);
        }
    }

    // SAFETY: every call is passed on to the system's allocator as it came.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            self.count(layout.size());
            // SAFETY: the caller keeps what `alloc` asks for.
            unsafe { System.alloc(layout) }
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            self.count(layout.size());
            // SAFETY: the caller keeps what `alloc_zeroed` asks for.
            unsafe { System.alloc_zeroed(layout) }
        }

        unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            self.count(size);
            // SAFETY: the caller keeps what `realloc` asks for.
            unsafe { System.realloc(pointer, layout, size) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            // SAFETY: the caller keeps what `dealloc` asks for.
            unsafe { System.dealloc(pointer, layout) }
        }
    }
}

//! Cached responses: they match what is stored, whatever happened to it since the last response.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::{Method, StatusCode};
use zarrd::services::Mount;
use zarrd::store::{LocalOptions, LocalStore, SharedStore};

use crate::support::counting::Decodes;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, Format, memory};
use crate::support::server::{Server, erase, no_caches, put};

const LITTLE: Codec = Codec::Bytes { big: false };
/// Chunks of an array.
const DAYS: usize = 70;
/// Slices of all chunks and of three, and how often each is requested, so that at last the kernel reports their changes.
const SLICES: [(Range<usize>, usize); 2] = [(0..DAYS, 24), (DAYS / 2 - 1..DAYS / 2 + 2, 48)];

/// Arrays of 70 × 8 × 8 elements in 70 chunks, or shards, all of whose bytes are this one.
fn arrays(byte: u8) -> [Array; 3] {
    let fill = serde_json::json!({ "fill_value": 0 });
    let plain = Array::of(&[DAYS, 8, 8]).chunks(&[1, 8, 8]).members(fill).uniform(byte);
    let v2 =
        plain.clone().format(Format::V2 { compressor: None, fortran: false, big: false, separator: '/' });
    let sharded = plain.clone().codecs([Shards::of(&[1, 4, 4], &[LITTLE]).codec()]);
    [plain, v2, sharded]
}

/// The bytes of a chunk of such an array.
fn chunk(array: usize, byte: u8) -> Vec<u8> {
    let array = arrays(byte)[array].clone();
    array.chunk(&array.model(), &[0, 0, 0])
}

/// Asks for a pixel through chunks again and again, the last of them once more as what needs no element. The chunk in
/// the middle holds this byte, or is not there.
async fn check(server: &Server, array: usize, middle: Option<u8>, what: &str) {
    for (days, times) in SLICES {
        let url = format!("/v1/data/m/{array}?slice={}:{},3,5", days.start, days.end);
        let bytes = days.flat_map(|day| [if day == DAYS / 2 { middle.unwrap_or(0) } else { 1 }; 2]);
        let expected: Vec<u8> = bytes.collect();
        for time in 0..times {
            let what = format!("{what}: {url}, time {time}");
            let answer = server.get(&url).await;
            assert_eq!(answer.status, StatusCode::OK);
            assert!(*answer.body == *expected, "{what}: {:?}", answer.body);
            // One of few chunks is only cached when it is requested again.
            if time > 1 {
                assert_eq!(answer.header("cache-status"), "zarrd; hit", "{what}");
            }
            let head = server.ask(Method::HEAD, &url, &[]).await;
            let mut tag = answer.header("etag").to_owned();
            if tag.starts_with("W/") && tag != head.header("etag") {
                // The time has passed in which a file that was just written could change again unseen.
                server.get(&url).await.header("etag").clone_into(&mut tag);
            }
            assert_eq!(head.header("etag"), tag, "{what}");
        }
    }
}

/// An absolute link leads out of the mount, so this is no matter of fill values.
async fn check_refused(server: &Server, array: usize, what: &str) {
    for _ in 0..3 {
        server.get(&format!("/v1/data/m/{array}?slice=:,3,5")).await.refuses(500, "unusable-link", what);
    }
}

/// The store of a directory.
fn local(root: &Path) -> SharedStore {
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    Arc::new(LocalStore::open(root, &options).unwrap())
}

fn middle(root: &Path, array: usize) -> std::path::PathBuf {
    let before = if array == 1 { "" } else { "c/" };
    root.join(format!("{array}/{before}{}/0/0", DAYS / 2))
}

#[tokio::test]
async fn a_chunk_changed_by_another_program_is_never_served_from_a_cache() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let store = local(root);
    for (array, made) in arrays(1).iter().enumerate() {
        made.store(&store, &array.to_string()).await;
        let server = Server::of(Arc::clone(&store));
        check(&server, array, Some(1), "as it was made").await;
        let file = middle(root, array);
        let days = file.parent().unwrap().parent().unwrap();
        let (away, back) = (root.join(format!("away-{array}")), days.to_path_buf());

        fs::write(&file, chunk(array, 2)).unwrap();
        check(&server, array, Some(2), "written in place").await;

        fs::write(root.join("new"), chunk(array, 3)).unwrap();
        fs::rename(root.join("new"), &file).unwrap();
        check(&server, array, Some(3), "replaced by another").await;

        fs::rename(&back, &away).unwrap();
        check(&server, array, None, "its directory renamed away").await;

        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, chunk(array, 4)).unwrap();
        check(&server, array, Some(4), "another directory in its place").await;

        fs::remove_file(&file).unwrap();
        symlink(root.join(format!("away-{array}/0/0")), &file).unwrap();
        check_refused(&server, array, "a link in its place").await;

        fs::remove_dir_all(&back).unwrap();
        fs::rename(&away, &back).unwrap();
        check(&server, array, Some(3), "back where it was").await;

        let other = root.join(format!("other-{array}"));
        fs::create_dir_all(other.join("0")).unwrap();
        fs::write(other.join("0/0"), chunk(array, 5)).unwrap();
        fs::remove_dir_all(&back).unwrap();
        symlink(&other, &back).unwrap();
        check_refused(&server, array, "a link to another place in place of its directory").await;

        fs::remove_file(&back).unwrap();
        fs::rename(&other, &back).unwrap();
        check(&server, array, Some(5), "there once more").await;
    }
}

#[tokio::test]
async fn a_document_changed_by_another_program_is_never_served_from_a_cache() {
    let directory = tempfile::tempdir().unwrap();
    let store = local(directory.path());
    for (array, made) in arrays(1).iter().enumerate() {
        made.store(&store, &array.to_string()).await;
        let server = Server::of(Arc::clone(&store));
        check(&server, array, Some(1), "as it was made").await;
        let (name, mut document) = made.document();
        document["shape"] = serde_json::json!([DAYS, 8, 5]);
        fs::write(directory.path().join(format!("{array}/{name}")), document.to_string()).unwrap();
        let url = format!("/v1/data/m/{array}?slice=:,3,5");
        assert_eq!(server.get(&url).await.status, StatusCode::BAD_REQUEST);
        // A document that takes precedence, or that is no array any longer.
        fs::write(
            directory.path().join(format!("{array}/zarr.json")),
            r#"{"zarr_format":3,"node_type":"group"}"#,
        )
        .unwrap();
        assert_eq!(server.get(&url).await.status, StatusCode::NOT_FOUND);
        fs::remove_dir_all(directory.path().join(array.to_string())).unwrap();
        assert_eq!(server.get(&url).await.status, StatusCode::NOT_FOUND);
    }
}

/// Requests a slice until the kernel reports changes of a file. It lists the watches of a process by inode.
async fn until_watched(server: &Server, url: &str, file: &Path) {
    let inode = format!(" ino:{:x} ", fs::metadata(file).unwrap().ino());
    let is_listed = || {
        let open = fs::read_dir("/proc/self/fdinfo").unwrap();
        // Those of other tests may be closed meanwhile.
        open.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok()).any(|text| text.contains(&inode))
    };
    let mut since_listed = 0;
    for _ in 0..20_000 {
        assert_eq!(server.get(url).await.status, StatusCode::OK);
        since_listed = if is_listed() { since_listed + 1 } else { 0 };
        // The last check before the watch takes a few requests.
        if since_listed == 20 {
            return;
        }
    }
    panic!("{} is not watched", file.display());
}

#[tokio::test]
async fn changes_of_few_chunks_and_their_documents_are_reported_under_every_name_of_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let link = root.join("link");
    for (array, made) in arrays(1).iter().enumerate() {
        let url = format!("/v1/data/m/{array}?slice={}:{},3,5", DAYS / 2, DAYS / 2 + 1);
        // Each with a store of its own, and with that with watches of its own.
        {
            let store = local(root);
            made.store(&store, &array.to_string()).await;
            let server = Server::of(store);
            let file = middle(root, array);
            fs::hard_link(&file, &link).unwrap();
            until_watched(&server, &url, &file).await;
            fs::write(&link, chunk(array, 2)).unwrap();
            assert_eq!(*server.get(&url).await.body, [2; 2], "array {array}: a chunk");
            fs::remove_file(&link).unwrap();
        }
        let server = Server::of(local(root));
        let (name, mut document) = made.document();
        let file = root.join(format!("{array}/{name}"));
        fs::hard_link(&file, &link).unwrap();
        until_watched(&server, &url, &file).await;
        document["shape"] = serde_json::json!([DAYS, 8, 5]);
        fs::write(&link, document.to_string()).unwrap();
        assert_eq!(server.get(&url).await.status, StatusCode::BAD_REQUEST, "array {array}: its document");
        fs::remove_file(&link).unwrap();
    }
}

#[tokio::test]
async fn writes_to_a_memory_store_are_visible_at_once() {
    let store = memory();
    for (array, made) in arrays(1).iter().enumerate() {
        made.store(&store, &array.to_string()).await;
        let server = Server::of(Arc::clone(&store));
        let key = middle(Path::new(""), array);
        for byte in [Some(1), Some(2), None, Some(3)] {
            match byte {
                Some(byte) => put(&store, key.to_str().unwrap(), chunk(array, byte)).await,
                None => erase(&store, key.to_str().unwrap()).await,
            }
            check(&server, array, byte, &format!("{byte:?}")).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_response_is_older_than_its_request_under_concurrency() {
    let directory = tempfile::tempdir().unwrap();
    for store in [memory(), local(directory.path())] {
        arrays(1)[0].store(&store, "0").await;
        let server = Server::build(Mount::read_only("m", Arc::clone(&store))).finish();
        let urls = ["/v1/data/m/0?slice=:,3,5", "/v1/data/m/0?slice=34:37,3,5"];
        let is_over = Arc::new(AtomicBool::new(false));
        let crowd: Vec<_> = (0..8)
            .map(|client| {
                let (server, is_over, url) = (server.clone(), Arc::clone(&is_over), urls[client % 2]);
                tokio::spawn(async move {
                    while !is_over.load(Ordering::Relaxed) {
                        server.get(url).await;
                    }
                })
            })
            .collect();
        let key = middle(Path::new(""), 0);
        for byte in 2..=60 {
            put(&store, key.to_str().unwrap(), chunk(0, byte)).await;
            assert_eq!(server.get(urls[0]).await.body[DAYS], byte);
            assert_eq!(server.get(urls[1]).await.body[2], byte);
        }
        is_over.store(true, Ordering::Relaxed);
        futures::future::join_all(crowd).await;
    }
}

/// An array of 8 chunks of 512 KiB, and how often each chunk of it is decoded by a server with a cache of this many bytes.
async fn counted(codec: Codec, cache_bytes: u64) -> (Server, Decodes) {
    let store = memory();
    let array = Array::of(&[8, 512, 512]).chunks(&[1, 512, 512]).codecs([LITTLE, codec]);
    array.uniform(7).store(&store, "a").await;
    let mut server = Server::build(Mount::read_only("m", store));
    let decodes = Decodes::default();
    server.decodes = Some(Arc::clone(&decodes));
    server.cache.decoded_size = cache_bytes;
    server.http.public_metrics = true;
    (server.finish(), decodes)
}

/// How often chunks were decoded, all together.
fn total(decodes: &Decodes) -> usize {
    decodes.lock().unwrap().values().sum()
}

#[tokio::test]
async fn an_expensive_small_response_is_cached_at_once_and_survives_later_reads() {
    let (server, decodes) = counted(Codec::Gzip, 4 << 20).await;
    let pixel = "/v1/data/m/a?slice=:,3,5";
    let first = server.get(pixel).await;
    assert_eq!((first.header("cache-status"), total(&decodes)), ("zarrd; fwd=miss", 8));
    // None of the chunks fits into the cache, and a scan reads them all.
    for day in 0..8 {
        server.get(&format!("/v1/data/m/a?slice={day}")).await;
    }
    let scanned = total(&decodes);
    let second = server.get(pixel).await;
    assert_eq!((second.header("cache-status"), &second.body), ("zarrd; hit", &first.body));
    assert_eq!(total(&decodes), scanned);
}

/// How many responses are cached.
async fn cached_responses(server: &Server) -> u64 {
    let answer = server.get("/metrics").await;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("zarrd_cache_entries{kind=\"answers\"} "));
    line.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

#[tokio::test]
async fn series_through_the_chunks_of_a_year_are_cached_with_the_memory_of_a_small_server() {
    let store = memory();
    Array::of(&[365, 4, 4]).chunks(&[1, 4, 4]).store(&store, "a").await;
    let mut builder = Server::build(Mount::read_only("m", store));
    // What a container of 512 MiB has.
    builder.cache.decoded_size = 29 << 20;
    builder.http.public_metrics = true;
    let server = builder.finish();
    let urls: Vec<String> = (0..4).map(|at| format!("/v1/data/m/a?slice=:,{at},1")).collect();
    for url in urls.iter().cycle().take(12) {
        server.get(url).await;
    }
    assert_eq!(cached_responses(&server).await, 4);
}

#[tokio::test]
async fn what_is_copied_from_one_chunk_in_memory_is_cached_when_it_is_requested_again() {
    let (server, _) = counted(Codec::Gzip, 256 << 20).await;
    // Decoded completely, and kept.
    for _ in 0..3 {
        server.get("/v1/data/m/a?slice=0").await;
    }
    let before = cached_responses(&server).await;
    let url = |pixel: usize| format!("/v1/data/m/a?slice=0,{},{}", pixel / 100, pixel % 100);
    for pixel in 0..500 {
        assert_eq!(server.get(&url(pixel)).await.header("cache-status"), "zarrd; hit", "pixel {pixel}");
    }
    assert_eq!(cached_responses(&server).await, before);
    server.get(&url(499)).await;
    server.get(&url(499)).await;
    assert_eq!(cached_responses(&server).await, before + 1);
}

#[tokio::test]
async fn a_chunk_is_decoded_completely_after_two_partial_requests() {
    const HIT: &str = "zarrd; hit";
    const MISS: &str = "zarrd; fwd=miss";
    let (server, decodes) = counted(Codec::Blosc { cname: "lz4", shuffle: "noshuffle" }, 256 << 20).await;
    for (row, cache, decoded) in
        [(0, MISS, 1), (0, HIT, 1), (1, MISS, 2), (2, HIT, 2), (0, HIT, 2), (511, HIT, 2)]
    {
        // Ranges are put together each time.
        let url = format!("/v1/data/m/a?slice=0,{row}");
        let answer = server.ask(Method::GET, &url, &[("range", "bytes=0-")]).await;
        assert_eq!((answer.header("cache-status"), total(&decodes)), (cache, decoded), "row {row}");
    }
}

#[tokio::test]
async fn a_cached_response_equals_an_uncached_one() {
    let directory = tempfile::tempdir().unwrap();
    let store = local(directory.path());
    arrays(1)[0].store(&store, "0").await;
    let mount = || Mount::read_only("m", Arc::clone(&store));
    let warm = Server::build(mount()).finish();
    let mut uncached = Server::build(mount());
    uncached.cache = no_caches();
    let cold = uncached.finish();
    let tag = cold.get("/v1/data/m/0?slice=:,3,5").await.header("etag").to_owned();
    let ways: [&[(&str, &str)]; 12] = [
        &[],
        &[("accept", "*/*")],
        &[("accept", "application/json")],
        &[("accept", "image/bmp")],
        &[("accept", "*/*"), ("accept", "text/csv")],
        &[("range", "bytes=3-9")],
        &[("range", "bytes=9999-")],
        &[("if-none-match", &tag)],
        &[("if-none-match", "\"other\"")],
        &[("if-match", &tag)],
        &[("if-match", "\"other\"")],
        &[("origin", "https://example.org")],
    ];
    let urls = [
        "/v1/data/m/0?slice=:,3,5",
        "/v1/data/m/0?slice=:,3,5&format=npy",
        "/v1/data/m/0?slice=:,3,5&f=json",
        "/v1/data/m/0?slice=:,3,5&format=arrow",
        "/v1/data/m/0?slice=:,3,5&expected_shape=1",
        "/v1/data/m/0?slice=0",
        "/v1/chunk/m/0/c/3/0/0",
        "/v1/chunk/m/0/c/3/0/0?slice=0",
        "/v1/data//m/0?slice=:,3,5",
    ];
    for url in urls {
        for way in ways {
            for method in [Method::GET, Method::HEAD] {
                let responses = async |server: &Server| {
                    let mut answer = server.ask(method.clone(), url, way).await;
                    for of_one_request in ["x-request-id", "server-timing", "cache-status"] {
                        answer.headers.remove(of_one_request);
                    }
                    let mut headers: Vec<_> = answer
                        .headers
                        .iter()
                        .map(|(name, value)| (name.to_string(), value.clone()))
                        .collect();
                    headers.sort();
                    let body = String::from_utf8_lossy(&answer.body).into_owned();
                    // A problem names its request.
                    let body = body.split(r#""request_id""#).next().unwrap().to_owned();
                    (answer.status, headers, body)
                };
                let expected = responses(&cold).await;
                for _ in 0..4 {
                    assert_eq!(responses(&warm).await, expected, "{method} {url} {way:?}");
                }
            }
        }
    }
}

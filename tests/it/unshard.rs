//! Sharded arrays as arrays of their inner chunks: the same elements, the stored bytes, and no more reads than it takes.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::{Method, StatusCode};
use proptest::test_runner::Config;
use serde_json::json;
use zarrd::services::Mount;
use zarrd::store::SharedStore;
use zarrs::array::{Array as Zarrs, ArrayBytes};
use zarrs::storage::store::MemoryStore;
use zarrs::storage::{StoreKey, WritableStorageTraits};

use crate::fixtures::{check_some, manifest, stored};
use crate::support::changing::Changing;
use crate::support::client;
use crate::support::copied::{copy, encode, list_all, read_all};
use crate::support::counting::Counting;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, Edges, memory};
use crate::support::server::{Answer, Server, erase, put};
use crate::support::strategies::case;

/// Arrays with a checksum over whole shards, which cannot be checked by their parts.
const CHECKED: [&str; 2] =
    ["matrix-zarrpy-v3/shard/end_outer_crc/zarr.json", "matrix-zarrpy-v3/shard/start_outer_crc/zarr.json"];

const LITTLE: Codec = Codec::Bytes { big: false };
/// Bytes of the index of a shard of 16 inner chunks, with a checksum.
const INDEX: u64 = 16 * 16 + 4;
/// Bytes of one of its inner chunks: 64 elements of two bytes.
const INNER: u64 = 128;

/// Two shards of 32 × 32 elements in 4 × 4 inner chunks each, uncompressed, so that byte ranges are known.
fn shards() -> Array {
    Array::of(&[32, 64]).chunks(&[32, 32]).codecs([Shards::of(&[8, 8], &[LITTLE]).codec()])
}

async fn served(array: &Array) -> (Server, SharedStore) {
    let store = memory();
    array.store(&store, "a").await;
    (Server::of(Arc::clone(&store)), store)
}

/// The arrays of fixtures that have shards, and every fourth of the others.
async fn chosen(server: &Server) -> BTreeSet<String> {
    let mut chosen = BTreeSet::new();
    let mut others = 0;
    for (key, ..) in list_all(server, "/store/m/", None).await {
        let Some(path) = key.strip_suffix("/zarr.json").or(key.strip_suffix("/.zarray")) else { continue };
        let has_shards = has_shards(server, &key).await;
        others += usize::from(!has_shards);
        if has_shards || others % 4 == 0 {
            chosen.insert(path.to_owned());
        }
    }
    chosen
}

async fn has_shards(server: &Server, document: &str) -> bool {
    let key: Vec<String> = document.split('/').map(encode).collect();
    let document = server.get(&format!("/store/m/{}", key.join("/"))).await;
    String::from_utf8_lossy(&document.body).contains("sharding_indexed")
}

/// Checks arrays below a folder through a copy of their view, in which there are no shards but those of `left`.
async fn check_fixtures(folder: &str, left: &[&str]) -> (usize, Vec<String>) {
    let root = manifest(folder);
    let server = Server::of(stored(&root));
    let chosen = chosen(&server).await;
    let copied = memory();
    for path in &chosen {
        let url: Vec<String> = path.split('/').map(encode).collect();
        for (key, value) in read_all(&server, &format!("/unshard/m/{}/", url.join("/"))).await {
            put(&copied, &key, value).await;
        }
    }
    let through = Server::of(copied);
    let mut sharded = Vec::new();
    for (key, ..) in list_all(&through, "/store/m/", None).await {
        if key.ends_with("zarr.json") && has_shards(&through, &key).await {
            sharded.push(key);
        }
    }
    assert_eq!(sharded, left);
    check_some(&root, &through, |path| chosen.contains(path)).await
}

#[tokio::test]
async fn sharded_arrays_written_by_zarr_python_read_the_same_without_their_shards() {
    let (right, refused) = check_fixtures("tests/data/zarr-python", &CHECKED).await;
    assert!(right >= 110, "{right}");
    assert_eq!(refused, [""; 0]);
}

#[tokio::test]
async fn sharded_arrays_of_other_projects_read_the_same_without_their_shards() {
    let folder = "../shared/data/public";
    if !manifest(folder).is_dir() {
        println!("the other projects' fixtures are not here: nothing to compare with");
        return;
    }
    let (right, _) = check_fixtures(folder, &[]).await;
    assert!(right >= 134, "{right}");
}

/// Reads an array of keys and values as zarrs does.
pub fn zarrs_reads(values: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Vec<u8>, String> {
    let store = Arc::new(MemoryStore::new());
    for (key, value) in values {
        let key = StoreKey::new(key).map_err(|error| error.to_string())?;
        store.set(&key, value.into()).map_err(|error| error.to_string())?;
    }
    let array = Zarrs::open(store, "/a").map_err(|error| error.to_string())?;
    let read = array.retrieve_array_subset::<ArrayBytes>(&array.subset_all());
    match read.map_err(|error| error.to_string())? {
        ArrayBytes::Fixed(bytes) => Ok(bytes.to_vec()),
        ArrayBytes::Variable(variable) => {
            let offsets = variable.offsets().iter().flat_map(|offset| offset.to_le_bytes());
            Ok(offsets.chain(variable.bytes().iter().copied()).collect())
        }
        ArrayBytes::Optional(_) => Err("optional".to_owned()),
    }
}

#[tokio::test]
async fn zarrs_reads_the_same_with_and_without_shards() {
    let root = manifest("tests/data/zarr-python");
    let server = Server::of(stored(&root));
    let listing = server.get("/store/m/matrix-zarrpy-v3/shard/?format=json").await.json();
    let (mut same, mut unknown) = (0, Vec::new());
    for prefix in listing["prefixes"].as_array().unwrap() {
        let prefix = prefix.as_str().unwrap();
        let below = async |view: &str| {
            let values = read_all(&server, &format!("/{view}/m/{prefix}")).await;
            let below = |key: &str| format!("a/{}", &key[prefix.len()..]);
            zarrs_reads(values.into_iter().map(|(key, value)| (below(&key), value.to_vec())))
        };
        match (below("store").await, below("unshard").await) {
            (Ok(with), without) => {
                assert_eq!(without, Ok(with), "{prefix}");
                same += 1;
            }
            (Err(_), _) => unknown.push(prefix.to_owned()),
        }
    }
    assert!(same >= 20, "{same} the same; zarrs does not know {unknown:?}");
}

#[test]
fn arrays_of_any_kind_read_the_same_without_their_shards() {
    let config = Config { cases: 96, failure_persistence: None, ..Config::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let run = runner.run(&case(), |case| {
        runtime.block_on(async {
            let (server, _) = served(&case.array()).await;
            let copied = Server::of(copy(&server, "/unshard/m/").await);
            let expected = server.elements("m/a", "").await;
            assert_eq!(copied.elements("m/a", "").await, expected);
        });
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn an_inner_chunk_is_its_stored_bytes_with_a_version_of_its_own() {
    let (server, _) = served(&shards()).await;
    let shard = server.get("/store/m/a/c/0/1").await;
    let chunk = server.get("/unshard/m/a/c/1/6").await;
    // The seventh of eight chunks of a row is the third of four in the second shard.
    let at = usize::try_from((4 + 2) * INNER).unwrap();
    assert_eq!(chunk.body, shard.body[at..at + usize::try_from(INNER).unwrap()]);
    assert!(chunk.header("etag").starts_with('"'));
    assert_ne!(chunk.header("etag"), server.get("/unshard/m/a/c/1/7").await.header("etag"));
    assert_eq!(chunk.header("last-modified"), shard.header("last-modified"));

    let part = server.ask(Method::GET, "/unshard/m/a/c/1/6", &[("range", "bytes=-5")]).await;
    assert_eq!(
        (part.status, part.header("content-range")),
        (StatusCode::PARTIAL_CONTENT, "bytes 123-127/128")
    );
    assert_eq!(part.body, chunk.body[123..]);
    let beyond = server.ask(Method::GET, "/unshard/m/a/c/1/6", &[("range", "bytes=128-")]).await;
    assert_eq!(beyond.status, StatusCode::RANGE_NOT_SATISFIABLE);
    let etag = chunk.header("etag");
    for (header, status) in [("if-match", 200), ("if-none-match", 304)] {
        let answer = server.ask(Method::GET, "/unshard/m/a/c/1/6", &[(header, etag)]).await;
        assert_eq!(answer.status.as_u16(), status, "{header}");
        let other = server.ask(Method::GET, "/unshard/m/a/c/1/5", &[(header, etag)]).await;
        assert_eq!(other.status.as_u16(), if status == 200 { 412 } else { 200 }, "{header}");
    }
}

#[tokio::test]
async fn absent_inner_chunks_absent_shards_and_keys_outside_are_absent() {
    let codecs = [Shards::of(&[2, 2], &[LITTLE]).codec()];
    let array = Array::of(&[7, 9])
        .chunks(&[4, 4])
        .codecs(codecs)
        .random(3, &[vec![(0, 2), (2, 2)], vec![(4, 3), (0, 4)]]);
    let (server, _) = served(&array).await;
    for (key, status) in [
        ("c/0/0", 200),
        ("c/0/1", 404),
        ("c/2/0", 404),
        ("c/3/3", 200),
        ("c/4/0", 404),
        ("c/0/5", 404),
        ("c/00/0", 404),
        ("c/0", 301),
        ("c/0/0/0", 404),
        ("c/18446744073709551615/18446744073709551615", 404),
    ] {
        assert_eq!(server.get(&format!("/unshard/m/a/{key}")).await.status.as_u16(), status, "{key}");
    }
    let keys: Vec<String> =
        list_all(&server, "/unshard/m/a/c/", None).await.into_iter().map(|entry| entry.0).collect();
    assert!(
        !keys.contains(&"a/c/0/1".to_owned()) && !keys.iter().any(|key| key.starts_with("a/c/2/0")),
        "{keys:?}"
    );
    assert!(keys.contains(&"a/c/3/4".to_owned()), "{keys:?}");
}

async fn read_chunks(server: &Server, headers: &[Option<String>]) -> Vec<Answer> {
    let mut answers = Vec::new();
    for number in 0..32 {
        let url = format!("/unshard/m/a/c/{}/{}", number / 8, number % 8);
        let etag = headers.get(number).cloned().flatten();
        let header: Vec<_> = etag.iter().map(|etag| ("if-none-match", etag.as_str())).collect();
        answers.push(server.ask(Method::GET, &url, &header).await);
    }
    answers
}

#[tokio::test]
async fn reading_every_inner_chunk_twice_reads_each_index_once_and_data_once() {
    let store = memory();
    shards().store(&store, "a").await;
    let counting = Counting::new(store);
    let server = Server::build(Mount::read_only("m", Arc::clone(&counting) as SharedStore)).finish();
    let first = read_chunks(&server, &[]).await;
    assert!(first.iter().all(|answer| answer.status == StatusCode::OK && answer.body.len() as u64 == INNER));
    let index = 16 * INNER..16 * INNER + INDEX;
    let ranges = counting.ranges();
    assert_eq!(ranges.iter().filter(|range| **range == index).count(), 2, "{ranges:?}");
    assert_eq!(counting.bytes(), 2 * INDEX + 32 * INNER, "{ranges:?}");

    counting.reset();
    let etags: Vec<_> = first.iter().map(|answer| Some(answer.header("etag").to_owned())).collect();
    let second = read_chunks(&server, &etags).await;
    assert!(second.iter().all(|answer| answer.status == StatusCode::NOT_MODIFIED));
    assert_eq!((counting.ranges(), counting.documents(), counting.lists()), (vec![], 0, 0));

    // A listing knows the inner chunks by the indexes, which are cached.
    assert_eq!(list_all(&server, "/unshard/m/a/c/", None).await.len(), 32);
    assert_eq!(counting.ranges(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_http_1_1_reads_of_inner_chunks_read_each_index_once() {
    let store = memory();
    shards().store(&store, "a").await;
    let counting = Counting::new(store);
    let server = Server::build(Mount::read_only("m", Arc::clone(&counting) as SharedStore)).finish();
    let address = server.listen().await;
    let client = client::builder().http1_only().build().unwrap();
    let ask = |number: usize| {
        let url = format!("http://{address}/unshard/m/a/c/{}/{}", number / 8 % 4, number % 8);
        let client = client.clone();
        async move { client.get(url).send().await.unwrap().bytes().await.unwrap() }
    };
    let bodies = futures::future::join_all((0..96).map(ask)).await;
    assert!(bodies.iter().all(|body| body.len() as u64 == INNER));
    let index = 16 * INNER..16 * INNER + INDEX;
    assert_eq!(counting.ranges().iter().filter(|range| **range == index).count(), 2);
}

#[tokio::test]
async fn a_replaced_shard_is_read_again() {
    let (server, store) = served(&shards()).await;
    let before = server.get("/unshard/m/a/c/0/0").await;
    let other = shards().random(9, &[]);
    other.store(&store, "a").await;
    let after = server.get("/unshard/m/a/c/0/0").await;
    assert_ne!((before.header("etag"), &before.body), (after.header("etag"), &after.body));
    let stale = server.ask(Method::GET, "/unshard/m/a/c/0/0", &[("if-match", before.header("etag"))]).await;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(after.body, server.get("/store/m/a/c/0/0").await.body[..usize::try_from(INNER).unwrap()]);
    erase(&store, "a/c/0/0").await;
    server.get("/unshard/m/a/c/0/0").await.refuses(404, "not-found", "erased");
}

#[tokio::test]
async fn index_and_data_have_one_version_though_the_shard_changes_in_between() {
    // The other shard has other inner chunks: its first ones are absent.
    let (array, other) = (shards(), shards().random(9, &[vec![(0, 8), (0, 24)]]));
    let shard = other.chunk(&other.model(), &[0, 0]);
    for (times, status) in [(0, 200), (1, 200), (2, 200), (100, 503)] {
        let store = memory();
        array.store(&store, "a").await;
        let before = Server::of(Arc::clone(&store)).get("/unshard/m/a/c/0/3").await.body;
        let changing = Changing::new(Arc::clone(&store), "a/c/0/0", shard.clone().into(), times);
        let server = Server::of(changing);
        let answer = server.get("/unshard/m/a/c/0/3").await;
        assert_eq!(answer.status.as_u16(), status, "{times} changes");
        match (times, status) {
            (0, _) => assert_eq!(answer.body, before),
            (_, 200) => assert_eq!(answer.body, shard[..usize::try_from(INNER).unwrap()], "{times} changes"),
            _ => assert_eq!(answer.code(), "overloaded"),
        }
    }
}

#[tokio::test]
async fn a_shard_whose_index_is_damaged_is_an_error_and_never_absent() {
    let (server, store) = served(&shards()).await;
    let shard = server.get("/store/m/a/c/0/0").await.body;
    for cut in [0, 10, shard.len() - 1] {
        put(&store, "a/c/0/0", shard.slice(..cut)).await;
        server.get("/unshard/m/a/c/0/0").await.refuses(500, "corrupt-data", &cut.to_string());
        let listing = server.get("/unshard/m/a/c/?format=json").await;
        listing.refuses(500, "corrupt-data", &cut.to_string());
    }
    let mut damaged = shard.to_vec();
    let last = damaged.len() - 10;
    damaged[last] ^= 1;
    put(&store, "a/c/0/0", damaged).await;
    server.get("/unshard/m/a/c/0/0").await.refuses(500, "corrupt-data", "a bit");
    assert_eq!(server.get("/unshard/m/a/c/0/4").await.status, StatusCode::OK, "the other shard is whole");
}

#[tokio::test]
async fn a_huge_array_with_few_shards_lists_only_stored_chunks() {
    let huge = 1_u64 << 60;
    let sharding = json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": [1, 1], "codecs": ["bytes"],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }});
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [huge, huge], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "codecs": [sharding],
    });
    let store = memory();
    put(&store, "a/zarr.json", document.to_string()).await;
    // Two inner chunks of one byte each, and their index.
    let index: Vec<u8> = [0_u64, 1, 1, 1].into_iter().flat_map(u64::to_le_bytes).collect();
    let shard = [vec![7, 8], index].concat();
    let (last, far) = (huge - 1, huge / 2 - 1);
    for key in ["0/0".to_owned(), "0/10".to_owned(), format!("{last}/{far}")] {
        put(&store, &format!("a/c/{key}"), shard.clone()).await;
    }
    // Beyond the array: no chunks of it.
    put(&store, &format!("a/c/{huge}/0"), shard.clone()).await;
    let server = Server::of(store);
    let keys: Vec<String> =
        list_all(&server, "/unshard/m/a/c/", None).await.into_iter().map(|entry| entry.0).collect();
    let far = 2 * far;
    let expected = ["0/0", "0/1", "0/20", "0/21", &format!("{last}/{far}"), &format!("{last}/{}", far + 1)]
        .map(|key| format!("a/c/{key}"));
    assert_eq!(keys, expected);
    assert_eq!(&*server.get("/unshard/m/a/c/0/21").await.body, [8]);
    let level = server.get("/unshard/m/a/c/?format=json").await.json();
    assert_eq!(level["prefixes"], json!(["a/c/0/", format!("a/c/{last}/")]));
}

#[tokio::test]
async fn shards_inside_other_codecs_are_shown_unchanged() {
    let codecs = [Shards::of(&[8, 8], &[LITTLE]).codec(), Codec::Crc32c];
    let (server, _) = served(&Array::of(&[32, 32]).codecs(codecs)).await;
    assert_eq!(read_all(&server, "/unshard/m/").await, read_all(&server, "/store/m/").await);
}

#[tokio::test]
async fn rectilinear_shards_are_shown_as_an_array_of_inner_chunks() {
    let codecs = [Codec::Transpose(vec![1, 0]), Shards::of(&[3, 2], &[LITTLE, Codec::Zstd]).codec()];
    let edges = [Edges::Each(vec![2, 4, 6]), Edges::Each(vec![6, 3])];
    let (server, _) = served(&Array::of(&[10, 9]).edges(&edges).codecs(codecs)).await;
    let document = server.get("/unshard/m/a/zarr.json").await.json();
    let grid = json!({"name": "regular", "configuration": {"chunk_shape": [2, 3]}});
    assert_eq!(document["chunk_grid"], grid);
    let keys = list_all(&server, "/unshard/m/a/c/", None).await;
    assert_eq!(keys.len(), 15);
    let copied = Server::of(copy(&server, "/unshard/m/").await);
    assert_eq!(copied.elements("m/a", "").await, server.elements("m/a", "").await);
    // An edge that they do not fill has its shards alone refused, and they stay as they are.
    let edges = [Edges::Each(vec![4, 5, 3])];
    let codecs = [Shards::of(&[2], &[LITTLE]).codec()];
    let document = Array::of(&[12]).edges(&edges).codecs(codecs).document().1;
    let store = memory();
    put(&store, "a/zarr.json", document.to_string()).await;
    put(&store, "a/c/1", "as it is").await;
    let server = Server::of(store);
    assert_eq!(read_all(&server, "/unshard/m/").await, read_all(&server, "/store/m/").await);
}

#[tokio::test]
async fn inner_chunks_with_unknown_codecs_are_shown() {
    let (server, store) = served(&shards()).await;
    let known = read_all(&server, "/unshard/m/a/c/").await;
    let mut document = shards().document().1;
    let inner = json!([{"name": "x.unknown", "configuration": {"level": 1.50}}, "x.other"]);
    document["codecs"][0]["configuration"]["codecs"] = inner;
    put(&store, "a/zarr.json", document.to_string()).await;
    assert_eq!(read_all(&server, "/unshard/m/a/c/").await, known);
    let spelt = json!([{"name": "x.unknown", "configuration": {"level": 1.50}}, {"name": "x.other"}]);
    assert_eq!(server.get("/unshard/m/a/zarr.json").await.json()["codecs"], spelt);
    server.get("/v1/data/m/a").await.refuses(501, "unsupported", "elements take more");
}

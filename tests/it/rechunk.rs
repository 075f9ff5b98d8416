//! Rechunked hierarchies, with other codecs and data types: the same elements, deterministic bytes, and
//! no more work than it takes.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use bytes::Bytes;
use proptest::test_runner::Config;
use serde_json::{Value, json};
use zarrd::array::ReadLimits;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::fixtures::{check_some, check_through, manifest, stored};
use crate::support::copied::{base, copy, encode, list_all, read_all};
use crate::support::counting::Counting;
use crate::support::data_types::data_type;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, Edges, Format, memory};
use crate::support::server::{Server, erase, put};
use crate::support::strategies::case;
use crate::unshard::zarrs_reads;

const LITTLE: Codec = Codec::Bytes { big: false };

/// Four shards of 16 × 16 elements in inner chunks of 4 × 4.
fn shards() -> Array {
    Array::of(&[32, 32]).chunks(&[16, 16]).codecs([Shards::of(&[4, 4], &[LITTLE]).codec()])
}

async fn served(array: &Array) -> (Server, SharedStore) {
    let store = memory();
    array.store(&store, "a").await;
    (Server::of(Arc::clone(&store)), store)
}

fn counted(store: SharedStore) -> (Server, Arc<Counting>) {
    let counting = Counting::new(store);
    (Server::build(Mount::read_only("m", Arc::clone(&counting) as SharedStore)).finish(), counting)
}

/// The one of some recipes in which the array of a key is shown: each has its part of the fixtures, as all of them in each
/// recipe take long.
fn recipe_of<'a>(recipes: &[&'a str], key: &str) -> &'a str {
    // Arrays are in folders of folders.
    let path = key.split('/').take(3);
    recipes[path.flat_map(str::bytes).map(usize::from).sum::<usize>() % recipes.len()]
}

/// A copy of a hierarchy of fixtures, each in one of the recipes. What cannot be made is as unreadable as it is stored.
async fn copy_fixtures(server: &Server, recipes: &[&str]) -> SharedStore {
    let store = memory();
    for recipe in recipes {
        copy_part(server, recipe, recipes, &store).await;
    }
    store
}

async fn copy_part(server: &Server, recipe: &str, recipes: &[&str], store: &SharedStore) {
    let url = &format!("/rechunk/m/{recipe}/");
    for (key, size, etag) in list_all(server, url, None).await {
        if recipe_of(recipes, &key) != recipe {
            continue;
        }
        let path: Vec<String> = key.split('/').map(encode).collect();
        let path = path.join("/");
        let value = server.get(&format!("{}/{path}", base(url))).await;
        if value.status == StatusCode::OK {
            assert_eq!((value.body.len() as u64, value.header("etag")), (size, &*etag), "{key}");
            put(store, &key, value.body).await;
            continue;
        }
        let detail = value.json()["detail"].to_string();
        assert_eq!((size, &*etag), (0, "W/\"unmade\""), "{key}: {detail}");
        assert!(["REJECT", "optional"].iter().any(|known| key.contains(known)), "{key}: {detail}");
        let stored = server.get(&format!("/store/m/{path}")).await;
        put(store, &key, if stored.status == StatusCode::OK { stored.body } else { Bytes::new() }).await;
    }
}

/// Stores what a recipe shows as v2 has it: the listing is v3's, so each key is asked for as v2 would. Returns the prefixes of
/// the nodes, and of them those that v2 has no word for.
async fn copy_v2(
    server: &Server,
    recipe: &str,
    recipes: &[&str],
    store: &SharedStore,
) -> (Vec<String>, Vec<String>) {
    let url = &format!("/rechunk/m/{recipe}/");
    let (mut nodes, mut unknown) = (Vec::new(), Vec::new());
    let get = async |key: &str| {
        let path: Vec<String> = key.split('/').map(encode).collect();
        let answer = server.get(&format!("{}/{}", base(url), path.join("/"))).await;
        if key.contains("REJECT") {
            return (answer.status == StatusCode::OK).then_some(answer.body);
        }
        (answer.status != StatusCode::NOT_FOUND).then(|| {
            assert_eq!(answer.status, StatusCode::OK, "{key}: {:?}", answer.body);
            answer.body
        })
    };
    let mut listed = list_all(server, url, None).await;
    listed.retain(|(key, ..)| recipe_of(recipes, key) == recipe);
    for (key, ..) in &listed {
        let Some(prefix) = key.strip_suffix("zarr.json") else { continue };
        let mut found = Vec::new();
        for name in [".zarray", ".zgroup", ".zattrs"] {
            if let Some(document) = get(&format!("{prefix}{name}")).await {
                put(store, &format!("{prefix}{name}"), document).await;
                found.push(name);
            }
        }
        nodes.push(prefix.to_owned());
        if found.is_empty() {
            unknown.push(prefix.to_owned());
        }
    }
    for (key, ..) in &listed {
        let chunk = match key.split_once("/c/") {
            Some((path, numbers)) => format!("{path}/{numbers}"),
            None => match key.strip_suffix("/c") {
                Some(path) => format!("{path}/0"),
                None => continue,
            },
        };
        if unknown.iter().any(|prefix| key.starts_with(prefix)) {
            continue;
        }
        if let Some(value) = get(&chunk).await {
            put(store, &chunk, value).await;
        } else {
            assert!(key.contains("REJECT"), "{chunk} is absent");
        }
    }
    (nodes, unknown)
}

#[tokio::test]
async fn arrays_written_by_zarr_python_read_the_same_in_other_chunks_and_codecs() {
    let root = manifest("tests/data/zarr-python");
    let server = Server::of(stored(&root));
    let recipes = ["auto/raw", "30,50/zstd-1/dtype=stored"];
    let through = Server::of(copy_fixtures(&server, &recipes).await);
    let (right, refused) = check_through(&root, &through).await;
    assert!(right >= 368, "{right}");
    assert_eq!(refused, [""; 0]);
}

#[tokio::test]
async fn arrays_written_by_zarr_python_read_the_same_as_v2() {
    let root = manifest("tests/data/zarr-python");
    let server = Server::of(stored(&root));
    let recipes = ["auto/zstd-1", "30,50/blosc-lz4"];
    let (store, mut nodes, mut unknown) = (memory(), Vec::new(), Vec::new());
    for recipe in recipes {
        let (shown, without) = copy_v2(&server, recipe, &recipes, &store).await;
        nodes.extend(shown);
        unknown.extend(without);
    }
    let through = Server::of(store);
    let (mut same, mut differ) = (0, Vec::new());
    for prefix in nodes.into_iter().filter(|prefix| !prefix.is_empty()) {
        let url: Vec<String> = prefix.trim_end_matches('/').split('/').map(encode).collect();
        let url = format!("/v1/data/m/{}", url.join("/"));
        // v2 has one NaN for all.
        let has_odd_nan = prefix.contains("_hex");
        if has_odd_nan || unknown.contains(&prefix) || prefix.contains("REJECT") {
            continue;
        }
        let stored = server.get(&url).await;
        if stored.status == StatusCode::NOT_FOUND {
            continue;
        }
        let copied = through.get(&url).await;
        if (copied.status, &copied.body) == (StatusCode::OK, &stored.body) {
            same += 1;
        } else {
            differ.push(prefix);
        }
    }
    assert_eq!(differ, [""; 0]);
    assert!(same >= 300, "{same}, unknown: {unknown:?}");
}

#[tokio::test]
async fn arrays_of_other_projects_read_the_same_in_other_chunks() {
    let root = manifest("../shared/data/public");
    if !root.is_dir() {
        println!("the other projects' fixtures are not here: nothing to compare with");
        return;
    }
    let server = Server::of(stored(&root));
    let through = Server::of(copy_fixtures(&server, &["40,50/zstd-1"]).await);
    let (right, _) = check_through(&root, &through).await;
    assert!(right >= 300, "{right}");

    // Of these, the arrays that are not among those of the tests too.
    let root = manifest("../shared/data/generated");
    let server = Server::of(stored(&root));
    let store = memory();
    let others = ["matrix-zarrpy-v3/shape/huge_sparse", "matrix-zarrpy-v3/shape/medium_3d"];
    for path in others {
        for (key, value) in read_all(&server, &format!("/rechunk/m/40,50/zstd-1/{path}/")).await {
            put(&store, &key, value).await;
        }
    }
    let (right, _) = check_some(&root, &Server::of(store), |path| others.contains(&path)).await;
    assert_eq!(right, others.len());
}

#[tokio::test]
async fn zarrs_reads_rechunked_arrays() {
    let root = manifest("tests/data/zarr-python");
    let server = Server::of(stored(&root));
    let (mut same, mut unknown) = (0, Vec::new());
    let recipes = ["3,4/zstd-3", "auto/blosc-zstd", "5/gzip", "auto/raw"];
    for folder in ["dtype", "shard", "shape", "transpose", "endian"] {
        let listing = server.get(&format!("/store/m/matrix-zarrpy-v3/{folder}/?format=json")).await.json();
        for prefix in listing["prefixes"].as_array().unwrap() {
            let prefix = prefix.as_str().unwrap();
            let recipe = recipe_of(&recipes, prefix);
            let stored = server.get(&format!("/v1/data/m/{}", prefix.trim_end_matches('/'))).await;
            let values = read_all(&server, &format!("/rechunk/m/{recipe}/{prefix}")).await;
            let below = |key: &str| format!("a/{}", &key[prefix.len()..]);
            let values = values.into_iter().map(|(key, value)| (below(&key), value.to_vec()));
            match zarrs_reads(values) {
                Ok(read) if read == stored.body => same += 1,
                // Types of variable length are described differently there.
                Ok(_) if stored.header("array-data-type").contains("string") => {}
                Ok(_) => panic!("{recipe} {prefix}: other elements"),
                Err(_) => unknown.push(prefix.to_owned()),
            }
        }
    }
    assert!(same >= 50, "{same} the same; zarrs does not know {unknown:?}");
}

#[test]
fn arrays_of_any_kind_read_the_same_in_other_chunks() {
    let config = Config { cases: 96, failure_persistence: None, ..Config::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let edges = proptest::collection::vec(1_u64..8, 0..4);
    let run = runner.run(&(case(), edges), |(case, edges)| {
        runtime.block_on(async {
            let (server, _) = served(&case.array()).await;
            let edges: Vec<String> = edges.iter().map(u64::to_string).collect();
            let chunks = if edges.is_empty() { "auto".to_owned() } else { edges.join(",") };
            let copied = Server::of(copy(&server, &format!("/rechunk/m/{chunks}/zstd-1/")).await);
            let expected = server.elements("m/a", "").await;
            assert_eq!(copied.elements("m/a", "").await, expected, "{chunks}");
        });
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn chunks_of_rectilinear_grids_are_found_at_any_offset() {
    // Some of them reach into the next chunk that is shown, and begin where others end.
    let rows = Edges::Each(vec![1, 4, 1, 4, 1, 4]);
    let array = Array::of(&[13, 7]).edges(&[rows, Edges::All(1)]).members(json!({"fill_value": 9}));
    let (server, _) = served(&array).await;
    let copied = Server::of(copy(&server, "/rechunk/m/6,1/zstd-1/").await);
    assert_eq!(copied.elements("m/a", "").await, server.elements("m/a", "").await);
}

#[tokio::test]
async fn a_chunk_is_the_elements_in_its_box_with_fill_values_beyond_the_edge() {
    let array = Array::of(&[5, 7]).chunks(&[2, 3]).members(json!({"fill_value": 9}));
    let (server, _) = served(&array).await;
    let model = array.model();
    for (row, column) in [(0, 0), (1, 1), (0, 1)] {
        let mut expected = Vec::new();
        for place in 0..16 {
            let at = [row * 4 + place / 4, column * 4 + place % 4];
            let is_within = at[0] < 5 && at[1] < 7;
            expected.extend_from_slice(if is_within { model.element(&at) } else { &[9, 0] });
        }
        for key in [format!("c/{row}/{column}"), format!("{row}/{column}")] {
            let chunk = server.get(&format!("/rechunk/m/4,4/raw/a/{key}")).await;
            assert_eq!((chunk.status, &chunk.body[..]), (StatusCode::OK, &expected[..]), "{key}");
        }
    }
}

#[tokio::test]
async fn documents_of_both_versions_follow_the_rechunk_specification() {
    let scale: Value = serde_json::from_str("1.50").unwrap();
    let array = shards().members(json!({
        "dimension_names": ["y", "x"], "attributes": {"title": "a", "scale": scale}, "fill_value": 3,
    }));
    let (server, store) = served(&array).await;
    put(&store, "zarr.json", r#"{"zarr_format":3,"node_type":"group","attributes":{"g":1.0}}"#).await;
    let get = async |key: &str| server.get(&format!("/rechunk/m/8,100/blosc-lz4-1/dtype=int32/{key}")).await;
    assert_eq!(
        get("a/zarr.json").await.json(),
        json!({
            "zarr_format": 3, "node_type": "array", "shape": [32, 32], "data_type": "int32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 32]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": 3,
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "blosc", "configuration": {
                    "typesize": 4, "cname": "lz4", "clevel": 1, "shuffle": "shuffle", "blocksize": 0,
                }},
            ],
            "attributes": {"title": "a", "scale": scale}, "dimension_names": ["y", "x"],
        })
    );
    assert_eq!(
        get("a/.zarray").await.json(),
        json!({
            "zarr_format": 2, "shape": [32, 32], "chunks": [8, 32], "dtype": "<i4", "fill_value": 3, "order": "C",
            "filters": null, "dimension_separator": "/",
            "compressor": {"id": "blosc", "cname": "lz4", "clevel": 1, "shuffle": 1, "blocksize": 0},
        })
    );
    let attributes = get("a/.zattrs").await;
    assert_eq!(attributes.json(), json!({"title": "a", "scale": scale, "_ARRAY_DIMENSIONS": ["y", "x"]}));
    assert!(String::from_utf8_lossy(&attributes.body).contains("1.50"), "numbers keep their text");
    // xarray reads the attribute of scalars too.
    Array::of(&[]).store(&store, "scalar").await;
    assert_eq!(get("scalar/.zattrs").await.json(), json!({"_ARRAY_DIMENSIONS": []}));
    assert_eq!(get(".zgroup").await.json(), json!({"zarr_format": 2}));
    assert_eq!(get(".zattrs").await.json(), json!({"g": 1.0}));
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"g": 1.0}});
    assert_eq!(get("zarr.json").await.json(), group);
    for absent in ["a/.zgroup", ".zarray", ".zmetadata", "a/.zmetadata", "b/zarr.json", "b/.zarray"] {
        get(absent).await.refuses(404, "not-found", absent);
    }
}

#[tokio::test]
async fn dimension_names_are_placed_as_each_version_specifies() {
    let v2 = Format::V2 { compressor: None, fortran: false, big: false, separator: '.' };
    let store = memory();
    Array::of(&[2, 3]).format(v2).members(json!({ "fill_value": null })).store(&store, "a").await;
    let names = json!(["y", "x"]);
    put(&store, "a/.zattrs", json!({"_ARRAY_DIMENSIONS": names, "b": 1}).to_string()).await;
    let server = Server::of(store);
    let get = async |key: &str| server.get(&format!("/rechunk/m/auto/raw/a/{key}")).await.json();
    let shown = get("zarr.json").await;
    assert_eq!((&shown["dimension_names"], &shown["attributes"]), (&names, &json!({"b": 1})));
    assert_eq!(get(".zattrs").await, json!({"_ARRAY_DIMENSIONS": names, "b": 1}));
}

#[tokio::test]
async fn a_type_unknown_to_one_version_is_served_in_the_other() {
    let store = memory();
    Array::of(&[6]).members(json!({"data_type": "bfloat16"})).store(&store, "v3").await;
    let zarray = json!({
        "zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|O", "fill_value": null, "order": "C",
        "compressor": null, "filters": [{"id": "vlen-array", "dtype": "<i2"}],
    });
    put(&store, "v2/.zarray", zarray.to_string()).await;
    let chunk = [2_u32.to_le_bytes(), 2_u32.to_le_bytes(), [7, 0, 0, 0]].concat();
    put(&store, "v2/0", [&chunk[..10], &[0, 0, 0, 0]].concat()).await;
    let server = Server::of(store);
    let status = async |key: &str| server.get(&format!("/rechunk/m/auto/zstd/{key}")).await.status.as_u16();
    for (key, expected) in [
        ("v3/zarr.json", 200),
        ("v3/.zarray", 404),
        ("v3/.zattrs", 404),
        ("v3/c/0", 200),
        ("v2/zarr.json", 404),
        ("v2/.zarray", 200),
        ("v2/.zattrs", 200),
        ("v2/0", 200),
    ] {
        assert_eq!(status(key).await, expected, "{key}");
    }
    let listed = list_all(&server, "/rechunk/m/auto/zstd/", None).await;
    let keys: Vec<&str> = listed.iter().map(|(key, ..)| &**key).collect();
    assert_eq!(keys, ["v2/.zarray", "v2/.zattrs", "v2/0", "v3/c/0", "v3/zarr.json"]);
    let through = Server::of(copy(&server, "/rechunk/m/auto/zstd/").await);
    assert_eq!(through.elements("m/v2", "").await, server.elements("m/v2", "").await);
}

#[tokio::test]
async fn numbers_are_cast_exactly_or_the_chunk_is_refused_by_name() {
    let store = memory();
    let values = [1_i64 << 53, (1 << 53) + 1, -3];
    let array = Array::of(&[3]).chunks(&[1]).data_type(data_type("int64"));
    array.members(json!({"fill_value": 0})).store(&store, "a").await;
    for (place, value) in values.iter().enumerate() {
        put(&store, &format!("a/c/{place}"), value.to_le_bytes().to_vec()).await;
    }
    let server = Server::of(Arc::clone(&store));
    let get = async |recipe: &str, key: &str| server.get(&format!("/rechunk/m/1/raw/{recipe}/a/{key}")).await;
    assert_eq!(get("dtype=safe", "zarr.json").await.json()["data_type"], "float64");
    assert_eq!(get("dtype=safe", ".zarray").await.json()["dtype"], "<f8");
    let exact = 2_f64.powi(53).to_le_bytes();
    assert_eq!(get("dtype=safe", "c/0").await.body[..], exact);
    assert_eq!(get("dtype=safe", "2").await.body[..], (-3_f64).to_le_bytes());
    let detail = get("dtype=safe", "c/1").await.refuses(501, "unsupported", "rounded");
    assert!(detail.contains("9007199254740993") && detail.contains("float64"), "{detail}");
    let detail = get("dtype=uint8", "c/0").await.refuses(501, "unsupported", "out of range");
    assert!(detail.contains("9007199254740992") && detail.contains("uint8"), "{detail}");
    assert_eq!(get("dtype=int8", "c/2").await.body[..], [253]);
    assert_eq!(get("dtype=stored", "c/2").await.body[..], (-3_i64).to_le_bytes());
    erase(&store, "a/c/2").await;
    get("dtype=safe", "c/2").await.refuses(404, "not-found", "absent");
}

#[tokio::test]
async fn a_fill_value_is_cast_with_the_elements_or_the_array_is_refused() {
    let store = memory();
    for (path, fill_value) in [("a", json!(-1)), ("b", json!(300))] {
        Array::of(&[3])
            .chunks(&[2])
            .data_type(data_type("int16"))
            .members(json!({"fill_value": fill_value}))
            .store(&store, path)
            .await;
    }
    let server = Server::of(store);
    let get = async |key: &str| server.get(&format!("/rechunk/m/2/raw/dtype=int8/{key}")).await;
    assert_eq!(get("a/zarr.json").await.json()["fill_value"], -1);
    assert_eq!(get("a/c/1").await.body[..], [3, 255]);
    for key in ["b/zarr.json", "b/.zarray", "b/c/0"] {
        let detail = get(key).await.refuses(501, "unsupported", key);
        assert!(detail.contains("300") && detail.contains("int8"), "{detail}");
    }
}

#[tokio::test]
async fn types_without_real_numbers_keep_their_type() {
    let store = memory();
    for name in ["bool", "complex64", "string", "struct", "r24"] {
        Array::of(&[4])
            .data_type(data_type(name))
            .codecs([Codec::serializer(&data_type(name), false)])
            .store(&store, name)
            .await;
    }
    let server = Server::of(store);
    for name in ["bool", "complex64", "string", "struct", "r24"] {
        let plain = server.get(&format!("/plain/m/{name}/zarr.json")).await.json();
        let shown = server.get(&format!("/rechunk/m/auto/zstd/dtype=float32/{name}/zarr.json")).await.json();
        assert_eq!(shown["data_type"], plain["data_type"], "{name}");
    }
}

#[tokio::test]
async fn re_encoding_a_chunk_is_deterministic_in_bytes_and_etag() {
    let store = memory();
    shards().random(5, &[]).store(&store, "a").await;
    let (one, other) = (Server::of(Arc::clone(&store)), Server::of(store));
    for recipe in ["7,9/zstd-3", "7,9/gzip-9", "7,9/blosc-lz4-5", "auto/blosc-zstd", "5,5/raw"] {
        for key in ["c/0/0", "zarr.json", ".zarray"] {
            let url = format!("/rechunk/m/{recipe}/a/{key}");
            let (made, again) = (one.get(&url).await, other.get(&url).await);
            assert_eq!((made.header("etag"), &made.body), (again.header("etag"), &again.body), "{url}");
            assert!(made.header("etag").starts_with('"'), "{url}");
        }
    }
    let tag = async |url: &str| one.get(url).await.header("etag").to_owned();
    assert_eq!(tag("/rechunk/m/7,9/zstd/a/c/0/0").await, tag("/rechunk/m/7,9/zstd-3/a/0/0").await);
    assert_ne!(tag("/rechunk/m/7,9/zstd/a/c/0/0").await, tag("/rechunk/m/7,9/zstd-4/a/c/0/0").await);
    assert_ne!(tag("/rechunk/m/7,9/zstd/a/c/0/0").await, tag("/rechunk/m/7,9/zstd/a/c/0/1").await);
}

#[tokio::test]
async fn a_revalidated_chunk_is_304_without_a_read() {
    let store = memory();
    shards().store(&store, "a").await;
    // The server has built nothing yet.
    let etag = {
        let server = Server::of(Arc::clone(&store));
        server.get("/rechunk/m/8,8/zstd/a/c/1/1").await.header("etag").to_owned()
    };
    let (server, counting) = counted(Arc::clone(&store));
    let url = "/rechunk/m/8,8/zstd/a/c/1/1";
    let same = server.ask(Method::GET, url, &[("if-none-match", &etag)]).await;
    assert_eq!((same.status, same.body.len()), (StatusCode::NOT_MODIFIED, 0));
    assert_eq!(same.header("etag"), etag);
    let same = server.ask(Method::HEAD, url, &[("if-none-match", &etag)]).await;
    assert_eq!(same.status, StatusCode::NOT_MODIFIED);
    let failed = server.ask(Method::GET, url, &[("if-match", "\"other\"")]).await;
    assert_eq!(failed.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(counting.ranges(), [], "a HEAD request is enough");
    shards().random(7, &[]).store(&store, "a").await;
    let changed = server.ask(Method::GET, url, &[("if-none-match", &etag)]).await;
    assert_eq!(changed.status, StatusCode::OK);
    assert_ne!(changed.header("etag"), etag);
}

#[tokio::test]
async fn ranges_and_conditions_apply_as_for_stored_values() {
    let (server, _) = served(&shards()).await;
    let url = "/rechunk/m/8,8/zstd/a/c/0/0";
    let whole = server.get(url).await;
    let length = whole.body.len();
    assert_eq!(whole.header("content-length"), length.to_string());
    let head = server.ask(Method::HEAD, url, &[]).await;
    assert_eq!(
        (head.header("content-length"), head.header("etag"), head.header("content-type")),
        (&*length.to_string(), whole.header("etag"), "application/octet-stream")
    );
    let part = server.ask(Method::GET, url, &[("range", "bytes=2-5")]).await;
    assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
    assert_eq!(
        (part.header("content-range"), &part.body[..]),
        (&*format!("bytes 2-5/{length}"), &whole.body[2..6])
    );
    let beyond = server.ask(Method::GET, url, &[("range", "bytes=100000-")]).await;
    assert_eq!(beyond.status, StatusCode::RANGE_NOT_SATISFIABLE);
    let matched = server.ask(Method::GET, url, &[("if-match", whole.header("etag"))]).await;
    assert_eq!((matched.status, matched.body), (StatusCode::OK, whole.body));
    for method in [Method::PUT, Method::DELETE, Method::POST] {
        server.ask(method, url, &[]).await.refuses(405, "not-allowed", "read only");
    }
}

#[tokio::test]
async fn a_re_encoded_chunk_is_cached_until_its_sources_change() {
    let store = memory();
    shards().store(&store, "a").await;
    let (server, counting) = counted(Arc::clone(&store));
    let url = "/rechunk/m/32,32/zstd/a/c/0/0";
    let first = server.get(url).await.body;
    assert!(!counting.ranges().is_empty());
    counting.reset();
    assert_eq!(server.get(url).await.body, first);
    assert_eq!(counting.ranges(), []);
    shards().random(11, &[]).store(&store, "a").await;
    let changed = server.get(url).await.body;
    assert_ne!(changed, first);
    let through = Server::of(copy(&Server::of(Arc::clone(&store)), "/rechunk/m/32,32/zstd/").await);
    assert_eq!(changed, through.get("/store/m/a/c/0/0").await.body);
}

#[tokio::test]
async fn concurrent_requests_for_one_chunk_read_its_sources_once() {
    let store = memory();
    shards().store(&store, "a").await;
    let (server, counting) = counted(store);
    let asked = (0..24).map(|_| server.get("/rechunk/m/32,32/zstd/a/c/0/0"));
    let answers = futures::future::join_all(asked).await;
    assert!(answers.iter().all(|answer| answer.status == StatusCode::OK && answer.body == answers[0].body));
    let mut ranges = counting.ranges();
    ranges.sort_by_key(|range| (range.start, range.end));
    // The indexes of four shards and their inner chunks.
    assert!(counting.bytes() <= 4 * (16 * 32 + 16 * 16 + 4), "{ranges:?}");
}

#[tokio::test]
async fn a_chunk_without_stored_sources_is_absent_and_not_listed() {
    let array = Array::of(&[8, 8])
        .chunks(&[2, 2])
        .format(Format::V2 { compressor: None, fortran: true, big: true, separator: '.' })
        .random(4, &[vec![(0, 4), (0, 8)], vec![(4, 4), (6, 2)]]);
    let (server, _) = served(&array).await;
    for (key, status) in [
        ("c/0/0", 404),
        ("c/1/0", 200),
        ("1/0", 200),
        ("0/1", 404),
        ("c/2/0", 404),
        ("c/1/2", 404),
        ("c/1/00", 404),
        ("c/1", 301),
        ("c/1/0/0", 404),
        ("2.0", 404),
        ("c/18446744073709551615/0", 404),
    ] {
        let answer = server.get(&format!("/rechunk/m/4,4/raw/a/{key}")).await;
        assert_eq!(answer.status.as_u16(), status, "{key}: {:?}", answer.body);
    }
    let listed = |entries: Vec<(String, u64, String)>| -> Vec<String> {
        entries.into_iter().map(|(key, ..)| key).collect()
    };
    let keys = listed(list_all(&server, "/rechunk/m/4,4/raw/", None).await);
    assert_eq!(keys, ["a/c/1/0", "a/c/1/1", "a/zarr.json"]);
    let keys = listed(list_all(&server, "/rechunk/m/1,3/raw/a/c/", Some(2)).await);
    assert_eq!(
        keys,
        ["4/0", "4/1", "5/0", "5/1", "6/0", "6/1", "7/0", "7/1"].map(|key| format!("a/c/{key}"))
    );
    let dir = server.get("/rechunk/m/4,4/raw/a/?format=json").await.json();
    assert_eq!((&dir["prefixes"], &dir["keys"][0]["key"]), (&json!(["a/c/"]), &json!("a/zarr.json")));
}

#[tokio::test]
async fn a_zero_dimensional_array_has_one_chunk_by_either_key() {
    let (server, _) = served(&Array::of(&[])).await;
    for key in ["c", "0"] {
        assert_eq!(server.get(&format!("/rechunk/m/auto/raw/a/{key}")).await.body[..], [1, 0]);
    }
    assert_eq!(server.get("/rechunk/m/auto/raw/a/.zarray").await.json()["chunks"], json!([]));
    for key in ["c/0", "1", "0/0"] {
        server.get(&format!("/rechunk/m/auto/raw/a/{key}")).await.refuses(404, "not-found", key);
    }
}

#[tokio::test]
async fn nodes_of_any_name_are_found_and_other_keys_are_unchanged() {
    let store = memory();
    let (v2, group) =
        (Format::V2 { compressor: None, fortran: false, big: false, separator: '/' }, r#"{"zarr_format":2}"#);
    put(&store, "img/.zgroup", group).await;
    Array::of(&[4, 4]).chunks(&[2, 2]).format(v2).store(&store, "img/0").await;
    Array::of(&[4, 4]).store(&store, "img/c").await;
    Array::of(&[4]).store(&store, "dtype=x").await;
    put(&store, "img/OME/METADATA.xml", "<OME/>").await;
    put(&store, "img/0/notes.txt", "a note").await;
    let server = Server::of(store);
    let get = async |key: &str| server.get(&format!("/rechunk/m/2,2/raw/{key}")).await;
    for (key, expected) in [
        ("img/0/1/0", &[9, 0, 10, 0, 13, 0, 14, 0][..]),
        ("img/0/c/1/0", &[9, 0, 10, 0, 13, 0, 14, 0]),
        ("img/c/0/1", &[3, 0, 4, 0, 7, 0, 8, 0]),
        ("img/c/c/0/1", &[3, 0, 4, 0, 7, 0, 8, 0]),
        ("img/OME/METADATA.xml", b"<OME/>"),
        ("dtype=stored/dtype=x/c/0", &[1, 0, 2, 0, 3, 0, 4, 0]),
    ] {
        let answer = get(key).await;
        assert_eq!((answer.status, &answer.body[..]), (StatusCode::OK, expected), "{key}");
    }
    get("img/0/notes.txt").await.refuses(404, "not-found", "in an array there is nothing but the array");
    get("dtype=x/c/0").await.refuses(400, "invalid-request", "this is no type");
}

#[tokio::test]
async fn limits_are_enforced_from_metadata_alone() {
    let store = memory();
    let document = |shape: Value, chunk_shape: Value| {
        json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float64", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk_shape}},
            "chunk_key_encoding": "default", "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        })
        .to_string()
    };
    let vast = 1_u64 << 60;
    put(&store, "vast/zarr.json", document(json!([vast, vast]), json!([1, 1]))).await;
    put(&store, "vast/c/0/0", vec![0; 8]).await;
    let counting = Counting::new(store);
    let mut builder = Server::build(Mount::read_only("m", Arc::clone(&counting) as SharedStore));
    builder.read = ReadLimits { max_response_size: 1 << 20, max_chunks: 100, ..ReadLimits::default() };
    let server = builder.finish();
    for chunks in ["1000,1000", "4294967296,4294967296", "18446744073709551615,18446744073709551615"] {
        for key in ["zarr.json", ".zarray", "c/0/0", "0/0"] {
            let answer = server.get(&format!("/rechunk/m/{chunks}/raw/vast/{key}")).await;
            answer.refuses(413, "too-large", &format!("{chunks} {key}"));
        }
    }
    let detail = server.get("/rechunk/m/11,11/raw/vast/c/0/0").await.refuses(413, "too-large", "121 chunks");
    assert!(detail.contains("100"), "{detail}");
    assert_eq!((counting.ranges(), counting.heads()), (vec![], 0));
    assert_eq!(server.get("/rechunk/m/10,10/raw/vast/c/0/0").await.status, StatusCode::OK);
    assert_eq!(server.get("/rechunk/m/10,10/raw/vast/zarr.json").await.status, StatusCode::OK);
    let keys = list_all(&server, "/rechunk/m/10,10/raw/", None).await;
    assert_eq!(keys.len(), 2, "{keys:?}");
}

#[tokio::test]
async fn a_hostile_rechunk_specification_is_refused_with_the_alternatives() {
    let (server, counting) = counted(memory());
    let many = vec!["1"; 100].join(",");
    let digits = "9".repeat(500);
    for (recipe, expected) in [
        ("0,64/raw", "`auto`"),
        ("64,/raw", "`auto`"),
        ("-1/raw", "`auto`"),
        ("%30/raw", "`auto`"),
        ("064/raw", "`auto`"),
        ("18446744073709551616/raw", "`auto`"),
        (&*format!("{many}/raw"), "`auto`"),
        (&*format!("{digits}/raw"), "`auto`"),
        ("64/lzma", "`zstd-1` to `zstd-19`"),
        ("64/zstd-99999999999", "`zstd-1` to `zstd-19`"),
        ("64/zstd-20", "`zstd-1` to `zstd-19`"),
        ("64/gzip--1", "`gzip-1` to `gzip-9`"),
        ("64/raw/dtype=object", "`safe`"),
        ("64/raw/dtype=", "`safe`"),
    ] {
        let answer = server.get(&format!("/rechunk/m/{recipe}/a/zarr.json")).await;
        let detail = answer.refuses(400, "invalid-request", recipe);
        assert!(detail.contains(expected), "{recipe}: {detail}");
    }
    for path in ["64%2f64/raw/a", "64/raw/..", "64/raw/%2e%2e/a", "64/raw/a%00", "%ff/raw/a"] {
        server.get(&format!("/rechunk/m/{path}")).await.refuses(400, "invalid-request", path);
    }
    server.get("/rechunk/n/64/raw/zarr.json").await.refuses(404, "unknown-mount", "no such mount");
    assert_eq!((counting.documents(), counting.heads(), counting.lists()), (0, 0, 0));
}

#[tokio::test]
async fn escapes_in_a_rechunk_specification_are_decoded_and_its_root_needs_no_slash() {
    let (server, _) = served(&shards()).await;
    let expected = server.get("/rechunk/m/8,8/zstd/dtype=safe/a/c/0/0").await;
    let escaped = server.get("/rechunk/m/8%2C8/zstd/dtype%3Dsafe/a/c/0/0").await;
    assert_eq!((escaped.status, &escaped.body), (StatusCode::OK, &expected.body));
    assert_eq!(escaped.header("etag"), expected.header("etag"));
    for (url, location) in [
        ("/rechunk/m/8,8/zstd", "./zstd/"),
        ("/rechunk/m/8,8/zstd/dtype=safe", "./dtype=safe/"),
        ("/rechunk/m/8,8/zstd/dtype%3Dsafe?f=json", "./dtype%3Dsafe/?f=json"),
    ] {
        let answer = server.get(url).await;
        assert_eq!((answer.status, answer.header("location")), (StatusCode::MOVED_PERMANENTLY, location));
    }
    let properties =
        server.request("PROPFIND", "/rechunk/m/8,8/zstd/dtype=safe/a/", &[("depth", "1")], "").await;
    assert_eq!(properties.status, StatusCode::MULTI_STATUS);
    let text = String::from_utf8_lossy(&properties.body);
    assert!(text.contains("<D:href>/rechunk/m/8,8/zstd/dtype=safe/a/zarr.json</D:href>"), "{text}");
}

#[tokio::test]
async fn consolidated_metadata_describes_the_rechunked_arrays() {
    let store = memory();
    shards().store(&store, "g/a").await;
    put(&store, "g/zarr.json", r#"{"zarr_format":3,"node_type":"group","attributes":{}}"#).await;
    let server = Server::of(Arc::clone(&store));
    let inline = server.get("/store/m/g/zarr.json?consolidated").await.body;
    let root = "/rechunk/m/8,8/zstd";
    // Where none is stored, none is shown but if it is asked for.
    let plain = server.get(&format!("{root}/g/zarr.json")).await.json();
    assert_eq!(plain.get("consolidated_metadata"), None);
    server.get(&format!("{root}/g/.zmetadata")).await.refuses(404, "not-found", "none is stored");
    let array = server.get(&format!("{root}/g/a/zarr.json")).await.json();
    let asked = server.get(&format!("{root}/g/zarr.json?consolidated")).await.json();
    assert_eq!(asked["consolidated_metadata"]["metadata"]["a"], array);
    put(&store, "g/zarr.json", inline).await;
    let shown = server.get(&format!("{root}/g/zarr.json")).await.json();
    assert_eq!(shown["consolidated_metadata"]["metadata"]["a"], array);
    let zmetadata = server.get(&format!("{root}/g/.zmetadata")).await.json();
    let zarray = server.get(&format!("{root}/g/a/.zarray")).await.json();
    assert_eq!(zmetadata["metadata"]["a/.zarray"], zarray);
    assert_eq!(zmetadata["metadata"][".zgroup"], json!({"zarr_format": 2}));
}

#[tokio::test]
async fn a_damaged_chunk_is_an_error_and_never_absent() {
    let (server, store) = served(&shards()).await;
    put(&store, "a/c/0/0", Bytes::from_static(b"no shard")).await;
    server.get("/rechunk/m/8,8/zstd/a/c/0/0").await.refuses(500, "corrupt-data", "cut");
    assert_eq!(server.get("/rechunk/m/8,8/zstd/a/c/2/2").await.status, StatusCode::OK);
}

#[tokio::test]
async fn dependent_arrays_are_rechunked() {
    let root = manifest("tests/data/dependent");
    let server = Server::of(stored(&root));
    let (mut same, mut names) = (0, Vec::new());
    for entry in std::fs::read_dir(&root).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let node = server.get(&format!("/v1/nodes/m/{name}")).await;
        let dependents = node.json()["dependents"].clone();
        for dependent in dependents
            .as_array()
            .into_iter()
            .flatten()
            .chain(dependents["arrays"].as_array().into_iter().flatten())
        {
            names.push(dependent.to_string());
            let Some(below) = dependent["path"].as_str().or(dependent["name"].as_str()) else { continue };
            let path = if below.starts_with(&name) { below.to_owned() } else { format!("{name}/{below}") };
            let stored = server.get(&format!("/v1/data/m/{path}")).await;
            if stored.status != StatusCode::OK {
                continue;
            }
            let chunk = server.get(&format!("/rechunk/m/auto/raw/{path}/zarr.json")).await;
            assert_eq!(chunk.status, StatusCode::OK, "{path}: {:?}", chunk.body);
            let rank = chunk.json()["shape"].as_array().unwrap().len();
            let key: Vec<&str> = std::iter::once("c").chain(std::iter::repeat_n("0", rank)).collect();
            let chunk = server.get(&format!("/rechunk/m/auto/raw/{path}/{}", key.join("/"))).await;
            if chunk.status == StatusCode::OK {
                assert_eq!(chunk.body, stored.body, "{path}");
                same += 1;
            }
        }
    }
    assert!(same >= 3, "{same} of {names:?}");
}

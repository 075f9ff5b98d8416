//! Dependent arrays of any shape in the plain view: listings by level and by page match what is readable, and each array
//! has its own chunks and no others.

use std::collections::BTreeSet;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use zarrd::chunk::ChunkKeyEncoding;

use crate::dependents::{parsed, prefixed, primary};
use crate::support::copied::{list_all, read_all};
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

/// Chunks along each of the two dimensions.
const CHUNKS: u64 = 3;

fn encodings() -> impl Strategy<Value = Value> {
    let suffixed = |suffix: &str, base: &str| json!({"name": "suffix", "configuration": {"suffix": suffix, "base_encoding": base}});
    select(vec![
        json!("default"),
        json!({"name": "default", "configuration": {"separator": "."}}),
        json!("v2"),
        json!({"name": "v2", "configuration": {"separator": "/"}}),
        json!("fanout"),
        json!({"name": "template", "configuration": {"format": "{1}/t{0:02}"}}),
        prefixed("s/"),
        prefixed("a/"),
        prefixed("a/b/"),
        prefixed("0-"),
        suffixed(".m", "default"),
        suffixed("/data", "default"),
        suffixed("/c", "v2"),
    ])
}

/// The declaration of a dependent: its keys, and perhaps dependents of its own.
fn dependents(depth: u32) -> BoxedStrategy<Value> {
    let own = encodings().prop_map(|encoding| json!({"chunk_key_encoding": encoding, "attributes": {}}));
    let one = if depth == 0 {
        own.boxed()
    } else {
        let nested = (encodings(), dependents(depth - 1)).prop_map(|(encoding, nested)| {
            json!({"chunk_key_encoding": encoding, "attributes": {"dependent-arrays": nested}})
        });
        prop_oneof![3 => own, 1 => nested].boxed()
    };
    let names = select(vec!["a", "b", "c", "s", "0", "1", "m.x"]);
    btree_map(names, one, 0..4).prop_map(|map| json!(map)).boxed()
}

#[derive(Clone, Debug)]
struct Case {
    document: Value,
    /// Of which members and chunks something is stored.
    chunks: Vec<(prop::sample::Index, u64, u64)>,
    /// Other stored keys.
    others: Vec<&'static str>,
}

fn cases() -> impl Strategy<Value = Case> {
    let others = vec![
        "notes",
        "a/notes",
        "a/b/x",
        "c/x",
        "s/zarr.json",
        "b/zarr.json",
        "a/b/zarr.json",
        "y/.zgroup",
        "a/c/0/0",
    ];
    let chunks = vec((any::<prop::sample::Index>(), 0..CHUNKS, 0..CHUNKS), 0..12);
    (encodings(), dependents(1), chunks, vec(select(others), 0..3)).prop_map(
        |(encoding, dependents, chunks, others)| {
            let mut document = primary(&json!({"dependent-arrays": dependents}));
            document["shape"] = json!([CHUNKS, CHUNKS]);
            document["chunk_grid"]["configuration"]["chunk_shape"] = json!([1, 1]);
            document["chunk_key_encoding"] = encoding;
            Case { document, chunks, others }
        },
    )
}

/// An array of the family: its path below the mount, its keys, and whether it has a place of its own.
struct Member {
    path: String,
    keys: ChunkKeyEncoding,
    is_shown: bool,
}

async fn members(server: &Server) -> Vec<Member> {
    let primary = server.get("/v1/nodes/m/p").await.json();
    let mut paths = vec!["p".to_owned()];
    paths.extend(
        primary["dependents"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap().to_owned()),
    );
    let mut members = Vec::new();
    for path in paths {
        let found = server.get(&format!("/v1/nodes/m/{path}")).await;
        // In its place, or in the place of what declares it, something else is stored.
        let found = if found.status == 200 { found.json() } else { continue };
        if found["virtual"] != true && path != "p" {
            continue;
        }
        let keys = ChunkKeyEncoding::new(parsed(&found["metadata"]).chunk_key_encoding);
        let is_shown = server.get(&format!("/v1/nodes/m/{path}?view=rebased")).await.status == 200;
        members.push(Member { path, keys, is_shown });
    }
    members
}

async fn check(case: &Case) {
    let store = memory();
    put(&store, "p/zarr.json", case.document.to_string()).await;
    put(&store, "zarr.json", json!({"zarr_format": 3, "node_type": "group"}).to_string()).await;
    let server = Server::of(store.clone());
    for (number, (member, row, column)) in case.chunks.iter().enumerate() {
        let members = members(&server).await;
        let member = &members[member.index(members.len())];
        put(&store, &format!("p/{}", member.keys.encode(&[*row, *column])), format!("{number}")).await;
    }
    for other in &case.others {
        let stored =
            if other.ends_with("zarr.json") { primary(&json!({})) } else { json!({"zarr_format": 2}) };
        put(&store, &format!("p/{other}"), stored.to_string()).await;
    }

    let whole = read_all(&server, "/plain/m/").await;
    let listed = list_all(&server, "/plain/m/", None).await;
    for limit in [1, 4] {
        assert_eq!(list_all(&server, "/plain/m/", Some(limit)).await, listed, "by {limit}");
    }
    let mut prefixes = vec![String::new()];
    while let Some(prefix) = prefixes.pop() {
        let level = server.get(&format!("/plain/m/{prefix}?format=json")).await.json();
        let below = whole.keys().filter_map(|key| key.strip_prefix(&prefix));
        let expected: BTreeSet<String> = below
            .clone()
            .filter_map(|key| key.split_once('/'))
            .map(|(name, _)| format!("{prefix}{name}/"))
            .collect();
        assert_eq!(level["prefixes"], json!(expected), "{prefix}");
        let keys: Vec<Value> =
            level["keys"].as_array().unwrap().iter().map(|entry| entry["key"].clone()).collect();
        let direct: Vec<Value> =
            below.filter(|key| !key.contains('/')).map(|key| json!(format!("{prefix}{key}"))).collect();
        assert_eq!(keys, direct, "{prefix}");
        let recursive = list_all(&server, &format!("/plain/m/{prefix}"), None).await;
        assert!(
            recursive.iter().map(|entry| &entry.0).eq(whole.keys().filter(|key| key.starts_with(&prefix)))
        );
        prefixes.extend(expected);
    }
    for Member { path, keys, .. } in members(&server).await.into_iter().filter(|member| member.is_shown) {
        assert!(whole.contains_key(&format!("{path}/zarr.json")), "{path}");
        let document = server.get(&format!("/plain/m/{path}/zarr.json")).await.json();
        let shown_as = ChunkKeyEncoding::new(parsed(&document).chunk_key_encoding);
        for (row, column) in (0..CHUNKS).flat_map(|row| (0..CHUNKS).map(move |column| (row, column))) {
            let stored = server.get(&format!("/store/m/p/{}", keys.encode(&[row, column]))).await;
            let shown = server.get(&format!("/plain/m/{path}/{}", shown_as.encode(&[row, column]))).await;
            // Where there is none, there may be a prefix.
            assert_eq!(shown.status == 200, stored.status == 200, "{path} {row} {column}");
            if stored.status == 200 {
                assert_eq!(shown.body, stored.body, "{path} {row} {column}");
            }
        }
    }
}

#[test]
fn dependents_of_any_shape_are_listed_as_they_are_read() {
    let config = Config { cases: 24, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = TestRunner::new(config).run(&cases(), |case| {
        runtime.block_on(check(&case));
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

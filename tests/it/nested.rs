//! Nested codecs and nested dependent arrays, as deep, as many and as repetitive as documents can express: read where
//! they are valid, refused for their own reason otherwise, beside arrays that are served as usual.

use serde_json::{Value, json};

use crate::dependents::{prefixed, primary};
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

fn array(codecs: &Value) -> Value {
    let mut document = primary(&json!({}));
    document["codecs"] = codecs.clone();
    document
}

fn conditional(codecs: &[Value]) -> Value {
    json!({"name": "conditional", "configuration": {"codecs": codecs}})
}

fn shard(edge: u64, codecs: &[Value], index_codecs: &[Value]) -> Value {
    let configuration = json!({"chunk_shape": [edge], "codecs": codecs, "index_codecs": index_codecs});
    json!({"name": "sharding_indexed", "configuration": configuration})
}

fn little() -> Value {
    json!({"name": "bytes", "configuration": {"endian": "little"}})
}

/// A value inside another, this many times.
fn nested(times: usize, innermost: Value, around: impl Fn(Value) -> Value) -> Value {
    (0..times).fold(innermost, |inner, _| around(inner))
}

#[tokio::test]
async fn too_deeply_or_wrongly_nested_codecs_are_refused_and_other_arrays_are_read() {
    let store = memory();
    put(&store, "good/zarr.json", primary(&json!({})).to_string()).await;
    let server = Server::of(store.clone());
    let in_itself = |times| nested(times, json!("crc32c"), |inner| conditional(&[inner]));
    let in_twos = |times| nested(times, json!("crc32c"), |inner| conditional(&[inner.clone(), inner]));
    let in_shards = |times| nested(times, json!("bytes"), |inner| shard(1, &[inner], &[little()]));
    for (codecs, says) in [
        (json!(["bytes", in_itself(16)]), "more than 16 codecs"),
        (json!(["bytes", in_itself(25)]), "nested too deeply"),
        (json!(["bytes", in_twos(5)]), "more than 16 codecs"),
        (json!(["bytes", conditional(&vec![json!("gzip"); 15])]), "more than 16 codecs"),
        (
            json!(["bytes", conditional(&[shard(1, &[json!("bytes")], &[little()])])]),
            "codecs all encode bytes to bytes",
        ),
        (json!(["bytes", conditional(&[json!("n5_default")])]), "codecs all encode bytes to bytes"),
        (json!([in_shards(4)]), "nested deeper than 3"),
        (json!([in_shards(12)]), "nested deeper than 3"),
        (json!([shard(1, &[json!("bytes")], &[shard(1, &[little()], &[little()])])]), "chunk_shape"),
        (json!([shard(1, &[json!("bytes")], &[little(), conditional(&[json!("crc32c")])])]), "a fixed size"),
        (json!([shard(1, &[json!("bytes"), in_itself(15)], &[little()])]), "more than 16 codecs"),
        (
            json!([{"name": "n5_default", "configuration": {"codecs": ["n5_default", "n5_default"]}}]),
            "first codecs",
        ),
    ] {
        put(&store, "a/zarr.json", array(&codecs).to_string()).await;
        let detail = server.get("/v1/data/m/a").await.refuses(500, "invalid-metadata", says);
        assert!(detail.contains(says), "{detail} does not say {says}");
        assert_eq!(server.elements("m/good", "").await.as_ref(), [7; 4]);
    }
    // As deep as is lawful.
    for codecs in [json!(["bytes", in_itself(13)]), json!(["bytes", in_twos(2)]), json!([in_shards(3)])] {
        put(&store, "a/zarr.json", array(&codecs).to_string()).await;
        assert_eq!(server.elements("m/a", "").await.as_ref(), [7; 4], "{codecs}");
    }
}

#[tokio::test]
async fn shards_that_contain_themselves_are_corrupt() {
    let store = memory();
    // Three levels of shards of one inner chunk each, whose only entry is all of the shard that it stands in.
    let codecs = nested(3, json!("bytes"), |inner| shard(2, &[inner], &[little()]));
    put(&store, "a/zarr.json", array(&json!([codecs])).to_string()).await;
    for (offset, length) in [(0_u64, 16_u64), (0, 32), (8, 16), (0, 0), (u64::MAX - 8, 16), (0, u64::MAX - 1)]
    {
        let index = [[0; 16].as_slice(), &offset.to_le_bytes(), &length.to_le_bytes()].concat();
        put(&store, "a/c/0", index).await;
        Server::of(store.clone()).get("/v1/data/m/a").await.refuses(
            500,
            "corrupt-data",
            &format!("{offset} {length}"),
        );
    }
}

#[tokio::test]
async fn dependents_with_colliding_keys_are_read_only_with_allow_collision() {
    let store = memory();
    // Each has the keys of the next, the last those of the first; one has its primary's, and one its own dependents'.
    let circle = json!({
        "a": {"chunk_key_encoding": prefixed("b/"), "shape": [6]},
        "b": {"chunk_key_encoding": prefixed("a/")},
        "self": {"chunk_key_encoding": prefixed("self/"), "attributes": {"dependent-arrays": {
            "self": {"chunk_key_encoding": prefixed("self/self/"), "attributes": {"dependent-arrays": {
                "self": {"shape": [2], "chunk_key_encoding": prefixed("self/")},
            }}},
        }}},
        "twin": {},
    });
    put(&store, "p/zarr.json", primary(&json!({"dependent-arrays": circle})).to_string()).await;
    put(&store, "p/a/c/0", "ab").await;
    put(&store, "p/b/c/0", "cd").await;
    let server = Server::of(store);
    assert_eq!(server.elements("m/p/a", "0:2").await.as_ref(), b"cd");
    assert_eq!(server.elements("m/p/b", "0:2").await.as_ref(), b"ab");
    assert_eq!(server.elements("m/p/twin", "").await.as_ref(), [7; 4]);
    let listed = server.get("/v1/nodes/m/p").await.json();
    assert_eq!(listed["dependents"].as_array().unwrap().len(), 6, "{listed}");
    for path in ["p/a", "p/b"] {
        let answer = server.get(&format!("/v1/nodes/m/{path}?view=rebased")).await;
        answer.refuses(404, "name_shadows_chunk_key", path);
    }
    let refused = server.get("/v1/data/m/p/self").await;
    refused.refuses(409, "key_collision", "another shape has the same keys");
}

#[tokio::test]
async fn dependents_are_nested_up_to_the_specified_depth() {
    let store = memory();
    let deep = |times| {
        let around = |inner| json!({"attributes": {"dependent-arrays": {"n": inner}}});
        primary(&nested(times, json!({}), around)["attributes"])
    };
    put(&store, "eight/zarr.json", deep(8).to_string()).await;
    put(&store, "nine/zarr.json", deep(9).to_string()).await;
    put(&store, "forty/zarr.json", deep(40).to_string()).await;
    let server = Server::of(store);
    let path = |family: &str, times| format!("m/{family}{}", "/n".repeat(times));
    assert_eq!(server.elements(&path("eight", 8), "").await.as_ref(), [7; 4]);
    assert_eq!(server.elements(&path("nine", 8), "").await.as_ref(), [7; 4]);
    for view in ["nodes", "data"] {
        let answer = server.get(&format!("/v1/{view}/{}", path("nine", 9))).await;
        assert!([404, 422].contains(&answer.status.as_u16()), "{}", answer.status);
    }
    let listed = server.get("/v1/nodes/m/nine").await.json();
    let last = listed["dependents"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["error"]["code"], "too_deep", "{last}");
    server.get("/v1/nodes/m/forty").await.refuses(500, "invalid-metadata", "deeper than documents may be");
}

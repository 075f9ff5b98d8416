//! Hostile documents, chunks and requests: each is refused for its own reason, cheaply, and the server keeps running.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd::services::Mount;

use crate::support::data_types::data_type;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, ServerBuilder, put};

const LITTLE: Codec = Codec::Bytes { big: false };

/// A server with these values.
async fn serve<const N: usize>(values: [(&str, Vec<u8>); N]) -> Server {
    let store = memory();
    for (key, value) in values {
        put(&store, key, value).await;
    }
    Server::of(store)
}

/// A v2 array of 12 elements in one chunk.
fn zarray(members: Value) -> Value {
    let mut document = json!({
        "zarr_format": 2, "shape": [12], "chunks": [12], "dtype": "|u1", "fill_value": 0, "order": "C",
        "filters": null, "compressor": null,
    });
    let Value::Object(members) = members else { panic!("members") };
    document.as_object_mut().unwrap().extend(members);
    document
}

/// Asks for elements, of a chunk that is there and of one that is not, and for the node.
async fn assert_refused(
    name: &str,
    document: String,
    chunk: (&str, Vec<u8>),
    status: u16,
    code: &str,
    what: &str,
) {
    let what: String = what.chars().take(200).collect();
    let server = serve([(name, document.clone().into_bytes()), chunk]).await;
    for url in ["/v1/data/m/a", "/v1/data/m/a?slice=0", "/v1/data/m/a?f=json"] {
        server.get(url).await.refuses(status, code, &what);
    }
    let node = server.get("/v1/nodes/m/a").await;
    assert!(node.status == StatusCode::OK || node.status.as_u16() == status, "{what}: {:?}", node.body);
    assert_eq!(server.get(&format!("/store/m/{name}")).await.body, document, "{what}");
}

#[tokio::test]
async fn impossible_filters_are_refused_before_a_chunk_is_read() {
    for (dtype, filter, code) in [
        (
            "<f4",
            json!({ "id": "fixedscaleoffset", "offset": 0, "scale": 0, "dtype": "<f4" }),
            "invalid-metadata",
        ),
        (
            "<f4",
            json!({ "id": "fixedscaleoffset", "offset": 0, "scale": "NaN", "dtype": "<f4" }),
            "invalid-metadata",
        ),
        (
            "<f4",
            json!({ "id": "fixedscaleoffset", "offset": "Infinity", "scale": 1, "dtype": "<f4" }),
            "invalid-metadata",
        ),
        (
            "<f4",
            json!({ "id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": "<f8" }),
            "invalid-metadata",
        ),
        ("|u1", json!({ "id": "shuffle", "elementsize": -1 }), "invalid-metadata"),
        ("|u1", json!({ "id": "shuffle", "elementsize": 5 }), "invalid-metadata"),
        ("|u1", json!({ "id": "shuffle", "elementsize": i64::MAX }), "invalid-metadata"),
        ("|u1", json!({ "id": "shuffle", "elementsize": u64::MAX }), "invalid-metadata"),
        ("|u1", json!({ "id": "shuffle", "elementsize": 0.5 }), "invalid-metadata"),
        ("<i4", json!({ "id": "delta", "dtype": "<i8" }), "invalid-metadata"),
        ("<i4", json!({ "id": "quantize", "digits": 1, "dtype": "<i4" }), "invalid-metadata"),
        ("|u1", json!({ "id": "packbits" }), "invalid-metadata"),
    ] {
        let document = zarray(json!({ "dtype": dtype, "filters": [filter] })).to_string();
        assert_refused("a/.zarray", document, ("a/0", vec![0; 12]), 500, code, &filter.to_string()).await;
    }
    // An element size of 0 is ambiguous.
    let filter = json!({ "id": "shuffle", "elementsize": 0 });
    let document = zarray(json!({ "dtype": "<i4", "filters": [filter] })).to_string();
    assert_refused("a/.zarray", document, ("a/0", vec![0; 48]), 501, "unsupported", "elements of no size")
        .await;
    // With elements of one byte, a size of 0 or 1 leaves the bytes as they are.
    for element_bytes in [0, 1] {
        let filter = json!({ "id": "shuffle", "elementsize": element_bytes });
        let document = zarray(json!({ "filters": [filter] })).to_string();
        let server = serve([("a/.zarray", document.into_bytes()), ("a/0", (0..12).collect())]).await;
        assert_eq!(server.elements("m/a", "").await.as_ref(), (0..12).collect::<Vec<u8>>());
    }
}

#[tokio::test]
async fn chunks_that_do_not_match_their_filter_are_corrupt() {
    let packed = |pad: u8| vec![pad, 0xff, 0xf0];
    for (dtype, filter, chunks) in [
        (
            "|b1",
            json!({ "id": "packbits" }),
            vec![packed(8), packed(255), packed(3), packed(5), packed(4)[..2].to_vec(), vec![]],
        ),
        (
            "<i4",
            json!({ "id": "delta", "dtype": "<i4" }),
            vec![vec![0; 47], vec![0; 49], vec![0; 44], vec![]],
        ),
        ("<i4", json!({ "id": "shuffle", "elementsize": 4 }), vec![vec![0; 47], vec![0; 52], vec![0; 44]]),
        (
            "<f4",
            json!({ "id": "fixedscaleoffset", "offset": 0, "scale": 2, "dtype": "<f4", "astype": "|u1" }),
            vec![vec![0; 11], vec![0; 48]],
        ),
        ("|u1", json!({ "id": "fletcher32" }), vec![vec![0; 12], vec![1; 16], vec![0; 3]]),
    ] {
        let document = zarray(json!({ "dtype": dtype, "filters": [filter], "fill_value": null })).to_string();
        for chunk in chunks {
            let what = format!("{filter} {chunk:?}");
            assert_refused("a/.zarray", document.clone(), ("a/0", chunk), 500, "corrupt-data", &what).await;
        }
    }
    let document =
        zarray(json!({ "dtype": "|b1", "filters": [{ "id": "packbits" }], "fill_value": null })).to_string();
    let server = serve([("a/.zarray", document.into_bytes()), ("a/0", packed(4))]).await;
    assert_eq!(server.elements("m/a", "").await.as_ref(), [1; 12]);
}

#[tokio::test]
async fn oversized_structs_and_strings_are_refused_by_their_size() {
    let many: Vec<Value> = (0..100_000).map(|n| json!([format!("f{n}"), "|u1"])).collect();
    let mut deep = json!([["x", "|u1"]]);
    for _ in 0..20 {
        deep = json!([["x", deep]]);
    }
    let edge = u32::MAX;
    for dtype in [
        json!(many),
        deep,
        json!([["x", "<f8", [edge, edge, edge, edge]]]),
        json!([["x", "|V1048576"], ["y", "|u1"]]),
        json!([["x", [["y", "<f8", [1024]]], [1024]]]),
        json!("|S9999999999"),
        json!("|V99999999999999999999"),
        json!("<U2147483647"),
        json!("<U4294967295"),
    ] {
        let document = zarray(json!({ "dtype": dtype })).to_string();
        assert_refused("a/.zarray", document, ("a/0", vec![0; 12]), 501, "unsupported", &dtype.to_string())
            .await;
    }
    for dtype in [
        json!([["x", "|u1"], ["x", "|u1"]]),
        json!([["x", "|u1", [0]]]),
        json!([["x", "|u1", [-1]]]),
        json!([["x", "|u1", [u64::MAX]]]),
        json!([]),
        json!([["x", []]]),
        json!("|S0"),
        json!("<U0"),
        json!("|V0"),
        json!("|S-1"),
    ] {
        let document = zarray(json!({ "dtype": dtype })).to_string();
        assert_refused(
            "a/.zarray",
            document,
            ("a/0", vec![0; 12]),
            500,
            "invalid-metadata",
            &dtype.to_string(),
        )
        .await;
    }
}

#[tokio::test]
async fn structs_and_strings_of_v3_have_the_same_limits() {
    let configured =
        |name: &str, configuration: Value| json!({ "name": name, "configuration": configuration });
    let fields = |list: Vec<(String, Value)>| {
        let list: Vec<Value> = list
            .into_iter()
            .map(|(name, data_type)| json!({ "name": name, "data_type": data_type }))
            .collect();
        configured("struct", json!({ "fields": list }))
    };
    let text = |bytes: u64| configured("null_terminated_bytes", json!({ "length_bytes": bytes }));
    let utf32 = |bytes: u64| configured("fixed_length_utf32", json!({ "length_bytes": bytes }));
    let mut deep = json!("uint8");
    for _ in 0..17 {
        deep = fields(vec![("x".to_owned(), deep)]);
    }
    let many = (0..20_000).map(|n| (format!("f{n}"), json!("int8"))).collect();
    let large = (0..3).map(|n| (format!("f{n}"), text(1 << 19))).collect();
    let twice = vec![("x".to_owned(), json!("int8")), ("x".to_owned(), json!("int16"))];
    for (data_type, status, code) in [
        (fields(many), 501, "unsupported"),
        // Nested more deeply than a document may be.
        (deep, 500, "invalid-metadata"),
        (fields(large), 501, "unsupported"),
        (text(9_999_999_999), 501, "unsupported"),
        (utf32(1 << 40), 501, "unsupported"),
        (json!("r800000000000"), 501, "unsupported"),
        (fields(twice), 500, "invalid-metadata"),
        (fields(vec![]), 500, "invalid-metadata"),
        (text(0), 500, "invalid-metadata"),
        (utf32(0), 500, "invalid-metadata"),
        (utf32(6), 500, "invalid-metadata"),
        (json!("r0"), 500, "invalid-metadata"),
        (json!("r7"), 500, "invalid-metadata"),
    ] {
        let array = Array::of(&[4]).members(json!({ "data_type": data_type }));
        let document = array.document().1.to_string();
        assert_refused("a/zarr.json", document, ("a/c/0", vec![0; 8]), status, code, &data_type.to_string())
            .await;
    }
}

/// The server with limits of its own, and whether it opens the array and reads it.
async fn limited(document: &Value, limit: impl FnOnce(&mut ServerBuilder)) -> (u16, u16) {
    let store = memory();
    put(&store, "a/zarr.json", document.to_string()).await;
    let mut server = Server::build(Mount::read_only("m", store));
    limit(&mut server);
    let server = server.finish();
    let status = async |url| server.get(url).await.status.as_u16();
    (status("/v1/nodes/m/a").await, status("/v1/data/m/a").await)
}

#[tokio::test]
async fn configuration_limits_what_documents_may_declare() {
    let nested =
        Shards::of(&[4], &[Shards::of(&[2], &[Shards::of(&[1], &[LITTLE]).codec()]).codec()]).codec();
    let nested = Array::of(&[4]).codecs([nested]).document().1;
    assert_eq!(limited(&nested, |_| {}).await, (200, 200));
    assert_eq!(limited(&nested, |server| server.codec.sharding_depth = 2).await, (200, 500));

    let checked = Array::of(&[4]).codecs([LITTLE, Codec::Crc32c, Codec::Crc32c]).document().1;
    assert_eq!(limited(&checked, |server| server.metadata.codecs = 3).await, (200, 200));
    assert_eq!(limited(&checked, |server| server.metadata.codecs = 2).await, (500, 500));
    assert_eq!(limited(&checked, |server| server.codec.codecs = 2).await, (200, 500));

    let cube = Array::of(&[1, 1, 1]).document().1;
    assert_eq!(limited(&cube, |server| server.metadata.rank = 3).await, (200, 200));
    assert_eq!(limited(&cube, |server| server.metadata.rank = 2).await, (500, 500));

    let deep = Array::of(&[1]).members(json!({ "attributes": { "a": [[[[[[1]]]]]] } })).document().1;
    assert_eq!(limited(&deep, |server| server.metadata.depth = 8).await, (200, 200));
    assert_eq!(limited(&deep, |server| server.metadata.depth = 7).await, (500, 500));

    let bytes = cube.to_string().len();
    assert_eq!(limited(&cube, |server| server.metadata.document_bytes = bytes).await, (200, 200));
    assert_eq!(limited(&cube, |server| server.metadata.document_bytes = bytes - 1).await, (500, 500));

    let many = Array::of(&[8]).codecs([Shards::of(&[1], &[LITTLE]).codec()]).document().1;
    assert_eq!(limited(&many, |server| server.codec.shard_chunks = 8).await, (200, 200));
    assert_eq!(limited(&many, |server| server.codec.shard_chunks = 7).await, (200, 500));
    assert_eq!(limited(&cube, |server| server.codec.chunk_bytes = 2).await, (200, 200));
    assert_eq!(limited(&cube, |server| server.codec.chunk_bytes = 1).await, (200, 413));
}

#[tokio::test]
async fn an_index_longer_than_its_shard_is_corrupt_and_not_requested() {
    // 2^24 inner chunks: an index of 256 MiB, of which nothing is there.
    let shards = Shards::of(&[1, 1], &[LITTLE]);
    for shards in [shards.clone(), shards.at_start()] {
        let array = Array::of(&[4096, 4096]).codecs([shards.codec()]);
        for length in [0, 1, 100, 1 << 20] {
            let document = array.document().1.to_string().into_bytes();
            let server = serve([("a/zarr.json", document), ("a/c/0/0", vec![0; length])]).await;
            for slice in ["0,0", "-1,-1", ":5,:5"] {
                let answer = server.get(&format!("/v1/data/m/a?slice={slice}")).await;
                answer.refuses(500, "corrupt-data", &format!("{length} bytes"));
            }
        }
    }
}

/// Offsets and lengths, little-endian.
fn index(entries: &[u64]) -> Vec<u8> {
    entries.iter().flat_map(|entry| entry.to_le_bytes()).collect()
}

#[tokio::test]
async fn a_nested_shard_never_reads_beyond_itself() {
    // Four elements; the outer shard holds two shards of two inner chunks of one element each. No index has a checksum.
    let unchecked = |shards: Shards| Shards { index_codecs: vec![LITTLE], ..shards };
    let inner = unchecked(Shards::of(&[1], &[LITTLE])).codec();
    let array =
        Array::of(&[4]).data_type(data_type("uint8")).codecs([unchecked(Shards::of(&[2], &[inner])).codec()]);
    let document = array.document().1.to_string();
    // Each inner shard: two bytes, and the index behind them.
    let build = |first: &[u64]| {
        let one = [&[1, 2][..], &index(first)].concat();
        let two = [&[3, 4][..], &index(&[0, 1, 1, 1])].concat();
        let lengths = [one.len() as u64, two.len() as u64];
        [one, two, index(&[0, lengths[0], lengths[0], lengths[1]])].concat()
    };
    let server =
        serve([("a/zarr.json", document.clone().into_bytes()), ("a/c/0", build(&[0, 1, 1, 1]))]).await;
    assert_eq!(server.elements("m/a", "").await.as_ref(), [1, 2, 3, 4]);
    for first in [
        // The first byte of the neighbour; the neighbour's index; the outer index; the end and beyond.
        [34, 1, 1, 1],
        [36, 1, 1, 1],
        [68, 1, 1, 1],
        [99, 1, 1, 1],
        [100, 1, 1, 1],
        // Out of its own end, and by numbers that wrap around.
        [33, 2, 1, 1],
        [u64::MAX - 1, 3, 1, 1],
        [1, u64::MAX - 1, 1, 1],
        [u64::MAX - 33, 1, 1, 1],
        // Into its own index; half absent.
        [2, 1, 1, 1],
        [u64::MAX, 1, 1, 1],
        [0, u64::MAX, 1, 1],
    ] {
        let server = serve([("a/zarr.json", document.clone().into_bytes()), ("a/c/0", build(&first))]).await;
        for url in ["/v1/data/m/a?slice=0", "/v1/data/m/a?slice=1", "/v1/data/m/a", "/v1/chunk/m/a/c/0"] {
            server.get(url).await.refuses(500, "corrupt-data", &format!("{first:?} {url}"));
        }
        assert_eq!(server.elements("m/a", "2:").await.as_ref(), [3, 4], "its neighbour is whole: {first:?}");
    }
    // An inner shard shorter than its index.
    let short = [vec![7; 31], index(&[0, 31, u64::MAX, u64::MAX])].concat();
    let server = serve([("a/zarr.json", document.into_bytes()), ("a/c/0", short)]).await;
    server.get("/v1/data/m/a?slice=0").await.refuses(500, "corrupt-data", "shorter than its index");
    assert_eq!(server.elements("m/a", "2:").await.as_ref(), [7, 7], "the fill value");
}

#[tokio::test]
async fn a_flood_of_ranges_returns_the_complete_value() {
    let server = serve([("a/c/0", b"0123456789".to_vec())]).await;
    let many = format!("bytes={}", vec!["0-9"; 2000].join(","));
    for range in [
        &*many,
        "bytes=",
        "bytes=-",
        "bytes=9-0",
        "bytes=1-18446744073709551616",
        "bytes=+1-2",
        "bytes=0x0-1",
        "bytes=NaN-",
    ] {
        let answer = server.ask(Method::GET, "/store/m/a/c/0", &[("range", range)]).await;
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"0123456789"[..]), "{range:.40}");
    }
}

#[tokio::test]
async fn error_details_do_not_repeat_long_texts_of_documents() {
    let long = "x".repeat(1 << 20);
    let little = json!({ "name": "bytes", "configuration": { "endian": "little" } });
    let codecs = |codec: Value| json!({ "codecs": [&little, codec] });
    for members in [
        codecs(json!({ "name": long })),
        codecs(json!({ "name": "blosc", "configuration": { "cname": long } })),
        json!({ "codecs": [{ "name": "numcodecs.astype", "configuration": { "encode_dtype": long } }, &little] }),
        json!({ "codecs": [{ "name": "bytes", "configuration": { "endian": long } }] }),
        json!({ "data_type": long }),
        json!({ "chunk_grid": { "name": long } }),
        json!({ "storage_transformers": [{ "name": long }] }),
        json!({ "fill_value": long }),
        json!({ &*long: 1 }),
    ] {
        let what: String = members.to_string().chars().take(100).collect();
        let document = Array::of(&[4]).members(members).document().1.to_string();
        let server = serve([("a/zarr.json", document.into_bytes())]).await;
        let answer = server.get("/v1/data/m/a").await;
        assert!(answer.status.is_server_error(), "{what}: {:?}", answer.status);
        answer.code();
        assert!(answer.body.len() < 2000, "{what}: {} bytes", answer.body.len());
        let node = server.get("/v1/nodes/m/a").await;
        if node.status == StatusCode::OK {
            assert!(node.json()["unreadable"].as_str().unwrap().len() < 2000, "{what}");
        }
    }
}

#[tokio::test]
async fn names_are_escaped_in_headers_or_omitted() {
    let field = |name: &str| json!([[name, "<u2"]]);
    let headers = async |dtype: Value, dimension: &str| {
        let document = zarray(json!({ "dtype": dtype, "fill_value": null })).to_string().into_bytes();
        let attributes = json!({ "_ARRAY_DIMENSIONS": [dimension] }).to_string().into_bytes();
        let server = serve([("a/.zarray", document), ("a/.zattrs", attributes)]).await;
        let answer = server.get("/v1/data/m/a").await;
        assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 24), "{:?}", answer.body);
        ["array-data-type", "array-dimension-names", "array-shape"].map(|name| answer.header(name).to_owned())
    };
    assert_eq!(headers(field("a"), "x").await, ["struct{a: uint16}", r#"["x"]"#, "[12]"]);
    let odd = "\u{e9}\r\nx-evil: 1\u{7f}";
    let [data_type, dimensions, _] = headers(field(odd), odd).await;
    assert_eq!(data_type, r"struct{\u00e9\u000d\u000ax-evil: 1\u007f: uint16}");
    assert_eq!(dimensions, r#"["\u00e9\r\nx-evil: 1\u007f"]"#);
    let long = "x".repeat(1 << 20);
    assert_eq!(headers(field(&long), &long).await, ["struct", "", "[12]"]);
}

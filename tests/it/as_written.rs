//! Spellings of documents by known writers: unambiguous ones are read; what views and `/v1/nodes`
//! emit is spelled as readers expect it.

use axum::http::StatusCode;
use serde_json::{Value, json};
use zarrd::store::SharedStore;

use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

/// A v3 document of an array of four elements, in chunks of two, with some members put in place of its own.
fn v3(members: &Value) -> String {
    let mut document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int32", "fill_value": 0,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [2] } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
    });
    document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    document.to_string()
}

/// The same of v2.
fn v2(members: &Value) -> String {
    let mut document = json!({
        "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "fill_value": 0, "order": "C",
        "filters": null, "compressor": null,
    });
    document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    document.to_string()
}

async fn elements(server: &Server, path: &str, format: &str) -> String {
    let answer = server.get(&format!("/v1/data/m/{path}?format={format}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {:?}", answer.body);
    String::from_utf8(answer.body.to_vec()).unwrap()
}

async fn document(server: &Server, url: &str) -> Value {
    let answer = server.get(url).await;
    assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
    answer.json()
}

/// The fill value as read in either version: the last element of an array without chunks.
async fn fill_value(data_type: &str, dtype: &str, written: &Value) -> [Result<Value, u16>; 2] {
    let store = memory();
    put(&store, "two/.zarray", v2(&json!({ "dtype": dtype, "fill_value": written }))).await;
    put(&store, "three/zarr.json", v3(&json!({ "data_type": data_type, "fill_value": written }))).await;
    let server = Server::of(store);
    let mut read = Vec::new();
    for path in ["two", "three"] {
        let answer = server.get(&format!("/v1/data/m/{path}?slice=-1&format=json")).await;
        read.push(if answer.status == StatusCode::OK {
            Ok(answer.json())
        } else {
            Err(answer.status.as_u16())
        });
    }
    read.try_into().unwrap()
}

#[tokio::test]
async fn numeric_fill_values_read_as_zarr_python_reads_them_in_both_versions() {
    for (data_type, dtype, written, read) in [
        ("bool", "|b1", json!(0), json!(false)),
        ("bool", "|b1", json!(1), json!(true)),
        ("int32", "<i4", json!(3.0), json!(3)),
        ("int32", "<i4", json!("3"), json!(3)),
        ("int32", "<i4", json!([3]), json!(3)),
        ("int32", "<i4", json!(true), json!(1)),
        ("float32", "<f4", json!("nan"), json!("NaN")),
        ("float32", "<f4", json!("-inf"), json!("-Infinity")),
        ("float32", "<f4", json!("1.5"), json!(1.5)),
        ("float32", "<f4", json!(1e39), json!("Infinity")),
        ("float32", "<f4", json!(-1e39), json!("-Infinity")),
        ("float32", "<f4", json!(false), json!(0.0)),
        ("complex64", "<c8", json!(["nan", 1e39]), json!(["NaN", "Infinity"])),
    ] {
        let expected = [Ok(read.clone()), Ok(read)];
        assert_eq!(fill_value(data_type, dtype, &written).await, expected, "{written} as {data_type}");
    }
}

#[tokio::test]
async fn a_fill_value_outside_the_data_type_is_refused_in_both_versions() {
    for (data_type, dtype, written) in [
        ("bool", "|b1", json!(2)),
        ("int32", "<i4", json!(0.5)),
        ("int32", "<i4", json!(1e30)),
        ("uint8", "|u1", json!(300)),
        ("int32", "<i4", json!("x")),
        ("int32", "<i4", json!("NaN")),
        ("float32", "<f4", json!("x")),
        ("float32", "<f4", json!("")),
        ("float32", "<f4", json!([1.0, 2.0])),
    ] {
        assert_eq!(
            fill_value(data_type, dtype, &written).await,
            [Err(500), Err(500)],
            "{written} as {data_type}"
        );
    }
}

#[tokio::test]
async fn a_bytes_codec_without_endian_is_little_endian_and_is_emitted_with_it() {
    let store = memory();
    let shard = json!({
        "name": "sharding_indexed",
        "configuration": { "chunk_shape": [1], "codecs": ["bytes"], "index_codecs": ["bytes"] },
    });
    put(&store, "plain/zarr.json", v3(&json!({ "codecs": ["bytes"] }))).await;
    put(&store, "plain/c/0", [1_i32, -2].map(i32::to_le_bytes).concat()).await;
    put(&store, "shard/zarr.json", v3(&json!({ "codecs": [shard] }))).await;
    let index = [0_u64, 4, 4, 4].map(u64::to_le_bytes).concat();
    put(&store, "shard/c/0", [[1_i32, -2].map(i32::to_le_bytes).concat(), index].concat()).await;
    let server = Server::of(store);
    let little = json!({ "name": "bytes", "configuration": { "endian": "little" } });
    for path in ["plain", "shard"] {
        assert_eq!(elements(&server, path, "json").await, "[1,-2,0,0]", "{path}");
    }
    for url in ["/v1/nodes/m/plain", "/plain/m/plain/zarr.json", "/unshard/m/shard/zarr.json"] {
        let found = document(&server, url).await;
        let codecs = found.pointer("/metadata/codecs").unwrap_or(&found["codecs"]);
        assert_eq!(codecs, &json!([little]), "{url}");
    }
    for url in ["/v1/nodes/m/shard", "/plain/m/shard/zarr.json"] {
        let found = document(&server, url).await;
        let shard = found.pointer("/metadata/codecs/0").unwrap_or(&found["codecs"][0]);
        assert_eq!(shard["configuration"]["codecs"], json!([little]), "{url}");
        assert_eq!(shard["configuration"]["index_codecs"], json!([little]), "{url}");
    }
}

/// How numpy spells `int32` and `uint8` on a little-endian machine, and the bytes of an element.
const SPELLINGS: [(&str, usize); 13] = [
    ("i4", 4),
    ("=i4", 4),
    ("|i4", 4),
    ("<i4", 4),
    ("i", 4),
    ("=i", 4),
    ("int32", 4),
    ("intc", 4),
    ("u1", 1),
    ("=u1", 1),
    ("B", 1),
    (">B", 1),
    ("ubyte", 1),
];

#[tokio::test]
async fn data_types_of_filters_are_read_in_every_numpy_spelling() {
    for (spelling, bytes) in SPELLINGS {
        let store = memory();
        // Differences of the elements 1, 3; 6.
        let chunk = |elements: [u8; 2]| -> Vec<u8> {
            elements.iter().flat_map(|&element| [&[element][..], &vec![0; bytes - 1]].concat()).collect()
        };
        let (dtype, data_type) = if bytes == 4 { ("<i4", "int32") } else { ("|u1", "uint8") };
        let little = json!({ "name": "bytes", "configuration": { "endian": "little" } });
        let configuration = json!({ "dtype": spelling });
        let delta = json!({ "name": "numcodecs.delta", "configuration": configuration });
        put(&store, "3/zarr.json", v3(&json!({ "data_type": data_type, "codecs": [delta, little] }))).await;
        put(&store, "3/c/0", chunk([1, 2])).await;
        put(&store, "3/c/1", chunk([6, 0])).await;
        let filter = json!({ "id": "delta", "dtype": spelling });
        put(&store, "2/.zarray", v2(&json!({ "dtype": dtype, "filters": [filter] }))).await;
        put(&store, "2/0", chunk([1, 2])).await;
        put(&store, "2/1", chunk([6, 0])).await;
        let server = Server::of(store);
        for path in ["2", "3"] {
            assert_eq!(elements(&server, path, "json").await, "[1,3,6,6]", "{spelling} in v{path}");
        }
    }
}

#[tokio::test]
async fn every_filter_accepts_data_types_without_a_byte_order_in_both_versions() {
    for (id, members, stored) in [
        (
            "fixedscaleoffset",
            json!({ "offset": 0, "scale": 10, "dtype": "f8", "astype": "u1" }),
            vec![10_u8, 25],
        ),
        (
            "fixedscaleoffset",
            json!({ "offset": 0, "scale": 10, "dtype": "d", "astype": "=i2" }),
            vec![10, 0, 25, 0],
        ),
        (
            "astype",
            json!({ "decode_dtype": "float64", "encode_dtype": "f4" }),
            [1_f32, 2.5].map(f32::to_le_bytes).concat(),
        ),
        ("quantize", json!({ "digits": 2, "dtype": "f8", "astype": "e" }), vec![0, 0x3c, 0, 0x41]),
    ] {
        let store = memory();
        let mut filter = members.clone();
        filter["id"] = json!(id);
        put(&store, "2/.zarray", v2(&json!({ "dtype": "<f8", "filters": [filter] }))).await;
        put(&store, "2/0", stored.clone()).await;
        let codec = json!({ "name": format!("numcodecs.{id}"), "configuration": members });
        let codecs = json!([codec, { "name": "bytes", "configuration": { "endian": "little" } }]);
        put(&store, "3/zarr.json", v3(&json!({ "data_type": "float64", "codecs": codecs }))).await;
        put(&store, "3/c/0", stored).await;
        let server = Server::of(store);
        for path in ["2", "3"] {
            assert_eq!(elements(&server, path, "json").await, "[1.0,2.5,0.0,0.0]", "{members} in v{path}");
        }
    }
}

#[tokio::test]
async fn a_filter_with_a_non_numeric_type_is_refused_with_the_name_of_the_type() {
    for spelling in ["S3", "M8[s]", "O", "g", "i3", "<float32", "4i", "quaternion"] {
        let store = memory();
        let filter = json!({ "id": "delta", "dtype": spelling });
        put(&store, ".zarray", v2(&json!({ "filters": [filter] }))).await;
        let answer = Server::of(store).get("/v1/data/m").await;
        assert!(!answer.status.is_success(), "{spelling}");
        let detail = answer.json()["detail"].to_string();
        assert!(detail.contains("dtype") && detail.contains(spelling), "{spelling}: {detail}");
    }
}

#[tokio::test]
async fn a_transposition_by_name_is_emitted_as_a_permutation() {
    let store = memory();
    let members = |codecs: &Value| {
        json!({
            "shape": [2, 3, 4], "codecs": codecs,
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [2, 3, 4] } },
        })
    };
    let little = json!({ "name": "bytes", "configuration": { "endian": "little" } });
    let named = |order: &str| json!({ "name": "transpose", "configuration": { "order": order } });
    put(&store, "f/zarr.json", v3(&members(&json!([named("F"), little])))).await;
    put(&store, "c/zarr.json", v3(&members(&json!([named("C"), little])))).await;
    let inner = json!({ "chunk_shape": [1, 3, 4], "codecs": [named("F"), little], "index_codecs": [little] });
    let sharded = json!([{ "name": "sharding_indexed", "configuration": inner }]);
    put(&store, "s/zarr.json", v3(&members(&sharded))).await;
    let server = Server::of(store);
    for (path, order) in [("f", json!([2, 1, 0])), ("c", json!([0, 1, 2]))] {
        let node = document(&server, &format!("/v1/nodes/m/{path}")).await;
        assert_eq!(node["metadata"]["codecs"][0]["configuration"]["order"], order);
        for view in ["plain", "unshard"] {
            let shown = document(&server, &format!("/{view}/m/{path}/zarr.json")).await;
            assert_eq!(shown["codecs"][0]["configuration"]["order"], order, "{view}");
        }
    }
    let order = json!([2, 1, 0]);
    let node = document(&server, "/v1/nodes/m/s").await;
    assert_eq!(node["metadata"]["codecs"][0]["configuration"]["codecs"][0]["configuration"]["order"], order);
    let shown = document(&server, "/unshard/m/s/zarr.json").await;
    assert_eq!(shown["codecs"][0]["configuration"]["order"], order);
}

async fn of_a_struct_and_raw_bytes(store: &SharedStore) {
    let fields = json!([
        { "name": "a", "data_type": "int16" },
        { "name": "p", "data_type": { "name": "struct", "configuration": { "fields": [
            { "name": "r", "data_type": "r16" },
        ] } } },
    ]);
    let data_type = json!({ "name": "struct", "configuration": { "fields": fields } });
    let fill_value = json!({ "a": 1, "p": { "r": [2, 3] } });
    let members = json!({ "data_type": data_type, "fill_value": fill_value, "codecs": ["bytes"] });
    put(store, "struct/zarr.json", v3(&members)).await;
    let raw = json!({ "data_type": "r24", "fill_value": [1, 2, 3], "codecs": ["bytes"] });
    put(store, "raw/zarr.json", v3(&raw)).await;
}

#[tokio::test]
async fn views_spell_structs_and_raw_bytes_for_clients_and_nodes_as_specified() {
    let store = memory();
    of_a_struct_and_raw_bytes(&store).await;
    let server = Server::of(store);
    let raw = |bytes: u8| json!({ "name": "raw_bytes", "configuration": { "length_bytes": bytes } });
    let structured = |fields: Value| json!({ "name": "structured", "configuration": { "fields": fields } });
    for view in ["plain/m", "unshard/m", "rechunk/m/auto/raw"] {
        let shown = document(&server, &format!("/{view}/struct/zarr.json")).await;
        let inner = structured(json!([["r", raw(2)]]));
        assert_eq!(shown["data_type"], structured(json!([["a", "int16"], ["p", inner]])), "{view}");
        assert_eq!(shown["fill_value"], "AQACAw==", "{view}");
        let little = json!({ "name": "bytes", "configuration": { "endian": "little" } });
        assert_eq!(shown["codecs"][0], little, "{view}");
        let shown = document(&server, &format!("/{view}/raw/zarr.json")).await;
        assert_eq!((&shown["data_type"], &shown["fill_value"]), (&raw(3), &json!("AQID")), "{view}");
    }
    let node = document(&server, "/v1/nodes/m/raw").await;
    assert_eq!(
        (&node["metadata"]["data_type"], &node["metadata"]["fill_value"]),
        (&json!("r24"), &json!([1, 2, 3]))
    );
    let node = document(&server, "/v1/nodes/m/struct").await;
    assert_eq!(node["metadata"]["data_type"]["name"], "struct");
    assert_eq!(node["metadata"]["fill_value"], json!({ "a": 1, "p": { "r": [2, 3] } }));
}

#[tokio::test]
async fn views_emit_fill_values_that_clients_refuse_as_specified() {
    for (members, shown) in [
        (json!({ "data_type": "bool", "fill_value": 1, "codecs": ["bytes"] }), json!(true)),
        (json!({ "fill_value": 2.0 }), json!(2)),
        (json!({ "fill_value": null }), json!(0)),
        (json!({ "data_type": "bytes", "fill_value": [97], "codecs": ["vlen-bytes"] }), json!("YQ==")),
        (json!({ "data_type": "float32", "fill_value": "nan" }), json!("NaN")),
        // Spellings that clients accept stay unchanged.
        (json!({ "data_type": "float32", "fill_value": 2.5 }), json!(2.5)),
    ] {
        let store = memory();
        put(&store, "zarr.json", v3(&members)).await;
        let server = Server::of(store);
        for view in ["plain", "unshard"] {
            assert_eq!(
                document(&server, &format!("/{view}/m/zarr.json")).await["fill_value"],
                shown,
                "{members}"
            );
        }
    }
}

/// zarr-python 2 writes 0 for texts of any length, too.
#[tokio::test]
async fn missing_texts_of_v2_are_empty_where_the_fill_value_is_the_number_zero() {
    let store = memory();
    let members = json!({ "dtype": "|O", "fill_value": 0, "filters": [{ "id": "vlen-utf8" }] });
    put(&store, ".zarray", v2(&members)).await;
    let server = Server::of(store);
    assert_eq!(document(&server, "/v1/data/m?format=json").await, json!(["", "", "", ""]));
    assert_eq!(document(&server, "/rechunk/m/auto/raw/zarr.json").await["fill_value"], "");
}

#[tokio::test]
async fn non_finite_numbers_in_attributes_are_emitted_as_strings() {
    let store = memory();
    put(&store, ".zarray", v2(&json!({ "fill_value": null }))).await;
    put(&store, ".zattrs", r#"{"a": NaN, "b": [-Infinity, 2.5]}"#).await;
    let server = Server::of(store);
    let expected = json!({ "a": "NaN", "b": ["-Infinity", 2.5] });
    assert_eq!(document(&server, "/v1/nodes/m").await["metadata"]["attributes"], expected);
    assert_eq!(document(&server, "/rechunk/m/auto/raw/zarr.json").await["attributes"], expected);
    // Stored documents are returned unchanged.
    for url in ["/store/m/.zattrs", "/plain/m/.zattrs"] {
        assert_eq!(server.get(url).await.body, r#"{"a": NaN, "b": [-Infinity, 2.5]}"#, "{url}");
    }
}

#[tokio::test]
async fn bytes_that_are_not_utf8_are_escaped_alike_in_json_and_csv() {
    let store = memory();
    put(&store, ".zarray", v2(&json!({ "dtype": "|S3", "fill_value": null }))).await;
    put(&store, "0", &b"c0\0\xc0t\0"[..]).await;
    put(&store, "1", &b"a\\b\xc3\xa9\0"[..]).await;
    let server = Server::of(store);
    assert_eq!(document(&server, "/v1/data/m?format=json").await, json!(["c0", r"\xc0t", r"a\\b", "é"]));
    let rows = elements(&server, "", "csv").await;
    assert!(rows.ends_with("c0\r\n\\xc0t\r\na\\\\b\r\né\r\n"), "{rows}");
}

#[tokio::test]
async fn json_elements_are_their_json_text_in_raw_bytes_too() {
    let store = memory();
    let members = json!({ "dtype": "|O", "fill_value": null, "filters": [{ "id": "json2" }] });
    put(&store, ".zarray", v2(&members)).await;
    put(&store, "0", r#"["1", 1, "|O", [2]]"#).await;
    put(&store, "1", r#"["null", null, "|O", [2]]"#).await;
    let server = Server::of(store);
    let answer = server.get("/v1/data/m?format=bytes").await;
    let expected = [r#""1""#, "1", r#""null""#, "null"];
    let expected: Vec<u8> = expected
        .iter()
        .flat_map(|text| [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes()].concat())
        .collect();
    assert_eq!(answer.body, expected);
}

#[tokio::test]
async fn trailing_bytes_after_a_compressed_chunk_are_corrupt_data() {
    // An empty chunk of each compressor with one byte behind it, as Python's modules make them.
    let gzip = [31, 139, 8, 0, 0, 0, 0, 0, 2, 255, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let zlib = [120, 156, 3, 0, 0, 0, 0, 1, 1];
    let bz2 = [66, 90, 104, 57, 23, 114, 69, 56, 80, 144, 0, 0, 0, 0, 1];
    let blosc = [2, 1, 0x33, 4, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1];
    for (id, chunk) in [("gzip", &gzip[..]), ("zlib", &zlib), ("bz2", &bz2), ("blosc", &blosc)] {
        let store = memory();
        put(&store, ".zarray", v2(&json!({ "compressor": { "id": id } }))).await;
        put(&store, "0", chunk.to_vec()).await;
        let answer = Server::of(store).get("/v1/data/m").await;
        let detail = answer.refuses(500, "corrupt-data", id);
        assert!(detail.contains("after the compressed data"), "{id}: {detail}");
    }
}

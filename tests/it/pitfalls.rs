//! Arrays of other writers that readers are known to misread: they read as numpy has them. They stand in
//! `tests/data/pitfalls`, made by Python's own libraries and by hand, one list for each test here and under its name.
//!
//! Each is read whole and in parts, so that no fast path differs from the slow one.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::json;
use zarrd::services::Mount;

use crate::support::counting::Counting;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Answer, Server, put};

/// One array, with its elements or its refusal.
#[derive(Deserialize)]
struct Case {
    what: String,
    document: String,
    chunks: HashMap<String, String>,
    #[serde(default)]
    shape: Vec<u64>,
    #[serde(default)]
    elements: String,
    #[serde(default)]
    slices: HashMap<String, String>,
    refused: Option<String>,
}

fn hex(bytes: &[u8]) -> String {
    let digit = |digit: u8| char::from_digit(u32::from(digit), 16).unwrap();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16).unwrap()).unwrap();
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// A server with this document and these values below it as `m/a`.
async fn serve(document: &str, values: impl IntoIterator<Item = (&str, Vec<u8>)>) -> Server {
    let store = memory();
    let name = if document.contains("\"zarr_format\": 3") { "zarr.json" } else { ".zarray" };
    put(&store, &format!("a/{name}"), document.to_owned()).await;
    for (key, value) in values {
        put(&store, &format!("a/{key}"), value).await;
    }
    Server::of(store)
}

/// Reads every array that is listed under the promise.
async fn keeps(promise: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pitfalls/cases.json");
    let mut all: HashMap<String, Vec<Case>> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    for case in all.remove(promise).unwrap() {
        let what = format!("{promise}: {}", case.what);
        let chunks = case.chunks.iter().map(|(key, chunk)| (key.as_str(), unhex(chunk)));
        let server = serve(&case.document, chunks).await;
        let whole = server.get("/v1/data/m/a").await;
        if let Some(code) = &case.refused {
            whole.refuses(500, code, &what);
            continue;
        }
        let same = |answer: &Answer, expected: &str, slice: &str| {
            assert_eq!(answer.status.as_u16(), 200, "{what} [{slice}]: {:?}", answer.body);
            assert_eq!(hex(&answer.body), expected, "{what} [{slice}]");
        };
        same(&whole, &case.elements, "");
        assert_eq!(whole.header("array-shape"), format!("{:?}", case.shape), "{what}");
        for (slice, expected) in &case.slices {
            same(&server.get(&format!("/v1/data/m/a?slice={slice}")).await, expected, slice);
        }
        assert_eq!(server.get("/v1/data/m/a?f=json").await.status.as_u16(), 200, "{what} as JSON");
    }
}

/// A test for each list of the file.
macro_rules! promises {
    ($($promise:ident)*) => {
        $(
            #[tokio::test]
            async fn $promise() {
                keeps(stringify!($promise)).await;
            }
        )*

        #[test]
        fn every_list_of_arrays_has_its_test() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pitfalls/cases.json");
            let all: HashMap<String, Vec<Case>> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            let mut listed: Vec<&str> = all.keys().map(String::as_str).collect();
            let mut tested = vec![$(stringify!($promise)),*];
            listed.sort_unstable();
            tested.sort_unstable();
            assert_eq!(listed, tested);
        }
    };
}

promises! {
    blosc_frames_describe_their_own_compression
    blosc_frames_of_stored_bytes_and_of_snappy_are_read
    zstd_frames_may_omit_their_content_size
    several_zstd_frames_and_frames_to_skip_are_one_value
    unknown_members_of_a_v2_compressor_are_ignored
    gzip_members_are_one_value_and_only_zeros_may_follow
    zlib_and_gzip_are_distinguished_by_their_first_bytes
    numbers_of_a_v2_codec_may_be_strings
    an_empty_list_of_filters_is_none
    chunks_in_order_f_are_read_column_by_column
    filters_take_the_elements_in_stored_order
    a_chunk_may_be_larger_than_the_array
    an_array_of_rank_0_is_one_element
    a_dimension_without_length_has_no_chunks
    transpose_follows_the_specification
    inner_chunks_are_counted_by_the_grid_of_each_dimension
    an_index_is_encoded_by_its_own_codecs
    codecs_before_and_after_sharding_are_applied
    chains_inside_shards_are_chains_of_the_inner_chunk
    missing_shards_and_inner_chunks_are_fill_values
    data_beyond_the_array_may_be_stored_or_absent
    each_field_of_a_struct_has_its_own_byte_order
    a_struct_is_filled_with_zeros_or_with_the_bytes_of_an_element
}

/// A v2 array of this type and fill value as they stand in the document, one element, no chunk.
async fn filled_v2(dtype: &str, fill_value: &str) -> Answer {
    let document = format!(
        r#"{{"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": {dtype}, "order": "C", "filters": null,
        "compressor": null {fill_value}}}"#
    );
    serve(&document, []).await.get("/v1/data/m/a").await
}

#[tokio::test]
async fn fill_values_of_v2_are_read_as_their_writers_intended() {
    for (dtype, fill_values, element) in [
        // Missing, null.
        ("<i4", &["", "null"] as &[&str], "00000000"),
        ("<f8", &["", "null"], "0000000000000000"),
        ("|S2", &["", "null", "0", r#""""#], "0000"),
        ("<U1", &["", "null", "0", r#""""#], "00000000"),
        ("<M8[s]", &["0"], "0000000000000000"),
        // Times are not a time without one, as zarr-python reads them.
        ("<M8[s]", &["", "null"], "0000000000000080"),
        // Integers in other clothes.
        ("|u1", &["7", "7.0", r#""7""#, "[7]", "[7.0]", "7e0"], "07"),
        (">i2", &["-2", "-2.0", r#""-2""#], "feff"),
        ("<i8", &["-9.2233720368547758e18", "-9223372036854775808"], "0000000000000080"),
        ("<u8", &["18446744073709551615", r#""18446744073709551615""#], "ffffffffffffffff"),
        ("<u8", &["9223372036854775809"], "0100000000000080"),
        // Booleans as numbers, floats as names.
        ("|b1", &["1", "true", "1.0"], "01"),
        ("|b1", &["0", "false"], "00"),
        ("<f4", &["NaN", r#""NaN""#], "0000c07f"),
        (">f4", &["Infinity", r#""Infinity""#, r#""+Infinity""#], "0000807f"),
        ("<f8", &["-Infinity", r#""-Infinity""#], "000000000000f0ff"),
        ("<f8", &["-0.0"], "0000000000000080"),
        ("<f4", &["1.5", r#""1.5""#, "[1.5]"], "0000c03f"),
        // Text: of bytes base64 or itself, of characters always itself.
        ("|S3", &[r#""YWI=""#, r#""ab""#], "616200"),
        ("<U4", &[r#""YWI=""#], "590000005700000049000000 3d000000"),
        (">U1", &[r#""0""#], "30000000"),
        // Complex numbers: a pair, or its bytes in base64; special parts by name.
        ("<c8", &["[1.0, 2.0]", r#""AACAPwAAAEA=""#], "0000803f00000040"),
        (">c8", &[r#"["NaN", "-Infinity"]"#], "0000c07f000080ff"),
        ("<c16", &["[0.0, -0.0]"], "00000000000000000000000000000080"),
        // Times: integers, and invalid times.
        ("<M8[ns]", &[r#""NaT""#, "-9223372036854775808"], "0000000000000080"),
        (">m8[D]", &["5", "5.0"], "0500000000000000"),
        ("|V3", &[r#""AQID""#], "010203"),
    ] {
        for fill_value in fill_values {
            let member = if fill_value.is_empty() {
                String::new()
            } else {
                format!(r#", "fill_value": {fill_value}"#)
            };
            let answer = filled_v2(&format!("{dtype:?}"), &member).await;
            assert_eq!(answer.status.as_u16(), 200, "{dtype} {fill_value}: {:?}", answer.body);
            assert_eq!(hex(&answer.body), element.replace(' ', ""), "{dtype} {fill_value}");
        }
    }
}

#[tokio::test]
async fn a_fill_value_out_of_range_is_an_error() {
    for (dtype, fill_values) in [
        ("<u4", &["-1", "-1.0", "4294967296", "0.5", "1e400", "NaN", r#""x""#, "[1, 2]", "{}"] as &[&str]),
        ("|i1", &["128", "-129", "127.5"]),
        ("<i8", &["9223372036854775808", "9.2233720368547758e18"]),
        ("<u8", &["18446744073709551616", "1.8446744073709552e19", "-1"]),
        ("|b1", &["2", "-1", r#""yes""#]),
        ("<f4", &[r#""none""#, "[]"]),
        ("<c8", &["[[1], [2]]", "[1, 2, 3]", r#""AACAPw==""#]),
        ("|V3", &[r#""AQI=""#, "1"]),
        ("|S3", &[r#""YWJjZA==""#, "1"]),
        ("<U2", &[r#""abc""#]),
        ("<M8[s]", &["0.5", r#""1970-01-01""#]),
    ] {
        for fill_value in fill_values {
            let answer = filled_v2(&format!("{dtype:?}"), &format!(r#", "fill_value": {fill_value}"#)).await;
            answer.refuses(500, "invalid-metadata", &format!("{dtype} {fill_value}"));
        }
    }
}

#[tokio::test]
async fn fill_values_keep_the_bits_of_nan_and_the_sign_of_zero() {
    let index = json!([{ "name": "bytes", "configuration": { "endian": "little" } }]);
    let shards = json!([{ "name": "sharding_indexed", "configuration": {
        "chunk_shape": [1], "codecs": index, "index_codecs": index,
    } }]);
    for (fill_value, element) in [
        ("0x7fc00001", "0100c07f"),
        ("0xffc00000", "0000c0ff"),
        ("0x80000000", "00000080"),
        ("NaN", "0000c07f"),
    ] {
        let members = json!({ "data_type": "float32", "fill_value": fill_value });
        let plain = Array::of(&[2]).members(members.clone());
        let mut sharded = members;
        sharded["codecs"] = shards.clone();
        let sharded = Array::of(&[2]).members(sharded);
        for (array, chunk) in [(plain, None), (sharded.clone(), None), (sharded, Some(vec![0xff; 32]))] {
            let store = memory();
            put(&store, "a/zarr.json", array.document().1.to_string()).await;
            if let Some(chunk) = chunk {
                put(&store, "a/c/0", chunk).await;
            }
            let elements = Server::of(store).elements("m/a", "").await;
            assert_eq!(hex(&elements), element.repeat(2), "{fill_value}");
        }
    }
}

#[tokio::test]
async fn inner_chunk_shapes_are_reported_in_the_arrays_dimensions() {
    let index = json!([{ "name": "bytes", "configuration": { "endian": "little" } }]);
    let codecs = json!([
        { "name": "transpose", "configuration": { "order": [2, 0, 1] } },
        { "name": "sharding_indexed", "configuration": {
            "chunk_shape": [5, 1, 3], "codecs": index, "index_codecs": index,
        } },
    ]);
    let array = Array::of(&[4, 9, 10]).chunks(&[2, 9, 10]).members(json!({ "codecs": codecs }));
    let store = memory();
    put(&store, "a/zarr.json", array.document().1.to_string()).await;
    let chunks = Server::of(store).get("/v1/nodes/m/a").await.json()["chunks"].clone();
    assert_eq!(chunks["chunk_shape"], json!([2, 9, 10]));
    assert_eq!(chunks["decoded_chunk_shape"], json!([1, 3, 5]));
}

#[tokio::test]
async fn a_grid_with_more_chunks_than_u64_is_read_in_parts() {
    let edge = 1_u64 << 62;
    let grid = json!({ "name": "regular", "configuration": { "chunk_shape": [1, 1, 1] } });
    let array = Array::of(&[1, 1, 1]).members(json!({ "shape": [edge, edge, edge], "chunk_grid": grid }));
    let store = memory();
    put(&store, "a/zarr.json", array.document().1.to_string()).await;
    put(&store, &format!("a/c/0/{}/5", edge - 1), vec![9, 1]).await;
    let server = Server::of(store);
    assert_eq!(server.get("/v1/nodes/m/a").await.json()["chunks"]["grid_shape"], json!([edge, edge, edge]));
    assert_eq!(server.elements("m/a", "0,-1,5:7").await.as_ref(), [9, 1, 1, 2]);
    assert_eq!(server.get(&format!("/v1/chunk/m/a/c/0/{}/5", edge - 1)).await.body.as_ref(), [9, 1]);
    for slice in ["", "0", "0,0", ":,0,0", "::2,::3,::5"] {
        server.get(&format!("/v1/data/m/a?slice={slice}")).await.refuses(413, "too-large", slice);
    }
}

#[tokio::test]
async fn only_absent_chunks_read_as_fill_values_and_unreadable_ones_fail() {
    let little = Codec::Bytes { big: false };
    let plain = Array::of(&[8]).chunks(&[4]);
    let sharded = plain.clone().codecs([Shards::of(&[2], &[little]).codec()]);
    for array in [plain, sharded] {
        let inner = memory();
        array.store(&inner, "a").await;
        crate::support::server::erase(&inner, "a/c/1").await;
        let store = Counting::new(inner);
        let server = Server::build(Mount::read_only("m", store.clone())).finish();
        store.fail(true);
        for url in [
            "data/m/a",
            "data/m/a?slice=0",
            "data/m/a?slice=7",
            "data/m/a?f=json",
            "chunk/m/a/c/0",
            "chunk/m/a/c/1",
        ] {
            server.get(&format!("/v1/{url}")).await.refuses(502, "backend-failed", url);
        }
        store.fail(false);
        assert_eq!(hex(&server.elements("m/a", "").await), "01000200030004000102010201020102");
    }
}

#[tokio::test]
async fn a_shuffle_chosen_by_blosc_is_reported_by_name() {
    for (dtype, shuffle, typesize) in
        [("|u1", "bitshuffle", 1), ("<f4", "shuffle", 4), ("|V255", "shuffle", 255), ("|V256", "shuffle", 1)]
    {
        let document = json!({
            "zarr_format": 2, "shape": [4], "chunks": [4], "dtype": dtype, "fill_value": null, "order": "C",
            "filters": null,
            "compressor": { "id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0 },
        });
        let node = serve(&document.to_string(), []).await.get("/v1/nodes/m/a").await.json();
        let blosc = &node["metadata"]["codecs"].as_array().unwrap().last().unwrap()["configuration"];
        assert_eq!((&blosc["shuffle"], &blosc["typesize"]), (&json!(shuffle), &json!(typesize)), "{dtype}");
    }
}

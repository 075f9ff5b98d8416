//! Downsampled selections, compared with naive models: over HTTP, in every format, under limits and conditions.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "elements are small numbers, and results are exact"
)]

use axum::http::{Method, StatusCode};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use zarrd::array::ReadLimits;
use zarrd::services::Mount;

use crate::support::data_types::data_type;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::model::{Model, places};
use crate::support::property::{holds, server_with, setup};
use crate::support::server::{Answer, Server, put};

const LITTLE: Codec = Codec::Bytes { big: false };

/// The number of an element of some types.
fn number(data_type: &str, element: &[u8]) -> f64 {
    match data_type {
        "uint8" | "bool" => element[0].into(),
        "uint16" => u16::from_le_bytes(element.try_into().unwrap()).into(),
        "int32" => i32::from_le_bytes(element.try_into().unwrap()).into(),
        "float32" => f32::from_le_bytes(element.try_into().unwrap()).into(),
        _ => f64::from_le_bytes(element.try_into().unwrap()),
    }
}

fn element(data_type: &str, number: f64) -> Vec<u8> {
    match data_type {
        "uint8" | "bool" => vec![number as u8],
        "uint16" => (number as u16).to_le_bytes().to_vec(),
        "int32" => (number as i32).to_le_bytes().to_vec(),
        "float32" => (number as f32).to_le_bytes().to_vec(),
        _ => number.to_le_bytes().to_vec(),
    }
}

/// One step of a reduction of a box by its definition. float64 holds these numbers and their sums exactly.
fn reduce(data_type: &str, method: &str, model: &Model, factors: &[usize]) -> Model {
    let shape: Vec<usize> =
        model.shape.iter().zip(factors).map(|(length, factor)| length.div_ceil(*factor)).collect();
    let mut elements = Vec::new();
    for result in places(&shape) {
        let starts: Vec<usize> = result.iter().zip(factors).map(|(at, factor)| at * factor).collect();
        let edges = starts.iter().zip(&model.shape).zip(factors);
        let edges: Vec<usize> =
            edges.map(|((start, length), factor)| (*factor).min(length - start)).collect();
        let at =
            |place: Vec<usize>| starts.iter().zip(place).map(|(start, at)| start + at).collect::<Vec<_>>();
        let window: Vec<f64> = places(&edges)
            .map(|place| number(data_type, model.element(&at(place))))
            .filter(|number| !number.is_nan())
            .collect();
        let sum: f64 = window.iter().sum();
        let is_float = data_type.starts_with("float");
        let count = window.len() as f64;
        let reduced = match method {
            _ if window.is_empty() => f64::NAN,
            "mean" if is_float => sum / count,
            "mean" => (sum / count).round_ties_even(),
            "min" => window.iter().copied().fold(f64::INFINITY, f64::min),
            "max" => window.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            "mode" => {
                let times = |number: f64| window.iter().filter(|other| **other == number).count();
                let most = window.iter().map(|number| times(*number)).max().unwrap();
                window.iter().copied().filter(|number| times(*number) == most).fold(f64::INFINITY, f64::min)
            }
            _ => panic!("{method}"),
        };
        elements.extend(element(data_type, reduced));
    }
    Model { shape, element_bytes: model.element_bytes, elements }
}

fn expect(answer: &Answer, expected: &Model, what: &str) {
    assert_eq!(answer.status, StatusCode::OK, "{what}: {:?}", answer.body);
    assert_eq!(answer.header("array-shape"), format!("{:?}", expected.shape), "{what}");
    assert_eq!(answer.header("content-length"), answer.body.len().to_string(), "{what}");
    assert_eq!(answer.header("array-level"), "0", "{what}");
    assert!(answer.body == expected.elements, "{what}: {:?}, not {:?}", answer.body, expected.elements);
}

type Axis = (usize, usize, usize);

/// Up to three dimensions: length, edge of a chunk, factor. One request may read all chunks.
fn axes() -> impl Strategy<Value = Vec<Axis>> {
    let axis = (1..40_usize, 1..16_usize, prop_oneof![1..5_usize, 1..50_usize]);
    prop::collection::vec(axis, 1..=3).prop_filter("more chunks than `read.max_chunks`", |axes| {
        let chunks: u64 = axes.iter().map(|&(length, edge, _)| length.div_ceil(edge) as u64).product();
        chunks <= ReadLimits::default().max_chunks
    })
}

fn stored(axes: &[Axis], type_name: &'static str, is_sharded: bool, seed: u64) -> Array {
    let shape: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
    let edges: Vec<usize> = axes.iter().map(|axis| axis.1).collect();
    let array = Array::of(&shape).data_type(data_type(type_name)).random(seed, &[]);
    if is_sharded {
        let outer: Vec<usize> = edges.iter().map(|edge| edge * 2).collect();
        array.chunks(&outer).codecs([Shards::of(&edges, &[LITTLE]).codec()])
    } else {
        array.chunks(&edges).codecs([LITTLE])
    }
}

const TYPES: [&str; 4] = ["uint8", "uint16", "int32", "bool"];

#[test]
fn direct_windows_of_random_arrays_match_a_naive_model_whatever_the_bands_and_caches() {
    let methods = select(&["mean", "mode", "min", "max"][..]);
    let cases = (axes(), select(&TYPES[..]), methods, setup(), any::<bool>(), any::<u64>());
    holds(120, cases, async |(axes, type_name, method, setup, is_sharded, seed)| {
        if (type_name, method) == ("bool", "mean") {
            return;
        }
        let (store, array) = (memory(), stored(&axes, type_name, is_sharded, seed));
        let model = array.store(&store, "a").await;
        let server = server_with(store, setup);
        let factors: Vec<usize> = axes.iter().map(|axis| axis.2).collect();
        let list = factors.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let url = format!("/v1/data/m/a?downsample={list}&method={method}");
        let answer = server.get(&url).await;
        let window: usize = axes.iter().map(|&(length, _, factor)| length.min(factor)).product();
        let window = window * model.element_bytes;
        if method == "mode" && window as u64 > setup.0.max(4096) {
            answer.refuses(413, "too-large", &url);
            return;
        }
        expect(&answer, &reduce(type_name, method, &model, &factors), &url);
        assert_eq!(answer.header("array-downsample"), list);
    });
}

#[test]
fn cascades_of_random_arrays_are_their_steps_one_after_the_other() {
    let methods = select(&["mean", "mode", "min", "max"][..]);
    let cases = (axes(), select(&TYPES[..3]), methods, setup(), (1..20_usize, 1..20_usize), any::<u64>());
    holds(100, cases, async |(axes, type_name, method, setup, (width, height), seed)| {
        let (store, array) = (memory(), stored(&axes, type_name, false, seed));
        let mut model = array.store(&store, "a").await;
        let server = server_with(store, setup);
        let url = format!("/v1/data/m/a?fit={width},{height}&method={method}");
        let rank = axes.len();
        let too_large =
            |model: &Model| model.shape[rank - 1] > width || (rank > 1 && model.shape[rank - 2] > height);
        let step: Vec<usize> = (0..rank).map(|dim| if dim + 2 >= rank { 2 } else { 1 }).collect();
        while too_large(&model) {
            model = reduce(type_name, method, &model, &step);
        }
        expect(&server.get(&url).await, &model, &url);
    });
}

/// A picture of 6 × 8 as `m/a`, with these attributes and names.
async fn picture(type_name: &'static str, members: Value) -> (Server, Model) {
    let store = memory();
    let array = Array::of(&[6, 8]).chunks(&[4, 3]).data_type(data_type(type_name)).members(members);
    let model = array.store(&store, "a").await;
    (Server::of(store), model)
}

#[tokio::test]
async fn windows_begin_at_the_selection_and_dropped_dimensions_have_no_factor() {
    let (server, _) = picture("uint16", json!({"dimension_names": ["y", "x"]})).await;
    // Row 1 holds 9 to 16.
    for (query, shape, expected) in [
        ("slice=1&downsample=3", "[3]", "[10,13,16]"),
        ("slice=1&downsample=1,3", "[3]", "[10,13,16]"),
        ("slice=1,1:&downsample=3&method=min", "[3]", "[10,13,16]"),
        ("slice=1,::-1&downsample=3&method=stride", "[3]", "[16,13,10]"),
        ("slice=1,::-1&downsample=3&method=max", "[3]", "[16,13,10]"),
        ("isel.y=1&downsample.x=8", "[1]", "[12]"),
        ("downsample.y=6&downsample.x=8", "[1, 1]", "[[24]]"),
        ("slice=:2,:2&downsample=2,2", "[1, 1]", "[[6]]"),
        ("slice=:0&downsample=2,2", "[0, 4]", "[]"),
        ("fit=4", "[3, 4]", "[[6,8,10,12],[22,24,26,28],[38,40,42,44]]"),
        ("fit=8,2&method=min", "[2, 2]", "[[1,5],[33,37]]"),
        ("slice=1,2&downsample=", "[]", "11"),
        ("slice=1,1:4&downsample=1&method=mode", "[3]", "[10,11,12]"),
        ("slice=2,:2&method=mean", "[2]", "[17,18]"),
    ] {
        let answer = server.get(&format!("/v1/data/m/a?{query}&format=json")).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {:?}", answer.body);
        assert_eq!((answer.header("array-shape"), &answer.body[..]), (shape, expected.as_bytes()), "{query}");
    }
    let answer = server.get("/v1/data/m/a?slice=1&downsample=3").await;
    assert_eq!(answer.header("array-downsample"), "3");
    assert_eq!(answer.header("array-dimension-names"), "[\"x\"]");
}

#[tokio::test]
async fn ambiguous_and_invalid_parameters_are_refused() {
    let (server, _) = picture("uint16", json!({"dimension_names": ["y", "x"]})).await;
    let flags = picture("bool", json!({})).await.0;
    for (server, query) in [
        (&server, "downsample=2"),
        (&server, "downsample=2,2,2"),
        (&server, "downsample=0,1"),
        (&server, "downsample=-1,1"),
        (&server, "downsample=2,x"),
        (&server, "downsample=18446744073709551616,1"),
        (&server, "downsample=2,2&downsample.x=2"),
        (&server, "downsample=2,2&fit=2,2"),
        (&server, "downsample=2,2&downsample=2,2"),
        (&server, "downsample.z=2"),
        (&server, "downsample.x=2&downsample.x=2"),
        (&server, "slice=1&downsample=2,2"),
        (&server, "isel.y=1&downsample.y=2"),
        (&server, "fit=0,1"),
        (&server, "fit=1,2,3"),
        (&server, "fit="),
        (&server, "slice=0,0&fit=1,1"),
        (&server, "downsample=2,2&method=median"),
        (&server, "method=median"),
        (&flags, "downsample=2,2&method=mean"),
    ] {
        server.get(&format!("/v1/data/m/a?{query}")).await.refuses(400, "invalid-request", query);
    }
    server.get("/v1/chunk/m/a/c/0/0?downsample=2,2").await.refuses(400, "invalid-request", "a chunk");
}

#[tokio::test]
async fn factors_of_any_size_are_served_and_the_largest_give_one_element() {
    let (server, _) = picture("uint16", json!({})).await;
    for factor in ["6,8", "1000000,99", "18446744073709551615,18446744073709551615"] {
        let answer = server.get(&format!("/v1/data/m/a?downsample={factor}")).await;
        assert_eq!(
            (answer.header("array-shape"), &answer.body[..]),
            ("[1, 1]", [24, 0].as_slice()),
            "{factor}"
        );
    }
}

#[tokio::test]
async fn missing_values_are_skipped_and_the_fill_value_of_zarr_is_a_value() {
    // Elements are 1 to 48; 1, 2, 9 and 10 are the first window.
    let attributes = json!({"_FillValue": 1, "missing_value": [2, 9.0, 10]});
    let (server, _) = picture("int32", json!({"attributes": attributes, "fill_value": 3})).await;
    for (method, expected) in
        [("mean", "[1,8,10,12]"), ("min", "[1,3,5,7]"), ("max", "[1,12,14,16]"), ("stride", "[1,3,5,7]")]
    {
        let url = format!("/v1/data/m/a?slice=:2&downsample=2,2&method={method}&format=json");
        assert_eq!(server.get(&url).await.body, format!("[{expected}]"), "{method}");
    }
    let many: Vec<i32> = (0..40).collect();
    let (server, _) = picture("int32", json!({"attributes": {"missing_value": many}})).await;
    server.get("/v1/data/m/a?downsample=2,2").await.refuses(501, "unsupported", "many missing values");
    assert_eq!(server.get("/v1/data/m/a?downsample=2,2&method=stride").await.status, StatusCode::OK);
}

#[tokio::test]
async fn labels_are_reduced_by_their_mode_by_default() {
    let group = |attributes: Value| {
        json!({"zarr_format": 3, "node_type": "group", "attributes": attributes}).to_string()
    };
    let array = |attributes: Value| {
        let members = json!({"attributes": attributes, "fill_value": 0});
        Array::of(&[2, 2]).data_type(data_type("uint8")).members(members)
    };
    let store = memory();
    let levels = json!([{"axes": [{"name": "y"}, {"name": "x"}], "datasets": [{"path": "0"}]}]);
    for (path, attributes, around) in [
        ("image", json!({}), json!({"ome": {"version": "0.5", "multiscales": levels}})),
        ("labels05", json!({}), json!({"ome": {"version": "0.5", "multiscales": levels, "image-label": {}}})),
        ("labels04", json!({}), json!({"multiscales": levels, "image-label": {"version": "0.4"}})),
        ("flags", json!({"flag_values": [0, 1, 2]}), json!({})),
    ] {
        put(&store, &format!("{path}/zarr.json"), group(around)).await;
        let document = array(attributes).document().1.to_string();
        put(&store, &format!("{path}/0/zarr.json"), document).await;
        put(&store, &format!("{path}/0/c/0/0"), vec![0, 9, 9, 2]).await;
    }
    let server = Server::of(store.clone());
    let get = async |path: &str, query: &str| {
        let answer = server.get(&format!("/v1/data/m/{path}/0?downsample=2,2{query}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {:?}", answer.body);
        answer.body[0]
    };
    for (path, expected) in [("image", 5), ("labels05", 9), ("labels04", 9), ("flags", 9)] {
        for _ in 0..4 {
            assert_eq!(get(path, "").await, expected, "{path}");
            assert_eq!(get(path, "&method=auto").await, expected, "{path}");
        }
        assert_eq!(get(path, "&method=mean").await, 5, "{path}");
    }
    // A group that becomes an image of labels changes what was cached.
    put(&store, "image/zarr.json", group(json!({"multiscales": levels, "image-label": {}}))).await;
    assert_eq!(get("image", "").await, 9);
}

#[tokio::test]
async fn entity_tags_differ_by_method_and_factors_and_after_a_change_of_a_chunk() {
    let store = memory();
    let array = Array::of(&[6, 8]).chunks(&[4, 3]);
    array.store(&store, "a").await;
    let server = Server::of(store.clone());
    let urls = [
        "",
        "?downsample=2,2",
        "?downsample=2,1",
        "?downsample=2,2&method=max",
        "?downsample=4,4",
        "?fit=2,2",
        "?fit=2,2&method=min",
    ];
    let mut tags = std::collections::BTreeSet::new();
    for url in urls {
        let url = format!("/v1/data/m/a{url}");
        let answer = server.get(&url).await;
        let tag = answer.header("etag").to_owned();
        let head = server.ask(Method::HEAD, &url, &[]).await;
        assert_eq!(
            (head.header("etag"), head.header("content-length")),
            (&*tag, answer.header("content-length"))
        );
        let again = server.ask(Method::GET, &url, &[("if-none-match", &tag)]).await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{url}");
        let failed = server.ask(Method::GET, &url, &[("if-match", "\"other\"")]).await;
        assert_eq!(failed.status, StatusCode::PRECONDITION_FAILED, "{url}");
        let part = server.ask(Method::GET, &url, &[("range", "bytes=1-2")]).await;
        assert_eq!(
            (part.status, &part.body),
            (StatusCode::PARTIAL_CONTENT, &answer.body.slice(1..3)),
            "{url}"
        );
        assert!(tags.insert(tag), "{url}");
    }
    put(&store, "a/c/1/2", array.chunk(&array.model(), &[0, 0])).await;
    for url in urls {
        let answer = server.get(&format!("/v1/data/m/a{url}")).await;
        assert!(tags.insert(answer.header("etag").to_owned()), "{url}");
    }
}

#[tokio::test]
async fn every_format_has_the_reduced_elements() {
    let (server, _) = picture("uint16", json!({"dimension_names": ["y", "x"]})).await;
    let get = async |format: &str| {
        server.get(&format!("/v1/data/m/a?slice=:2&downsample=2,4&format={format}")).await
    };
    assert_eq!(get("json").await.body, "[[6,10]]");
    assert_eq!(get("csv").await.body, "0,4\r\n6,10\r\n");
    assert!(get("npy").await.body.ends_with(&[6, 0, 10, 0]));
    assert!(get("npy").await.body.starts_with(b"\x93NUMPY"));
    assert_eq!(get("bytes").await.body.as_ref(), [6, 0, 10, 0]);
    assert_eq!(get("arrow").await.status, StatusCode::OK);
    let big = server.get("/v1/data/m/a?slice=:2&downsample=2,4&endian=big").await;
    assert_eq!(big.body.as_ref(), [0, 6, 0, 10]);
}

#[tokio::test]
async fn limits_count_what_is_read_and_what_is_answered() {
    let store = memory();
    Array::of(&[64, 64]).chunks(&[8, 8]).store(&store, "a").await;
    let build = |response: u64, decoded: u64, chunks: u64| {
        let mut server = Server::build(Mount::read_only("m", store.clone()));
        server.read.max_response_size = response;
        server.read.max_decoded_size = decoded;
        server.read.max_chunks = chunks;
        server.finish()
    };
    let all = 64 * 64 * 2;
    // What is answered is small enough, though what is read is not an answer.
    let server = build(all / 4, all, 64);
    assert_eq!(server.get("/v1/data/m/a").await.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(server.get("/v1/data/m/a?downsample=2,2").await.status, StatusCode::OK);
    server.get("/v1/data/m/a?downsample=1,2").await.refuses(413, "too-large", "the response");
    for (server, setting) in
        [(build(all, all - 1, 64), "read.max_decoded_size"), (build(all, all, 63), "read.max_chunks")]
    {
        for query in ["downsample=64,64", "fit=1,1", "downsample=2,2&method=mode"] {
            let answer = server.get(&format!("/v1/data/m/a?{query}")).await;
            answer.refuses(413, "too-large", query);
            let problem = answer.json();
            assert_eq!(problem["setting"], setting, "{query}");
            for slice in problem["suggested_slices"].as_array().unwrap() {
                let url = format!("/v1/data/m/a?slice={}&{query}", slice.as_str().unwrap());
                assert_eq!(server.get(&url).await.status, StatusCode::OK, "{url}");
            }
            assert!(!problem["suggested_slices"].as_array().unwrap().is_empty(), "{query}");
        }
        // The first elements are in fewer chunks.
        assert_eq!(server.get("/v1/data/m/a?downsample=16,16&method=stride").await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn text_and_structs_are_thinned_and_have_no_mean() {
    let store = memory();
    for name in ["string", "struct", "r24", "complex64"] {
        Array::of(&[5])
            .data_type(data_type(name))
            .codecs([Codec::serializer(&data_type(name), false)])
            .store(&store, name)
            .await;
    }
    let server = Server::of(store);
    for name in ["string", "struct", "r24"] {
        let expected = server.get(&format!("/v1/data/m/{name}?slice=::2")).await.body;
        for method in ["auto", "stride"] {
            let answer = server.get(&format!("/v1/data/m/{name}?downsample=2&method={method}")).await;
            assert_eq!((answer.status, answer.body), (StatusCode::OK, expected.clone()), "{name} {method}");
        }
        for method in ["mean", "mode", "min", "max"] {
            let answer = server.get(&format!("/v1/data/m/{name}?downsample=2&method={method}")).await;
            answer.refuses(400, "invalid-request", name);
        }
    }
    for method in ["mode", "min", "max"] {
        let answer = server.get(&format!("/v1/data/m/complex64?downsample=2&method={method}")).await;
        answer.refuses(400, "invalid-request", method);
    }
    assert_eq!(server.get("/v1/data/m/complex64?downsample=2").await.status, StatusCode::OK);
}

//! Arrays as images with coarser levels: every level equals a naive cascade of halvings, however it is computed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::{Method, StatusCode};
use futures::stream::BoxStream;
use serde_json::{Value, json};
use zarrd::cache::ValueCache;
use zarrd::key::{StoreKey, StorePrefix};
use zarrd::services::Mount;
use zarrd::store::{
    ByteRange, CachePolicy, DirEntries, ListEntry, SetResult, SharedStore, Shortcuts, Store, StoreError,
    StoreKind, ValueInfo, ValueStream, Version, WriteCondition,
};
use zarrd::views::pyramid::PyramidOptions;

use crate::support::copied::{copy, list_all, read_all};
use crate::support::counting::Counting;
use crate::support::data_types::data_type;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, Format, memory};
use crate::support::model::{Model, places};
use crate::support::server::{Answer, Server, erase, put};

const LITTLE: Codec = Codec::Bytes { big: false };

/// The bytes of one element of the mean of integers or of the mode, by definition.
fn reduced(data_type: &str, method: &str, window: &[&[u8]]) -> Vec<u8> {
    let integer = |element: &[u8]| -> i128 {
        match data_type {
            "uint8" | "bool" => element[0].into(),
            "uint16" => u16::from_le_bytes(element.try_into().unwrap()).into(),
            "int64" => i64::from_le_bytes(element.try_into().unwrap()).into(),
            other => panic!("{other}"),
        }
    };
    match (data_type, method) {
        ("float16", "mean") => {
            let numbers: Vec<f64> = window
                .iter()
                .map(|element| half::f16::from_le_bytes((*element).try_into().unwrap()).to_f64())
                .collect();
            let present: Vec<f64> = numbers.into_iter().filter(|number| !number.is_nan()).collect();
            let count = u16::try_from(present.len()).unwrap();
            let mean = if count == 0 { f64::NAN } else { present.iter().sum::<f64>() / f64::from(count) };
            half::f16::from_f64(mean).to_le_bytes().to_vec()
        }
        (_, "mean") => {
            let (sum, count) = (
                window.iter().map(|element| integer(element)).sum::<i128>(),
                i128::try_from(window.len()).unwrap(),
            );
            let (floor, rest) = (sum.div_euclid(count), sum.rem_euclid(count));
            let is_up = 2 * rest > count || (2 * rest == count && floor % 2 != 0);
            (floor + i128::from(is_up)).to_le_bytes()[..window[0].len()].to_vec()
        }
        (_, "mode") => {
            let times = |wanted: i128| window.iter().filter(|element| integer(element) == wanted).count();
            let most = window.iter().map(|element| times(integer(element))).max().unwrap();
            let best = window.iter().filter(|element| times(integer(element)) == most);
            best.min_by_key(|element| integer(element)).unwrap().to_vec()
        }
        (_, "max") => window.iter().max_by_key(|element| integer(element)).unwrap().to_vec(),
        (_, "stride") => window[0].to_vec(),
        other => panic!("{other:?}"),
    }
}

/// One step of a cascade, by definition.
fn step(data_type: &str, method: &str, model: &Model, factors: &[usize]) -> Model {
    let shape: Vec<usize> =
        model.shape.iter().zip(factors).map(|(length, factor)| length.div_ceil(*factor)).collect();
    let mut elements = Vec::new();
    for result in places(&shape) {
        let starts: Vec<usize> = result.iter().zip(factors).map(|(at, factor)| at * factor).collect();
        let edges: Vec<usize> = starts
            .iter()
            .zip(&model.shape)
            .zip(factors)
            .map(|((start, length), factor)| (*factor).min(length - start))
            .collect();
        let at =
            |place: &Vec<usize>| starts.iter().zip(place).map(|(start, at)| start + at).collect::<Vec<_>>();
        let window: Vec<Vec<usize>> = places(&edges).map(|place| at(&place)).collect();
        let window: Vec<&[u8]> = window.iter().map(|place| model.element(place)).collect();
        elements.extend(reduced(data_type, method, &window));
    }
    Model { shape, element_bytes: model.element_bytes, elements }
}

/// Every level of an image of an array, read from a copy of what the server shows below `url`, equals the cascade.
async fn expect_levels(
    copied: &Server,
    path: &str,
    first: &Model,
    data_type: &str,
    method: &str,
    steps: &[&[usize]],
) {
    let mut model = first.clone();
    for level in 0..=steps.len() {
        let url = format!("m/{path}/{level}");
        let shown = copied.get(&format!("/v1/data/{url}")).await;
        assert_eq!(shown.status, StatusCode::OK, "{url}: {:?}", shown.body);
        assert_eq!(shown.header("array-shape"), format!("{:?}", model.shape), "{url}");
        assert!(shown.body == model.elements, "{url}, {data_type}, {method}: other elements");
        if let Some(factors) = steps.get(level) {
            model = step(data_type, method, &model, factors);
        }
    }
    copied.get(&format!("/v1/data/m/{path}/{}", steps.len() + 1)).await.refuses(
        404,
        "not-found",
        "a level too many",
    );
}

fn built(store: SharedStore, direct_size: u64) -> Server {
    let mut server = Server::build(Mount::read_only("m", store));
    server.pyramid = PyramidOptions { direct_size };
    server.finish()
}

/// What is at a URL, once it was built.
async fn get_built(server: &Server, url: &str) -> Answer {
    for _ in 0..2000 {
        let answer = server.get(url).await;
        if answer.status != StatusCode::SERVICE_UNAVAILABLE {
            return answer;
        }
        answer.is_problem(503, "being-built", url);
        assert!(!answer.header("retry-after").is_empty(), "{url}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{url} is never built");
}

/// Three levels of 3 × 700 elements.
const STEPS: [&[usize]; 2] = [&[2, 2], &[2, 2]];

fn array(type_name: &str, seed: u64) -> Array {
    Array::of(&[5, 700]).chunks(&[2, 64]).data_type(data_type(type_name)).codecs([LITTLE]).random(seed, &[])
}

#[tokio::test]
async fn levels_are_cascades_of_halvings_in_every_layout_and_type() {
    let v2 = |separator| Format::V2 { compressor: None, fortran: true, big: true, separator };
    for (number, (array, type_name, spec, method)) in [
        (array("uint16", 1), "uint16", "mean", "mean"),
        (array("uint16", 2).codecs([Shards::of(&[1, 16], &[LITTLE]).codec()]), "uint16", "auto", "mean"),
        (array("uint16", 3).format(v2('.')), "uint16", "max", "max"),
        (array("uint8", 4).format(v2('/')), "uint8", "mode", "mode"),
        (
            array("uint16", 5).format(Format::V3 { encoding: "default", separator: '.' }),
            "uint16",
            "stride",
            "stride",
        ),
        (array("uint16", 6).format(Format::V3 { encoding: "v2", separator: '/' }), "uint16", "auto", "mean"),
        (array("int64", 7), "int64", "auto", "mean"),
        // These are small, so that a mean is rounded once.
        (
            Array::of(&[5, 700]).chunks(&[2, 64]).data_type(data_type("float16")).codecs([LITTLE]),
            "float16",
            "auto",
            "mean",
        ),
        (array("bool", 9), "bool", "auto", "mode"),
        (array("uint8", 10).members(json!({"attributes": {"flag_values": [1, 2]}})), "uint8", "auto", "mode"),
    ]
    .into_iter()
    .enumerate()
    {
        let store = memory();
        let model = array.store(&store, "a").await;
        let server = Server::of(Arc::clone(&store));
        for recipe in ["auto/raw", "3,50/zstd-1"] {
            let copied = Server::of(copy(&server, &format!("/pyramid/m/{spec}/{recipe}/")).await);
            let listed = list_all(&server, &format!("/pyramid/m/{spec}/{recipe}/a/"), None).await;
            assert!(listed.iter().any(|(key, ..)| key == "a/zarr.json"), "{number}: {listed:?}");
            expect_levels(&copied, "a", &model, type_name, method, &STEPS).await;
        }
    }
}

#[tokio::test]
async fn volumes_are_halved_along_the_axes_that_the_url_names() {
    let array = Array::of(&[3, 9, 300]).chunks(&[2, 4, 100]).random(3, &[]);
    let store = memory();
    let model = array.store(&store, "a").await;
    let server = Server::of(store);
    for (spec, factors) in [
        ("mean", [1, 2, 2]),
        ("mean;factors=2,2,2", [2, 2, 2]),
        ("mean;axes=x", [1, 1, 2]),
        ("mean;axes=0,2", [2, 1, 2]),
        ("mean;axes=z,x;factors=1,2", [1, 1, 2]),
        ("mean;factors=2", [1, 1, 2]),
    ] {
        let copied = Server::of(copy(&server, &format!("/pyramid/m/{spec}/2,4,64/raw/")).await);
        expect_levels(&copied, "a", &model, "uint16", "mean", &[&factors]).await;
    }
}

#[tokio::test]
async fn chunks_that_are_built_in_the_background_equal_those_of_a_request() {
    for (chunks, shape) in [("4,16", [9, 900]), ("3,7", [5, 700]), ("auto", [300, 600])] {
        let blanks = [vec![(0, shape[0]), (0, 512)]];
        let array = Array::of(&shape).chunks(&[4, 50]).random(5, &blanks);
        let store = memory();
        array.store(&store, "a").await;
        let (direct, built) = (Server::of(Arc::clone(&store)), built(store, 1));
        let root = format!("/pyramid/m/mean/{chunks}/zstd-1");
        let mut waited = 0;
        for (key, _, etag) in list_all(&direct, &format!("{root}/"), None).await {
            let url = format!("{root}/{key}");
            waited += usize::from(built.get(&url).await.status == StatusCode::SERVICE_UNAVAILABLE);
            let (one, other) = (direct.get(&url).await, get_built(&built, &url).await);
            assert_eq!(other.status, StatusCode::OK, "{url}: {:?}", other.body);
            assert!(one.body == other.body, "{url}");
            assert_eq!((one.header("etag"), other.header("etag")), (&*etag, &*etag), "{url}");
            let again = built.ask(Method::GET, &url, &[("if-none-match", &etag)]).await;
            assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{url}");
            assert_eq!(built.ask(Method::HEAD, &url, &[]).await.header("etag"), &*etag, "{url}");
        }
        assert!(waited > 0);
        // The casts of the recipe come after the reduction.
        let cast = format!("{root}/dtype=float32");
        let listed = list_all(&direct, &format!("{cast}/"), None).await;
        let (last, ..) = listed.iter().rfind(|(key, ..)| key.starts_with("a/2/c/")).unwrap();
        let cast = format!("{cast}/{last}");
        let (one, other) = (direct.get(&cast).await, get_built(&built, &cast).await);
        assert_eq!((one.status, other.status), (StatusCode::OK, StatusCode::OK), "{cast}");
        assert!(one.body == other.body, "{cast}");
    }
}

#[tokio::test]
async fn a_chunk_of_a_level_is_absent_where_all_that_it_is_made_of_is() {
    let array = Array::of(&[4, 1024]).chunks(&[4, 64]).random(5, &[vec![(0, 4), (0, 512)]]);
    let store = memory();
    array.store(&store, "a").await;
    for server in [Server::of(Arc::clone(&store)), built(store, 1)] {
        for (key, status) in [
            ("0/c/0/0", 404),
            ("0/c/0/8", 200),
            ("1/c/0/0", 404),
            ("1/c/0/7", 404),
            ("1/c/0/8", 200),
            ("2/c/0/3", 404),
            ("2/c/0/4", 200),
            ("2/0/4", 200),
            ("2/c/0/8", 404),
            ("2/c/1/4", 404),
            ("3/c/0/0", 404),
            ("1/c/0/08", 404),
            ("c/0/8", 404),
            ("0/0/8", 404),
            ("0/0/16", 200),
            ("1/other", 404),
        ] {
            let url = format!("/pyramid/m/auto/4,32/raw/a/{key}");
            assert_eq!(get_built(&server, &url).await.status.as_u16(), status, "{key}");
        }
    }
}

#[tokio::test]
async fn level_0_has_the_stored_documents_and_chunks_in_the_stored_version() {
    let v2 = |separator| Format::V2 { compressor: None, fortran: false, big: false, separator };
    for (array, documents) in [
        (array("uint16", 1).codecs([Shards::of(&[1, 16], &[LITTLE]).codec()]), &["zarr.json"][..]),
        (array("uint16", 1).format(Format::V3 { encoding: "default", separator: '.' }), &["zarr.json"]),
        (array("uint16", 1).format(v2('.')), &[".zarray"]),
        (array("uint16", 1).format(v2('/')), &[".zarray"]),
    ] {
        let store = memory();
        let array = if documents == [".zarray"] {
            array
        } else {
            array.members(json!({"dimension_names": ["y", "x"]}))
        };
        array.store(&store, "g/a").await;
        let server = Server::of(store);
        let chunk = array.chunk_key(&[1, 3]);
        for key in documents.iter().copied().chain([&*chunk]) {
            let stored = server.get(&format!("/store/m/g/a/{key}")).await;
            let shown = server.get(&format!("/pyramid/m/auto/auto/zstd/g/a/0/{key}")).await;
            assert_eq!((stored.status, &stored.body), (StatusCode::OK, &shown.body), "{key}");
            assert_eq!(stored.header("etag"), shown.header("etag"), "{key}");
        }
        // In the other version, and cast, it is encoded by the recipe.
        for key in
            ["0/zarr.json", "0/.zarray", "1/zarr.json", "1/.zarray", "1/.zattrs", "dtype=float32/0/zarr.json"]
        {
            let (cast, key) =
                key.split_once("/0/").filter(|(cast, _)| cast.starts_with("dtype")).map_or_else(
                    || (String::new(), key.to_owned()),
                    |(cast, key)| (format!("{cast}/"), format!("0/{key}")),
                );
            let shown = server.get(&format!("/pyramid/m/auto/auto/zstd/{cast}g/a/{key}")).await;
            assert_eq!(shown.status, StatusCode::OK, "{key}");
            let is_cast = key.ends_with("zarr.json") && !cast.is_empty();
            assert_eq!(shown.json()["data_type"] == "float32", is_cast, "{key}");
        }
        let root = "/pyramid/m/auto/3,50/raw/dtype=float32/g/";
        for (key, value) in read_all(&server, root).await {
            assert!(!key.ends_with("0/c/0/0") || value.len() == 4 * 3 * 50, "{key}");
        }
    }
}

#[tokio::test]
async fn the_stored_document_of_level_0_names_the_axes_and_is_otherwise_as_it_is_stored() {
    for names in [Value::Null, json!(["lat", "lon"]), json!([null, "x"])] {
        let store = memory();
        array("uint16", 1).store(&store, "g/a").await;
        let server = Server::of(Arc::clone(&store));
        let mut stored = server.get("/store/m/g/a/zarr.json").await.json();
        stored["attributes"] = json!({"b": [1.50, 1], "a": "é"});
        if !names.is_null() {
            stored["dimension_names"] = names.clone();
        }
        put(&store, "g/a/zarr.json", stored.to_string()).await;
        let group = json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata": {
            "kind": "inline", "must_understand": false, "metadata": {},
        }});
        put(&store, "g/zarr.json", group.to_string()).await;
        let root = "/pyramid/m/auto/auto/raw";
        let url = format!("{root}/g/a/0/zarr.json");
        let shown = server.get(&url).await;
        let mut expected = stored.clone();
        expected["dimension_names"] = json!(["y", "x"]);
        assert_eq!((shown.status, shown.json()), (StatusCode::OK, expected.clone()), "{names}");
        let shown = server.get(&url).await;
        let etag = shown.header("etag").to_owned();
        let again = server.ask(Method::GET, &url, &[("if-none-match", &etag)]).await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED);
        let head = server.ask(Method::HEAD, &url, &[]).await;
        assert_eq!(
            (head.header("etag"), head.header("content-length")),
            (&*etag, &*shown.body.len().to_string())
        );
        let part = server.ask(Method::GET, &url, &[("range", "bytes=3-9"), ("if-range", &etag)]).await;
        assert_eq!((part.status, &part.body[..]), (StatusCode::PARTIAL_CONTENT, &shown.body[3..10]));
        let listed = list_all(&server, &format!("{root}/g/a/0/"), None).await;
        let entry = listed.iter().find(|(key, ..)| key == "g/a/0/zarr.json").unwrap();
        assert_eq!((entry.1, &entry.2), (shown.body.len() as u64, &etag));
        let consolidated = server.get(&format!("{root}/g/zarr.json")).await.json();
        assert_eq!(consolidated["consolidated_metadata"]["metadata"]["a/0"], expected);
        // What else is in the document changes the tag, and nothing else does.
        put(&store, "other", "x").await;
        assert_eq!(server.get(&url).await.header("etag"), &*etag);
        stored["attributes"]["a"] = json!("e");
        put(&store, "g/a/zarr.json", stored.to_string()).await;
        let changed = server.get(&url).await;
        assert_ne!(changed.header("etag"), &*etag);
        assert_eq!(changed.json()["attributes"]["a"], "e");
    }
}

#[tokio::test]
async fn the_channels_of_an_array_have_colours_and_a_range_of_its_metadata_or_of_the_url() {
    let channels = |names: &[&str], attributes: Value| {
        let shape = if names.len() == 3 { vec![3, 20, 300] } else { vec![20, 300] };
        Array::of(&shape).members(json!({"dimension_names": names, "attributes": attributes}))
    };
    let window = |min: f64, max: f64, start: f64, end: f64| json!({"min": min, "max": max, "start": start, "end": end});
    let grey = |window: Value| json!([{"label": "0", "color": "FFFFFF", "active": true, "window": window}]);
    let colors = |labels: [&str; 3], colors: [&str; 3], window: &Value| -> Value {
        let channel =
            |(label, color)| json!({"label": label, "color": color, "active": true, "window": window});
        labels.into_iter().zip(colors).map(channel).collect()
    };
    let bytes = window(0.0, 255.0, 0.0, 255.0);
    for (array, method, expected) in [
        (channels(&["y", "x"], json!({})), "auto", Value::Null),
        (channels(&["y", "x"], json!({})), "auto;range=10,4000", grey(window(0.0, 65535.0, 10.0, 4000.0))),
        (
            channels(&["y", "x"], json!({"valid_range": [3, 900], "scale_factor": 0.5})),
            "auto",
            grey(window(0.0, 65535.0, 3.0, 900.0)),
        ),
        (
            channels(&["y", "x"], json!({"actual_range": [3, 900], "scale_factor": 0.5})),
            "mean;range=1,2",
            grey(window(0.0, 65535.0, 1.0, 2.0)),
        ),
        (channels(&["y", "x"], json!({})).data_type(data_type("float32")), "auto", Value::Null),
        (
            channels(&["y", "x"], json!({})).data_type(data_type("float32")),
            "auto;range=-0.5,0.5",
            grey(window(-0.5, 0.5, -0.5, 0.5)),
        ),
        (
            channels(&["y", "x"], json!({})).data_type(data_type("bool")),
            "auto",
            grey(window(0.0, 1.0, 0.0, 1.0)),
        ),
        (
            channels(&["band", "y", "x"], json!({})).data_type(data_type("uint8")),
            "auto",
            colors(["red", "green", "blue"], ["FF0000", "00FF00", "0000FF"], &bytes),
        ),
        (
            channels(&["band", "y", "x"], json!({})).data_type(data_type("int8")),
            "auto",
            colors(["0", "1", "2"], ["0000FF", "00FF00", "FF0000"], &window(-128.0, 127.0, -128.0, 127.0)),
        ),
    ] {
        let store = memory();
        array.store(&store, "a").await;
        let server = Server::of(store);
        let root = format!("/pyramid/m/{method}/auto/raw/a");
        let new = server.get(&format!("{root}/zarr.json")).await.json()["attributes"]["ome"].clone();
        assert_eq!(new["omero"]["channels"], expected, "{method}");
        let old = server.get(&format!("{root}/.zattrs")).await.json();
        assert_eq!(old["omero"]["channels"], expected, "{method}");
        if !expected.is_null() {
            assert_eq!(old["omero"]["version"], "0.4");
            let model = if expected.as_array().unwrap().len() == 1 { "greyscale" } else { "color" };
            assert_eq!(new["omero"]["rdefs"], json!({"defaultT": 0, "defaultZ": 0, "model": model}));
        }
        // A range changes no chunk.
        let is_flat = new["multiscales"][0]["axes"].as_array().unwrap().len() == 2;
        let chunk = if is_flat { "1/c/0/0" } else { "1/c/0/0/0" };
        let one = server.get(&format!("{root}/{chunk}")).await;
        let other = server.get(&format!("/pyramid/m/auto/auto/raw/a/{chunk}")).await;
        let answer = (one.status, one.header("etag"), &one.body);
        assert_eq!(answer, (StatusCode::OK, other.header("etag"), &other.body), "{method}");
    }
}

#[tokio::test]
async fn the_document_of_an_image_is_made_without_reading_a_chunk() {
    let store = memory();
    let array = Array::of(&[3, 4, 300, 300]).chunks(&[1, 1, 100, 100]).data_type(data_type("uint8"));
    array.members(json!({"dimension_names": ["t", "z", "y", "x"]})).store(&store, "a").await;
    // What cannot be decoded is not read.
    put(&store, "a/c/0/0/0/0", "short").await;
    let server = Server::of(store);
    let group = server.get("/pyramid/m/auto/auto/raw/a/zarr.json").await.json();
    assert_eq!(
        group["attributes"]["ome"]["omero"]["rdefs"],
        json!({"defaultT": 0, "defaultZ": 2, "model": "greyscale"})
    );
}

#[tokio::test]
async fn the_entity_tag_of_a_chunk_changes_exactly_if_something_below_changes() {
    let array = Array::of(&[4, 1024]).chunks(&[4, 64]).random(5, &[]);
    let store = memory();
    let model = array.store(&store, "a").await;
    for server in [Server::of(Arc::clone(&store)), built(Arc::clone(&store), 1)] {
        let tags = async || {
            let mut tags = Vec::new();
            for key in ["1/c/0/0", "1/c/0/1", "2/c/0/0", "2/c/0/4", "2/c/0/7"] {
                let url = format!("/pyramid/m/mean/4,32/raw/a/{key}");
                let answer = get_built(&server, &url).await;
                assert_eq!(answer.status, StatusCode::OK);
                tags.push((answer.header("etag").to_owned(), answer.body));
            }
            tags
        };
        let before = tags().await;
        assert_eq!(before, tags().await);
        put(&store, "a/c/0/1", array.chunk(&model, &[0, 2])).await;
        let after = tags().await;
        let changed: Vec<bool> = before.iter().zip(&after).map(|(one, other)| one.0 != other.0).collect();
        assert_eq!(changed, [false, true, true, false, false]);
        assert_ne!(before[2].1, after[2].1);
        erase(&store, "a/c/0/15").await;
        let erased = tags().await;
        let changed: Vec<bool> = after.iter().zip(&erased).map(|(one, other)| one.0 != other.0).collect();
        assert_eq!(changed, [false, false, false, false, true]);
        put(&store, "a/c/0/15", array.chunk(&model, &[0, 15])).await;
        put(&store, "a/c/0/1", array.chunk(&model, &[0, 1])).await;
    }
}

#[tokio::test]
async fn groups_of_images_follow_both_versions_of_ome_zarr() {
    let array = Array::of(&[2, 3, 40, 600]).chunks(&[1, 1, 40, 100]).members(json!({
        "dimension_names": ["time", "band", "lat", "lon"], "attributes": {"title": "a"},
    }));
    let store = memory();
    array.store(&store, "g/a").await;
    put(&store, "g/zarr.json", json!({"zarr_format": 3, "node_type": "group"}).to_string()).await;
    let server = Server::of(store);
    let get = async |key: &str| server.get(&format!("/pyramid/m/auto/auto/raw/g/{key}")).await.json();
    let datasets = json!([
        {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0, 1.0, 1.0]}]},
        {"path": "1", "coordinateTransformations": [
            {"type": "scale", "scale": [1.0, 1.0, 2.0, 2.0]},
            {"type": "translation", "translation": [0.0, 0.0, 0.5, 0.5]},
        ]},
        {"path": "2", "coordinateTransformations": [
            {"type": "scale", "scale": [1.0, 1.0, 4.0, 4.0]},
            {"type": "translation", "translation": [0.0, 0.0, 1.5, 1.5]},
        ]},
    ]);
    let axes = json!([
        {"name": "t", "type": "time"}, {"name": "c", "type": "channel"}, {"name": "y", "type": "space"},
        {"name": "x", "type": "space"},
    ]);
    let mut multiscale = json!({"name": "a", "axes": axes, "datasets": datasets, "type": "mean"});
    assert_eq!(
        get("a/zarr.json").await,
        json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": {
            "version": "0.5", "multiscales": [multiscale],
        }}})
    );
    multiscale["version"] = json!("0.4");
    assert_eq!(get("a/.zattrs").await, json!({"multiscales": [multiscale]}));
    assert_eq!(get("a/.zgroup").await, json!({"zarr_format": 2}));
    let level = get("a/1/zarr.json").await;
    assert_eq!(
        (&level["shape"], &level["dimension_names"]),
        (&json!([2, 3, 20, 300]), &json!(["t", "c", "y", "x"]))
    );
    assert_eq!(level["attributes"], json!({"title": "a"}));
    assert_eq!(get("a/1/.zattrs").await, json!({"title": "a", "_ARRAY_DIMENSIONS": ["t", "c", "y", "x"]}));
    for absent in [
        "a/.zarray",
        "a/3/zarr.json",
        "a/x/zarr.json",
        "a/00/zarr.json",
        ".zarray",
        "a/0/.zgroup",
        "a/1/.zgroup",
    ] {
        server.get(&format!("/pyramid/m/auto/auto/raw/g/{absent}")).await.refuses(404, "not-found", absent);
    }
}

fn ome(levels: &[(&str, f64)], is_labels: bool) -> Value {
    let dataset = |(path, scale): &(&str, f64)| json!({"path": path, "coordinateTransformations": [{"type": "scale", "scale": [scale, scale]}]});
    let mut ome = json!({"version": "0.5", "multiscales": [{
        "axes": [{"name": "y", "type": "space", "unit": "micrometer"}, {"name": "x", "type": "space", "unit": "micrometer"}],
        "datasets": levels.iter().map(dataset).collect::<Value>(),
    }]});
    if is_labels {
        ome["image-label"] = json!({});
    }
    json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": ome, "own": 1.5}})
}

#[tokio::test]
async fn an_image_of_the_store_gets_the_levels_that_it_lacks() {
    let store = memory();
    let array = Array::of(&[3, 900]).chunks(&[3, 64]).data_type(data_type("uint8")).random(4, &[]);
    let model = array.store(&store, "i/s0").await;
    put(&store, "i/zarr.json", ome(&[("s0", 0.5)], true).to_string()).await;
    // Two levels, of which the second is small enough.
    Array::of(&[3, 400]).store(&store, "whole/0").await;
    Array::of(&[2, 200]).store(&store, "whole/1").await;
    put(&store, "whole/zarr.json", ome(&[("0", 1.0), ("1", 2.0)], false).to_string()).await;
    let server = Server::of(store);
    let copied = Server::of(copy(&server, "/pyramid/m/auto/auto/raw/").await);
    let shown = copied.get("/store/m/i/zarr.json").await.json();
    let datasets = &shown["attributes"]["ome"]["multiscales"][0]["datasets"];
    let paths: Vec<&str> =
        datasets.as_array().unwrap().iter().map(|level| level["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["s0", "s1", "s2"]);
    assert_eq!(
        datasets[2]["coordinateTransformations"],
        json!([
            {"type": "scale", "scale": [2.0, 2.0]}, {"type": "translation", "translation": [0.75, 0.75]},
        ])
    );
    assert_eq!(shown["attributes"]["own"], 1.5);
    let mut expected = model;
    for level in ["s0", "s1", "s2"] {
        assert!(copied.elements(&format!("m/i/{level}"), "").await == expected.elements, "{level}");
        expected = step("uint8", "mode", &expected, &[2, 2]);
    }
    // In v2, the same image is one of 0.4.
    let v2 = server.get("/pyramid/m/auto/auto/raw/i/.zattrs").await.json();
    assert_eq!(
        (&v2["multiscales"][0]["version"], &v2["multiscales"][0]["datasets"]),
        (&json!("0.4"), datasets)
    );
    for key in ["whole/zarr.json", "whole/0/zarr.json", "whole/1/zarr.json", "whole/1/c/0/0"] {
        let (stored, shown) = (
            server.get(&format!("/store/m/{key}")).await,
            server.get(&format!("/pyramid/m/auto/auto/raw/{key}")).await,
        );
        assert_eq!((shown.status, &shown.body), (StatusCode::OK, &stored.body), "{key}");
    }
    let labels = server.get("/pyramid/m/auto/auto/raw/i/s0/0/zarr.json").await;
    labels.refuses(404, "not-found", "an array in an image is an array");
}

#[tokio::test]
async fn an_array_with_a_place_on_a_map_has_levels_with_places() {
    let store = memory();
    let attributes =
        json!({"proj:code": "EPSG:32633", "spatial:transform": [10.0, 0.0, 5e5, 0.0, -10.0, 5e6]});
    Array::of(&[300, 20]).members(json!({"attributes": attributes})).store(&store, "a").await;
    let server = Server::of(store);
    let group = server.get("/pyramid/m/auto/auto/raw/a/zarr.json").await.json();
    let attributes = &group["attributes"];
    assert_eq!(attributes["proj:code"], "EPSG:32633");
    assert_eq!(
        attributes["multiscales"],
        json!({"resampling_method": "average", "layout": [
            {"asset": "0", "transform": {"scale": [1.0, 1.0]}, "spatial:shape": [300, 20],
                "spatial:transform": [10.0, 0.0, 500_000.0, 0.0, -10.0, 5_000_000.0]},
            {"asset": "1", "derived_from": "0", "transform": {"scale": [2.0, 2.0]}, "spatial:shape": [150, 10],
                "spatial:transform": [20.0, 0.0, 500_000.0, 0.0, -20.0, 5_000_000.0]},
        ]})
    );
    assert!(attributes["ome"].is_object());
    let level = server.get("/pyramid/m/auto/auto/raw/a/1/zarr.json").await.json();
    assert_eq!(level["attributes"], json!({"proj:code": "EPSG:32633"}));
    let v2 = server.get("/pyramid/m/auto/auto/raw/a/.zattrs").await.json();
    assert!(v2["multiscales"].is_array());
    let summary = server.get("/v1/nodes/m/a").await.json();
    assert!(summary.is_object());
}

#[tokio::test]
async fn what_is_no_image_is_refused_or_shown_as_it_is_stored() {
    let store = memory();
    Array::of(&[300]).chunks(&[100]).store(&store, "line").await;
    Array::of(&[]).store(&store, "scalar").await;
    Array::of(&[300, 2]).members(json!({"dimension_names": ["x", "y"]})).store(&store, "turned").await;
    Array::of(&[1, 1, 1, 1, 1, 2]).store(&store, "six").await;
    Array::of(&[2, 300]).data_type(data_type("bool")).store(&store, "bool").await;
    let server = Server::of(store);
    for key in ["line/zarr.json", "line/c/1", "scalar/zarr.json", "scalar/c"] {
        let (stored, shown) = (
            server.get(&format!("/store/m/{key}")).await,
            server.get(&format!("/pyramid/m/auto/auto/raw/{key}")).await,
        );
        assert_eq!((shown.status, &shown.body), (StatusCode::OK, &stored.body), "{key}");
    }
    for key in ["line/.zarray", "line/0", "scalar/0"] {
        assert_eq!(
            server.get(&format!("/pyramid/m/auto/auto/raw/{key}")).await.status,
            StatusCode::OK,
            "{key}"
        );
    }
    for key in ["turned/zarr.json", "turned/1/zarr.json", "turned/0/c/0/0"] {
        let detail =
            server.get(&format!("/pyramid/m/auto/auto/raw/{key}")).await.is_problem(501, "unsupported", key);
        assert!(detail.contains("(`y`, `x`)"), "{detail}");
    }
    server.get("/pyramid/m/auto/auto/raw/six/zarr.json").await.is_problem(
        501,
        "unsupported",
        "six dimensions",
    );
    server.get("/pyramid/m/mean/auto/raw/bool/zarr.json").await.refuses(
        400,
        "invalid-request",
        "the mean of bool",
    );
    // A listing has them all the same.
    let listed = list_all(&server, "/pyramid/m/mean/auto/raw/", None).await;
    let sizes: Vec<(&str, bool)> = listed
        .iter()
        .filter(|(key, ..)| key.ends_with("zarr.json"))
        .map(|(key, size, _)| (key.as_str(), *size > 0))
        .collect();
    assert_eq!(
        sizes,
        [
            ("bool/zarr.json", false),
            ("line/zarr.json", true),
            ("scalar/zarr.json", true),
            ("six/zarr.json", false),
            ("turned/zarr.json", false),
        ]
    );
}

#[tokio::test]
async fn recipes_that_are_invalid_are_refused_before_anything_is_read() {
    let store = memory();
    Array::of(&[2, 300]).store(&store, "a").await;
    let server = Server::of(store);
    for recipe in [
        "median/auto/raw",
        "auto;x/auto/raw",
        "auto;factors=3/auto/raw",
        "auto;factors=1,1,1,1,1,1/auto/raw",
        "auto;axes=/auto/raw",
        "auto%3Blevels=all/auto/raw",
        "auto;range=1,0/auto/raw",
        "auto;range=0,nan/auto/raw",
        "auto;range=0,4000;range=0,4000/auto/raw",
        "auto/0/raw",
        "auto/auto/lz4",
        "auto/auto/raw/dtype=string",
    ] {
        for key in ["", "a/zarr.json", "a/1/c/0/0"] {
            let url = format!("/pyramid/m/{recipe}/{key}");
            server.get(&url).await.refuses(400, "invalid-request", &url);
        }
    }
    server.get("/pyramid/none/auto/auto/raw/").await.refuses(404, "unknown-mount", "a mount");
    let redirected = server.get("/pyramid/m/auto/auto/raw").await;
    assert_eq!(redirected.header("location"), "./raw/");
    for method in [Method::PUT, Method::DELETE] {
        let answer = server.ask(method, "/pyramid/m/auto/auto/raw/a/zarr.json", &[]).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    }
}

#[tokio::test]
async fn levels_that_cannot_be_computed_on_request_can_be_left_out() {
    let store = memory();
    Array::of(&[4, 1200]).chunks(&[4, 100]).store(&store, "a").await;
    let count = async |direct_size: u64, method: &str| {
        let server = built(Arc::clone(&store), direct_size);
        let group = server.get(&format!("/pyramid/m/{method}/4,100/raw/a/zarr.json")).await.json();
        group["attributes"]["ome"]["multiscales"][0]["datasets"].as_array().unwrap().len()
    };
    assert_eq!(count(1 << 20, "auto;levels=direct").await, 4);
    assert_eq!(count(1600, "auto;levels=direct").await, 2);
    assert_eq!(count(1599, "auto;levels=direct").await, 1);
    assert_eq!(count(1599, "auto").await, 4);
}

#[tokio::test]
async fn consolidated_metadata_has_the_images_and_their_levels() {
    let store = memory();
    Array::of(&[4, 300]).store(&store, "g/a").await;
    Array::of(&[4]).store(&store, "g/line").await;
    let group = json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata": {
        "kind": "inline", "must_understand": false, "metadata": {},
    }});
    put(&store, "g/zarr.json", group.to_string()).await;
    let server = Server::of(store);
    let root = "/pyramid/m/auto/auto/raw";
    let shown = server.get(&format!("{root}/g/zarr.json")).await.json();
    let nodes = shown["consolidated_metadata"]["metadata"].as_object().unwrap();
    let names: Vec<&str> = nodes.keys().map(String::as_str).collect();
    assert_eq!(names, ["a", "a/0", "a/1", "line"]);
    for (name, node) in nodes {
        assert_eq!(*node, server.get(&format!("{root}/g/{name}/zarr.json")).await.json(), "{name}");
    }
    let asked = server.get(&format!("{root}/g/a/zarr.json?consolidated")).await.json();
    assert_eq!(asked["consolidated_metadata"]["metadata"].as_object().unwrap().len(), 2);
}

#[tokio::test]
async fn listings_go_on_after_any_key() {
    let store = memory();
    Array::of(&[4, 300]).chunks(&[4, 100]).store(&store, "g/a").await;
    put(&store, "g/zarr.json", json!({"zarr_format": 3, "node_type": "group"}).to_string()).await;
    put(&store, "README", "text").await;
    let server = Server::of(store);
    let root = "/pyramid/m/auto/4,100/raw/";
    let all = list_all(&server, root, None).await;
    let keys: Vec<&str> = all.iter().map(|(key, ..)| key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "README",
            "g/a/0/c/0/0",
            "g/a/0/c/0/1",
            "g/a/0/c/0/2",
            "g/a/0/zarr.json",
            "g/a/1/c/0/0",
            "g/a/1/c/0/1",
            "g/a/1/zarr.json",
            "g/a/zarr.json",
            "g/zarr.json",
        ]
    );
    for limit in [1, 2, 3] {
        assert_eq!(list_all(&server, root, Some(limit)).await, all, "{limit}");
    }
    let below = server.get(&format!("{root}g/a/0/c/0/?format=json")).await.json();
    assert_eq!(below["keys"].as_array().unwrap().len(), 3);
    let levels = server.get(&format!("{root}g/a/?format=json")).await.json();
    assert_eq!(levels["prefixes"], json!(["g/a/0/", "g/a/1/"]));
}

#[tokio::test]
async fn a_pyramid_that_is_written_equals_the_one_that_is_shown() {
    let v2 = Format::V2 { compressor: None, fortran: false, big: true, separator: '.' };
    let folder = tempfile::tempdir().unwrap();
    let options = zarrd::store::StoreOptions { writable: true, ..Default::default() };
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    let store =
        zarrd::store::open(source.to_str().unwrap(), &options, &crate::support::server::cpu()).unwrap();
    array("uint16", 1).random(1, &[vec![(0, 5), (0, 256)]]).store(&store, "g/v3").await;
    array("int64", 2).format(v2).store(&store, "g/v2").await;
    Array::of(&[7]).store(&store, "g/line").await;
    let image = Array::of(&[3, 900]).chunks(&[3, 64]).data_type(data_type("uint8")).random(4, &[]);
    image.store(&store, "g/image/s0").await;
    put(&store, "g/image/zarr.json", ome(&[("s0", 0.5)], true).to_string()).await;
    put(&store, "g/zarr.json", json!({"zarr_format": 3, "node_type": "group"}).to_string()).await;
    put(&store, "README", "text").await;
    let shown = read_all(&Server::of(Arc::clone(&store)), "/pyramid/m/auto/3,50/zstd/").await;
    drop(store);
    let destination = folder.path().join("destination");
    let run = |destination: &std::path::Path| {
        std::process::Command::new(env!("CARGO_BIN_EXE_zarrd"))
            .arg("pyramid")
            .args([&*source, destination])
            .args(["--chunks", "3,50"])
            .output()
            .unwrap()
    };
    let output = run(&destination);
    let report = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{report}");
    assert!(report.contains("/g/v3/2: "), "{report}");
    let mut written = std::collections::BTreeMap::new();
    let mut folders = vec![destination.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let key = path.strip_prefix(&destination).unwrap().to_str().unwrap().to_owned();
                written.insert(key, std::fs::read(path).unwrap());
            }
        }
    }
    let keys: Vec<&String> = written.keys().collect();
    assert_eq!(keys, shown.keys().collect::<Vec<_>>());
    for (key, value) in &shown {
        assert!(written[key] == *value, "{key}");
    }
    let again = run(&destination);
    assert!(!again.status.success());
    let report = String::from_utf8(again.stderr).unwrap();
    assert!(report.contains("must not exist"), "{report}");
}

/// A store that takes a network request for each value.
#[derive(Debug)]
pub struct Remote(pub SharedStore);

#[async_trait]
impl Store for Remote {
    fn kind(&self) -> StoreKind {
        self.0.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        self.0.head(key).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<zarrd::store::Value>, StoreError> {
        self.0.get(key, range, if_match).await
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        self.0.set(key, body, condition).await
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        self.0.erase(key, condition).await
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        self.0.list_dir_after(prefix, after)
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        self.0.list_prefix(prefix, after)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.0.check().await
    }
}

impl Shortcuts for Remote {}

#[tokio::test]
async fn a_remote_chunk_whose_version_takes_many_requests_is_refused() {
    let store = memory();
    Array::of(&[4, 1200]).chunks(&[4, 100]).store(&store, "a").await;
    let server = built(Arc::new(Remote(Arc::clone(&store))), 4000);
    let root = "/pyramid/m/auto/4,100/raw/a";
    assert_eq!(server.get(&format!("{root}/1/c/0/0")).await.status, StatusCode::OK);
    let detail = server.get(&format!("{root}/3/c/0/0")).await.is_problem(409, "conflict", "a large chunk");
    assert!(detail.contains("ttl:"), "{detail}");
    // A listing has it without a size.
    let listed = list_all(&server, &format!("{root}/3/"), None).await;
    assert_eq!(listed[0], ("a/3/c/0/0".to_owned(), 0, "W/\"unmade\"".to_owned()));
}

#[tokio::test]
async fn an_array_of_very_many_small_chunks_has_levels() {
    let array = Array::of(&[64, 2048]).chunks(&[4, 4]);
    let store = memory();
    let model = array.store(&store, "a").await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.read.max_chunks = 100;
    let server = server.finish();
    let url = "/pyramid/m/mean/64,256/raw/a";
    let group = server.get(&format!("{url}/zarr.json")).await.json();
    assert_eq!(group["attributes"]["ome"]["multiscales"][0]["datasets"].as_array().unwrap().len(), 4);
    let mut expected = model;
    for level in 1..4 {
        expected = step("uint16", "mean", &expected, &[2, 2]);
        let chunk = get_built(&server, &format!("{url}/{level}/c/0/0")).await;
        assert_eq!(chunk.status, StatusCode::OK, "{level}: {:?}", chunk.body);
        let (rows, columns) = (expected.shape[0], expected.shape[1]);
        for row in 0..rows {
            let width = columns.min(256);
            let shown = &chunk.body[row * width * 2..][..width * 2];
            assert!(*shown == expected.elements[row * columns * 2..][..width * 2], "{level}, row {row}");
        }
    }
}

#[tokio::test]
async fn chunks_that_were_built_have_ranges_and_conditions_and_are_revalidated_without_being_built() {
    let array = Array::of(&[4, 1024]).chunks(&[4, 64]).random(5, &[vec![(0, 4), (0, 512)]]);
    let store = memory();
    array.store(&store, "a").await;
    let server = built(Arc::clone(&store), 1);
    let url = "/pyramid/m/mean/4,32/raw/a/2/c/0/4";
    let whole = get_built(&server, url).await;
    let etag = whole.header("etag").to_owned();
    for (headers, status, body) in [
        (&[("range", "bytes=3-9")][..], 206, &whole.body[3..10]),
        (&[("range", "bytes=-5")], 206, &whole.body[whole.body.len() - 5..]),
        (&[("range", "bytes=3-9"), ("if-range", &etag)], 206, &whole.body[3..10]),
        (&[("range", "bytes=3-9"), ("if-range", "\"other\"")], 200, &whole.body[..]),
        (&[("if-match", &etag)], 200, &whole.body[..]),
        (&[("if-none-match", "\"other\"")], 200, &whole.body[..]),
    ] {
        let answer = server.ask(Method::GET, url, headers).await;
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (status, body), "{headers:?}");
        assert_eq!(answer.header("etag"), etag, "{headers:?}");
    }
    for (headers, status) in [
        (&[("range", "bytes=9999-")][..], 416),
        (&[("if-match", "\"other\"")], 412),
        (&[("if-none-match", &*etag)], 304),
        (&[("if-none-match", "*")], 304),
    ] {
        assert_eq!(server.ask(Method::GET, url, headers).await.status.as_u16(), status, "{headers:?}");
    }
    let head = server.ask(Method::HEAD, url, &[]).await;
    assert_eq!(
        (head.header("etag"), head.header("content-length")),
        (&*etag, &*whole.body.len().to_string())
    );
    // A server that has not built it knows its version all the same, and that none exists where nothing is stored.
    let counting = Counting::new(Arc::clone(&store));
    let other = built(Arc::clone(&counting) as SharedStore, 1);
    assert_eq!(
        other.ask(Method::GET, url, &[("if-none-match", &etag)]).await.status,
        StatusCode::NOT_MODIFIED
    );
    assert_eq!(counting.ranges(), []);
    assert_eq!(get_built(&other, url).await.header("etag"), etag);
    let absent = "/pyramid/m/mean/4,32/raw/a/2/c/0/0";
    assert_eq!(get_built(&other, absent).await.status, StatusCode::NOT_FOUND);
    assert_eq!(
        other.ask(Method::GET, absent, &[("if-none-match", &etag)]).await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn one_check_of_a_built_chunk_serves_all_requests_that_wait_for_it() {
    let store = memory();
    Array::of(&[4, 1024]).chunks(&[4, 64]).store(&store, "a").await;
    let counting = Counting::slow(store, Duration::from_millis(5));
    let server = built(Arc::clone(&counting) as SharedStore, 1);
    // It is made of 16 stored chunks.
    let url = "/pyramid/m/mean/4,256/raw/a/2/c/0/0";
    assert_eq!(get_built(&server, url).await.status, StatusCode::OK);
    counting.reset();
    assert_eq!(server.get(url).await.status, StatusCode::OK);
    // Each request also finds out which nodes there are.
    let others = counting.heads() - 16;
    assert!(others < 16 && counting.ranges().is_empty(), "{others}");
    counting.reset();
    let answers = futures::future::join_all((0..32).map(|_| server.get(url))).await;
    assert!(answers.iter().all(|answer| answer.status == StatusCode::OK));
    // The first check, and that of those which began after it.
    assert!(counting.heads() <= 2 * 16 + 32 * others, "{}", counting.heads());
}

#[tokio::test]
async fn recipes_with_very_many_chunks_cost_no_more_than_what_is_requested() {
    let store = memory();
    let (name, document) = Array::of(&[2, 1 << 40]).chunks(&[2, 1 << 20]).document();
    put(&store, &format!("a/{name}"), document.to_string()).await;
    let server = Server::of(Arc::clone(&store));
    let root = "/pyramid/m/mean/1,1/raw/a";
    let group = server.get(&format!("{root}/zarr.json")).await.json();
    let levels = group["attributes"]["ome"]["multiscales"][0]["datasets"].as_array().unwrap().len();
    assert!((2..64).contains(&levels), "{levels}");
    for (key, status) in [
        ("1/c/0/0", 404),
        ("1/c/0/549755813887", 404),
        ("1/c/0/549755813888", 404),
        ("1/c/18446744073709551615/18446744073709551615", 404),
        ("1/c/0/18446744073709551616", 404),
        ("1/c/0", 404),
        ("1/c/0/0/0", 404),
        ("64/c/0/0", 404),
        ("18446744073709551616/c/0/0", 404),
    ] {
        assert_eq!(server.get(&format!("{root}/{key}")).await.status.as_u16(), status, "{key}");
    }
    let listed = server.get(&format!("{root}/1/c/0/?format=json")).await.json();
    assert_eq!(listed["keys"], json!([]));
    put(&store, "a/c/0/3", "x").await;
    server.get(&format!("{root}/1/c/0/?format=json")).await.refuses(413, "too-large", "a long listing");
    for recipe in ["mean/1,1,1/raw", "mean/99999999999999999999,1/raw", "mean/1/raw/dtype=float16"] {
        let answer = server.get(&format!("/pyramid/m/{recipe}/a/1/zarr.json")).await;
        assert!(answer.status.is_client_error() || answer.status.is_success(), "{recipe}: {}", answer.status);
    }
}

#[tokio::test]
async fn images_whose_metadata_is_not_true_of_their_arrays_are_shown_as_they_are_stored() {
    let axes = json!([{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]);
    let scale = |scale: Value| json!([{"type": "scale", "scale": scale}]);
    let image = |axes: &Value, path: &str, transformations: &Value| {
        let dataset = json!({"path": path, "coordinateTransformations": transformations});
        json!({"version": "0.5", "multiscales": [{"axes": axes, "datasets": [dataset]}]})
    };
    let of_path = |path: &str| image(&axes, path, &scale(json!([1.0, 1.0])));
    let of_scale = |value: Value| image(&axes, "0", &scale(value));
    let mut many = of_path("0");
    many["multiscales"][0]["datasets"] =
        Value::Array(vec![many["multiscales"][0]["datasets"][0].clone(); 1000]);
    for ome in [
        image(&json!([]), "0", &scale(json!([1.0, 1.0]))),
        image(&json!([{"name": "x"}]), "0", &scale(json!([1.0]))),
        image(
            &json!([{"name": "x", "type": "space"}, {"name": "y", "type": "space"}]),
            "0",
            &scale(json!([1.0, 1.0])),
        ),
        image(&json!("yx"), "0", &scale(json!([1.0, 1.0]))),
        of_path("../i/0"),
        of_path("/"),
        of_path(""),
        of_path("1"),
        of_path("0/c"),
        of_path(&"0/".repeat(2000)),
        of_scale(json!([1.0])),
        of_scale(json!([1e300, 1.0])),
        of_scale(json!("1")),
        of_scale(json!([null, 1.0])),
        image(&axes, "0", &json!({})),
        json!({"version": "0.5", "multiscales": [7]}),
        json!({"version": "0.5", "multiscales": {"0": []}}),
        json!([]),
    ] {
        let store = memory();
        Array::of(&[3, 900]).store(&store, "i/0").await;
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": ome}});
        put(&store, "i/zarr.json", group.to_string()).await;
        let server = Server::of(store);
        let shown = server.get("/pyramid/m/auto/auto/raw/i/zarr.json").await;
        assert_eq!((shown.status, shown.json()), (StatusCode::OK, group), "{ome}");
        let listed = list_all(&server, "/pyramid/m/auto/auto/raw/", None).await;
        assert!(listed.iter().any(|(key, ..)| key == "i/zarr.json"), "{ome}");
    }
    // One with very many levels, of which the first is the last.
    let store = memory();
    Array::of(&[3, 900]).store(&store, "i/0").await;
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": many}});
    put(&store, "i/zarr.json", group.to_string()).await;
    let server = Server::of(store);
    for (path, _) in copied_documents(&server, "/pyramid/m/auto/auto/raw/").await {
        assert_eq!(
            server.get(&format!("/pyramid/m/auto/auto/raw/{path}")).await.status,
            StatusCode::OK,
            "{path}"
        );
    }
}

/// The documents that a listing has.
async fn copied_documents(server: &Server, url: &str) -> Vec<(String, u64)> {
    let listed = list_all(server, url, None).await;
    listed
        .into_iter()
        .filter(|(key, ..)| key.ends_with("zarr.json"))
        .map(|(key, size, _)| (key, size))
        .collect()
}

#[tokio::test]
async fn a_level_is_checked_as_often_as_the_freshness_of_the_mount_requires() {
    let hour = CachePolicy::Ttl(Duration::from_hours(1));
    for (freshness, direct_size) in
        [(hour, u64::MAX), (hour, 1), (CachePolicy::Immutable, 1), (CachePolicy::Always, u64::MAX)]
    {
        let what = format!("{freshness}, {direct_size}");
        let local = memory();
        // Chunks that are too long for the cache of values.
        let array = Array::of(&[600, 600]).chunks(&[600, 300]);
        let model = array.store(&local, "a").await;
        let counting = Counting::new(Arc::new(Remote(Arc::clone(&local))));
        let store = ValueCache::new(16 << 20).wrap("m", Arc::clone(&counting) as SharedStore, freshness);
        let mount = Mount { writable: true, ..Mount::read_only("m", store) };
        let mut server = Server::build(mount);
        server.pyramid = PyramidOptions { direct_size };
        let server = server.finish();
        let url = "/pyramid/m/mean/300,150/raw/a/1/c/0/0";
        let before = get_built(&server, url).await;
        let tag = before.header("etag").to_owned();
        assert_eq!(before.status, StatusCode::OK, "{what}");
        // As another program would.
        put(&local, "a/c/0/0", array.chunk(&model, &[0, 1])).await;
        counting.reset();
        for _ in 0..3 {
            let again = get_built(&server, url).await;
            let unchanged = server.ask(Method::GET, url, &[("if-none-match", &tag)]).await;
            let is_old = freshness != CachePolicy::Always;
            assert_eq!((again.body == before.body, again.header("etag") == tag), (is_old, is_old), "{what}");
            assert_eq!(unchanged.status == StatusCode::NOT_MODIFIED, is_old, "{what}");
            if is_old {
                assert_eq!((counting.heads(), counting.ranges()), (0, Vec::new()), "{what}");
            }
        }
        // What is written through the server is there at once.
        let chunk = array.chunk(&model, &[0, 0]);
        assert_eq!(
            server.request("PUT", "/store/m/a/c/0/0", &[], chunk).await.status,
            StatusCode::NO_CONTENT
        );
        let written = get_built(&server, url).await;
        assert!(written.body == before.body, "{what}");
        assert_eq!(server.ask(Method::DELETE, "/store/m/a/c/0/0", &[]).await.status, StatusCode::NO_CONTENT);
        assert_eq!(get_built(&server, url).await.status, StatusCode::NOT_FOUND, "{what}");
    }
}

#[tokio::test]
async fn a_level_of_an_image_may_be_further_below_it() {
    let store = memory();
    array("uint16", 1).store(&store, "i/s/full").await;
    array("uint16", 2).store(&store, "other/s/full").await;
    put(&store, "i/s/zarr.json", json!({"zarr_format": 3, "node_type": "group"}).to_string()).await;
    put(&store, "i/zarr.json", ome(&[("s/full", 0.5)], true).to_string()).await;
    let server = Server::of(store);
    let root = "/pyramid/m/auto/auto/raw";
    let stored = server.get("/store/m/i/s/full/zarr.json").await.json();
    let shown = server.get(&format!("{root}/i/s/full/zarr.json")).await.json();
    assert_eq!((&shown["node_type"], &shown["shape"]), (&stored["node_type"], &stored["shape"]));
    let image = server.get(&format!("{root}/i/zarr.json")).await.json();
    let datasets = image["attributes"]["ome"]["multiscales"][0]["datasets"].as_array().unwrap().clone();
    for dataset in datasets {
        let path = dataset["path"].as_str().unwrap();
        let level = server.get(&format!("{root}/i/{path}/zarr.json")).await.json();
        assert_eq!(level["node_type"], "array", "{path}");
    }
    let other = server.get(&format!("{root}/other/s/full/zarr.json")).await.json();
    assert_eq!(other["node_type"], "group");
}

#[tokio::test]
async fn what_is_no_image_is_copied_as_it_is_stored_into_a_pyramid_that_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let options = zarrd::store::StoreOptions { writable: true, ..Default::default() };
    let (source, destination) = (folder.path().join("source"), folder.path().join("destination"));
    std::fs::create_dir(&source).unwrap();
    let store =
        zarrd::store::open(source.to_str().unwrap(), &options, &crate::support::server::cpu()).unwrap();
    let v2 = Format::V2 { compressor: None, fortran: false, big: true, separator: '.' };
    Array::of(&[1, 1, 1, 1, 1, 2]).store(&store, "g/six").await;
    Array::of(&[1, 1, 1, 1, 1, 2]).format(v2).store(&store, "g/six2").await;
    Array::of(&[300, 2]).members(json!({"dimension_names": ["x", "y"]})).store(&store, "turned").await;
    Array::of(&[2, 300]).data_type(data_type("bool")).store(&store, "bool").await;
    array("uint16", 1).store(&store, "zebra").await;
    array("uint16", 2).store(&store, "i/s/full").await;
    put(&store, "i/zarr.json", ome(&[("s/full", 0.5)], true).to_string()).await;
    let group = json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata": {
        "kind": "inline", "must_understand": false, "metadata": {},
    }});
    put(&store, "g/zarr.json", group.to_string()).await;
    drop(store);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_zarrd"))
        .arg("pyramid")
        .args([&source, &destination])
        .args(["--method", "mean"])
        .output()
        .unwrap();
    let report = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{report}");
    for path in ["/g/six", "/g/six2", "/turned", "/bool"] {
        assert!(report.contains(&format!("{path}: copied as it is stored, ")), "{path}: {report}");
        let mut folders = vec![source.join(path.trim_start_matches('/'))];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let from = entry.unwrap().path();
                if from.is_dir() {
                    folders.push(from);
                } else {
                    let to = destination.join(from.strip_prefix(&source).unwrap());
                    assert_eq!(std::fs::read(&from).unwrap(), std::fs::read(&to).unwrap(), "{from:?}");
                }
            }
        }
    }
    assert!(report.contains("/zebra/1: ") && report.contains("mean"), "{report}");
    assert!(destination.join("g/zarr.json").is_file() && destination.join("zebra/1/zarr.json").is_file());
    assert_eq!(report.matches("/i/s/full: ").count(), 1, "{report}");
}

//! Statistics over whole dimensions, compared with naive models: as arrays and as JSON, under limits and conditions.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "elements are small numbers, and results are exact"
)]

use axum::http::{Method, StatusCode};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use zarrd::services::Mount;

use crate::support::counting::Decodes;
use crate::support::data_types::data_type;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::model::{Model, places};
use crate::support::property::{holds, server_with, setup};
use crate::support::server::{Server, put};

const LITTLE: Codec = Codec::Bytes { big: false };
const STATISTICS: [&str; 8] = ["count", "missing", "nan", "min", "max", "mean", "std", "sum"];
const TYPES: [&str; 5] = ["uint8", "int16", "uint16", "int32", "bool"];

/// The number of an element of some types.
fn number(data_type: &str, element: &[u8]) -> i128 {
    match data_type {
        "uint8" | "bool" => element[0].into(),
        "int16" => i16::from_le_bytes(element.try_into().unwrap()).into(),
        "uint16" => u16::from_le_bytes(element.try_into().unwrap()).into(),
        _ => i32::from_le_bytes(element.try_into().unwrap()).into(),
    }
}

/// The groups of elements that have the same indices in the dimensions that are left, in C order.
fn groups(model: &Model, data_type: &str, is_reduced: &[bool]) -> (Vec<usize>, Vec<Vec<i128>>) {
    let kept: Vec<usize> = (0..model.shape.len()).filter(|&dim| !is_reduced[dim]).collect();
    let shape: Vec<usize> = kept.iter().map(|&dim| model.shape[dim]).collect();
    let group_of = |place: &[usize]| kept.iter().fold(0, |at, &dim| at * model.shape[dim] + place[dim]);
    let mut groups = vec![Vec::new(); shape.iter().product()];
    for place in places(&model.shape) {
        groups[group_of(&place)].push(number(data_type, model.element(&place)));
    }
    (shape, groups)
}

/// The product of two numbers: its high and its low half.
fn product(one: u128, other: u128) -> (u128, u128) {
    let half = u128::from(u64::MAX);
    let (one_high, one_low, other_high, other_low) = (one >> 64, one & half, other >> 64, other & half);
    let middle = one_low * other_high + ((one_low * other_low) >> 64);
    let (carry, middle) = (middle >> 64, (middle & half) + one_high * other_low);
    (one_high * other_high + carry + (middle >> 64), one.wrapping_mul(other))
}

/// Whether a number is the standard deviation of integers, rounded once: the root of the variance lies between the numbers that
/// are half a unit of its last bit away.
fn is_deviation(found: f64, group: &[i128]) -> bool {
    let (count, sum): (i128, i128) = (group.len() as i128, group.iter().sum());
    let squares: i128 = group.iter().map(|number| number * number).sum();
    // The variance is this number divided by the square of the count.
    let variance = (count * squares - sum * sum) as u128;
    if variance == 0 {
        return found == 0.0;
    }
    let (fraction, exponent) = (found.to_bits() & ((1 << 52) - 1), (found.to_bits() >> 52) as i32 - 1075);
    let twice = u128::from(fraction | 1 << 52) * 2;
    let square = |number: u128| product(number * count as u128, number * count as u128);
    let wanted = product(variance * 4, 1 << (-2 * exponent));
    square(twice - 1) <= wanted && wanted <= square(twice + 1)
}

/// The bytes of a statistic of each group.
fn reduced(data_type: &str, statistic: &str, groups: &[Vec<i128>]) -> Vec<u8> {
    let bytes = |number: i128, size: usize| number.to_le_bytes()[..size].to_vec();
    let size = match data_type {
        "uint8" | "bool" => 1,
        "int16" | "uint16" => 2,
        _ => 4,
    };
    let of_group = |group: &Vec<i128>| match statistic {
        "count" => bytes(group.len() as i128, 8),
        "missing" | "nan" => bytes(0, 8),
        "min" => bytes(*group.iter().min().unwrap(), size),
        "max" => bytes(*group.iter().max().unwrap(), size),
        "sum" => bytes(group.iter().sum(), 8),
        // Both are below 2^53, so that the quotient is rounded once.
        _ => (group.iter().sum::<i128>() as f64 / group.len() as f64).to_le_bytes().to_vec(),
    };
    groups.iter().flat_map(of_group).collect()
}

/// Up to three dimensions: length, edge of a chunk, whether it is reduced.
fn axes() -> impl Strategy<Value = Vec<(usize, usize, bool)>> {
    prop::collection::vec((1..20_usize, 1..9_usize, any::<bool>()), 1..=3)
}

fn stored(axes: &[(usize, usize, bool)], type_name: &'static str, is_sharded: bool, seed: u64) -> Array {
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

fn numbers(is_reduced: &[bool]) -> String {
    let reduced = is_reduced.iter().enumerate().filter(|(_, is_reduced)| **is_reduced);
    reduced.map(|(dim, _)| dim.to_string()).collect::<Vec<_>>().join(",")
}

#[test]
fn statistics_over_dimensions_of_random_arrays_match_a_naive_model_whatever_the_bands_and_caches() {
    let cases = (axes(), select(&TYPES[..]), select(&STATISTICS[..]), setup(), any::<bool>(), any::<u64>());
    holds(150, cases, async |(axes, type_name, statistic, setup, is_sharded, seed)| {
        let (store, array) = (memory(), stored(&axes, type_name, is_sharded, seed));
        let model = array.store(&store, "a").await;
        let server = server_with(store, setup);
        let is_reduced: Vec<bool> = axes.iter().map(|axis| axis.2).collect();
        let list = numbers(&is_reduced);
        if list.is_empty() {
            return;
        }
        let url = format!("/v1/data/m/a?reduce.{list}={statistic}");
        let answer = server.get(&url).await;
        let (shape, groups) = groups(&model, type_name, &is_reduced);
        assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
        assert_eq!(answer.header("array-shape"), format!("{shape:?}"), "{url}");
        assert_eq!(answer.header("content-length"), answer.body.len().to_string(), "{url}");
        let each = |dim: &str| format!("{dim}={statistic}");
        let header = list.split(',').map(each).collect::<Vec<_>>().join(",");
        assert_eq!(answer.header("array-reduce"), header, "{url}");
        let expected = if statistic == "std" {
            let found: &[[u8; 8]] = answer.body.as_chunks().0;
            assert_eq!(found.len(), groups.len(), "{url}");
            for (found, group) in found.iter().zip(&groups) {
                assert!(is_deviation(f64::from_le_bytes(*found), group), "{url}: {found:?} of {group:?}");
            }
            answer.body.to_vec()
        } else {
            reduced(type_name, statistic, &groups)
        };
        assert!(answer.body == expected, "{url}: {:?}, not {expected:?}", answer.body);
        let head = server.ask(Method::HEAD, &url, &[]).await;
        assert_eq!(head.header("content-length"), expected.len().to_string());
        let part = server.ask(Method::GET, &url, &[("range", "bytes=3-12")]).await;
        assert_eq!(part.status, if expected.len() > 3 { 206 } else { 416 });
        if expected.len() > 3 {
            assert_eq!(part.body, expected[3..expected.len().min(13)]);
        }
    });
}

#[test]
fn nested_statistics_of_random_arrays_match_a_naive_model() {
    let cases = (axes(), select(&TYPES[..]), setup(), any::<bool>(), any::<u64>());
    holds(32, cases, async |(axes, type_name, setup, is_sharded, seed)| {
        let (store, array) = (memory(), stored(&axes, type_name, is_sharded, seed));
        let model = array.store(&store, "a").await;
        let server = server_with(store, setup);
        let is_reduced: Vec<bool> = axes.iter().map(|axis| axis.2).collect();
        let list = numbers(&is_reduced);
        if list.is_empty() {
            return;
        }
        let url = format!("/v1/stats/m/a?over={list}&percentiles=0,100&histogram=3:-10..50");
        let answer = server.get(&url).await;
        assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
        let answer = answer.json();
        let (shape, groups) = groups(&model, type_name, &is_reduced);
        assert_eq!(answer["shape"], json!(shape), "{url}");
        assert_eq!(answer["dimension_names"], json!(vec![Value::Null; shape.len()]), "{url}");
        assert_eq!(
            (&answer["exact"], &answer["seen"]["elements"]),
            (&json!(true), &json!(model.elements.len() / model.element_bytes))
        );
        for (group, place) in groups.iter().zip(places(&shape)) {
            let at = |member: &Value| place.iter().fold(member.clone(), |list, &at| list[at].clone());
            let (min, max) = (*group.iter().min().unwrap(), *group.iter().max().unwrap());
            let sum: i128 = group.iter().sum();
            let expected = json!([group.len(), 0, 0, min as i64, max as i64, sum as i64]);
            let found: Vec<Value> = ["count", "missing", "nan", "min", "max", "sum"]
                .iter()
                .map(|name| at(&answer[name]))
                .collect();
            assert_eq!(json!(found), expected, "{url} {place:?}");
            assert_eq!(at(&answer["mean"]), json!(sum as f64 / group.len() as f64), "{url} {place:?}");
            assert!(is_deviation(at(&answer["std"]).as_f64().unwrap(), group), "{url} {place:?}");
            assert_eq!(at(&answer["percentiles"]["0"]), json!(min as f64), "{url} {place:?}");
            assert_eq!(at(&answer["percentiles"]["100"]), json!(max as f64), "{url} {place:?}");
            let within = |low: i128, high: i128| group.iter().filter(|&&n| n >= low && n < high).count();
            assert_eq!(
                at(&answer["histogram"]["counts"]),
                json!([within(-10, 10), within(10, 30), within(30, 51)])
            );
        }
    });
}

#[tokio::test]
async fn results_of_floats_are_the_same_bits_whatever_the_chunks_the_segments_and_the_caches() {
    let array = Array::of(&[16, 6, 6]).data_type(data_type("float64")).random(11, &[]);
    let mut found: Vec<Vec<Vec<u8>>> = Vec::new();
    for chunks in [[16, 6, 6], [7, 5, 4], [1, 6, 6], [16, 1, 1]] {
        for setup in [(1, false), (100, true), (5000, false), (32 << 20, true)] {
            let store = memory();
            array.clone().chunks(&chunks).codecs([LITTLE]).store(&store, "a").await;
            let server = server_with(store, setup);
            let mut bodies = Vec::new();
            for query in
                ["reduce.0=mean", "reduce.0,2=std", "reduce.1=sum", "reduce.0,1,2=std", "reduce.2=max"]
            {
                let answer = server.get(&format!("/v1/data/m/a?{query}")).await;
                assert_eq!(answer.status, StatusCode::OK, "{query} {chunks:?} {setup:?}: {:?}", answer.body);
                bodies.push(answer.body.to_vec());
            }
            // Each of more groups has no memory for sums of numbers that differ by a thousand binary orders.
            for query in ["", "?over=0,1", "?over=0"] {
                let mut document = server.get(&format!("/v1/stats/m/a{query}")).await.json();
                document.as_object_mut().unwrap().remove("seen").unwrap();
                bodies.push(document.to_string().into_bytes());
            }
            found.push(bodies);
        }
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
}

/// An array of floats as `m/a`, with these attributes and names.
async fn floats(numbers: &[f64], shape: [usize; 2], members: Value) -> Server {
    let store = memory();
    let mut document = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float64", "fill_value": 0.0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    });
    for (name, member) in members.as_object().unwrap() {
        document[name] = member.clone();
    }
    put(&store, "a/zarr.json", document.to_string()).await;
    let chunk: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    put(&store, "a/c/0/0", chunk).await;
    Server::of(store)
}

async fn doubles(server: &Server, query: &str) -> Vec<f64> {
    let answer = server.get(&format!("/v1/data/m/a?{query}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{query}: {:?}", answer.body);
    assert_eq!(answer.header("array-data-type"), "float64", "{query}");
    answer.body.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

#[tokio::test]
async fn nan_infinities_and_missing_values_are_those_of_statistics() {
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    let numbers = [
        1.0, nan, -9.0, 4.0, // a value, NaN, a missing one
        nan, nan, -9.0, nan, // nothing
        infinity, 1.0, 2.0, 3.0, //
        infinity, -infinity, 2.0, 3.0, //
        -0.0, 0.0, -0.0, 0.0, //
    ];
    let members = json!({"attributes": {"_FillValue": -9.0}, "dimension_names": ["y", "x"]});
    let server = floats(&numbers, [5, 4], members).await;
    let same = |found: Vec<f64>, expected: [f64; 5]| {
        found.iter().zip(expected).all(|(one, other)| *one == other || (one.is_nan() && other.is_nan()))
    };
    assert!(same(doubles(&server, "reduce.x=mean").await, [2.5, nan, infinity, nan, 0.0]));
    assert!(same(doubles(&server, "reduce.x=sum").await, [5.0, 0.0, infinity, nan, 0.0]));
    assert!(same(doubles(&server, "reduce.x=std").await, [1.5, nan, nan, nan, 0.0]));
    assert!(same(doubles(&server, "reduce.x=min").await, [1.0, nan, 1.0, -infinity, 0.0]));
    assert!(same(doubles(&server, "reduce.x=max").await, [4.0, nan, infinity, infinity, 0.0]));
    let zeros = doubles(&server, "reduce.x=min&slice=4:").await;
    assert_eq!(zeros[0].to_bits(), (-0.0_f64).to_bits());
    let json = |query: &'static str| {
        let server = &server;
        async move { server.get(&format!("/v1/data/m/a?{query}&format=json")).await.json() }
    };
    assert_eq!(json("reduce.x=count").await, json!([2, 0, 4, 4, 4]));
    assert_eq!(json("reduce.1=missing").await, json!([1, 1, 0, 0, 0]));
    assert_eq!(json("reduce.x=nan").await, json!([1, 3, 0, 0, 0]));
    let stats = server.get("/v1/stats/m/a?over=x&ops=count,nan,missing,mean").await.json();
    assert_eq!(
        stats,
        json!({
            "count": [2, 0, 4, 4, 4], "missing": [1, 1, 0, 0, 0], "nan": [1, 3, 0, 0, 0],
            "mean": [2.5, null, "Infinity", "NaN", 0.0], "shape": [5], "dimension_names": ["y"],
            "exact": true, "seen": {"elements": 20, "chunks": 1},
        })
    );
}

#[tokio::test]
async fn sums_of_numbers_of_very_different_size_are_exact_in_the_memory_that_there_is() {
    let shape = [3, 400];
    let mut numbers = vec![0.0; 1200];
    for at in 0..400 {
        numbers[at] = 2_f64.powi((at % 200) as i32 * 10 - 1000);
        numbers[400 + at] = 1.0;
        numbers[800 + at] = -numbers[at];
    }
    let store = memory();
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float64", "fill_value": 0.0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 400]}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    });
    put(&store, "a/zarr.json", document.to_string()).await;
    for (row, numbers) in numbers.chunks(400).enumerate() {
        let chunk: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        put(&store, &format!("a/c/{row}/0"), chunk).await;
    }
    // The sums of a segment may need 8 KiB, and these need 400 times 272 bytes.
    let server = server_with(store, (1, false));
    assert_eq!(doubles(&server, "reduce.0=sum").await, vec![1.0; 400]);
    assert_eq!(doubles(&server, "reduce.0=mean&slice=:,::-1").await, vec![1.0 / 3.0; 400]);
    assert_eq!(doubles(&server, "reduce.0,1=sum").await, [400.0]);
}

#[tokio::test]
async fn a_chunk_is_decoded_once_for_all_results() {
    let store = memory();
    let array = Array::of(&[12, 10]).chunks(&[5, 3]).codecs([LITTLE]);
    array.store(&store, "a").await;
    let decodes = Decodes::default();
    let mut server = Server::build(Mount::read_only("m", store.clone()));
    server.cache.decoded_size = 0;
    server.read.segment_size = 100;
    server.decodes = Some(decodes.clone());
    let server = server.finish();
    let count = || decodes.lock().unwrap().values().sum::<usize>();
    assert_eq!(server.get("/v1/data/m/a?reduce.0=sum").await.status, StatusCode::OK);
    assert_eq!(count(), 12);
}

#[tokio::test]
async fn nested_statistics_of_unchanged_chunks_are_kept() {
    let store = memory();
    let array = Array::of(&[12, 10]).chunks(&[5, 3]).codecs([LITTLE]);
    array.store(&store, "a").await;
    let decodes = Decodes::default();
    let mut server = Server::build(Mount::read_only("m", store.clone()));
    server.cache.decoded_size = 64 << 20;
    server.decodes = Some(decodes.clone());
    let server = server.finish();
    let count = || decodes.lock().unwrap().values().sum::<usize>();
    let first = server.get("/v1/stats/m/a?over=0").await;
    assert_eq!((first.status, count()), (StatusCode::OK, 12));
    server.get("/v1/stats/m/a?over=0&ops=max").await;
    assert_eq!(count(), 12);
    put(&store, "a/c/2/1", array.chunk(&array.model(), &[0, 0])).await;
    let changed = server.get("/v1/stats/m/a?over=0").await;
    assert_ne!((changed.header("etag"), &changed.body), (first.header("etag"), &first.body));
    assert_eq!(count(), 13);
}

/// An array of 6 × 8 that counts from 1 to 48 as `m/a`.
async fn counting(type_name: &'static str, members: Value) -> Server {
    let store = memory();
    Array::of(&[6, 8])
        .chunks(&[4, 3])
        .data_type(data_type(type_name))
        .members(members)
        .store(&store, "a")
        .await;
    Server::of(store)
}

#[tokio::test]
async fn every_format_has_the_results() {
    let server = counting("uint16", json!({"dimension_names": ["y", "x"]})).await;
    let get = async |query: &str| server.get(&format!("/v1/data/m/a?{query}")).await;
    let json = get("reduce.y=mean&format=json").await;
    assert_eq!(json.json(), json!([21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0]));
    assert_eq!(json.header("array-dimension-names"), "[\"x\"]");
    let csv = String::from_utf8(get("reduce.x=sum&format=csv").await.body.to_vec()).unwrap();
    assert_eq!(csv.lines().last(), Some("356"), "{csv}");
    let npy = get("reduce.y=std&format=npy").await;
    let header = String::from_utf8_lossy(&npy.body[..128]).into_owned();
    assert!(header.contains("'<f8'") && header.contains("(8,)"), "{header}");
    let big = get("reduce.y,x=sum&endian=big").await;
    assert_eq!((big.header("array-data-type"), &big.body[..]), ("uint64", &1176_u64.to_be_bytes()[..]));
    assert_eq!(get("reduce.y=max&format=arrow").await.status, StatusCode::OK);
    assert_eq!(get("reduce.1=max&slice=::-2,::3&format=json").await.json(), json!([47, 31, 15]));
    assert_eq!(get("reduce.x=sum&slice=2&format=json").await.json(), json!(164));
    let first = get("reduce.y=mean").await;
    let tag = first.header("etag").to_owned();
    let same = server.ask(Method::GET, "/v1/data/m/a?reduce.y=mean", &[("if-none-match", &tag)]).await;
    assert_eq!(same.status, StatusCode::NOT_MODIFIED);
    assert_ne!(get("reduce.y=std").await.header("etag"), tag);
    assert_eq!(get("reduce.y=sum&slice=:0&format=json").await.json(), json!(vec![0; 8]));
    assert_eq!(get("reduce.y=mean&slice=:0&format=json&nan=null").await.json(), json!(vec![Value::Null; 8]));
}

#[tokio::test]
async fn missing_integers_are_skipped_and_packed_ones_stay_packed() {
    let attributes = json!({"_FillValue": 1, "missing_value": [48], "scale_factor": 0.5, "add_offset": 10});
    let server = counting("int16", json!({"attributes": attributes})).await;
    let get = async |query: &str| server.get(&format!("/v1/data/m/a?{query}&format=json")).await.json();
    assert_eq!(get("reduce.0,1=sum").await, 1176 - 49);
    assert_eq!(get("reduce.1=min&slice=:1").await, json!([2]));
    assert_eq!(get("reduce.1=max&slice=0:1,0:1").await, json!([1]));
    let stats = server.get("/v1/stats/m/a?over=1&slice=:1&ops=min,mean").await.json();
    assert_eq!((&stats["min"], &stats["mean"]), (&json!([11.0]), &json!([12.5])));
}

#[tokio::test]
async fn sums_that_no_integer_holds_are_refused() {
    let store = memory();
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint64", "fill_value": u64::MAX,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    });
    put(&store, "a/zarr.json", document.to_string()).await;
    let server = Server::of(store);
    server.get("/v1/data/m/a?reduce.0=sum").await.refuses(400, "invalid-request", "a sum of 66 bits");
    assert_eq!(doubles(&server, "reduce.0=mean").await, [2_f64.powi(64)]);
    assert_eq!(doubles(&server, "reduce.0=std").await, [0.0]);
    let sum = String::from_utf8(server.get("/v1/stats/m/a").await.body.to_vec()).unwrap();
    assert!(sum.contains("\"sum\":73786976294838206460"), "{sum}");
}

#[tokio::test]
async fn invalid_reductions_are_refused() {
    let server = counting("uint16", json!({"dimension_names": ["y", "x"]})).await;
    for query in [
        "reduce.z=mean",
        "reduce.2=mean",
        "reduce.=mean",
        "reduce.y=median",
        "reduce.y=mean&reduce.0=mean",
        "reduce.y=mean&reduce.y=mean",
        "reduce.y,y=mean",
        "reduce.y=mean&reduce.x=max",
        "reduce.y=mean&slice=3",
        "reduce.y=mean&downsample.x=2",
        "fit=2,2&reduce.y=mean",
        "reduce.y=min&slice=:0",
        "reduce=mean",
    ] {
        server.get(&format!("/v1/data/m/a?{query}")).await.refuses(400, "invalid-request", query);
    }
    for query in
        ["over=z", "over=", "over=y,0", "over=7", "over=y&sample=100", "over=y&slice=1", "over=y&over=x"]
    {
        server.get(&format!("/v1/stats/m/a?{query}")).await.refuses(400, "invalid-request", query);
    }
    server.get("/v1/chunk/m/a/c/0/0?reduce.y=mean").await.refuses(400, "invalid-request", "a chunk");
    let complex = counting("complex64", json!({})).await;
    complex.get("/v1/data/m/a?reduce.0=mean").await.refuses(400, "invalid-request", "complex numbers");
    let scalar = memory();
    Array::of(&[]).chunks(&[]).store(&scalar, "a").await;
    Server::of(scalar).get("/v1/data/m/a?reduce.0=mean").await.refuses(
        400,
        "invalid-request",
        "no dimensions",
    );
}

#[tokio::test]
async fn what_is_over_a_limit_is_refused_before_it_is_read_with_slices_that_fit() {
    let store = memory();
    let array = Array::of(&[64, 32]).chunks(&[4, 4]).data_type(data_type("uint16")).codecs([LITTLE]);
    array.store(&store, "a").await;
    let decodes = Decodes::default();
    let mut server = Server::build(Mount::read_only("m", store));
    server.read.max_chunks = 48;
    server.decodes = Some(decodes.clone());
    let server = server.finish();
    let answer = server.get("/v1/data/m/a?reduce.0=sum").await;
    assert_eq!((answer.status.as_u16(), decodes.lock().unwrap().len()), (413, 0));
    let slices = answer.json()["suggested_slices"].clone();
    // Only the dimension that stays is divided.
    assert_eq!(slices, json!(["0:64,0:8", "0:64,8:16", "0:64,16:24", "0:64,24:32"]));
    let part = server.get("/v1/data/m/a?reduce.0=sum&slice=0:64,0:8").await;
    assert_eq!(part.status, StatusCode::OK);
    let none = server.get("/v1/data/m/a?reduce.0,1=sum").await;
    assert_eq!((none.status.as_u16(), &none.json()["suggested_slices"]), (413, &json!([])));
    server.get("/v1/stats/m/a?over=0").await.refuses(413, "too-large", "all chunks are read");
    let many = memory();
    Array::of(&[300, 300]).chunks(&[300, 300]).store(&many, "a").await;
    let many = Server::of(many);
    let refused = many.get("/v1/stats/m/a?over=0&slice=:,newaxis").await;
    assert_eq!(refused.status.as_u16(), 400);
    let deep = memory();
    Array::of(&[300, 300, 1]).chunks(&[300, 300, 1]).store(&deep, "a").await;
    let refused = Server::of(deep).get("/v1/stats/m/a?over=2").await;
    assert_eq!((refused.status.as_u16(), &refused.json()["asked"]), (413, &json!(90_000)));
}

#[tokio::test]
async fn head_of_statistics_has_the_length_once_they_are_computed() {
    let server = counting("uint16", json!({})).await;
    let before = server.ask(Method::HEAD, "/v1/stats/m/a", &[]).await;
    assert_eq!((before.status, before.headers.get("content-length")), (StatusCode::OK, None));
    let got = server.get("/v1/stats/m/a").await;
    let after = server.ask(Method::HEAD, "/v1/stats/m/a", &[]).await;
    assert_eq!(after.header("content-length"), got.body.len().to_string());
    assert_eq!(after.header("etag"), before.header("etag"));
}

#[tokio::test]
async fn absent_chunks_count_as_their_fill_value_without_being_made() {
    for (fill, of_fill) in [(json!(3.5), 3.5), (json!("NaN"), f64::NAN), (json!(-0.0), -0.0)] {
        let store = memory();
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [40, 30, 4], "data_type": "float32", "fill_value": fill,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 8, 4]}},
            "chunk_key_encoding": {"name": "default"},
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        });
        put(&store, "a/zarr.json", document.to_string()).await;
        let chunk: Vec<u8> = (0..8 * 8 * 4_u16).flat_map(|at| (f32::from(at) * 0.1).to_le_bytes()).collect();
        put(&store, "a/c/1/2/0", chunk).await;
        put(&store, "b/zarr.json", document.to_string()).await;
        for (row, column) in (0..5).flat_map(|row| (0..4).map(move |column| (row, column))) {
            let value = |at: u16| if (row, column) == (1, 2) { f32::from(at) * 0.1 } else { of_fill as f32 };
            let chunk: Vec<u8> = (0..8 * 8 * 4_u16).flat_map(|at| value(at).to_le_bytes()).collect();
            put(&store, &format!("b/c/{row}/{column}/0"), chunk).await;
        }
        let mut server = Server::build(Mount::read_only("m", store));
        // A chunk has 1024 bytes.
        server.read.segment_size = 1024;
        let server = server.finish();
        for statistic in STATISTICS {
            for query in ["reduce.0=", "reduce.1,2=", "reduce.0,1,2=", "slice=3:37:2,::-3&reduce.0,2="] {
                let of = async |name| {
                    let answer =
                        server.get(&format!("/v1/data/m/{name}?{query}{statistic}&format=bytes")).await;
                    assert_eq!(answer.status, StatusCode::OK, "{query}{statistic}: {:?}", answer.body);
                    answer.body
                };
                assert!(of("a").await == of("b").await, "{fill} {query}{statistic}");
            }
        }
    }
}

//! Statistics of arrays, compared with a naive model and with what is known of simple ones.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd::services::Mount;

use crate::support::counting::Decodes;
use crate::support::data_types::data_type;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, put};

const LITTLE: Codec = Codec::Bytes { big: false };

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

async fn get(server: &Server, query: &str) -> Value {
    let answer = server.get(&format!("/v1/stats/m/a?{query}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{query}: {:?}", answer.body);
    answer.json()
}

fn is_near(value: &Value, expected: f64) -> bool {
    (value.as_f64().unwrap() - expected).abs() <= 1e-12 * expected.abs()
}

#[tokio::test]
async fn counts_sums_and_extremes_are_those_of_the_selection() {
    let server = counting("uint16", json!({"dimension_names": ["y", "x"]})).await;
    let all = get(&server, "").await;
    for (name, expected) in
        [("count", 48), ("missing", 0), ("nan", 0), ("min", 1), ("max", 48), ("sum", 1176)]
    {
        assert_eq!(all[name], expected, "{name}");
    }
    assert_eq!(all["mean"], 24.5);
    // The variance of 1 to n is (n² - 1) / 12.
    assert!(is_near(&all["std"], (2303.0_f64 / 12.0).sqrt()), "{}", all["std"]);
    assert_eq!((&all["exact"], &all["seen"]), (&json!(true), &json!({"elements": 48, "chunks": 6})));
    let row = get(&server, "isel.y=1&ops=max,min").await;
    assert_eq!(row, json!({"min": 9, "max": 16, "exact": true, "seen": {"elements": 8, "chunks": 3}}));
    assert_eq!(
        get(&server, "slice=::-2,1::3&ops=sum").await["sum"],
        (10 + 13 + 16) + (26 + 29 + 32) + (42 + 45 + 48)
    );
    let none = get(&server, "slice=:0").await;
    assert_eq!(
        (&none["count"], &none["min"], &none["mean"], &none["std"]),
        (&json!(0), &Value::Null, &Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn histograms_and_percentiles_are_those_of_numpy() {
    let server = counting("int32", json!({})).await;
    let answer = get(&server, "histogram=4&percentiles=0,2.5,50,100").await;
    // numpy.histogram(numpy.arange(1, 49), 4) and numpy.percentile(…, [0, 2.5, 50, 100]).
    assert_eq!(
        answer["histogram"],
        json!({"edges": [1.0, 12.75, 24.5, 36.25, 48.0], "counts": [12, 12, 12, 12], "outside": 0})
    );
    assert_eq!(answer["percentiles"], json!({"0": 1.0, "2.5": 2.175, "50": 24.5, "100": 48.0}));
    let ranged = get(&server, "histogram=2:10..20&ops=count").await;
    assert_eq!(ranged["histogram"], json!({"edges": [10.0, 15.0, 20.0], "counts": [5, 6], "outside": 37}));
    let few = counting("uint8", json!({})).await;
    assert_eq!(get(&few, "percentiles=50&ops=count").await["percentiles"], json!({"50": 24.5}));
}

#[tokio::test]
async fn values_are_decoded_by_cf_unless_stored_numbers_are_asked_for() {
    let attributes = json!({"_FillValue": 1, "missing_value": [48], "scale_factor": 0.5, "add_offset": 10});
    let server = counting("int16", json!({"attributes": attributes})).await;
    let decoded = get(&server, "").await;
    assert_eq!((&decoded["count"], &decoded["missing"]), (&json!(46), &json!(2)));
    assert_eq!((&decoded["min"], &decoded["max"]), (&json!(11.0), &json!(33.5)));
    assert_eq!(decoded["mean"], 22.25);
    let stored = get(&server, "decode=none").await;
    assert_eq!((&stored["count"], &stored["min"], &stored["max"]), (&json!(48), &json!(1), &json!(48)));
}

#[tokio::test]
async fn nan_is_counted_and_skipped_and_absent_chunks_are_the_fill_value() {
    let store = memory();
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [8], "data_type": "float32", "fill_value": 2.0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    });
    put(&store, "a/zarr.json", document.to_string()).await;
    let chunk: Vec<u8> =
        [1.0_f32, f32::NAN, 4.0, f32::NAN].iter().flat_map(|number| number.to_le_bytes()).collect();
    put(&store, "a/c/0", chunk).await;
    let server = Server::of(store);
    let answer = get(&server, "percentiles=50").await;
    assert_eq!(
        (&answer["count"], &answer["nan"], &answer["min"], &answer["max"]),
        (&json!(6), &json!(2), &json!(1.0), &json!(4.0))
    );
    assert_eq!((&answer["sum"], &answer["percentiles"]["50"]), (&json!(13.0), &json!(2.0)));
}

/// Float64 numbers as `m/a`, in chunks of 2.
async fn numbers(numbers: &[f64]) -> Server {
    let store = memory();
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [numbers.len()], "data_type": "float64", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    });
    put(&store, "a/zarr.json", document.to_string()).await;
    for (at, chunk) in numbers.chunks(2).enumerate() {
        let bytes: Vec<u8> = chunk.iter().flat_map(|number| number.to_le_bytes()).collect();
        put(&store, &format!("a/c/{at}"), [bytes, vec![0; 16]].concat()[..16].to_vec()).await;
    }
    Server::of(store)
}

#[tokio::test]
async fn a_histogram_is_of_the_finite_values_and_counts_the_others() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let server = numbers(&[inf, 1.0, nan, 5.0, -inf, 2.0, inf, 4.0]).await;
    let answer = get(&server, "histogram=2").await;
    // As numpy.histogram of the finite numbers.
    assert_eq!(answer["histogram"], json!({"edges": [1.0, 3.0, 5.0], "counts": [2, 2], "outside": 3}));
    assert_eq!((&answer["count"], &answer["nan"]), (&json!(7), &json!(1)));
    assert_eq!((&answer["min"], &answer["max"]), (&json!("-Infinity"), &json!("Infinity")));
    let over = get(&server, "histogram=2&over=0&ops=count").await;
    assert_eq!(over["histogram"]["outside"], 3);
    for of in [vec![inf, inf], vec![nan], vec![]] {
        let none = get(&numbers(&of).await, "histogram=3&ops=count").await;
        let edges = none["histogram"]["edges"].as_array().unwrap().clone();
        assert!(edges.len() == 4 && edges.iter().all(Value::is_number), "{none}");
        assert_eq!(none["histogram"]["counts"], json!([0, 0, 0]), "{of:?}");
        assert_eq!(none["histogram"]["outside"], none["count"], "{of:?}");
    }
}

#[tokio::test]
async fn a_histogram_can_be_wider_than_the_largest_number() {
    let far = 2_f64.powi(1023);
    let server = numbers(&[-far, far, 0.0, 1.0]).await;
    let answer = get(&server, "histogram=4&percentiles=50").await;
    let half = far / 2.0;
    let edges = json!([-far, -half, 0.0, half, far]);
    assert_eq!(answer["histogram"], json!({"edges": edges, "counts": [1, 0, 2, 1], "outside": 0}));
    assert_eq!((&answer["mean"], &answer["percentiles"]["50"]), (&json!(0.25), &json!(0.5)));
}

#[tokio::test]
async fn a_selection_without_elements_has_counts_of_zero() {
    let server = counting("int16", json!({})).await;
    for query in ["slice=:0", "slice=3:3,:"] {
        let answer = get(&server, &format!("{query}&histogram=2")).await;
        assert_eq!(
            (&answer["count"], &answer["missing"], &answer["nan"]),
            (&json!(0), &json!(0), &json!(0)),
            "{query}"
        );
        assert_eq!(answer["histogram"]["counts"], json!([0, 0]), "{query}");
    }
    let store = memory();
    let document = Array::of(&[0, 3]).chunks(&[2, 2]).document().1;
    put(&store, "a/zarr.json", document.to_string()).await;
    let server = Server::of(store);
    let empty = get(&server, "histogram=2&percentiles=50").await;
    assert_eq!((&empty["count"], &empty["min"]), (&json!(0), &Value::Null));
    assert_eq!(empty["histogram"]["counts"], json!([0, 0]));
    assert_eq!(empty["percentiles"], json!({"50": null}));
    let over = get(&server, "histogram=2&over=0&ops=count").await;
    assert_eq!((&over["count"], &over["shape"]), (&json!([0, 0, 0]), &json!([3])));
    assert_eq!(over["histogram"]["counts"], json!([[0, 0], [0, 0], [0, 0]]));
}

#[tokio::test]
async fn a_repeat_reads_nothing_and_a_changed_chunk_is_read_alone() {
    let store = memory();
    let array = Array::of(&[6, 8]).chunks(&[2, 4]).codecs([LITTLE]);
    array.store(&store, "a").await;
    let decodes = Decodes::default();
    let mut server = Server::build(Mount::read_only("m", store.clone()));
    server.cache.decoded_size = 64 << 20;
    server.decodes = Some(decodes.clone());
    let server = server.finish();
    let first = server.get("/v1/stats/m/a").await;
    let tag = first.header("etag").to_owned();
    let count = || decodes.lock().unwrap().values().sum::<usize>();
    assert_eq!(count(), 6);
    let again = server.get("/v1/stats/m/a").await;
    assert_eq!((again.header("etag"), &again.body), (&*tag, &first.body));
    let same = server.ask(Method::GET, "/v1/stats/m/a", &[("if-none-match", &tag)]).await;
    assert_eq!(same.status, StatusCode::NOT_MODIFIED);
    let head = server.ask(Method::HEAD, "/v1/stats/m/a", &[]).await;
    assert_eq!((head.status, head.header("etag")), (StatusCode::OK, &*tag));
    // Another question about the same chunks needs none of them either.
    assert_eq!(server.get("/v1/stats/m/a?ops=max").await.json()["max"], 48);
    assert_eq!(count(), 6);
    put(&store, "a/c/2/1", array.chunk(&array.model(), &[0, 0])).await;
    let changed = server.get("/v1/stats/m/a").await;
    assert_ne!(changed.header("etag"), tag);
    let expected = 1176 - (37 + 38 + 39 + 40 + 45 + 46 + 47 + 48) + (1 + 2 + 3 + 4 + 9 + 10 + 11 + 12);
    assert_eq!(changed.json()["sum"], expected);
    assert_eq!(count(), 7);
}

#[tokio::test]
async fn an_array_of_many_small_chunks_is_sampled_within_the_limits_and_says_so() {
    let store = memory();
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [100_000, 4], "data_type": "uint8", "fill_value": 7,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 4]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}],
    });
    put(&store, "a/zarr.json", document.to_string()).await;
    let server = Server::of(store);
    let answer = get(&server, "percentiles=50").await;
    assert_eq!((&answer["exact"], &answer["seen"]), (&json!(false), &json!({"elements": 256, "chunks": 64})));
    assert_eq!((&answer["min"], &answer["percentiles"]["50"]), (&json!(7), &json!(7.0)));
    assert_eq!(get(&server, "sample=1000").await["seen"], json!({"elements": 1000, "chunks": 250}));
    assert_eq!(get(&server, "sample=1000").await, get(&server, "sample=1000").await);
    server.get("/v1/stats/m/a?sample=exact").await.refuses(413, "too-large", "all chunks");
    assert_eq!(get(&server, "slice=:1000&sample=exact").await["exact"], true);
}

#[tokio::test]
async fn invalid_questions_are_refused() {
    let server = counting("uint16", json!({})).await;
    for query in [
        "ops=median",
        "ops=",
        "histogram=0",
        "histogram=65537",
        "histogram=4:1",
        "histogram=4:2..1",
        "histogram=4:0..inf",
        "percentiles=101",
        "percentiles=x",
        "sample=0",
        "sample=some",
        "decode=xarray",
        "format=json",
        "slice=0,0,0",
        "ops=min&ops=max",
        "downsample=2,2",
    ] {
        server.get(&format!("/v1/stats/m/a?{query}")).await.refuses(400, "invalid-request", query);
    }
    server.get("/v1/stats/m/a?expected_shape=1").await.refuses(409, "conflict", "another shape");
    server.get("/v1/stats/m/none").await.refuses(404, "not-found", "no array");
    let store = memory();
    Array::of(&[3])
        .data_type(data_type("string"))
        .codecs([Codec::serializer(&data_type("string"), false)])
        .store(&store, "a")
        .await;
    Server::of(store).get("/v1/stats/m/a").await.refuses(400, "invalid-request", "text");
}

#[tokio::test]
async fn statistics_are_the_same_whatever_the_layout_of_chunks_that_hold_integers() {
    let array = Array::of(&[30, 20]).data_type(data_type("int32")).random(5, &[]);
    let mut documents = Vec::new();
    for array in [
        array.clone().chunks(&[30, 20]),
        array.clone().chunks(&[7, 3]),
        array.clone().chunks(&[14, 6]).codecs([Shards::of(&[7, 3], &[LITTLE]).codec()]),
    ] {
        let store = memory();
        array.store(&store, "a").await;
        let mut document =
            get(&Server::of(store), "ops=count,min,max,mean,sum&percentiles=1,99&histogram=9").await;
        document.as_object_mut().unwrap().remove("seen");
        documents.push(document);
    }
    assert!(documents.windows(2).all(|pair| pair[0] == pair[1]), "{documents:?}");
}

#[tokio::test]
async fn statistics_of_floats_are_the_same_bytes_each_time() {
    let store = memory();
    Array::of(&[64, 64])
        .chunks(&[8, 8])
        .data_type(data_type("float64"))
        .random(3, &[])
        .store(&store, "a")
        .await;
    let mut bodies = Vec::new();
    for _ in 0..4 {
        let server = Server::of(store.clone());
        bodies.push(server.get("/v1/stats/m/a?histogram=5&percentiles=3,50").await.body);
    }
    assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]));
}

#[tokio::test]
async fn percentiles_of_a_chunk_that_is_too_long_to_keep_are_of_elements_at_equal_distances() {
    let store = memory();
    let (rows, columns) = (2100_u32, 2000_u32);
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [2 * rows, columns], "data_type": "uint32", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [rows, columns]}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    });
    put(&store, "a/zarr.json", document.to_string()).await;
    let chunk: Vec<u8> = (0..rows * columns).flat_map(u32::to_le_bytes).collect();
    put(&store, "a/c/0/0", chunk).await;
    let server = Server::of(store);
    // Every second row of the only chunk that is selected.
    let one = get(&server, "slice=:2100&percentiles=0,100").await;
    let last = f64::from((rows - 2) * columns + columns - 1);
    assert_eq!(one["percentiles"], json!({"0": 0.0, "100": last}));
    assert_eq!((&one["exact"], &one["seen"]), (&json!(false), &json!({"elements": 2_100_000, "chunks": 1})));
    // Of two chunks fewer elements each, as many of both; the second is not stored.
    let both = get(&server, "percentiles=50,51&ops=min,max").await;
    assert_eq!(
        (&both["exact"], &both["seen"]),
        (&json!(false), &json!({"elements": 4_200_000 / 2, "chunks": 2}))
    );
    assert_eq!((&both["percentiles"]["50"], &both["min"]), (&json!(0.0), &json!(0)));
    let refused = server.get("/v1/stats/m/a?percentiles=50&sample=exact").await;
    assert!(refused.refuses(413, "too-large", "all elements").contains("elements in memory"));
    assert_eq!(get(&server, "sample=exact&ops=max").await["exact"], true);
}

/// Four structs as `m/a`, of which the last two are not stored: an integer, a big-endian float, and two bytes.
async fn structs(decodes: Option<&Decodes>) -> Server {
    let store = memory();
    let document = json!({
        "zarr_format": 2, "shape": [4], "chunks": [2], "order": "C", "compressor": null, "filters": null, "fill_value": 0,
        "dtype": [["a", "<i2"], ["b", ">f4"], ["v", "|u1", [2]]],
    });
    put(&store, "a/.zarray", document.to_string()).await;
    let one = |a: i16, b: f32| [&a.to_le_bytes()[..], &b.to_be_bytes(), &[7, 8]].concat();
    put(&store, "a/0", [one(1, 1.5), one(-3, f32::NAN)].concat()).await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.decodes = decodes.cloned();
    server.finish()
}

#[tokio::test]
async fn statistics_of_a_field_are_those_of_an_array_of_its_numbers() {
    let server = structs(None).await;
    let integers = get(&server, "fields=a&percentiles=50&histogram=2").await;
    for (name, expected) in [
        ("count", json!(4)),
        ("nan", json!(0)),
        ("min", json!(-3)),
        ("max", json!(1)),
        ("sum", json!(-2)),
        ("mean", json!(-0.5)),
    ] {
        assert_eq!(integers[name], expected, "{name}");
    }
    assert_eq!(integers["percentiles"]["50"], 0.0);
    assert_eq!(integers["histogram"], json!({"edges": [-3.0, -1.0, 1.0], "counts": [1, 3], "outside": 0}));
    let floats = get(&server, "fields=b").await;
    assert_eq!(
        (&floats["count"], &floats["nan"], &floats["min"], &floats["max"], &floats["sum"]),
        (&json!(3), &json!(1), &json!(0.0), &json!(1.5), &json!(1.5))
    );
    assert_eq!(get(&server, "fields=a&over=0&ops=max").await["max"], 1);
    let tags = ["fields=a", "fields=b"].map(|query| format!("/v1/stats/m/a?{query}"));
    let first = server.get(&tags[0]).await.header("etag").to_owned();
    assert_ne!(first, server.get(&tags[1]).await.header("etag"));
    assert_eq!(first, server.get(&tags[0]).await.header("etag"));
}

#[tokio::test]
async fn statistics_of_each_field_are_kept_so_that_a_repeat_reads_nothing() {
    let decodes = Decodes::default();
    let server = structs(Some(&decodes)).await;
    let before: Vec<Value> = [get(&server, "fields=a").await, get(&server, "fields=b").await].into();
    decodes.lock().unwrap().clear();
    // Other statistics of the same parts.
    let again = [get(&server, "fields=a&ops=min,max").await, get(&server, "fields=b&ops=min,max").await];
    for (before, again) in before.iter().zip(&again) {
        assert_eq!((&before["min"], &before["max"]), (&again["min"], &again["max"]));
    }
    assert_eq!(decodes.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_struct_has_no_statistics_without_the_name_of_one_field_of_one_number() {
    let server = structs(None).await;
    for (query, reason) in [
        ("", "`fields`"),
        ("?fields=c", "`c`"),
        ("?fields=a,b", "statistics are of real numbers"),
        ("?fields=v", "several numbers"),
    ] {
        let problem = server.get(&format!("/v1/stats/m/a{query}")).await;
        assert_eq!(problem.status, StatusCode::BAD_REQUEST, "{query}");
        let detail = problem.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(reason), "{query}: {detail}");
    }
    let plain = counting("uint16", json!({})).await;
    assert_eq!(plain.get("/v1/stats/m/a?fields=a").await.status, StatusCode::BAD_REQUEST);
}

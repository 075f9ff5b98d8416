//! POST of `/v1/data`: lists of positions and labels, points and conditions as JSON. Those of random arrays are compared with xarray in
//! `tests/clients`.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Value, json};
use zarrd::array::ReadLimits;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::access::{access, grant, known, token};
use crate::labels::{array, dataset, doubles, integers};
use crate::support::counting::Counting;
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Answer, Server, no_caches, put};

const V: &str = "/v1/data/m/g/v";

async fn post(server: &Server, url: &str, body: &Value) -> Answer {
    server.request("POST", url, &[("content-type", "application/json")], body.to_string()).await
}

async fn posted(server: &Server, body: &Value) -> Answer {
    let answer = post(server, V, body).await;
    assert_eq!(answer.status, StatusCode::OK, "{body}: {:?}", answer.body);
    answer
}

#[tokio::test]
async fn a_body_with_the_words_of_a_query_gets_the_answer_of_the_query() {
    let server = Server::of(dataset().await);
    for (body, query) in [
        (json!({}), ""),
        (json!({ "slice": "1:3,::2,-1" }), "?slice=1:3,::2,-1"),
        (json!({ "slice": ["1:3", 0] }), "?slice=1:3,0"),
        (
            json!({ "isel": { "time": 3, "lat": "0:2" }, "format": "npy" }),
            "?isel.time=3&isel.lat=0:2&format=npy",
        ),
        (
            json!({ "isel": { "time": -1, "lon": "3,1" }, "format": "json" }),
            "?isel.time=-1&isel.lon=3,1&format=json",
        ),
        (
            json!({ "sel": { "lat": 45.25, "time": "2020-02" }, "format": "json" }),
            "?sel.lat=45.25&sel.time=2020-02&format=json",
        ),
        (
            json!({ "sel": { "lat": "nearest(20)::20" }, "decode": "cf" }),
            "?sel.lat=nearest(20)::20&decode=cf",
        ),
        (json!({ "sel": { "lat": 44 }, "method": "nearest" }), "?sel.lat=nearest::44"),
        (json!({ "sel": { "lat": 20 }, "method": "nearest", "tolerance": 20 }), "?sel.lat=nearest(20)::20"),
        (
            json!({ "sel": { "lat": 50, "time": "2020-01-31T01" }, "method": "ffill", "tolerance": { "time": "6h" } }),
            "?sel.lat=ffill::50&sel.time=ffill(6h)::2020-01-31T01",
        ),
        (json!({ "sel": { "lat": { "from": 30, "to": 50 } } }), "?sel.lat=30..50"),
        (json!({ "sel": { "lon": -90 }, "wrap": 360 }), "?sel.lon=-90&wrap=360"),
        (json!({ "downsample": { "lat": 2 }, "method": "max" }), "?downsample.lat=2&method=max"),
        (json!({ "downsample": [1, 2, 2], "format": "json" }), "?downsample=1,2,2&format=json"),
        (json!({ "reduce": { "time": "mean" }, "format": "json" }), "?reduce.time=mean&format=json"),
        (json!({ "expected_shape": [4, 3, 4] }), "?expected_shape=4,3,4"),
        (json!({ "isel": { "time": 0 }, "format": "nc" }), "?isel.time=0&format=nc"),
        (json!({ "where": { "lat": "< 60" } }), "?isel.lat=1:3"),
        (json!({ "where": { "lat": ["< 60", "> 30"], "time": "> 2020-01" } }), "?isel.lat=1:2&isel.time=2:4"),
        (json!({ "where": { "lon": "!= 90" }, "format": "json" }), "?isel.lon=0,2:4&format=json"),
        (json!({ "where": { "lat": "> 90" }, "format": "json" }), "?isel.lat=0:0&format=json"),
        (json!({ "sel": { "lat": [30, 60] }, "format": "json" }), "?isel.lat=2,0&format=json"),
    ] {
        let found = posted(&server, &body).await;
        let expected = server.get(&format!("{V}{query}")).await;
        assert_eq!(expected.status, StatusCode::OK, "{query}");
        assert_eq!(found.body, expected.body, "{body}");
        for name in
            ["content-type", "content-length", "array-shape", "array-data-type", "array-dimension-names"]
        {
            assert_eq!(found.header(name), expected.header(name), "{body}: {name}");
        }
        assert!(!found.header("etag").is_empty() && found.headers.get("accept-ranges").is_none(), "{body}");
    }
    // The URL counts too.
    let found =
        post(&server, &format!("{V}?format=json&isel.time=0"), &json!({ "isel": { "lat": [2, 0] } })).await;
    assert_eq!(found.json(), json!([[8, 9, 10, 11], [0, 1, 2, 3]]));
}

#[tokio::test]
async fn a_list_of_one_keeps_its_dimension_and_an_empty_one_is_empty() {
    let server = Server::of(dataset().await);
    for (body, expected, shape) in [
        (json!({ "isel": { "time": 0, "lat": [1], "lon": 2 }, "format": "json" }), json!([6]), "[1]"),
        (
            json!({ "sel": { "lat": [45.25] }, "isel": { "time": 0, "lon": 2 }, "format": "json" }),
            json!([6]),
            "[1]",
        ),
        (json!({ "isel": { "time": 0, "lat": [], "lon": 2 }, "format": "json" }), json!([]), "[0]"),
        (
            json!({ "isel": { "time": 0, "lat": ["1:", 0], "lon": 2 }, "format": "json" }),
            json!([6, 10, 2]),
            "[3]",
        ),
        (
            json!({ "sel": { "time": ["2020-02", "2020-01-31"] }, "isel": { "lat": 0, "lon": 0 }, "format": "json" }),
            json!([24, 36, 12]),
            "[3]",
        ),
    ] {
        let found = posted(&server, &body).await;
        assert_eq!((found.json(), found.header("array-shape")), (expected, shape), "{body}");
    }
}

#[tokio::test]
async fn points_are_the_first_dimension_and_the_others_follow_in_their_order() {
    let server = Server::of(dataset().await);
    for (body, expected, shape, names) in [
        (
            json!({ "points": { "lat": [30, 60, 30], "lon": [90, 270, 90] }, "isel": { "time": 1 } }),
            json!([21, 15, 21]),
            "[3]",
            r#"["points"]"#,
        ),
        (
            json!({ "points": { "lat": [31, 59], "lon": [100, 260] }, "method": "nearest", "isel": { "time": [3, 0] } }),
            json!([[45, 9], [39, 3]]),
            "[2, 2]",
            r#"["points","time"]"#,
        ),
        (
            json!({ "points": { "isel": { "lon": [3, -4], "time": [0, 2] } }, "where": { "lat": "<= 45.25" } }),
            json!([[7, 11], [28, 32]]),
            "[2, 2]",
            r#"["points","lat"]"#,
        ),
        (
            json!({ "points": { "sel": { "lat": [45.25] }, "isel": { "time": [1] } }, "sel": { "lon": "90..180" } }),
            json!([[17, 18]]),
            "[1, 2]",
            r#"["points","lon"]"#,
        ),
        (
            json!({ "points": { "time": ["2020-02-01", "2020-01-30"], "lat": [60, 60], "lon": [-90, 0] }, "wrap": 360 }),
            json!([27, 0]),
            "[2]",
            r#"["points"]"#,
        ),
        (
            json!({ "points": { "lat": [], "lon": [] }, "isel": { "time": 0 } }),
            json!([]),
            "[0]",
            r#"["points"]"#,
        ),
    ] {
        let mut asked = body.clone();
        asked["format"] = json!("json");
        let found = posted(&server, &asked).await;
        assert_eq!(found.json(), expected, "{body}");
        assert_eq!(
            (found.header("array-shape"), found.header("array-dimension-names")),
            (shape, names),
            "{body}"
        );
    }
    let body = json!({ "points": { "isel": { "lat": [2, 0], "lon": [1, 3] } }, "isel": { "time": "2:4" }, "format": "csv" });
    assert_eq!(&posted(&server, &body).await.body[..], b"2,3\r\n33,45\r\n27,39\r\n");
    let decoded = json!({ "points": { "isel": { "lat": [2, 0], "lon": [1, 3] } }, "isel": { "time": 0 }, "format": "json", "decode": "cf" });
    assert_eq!(posted(&server, &decoded).await.json(), json!([104.5, 101.5]));
}

#[tokio::test]
async fn the_response_of_points_has_the_positions_that_their_labels_are() {
    let server = Server::of(dataset().await);
    let points = json!({ "lat": [31, 59, 31], "lon": [100, 260, 0] });
    for (body, taken) in [
        (json!({ "points": points, "method": "nearest" }), "lat=2,0,2, lon=1,3,0"),
        (
            json!({ "points": points, "method": "nearest", "isel": { "time": [3, 0] } }),
            "time=3::-3, lat=2,0,2, lon=1,3,0",
        ),
        (json!({ "points": { "sel": { "lat": [60] }, "isel": { "lon": [-1] } } }), "lat=0, lon=3"),
    ] {
        assert_eq!(posted(&server, &body).await.header("array-selection"), taken, "{body}");
    }
    // Those of many points are columns of a table.
    let table = json!({ "points": points, "method": "nearest", "isel": { "time": 1 }, "format": "csv", "coords": true });
    let table = posted(&server, &table).await;
    let text = String::from_utf8(table.body.to_vec()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "points,time,lat,lon,v");
    assert_eq!(lines[2], "1,2020-01-31T00:00:00.000000,60.0,270.0,107.5", "decoded");
}

#[tokio::test]
async fn csv_of_points_has_a_header_line() {
    let server = Server::of(dataset().await);
    let csv = |body: Value| {
        let server = &server;
        async move { String::from_utf8(posted(server, &body).await.body.to_vec()).unwrap() }
    };
    let points = json!({ "lat": [30, 60], "lon": [90, 270] });
    let one = csv(json!({ "points": points, "isel": { "time": 1 }, "format": "csv" })).await;
    assert_eq!(one, "v\r\n21\r\n15\r\n");
    let two = csv(json!({ "points": points, "isel": { "time": [3, 1] }, "format": "csv" })).await;
    assert_eq!(two, "3,1\r\n45,21\r\n39,15\r\n");
}

#[tokio::test]
async fn a_dimension_without_a_name_is_called_by_its_number() {
    let store = dataset().await;
    Array::of(&[4, 6]).chunks(&[2, 3]).store(&store, "plain").await;
    let server = Server::of(store);
    let url = "/v1/data/m/plain";
    for (named, slice) in [("isel.0=1", "1"), ("isel.1=-1&isel.0=0:2", "0:2,-1"), ("isel.1=::2", ":,::2")] {
        let found = server.get(&format!("{url}?{named}")).await;
        let expected = server.get(&format!("{url}?slice={slice}")).await;
        assert_eq!((found.status, &found.body), (StatusCode::OK, &expected.body), "{named}");
    }
    let listed = server.get(&format!("{url}?isel.0=3,1&format=json")).await.json();
    let whole = server.get(&format!("{url}?format=json")).await.json();
    assert_eq!(listed, json!([whole[3], whole[1]]));
    let points = json!({ "points": { "isel": { "0": [3, 0], "1": [5, 2] } }, "format": "json" });
    assert_eq!(post(&server, url, &points).await.json(), json!([whole[3][5], whole[0][2]]));
    let unknown =
        server.get(&format!("{url}?isel.2=0")).await.refuses(400, "invalid-request", "two dimensions");
    assert!(unknown.contains("by their numbers"), "{unknown}");
    let named = server.get(&format!("{V}?isel.0=0")).await.refuses(400, "invalid-request", "it has a name");
    assert!(named.contains("its dimensions are time, lat, lon"), "{named}");
}

#[tokio::test]
async fn each_chunk_of_points_is_read_once_in_whatever_order_they_come() {
    let inner = memory();
    let names = json!({ "dimension_names": ["t", "y", "x"] });
    let model = Array::of(&[4, 6, 8]).chunks(&[2, 3, 4]).members(names).store(&inner, "a").await;
    let store = Counting::new(inner);
    let mut builder = Server::build(Mount::read_only("m", Arc::clone(&store) as SharedStore));
    builder.cache = no_caches();
    let server = builder.finish();
    let at = |count: usize, factor: usize| (0..count).map(|number| number * factor).collect::<Vec<_>>();
    let (ys, xs): (Vec<_>, Vec<_>) =
        at(500, 7).into_iter().map(|number| (number % 6, number / 3 % 8)).unzip();
    let body = json!({ "points": { "isel": { "y": ys, "x": xs } }, "isel": { "t": [3, 0, 1] } });
    let found = post(&server, "/v1/data/m/a", &body).await;
    assert_eq!(found.status, StatusCode::OK, "{:?}", found.body);
    let expected: Vec<u8> = ys
        .iter()
        .zip(&xs)
        .flat_map(|(&y, &x)| [3, 0, 1].map(|t| model.element(&[t, y, x]).to_vec()).concat())
        .collect();
    assert_eq!(&found.body[..], &expected[..]);
    let mut keys: Vec<String> = store.keys().into_iter().filter(|key| key.contains("a/c/")).collect();
    let reads = keys.len();
    keys.sort();
    keys.dedup();
    assert!(reads == keys.len() && reads == 8, "{reads} reads of {keys:?}");
}

#[tokio::test]
async fn text_labels_with_two_points_are_taken_literally() {
    let store = dataset().await;
    let texts = json!({
        "zarr_format": 3, "node_type": "array", "shape": [3], "fill_value": "", "data_type": "string",
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [3] } },
        "chunk_key_encoding": { "name": "default" }, "dimension_names": ["station"],
        "codecs": [{ "name": "vlen-utf8" }],
    });
    put(&store, "station/zarr.json", texts.to_string()).await;
    let mut chunk = 3_u32.to_le_bytes().to_vec();
    for text in ["a..c", "b", "latest"] {
        chunk.extend_from_slice(&u32::try_from(text.len()).unwrap().to_le_bytes());
        chunk.extend_from_slice(text.as_bytes());
    }
    put(&store, "station/c/0", chunk).await;
    array(&store, "s", &[3], "int32", &["station"], json!({}), integers(10..13)).await;
    let server = Server::of(store);
    for (selection, expected) in [
        (json!({ "sel": { "station": ["latest", "a..c"] } }), json!([12, 10])),
        (json!({ "sel": { "station": { "label": "a..c" } } }), json!(10)),
        (json!({ "sel": { "station": "a..c" } }), json!([10, 11])),
        (json!({ "points": { "station": ["a..c", "b", "a..c"] } }), json!([10, 11, 10])),
        (json!({ "where": { "station": "!= a..c" } }), json!([11, 12])),
    ] {
        let answer = post(&server, "/v1/data/m/s?format=json", &selection).await;
        assert_eq!((answer.status, answer.json()), (StatusCode::OK, expected), "{selection}");
    }
}

#[tokio::test]
async fn entity_tags_are_of_the_selection_and_a_matching_one_is_a_412_without_a_read() {
    let server = Server::of(dataset().await);
    let first = json!({ "points": { "isel": { "lat": [2, 0], "lon": [1, 3] } } });
    let other = json!({ "points": { "isel": { "lat": [0, 2], "lon": [3, 1] } } });
    let tag = posted(&server, &first).await.header("etag").to_owned();
    assert_eq!(posted(&server, &first).await.header("etag"), tag);
    assert_ne!(posted(&server, &other).await.header("etag"), tag);
    let ask = async |body: &Value, name: &str, tag: &str| {
        server.request("POST", V, &[(name, tag)], body.to_string()).await
    };
    let unchanged = ask(&first, "if-none-match", &tag).await;
    unchanged.refuses(412, "precondition-failed", "unchanged");
    assert_eq!(unchanged.header("etag"), tag);
    assert_eq!(ask(&other, "if-none-match", &tag).await.status, StatusCode::OK);
    assert_eq!(ask(&first, "if-match", &tag).await.status, StatusCode::OK);
    ask(&other, "if-match", &tag).await.refuses(412, "precondition-failed", "another selection");
    // By GET and by POST the same selection has the same tag.
    let sliced = posted(&server, &json!({ "isel": { "lat": [2, 0] } })).await;
    assert_eq!(server.get(&format!("{V}?isel.lat=2,0")).await.header("etag"), sliced.header("etag"));
    let ranged = server.request("POST", V, &[("range", "bytes=0-3")], first.to_string()).await;
    assert_eq!((ranged.status, ranged.body.len()), (StatusCode::OK, 2 * 4 * 4));
}

#[tokio::test]
async fn what_no_body_can_be_is_refused_with_what_would_be_right() {
    let server = Server::of(dataset().await);
    for (body, says) in [
        (r#"{"slcie": "0"}"#, "`slcie` is not a parameter here; did you mean `slice`?"),
        (r#"{"pionts": {}}"#, "did you mean `points`?"),
        ("[]", "it is a list, and must be an object"),
        ("", "EOF"),
        (r#"{"format": null}"#, "expected a text, a number"),
        (r#"{"format": "npy", "format": "json"}"#, "`format` is given twice"),
        (r#"{"isel": {"lat": 0, "lat": 1}}"#, "`lat` is given twice"),
        (r#"{"isel": {"lat": true}}"#, "expected an index, a slice"),
        (r#"{"isel": {"lat": [0, 1.5]}}"#, "expected an index or a slice"),
        (r#"{"isel": {"lat": [0, "x"]}}"#, "`x` (item 1 of the list)"),
        (r#"{"isel": {"lat": [0, 3]}}"#, "index 3 is out of range for axis 1 of length 3"),
        (r#"{"isel": {"level": [0]}}"#, "its dimensions are time, lat, lon"),
        (r#"{"isel": {"lat": [0]}, "sel": {"lat": [60]}}"#, "`lat` is selected twice"),
        (r#"{"isel": {"lat": [0]}, "points": {"lat": [60]}}"#, "`lat` is selected twice"),
        (r#"{"sel": {"lat": 60}, "where": {"lat": "> 30"}}"#, "`lat` is selected twice"),
        (r#"{"points": {"lat": [60]}, "slice": "0"}"#, "`slice` cannot be mixed"),
        (r#"{"points": {}}"#, "`points` has no dimension"),
        (r#"{"points": {"lat": 60}}"#, "points have a list of labels along `lat`"),
        (r#"{"points": {"lat": [60], "lon": [0, 90]}}"#, "1 positions along `lat` and 2 along `lon`"),
        (r#"{"points": {"isel": {"lat": ["0:2"]}}}"#, "is an integer, not a slice"),
        (r#"{"points": {"isel": {"lat": [3]}}}"#, "index 3 is out of range"),
        (r#"{"points": {"isel": {"level": [3]}}}"#, "its dimensions are time, lat, lon"),
        (r#"{"points": {"time": ["2020-02"]}}"#, "`2020-02` selects 2 elements along `time`"),
        (r#"{"points": {"lat": ["x"]}}"#, "`points.lat=x`: labels of `lat` are numbers"),
        (r#"{"where": {"lat": "> y"}}"#, "`where.lat=y`"),
        (r#"{"sel": {"lat": ["x"]}}"#, "`sel.lat=x`"),
        (r#"{"points": {"lat": [[60]]}}"#, "`points`: `lat`: invalid type: sequence"),
        (r#"{"isel": {"time": 0, "lon": [[[0]]]}}"#, "`isel`: `lon`: invalid type: sequence"),
        (r#"{"sel": {"lat": [60, [45.25]]}}"#, "`sel`: `lat`: invalid type: sequence"),
        (r#"{"fields": [["a"]]}"#, "`fields`: invalid type: sequence"),
        (r#"{"reduce": {"time": {"lat": "mean"}}}"#, "`reduce`: `time`: objects are nested too deep"),
        (r#"{"points": {"isel": {"lat": [0]}}, "reduce": {"lon": "mean"}}"#, "are not reduced"),
        (r#"{"points": {"isel": {"lat": [0]}}, "format": "nc"}"#, "by points"),
        (r#"{"where": {"lat": "60"}}"#, "`60` is no condition on the labels of `lat`"),
        (r#"{"where": {"lat": "> x"}}"#, "labels of `lat` are numbers"),
        (r#"{"where": {"lat": 60}}"#, "expected a condition"),
        (r#"{"method": "nearest"}"#, "no labels are selected"),
        (r#"{"sel": {"lat": 60}, "tolerance": 1}"#, "where there is a `method` of labels"),
        (r#"{"sel": {"lat": 60}, "method": "nearest", "tolerance": {"lon": 1}}"#, "`tolerance=lon`"),
        (r#"{"sel": {"lat": {"label": 60, "to": 70}}}"#, "have `label`, or `from` and `to`"),
        (r#"{"sel": {"lat": {"lable": 60}}}"#, "unknown field `lable`"),
    ] {
        let answer = server.request("POST", V, &[("content-type", "application/json")], body).await;
        let detail = answer.refuses(400, "invalid-request", body);
        assert!(detail.contains(says), "{body}: {detail}");
    }
    let missing = post(&server, V, &json!({ "points": { "lat": [60, 44], "lon": [0, 0] } })).await;
    let missing = missing.refuses(400, "no-such-label", "44");
    assert!(missing.contains("`points.lat=44`") && missing.contains("45.25"), "{missing}");
    let text = server.request("POST", V, &[("content-type", "text/csv")], "{}").await;
    assert_eq!(text.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let group = post(&server, "/v1/data/m/g", &json!({ "isel": { "lat": [0] } })).await;
    assert!(group.status.is_client_error(), "{group:?}");
}

#[tokio::test]
async fn lists_are_bounded_and_their_cost_is_known_before_reading() {
    let store = dataset().await;
    let long = format!(r#"{{"isel": {{"lat": [{}0]}}}}"#, "0,".repeat(100_000));
    let server = Server::of(Arc::clone(&store));
    let answer = server.request("POST", V, &[], long).await;
    assert!(answer.refuses(400, "invalid-request", "too long").contains("at most 100000"));
    let names = json!({ "dimension_names": ["y", "x"] });
    Array::of(&[4, 4]).chunks(&[1, 2]).members(names).store(&store, "a").await;
    let mut builder = Server::build(Mount::read_only("m", store));
    builder.read = ReadLimits { max_chunks: 2, ..ReadLimits::default() };
    let server = builder.finish();
    let at = |ys: &[u64], xs: &[u64]| json!({ "points": { "isel": { "y": ys, "x": xs } } });
    let few = post(&server, "/v1/data/m/a", &at(&[0, 3, 0], &[1, 3, 0])).await;
    assert_eq!(few.status, StatusCode::OK);
    let problem = post(&server, "/v1/data/m/a", &at(&[0, 3, 0], &[1, 3, 2])).await;
    problem.refuses(413, "too-large", "chunks");
    assert_eq!(
        (problem.json()["limited"].clone(), problem.json()["limit"].clone()),
        (json!("decoded chunks"), json!(2))
    );
}

#[tokio::test]
async fn a_post_reads_with_the_right_to_read_alone_and_from_pages_of_other_origins() {
    let store = dataset().await;
    array(&store, "g/lat", &[3], "float64", &["lat"], json!({}), doubles(&[1.0, 2.0, 45.25])).await;
    let server = Server::of(store);
    let tokens = json!({
        "all": known("all", json!([grant("m", "", &["read"])])),
        "some": known("some", json!([grant("m", "g/v/", &["read"]), grant("m", "lat/", &["read"])])),
        "one": known("one", json!([grant("m", "g/v/", &["read"])])),
        "lists": known("lists", json!([grant("m", "", &["list", "write", "delete"])])),
    });
    server.set_access(access(json!({ "tokens": tokens }), &[], &Arc::default()));
    let body = json!({ "points": { "lat": [45.25], "isel": { "time": [0], "lon": [0] } }, "format": "json" })
        .to_string();
    let ask = async |caller: &str| {
        let bearer = format!("Bearer {}", token(caller));
        let headers = [("authorization", bearer.as_str()), ("origin", "https://another.example")];
        server.request("POST", V, &headers, body.clone()).await
    };
    assert_eq!(ask("all").await.json(), json!([8]));
    // The coordinate beside the array is as if it was not there.
    assert_eq!(ask("some").await.json(), json!([4]));
    ask("one").await.refuses(400, "no-coordinate", "no coordinate");
    assert_eq!(ask("lists").await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn more_conditions_than_are_compared_are_refused() {
    let server = Server::of(dataset().await);
    posted(&server, &json!({ "where": { "lat": vec!["<= 99"; 64] } })).await;
    let body = json!({ "where": { "lat": vec!["<= 99"; 65] } });
    let detail = post(&server, V, &body).await.refuses(413, "too-large", "65 conditions");
    assert!(detail.contains("`lat` has 65 conditions") && detail.contains("at most 64"), "{detail}");
}

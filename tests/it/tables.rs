//! Long tables: which rows and columns they have, what they cost, and what their responses depend on. Those of random datasets are
//! compared with pandas and xarray in `tests/clients`.

use std::sync::Arc;

use axum::body::{Body, BodyDataStream};
use axum::http::{Method, Request, StatusCode};
use futures::StreamExt;
use serde_json::{Value, json};
use zarrd::array::ReadLimits;
use zarrd::http::Peer;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::access::{access, grant, known, token};
use crate::labels::{array, dataset, doubles, integers};
use crate::support::hierarchy::memory;
use crate::support::server::{Answer, Server, erase, put};

async fn get(server: &Server, url: &str) -> Answer {
    let answer = server.get(url).await;
    assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
    answer
}

async fn text(server: &Server, url: &str) -> String {
    String::from_utf8(get(server, url).await.body.to_vec()).unwrap()
}

fn lines(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [*line, "\r\n"]).collect()
}

#[tokio::test]
async fn a_table_has_a_row_for_each_element_with_its_labels_and_its_decoded_value() {
    let server = Server::of(dataset().await);
    let url = "/v1/data/m/g/v?coords=1&isel.time=1:3&sel.lat=45.25&sel.lon=90..180";
    let csv = get(&server, url).await;
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8; header=present");
    assert_eq!(csv.header("content-length"), csv.body.len().to_string());
    assert_eq!(csv.header("content-disposition"), "inline; filename=\"v.csv\"");
    assert_eq!(csv.header("array-labels"), "lat=45.25");
    let expected = lines(&[
        "time,lat,lon,v",
        "2020-01-31T00:00:00.000000,45.25,90.0,108.5",
        "2020-01-31T00:00:00.000000,45.25,180.0,109.0",
        "2020-02-01T00:00:00.000000,45.25,90.0,114.5",
        "2020-02-01T00:00:00.000000,45.25,180.0,115.0",
    ]);
    assert_eq!(String::from_utf8_lossy(&csv.body), expected);
    let json = get(&server, &format!("{url}&format=json")).await.json();
    assert_eq!(json[2], json!({"time": "2020-02-01T00:00:00.000000", "lat": 45.25, "lon": 90.0, "v": 114.5}));
}

#[tokio::test]
async fn without_decoding_a_table_has_what_is_stored() {
    let server = Server::of(dataset().await);
    let url = "/v1/data/m/g/v?coords=1&isel.time=1&isel.lat=0&isel.lon=:2";
    let stored = text(&server, &format!("{url}&decode=none&header=absent")).await;
    assert_eq!(stored, lines(&["1,60.0,0.0,12", "1,60.0,90.0,13"]));
    let head = server.ask(Method::HEAD, url, &[]).await;
    let whole = get(&server, url).await;
    for name in ["etag", "content-length", "content-type"] {
        assert_eq!(head.header(name), whole.header(name), "{name}");
    }
    assert!(head.body.is_empty());
}

#[tokio::test]
async fn a_dimension_without_a_coordinate_has_its_positions() {
    let store = memory();
    array(&store, "a", &[2, 3], "int32", &["y", "x"], json!({}), integers(0..6)).await;
    let server = Server::of(store);
    let rows = text(&server, "/v1/data/m/a?coords&slice=1,::-2").await;
    assert_eq!(rows, lines(&["y,x,a", "1,2,5", "1,0,3"]));
    let rows = text(&server, "/v1/data/m/a?coords&isel.x=2,0,2&isel.y=0&header=no").await;
    assert_eq!(rows, lines(&["0,2,2", "0,0,0", "0,2,2"]));
}

#[tokio::test]
async fn a_table_is_refused_where_a_coordinate_has_another_length_than_its_dimension_as_a_label_is() {
    let store = memory();
    put(&store, "g/zarr.json", json!({ "zarr_format": 3, "node_type": "group" }).to_string()).await;
    array(&store, "g/a", &[2, 3], "int32", &["y", "x"], json!({}), integers(0..6)).await;
    array(&store, "g/x", &[4], "int32", &["x"], json!({}), integers(0..4)).await;
    array(&store, "g/b", &[3], "int32", &["x"], json!({}), integers(0..3)).await;
    array(&store, "y", &[3], "int32", &["y"], json!({}), integers(0..3)).await;
    let server = Server::of(store);
    for (url, says) in [
        (
            "/v1/data/m/g/a?sel.x=2",
            "`x` has 3 elements, and its coordinate `/g/x` has the shape [4]; select by position",
        ),
        (
            "/v1/data/m/g/a?coords=1",
            "`y` has 2 elements, and its coordinate `/y` has the shape [3]; to get the elements",
        ),
        ("/v1/data/m/g/a?coords=1&isel.y=0", "its coordinate `/y` has the shape [3]"),
        ("/v1/data/m/g?vars=a&coords=1", "its coordinate `/y` has the shape [3]"),
        ("/v1/data/m/g/a?format=parquet", "its coordinate `/y` has the shape [3]"),
        (
            "/v1/data/m/g/b?coords=1",
            "`x` has 3 elements, and its coordinate `/g/x` has the shape [4]; to get the elements",
        ),
    ] {
        let detail = server.get(url).await.refuses(400, "invalid-request", url);
        assert!(detail.contains(says), "{url}: {detail}");
    }
    get(&server, "/v1/data/m/g/a?isel.y=0").await;
}

#[tokio::test]
async fn lists_and_points_are_rows_too() {
    let server = Server::of(dataset().await);
    let rows =
        text(&server, "/v1/data/m/g/v?coords=1&isel.lon=2,0&isel.time=0&isel.lat=0&header=no&decode=none")
            .await;
    assert_eq!(rows, lines(&["0,60.0,180.0,2", "0,60.0,0.0,0"]));
    let body = json!({
        "points": {"lat": [44, 31], "lon": [1, 89]}, "method": "nearest", "isel": {"time": 1},
        "coords": 1, "format": "csv",
    });
    let headers = [("content-type", "application/json")];
    let answer = server.request("POST", "/v1/data/m/g/v", &headers, body.to_string()).await;
    assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
    let expected = lines(&[
        "points,time,lat,lon,v",
        "0,2020-01-31T00:00:00.000000,45.25,0.0,108.0",
        "1,2020-01-31T00:00:00.000000,30.0,90.0,110.5",
    ]);
    assert_eq!(String::from_utf8_lossy(&answer.body), expected);
}

#[tokio::test]
async fn variables_of_the_same_dimensions_are_in_one_table_by_label_as_well() {
    let store = dataset().await;
    array(&store, "g/w", &[4, 3, 4], "float64", &["time", "lat", "lon"], json!({}), doubles(&[0.5; 48]))
        .await;
    let server = Server::of(store);
    let rows =
        text(&server, "/v1/data/m/g?coords=1&vars=w,v&sel.time=2020-01-30&sel.lat=60&isel.lon=3").await;
    assert_eq!(rows, lines(&["time,lat,lon,w,v", "2020-01-30T00:00:00.000000,60.0,270.0,0.5,101.5"]));
    let all = text(&server, "/v1/data/m/g?coords=1&isel.time=0&isel.lat=0&isel.lon=0&header=no").await;
    assert_eq!(all, lines(&["2020-01-30T00:00:00.000000,60.0,0.0,100.0,0.5"]), "without the coordinates");
    let slice = text(&server, "/v1/data/m/g?coords=1&slice=0,0,0&header=no").await;
    assert_eq!(slice, all);
}

#[tokio::test]
async fn a_coordinate_is_one_column_of_its_own_labels() {
    let server = Server::of(dataset().await);
    assert_eq!(
        text(&server, "/v1/data/m/g/lon?coords=1").await,
        lines(&["lon", "0.0", "90.0", "180.0", "270.0"])
    );
    let empty = text(&server, "/v1/data/m/g/v?coords=1&isel.time=0:0").await;
    assert_eq!(empty, lines(&["time,lat,lon,v"]));
    assert_eq!(text(&server, "/v1/data/m/g/v?coords=1&isel.time=0:0&format=json").await, "[]\n");
}

#[tokio::test]
async fn missing_values_are_null_in_json_and_labels_are_never_missing() {
    let store = memory();
    let missing = json!({ "_FillValue": 0 });
    array(&store, "x", &[2], "int32", &["x"], missing.clone(), integers(0..2)).await;
    array(&store, "v", &[2], "int32", &["x"], missing, integers(0..2)).await;
    let server = Server::of(store);
    let rows = get(&server, "/v1/data/m/v?coords=1&format=json").await.json();
    assert_eq!(rows, json!([{"x": 0, "v": null}, {"x": 1, "v": 1.0}]));
    let rows = text(&server, "/v1/data/m/v?coords=1").await;
    assert_eq!(rows, lines(&["x,v", "0,NaN", "1,1.0"]));
}

#[tokio::test]
async fn the_entity_tag_depends_on_variables_and_coordinates_and_nothing_is_read_for_a_304() {
    let store = dataset().await;
    let server = Server::of(store.clone());
    let url = "/v1/data/m/g/v?coords=1";
    let tag = |answer: &Answer| answer.header("etag").to_owned();
    let first = get(&server, url).await;
    assert_eq!(tag(&get(&server, url).await), tag(&first));
    let known = server.ask(Method::GET, url, &[("if-none-match", &tag(&first))]).await;
    assert_eq!((known.status, known.body.len()), (StatusCode::NOT_MODIFIED, 0));
    let failed = server.ask(Method::GET, url, &[("if-match", "\"other\"")]).await;
    assert_eq!(failed.status, StatusCode::PRECONDITION_FAILED);
    assert_ne!(tag(&get(&server, &format!("{url}&format=json")).await), tag(&first));
    assert_ne!(tag(&get(&server, &format!("{url}&header=no")).await), tag(&first));
    let mut last = tag(&first);
    for (path, bytes) in [("lat/c/0", doubles(&[59.0, 45.0, 30.0])), ("g/v/c/0/0/0", integers(100..148))] {
        put(&store, path, bytes).await;
        let now = tag(&get(&server, url).await);
        assert_ne!(now, last, "{path}");
        last = now;
    }
    erase(&store, "lat/zarr.json").await;
    let now = get(&server, url).await;
    assert_ne!(tag(&now), last);
    assert!(now.body.starts_with(b"time,lat,lon,v\r\n2020-01-30T00:00:00.000000,0,0.0,"), "{:?}", now.body);
}

#[tokio::test]
async fn a_table_that_is_too_large_is_refused_unread_with_slices_that_fit() {
    let mut builder = Server::build(Mount::read_only("m", dataset().await));
    builder.read = ReadLimits { max_response_size: 200, ..ReadLimits::default() };
    let server = builder.finish();
    let refused = server.get("/v1/data/m/g/v?coords=1").await;
    let detail = refused.refuses(413, "too-large", "limit");
    assert!(detail.contains("read.max_response_size"), "{detail}");
    let slices = refused.json()["suggested_slices"].clone();
    assert!(!slices.as_array().unwrap().is_empty());
    for slice in slices.as_array().unwrap() {
        get(&server, &format!("/v1/data/m/g/v?coords=1&slice={}", slice.as_str().unwrap())).await;
        get(&server, &format!("/v1/data/m/g?vars=v&coords=1&slice={}", slice.as_str().unwrap())).await;
    }
}

#[tokio::test]
async fn a_long_table_is_sent_in_parts_and_all_of_it_arrives() {
    let store = memory();
    let count: i32 = 200_000;
    let numbers: Vec<f64> = (0..count).map(f64::from).collect();
    let length = numbers.len() as u64;
    array(&store, "x", &[length], "float64", &["x"], json!({}), doubles(&numbers)).await;
    array(&store, "v", &[length], "int32", &["x"], json!({}), integers(0..count)).await;
    let server = Server::of(store);
    for format in ["csv", "json", "arrow"] {
        let url = format!("/v1/data/m/v?coords=1&format={format}");
        let answer = get(&server, &url).await;
        assert_eq!(answer.header("content-length"), "", "{format}");
        match format {
            "csv" => {
                let text = String::from_utf8(answer.body.to_vec()).unwrap();
                let rows: Vec<&str> = text.lines().skip(1).collect();
                assert_eq!(rows.len(), numbers.len());
                assert!((0..).zip(&rows).all(|(row, line)| *line == format!("{row}.0,{row}")));
            }
            "json" => {
                let rows = answer.json();
                assert_eq!(rows.as_array().unwrap().len(), numbers.len());
                assert_eq!(rows[199_999], json!({"x": 199_999.0, "v": 199_999}));
            }
            _ => assert!(answer.body.len() > 12 * numbers.len()),
        }
        let head = server.ask(Method::HEAD, &url, &[]).await;
        assert_eq!(
            (head.header("etag"), head.header("content-length")),
            (answer.header("etag"), ""),
            "{format}"
        );
    }
}

#[tokio::test]
async fn what_has_no_table_is_refused_by_name() {
    let store = dataset().await;
    array(&store, "g/flat", &[3], "int32", &["lat"], json!({}), integers(0..3)).await;
    let server = Server::of(store);
    for (url, status, code, says) in [
        ("g/v?coords=1&format=npy", 400, "unknown-format", "csv, json, arrow"),
        ("g/v?coords=1&downsample=2,1,1", 400, "invalid-request", "leave out"),
        ("g/v?coords=1&dtype=float32", 400, "invalid-request", "dtype"),
        ("g/v?coords=1&vars=v", 400, "invalid-request", "this is an array"),
        ("g?coords=1", 400, "invalid-request", "v (time: 4, lat: 3, lon: 4)"),
        ("g?coords=1&vars=v,flat", 400, "invalid-request", "flat (lat: 3)"),
        ("g?coords=1&vars=none", 404, "not-found", "`none`"),
        ("g/v?coords=1&isel.depth=0", 400, "invalid-request", "depth"),
        ("g/v?coords=1&coords=0", 400, "invalid-request", "coords"),
        ("g/v?coords=1&expected_shape=1,1,1", 409, "conflict", "expected_shape"),
        ("g/none?coords=1", 404, "not-found", "none"),
    ] {
        let answer = server.get(&format!("/v1/data/m/{url}")).await;
        let detail = answer.refuses(status, code, url);
        assert!(detail.contains(says), "{url}: {detail}");
    }
    let chunk = server.get("/v1/chunk/m/g/v/c/0/0/0?coords=1").await;
    chunk.refuses(400, "invalid-request", "a chunk");
    let accept = server.ask(Method::GET, "/v1/data/m/g/v?coords=1", &[("accept", "image/png")]).await;
    accept.refuses(406, "not-acceptable", "accept");
}

#[tokio::test]
async fn texts_and_repeated_names_are_columns() {
    let store = memory();
    let document = |shape: &[u64], names: &[&str]| {
        json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "string",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
            "chunk_key_encoding": {"name": "default"}, "fill_value": "a,\"b\"", "codecs": [{"name": "vlen-utf8"}],
            "dimension_names": names,
        })
    };
    put(&store, "s/zarr.json", document(&[2], &["s"]).to_string()).await;
    put(&store, "x/zarr.json", document(&[2, 2], &["x", "x"]).to_string()).await;
    let server = Server::of(store);
    assert_eq!(
        text(&server, "/v1/data/m/s?coords=1").await,
        lines(&["s", "\"a,\"\"b\"\"\"", "\"a,\"\"b\"\"\""])
    );
    let rows: Value = get(&server, "/v1/data/m/x?coords=1&format=json&slice=1").await.json();
    assert_eq!(rows[1], json!({"x": 1, "x_": 1, "x__": "a,\"b\""}));
}

#[tokio::test]
async fn what_the_caller_may_not_read_is_as_if_it_was_not_there() {
    let server = Server::of(dataset().await);
    let tokens = json!({
        "all": known("all", json!([grant("m", "", &["read"])])),
        "some": known("some", json!([grant("m", "g/v/", &["read"]), grant("m", "lat/", &["read"])])),
        "group": known("group", json!([grant("m", "g/", &["read"])])),
        "lists": known("lists", json!([grant("m", "", &["list", "write", "delete"])])),
    });
    server.set_access(access(json!({ "tokens": tokens }), &[], &Arc::default()));
    let ask = async |name: &str, url: &str| {
        let authorization = format!("Bearer {}", token(name));
        server.ask(Method::GET, url, &[("authorization", &authorization)]).await
    };
    let url = "/v1/data/m/g/v?coords=1&isel.time=0&isel.lat=1&isel.lon=:1&header=no";
    let rows = async |name: &str| String::from_utf8(ask(name, url).await.body.to_vec()).unwrap();
    assert_eq!(rows("all").await, lines(&["2020-01-30T00:00:00.000000,45.25,0.0,102.0"]));
    assert_eq!(rows("some").await, lines(&["0,45.25,0,102.0"]));
    assert_eq!(rows("group").await, lines(&["2020-01-30T00:00:00.000000,1,0.0,102.0"]));
    ask("lists", url).await.refuses(403, "forbidden", "lists");
    let group = "/v1/data/m/g?coords=1&vars=v&isel.time=0&isel.lat=1&isel.lon=:1&header=no";
    assert_eq!(ask("group", group).await.body, ask("group", url).await.body);
    assert_eq!(ask("some", group).await.status, StatusCode::FORBIDDEN);
    let unnamed = ask("group", "/v1/data/m/g?coords=1").await;
    assert!(unnamed.refuses(400, "invalid-request", "unnamed").contains("`vars`"));
}

#[tokio::test]
async fn a_parquet_file_is_a_table_by_its_format_alone() {
    let server = Server::of(dataset().await);
    let file = get(&server, "/v1/data/m/g/v?format=parquet&isel.time=0").await;
    assert_eq!(file.header("content-type"), "application/vnd.apache.parquet");
    assert_eq!(file.header("content-disposition"), "inline; filename=\"v.parquet\"");
    assert!(file.body.starts_with(b"PAR1") && file.body.ends_with(b"PAR1"));
    let accepted = [("accept", "application/vnd.apache.parquet")];
    let same = server.ask(Method::GET, "/v1/data/m/g/v?isel.time=0", &accepted).await;
    assert_eq!(same.body, file.body);
    let store = memory();
    array(&store, "c", &[2], "complex64", &["x"], json!({}), vec![0; 16]).await;
    let refused = Server::of(store).get("/v1/data/m/c?format=parquet").await;
    assert!(refused.refuses(400, "invalid-request", "complex").contains("complex64"));
}

/// A table whose rows are not read yet.
async fn begun(server: &Server, url: &str) -> BodyDataStream {
    let request = Request::get(url).body(Body::empty()).unwrap();
    let answer = server.site().handle(request, Peer::LOOPBACK).await;
    assert_eq!(answer.status(), StatusCode::OK, "{url}");
    answer.into_body().into_data_stream()
}

/// Stores an array of texts in one chunk.
async fn texts(store: &SharedStore, path: &str, texts: &[String]) {
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [texts.len()], "data_type": "string",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [texts.len()]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": "", "codecs": [{"name": "vlen-utf8"}],
        "dimension_names": [path],
    });
    put(store, &format!("{path}/zarr.json"), document.to_string()).await;
    let length = |length: usize| u32::try_from(length).unwrap().to_le_bytes();
    let mut chunk = length(texts.len()).to_vec();
    for text in texts {
        chunk.extend(length(text.len()));
        chunk.extend(text.as_bytes());
    }
    put(store, &format!("{path}/c/0"), chunk).await;
}

#[tokio::test]
async fn texts_count_as_long_as_they_are_before_a_table_is_begun() {
    let store = memory();
    // A label of few bytes that many rows repeat, and values that are short where they are stored.
    texts(&store, "site", &["s".repeat(1000), String::new()]).await;
    array(&store, "v", &[2, 500], "uint8", &["site", "x"], json!({}), vec![1; 1000]).await;
    texts(&store, "long", &["t".repeat(90_000), "t".repeat(90_000)]).await;
    let mut builder = Server::build(Mount::read_only("m", store));
    builder.read = ReadLimits { max_response_size: 100_000, ..ReadLimits::default() };
    let server = builder.finish();
    for format in ["csv", "json", "arrow", "parquet"] {
        for url in ["v?coords=1", "long?coords=1"] {
            let refused = server.get(&format!("/v1/data/m/{url}&format={format}")).await;
            let detail = refused.refuses(413, "too-large", &format!("{url} as {format}"));
            assert!(detail.contains("read.max_response_size"), "{detail}");
        }
        for url in
            ["v?coords=1&isel.site=0&isel.x=:90", "v?coords=1&isel.site=1", "long?coords=1&isel.long=0"]
        {
            get(&server, &format!("/v1/data/m/{url}&format={format}")).await;
        }
    }
    for format in ["json", "csv", "arrow", "nc"] {
        let refused = server.get(&format!("/v1/data/m/long?format={format}")).await;
        refused.refuses(413, "too-large", format);
    }
    for format in ["json", "csv", "arrow"] {
        get(&server, &format!("/v1/data/m/long?format={format}&isel.long=1:2")).await;
    }
}

#[tokio::test]
async fn rows_with_long_labels_are_sent_a_few_at_a_time() {
    const ROWS: u64 = 100;
    let store = memory();
    texts(&store, "site", &["a".repeat(100_000), "b".repeat(100_000)]).await;
    array(&store, "v", &[2, ROWS], "uint8", &["site", "x"], json!({}), vec![1; 200]).await;
    let server = Server::of(store);
    for format in ["csv", "json", "arrow", "parquet"] {
        let mut body = begun(&server, &format!("/v1/data/m/v?coords=1&format={format}")).await;
        let (mut longest, mut all) = (0, 0);
        while let Some(part) = body.next().await {
            let length = part.unwrap().len();
            (longest, all) = (longest.max(length), all + length);
        }
        assert!(longest < 2 << 20, "{format}: {longest} bytes are in memory together");
        assert!(all > 20_000_000 || format == "parquet", "{format}: {all}");
    }
}

#[tokio::test]
async fn a_row_that_is_longer_than_others_is_charged_with_its_length() {
    let store = memory();
    texts(&store, "t", &["\u{1}".repeat(3 << 20), "short".to_owned()]).await;
    let mut builder = Server::build(Mount::read_only("m", store));
    builder.http.max_buffered_response_size = 4 << 20;
    let server = builder.finish();
    for rows in [":", "0"] {
        let mut body = begun(&server, &format!("/v1/data/m/t?coords=1&format=json&slice={rows}")).await;
        let row = body.next().await.unwrap().unwrap();
        assert!(row.len() > 6 * (3 << 20));
        assert!(server.in_flight_bytes() > row.len() as u64, "{rows}: {}", server.in_flight_bytes());
        while let Some(part) = body.next().await {
            part.unwrap();
        }
        drop((body, row));
        assert_eq!(server.in_flight_bytes(), 0, "{rows}");
    }
}

//! Selections by label, end to end: what they select, what they are refused for, and what their responses depend on. Those of
//! random datasets are compared with xarray in `tests/clients`.

use std::fs;
use std::sync::Arc;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd::services::Mount;
use zarrd::store::{LocalOptions, LocalStore, SharedStore};

use crate::support::hierarchy::memory;
use crate::support::server::{Answer, Server, erase, no_caches, put};

/// Stores an array in one chunk of these elements.
pub async fn array(
    store: &SharedStore,
    path: &str,
    shape: &[u64],
    data_type: &str,
    names: &[&str],
    attributes: Value,
    elements: Vec<u8>,
) {
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": shape } },
        "chunk_key_encoding": { "name": "default" }, "fill_value": 0,
        "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
        "dimension_names": names, "attributes": attributes,
    });
    put(store, &format!("{path}/zarr.json"), document.to_string()).await;
    let chunk = shape.iter().map(|_| "/0").collect::<String>();
    put(store, &format!("{path}/c{chunk}"), elements).await;
}

pub fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub fn integers(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
    values.into_iter().flat_map(i32::to_le_bytes).collect()
}

const DAYS: &str = "days since 2020-01-30";

/// A store with an array `g/v` of 4 days, 3 latitudes and 4 longitudes that counts from 0. The latitudes are above its group.
pub async fn dataset() -> SharedStore {
    let store = memory();
    fill(&store).await;
    store
}

/// Stores the same.
async fn fill(store: &SharedStore) {
    put(store, "zarr.json", json!({ "zarr_format": 3, "node_type": "group" }).to_string()).await;
    put(store, "g/zarr.json", json!({ "zarr_format": 3, "node_type": "group" }).to_string()).await;
    let packed = json!({ "scale_factor": 0.5, "add_offset": 100.0 });
    array(store, "g/v", &[4, 3, 4], "int32", &["time", "lat", "lon"], packed, integers(0..48)).await;
    array(store, "g/time", &[4], "int32", &["time"], json!({ "units": DAYS }), integers(0..4)).await;
    array(store, "lat", &[3], "float64", &["lat"], json!({}), doubles(&[60.0, 45.25, 30.0])).await;
    array(store, "g/lon", &[4], "float64", &["lon"], json!({}), doubles(&[0.0, 90.0, 180.0, 270.0])).await;
}

async fn get(server: &Server, url: &str) -> Answer {
    let answer = server.get(url).await;
    assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
    answer
}

#[tokio::test]
async fn a_label_selects_what_its_position_selects() {
    let server = Server::of(dataset().await);
    for (labels, positions, taken, picked) in [
        ("sel.lat=45.25", "isel.lat=1", "lat=1", "lat=45.25"),
        ("sel.lat=nearest::44", "isel.lat=1", "lat=1", "lat=45.25"),
        ("sel.lat=nearest(20)::20", "isel.lat=2", "lat=2", "lat=30"),
        ("sel.lat=30..50", "isel.lat=1:3", "lat=1:3", ""),
        ("sel.lat=50..30", "isel.lat=1:3", "lat=1:3", ""),
        ("sel.lat=1..2", "isel.lat=0:0", "lat=0:0", ""),
        ("sel.time=2020-02", "isel.time=2:4", "time=2:4", ""),
        ("sel.time=2020-01-31..2020-01", "isel.time=1:2", "time=1:2", ""),
        ("sel.time=2020-02-02..2020", "isel.time=3:4", "time=3:4", ""),
        ("sel.time=2020-02..2020-01", "isel.time=0:4", "time=0:4", ""),
        ("sel.time=2020-02-01", "isel.time=2", "time=2", "time=2020-02-01T00:00:00"),
        (
            "sel.time=latest&sel.lat=60",
            "isel.time=3&isel.lat=0",
            "time=3, lat=0",
            "time=2020-02-02T00:00:00, lat=60",
        ),
        ("sel.lon=-90&wrap=360", "isel.lon=3", "lon=3", "lon=270"),
        ("sel.lat=60..45.25&sel.lon=-90&wrap=360", "isel.lat=0:2&isel.lon=3", "lat=0:2, lon=3", "lon=270"),
        (
            "sel.lat=60&isel.time=-1&sel.lon=90",
            "isel.lat=0&isel.time=3&isel.lon=1",
            "time=3, lat=0, lon=1",
            "lat=60, lon=90",
        ),
        ("sel.lat=60&isel.time=-1", "isel.lat=0&isel.time=3", "time=3, lat=0", "lat=60"),
    ] {
        for route in ["data", "stats"] {
            let found = get(&server, &format!("/v1/{route}/m/g/v?{labels}")).await;
            let expected = get(&server, &format!("/v1/{route}/m/g/v?{positions}")).await;
            assert_eq!(found.body, expected.body, "{route} {labels}");
            assert_eq!(found.header("array-shape"), expected.header("array-shape"), "{labels}");
            assert_eq!(found.header("array-selection"), taken, "{route} {labels}");
            assert_eq!(found.header("array-labels"), picked, "{route} {labels}");
        }
    }
    let itself = get(&server, "/v1/data/m/g/time?sel.time=2020-01-31..&format=json").await;
    assert_eq!(itself.json(), json!([1, 2, 3]));
}

#[tokio::test]
async fn pictures_and_tiles_are_of_the_plane_that_labels_select() {
    let server = Server::of(dataset().await);
    for path in [
        "/v1/image/m/g/v?range=100,124&",
        "/tiles/m/native/0/0/0/g/v?range=100,124&",
        "/v1/legend/m/g/v?range=100,124&",
    ] {
        let found = get(&server, &format!("{path}sel.time=2020-02-01")).await;
        let expected = get(&server, &format!("{path}isel.time=2")).await;
        assert_eq!(found.body, expected.body, "{path}");
        let other = get(&server, &format!("{path}isel.time=1")).await;
        assert!(path.contains("legend") || other.body != expected.body, "{path}");
        server.get(&format!("{path}sel.time=2021-02-01")).await.refuses(400, "no-such-label", path);
    }
    let location = get(&server, "/v1/image/m/g/v?sel.time=2020-02-01").await;
    let location = location.header("content-location").to_owned();
    assert!(location.contains("slice=2,") && !location.contains("sel."), "{location}");
    let tiles = get(&server, "/v1/tilejson/m/g/v?sel.time=2020-02-01&range=100,124").await.json();
    assert!(tiles["tiles"][0].as_str().unwrap().contains("sel.time=2020-02-01"), "{tiles}");
}

#[tokio::test]
async fn the_page_of_labels_is_that_of_their_positions() {
    let server = Server::of(dataset().await);
    let page = server.get("/view/m/g/v?sel.time=2020-02-01&colormap=magma&sel.lat=30..50").await;
    assert_eq!(page.status, StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(page.header("location"), "/view/m/g/v?slice=2,1:3,0:4&colormap=magma");
    assert_eq!(server.get(page.header("location")).await.status, StatusCode::OK);
    server.get("/view/m/g/v?sel.time=2030").await.refuses(400, "no-such-label", "a page");
}

#[tokio::test]
async fn what_cannot_be_selected_is_refused_with_what_would_be_right() {
    let store = dataset().await;
    array(&store, "g/w", &[3, 2], "int32", &["lat", "band"], json!({}), integers(0..6)).await;
    array(&store, "g/x", &[5], "int32", &["lat"], json!({}), integers(0..5)).await;
    array(&store, "g/two", &[2, 2], "int32", &["c", "c"], json!({}), integers(0..4)).await;
    array(&store, "g/c", &[2], "complex64", &["c"], json!({}), vec![0; 16]).await;
    array(&store, "g/d", &[2], "int32", &["c"], json!({}), integers(0..2)).await;
    let server = Server::of(store);
    for (query, code, says) in [
        ("v?sel.lat=44", "no-such-label", "the nearest are `45.25` and `30`"),
        ("v?sel.lat=nearest::90", "no-such-label", "labels go from `60` to `30`"),
        ("v?sel.lon=-90", "no-such-label", "add `wrap=360`"),
        (
            "v?sel.time=2020-03",
            "no-such-label",
            "labels go from `2020-01-30T00:00:00` to `2020-02-02T00:00:00` by 1 day",
        ),
        ("v?sel.time=2020-02-30", "invalid-request", "the calendar of `time`, `standard`, has no such date"),
        ("v?sel.time=noon", "invalid-request", "such as `2020-01-30T00:00:00`"),
        ("v?sel.lat=north", "invalid-request", "labels of `lat` are numbers"),
        ("v?sel.lat=30,60", "invalid-request", r#"in the body of a `POST`: `{"sel": {"lat": [30, 60]}}`"#),
        ("v?sel.lat=30:60", "invalid-request", "both of them in it: `30..60`"),
        ("v?sel.time=2020-01-30,2020-02-01", "invalid-request", r#"{"time": ["2020-01-30", "2020-02-01"]}"#),
        ("v?sel.time=2020-01-30:2020-02-01", "invalid-request", "`2020-01-30..2020-02-01`"),
        ("v?sel.lat=neerest::3", "invalid-request", "the methods are `nearest`"),
        ("v?sel.lat=", "invalid-request", "it takes a label"),
        ("v?sel.level=3", "invalid-request", "its dimensions are time, lat, lon"),
        ("v?sel.lat=60&sel.lat=30", "invalid-request", "`lat` is selected twice"),
        ("v?sel.lat=60&isel.lat=0", "invalid-request", "`lat` is selected twice"),
        ("v?sel.lat=60&slice=0", "invalid-request", "`slice` cannot be mixed"),
        ("v?sel.lon=10&wrap=0", "invalid-request", "a number above 0"),
        ("v?sel.lat=60&wrap=360", "invalid-request", "`wrap` is for a coordinate that goes around"),
        ("v?sel.lat=300&sel.lon=-90&wrap=360", "no-such-label", "labels go from `60` to `30`"),
        ("v?lat=3", "invalid-request", "`sel.lat=…`"),
        ("w?sel.band=1", "no-coordinate", "with `isel.band`"),
        ("x?sel.lat=60", "invalid-request", "has 5 elements, and its coordinate `/lat` has the shape [3]"),
        ("two?sel.c=1", "invalid-request", "several dimensions of the array are called `c`"),
        ("d?sel.c=1", "invalid-request", "have the type complex64"),
    ] {
        let detail = server.get(&format!("/v1/data/m/g/{query}")).await.refuses(400, code, query);
        assert!(detail.contains(says), "{query}: {detail}");
    }
    let problem = server.get("/v1/data/m/g/v?sel.lat=44").await.json();
    assert_eq!(
        (&problem["dimension"], &problem["first"], &problem["last"]),
        (&json!("lat"), &json!("60"), &json!("30"))
    );
    assert_eq!(problem["nearest"], json!(["45.25", "30"]));
}

#[tokio::test]
async fn a_list_of_texts_and_a_slice_of_them_are_refused_with_their_right_form() {
    let store = dataset().await;
    let names: Vec<u8> = "KBOSKSEA".chars().flat_map(|letter| u32::from(letter).to_le_bytes()).collect();
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [2], "fill_value": "", "dimension_names": ["name"],
        "data_type": { "name": "fixed_length_utf32", "configuration": { "length_bytes": 16 } },
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [2] } },
        "chunk_key_encoding": { "name": "default" },
        "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
    });
    put(&store, "g/name/zarr.json", document.to_string()).await;
    put(&store, "g/name/c/0", names).await;
    array(&store, "g/s", &[2], "int32", &["name"], json!({}), integers(0..2)).await;
    let server = Server::of(store);
    for (query, says) in [
        ("KSEA,KBOS", r#"`{"sel": {"name": ["KSEA", "KBOS"]}}`"#),
        ("KBOS:KSEA", "`KBOS..KSEA`"),
        ("KBOS,KSAE", "no element has this label"),
        ("", "no element has this label"),
    ] {
        let detail = server.get(&format!("/v1/data/m/g/s?sel.name={query}")).await;
        let detail = detail.refuses(400, "no-such-label", query);
        assert!(detail.contains(says), "{query}: {detail}");
    }
}

#[tokio::test]
async fn an_empty_text_is_a_label_and_infinity_is_near_to_nothing() {
    let store = dataset().await;
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [3], "data_type": "string", "fill_value": "", "dimension_names": ["name"],
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [3] } },
        "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "vlen-utf8" }],
    });
    put(&store, "g/name/zarr.json", document.to_string()).await;
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap(), 0, 0, 0], text.as_bytes()].concat();
    let texts = ["KBOS", "", "KSEA"].map(text).concat();
    put(&store, "g/name/c/0", [vec![3, 0, 0, 0], texts].concat()).await;
    array(&store, "g/s", &[3], "int32", &["name"], json!({}), integers(7..10)).await;
    let server = Server::of(store);
    for query in ["sel.name=", "sel.name"] {
        let answer = get(&server, &format!("/v1/data/m/g/s?{query}&format=json")).await;
        assert_eq!(answer.json(), json!(8), "{query}");
    }
    // A blank is another label.
    let blank = server.get("/v1/data/m/g/s?sel.name=%20&format=json").await;
    assert_eq!((blank.status, &blank.json()["code"]), (StatusCode::BAD_REQUEST, &json!("no-such-label")));
    let body = json!({ "sel": { "name": ["KSEA", ""] }, "format": "json" }).to_string();
    let headers = [("content-type", "application/json")];
    let listed = server.request("POST", "/v1/data/m/g/s", &headers, body).await;
    assert_eq!(listed.json(), json!([9, 8]));
    for query in ["sel.lat=nearest::inf", "sel.lat=nearest::-inf", "sel.lon=bfill::-inf&wrap=360"] {
        let detail =
            server.get(&format!("/v1/data/m/g/v?{query}")).await.refuses(400, "no-such-label", query);
        assert!(detail.contains("labels go from"), "{query}: {detail}");
    }
}

#[tokio::test]
async fn a_coordinate_that_is_too_long_is_refused_before_it_is_read() {
    let store = memory();
    let length = (4 << 20) + 1;
    for name in ["v", "x"] {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [length], "data_type": "uint8",
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [length] } },
            "chunk_key_encoding": { "name": "default" }, "fill_value": 0,
            "codecs": [{ "name": "bytes" }], "dimension_names": ["x"],
        });
        put(&store, &format!("{name}/zarr.json"), document.to_string()).await;
    }
    let server = Server::of(store);
    let detail = server.get("/v1/data/m/v?sel.x=1").await.refuses(413, "too-large", "");
    assert!(detail.contains("4194305 labels, more than the 4194304"), "{detail}");
}

#[tokio::test]
async fn a_response_changes_with_the_coordinate_it_depends_on() {
    for caches in [true, false] {
        let store = dataset().await;
        let mut builder = Server::build(Mount::read_only("m", store.clone()));
        if !caches {
            builder.cache = no_caches();
        }
        let server = builder.finish();
        let url = "/v1/data/m/g/v?sel.lat=45.25&format=json";
        let first = get(&server, url).await;
        for _ in 0..3 {
            assert_eq!(get(&server, url).await.body, first.body);
        }
        let tag = first.header("etag").to_owned();
        let again = server.ask(Method::GET, url, &[("if-none-match", &tag)]).await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{caches}");
        // Another label at another place; that of the request is where it was.
        array(&store, "lat", &[3], "float64", &["lat"], json!({}), doubles(&[61.0, 45.25, 30.0])).await;
        let other = server.ask(Method::GET, url, &[("if-none-match", &tag)]).await;
        assert_eq!((other.status, &other.body), (StatusCode::OK, &first.body), "{caches}");
        assert_ne!(other.header("etag"), tag);
        // The label is at another place.
        array(&store, "lat", &[3], "float64", &["lat"], json!({}), doubles(&[61.0, 50.0, 45.25])).await;
        let moved = get(&server, url).await;
        assert_eq!(moved.header("array-selection"), "lat=2");
        assert_eq!(moved.body, get(&server, "/v1/data/m/g/v?isel.lat=2&format=json").await.body);
        // A coordinate beside the array counts before one above it.
        array(&store, "g/lat", &[3], "float64", &["lat"], json!({}), doubles(&[45.25, 0.0, -1.0])).await;
        assert_eq!(get(&server, url).await.header("array-selection"), "lat=0");
        for key in ["g/lat/zarr.json", "g/lat/c/0", "lat/zarr.json", "lat/c/0"] {
            erase(&store, key).await;
        }
        server.get(url).await.refuses(400, "no-coordinate", "");
    }
}

#[tokio::test]
async fn a_coordinate_that_another_program_changes_is_noticed_by_the_next_request() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    let store: SharedStore = Arc::new(LocalStore::open(root, &options).unwrap());
    fill(&store).await;
    let server = Server::of(Arc::clone(&store));
    // Other labels each time, so that no response is sent again, and enough of them for the store to report changes by now.
    let check = async |place: usize, what: &str| {
        for day in ["2020-01-30", "2020-01-31", "2020-02-01", "2020-02-02"] {
            for lon in ["0", "90", "180", "270"] {
                let url = format!("/v1/data/m/g/v?sel.lat=45.25&sel.time={day}&sel.lon={lon}");
                let answer = get(&server, &url).await;
                let selection = answer.header("array-selection");
                assert!(selection.contains(&format!("lat={place},")), "{what}: {selection}");
                let by_place = url.replace("sel.lat=45.25", &format!("isel.lat={place}"));
                assert_eq!(answer.body, get(&server, &by_place).await.body, "{what}");
            }
        }
    };
    let above = root.join("lat/c/0");
    for round in 0..3 {
        check(1, "as it was").await;
        fs::write(&above, doubles(&[61.0, 50.0, 45.25])).unwrap();
        check(2, "written in place").await;
        fs::write(root.join("new"), doubles(&[45.25, 50.0, 40.0])).unwrap();
        fs::rename(root.join("new"), &above).unwrap();
        check(0, "replaced").await;
        array(&store, "g/lat", &[3], "float64", &["lat"], json!({}), doubles(&[0.0, 45.25, 1.0])).await;
        check(1, "another one beside the array").await;
        fs::rename(root.join("g/lat"), root.join(format!("away{round}"))).unwrap();
        check(0, "without that").await;
        fs::remove_file(&above).unwrap();
        let url = "/v1/data/m/g/v?sel.lat=45.25";
        server.get(url).await.refuses(400, "no-such-label", "its labels are fill values");
        let document = fs::read_to_string(root.join("lat/zarr.json")).unwrap();
        fs::write(root.join("lat/zarr.json"), document.replace("\"shape\":[3]", "\"shape\":[2]")).unwrap();
        assert!(server.get(url).await.refuses(400, "invalid-request", "").contains("shape [2]"));
        fs::write(root.join("lat/zarr.json"), document).unwrap();
        fs::write(&above, doubles(&[60.0, 45.25, 30.0])).unwrap();
    }
}

#[tokio::test]
async fn values_are_decoded_by_their_attributes_on_request() {
    let server = Server::of(dataset().await);
    let url = "/v1/data/m/g/v?sel.lat=60&sel.time=2020-01-30";
    assert_eq!(get(&server, &format!("{url}&format=json")).await.json(), json!([0, 1, 2, 3]));
    let decoded = get(&server, &format!("{url}&format=json&decode=cf")).await;
    assert_eq!(decoded.json(), json!([100.0, 100.5, 101.0, 101.5]));
    assert_eq!(decoded.header("array-data-type"), "float64");
    let bytes = get(&server, &format!("{url}&decode=cf")).await;
    assert_eq!(bytes.body, doubles(&[100.0, 100.5, 101.0, 101.5]));
    let big = get(&server, &format!("{url}&decode=cf&endian=big")).await;
    assert_eq!(big.body, [100.0_f64, 100.5, 101.0, 101.5].map(f64::to_be_bytes).concat());
    let part = server.ask(Method::GET, &format!("{url}&decode=cf"), &[("range", "bytes=5-17")]).await;
    assert_eq!((part.status, &part.body[..]), (StatusCode::PARTIAL_CONTENT, &bytes.body[5..18]));
    let times = get(&server, "/v1/data/m/g/time?decode=cf&format=json&isel.time=1:3").await;
    assert_eq!(times.json(), json!(["2020-01-31T00:00:00.000000", "2020-02-01T00:00:00.000000"]));
    for query in
        ["decode=cf&reduce.lat=mean", "decode=cf&downsample=1,1,1", "decode=xml", "decode=cf&fields=a"]
    {
        server.get(&format!("/v1/data/m/g/v?{query}")).await.refuses(400, "invalid-request", query);
    }
}

#[tokio::test]
async fn errors_repeat_no_more_of_long_names_and_labels_than_people_read() {
    let store = dataset().await;
    let (long, bound) = ("x".repeat(2 << 20), 64 << 10);
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [1], "data_type": "string", "fill_value": "",
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [1] } },
        "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "vlen-utf8" }], "dimension_names": ["s"],
    });
    put(&store, "g/s/zarr.json", document.to_string()).await;
    let length = u32::try_from(long.len()).unwrap().to_le_bytes();
    put(&store, "g/s/c/0", [&1_u32.to_le_bytes()[..], &length[..], long.as_bytes()].concat()).await;
    array(&store, "g/of_s", &[1], "int32", &["s"], json!({}), integers([1])).await;
    array(&store, "g/named", &[1], "int32", &[&long], json!({}), integers([1])).await;
    let server = Server::of(store);
    for (url, code) in [
        ("/v1/data/m/g/of_s?sel.s=zz", "no-such-label"),
        ("/v1/data/m/g/named?isel.other=1", "invalid-request"),
    ] {
        let answer = server.get(url).await;
        assert!(answer.body.len() < bound, "{url}: {} bytes", answer.body.len());
        let detail = answer.refuses(400, code, url);
        assert!(detail.ends_with('…'), "{url}");
    }
}

//! The document of a dataset: what it says, what it is made from, and for whom.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::access::{access, grant, known, token};
use crate::support::counting::Counting;
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

/// An array of float64 along named dimensions, in chunks of two along the first.
fn array(shape: &[u64], names: &Value, attributes: &Value) -> String {
    let mut chunk = shape.to_vec();
    chunk.iter_mut().take(1).for_each(|edge| *edge = 2);
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float64", "fill_value": 0,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunk } },
        "chunk_key_encoding": { "name": "default" }, "dimension_names": names, "attributes": attributes,
        "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
    })
    .to_string()
}

async fn coordinate(store: &SharedStore, path: &str, values: &[f64], attributes: Value) {
    let name = path.rsplit('/').next().unwrap();
    put(store, &format!("{path}/zarr.json"), array(&[values.len() as u64], &json!([name]), &attributes))
        .await;
    for (at, chunk) in values.chunks(2).enumerate() {
        let mut padded = chunk.to_vec();
        padded.resize(2, 0.0);
        let bytes: Vec<u8> = padded.iter().flat_map(|value| value.to_le_bytes()).collect();
        put(store, &format!("{path}/c/{at}"), bytes).await;
    }
}

/// A group `d` with two variables over three coordinates, and in it the group `deep` with one over two of them.
async fn dataset() -> SharedStore {
    let store = memory();
    let group = json!({ "zarr_format": 3, "node_type": "group", "attributes": { "Conventions": "CF-1.8" } });
    put(&store, "d/zarr.json", group.to_string()).await;
    put(&store, "d/deep/zarr.json", group.to_string()).await;
    coordinate(&store, "d/time", &[0.0, 1.0, 2.0], json!({ "units": "days since 2000-01-30" })).await;
    coordinate(&store, "d/lat", &[60.0, 40.0, 20.0], json!({ "units": "degrees_north" })).await;
    coordinate(&store, "d/lon", &[-10.0, 0.0, 15.0], json!({ "units": "degrees_east" })).await;
    let three = json!(["time", "lat", "lon"]);
    put(&store, "d/air/zarr.json", array(&[3, 3, 3], &three, &json!({ "units": "K" }))).await;
    put(&store, "d/rain/zarr.json", array(&[3, 3, 3], &three, &json!({}))).await;
    put(&store, "d/deep/land/zarr.json", array(&[3, 3], &json!(["lat", "lon"]), &json!({}))).await;
    store
}

async fn described(server: &Server, url: &str) -> Value {
    let answer = server.get(&format!("/v1/nodes/m/{url}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
    answer.json()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_array_of_an_unknown_type_is_left_out_and_hides_none_beside_it() {
    let store = dataset().await;
    let odd = array(&[3], &json!(["time"]), &json!({})).replace("float64", "quaternion");
    put(&store, "d/odd/zarr.json", odd).await;
    let server = Server::of(store);
    let found = described(&server, "d?dataset").await;
    assert_eq!(names(&found["data_variables"]), ["air", "rain"]);
    assert_eq!(names(&found["omitted"]), ["odd"]);
    assert!(found["omitted"][0]["reason"].as_str().unwrap().contains("quaternion"), "{found}");
    let file = server.get("/v1/data/m/d?format=nc").await;
    assert_eq!(file.status, StatusCode::OK, "{:?}", file.body);
    assert!(file.header("variables-omitted").contains("odd"), "{file:?}");
    for url in ["/dap/m/d.dds", "/dap/m/d.dmr"] {
        assert_eq!(server.get(url).await.status, StatusCode::OK, "{url}");
    }
    server.get("/v1/data/m/d?format=nc&vars=odd").await.refuses(501, "unsupported", "it is named");
}

#[tokio::test]
async fn a_dataset_has_its_dimensions_coordinates_and_variables() {
    let server = Server::of(dataset().await);
    let found = described(&server, "d?dataset").await;
    let size = |name: &str| json!({ "name": name, "size": 3 });
    let sizes: Vec<Value> = found["dimensions"].as_array().unwrap().clone();
    for name in ["time", "lat", "lon"] {
        assert!(sizes.contains(&size(name)), "{sizes:?}");
    }
    assert_eq!(sizes.len(), 3);
    let coordinates = found["coordinates"].as_array().unwrap();
    let one = |name: &str| coordinates.iter().find(|one| one["name"] == name).unwrap().clone();
    let expected = json!({
        "name": "time", "path": "d/time", "dimensions": ["time"], "shape": [3], "data_type": "float64",
        "units": "days since 2000-01-30", "long_name": null, "standard_name": null, "is_dimension": true,
        "axis": "T", "calendar": null, "first": "2000-01-30T00:00:00", "last": "2000-02-01T00:00:00",
        "step": "1 day", "order": "ascending",
    });
    assert_eq!(one("time"), expected);
    let lat = one("lat");
    assert_eq!([&lat["first"], &lat["last"], &lat["step"]], [&json!(60.0), &json!(20.0), &json!(-20.0)]);
    assert_eq!((&lat["order"], &one("lon")["step"]), (&json!("descending"), &Value::Null));
    assert_eq!(names(&found["data_variables"]), ["air", "rain"]);
    let grid =
        json!({ "dimensions": ["time", "lat", "lon"], "shape": [3, 3, 3], "variables": ["air", "rain"] });
    assert_eq!(found["grids"], json!([grid]));
    assert_eq!(found["time_range"], json!(["2000-01-30T00:00:00Z", "2000-02-01T00:00:00Z"]));
    assert_eq!(
        (&found["bbox"], &found["crs"]["code"]),
        (&json!([-10.0, 20.0, 15.0, 60.0]), &json!("EPSG:4326"))
    );
    for url in ["d?dataset&vars=rain", "d/rain?dataset"] {
        let found = described(&server, url).await;
        assert_eq!((names(&found["data_variables"]), names(&found["coordinates"]).len()), (vec!["rain"], 3));
    }
}

#[tokio::test]
async fn a_dataset_is_cached_until_a_coordinate_changes() {
    let store = dataset().await;
    let counting = Counting::new(store.clone());
    let server = Server::of(std::sync::Arc::clone(&counting) as SharedStore);
    let first = server.get("/v1/nodes/m/d?dataset").await;
    // The two chunks of each coordinate, and no chunk of another array.
    assert_eq!(counting.ranges().len(), 6);
    let second = server.get("/v1/nodes/m/d?dataset").await;
    assert_eq!((counting.ranges().len(), &first.body), (6, &second.body));
    let headers = [("if-none-match", first.header("etag"))];
    let same = server.ask(Method::GET, "/v1/nodes/m/d?dataset", &headers).await;
    assert_eq!(same.status, StatusCode::NOT_MODIFIED);
    let bytes: Vec<u8> = [9.0_f64, 0.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    put(&store, "d/time/c/1", bytes).await;
    let changed = server.ask(Method::GET, "/v1/nodes/m/d?dataset", &headers).await;
    assert_eq!(changed.status, StatusCode::OK);
    assert_eq!(changed.json()["time_range"][1], "2000-02-08T00:00:00Z");
}

#[tokio::test]
async fn what_the_caller_may_not_read_is_absent_from_a_dataset() {
    let server = Server::build(Mount::read_only("m", dataset().await)).finish();
    let some = json!([grant("m", "d/deep", &["read", "list"]), grant("m", "d/lat", &["read"])]);
    let tokens = json!({
        "some": known("some", some), "all": known("all", json!([grant("m", "", &["read", "list"])])),
    });
    server.set_access(access(json!({ "tokens": tokens }), &[], &std::sync::Arc::default()));
    // In either order, so that a cache does not mix them up.
    for holder in ["some", "all", "some"] {
        let bearer = format!("Bearer {}", token(holder));
        let answer =
            server.ask(Method::GET, "/v1/nodes/m/d/deep?dataset", &[("authorization", &bearer)]).await;
        let found = answer.json();
        let is_all = holder == "all";
        let expected = if is_all { vec!["lat", "lon"] } else { vec!["lat"] };
        assert_eq!(names(&found["coordinates"]), expected, "{holder}: {found}");
        assert_eq!(found["bbox"].is_null(), !is_all, "{holder}");
    }
}

#[tokio::test]
async fn a_coordinate_that_cannot_be_read_has_no_ends_and_is_read_again() {
    let store = dataset().await;
    put(&store, "d/lon/c/0", "x").await;
    let server = Server::of(store.clone());
    let lon = |found: &Value| {
        let coordinates = found["coordinates"].as_array().unwrap();
        coordinates.iter().find(|one| one["name"] == "lon").unwrap()["first"].clone()
    };
    assert_eq!(lon(&described(&server, "d?dataset").await), Value::Null);
    coordinate(&store, "d/lon", &[1.0, 2.0, 3.0], json!({ "units": "degrees_east" })).await;
    assert_eq!(lon(&described(&server, "d?dataset").await), json!(1.0));
}

#[tokio::test]
async fn names_that_are_of_no_dataset_are_refused() {
    let server = Server::of(dataset().await);
    for (url, status, expected) in [
        ("d?vars=air", 400, "`vars` names the arrays of a dataset"),
        ("d?dataset&vars=none", 404, "no array `none`"),
        ("d/air?dataset&vars=air", 400, "this is an array"),
        ("none?dataset", 404, ""),
    ] {
        let answer = server.get(&format!("/v1/nodes/m/{url}")).await;
        assert_eq!(answer.status.as_u16(), status, "{url}");
        assert!(answer.json()["detail"].as_str().unwrap_or_default().contains(expected), "{url}");
    }
    assert!(described(&server, "d?dataset=false").await["node_type"] == "group");
}

#[tokio::test]
async fn names_in_attributes_are_sought_up_to_a_bound() {
    let store = dataset().await;
    let words = |from: u32| (from..from + 800).map(|at| format!("{at:x}")).collect::<Vec<_>>().join(" ");
    for at in 0..2 {
        let from = 0x1000 + at * 3000;
        let attributes = json!({ "coordinates": words(from), "bounds": words(from + 1000), "grid_mapping": words(from + 2000) });
        put(&store, &format!("d/air{at}/zarr.json"), array(&[3], &json!(["time"]), &attributes)).await;
    }
    let server = Server::of(store);
    for url in ["/v1/nodes/m/d?dataset", "/v1/data/m/d?format=nc", "/dap/m/d.dds"] {
        let refused = server.get(url).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{url}: {:?}", refused.body);
        assert!(String::from_utf8_lossy(&refused.body).contains("at most 4000 are sought"), "{url}");
    }
    let some = server.get("/v1/data/m/d?format=nc&vars=air0,rain").await;
    assert_eq!(some.status, StatusCode::OK, "{:?}", some.body);
    server.get("/v1/data/m/d?format=nc&vars=rian").await.refuses(404, "not-found", "a misspelt name");
    let detail = server.get("/v1/data/m/d?format=nc&vars=rian").await.json()["detail"].to_string();
    assert!(detail.contains("did you mean `rain`?"), "{detail}");
}

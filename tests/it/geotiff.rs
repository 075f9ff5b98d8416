//! GeoTIFF files: the elements at their places in the file, and what has no place on a map. GDAL and rasterio read files in
//! `tests/clients`.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use serde_json::json;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::access::{access, grant, known, token};
use crate::labels::{array, doubles, integers};
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

/// A group with `v` over 2 times, 3 latitudes to the north and 4 longitudes, which counts from 0.
async fn climate() -> SharedStore {
    let store = memory();
    put(&store, "g/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    array(&store, "g/v", &[2, 3, 4], "int32", &["time", "lat", "lon"], json!({}), integers(0..24)).await;
    let north = json!({ "units": "degrees_north" });
    array(&store, "g/lat", &[3], "float64", &["lat"], north, doubles(&[30.0, 40.0, 50.0])).await;
    array(
        &store,
        "g/lon",
        &[4],
        "int32",
        &["lon"],
        json!({ "units": "degrees_east" }),
        integers([0, 5, 10, 15]),
    )
    .await;
    array(&store, "g/time", &[2], "int32", &["time"], json!({}), integers([7, 8])).await;
    array(&store, "g/odd", &[3], "float64", &["odd"], json!({ "axis": "Y" }), doubles(&[1.0, 2.0, 4.0]))
        .await;
    array(&store, "g/w", &[3, 4], "int32", &["odd", "lon"], json!({}), integers(0..12)).await;
    array(&store, "g/turned", &[4, 3], "int32", &["lon", "lat"], json!({}), integers(0..12)).await;
    array(&store, "g/bare", &[3, 4], "int32", &["lat", "column"], json!({}), integers(0..12)).await;
    array(&store, "g/complex", &[3, 4], "complex64", &["lat", "lon"], json!({}), vec![0; 96]).await;
    store
}

/// The elements at the end of a file.
fn numbers(file: &[u8], count: usize) -> Vec<i32> {
    let elements = &file[file.len() - 4 * count..];
    elements.as_chunks::<4>().0.iter().map(|bytes| i32::from_be_bytes(*bytes)).collect()
}

#[tokio::test]
async fn rows_go_from_north_to_south_whatever_is_selected() {
    let server = Server::of(climate().await);
    for (query, expected) in [
        ("sel.time=8", vec![20, 21, 22, 23, 16, 17, 18, 19, 12, 13, 14, 15]),
        ("isel.time=0&isel.lat=::-1", vec![8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3]),
        ("isel.time=0&isel.lon=::-2", vec![9, 11, 5, 7, 1, 3]),
        ("isel.time=0&sel.lat=40..50&isel.lon=1:2", vec![9, 5]),
    ] {
        let answer = server.get(&format!("/v1/data/m/g/v?format=tiff&{query}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {:?}", answer.body);
        assert_eq!(answer.header("content-type"), "image/tiff");
        assert!(answer.header("content-disposition").contains("v.tif"), "{query}");
        assert!(answer.body.starts_with(b"MM\0\x2a"), "{query}");
        assert_eq!(numbers(&answer.body, expected.len()), expected, "{query}");
    }
}

#[tokio::test]
async fn any_range_is_that_part_of_the_file_and_a_known_tag_is_a_304() {
    let store = climate().await;
    let server = Server::of(Arc::clone(&store));
    let url = "/v1/data/m/g/v?format=tiff&isel.time=1";
    let whole = server.get(url).await;
    assert_eq!(whole.header("content-length"), whole.body.len().to_string());
    let head = server.ask(Method::HEAD, url, &[]).await;
    assert_eq!(head.header("content-length"), whole.header("content-length"));
    assert_eq!(head.header("etag"), whole.header("etag"));
    for start in (0..whole.body.len()).step_by(13) {
        let end = (start + 29).min(whole.body.len());
        let part = server.ask(Method::GET, url, &[("range", &format!("bytes={start}-{}", end - 1))]).await;
        assert_eq!((part.status, &part.body[..]), (StatusCode::PARTIAL_CONTENT, &whole.body[start..end]));
    }
    let same = server.ask(Method::GET, url, &[("if-none-match", whole.header("etag"))]).await;
    assert_eq!(same.status, StatusCode::NOT_MODIFIED);
    let other = server.ask(Method::GET, url, &[("if-match", "\"other\"")]).await;
    other.refuses(412, "precondition-failed", "another version");
    // The place is of the coordinate, whose change is one of the file.
    put(&store, "g/lon/c/0", integers([10, 15, 20, 25])).await;
    let moved = Server::of(store).get(url).await;
    assert_ne!(moved.header("etag"), whole.header("etag"));
    assert_eq!(moved.body.len(), whole.body.len());
    assert_ne!(moved.body, whole.body);
}

#[tokio::test]
async fn what_is_no_plane_with_a_place_is_refused_with_what_would_be_right() {
    let server = Server::of(climate().await);
    for (query, says) in [
        ("g/v?format=tiff", "the selection has 3 dimensions"),
        ("g/v?format=tiff&slice=0,0", "the selection has 1 dimensions"),
        ("g?format=tiff", "this is a group"),
        ("g/w?format=tiff", "labels of `odd` are not equally far apart"),
        ("g/turned?format=tiff", "`lon` is not along y"),
        ("g/bare?format=tiff", "the dimension `column` has no coordinate"),
        ("g/complex?format=tiff", "complex64"),
        ("g/v?format=tiff&isel.time=0&isel.lat=0:0", "or there is none"),
        ("g/v?format=tiff&isel.time=0&downsample.lat=2", "leave out `downsample`"),
        ("g/v?format=tiff&isel.time=0&vars=v", "`vars` names variables of a group"),
    ] {
        let detail = server.get(&format!("/v1/data/m/{query}")).await.refuses(400, "invalid-request", query);
        assert!(detail.contains(says), "{query}: {detail}");
    }
    let part = server.get("/v1/data/m/g/w?format=tiff&isel.odd=:2").await;
    assert_eq!(numbers(&part.body, 8), [4, 5, 6, 7, 0, 1, 2, 3]);
    server.get("/v1/chunk/m/g/v/c/0/0/0?format=tiff").await.refuses(400, "invalid-request", "a chunk");
}

#[tokio::test]
async fn a_plane_over_the_limits_says_what_fits_and_a_hidden_coordinate_is_as_if_it_was_not_there() {
    let mut server = Server::build(Mount::read_only("m", climate().await));
    server.read.max_response_size = 64;
    let problem = server.finish().get("/v1/data/m/g/v?format=tiff&isel.time=1").await;
    problem.refuses(413, "too-large", "48 bytes and two coordinates");
    assert!(problem.json()["suggested_slices"].as_array().is_some_and(|slices| !slices.is_empty()));

    let server = Server::build(Mount::read_only("m", climate().await)).finish();
    let tokens = json!({
        "part": known("part", json!([grant("m", "g/v", &["read"]), grant("m", "g/lat", &["read"])])),
        "all": known("all", json!([grant("m", "", &["read"])])),
    });
    server.set_access(access(json!({ "tokens": tokens }), &[], &Arc::default()));
    let url = "/v1/data/m/g/v?format=tiff&isel.time=1";
    for (holder, status) in [("part", 400), ("all", 200), ("part", 400)] {
        let bearer = format!("Bearer {}", token(holder));
        let answer = server.ask(Method::GET, url, &[("authorization", &bearer)]).await;
        assert_eq!(answer.status.as_u16(), status, "{holder}");
        if status == 400 {
            let detail = answer.refuses(400, "invalid-request", holder);
            assert!(detail.contains("the dimension `lon` has no coordinate"), "{detail}");
        }
    }
}

//! GeoTIFF files: the elements at their places in the file, and what has no place on a map. GDAL and rasterio read files in
//! `tests/clients`.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use zarrd::http::Peer;
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
async fn a_decoded_plane_has_the_values_that_attributes_describe() {
    let store = climate().await;
    let packed = json!({ "scale_factor": 0.5, "add_offset": -10.0, "_FillValue": 3 });
    array(&store, "g/p", &[3, 4], "int32", &["lat", "lon"], packed, integers(0..12)).await;
    let server = Server::of(store);
    let stored = server.get("/v1/data/m/g/p?format=tiff").await;
    assert_eq!(numbers(&stored.body, 12), [8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3]);
    assert!(String::from_utf8_lossy(&stored.body).contains("SCALE"), "GDAL unpacks them");
    let decoded = server.get("/v1/data/m/g/p?format=tiff&decode=cf").await;
    assert_eq!(decoded.status, StatusCode::OK, "{:?}", decoded.body);
    assert_ne!(decoded.header("etag"), stored.header("etag"));
    let elements = &decoded.body[decoded.body.len() - 8 * 12..];
    let found: Vec<f64> =
        elements.as_chunks::<8>().0.iter().map(|bytes| f64::from_be_bytes(*bytes)).collect();
    let expected = [-6.0, -5.5, -5.0, -4.5, -8.0, -7.5, -7.0, -6.5, -10.0, -9.5, -9.0];
    assert_eq!(found[..11], expected);
    assert!(found[11].is_nan(), "{found:?}");
    let text = String::from_utf8_lossy(&decoded.body).to_lowercase();
    assert!(
        !text.contains("scale") && text.contains("nan"),
        "they are unpacked, and NaN marks what is missing"
    );
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
        ("g/v?format=tiff&slice=0,0", "the selection has 1 dimension: a plane has two, rows and columns"),
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

/// Stores a group `name` with `v` over these rows and columns.
async fn plane(store: &SharedStore, name: &str, attributes: Value, [y, x]: [(&str, &[f64], Value); 2]) {
    let (rows, columns) = (y.1.len() as u64, x.1.len() as u64);
    put(store, &format!("{name}/zarr.json"), r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    for (dimension, labels, of_labels) in [&y, &x] {
        let (path, length) = (format!("{name}/{dimension}"), labels.len() as u64);
        array(store, &path, &[length], "float64", &[*dimension], of_labels.clone(), doubles(labels)).await;
    }
    let elements = vec![0; usize::try_from(rows * columns).unwrap()];
    array(store, &format!("{name}/v"), &[rows, columns], "int8", &[y.0, x.0], attributes, elements).await;
}

fn degrees() -> [(&'static str, &'static [f64], Value); 2] {
    [
        ("lat", &[50.0, 40.0, 30.0], json!({ "units": "degrees_north" })),
        ("lon", &[0.0, 10.0], json!({ "units": "degrees_east" })),
    ]
}

/// The values of a tag of 16 bits, in a file in the shorter form.
fn shorts(file: &[u8], wanted: u16) -> Vec<u16> {
    let number = |bytes: &[u8]| bytes.iter().fold(0_usize, |number, byte| (number << 8) | usize::from(*byte));
    let entry = file[10..].chunks(12).find(|entry| number(&entry[..2]) == usize::from(wanted)).unwrap();
    let count = number(&entry[4..8]);
    let place = number(&entry[8..12]);
    let values = if count <= 2 { &entry[8..8 + 2 * count] } else { &file[place..place + 2 * count] };
    values.as_chunks::<2>().0.iter().map(|bytes| u16::from_be_bytes(*bytes)).collect()
}

/// The model, and the code of the reference system of each kind.
fn keys(file: &[u8]) -> Vec<(u16, u16)> {
    let keys = shorts(file, 34_735);
    let keys = keys[4..].as_chunks::<4>().0.iter().map(|[key, .., value]| (*key, *value));
    keys.filter(|(key, _)| [1024, 2048, 3072].contains(key)).collect()
}

#[tokio::test]
async fn a_coordinate_or_grid_mapping_that_cannot_be_used_is_an_error_and_not_absent() {
    let store = climate().await;
    // Another one, in the group above.
    array(&store, "lat", &[3], "float64", &["lat"], json!({}), doubles(&[1.0, 2.0, 3.0])).await;
    put(&store, "g/lat/zarr.json", "{").await;
    let mapped = json!({ "grid_mapping": "crs" });
    plane(&store, "p", mapped, degrees()).await;
    put(&store, "p/crs/zarr.json", "{").await;
    // One of unknown codecs.
    plane(&store, "u", json!({}), degrees()).await;
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [3], "data_type": "float64", "fill_value": 0,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [3] } },
        "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "unknown" }], "dimension_names": ["lat"],
    });
    put(&store, "u/lat/zarr.json", document.to_string()).await;
    let server = Server::of(store);
    for (url, broken) in [
        ("g/v?format=tiff&isel.time=0", "g/lat"),
        ("g/v?format=nc&isel.time=0", "g/lat"),
        ("g?format=nc&vars=v", "g/lat"),
        ("g/v?format=csv&coords=1&isel.time=0", "g/lat"),
        ("g/v?sel.lat=1", "g/lat"),
        ("p/v?format=tiff", "p/crs"),
        ("p/v?format=nc", "p/crs"),
        ("u/v?format=tiff", "u/lat"),
        ("u/v?format=nc", "u/lat"),
        ("u/v?sel.lat=1", "u/lat"),
    ] {
        let answer = server.get(&format!("/v1/data/m/{url}")).await;
        let broken = server.get(&format!("/v1/data/m/{broken}")).await;
        assert!(!broken.status.is_success(), "{url}");
        assert_eq!(
            (answer.status, answer.code()),
            (broken.status, broken.code()),
            "{url}: {:?}",
            answer.body
        );
    }
    // Of a whole group, what cannot be used is left out, and named.
    for (url, omitted) in [("g?format=nc", "lat"), ("p?format=nc", "crs"), ("u?format=nc", "lat")] {
        let whole = server.get(&format!("/v1/data/m/{url}")).await;
        assert_eq!(whole.status, StatusCode::OK, "{url}: {:?}", whole.body);
        assert!(whole.header("variables-omitted").contains(omitted), "{url}");
    }
}

#[tokio::test]
async fn a_reference_system_is_written_where_it_fits_its_coordinates_and_refused_where_it_does_not() {
    let metres = |units: &str| {
        [
            ("y", &[50.0, 40.0][..], json!({ "units": units, "axis": "Y" })),
            ("x", &[0.0, 10.0][..], json!({ "units": units, "axis": "X" })),
        ]
    };
    let bare = || [("y", &[50.0, 40.0][..], json!({})), ("x", &[0.0, 10.0][..], json!({}))];
    let named = || [("lat", &[50.0, 40.0][..], json!({})), ("lon", &[0.0, 10.0][..], json!({}))];
    let crs = |attributes: Value| (json!({ "grid_mapping": "crs" }), Some(attributes));
    let wkt = |code: u16| json!({ "crs_wkt": format!("PROJCS[\"x\",AUTHORITY[\"EPSG\",\"{code}\"]]") });
    let geographic = |code| Ok(vec![(1024, 2), (2048, code)]);
    let projected = |code| Ok(vec![(1024, 1), (3072, code)]);
    let mars = json!({ "grid_mapping_name": "latitude_longitude", "semi_major_axis": 3_396_190.0, "inverse_flattening": 169.9 });
    let rotated =
        json!({ "grid_mapping_name": "rotated_latitude_longitude", "grid_north_pole_latitude": 39.25 });
    let cases = [
        ((json!({}), None), degrees(), geographic(4326)),
        ((json!({}), None), metres("m"), Ok(vec![])),
        (crs(json!({ "epsg_code": 4267 })), degrees(), geographic(4267)),
        (crs(json!({ "epsg_code": 4326 })), bare(), geographic(4326)),
        (crs(json!({ "epsg_code": 32633 })), bare(), projected(32_633)),
        (crs(wkt(32_633)), metres("m"), projected(32_633)),
        (crs(wkt(2263)), metres("US_survey_foot"), projected(2263)),
        ((json!({ "proj:code": "EPSG:3857" }), None), metres("metres"), projected(3857)),
        ((json!({ "crs": "epsg:32633" }), None), metres("m"), projected(32_633)),
        // User-defined, with the ellipsoid.
        (crs(mars), degrees(), geographic(32_767)),
        (crs(rotated), named(), Err("rotated_latitude_longitude")),
        (crs(wkt(32_633)), degrees(), Err("EPSG:32633")),
        (crs(wkt(2263)), metres("m"), Err("EPSG:2263")),
        (crs(json!({ "epsg_code": 4326 })), metres("m"), Err("EPSG:4326")),
        (crs(json!({ "epsg_code": 4978 })), degrees(), Err("EPSG:4978")),
        (crs(wkt(32_633)), metres("km"), Err("`km`")),
        (crs(json!({ "epsg_code": 0 })), metres("m"), Err("EPSG:0")),
        (crs(json!({ "epsg_code": 32767 })), metres("m"), Err("EPSG:32767")),
        (crs(json!({ "epsg_code": 102_100 })), metres("m"), Err("EPSG:102100")),
        (crs(json!({ "crs_wkt": "x".repeat(100_000) })), degrees(), Err("grid mapping `crs`")),
        (crs(json!({ "crs_wkt": ["a"] })), degrees(), Err("grid mapping `crs`")),
        ((json!({ "grid_mapping": "gone" }), None), degrees(), Err("grid mapping `gone`")),
        ((json!({ "crs": { "a": 1 } }), None), degrees(), Err("attribute `crs`")),
    ];
    let store = memory();
    for (at, ((attributes, mapping), axes, expected)) in cases.into_iter().enumerate() {
        let said = format!("{attributes} {mapping:?} {axes:?}");
        plane(&store, &format!("g{at}"), attributes, axes).await;
        if let Some(mapping) = mapping {
            array(&store, &format!("g{at}/crs"), &[], "int32", &[], mapping, vec![0; 4]).await;
        }
        let answer = Server::of(Arc::clone(&store)).get(&format!("/v1/data/m/g{at}/v?format=tiff")).await;
        match expected {
            Ok(expected) => {
                assert_eq!(answer.status, StatusCode::OK, "{said}: {:?}", answer.body);
                assert_eq!(keys(&answer.body), expected, "{said}");
            }
            Err(says) => {
                let detail = answer.refuses(400, "invalid-request", &said);
                assert!(detail.contains(says) && detail.contains("`format=nc`"), "{said}: {detail}");
            }
        }
    }
}

#[tokio::test]
async fn a_reference_system_that_the_group_declares_is_that_of_its_arrays() {
    let store = memory();
    let group = |code: &str| {
        json!({ "zarr_format": 3, "node_type": "group", "attributes": { "proj:code": code } }).to_string()
    };
    plane(&store, "g", json!({}), degrees()).await;
    put(&store, "g/zarr.json", group("EPSG:4267")).await;
    let server = Server::of(Arc::clone(&store));
    let first = server.get("/v1/data/m/g/v?format=tiff").await;
    assert_eq!(keys(&first.body), [(1024, 2), (2048, 4267)]);
    put(&store, "g/zarr.json", group("IAU_2015:49900")).await;
    let refused = Server::of(store).get("/v1/data/m/g/v?format=tiff").await;
    assert!(refused.refuses(400, "invalid-request", "Mars").contains("IAU_2015:49900"));
}

#[tokio::test]
async fn a_plane_is_charged_for_its_strips_and_not_for_its_rows() {
    const LONG: u32 = 400_000;
    let labels = |count: u32| -> Vec<f64> { (0..count).map(|at| 80.0 - f64::from(at) / 8192.0).collect() };
    let store = memory();
    for (name, rows, columns) in [("tall", LONG, 2), ("wide", 2, LONG)] {
        let (lat, lon) = (labels(rows), labels(columns));
        let [(_, _, north), (_, _, east)] = degrees();
        plane(&store, name, json!({}), [("lat", &lat, north), ("lon", &lon, east)]).await;
    }
    let server = Server::of(store);
    let mut held = Vec::new();
    for name in ["tall", "wide"] {
        let before = server.in_flight_bytes();
        let request = Request::get(format!("/v1/data/m/{name}/v?format=tiff")).body(Body::empty()).unwrap();
        let answer = server.site().handle(request, Peer::LOOPBACK).await;
        assert_eq!(answer.status(), StatusCode::OK);
        held.push(server.in_flight_bytes() - before);
    }
    assert!(held[0] <= held[1] + (64 << 10), "{held:?}");
}

#[tokio::test]
async fn numbers_of_unsigned_are_those_that_cf_reads() {
    let store = memory();
    let attributes = json!({ "_Unsigned": "true", "_FillValue": -1, "scale_factor": "abc" });
    plane(&store, "g", attributes, degrees()).await;
    let answer = Server::of(store).get("/v1/data/m/g/v?format=tiff").await;
    assert_eq!(shorts(&answer.body, 339), [1], "unsigned");
    let has = |text: &[u8]| answer.body.windows(text.len()).any(|part| part == text);
    assert!(has(b"255\0"), "the missing value");
    assert!(!has(b"SCALE"), "a scale that is no number");
}

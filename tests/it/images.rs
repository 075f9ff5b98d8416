//! Pictures and tiles: what they cost, who may have them, and that their parts fit together.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::json;
use zarrd::array::ReadLimits;
use zarrd::http::Peer;
use zarrd::services::Mount;

use crate::support::counting::Counting;
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Answer, Server, put};

/// Red, green, blue and opacity of each pixel, and the width.
fn pixels(answer: &Answer) -> (Vec<[u8; 4]>, usize) {
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "image/png"), "{answer:?}");
    let mut decoder = png::Decoder::new(std::io::Cursor::new(&answer.body));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::ALPHA);
    let mut reader = decoder.read_info().unwrap();
    let mut data = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut data).unwrap();
    let pixels = match info.color_type {
        png::ColorType::Rgba => data.as_chunks::<4>().0.to_vec(),
        png::ColorType::GrayscaleAlpha => {
            data.as_chunks::<2>().0.iter().map(|&[gray, opacity]| [gray, gray, gray, opacity]).collect()
        }
        other => panic!("{other:?}"),
    };
    (pixels, info.width as usize)
}

/// An array of unsigned bytes whose element in row `r` and column `c` is `(7 r + 3 c) % 256`, in chunks of 64 by 64.
async fn server_of(shape: [usize; 2]) -> Server {
    let store = memory();
    put(&store, "a/zarr.json", document(&shape, "uint8", 64).to_string()).await;
    let [rows, columns] = shape;
    for chunk_row in 0..rows.div_ceil(64) {
        for chunk_column in 0..columns.div_ceil(64) {
            let element = |at: usize| number(chunk_row * 64 + at / 64, chunk_column * 64 + at % 64);
            let chunk: Vec<u8> = (0..64 * 64).map(element).collect();
            put(&store, &format!("a/c/{chunk_row}/{chunk_column}"), chunk).await;
        }
    }
    Server::of(store)
}

fn number(row: usize, column: usize) -> u8 {
    u8::try_from((7 * row + 3 * column) % 256).unwrap()
}

fn document(shape: &[usize], data_type: &str, edge: usize) -> serde_json::Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": 0,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": vec![edge; shape.len()] } },
        "chunk_key_encoding": { "name": "default" },
        "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
    })
}

#[tokio::test]
async fn tiles_of_the_last_level_are_the_elements_and_what_is_outside_is_transparent() {
    let server = server_of([300, 600]).await;
    let description = server.get("/v1/tilejson/m/a?colormap=gray&range=0,255").await.json();
    assert_eq!(description["maxzoom"], 2);
    assert_eq!(description["extent"], json!([0, 0, 600, 300]));
    let template = description["tiles"][0].as_str().unwrap();
    for (x, y) in [(0, 0), (1, 0), (2, 1), (2, 0), (3, 0), (0, 7)] {
        let url = template.replace("{z}/{x}/{y}", &format!("2/{x}/{y}"));
        let (found, width) = pixels(&server.get(&url).await);
        assert_eq!((width, found.len()), (256, 256 * 256), "{url}");
        for (at, pixel) in found.into_iter().enumerate() {
            let (row, column) = (y * 256 + at / 256, x * 256 + at % 256);
            let level = number(row, column);
            let expected = if row < 300 && column < 600 { [level, level, level, 255] } else { [0; 4] };
            assert_eq!(pixel, expected, "{url} {row} {column}");
        }
    }
}

#[tokio::test]
async fn a_tile_of_the_first_level_is_the_whole_picture() {
    let server = server_of([300, 600]).await;
    let (picture, width) = pixels(&server.get("/v1/image/m/a?size=256&range=0,255").await);
    assert_eq!((width, picture.len()), (150, 150 * 75));
    let (tile, _) = pixels(&server.get("/tiles/m/native/0/0/0/a?range=0,255").await);
    for (row, pixels) in picture.chunks(150).enumerate() {
        assert_eq!(&tile[row * 256..row * 256 + 150], pixels, "{row}");
    }
    let blank = server.get("/tiles/m/native/0/1/0/a").await;
    assert!(pixels(&blank).0.iter().all(|pixel| *pixel == [0; 4]));
}

/// Each mean of two rows and two columns, rounded half to even; 255 is missing.
#[expect(clippy::float_cmp, reason = "both are whole numbers")]
fn halved(elements: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let window = |rows: &[Vec<u8>], column: usize| {
        let all = rows.iter().flat_map(|row| row[column..row.len().min(column + 2)].to_vec());
        let present: Vec<f64> = all.filter(|&element| element != 255).map(f64::from).collect();
        let mean = present.iter().sum::<f64>() / present.iter().map(|_| 1.0).sum::<f64>();
        let is_mean = |element: &u8| f64::from(*element) == mean.round_ties_even();
        (0..=255).find(is_mean).unwrap_or(255)
    };
    let row = |rows: &[Vec<u8>]| (0..rows[0].len()).step_by(2).map(|column| window(rows, column)).collect();
    elements.chunks(2).map(row).collect()
}

#[tokio::test]
async fn a_smaller_picture_has_the_elements_of_a_fitted_slice() {
    let (rows, columns) = (21, 30);
    let element = |row: usize, column: usize| {
        if column < 5 { 255 } else { u8::try_from((row * 37 + column * 11) % 256).unwrap() }
    };
    let elements: Vec<Vec<u8>> =
        (0..rows).map(|row| (0..columns).map(|column| element(row, column)).collect()).collect();
    let expected: Vec<u8> = halved(&halved(&elements)).concat();
    let store = memory();
    for (name, data_type, attributes) in [
        ("unsigned", "uint8", json!({ "_FillValue": 255 })),
        ("signs", "int8", json!({ "_FillValue": -1, "_Unsigned": "true" })),
        ("wide", "int8", json!({ "missing_value": [255], "_Unsigned": "true" })),
    ] {
        let mut document = document(&[rows, columns], data_type, 32);
        document["attributes"] = attributes;
        put(&store, &format!("{name}/zarr.json"), document.to_string()).await;
        let mut chunk = vec![0; 32 * 32];
        for (row, elements) in elements.iter().enumerate() {
            chunk[row * 32..row * 32 + columns].copy_from_slice(elements);
        }
        put(&store, &format!("{name}/c/0/0"), chunk).await;
    }
    let server = Server::of(store);
    for name in ["unsigned", "signs", "wide"] {
        let fitted = server.get(&format!("/v1/data/m/{name}?fit=8,6&format=bytes")).await;
        assert_eq!(fitted.body.to_vec(), expected, "{name}");
        let picture = server.get(&format!("/v1/image/m/{name}?size=8,6&colormap=none&range=0,255")).await;
        let (found, width) = pixels(&picture);
        assert_eq!((width, found.len()), (8, expected.len()), "{name}");
        for (pixel, &element) in found.iter().zip(&expected) {
            let opacity = if element == 255 { 0 } else { 255 };
            assert_eq!(pixel[3], opacity, "{name}");
            assert!(opacity == 0 || pixel[0] == element, "{name}: {pixel:?} {element}");
        }
    }
}

#[tokio::test]
async fn a_revalidation_and_a_head_read_no_chunk() {
    let store = memory();
    let counting = Counting::new(store.clone());
    Array::of(&[40, 30]).chunks(&[8, 8]).store(&store, "a").await;
    let server = Server::of(counting.clone());
    for url in ["/v1/image/m/a", "/v1/image/m/a?range=0,9", "/tiles/m/native/0/0/0/a"] {
        let first = server.get(url).await;
        assert_eq!(first.status, 200, "{url}");
        let other = Server::of(counting.clone());
        counting.reset();
        let again = other.ask(Method::GET, url, &[("if-none-match", first.header("etag"))]).await;
        assert_eq!(again.status, 304, "{url}");
        let head = other.ask(Method::HEAD, url, &[]).await;
        assert_eq!((head.status.as_u16(), head.header("etag")), (200, first.header("etag")), "{url}");
        assert_eq!(counting.ranges(), [], "{url}");
    }
}

#[tokio::test]
async fn a_picture_that_would_cost_too_much_is_refused_with_a_slice_that_does_not() {
    let store = memory();
    Array::of(&[4000, 3000]).chunks(&[500, 500]).store(&store, "a").await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.read = ReadLimits { max_decoded_size: 1 << 20, ..ReadLimits::default() };
    let server = server.finish();
    let refused = server.get("/v1/image/m/a?slice=:,:").await;
    refused.refuses(413, "too-large", "a plane");
    let problem = refused.json();
    let slice = problem["suggested_slices"][0].as_str().unwrap();
    let answer = server.get(&format!("/v1/image/m/a?range=0,9&slice={slice}")).await;
    assert_eq!(answer.header("array-slice"), slice);
    let (found, width) = pixels(&answer);
    assert!(width > 1 && found.len() / width > 1 && found.iter().all(|pixel| pixel[3] == 255), "{slice}");
}

#[tokio::test]
async fn a_picture_without_a_selection_shows_the_middle_of_a_plane_that_costs_too_much() {
    let store = memory();
    Array::of(&[4000, 3000]).chunks(&[500, 500]).store(&store, "a").await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.read = ReadLimits { max_decoded_size: 1 << 20, ..ReadLimits::default() };
    let server = server.finish();
    let answer = server.get("/v1/image/m/a?colormap=gray").await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    // The middle of the plane is at the beginning of a chunk, and the window is within it.
    assert_eq!(answer.header("array-slice"), "2000:2256,1500:1756");
    let location = answer.header("content-location").to_owned();
    assert_eq!(location, "/v1/image/m/a?slice=2000:2256,1500:1756&colormap=gray");
    let same = server.get(&location).await;
    assert_eq!((same.status, same.body), (answer.status, answer.body));
    server.get("/v1/image/m/a?box=0,0,3000,4000").await.refuses(413, "too-large", "a part that is asked for");
    server.get("/v1/image/m/a?size=max").await.refuses(413, "too-large", "all pixels");
}

#[tokio::test]
async fn invalid_requests_for_pictures_get_a_problem_that_states_the_reason() {
    let server = server_of([300, 600]).await;
    for (url, status, code, reason) in [
        ("/v1/image/m/b", 404, "not-found", "`/b`"),
        ("/v1/image/other/a", 404, "unknown-mount", "mount"),
        ("/v1/image/m", 404, "not-found", ""),
        ("/v1/image/m/a?colr=1", 400, "invalid-request", "`colr`"),
        ("/v1/image/m/a?format=jpeg", 400, "unknown-format", "PNG"),
        ("/v1/image/m/a?level=1", 400, "invalid-request", "level"),
        ("/v1/image/m/a?slice=1", 400, "invalid-request", "two dimensions"),
        ("/v1/image/m/a?rgb=0,1,2", 400, "invalid-request", "channel"),
        ("/tiles/m/native/9/0/0/a", 400, "invalid-request", "9"),
        ("/tiles/m/native/0/-1/0/a", 400, "invalid-request", "`x`"),
        ("/tiles/m/native/0/0/0/a?size=4", 400, "invalid-request", "size"),
        ("/tiles/m/native/0/0/0/a?slice=0:4", 400, "invalid-request", "tiles"),
        ("/tiles/m/WebMercatorQuad/0/0/0/a", 501, "unsupported", "WebMercatorQuad"),
        ("/tiles/m/other/0/0/0/a", 400, "invalid-request", "native"),
        ("/v1/legend?range=auto", 400, "invalid-request", "range"),
        ("/v1/legend/m/a?range=slice", 400, "invalid-request", "range"),
        ("/v1/legend?colormap=jet", 400, "invalid-request", "colormap"),
    ] {
        let detail = server.get(url).await.refuses(status, code, url);
        assert!(detail.contains(reason), "{url}: {detail}");
    }
    let refused = server.ask(Method::GET, "/v1/image/m/a", &[("accept", "image/jpeg")]).await;
    refused.refuses(406, "not-acceptable", "jpeg");
}

#[tokio::test]
async fn hostile_attributes_do_not_hinder_a_picture() {
    let store = memory();
    for (name, attributes) in [
        (
            "deep",
            json!({ "_FillValue": [[[[1]]]], "scale_factor": [2], "flag_values": {}, "valid_range": ["a"] }),
        ),
        (
            "long",
            json!({ "flag_values": vec![3; 100_000], "flag_colors": "x".repeat(100_000), "units": "x".repeat(100_000) }),
        ),
        (
            "odd",
            json!({ "scale_factor": 1e308, "add_offset": 1e308, "valid_min": 5, "valid_max": 4, "_Unsigned": 7 }),
        ),
    ] {
        let mut document = document(&[5, 6], "int16", 4);
        document["attributes"] = attributes;
        put(&store, &format!("{name}/zarr.json"), document.to_string()).await;
    }
    let group = json!({
        "zarr_format": 3, "node_type": "group",
        "attributes": { "ome": { "multiscales": [{ "datasets": [{ "path": "../../x" }, { "path": "none" }], "axes": 3 }] } },
    });
    put(&store, "image/zarr.json", group.to_string()).await;
    let server = Server::of(store);
    for name in ["deep", "long", "odd"] {
        for url in [format!("/v1/image/m/{name}"), format!("/tiles/m/native/0/0/0/{name}")] {
            assert_eq!(server.get(&url).await.status, 200, "{url}");
        }
        let legend = server.get(&format!("/v1/legend/m/{name}?format=json")).await;
        assert!(legend.status == 200 || legend.status == 400, "{name}: {legend:?}");
    }
    let answer = server.get("/v1/image/m/image").await;
    assert!(answer.status == 404 || answer.status == 422, "{answer:?}");
}

#[tokio::test]
async fn a_legend_has_the_colours_and_the_numbers_of_the_picture() {
    let server = server_of([64, 64]).await;
    let legend = server.get("/v1/legend?colormap=gray&range=0,255&width=256&height=2").await;
    let (found, width) = pixels(&legend);
    assert_eq!(width, 256);
    assert!(found.iter().enumerate().all(|(at, pixel)| usize::from(pixel[0]) == at % 256 && pixel[3] == 255));
    let described = server.get("/v1/legend/m/a?range=type&format=json").await.json();
    assert_eq!((&described["range"], &described["kind"]), (&json!([0.0, 255.0]), &json!("colormap")));
    assert_eq!(described["colors"].as_array().unwrap().len(), 256);
    assert_eq!(described["colors"][0], "440154");
    let by_accept = server.ask(Method::GET, "/v1/legend/m/a", &[("accept", "application/json")]).await;
    assert_eq!(by_accept.header("content-type"), "application/json");
}

/// A server of an array with latitudes in a group, and its store.
async fn with_latitudes() -> (Server, zarrd::store::SharedStore) {
    let store = memory();
    let mut array = document(&[4, 4], "uint8", 4);
    array["dimension_names"] = json!(["lat", "lon"]);
    put(&store, "g/zarr.json", json!({ "zarr_format": 3, "node_type": "group" }).to_string()).await;
    put(&store, "g/a/zarr.json", array.to_string()).await;
    put(&store, "g/a/c/0/0", (0..16).collect::<Vec<u8>>()).await;
    (Server::of(store.clone()), store)
}

#[tokio::test]
async fn a_picture_turns_when_ascending_latitudes_appear_beside_it() {
    let (server, store) = with_latitudes().await;
    let url = "/v1/image/m/g/a?range=0,15&colormap=gray";
    let before = [server.get(url).await, server.get(url).await].map(|answer| pixels(&answer).0);
    assert_eq!(before[0], before[1]);
    let mut latitudes = document(&[4], "uint8", 4);
    latitudes["attributes"] = json!({ "units": "degrees_north" });
    put(&store, "g/lat/c/0", vec![1, 2, 3, 4]).await;
    put(&store, "g/lat/zarr.json", latitudes.to_string()).await;
    let turned: Vec<[u8; 4]> = before[0].chunks(4).rev().flatten().copied().collect();
    let answer = server.get(url).await;
    assert_eq!(pixels(&answer).0, turned);
    let head = server.ask(Method::HEAD, url, &[]).await;
    assert_eq!(head.header("etag"), answer.header("etag"));
}

#[tokio::test]
async fn a_picture_changes_when_the_group_above_becomes_its_image() {
    let store = memory();
    put(&store, "g/zarr.json", json!({ "zarr_format": 3, "node_type": "group" }).to_string()).await;
    put(&store, "g/0/zarr.json", document(&[4, 4], "uint8", 4).to_string()).await;
    put(&store, "g/0/c/0/0", (0..16).collect::<Vec<u8>>()).await;
    let server = Server::of(store.clone());
    let url = "/v1/image/m/g/0?range=0,15";
    for _ in 0..3 {
        let viridis = pixels(&server.get(url).await).0;
        assert_eq!(viridis[0], [0x44, 0x01, 0x54, 255]);
    }
    let axes = json!([{ "name": "y", "type": "space" }, { "name": "x", "type": "space" }]);
    let scale = json!([{ "type": "scale", "scale": [1, 1] }]);
    let datasets = json!([{ "path": "0", "coordinateTransformations": scale }]);
    let ome = json!({ "version": "0.5", "multiscales": [{ "axes": axes, "datasets": datasets }] });
    let group = json!({ "zarr_format": 3, "node_type": "group", "attributes": { "ome": ome } });
    put(&store, "g/zarr.json", group.to_string()).await;
    let gray = pixels(&server.get(url).await).0;
    assert_eq!(gray[15], [255; 4]);
    assert_eq!(gray[0], [0, 0, 0, 255]);
}

#[tokio::test]
async fn the_automatic_range_follows_the_fill_value() {
    let store = memory();
    let mut array = document(&[8, 8], "uint8", 4);
    put(&store, "a/zarr.json", array.to_string()).await;
    put(&store, "a/c/0/0", vec![100; 16]).await;
    let server = Server::of(store.clone());
    let range = async || server.get("/v1/image/m/a").await.header("image-range").to_owned();
    assert_eq!(range().await, "0,100");
    array["fill_value"] = json!(200);
    put(&store, "a/zarr.json", array.to_string()).await;
    assert_eq!(range().await, "100,200");
}

#[tokio::test]
async fn flags_keep_their_names_whatever_numbers_stand_between_them() {
    let store = memory();
    let mut array = document(&[4, 4], "uint8", 4);
    array["attributes"] = json!({ "flag_values": [0.0, 1, 2.5, 3], "flag_meanings": "zero one half three" });
    put(&store, "a/zarr.json", array.to_string()).await;
    let server = Server::of(store);
    let legend = server.get("/v1/legend/m/a?format=json").await.json().to_string();
    for (value, name) in [(0, "zero"), (1, "one"), (3, "three")] {
        assert!(legend.contains(&format!("\"{name}\"")), "{legend}");
        assert!(legend.contains(&format!("{value}")), "{legend}");
    }
    assert!(!legend.contains("half"), "{legend}");
}

#[tokio::test]
async fn a_range_can_be_wider_than_the_largest_number() {
    let store = memory();
    put(&store, "a/zarr.json", document(&[2, 2], "float64", 2).to_string()).await;
    let numbers = [-1.7e308_f64, 0.0, 1e308, 1.7e308];
    let chunk: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    put(&store, "a/c/0/0", chunk).await;
    let server = Server::of(store);
    // The first of 256 equal parts of the range, the middle, that at 0.794 of it, and the last.
    let expected = [0, 128, 203, 255].map(|gray| [gray, gray, gray, 255]);
    for range in ["slice", "-1.7e308,1.7e308", "0%25,100%25"] {
        let answer = server.get(&format!("/v1/image/m/a?colormap=gray&range={range}")).await;
        assert_eq!(pixels(&answer).0, expected, "{range}");
    }
    let legend = server.get("/v1/legend/m/a?range=-1.7e308,1.7e308&format=json").await.json();
    let stops = legend["stops"].as_array().unwrap().iter();
    // The numbers between the ends are rounded.
    let values: Vec<String> = stops.map(|stop| format!("{:.6e}", stop["value"].as_f64().unwrap())).collect();
    let expected = [-1.7e308, -0.85e308, 0.0, 0.85e308, 1.7e308].map(|value| format!("{value:.6e}"));
    assert_eq!(values, expected);
}

#[tokio::test]
async fn more_missing_values_than_are_compared_are_refused_by_every_route_that_masks_them() {
    let store = memory();
    let mut array = document(&[4, 4], "uint8", 4);
    array["attributes"] = json!({ "missing_value": (0..17).collect::<Vec<u8>>() });
    put(&store, "a/zarr.json", array.to_string()).await;
    put(&store, "a/c/0/0", (0..16).collect::<Vec<u8>>()).await;
    let server = Server::of(store);
    for url in [
        "/v1/image/m/a",
        "/v1/image/m/a?size=2",
        "/v1/image/m/a?size=2&method=stride",
        "/tiles/m/native/0/0/0/a",
        "/v1/legend/m/a",
        "/v1/tilejson/m/a",
        "/v1/stats/m/a",
        "/v1/data/m/a?downsample=2,2",
        "/v1/data/m/a?reduce.0=mean",
    ] {
        server.get(url).await.refuses(501, "unsupported", url);
    }
    for url in [
        "/v1/image/m/a?decode=none",
        "/tiles/m/native/0/0/0/a?decode=none",
        "/v1/legend/m/a?decode=none",
        "/v1/stats/m/a?decode=none",
        "/v1/data/m/a?downsample=2,2&method=stride",
        "/v1/data/m/a",
    ] {
        assert_eq!(server.get(url).await.status, 200, "{url}");
    }
}

#[tokio::test]
async fn a_legend_and_a_description_of_tiles_hold_no_more_than_their_text() {
    let store = memory();
    Array::of(&[2048, 2048]).chunks(&[1024, 1024]).store(&store, "a").await;
    let server = Server::of(store);
    let (site, before) = (server.site(), server.in_flight_bytes());
    for url in ["/v1/legend/m/a", "/v1/legend/m/a?format=json", "/v1/tilejson/m/a"] {
        let request = Request::builder().uri(url).body(Body::empty()).unwrap();
        let answer = site.handle(request, Peer::LOOPBACK).await;
        assert_eq!(answer.status(), 200, "{url}");
        let held = server.in_flight_bytes() - before;
        assert!(held <= 128 << 10, "{url}: {held}");
    }
}

/// A plate `p` of two rows and three columns with the wells A/1, A/3 and B/2, each of two images of 2 by 2 bytes. The first
/// image of the last well is not stored.
async fn plate() -> zarrd::store::SharedStore {
    let store = memory();
    let group = |attributes: serde_json::Value| {
        json!({ "zarr_format": 3, "node_type": "group", "attributes": { "ome": attributes } }).to_string()
    };
    let names = |names: &[&str]| names.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>();
    let wells = [("A/1", 0, 0), ("A/3", 0, 2), ("B/2", 1, 1)];
    let listed: Vec<_> = wells
        .iter()
        .map(|(path, row, column)| json!({ "path": path, "rowIndex": row, "columnIndex": column }))
        .collect();
    let rows = names(&["A", "B"]);
    let plate = json!({ "rows": rows, "columns": names(&["1", "2", "3"]), "wells": listed });
    put(&store, "p/zarr.json", group(json!({ "version": "0.5", "plate": plate }))).await;
    let axes = json!([{ "name": "y", "type": "space" }, { "name": "x", "type": "space" }]);
    let image = json!({ "version": "0.5", "multiscales": [{ "axes": axes, "datasets": [{ "path": "0" }] }] });
    for (well, (path, ..)) in (1_u8..).zip(wells) {
        let images = json!({ "images": [{ "path": "0" }, { "path": "1" }] });
        put(&store, &format!("p/{path}/zarr.json"), group(json!({ "version": "0.5", "well": images }))).await;
        for field in 0..2 {
            let level = format!("p/{path}/{field}/0");
            if (well, field) != (3, 0) {
                put(&store, &format!("{level}/zarr.json"), document(&[2, 2], "uint8", 2).to_string()).await;
            }
            put(&store, &format!("p/{path}/{field}/zarr.json"), group(image.clone())).await;
            put(&store, &format!("{level}/c/0/0"), vec![10 * well + field; 4]).await;
        }
    }
    store
}

#[tokio::test]
async fn the_picture_of_a_plate_has_the_first_image_of_each_well_in_its_place() {
    let store = plate().await;
    let server = Server::of(store.clone());
    let url = "/v1/image/m/p?range=0,255";
    let first = server.get(url).await;
    let (found, width) = pixels(&first);
    // Three places of two pixels with one between; the last well has nothing to show.
    let gray = |level: u8| [level, level, level, 255];
    let (none, one, three) = ([0; 4], gray(10), gray(20));
    let row = [one, one, none, none, none, none, three, three];
    assert_eq!(width, 8);
    assert_eq!(found, [row, row, [none; 8], [none; 8], [none; 8]].concat());
    assert_eq!((first.header("array-slice"), first.header("array-downsample")), ("0:2,0:2", "1,1"));
    // An image that appears changes the picture, and so does a chunk of one.
    let mut tags = vec![first.header("etag").to_owned()];
    put(&store, "p/B/2/0/0/zarr.json", document(&[2, 2], "uint8", 2).to_string()).await;
    let (found, _) = pixels(&server.get(url).await);
    assert_eq!(found[3 * 8 + 3..3 * 8 + 5], [gray(30), gray(30)]);
    tags.push(server.get(url).await.header("etag").to_owned());
    put(&store, "p/A/3/0/0/c/0/0", vec![99; 4]).await;
    let changed = server.get(url).await;
    assert_eq!(pixels(&changed).0[6], gray(99));
    assert!(!tags.contains(&changed.header("etag").to_owned()) && tags[0] != tags[1]);
    // What the picture does not show leaves it as it is.
    put(&store, "p/A/3/1/0/c/0/0", vec![77; 4]).await;
    let same = server.ask(Method::GET, url, &[("if-none-match", changed.header("etag"))]).await;
    assert_eq!(same.status, 304);
}

#[tokio::test]
async fn the_picture_of_a_well_has_all_its_images_with_one_range() {
    let store = plate().await;
    let server = Server::of(store);
    let (found, width) = pixels(&server.get("/v1/image/m/p/A/1?range=slice").await);
    let [none, low, high] = [[0; 4], [0, 0, 0, 255], [255; 4]];
    let row = [low, low, none, high, high];
    assert_eq!((found, width), ([row, row].concat(), 5));
    // The range of the sample of the first image is that of all.
    let answer = server.get("/v1/image/m/p/A/1").await;
    assert_eq!((answer.header("image-range"), answer.header("image-range-from")), ("10,10", "sample"));
    assert_eq!(pixels(&answer).0[3], high);
    // A part of a plane is that of the first image.
    let (part, width) = pixels(&server.get("/v1/image/m/p/A/1?box=0,0,1,1&range=0,255").await);
    assert_eq!((part, width), (vec![[10, 10, 10, 255]], 1));
    server.get("/v1/image/m/p/A/1?slice=7,:").await.refuses(400, "invalid-request", "outside");
}

#[tokio::test]
async fn a_plate_of_long_and_tall_images_is_no_larger_than_a_picture_may_be() {
    let store = plate().await;
    for (well, shape) in [("A/1", [1, 40_000]), ("A/3", [40_000, 1])] {
        let image = document(&shape, "uint8", 200).to_string();
        put(&store, &format!("p/{well}/0/0/zarr.json"), image).await;
        put(&store, &format!("p/{well}/0/0/c/0/0"), vec![10_u8; 200 * 200]).await;
    }
    let server = Server::of(store);
    server.get("/v1/image/m/p?size=max&range=0,255").await.refuses(
        413,
        "too-large",
        "places of 40,000 squared",
    );
    assert_eq!(server.get("/v1/image/m/p?range=0,255").await.status.as_u16(), 200);
}

#[tokio::test]
async fn the_pictures_of_a_plate_fit_and_cost_no_more_than_one_picture_may() {
    let store = plate().await;
    let counting = Counting::new(store.clone());
    let server = Server::of(counting.clone());
    for (size, expected) in [("8", (8, 5)), ("7", (5, 3)), ("1", (5, 3)), ("max", (8, 5))] {
        let (found, width) = pixels(&server.get(&format!("/v1/image/m/p?range=0,255&size={size}")).await);
        assert_eq!((width, found.len() / width), expected, "{size}");
    }
    counting.reset();
    let head = server.ask(Method::HEAD, "/v1/image/m/p", &[]).await;
    assert_eq!((head.status.as_u16(), counting.ranges()), (200, vec![]));
    assert_eq!(head.header("etag"), server.get("/v1/image/m/p").await.header("etag"));
    let mut small = Server::build(Mount::read_only("m", store));
    small.read = ReadLimits { max_decoded_size: 7, ..ReadLimits::default() };
    let small = small.finish();
    small.get("/v1/image/m/p?slice=:,:").await.refuses(413, "too-large", "two images of four bytes");
}

#[tokio::test]
async fn a_picture_whose_file_could_be_longer_than_a_request_can_hold_is_refused_before_it_is_drawn() {
    let store = memory();
    let mut noise = document(&[1024, 1024], "float32", 1024);
    noise["attributes"] = json!({ "valid_range": [0, 1] });
    put(&store, "a/zarr.json", noise.to_string()).await;
    let counting = Counting::new(store.clone());
    let mut server = Server::build(Mount::read_only("m", counting.clone()));
    (server.http.inflight_size, server.http.streamed_response_size) = (4 << 20, 64 << 10);
    let server = server.finish();
    counting.reset();
    for method in [Method::GET, Method::HEAD] {
        let refused = server.ask(method.clone(), "/v1/image/m/a?size=max", &[]).await;
        assert_eq!(refused.status, 413, "{method}");
        assert_eq!(counting.ranges(), [], "{method}");
        if method == Method::GET {
            let detail = refused.refuses(413, "too-large", "a long file");
            assert!(detail.contains("`size`") && detail.contains("http.inflight_size"), "{detail}");
        }
    }
    assert_eq!(server.get("/v1/image/m/a?size=256").await.status, 200);
}

/// The attributes of an image with these axes, whose only level is `path`.
fn image_of(axes: &[(&str, &str)], path: &str, more: &serde_json::Value) -> String {
    let axis = |&(name, kind): &(&str, &str)| json!({ "name": name, "type": kind });
    let scale = json!([{ "type": "scale", "scale": vec![1; axes.len()] }]);
    let mut ome = json!({ "version": "0.5", "multiscales": [{
        "axes": axes.iter().map(axis).collect::<Vec<_>>(),
        "datasets": [{ "path": path, "coordinateTransformations": scale }],
    }] });
    ome.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "zarr_format": 3, "node_type": "group", "attributes": { "ome": ome } }).to_string()
}

const PLANE: [(&str, &str); 2] = [("y", "space"), ("x", "space")];
const CHANNELS: [(&str, &str); 3] = [("c", "channel"), ("y", "space"), ("x", "space")];

#[tokio::test]
async fn the_window_of_a_channel_is_its_range_whether_or_not_there_is_a_dimension_of_channels() {
    let store = memory();
    let windows = |ends: &[[i32; 2]]| {
        let channel = |[start, end]: &[i32; 2]| json!({ "window": { "start": start, "end": end } });
        json!({ "omero": { "channels": ends.iter().map(channel).collect::<Vec<_>>() } })
    };
    put(&store, "one/zarr.json", image_of(&PLANE, "0", &windows(&[[5, 50]]))).await;
    put(&store, "one/0/zarr.json", document(&[4, 4], "uint16", 4).to_string()).await;
    put(&store, "two/zarr.json", image_of(&CHANNELS, "0", &windows(&[[5, 50], [6, 60]]))).await;
    put(&store, "two/0/zarr.json", document(&[2, 4, 4], "uint16", 4).to_string()).await;
    let server = Server::of(store);
    for (url, range) in [
        ("/v1/image/m/one", "5,50"),
        ("/v1/image/m/one/0", "5,50"),
        ("/v1/image/m/one?colormap=magma", "5,50"),
        ("/tiles/m/native/0/0/0/one", "5,50"),
        ("/v1/image/m/two", "5,50;6,60"),
        ("/v1/image/m/two?isel.c=1", "6,60"),
        ("/v1/image/m/two?slice=0&colormap=magma", "5,50"),
    ] {
        let answer = server.get(url).await;
        assert_eq!((answer.status.as_u16(), answer.header("image-range")), (200, range), "{url}");
        assert!(answer.header("image-range-from").starts_with("omero"), "{url}");
    }
}

#[tokio::test]
async fn an_image_that_a_list_of_labels_names_is_one_of_labels() {
    let store = memory();
    let group = |attributes: serde_json::Value| {
        json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes }).to_string()
    };
    put(&store, "i/labels/zarr.json", group(json!({ "ome": { "version": "0.5", "labels": ["cells"] } })))
        .await;
    for name in ["cells", "other"] {
        put(&store, &format!("i/labels/{name}/zarr.json"), image_of(&PLANE, "0", &json!({}))).await;
        let level = format!("i/labels/{name}/0");
        put(&store, &format!("{level}/zarr.json"), document(&[2, 2], "uint16", 2).to_string()).await;
        put(&store, &format!("{level}/c/0/0"), [1_u16, 1, 1, 9].map(u16::to_le_bytes).concat()).await;
    }
    let server = Server::of(store.clone());
    for (name, expected) in [("cells", 1_u16), ("other", 3)] {
        for _ in 0..3 {
            let data = server.get(&format!("/v1/data/m/i/labels/{name}/0?fit=1,1&format=bytes")).await;
            assert_eq!(*data.body, expected.to_le_bytes(), "{name}");
            for below in ["", "/0"] {
                let picture = server.get(&format!("/v1/image/m/i/labels/{name}{below}")).await;
                let from = if name == "cells" { "" } else { "sample" };
                assert_eq!(picture.header("image-range-from"), from, "{name}{below}");
            }
        }
    }
    // The list is what says it.
    put(&store, "i/labels/zarr.json", group(json!({ "ome": { "version": "0.5", "labels": [] } }))).await;
    let data = server.get("/v1/data/m/i/labels/cells/0?fit=1,1&format=bytes").await;
    assert_eq!(*data.body, 3_u16.to_le_bytes());
    assert_eq!(server.get("/v1/image/m/i/labels/cells").await.header("image-range-from"), "sample");
}

#[tokio::test]
async fn the_location_of_a_picture_is_that_of_the_same_picture() {
    let store = plate().await;
    put(
        &store,
        "i/zarr.json",
        image_of(
            &CHANNELS,
            "0",
            &json!({ "omero": { "channels": [
        { "color": "ff0000", "window": { "start": 0, "end": 200 } },
        { "color": "00ff00", "window": { "start": 0, "end": 100 } },
    ] } }),
        ),
    )
    .await;
    let mut stack = document(&[3, 2, 40, 30], "uint8", 40);
    stack["dimension_names"] = json!(["z", "c", "y", "x"]);
    put(&store, "s/zarr.json", stack.to_string()).await;
    put(&store, "i/0/zarr.json", document(&[2, 40, 30], "uint8", 40).to_string()).await;
    put(&store, "rgb/zarr.json", document(&[40, 30, 3], "uint8", 40).to_string()).await;
    let numbers = |count: u32| (0..count).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect::<Vec<u8>>();
    put(&store, "i/0/c/0/0/0", numbers(40 * 40 * 40)).await;
    put(&store, "s/c/0/0/0/0", numbers(40 * 40 * 40 * 40)).await;
    put(&store, "rgb/c/0/0/0", numbers(40 * 40 * 40)).await;
    let server = Server::of(store);
    for url in [
        "/v1/image/m/i",
        "/v1/image/m/i?box=3,4,10,20",
        "/v1/image/m/i?box=3,4,10,20&colormap=magma",
        "/v1/image/m/i?channels=1:ff00ff",
        "/v1/image/m/i?colormap=magma&size=7",
        "/v1/image/m/i?slice=1,3:20",
        "/v1/image/m/i?isel.c=1:2",
        "/v1/image/m/s",
        "/v1/image/m/s?rgb=0,1,0",
        "/v1/image/m/s?isel.z=2&box=1,2,3,4",
        "/v1/image/m/s?axes=z,x&range=0,255",
        "/v1/image/m/rgb",
        "/v1/image/m/rgb?box=3,4,10,20",
        "/v1/image/m/rgb?slice=::2",
        "/v1/image/m/p",
        "/v1/image/m/p?range=2%25,98%25&slice=:,:",
        "/v1/image/m/p?box=0,0,1,2",
        "/v1/image/m/p/A/1?range=slice",
    ] {
        let answer = server.get(url).await;
        assert_eq!(answer.status, 200, "{url}: {:?}", answer.body);
        let location = answer.header("content-location");
        let same = server.get(location).await;
        assert_eq!(same.status, 200, "{url}: {location}: {:?}", same.body);
        assert!(same.body == answer.body, "{url}: {location}");
        for name in ["array-slice", "image-range", "content-location"] {
            assert_eq!(same.header(name), answer.header(name), "{url}: {location}");
        }
    }
}

#[tokio::test]
async fn a_store_of_vectors_has_no_picture_but_a_way_out() {
    let store = memory();
    let vectors = json!({ "zarr_format": 3, "node_type": "group", "attributes": {
        "zarr_vectors": { "zv_version": "1.0" },
        "multiscales": [{ "axes": [{ "name": "y" }, { "name": "x" }], "datasets": [{ "path": "0" }] }],
    } });
    put(&store, "some points/zarr.json", vectors.to_string()).await;
    put(&store, "some points/0/zarr.json", json!({ "zarr_format": 3, "node_type": "group" }).to_string())
        .await;
    let server = Server::of(store);
    let detail = server.get("/v1/image/m/some%20points").await.refuses(422, "no-picture", "points");
    assert!(detail.contains("`/v1/vectors/m/some%20points`") && detail.contains("/view/m/"), "{detail}");
    server.get("/tiles/m/native/0/0/0/some%20points").await.refuses(422, "no-picture", "a tile of points");
}

#[tokio::test]
async fn a_picture_of_an_array_in_a_plain_folder_is_kept_until_the_folder_becomes_a_group() {
    let folder = tempfile::tempdir().unwrap();
    let options = zarrd::store::StoreOptions { writable: true, ..Default::default() };
    let local = zarrd::store::open(folder.path().to_str().unwrap(), &options, &crate::support::server::cpu());
    for store in [memory(), local.unwrap()] {
        put(&store, "f/0/zarr.json", document(&[4, 4], "uint8", 4).to_string()).await;
        put(&store, "f/0/c/0/0", (0..16).collect::<Vec<u8>>()).await;
        let server = Server::of(store.clone());
        let url = "/v1/image/m/f/0?range=0,15";
        let first = server.get(url).await;
        for _ in 0..3 {
            let again = server.get(url).await;
            assert_eq!((again.header("cache-status"), &again.body), ("zarrd; hit", &first.body));
        }
        put(&store, "f/zarr.json", image_of(&PLANE, "0", &json!({}))).await;
        let gray = server.get(url).await;
        assert_eq!(pixels(&gray).0[0], [0, 0, 0, 255]);
        assert_ne!(gray.header("etag"), first.header("etag"));
    }
}

//! Summaries in node documents: images, plates, datasets and stores of vectors as their writers leave them, with every link
//! that they give; and what they cost.

use axum::http::StatusCode;
use serde_json::{Value, json};
use zarrd::http::{CorsOptions, HttpOptions};
use zarrd::services::Mount;
use zarrd::store::{SharedStore, StoreOptions};

use crate::access::{access, grant, known, token};
use crate::support::counting::Counting;
use crate::support::data_types::data_type;
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, cpu, erase, put};

fn fixtures(folder: &str) -> Server {
    let folder = format!("{}/tests/data/{folder}", env!("CARGO_MANIFEST_DIR"));
    Server::of(zarrd::store::open(&folder, &StoreOptions::default(), &cpu()).unwrap())
}

async fn summary(server: &Server, path: &str) -> Value {
    let answer = server.get(&format!("/v1/nodes/{path}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {:?}", answer.body);
    answer.json()["summary"].clone()
}

fn codes(summary: &Value) -> Vec<&str> {
    summary["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap()).collect()
}

fn names(summary: &Value, member: &str) -> Vec<Value> {
    summary["axes"].as_array().unwrap().iter().map(|axis| axis[member].clone()).collect()
}

async fn group(store: &SharedStore, path: &str, attributes: Value) {
    let mut document = json!({ "zarr_format": 3, "node_type": "group" });
    document["attributes"] = attributes;
    put(store, &format!("{path}/zarr.json"), document.to_string()).await;
}

/// An image of OME-Zarr 0.4 with two channels, two levels and a label image.
async fn old_image(store: &SharedStore) {
    put(store, "image/.zgroup", r#"{"zarr_format": 2}"#).await;
    let scaled = |path: &str, scale: f64| json!({ "path": path, "coordinateTransformations": [{ "type": "scale", "scale": [1, 1, scale, scale] }] });
    let attributes = json!({
        "multiscales": [{
            "version": "0.4",
            "axes": [
                { "name": "c", "type": "channel" }, { "name": "z", "type": "space", "unit": "micrometer" },
                { "name": "y", "type": "space", "unit": "micrometer" }, { "name": "x", "type": "space", "unit": "micrometer" },
            ],
            "datasets": [scaled("0", 0.25), scaled("1", 0.5)],
        }],
        "omero": {
            "channels": [
                { "label": "DAPI", "color": "0000FF", "window": { "start": 10, "end": 1500, "min": 0, "max": 65535 }, "active": true },
                { "label": "GFP", "color": "00FF00", "window": { "start": 0, "end": 900 }, "active": false },
            ],
            "rdefs": { "defaultZ": 3, "defaultT": 0, "model": "color" },
        },
    });
    put(store, "image/.zattrs", attributes.to_string()).await;
    for (level, edge) in [("0", 21), ("1", 11)] {
        let zarray = json!({
            "zarr_format": 2, "shape": [2, 5, edge, edge], "chunks": [1, 1, 16, 16], "dtype": "<u2", "order": "C",
            "fill_value": 0, "filters": null, "compressor": null, "dimension_separator": "/",
        });
        put(store, &format!("image/{level}/.zarray"), zarray.to_string()).await;
    }
    put(store, "image/labels/.zgroup", r#"{"zarr_format": 2}"#).await;
    put(store, "image/labels/.zattrs", r#"{"labels": ["cells"]}"#).await;
}

#[tokio::test]
async fn an_image_of_version_0_4_is_summarized() {
    let store = memory();
    old_image(&store).await;
    let server = Server::of(store);
    let found = summary(&server, "m/image").await;
    let axis = |name: &str, kind: &str, unit: Value, size: u64, scale: f64| json!({ "name": name, "type": kind, "unit": unit, "size": size, "scale": scale, "ends": null });
    let um = || json!("micrometer");
    assert_eq!(
        found,
        json!({
            "kind": "ome-image",
            "version": "0.4",
            "axes": [
                axis("c", "channel", Value::Null, 2, 1.0), axis("z", "space", um(), 5, 1.0),
                axis("y", "space", um(), 21, 0.25), axis("x", "space", um(), 21, 0.25),
            ],
            "levels": [
                { "path": "0", "shape": [2, 5, 21, 21], "exists": true, "factors": [1, 1, 1, 1] },
                { "path": "1", "shape": [2, 5, 11, 11], "exists": true, "factors": [1, 1, 2, 2] },
            ],
            "channels": [
                { "label": "DAPI", "color": "0000FF", "window": [10.0, 1500.0], "active": true },
                { "label": "GFP", "color": "00FF00", "window": [0.0, 900.0], "active": false },
            ],
            "labels": ["cells"],
            "images": [],
            "plate": null,
            "crs": null,
            "bbox": null,
            "time_range": null,
            "default_slice": ":,3,:,:",
            "default_axes": ["y", "x"],
            "default_range": [10.0, 1500.0],
            "thumbnail": "/v1/image/m/image?size=128",
            "open_in": [],
            "warnings": [],
        })
    );
    let level = summary(&server, "m/image/1").await;
    assert_eq!(names(&level, "name"), ["c", "z", "y", "x"]);
    assert_eq!(names(&level, "scale"), [1.0, 1.0, 0.5, 0.5]);
    assert_eq!(summary(&server, "m/image/labels").await["labels"], json!(["cells"]));
}

#[tokio::test]
async fn the_default_slice_of_every_array_of_the_demo_can_be_read() {
    let store = memory();
    zarrd::app::demo::fill(&store).await.unwrap();
    let server = Server::of(store);
    for (path, slice, axes) in [
        ("field", "0,:,:", json!(["lat", "lon"])),
        ("image/1", "0,:,:", json!(["y", "x"])),
        ("lat", ":", Value::Null),
        ("sharded", "64,:,:", json!(["y", "x"])),
        ("tree/other/yes", "", Value::Null),
        ("v2/blosc", ":,:", json!(["y", "x"])),
    ] {
        let found = summary(&server, &format!("m/{path}")).await;
        if path == "image/1" {
            // Three channels of bytes are a photograph.
            assert_eq!(found["default_slice"], ":,:,:");
        } else {
            assert_eq!((&found["default_slice"], &found["default_axes"]), (&json!(slice), &axes), "{path}");
        }
        let slice = found["default_slice"].as_str().unwrap();
        let elements = server.get(&format!("/v1/data/m/{path}?slice={slice}")).await;
        assert_eq!(elements.status, StatusCode::OK, "{path}: {:?}", elements.body);
        assert!(found["warnings"].as_array().unwrap().is_empty(), "{path}: {found}");
    }
    let image = summary(&server, "m/image").await;
    let factors: Vec<&Value> =
        image["levels"].as_array().unwrap().iter().map(|level| &level["factors"]).collect();
    assert_eq!(factors, [&json!([1, 1, 1]), &json!([1, 2, 2]), &json!([1, 4, 4])]);
    assert_eq!(summary(&server, "m/").await["kind"], "cf-dataset");
    assert_eq!(summary(&server, "m/tree").await["kind"], "plain");
}

#[tokio::test]
async fn a_dataset_of_xarray_and_stores_of_vectors_are_recognised() {
    // Some of the nodes that the consolidated metadata names are not stored.
    let server = fixtures("zarr-python");
    let found = summary(&server, "m/matrix-zarrpy-v2/meta/xarray").await;
    assert_eq!((&found["kind"], codes(&found)), (&json!("cf-dataset"), vec!["consolidated-stale"]));
    assert_eq!(
        (names(&found, "name"), &found["crs"]),
        (vec!["time".into(), "lat".into(), "lon".into()], &Value::Null)
    );

    // The same with all nodes.
    let store = memory();
    let consolidated = server.get("/store/m/matrix-zarrpy-v2/meta/xarray/.zmetadata").await.json();
    for (key, document) in consolidated["metadata"].as_object().unwrap() {
        put(&store, &format!("d/{key}"), document.to_string()).await;
    }
    let server = Server::of(store);
    let found = summary(&server, "m/d").await;
    assert_eq!((&found["kind"], codes(&found)), (&json!("cf-dataset"), vec![]));
    assert_eq!(names(&found, "size"), [6, 5, 4]);
    assert_eq!(names(&found, "type"), ["time", "space", "space"]);
    assert_eq!(found["axes"][0]["unit"], "days since 2000-01-01 00:00:00");
    assert_eq!(
        found["crs"],
        json!({ "source": "coordinates", "code": "EPSG:4326", "wkt": null, "projjson": null, "grid_mapping_name": null })
    );
    let variable = summary(&server, "m/d/t2m").await;
    assert_eq!((&variable["kind"], &variable["default_slice"]), (&json!("geo"), &json!("0,:,:")));
    assert_eq!(variable["axes"][0]["unit"], "days since 2000-01-01 00:00:00");

    let server = fixtures("vectors");
    let found = summary(&server, "m/real/points_tiny.zarrvectors").await;
    assert_eq!((&found["kind"], &found["version"]), (&json!("zvf"), &json!("0.9.2")));
    assert_eq!(found["bbox"], json!([0.0, 0.0, 0.0, 400.0, 400.0, 400.0]));
    assert_eq!(
        (names(&found, "name"), &found["levels"][0]["exists"]),
        (vec!["x".into(), "y".into(), "z".into()], &json!(true))
    );
    let found = summary(&server, "m/v07/streamlines_v07.zarrvectors").await;
    assert_eq!(found["kind"], "zvf");
}

/// A dataset `d` with a variable `t2m` over time, latitude and longitude, in chunks of 2.
async fn dataset(store: &SharedStore) {
    group(store, "d", json!({ "Conventions": "CF-1.8" })).await;
    let document = |shape: &[u64], names: Value, attributes: Value| {
        let mut document = Array::of(&vec![2; shape.len()]).data_type(data_type("float64")).document().1;
        document["shape"] = json!(shape);
        document["dimension_names"] = names;
        document["attributes"] = attributes;
        document["codecs"] = json!([{ "name": "bytes", "configuration": { "endian": "little" } }]);
        document.to_string()
    };
    for (name, values, attributes) in [
        ("time", vec![0.0, 1.5, 31.0], json!({ "units": "days since 2000-01-01" })),
        ("lat", vec![60.0, 50.0, 40.0, 30.0, 20.0], json!({ "units": "degrees_north" })),
        ("lon", vec![-10.0, 0.0, 10.0, 20.0], json!({ "units": "degrees_east", "_FillValue": 20.0 })),
    ] {
        let length = values.len() as u64;
        put(store, &format!("d/{name}/zarr.json"), document(&[length], json!([name]), attributes)).await;
        for (at, chunk) in values.chunks(2).enumerate() {
            let padded = [chunk, &[0.0, 0.0]].concat();
            let bytes: Vec<u8> = padded[..2].iter().flat_map(|value: &f64| value.to_le_bytes()).collect();
            put(store, &format!("d/{name}/c/{at}"), bytes).await;
        }
    }
    let names = json!(["time", "lat", "lon"]);
    put(store, "d/t2m/zarr.json", document(&[3, 5, 4], names, json!({ "units": "K" }))).await;
}

#[tokio::test]
async fn a_dataset_and_its_variables_have_the_extents_of_their_coordinates() {
    let store = memory();
    dataset(&store).await;
    let counting = Counting::new(store.clone());
    let server = Server::of(std::sync::Arc::clone(&counting) as SharedStore);
    for path in ["m/d", "m/d/t2m"] {
        let found = summary(&server, path).await;
        // Of each coordinate the first chunk and the last, and no other, which are then cached.
        assert_eq!(counting.ranges().len(), 6, "{path}");
        assert_eq!(names(&found, "ends"), [json!([0.0, 31.0]), json!([60.0, 20.0]), json!([-10.0, 20.0])]);
        assert_eq!(found["bbox"], json!([-10.0, 20.0, 20.0, 60.0]), "{path}");
        assert_eq!(found["time_range"], json!(["2000-01-01T00:00:00Z", "2000-02-01T00:00:00Z"]), "{path}");
    }
    assert_eq!(names(&summary(&server, "m/d/lat").await, "ends"), [json!([60.0, 20.0])]);
    // A change of the last chunk changes the document.
    let before = server.get("/v1/nodes/m/d").await;
    let bytes = [45.0_f64, 0.0].iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    put(&store, "d/time/c/1", bytes).await;
    let after = server.get("/v1/nodes/m/d").await;
    assert_ne!(before.header("etag"), after.header("etag"));
    assert_eq!(after.json()["summary"]["time_range"][1], "2000-02-15T00:00:00Z");
}

#[tokio::test]
async fn the_ends_of_coordinates_that_the_caller_may_not_read_are_not_known() {
    let store = memory();
    dataset(&store).await;
    let server = Server::build(Mount::read_only("m", store)).finish();
    let grants = json!([grant("m", "d/t2m", &["read"]), grant("m", "d/lat", &["read"])]);
    let all = json!([grant("m", "", &["read"])]);
    let tokens = json!({ "some": known("some", grants), "all": known("all", all) });
    server.set_access(access(json!({ "tokens": tokens }), &[], &std::sync::Arc::default()));
    for holder in ["all", "some", "all"] {
        let bearer = format!("Bearer {}", token(holder));
        let answer =
            server.ask(axum::http::Method::GET, "/v1/nodes/m/d/t2m", &[("authorization", &bearer)]).await;
        let found = answer.json()["summary"].clone();
        let is_all = holder == "all";
        let lon = if is_all { json!([-10.0, 20.0]) } else { Value::Null };
        // Without the group nothing says that the array is a variable of CF but its units.
        assert_eq!(names(&found, "ends")[2], lon, "{holder}: {found}");
        assert_eq!(found["bbox"].is_null(), !is_all, "{holder}");
    }
}

#[tokio::test]
async fn coordinates_in_large_chunks_are_not_read() {
    let store = memory();
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [1 << 20], "data_type": "float64", "fill_value": 0,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [1 << 20] } },
        "chunk_key_encoding": { "name": "default" }, "dimension_names": ["time"],
        "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
    });
    group(&store, "d", json!({})).await;
    put(&store, "d/time/zarr.json", document.to_string()).await;
    put(&store, "d/time/c/0", vec![0; 8 << 20]).await;
    let counting = Counting::new(store.clone());
    let server = Server::of(std::sync::Arc::clone(&counting) as SharedStore);
    for path in ["m/d", "m/d/time"] {
        assert_eq!(names(&summary(&server, path).await, "ends"), [Value::Null], "{path}");
    }
    assert_eq!(counting.ranges(), []);
}

#[tokio::test]
async fn a_plate_has_its_wells_and_a_well_its_images() {
    let store = memory();
    let wells = json!([
        { "path": "A/1", "rowIndex": 0, "columnIndex": 0 }, { "path": "B/2", "rowIndex": 1, "columnIndex": 1 },
    ]);
    let plate = json!({ "rows": [{ "name": "A" }, { "name": "B" }], "columns": [{ "name": "1" }, { "name": "2" }], "wells": wells });
    group(&store, "p", json!({ "ome": { "version": "0.5", "plate": plate } })).await;
    let images = json!({ "images": [{ "path": "0" }, { "path": "1" }] });
    group(&store, "p/A/1", json!({ "ome": { "version": "0.5", "well": images } })).await;
    group(&store, "c", json!({ "ome": { "version": "0.5", "bioformats2raw.layout": 3 } })).await;
    group(&store, "c/OME", json!({ "ome": { "version": "0.5", "series": ["0", "1"] } })).await;
    let server = Server::of(store);
    let found = summary(&server, "m/p").await;
    assert_eq!(found["kind"], "ome-plate");
    assert_eq!(
        found["plate"],
        json!({
            "rows": ["A", "B"], "columns": ["1", "2"], "declared_wells": 2, "fields": 2,
            "wells": [{ "path": "A/1", "row": 0, "column": 0 }, { "path": "B/2", "row": 1, "column": 1 }],
        })
    );
    assert_eq!(found["thumbnail"], "/v1/image/m/p?size=128");
    assert_eq!(summary(&server, "m/p/A/1").await["images"], json!(["0", "1"]));
    let collection = summary(&server, "m/c").await;
    assert_eq!((&collection["kind"], &collection["images"]), (&json!("ome-collection"), &json!(["0", "1"])));
}

#[tokio::test]
async fn warnings_come_with_a_link_to_a_view_that_reads_better() {
    let store = memory();
    let long = json!({
        "zarr_format": 3, "node_type": "array", "shape": [4096, 4096, 64], "data_type": "uint16", "fill_value": 0,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [4096, 4096, 1] } },
        "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
    });
    put(&store, "a b/zarr.json", long.to_string()).await;
    group(
        &store,
        "i",
        json!({ "ome": { "version": "0.5", "multiscales": [{
        "axes": [{ "name": "y", "type": "space" }, { "name": "x", "type": "space" }],
        "datasets": [{ "path": "0" }, { "path": "1" }],
    }] } }),
    )
    .await;
    Array::of(&[8, 8]).store(&store, "i/0").await;
    let server = Server::of(store);
    let found = summary(&server, "m/a%20b").await;
    assert_eq!(codes(&found), ["single-level", "large-chunks", "no-dimension-names"]);
    assert_eq!(found["warnings"][0]["way_out"], "/pyramid/m/auto/auto/raw/a%20b");
    let rechunked = found["warnings"][1]["way_out"].as_str().unwrap();
    assert_eq!(rechunked, "/rechunk/m/auto/zstd-1/a%20b");
    assert_eq!(server.get(&format!("{rechunked}/zarr.json")).await.status, StatusCode::OK);
    assert_eq!(found["warnings"][2].get("way_out"), None);
    let found = summary(&server, "m/i").await;
    assert_eq!(codes(&found), ["level-missing"]);
    assert_eq!(found["levels"][1], json!({ "path": "1", "shape": null, "exists": false, "factors": null }));
}

#[tokio::test]
async fn consolidated_metadata_that_lacks_a_child_is_warned_of() {
    let store = memory();
    let array = |name: &str| format!("g/{name}/.zarray");
    let zarray = r#"{"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|u1", "order": "C", "fill_value": 0, "filters": null, "compressor": null}"#;
    put(&store, "g/.zgroup", r#"{"zarr_format": 2}"#).await;
    put(&store, &array("a"), zarray).await;
    let consolidated = format!(
        r#"{{"zarr_consolidated_format": 1, "metadata": {{".zgroup": {{"zarr_format": 2}}, "a/.zarray": {zarray}}}}}"#
    );
    put(&store, "g/.zmetadata", consolidated).await;
    let server = Server::of(store.clone());
    assert_eq!(codes(&summary(&server, "m/g").await), [""; 0]);
    put(&store, &array("b"), zarray).await;
    assert_eq!(codes(&summary(&server, "m/g").await), ["consolidated-stale"]);
    erase(&store, &array("b")).await;
    assert_eq!(codes(&summary(&server, "m/g").await), [""; 0]);
}

#[tokio::test]
async fn a_summary_follows_the_documents_that_it_is_made_from_and_reads_them_once() {
    let store = memory();
    old_image(&store).await;
    let counting = Counting::new(store.clone());
    let server = Server::of(std::sync::Arc::clone(&counting) as SharedStore);
    let first = server.get("/v1/nodes/m/image/1").await;
    counting.reset();
    let second = server.get("/v1/nodes/m/image/1").await;
    assert_eq!((first.body, counting.documents()), (second.body, 0));
    let mut attributes: Value = server.get("/store/m/image/.zattrs").await.json();
    attributes["multiscales"][0]["axes"][3]["unit"] = json!("nanometer");
    put(&store, "image/.zattrs", attributes.to_string()).await;
    let third = server.get("/v1/nodes/m/image/1").await;
    assert_eq!(third.json()["summary"]["axes"][3]["unit"], "nanometer");
    assert_ne!(first.headers["etag"], third.headers["etag"]);
    erase(&store, "image/1/.zarray").await;
    assert_eq!(codes(&summary(&server, "m/image").await), ["level-missing"]);
}

#[tokio::test]
async fn what_the_caller_may_not_read_is_absent_from_a_summary() {
    let store = memory();
    old_image(&store).await;
    let server = Server::build(Mount::read_only("m", store)).finish();
    let read = |prefix: &str| json!([grant("m", prefix, &["read"])]);
    let tokens = json!({ "one": known("one", read("image/1")), "all": known("all", read("")) });
    server.set_access(access(json!({ "tokens": tokens }), &[], &std::sync::Arc::default()));
    // In either order, so that a cache does not mix them up.
    for holder in ["one", "all", "one"] {
        let bearer = format!("Bearer {}", token(holder));
        let answer =
            server.ask(axum::http::Method::GET, "/v1/nodes/m/image/1", &[("authorization", &bearer)]).await;
        assert_eq!(answer.status, StatusCode::OK, "{holder}: {:?}", answer.body);
        let found = answer.json()["summary"].clone();
        let expected = if holder == "all" {
            vec![json!("c"), json!("z"), json!("y"), json!("x")]
        } else {
            vec![Value::Null; 4]
        };
        assert_eq!(names(&found, "name"), expected, "{holder}");
        assert_eq!(found["channels"].as_array().unwrap().is_empty(), holder == "one");
    }
}

fn server_with(store: &SharedStore, change: impl FnOnce(&mut HttpOptions)) -> Server {
    let mut builder = Server::build(Mount::read_only("m", store.clone()));
    change(&mut builder.http);
    builder.finish()
}

#[tokio::test]
async fn viewers_are_linked_where_they_can_reach_the_node() {
    let store = memory();
    old_image(&store).await;
    Array::of(&[9, 7]).data_type(data_type("float32")).store(&store, "a").await;
    let public = "https://data.example/zarr";
    let viewers = async |change: fn(&mut HttpOptions), path: &str| {
        let server = server_with(&store, |http| {
            http.public_url = public.to_owned();
            change(http);
        });
        summary(&server, path).await["open_in"].as_array().unwrap().clone()
    };
    let names = |found: &[Value]| -> Vec<String> {
        found.iter().map(|viewer| viewer["name"].as_str().unwrap().to_owned()).collect()
    };
    let found = viewers(|_| {}, "m/image").await;
    assert_eq!(
        names(&found),
        ["Neuroglancer", "Vizarr", "Avivator", "Vol-E", "itk-vtk-viewer", "OME-NGFF validator", "napari"]
    );
    let escaped = "https%3A%2F%2Fdata.example%2Fzarr%2Fstore%2Fm%2Fimage";
    assert_eq!(found[1]["url"], format!("https://hms-dbmi.github.io/vizarr/?source={escaped}"));
    let neuroglancer = found[0]["url"].as_str().unwrap();
    assert!(neuroglancer.starts_with("https://neuroglancer-demo.appspot.com/#!%7B"), "{neuroglancer}");
    assert!(neuroglancer.contains(&format!("zarr%3A%2F%2F{escaped}")), "{neuroglancer}");
    assert_eq!(found[6]["command"], format!("napari --plugin napari-ome-zarr '{public}/store/m/image'"));
    assert_eq!(names(&viewers(|_| {}, "m/a").await), ["Neuroglancer"]);
    assert_eq!(viewers(|http| http.open_in.clear(), "m/image").await, [Value::Null; 0]);
    assert_eq!(viewers(|http| http.public_url.clear(), "m/image").await, [Value::Null; 0]);
    // Pages that may not read across origins are left out.
    let closed = |http: &mut HttpOptions| {
        http.cors = CorsOptions {
            allowed_origins: vec!["https://hms-dbmi.github.io".into()],
            ..CorsOptions::default()
        };
    };
    assert_eq!(names(&viewers(closed, "m/image").await), ["Vizarr", "napari"]);
    let own = |http: &mut HttpOptions| http.open_in = vec!["Mine=https://viewer.example/?d={url}".into()];
    let escaped = "https%3A%2F%2Fdata.example%2Fzarr%2Fstore%2Fm%2Fa";
    assert_eq!(
        viewers(own, "m/a").await,
        [json!({ "name": "Mine", "url": format!("https://viewer.example/?d={escaped}") })]
    );
}

#[test]
fn viewers_and_public_urls_that_cannot_be_links_are_rejected() {
    let check = |public_url: &str, open_in: &[&str]| {
        let open_in = open_in.iter().map(|&viewer| viewer.to_owned()).collect();
        HttpOptions { public_url: public_url.to_owned(), open_in, ..HttpOptions::default() }.check().is_ok()
    };
    for fine in ["", "https://data.example", "http://localhost:8000/zarr/a"] {
        assert!(check(fine, &["vizarr", "Mine=https://viewer.example/{url}"]), "{fine}");
    }
    for wrong in [
        "data.example",
        "https://",
        "ftp://data.example",
        "https://data.example/",
        "https://a/b c",
        "https://a/?q",
    ] {
        assert!(!check(wrong, &[]), "{wrong}");
    }
    for wrong in ["vizar", "Mine=https://viewer.example/", "Mine=javascript:{url}", ""] {
        assert!(!check("", &[wrong]), "{wrong}");
    }
}

#[tokio::test]
async fn hostile_attributes_have_a_summary_of_bounded_size() {
    let store = memory();
    let deep = (0..40).fold(
        json!({}),
        |inner, _| json!({ "ome": inner, "multiscales": [{ "datasets": [{ "path": "../../x" }] }] }),
    );
    let many: Vec<Value> =
        (0..3000).map(|at| json!({ "path": at.to_string(), "name": "x".repeat(300) })).collect();
    for (name, attributes) in [
        ("deep", deep),
        ("levels", json!({ "ome": { "multiscales": [{ "axes": many.clone(), "datasets": many.clone() }] } })),
        (
            "wells",
            json!({ "plate": { "rows": many.clone(), "columns": many.clone(), "wells": many.clone() } }),
        ),
        ("layout", json!({ "multiscales": { "layout": many } })),
        (
            "types",
            json!({ "ome": [], "plate": 1, "well": "x", "multiscales": null, "zarr_conventions": {}, "proj:code": [] }),
        ),
    ] {
        group(&store, name, attributes).await;
        let server = Server::of(store.clone());
        let answer = server.get(&format!("/v1/nodes/m/{name}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{name}: {:?}", answer.body);
        let found = answer.json()["summary"].clone();
        assert!(found.to_string().len() < 300_000, "{name}");
        assert!(found["levels"].as_array().unwrap().len() <= 64, "{name}");
    }
}

#[tokio::test]
async fn coordinates_are_found_by_the_names_of_dimensions_and_ends_that_are_no_numbers_are_unknown() {
    let store = memory();
    group(&store, "d", json!({})).await;
    let document = |shape: &[u64], names: Value| {
        let mut document = Array::of(&vec![2; shape.len()]).data_type(data_type("float64")).document().1;
        document["shape"] = json!(shape);
        document["dimension_names"] = names;
        document["codecs"] = json!([{ "name": "bytes", "configuration": { "endian": "little" } }]);
        document.to_string()
    };
    for (name, values) in [("lat", [60.0, 50.0]), ("lon", [-10.0, 0.0]), ("time", [f64::NAN, 5.0])] {
        put(&store, &format!("d/{name}/zarr.json"), document(&[2], json!([name]))).await;
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        put(&store, &format!("d/{name}/c/0"), bytes).await;
    }
    put(&store, "d/v/zarr.json", document(&[2, 2, 2], json!(["time", "lat", "lon"]))).await;
    // No coordinate: it has two dimensions.
    put(&store, "d/y/zarr.json", document(&[2, 2], json!(["y", "x"]))).await;
    let server = Server::of(store.clone());
    for path in ["m/d/v", "m/d"] {
        let found = summary(&server, path).await;
        let ends = names(&found, "ends");
        assert_eq!(ends[..3], [Value::Null, json!([60.0, 50.0]), json!([-10.0, 0.0])], "{path}");
        assert_eq!(found["bbox"], json!([-10.0, 50.0, 0.0, 60.0]), "{path}");
    }
    assert_eq!(names(&summary(&server, "m/d/y").await, "ends"), [Value::Null, Value::Null]);
    let nan: Vec<u8> = [f64::NAN, 1.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    put(&store, "d/lon/c/0", nan).await;
    let found = summary(&server, "m/d/v").await;
    assert!(found["bbox"].is_null() && names(&found, "ends")[2].is_null(), "{found}");
    assert_eq!(server.get("/v1/nodes/m/d/v").await.status, StatusCode::OK);
}

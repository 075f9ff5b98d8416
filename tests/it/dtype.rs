//! `dtype=` of `/v1/data`: real numbers as another data type, with the meaning that it has in `/rechunk`.

use axum::http::StatusCode;
use serde_json::{Value, json};
use zarrd::store::SharedStore;

use crate::labels::{array, doubles};
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

/// Arrays of several types.
async fn store() -> SharedStore {
    let store = memory();
    put(&store, "zarr.json", json!({ "zarr_format": 3, "node_type": "group" }).to_string()).await;
    let packed = json!({ "scale_factor": 0.5, "_FillValue": -1 });
    let shorts: Vec<u8> = [3_i16, -1, 300].into_iter().flat_map(i16::to_le_bytes).collect();
    array(&store, "short", &[3], "int16", &["x"], packed, shorts).await;
    let longs: Vec<u8> = [1_i64 << 53, -7, (1 << 53) + 1].into_iter().flat_map(i64::to_le_bytes).collect();
    array(&store, "long", &[3], "int64", &["x"], json!({}), longs).await;
    array(&store, "double", &[3], "float64", &["x"], json!({}), doubles(&[0.1, -2.0, f64::NAN])).await;
    array(&store, "truth", &[3], "bool", &["x"], json!({}), vec![0, 1, 1]).await;
    store
}

#[tokio::test]
async fn numbers_are_cast_in_every_format_after_everything_else() {
    let server = Server::of(store().await);
    for (query, data_type, elements) in [
        ("short?dtype=int64", "int64", json!([3, -1, 300])),
        ("short?dtype=float32", "float32", json!([3.0, -1.0, 300.0])),
        ("short?dtype=safe", "int16", json!([3, -1, 300])),
        ("short?dtype=stored", "int16", json!([3, -1, 300])),
        ("short?dtype=uint8&isel.x=0", "uint8", json!(3)),
        ("short?decode=cf&dtype=float32", "float32", json!([1.5, "NaN", 150.0])),
        ("short?reduce.x=sum&dtype=int32", "int32", json!(303)),
        ("short?isel.x=2,0&dtype=int32", "int32", json!([300, 3])),
        ("long?dtype=safe&isel.x=0:2", "float64", json!([9_007_199_254_740_992.0, -7.0])),
        ("double?dtype=float32&isel.x=1:", "float32", json!([-2.0, "NaN"])),
    ] {
        let found = server.get(&format!("/v1/data/m/{query}&format=json")).await;
        assert_eq!((found.status, found.json()), (StatusCode::OK, elements), "{query}");
        assert_eq!(found.header("array-data-type"), data_type, "{query}");
    }
    let url = "/v1/data/m/double?isel.x=0:2&format=bytes&dtype=float32";
    let little = server.get(url).await;
    assert_eq!(&little.body[..], [0.1_f32.to_le_bytes(), (-2.0_f32).to_le_bytes()].concat());
    let big = server.get(&format!("{url}&endian=big")).await;
    assert_eq!(&big.body[..], [0.1_f32.to_be_bytes(), (-2.0_f32).to_be_bytes()].concat());
    let tags =
        ["", "&dtype=float32", "&dtype=float16"].map(|dtype| format!("/v1/data/m/double?isel.x=1{dtype}"));
    let mut seen = std::collections::BTreeSet::new();
    for url in &tags {
        assert!(seen.insert(server.get(url).await.header("etag").to_owned()), "{url}");
    }
    let part = server.ask(axum::http::Method::GET, url, &[("range", "bytes=2-6")]).await;
    assert_eq!((part.status, &part.body[..]), (StatusCode::PARTIAL_CONTENT, &little.body[2..7]));
    let body: Value = json!({ "isel": { "x": [2, 0] }, "dtype": "float64", "format": "json" });
    let posted = server.request("POST", "/v1/data/m/short", &[], body.to_string()).await;
    assert_eq!(posted.json(), json!([300.0, 3.0]));
}

#[tokio::test]
async fn a_number_that_the_type_cannot_represent_is_named_and_other_types_are_refused() {
    let server = Server::of(store().await);
    for (query, says) in [
        ("short?dtype=uint8", "-1"),
        ("long?dtype=safe", "9007199254740993"),
        ("double?dtype=int32&format=json", "0.1"),
    ] {
        let detail = server.get(&format!("/v1/data/m/{query}")).await.refuses(501, "unsupported", query);
        assert!(detail.contains(says) && detail.contains("dtype"), "{query}: {detail}");
    }
    for (query, says) in [
        ("short?dtype=text", "such as `float32`"),
        ("truth?dtype=float32", "elements of type bool cannot be cast to float32"),
        ("short?dtype=float32&format=nc", "leave out"),
    ] {
        let detail = server.get(&format!("/v1/data/m/{query}")).await.refuses(400, "invalid-request", query);
        assert!(detail.contains(says), "{query}: {detail}");
    }
}

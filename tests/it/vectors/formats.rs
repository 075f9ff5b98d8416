//! The formats of vertices (JSON, an Arrow stream, a binary frame), pages, and corrupt chunks.

use axum::http::StatusCode;
use serde_json::{Value, json};
use zarrd::store::SharedStore;

use super::{ask, copied, get_json, server, sorted};
use crate::support::server::{Server, put};

/// The columns of a binary frame, with its header.
fn frame(body: &[u8]) -> (Value, Vec<(String, Vec<u8>)>) {
    let length = u32::from_le_bytes(body[..4].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&body[4..4 + length]).unwrap();
    let start = (4 + length).next_multiple_of(8);
    let columns = header["columns"].as_array().unwrap().iter().map(|column| {
        let offset = start + column["offset"].as_u64().unwrap() as usize;
        assert_eq!(offset % 8, 0, "{column}");
        let bytes = body[offset..offset + column["length"].as_u64().unwrap() as usize].to_vec();
        (column["name"].as_str().unwrap().to_owned(), bytes)
    });
    let columns = columns.collect();
    (header, columns)
}

#[tokio::test]
async fn a_binary_frame_has_the_columns_of_the_json_response() {
    let server = server("real");
    let query = "points_tiny.zarrvectors/vertices?attributes=intensity,color,kind&columns=position,chunk,row,fragment";
    let shown = get_json(&server, query).await;
    let answer = ask(&server, &format!("{query}&format=bin")).await;
    assert_eq!(answer.header("content-type"), "application/octet-stream");
    let (header, columns) = frame(&answer.body);
    assert_eq!((&header["rows"], &header["stats"]), (&json!(9), &shown["stats"]));
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["position", "chunk", "row", "fragment", "intensity", "color", "kind"]);
    let floats: Vec<f64> =
        columns[0].1.chunks(4).map(|item| f32::from_le_bytes(item.try_into().unwrap()).into()).collect();
    let flat: Vec<f64> = shown["positions"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row.as_array().unwrap())
        .map(|number| f64::from(number.as_f64().unwrap() as f32))
        .collect();
    assert_eq!(floats, flat);
    let color: Vec<u64> = shown["attributes"]["color"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row.as_array().unwrap())
        .map(|number| number.as_u64().unwrap())
        .collect();
    assert_eq!(columns[5].1.iter().map(|&byte| u64::from(byte)).collect::<Vec<_>>(), color);
    let categories = header["columns"][6]["categories"].as_array().unwrap();
    let kinds: Vec<&Value> = columns[6].1.iter().map(|&code| &categories[code as usize]).collect();
    assert_eq!(json!(kinds), shown["attributes"]["kind"]);
    // In chunk order, the points have the values with which they were written.
    assert_eq!(shown["attributes"]["kind"], json!(["a", "b", "a", "c", "a", "b", "b", "a", "c"]));
}

#[tokio::test]
async fn arrow_streams_start_and_end_as_the_format_requires() {
    let server = server("real");
    for query in [
        "points_cloud.zarrvectors/vertices?",
        "streamlines.zarrvectors/vertices?attributes=fa&columns=position,object_id,fragment&",
        "points_tiny.zarrvectors/vertices?bbox=1e9,1e9,1e9,2e9,2e9,2e9&",
    ] {
        let shown = get_json(&server, query).await;
        let answer = ask(&server, &format!("{query}format=arrow")).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}");
        assert_eq!(answer.header("content-type"), "application/vnd.apache.arrow.stream");
        assert_eq!(&answer.body[..4], [0xff; 4], "a message begins so");
        assert_eq!(
            &answer.body[answer.body.len() - 8..],
            [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
            "and the stream ends so"
        );
        assert_eq!(answer.header("x-zvf-rows"), shown["stats"]["rows"].to_string());
        assert_eq!(answer.header("x-zvf-chunks"), shown["stats"]["chunks"].to_string());
        assert_eq!(answer.header("x-zvf-bins"), shown["stats"]["bins"].to_string());
        assert_eq!(answer.header("x-zvf-rows-loaded"), shown["stats"]["rows_loaded"].to_string());
    }
    let head = server
        .ask(axum::http::Method::HEAD, "/v1/vectors/m/points_cloud.zarrvectors/vertices?format=arrow", &[])
        .await;
    assert_eq!((head.status, head.body.len(), head.header("x-zvf-chunks")), (StatusCode::OK, 0, "125"));
    assert!(!head.headers.contains_key("content-length"), "the length of rows that were not read is unknown");
    let accepted = server
        .ask(
            axum::http::Method::GET,
            "/v1/vectors/m/points_tiny.zarrvectors/vertices",
            &[("accept", "application/vnd.apache.arrow.stream")],
        )
        .await;
    assert_eq!(accepted.header("content-type"), "application/vnd.apache.arrow.stream");
    ask(&server, "points_tiny.zarrvectors/vertices?format=png").await.refuses(400, "unknown-format", "png");
}

#[tokio::test]
async fn pages_concatenate_to_the_whole_result() {
    let server = server("real");
    let all =
        get_json(&server, "points_pyramid.zarrvectors/vertices?attributes=&bbox=0,0,0,150,150,150").await;
    for limit in [1, 7, 50, 10_000] {
        let (mut rows, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
        loop {
            let at = cursor.as_str().map_or(String::new(), |cursor| format!("&cursor={cursor}"));
            let page = get_json(
                &server,
                &format!("points_pyramid.zarrvectors/vertices?bbox=0,0,0,150,150,150&limit={limit}{at}"),
            )
            .await;
            let found = page["positions"].as_array().unwrap();
            assert!(found.len() <= limit);
            rows.extend(found.clone());
            pages += 1;
            cursor = page["cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(json!(rows), all["positions"], "{limit}");
        assert_eq!(pages, rows.len().div_ceil(limit), "{limit}");
    }
    for cursor in ["0.0:1", "x", "0.0.0", "0.0.0:-1"] {
        ask(&server, &format!("points_pyramid.zarrvectors/vertices?cursor={cursor}")).await.refuses(
            400,
            "bad_param",
            cursor,
        );
    }
}

#[tokio::test]
async fn posted_boxes_return_each_vertex_once() {
    let server = server("real");
    let url = "/v1/vectors/m/points_tiny.zarrvectors/vertices";
    let body = json!({"boxes": [[0, 0, 0, 60, 60, 60], [50, 0, 0, 200, 200, 200], ["-inf", 0, 0, 10, 10, 10], {"min": [50, 0, 0], "max": [60, 10, "60"]}], "attributes": ["intensity"]});
    let answer = server.request("POST", url, &[("content-type", "application/json")], body.to_string()).await;
    assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
    let found = answer.json();
    assert_eq!(found["stats"]["rows"], 7, "{found}");
    assert_eq!(found["attributes"]["intensity"].as_array().unwrap().len(), 7);
    let one = server
        .request("POST", url, &[], json!({"bbox": [0, 0, 0, 49, 49, 49], "interval": "closed"}).to_string())
        .await;
    assert_eq!(sorted(&one.json()["positions"]), [[10.0, 10.0, 10.0]]);
    for (body, code) in [
        (json!({"boxes": [[0, 0, 0]]}), "bbox_rank"),
        (json!({"boxes": [[1, 0, 0, 0, 1, 1]]}), "bbox_inverted"),
        (json!({"boxes": 3}), "bad_param"),
        (json!({"boxes": [{"min": [0, 0], "max": [1, 1, 1, 1]}]}), "bad_param"),
        (json!({"bbox": {"a": 1}}), "bad_param"),
        (json!({"box": [1]}), "bad_param"),
    ] {
        server.request("POST", url, &[], body.to_string()).await.refuses(400, code, &body.to_string());
    }
    server.request("POST", "/v1/vectors/m/points_tiny.zarrvectors/chunks", &[], "{}").await.refuses(
        405,
        "not-allowed",
        "chunks",
    );
}

/// A copy of a store with other bytes in one chunk.
async fn damaged(store: &str, key: &str, bytes: &[u8]) -> (Server, SharedStore) {
    let copy = copied(&format!("real/{store}.zarrvectors")).await;
    put(&copy, &format!("s/{key}"), bytes.to_vec()).await;
    (Server::of(std::sync::Arc::clone(&copy)), copy)
}

#[tokio::test]
async fn a_corrupt_chunk_is_reported_or_skipped() {
    for (key, bytes) in [
        ("0/vertices/c/1/0/0", &b"\x01\0\0\0\x05\0\0\0abcde"[..]),
        ("0/vertices/c/1/0/0", b"\x01\0\0\0\xff\xff\xff\xff"),
        ("0/vertices/c/1/0/0", b"\xff\xff\xff\xff"),
        ("0/vertices/c/1/0/0", b"\x02\0\0\0\0\0\0\0\0\0\0\0"),
    ] {
        let (server, _) = damaged("points_tiny", key, bytes).await;
        let refused = ask(&server, "s/vertices").await;
        refused.refuses(409, "corrupt_chunk", key);
        assert_eq!(
            (&refused.json()["chunk"], &refused.json()["path"]),
            (&json!("1.0.0"), &json!("s/0/vertices"))
        );
        let arrow = ask(&server, "s/vertices?format=arrow").await;
        arrow.refuses(409, "corrupt_chunk", key);
        let rest = get_json(&server, "s/vertices?on_error=skip").await;
        assert_eq!(
            (&rest["stats"]["rows"], &rest["errors"][0]["chunk"]),
            (&json!(7), &json!("1.0.0")),
            "{rest}"
        );
        // A box that does not touch the chunk is unaffected.
        assert_eq!(get_json(&server, "s/vertices?bbox=0,0,0,49,49,49").await["stats"]["rows"], 1);
    }
    let (server, _) =
        damaged("points_tiny", "0/vertex_attributes/intensity/c/1/0/0", b"\x01\0\0\0\x04\0\0\0abcd").await;
    ask(&server, "s/vertices?attributes=intensity").await.refuses(409, "corrupt_chunk", "too few values");
    assert_eq!(get_json(&server, "s/vertices").await["stats"]["rows"], 9);
    let (server, _) = damaged(
        "points_tiny",
        "0/vertex_fragments/c/1/0/0",
        b"\x01\0\0\0\x10\0\0\0GFVZ\x01\0\0\0\xff\xff\xff\xff\0\0\0\0",
    )
    .await;
    ask(&server, "s/vertices?columns=fragment").await.refuses(409, "corrupt_chunk", "an index that is none");
}

#[tokio::test]
async fn an_invalid_manifest_is_reported_with_its_object() {
    // Manifests of the documents' profile are uncompressed, so the test can write them.
    let copy = copied("doc/doc_streamlines.zarrvectors").await;
    let pairs: Vec<u8> = [0_i64, 0, 0, 99].iter().flat_map(|number| number.to_le_bytes()).collect();
    let chunk = [pairs, vec![0xff; (65536 - 2) * 16]].concat();
    put(&copy, "s/0/object_index/c/0/0", chunk).await;
    let server = Server::of(copy);
    let refused = ask(&server, "s/objects/1/vertices").await;
    refused.refuses(500, "corrupt_manifest", "group 99");
    assert_eq!(refused.json()["object_id"], 1);
    assert_eq!(
        get_json(&server, "s/objects/0").await["manifest"],
        json!([{"chunk": [0, 0, 0], "fragments": [0]}])
    );
}

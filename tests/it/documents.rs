//! Content of other programs in hierarchies: stray files, tokens that are no JSON, strings that resemble numbers, documents that
//! exceed a limit. Unambiguous content is read, stored bytes are served, and the rest is refused by name.

use axum::http::StatusCode;
use serde_json::{Value, json};
use zarrd::services::Mount;

use crate::support::hierarchy::{Array, Format, memory};
use crate::support::server::{Server, put};

/// A v3 group with these attributes, as they stand here.
fn group(attributes: &str) -> String {
    format!(r#"{{"zarr_format":3,"node_type":"group","attributes":{attributes}}}"#)
}

#[tokio::test]
async fn stray_files_and_names_are_not_nodes_and_do_not_break_listings() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (path, text) in [
        (&b"zarr.json"[..], group("{}").as_str()),
        (b"a/zarr.json", group("{}").as_str()),
        (b"a/.DS_Store", "\0\0\0\x01Bud1"),
        (b".DS_Store", "\0\0\0\x01Bud1"),
        (b"zarr.json.4f1d.partial", "half"),
        (b".zmetadata", "no JSON"),
        (b"Thumbs.db", ""),
        (b"folder/notes.txt", "notes"),
        (b"folder/zarr.json.bak", "{}"),
        (b"empty-\xff/zarr.json", group("{}").as_str()),
        (b"a/\xfe\xff", "x"),
        (b"new\nline/zarr.json", group("{}").as_str()),
        (b"__zarr/zarr.json", group("{}").as_str()),
    ] {
        let path = root.join(std::ffi::OsStr::from_bytes(path));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::create_dir(root.join("nothing")).unwrap();
    let store = zarrd::store::open(
        root.to_str().unwrap(),
        &zarrd::store::StoreOptions::default(),
        &crate::support::server::cpu(),
    )
    .unwrap();
    let server = Server::of(store);
    let names = |answer: &Value| {
        answer["children"].as_array().unwrap().iter().map(|child| child["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&server.get("/v1/nodes/m").await.json()), ["a"]);
    assert_eq!(names(&server.get("/v1/nodes/m/a").await.json()), Vec::<Value>::new());
    let made = server.get("/store/m/zarr.json?consolidated").await.json();
    assert_eq!(made["consolidated_metadata"]["metadata"].as_object().unwrap().len(), 1);
    for path in ["folder", "nothing", "Thumbs.db", ".DS_Store"] {
        server.get(&format!("/v1/nodes/m/{path}")).await.refuses(404, "not-found", path);
    }
}

#[tokio::test]
async fn bare_nan_is_accepted_served_unchanged_and_never_emitted() {
    let zattrs = r#"{"a": NaN, "b": [Infinity, {"c": -Infinity}]}"#;
    let zarray = r#"{"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<f4", "fill_value": NaN, "order": "C",
        "filters": null, "compressor": null}"#;
    let zarr_json = r#"{"zarr_format": 3, "node_type": "group", "attributes": {"a": NaN, "b": [Infinity, {"c": -Infinity}]}}"#;
    let zmetadata = r#"{"zarr_consolidated_format": 1, "metadata": {".zattrs": {"a": NaN}, "a/.zarray": {"fill_value": -Infinity}}}"#;
    let store = memory();
    let stored = [
        ("v2/.zattrs", zattrs),
        ("v2/.zgroup", r#"{"zarr_format": 2}"#),
        ("v2/.zmetadata", zmetadata),
        ("v2/a/.zarray", zarray),
        ("v2/a/.zattrs", zattrs),
        ("v3/zarr.json", zarr_json),
    ];
    for (key, text) in stored {
        put(&store, key, text).await;
    }
    let server = Server::of(store);
    let expected = json!({ "a": "NaN", "b": ["Infinity", { "c": "-Infinity" }] });
    for path in ["v2", "v2/a", "v3"] {
        let node = server.get(&format!("/v1/nodes/m/{path}")).await;
        assert_eq!(node.status, StatusCode::OK, "{path}: {:?}", node.body);
        assert_eq!(node.json()["metadata"]["attributes"], expected, "{path}");
    }
    assert_eq!(server.get("/v1/nodes/m/v2").await.json()["consolidated"], true);
    assert_eq!(server.elements("m/v2/a", "").await.as_ref(), f32::NAN.to_le_bytes().repeat(2));
    for key in ["v2/.zmetadata?consolidated", "v3/zarr.json?consolidated"] {
        server.get(&format!("/store/m/{key}")).await.json();
    }
    for (key, text) in stored {
        assert_eq!(server.get(&format!("/store/m/{key}")).await.body, text, "{key}");
    }
}

#[tokio::test]
async fn strings_that_resemble_numbers_stay_strings_and_numbers_keep_their_spelling() {
    let attributes = r#"{"a":"NaN","b":"Infinity","c":"1.0","d":1.0,"e":1,"f":1e5,"g":-0.0,"h":"0x7fc00000","i":1.10,"j":null,"k":"true","l":true,"m":1e400}"#;
    let big = format!(r#"{{"digits":{}}}"#, "9".repeat(100_000));
    let store = memory();
    put(&store, "text/zarr.json", group(attributes)).await;
    put(&store, "big/zarr.json", group(&big)).await;
    put(&store, "v2/.zgroup", r#"{"zarr_format": 2}"#).await;
    put(&store, "v2/.zattrs", attributes).await;
    let server = Server::of(store);
    for (path, expected) in [("text", attributes), ("v2", attributes), ("big", big.as_str())] {
        let node = server.get(&format!("/v1/nodes/m/{path}")).await;
        let text = String::from_utf8(node.body.to_vec()).unwrap().replace("e+", "e");
        assert!(text.contains(&format!(r#""attributes":{expected}"#)), "{path}: {text:.500}");
    }
    let made = server.get("/store/m/text/zarr.json?consolidated").await;
    assert!(String::from_utf8_lossy(&made.body).replace("e+", "e").contains(attributes));
}

#[tokio::test]
async fn duplicate_members_are_refused_except_in_attributes_where_the_last_one_wins() {
    let array = Array::of(&[2]).document().1.to_string();
    let store = memory();
    put(&store, "shape/zarr.json", array.replacen('{', r#"{"shape":[3],"#, 1)).await;
    put(&store, "codec/zarr.json", array.replace(r#""codecs":[{"#, r#""codecs":[{"name":"bytes","#)).await;
    put(&store, "attributes/zarr.json", group(r#"{"a":1,"b":{"c":1,"c":2},"a":[2]}"#)).await;
    put(&store, "v2/.zgroup", r#"{"zarr_format": 2, "zarr_format": 2}"#).await;
    put(&store, "v2a/.zgroup", r#"{"zarr_format": 2}"#).await;
    put(&store, "v2a/.zattrs", r#"{"a":1,"a":[2],"b":{"c":1,"c":2}}"#).await;
    let server = Server::of(store);
    for path in ["shape", "codec", "v2"] {
        let detail = server.get(&format!("/v1/nodes/m/{path}")).await.refuses(500, "invalid-metadata", path);
        assert!(detail.contains("repeated name"), "{path}: {detail}");
    }
    for path in ["attributes", "v2a"] {
        let found = server.get(&format!("/v1/nodes/m/{path}")).await.json();
        assert_eq!(found["metadata"]["attributes"], json!({ "a": [2], "b": { "c": 2 } }), "{path}");
    }
}

#[tokio::test]
async fn a_byte_order_mark_is_skipped_in_every_document() {
    let store = memory();
    let array =
        Array::of(&[2]).format(Format::V2 { compressor: None, fortran: false, big: false, separator: '.' });
    let model = array.store(&store, "v2").await;
    put(&store, "v2/.zarray", format!("\u{feff}{}", array.document().1)).await;
    put(&store, "v2/.zattrs", "\u{feff}{\"a\": 1}").await;
    put(&store, "v3/zarr.json", format!("\u{feff}{}", group(r#"{"a":1}"#))).await;
    let server = Server::of(store);
    assert_eq!(server.elements("m/v2", "").await, model.elements);
    for path in ["v2", "v3"] {
        assert_eq!(
            server.get(&format!("/v1/nodes/m/{path}")).await.json()["metadata"]["attributes"],
            json!({ "a": 1 })
        );
    }
    assert!(server.get("/store/m/v3/zarr.json").await.body.starts_with("\u{feff}".as_bytes()));
}

#[tokio::test]
async fn a_document_longer_than_the_limit_is_refused_before_it_is_parsed() {
    let store = memory();
    // A document that does not even parse is too long first.
    put(&store, "v3/zarr.json", "[".repeat(3000)).await;
    put(&store, "longer/zarr.json", "[".repeat(9000)).await;
    put(&store, "v2/.zgroup", "[".repeat(3000)).await;
    put(&store, "attributes/.zgroup", r#"{"zarr_format": 2}"#).await;
    put(&store, "attributes/.zattrs", "[".repeat(3000)).await;
    put(&store, "good/zarr.json", group("{}")).await;
    let mut server = Server::build(Mount::read_only("m", store));
    (server.metadata.document_bytes, server.metadata.consolidated_bytes) = (2000, 8000);
    let server = server.finish();
    for path in ["v3", "longer", "v2", "attributes"] {
        let detail = server.get(&format!("/v1/nodes/m/{path}")).await.refuses(500, "invalid-metadata", path);
        assert!(detail.contains("the limit is"), "{path}: {detail}");
    }
    assert_eq!(server.get("/v1/nodes/m/good").await.status, StatusCode::OK);
}

#[tokio::test]
async fn documents_over_a_structural_limit_are_invalid_metadata() {
    let with = |members: Value| Array::of(&[4]).members(members).document().1.to_string();
    let mut nested = json!({ "name": "bytes", "configuration": { "endian": "little" } });
    for _ in 0..12 {
        let configuration = json!({ "chunk_shape": [4], "codecs": [nested], "index_codecs": ["bytes"] });
        nested = json!({ "name": "sharding_indexed", "configuration": configuration });
    }
    let deepest = with(json!({ "codecs": ["@"] })).replace(
        r#""@""#,
        &format!("{}{}", r#"{"name":"s","configuration":{"codecs":["#.repeat(1000), "]}}".repeat(1000)),
    );
    for (what, document) in [
        ("400,000 codecs", with(json!({ "codecs": vec!["crc32c"; 400_000] }))),
        ("no codec", with(json!({ "codecs": [] }))),
        ("shards a thousand deep", deepest),
        ("shards twelve deep", with(json!({ "codecs": [nested] }))),
        ("33 dimensions", with(json!({ "shape": vec![1; 33] }))),
        ("a shape of true", with(json!({ "shape": [true] }))),
        ("a shape of 10.0", with(json!({ "shape": [10.0] }))),
        (
            "a chunk of 0",
            with(json!({ "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [0] } } })),
        ),
        ("a name with a NUL", with(json!({ "shape\0": [4] }))),
    ] {
        let store = memory();
        put(&store, "a/zarr.json", document.clone()).await;
        let server = Server::of(store);
        server.get("/v1/data/m/a").await.refuses(500, "invalid-metadata", what);
        assert_eq!(server.get("/store/m/a/zarr.json").await.body, document, "{what}");
    }
}

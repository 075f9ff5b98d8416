//! Copies of the fixtures with one permitted variation: no `nonempty_chunks`, rows outside of all fragments, or chunks
//! that are split by an attribute.

use serde_json::{Value, json};
use zarrd::key::StoreKey;
use zarrd::store::{ByteRange, SharedStore};

use super::{ask, copied, get_json, server, sorted};
use crate::support::hierarchy::memory;
use crate::support::server::{Server, erase, put};

/// Changes a document of a copy.
async fn edit(store: &SharedStore, key: &str, change: impl FnOnce(&mut Value)) {
    let key = format!("s/{key}");
    let value = store.get(&StoreKey::parse(&key).unwrap(), ByteRange::Whole, None).await.unwrap();
    let mut document: Value = serde_json::from_slice(&value.unwrap().bytes(1 << 20).await.unwrap()).unwrap();
    change(&mut document);
    put(store, &key, document.to_string()).await;
}

#[tokio::test]
async fn stored_chunks_are_found_without_the_attribute_nonempty_chunks() {
    let real = server("real");
    for name in ["points_2d_sharded", "points_negative_f64", "points_tiny"] {
        let copy = copied(&format!("real/{name}.zarrvectors")).await;
        edit(&copy, "0/vertices/zarr.json", |array| {
            array["attributes"].as_object_mut().unwrap().remove("nonempty_chunks").unwrap();
        })
        .await;
        let edited = Server::of(copy);
        for route in ["vertices", "vertices?bbox=1,1,3,3"] {
            if route.contains('?') && name != "points_2d_sharded" {
                continue;
            }
            let (found, named) = (
                get_json(&edited, &format!("s/{route}")).await,
                get_json(&real, &format!("{name}.zarrvectors/{route}")).await,
            );
            assert_eq!(found["positions"], named["positions"], "{name} {route}");
            assert_eq!(found["stats"], named["stats"], "{name} {route}");
        }
    }
}

#[tokio::test]
async fn rows_outside_all_fragments_are_not_vertices() {
    let copy = copied("real/points_tiny.zarrvectors").await;
    // One range: the second row of two.
    let mut index = b"GFVZ\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0".to_vec();
    index.extend([1_i64.to_le_bytes(), 1_i64.to_le_bytes()].concat());
    index.extend(0_u32.to_le_bytes());
    let cell = [&1_u32.to_le_bytes()[..], &(index.len() as u32).to_le_bytes(), &index].concat();
    put(&copy, "s/0/vertex_fragments/c/1/0/0", cell).await;
    edit(&copy, "0/zarr.json", |group| {
        group["attributes"]["zarr_vectors_level"]["fragments_tile"] = json!(false);
    })
    .await;
    let server = Server::of(copy);
    for mode in ["vertices", "chunks"] {
        let found = get_json(&server, &format!("s/vertices?mode={mode}&bbox=200,0,0,399,1,1")).await;
        assert_eq!(sorted(&found["positions"]), [[399.0, 1.0, 1.0]], "{mode}");
        assert_eq!(found["chunks"][0]["rows"], json!([1]), "{mode}");
        assert_eq!(found["stats"]["rows_loaded"], 2, "{mode}");
    }
}

#[tokio::test]
async fn an_unknown_number_of_vertices_is_warned_of() {
    let copy = copied("doc/doc_points.zarrvectors").await;
    erase(&copy, "s/0/vertex_group_offsets/zarr.json").await;
    let found = get_json(&Server::of(copy), "s/vertices").await;
    assert_eq!(
        (&found["stats"]["rows"], &found["warnings"][0]["code"]),
        (&json!(18), &json!("row_count_unknown"))
    );
}

#[tokio::test]
async fn unsupported_encodings_are_reported() {
    let copy = copied("real/points_tiny.zarrvectors").await;
    edit(&copy, "0/vertices/zarr.json", |array| array["attributes"]["encoding"] = json!("draco")).await;
    let server = Server::of(copy);
    ask(&server, "s/vertices").await.refuses(501, "unsupported_encoding", "draco");
    assert_eq!(get_json(&server, "s").await["levels"][0]["error"], "unsupported_encoding");
}

#[tokio::test]
async fn a_store_may_have_the_name_of_a_subresource() {
    let copy = copied("real/points_tiny.zarrvectors").await;
    let inner = memory();
    let mut keys = zarrd::store::Store::list_prefix(&*copy, &zarrd::key::StorePrefix::root(), None);
    while let Some(entry) = futures::StreamExt::next(&mut keys).await {
        let key = entry.unwrap().key;
        let value = copy.get(&key, ByteRange::Whole, None).await.unwrap().unwrap();
        let below = key.as_str().strip_prefix("s/").unwrap();
        put(&inner, &format!("a/vertices/{below}"), value.bytes(1 << 20).await.unwrap()).await;
    }
    let server = Server::of(inner);
    assert_eq!(get_json(&server, "a/vertices").await["profile"], "v9");
    assert_eq!(get_json(&server, "a/vertices/vertices").await["stats"]["rows"], 9);
    assert_eq!(get_json(&server, "a/vertices/levels/0/vertices").await["stats"]["rows"], 9);
}

/// A store with two axes whose chunks are also split by a gene: some cells have one vertex each.
async fn genes() -> SharedStore {
    let store = memory();
    let group = |attributes: Value| {
        json!({"zarr_format": 3, "node_type": "group", "attributes": attributes}).to_string()
    };
    let root = json!({
        "zarr_vectors": {
            "zv_version": "0.9.2", "chunk_shape": [10, 10], "bounds": [[0, 0], [19, 19]], "geometry_types": ["point_cloud"],
        },
        "multiscales": [{"axes": [{"name": "x"}, {"name": "y"}], "datasets": [{"path": "0"}]}],
    });
    put(&store, "s/zarr.json", group(root)).await;
    let level = json!({
        "level": 0, "vertex_count": 4, "chunk_dims": ["gene", "x", "y"], "chunk_attribute_name": "gene",
        "chunk_attribute_values": ["Sst", "Pvalb"],
    });
    put(&store, "s/0/zarr.json", group(json!({ "zarr_vectors_level": level }))).await;
    let cells = [
        ([0, 0, 0], [1.0_f32, 1.0]),
        ([0, 1, 1], [11.0, 12.0]),
        ([1, 0, 0], [2.0, 3.0]),
        ([1, 0, 1], [4.0, 15.0]),
    ];
    let mut names = Vec::new();
    for ([gene, x, y], [px, py]) in cells {
        names.push(format!("{gene}.{x}.{y}"));
        let rows = [px.to_le_bytes(), py.to_le_bytes()].concat();
        let cell = [&1_u32.to_le_bytes()[..], &8_u32.to_le_bytes(), &rows].concat();
        put(&store, &format!("s/0/vertices/c/{gene}/{x}/{y}"), cell).await;
    }
    let array = json!({
        "zarr_format": 3, "node_type": "array", "shape": [2, 2, 2], "data_type": "variable_length_bytes",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1, 1]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": "",
        "codecs": [{"name": "vlen-bytes", "configuration": {}}],
        "attributes": {"nonempty_chunks": names, "dtype": "float32", "encoding": "raw"},
    });
    put(&store, "s/0/vertices/zarr.json", array.to_string()).await;
    store
}

#[tokio::test]
async fn chunks_split_by_an_attribute_are_read() {
    let server = Server::of(genes().await);
    let all = get_json(&server, "s/vertices?attributes=gene").await;
    assert_eq!(all["attributes"]["gene"], json!(["Sst", "Sst", "Pvalb", "Pvalb"]));
    assert_eq!(all["chunks"][0]["coord"], json!([0, 0, 0]));
    for (query, rows) in [
        ("where=gene:Sst", json!([[1.0, 1.0], [11.0, 12.0]])),
        ("bbox=0,0,9,9", json!([[1.0, 1.0], [2.0, 3.0]])),
        ("bbox=0,0,9,9&where=gene:Pvalb", json!([[2.0, 3.0]])),
    ] {
        let found = get_json(&server, &format!("s/vertices?{query}")).await;
        assert_eq!(sorted(&found["positions"]), sorted(&rows), "{query}");
    }
    for none in ["gene:Vip", "color:Sst", "gene"] {
        ask(&server, &format!("s/vertices?where={none}")).await.refuses(400, "bad_param", none);
    }
    let level = get_json(&server, "s/levels/0").await;
    assert_eq!(level["chunk_attribute"], json!({"name": "gene", "values": ["Sst", "Pvalb"]}));
    assert_eq!((&level["grid"], &level["chunks"]), (&json!([2, 2]), &json!(4)));
    assert_eq!(get_json(&server, "s/validate").await["ok"], true);
}

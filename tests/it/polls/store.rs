//! The store of the requests: long documents of each kind, groups of many nodes, arrays of many chunks, labels and texts.

use std::sync::Arc;

use serde_json::{Value, json};
use zarrd::store::SharedStore;

use crate::support::hierarchy::Array;
use crate::support::server::{Server, put};

/// Bytes of long documents.
pub(super) const DOCUMENT_BYTES: usize = 1 << 20;
/// Nodes below a group.
pub(super) const NODES: usize = 50;
/// Stored chunks of an array.
const CHUNKS: usize = 200;
/// Labels of a coordinate.
pub(super) const LABELS: u32 = 50_000;
/// Texts of an array.
const TEXTS: u32 = 50_000;
/// Rows and columns of an array.
const WIDE: usize = 400_000;
/// Arrays whose attributes name others.
const NAMING: usize = 200;

/// A member that makes a document as long as it may be, of a great many values.
pub(super) fn long() -> Value {
    Value::Array(vec![json!({"": 1}); DOCUMENT_BYTES / 8 - 1000])
}

pub(super) fn document(mut members: Value, attributes: Value) -> String {
    members["attributes"] = attributes;
    let text = members.to_string();
    assert!((DOCUMENT_BYTES * 3 / 4..=DOCUMENT_BYTES).contains(&text.len()), "{}", text.len());
    text
}

/// A store with long documents of each kind, a group of many nodes, and an array of many chunks.
pub(super) async fn store() -> SharedStore {
    let store = crate::vectors::copied("real/points_objects.zarrvectors").await;

    let group = || json!({"zarr_format": 3, "node_type": "group"});
    put(&store, "zarr.json", group().to_string()).await;
    put(&store, "g/zarr.json", group().to_string()).await;
    let layout = json!({"layout": [{"asset": "x"}], "long": long()});
    put(&store, "g/scales/zarr.json", document(group(), json!({"multiscales": layout}))).await;
    for number in 0..NODES {
        put(&store, &format!("many/n{number}/zarr.json"), group().to_string()).await;
    }
    put(&store, "many/zarr.json", group().to_string()).await;

    let shape = [8, 8];
    Array::of(&shape).chunks(&[4, 4]).store(&store, "a").await;
    let array = Server::of(Arc::clone(&store)).get("/store/m/a/zarr.json").await.json();
    let mut short_hand = array;
    short_hand["codecs"] = json!(["bytes"]);
    short_hand["data_type"] = json!("uint8");
    short_hand["fill_value"] = json!(0);
    put(&store, "b/zarr.json", document(short_hand.clone(), json!({"long": long()}))).await;
    // One whose attributes should be short.
    for (name, attribute) in [("packed", "scale_factor"), ("ranged", "valid_range")] {
        put(&store, &format!("{name}/zarr.json"), document(short_hand.clone(), json!({attribute: long()})))
            .await;
    }
    // One with a place on a map, which long documents of its coordinates say.
    let mut placed = short_hand.clone();
    placed["dimension_names"] = json!(["y", "x"]);
    put(&store, "map/b/zarr.json", document(placed.clone(), json!({"long": long()}))).await;
    placed["shape"] = json!([8]);
    placed["chunk_grid"]["configuration"]["chunk_shape"] = json!([8]);
    for name in ["y", "x"] {
        placed["dimension_names"] = json!([name]);
        put(&store, &format!("map/{name}/zarr.json"), placed.to_string()).await;
        put(&store, &format!("map/{name}/c/0"), (0..8).collect::<Vec<u8>>()).await;
    }
    // Many whose attributes name many others.
    put(&store, "naming/zarr.json", group().to_string()).await;
    let mut naming = short_hand.clone();
    for number in 0..NAMING {
        let names = (0..900).map(|at| format!("n{}", 1 + at % (NAMING - 1))).collect::<Vec<_>>().join(" ");
        naming["attributes"] = json!({"coordinates": names, "bounds": names, "grid_mapping": names});
        put(&store, &format!("naming/n{number}/zarr.json"), naming.to_string()).await;
    }
    let one = json!({"one": {"data_type": "uint8", "fill_value": 0}});
    let declared = json!({"dependent-arrays": one, "long": long()});
    put(&store, "p/zarr.json", document(short_hand.clone(), declared)).await;

    let zarray = json!({
        "zarr_format": 2, "shape": shape, "chunks": [4, 4], "dtype": "|u1", "order": "C", "fill_value": 0,
        "filters": null, "compressor": null, "dimension_separator": ".",
    });
    put(&store, "old/.zgroup", r#"{"zarr_format": 2}"#).await;
    put(&store, "old/a/.zarray", zarray.to_string()).await;
    put(&store, "old/a/.zattrs", json!({"long": long()}).to_string()).await;

    // Shards of one inner chunk, which is one byte. Others are declared, so that every view has to read them.
    let bytes = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    let sharding = json!({"chunk_shape": [1], "codecs": bytes, "index_codecs": bytes});
    let mut shards = short_hand;
    shards["shape"] = json!([CHUNKS]);
    shards["chunk_grid"] = json!({"name": "regular", "configuration": {"chunk_shape": [1]}});
    shards["codecs"] = json!([{"name": "sharding_indexed", "configuration": sharding}]);
    shards["attributes"] = json!({"dependent-arrays": {"one": {"data_type": "uint8", "fill_value": 0}}});
    put(&store, "shards/zarr.json", shards.to_string()).await;
    let shard: Vec<u8> = [[7].as_slice(), &0_u64.to_le_bytes(), &1_u64.to_le_bytes()].concat();
    for number in 0..CHUNKS {
        put(&store, &format!("shards/c/{number}"), shard.clone()).await;
    }

    // A long coordinate of its own labels.
    let labels = json!({
        "zarr_format": 3, "node_type": "array", "shape": [LABELS], "data_type": "float64", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [LABELS]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": bytes, "dimension_names": ["label"],
        "attributes": {"units": "seconds since 2000-01-01"},
    });
    put(&store, "label/zarr.json", labels.to_string()).await;
    let numbers: Vec<u8> = (0..LABELS).flat_map(|number| f64::from(number).to_le_bytes()).collect();
    put(&store, "label/c/0", numbers).await;

    // Many texts.
    let texts = json!({
        "zarr_format": 3, "node_type": "array", "shape": [TEXTS], "data_type": "string", "fill_value": "",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [TEXTS]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "vlen-utf8"}],
    });
    put(&store, "texts/zarr.json", texts.to_string()).await;
    let text = "text \u{e9} ".repeat(8);
    let one = [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes()].concat();
    put(&store, "texts/c/0", [&TEXTS.to_le_bytes()[..], &one.repeat(TEXTS as usize)].concat()).await;
    // Of many rows and columns without elements.
    put(&store, "wide/zarr.json", Array::of(&[WIDE, WIDE]).chunks(&[1000, 1000]).document().1.to_string())
        .await;
    store
}

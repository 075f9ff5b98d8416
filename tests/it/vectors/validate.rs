//! Validation: valid stores pass, and a store with one change fails the check of that change, at its level.

use serde_json::{Value, json};
use zarrd::key::{StoreKey, StorePrefix};
use zarrd::store::{ByteRange, SharedStore};

use super::{ask, copied, get_json, server};
use crate::support::server::{Server, erase, put};

#[tokio::test]
async fn valid_stores_pass_every_level() {
    for (folder, stores) in [
        (
            "real",
            &[
                "graph",
                "points_2d_sharded",
                "points_cloud",
                "points_negative_f64",
                "points_objects",
                "points_pyramid",
                "points_rounding",
                "points_tiny",
                "streamlines",
            ][..],
        ),
        ("v07", &["points_negative_v07", "points_tiny_v07", "streamlines_v07"]),
        ("doc", &["doc_points", "doc_points_gzip", "doc_points_shortkeys", "doc_streamlines"]),
    ] {
        let server = server(folder);
        for store in stores {
            for level in 1..=5 {
                let report = get_json(&server, &format!("{store}.zarrvectors/validate?level={level}")).await;
                let odd: Vec<&Value> = report["checks"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|check| check["status"] == "error" || check["status"] == "warning")
                    .collect();
                assert!(odd.is_empty(), "{store}: {}", json!(odd));
                assert_eq!(
                    (&report["ok"], &report["complete"], &report["level"]),
                    (&json!(true), &json!(true), &json!(level)),
                    "{store}"
                );
            }
        }
    }
}

/// One change of a store.
enum Change {
    /// Of a document.
    Document(&'static str, fn(&mut Value)),
    /// Of a value.
    Value(&'static str, Vec<u8>),
    /// A value that is no longer there.
    Without(&'static str),
    /// A prefix without values.
    Empty(&'static str),
}

use Change::{Document, Empty, Value as Bytes, Without};

impl Change {
    async fn make(self, store: &SharedStore) {
        match self {
            Document(key, change) => {
                let key = format!("s/{key}");
                let value = store.get(&StoreKey::parse(&key).unwrap(), ByteRange::Whole, None).await.unwrap();
                let text = value.unwrap().bytes(1 << 20).await.unwrap();
                let mut document: Value = serde_json::from_slice(&text).unwrap();
                change(&mut document);
                put(store, &key, document.to_string()).await;
            }
            Bytes(key, bytes) => put(store, &format!("s/{key}"), bytes).await,
            Without(key) => erase(store, &format!("s/{key}")).await,
            Empty(prefix) => {
                let prefix = StorePrefix::parse(&format!("s/{prefix}/")).unwrap();
                store.erase_prefix(&prefix).await.unwrap();
            }
        }
    }
}

fn block(document: &mut Value) -> &mut Value {
    &mut document["attributes"]["zarr_vectors"]
}

fn level(document: &mut Value) -> &mut Value {
    &mut document["attributes"]["zarr_vectors_level"]
}

fn remove(object: &mut Value, name: &str) {
    object.as_object_mut().unwrap().remove(name).unwrap();
}

/// A cell of one item.
fn cell(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    [&1_u32.to_le_bytes()[..], &length.to_le_bytes(), payload].concat()
}

fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn integers(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A fragment index of ranges.
fn index(ranges: &[(i64, i64)]) -> Vec<u8> {
    let count = u32::try_from(ranges.len()).unwrap();
    let mut bytes = b"GFVZ\x01\0\0\0".to_vec();
    bytes.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    let mut bitmap = vec![0_u8; ranges.len().div_ceil(8).next_multiple_of(8)];
    for fragment in 0..ranges.len() {
        bitmap[fragment / 8] |= 1 << (fragment % 8);
    }
    bytes.extend(bitmap);
    bytes.extend(ranges.iter().flat_map(|&(start, count)| integers(&[start, count])));
    bytes.extend(0_u32.to_le_bytes());
    bytes
}

/// Offsets of 64 bins: these groups, and none for the others.
fn offsets(groups: &[(usize, i64, i64)]) -> Vec<u8> {
    let mut pairs = vec![[-1, -1]; 64];
    for &(bin, start, count) in groups {
        pairs[bin] = [start, count];
    }
    integers(pairs.as_flattened())
}

const TINY: &str = "real/points_tiny";
const LINES: &str = "real/streamlines";
const PYRAMID: &str = "real/points_pyramid";
const GRAPH: &str = "real/graph";
const DOC: &str = "doc/doc_points";

/// The check that must complain, its level and how loudly; the store; and the one change.
type Case = (&'static str, u8, &'static str, &'static str, Change);

fn structure() -> Vec<Case> {
    vec![
        (
            "root_metadata",
            1,
            "error",
            TINY,
            Document("zarr.json", |root| remove(&mut root["attributes"], "zarr_vectors")),
        ),
        ("root_metadata", 1, "error", TINY, Bytes("zarr.json", b"{\"zarr_format\": 3,".to_vec())),
        ("root_metadata", 1, "error", DOC, Bytes(".zattrs", b"{".to_vec())),
        (
            "chunk_shape_present",
            1,
            "error",
            TINY,
            Document("zarr.json", |root| remove(block(root), "chunk_shape")),
        ),
        (
            "chunk_shape_present",
            1,
            "error",
            TINY,
            Document("zarr.json", |root| block(root)["chunk_shape"] = json!("200")),
        ),
        ("chunk_shape_present", 1, "error", DOC, Document(".zattrs", |root| remove(root, "chunk_shape"))),
        (
            "chunk_shape_present",
            1,
            "error",
            DOC,
            Document(".zattrs", |root| root["chunk_shape"] = json!([200, 0, 200])),
        ),
        (
            "base_bin_shape_present",
            1,
            "error",
            DOC,
            Document(".zattrs", |root| remove(root, "base_bin_shape")),
        ),
        ("level_0_exists", 1, "error", PYRAMID, Empty("0")),
        ("level_0_exists", 1, "error", TINY, Empty("0")),
        ("vertices_array", 1, "error", TINY, Without("0/vertices/zarr.json")),
        ("vertices_array", 1, "error", DOC, Without("0/vertices/zarr.json")),
        (
            "vertices_array",
            1,
            "error",
            PYRAMID,
            Document("1/vertices/zarr.json", |array| array["data_type"] = json!("uint8")),
        ),
        ("fragments_array", 1, "warning", TINY, Without("0/vertex_fragments/zarr.json")),
        ("fragments_array", 1, "error", DOC, Without("0/vertex_group_offsets/zarr.json")),
        (
            "level_metadata",
            1,
            "warning",
            TINY,
            Document("0/zarr.json", |group| group["attributes"] = json!({})),
        ),
        ("level_metadata", 1, "error", DOC, Without("0/.zattrs")),
        (
            "optional_nodes",
            1,
            "warning",
            TINY,
            Bytes(
                "0/links/zarr.json",
                b"{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {}}".to_vec(),
            ),
        ),
        (
            "optional_nodes",
            1,
            "warning",
            TINY,
            Bytes(
                "0/groups/zarr.json",
                b"{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {}}".to_vec(),
            ),
        ),
    ]
}

fn metadata() -> Vec<Case> {
    vec![
        (
            "attributes_agree",
            2,
            "error",
            DOC,
            Document("zarr.json", |root| root["attributes"] = json!({"spatial_dims": 2})),
        ),
        (
            "version_known",
            2,
            "error",
            TINY,
            Document("zarr.json", |root| block(root)["zv_version"] = json!("0.8.1")),
        ),
        ("version_known", 2, "error", TINY, Document("zarr.json", |root| remove(block(root), "zv_version"))),
        (
            "version_known",
            2,
            "error",
            "v07/points_tiny_v07",
            Document("zarr.json", |root| block(root)["zv_version"] = json!("0.9.0")),
        ),
        (
            "version_known",
            2,
            "warning",
            DOC,
            Document(".zattrs", |root| root["zarr_vectors_version"] = json!("2.0")),
        ),
        (
            "chunk_shape_rank",
            2,
            "error",
            TINY,
            Document("zarr.json", |root| block(root)["chunk_shape"] = json!([200, 200])),
        ),
        (
            "chunk_shape_positive",
            2,
            "error",
            TINY,
            Document("zarr.json", |root| block(root)["chunk_shape"] = json!([200, -1, 200])),
        ),
        (
            "bin_shape_rank",
            2,
            "error",
            TINY,
            Document("zarr.json", |root| block(root)["base_bin_shape"] = json!([50])),
        ),
        (
            "bin_shape_positive",
            2,
            "error",
            TINY,
            Document("zarr.json", |root| block(root)["base_bin_shape"] = json!([50, 0, 50])),
        ),
        (
            "bin_shape_positive",
            2,
            "error",
            DOC,
            Document(".zattrs", |root| root["base_bin_shape"] = json!([50, -50, 50])),
        ),
        (
            "chunk_bin_divisible",
            2,
            "error",
            TINY,
            Document("zarr.json", |root| block(root)["base_bin_shape"] = json!([60, 50, 50])),
        ),
        (
            "chunk_bin_divisible",
            2,
            "error",
            DOC,
            Document("0/.zattrs", |level| level["bin_shape"] = json!([60, 50, 50])),
        ),
        (
            "library_would_reject",
            2,
            "warning",
            TINY,
            Document("zarr.json", |root| block(root)["base_bin_shape"] = json!([50.000_000_5, 50, 50])),
        ),
        (
            "chunk_grid_consistent",
            2,
            "error",
            TINY,
            Document("zarr.json", |root| block(root)["bounds"] = json!([[0, 0, 0], [400, 400, 4000]])),
        ),
        (
            "chunk_grid_consistent",
            2,
            "warning",
            TINY,
            Document("zarr.json", |root| block(root)["bounds"] = json!([[0, 0, 0], [399, 250, 399]])),
        ),
        (
            "chunk_grid_consistent",
            2,
            "error",
            TINY,
            Document("0/vertices/zarr.json", |array| array["shape"] = json!([3, 3, 4])),
        ),
        (
            "chunk_grid_consistent",
            2,
            "error",
            TINY,
            Document("0/vertex_fragments/zarr.json", |array| {
                array["attributes"]["chunk_grid_origin"] = json!([0, 0, 1]);
            }),
        ),
        (
            "chunk_grid_consistent",
            2,
            "error",
            DOC,
            Document(".zattrs", |root| root["bounding_box"]["max"] = json!([399, 399, 1399])),
        ),
        (
            "bounds_rank",
            2,
            "error",
            TINY,
            Document("zarr.json", |root| block(root)["bounds"] = json!([[0, 0], [400, 400]])),
        ),
        ("bounds_rank", 2, "error", TINY, Document("zarr.json", |root| remove(block(root), "bounds"))),
        (
            "bounds_order",
            2,
            "error",
            TINY,
            Document("zarr.json", |root| block(root)["bounds"][0] = json!([500, 0, 0])),
        ),
        (
            "bounds_order",
            2,
            "error",
            DOC,
            Document(".zattrs", |root| root["bounding_box"]["min"] = json!([-1, 0, 0])),
        ),
        (
            "tokens",
            2,
            "error",
            TINY,
            Document("zarr.json", |root| block(root)["geometry_types"] = json!(["cloud"])),
        ),
        (
            "tokens",
            2,
            "error",
            TINY,
            Document("zarr.json", |root| block(root)["links_convention"] = json!("by_hand")),
        ),
        (
            "tokens",
            2,
            "error",
            LINES,
            Document("zarr.json", |root| block(root)["cross_level_depth"] = json!(-2)),
        ),
        (
            "tokens",
            2,
            "error",
            LINES,
            Document("zarr.json", |root| block(root)["cross_level_storage"] = json!("both")),
        ),
        (
            "tokens",
            2,
            "error",
            LINES,
            Document("zarr.json", |root| block(root)["reduction_factor"] = json!(1)),
        ),
        (
            "tokens",
            2,
            "warning",
            TINY,
            Document("zarr.json", |root| block(root)["format_capabilities"] = json!(["flight"])),
        ),
        (
            "geometry_types_nonempty",
            2,
            "warning",
            TINY,
            Document("zarr.json", |root| block(root)["geometry_types"] = json!([])),
        ),
        (
            "level_index_matches",
            2,
            "error",
            TINY,
            Document("0/zarr.json", |group| level(group)["level"] = json!(1)),
        ),
        ("level_index_matches", 2, "error", DOC, Document("0/.zattrs", |level| level["level"] = json!(3))),
        (
            "level_chunk_shape",
            2,
            "error",
            PYRAMID,
            Document("2/zarr.json", |group| level(group)["chunk_shape"] = json!([150, 200, 200])),
        ),
        (
            "level_chunk_shape",
            2,
            "error",
            PYRAMID,
            Document("2/zarr.json", |group| level(group)["chunk_shape"] = json!([50, 200, 200])),
        ),
        (
            "bin_ratio",
            2,
            "error",
            PYRAMID,
            Document("zarr.json", |root| {
                root["attributes"]["multiscales"][0]["datasets"][1]["coordinateTransformations"][0]["scale"] =
                    json!([0.5, 2, 2]);
            }),
        ),
        (
            "bin_ratio",
            2,
            "error",
            PYRAMID,
            Document("zarr.json", |root| {
                root["attributes"]["multiscales"][0]["datasets"][1]["coordinateTransformations"][1]["translation"] =
                    json!([5, 25, 25]);
            }),
        ),
        ("bin_ratio", 2, "error", DOC, Document("0/.zattrs", |level| level["bin_ratio"] = json!([1, 1]))),
        (
            "object_sparsity",
            2,
            "error",
            TINY,
            Document("0/zarr.json", |group| level(group)["object_sparsity"] = json!(1.5)),
        ),
        (
            "object_sparsity",
            2,
            "error",
            DOC,
            Document("0/.zattrs", |level| level["object_sparsity"] = json!(0)),
        ),
        (
            "vertex_count_type",
            2,
            "error",
            TINY,
            Document("0/zarr.json", |group| level(group)["vertex_count"] = json!(-9)),
        ),
        (
            "vertex_count_type",
            2,
            "error",
            TINY,
            Document("0/zarr.json", |group| level(group)["vertex_count"] = json!("nine")),
        ),
        (
            "doc_array_shapes",
            2,
            "error",
            DOC,
            Document("0/vertex_group_offsets/zarr.json", |array| array["data_type"] = json!("int32")),
        ),
        (
            "doc_array_shapes",
            2,
            "warning",
            DOC,
            Document("0/vertices/zarr.json", |array| array["data_type"] = json!("float64")),
        ),
        (
            "doc_array_shapes",
            2,
            "error",
            DOC,
            Document("0/vertices/zarr.json", |array| {
                array["shape"] = json!([2, 2, 2, 6, 2]);
                array["chunk_grid"]["configuration"]["chunk_shape"] = json!([1, 1, 1, 6, 2]);
            }),
        ),
        (
            "array_attrs",
            2,
            "error",
            TINY,
            Document("0/vertices/zarr.json", |array| array["attributes"]["dtype"] = json!("float128")),
        ),
        (
            "array_attrs",
            2,
            "error",
            TINY,
            Document("0/vertices/zarr.json", |array| array["attributes"]["encoding"] = json!("zip")),
        ),
        (
            "array_attrs",
            2,
            "error",
            TINY,
            Document("0/vertices/zarr.json", |array| {
                array["attributes"]["nonempty_chunks"][0] = json!("9.0.0");
            }),
        ),
        (
            "array_attrs",
            2,
            "error",
            TINY,
            Document("0/vertices/zarr.json", |array| {
                array["attributes"]["nonempty_chunks"][0] = json!("0,0,0");
            }),
        ),
        (
            "array_attrs",
            2,
            "error",
            TINY,
            Document("0/vertex_attributes/kind/zarr.json", |array| remove(&mut array["attributes"], "dtype")),
        ),
    ]
}

fn data() -> Vec<Case> {
    let two = |at: f32| floats(&[200.0, 0.0, 0.0, at, 1.0, 1.0]);
    vec![
        ("chunk_decodes", 3, "error", TINY, Bytes("0/vertices/c/1/0/0", cell(&[0; 13]))),
        ("chunk_decodes", 3, "error", TINY, Bytes("0/vertices/c/1/0/0", vec![0xff; 9])),
        ("chunk_decodes", 3, "error", TINY, Bytes("0/vertex_attributes/kind/c/1/0/0", vec![0xff; 9])),
        ("chunk_decodes", 3, "error", "doc/doc_points_gzip", Bytes("0/vertices/c/1/0/0/0/0", vec![1; 9])),
        ("chunk_decodes", 3, "error", "v07/points_tiny_v07", Bytes("0/vertices/1.0.0/c/0", vec![1; 9])),
        ("fragment_index", 3, "error", TINY, Bytes("0/vertex_fragments/c/1/0/0", cell(&index(&[(0, 3)])))),
        ("fragment_index", 3, "error", TINY, Bytes("0/vertex_fragments/c/1/0/0", cell(b"GFVZ\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0"))),
        ("fragment_index", 3, "error", TINY, Bytes("0/vertex_fragments/c/1/0/0", cell(b"VZFG"))),
        ("vgo_arithmetic", 3, "error", DOC, Bytes("0/vertex_group_offsets/c/1/0/0/0/0", offsets(&[(0, 0, 1), (48, 2, 1)]))),
        ("vgo_arithmetic", 3, "error", DOC, Bytes("0/vertex_group_offsets/c/1/0/0/0/0", offsets(&[(0, 0, 1), (48, 0, 2)]))),
        ("vgo_arithmetic", 3, "error", DOC, Bytes("0/vertex_group_offsets/c/1/0/0/0/0", offsets(&[(0, 0, 1), (48, 1, 9)]))),
        ("vgo_arithmetic", 3, "error", DOC, Bytes("0/vertex_group_offsets/c/1/0/0/0/0", offsets(&[(0, 0, 1), (1, 1, 1)]))),
        ("vertex_in_chunk", 3, "error", TINY, Bytes("0/vertices/c/1/0/0", cell(&two(401.0)))),
        ("vertex_in_chunk", 3, "error", "v07/points_tiny_v07", Bytes("0/vertices/1.0.0/c/0", two(401.0))),
        ("finite", 3, "warning", TINY, Bytes("0/vertices/c/1/0/0", cell(&two(f32::NAN)))),
        ("finite", 3, "warning", TINY, Bytes("0/vertices/c/1/0/0", cell(&two(f32::INFINITY)))),
        ("vertex_count", 3, "error", TINY, Document("0/zarr.json", |group| level(group)["vertex_count"] = json!(10))),
        ("vertex_count", 3, "error", DOC, Document("0/.zattrs", |level| level["vertex_count"] = json!(9))),
        ("presence", 3, "error", TINY, Without("0/vertex_attributes/color/c/1/0/0")),
        ("presence", 3, "error", TINY, Without("0/vertices/c/1/0/0")),
        ("presence", 3, "error", TINY, Document("0/vertices/zarr.json", |array| array["attributes"]["nonempty_chunks"] = json!(["0.0.0", "1.1.1"]))),
        ("attr_aligned", 3, "error", TINY, Bytes("0/vertex_attributes/kind/c/1/0/0", cell(&[0; 3]))),
        ("attr_aligned", 3, "error", TINY, Bytes("0/vertex_attributes/intensity/c/1/0/0", cell(&[0; 5]))),
        ("fragments_tile_claim", 3, "error", TINY, Bytes("0/vertex_fragments/c/1/0/0", cell(&index(&[(0, 1)])))),
        ("bins_in_order", 3, "warning", TINY, Bytes("0/vertices/c/1/0/0", cell(&two(250.0)))),
        ("manifests", 3, "error", LINES, Document("0/object_index/zarr.json", |group| group["attributes"]["num_present"] = json!(3))),
        ("manifests", 3, "error", LINES, Document("0/object_index/zarr.json", |group| group["attributes"]["num_objects"] = json!(8))),
        ("manifests", 3, "error", LINES, Document("0/object_attributes/length/zarr.json", |array| {
            array["shape"] = json!([6]);
            array["chunk_grid"]["configuration"]["chunk_shape"] = json!([7]);
        })),
        ("manifests", 3, "error", LINES, Bytes("0/vertex_fragments/c/0/0/0", cell(&index(&[(0, 69)])))),
        ("manifests", 3, "error", "doc/doc_streamlines", Bytes("0/object_index/c/0/0", [integers(&[0, 0, 7, 0]), vec![0xff; 65534 * 16]].concat())),
        ("fragment_owner", 3, "warning", PYRAMID, Document("1/zarr.json", |group| remove(level(group), "shared_fragments"))),
        (
            "links_segments",
            3,
            "error",
            GRAPH,
            Bytes("0/links/0/0.0.1/zarr.json", json!({
                "zarr_format": 3, "node_type": "array", "shape": [2, 2, 2], "data_type": "variable_length_bytes",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1, 1]}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": "",
                "codecs": [{"name": "vlen-bytes", "configuration": {}}], "attributes": {"nonempty_chunks": []},
            }).to_string().into_bytes()),
        ),
        (
            "links_segments",
            3,
            "error",
            GRAPH,
            Bytes("0/links/0/-1.0.0/zarr.json", json!({
                "zarr_format": 3, "node_type": "array", "shape": [2, 2, 2], "data_type": "variable_length_bytes",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1, 1]}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": "",
                "codecs": [{"name": "vlen-bytes", "configuration": {}}], "attributes": {"nonempty_chunks": []},
            }).to_string().into_bytes()),
        ),
        ("links_records", 3, "error", GRAPH, Document("0/links/0/zarr.json", |group| group["attributes"]["num_physical_records"] = json!(4))),
        ("links_records", 3, "error", GRAPH, Bytes("0/links/0/0.0.0/c/0/0/0", cell(&integers(&[0, 2])))),
        ("links_records", 3, "error", GRAPH, Bytes("0/link_fragments/c/0/0/0", cell(&index(&[(0, 2)])))),
        ("attr_aligned", 3, "error", GRAPH, Bytes("0/link_attributes/weight/0/0.0.0/c/0/0/0", cell(&[0; 8]))),
        ("links_records", 3, "error", GRAPH, Bytes("0/links/0/0.0.0/c/0/0/0", cell(&integers(&[-1, 0])))),
        ("links_records", 3, "error", GRAPH, Bytes("0/links/0/+1.0.0/c/0/0/0", cell(&integers(&[1, 0, 0, 1, 9])))),
        ("links_records", 3, "error", GRAPH, Bytes("0/links/0/+1.0.0/c/0/0/0", cell(&integers(&[9, 0, 0, 1, 0])))),
        ("links_records", 3, "error", "doc/doc_streamlines", Bytes("0/cross_chunk_links/c/0/0", integers(&[1, 8, 8, 13]))),
    ]
}

fn geometry() -> Vec<Case> {
    vec![
        (
            "geometry_links",
            4,
            "error",
            LINES,
            Document("zarr.json", |root| block(root)["links_convention"] = json!("explicit")),
        ),
        (
            "geometry_links",
            4,
            "error",
            GRAPH,
            Document("zarr.json", |root| block(root)["links_convention"] = json!("implicit_sequential")),
        ),
        (
            "geometry_links",
            4,
            "error",
            LINES,
            Document("zarr.json", |root| block(root)["geometry_types"] = json!(["skeleton"])),
        ),
        (
            "mesh_link_width",
            4,
            "error",
            GRAPH,
            Document("zarr.json", |root| block(root)["geometry_types"] = json!(["mesh"])),
        ),
        (
            "point_cloud_links",
            4,
            "warning",
            GRAPH,
            Document("zarr.json", |root| block(root)["geometry_types"] = json!(["point_cloud"])),
        ),
        ("levels_contiguous", 5, "error", PYRAMID, Empty("1")),
        (
            "vertex_count_monotone",
            5,
            "error",
            PYRAMID,
            Document("2/zarr.json", |group| level(group)["vertex_count"] = json!(512)),
        ),
        (
            "bin_ratio_monotone",
            5,
            "error",
            PYRAMID,
            Document("zarr.json", |root| {
                let transforms =
                    &mut root["attributes"]["multiscales"][0]["datasets"][2]["coordinateTransformations"];
                transforms[0]["scale"] = json!([1, 1, 1]);
                transforms[1]["translation"] = json!([12.5, 12.5, 12.5]);
            }),
        ),
        (
            "preserved_ids",
            5,
            "error",
            PYRAMID,
            Document("1/zarr.json", |group| level(group)["inherited_num_objects"] = json!(2999)),
        ),
        (
            "preserved_ids",
            5,
            "error",
            PYRAMID,
            Document("1/zarr.json", |group| remove(level(group), "inherited_num_objects")),
        ),
    ]
}

async fn check(cases: Vec<Case>) {
    for (number, (id, at, status, store, change)) in cases.into_iter().enumerate() {
        let copy = copied(&format!("{store}.zarrvectors")).await;
        change.make(&copy).await;
        let server = Server::of(copy);
        let what = format!("case {number}: {id} of {store}");
        let found = get_json(&server, &format!("s/validate?level={at}")).await;
        let of_id: Vec<&Value> =
            found["checks"].as_array().unwrap().iter().filter(|check| check["id"] == id).collect();
        assert!(
            of_id.iter().any(|check| check["status"] == status && check["level"] == at),
            "{what}: {}",
            json!(of_id)
        );
        assert_eq!(
            found["ok"] == json!(false),
            status == "error" || found["counts"]["error"] != json!(0),
            "{what}"
        );
        if at > 1 && id != "root_metadata" {
            let below = get_json(&server, &format!("s/validate?level={}", at - 1)).await;
            assert!(below["checks"].as_array().unwrap().iter().all(|check| check["id"] != id), "{what}");
        }
    }
}

#[tokio::test]
async fn missing_parts_are_found_at_the_first_level() {
    check(structure()).await;
}

#[tokio::test]
async fn wrong_metadata_is_found_at_the_second_level() {
    check(metadata()).await;
}

#[tokio::test]
async fn wrong_data_is_found_at_the_third_level() {
    check(data()).await;
}

#[tokio::test]
async fn breaches_of_geometry_and_pyramid_rules_are_found_at_the_last_levels() {
    check(geometry()).await;
}

#[tokio::test]
async fn a_report_can_be_truncated_and_rendered_as_text() {
    let copy = copied("real/points_tiny.zarrvectors").await;
    Document("zarr.json", |root| block(root)["chunk_shape"] = json!([200, 200])).make(&copy).await;
    let server = Server::of(copy);
    let whole = get_json(&server, "s/validate").await;
    let short = get_json(&server, "s/validate?short_circuit=1").await;
    assert!(
        whole["checks"]
            .as_array()
            .unwrap()
            .iter()
            .any(|check| check["id"] == "chunk_shape_rank" && check["status"] == "error")
    );
    assert!(
        short["checks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|check| check["id"] != "chunk_shape_rank" || check["status"] == "skipped")
    );
    let text = ask(&server, "s/validate?f=text").await;
    assert_eq!(text.header("content-type"), "text/plain; charset=utf-8");
    let text = String::from_utf8(text.body.to_vec()).unwrap();
    assert!(text.lines().any(|line| line.starts_with("L2 error chunk_shape_rank s ")), "{text}");
    assert!(text.ends_with("\nnot ok\n"), "{text}");
    for level in ["0", "6", "x", "-1"] {
        ask(&server, &format!("s/validate?level={level}")).await.refuses(400, "bad_level", level);
    }
    ask(&server, "s/vertices").await.refuses(422, "invalid_metadata", "a route that cannot work");
    ask(&server, "s/0/vertices/validate").await.refuses(404, "not_a_zvf_store", "an array");
    ask(&server, "nothing/validate").await.refuses(404, "not-found", "nothing");
}

#[tokio::test]
async fn a_deadline_truncates_a_report_but_not_the_response() {
    let server = server("real");
    let report = get_json(&server, "points_pyramid.zarrvectors/validate?deadline_ms=0").await;
    assert_eq!((&report["complete"], &report["ok"]), (&json!(false), &json!(true)));
    assert!(
        report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .any(|check| check["id"] == "chunk_decodes" && check["status"] == "skipped")
    );
    let one = get_json(&server, "points_pyramid.zarrvectors/validate?levels=1").await;
    assert!(
        one["checks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|check| !check["path"].as_str().unwrap().starts_with("points_pyramid.zarrvectors/0"))
    );
}

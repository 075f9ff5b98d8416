//! Summaries of whole hierarchies, and of hostile ones.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::key::NodePath;
use crate::metadata::v3::V3Node;
use crate::metadata::{MetadataLimits, v3};

fn path(text: &str) -> NodePath {
    NodePath::parse(text).unwrap()
}

fn group(attributes: &Value) -> NodeFacts {
    let document = json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes });
    match v3::parse(document.to_string().as_bytes(), &MetadataLimits::default()).unwrap() {
        V3Node::Group(group) => NodeFacts::Group(Arc::new(group)),
        V3Node::Array(_) => panic!("no group"),
    }
}

fn array(shape: &[u64], chunk: &[u64], data_type: &str, names: &Value, attributes: &Value) -> NodeFacts {
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": 0,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunk } },
        "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
        "dimension_names": names, "attributes": attributes,
    });
    match v3::parse(document.to_string().as_bytes(), &MetadataLimits::default()).unwrap() {
        V3Node::Array(metadata) => NodeFacts::Array(ArrayFacts {
            metadata: Arc::new(metadata),
            decoded_chunk_shape: Some(chunk.to_vec()),
            ends: None,
        }),
        V3Node::Group(_) => panic!("no array"),
    }
}

fn around(nodes: Vec<(&str, NodeFacts)>) -> Neighbours {
    Neighbours(nodes.into_iter().map(|(at, node)| (path(at), Neighbour::Present(node))).collect())
}

/// The summary of a node, with all other nodes as its neighbours.
fn summary(at: &str, node: &NodeFacts, nodes: Vec<(&str, NodeFacts)>) -> NodeSummary {
    let neighbours = around(nodes);
    match node {
        NodeFacts::Array(array) => summarize_array(&path(at), array, &neighbours),
        NodeFacts::Group(group) => summarize_group(&path(at), group, &neighbours, false),
    }
}

fn codes(summary: &NodeSummary) -> Vec<&'static str> {
    summary.warnings.iter().map(|warning| warning.code).collect()
}

fn image(levels: &[(&str, f64)], more: &Value) -> Value {
    let datasets: Vec<Value> = levels
        .iter()
        .map(|(path, scale)| {
            json!({ "path": path, "coordinateTransformations": [{ "type": "scale", "scale": [1, scale, scale] }] })
        })
        .collect();
    let mut ome = json!({ "version": "0.5", "multiscales": [{ "datasets": datasets, "axes": [
        { "name": "c", "type": "channel" }, { "name": "y", "type": "space", "unit": "micrometer" },
        { "name": "x", "type": "space", "unit": "micrometer" },
    ] }] });
    for (name, value) in more.as_object().unwrap() {
        ome[name] = value.clone();
    }
    json!({ "ome": ome })
}

#[test]
fn an_image_has_the_shapes_and_factors_of_its_levels() {
    let level = |edge| array(&[3, edge, edge], &[1, 64, 64], "uint16", &Value::Null, &json!({}));
    let omero = json!({ "omero": { "channels": [{ "label": "a", "window": { "start": 1, "end": 9 } }] } });
    let node = group(&image(&[("0", 0.5), ("1", 1.0), ("2", 2.0)], &omero));
    let labels = group(&json!({ "ome": { "version": "0.5", "labels": ["cells"] } }));
    let found = summary("a", &node, vec![("a/0", level(501)), ("a/1", level(251)), ("a/labels", labels)]);
    assert_eq!((found.kind, found.version.as_deref()), (NodeSummaryKind::OmeImage, Some("0.5")));
    let sizes: Vec<_> = found.axes.iter().map(|axis| (axis.name.as_deref(), axis.size, axis.scale)).collect();
    assert_eq!(
        sizes,
        [
            (Some("c"), Some(3), Some(1.0)),
            (Some("y"), Some(501), Some(0.5)),
            (Some("x"), Some(501), Some(0.5))
        ]
    );
    assert_eq!(found.levels[1].factors, Some(vec![1.0, 2.0, 2.0]));
    assert_eq!(
        (found.levels[1].exists, found.levels[1].shape.clone()),
        (Some(true), Some(vec![3, 251, 251]))
    );
    assert_eq!(found.labels, ["cells"]);
    assert_eq!(found.range, Some((1.0, 9.0)));
    let view = found.view.clone().unwrap();
    assert_eq!((view.slice.as_str(), view.axes), (":,:,:", Some(["y".to_owned(), "x".to_owned()])));
    assert!(found.has_picture);
    // Level 2 was not read at all.
    assert_eq!((found.levels[2].exists, found.levels[2].factors.clone()), (None, Some(vec![1.0, 4.0, 4.0])));
    assert_eq!(codes(&found), [""; 0]);
}

#[test]
fn a_level_that_is_absent_is_warned_of_and_one_that_cannot_be_read_is_unknown() {
    let node = group(&image(&[("0", 1.0), ("1", 2.0), ("../x", 4.0)], &json!({})));
    let NodeFacts::Group(metadata) = &node else { panic!("no group") };
    let neighbours = Neighbours(
        [(path("a/0"), Neighbour::Unknown), (path("a/1"), Neighbour::Absent)].into_iter().collect(),
    );
    assert!(!neighbours.is_complete());
    let found = summarize_group(&path("a"), metadata, &neighbours, true);
    let exists: Vec<_> = found.levels.iter().map(|level| level.exists).collect();
    assert_eq!(exists, [None, Some(false), Some(false)]);
    assert_eq!(codes(&found), ["level-missing", "consolidated-stale"]);
    assert_eq!((found.view, found.axes[1].size, found.has_picture), (None, None, false));
}

#[test]
fn broken_rules_of_ome_are_warned_of() {
    let of = |shape: &[u64], data_type: &str| array(shape, shape, data_type, &Value::Null, &json!({}));
    let axes = |names: &[(&str, &str)]| -> Value {
        names.iter().map(|(name, kind)| json!({ "name": name, "type": kind })).collect()
    };
    let of_axes = |axes: Value, more: Value| {
        let datasets = json!([{ "path": "0" }, { "path": "1" }]);
        let mut ome = json!({ "multiscales": [{ "axes": axes, "datasets": datasets }] });
        if more != Value::Null {
            ome["image-label"] = more;
        }
        group(&json!({ "ome": ome }))
    };
    let plane = || axes(&[("y", "space"), ("x", "space")]);
    for (node, levels, expected) in [
        (of_axes(plane(), Value::Null), [of(&[8, 8], "uint8"), of(&[4, 4], "uint8")], vec![]),
        (
            of_axes(axes(&[("y", "space"), ("x", "space"), ("t", "time")]), Value::Null),
            [of(&[8, 8, 2], "uint8"), of(&[4, 4, 2], "uint8")],
            vec!["ome-axis-order"],
        ),
        (
            of_axes(axes(&[("y", "space"), ("y", "space")]), Value::Null),
            [of(&[8, 8], "uint8"), of(&[4, 4], "uint8")],
            vec!["ome-axes"],
        ),
        (
            of_axes(axes(&[("t", "time"), ("x", "space")]), Value::Null),
            [of(&[8, 8], "uint8"), of(&[4, 4], "uint8")],
            vec!["ome-axes"],
        ),
        (
            of_axes(plane(), Value::Null),
            [of(&[4, 4], "uint8"), of(&[8, 8], "uint16")],
            vec!["ome-level-order", "ome-data-types"],
        ),
        (
            of_axes(plane(), Value::Null),
            [of(&[8, 8], "uint8"), of(&[4, 4, 1], "uint8")],
            vec!["ome-level-rank"],
        ),
        (
            of_axes(plane(), json!({})),
            [of(&[8, 8], "float32"), of(&[4, 4], "float32")],
            vec!["ome-data-types"],
        ),
    ] {
        let [first, second] = levels;
        let found = summary("a", &node, vec![("a/0", first), ("a/1", second)]);
        assert_eq!(codes(&found), expected, "{found:?}");
    }
}

#[test]
fn layouts_that_are_slow_to_view_are_warned_of_with_a_better_view() {
    let names = json!(["z", "y", "x"]);
    let of = |shape: &[u64], chunk: &[u64], names: &Value| {
        let node = array(shape, chunk, "uint16", names, &json!({}));
        let found = summary("a", &node, Vec::new());
        found.warnings.iter().map(|warning| (warning.code, warning.way_out)).collect::<Vec<_>>()
    };
    let large = ("single-level", Some(WayOut::Pyramid));
    assert_eq!(of(&[1000, 1000, 500], &[64, 64, 64], &names), []);
    assert_eq!(of(&[1000, 1000, 501], &[64, 64, 64], &names), [large]);
    // Many small planes are fast to view.
    assert_eq!(of(&[100_000, 1000, 500], &[64, 64, 64], &json!(["time", "y", "x"])), []);
    assert_eq!(of(&[300, 300, 300], &[300, 300, 100], &names), [("large-chunks", Some(WayOut::Rechunk))]);
    assert_eq!(of(&[300, 300, 300], &[8, 8, 8], &names), [("tiny-chunks", Some(WayOut::Rechunk))]);
    assert_eq!(of(&[30, 30], &[8, 8], &Value::Null), [("no-dimension-names", None)]);
    assert_eq!(of(&[30], &[8], &Value::Null), []);
}

#[test]
fn an_array_that_is_a_level_has_the_axes_of_its_image() {
    let above = group(&image(&[("0", 1.0), ("1", 2.0)], &json!({ "omero": { "rdefs": { "defaultZ": 1 } } })));
    let node = array(&[3, 100, 100], &[1, 64, 64], "uint16", &json!(["a", "b", "d"]), &json!({}));
    let found = summary("i/1", &node, vec![("i", above)]);
    let axes: Vec<_> =
        found.axes.iter().map(|axis| (axis.name.as_deref().unwrap(), axis.scale.unwrap())).collect();
    assert_eq!(axes, [("c", 1.0), ("y", 2.0), ("x", 2.0)]);
    assert_eq!(found.view.unwrap().slice, "0,:,:");
    assert_eq!(found.kind, NodeSummaryKind::Plain);
}

/// A dataset as xarray writes it, in degrees.
fn dataset() -> Vec<(&'static str, NodeFacts)> {
    let coordinate = |name: &str, length: u64, attributes: Value| {
        array(&[length], &[length], "float64", &json!([name]), &attributes)
    };
    vec![
        (
            "d",
            group(
                &json!({ "Conventions": "CF-1.8", "time_coverage_start": "2000", "time_coverage_end": "2001" }),
            ),
        ),
        (
            "d/t2m",
            array(
                &[6, 5, 4],
                &[6, 5, 4],
                "float32",
                &json!(["time", "lat", "lon"]),
                &json!({
                    "units": "K", "valid_min": 200, "valid_max": 330,
                }),
            ),
        ),
        ("d/lat", coordinate("lat", 5, json!({ "units": "degrees_north", "actual_range": [60, -60] }))),
        ("d/lon", coordinate("lon", 4, json!({ "units": "degrees_east", "actual_range": [0, 270] }))),
        ("d/time", coordinate("time", 6, json!({ "units": "days since 2000-01-01" }))),
    ]
}

#[test]
fn a_dataset_has_its_dimensions_and_its_place() {
    let nodes = dataset();
    let found = summary("d", &nodes[0].1, nodes[1..].to_vec());
    assert_eq!((found.kind, found.version.as_deref()), (NodeSummaryKind::CfDataset, Some("CF-1.8")));
    let axes: Vec<_> = found
        .axes
        .iter()
        .map(|axis| (axis.name.as_deref().unwrap(), axis.kind.as_deref().unwrap(), axis.size.unwrap()))
        .collect();
    assert_eq!(axes, [("time", "time", 6), ("lat", "space", 5), ("lon", "space", 4)]);
    assert_eq!(found.axes[0].unit.as_deref(), Some("days since 2000-01-01"));
    assert_eq!(found.bbox, Some(vec![0.0, -60.0, 270.0, 60.0]));
    assert_eq!(found.crs.unwrap().code.as_deref(), Some("EPSG:4326"));
    assert_eq!(found.time_range, Some(["2000".to_owned(), "2001".to_owned()]));
    assert!(found.has_picture);
    let variable = summary("d/t2m", &nodes[1].1, nodes.clone());
    assert_eq!((variable.kind, variable.range), (NodeSummaryKind::Geo, Some((200.0, 330.0))));
    assert_eq!(variable.bbox, Some(vec![0.0, -60.0, 270.0, 60.0]));
    assert_eq!(variable.view.unwrap().slice, "0,:,:");
    assert_eq!(summary("x", &group(&json!({})), Vec::new()).kind, NodeSummaryKind::Plain);
}

#[test]
fn declared_attributes_place_an_array_before_a_grid_mapping_and_coordinates() {
    let variable =
        |attributes: &Value| array(&[100, 200], &[100, 200], "float32", &json!(["y", "x"]), attributes);
    let mapping = || {
        array(
            &[],
            &[],
            "int32",
            &json!([]),
            &json!({ "crs_wkt": "PROJCRS[]", "GeoTransform": "0 1 0 0 0 -1" }),
        )
    };
    let mapped = || variable(&json!({ "grid_mapping": "crs" }));
    let declared =
        json!({ "proj:code": "EPSG:32633", "spatial:transform": [10, 0, 500_000, 0, -10, 5_000_000] });
    let above = |attributes: &Value| ("g", group(attributes));
    let crs = |summary: &NodeSummary| summary.crs.clone().map(|crs| (crs.source, crs.code));
    let found = summary("g/a", &mapped(), vec![above(&declared), ("g/crs", mapping())]);
    assert_eq!(crs(&found), Some(("proj", Some("EPSG:32633".to_owned()))));
    assert_eq!(found.bbox, Some(vec![500_000.0, 4_999_000.0, 502_000.0, 5_000_000.0]));
    assert_eq!(found.axes[0].scale, Some(-10.0));
    let found = summary("g/a", &mapped(), vec![above(&json!({})), ("g/crs", mapping())]);
    assert_eq!(
        (crs(&found), found.bbox),
        (Some(("grid_mapping", None)), Some(vec![0.0, -100.0, 200.0, 0.0]))
    );
    // Inheritance is from the direct parent alone.
    let found = summary("g/h/a", &mapped(), vec![above(&declared), ("g/h", group(&json!({})))]);
    assert_eq!((crs(&found), found.kind), (None, NodeSummaryKind::Plain));
    let own = variable(&json!({ "proj:code": "EPSG:3857" }));
    let found = summary("g/a", &own, vec![above(&declared)]);
    assert_eq!(crs(&found), Some(("proj", Some("EPSG:3857".to_owned()))));
    assert_eq!(found.bbox.map(|bbox| bbox[0]), Some(500_000.0));
}

#[test]
fn plates_wells_and_vectors_are_summarized_from_their_attributes() {
    let plate = group(&json!({ "ome": { "version": "0.5", "plate": {
        "rows": [{ "name": "A" }], "columns": [{ "name": "1" }, { "name": "2" }],
        "wells": [{ "path": "A/1", "rowIndex": 0, "columnIndex": 0 }, { "path": "A/2", "rowIndex": 0, "columnIndex": 1 }],
    } } }));
    let well = group(
        &json!({ "ome": { "version": "0.5", "well": { "images": [{ "path": "0" }, { "path": "1" }] } } }),
    );
    let found = summary("p", &plate, vec![("p/A/1", well.clone())]);
    assert_eq!((found.kind, found.plate.unwrap().fields), (NodeSummaryKind::OmePlate, Some(2)));
    assert_eq!(summary("p/A/1", &well, Vec::new()).images, ["0", "1"]);
    let collection = group(&json!({ "bioformats2raw.layout": 3 }));
    let listed = group(&json!({ "series": ["0", "1"] }));
    assert_eq!(summary("c", &collection, vec![("c/OME", listed)]).images, ["0", "1"]);
    let vectors = group(&json!({
        "zarr_vectors": { "zv_version": "0.9.2", "bounds": [[0, 0], [4, 5]] },
        "multiscales": [{ "axes": [{ "name": "x" }, { "name": "y" }], "datasets": [{ "path": "0" }] }],
    }));
    let found = summary("v", &vectors, vec![("v/0", group(&json!({})))]);
    assert_eq!((found.kind, found.bbox), (NodeSummaryKind::Zvf, Some(vec![0.0, 0.0, 4.0, 5.0])));
    assert_eq!((found.axes.len(), found.levels[0].exists), (2, Some(true)));
}

/// Any JSON value, often with the names and the words of the conventions.
fn hostile() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "0",
        "scale",
        "sequence",
        "space",
        "time",
        "a/b",
        "../..",
        "",
        "zarr.json",
        "CF-1.8",
        "lat",
        "EPSG:0",
        "\u{0}",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!(u64::MAX)),
        words.prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "ome",
        "version",
        "multiscales",
        "axes",
        "datasets",
        "path",
        "coordinateTransformations",
        "type",
        "scale",
        "transformations",
        "coordinateSystems",
        "output",
        "name",
        "omero",
        "channels",
        "window",
        "start",
        "end",
        "rdefs",
        "defaultZ",
        "image-label",
        "labels",
        "plate",
        "well",
        "images",
        "wells",
        "rows",
        "columns",
        "rowIndex",
        "series",
        "bioformats2raw.layout",
        "scene",
        "layout",
        "asset",
        "transform",
        "proj:code",
        "proj:projjson",
        "spatial:transform",
        "spatial:bbox",
        "spatial:dimensions",
        "zarr_conventions",
        "uuid",
        "grid_mapping",
        "GeoTransform",
        "crs_wkt",
        "units",
        "axis",
        "standard_name",
        "actual_range",
        "valid_range",
        "scale_factor",
        "Conventions",
        "zarr_vectors",
        "bounds",
        "geometry_type",
        "spatial_dims",
        "chunk_shape",
        "bounding_box",
        "min",
        "max",
    ]);
    leaf.prop_recursive(6, 80, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((names.clone(), inner), 0..8).prop_map(|members| Value::Object(
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            )),
        ]
    })
}

fn hostile_attributes() -> impl Strategy<Value = Value> {
    hostile().prop_map(|value| {
        if value.is_object() { value } else { json!({ "ome": value.clone(), "multiscales": [value] }) }
    })
}

proptest! {
    #[test]
    fn any_attributes_have_a_summary_of_bounded_size(
        own in hostile_attributes(),
        other in hostile_attributes(),
        shape in prop::collection::vec(prop_oneof![0_u64..5, 0_u64..1 << 63], 0..6),
    ) {
        let names: Value = shape.iter().enumerate().map(|(at, _)| json!(["t", "z", "lat", "lon", "lat", "x"][at])).collect();
        let edges = vec![1; shape.len()];
        let of_array = array(&shape, &edges, "int8", &names, &own);
        let of_group = group(&own);
        let NodeFacts::Group(metadata) = &of_group else { panic!("no group") };
        let at = path("n");
        let needed = Needed::of_group(&at, metadata);
        prop_assert!(needed.declared.len() + needed.possible.len() <= 65);
        prop_assert_eq!(&Needed::from_text(needed.to_text().as_bytes()), &needed);
        let mut nodes: Vec<(String, NodeFacts)> = needed
            .declared
            .iter()
            .chain(&needed.possible)
            .map(|path| (path.as_str().to_owned(), array(&shape, &edges, "int8", &names, &other)))
            .collect();
        nodes.push(("n/lat".to_owned(), array(&[3], &[1], "int8", &json!(["lat"]), &other)));
        nodes.push(("n/a".to_owned(), of_array.clone()));
        let nodes = || nodes.iter().map(|(path, node)| (path.as_str(), node.clone())).collect::<Vec<_>>();
        let found = summary("n", &of_group, nodes());
        prop_assert!(found.axes.len() <= 64 && found.levels.len() <= 64 && found.channels.len() <= 64);
        let mut above = nodes();
        above.push(("n", group(&other)));
        let found = summary("n/a", &of_array, above);
        prop_assert_eq!(found.axes.len(), shape.len());
        if let Some(bbox) = &found.bbox {
            prop_assert!(bbox.iter().all(|bound| bound.is_finite()));
        }
    }
}

//! The points of the demo: the surface of a blastula, as Zarr Vector Format 0.9 keeps a point cloud.
//!
//! A chunk of space is one element of variable length: its positions, and in a second array the value of each point.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Demo, DemoError, axis};

/// Points.
const POINTS: i16 = 6000;
/// Micrometers along the edge of a chunk.
const EDGE: f32 = 100.0;
/// Chunks along an axis.
const CHUNKS: u32 = 4;
/// The turn from a point to the next that spreads points evenly, in radians.
const GOLDEN_ANGLE: f32 = 2.399_963;

/// The place of a point in micrometers, and the activity there.
fn point(number: i16) -> ([f32; 3], f32) {
    let height = 1.0 - (2.0 * f32::from(number) + 1.0) / f32::from(POINTS);
    let ring = (1.0 - height * height).sqrt();
    let turn = f32::from(number) * GOLDEN_ANGLE;
    // Four furrows, deepest at the equator.
    let furrow = 1.0 - 0.16 * ring.powi(3) * (2.0 * turn).cos().powi(6);
    let place = [
        150.0f32.mul_add(ring * turn.cos() * furrow, 200.0),
        150.0f32.mul_add(ring * turn.sin() * furrow, 200.0),
        170.0f32.mul_add(height, 200.0),
    ];
    let activity = (3.0f32.mul_add(height, turn.cos() * ring)).sin().mul_add(0.5, 0.5);
    (place, activity)
}

/// The number of the chunk along an axis.
fn chunk(micrometers: f32) -> u32 {
    (0..CHUNKS).rev().find(|&at| micrometers >= EDGE * small(at)).unwrap_or(0)
}

/// A small whole number, exactly.
fn small(number: u32) -> f32 {
    u16::try_from(number).map_or(0.0, f32::from)
}

/// The bytes of one element of variable length: a count of one, its length, and its content.
fn element(content: &[u8]) -> Bytes {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    [&1_u32.to_le_bytes()[..], &length.to_le_bytes(), content].concat().into()
}

/// An index of one fragment that has all rows of a chunk (Zarr Vector Format 0.9, "fragment index").
fn fragment(rows: u64) -> Vec<u8> {
    let header = [&b"GFVZ"[..], &1_u16.to_le_bytes(), &0_u16.to_le_bytes()].concat();
    let counts = [1_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
    let bitmap = 1_u64.to_le_bytes();
    let range = [0_u64.to_le_bytes(), rows.to_le_bytes()].concat();
    [&header[..], &counts, &bitmap, &range, &0_u32.to_le_bytes()].concat()
}

/// An array with an element for each chunk of space.
fn cells(chunks: &[String], attributes: &Value) -> Value {
    let mut document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [CHUNKS, CHUNKS, CHUNKS], "data_type": "variable_length_bytes",
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [1, 1, 1] } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "codecs": [{ "name": "vlen-bytes", "configuration": {} }], "fill_value": "", "storage_transformers": [],
        "attributes": { "nonempty_chunks": chunks },
    });
    if let (Some(all), Value::Object(own)) = (document["attributes"].as_object_mut(), attributes) {
        all.extend(own.clone());
    }
    document
}

/// What the points of a chunk are stored as.
#[derive(Default)]
struct Chunk {
    positions: Vec<u8>,
    activities: Vec<u8>,
    rows: u64,
}

/// What an array stores of a chunk.
type Payload = fn(&Chunk) -> Bytes;

impl Demo<'_> {
    /// Points in three dimensions, each with a number.
    pub(super) async fn points(&self) -> Result<(), DemoError> {
        let mut chunks: BTreeMap<[u32; 3], Chunk> = BTreeMap::new();
        for (place, activity) in (0..POINTS).map(point) {
            let chunk = chunks.entry(place.map(chunk)).or_default();
            chunk.positions.extend(place.iter().flat_map(|one| one.to_le_bytes()));
            chunk.activities.extend(activity.to_le_bytes());
            chunk.rows += 1;
        }
        let size = EDGE * small(CHUNKS);
        let axes = ["x", "y", "z"].map(axis);
        let transformations = json!([{ "type": "scale", "scale": [1.0, 1.0, 1.0] },
            { "type": "translation", "translation": [EDGE / 2.0, EDGE / 2.0, EDGE / 2.0] }]);
        let store = json!({
            "zv_version": "0.9.2", "format_capabilities": [], "geometry_types": ["point_cloud"],
            "chunk_shape": [EDGE, EDGE, EDGE], "base_bin_shape": [EDGE, EDGE, EDGE],
            "bounds": [[0.0, 0.0, 0.0], [size, size, size]], "links_convention": "implicit_sequential",
            "object_index_convention": "standard", "cross_chunk_strategy": "explicit_links",
        });
        self.group("points", json!({
            "title": "The surface of a blastula",
            "zarr_vectors": store,
            "multiscales": [{ "version": "0.4", "name": "default", "axes": axes, "metadata": { "format": "zarr_vectors" },
                "datasets": [{ "path": "0", "coordinateTransformations": transformations }] }],
        }))
        .await?;
        let level = json!({ "level": 0, "object_sparsity": 1.0, "vertex_count": POINTS, "coarsening_method": "none",
            "parent_level": null, "arrays_present": ["vertices", "vertex_attributes"], "fragments_tile": true });
        self.group("points/0", json!({ "zarr_vectors_level": level })).await?;
        self.group("points/0/vertex_attributes", json!({})).await?;
        self.payloads(&chunks).await
    }

    /// The positions, their fragments, and the values.
    async fn payloads(&self, chunks: &BTreeMap<[u32; 3], Chunk>) -> Result<(), DemoError> {
        let names: Vec<String> = chunks.keys().map(|[x, y, z]| format!("{x}.{y}.{z}")).collect();
        let vertices = json!({ "zv_array": "vertices", "dtype": "float32", "encoding": "raw" });
        let fragments = json!({ "zv_array": "vertex_fragments", "encoding": "fragment_index_v1" });
        let values =
            json!({ "zv_array": "attribute", "name": "activity", "dtype": "float32", "row_shape": [] });
        let arrays: [(&str, Value, Payload); 3] = [
            ("vertices", vertices, |chunk| element(&chunk.positions)),
            ("vertex_fragments", fragments, |chunk| element(&fragment(chunk.rows))),
            ("vertex_attributes/activity", values, |chunk| element(&chunk.activities)),
        ];
        for (array, attributes, content) in arrays {
            let path = format!("points/0/{array}");
            self.set(&format!("{path}/zarr.json"), &cells(&names, &attributes)).await?;
            for ([x, y, z], chunk) in chunks {
                self.set_bytes(&format!("{path}/c/{x}/{y}/{z}"), content(chunk)).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_in_the_chunk_of_its_place() {
        for number in 0..POINTS {
            let (place, activity) = point(number);
            for (micrometers, at) in place.iter().zip(place.map(chunk)) {
                assert!((EDGE * small(at)..EDGE * small(at + 1)).contains(micrometers), "{place:?}");
            }
            assert!((0.0..=1.0).contains(&activity));
        }
    }
}

//! The demo hierarchy: one of each kind of data that people keep in Zarr, created in memory at the start.
//!
//! Its documents are written as their authors would write them, and parsed by the code that parses all documents, so the demo is
//! a hierarchy like any other. The values are arithmetic, the same at every start.

mod points;
mod scenes;

use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};

use crate::chunk::{AxisRange, ChunkGrid, ChunkKeyEncoding, CopyRegion, Elements, copy_box};
use crate::codec::{CodecChain, CodecError, CodecLimits, v2_codec};
use crate::config::Config;
use crate::error::{Classify, ErrorClass};
use crate::key::{KeyError, StorePrefix};
use crate::metadata::v3::V3Node;
use crate::metadata::{ArrayMetadata, MetadataError, MetadataLimits, v2, v3};
use crate::store::{SharedStore, Store, StoreError, ValueBody, WriteCondition};

/// Why the demo is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DemoReason {
    /// The configuration says so.
    Requested,
    /// There is nothing else to serve.
    NoMountsConfigured,
}

/// Why a configuration serves the demo; `None` if it does not.
pub(super) fn reason(config: &Config) -> Option<DemoReason> {
    match (config.demo, config.mounts.is_empty()) {
        (true, _) => Some(DemoReason::Requested),
        (false, true) => Some(DemoReason::NoMountsConfigured),
        (false, false) => None,
    }
}

/// Why the demo hierarchy could not be created: a bug.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A document.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A codec.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A document that describes a group where an array was meant.
    #[error("`{0}` does not describe an array")]
    NotAnArray(String),
}

impl Classify for DemoError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Key(_) | Self::Metadata(_) | Self::Codec(_) | Self::Store(_) | Self::NotAnArray(_) => {
                ErrorClass::Internal
            }
        }
    }
}

/// Writes the demo hierarchy into a store.
///
/// # Errors
/// [`DemoError`], which would be a bug.
pub async fn fill(store: &SharedStore) -> Result<(), DemoError> {
    let demo = Demo { store: store.as_ref() };
    demo.group("", json!({ "title": "zarrd's demo hierarchy" })).await?;
    demo.v2().await?;
    demo.sharded().await?;
    demo.image().await?;
    demo.field().await?;
    demo.points().await?;
    demo.tree().await
}

/// Lines for a shell that show what the server does, for the mount `demo` at `base` (`http://127.0.0.1:8000`).
#[must_use]
pub fn curl_lines(base: &str) -> [String; 3] {
    [
        format!("curl '{base}/v1/nodes/demo/field'"),
        format!("curl '{base}/v1/data/demo/field?slice=0,::20,::40&format=json'"),
        format!("curl -r 0-15 '{base}/store/demo/sharded/c/0/0/0' | od -A d -t x1"),
    ]
}

/// The value of a coordinate array at a place.
type Coordinate = fn(f32) -> f32;

struct Demo<'a> {
    store: &'a dyn Store,
}

impl Demo<'_> {
    /// A v2 group with a v2 array: blosc, C order, chunk keys with dots.
    async fn v2(&self) -> Result<(), DemoError> {
        self.set("v2/.zgroup", &json!({ "zarr_format": 2 })).await?;
        self.set("v2/blosc/.zattrs", &json!({ "_ARRAY_DIMENSIONS": ["y", "x"] })).await?;
        let document = json!({
            "zarr_format": 2, "shape": [300, 400], "chunks": [100, 100], "dtype": "<i4", "order": "C",
            "compressor": { "id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0 },
            "fill_value": 0, "filters": null,
        });
        let metadata =
            v2::parse_array(document.to_string().as_bytes(), None, v2_codec, &MetadataLimits::default())?;
        self.set("v2/blosc/.zarray", &document).await?;
        self.chunks("v2/blosc/", &metadata, |at| i32::to_le_bytes(place(at, 0) * 1000 + place(at, 1))).await
    }

    /// A v3 volume of shards with 64 inner chunks each.
    async fn sharded(&self) -> Result<(), DemoError> {
        let codecs = json!([{ "name": "sharding_indexed", "configuration": {
            "chunk_shape": [16, 16, 16],
            "codecs": [
                { "name": "bytes", "configuration": { "endian": "little" } },
                { "name": "zstd", "configuration": { "level": 3, "checksum": false } },
            ],
            "index_codecs": [
                { "name": "bytes", "configuration": { "endian": "little" } },
                { "name": "crc32c" },
            ],
            "index_location": "end",
        } }]);
        let document = array("uint16", &[128, 128, 128], &[64, 64, 64], &codecs, &json!(0), &["z", "y", "x"]);
        self.array("sharded", &document, |at| {
            let (z, y, x) = (place(at, 0), place(at, 1), place(at, 2));
            u16::try_from(scenes::balls(z, y, x)).unwrap_or(u16::MAX).to_le_bytes()
        })
        .await
    }

    /// A multiscale image of three channels with labels of its nuclei, as OME-Zarr 0.5 describes them.
    async fn image(&self) -> Result<(), DemoError> {
        let channel = |label: &str, color: &str, end: u32| {
            json!({ "label": label, "color": color, "active": true,
                "window": { "min": 0, "max": 255, "start": 12, "end": end } })
        };
        let channels = [
            channel("nuclei", "3F6FFF", 230),
            channel("membranes", "FF5F2E", 240),
            channel("grains", "7CFF6B", 220),
        ];
        let axes = json!([{ "name": "c", "type": "channel" }, axis("y"), axis("x")]);
        let ome = json!({
            "version": "0.5",
            "multiscales": [{ "name": "cells", "axes": axes, "datasets": datasets(&["channel", "y", "x"]) }],
            "omero": { "channels": channels },
        });
        self.group("image", json!({ "ome": ome })).await?;
        let codecs = json!([
            { "name": "bytes" },
            { "name": "blosc", "configuration": {
                "cname": "zstd", "clevel": 3, "shuffle": "shuffle", "typesize": 1, "blocksize": 0,
            } },
        ]);
        for (level, scale) in [1_u64, 2, 4].into_iter().enumerate() {
            let edge = 512 / scale;
            let document =
                array("uint8", &[3, edge, edge], &[1, 128, 128], &codecs, &json!(0), &["c", "y", "x"]);
            let scale = i32::try_from(scale).unwrap_or(1);
            self.array(&format!("image/{level}"), &document, |at| {
                let (y, x) = (place(at, 1) * scale + scale / 2, place(at, 2) * scale + scale / 2);
                [scenes::microscope(place(at, 0), y, x)]
            })
            .await?;
        }
        self.labels().await
    }

    /// The numbers of the image's nuclei.
    async fn labels(&self) -> Result<(), DemoError> {
        self.group("image/labels", json!({ "ome": { "version": "0.5", "labels": ["nuclei"] } })).await?;
        let ome = json!({
            "version": "0.5",
            "image-label": { "source": { "image": "../../" } },
            "multiscales": [{ "name": "nuclei", "axes": [axis("y"), axis("x")], "datasets": datasets(&["y", "x"]) }],
        });
        self.group("image/labels/nuclei", json!({ "ome": ome })).await?;
        let codecs = json!([
            { "name": "bytes", "configuration": { "endian": "little" } },
            { "name": "zstd", "configuration": { "level": 3, "checksum": false } },
        ]);
        for (level, scale) in [1_u64, 2, 4].into_iter().enumerate() {
            let edge = 512 / scale;
            let document = array("uint16", &[edge, edge], &[128, 128], &codecs, &json!(0), &["y", "x"]);
            let scale = i32::try_from(scale).unwrap_or(1);
            self.array(&format!("image/labels/nuclei/{level}"), &document, |at| {
                let (y, x) = (place(at, 0) * scale + scale / 2, place(at, 1) * scale + scale / 2);
                scenes::nucleus(y, x).to_le_bytes()
            })
            .await?;
        }
        Ok(())
    }

    /// A float field over time, latitude and longitude, which is missing (NaN) on land.
    async fn field(&self) -> Result<(), DemoError> {
        let codecs = json!([
            { "name": "bytes", "configuration": { "endian": "little" } },
            { "name": "gzip", "configuration": { "level": 5 } },
        ]);
        let fill = json!("NaN");
        let mut document =
            array("float32", &[24, 90, 180], &[6, 30, 60], &codecs, &fill, &["time", "lat", "lon"]);
        document["attributes"] = json!({
            "long_name": "sea surface temperature", "standard_name": "sea_surface_temperature", "units": "degree_Celsius",
        });
        let degrees = |index: f32, first: f32| index.mul_add(2.0, first);
        self.array("field", &document, |at| {
            let (time, lat, lon) = (as_f32(place(at, 0)), as_f32(place(at, 1)), as_f32(place(at, 2)));
            scenes::sea_temperature(time, degrees(lat, -89.0), degrees(lon, -179.0)).to_le_bytes()
        })
        .await?;
        let coordinates: [(&str, u64, Coordinate, Value); 3] = [
            (
                "time",
                24,
                |at| at,
                json!({ "standard_name": "time", "units": "hours since 2026-01-01 00:00:00", "calendar": "standard" }),
            ),
            (
                "lat",
                90,
                |at| at.mul_add(2.0, -89.0),
                json!({ "standard_name": "latitude", "units": "degrees_north" }),
            ),
            (
                "lon",
                180,
                |at| at.mul_add(2.0, -179.0),
                json!({ "standard_name": "longitude", "units": "degrees_east" }),
            ),
        ];
        for (name, length, value, attributes) in coordinates {
            let mut document = array("float32", &[length], &[length], &codecs, &json!("NaN"), &[name]);
            document["attributes"] = attributes;
            self.array(name, &document, |at| value(as_f32(place(at, 0))).to_le_bytes()).await?;
        }
        Ok(())
    }

    /// Groups in groups.
    async fn tree(&self) -> Result<(), DemoError> {
        for path in ["tree", "tree/branch", "tree/branch/twig", "tree/other"] {
            self.group(path, json!({ "depth": path.matches('/').count() })).await?;
        }
        let codecs = json!([{ "name": "bytes", "configuration": { "endian": "little" } }]);
        let document = array("int64", &[10], &[4], &codecs, &json!(-1), &["n"]);
        self.array("tree/branch/leaf", &document, |at| i64::from(place(at, 0)).pow(2).to_le_bytes()).await?;
        let scalar = array("bool", &[], &[], &json!([{ "name": "bytes" }]), &json!(false), &[]);
        self.array("tree/other/yes", &scalar, |_| [1]).await
    }

    async fn group(&self, path: &str, attributes: Value) -> Result<(), DemoError> {
        let document = json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes });
        self.set(&join(path, "zarr.json"), &document).await
    }

    async fn array<const ITEM: usize>(
        &self,
        path: &str,
        document: &Value,
        element: impl Fn(&[i32]) -> [u8; ITEM],
    ) -> Result<(), DemoError> {
        let V3Node::Array(metadata) = v3::parse(document.to_string().as_bytes(), &MetadataLimits::default())?
        else {
            return Err(DemoError::NotAnArray(path.to_owned()));
        };
        self.set(&join(path, "zarr.json"), document).await?;
        self.chunks(&join(path, ""), &metadata, element).await
    }

    /// Encodes and stores every chunk that is not all fill value.
    async fn chunks<const ITEM: usize>(
        &self,
        prefix: &str,
        metadata: &ArrayMetadata,
        element: impl Fn(&[i32]) -> [u8; ITEM],
    ) -> Result<(), DemoError> {
        let prefix = StorePrefix::parse(prefix)?;
        let grid = ChunkGrid::new(&metadata.shape, &metadata.chunk_grid);
        let shape = grid.first_chunk_shape();
        let keys = ChunkKeyEncoding::new(metadata.chunk_key_encoding.clone());
        let (data_type, fill) = (&metadata.data_type, &metadata.fill_value);
        let chain = CodecChain::bind(&metadata.codecs, data_type, &shape, fill, &CodecLimits::default())?;
        let whole: Vec<AxisRange> = metadata.shape.iter().map(|&length| AxisRange::full(length)).collect();
        for (coords, _) in CopyRegion::packed(&whole, ITEM).split_by_chunks(grid.axes()) {
            let ranges = grid.chunk_ranges(&coords).unwrap_or_default();
            let elements = elements(&ranges, &element);
            if elements.chunks_exact(ITEM).all(|element| element == fill.as_bytes()) {
                continue;
            }
            let encoded =
                chain.encode(Elements::fixed(in_full_chunk(&elements, &ranges, &shape, fill.as_bytes())))?;
            self.set_bytes(prefix.key(&keys.encode(&coords))?.as_str(), encoded).await?;
        }
        Ok(())
    }

    async fn set(&self, key: &str, document: &Value) -> Result<(), DemoError> {
        self.set_bytes(key, Bytes::from(format!("{document:#}"))).await
    }

    async fn set_bytes(&self, key: &str, value: Bytes) -> Result<(), DemoError> {
        let key = StorePrefix::root().key(key)?;
        self.store.set(&key, ValueBody::Bytes(value).into_stream().boxed(), WriteCondition::Always).await?;
        Ok(())
    }
}

/// The elements of a box of the array, in C order. All of the demo's arrays are small.
fn elements<const ITEM: usize>(ranges: &[AxisRange], element: impl Fn(&[i32]) -> [u8; ITEM]) -> Vec<u8> {
    let small = |number: u64| i32::try_from(number).unwrap_or_default();
    let starts: Vec<i32> = ranges.iter().map(|range| small(range.start)).collect();
    let stops: Vec<i32> = ranges.iter().map(|range| small(range.start + range.count)).collect();
    let (mut at, mut bytes) = (starts.clone(), Vec::new());
    let Some(row) = at.len().checked_sub(1) else { return element(&at).to_vec() };
    loop {
        for column in starts[row]..stops[row] {
            at[row] = column;
            bytes.extend_from_slice(&element(&at));
        }
        let turns = |axis: &usize| at[*axis] + 1 < stops[*axis];
        let Some(axis) = (0..row).rev().find(turns) else {
            return bytes;
        };
        at[axis] += 1;
        at[axis + 1..row].copy_from_slice(&starts[axis + 1..row]);
    }
}

/// A chunk trimmed to the array, put into a chunk of the full shape; the rest is the fill value.
fn in_full_chunk(trimmed: &[u8], ranges: &[AxisRange], shape: &[u64], fill: &[u8]) -> Bytes {
    let inside: Vec<AxisRange> = ranges.iter().map(|range| AxisRange::full(range.count)).collect();
    let whole: Vec<AxisRange> = shape.iter().map(|&edge| AxisRange::full(edge)).collect();
    let count: usize = shape.iter().map(|&edge| usize::try_from(edge).unwrap_or_default()).product();
    let mut chunk = fill.repeat(count);
    // The part of the full chunk that lies in the array, as a window on the trimmed one.
    let trimmed_shape: Vec<u64> = ranges.iter().map(|range| range.count).collect();
    let window = CopyRegion::packed(&whole, fill.len()).with_ranges(&inside);
    let pasted = copy_box(trimmed, &trimmed_shape, &window, fill.len(), &mut chunk);
    debug_assert!(pasted, "a trimmed chunk fits its chunk");
    chunk.into()
}

fn array(
    data_type: &str,
    shape: &[u64],
    chunk_shape: &[u64],
    codecs: &Value,
    fill_value: &Value,
    dimension_names: &[&str],
) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunk_shape } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "codecs": codecs, "fill_value": fill_value, "dimension_names": dimension_names, "attributes": {},
    })
}

/// An axis of space of an OME image.
fn axis(name: &str) -> Value {
    json!({ "name": name, "type": "space", "unit": "micrometer" })
}

/// The three levels of an OME image with these axes. The pixels of a coarser level lie between those of a finer one.
fn datasets(axes: &[&str]) -> Vec<Value> {
    /// Micrometers from pixel to pixel of the finest level.
    const PIXEL: f64 = 0.25;
    let of_axes = |space: f64, channel: f64| -> Vec<f64> {
        axes.iter().map(|axis| if *axis == "channel" { channel } else { space }).collect()
    };
    let level = |(level, scale): (usize, f64)| {
        json!({ "path": level.to_string(), "coordinateTransformations": [
            { "type": "scale", "scale": of_axes(PIXEL * scale, 1.0) },
            { "type": "translation", "translation": of_axes(PIXEL * (scale - 1.0) / 2.0, 0.0) },
        ] })
    };
    [1.0, 2.0, 4.0].into_iter().enumerate().map(level).collect()
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

/// A coordinate of an element.
fn place(at: &[i32], axis: usize) -> i32 {
    at.get(axis).copied().unwrap_or_default()
}

/// Small whole numbers, exactly.
fn as_f32(number: i32) -> f32 {
    i16::try_from(number).map_or(0.0, f32::from)
}

//! How fast each family of codecs decodes a chunk of 256 KiB: `cargo bench --bench codec`.
//!
//! A chunk is a smooth field with some noise, as measured data is. Encoding is not measured: readers wait for decoding.

#![expect(clippy::expect_used, reason = "a bench that cannot go on has failed")]

use bytes::Bytes;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use serde_json::{Value, json};
use zarrd::chunk::Elements;
use zarrd::codec::{CodecChain, CodecLimits};
use zarrd::metadata::{CodecMetadata, DataType, FillValue};

/// 65,536 elements of 4 bytes, or twice as many of 2.
const EDGES: [u64; 3] = [16, 64, 64];

fn main() {
    divan::main();
}

/// A pseudo-random number in 0..=255, the same in every run.
fn noise(at: u32) -> u32 {
    at.wrapping_mul(0x9E37_79B1).rotate_left(13).wrapping_mul(0x85EB_CA6B) >> 24
}

/// The element at each place in turn: a ramp along each dimension, and noise in its low bits.
fn field() -> impl Iterator<Item = u16> {
    (0..65_536).map(|at: u32| {
        let (z, y, x) = (at >> 12, (at >> 6) & 63, at & 63);
        u16::try_from(1000 + 40 * z + 7 * y + 3 * x + noise(at) / 16).unwrap_or(u16::MAX)
    })
}

/// The field as `float32`, in hundredths.
fn floats() -> Bytes {
    field().flat_map(|value| (f32::from(value) / 100.0).to_le_bytes()).collect()
}

/// The field as `int32`.
fn integers() -> Bytes {
    field().flat_map(|value| i32::from(value).to_le_bytes()).collect()
}

/// Every element of the field after its own hundreds: a mask has long runs.
fn mask() -> Bytes {
    field().map(|value| u8::from(value % 512 < 200)).collect()
}

/// A chain, and the elements encoded with it.
fn encoded(codecs: &Value, data_type: &DataType, shape: &[u64], items: Bytes) -> (CodecChain, Bytes) {
    let codecs: Vec<CodecMetadata> = codecs
        .as_array()
        .into_iter()
        .flatten()
        .map(|codec| CodecMetadata::new(codec[0].as_str().unwrap_or_default(), codec[1].clone()))
        .collect();
    let fill = FillValue::zero(data_type);
    let chain = CodecChain::bind(&codecs, data_type, shape, &fill, &CodecLimits::default());
    let chain = chain.expect("the chain is good");
    let encoded = chain.encode(Elements::fixed(items)).expect("the elements are a chunk");
    (chain, encoded)
}

/// Measures the chain's decoder on elements of this type.
fn decode(bencher: Bencher, codecs: &Value, data_type: &DataType, items: Bytes) {
    let (chain, encoded) = encoded(codecs, data_type, &EDGES, items);
    bencher
        .counter(BytesCount::new(chain.decoded_bytes()))
        .bench(|| chain.decode(black_box(encoded.clone())).expect("it was encoded so"));
}

fn little() -> Value {
    json!(["bytes", {"endian": "little"}])
}

/// Codecs from bytes to bytes, behind `bytes`, on `float32`.
const COMPRESSORS: [&str; 12] = [
    "blosc-lz4",
    "blosc-zstd",
    "blosc-zlib",
    "zstd",
    "gzip",
    "zlib",
    "numcodecs.lz4",
    "numcodecs.bz2",
    "numcodecs.lzma",
    "numcodecs.shuffle",
    "crc32c",
    "numcodecs.fletcher32",
];

#[divan::bench(args = COMPRESSORS)]
fn bytes_to_bytes(bencher: Bencher, name: &str) {
    let codec = match name {
        "blosc-lz4" => blosc("lz4"),
        "blosc-zstd" => blosc("zstd"),
        "blosc-zlib" => blosc("zlib"),
        "zstd" => json!([name, {"level": 3, "checksum": false}]),
        "gzip" | "zlib" | "numcodecs.bz2" => json!([name, {"level": 5}]),
        "numcodecs.lzma" => json!([name, {"preset": 1}]),
        "numcodecs.shuffle" => json!([name, {"elementsize": 4}]),
        _ => json!([name, {}]),
    };
    decode(bencher, &json!([little(), codec]), &DataType::Float32, floats());
}

fn blosc(compressor: &str) -> Value {
    json!(["blosc", {"cname": compressor, "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}])
}

#[divan::bench(args = ["little", "big"])]
fn bytes(bencher: Bencher, endian: &str) {
    decode(bencher, &json!([["bytes", {"endian": endian}]]), &DataType::Float32, floats());
}

#[divan::bench(args = ["numcodecs.pcodec", "zfp"])]
fn arrays_of_numbers(bencher: Bencher, name: &str) {
    let codec = if name == "zfp" { json!([name, {"mode": "reversible"}]) } else { json!([name, {}]) };
    decode(bencher, &json!([codec]), &DataType::Float32, floats());
}

#[divan::bench]
fn transpose(bencher: Bencher) {
    let codecs = json!([["transpose", {"order": [2, 1, 0]}], little()]);
    decode(bencher, &codecs, &DataType::Float32, floats());
}

#[divan::bench]
fn delta(bencher: Bencher) {
    let codecs = json!([["numcodecs.delta", {"dtype": "<i4"}], little()]);
    decode(bencher, &codecs, &DataType::Int32, integers());
}

#[divan::bench]
fn cast_value(bencher: Bencher) {
    let codecs = json!([["cast_value", {"data_type": "int16"}], little()]);
    decode(bencher, &codecs, &DataType::Int32, integers());
}

#[divan::bench]
fn fixed_scale_offset(bencher: Bencher) {
    let scaled =
        json!(["numcodecs.fixedscaleoffset", {"offset": 0, "scale": 100, "dtype": "<f4", "astype": "<i2"}]);
    decode(bencher, &json!([scaled, little()]), &DataType::Float32, floats());
}

#[divan::bench]
fn packbits(bencher: Bencher) {
    decode(bencher, &json!([["packbits", {}]]), &DataType::Bool, mask());
}

#[divan::bench]
fn sharding(bencher: Bencher) {
    let codecs = json!([["sharding_indexed", {
        "chunk_shape": [8, 16, 16],
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "zstd", "configuration": {"level": 3, "checksum": false}},
        ],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
    }]]);
    decode(bencher, &codecs, &DataType::Float32, floats());
}

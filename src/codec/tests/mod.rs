//! Tests of chains, through the interface that other modules use.

mod bombs;
mod chains;
mod checksums;
mod compressors;
mod extensions;
mod filters;
mod hostile;
mod numbers;
mod objects;
mod partial;
mod pitfalls;
mod registry;
mod sharding;
mod values;

use std::borrow::Borrow;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{CodecChain, CodecError, CodecLimits};
use crate::chunk::Elements;
use crate::metadata::{CodecMetadata, DataType, FillValue};

/// Codecs from `[["name", {configuration}], …]`.
fn codecs(list: Value) -> Vec<CodecMetadata> {
    let Value::Array(list) = list else { panic!("a list of codecs") };
    list.into_iter().map(|codec| CodecMetadata::new(codec[0].as_str().unwrap(), codec[1].clone())).collect()
}

/// The same list as a shard's configuration gives it.
fn inside(list: &Value) -> Value {
    let list = list.as_array().unwrap().iter();
    list.map(|codec| json!({"name": codec[0], "configuration": codec[1]})).collect()
}

/// Encodes and decodes elements of a fixed size by their items.
trait Items {
    fn decode_items(&self, encoded: Bytes) -> Result<Bytes, CodecError>;
    fn encode_items(&self, items: Bytes) -> Result<Bytes, CodecError>;
}

impl Items for CodecChain {
    fn decode_items(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        self.decode(encoded).map(Elements::into_items)
    }

    fn encode_items(&self, items: Bytes) -> Result<Bytes, CodecError> {
        self.encode(Elements::fixed(items))
    }
}

fn bind(list: Value, data_type: impl Borrow<DataType>, shape: &[u64]) -> Result<CodecChain, CodecError> {
    let data_type = data_type.borrow();
    CodecChain::bind(&codecs(list), data_type, shape, &FillValue::zero(data_type), &CodecLimits::default())
}

/// A chain for `length` bytes: `bytes` and these compressors.
fn byte_chain(compressors: Value, length: u64) -> CodecChain {
    let Value::Array(mut list) = compressors else { panic!("a list of codecs") };
    list.insert(0, json!(["bytes", {}]));
    bind(Value::Array(list), DataType::UInt8, &[length]).unwrap()
}

fn unhex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Bytes that compress a little: reproducible, neither constant nor random.
fn sample(length: usize) -> Bytes {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let byte = |index: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if index % 4 < 2 { u8::try_from(index / 64 % 256).unwrap() } else { state.to_le_bytes()[0] }
    };
    (0..length).map(byte).collect()
}

/// Every bytes→bytes codec, with and without its options.
fn every_compressor() -> Vec<Value> {
    let mut all = vec![
        json!([["crc32c", {}]]),
        json!([["numcodecs.crc32c", {"location": "start"}]]),
        json!([["numcodecs.crc32", {}]]),
        json!([["numcodecs.crc32", {"location": "end"}]]),
        json!([["numcodecs.adler32", {}]]),
        json!([["numcodecs.adler32", {"location": "end"}]]),
        json!([["numcodecs.fletcher32", {}]]),
        json!([["numcodecs.jenkins_lookup3", {"initval": 7, "prefix": null}]]),
        json!([["numcodecs.base64", {}]]),
        json!([["numcodecs.lz4", {"acceleration": 1}]]),
        json!([["numcodecs.bz2", {"level": 1}]]),
        json!([["numcodecs.lzma", {"format": 1, "check": -1, "preset": null, "filters": null}]]),
        json!([["numcodecs.lzma", {"preset": 1, "check": 10}]]),
        json!([["numcodecs.lzma", {"filters": [{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]}]]),
        json!([["numcodecs.lzma", {"format": 2, "preset": 0}]]),
        json!([["numcodecs.lzma", {"format": 3, "filters": [{"id": 33, "dict_size": 65_536}]}]]),
        json!([["numcodecs.lzma", {"format": 3,
            "filters": [{"id": 0x4000_0000_0000_0001_u64, "lc": 0, "lp": 2, "pb": 0}]}]]),
        json!([["gzip", {"level": 0}]]),
        json!([["gzip", {"level": 5}]]),
        json!([["zlib", {"level": 1}]]),
        json!([["zstd", {"level": 3}]]),
        json!([["zstd", {"level": -5, "checksum": true}]]),
        json!([["gzip", {"level": 1}], ["crc32c", {}]]),
        json!([["zstd", {"level": 1}], ["gzip", {"level": 9}], ["blosc", {"cname": "lz4"}], ["zlib", {}]]),
    ];
    for cname in ["lz4", "lz4hc", "blosclz", "zstd", "zlib", "snappy"] {
        for shuffle in ["noshuffle", "shuffle", "bitshuffle"] {
            all.push(json!([["blosc",
                {"cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": 4, "blocksize": 0}]]));
        }
    }
    all.push(json!([["blosc", {"cname": "lz4", "clevel": 0, "shuffle": 1}]]));
    all.push(json!([["blosc", {"cname": "lz4", "clevel": 9, "shuffle": -1, "blocksize": 256}]]));
    all
}

fn is_corrupt<T>(result: &Result<T, CodecError>) -> bool {
    matches!(result, Err(CodecError::Corrupt { .. }))
}

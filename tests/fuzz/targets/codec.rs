//! Every codec's decoder: whatever the bytes, it decodes to as many elements as the chunk has or gives up, and what it
//! decodes can be encoded and decoded to the same.

#![no_main]

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use zarrd::codec::{CodecChain, CodecLimits};
use zarrd::metadata::{CodecMetadata, DataType, FillValue};

/// Whether what was decoded and encoded again decodes to the same: not where encoding loses something.
const EXACT: bool = true;
const LOSSY: bool = false;

/// Chains over 24 elements, by the first byte of an input.
static CHAINS: LazyLock<Vec<(CodecChain, bool)>> = LazyLock::new(|| {
    let little = || json!(["bytes", {"endian": "little"}]);
    let bytes = |codec: Value| json!([["bytes", {}], codec]);
    let shard = |location: &str, inner: Value| {
        let named = |list: &Value| -> Value {
            let list = list.as_array().unwrap().iter();
            list.map(|codec| json!({"name": codec[0], "configuration": codec[1]})).collect()
        };
        let index = json!([["bytes", {"endian": "big"}], ["crc32c", {}]]);
        json!([["sharding_indexed", {
            "chunk_shape": [4, 3], "codecs": named(&inner), "index_codecs": named(&index),
            "index_location": location,
        }]])
    };
    let mut chains = Vec::new();
    for codec in [
        json!(["blosc", {}]),
        json!(["gzip", {"level": 1}]),
        json!(["zstd", {"level": 1}]),
        json!(["zlib", {"level": 1}]),
        json!(["crc32c", {}]),
        json!(["numcodecs.adler32", {}]),
        json!(["numcodecs.crc32", {}]),
        json!(["numcodecs.fletcher32", {}]),
        json!(["numcodecs.jenkins_lookup3", {}]),
        json!(["numcodecs.bz2", {"level": 1}]),
        json!(["numcodecs.lz4", {}]),
        json!(["numcodecs.lzma", {"preset": 0}]),
        json!(["numcodecs.shuffle", {"elementsize": 4}]),
        json!(["numcodecs.base64", {}]),
        json!(["conditional", {"codecs": ["crc32c", {"name": "gzip"}], "header_bits": 8}]),
    ] {
        chains.push((bytes(codec), DataType::UInt8, EXACT));
    }
    for (list, data_type, exact) in [
        (json!([["transpose", {"order": [1, 0]}], little()]), DataType::Int16, EXACT),
        (json!([["numcodecs.delta", {"dtype": "<i4"}], little()]), DataType::Int32, EXACT),
        (json!([["numcodecs.delta", {"dtype": "<f4", "astype": "<i2"}], little()]), DataType::Float32, LOSSY),
        (
            json!([["numcodecs.fixedscaleoffset", {"offset": 1, "scale": 10, "dtype": "<f8", "astype": "<i2"}], little()]),
            DataType::Float64,
            LOSSY,
        ),
        (json!([["numcodecs.quantize", {"digits": 2, "dtype": "<f4"}], little()]), DataType::Float32, LOSSY),
        (
            json!([["numcodecs.astype", {"encode_dtype": "<i2", "decode_dtype": "<f8"}], little()]),
            DataType::Float64,
            LOSSY,
        ),
        (json!([["bitround", {"keepbits": 3}], little()]), DataType::Float32, LOSSY),
        (json!([["numcodecs.packbits", {}], ["bytes", {}]]), DataType::Bool, EXACT),
        (json!([["packbits", {"padding_encoding": "first_byte"}]]), DataType::Int4, EXACT),
        (json!([["vlen-utf8", {}], ["zstd", {}]]), DataType::String, EXACT),
        (json!([["vlen-utf8", {}]]), DataType::String, EXACT),
        (json!([["vlen-bytes", {}]]), DataType::VariableBytes, EXACT),
        (json!([["numcodecs.vlen-array", {}]]), DataType::VariableArray(Arc::new(DataType::Int16)), EXACT),
        (json!([["numcodecs.json2", {}]]), DataType::Json, EXACT),
        (json!([["numcodecs.json2", {}]]), DataType::String, EXACT),
        (
            json!([["numcodecs.categorize", {"labels": ["a", "b"], "dtype": "|O", "astype": "|u1"}], ["bytes", {}]]),
            DataType::String,
            EXACT,
        ),
        (json!([["cast_value", {"data_type": "int8"}], ["bytes", {}]]), DataType::Int32, EXACT),
        (
            json!([["cast_value", {"data_type": "float32", "out_of_range": "clamp"}], little()]),
            DataType::Int64,
            LOSSY,
        ),
        (json!([["scale_offset", {"offset": 3, "scale": 2}], little()]), DataType::Int32, LOSSY),
        (
            json!([["reshape", {"shape": [2, 12]}], ["transpose", {"order": [1, 0]}], little()]),
            DataType::Int16,
            EXACT,
        ),
        (
            json!([["n5_default", {"codecs": [
                {"name": "transpose", "configuration": {"order": [1, 0]}},
                {"name": "bytes", "configuration": {"endian": "big"}}, {"name": "gzip"},
            ]}]]),
            DataType::Int16,
            EXACT,
        ),
        (json!([["numcodecs.pcodec", {}]]), DataType::Int32, EXACT),
        (json!([["numcodecs.pcodec", {}]]), DataType::Float64, EXACT),
        (json!([["zfp", {"mode": "reversible"}]]), DataType::Float32, LOSSY),
        (json!([["numcodecs.zfpy", {}]]), DataType::Float64, LOSSY),
        (shard("end", json!([["bytes", {}], ["crc32c", {}]])), DataType::UInt8, EXACT),
        (shard("start", json!([["bytes", {}], ["gzip", {}]])), DataType::UInt8, EXACT),
        (shard("end", json!([["vlen-utf8", {}]])), DataType::String, EXACT),
    ] {
        chains.push((list, data_type, exact));
    }
    chains
        .into_iter()
        .map(|(list, data_type, exact)| {
            let codecs: Vec<CodecMetadata> = list
                .as_array()
                .unwrap()
                .iter()
                .map(|codec| CodecMetadata::new(codec[0].as_str().unwrap(), codec[1].clone()))
                .collect();
            let limits = CodecLimits { chunk_bytes: 1 << 16, ..CodecLimits::default() };
            let fill = FillValue::zero(&data_type);
            let chain = CodecChain::bind(&codecs, &data_type, &[4, 6], &fill, &limits);
            (chain.unwrap_or_else(|error| panic!("{list}: {error}")), exact)
        })
        .collect()
});

fuzz_target!(|input: &[u8]| {
    let Some((&which, encoded)) = input.split_first() else { return };
    let (chain, exact) = &CHAINS[usize::from(which) % CHAINS.len()];
    let Ok(elements) = chain.decode(Bytes::copy_from_slice(encoded)) else { return };
    assert_eq!(elements.items().len() as u64, chain.decoded_bytes());
    if *exact {
        let texts: Vec<Vec<u8>> = elements.variable_elements().map(<[u8]>::to_vec).collect();
        let again = chain.encode(elements.clone()).expect("what was decoded can be encoded");
        assert!(again.len() as u64 <= chain.encoded_limit());
        let decoded = chain.decode(again).expect("what was encoded can be decoded");
        if elements.heap().is_empty() {
            assert_eq!(decoded.items(), elements.items());
        } else {
            assert_eq!(decoded.variable_elements().collect::<Vec<_>>(), texts);
        }
    }
});

//! Each bytes→bytes codec: it decodes its own output, and damaged bytes are no data.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;

use super::{Items, bind, byte_chain, codecs, every_compressor, is_corrupt, sample, unhex};
use crate::codec::{CodecChain, CodecError, CodecLimits};
use crate::metadata::{DataType, FillValue};

/// The encodings of `abcdefgh` repeated four times by numcodecs 0.16.
const LZ4: &str = "200000008f6162636465666768080000506465666768";
const BZ2: &str =
    "425a683131415926535918814f5d00000181003fc02000310c080aa0269c49459869e38f8bb9229c28480c40a7ae80";
const XZ: &str = "fd377a585a000004e6d6b4460200210116000000742fe5a3e0001f000e5d00309888983ecbe26f3a963ef8a800000000be84be439db5447300012a20cb5983741fb6f37d010000000004595a";
const ALONE: &str = "5d00008000ffffffffffffffff00309888983ecbe26f3a963fbe73dfffffa3020000";
const RAW: &str = "e0001f000d5d0030987c5a590beb8caa7d40000000";

#[test]
fn every_compressor_decodes_what_it_encoded() {
    for compressor in every_compressor() {
        for length in [0, 1, 7, 8, 127, 128, 1000, 70_001] {
            let data = sample(length);
            let chain = byte_chain(compressor.clone(), length as u64);
            let encoded = chain.encode_items(data.clone()).unwrap();
            assert!(encoded.len() as u64 <= chain.encoded_limit(), "{compressor} of {length}");
            assert!(chain.decode_items(encoded).unwrap() == data, "{compressor} of {length}");
        }
    }
}

#[test]
fn a_value_truncated_anywhere_is_corrupt() {
    for compressor in every_compressor() {
        let chain = byte_chain(compressor.clone(), 2000);
        let encoded = chain.encode_items(sample(2000)).unwrap();
        for length in 0..encoded.len() {
            let result = chain.decode_items(encoded.slice(..length));
            assert!(is_corrupt(&result), "{compressor} cut to {length}: {result:?}");
        }
    }
}

#[test]
fn a_value_that_is_too_short_or_too_long_is_corrupt() {
    for compressor in every_compressor() {
        let encoded = byte_chain(compressor.clone(), 1000).encode_items(sample(1000)).unwrap();
        for expected in [0, 999, 1001, 100_000] {
            let result = byte_chain(compressor.clone(), expected).decode_items(encoded.clone());
            assert!(is_corrupt(&result), "{compressor} as {expected}: {result:?}");
        }
    }
}

#[test]
fn an_empty_value_is_corrupt_and_not_a_missing_chunk() {
    for compressor in every_compressor() {
        for expected in [0, 4] {
            // base64 encodes no bytes as no bytes.
            if expected == 0 && compressor[0][0] == "numcodecs.base64" {
                continue;
            }
            let result = byte_chain(compressor.clone(), expected).decode_items(Bytes::new());
            assert!(is_corrupt(&result), "{compressor} as {expected}: {result:?}");
        }
    }
}

#[test]
fn gzip_members_are_one_stream_and_trailing_zeros_are_padding() {
    let members = "1f8b080000000000020363640000be23c258020000001f8b0800000000000203636200007d70ef7302000000";
    let chain = byte_chain(json!([["gzip", {"level": 1}]]), 4);
    assert_eq!(chain.decode_items(unhex(members)).unwrap(), &[1, 0, 2, 0][..]);
    assert_eq!(chain.decode_items(unhex(&format!("{members}0000000000"))).unwrap(), &[1, 0, 2, 0][..]);
    for garbage in ["01", "000001", "1f", "1f8b"] {
        let result = chain.decode_items(unhex(&format!("{members}{garbage}")));
        assert!(is_corrupt(&result), "{garbage}: {result:?}");
    }
}

#[test]
fn a_gzip_header_may_have_all_optional_fields() {
    let member = unhex("1f8b080000000000020363640000be23c25802000000");
    let mut long = unhex("1f8b081e000000000203").to_vec();
    long.extend(unhex("0300 616263")); // extra
    long.extend(b"name\0comment\0");
    long.extend(unhex("abcd")); // header checksum
    long.extend(&member[10..]);
    let chain = byte_chain(json!([["gzip", {"level": 1}]]), 2);
    assert_eq!(chain.decode_items(Bytes::from(long)).unwrap(), &[1, 0][..]);
}

#[test]
fn gzip_and_zlib_decode_each_other_and_encode_their_own() {
    let data = sample(5000);
    let gzip = byte_chain(json!([["gzip", {"level": 1}]]), 5000);
    let zlib = byte_chain(json!([["zlib", {"level": 1}]]), 5000);
    let (as_gzip, as_zlib) =
        (gzip.encode_items(data.clone()).unwrap(), zlib.encode_items(data.clone()).unwrap());
    assert_eq!((as_gzip[0], as_zlib[0]), (0x1f, 0x78));
    assert_eq!(gzip.decode_items(as_zlib).unwrap(), data);
    assert_eq!(zlib.decode_items(as_gzip).unwrap(), data);
}

#[test]
fn several_zstd_frames_and_skippable_ones_are_one_value() {
    let chain = byte_chain(json!([["zstd", {}]]), 5000);
    let data = sample(5000);
    let mut value = unhex("502a4d18 03000000 aabbcc").to_vec();
    value.extend(::zstd::encode_all(&data[..1000], 1).unwrap()); // A stream: no content size.
    value.extend(unhex("5f2a4d18 00000000"));
    value.extend(::zstd::bulk::compress(&data[1000..], 3).unwrap());
    assert_eq!(chain.decode_items(Bytes::from(value.clone())).unwrap(), data);
    value.push(0);
    assert!(is_corrupt(&chain.decode_items(Bytes::from(value))));
}

#[test]
fn zstd_encodes_the_same_bytes_after_any_other_value() {
    for level in [1, 3, 19, -5, 9, 3, 1] {
        for (length, checksum) in [(0, false), (5000, true), (300_000, false), (1, false), (70_000, true)] {
            let data = sample(length);
            let chain = byte_chain(json!([["zstd", {"level": level, "checksum": checksum}]]), length as u64);
            let mut compressor = ::zstd::bulk::Compressor::new(level).unwrap();
            compressor.set_parameter(::zstd::zstd_safe::CParameter::ChecksumFlag(checksum)).unwrap();
            let alone = compressor.compress(&data).unwrap();
            assert_eq!(chain.encode_items(data).unwrap(), alone, "{length} bytes at level {level}");
        }
    }
}

#[test]
fn a_zstd_window_of_any_size_allocates_nothing() {
    // Magic, no content size, a window of 2^27, 2^31 or 2^41 bytes, one raw last block of 4 bytes.
    let chain = byte_chain(json!([["zstd", {}]]), 4);
    let frame = |window: &str| unhex(&format!("28b52ffd 00 {window} 210000 01020304"));
    for window in ["88", "a8"] {
        assert_eq!(chain.decode_items(frame(window)).unwrap(), &[1, 2, 3, 4][..]);
    }
    assert!(is_corrupt(&chain.decode_items(frame("f8"))));
}

#[test]
fn levels_may_be_strings_and_are_checked() {
    let level = |codec: &str, level: serde_json::Value| {
        bind(json!([["bytes", {}], [codec, {"level": level}]]), DataType::UInt8, &[4])
    };
    for codec in ["gzip", "zlib", "zstd"] {
        assert!(level(codec, json!("1")).is_ok());
        assert!(level(codec, json!(1.5)).is_err());
        assert!(level(codec, json!("high")).is_err());
    }
    assert!(level("gzip", json!(10)).is_err());
    assert!(level("zstd", json!(-7)).is_ok());
}

#[test]
fn values_written_by_pythons_compressors_decode() {
    let lzma = |config| json!([["numcodecs.lzma", config]]);
    for (list, value) in [
        (json!([["numcodecs.lz4", {}]]), LZ4),
        (json!([["numcodecs.bz2", {}]]), BZ2),
        (lzma(json!({"format": 1})), XZ),
        (lzma(json!({"format": 2})), ALONE),
        (lzma(json!({"format": 3, "filters": [{"id": 3, "dist": 2}, {"id": 33, "preset": 1}]})), RAW),
    ] {
        let chain = byte_chain(list.clone(), 32);
        assert_eq!(chain.decode_items(unhex(value)).unwrap(), "abcdefgh".repeat(4), "{list}");
    }
}

#[test]
fn binding_checks_lzma_filters() {
    let lzma = |config: serde_json::Value| {
        bind(json!([["bytes", {}], ["numcodecs.lzma", config]]), DataType::UInt8, &[4])
    };
    assert!(lzma(json!({"preset": 9_u32 | 1 << 31})).is_ok());
    for config in [
        json!({"format": 0}),
        json!({"format": 3}),
        json!({"check": 2}),
        json!({"preset": 10}),
        json!({"preset": -1}),
        json!({"filters": 33}),
        json!({"filters": [{"id": 3}]}),
        json!({"filters": [{"id": 33}, {"id": 33}]}),
        json!({"filters": [{"id": 3}, {"id": 3}, {"id": 3}, {"id": 3}, {"id": 33}]}),
        json!({"filters": [{"id": 3, "dist": 0}, {"id": 33}]}),
        json!({"filters": [{"id": 3, "dist": 257}, {"id": 33}]}),
        json!({"filters": [{"id": 33, "lc": 3, "lp": 2}]}),
        json!({"filters": [{"id": 33, "pb": 5}]}),
        json!({"filters": [{"id": 0x4000_0000_0000_0001_u64}]}),
        json!({"format": 2, "filters": [{"id": 33}]}),
        json!({"filters": [1]}),
    ] {
        assert!(matches!(lzma(config.clone()), Err(CodecError::Invalid { .. })), "{config}");
    }
    let machine_code = json!({"filters": [{"id": 4}, {"id": 33}]});
    assert!(matches!(lzma(machine_code), Err(CodecError::Unsupported(_))));
}

#[test]
fn crc32c_is_the_checksum_of_rfc_3720() {
    let chain = byte_chain(json!([["crc32c", {}]]), 9);
    let encoded = chain.encode_items(Bytes::from_static(b"123456789")).unwrap();
    assert_eq!(encoded[9..], 0xe306_9283_u32.to_le_bytes());
    assert_eq!(chain.encoded_limit(), 13);
}

#[test]
fn blosc_accepts_configurations_of_v2_and_v3_and_rejects_invalid_ones() {
    for config in [
        json!({}),
        json!({"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 2, "blocksize": 0}),
        json!({"shuffle": -1}),
        json!({"cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0}),
        json!({"cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "typesize": 0, "blocksize": 0}),
        json!({"cname": "blosclz", "clevel": "9", "shuffle": "bitshuffle", "typesize": 300, "blocksize": 1 << 30}),
    ] {
        let chain = byte_chain(json!([["blosc", config]]), 3000);
        let encoded = chain.encode_items(sample(3000)).unwrap();
        assert_eq!(chain.decode_items(encoded).unwrap(), sample(3000), "{config}");
    }
    for config in [
        json!({"cname": 4}),
        json!({"clevel": 10}),
        json!({"shuffle": "x"}),
        json!({"shuffle": 3}),
        json!({"typesize": -1}),
        json!({"blocksize": -1}),
        json!({"cname": "lzma"}),
    ] {
        let list = json!([["bytes", {}], ["blosc", config]]);
        assert!(bind(list, DataType::UInt8, &[4]).is_err(), "{config}");
    }
}

#[test]
fn blosc_is_rejected_for_chunks_larger_than_a_frame() {
    let limits = CodecLimits { chunk_bytes: u64::MAX, ..CodecLimits::default() };
    let bind = |length| {
        let list = codecs(json!([["bytes", {}], ["blosc", {}]]));
        CodecChain::bind(&list, &DataType::UInt8, &[length], &FillValue::zero(&DataType::UInt8), &limits)
    };
    assert!(bind((1 << 31) - 17).is_ok());
    assert!(matches!(bind((1 << 31) - 16), Err(CodecError::Invalid { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn mutated_values_never_panic(
        which in 0..every_compressor().len(),
        // Some encoders encode no bytes as no bytes, which cannot be mutated.
        length in 1_usize..1500,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let chain = byte_chain(every_compressor()[which].clone(), length as u64);
        let mut value = chain.encode_items(sample(length)).unwrap().to_vec();
        for (at, byte) in edits {
            let at = at.index(value.len());
            value[at] = byte;
        }
        if cuts {
            value.truncate(cut.index(value.len()));
        }
        if let Ok(decoded) = chain.decode_items(Bytes::from(value)) {
            prop_assert_eq!(decoded.len(), length);
        }
    }

    #[test]
    fn noise_never_panics(
        which in 0..every_compressor().len(),
        length in 0_u64..1000,
        value in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let chain = byte_chain(every_compressor()[which].clone(), length);
        if let Ok(decoded) = chain.decode_items(Bytes::from(value)) {
            prop_assert_eq!(decoded.len() as u64, length);
        }
    }
}

//! Bombs: small values that declare or decode to much more than the chunk. Each is corrupt, at no cost in memory.

use std::io::Write;

use bytes::Bytes;
use serde_json::json;

use super::{Items, byte_chain, is_corrupt, unhex};
use crate::codec::{CodecError, InflateProgress, Inflater};

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut stream = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    stream.write_all(data).unwrap();
    stream.finish().unwrap()
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut stream = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    stream.write_all(data).unwrap();
    stream.finish().unwrap()
}

fn zstd(data: &[u8]) -> Vec<u8> {
    ::zstd::bulk::compress(data, 3).unwrap()
}

#[test]
fn a_bare_stream_with_another_length_or_checksum_than_declared_is_corrupt() {
    let data = vec![7; 1 << 20];
    // The header and the trailer of gzip are as long as these.
    let whole = gzip(&data);
    let (encoded, trailer) = whole[10..].split_at(whole.len() - 18);
    let crc = u32::from_le_bytes(trailer[..4].try_into().unwrap());
    let behind = [encoded, &[0]].concat();
    // All at once, and a few bytes at a time.
    for (input_bytes, output_bytes) in [(usize::MAX, 2 << 20), (1, 5000), (100, 1 << 10)] {
        let inflate = |encoded, size, crc| inflate(encoded, size, crc, input_bytes, output_bytes);
        assert_eq!(inflate(encoded, 1 << 20, crc).unwrap(), data);
        for (encoded, size, crc) in [
            (encoded, (1 << 20) - 1, crc),
            (encoded, (1 << 20) + 1, crc),
            (encoded, 0, crc),
            (encoded, u64::MAX, crc),
            (encoded, 1 << 20, crc ^ 1),
            (&encoded[..encoded.len() - 1], 1 << 20, crc),
            (&behind, 1 << 20, crc),
            (&[], 0, 0),
        ] {
            let error = inflate(encoded, size, crc).unwrap_err();
            assert!(matches!(error, CodecError::Corrupt { .. }), "{size}: {error:?}");
        }
    }
}

/// Decodes a bare stream with the given number of bytes of input and output in each call.
fn inflate(
    encoded: &[u8],
    size: u64,
    crc: u32,
    input_bytes: usize,
    output_bytes: usize,
) -> Result<Vec<u8>, CodecError> {
    let mut inflater = Inflater::new(encoded.len() as u64, size, crc)?;
    let (mut decoded, mut output) = (Vec::new(), vec![0; output_bytes]);
    for input in encoded.chunks(input_bytes) {
        let mut rest = input;
        loop {
            let InflateProgress { consumed, written } = inflater.inflate(rest, &mut output)?;
            decoded.extend_from_slice(&output[..written]);
            rest = &rest[consumed..];
            if consumed == 0 && written == 0 {
                break;
            }
        }
        assert!(rest.is_empty());
    }
    inflater.finish().map(|()| decoded)
}

#[test]
fn a_value_that_decodes_to_more_than_the_chunk_is_corrupt() {
    let zeros = vec![0; 32 << 20];
    for (codec, bomb) in [("gzip", gzip(&zeros)), ("zlib", zlib(&zeros)), ("zstd", zstd(&zeros))] {
        let chain = byte_chain(json!([[codec, {}]]), 100);
        assert!(bomb.len() < 64 << 10);
        assert!(is_corrupt(&chain.decode_items(Bytes::from(bomb))), "{codec}");
    }
    let blosc = byte_chain(json!([["blosc", {}]]), 32 << 20).encode_items(Bytes::from(zeros)).unwrap();
    assert!(is_corrupt(&byte_chain(json!([["blosc", {}]]), 100).decode_items(blosc)));
}

#[test]
fn a_bomb_inside_a_compressed_value_stops_at_the_bound_of_the_inner_codec() {
    let zeros = vec![0; 64 << 20];
    let (inner_gzip, inner_zstd) = (gzip(&gzip(&zeros)), zstd(&zstd(&zeros)));
    assert!(is_corrupt(
        &byte_chain(json!([["gzip", {}], ["gzip", {}]]), 100).decode_items(Bytes::from(inner_gzip))
    ));
    assert!(is_corrupt(
        &byte_chain(json!([["zstd", {}], ["zstd", {}]]), 100).decode_items(Bytes::from(inner_zstd))
    ));
    // The outer codec decodes to far more bytes than a legal value of the inner one has.
    for codec in ["gzip", "zlib", "zstd", "blosc"] {
        let chain = byte_chain(json!([[codec, {}], ["gzip", {}]]), 100);
        let error = chain.decode_items(Bytes::from(gzip(&zeros))).unwrap_err();
        let CodecError::Corrupt { codec, .. } = error else { panic!("{error}") };
        assert_eq!(codec, "gzip");
    }
}

#[test]
fn a_zstd_frame_that_declares_another_size_than_its_content_is_corrupt() {
    // Content sizes of 64 TiB, 2^64 - 2 and 0 over one raw block of 4 bytes.
    for size in ["0000000000400000", "feffffffffffffff", "0000000000000000"] {
        let frame = unhex(&format!("28b52ffd e0 {size} 210000 01020304"));
        for expected in [4, 100] {
            assert!(
                is_corrupt(&byte_chain(json!([["zstd", {}]]), expected).decode_items(frame.clone())),
                "{size}"
            );
        }
    }
}

#[test]
fn a_thousand_members_decode_to_exactly_the_chunk_or_are_corrupt() {
    let part = [7; 64];
    for (codec, member) in [("gzip", gzip(&part)), ("zstd", zstd(&part))] {
        let value = Bytes::from(member.repeat(1000));
        let whole = byte_chain(json!([[codec, {}]]), 64_000);
        assert_eq!(whole.decode_items(value.clone()).unwrap(), vec![7; 64_000]);
        for expected in [64, 63_999, 64_001] {
            let result = byte_chain(json!([[codec, {}]]), expected).decode_items(value.clone());
            assert!(is_corrupt(&result), "{codec} as {expected}");
        }
    }
    // Any number of empty members decodes to nothing.
    for (codec, member) in [("gzip", gzip(&[])), ("zstd", zstd(&[]))] {
        let value = Bytes::from(member.repeat(10_000));
        assert!(is_corrupt(&byte_chain(json!([[codec, {}]]), 1).decode_items(value)), "{codec}");
    }
}

#[test]
fn a_wrong_gzip_trailer_is_corrupt() {
    let good = gzip(&[5; 100]);
    let chain = byte_chain(json!([["gzip", {}]]), 100);
    for at in good.len() - 8..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(is_corrupt(&chain.decode_items(Bytes::from(bad))), "{at}");
    }
}

/// Zeros encoded by a chain, far smaller than the zeros.
fn zeros_by(list: &serde_json::Value) -> Bytes {
    let bomb = byte_chain(list.clone(), 32 << 20).encode_items(Bytes::from(vec![0; 32 << 20])).unwrap();
    assert!(bomb.len() < 256 << 10);
    bomb
}

#[test]
fn lz4_bz2_and_lzma_stop_at_the_end_of_the_chunk() {
    for list in [
        json!([["numcodecs.lz4", {}]]),
        json!([["numcodecs.bz2", {"level": 9}]]),
        json!([["numcodecs.lzma", {"preset": 0}]]),
        json!([["numcodecs.lzma", {"format": 2, "preset": 0}]]),
        json!([["numcodecs.lzma", {"format": 3, "filters": [{"id": 33, "preset": 0}]}]]),
    ] {
        let bomb = zeros_by(&list);
        for expected in [0, 100, (32 << 20) - 1] {
            assert!(is_corrupt(&byte_chain(list.clone(), expected).decode_items(bomb.clone())), "{list}");
        }
        // After another compressor, the bound is that of its output.
        let both = json!([["gzip", {}], list[0]]);
        assert!(is_corrupt(&byte_chain(both, 100).decode_items(bomb)), "{list}");
    }
}

#[test]
fn a_wrong_length_in_an_lz4_header_is_corrupt() {
    let value = |length: u32| [&length.to_le_bytes()[..], &[0x10, 7]].concat();
    let decode = |expected, length| {
        byte_chain(json!([["numcodecs.lz4", {}]]), expected).decode_items(Bytes::from(value(length)))
    };
    assert_eq!(decode(1, 1).unwrap(), &[7][..]);
    for (expected, length) in [(1, 0), (1, 2), (1, u32::MAX), (500, 500), (1 << 28, 1 << 28), (0, 0)] {
        assert!(is_corrupt(&decode(expected, length)), "{length} for {expected}");
    }
    // If only a bound is known, the length of the input bounds the output further.
    let behind = byte_chain(json!([["gzip", {}], ["numcodecs.lz4", {}]]), 1 << 20);
    assert!(is_corrupt(&behind.decode_items(Bytes::from(value(1 << 20)))));
}

#[test]
fn a_dictionary_of_gigabytes_is_refused_without_allocating_it() {
    // The `.lzma` header: lc 3, lp 0, pb 2; a dictionary of 4 GiB less one; size unknown.
    let alone = unhex("5d ffffffff ffffffffffffffff 0083fffbffffc0000000");
    let result = byte_chain(json!([["numcodecs.lzma", {"format": 2}]]), 0).decode_items(alone);
    assert!(matches!(result, Err(CodecError::Unsupported(_))), "{result:?}");
    let filters = json!([{"id": 33, "dict_size": 1_u32 << 30}]);
    let raw = json!([["bytes", {}], ["numcodecs.lzma", {"format": 3, "filters": filters}]]);
    let result = super::bind(raw, crate::metadata::DataType::UInt8, &[4]);
    assert!(matches!(result, Err(CodecError::Unsupported(_))), "{result:?}");
}

#[test]
fn several_streams_are_one_value_and_trailing_garbage_is_corrupt() {
    for list in [json!([["numcodecs.bz2", {}]]), json!([["numcodecs.lzma", {"preset": 0}]])] {
        let part = byte_chain(list.clone(), 64).encode_items(Bytes::from_static(&[7; 64])).unwrap();
        let chain = byte_chain(list.clone(), 640);
        assert_eq!(chain.decode_items(Bytes::from(part.repeat(10))).unwrap(), vec![7; 640], "{list}");
        for garbage in [&[0][..], b"BZh9", b"\xfd7zXZ"] {
            let value = [&part.repeat(10)[..], garbage].concat();
            assert!(is_corrupt(&chain.decode_items(Bytes::from(value))), "{list}");
        }
    }
}

#[test]
fn empty_streams_count_towards_the_limit_of_streams() {
    let list = json!([["numcodecs.bz2", {}]]);
    let nothing = byte_chain(list.clone(), 0).encode_items(Bytes::new()).unwrap();
    assert!(byte_chain(list.clone(), 0).decode_items(Bytes::from(nothing.repeat(100))).unwrap().is_empty());
    assert!(is_corrupt(&byte_chain(list, 0).decode_items(Bytes::from(nothing.repeat(10_001)))));
}

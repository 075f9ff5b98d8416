//! Bombs: small values that claim or make much more than the chunk can hold. Each is corrupt, at no cost in
//! memory.

use std::io::Write;

use bytes::Bytes;
use serde_json::json;

use super::{byte_chain, is_corrupt, unhex};
use crate::codec::CodecError;

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
fn a_value_that_makes_more_than_the_chunk_holds_is_corrupt() {
    let zeros = vec![0; 32 << 20];
    for (codec, bomb) in [("gzip", gzip(&zeros)), ("zlib", zlib(&zeros)), ("zstd", zstd(&zeros))] {
        let chain = byte_chain(json!([[codec, {}]]), 100);
        assert!(bomb.len() < 64 << 10);
        assert!(is_corrupt(&chain.decode(Bytes::from(bomb))), "{codec}");
    }
    let blosc = byte_chain(json!([["blosc", {}]]), 32 << 20).encode(Bytes::from(zeros)).unwrap();
    assert!(is_corrupt(&byte_chain(json!([["blosc", {}]]), 100).decode(blosc)));
}

#[test]
fn a_bomb_inside_a_compressed_value_is_stopped_at_the_bound_of_the_inner_one() {
    let zeros = vec![0; 64 << 20];
    let (inner_gzip, inner_zstd) = (gzip(&gzip(&zeros)), zstd(&zstd(&zeros)));
    assert!(is_corrupt(
        &byte_chain(json!([["gzip", {}], ["gzip", {}]]), 100).decode(Bytes::from(inner_gzip))
    ));
    assert!(is_corrupt(
        &byte_chain(json!([["zstd", {}], ["zstd", {}]]), 100).decode(Bytes::from(inner_zstd))
    ));
    // What the outer codec makes is no legal value of the inner one: too long by far.
    for codec in ["gzip", "zlib", "zstd", "blosc"] {
        let chain = byte_chain(json!([[codec, {}], ["gzip", {}]]), 100);
        let error = chain.decode(Bytes::from(gzip(&zeros))).unwrap_err();
        let CodecError::Corrupt { codec, .. } = error else { panic!("{error}") };
        assert_eq!(codec, "gzip");
    }
}

#[test]
fn a_zstd_frame_that_declares_much_makes_only_what_it_holds() {
    // Content sizes of 64 TiB, 2^64 - 2 and 0 over one raw block of 4 bytes.
    for size in ["0000000000400000", "feffffffffffffff", "0000000000000000"] {
        let frame = unhex(&format!("28b52ffd e0 {size} 210000 01020304"));
        for expected in [4, 100] {
            assert!(is_corrupt(&byte_chain(json!([["zstd", {}]]), expected).decode(frame.clone())), "{size}");
        }
    }
}

#[test]
fn a_thousand_members_are_decoded_within_the_chunk_or_not_at_all() {
    let part = [7; 64];
    for (codec, member) in [("gzip", gzip(&part)), ("zstd", zstd(&part))] {
        let value = Bytes::from(member.repeat(1000));
        let whole = byte_chain(json!([[codec, {}]]), 64_000);
        assert_eq!(whole.decode(value.clone()).unwrap(), vec![7; 64_000]);
        for expected in [64, 63_999, 64_001] {
            let result = byte_chain(json!([[codec, {}]]), expected).decode(value.clone());
            assert!(is_corrupt(&result), "{codec} as {expected}");
        }
    }
    // Members of nothing make nothing, however many there are.
    for (codec, member) in [("gzip", gzip(&[])), ("zstd", zstd(&[]))] {
        let value = Bytes::from(member.repeat(10_000));
        assert!(is_corrupt(&byte_chain(json!([[codec, {}]]), 1).decode(value)), "{codec}");
    }
}

#[test]
fn a_gzip_trailer_that_lies_is_corrupt() {
    let good = gzip(&[5; 100]);
    let chain = byte_chain(json!([["gzip", {}]]), 100);
    for at in good.len() - 8..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(is_corrupt(&chain.decode(Bytes::from(bad))), "{at}");
    }
}

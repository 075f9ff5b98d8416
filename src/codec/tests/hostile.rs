//! Hostile blosc frames and hostile shards, each handmade with one wrong value.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;

use super::{Items, bind, byte_chain, inside, is_corrupt, sample};
use crate::codec::CodecChain;
use crate::metadata::DataType;

/// A blosc frame of one unsplit block of the given compressor, holding `part`.
fn frame(flags: u8, type_bytes: u8, decoded: i32, block: i32, part: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 1, flags | 0x10, type_bytes];
    let length = i32::try_from(16 + 4 + 4 + part.len()).unwrap();
    for number in [decoded, block, length, 20, i32::try_from(part.len()).unwrap()] {
        frame.extend(number.to_le_bytes());
    }
    frame.extend(part);
    frame
}

const LZ4: u8 = 1 << 5;

fn blosc(length: u64) -> CodecChain {
    byte_chain(json!([["blosc", {}]]), length)
}

/// Eight literals, then a match of 19 + `more` at the given distance, then five literals.
fn lz4_part(distance: u16, more: u8) -> Vec<u8> {
    let mut part = vec![0x8f];
    part.extend(b"abcdefgh");
    part.extend(distance.to_le_bytes());
    part.extend([more, 0x50]);
    part.extend(b"vwxyz");
    part
}

#[test]
fn an_lz4_match_before_the_beginning_is_corrupt() {
    let decode =
        |distance| blosc(33).decode_items(Bytes::from(frame(LZ4, 1, 33, 33, &lz4_part(distance, 1))));
    assert_eq!(decode(8).unwrap(), "abcdefghabcdefghabcdefghabcdvwxyz");
    assert!(is_corrupt(&decode(9)));
    assert!(is_corrupt(&decode(u16::MAX)));
}

#[test]
fn an_lz4_match_at_distance_zero_never_decodes_to_old_memory() {
    for more in 0..254 {
        let length = 8 + 19 + usize::from(more) + 5;
        for shuffled in [0, 1, 4] {
            // The allocator is likely to return this memory next.
            drop((0..8).map(|_| vec![0xee_u8; length]).collect::<Vec<_>>());
            let block = i32::try_from(length).unwrap();
            let value = frame(LZ4 | shuffled, 2, block, block, &lz4_part(0, more));
            let result = blosc(length as u64).decode_items(Bytes::from(value));
            let Ok(decoded) = &result else {
                assert!(is_corrupt(&result), "{more} {shuffled}: {result:?}");
                continue;
            };
            assert_eq!(decoded.len(), length, "{more}");
            assert!(!decoded.contains(&0xee), "{more}: {decoded:?}");
            // What is no part of the match is decoded as it is.
            let is_whole = decoded.starts_with(b"abcdefgh") && decoded.ends_with(b"vwxyz");
            assert!(shuffled != 0 || is_whole, "{more}: {decoded:?}");
        }
    }
}

#[test]
fn a_blosclz_block_too_large_for_its_counters_is_corrupt() {
    // Nothing but match lengths that never end: this overflows the library's counters.
    let mut part = vec![0xff; 8_500_000];
    part[0] = 0;
    let decoded = 9 << 20;
    let value = Bytes::from(frame(0, 1, decoded, decoded, &part));
    assert!(is_corrupt(&blosc(9 << 20).decode_items(value)));
}

#[test]
fn a_blosc_header_with_one_wrong_number_is_corrupt() {
    let good = frame(LZ4, 1, 33, 33, &lz4_part(8, 1));
    for (at, numbers) in [
        (4, vec![0, 32, 34, -1, i32::MAX, i32::MIN]),
        (8, vec![0, -1, 34, i32::MAX, i32::MIN, 1, 8]),
        (12, vec![0, 15, 16, good.len().try_into().map_or(0, |n: i32| n - 1), i32::MAX, -1]),
        (16, vec![0, 16, 19, 21, 36, i32::MAX, -1]),
        (20, vec![-1, 0, 17, 19, 100, i32::MAX, i32::MIN]),
    ] {
        for number in numbers {
            let mut bad = good.clone();
            bad[at..at + 4].copy_from_slice(&number.to_le_bytes());
            let result = blosc(33).decode_items(Bytes::from(bad));
            assert!(is_corrupt(&result), "{number} at {at}: {result:?}");
        }
    }
    for (at, byte) in [(0, 1), (0, 3), (2, LZ4 | 0x18), (2, 5 << 5), (2, 7 << 5), (3, 0)] {
        let mut bad = good.clone();
        bad[at] = byte;
        assert!(is_corrupt(&blosc(33).decode_items(Bytes::from(bad))), "{byte} at {at}");
    }
}

#[test]
fn a_blosc_block_that_does_not_split_evenly_is_corrupt() {
    // 257 bytes in parts of 2 leave one byte unwritten.
    let mut value = frame(LZ4, 2, 257, 257, &[0; 128]);
    value[2] = LZ4;
    value.extend(128_i32.to_le_bytes());
    value.extend([0; 128]);
    let length = i32::try_from(value.len()).unwrap();
    value[12..16].copy_from_slice(&length.to_le_bytes());
    assert!(is_corrupt(&blosc(257).decode_items(Bytes::from(value))));
}

#[test]
fn stored_and_empty_blosc_frames_decode_without_a_copy() {
    let mut stored = vec![2, 1, LZ4 | 0x02, 1];
    for number in [5_i32, 5, 21] {
        stored.extend(number.to_le_bytes());
    }
    stored.extend(b"hello");
    let value = Bytes::from(stored);
    let decoded = blosc(5).decode_items(value.clone()).unwrap();
    assert_eq!(decoded, "hello");
    assert_eq!(decoded.as_ptr(), value[16..].as_ptr());
    let empty = blosc(0).encode_items(Bytes::new()).unwrap();
    assert_eq!(empty.len(), 16);
    assert!(blosc(0).decode_items(empty).unwrap().is_empty());
}

/// A shard of shards, every codec of it with something to check.
fn nested() -> CodecChain {
    let index = inside(&json!([["bytes", {"endian": "little"}]]));
    let inner = json!([["sharding_indexed", {
        "chunk_shape": [2, 2],
        "codecs": inside(&json!([["transpose", {"order": [1, 0]}], ["bytes", {"endian": "big"}], ["gzip", {}]])),
        "index_codecs": index,
        "index_location": "start",
    }]]);
    let outer = json!([["sharding_indexed", {
        "chunk_shape": [4, 2],
        "codecs": inside(&inner),
        "index_codecs": index,
        "index_location": "end",
    }]]);
    bind(outer, DataType::UInt16, &[4, 6]).unwrap()
}

#[test]
fn an_inner_shard_cannot_reach_into_its_neighbours() {
    let chain = nested();
    let value = chain.encode_items(sample(48)).unwrap();
    let sharding = chain.sharding().unwrap();
    let at = usize::try_from(sharding.index_range(value.len() as u64).unwrap().start).unwrap();
    let index = sharding.decode_index(&value[at..], value.len() as u64).unwrap();
    let first = index.get(0).unwrap();
    assert!(first.end < index.get(1).unwrap().end);
    // The first entry of the first inner shard: as long as the inner shard and one byte more.
    let mut bad = value.to_vec();
    let start = usize::try_from(first.start).unwrap();
    let length = first.end - first.start - 32 + 1;
    bad[start..start + 8].copy_from_slice(&32_u64.to_le_bytes());
    bad[start + 8..start + 16].copy_from_slice(&length.to_le_bytes());
    assert!(is_corrupt(&chain.decode_items(Bytes::from(bad))));
}

#[test]
fn a_shard_truncated_anywhere_is_corrupt() {
    let chain = nested();
    let value = chain.encode_items(sample(48)).unwrap();
    for length in 0..value.len() {
        assert!(is_corrupt(&chain.decode_items(value.slice(..length))), "{length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn mutated_shards_never_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        words in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(
            vec![0, 1, 31, 32, 1 << 63, u64::MAX, u64::MAX - 1, u64::MAX - 31])), 0..3),
    ) {
        let chain = nested();
        let mut value = chain.encode_items(sample(48)).unwrap().to_vec();
        for (at, byte) in edits {
            let at = at.index(value.len());
            value[at] = byte;
        }
        for (at, word) in words {
            let at = at.index(value.len() / 8) * 8;
            value[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        if let Ok(decoded) = chain.decode_items(Bytes::from(value)) {
            prop_assert_eq!(decoded.len(), 48);
        }
    }
}

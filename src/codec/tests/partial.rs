//! Parts of chunks decode to the same elements as whole chunks, or fail.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Items, bind, every_compressor, is_corrupt, sample};
use crate::chunk::Runs;
use crate::codec::CodecChain;
use crate::metadata::DataType;

/// One run.
fn run(items: std::ops::Range<usize>) -> Runs {
    Runs { start: items.start, count: 1, length: items.len(), stride: items.len() }
}

/// Chains that decode parts on their own.
fn chains() -> Vec<Value> {
    let mut all = vec![json!([["zstd", {"level": 3}], ["crc32c", {}]])];
    all.extend(
        every_compressor().into_iter().filter(|chain| chain[0][0] == "blosc" || chain[0][0] == "zstd"),
    );
    for block_bytes in [256, 4096, 100_000] {
        for (cname, shuffle) in [("lz4", 0), ("lz4", 1), ("lz4hc", 1), ("lz4", 2), ("zstd", 1)] {
            all.push(json!([["blosc",
                {"cname": cname, "clevel": 3, "shuffle": shuffle, "blocksize": block_bytes}]]));
        }
    }
    all
}

fn bound(compressors: &Value, data_type: DataType, endian: &str, length: u64) -> CodecChain {
    let mut codecs = vec![json!(["bytes", {"endian": endian}])];
    codecs.extend(compressors.as_array().unwrap().iter().cloned());
    bind(Value::Array(codecs), data_type, &[length]).unwrap()
}

#[test]
fn a_part_decodes_to_the_same_elements_as_the_whole_chunk() {
    const LENGTH: usize = 75_003;
    for data_type in [DataType::UInt8, DataType::UInt16, DataType::Float32, DataType::Complex64] {
        let item = data_type.element_bytes();
        let whole = sample(LENGTH * item);
        for compressors in chains() {
            let chain = bound(&compressors, data_type.clone(), "big", LENGTH as u64);
            let encoded = chain.encode_items(whole.clone()).unwrap();
            for (start, count, length, stride) in
                [(0, 1, 1, 1), (17, 1, 1, 1), (25_000, 1, 30_000, 1), (LENGTH - 1, 1, 1, 1), (3, 70, 5, 1000)]
            {
                let runs = Runs {
                    start: start * item,
                    count,
                    length: length * item,
                    stride: (stride * item).max(length),
                };
                let part = chain.part(runs.clone()).unwrap();
                assert_eq!(part.decoded_bytes(), runs.bytes() as u64);
                let decoded = part.decode_items(encoded.clone()).unwrap();
                let expected: Vec<u8> = runs.each().flat_map(|run| whole[run].to_vec()).collect();
                assert!(decoded == expected, "{compressors}, {data_type:?}, {runs:?}");
            }
        }
    }
}

#[test]
fn a_part_has_its_own_id() {
    let chain = bound(&json!([["zstd", {}]]), DataType::UInt8, "little", 100);
    let ids =
        [&chain, &chain.part(run(0..50)).unwrap(), &chain.part(run(50..100)).unwrap()].map(CodecChain::id);
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    assert_eq!(chain.part(run(0..50)).unwrap().id(), ids[1]);
}

#[test]
fn a_part_outside_the_chunk_is_none() {
    let chain = bound(&json!([["zstd", {}]]), DataType::UInt8, "little", 100);
    for items in [99..101, 100..101, 5..5, 0..90, usize::MAX - 1..usize::MAX] {
        assert!(chain.part(run(items)).is_none());
    }
    assert!(chain.part(Runs { start: 0, count: 11, length: 1, stride: 10 }).is_none());
    assert!(chain.part(Runs { start: 0, count: usize::MAX, length: 1, stride: usize::MAX }).is_none());
    assert!(chain.part(Runs { start: 0, count: 10, length: 2, stride: 1 }).is_none());
    assert!(chain.part(run(0..50)).unwrap().part(run(0..5)).is_none());
}

#[test]
fn chains_that_only_decode_whole_chunks_have_no_parts() {
    for codecs in [
        json!([["transpose", {"order": [0]}], ["bytes", {}], ["zstd", {}]]),
        json!([["bytes", {}], ["gzip", {"level": 1}]]),
        json!([["bytes", {}]]),
    ] {
        assert!(bind(codecs, DataType::UInt8, &[100]).unwrap().part(run(0..50)).is_none());
    }
}

#[test]
fn a_part_of_a_chunk_verifies_the_checksum_of_the_chunk() {
    for compressors in [json!([["zstd", {"checksum": true}]]), json!([["blosc", {}], ["crc32c", {}]])] {
        let chain = bound(&compressors, DataType::UInt8, "little", 300_000);
        let mut encoded = chain.encode_items(sample(300_000)).unwrap().to_vec();
        *encoded.last_mut().unwrap() ^= 1;
        assert!(
            is_corrupt(&chain.part(run(0..1)).unwrap().decode_items(Bytes::from(encoded))),
            "{compressors}"
        );
    }
}

#[test]
fn a_part_of_a_chunk_of_another_size_is_corrupt() {
    for compressors in chains() {
        let chain = bound(&compressors, DataType::UInt8, "little", 50_000);
        for length in [49_999, 50_001, 100] {
            let other = bound(&compressors, DataType::UInt8, "little", length);
            let encoded = other.encode_items(sample(length as usize)).unwrap();
            let part = chain.part(run(0..10)).unwrap().decode_items(encoded);
            assert!(is_corrupt(&part), "{compressors}, {length}");
        }
    }
}

proptest! {
    #[test]
    fn a_part_of_damaged_bytes_fails_or_has_the_expected_length(
        which in any::<prop::sample::Index>(),
        (at, byte) in (any::<prop::sample::Index>(), any::<u8>()),
        cut in any::<prop::sample::Index>(),
        (start, count, length) in (0_usize..2000, 1_usize..10, 1_usize..200),
    ) {
        let chains = chains();
        let chain = bound(which.get(&chains), DataType::UInt16, "little", 4000);
        let mut encoded = chain.encode_items(sample(8000)).unwrap().to_vec();
        let place = at.index(encoded.len().min(64));
        encoded[place] = byte;
        if byte % 2 == 0 {
            encoded.truncate(cut.index(encoded.len()) + 1);
        }
        let items = Runs { start: start * 2, count, length: length * 2, stride: 400 };
        let part = chain.part(items.clone()).unwrap();
        if let Ok(decoded) = part.decode_items(Bytes::from(encoded)) {
            prop_assert_eq!(decoded.len(), items.bytes());
        }
    }
}

//! Parts of chunks are the same elements as those of the whole, or an error.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Items, bind, every_compressor, is_corrupt, sample};
use crate::codec::CodecChain;
use crate::metadata::DataType;

/// Chains of which parts are decoded on their own.
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
fn a_part_of_a_chunk_is_that_part_of_its_elements() {
    const LENGTH: u64 = 100_003;
    for data_type in [DataType::UInt8, DataType::UInt16, DataType::Float32, DataType::Float64] {
        let item = data_type.item_bytes() as u64;
        let bytes = usize::try_from(LENGTH * item).unwrap();
        for compressors in chains() {
            let chain = bound(&compressors, data_type.clone(), "big", LENGTH);
            let encoded = chain.encode_items(sample(bytes)).unwrap();
            for elements in [0..1, 0..LENGTH, 17..18, 30_000..70_000, 0..99_999, LENGTH - 1..LENGTH] {
                let items = elements.start * item..elements.end * item;
                let part = chain.part(items.clone()).unwrap();
                assert_eq!(part.decoded_bytes(), items.end - items.start);
                let decoded = part.decode_items(encoded.clone()).unwrap();
                let expected = sample(bytes).slice(items.start as usize..items.end as usize);
                assert!(decoded == expected, "{compressors}, {data_type:?}, {elements:?}");
            }
        }
    }
}

#[test]
fn a_part_has_an_identity_of_its_own() {
    let chain = bound(&json!([["zstd", {}]]), DataType::UInt8, "little", 100);
    let ids = [&chain, &chain.part(0..50).unwrap(), &chain.part(50..100).unwrap()].map(CodecChain::id);
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    assert_eq!(chain.part(0..50).unwrap().id(), ids[1]);
}

#[test]
fn a_part_that_is_not_in_the_chunk_is_none() {
    let chain = bound(&json!([["zstd", {}]]), DataType::UInt8, "little", 100);
    for items in [0..101, 100..101, 5..5, u64::MAX - 1..u64::MAX] {
        assert!(chain.part(items).is_none());
    }
    assert!(chain.part(0..50).unwrap().part(0..5).is_none());
}

#[test]
fn what_only_decodes_as_a_whole_has_no_parts() {
    for codecs in [
        json!([["transpose", {"order": [0]}], ["bytes", {}], ["zstd", {}]]),
        json!([["bytes", {}], ["gzip", {"level": 1}]]),
        json!([["bytes", {}]]),
    ] {
        assert!(bind(codecs, DataType::UInt8, &[100]).unwrap().part(0..50).is_none());
    }
}

#[test]
fn a_part_of_a_chunk_with_a_checksum_is_compared_with_it() {
    for compressors in [json!([["zstd", {"checksum": true}]]), json!([["blosc", {}], ["crc32c", {}]])] {
        let chain = bound(&compressors, DataType::UInt8, "little", 300_000);
        let mut encoded = chain.encode_items(sample(300_000)).unwrap().to_vec();
        *encoded.last_mut().unwrap() ^= 1;
        assert!(is_corrupt(&chain.part(0..1).unwrap().decode_items(Bytes::from(encoded))), "{compressors}");
    }
}

#[test]
fn a_chunk_of_another_size_has_no_parts_to_decode() {
    for compressors in chains() {
        let chain = bound(&compressors, DataType::UInt8, "little", 50_000);
        for length in [49_999, 50_001, 100] {
            let other = bound(&compressors, DataType::UInt8, "little", length);
            let encoded = other.encode_items(sample(length as usize)).unwrap();
            let part = chain.part(0..10).unwrap().decode_items(encoded);
            assert!(is_corrupt(&part), "{compressors}, {length}");
        }
    }
}

proptest! {
    #[test]
    fn a_part_of_broken_bytes_is_an_error_or_as_long_as_it_must_be(
        which in any::<prop::sample::Index>(),
        (at, byte) in (any::<prop::sample::Index>(), any::<u8>()),
        cut in any::<prop::sample::Index>(),
        (start, end) in (0_u64..20_000, 1_u64..20_000),
    ) {
        let chains = chains();
        let chain = bound(which.get(&chains), DataType::UInt16, "little", 20_000);
        let mut encoded = chain.encode_items(sample(40_000)).unwrap().to_vec();
        let place = at.index(encoded.len().min(64));
        encoded[place] = byte;
        if byte % 2 == 0 {
            encoded.truncate(cut.index(encoded.len()) + 1);
        }
        let items = start * 2..(start + end).min(20_000) * 2;
        let part = chain.part(items.clone()).unwrap();
        if let Ok(decoded) = part.decode_items(Bytes::from(encoded)) {
            prop_assert_eq!(decoded.len() as u64, items.end - items.start);
        }
    }
}

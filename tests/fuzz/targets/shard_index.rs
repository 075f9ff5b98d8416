//! The index of a shard: whatever its bytes and the shard's length, an index that is read points inside the shard and
//! outside itself.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use zarrd::codec::{CodecChain, CodecLimits};
use zarrd::metadata::{CodecMetadata, DataType, FillValue};

/// Without a checksum, which would keep almost every input out; the index at the end and at the start.
static CHAINS: LazyLock<[CodecChain; 2]> = LazyLock::new(|| {
    ["end", "start"].map(|location| {
        let bytes = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
        let shard = json!({
            "chunk_shape": [2], "codecs": bytes, "index_codecs": bytes, "index_location": location,
        });
        let codecs = [CodecMetadata::new("sharding_indexed", shard)];
        let fill = FillValue::zero(&DataType::UInt8);
        CodecChain::bind(&codecs, &DataType::UInt8, &[6], &fill, &CodecLimits::default()).unwrap()
    })
});

fuzz_target!(|input: (bool, u64, Vec<u8>)| {
    let (start, shard_bytes, encoded) = input;
    let sharding = CHAINS[usize::from(start)].sharding().unwrap();
    let Ok(own) = sharding.index_range(shard_bytes) else { return };
    let Ok(index) = sharding.decode_index(&encoded, shard_bytes) else { return };
    assert_eq!(index.len(), 3);
    for inner_chunk in 0..index.len() {
        if let Some(range) = index.get(inner_chunk) {
            assert!(range.start <= range.end && range.end <= shard_bytes);
            assert!(range.is_empty() || range.end <= own.start || own.end <= range.start);
        }
    }
});

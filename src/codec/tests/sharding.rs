//! Shards: test vectors of the format, geometry, whole reads and writes, reads by index.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Items, bind, codecs, inside, is_corrupt, sample, unhex};
use crate::codec::{CodecChain, CodecError, CodecLimits};
use crate::codec::{IndexLocation, Sharded};
use crate::metadata::{DataType, FillValue};

/// A sharding codec; its inner and index codecs as `[["name", {}], …]`.
fn sharded(inner_shape: &[u64], inner: &Value, index: &Value, location: &str) -> Value {
    json!(["sharding_indexed", {
        "chunk_shape": inner_shape,
        "codecs": inside(inner),
        "index_codecs": inside(index),
        "index_location": location,
    }])
}

fn usual_index() -> Value {
    json!([["bytes", {"endian": "little"}], ["crc32c", {}]])
}

fn with_fill(
    list: Value,
    data_type: &DataType,
    shape: &[u64],
    fill: &[u8],
) -> Result<CodecChain, CodecError> {
    CodecChain::bind(&codecs(list), data_type, shape, &FillValue::from_bytes(fill), &CodecLimits::default())
}

/// The chain of the test vectors: four bytes in two inner chunks, fill value 9.
fn vector_chain(location: &str) -> CodecChain {
    let list = json!([sharded(&[2], &json!([["bytes", {}]]), &usual_index(), location)]);
    with_fill(list, &DataType::UInt8, &[4], &[9]).unwrap()
}

const AT_END: &str = "0102 0000000000000000 0200000000000000 ffffffffffffffff ffffffffffffffff bd13bd56";
const AT_START: &str = "2400000000000000 0200000000000000 ffffffffffffffff ffffffffffffffff 2609790d 0102";

#[test]
fn test_vectors_of_the_format_decode_and_encode() {
    for (location, vector) in [("end", AT_END), ("start", AT_START)] {
        let chain = vector_chain(location);
        assert_eq!(chain.decode_items(unhex(vector)).unwrap(), &[1, 2, 9, 9][..], "{location}");
        assert_eq!(
            chain.encode_items(Bytes::from_static(&[1, 2, 9, 9])).unwrap(),
            unhex(vector),
            "{location}"
        );
        let sharding = chain.sharding().unwrap();
        assert_eq!(sharding.index_bytes(), 36);
        assert!(chain.encoded_limit() >= 38);
    }
}

#[test]
fn a_shard_of_only_the_fill_value_is_just_an_index() {
    for location in ["start", "end"] {
        let chain = vector_chain(location);
        let encoded = chain.encode_items(Bytes::from_static(&[9; 4])).unwrap();
        assert_eq!(encoded.len(), 36);
        assert_eq!(chain.decode_items(encoded).unwrap(), &[9; 4][..]);
    }
}

#[test]
fn a_fill_value_is_compared_bit_for_bit() {
    let list = json!([sharded(&[1], &json!([["bytes", {"endian": "little"}]]), &usual_index(), "end")]);
    let chain = with_fill(list, &DataType::Float32, &[2], &0.0_f32.to_le_bytes()).unwrap();
    let negative_zero: Vec<u8> = [-0.0_f32, 0.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    let encoded = chain.encode_items(Bytes::from(negative_zero.clone())).unwrap();
    assert_eq!(encoded.len(), 4 + 36);
    assert_eq!(chain.decode_items(encoded).unwrap(), negative_zero);
}

#[test]
fn a_wrong_index_is_corrupt() {
    let chain = vector_chain("end");
    for vector in [
        // Offset + length wraps; the checksum is right.
        "0102 f0ffffffffffffff 2000000000000000 ffffffffffffffff ffffffffffffffff 4cad860c",
        // One of the pair says absent.
        "0102 0000000000000000 0200000000000000 ffffffffffffffff 0500000000000000 ba15d3fa",
        // A wrong checksum.
        "0102 0000000000000000 0200000000000000 ffffffffffffffff ffffffffffffffff bd13bd57",
    ] {
        assert!(is_corrupt(&chain.decode_items(unhex(vector))), "{vector}");
    }
    let whole = unhex(AT_END);
    for length in 0..36 {
        assert!(is_corrupt(&chain.decode_items(whole.slice(whole.len() - length..))), "{length}");
    }
}

/// An index of raw entries, for a chain whose index has no checksum.
fn index(entries: &[(u64, u64)]) -> Vec<u8> {
    entries
        .iter()
        .flat_map(|&(offset, length)| [offset.to_le_bytes(), length.to_le_bytes()].concat())
        .collect()
}

#[test]
fn every_accepted_entry_is_inside_the_shard_and_outside_the_index() {
    const MAX: u64 = u64::MAX;
    for location in ["start", "end"] {
        let little = json!([["bytes", {"endian": "little"}]]);
        let list = json!([sharded(&[2], &json!([["bytes", {}]]), &little, location)]);
        let chain = bind(list, DataType::UInt8, &[4]).unwrap();
        let sharding = chain.sharding().unwrap();
        assert_eq!(sharding.index_bytes(), 32);
        // Ten bytes of data, before or after the index.
        let base = if location == "start" { 32 } else { 0 };
        let decode = |entries: &[(u64, u64)]| sharding.decode_index(&index(entries), 42);
        let good = decode(&[(base, 10), (MAX, MAX)]).unwrap();
        assert_eq!((good.get(0), good.get(1), good.get(2)), (Some(base..base + 10), None, None));
        // Overlapping each other is legal; an empty one is present.
        let odd = decode(&[(base + 1, 2), (base + 2, 0)]).unwrap();
        assert_eq!((odd.get(0), odd.get(1)), (Some(base + 1..base + 3), Some(base + 2..base + 2)));
        for bad in [
            (MAX, 0),
            (0, MAX),
            (MAX - 1, 2),
            (MAX - 1, 1),
            (1, MAX - 1),
            (base, 11),
            (base + 10, 1),
            (43, 0),
            (1 << 63, 1 << 63),
            (0, 42),
            (31, 2),
            (9, 2),
        ] {
            let reads_into = (bad.0 >= base) && bad.0.saturating_add(bad.1) <= base + 10;
            assert!(!reads_into, "{bad:?} is good");
            assert!(is_corrupt(&decode(&[(base, 2), bad])), "{location} {bad:?}");
        }
        assert!(is_corrupt(&sharding.decode_index(&index(&[(base, 2)]), 42)));
        assert!(is_corrupt(&sharding.decode_index(&index(&[(base, 2); 3]), 42)));
        assert!(is_corrupt(&sharding.decode_index(&index(&[(MAX, MAX); 2]), 31)));
        // A present inner chunk of no bytes does not decode to its elements.
        let mut value = index(&[(base, 2), (base + 2, 0)]);
        if location == "start" {
            value.extend([1, 2]);
        } else {
            value.splice(0..0, [1, 2]);
        }
        assert!(is_corrupt(&chain.decode_items(Bytes::from(value))));
    }
}

#[test]
fn index_codecs_may_be_any_of_fixed_size() {
    for (codecs, bytes) in [
        (json!([["bytes", {"endian": "big"}]]), 96),
        (json!([["transpose", {"order": [2, 0, 1]}], ["bytes", {"endian": "little"}], ["crc32c", {}]]), 100),
        (json!([["bytes", {"endian": "big"}], ["crc32c", {}], ["crc32c", {}]]), 104),
    ] {
        let list = json!([sharded(&[1, 2], &json!([["bytes", {}]]), &codecs, "start")]);
        let chain = bind(list, DataType::UInt8, &[2, 6]).unwrap();
        assert_eq!(chain.sharding().unwrap().index_bytes(), bytes);
        let encoded = chain.encode_items(sample(12)).unwrap();
        assert_eq!(chain.decode_items(encoded).unwrap(), sample(12));
    }
    for variable in [json!(["gzip", {"level": 1}]), json!(["blosc", {}]), json!(["zstd", {}])] {
        let codecs = json!([["bytes", {"endian": "little"}], variable]);
        let list = json!([sharded(&[1, 2], &json!([["bytes", {}]]), &codecs, "end")]);
        assert!(matches!(bind(list, DataType::UInt8, &[2, 6]), Err(CodecError::Invalid { .. })), "{codecs}");
    }
}

#[test]
fn impossible_shard_configurations_are_rejected() {
    let good = |key: &str, value: Value| {
        let mut codec = sharded(&[2, 2], &json!([["bytes", {}]]), &usual_index(), "end");
        codec[1][key] = value;
        bind(json!([codec]), DataType::UInt8, &[4, 6])
    };
    assert!(good("chunk_shape", json!([4, 3])).is_ok());
    for (key, value) in [
        ("chunk_shape", json!([2])),
        ("chunk_shape", json!([2, 2, 1])),
        ("chunk_shape", json!([2, 4])),
        ("chunk_shape", json!([8, 6])),
        ("chunk_shape", json!([0, 2])),
        ("chunk_shape", json!([-2, 2])),
        ("chunk_shape", json!([2.5, 2])),
        ("chunk_shape", json!("2")),
        ("chunk_shape", Value::Null),
        ("codecs", Value::Null),
        ("codecs", json!([])),
        ("codecs", json!([7])),
        ("codecs", json!([{"configuration": {}}])),
        ("codecs", json!(["bytes", "bytes"])),
        ("codecs", json!(["unheard-of"])),
        ("index_codecs", Value::Null),
        ("index_location", json!("middle")),
        ("index_location", json!(1)),
    ] {
        assert!(good(key, value.clone()).is_err(), "{key}: {value}");
    }
    // Names alone are codecs without a configuration.
    assert!(good("codecs", json!(["bytes", "crc32c"])).is_ok());
}

#[test]
fn the_number_of_inner_chunks_and_the_depth_of_shards_are_limited() {
    let bytes = json!([["bytes", {}]]);
    let wide = |edge: u64| {
        bind(json!([sharded(&[1, 1], &bytes, &usual_index(), "end")]), DataType::UInt8, &[edge, edge])
    };
    assert!(wide(1 << 12).is_ok());
    for edge in [(1 << 12) + 1, 1 << 20, 1 << 31] {
        assert!(matches!(wide(edge), Err(CodecError::Invalid { .. })), "{edge}");
    }
    let mut list = bytes.clone();
    for depth in 1..5 {
        list = json!([sharded(&[1], &list, &usual_index(), "end")]);
        assert_eq!(bind(list.clone(), DataType::UInt8, &[1]).is_ok(), depth <= 3, "{depth}");
    }
}

#[test]
fn a_shard_beyond_the_limit_binds_but_is_not_decoded_whole() {
    let sharding = sharded(&[1024, 1024], &json!([["bytes", {}], ["zstd", {}]]), &usual_index(), "end");
    let shape = [1 << 20, 1 << 20];
    let chain = bind(json!([sharding]), DataType::UInt8, &shape).unwrap();
    assert_eq!(chain.decoded_bytes(), 1 << 40);
    assert_eq!(chain.sharding().unwrap().index_bytes(), 16 * (1 << 20) + 4);
    let too_large = CodecError::ChunkTooLarge { bytes: 1 << 40, limit: 512 << 20 };
    assert_eq!(chain.decode_items(sample(100)), Err(too_large.clone()));
    assert_eq!(chain.encode_items(sample(100)), Err(too_large.clone()));
    // With a codec after it, no inner chunk can be read on its own.
    assert_eq!(bind(json!([sharding, ["zstd", {}]]), DataType::UInt8, &shape).unwrap_err(), too_large);
    let inner = sharded(&[1 << 15, 1 << 15], &json!([["bytes", {}]]), &usual_index(), "end");
    assert!(matches!(bind(json!([inner]), DataType::UInt8, &shape), Err(CodecError::ChunkTooLarge { .. })));
}

#[test]
fn a_shard_is_readable_by_inner_chunk_only_if_no_codec_follows_it() {
    let shard = |shape: &[u64]| sharded(shape, &json!([["bytes", {}]]), &usual_index(), "end");
    let chain = bind(json!([shard(&[1, 2])]), DataType::UInt8, &[2, 4]).unwrap();
    assert_eq!(chain.sharding().unwrap().order(), [0, 1]);
    let outside = bind(json!([shard(&[1, 2]), ["gzip", {"level": 1}]]), DataType::UInt8, &[2, 4]).unwrap();
    assert!(outside.sharding().is_none());
    let value = outside.encode_items(sample(8)).unwrap();
    assert_eq!(outside.decode_items(value).unwrap(), sample(8));
    assert!(bind(json!([["bytes", {}]]), DataType::UInt8, &[2, 4]).unwrap().sharding().is_none());
}

#[test]
fn transposes_before_a_shard_are_composed() {
    let (first, then) = ([2_usize, 0, 1], [1_usize, 0, 2]);
    let shape = [2_u64, 4, 6];
    // After the first: 6, 2, 4. After the second: 2, 6, 4.
    let shard = sharded(&[1, 3, 2], &json!([["bytes", {}]]), &usual_index(), "end");
    let list = json!([["transpose", {"order": first}], ["transpose", {"order": then}], shard]);
    let chain = bind(list, DataType::UInt8, &shape).unwrap();
    let sharding = chain.sharding().unwrap();
    assert_eq!(sharding.order(), [0, 2, 1]);
    assert_eq!((sharding.inner_shape(), sharding.chunks_per_shard()), (&[1, 3, 2][..], &[2, 2, 2][..]));
}

#[test]
fn shards_of_rank_zero_have_one_inner_chunk() {
    let list = json!([sharded(&[], &json!([["bytes", {"endian": "big"}]]), &usual_index(), "start")]);
    let chain = bind(list, DataType::Int16, &[]).unwrap();
    assert_eq!(chain.sharding().unwrap().index_bytes(), 20);
    let value = chain.encode_items(Bytes::from_static(&[1, 2])).unwrap();
    assert_eq!(value[20..], [2, 1]);
    assert_eq!(chain.decode_items(value).unwrap(), &[1, 2][..]);
}

/// Reads every element of a shard through its index, as a partial reader does.
fn by_index(chain: &CodecChain, value: &Bytes, shape: &[u64], item: usize, fill: &[u8]) -> Vec<u8> {
    let Some(sharding) = chain.sharding() else { return chain.decode_items(value.clone()).unwrap().to_vec() };
    let range = |range: std::ops::Range<u64>| {
        value.slice(usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap())
    };
    let length = value.len() as u64;
    let at = match sharding.index_location() {
        IndexLocation::Start => 0..sharding.index_bytes(),
        IndexLocation::End => length - sharding.index_bytes()..length,
    };
    let index = sharding.decode_index(&range(at), length).unwrap();
    let inners: Vec<Option<Vec<u8>>> = (0..index.len())
        .map(|inner| {
            index
                .get(inner)
                .map(|at| by_index(sharding.inner_chain(), &range(at), sharding.inner_shape(), item, fill))
        })
        .collect();
    let count: u64 = shape.iter().product();
    (0..count).flat_map(|number| element(sharding, &inners, shape, number, item, fill)).collect()
}

/// The element of this C-order number in the chunk.
fn element(
    sharding: &dyn Sharded,
    inners: &[Option<Vec<u8>>],
    shape: &[u64],
    number: u64,
    item: usize,
    fill: &[u8],
) -> Vec<u8> {
    let mut rest = number;
    let mut position = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        position[axis] = rest % shape[axis];
        rest /= shape[axis];
    }
    let (mut inner, mut within) = (0, 0);
    for (axis, &from) in sharding.order().iter().enumerate() {
        let (edge, along) = (sharding.inner_shape()[axis], sharding.chunks_per_shard()[axis]);
        inner = inner * along + position[from] / edge;
        within = within * edge + position[from] % edge;
    }
    let within = usize::try_from(within).unwrap() * item;
    match &inners[usize::try_from(inner).unwrap()] {
        Some(bytes) => bytes[within..within + item].to_vec(),
        None => fill.to_vec(),
    }
}

/// A random permutation of the dimensions.
fn order(rank: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..rank).collect::<Vec<_>>()).prop_shuffle()
}

/// For each dimension: elements of the innermost chunk, chunks in a shard, shards in an outer shard. And an
/// order of dimensions for each of these levels.
type Geometry = (Vec<(u64, u64, u64)>, [Vec<usize>; 3]);

fn geometry() -> impl Strategy<Value = Geometry> {
    (0_usize..4).prop_flat_map(|rank| {
        let edges = prop::collection::vec((1_u64..4, 1_u64..4, 1_u64..3), rank);
        (edges, [order(rank), order(rank), order(rank)])
    })
}

/// The shape whose transposition is `shape`.
fn before(order: &[usize], shape: &[u64]) -> Vec<u64> {
    let mut before = vec![0; shape.len()];
    order.iter().zip(shape).for_each(|(&axis, &edge)| before[axis] = edge);
    before
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nested_shards_after_transposes_read_the_same_whole_and_by_index(
        (edges, [outer_order, middle_order, inner_order]) in geometry(),
        data_type in prop::sample::select(vec![DataType::UInt8, DataType::Int16, DataType::Complex128,
            DataType::RawBits { bytes: 3 }]),
        locations in prop::array::uniform2(prop::sample::select(vec!["start", "end"])),
        compressed in any::<bool>(),
        fill in any::<u8>(),
        holes in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let item = data_type.element_bytes();
        let innermost: Vec<u64> = edges.iter().map(|&(a, _, _)| a).collect();
        let middle: Vec<u64> = edges.iter().map(|&(a, b, _)| a * b).collect();
        // Each shape is given in the space of the codec it belongs to; each level transposes first.
        let middle_chunk = before(&middle_order, &middle);
        let outer: Vec<u64> = middle_chunk.iter().zip(&edges).map(|(&edge, &(_, _, c))| edge * c).collect();
        let shape = before(&outer_order, &outer);

        let mut innermost_codecs = vec![
            json!(["transpose", {"order": inner_order}]),
            json!(["bytes", {"endian": "big"}]),
        ];
        if compressed {
            innermost_codecs.push(json!(["zstd", {"level": 1}]));
            innermost_codecs.push(json!(["crc32c", {}]));
        }
        let inner = sharded(&innermost, &Value::Array(innermost_codecs), &usual_index(), locations[0]);
        let middle_codecs = json!([["transpose", {"order": middle_order}], inner]);
        let outer_shard = sharded(&middle_chunk, &middle_codecs, &usual_index(), locations[1]);
        let list = json!([["transpose", {"order": outer_order}], outer_shard]);
        let fill = vec![fill; item];
        let chain = with_fill(list, &data_type, &shape, &fill).unwrap();

        let mut elements = sample(usize::try_from(chain.decoded_bytes()).unwrap()).to_vec();
        // Large parts of fill value, so that inner chunks are missing.
        for hole in holes {
            let from = hole.index(elements.len() / item) * item;
            let to = (from + elements.len() / 2 / item * item).min(elements.len());
            elements[from..to].fill(fill[0]);
        }
        let value = chain.encode_items(Bytes::from(elements.clone())).unwrap();
        prop_assert!(value.len() as u64 <= chain.encoded_limit());
        prop_assert_eq!(&chain.decode_items(value.clone()).unwrap(), &elements);
        prop_assert_eq!(&by_index(&chain, &value, &shape, item, &fill), &elements);
    }
}

//! Binding, and the effect of a chain on elements: order, byte order, sizes, identity.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Items, bind, codecs, every_compressor, is_corrupt, sample};
use crate::codec::{CodecChain, CodecError, CodecLimits};
use crate::error::{Classify, ErrorClass};
use crate::metadata::{DataType, FillValue};

const DATA_TYPES: [DataType; 20] = [
    DataType::Bool,
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt16,
    DataType::UInt32,
    DataType::UInt64,
    DataType::Float16,
    DataType::BFloat16,
    DataType::Float32,
    DataType::Float64,
    DataType::Complex64,
    DataType::Complex128,
    DataType::RawBits { bytes: 3 },
    DataType::RawBits { bytes: 16 },
    DataType::RawBits { bytes: 300 },
    DataType::NullTerminatedBytes { bytes: 5 },
    DataType::FixedLengthUtf32 { code_points: 3 },
];

#[test]
fn uncompressed_little_endian_passes_through_without_a_copy() {
    let chain = bind(json!([["bytes", {"endian": "little"}]]), DataType::Float64, &[4, 4]).unwrap();
    let value = sample(128);
    let decoded = chain.decode_items(value.clone()).unwrap();
    assert_eq!(decoded.as_ptr(), value.as_ptr());
    assert_eq!((chain.decoded_bytes(), chain.encoded_limit()), (128, 128));
}

#[test]
fn big_endian_is_swapped_in_place_if_the_buffer_is_not_shared() {
    let chain = bind(json!([["bytes", {"endian": "big"}]]), DataType::Int32, &[2]).unwrap();
    let value = Bytes::from(vec![0, 0, 0, 1, 0, 0, 2, 0]);
    let at = value.as_ptr();
    let decoded = chain.decode_items(value).unwrap();
    assert_eq!(decoded, &[1, 0, 0, 0, 0, 2, 0, 0][..]);
    assert_eq!(decoded.as_ptr(), at);
    let shared = decoded.clone();
    assert_eq!(chain.encode_items(decoded).unwrap(), &[0, 0, 0, 1, 0, 0, 2, 0][..]);
    assert_eq!(shared, &[1, 0, 0, 0, 0, 2, 0, 0][..]);
}

#[test]
fn complex_numbers_are_swapped_by_part_and_raw_bits_are_not_swapped() {
    let big = json!([["bytes", {"endian": "big"}]]);
    let complex = bind(big.clone(), DataType::Complex64, &[1]).unwrap();
    assert_eq!(complex.decode_items(Bytes::from_static(b"dcbahgfe")).unwrap(), "abcdefgh");
    let raw = bind(big, DataType::RawBits { bytes: 3 }, &[1]).unwrap();
    assert_eq!(raw.decode_items(Bytes::from_static(b"abc")).unwrap(), "abc");
}

#[test]
fn bytes_without_endian_are_little_endian() {
    for data_type in DATA_TYPES {
        let items: Bytes =
            (0..2 * data_type.element_bytes()).map(|byte| u8::try_from(byte % 2).unwrap()).collect();
        let chain = bind(json!([["bytes", {}]]), data_type.clone(), &[2]).unwrap();
        assert_eq!(chain.decode_items(items.clone()).unwrap(), items, "{data_type:?}");
    }
    assert!(bind(json!([["bytes", {"endian": "middle"}]]), DataType::UInt8, &[2]).is_err());
    assert!(bind(json!([["endian", {"endian": "big"}]]), DataType::UInt32, &[2]).is_ok());
}

#[test]
fn a_stored_bool_decodes_to_zero_or_one() {
    let chain = bind(json!([["bytes", {}]]), DataType::Bool, &[4]).unwrap();
    assert_eq!(chain.decode_items(Bytes::from_static(&[0, 1, 2, 255])).unwrap(), &[0, 1, 1, 1][..]);
}

#[test]
fn the_upper_bits_of_a_small_integer_are_ignored() {
    for (data_type, decoded) in [
        (DataType::Int2, [0, 1, 0xfe, 0xff, 0]),
        (DataType::Int4, [0, 1, 6, 0xff, 0xf8]),
        (DataType::UInt2, [0, 1, 2, 3, 0]),
        (DataType::UInt4, [0, 1, 6, 15, 8]),
    ] {
        let chain = bind(json!([["bytes", {}]]), data_type.clone(), &[5]).unwrap();
        let stored = Bytes::from_static(&[0, 0x11, 0x76, 0xff, 0x48]);
        assert_eq!(chain.decode_items(stored).unwrap(), &decoded[..], "{data_type:?}");
        assert_eq!(chain.decode_items(Bytes::copy_from_slice(&decoded)).unwrap(), &decoded[..]);
    }
}

#[test]
fn a_chunk_longer_or_shorter_than_its_shape_is_corrupt() {
    let chain = bind(json!([["bytes", {"endian": "little"}]]), DataType::Int16, &[3]).unwrap();
    for length in [0, 5, 7, 12] {
        assert!(is_corrupt(&chain.decode_items(sample(length))), "{length}");
    }
    assert!(matches!(chain.encode_items(sample(5)), Err(CodecError::Encode { .. })));
}

/// Elements numbered in C order.
fn numbered(shape: &[u64]) -> Bytes {
    let count: u64 = shape.iter().product();
    (0..u8::try_from(count).unwrap()).collect()
}

#[test]
fn transpose_moves_elements_as_specified() {
    let shape = [2, 3, 4];
    let order = [2_usize, 0, 1];
    let chain =
        bind(json!([["transpose", {"order": order}], ["bytes", {}]]), DataType::UInt8, &shape).unwrap();
    let decoded = numbered(&shape);
    let encoded = chain.encode_items(decoded.clone()).unwrap();
    // B[B_pos] = A[A_pos], where B_pos[i] = A_pos[order[i]]; B has the shape 4, 2, 3.
    for x in 0..2 {
        for y in 0..3 {
            for z in 0..4 {
                assert_eq!(encoded[z * 6 + x * 3 + y], decoded[x * 12 + y * 4 + z]);
            }
        }
    }
    assert_eq!(chain.decode_items(encoded).unwrap(), decoded);
}

#[test]
fn the_order_f_of_drafts_reverses_all_dimensions() {
    let list = |order: Value| json!([["transpose", {"order": order}], ["bytes", {}]]);
    let shape = [2, 3, 4];
    let f = bind(list(json!("F")), DataType::UInt8, &shape).unwrap();
    let reversed = bind(list(json!([2, 1, 0])), DataType::UInt8, &shape).unwrap();
    assert_eq!(f.encode_items(numbered(&shape)).unwrap(), reversed.encode_items(numbered(&shape)).unwrap());
    let c = bind(list(json!("C")), DataType::UInt8, &shape).unwrap();
    assert_eq!(c.encode_items(numbered(&shape)).unwrap(), numbered(&shape));
}

#[test]
fn an_order_that_is_not_a_permutation_is_rejected() {
    for order in [
        json!([0, 1]),
        json!([0, 1, 1]),
        json!([0, 1, 3]),
        json!([0, 1, 2, 3]),
        json!([0, 1, -1]),
        json!([0, 1, 2, u64::MAX]),
        json!("A"),
        json!(null),
        json!({}),
    ] {
        let list = json!([["transpose", {"order": order}], ["bytes", {}]]);
        assert!(bind(list, DataType::UInt8, &[2, 3, 4]).is_err(), "{order}");
    }
}

#[test]
fn chains_with_wrong_stages_or_too_many_codecs_are_rejected() {
    for list in [
        json!([]),
        json!([["gzip", {"level": 1}]]),
        json!([["transpose", {"order": [0]}]]),
        json!([["bytes", {}], ["bytes", {}]]),
        json!([["bytes", {}], ["transpose", {"order": [0]}]]),
        json!([["gzip", {"level": 1}], ["bytes", {}]]),
        Value::Array(vec![json!(["crc32c", {}]); 1_000_000]),
        Value::Array(std::iter::once(json!(["bytes", {}])).chain(vec![json!(["gzip", {}]); 32]).collect()),
    ] {
        let error = bind(list, DataType::UInt8, &[4]).unwrap_err();
        assert_eq!(error.class(), ErrorClass::InvalidMetadata, "{error}");
    }
}

#[test]
fn an_unknown_codec_is_unsupported_by_name_unless_it_need_not_be_understood() {
    let mut list = codecs(json!([["bytes", {}], ["vendor.secret", {}], ["crc32c", {}]]));
    let bind = |list: &[_]| {
        CodecChain::bind(
            list,
            &DataType::UInt8,
            &[4],
            &FillValue::zero(&DataType::UInt8),
            &CodecLimits::default(),
        )
    };
    let error = bind(&list).unwrap_err();
    assert_eq!(
        (error.class(), error),
        (ErrorClass::Unsupported, CodecError::Unsupported("vendor.secret".into()))
    );
    list[1].must_understand = false;
    let chain = bind(&list).unwrap();
    let value =
        bind(&codecs(json!([["bytes", {}], ["crc32c", {}]]))).unwrap().encode_items(sample(4)).unwrap();
    assert_eq!(chain.decode_items(value).unwrap(), sample(4));
    assert_eq!(chain.encode_items(sample(4)), Err(CodecError::Unsupported("vendor.secret".into())));
}

#[test]
fn a_chunk_beyond_the_limit_is_rejected_when_its_codecs_are_bound() {
    let list = json!([["bytes", {"endian": "little"}], ["zstd", {}]]);
    let limit = CodecLimits::default().chunk_bytes;
    for (shape, bytes) in [
        (vec![limit / 8 + 1], limit + 8),
        (vec![1 << 31, 1 << 31, 1 << 31], u64::MAX),
        (vec![u64::MAX], u64::MAX),
    ] {
        let error = bind(list.clone(), DataType::Float64, &shape).unwrap_err();
        assert_eq!(error, CodecError::ChunkTooLarge { bytes, limit });
    }
    assert!(bind(list.clone(), DataType::Float64, &[limit / 8]).is_ok());
    // An edge of 0 makes an empty chunk, whatever the other edges are.
    assert_eq!(bind(list, DataType::Float64, &[u64::MAX, 0, u64::MAX]).unwrap().decoded_bytes(), 0);
}

#[test]
fn a_chunk_without_elements_may_have_any_other_edges() {
    let shape = [1 << 60, 1 << 60, 0, 1 << 60];
    let index = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    let sharding = json!(["sharding_indexed",
        {"chunk_shape": [1, 1, 1, 1], "codecs": index, "index_codecs": index}]);
    for codec in [json!(["bytes", {"endian": "big"}]), sharding] {
        let list = json!([["transpose", {"order": [0, 1, 2, 3]}], ["transpose", {"order": [3, 1, 2, 0]}],
            ["transpose", {"order": [3, 1, 2, 0]}], codec]);
        let chain = bind(list, DataType::Int64, &shape).unwrap();
        let value = chain.encode_items(Bytes::new()).unwrap();
        assert!(value.is_empty());
        assert!(chain.decode_items(value).unwrap().is_empty());
    }
}

#[test]
fn chains_of_rank_zero_have_one_element() {
    let chain =
        bind(json!([["transpose", {"order": []}], ["bytes", {"endian": "big"}]]), DataType::Int16, &[]);
    assert_eq!(chain.unwrap().decode_items(Bytes::from_static(&[1, 2])).unwrap(), &[2, 1][..]);
}

#[test]
fn equal_chains_have_equal_ids_and_different_chains_do_not() {
    let list =
        || json!([["bytes", {"endian": "little"}], ["blosc", {"cname": "lz4", "clevel": 5, "shuffle": 1}]]);
    let id = |list: Value, data_type: DataType, shape: &[u64]| bind(list, data_type, shape).unwrap().id();
    let first = id(list(), DataType::Int16, &[2, 3]);
    assert_eq!(first, id(list(), DataType::Int16, &[2, 3]));
    let other_order =
        json!([["bytes", {"endian": "little"}], ["blosc", {"shuffle": 1, "clevel": 5, "cname": "lz4"}]]);
    assert_eq!(first, id(other_order, DataType::Int16, &[2, 3]));
    let big = json!([["bytes", {"endian": "big"}], ["blosc", {"cname": "lz4", "clevel": 5, "shuffle": 1}]]);
    let others = [
        id(list(), DataType::UInt16, &[2, 3]),
        id(list(), DataType::Int16, &[3, 2]),
        id(list(), DataType::Int16, &[6]),
        id(big, DataType::Int16, &[2, 3]),
        CodecChain::bind(
            &codecs(list()),
            &DataType::Int16,
            &[2, 3],
            &FillValue::from_bytes(&[0, 1]),
            &CodecLimits::default(),
        )
        .unwrap()
        .id(),
    ];
    assert!(!others.contains(&first));
}

/// A permutation of the dimensions.
fn order(rank: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..rank).collect::<Vec<_>>()).prop_shuffle()
}

/// The parameters of a random chain.
fn parts() -> impl Strategy<Value = (DataType, Vec<u64>, Vec<Vec<usize>>, bool, usize)> {
    (0_usize..5).prop_flat_map(|rank| {
        (
            prop::sample::select(DATA_TYPES.to_vec()),
            prop::collection::vec(1_u64..7, rank),
            prop::collection::vec(order(rank), 0..3),
            any::<bool>(),
            0..every_compressor().len(),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_chain_decodes_what_it_encoded((data_type, shape, orders, big, compressor) in parts()) {
        let mut list: Vec<Value> = orders.iter().map(|order| json!(["transpose", {"order": order}])).collect();
        list.push(json!(["bytes", {"endian": if big { "big" } else { "little" }}]));
        list.extend(every_compressor()[compressor].as_array().unwrap().iter().cloned());
        let chain = bind(Value::Array(list), data_type.clone(), &shape).unwrap();
        let mut elements = sample(usize::try_from(chain.decoded_bytes()).unwrap()).to_vec();
        if data_type == DataType::Bool {
            for byte in &mut elements {
                *byte &= 1;
            }
        }
        let encoded = chain.encode_items(Bytes::from(elements.clone())).unwrap();
        prop_assert!(encoded.len() as u64 <= chain.encoded_limit());
        prop_assert_eq!(chain.decode_items(encoded).unwrap(), elements);
    }

    #[test]
    fn transpose_agrees_with_moving_one_element_at_a_time(
        (shape, order) in (1_usize..5).prop_flat_map(|rank| {
            // Up to some 20,000 elements, beyond the tiles of the copy in both directions.
            let longest = [0, 20_000, 140, 27, 12][rank];
            (prop::collection::vec(1_u64..longest, rank), order(rank))
        }),
        element_bytes in prop::sample::select(vec![1_u32, 2, 3, 4, 8, 16]),
    ) {
        let count: u64 = shape.iter().product();
        let data_type = DataType::RawBits { bytes: element_bytes };
        let chain = bind(json!([["transpose", {"order": order}], ["bytes", {}]]), data_type.clone(), &shape).unwrap();
        let item = usize::try_from(element_bytes).unwrap();
        let elements = sample(usize::try_from(count).unwrap() * item);
        let encoded = chain.encode_items(elements.clone()).unwrap();
        let shape: Vec<usize> = shape.iter().map(|&edge| usize::try_from(edge).unwrap()).collect();
        for (number, element) in elements.chunks(item).enumerate() {
            let mut rest = number;
            let mut position = vec![0; shape.len()];
            for axis in (0..shape.len()).rev() {
                position[axis] = rest % shape[axis];
                rest /= shape[axis];
            }
            let at = order.iter().fold(0, |at, &axis| at * shape[axis] + position[axis]);
            prop_assert_eq!(&encoded[at * item..(at + 1) * item], element);
        }
        prop_assert_eq!(chain.decode_items(encoded).unwrap(), elements);
    }
}

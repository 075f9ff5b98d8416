//! Known mistakes of other encoders, checked in this one; and empty blosc frames.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Items, bind, byte_chain, codecs, inside, is_corrupt, sample, unhex};
use crate::codec::{CodecChain, CodecError, CodecLimits};
use crate::metadata::{CodecMetadata, DataType, FillValue};

/// The element size in the header of the encoded frame of four elements.
fn frame_element(data_type: &DataType, config: &Value) -> u8 {
    let list = json!([["bytes", {"endian": "little"}], ["blosc", config]]);
    let chain = bind(list, data_type, &[4]).unwrap();
    let bytes = usize::try_from(chain.decoded_bytes()).unwrap();
    chain.encode_items(Bytes::from(vec![0; bytes])).unwrap()[3]
}

#[test]
fn blosc_gets_the_size_of_an_element_or_1_if_its_header_cannot_hold_it() {
    let structure = |bytes: u32| {
        DataType::from_v2(&json!([["a", ">i4"], ["b", [["x", "<f8"]]], ["c", format!("|S{bytes}")]]))
            .unwrap()
            .0
    };
    for (data_type, expected) in [
        (DataType::UInt8, 1),
        (DataType::Float64, 8),
        (DataType::Complex128, 16),
        (DataType::FixedLengthUtf32 { code_points: 5 }, 20),
        (DataType::RawBits { bytes: 255 }, 255),
        (DataType::RawBits { bytes: 256 }, 1),
        (structure(7), 19),
        (structure(300), 1),
    ] {
        // v2 has no such member; v3 writers have left it out, or 0.
        for config in
            [json!({"cname": "lz4", "clevel": 5, "shuffle": 1}), json!({"shuffle": "shuffle", "typesize": 0})]
        {
            assert_eq!(frame_element(&data_type, &config), expected, "{data_type:?}");
        }
    }
    assert_eq!(frame_element(&DataType::Float64, &json!({"typesize": 4})), 4);
    assert_eq!(frame_element(&DataType::Float64, &json!({"typesize": 4000})), 1);
}

#[test]
fn an_empty_blosc_frame_decodes_to_no_bytes() {
    // No bytes as encoded by numcodecs 0.16; the same without the flag of stored bytes; one that declares a byte.
    let chain = byte_chain(json!([["blosc", {}]]), 0);
    assert_eq!(chain.decode_items(unhex("02013301 00000000 01000000 10000000")).unwrap(), Bytes::new());
    assert!(is_corrupt(&chain.decode_items(unhex("02013301 01000000 01000000 10000000"))));
    assert!(is_corrupt(&chain.decode_items(unhex("02013301 01000000 01000000 11000000 07"))));
}

#[test]
fn an_inner_chunk_that_differs_from_the_fill_value_in_any_bit_is_stored() {
    let endian = json!([["bytes", {"endian": "little"}]]);
    let list = json!([["sharding_indexed",
        {"chunk_shape": [1], "codecs": inside(&endian), "index_codecs": inside(&endian)}]]);
    let (nan, payload) = (0x7fc0_0000_u32.to_le_bytes(), 0x7fc0_0001_u32.to_le_bytes());
    for (fill, element) in
        [(nan, payload), (payload, nan), ([0; 4], (-0.0_f32).to_le_bytes()), (nan, [0, 0, 0xc0, 0xff])]
    {
        let limits = CodecLimits::default();
        let fill_value = FillValue::from_bytes(&fill);
        let chain =
            CodecChain::bind(&codecs(list.clone()), &DataType::Float32, &[2], &fill_value, &limits).unwrap();
        let elements = Bytes::from([fill, element].concat());
        let encoded = chain.encode_items(elements.clone()).unwrap();
        assert_eq!(encoded.len(), 4 + 32, "one of the two is stored: {fill:?} {element:?}");
        assert_eq!(chain.decode_items(encoded).unwrap(), elements);
    }
}

#[test]
fn encoded_zstd_frames_declare_their_content_size() {
    // Old readers need it: the frame header's size flag (RFC 8878, 3.1.1.1.1) must not be 0, or the frame must be
    // a single segment.
    for (length, config) in [(100, json!({})), (70_000, json!({"level": 9, "checksum": true}))] {
        let encoded = byte_chain(json!([["zstd", config]]), length)
            .encode_items(sample(usize::try_from(length).unwrap()));
        let descriptor = encoded.unwrap()[4];
        assert!(descriptor >> 6 != 0 || descriptor & 0x20 != 0, "{length}: {descriptor:08b}");
    }
}

#[test]
fn the_number_of_codecs_is_limited_in_every_chain() {
    let limits = CodecLimits { codecs: 3, ..CodecLimits::default() };
    let checked = |count: usize| {
        let mut list = vec![json!(["bytes", {"endian": "little"}])];
        list.resize(count, json!(["crc32c", {}]));
        Value::Array(list)
    };
    let shards = |inner: usize, index: usize| {
        codecs(json!([["sharding_indexed", {
            "chunk_shape": [1], "codecs": inside(&checked(inner)), "index_codecs": inside(&checked(index)),
        }]]))
    };
    let bind = |list: &[CodecMetadata]| {
        CodecChain::bind(list, &DataType::UInt8, &[2], &FillValue::zero(&DataType::UInt8), &limits)
    };
    assert!(bind(&codecs(checked(3))).is_ok());
    assert!(bind(&shards(3, 3)).is_ok());
    for list in [codecs(checked(4)), shards(4, 3), shards(3, 4)] {
        assert!(matches!(bind(&list), Err(CodecError::Invalid { .. })), "{list:?}");
    }
}

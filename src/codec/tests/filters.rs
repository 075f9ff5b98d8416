//! The array→array codecs: bytes as from numcodecs 0.16, round trips, and no panics.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Items, bind, is_corrupt, sample, unhex};
use crate::codec::{CodecChain, CodecError, CodecLimits};
use crate::metadata::{CodecMetadata, DataType, FillValue};

const NUMBERS: [(&str, DataType); 11] = [
    ("|i1", DataType::Int8),
    ("<i2", DataType::Int16),
    ("<i4", DataType::Int32),
    ("<i8", DataType::Int64),
    ("|u1", DataType::UInt8),
    ("<u2", DataType::UInt16),
    ("<u4", DataType::UInt32),
    ("<u8", DataType::UInt64),
    ("<f2", DataType::Float16),
    ("<f4", DataType::Float32),
    ("<f8", DataType::Float64),
];

/// The codec before little-endian bytes.
fn chain(codec: &str, config: &Value, data_type: &DataType, count: u64) -> Result<CodecChain, CodecError> {
    bind(json!([[codec, config], ["bytes", {"endian": "little"}]]), data_type.clone(), &[count])
}

#[test]
fn filters_encode_the_same_bytes_as_numcodecs() {
    let vectors: &[(&str, Value, DataType, &str, &str, &str)] = &[
        (
            "delta",
            json!({"dtype": "<u2", "astype": "<u2"}),
            DataType::UInt16,
            "05000300ffff0000",
            "0500fefffcff0100",
            "05000300ffff0000",
        ),
        (
            "delta",
            json!({"dtype": "<i4", "astype": "<i2"}),
            DataType::Int32,
            "6400000063000000fdffffff30750000",
            "6400ffff9aff3375",
            "6400000063000000fdffffff30750000",
        ),
        (
            "delta",
            json!({"dtype": "<f4", "astype": "<f4"}),
            DataType::Float32,
            "0000803fcdcc8c3f000020c08096184b00004040",
            "0000803fd0cccc3d666666c08296184b7d9618cb",
            "0000803fcdcc8c3f000020c08096184b00004040",
        ),
        (
            "delta",
            json!({"dtype": "<f2", "astype": "<f2"}),
            DataType::Float16,
            "003c663c00c10042",
            "003c602e33c38045",
            "003c663c00c10042",
        ),
        (
            "fixedscaleoffset",
            json!({"offset": 1000, "scale": 10, "dtype": "<f8", "astype": "|u1"}),
            DataType::Float64,
            "0000000000408f406666666666408f403333333333418f401f85eb51b8a28f400000000000069040",
            "0000017bff",
            "0000000000408f400000000000408f40cdcccccccc408f406666666666a28f400000000000069040",
        ),
        (
            "fixedscaleoffset",
            json!({"offset": 0.1, "scale": 3, "dtype": "<f4", "astype": "<f4"}),
            DataType::Float32,
            "0000803f000020406666f6c000247449",
            "000040400000e0400000b8c1001b374a",
            "cdcc8c3fbbbb1b402222f2c002247449",
        ),
        (
            "fixedscaleoffset",
            json!({"offset": -5, "scale": 0.5, "dtype": "<f4", "astype": "<i2"}),
            DataType::Float32,
            "0000803f000000400000e0c000903b45",
            "03000400ffffdf05",
            "0000803f000040400000e0c000903b45",
        ),
        (
            "fixedscaleoffset",
            json!({"offset": 0.3, "scale": 7, "dtype": "<f2", "astype": "<f2"}),
            DataType::Float16,
            "003c0041b3c71f21",
            "0045804b00d300c0",
            "0f3ce340b3c76023",
        ),
        (
            "fixedscaleoffset",
            json!({"offset": 10, "scale": 1, "dtype": "<i4", "astype": "<i2"}),
            DataType::Int32,
            "0100000002000000f9ffffffb90b0000",
            "f7fff8ffefffaf0b",
            "0100000002000000f9ffffffb90b0000",
        ),
        (
            "quantize",
            json!({"digits": 2, "dtype": "<f8"}),
            DataType::Float64,
            "7cf2b0506b9abf3f14ae47e17a14f0bff1d4c853fb2109409c7500883ce4377e",
            "000000000000c03f000000000020f0bf00000000002009409c7500883ce4377e",
            "000000000000c03f000000000020f0bf00000000002009409c7500883ce4377e",
        ),
        (
            "quantize",
            json!({"digits": -1, "dtype": "<f8", "astype": "<f2"}),
            DataType::Float64,
            "0000000000c05e400000000000804b4000000000000008c00000000000000000",
            "8057005300800000",
            "0000000000005e400000000000004c4000000000000000800000000000000000",
        ),
        (
            "quantize",
            json!({"digits": 3, "dtype": "<f4"}),
            DataType::Float32,
            "5bd3fc3dd7a380bfdb0f494000247449",
            "0000fc3d00a080bf0010494000247449",
            "0000fc3d00a080bf0010494000247449",
        ),
        (
            "bitround",
            json!({"keepbits": 3}),
            DataType::Float16,
            "663c9ac2ff7b8e06",
            "803c80c2007c8006",
            "803c80c2007c8006",
        ),
        (
            "bitround",
            json!({"keepbits": 10}),
            DataType::Float32,
            "cdcc8c3f333353c0caf249710010803f",
            "00c08c3f004053c000004a710000803f",
            "00c08c3f004053c000004a710000803f",
        ),
        (
            "bitround",
            json!({"keepbits": 0}),
            DataType::Float64,
            "000000000000f83fcdcccccccccc04400000000000000840",
            "000000000000004000000000000000400000000000000040",
            "000000000000004000000000000000400000000000000040",
        ),
        ("packbits", json!({}), DataType::Bool, "0100010100000001010001", "05b1a0", "0100010100000001010001"),
        (
            "astype",
            json!({"encode_dtype": "<i2", "decode_dtype": "<i4"}),
            DataType::Int32,
            "01000000ffffffff70110100c063ffff",
            "0100ffff7011c063",
            "01000000ffffffff70110000c0630000",
        ),
        (
            "astype",
            json!({"encode_dtype": "<f4", "decode_dtype": "<i8"}),
            DataType::Int64,
            "0100000000000000ffffffffffffffff01000001000000000100000000000010",
            "0000803f000080bf0000804b0000805d",
            "0100000000000000ffffffffffffffff00000001000000000000000000000010",
        ),
        (
            "astype",
            json!({"encode_dtype": "|u1", "decode_dtype": "<f8"}),
            DataType::Float64,
            "666666666666fe3f0000000000d06f400000000000000000000000000000e0bf",
            "01fe0000",
            "000000000000f03f0000000000c06f4000000000000000000000000000000000",
        ),
        (
            "astype",
            json!({"encode_dtype": "|i1", "decode_dtype": "<f4"}),
            DataType::Float32,
            "3333f3bf000000c3cdccff4200000000",
            "ff807f00",
            "000080bf000000c30000fe4200000000",
        ),
        (
            "astype",
            json!({"encode_dtype": "<f2", "decode_dtype": "<f8"}),
            DataType::Float64,
            "666666666666fe3fcdccccccfcfdef4048afbc9af2d77a3e000000000000e0bf",
            "9a3fff7b020000b8",
            "000000000068fe3f0000000000fcef40000000000000803e000000000000e0bf",
        ),
        (
            "astype",
            json!({"encode_dtype": "|b1", "decode_dtype": "<f8"}),
            DataType::Float64,
            "666666666666fe3f00000000000000000000000000000080000000000000f87f",
            "01000001",
            "000000000000f03f00000000000000000000000000000000000000000000f03f",
        ),
        (
            "astype",
            json!({"encode_dtype": "<u8", "decode_dtype": "<i4"}),
            DataType::Int32,
            "01000000ffffffff",
            "0100000000000000ffffffffffffffff",
            "01000000ffffffff",
        ),
    ];
    for (codec, config, data_type, decoded, encoded, back) in vectors {
        let (decoded, encoded, back) = (unhex(decoded), unhex(encoded), unhex(back));
        let count = (decoded.len() / data_type.element_bytes()) as u64;
        let chain = chain(&format!("numcodecs.{codec}"), config, data_type, count).unwrap();
        assert_eq!(chain.encode_items(decoded).unwrap(), encoded, "{codec} {config}");
        assert_eq!(chain.decode_items(encoded.clone()).unwrap(), back, "{codec} {config}");
        assert_eq!(chain.encoded_limit(), encoded.len() as u64);
    }
}

#[test]
fn differences_of_integers_wrap_around_without_loss() {
    for (dtype, data_type) in &NUMBERS[..8] {
        let decoded = sample(64 * data_type.element_bytes());
        let chain = chain("numcodecs.delta", &json!({"dtype": dtype}), data_type, 64).unwrap();
        let encoded = chain.encode_items(decoded.clone()).unwrap();
        assert_ne!(encoded, decoded);
        assert_eq!(chain.decode_items(encoded).unwrap(), decoded, "{dtype}");
    }
}

#[test]
fn a_missing_type_defaults_to_that_of_the_array() {
    let chain = chain("numcodecs.delta", &json!({}), &DataType::UInt16, 2).unwrap();
    assert_eq!(chain.decode_items(unhex("0500ffff")).unwrap(), unhex("05000400"));
}

#[test]
fn elements_may_be_read_as_another_type_of_the_same_size() {
    // numcodecs does this with dates, and with the integers of rounded floats.
    let chain = chain("numcodecs.delta", &json!({"dtype": "<i4"}), &DataType::Float32, 2).unwrap();
    assert_eq!(chain.decode_items(unhex("0000803f 01000000")).unwrap(), unhex("0000803f 0100803f"));
}

#[test]
fn filters_see_elements_in_stored_order() {
    let list =
        json!([["transpose", {"order": [1, 0]}], ["numcodecs.delta", {"dtype": "|u1"}], ["bytes", {}]]);
    let chain = bind(list, DataType::UInt8, &[2, 2]).unwrap();
    assert_eq!(chain.encode_items(Bytes::from_static(&[1, 2, 4, 8])).unwrap(), &[1, 3, 254, 6][..]);
}

#[test]
fn types_that_are_not_numbers_are_unsupported() {
    for (codec, config, data_type) in [
        ("delta", json!({"dtype": "<M8[ns]"}), DataType::Int64),
        ("delta", json!({"dtype": "|b1"}), DataType::Bool),
        ("delta", json!({}), DataType::Complex64),
        ("delta", json!({"dtype": "<i4", "astype": "<c8"}), DataType::Int32),
        ("astype", json!({"decode_dtype": "<i4", "encode_dtype": "|V4"}), DataType::Int32),
    ] {
        let result = chain(&format!("numcodecs.{codec}"), &config, &data_type, 2);
        assert!(matches!(result, Err(CodecError::Unsupported(_))), "{config}: {result:?}");
    }
}

#[test]
fn impossible_configurations_are_rejected() {
    for (codec, config, data_type) in [
        ("numcodecs.delta", json!({"dtype": "<i8"}), DataType::Int32),
        ("numcodecs.delta", json!({"dtype": 4}), DataType::Int32),
        ("numcodecs.fixedscaleoffset", json!({"offset": 0, "scale": 0}), DataType::Float32),
        ("numcodecs.fixedscaleoffset", json!({"offset": 0, "scale": "NaN"}), DataType::Float32),
        ("numcodecs.fixedscaleoffset", json!({"offset": 0}), DataType::Float32),
        ("numcodecs.fixedscaleoffset", json!({"scale": 1}), DataType::Float32),
        ("numcodecs.quantize", json!({"digits": 1}), DataType::Int32),
        ("numcodecs.quantize", json!({"digits": 1, "astype": "<i4"}), DataType::Float32),
        ("numcodecs.quantize", json!({"digits": 301}), DataType::Float32),
        ("numcodecs.quantize", json!({}), DataType::Float32),
        ("numcodecs.packbits", json!({}), DataType::UInt8),
        ("bitround", json!({"keepbits": -1}), DataType::Float32),
        ("bitround", json!({}), DataType::Float32),
        ("bitround", json!({"keepbits": 1}), DataType::Bool),
        ("bitround", json!({"keepbits": 1}), DataType::RawBits { bytes: 4 }),
    ] {
        let result = chain(codec, &config, &data_type, 2);
        assert!(matches!(result, Err(CodecError::Invalid { .. })), "{codec} {config}: {result:?}");
    }
}

#[test]
fn an_array_whose_encoded_form_exceeds_the_limit_is_rejected() {
    let codecs = [
        CodecMetadata::new("numcodecs.astype", json!({"encode_dtype": "<f8"})),
        CodecMetadata::new("bytes", json!({"endian": "little"})),
    ];
    let limits = CodecLimits { chunk_bytes: 1000, ..CodecLimits::default() };
    let bind = |count| {
        CodecChain::bind(&codecs, &DataType::UInt8, &[count], &FillValue::zero(&DataType::UInt8), &limits)
    };
    assert!(bind(125).is_ok());
    assert!(matches!(bind(126), Err(CodecError::ChunkTooLarge { .. })));
}

#[test]
fn a_fill_value_keeps_its_value_after_a_cast() {
    let shard = json!({"chunk_shape": [2], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]});
    let codecs = [
        CodecMetadata::new("numcodecs.astype", json!({"encode_dtype": "<i2"})),
        CodecMetadata::new("sharding_indexed", shard),
    ];
    let seven = 7_f32.to_le_bytes();
    let (fill, limits) = (FillValue::from_bytes(&seven), CodecLimits::default());
    let chain = CodecChain::bind(&codecs, &DataType::Float32, &[4], &fill, &limits).unwrap();
    // Both inner chunks are absent.
    assert_eq!(chain.decode_items(Bytes::from(vec![0xff; 32])).unwrap(), seven.repeat(4));
}

#[test]
fn bitround_decodes_to_the_stored_bytes_and_rounds_only_once() {
    let chain = chain("bitround", &json!({"keepbits": 1}), &DataType::Float32, 4).unwrap();
    assert_eq!(chain.decode_items(sample(16)).unwrap(), sample(16));
    let encoded = chain.encode_items(sample(16)).unwrap();
    assert_eq!(chain.encode_items(encoded.clone()).unwrap(), encoded);
}

#[test]
fn bitround_keeps_infinities_and_nan() {
    let chain = chain("bitround", &json!({"keepbits": 2}), &DataType::Float16, 4).unwrap();
    let special = unhex("007c 00fc ff7f 01fc");
    assert_eq!(chain.encode_items(special.clone()).unwrap(), special);
}

#[test]
fn bitround_rounds_integers_from_their_highest_bit() {
    let encode = |keep_bits: u32, data_type: DataType, value: &[u8]| {
        let count = (value.len() / data_type.element_bytes()) as u64;
        let chain = chain("bitround", &json!({"keepbits": keep_bits}), &data_type, count).unwrap();
        chain.encode_items(Bytes::copy_from_slice(value)).unwrap().to_vec()
    };
    assert_eq!(
        encode(2, DataType::UInt8, &[0, 1, 5, 7, 0b1011, 0b1010, 0b1110, 255]),
        [0, 1, 4, 8, 0b1100, 0b1000, 0b10000, 0b1100_0000]
    );
    let signed = |values: [i8; 5]| values.map(|value| value.to_le_bytes()[0]);
    let rounded = encode(2, DataType::Int8, &signed([-7, 7, 127, -127, -128]));
    assert_eq!(rounded, signed([-8, 8, 96, -128, -128]));
    assert_eq!(encode(64, DataType::UInt64, &[0xff; 8]), [0xff; 8]);
    assert_eq!(encode(1, DataType::UInt64, &[0xff; 8]), [0, 0, 0, 0, 0, 0, 0, 0x80]);
    assert_eq!(encode(1, DataType::Int64, &i64::MIN.to_le_bytes()), i64::MIN.to_le_bytes());
}

#[test]
fn the_two_packbits_codecs_begin_at_different_ends() {
    let bools = unhex("01 00 01 01 00 00 00 00 01 01 00");
    let numcodecs = chain("numcodecs.packbits", &json!({}), &DataType::Bool, 11).unwrap();
    assert_eq!(numcodecs.encode_items(bools.clone()).unwrap(), unhex("05 b0 c0"));
    let pack = |config: Value| bind(json!([["packbits", config]]), DataType::Bool, &[11]).unwrap();
    for (padding, encoded) in [("none", "0d 03"), ("first_byte", "05 0d 03"), ("last_byte", "0d 03 05")] {
        let chain = pack(json!({"padding_encoding": padding}));
        assert_eq!(chain.encode_items(bools.clone()).unwrap(), unhex(encoded), "{padding}");
        assert_eq!(chain.decode_items(unhex(encoded)).unwrap(), bools, "{padding}");
        assert_eq!(chain.encoded_limit(), unhex(encoded).len() as u64);
    }
    assert!(is_corrupt(&pack(json!({"padding_encoding": "first_byte"})).decode_items(unhex("04 0d 03"))));
    assert!(is_corrupt(&pack(json!({})).decode_items(unhex("0d 03 05"))));
}

#[test]
fn a_padding_other_than_the_arrays_is_corrupt() {
    let chain = chain("numcodecs.packbits", &json!({}), &DataType::Bool, 11).unwrap();
    for padding in ["00", "04", "06", "0d", "ff"] {
        assert!(is_corrupt(&chain.decode_items(unhex(&format!("{padding} b1 a0")))), "{padding}");
    }
    assert!(is_corrupt(&chain.decode_items(unhex("05 b1"))));
    assert!(is_corrupt(&chain.decode_items(Bytes::new())));
}

#[test]
fn packed_bits_of_signed_types_are_sign_extended() {
    let pack =
        |data_type: DataType, config: Value| bind(json!([["packbits", config]]), data_type, &[3]).unwrap();
    let nibbles = json!({"first_bit": 2, "last_bit": 5});
    // The bits 2 to 5 of each, and nothing else: 1101, 0110, 0001.
    let values = unhex("f7 1b 07");
    let signed = pack(DataType::Int8, nibbles.clone());
    assert_eq!(signed.encode_items(values.clone()).unwrap(), unhex("6d 01"));
    assert_eq!(signed.decode_items(unhex("6d 01")).unwrap(), unhex("f4 18 04"));
    assert_eq!(pack(DataType::UInt8, nibbles).decode_items(unhex("6d 01")).unwrap(), unhex("34 18 04"));
    // With all bits of a type it encodes the same bytes as `bytes`.
    for data_type in [DataType::UInt16, DataType::Int64, DataType::Float32, DataType::Complex128] {
        let value = sample(3 * data_type.element_bytes());
        let chain = pack(data_type, json!({}));
        assert_eq!(chain.encode_items(value.clone()).unwrap(), value);
        assert_eq!(chain.decode_items(value.clone()).unwrap(), value);
    }
    for config in [
        json!({"first_bit": 5, "last_bit": 3}),
        json!({"last_bit": 8}),
        json!({"first_bit": -1}),
        json!({"padding_encoding": "byte"}),
    ] {
        let result = bind(json!([["packbits", config]]), DataType::UInt8, &[3]);
        assert!(matches!(result, Err(CodecError::Invalid { .. })), "{config}");
    }
}

/// Configurations of hostile documents.
fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::sample::select(NUMBERS.map(|(dtype, _)| json!(dtype)).to_vec()),
        prop::sample::select(vec![
            json!(null),
            json!(true),
            json!(""),
            json!(">f4"),
            json!("|b1"),
            json!("<c8"),
            json!("float32"),
            json!(0),
            json!(-1),
            json!(1),
            json!(7),
            json!(64),
            json!(65),
            json!(1e308),
            json!(-1e-308),
            json!(i64::MIN),
            json!(u64::MAX),
            json!([]),
            json!({}),
            json!("first_byte"),
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn configurations_and_bytes_never_panic(
        codec in prop::sample::select(vec!["numcodecs.delta", "numcodecs.astype", "numcodecs.fixedscaleoffset",
            "numcodecs.quantize", "numcodecs.packbits", "bitround", "packbits", "numcodecs.shuffle",
            "numcodecs.lzma", "numcodecs.bz2", "numcodecs.lz4", "numcodecs.jenkins_lookup3"]),
        members in prop::collection::hash_map(prop::sample::select(vec!["dtype", "astype", "encode_dtype",
            "decode_dtype", "scale", "offset", "digits", "keepbits", "first_bit", "last_bit", "padding_encoding",
            "elementsize", "format", "filters", "preset", "check", "level", "initval"]), anything(), 0..6),
        (_, data_type) in prop::sample::select(NUMBERS.to_vec()),
        count in 0_u64..300,
        value in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let config = members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let endian = json!({"endian": "little"});
        for list in [
            json!([[codec, Value::Object(config)], ["bytes", endian]]),
        ].into_iter().flat_map(|before| [before.clone(), json!([before[1], before[0]]), json!([before[0]])]) {
            let Ok(chain) = bind(list, data_type.clone(), &[count]) else { continue };
            if let Ok(decoded) = chain.decode_items(Bytes::from(value.clone())) {
                prop_assert_eq!(decoded.len() as u64, chain.decoded_bytes());
            }
            let elements = sample(usize::try_from(chain.decoded_bytes()).unwrap());
            let encoded = chain.encode_items(elements).unwrap();
            prop_assert!(encoded.len() as u64 <= chain.encoded_limit());
            prop_assert_eq!(chain.decode_items(encoded).unwrap().len() as u64, chain.decoded_bytes());
        }
    }
}

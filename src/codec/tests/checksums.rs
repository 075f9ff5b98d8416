//! Each checksum and `shuffle`: the bytes agree with numcodecs 0.16, and damage is detected.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Items, bind, byte_chain, is_corrupt, sample, unhex};
use crate::codec::CodecError;
use crate::metadata::DataType;

#[test]
fn checksums_and_shuffle_agree_with_numcodecs() {
    let vectors: &[(&str, Value, DataType, &str, &str, &str)] = &[
        (
            "crc32",
            json!({}),
            DataType::UInt8,
            "313233343536373839",
            "2639f4cb313233343536373839",
            "313233343536373839",
        ),
        (
            "adler32",
            json!({}),
            DataType::UInt8,
            "313233343536373839",
            "de011e09313233343536373839",
            "313233343536373839",
        ),
        (
            "fletcher32",
            json!({}),
            DataType::UInt8,
            "313233343536373839",
            "313233343536373839d509df09",
            "313233343536373839",
        ),
        (
            "jenkins_lookup3",
            json!({}),
            DataType::UInt8,
            "313233343536373839",
            "313233343536373839969a5d84",
            "313233343536373839",
        ),
        (
            "crc32c",
            json!({}),
            DataType::UInt8,
            "313233343536373839",
            "313233343536373839839206e3",
            "313233343536373839",
        ),
        (
            "jenkins_lookup3",
            json!({"initval": 1}),
            DataType::UInt8,
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d",
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1dd9b2977b",
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d",
        ),
        (
            "jenkins_lookup3",
            json!({"initval": 0}),
            DataType::UInt8,
            "000102030405060708090a0b0c0d0e0f1011121314151617",
            "000102030405060708090a0b0c0d0e0f101112131415161753dd0a9c",
            "000102030405060708090a0b0c0d0e0f1011121314151617",
        ),
        (
            "adler32",
            json!({}),
            DataType::UInt8,
            "ffffffffffffffffffff",
            "f709d336ffffffffffffffffffff",
            "ffffffffffffffffffff",
        ),
        (
            "shuffle",
            json!({"elementsize": 4}),
            DataType::UInt8,
            "000102030405060708090a0b",
            "00040801050902060a03070b",
            "000102030405060708090a0b",
        ),
    ];
    for (codec, config, _, decoded, encoded, _) in vectors {
        let (decoded, encoded) = (unhex(decoded), unhex(encoded));
        let chain = byte_chain(json!([[format!("numcodecs.{codec}"), config]]), decoded.len() as u64);
        assert_eq!(chain.encode_items(decoded.clone()).unwrap(), encoded, "{codec} {config}");
        assert_eq!(chain.decode_items(encoded.clone()).unwrap(), decoded, "{codec} {config}");
        assert_eq!(chain.encoded_limit(), encoded.len() as u64);
    }
}

#[test]
fn checksums_of_long_values_agree_with_numcodecs() {
    let (ones, ramp) = (vec![255; 3_000_001], (0..3_000_001_u32).map(|at| u8::try_from(at % 251).unwrap()));
    let values = [Bytes::from(ones), ramp.collect(), Bytes::from_static(&[0; 11])];
    for (codec, sums) in [
        ("fletcher32", ["00ff00ff", "9cb4b4a1", "00000000"]),
        ("jenkins_lookup3", ["4d2dc488", "23a1562a", "a964096e"]),
        ("adler32", ["55a69568", "3e48b0a3", "01000b00"]),
        ("crc32", ["4a6eee07", "0908e31d", "ecb1876b"]),
    ] {
        for (value, sum) in values.iter().zip(sums) {
            let config = json!({"location": "end"});
            let chain = byte_chain(json!([[format!("numcodecs.{codec}"), config]]), value.len() as u64);
            let encoded = chain.encode_items(value.clone()).unwrap();
            assert_eq!(encoded[value.len()..], unhex(sum), "{codec}");
        }
    }
}

#[test]
fn a_changed_bit_is_detected_at_any_position() {
    for codec in ["crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"] {
        for location in ["start", "end"] {
            let list = json!([[format!("numcodecs.{codec}"), {"location": location}]]);
            let chain = byte_chain(list, 50);
            let encoded = chain.encode_items(sample(50)).unwrap().to_vec();
            for bit in 0..encoded.len() * 8 {
                let mut changed = encoded.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert!(
                    is_corrupt(&chain.decode_items(Bytes::from(changed))),
                    "{codec} at the {location}: {bit}"
                );
            }
        }
    }
}

#[test]
fn a_location_is_the_start_or_the_end() {
    for codec in ["crc32c", "numcodecs.crc32", "numcodecs.adler32"] {
        let list = |location: Value| json!([["bytes", {}], [codec, {"location": location}]]);
        assert!(bind(list(json!(null)), DataType::UInt8, &[4]).is_ok());
        for location in [json!("middle"), json!(0)] {
            let result = bind(list(location), DataType::UInt8, &[4]);
            assert!(matches!(result, Err(CodecError::Invalid { .. })), "{codec}");
        }
    }
}

#[test]
fn jenkins_lookup3_has_a_seed_of_32_bits_and_no_prefix() {
    let list = |config: Value| json!([["bytes", {}], ["numcodecs.jenkins_lookup3", config]]);
    assert!(bind(list(json!({"initval": u32::MAX})), DataType::UInt8, &[4]).is_ok());
    for initial in [json!(-1), json!(1_u64 << 32), json!(0.5)] {
        let result = bind(list(json!({"initval": initial})), DataType::UInt8, &[4]);
        assert!(matches!(result, Err(CodecError::Invalid { .. })), "{initial}");
    }
    let result = bind(list(json!({"prefix": [1, 2]})), DataType::UInt8, &[4]);
    assert!(matches!(result, Err(CodecError::Unsupported(_))));
}

#[test]
fn shuffle_moves_whole_elements_and_restores_them() {
    for element in [1, 2, 3, 4, 8, 16, 600] {
        let chain = byte_chain(json!([["numcodecs.shuffle", {"elementsize": element}]]), 1200);
        let encoded = chain.encode_items(sample(1200)).unwrap();
        assert_eq!(encoded == sample(1200), element == 1);
        assert_eq!(chain.decode_items(encoded).unwrap(), sample(1200), "{element}");
    }
    let none = byte_chain(json!([["numcodecs.shuffle", {"elementsize": 0}]]), 7);
    assert_eq!(none.encode_items(sample(7)).unwrap(), sample(7));
}

#[test]
fn a_shuffle_whose_elements_do_not_fit_is_rejected() {
    let bind = |length, config: Value| {
        bind(json!([["bytes", {}], ["numcodecs.shuffle", config]]), DataType::UInt8, &[length])
    };
    assert!(bind(8, json!({})).is_ok());
    for (length, element) in [(7, json!(4)), (8, json!(i64::MAX)), (8, json!(-1)), (8, json!("x"))] {
        let result = bind(length, json!({"elementsize": element}));
        assert!(matches!(result, Err(CodecError::Invalid { .. })), "{element}");
    }
    // After a compressor the size is known only from the bytes.
    let chain = byte_chain(json!([["gzip", {}], ["numcodecs.shuffle", {"elementsize": 64}]]), 100);
    assert!(is_corrupt(&chain.decode_items(sample(63))));
}

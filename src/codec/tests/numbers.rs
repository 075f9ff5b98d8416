//! Codecs of numbers (pcodec, zfp), and base64.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Items, bind, byte_chain, is_corrupt, sample};
use crate::codec::CodecError;
use crate::metadata::{DataType, TimeStep, TimeUnit};

fn date() -> DataType {
    DataType::DateTime64(TimeStep::new(TimeUnit::Second, 1).unwrap())
}

/// The types that pcodec supports.
fn pcodec_types() -> Vec<DataType> {
    DataType::NUMPY_REALS.into_iter().chain([date()]).collect()
}

/// The types that zfp supports.
fn zfp_types() -> [DataType; 5] {
    [DataType::Int32, DataType::Int64, DataType::Float32, DataType::Float64, date()]
}

/// Numbers of any type, smooth and random.
fn numbers(data_type: &DataType, count: usize) -> Bytes {
    let noise = sample(count * 8);
    let number = |index: usize| {
        let noise = u64::from(noise[index * 8 + 3]);
        let number = (index as u64 * 3 + noise / 16) % 100;
        match data_type {
            DataType::Float16 => half::f16::from_f64(number as f64 / 8.0).to_le_bytes().to_vec(),
            DataType::Float32 => (number as f32 / 7.0).to_le_bytes().to_vec(),
            DataType::Float64 => (number as f64 / 7.0).to_le_bytes().to_vec(),
            other => number.to_le_bytes()[..other.element_bytes()].to_vec(),
        }
    };
    (0..count).flat_map(number).collect()
}

/// Configurations of pcodec, as numcodecs and its older versions write them.
fn pcodec_options() -> Vec<Value> {
    let mut options = vec![json!({}), json!({"mode_spec": "classic"}), json!({"equal_pages_up_to": 100})];
    options.extend((0..=12).step_by(6).map(|level| json!({"level": level})));
    for delta in ["auto", "none", "try_consecutive", "try_lookback"] {
        options.push(json!({"delta_spec": delta, "delta_encoding_order": 2, "equal_pages_up_to": 262_144}));
    }
    options
}

#[test]
fn pcodec_restores_every_number_of_every_type() {
    for data_type in pcodec_types() {
        for options in pcodec_options() {
            for count in [0, 1, 255, 257, 9000] {
                let chain =
                    bind(json!([["numcodecs.pcodec", options]]), data_type.clone(), &[count]).unwrap();
                let given = numbers(&data_type, usize::try_from(count).unwrap());
                let encoded = chain.encode_items(given.clone()).unwrap();
                assert!(encoded.len() as u64 <= chain.encoded_limit());
                assert!(chain.decode_items(encoded).unwrap() == given, "{count} of {data_type:?}: {options}");
            }
        }
    }
}

#[test]
fn pcodec_restores_every_bit_of_a_nan() {
    let chain = bind(json!([["numcodecs.pcodec", {}]]), DataType::Float64, &[4]).unwrap();
    let bits = [0x7ff8_0000_0000_0001_u64, 0xfff0_0000_0000_0123, 1 << 63, f64::INFINITY.to_bits()];
    let given: Bytes = bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
    assert_eq!(chain.decode_items(chain.encode_items(given.clone()).unwrap()).unwrap(), given);
}

#[test]
fn pcodec_with_another_number_of_numbers_is_corrupt() {
    let list = json!([["numcodecs.pcodec", {"equal_pages_up_to": 1000}]]);
    let good = bind(list.clone(), DataType::Int32, &[5000]).unwrap();
    let value = good.encode_items(numbers(&DataType::Int32, 5000)).unwrap();
    for count in [0, 1, 999, 1000, 4999, 5001, 1 << 20] {
        let chain = bind(list.clone(), DataType::Int32, &[count]).unwrap();
        assert!(is_corrupt(&chain.decode_items(value.clone())), "{count}");
    }
    for data_type in [DataType::UInt32, DataType::Float32] {
        let chain = bind(list.clone(), data_type, &[5000]).unwrap();
        assert!(is_corrupt(&chain.decode_items(value.clone())));
    }
    for length in (0..value.len()).step_by(7) {
        assert!(is_corrupt(&good.decode_items(value.slice(..length))), "{length}");
    }
    // Equal numbers take almost no bytes.
    let zeros = bind(list.clone(), DataType::Int64, &[1 << 22]).unwrap();
    let bomb = zeros.encode_items(Bytes::from(vec![0; 8 << 22])).unwrap();
    assert!(bomb.len() < 256 << 10);
    let chain = bind(list, DataType::Int64, &[100]).unwrap();
    assert!(is_corrupt(&chain.decode_items(bomb)));
}

#[test]
fn binding_rejects_what_pcodec_does_not_support() {
    for data_type in [DataType::Bool, DataType::Complex64, DataType::RawBits { bytes: 4 }, DataType::String] {
        let result = bind(json!([["numcodecs.pcodec", {}]]), data_type, &[4]);
        assert!(matches!(result, Err(CodecError::Unsupported(_))), "{result:?}");
    }
    for options in [json!({"level": 13}), json!({"level": -1}), json!({"equal_pages_up_to": 0})] {
        let result = bind(json!([["numcodecs.pcodec", options]]), DataType::Int32, &[4]);
        assert!(matches!(result, Err(CodecError::Invalid { .. })), "{options}");
    }
}

#[test]
fn lossless_zfp_restores_every_number() {
    for data_type in zfp_types() {
        for list in [
            json!([["numcodecs.zfpy", {"mode": 4, "tolerance": -1, "rate": -1, "precision": -1}]]),
            json!([["numcodecs.zfpy", {}]]),
            json!([["zfp", {"mode": "reversible"}]]),
        ] {
            for shape in [&[][..], &[1], &[1001], &[5, 9], &[3, 4, 7], &[2, 3, 4, 5], &[2, 3, 2, 3, 2], &[0]]
            {
                let chain = bind(list.clone(), data_type.clone(), shape).unwrap();
                let given = numbers(&data_type, shape.iter().product::<u64>().try_into().unwrap());
                let encoded = chain.encode_items(given.clone()).unwrap();
                assert!(encoded.len() as u64 <= chain.encoded_limit());
                assert!(chain.decode_items(encoded).unwrap() == given, "{shape:?} of {data_type:?}: {list}");
            }
        }
    }
}

#[test]
fn lossy_zfp_approximates_every_number() {
    for (list, tolerance) in [
        (json!([["numcodecs.zfpy", {"mode": 4, "tolerance": 0.01}]]), 0.01),
        (json!([["numcodecs.zfpy", {"mode": 3, "precision": 20}]]), 0.1),
        (json!([["numcodecs.zfpy", {"mode": 2, "rate": 24}]]), 0.1),
        (json!([["zfp", {"mode": "fixed_accuracy", "tolerance": 0.01}]]), 0.01),
        (json!([["zfp", {"mode": "fixed_precision", "precision": 20}]]), 0.1),
        (json!([["zfp", {"mode": "fixed_rate", "rate": 24.0}]]), 0.1),
        (
            json!([["zfp", {"mode": "expert", "minbits": 1, "maxbits": 16658, "maxprec": 64, "minexp": -10}]]),
            0.01,
        ),
    ] {
        let chain = bind(list.clone(), DataType::Float32, &[10, 30]).unwrap();
        let given = numbers(&DataType::Float32, 300);
        let decoded = chain.decode_items(chain.encode_items(given.clone()).unwrap()).unwrap();
        assert_eq!(decoded.len(), given.len());
        for (one, other) in given.as_chunks().0.iter().zip(decoded.as_chunks().0) {
            let difference = f32::from_le_bytes(*one) - f32::from_le_bytes(*other);
            assert!(difference.abs() <= tolerance, "{list}: {difference}");
        }
    }
}

#[test]
fn zfp_with_another_number_of_numbers_is_corrupt() {
    let list = json!([["numcodecs.zfpy", {}]]);
    let good = bind(list.clone(), DataType::Float32, &[10, 30]).unwrap();
    let value = good.encode_items(numbers(&DataType::Float32, 300)).unwrap();
    for shape in [&[10, 29][..], &[1], &[300, 300], &[10, 30, 2]] {
        let chain = bind(list.clone(), DataType::Float32, shape).unwrap();
        assert!(is_corrupt(&chain.decode_items(value.clone())), "{shape:?}");
    }
    let chain = bind(list.clone(), DataType::Int32, &[10, 30]).unwrap();
    assert!(is_corrupt(&chain.decode_items(value.clone())));
    for length in (0..value.len() - 8).step_by(8) {
        assert!(is_corrupt(&good.decode_items(value.slice(..length))), "{length}");
    }
    // The same numbers in other dimensions are the same chunk: flat arrays are written so.
    let flat = bind(list, DataType::Float32, &[300]).unwrap();
    assert!(flat.decode_items(value).is_ok());
}

#[test]
fn binding_rejects_what_zfp_does_not_support() {
    for data_type in [DataType::Int16, DataType::UInt32, DataType::Float16, DataType::String] {
        for list in [json!([["numcodecs.zfpy", {}]]), json!([["zfp", {"mode": "reversible"}]])] {
            let result = bind(list, data_type.clone(), &[4]);
            assert!(matches!(result, Err(CodecError::Unsupported(_))), "{result:?}");
        }
    }
    for options in [
        json!({}),
        json!({"mode": "best"}),
        json!({"mode": "fixed_rate"}),
        json!({"mode": "fixed_rate", "rate": -1.0}),
        json!({"mode": "fixed_precision", "precision": 0.5}),
        json!({"mode": "expert", "minbits": 1, "maxbits": 0, "maxprec": 65, "minexp": 0}),
    ] {
        let result = bind(json!([["zfp", options]]), DataType::Float32, &[4]);
        assert!(matches!(result, Err(CodecError::Invalid { .. })), "{options}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn mutated_numbers_decode_or_fail_and_never_panic(
        data_type in prop::sample::select(pcodec_types()),
        options in prop::sample::select(pcodec_options()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        // The significant bytes are at the beginning.
        head in prop::collection::vec((0_usize..64, any::<u8>()), 0..3),
        end in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut lists = vec![json!([["numcodecs.pcodec", options]])];
        if zfp_types().contains(&data_type) {
            lists.push(json!([["numcodecs.zfpy", {}]]));
            lists.push(json!([["zfp", {"mode": "fixed_rate", "rate": 9.0}]]));
        }
        for list in lists {
            let chain = bind(list, data_type.clone(), &[20, 30]).unwrap();
            let mut value = chain.encode_items(numbers(&data_type, 600)).unwrap().to_vec();
            for (at, byte) in edits.iter().map(|(at, byte)| (at.index(value.len()), byte)).collect::<Vec<_>>() {
                value[at] = *byte;
            }
            for (at, byte) in &head {
                if let Some(place) = value.get_mut(*at) {
                    *place = *byte;
                }
            }
            value.truncate(end.map_or(value.len(), |end| end.index(value.len())));
            match chain.decode_items(value.into()) {
                Ok(decoded) => prop_assert_eq!(decoded.len(), 600 * data_type.element_bytes()),
                Err(error) => prop_assert!(matches!(error, CodecError::Corrupt { .. }), "{}", error),
            }
        }
    }
}

#[test]
fn base64_is_text_with_padding_and_nothing_else() {
    let chain = byte_chain(json!([["numcodecs.base64", {}]]), 4);
    let value = Bytes::from_static(b"AP/+gA==");
    assert_eq!(chain.decode_items(value.clone()).unwrap(), [0, 0xff, 0xfe, 0x80].as_slice());
    assert_eq!(chain.encode_items(Bytes::from_static(&[0, 0xff, 0xfe, 0x80])).unwrap(), value);
    for bad in ["", "AP/+gA", "AP/+gA=", "AP_-gA==", "AP/+gA==\n", "AP/+ A==", "AP/+", "AP/+gAAA", "AP/+gB=="]
    {
        assert!(is_corrupt(&chain.decode_items(Bytes::from(bad))), "{bad}");
    }
}

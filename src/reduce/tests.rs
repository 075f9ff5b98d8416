//! Kernels compared with a naive model, bit by bit.
//!
//! The model goes through windows index by index, and computes with integers of 128 bits and with float64.

#![expect(clippy::float_cmp, reason = "results are exact")]

use half::{bf16, f16};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

use super::{Method, Missing, ReduceError, Reducer, Reduction};
use crate::chunk::{AxisRange, Subset};
use crate::metadata::{Attributes, DataType};

/// A number of an element.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Integer(i128),
    Float(f64),
}

use Number::{Float, Integer};

const TYPES: [DataType; 17] = [
    DataType::Bool,
    DataType::Int2,
    DataType::Int4,
    DataType::UInt4,
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt2,
    DataType::UInt8,
    DataType::UInt16,
    DataType::UInt32,
    DataType::UInt64,
    DataType::Float16,
    DataType::BFloat16,
    DataType::Float32,
    DataType::Float64,
];

fn range(data_type: &DataType) -> Option<(i128, i128)> {
    Some(match data_type {
        DataType::Bool => (0, 1),
        DataType::Int2 => (-2, 1),
        DataType::Int4 => (-8, 7),
        DataType::UInt2 => (0, 3),
        DataType::UInt4 => (0, 15),
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        _ => return None,
    })
}

fn decode(data_type: &DataType, item: &[u8]) -> Number {
    let two = || [item[0], item[1]];
    match data_type {
        DataType::Float16 => Float(f16::from_le_bytes(two()).to_f64()),
        DataType::BFloat16 => Float(bf16::from_le_bytes(two()).to_f64()),
        DataType::Float32 => Float(f32::from_le_bytes(item.try_into().unwrap()).into()),
        DataType::Float64 => Float(f64::from_le_bytes(item.try_into().unwrap())),
        _ => {
            let signed = range(data_type).unwrap().0 < 0;
            let mut bytes = [if signed && item[item.len() - 1] > 127 { 255 } else { 0 }; 16];
            bytes[..item.len()].copy_from_slice(item);
            Integer(i128::from_le_bytes(bytes))
        }
    }
}

/// The bits of the float of 16 bits that is nearest to a number, of two the one with an even significand: found by trying
/// all of them.
fn nearest_16_bits(number: f64, value: impl Fn(u16) -> f64) -> u16 {
    if number.is_infinite() || number == 0.0 {
        return (0..=u16::MAX).find(|&bits| value(bits).to_bits() == number.to_bits()).unwrap();
    }
    let largest = (0..0x7fff).map(&value).filter(|value| value.is_finite()).fold(0.0, f64::max);
    let beyond = (0..0x7fff)
        .filter(|&bits| value(bits) == largest)
        .map(|bits| value(bits) - value(bits - 1))
        .next()
        .unwrap();
    if number.abs() >= largest + beyond / 2.0 {
        return nearest_16_bits(f64::INFINITY.copysign(number), value);
    }
    let candidates = (0..=u16::MAX).filter(|&bits| {
        value(bits).is_finite() && value(bits).is_sign_negative() == number.is_sign_negative()
    });
    let distance = |bits: &u16| (value(*bits) - number).abs();
    candidates
        .min_by(|one, other| distance(one).total_cmp(&distance(other)).then((one % 2).cmp(&(other % 2))))
        .unwrap()
}

fn encode(data_type: &DataType, number: Number) -> Vec<u8> {
    match (data_type, number) {
        (DataType::Float16, Float(number)) if number.is_nan() => f16::NAN.to_le_bytes().to_vec(),
        (DataType::BFloat16, Float(number)) if number.is_nan() => bf16::NAN.to_le_bytes().to_vec(),
        (DataType::Float16, Float(number)) => {
            nearest_16_bits(number, |bits| f16::from_bits(bits).to_f64()).to_le_bytes().to_vec()
        }
        (DataType::BFloat16, Float(number)) => {
            nearest_16_bits(number, |bits| bf16::from_bits(bits).to_f64()).to_le_bytes().to_vec()
        }
        // The sign of a NaN that a subtraction of infinities gives differs between processors.
        (DataType::Float32, Float(number)) if number.is_nan() => f32::NAN.to_le_bytes().to_vec(),
        (DataType::Float64, Float(number)) if number.is_nan() => f64::NAN.to_le_bytes().to_vec(),
        (DataType::Float32, Float(number)) => (number as f32).to_le_bytes().to_vec(),
        (_, Float(number)) => number.to_le_bytes().to_vec(),
        (_, Integer(number)) => number.to_le_bytes()[..data_type.element_bytes()].to_vec(),
    }
}

/// The result of a window by the definition of the method.
fn expected(data_type: &DataType, method: Method, window: &[Vec<u8>], missing: &[Number]) -> Vec<u8> {
    if method == Method::Stride {
        return window[0].clone();
    }
    let is_present =
        |number: &Number| !matches!(number, Float(float) if float.is_nan()) && !missing.contains(number);
    let present: Vec<Number> = window.iter().map(|item| decode(data_type, item)).filter(is_present).collect();
    let is_float = range(data_type).is_none();
    if present.is_empty() {
        let empty = if is_float { Float(f64::NAN) } else { missing[0] };
        return encode(data_type, empty);
    }
    let less = |one: &Number, other: &Number| match (one, other) {
        (Integer(one), Integer(other)) => one < other,
        (Float(one), Float(other)) => one < other,
        _ => unreachable!(),
    };
    let result = match method {
        Method::Mean if is_float => {
            let sum = present
                .iter()
                .fold(0.0, |sum, number| sum + if let Float(number) = number { *number } else { 0.0 });
            Float(sum / present.len() as f64)
        }
        Method::Mean => {
            let sum: i128 =
                present.iter().map(|number| if let Integer(number) = number { *number } else { 0 }).sum();
            let count = present.len() as i128;
            // The nearest integer; of two the even one.
            let near = sum / count;
            let distance = |mean: i128| (mean * count - sum).abs();
            Integer((near - 1..=near + 1).min_by_key(|&mean| (distance(mean), mean % 2 != 0)).unwrap())
        }
        Method::Min => {
            present.iter().copied().reduce(|best, next| if less(&next, &best) { next } else { best }).unwrap()
        }
        Method::Max => {
            present.iter().copied().reduce(|best, next| if less(&best, &next) { next } else { best }).unwrap()
        }
        Method::Mode => {
            let count = |number: &Number| present.iter().filter(|other| *other == number).count();
            let most = present.iter().map(count).max().unwrap();
            let frequent = present.iter().copied().filter(|number| count(number) == most);
            let mode = frequent.reduce(|best, next| if less(&next, &best) { next } else { best }).unwrap();
            if mode == Float(0.0) { Float(0.0) } else { mode }
        }
        Method::Stride => unreachable!(),
    };
    encode(data_type, result)
}

/// All places of a box, in C order.
fn places(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |places, &length| {
        places.iter().flat_map(|place| (0..length).map(move |at| [&place[..], &[at]].concat())).collect()
    })
}

fn model(
    data_type: &DataType,
    method: Method,
    items: &[u8],
    (shape, factors): (&[usize], &[usize]),
    missing: &[Number],
) -> Vec<u8> {
    let element_bytes = data_type.element_bytes();
    let results: Vec<usize> =
        shape.iter().zip(factors).map(|(length, factor)| length.div_ceil(*factor)).collect();
    let window = |result: Vec<usize>| {
        let inside = |place: &Vec<usize>| {
            place.iter().zip(&result).zip(factors).all(|((at, result), factor)| at / factor == *result)
        };
        let places = places(shape).into_iter().filter(inside);
        let flat =
            places.map(|place| place.iter().zip(shape).fold(0, |flat, (at, length)| flat * length + at));
        let window: Vec<Vec<u8>> =
            flat.map(|at| items[at * element_bytes..][..element_bytes].to_vec()).collect();
        expected(data_type, method, &window, missing)
    };
    places(&results).into_iter().flat_map(window).collect()
}

fn attributes(members: Value) -> Attributes {
    let Value::Object(members) = members else { return Attributes::from(Map::new()) };
    Attributes::from(members)
}

fn element(data_type: &DataType, seed: u64) -> Vec<u8> {
    // Often one of few values, so that there are ties; else any bits.
    let few = seed % 4;
    match range(data_type) {
        Some((low, high)) if few > 0 => {
            encode(data_type, Integer((i128::from(seed >> 8) % 3).clamp(low, high)))
        }
        Some((low, high)) => {
            let span = high - low + 1;
            encode(data_type, Integer(low + i128::from(seed).rem_euclid(span)))
        }
        None if few == 1 => {
            let numbers = [0.0, -0.0, f64::NAN, 1.0, 2.5, f64::INFINITY, f64::NEG_INFINITY];
            let number = numbers[(seed >> 8) as usize % numbers.len()];
            match data_type {
                DataType::Float16 => f16::from_f64(number).to_le_bytes().to_vec(),
                DataType::BFloat16 => bf16::from_f64(number).to_le_bytes().to_vec(),
                _ => encode(data_type, Float(number)),
            }
        }
        None => seed.to_le_bytes()[8 - data_type.element_bytes()..].to_vec(),
    }
}

/// A box of elements: its shape, and factors.
fn boxes() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    let axis = (prop_oneof![0..7_usize, 1..20_usize], prop_oneof![1..4_usize, 1..25_usize, Just(8)]);
    prop::collection::vec(axis, 0..4).prop_map(|axes| axes.into_iter().unzip())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_method_matches_a_naive_model_bit_by_bit(
        data_type in select(&TYPES[..]),
        method in select(&Method::ALL[..]),
        (shape, factors) in boxes(),
        seeds in prop::collection::vec(any::<u64>(), 64),
        has_missing: bool,
    ) {
        let count: usize = shape.iter().product();
        // The model of 16-bit floats tries all of them.
        prop_assume!(!(matches!(data_type, DataType::Float16 | DataType::BFloat16) && count > 60));
        let items: Vec<u8> =
            (0..count).flat_map(|at| element(&data_type, seeds[at % 64].rotate_left(at as u32 / 64))).collect();
        let is_number = data_type != DataType::Bool;
        let missing = match range(&data_type) {
            _ if !has_missing || !is_number => vec![],
            Some(_) => vec![Integer(1), Integer(0)],
            None => vec![Float(2.5), Float(1.0)],
        };
        let members = match missing[..] {
            [Integer(one), Integer(other)] => json!({"_FillValue": one as i64, "missing_value": [other as i64]}),
            [Float(one), Float(other)] => json!({"_FillValue": one, "missing_value": [other]}),
            _ => json!({}),
        };
        let read = Missing::from_attributes(&attributes(members), &data_type).unwrap();
        match Reducer::new(method, &data_type, read) {
            Err(error) => {
                prop_assert!(matches!(error, ReduceError::Undefined { .. }), "{}", error);
                prop_assert!(method == Method::Mean && data_type == DataType::Bool);
            }
            Ok(reducer) => {
                let reduced = reducer.reduce(&items, &shape, &factors);
                let model = model(&data_type, method, &items, (&shape, &factors), &missing);
                prop_assert_eq!(&reduced, &model, "{:?} {:?} {:?} {:?}", method, data_type, shape, factors);
            }
        }
    }

    #[test]
    fn a_window_that_comes_in_parts_gives_what_it_gives_whole(
        data_type in select(&TYPES[..]),
        method in select(&[Method::Mean, Method::Min, Method::Max, Method::Stride][..]),
        seeds in prop::collection::vec(any::<u64>(), 1..200),
        cut: Index,
    ) {
        prop_assume!(method.is_defined_for(&data_type));
        let items: Vec<u8> = seeds.iter().flat_map(|&seed| element(&data_type, seed)).collect();
        let members = if range(&data_type).is_some() { json!({"_FillValue": 1}) } else { json!({}) };
        let missing = Missing::from_attributes(&attributes(members), &data_type).unwrap();
        let reducer = Reducer::new(method, &data_type, missing).unwrap();
        let mut window = reducer.accumulate().unwrap();
        let (one, other) = items.split_at(cut.index(seeds.len() + 1) * data_type.element_bytes());
        window.add(one);
        window.add(other);
        let mut reduced = Vec::new();
        window.finish(&mut reduced);
        prop_assert_eq!(reduced, reducer.reduce(&items, &[seeds.len()], &[seeds.len()]));
    }
}

#[test]
fn complex_means_are_those_of_each_part_without_elements_that_are_nan() {
    let pairs: [(f64, f64); 6] =
        [(1.0, 2.0), (3.0, 5.0), (f64::NAN, 1.0), (7.0, -1.0), (1.0, f64::NAN), (f64::NAN, 0.0)];
    let items: Vec<u8> = pairs
        .iter()
        .flat_map(|(real, imaginary)| [real.to_le_bytes(), imaginary.to_le_bytes()].concat())
        .collect();
    let reducer = Reducer::new(Method::Mean, &DataType::Complex128, Missing::default()).unwrap();
    let means: Vec<f64> = reducer
        .reduce(&items, &[6], &[2])
        .chunks(8)
        .map(|part| f64::from_le_bytes(part.try_into().unwrap()))
        .collect();
    assert_eq!(means[..4], [2.0, 3.5, 7.0, -1.0]);
    assert!(means[4].is_nan() && means[5].is_nan());
    for method in [Method::Mode, Method::Min, Method::Max] {
        assert!(Reducer::new(method, &DataType::Complex64, Missing::default()).is_err());
    }
}

#[test]
fn the_method_without_a_name_suits_the_type() {
    for (data_type, is_categorical, expected) in [
        (DataType::Bool, false, Method::Mode),
        (DataType::UInt8, false, Method::Mean),
        (DataType::UInt8, true, Method::Mode),
        (DataType::Float32, false, Method::Mean),
        (DataType::Complex64, true, Method::Mean),
        (DataType::String, false, Method::Stride),
        (DataType::RawBits { bytes: 3 }, true, Method::Stride),
    ] {
        assert_eq!(Method::auto(&data_type, is_categorical), expected, "{data_type:?}");
        assert!(expected.is_defined_for(&data_type));
    }
}

fn full(shape: &[u64]) -> Subset {
    Subset::full(shape)
}

#[test]
fn halvings_fit_the_last_two_dimensions_by_the_same_power_of_two() {
    let reducer = || Reducer::new(Method::Mean, &DataType::UInt8, Missing::default()).unwrap();
    for (shape, (width, height), factors) in [
        (vec![5, 100, 200], (64, 64), vec![1, 4, 4]),
        (vec![5, 100, 200], (200, 100), vec![1, 1, 1]),
        (vec![5, 100, 200], (199, 100), vec![1, 2, 2]),
        (vec![300, 10], (10, 256), vec![2, 2]),
        (vec![1000], (10, 10), vec![128]),
        (vec![3, 1], (1, 1), vec![4, 4]),
        (vec![0, 9], (9, 1), vec![1, 1]),
        (vec![u64::MAX >> 1, 2], (1, 1), vec![1 << 63, 1 << 63]),
    ] {
        let reduction = Reduction::fit(reducer(), &full(&shape), width, height);
        assert_eq!(reduction.factors(shape.len()), factors, "{shape:?} in {width} × {height}");
    }
    // A dropped dimension is none of the last two.
    let mut subset = full(&[64, 64, 64]);
    subset.0[2] = AxisRange { start: 5, count: 1, step: 1, keep: false };
    assert_eq!(Reduction::fit(reducer(), &subset, 16, 16).factors(3), [4, 4, 1]);
}

#[test]
fn a_cascade_rounds_at_each_step_and_a_direct_window_once() {
    let reducer = || Reducer::new(Method::Mean, &DataType::UInt8, Missing::default()).unwrap();
    let items = [0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2];
    // 2 × 2 means: 1 / 4 = 0, 3 / 4 = 1, 0, 3 / 4 = 1; their mean is 2 / 4 = 0. All: 7 / 16 = 0.
    let cascade = Reduction::fit(reducer(), &full(&[4, 4]), 1, 1);
    assert_eq!(cascade.steps().len(), 2);
    assert_eq!(cascade.first_steps(1).apply(&items, &[4, 4]), [0, 1, 0, 1]);
    assert_eq!(cascade.apply(&items, &[4, 4]), [0]);
    let odd = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0];
    // Direct: 5 / 12 = 0. Cascaded over 12 in ones of 2: 1, 1, 0 (half to even), 0, 0, 0 → 1, 0, 0 → 0, 0 → 0.
    let direct = Reduction::direct(reducer(), vec![12]);
    assert_eq!(direct.apply(&odd, &[12]), [0]);
    assert_eq!(Reduction::fit(reducer(), &full(&[12]), 3, 1).apply(&odd, &[12]), [1, 0, 0]);
}

proptest! {
    #[test]
    fn the_results_of_the_parts_of_a_box_are_those_of_the_box(
        shape in prop::collection::vec(0_usize..7, 0..4),
        factors in prop::collection::vec(prop::collection::vec(1_u64..5, 3), 1..3),
        count in 0_usize..6,
        bytes in prop::collection::vec(any::<u8>(), 216),
    ) {
        let steps = factors.into_iter().map(|step| step[..shape.len()].to_vec()).collect();
        let reducer = Reducer::new(Method::Mean, &DataType::UInt8, Missing::default()).unwrap();
        let reduction = Reduction::cascade(reducer, steps);
        let items = &bytes[..shape.iter().product()];
        let parts = reduction.parts(&shape, count);
        let reduced: Vec<u8> =
            parts.iter().flat_map(|(range, shape)| reduction.apply(&items[range.clone()], shape)).collect();
        prop_assert_eq!(reduced, reduction.apply(items, &shape));
        prop_assert!(parts.len() <= count.max(1));
    }
}

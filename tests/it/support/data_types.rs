//! The core data types as documents name them, with a fill value of each.

use serde_json::{Value, json};

/// A data type.
#[derive(Clone, Debug)]
pub struct TypeCase {
    pub v3: &'static str,
    /// The v2 type without its byte order.
    pub v2: &'static str,
    pub item_bytes: usize,
    /// Bytes of what byte order is about.
    pub unit_bytes: usize,
    pub fill_value: Value,
    /// The fill value, little endian.
    pub fill: Vec<u8>,
}

/// All of them.
pub fn data_types() -> Vec<TypeCase> {
    let case = |v3, v2: &'static str, unit_bytes, fill_value, fill: &[u8]| {
        let item_bytes = v2[1..].parse().unwrap();
        TypeCase { v3, v2, item_bytes, unit_bytes, fill_value, fill: fill.to_vec() }
    };
    let complex64 = [1.5_f32, -0.0].map(f32::to_le_bytes).concat();
    let complex128 = [f64::INFINITY.to_le_bytes(), 2.0_f64.to_le_bytes()].concat();
    vec![
        case("bool", "b1", 1, json!(true), &[1]),
        case("int8", "i1", 1, json!(-3), &[0xfd]),
        case("int16", "i2", 2, json!(-2), &(-2_i16).to_le_bytes()),
        case("int32", "i4", 4, json!(0), &[0; 4]),
        case("int64", "i8", 8, json!(i64::MIN), &i64::MIN.to_le_bytes()),
        case("uint8", "u1", 1, json!(7), &[7]),
        case("uint16", "u2", 2, json!(513), &[1, 2]),
        case("uint32", "u4", 4, json!(0), &[0; 4]),
        case("uint64", "u8", 8, json!(u64::MAX), &[0xff; 8]),
        case("float16", "f2", 2, json!(1.5), &[0, 0x3e]),
        case("float32", "f4", 4, json!("NaN"), &[0, 0, 0xc0, 0x7f]),
        case("float64", "f8", 8, json!("-Infinity"), &f64::NEG_INFINITY.to_le_bytes()),
        case("complex64", "c8", 4, json!([1.5, -0.0]), &complex64),
        case("complex128", "c16", 8, json!(["Infinity", 2.0]), &complex128),
        case("r24", "V3", 1, json!([1, 2, 3]), &[1, 2, 3]),
    ]
}

/// One of them by its v3 name.
pub fn data_type(name: &str) -> TypeCase {
    data_types().into_iter().find(|known| known.v3 == name).unwrap_or_else(|| panic!("{name}"))
}

//! Data types as documents name them, with a fill value of each.
//!
//! A model holds elements of one size. One of variable length stands in a slot of [`SLOT_BYTES`]: how many bytes it
//! has, the bytes, and zeros.

use base64::Engine;
use serde_json::{Value, json};

/// Bytes of the slot of an element of variable length.
pub const SLOT_BYTES: usize = 8;

/// A data type.
#[derive(Clone, Debug)]
pub struct TypeCase {
    /// The v3 type, or `struct`.
    pub v3: &'static str,
    /// The v2 type without its byte order; the filter, if elements are of variable length.
    pub v2: &'static str,
    pub element_bytes: usize,
    /// Bytes of the unit that a byte order applies to.
    pub unit_bytes: usize,
    /// Bytes of each such unit of an element.
    pub units: Vec<usize>,
    pub fill_value: Value,
    /// The same as v2 documents spell it.
    pub v2_fill_value: Value,
    /// The fill value, little endian.
    pub fill: Vec<u8>,
}

impl TypeCase {
    pub fn is_variable(&self) -> bool {
        self.v2.starts_with("vlen")
    }

    pub fn is_struct(&self) -> bool {
        self.v3 == "struct"
    }

    /// Whether elements are numbers whose differences wrap around.
    pub fn is_integer(&self) -> bool {
        ["i", "u"].contains(&&self.v2[..1])
    }

    /// The v3 document's `data_type`.
    pub fn in_v3(&self) -> Value {
        if !self.is_struct() {
            return json!(self.v3);
        }
        let fields = FIELDS.map(|(name, v3, _, _)| json!({ "name": name, "data_type": v3 }));
        json!({ "name": "struct", "configuration": { "fields": fields } })
    }

    /// The v2 document's `dtype`.
    pub fn in_v2(&self, big: bool) -> Value {
        let ordered = |v2: &str, unit: usize| match (unit, big) {
            (1, _) => format!("|{v2}"),
            (_, false) => format!("<{v2}"),
            (_, true) => format!(">{v2}"),
        };
        if self.is_variable() {
            return json!("|O");
        }
        if self.is_struct() {
            return json!(FIELDS.map(|(name, _, v2, unit)| [name.to_owned(), ordered(v2, unit)]));
        }
        json!(ordered(self.v2, self.unit_bytes))
    }

    /// The v2 document's `fill_value`. A struct's is the bytes of an element as they are stored.
    pub fn fill_value_in_v2(&self, big: bool) -> Value {
        let mut stored = self.fill.clone();
        if !(self.is_struct() && big) {
            return self.v2_fill_value.clone();
        }
        self.swap(&mut stored);
        json!(base64::engine::general_purpose::STANDARD.encode(stored))
    }

    /// Makes elements of any bytes.
    pub fn tame(&self, elements: &mut [u8]) {
        for element in elements.chunks_mut(self.element_bytes) {
            if self.v3 == "bool" {
                element[0] &= 1;
            } else if self.is_struct() {
                // The last field is a `bool`.
                *element.last_mut().unwrap() &= 1;
            } else if self.is_variable() {
                element[0] %= 8;
                let length = usize::from(element[0]);
                element[1 + length..].fill(0);
                if self.v3 == "string" {
                    element[1..=length].iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
                }
            }
        }
    }

    /// Turns the bytes of each unit round.
    pub fn swap(&self, elements: &mut [u8]) {
        swap(&self.units, elements);
    }

    /// Elements as `/v1/data` answers them.
    pub fn packed(&self, elements: &[u8]) -> Vec<u8> {
        if self.is_variable() { packed(elements) } else { elements.to_vec() }
    }

    /// The slot of an element of variable length.
    pub fn slot(element: &[u8]) -> [u8; SLOT_BYTES] {
        let mut slot = [0; SLOT_BYTES];
        slot[0] = element.len().try_into().unwrap();
        slot[1..=element.len()].copy_from_slice(element);
        slot
    }
}

/// Turns the bytes of each of these units round, over and over.
pub fn swap(units: &[usize], elements: &mut [u8]) {
    let mut rest = elements;
    for &unit in units.iter().cycle() {
        let Some((one, others)) = rest.split_at_mut_checked(unit) else { break };
        one.reverse();
        rest = others;
        if rest.is_empty() {
            break;
        }
    }
}

/// Elements of variable length, each behind its length, of their slots.
pub fn packed(slots: &[u8]) -> Vec<u8> {
    let element = |slot: &[u8]| [&u32::from(slot[0]).to_le_bytes(), &slot[1..=usize::from(slot[0])]].concat();
    slots.chunks(SLOT_BYTES).flat_map(element).collect()
}

/// The fields of the struct: name, v3 type, v2 type, bytes of a unit.
const FIELDS: [(&str, &str, &str, usize); 4] =
    [("a", "int16", "i2", 2), ("b", "complex64", "c8", 4), ("c", "uint8", "u1", 1), ("d", "bool", "b1", 1)];

/// All of them.
pub fn data_types() -> Vec<TypeCase> {
    let case = |v3, v2: &'static str, unit_bytes, fill_value, fill: &[u8]| {
        let element_bytes: usize = v2[1..].parse().unwrap();
        let units = vec![unit_bytes; element_bytes / unit_bytes];
        let (v2_fill_value, fill) = (Value::clone(&fill_value), fill.to_vec());
        TypeCase { v3, v2, element_bytes, unit_bytes, units, fill_value, v2_fill_value, fill }
    };
    // Without a unit of one size; `v2` is what v2 spells in base64.
    let other = |v3, v2, units: &[usize], (fill_value, v2_fill_value): (Value, &str), fill: &[u8]| TypeCase {
        v3,
        v2,
        element_bytes: fill.len(),
        unit_bytes: 1,
        units: units.to_vec(),
        fill_value,
        v2_fill_value: json!(v2_fill_value),
        fill: fill.to_vec(),
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
        TypeCase { v2_fill_value: json!("AQID"), ..case("r24", "V3", 1, json!([1, 2, 3]), &[1, 2, 3]) },
        other(
            "struct",
            "struct",
            &[2, 4, 4, 1, 1],
            (json!("AQIDBAUGBwgJCgsB"), "AQIDBAUGBwgJCgsB"),
            &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1],
        ),
        other("string", "vlen-utf8", &[1], (json!("fill"), "fill"), b"\x04fill\0\0\0"),
        other("bytes", "vlen-bytes", &[1], (json!([255, 0]), "/wA="), &[2, 255, 0, 0, 0, 0, 0, 0]),
    ]
}

/// One of them by its v3 name.
pub fn data_type(name: &str) -> TypeCase {
    data_types().into_iter().find(|known| known.v3 == name).unwrap_or_else(|| panic!("{name}"))
}

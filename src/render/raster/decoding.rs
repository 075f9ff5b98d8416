//! [`Decoding`]: the numbers that elements stand for (CF Conventions 1.11, sections 2.5.1 and 8.1).

use serde_json::{Map, Value};

use super::numbers::{append, integer, is_number};
use super::part::Part;
use crate::metadata::DataType;

/// What number each element of an array stands for, and which stand for nothing: those that are missing, and NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoding {
    /// The type that elements are read as.
    data_type: DataType,
    part: Part,
    missing_integers: Vec<i128>,
    missing_floats: Vec<f64>,
    /// `scale_factor` and `add_offset`.
    packing: Option<(f64, f64)>,
}

impl Decoding {
    /// The elements as they are stored; `None` if elements of this type are not numbers.
    #[must_use]
    pub fn stored(data_type: &DataType, part: Part) -> Option<Self> {
        is_number(data_type).then(|| Self {
            data_type: data_type.clone(),
            part,
            missing_integers: Vec::new(),
            missing_floats: Vec::new(),
            packing: None,
        })
    }

    /// The elements as the attributes of their array say: `_Unsigned`, `_FillValue`, `missing_value`, `scale_factor` and
    /// `add_offset`. An attribute of another form than CF's counts as absent.
    #[must_use]
    pub fn cf(data_type: &DataType, part: Part, attributes: &Map<String, Value>) -> Option<Self> {
        let mut decoding = Self::stored(data_type, part)?;
        match attributes.get("_Unsigned").map(is_true) {
            Some(true) => decoding.data_type = unsigned(data_type),
            Some(false) => decoding.data_type = signed(data_type),
            None => {}
        }
        for name in ["_FillValue", "missing_value"] {
            for value in attributes.get(name).into_iter().flat_map(values) {
                decoding.add_missing(value);
            }
        }
        let number = |name| attributes.get(name).and_then(float).filter(|number| number.is_finite());
        let (scale, offset) = (number("scale_factor"), number("add_offset"));
        if scale.is_some() || offset.is_some() {
            decoding.packing = Some((scale.unwrap_or(1.0), offset.unwrap_or(0.0)));
        }
        Some(decoding)
    }

    fn add_missing(&mut self, value: &Value) {
        let bits = 8 * self.data_type.element_bytes();
        let zero = vec![0; self.data_type.element_bytes()];
        if integer(&self.data_type, &zero).is_some() {
            let Some(number) = whole(value) else { return };
            // What is stored as a signed number is compared as the unsigned number of the same bits.
            let wraps =
                number < 0 && bits < 128 && integer(&self.data_type, &vec![0xff; bits / 8]) != Some(-1);
            self.missing_integers.push(if wraps { number + (1 << bits) } else { number });
        } else if let Some(number) = float(value) {
            // The attribute is in the type of the elements, where its decimal digits may stand for another number.
            #[expect(clippy::cast_possible_truncation, reason = "rounds to the type of the elements")]
            let rounded = match &self.data_type {
                DataType::Float32 => f64::from(number as f32),
                DataType::Float16 => f64::from(half::f16::from_f64(number)),
                DataType::BFloat16 => f64::from(half::bf16::from_f64(number)),
                _ => number,
            };
            self.missing_floats.push(rounded);
        }
    }

    /// The type that elements are read as.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The number that a stored number stands for.
    #[must_use]
    pub fn unpacked(&self, stored: f64) -> f64 {
        self.packing.map_or(stored, |(scale, offset)| stored * scale + offset)
    }

    /// Numbers in the order of the elements, before any scaling; NaN where an element is missing.
    fn comparable(&self, items: &[u8], out: &mut Vec<f64>) {
        out.clear();
        append(&self.data_type, self.part, items, out);
        self.mask(items, out);
    }

    /// The numbers of elements in canonical form; NaN where there is none.
    pub(super) fn numbers(&self, items: &[u8], out: &mut Vec<f64>) {
        self.comparable(items, out);
        if self.packing.is_some() {
            for number in out.iter_mut() {
                *number = self.unpacked(*number);
            }
        }
    }

    /// Replaces the numbers of missing elements by NaN.
    fn mask(&self, items: &[u8], out: &mut [f64]) {
        if !self.missing_integers.is_empty() {
            let items = items.chunks(self.data_type.element_bytes().max(1));
            for (number, item) in out.iter_mut().zip(items) {
                if integer(&self.data_type, item)
                    .is_some_and(|stored| self.missing_integers.contains(&stored))
                {
                    *number = f64::NAN;
                }
            }
        }
        if !self.missing_floats.is_empty() {
            for number in out.iter_mut().filter(|number| self.missing_floats.contains(number)) {
                *number = f64::NAN;
            }
        }
    }
}

/// Whether a value is `true` or its text.
fn is_true(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| value.as_str().is_some_and(|text| text.eq_ignore_ascii_case("true")))
}

/// The values of an attribute that may be a list.
fn values(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}

/// The number of an attribute: a JSON number, the text of one or of a float without a JSON number, or the base64 of a
/// little-endian `float64`, as xarray writes `_FillValue` in v3.
pub(super) fn float(value: &Value) -> Option<f64> {
    use base64::Engine as _;
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => {
            let bytes = || base64::prelude::BASE64_STANDARD.decode(text).ok()?.try_into().ok();
            text.trim().parse().ok().or_else(|| bytes().map(f64::from_le_bytes))
        }
        _ => None,
    }
}

/// The whole number of an attribute.
fn whole(value: &Value) -> Option<i128> {
    if let Value::Number(number) = value
        && let Ok(whole) = number.as_str().parse()
    {
        return Some(whole);
    }
    let number = float(value).filter(|number| number.fract() == 0.0 && number.abs() < 1e19)?;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and within the range")]
    Some(number as i128)
}

fn unsigned(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Int8 => DataType::UInt8,
        DataType::Int16 => DataType::UInt16,
        DataType::Int32 => DataType::UInt32,
        DataType::Int64 => DataType::UInt64,
        other => other.clone(),
    }
}

fn signed(data_type: &DataType) -> DataType {
    match data_type {
        DataType::UInt8 => DataType::Int8,
        DataType::UInt16 => DataType::Int16,
        DataType::UInt32 => DataType::Int32,
        DataType::UInt64 => DataType::Int64,
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decoded(data_type: &DataType, attributes: &Value, items: &[u8]) -> Vec<String> {
        let decoding = Decoding::cf(data_type, Part::Abs, attributes.as_object().unwrap()).unwrap();
        let mut numbers = Vec::new();
        decoding.numbers(items, &mut numbers);
        numbers.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn packed_values_are_scaled_and_missing_ones_are_not_numbers() {
        let attributes =
            json!({ "scale_factor": 0.5, "add_offset": 10, "_FillValue": -1, "missing_value": [7, 8] });
        let items: Vec<u8> = [4_i16, -1, 7, -3].iter().flat_map(|item| item.to_le_bytes()).collect();
        assert_eq!(decoded(&DataType::Int16, &attributes, &items), ["12", "NaN", "NaN", "8.5"]);
    }

    #[test]
    fn bytes_that_are_unsigned_have_unsigned_missing_values() {
        let attributes = json!({ "_Unsigned": "true", "_FillValue": -1 });
        assert_eq!(decoded(&DataType::Int8, &attributes, &[0xff, 0x80, 1]), ["NaN", "128", "1"]);
        let attributes = json!({ "_Unsigned": "false", "_FillValue": -128 });
        assert_eq!(decoded(&DataType::UInt8, &attributes, &[0xff, 0x80, 1]), ["-1", "NaN", "1"]);
    }

    #[test]
    fn a_missing_float_is_compared_in_the_type_of_the_elements() {
        let items: Vec<u8> = [1e20_f32, 0.1, 2.0].iter().flat_map(|item| item.to_le_bytes()).collect();
        let attributes = json!({ "_FillValue": 1e20, "missing_value": 0.1 });
        assert_eq!(decoded(&DataType::Float32, &attributes, &items), ["NaN", "NaN", "2"]);
        let attributes = json!({ "_FillValue": "AAAAAAAAAEA=" });
        assert_eq!(decoded(&DataType::Float64, &attributes, &2_f64.to_le_bytes()), ["NaN"]);
        let attributes = json!({ "_FillValue": {}, "scale_factor": "x", "missing_value": null });
        assert_eq!(decoded(&DataType::Float64, &attributes, &2_f64.to_le_bytes()), ["2"]);
    }

    #[test]
    fn missing_integers_are_exact() {
        let items: Vec<u8> = [u64::MAX, u64::MAX - 1].iter().flat_map(|item| item.to_le_bytes()).collect();
        let attributes = json!({ "_FillValue": u64::MAX });
        assert_eq!(decoded(&DataType::UInt64, &attributes, &items)[0], "NaN");
        assert_ne!(decoded(&DataType::UInt64, &attributes, &items)[1], "NaN");
    }

    #[test]
    fn text_is_not_drawn_and_complex_numbers_have_four_parts() {
        assert!(Decoding::stored(&DataType::String, Part::Abs).is_none());
        let item: Vec<u8> = [3_f32, -4.0].iter().flat_map(|item| item.to_le_bytes()).collect();
        for (name, number) in [("abs", 5.0), ("real", 3.0), ("imag", -4.0), ("arg", (-4.0_f64).atan2(3.0))] {
            let part = Part::parse(name).unwrap();
            let mut numbers = Vec::new();
            Decoding::stored(&DataType::Complex64, part).unwrap().numbers(&item, &mut numbers);
            assert_eq!(numbers, [number], "{name}");
        }
    }
}

//! [`Decoding`]: the numbers that elements are drawn as.

use super::numbers::append;
use super::part::Part;
use crate::metadata::DataType;
use crate::reduce::CfValues;

/// What number each element of an array stands for, and which stand for nothing: those that are missing, and NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoding {
    values: CfValues,
    part: Part,
}

impl Decoding {
    /// The elements as they are stored; `None` if elements of this type are not numbers.
    #[must_use]
    pub fn stored(data_type: &DataType, part: Part) -> Option<Self> {
        let values = CfValues::stored(data_type);
        append(&values, part, &[], &mut Vec::new()).then_some(Self { values, part })
    }

    /// The elements of a type as these values; `None` if elements of this type are not numbers.
    #[must_use]
    pub fn cf(data_type: &DataType, part: Part, values: CfValues) -> Option<Self> {
        Some(Self { values, ..Self::stored(data_type, part)? })
    }

    /// The type that elements are read as.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        self.values.data_type()
    }

    /// The number that a stored number stands for.
    #[must_use]
    pub fn unpacked(&self, stored: f64) -> f64 {
        self.values.unpacked(stored)
    }

    /// Whether stored numbers are scaled or shifted.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.values.are_packed()
    }

    /// Whether every element stands for a number.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.values.are_complete()
    }

    /// The numbers of elements in canonical form; NaN where there is none.
    pub(super) fn numbers(&self, items: &[u8], out: &mut Vec<f64>) {
        out.clear();
        append(&self.values, self.part, items, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

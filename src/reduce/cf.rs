//! [`CfValues`]: the values of elements, as stored or decoded (CF conventions 1.12, sections 2.5.1 and 8.1), by the rules of
//! xarray. Statistics and pictures have the same values.

use half::{bf16, f16};

use super::method::{Kind, ReduceError};
use super::missing::{Missing, packing};
use super::number::{Real, RealFloat};
use super::read_as::read_as;
use crate::error::{Classify, ErrorClass};
use crate::metadata::{ArrayMetadata, Attributes, DataType};

/// How elements become values.
#[derive(Clone, Debug, PartialEq)]
pub struct CfValues {
    data_type: DataType,
    missing: Missing,
    /// `scale_factor` and `add_offset`, if there are any.
    packing: Option<(f64, f64)>,
}

/// Why elements have no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CfError {
    /// Elements are no real numbers.
    #[error("statistics are of real numbers; the elements have the type {0}")]
    NotReal(String),
    /// The missing values cannot be compared.
    #[error(transparent)]
    Missing(#[from] ReduceError),
}

impl Classify for CfError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NotReal(_) => ErrorClass::InvalidRequest,
            Self::Missing(error) => error.class(),
        }
    }
}

/// Appends each value as a float64.
struct Numbers<'a>(&'a mut Vec<f64>);

impl Visitor for Numbers<'_> {
    fn integer(&mut self, number: i128) {
        self.0.push(double(number));
    }

    fn float(&mut self, number: f64) {
        self.0.push(number);
    }

    fn missing(&mut self) {
        self.0.push(f64::NAN);
    }
}

/// Appends each value that is an integer.
struct IntegersOf<'a>(&'a mut Vec<i128>);

impl Visitor for IntegersOf<'_> {
    fn integer(&mut self, number: i128) {
        self.0.push(number);
    }

    fn float(&mut self, _number: f64) {}

    fn missing(&mut self) {}
}

/// Takes values, one after the other.
pub trait Visitor {
    /// An integer that is not missing, as it is.
    fn integer(&mut self, number: i128);

    /// Another number, which may be NaN.
    fn float(&mut self, number: f64);

    /// An element that is missing.
    fn missing(&mut self);
}

impl CfValues {
    /// The stored numbers of elements of a type.
    #[must_use]
    pub fn stored(data_type: &DataType) -> Self {
        Self { data_type: data_type.clone(), missing: Missing::default(), packing: None }
    }

    /// The values of elements of a type, as the attributes of their array say: `_Unsigned`, `_FillValue`, `missing_value`,
    /// `scale_factor` and `add_offset`. An attribute of another form than that of the convention counts as absent.
    ///
    /// # Errors
    /// [`ReduceError::MissingValues`].
    pub fn decoded(data_type: &DataType, attributes: &Attributes) -> Result<Self, ReduceError> {
        let missing = Missing::from_attributes(attributes, data_type)?;
        Ok(Self { missing, ..Self::unmasked(data_type, attributes) })
    }

    /// The stored numbers of an array, without those that mark missing elements, and with the sign that `_Unsigned` says.
    ///
    /// # Errors
    /// [`CfError`].
    pub fn present(metadata: &ArrayMetadata) -> Result<Self, CfError> {
        Ok(Self { packing: None, ..Self::of_array(metadata, true)? })
    }

    /// The values of an array: as [`CfValues::decoded`], with its [missing values](Missing::of_array).
    ///
    /// # Errors
    /// [`ReduceError::MissingValues`].
    pub fn of_metadata(metadata: &ArrayMetadata) -> Result<Self, ReduceError> {
        let missing = Missing::of_array(metadata)?;
        Ok(Self { missing, ..Self::unmasked(&metadata.data_type, &metadata.attributes) })
    }

    /// As [`CfValues::decoded`], but no element is missing, as of coordinates.
    #[must_use]
    pub fn unmasked(data_type: &DataType, attributes: &Attributes) -> Self {
        let packing = packing(attributes);
        Self { data_type: read_as(attributes, data_type), missing: Missing::default(), packing }
    }

    /// The values of an array of real numbers: decoded by its attributes, or the stored numbers.
    ///
    /// # Errors
    /// [`CfError`].
    pub fn of_array(metadata: &ArrayMetadata, decodes: bool) -> Result<Self, CfError> {
        let stored = Self::stored(&metadata.data_type);
        if !stored.are_real() {
            return Err(CfError::NotReal(metadata.data_type.name()));
        }
        Ok(if decodes { Self::of_metadata(metadata)? } else { stored })
    }

    /// The type that elements are read as.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Whether elements are real numbers or truth values; the values of others are not known here.
    #[must_use]
    pub fn are_real(&self) -> bool {
        matches!(Kind::of(&self.data_type), Kind::Bool | Kind::Integer | Kind::Float)
    }

    /// The number that a stored number stands for.
    #[must_use]
    pub fn unpacked(&self, stored: f64) -> f64 {
        self.packing.map_or(stored, |(scale, offset)| stored * scale + offset)
    }

    /// `scale_factor` and `add_offset`, if there is one of them.
    #[must_use]
    pub fn packing(&self) -> Option<(f64, f64)> {
        self.packing
    }

    /// The stored numbers that mark missing elements, as the nearest float64.
    #[must_use]
    pub fn missing_numbers(&self) -> Vec<f64> {
        let stored = Self { missing: Missing::default(), packing: None, ..self.clone() };
        let mut numbers = Vec::new();
        for element in self.missing.elements() {
            stored.append_numbers(element, &mut numbers);
        }
        numbers
    }

    /// Appends the values of real elements in canonical form; NaN where an element is missing.
    pub fn append_numbers(&self, items: &[u8], numbers: &mut Vec<f64>) {
        numbers.reserve(items.len() / self.element_bytes().max(1));
        self.visit(items, &mut Numbers(numbers));
    }

    /// The values of real elements in canonical form, exactly; empty unless values are integers.
    #[must_use]
    pub fn integers_of(&self, items: &[u8]) -> Vec<i128> {
        let mut numbers = Vec::with_capacity(items.len() / self.element_bytes().max(1));
        self.visit(items, &mut IntegersOf(&mut numbers));
        numbers
    }

    /// Whether values are floats of at most 32 bits.
    #[must_use]
    pub fn are_single(&self) -> bool {
        self.packing.is_none() && Kind::of(&self.data_type) == Kind::Float && self.element_bytes() <= 4
    }

    /// Whether stored numbers are scaled or shifted.
    #[must_use]
    pub fn are_packed(&self) -> bool {
        self.packing.is_some()
    }

    /// Whether values are integers.
    #[must_use]
    pub fn are_integers(&self) -> bool {
        self.packing.is_none() && Kind::of(&self.data_type) != Kind::Float
    }

    /// Whether every element has a value: no float may be NaN, and none is marked as missing.
    #[must_use]
    pub fn are_complete(&self) -> bool {
        self.are_integers() && self.are_real() && self.missing.elements().next().is_none()
    }

    /// Whether elements are integers without a sign.
    #[must_use]
    pub fn are_unsigned(&self) -> bool {
        matches!(
            self.data_type,
            DataType::UInt2
                | DataType::UInt4
                | DataType::UInt8
                | DataType::UInt16
                | DataType::UInt32
                | DataType::UInt64
        )
    }

    /// The most bytes that the exact sum of values needs, and as many for their squares.
    #[must_use]
    pub fn most_sum_bytes(&self) -> u64 {
        match (&self.data_type, self.packing) {
            (DataType::Float16, None) => 4 * 8,
            (DataType::Float32 | DataType::BFloat16, None) => 12 * 8,
            // All of float64, with a limb for carries; and their squares.
            _ => 70 * 8,
        }
    }

    /// The first of the missing values, as an element in canonical form.
    pub(super) fn first_missing(&self) -> Option<&[u8]> {
        self.missing.elements().next()
    }

    /// Whether there are at most 65536 different values.
    #[must_use]
    pub fn are_few(&self) -> bool {
        self.data_type.element_bytes() <= 2
    }

    /// The bytes of an element.
    #[must_use]
    pub fn element_bytes(&self) -> usize {
        self.data_type.element_bytes()
    }

    /// Gives the values of elements in canonical form to a visitor.
    pub fn visit(&self, items: &[u8], visitor: &mut impl Visitor) {
        match &self.data_type {
            DataType::Bool | DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => {
                self.integers::<u8>(items, visitor);
            }
            DataType::Int2 | DataType::Int4 | DataType::Int8 => self.integers::<i8>(items, visitor),
            DataType::UInt16 => self.integers::<u16>(items, visitor),
            DataType::Int16 => self.integers::<i16>(items, visitor),
            DataType::UInt32 => self.integers::<u32>(items, visitor),
            DataType::Int32 => self.integers::<i32>(items, visitor),
            DataType::Int64 => self.integers::<i64>(items, visitor),
            DataType::UInt64 => self.integers::<u64>(items, visitor),
            DataType::Float16 => self.floats::<f16>(items, visitor),
            DataType::BFloat16 => self.floats::<bf16>(items, visitor),
            DataType::Float32 => self.floats::<f32>(items, visitor),
            DataType::Float64 => self.floats::<f64>(items, visitor),
            _ => {}
        }
    }

    fn missing<T: Real>(&self) -> Vec<T> {
        let elements = self.missing.elements();
        elements.filter_map(|element| T::raw(element).first().copied()).map(T::get).collect()
    }

    fn integers<T: Real + Into<i128>>(&self, items: &[u8], visitor: &mut impl Visitor) {
        let missing = self.missing::<T>();
        for &raw in T::raw(items) {
            let number = T::get(raw);
            if missing.contains(&number) {
                visitor.missing();
            } else if let Some((scale, offset)) = self.packing {
                visitor.float(double(number.into()) * scale + offset);
            } else {
                visitor.integer(number.into());
            }
        }
    }

    fn floats<T: RealFloat>(&self, items: &[u8], visitor: &mut impl Visitor) {
        let missing = self.missing::<T>();
        let (scale, offset) = self.packing.unwrap_or((1.0, 0.0));
        let is_packed = self.packing.is_some();
        for &raw in T::raw(items) {
            let number = T::get(raw);
            if !number.is_nan() && missing.contains(&number) {
                visitor.missing();
            } else {
                let number = number.double();
                visitor.float(if is_packed { number * scale + offset } else { number });
            }
        }
    }
}

/// The nearest float64.
#[expect(clippy::cast_precision_loss, reason = "values are float64")]
pub(super) fn double(number: i128) -> f64 {
    // The processor converts integers of 64 bits; wider ones take a function.
    i64::try_from(number).map_or(number as f64, |number| number as f64)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn decoded(data_type: &DataType, attributes: Value, items: &[u8]) -> Vec<String> {
        let Value::Object(members) = attributes else { panic!("an object") };
        let values = CfValues::decoded(data_type, &Attributes::from(members)).unwrap();
        let mut numbers = Vec::new();
        values.append_numbers(items, &mut numbers);
        numbers.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn packed_values_are_scaled_and_missing_ones_are_not_numbers() {
        let items: Vec<u8> = [4_i16, -1, 7, -3].iter().flat_map(|item| item.to_le_bytes()).collect();
        let missing =
            json!({ "scale_factor": 0.5, "add_offset": 10, "_FillValue": -1, "missing_value": [7, 8] });
        assert_eq!(decoded(&DataType::Int16, missing, &items), ["12", "NaN", "NaN", "8.5"]);
        // xarray writes a list of one number, and NCZarr texts.
        for attributes in [json!({ "scale_factor": [0.5] }), json!({ "scale_factor": "0.5" })] {
            assert_eq!(decoded(&DataType::Int16, attributes, &items), ["2", "-0.5", "3.5", "-1.5"]);
        }
    }

    #[test]
    fn of_a_variable_of_v2_the_fill_value_of_zarr_is_missing_and_of_another_array_it_is_a_number() {
        let items: Vec<u8> = [4_i16, -1].iter().flat_map(|item| item.to_le_bytes()).collect();
        let numbers = |fill: Value, attributes: Value| {
            let document = json!({
                "zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<i2", "fill_value": fill, "order": "C",
                "compressor": null, "filters": null,
            });
            let (document, attributes) = (document.to_string(), attributes.to_string());
            let metadata = crate::metadata::v2::parse_array(
                document.as_bytes(),
                Some(attributes.as_bytes()),
                |_| None,
                &crate::metadata::MetadataLimits::default(),
            );
            let mut numbers = Vec::new();
            CfValues::of_metadata(&metadata.unwrap()).unwrap().append_numbers(&items, &mut numbers);
            numbers.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(numbers(json!(-1), json!({ "scale_factor": 0.5 })), ["2", "NaN"]);
        assert_eq!(numbers(json!(-1), json!({ "units": "K" })), ["4", "-1"]);
        assert_eq!(numbers(json!(null), json!({ "scale_factor": 0.5 })), ["2", "-0.5"]);
        let named = json!({ "_ARRAY_DIMENSIONS": ["x"], "_FillValue": 4 });
        assert_eq!(
            numbers(json!(-1), named.clone()),
            ["4", "NaN"],
            "in place of the attribute, as for xarray"
        );
        assert_eq!(numbers(json!(null), named), ["NaN", "-1"]);
    }

    #[test]
    fn what_marks_missing_elements_is_known_as_numbers() {
        let Value::Object(members) = json!({ "_FillValue": "AAAAAACAj8A=", "missing_value": [0.1, 7] })
        else {
            panic!("an object")
        };
        let attributes = Attributes::from(members);
        let numbers = |data_type| CfValues::decoded(data_type, &attributes).unwrap().missing_numbers();
        assert_eq!(numbers(&DataType::Float64), [-1008.0, 0.1, 7.0]);
        assert_eq!(numbers(&DataType::Float32), [-1008.0, f64::from(0.1_f32), 7.0]);
    }

    #[test]
    fn bytes_that_are_unsigned_have_unsigned_missing_values() {
        for fill in [-1, 255] {
            let attributes = json!({ "_Unsigned": "true", "_FillValue": fill });
            assert_eq!(decoded(&DataType::Int8, attributes, &[0xff, 0x80, 1]), ["NaN", "128", "1"]);
        }
        let attributes = json!({ "_Unsigned": "false", "_FillValue": -128 });
        assert_eq!(decoded(&DataType::UInt8, attributes, &[0xff, 0x80, 1]), ["-1", "NaN", "1"]);
        assert_eq!(decoded(&DataType::UInt8, json!({ "_Unsigned": 7 }), &[0xff]), ["255"]);
    }

    #[test]
    fn a_missing_float_is_compared_in_the_type_of_the_elements() {
        let items: Vec<u8> = [1e20_f32, 0.1, 2.0].iter().flat_map(|item| item.to_le_bytes()).collect();
        let attributes = json!({ "_FillValue": 1e20, "missing_value": 0.1 });
        assert_eq!(decoded(&DataType::Float32, attributes, &items), ["NaN", "NaN", "2"]);
        let attributes = json!({ "_FillValue": "AAAAAAAAAEA=" });
        assert_eq!(decoded(&DataType::Float64, attributes, &2_f64.to_le_bytes()), ["NaN"]);
        let attributes = json!({ "_FillValue": {}, "scale_factor": "x", "missing_value": null });
        assert_eq!(decoded(&DataType::Float64, attributes, &2_f64.to_le_bytes()), ["2"]);
    }

    #[test]
    fn missing_integers_are_exact() {
        let items: Vec<u8> = [u64::MAX, u64::MAX - 1].iter().flat_map(|item| item.to_le_bytes()).collect();
        let numbers = decoded(&DataType::UInt64, json!({ "_FillValue": u64::MAX }), &items);
        assert_eq!(numbers[0], "NaN");
        assert_ne!(numbers[1], "NaN");
    }
}

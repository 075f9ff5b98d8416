//! Elements as nested JSON lists, written piece by piece (RFC 8259).
//!
//! Numbers are the shortest text that reads back as the same element of its own type, integers are exact. The
//! spelling of complex numbers and raw bits is that of fill values (Zarr core 3.1, "Permitted fill values"). Names,
//! shapes and whatever else surrounds the lists is not written here.

use std::io::Write as _;

use super::RenderError;
use crate::metadata::{DataType, float16_to_print};

/// What stands for a float that JSON has no number for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NanMode {
    /// `"NaN"`, `"Infinity"` and `"-Infinity"`.
    #[default]
    String,
    /// `null` for all three.
    Null,
}

/// The most bytes that the lists of an array of this shape may take (saturated).
///
/// Known from type and shape alone, and never less than what is written: brackets count even where there are no
/// elements, as in a shape of `[1 << 40, 0]`.
#[must_use]
pub fn json_bytes_estimate(data_type: DataType, shape: &[u64]) -> u64 {
    let mut lists: u64 = 1;
    let mut brackets: u64 = 0;
    for &length in shape {
        brackets = brackets.saturating_add(lists.saturating_mul(3));
        lists = lists.saturating_mul(length);
        if length == 0 {
            break;
        }
    }
    lists.saturating_mul(longest_text(data_type).saturating_add(1)).saturating_add(brackets)
}

/// The longest text of one element.
fn longest_text(data_type: DataType) -> u64 {
    match data_type {
        DataType::UInt8 => 3,
        DataType::Int8 => 4,
        DataType::Bool | DataType::UInt16 => 5,
        DataType::Int16 => 6,
        DataType::UInt32 => 10,
        DataType::Int32 => 11,
        DataType::Float16 => 16,
        DataType::UInt64 | DataType::Int64 | DataType::Float32 => 20,
        DataType::Float64 => 26,
        DataType::Complex64 => 20 * 2 + 3,
        DataType::Complex128 => 26 * 2 + 3,
        DataType::RawBits { bytes } => u64::from(bytes) * 4 + 2,
    }
}

/// Writes the elements of one array as nested lists; rank 0 is the bare element.
#[derive(Debug)]
pub struct JsonWriter {
    data_type: DataType,
    nan: NanMode,
    shape: Vec<u64>,
    /// Elements written.
    written: u64,
    /// Elements of the whole array.
    total: u64,
}

impl JsonWriter {
    /// A writer for an array of this type and shape.
    ///
    /// # Errors
    /// [`RenderError::TooLarge`] if [`json_bytes_estimate`] is above `limit_bytes`.
    pub fn new(
        data_type: DataType,
        shape: &[u64],
        nan: NanMode,
        limit_bytes: u64,
    ) -> Result<Self, RenderError> {
        let bytes = json_bytes_estimate(data_type, shape);
        if bytes > limit_bytes {
            return Err(RenderError::TooLarge { bytes, limit: limit_bytes });
        }
        let empty = shape.contains(&0);
        let total =
            if empty { 0 } else { shape.iter().fold(1, |total: u64, &length| total.saturating_mul(length)) };
        Ok(Self { data_type, nan, shape: shape.to_vec(), written: 0, total })
    }

    /// Appends the text of the next elements: whole ones, in C order and canonical form, of any number.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if they are more than the shape has, or the last is not whole.
    pub fn write(&mut self, elements: &[u8], out: &mut Vec<u8>) -> Result<(), RenderError> {
        for element in elements.chunks(self.data_type.item_bytes()) {
            if self.written == self.total {
                return Err(RenderError::ElementCount);
            }
            self.separate(out);
            write_element(self.data_type, self.nan, element, out).ok_or(RenderError::ElementCount)?;
            self.written += 1;
        }
        Ok(())
    }

    /// Appends what ends the lists.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if elements are missing.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<(), RenderError> {
        if self.written != self.total {
            return Err(RenderError::ElementCount);
        }
        if self.total == 0 {
            out.extend_from_slice(&empty_lists(&self.shape));
        } else {
            out.extend(std::iter::repeat_n(b']', self.shape.len()));
        }
        Ok(())
    }

    /// What stands before the next element: the brackets of the lists that end and begin there.
    fn separate(&self, out: &mut Vec<u8>) {
        if self.written == 0 {
            out.extend(std::iter::repeat_n(b'[', self.shape.len()));
            return;
        }
        let mut inner: u64 = 1;
        let mut ended = 0;
        // The lengths are not 0 here, and their product does not overflow: it is at most `total`.
        for &length in self.shape.iter().rev() {
            inner = inner.saturating_mul(length);
            if !self.written.is_multiple_of(inner) {
                break;
            }
            ended += 1;
        }
        out.extend(std::iter::repeat_n(b']', ended));
        out.push(b',');
        out.extend(std::iter::repeat_n(b'[', ended));
    }
}

/// The lists of an array without elements: `[[],[]]` for a shape of `[2, 0, 5]`.
fn empty_lists(shape: &[u64]) -> Vec<u8> {
    let outer: Vec<u64> = shape.iter().copied().take_while(|&length| length != 0).collect();
    let mut text = b"[]".to_vec();
    for &length in outer.iter().rev() {
        let mut list = vec![b'['];
        for index in 0..length {
            if index > 0 {
                list.push(b',');
            }
            list.extend_from_slice(&text);
        }
        list.push(b']');
        text = list;
    }
    text
}

/// Appends one element; `None` if it has not the length of its type.
fn write_element(data_type: DataType, nan: NanMode, element: &[u8], out: &mut Vec<u8>) -> Option<()> {
    // Writing to a vector does not fail.
    let _ = match data_type {
        DataType::Bool => write!(out, "{}", u8::from_le_bytes(element.try_into().ok()?) != 0),
        DataType::Int8 => write!(out, "{}", i8::from_le_bytes(element.try_into().ok()?)),
        DataType::Int16 => write!(out, "{}", i16::from_le_bytes(element.try_into().ok()?)),
        DataType::Int32 => write!(out, "{}", i32::from_le_bytes(element.try_into().ok()?)),
        DataType::Int64 => write!(out, "{}", i64::from_le_bytes(element.try_into().ok()?)),
        DataType::UInt8 => write!(out, "{}", u8::from_le_bytes(element.try_into().ok()?)),
        DataType::UInt16 => write!(out, "{}", u16::from_le_bytes(element.try_into().ok()?)),
        DataType::UInt32 => write!(out, "{}", u32::from_le_bytes(element.try_into().ok()?)),
        DataType::UInt64 => write!(out, "{}", u64::from_le_bytes(element.try_into().ok()?)),
        DataType::Float16 => match float16_to_print(u16::from_le_bytes(element.try_into().ok()?)) {
            // The debug form is the display form with an exponent where that is shorter.
            float if float.is_finite() => write!(out, "{float:?}"),
            float => write!(out, "{}", not_finite(float.is_nan(), float > 0.0, nan)),
        },
        DataType::Float32 => match f32::from_le_bytes(element.try_into().ok()?) {
            float if float.is_finite() => write!(out, "{float:?}"),
            float => write!(out, "{}", not_finite(float.is_nan(), float > 0.0, nan)),
        },
        DataType::Float64 => match f64::from_le_bytes(element.try_into().ok()?) {
            float if float.is_finite() => write!(out, "{float:?}"),
            float => write!(out, "{}", not_finite(float.is_nan(), float > 0.0, nan)),
        },
        DataType::Complex64 => return write_pair(DataType::Float32, nan, element, out),
        DataType::Complex128 => return write_pair(DataType::Float64, nan, element, out),
        DataType::RawBits { .. } => return write_raw(data_type, element, out),
    };
    Some(())
}

fn not_finite(is_nan: bool, positive: bool, nan: NanMode) -> &'static str {
    match (nan, is_nan, positive) {
        (NanMode::Null, ..) => "null",
        (NanMode::String, true, _) => "\"NaN\"",
        (NanMode::String, false, true) => "\"Infinity\"",
        (NanMode::String, false, false) => "\"-Infinity\"",
    }
}

fn write_pair(half: DataType, nan: NanMode, element: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (real, imaginary) = element.split_at_checked(half.item_bytes())?;
    out.push(b'[');
    write_element(half, nan, real, out)?;
    out.push(b',');
    write_element(half, nan, imaginary, out)?;
    out.push(b']');
    Some(())
}

fn write_raw(data_type: DataType, element: &[u8], out: &mut Vec<u8>) -> Option<()> {
    if element.len() != data_type.item_bytes() {
        return None;
    }
    for (index, byte) in element.iter().enumerate() {
        out.push(if index == 0 { b'[' } else { b',' });
        let _ = write!(out, "{byte}");
    }
    out.push(b']');
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::metadata::FillValue;

    fn rendered(
        data_type: DataType,
        shape: &[u64],
        elements: &[u8],
        nan: NanMode,
    ) -> Result<String, RenderError> {
        let mut out = Vec::new();
        let mut writer = JsonWriter::new(data_type, shape, nan, 1 << 20)?;
        writer.write(elements, &mut out)?;
        writer.finish(&mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    /// The text of elements in one list.
    fn list(data_type: DataType, elements: &[&[u8]]) -> String {
        let count = u64::try_from(elements.len()).unwrap();
        rendered(data_type, &[count], &elements.concat(), NanMode::String).unwrap()
    }

    fn bytes(shape: &[u64]) -> Result<String, RenderError> {
        let count = u8::try_from(shape.iter().product::<u64>()).unwrap();
        rendered(DataType::UInt8, shape, &(0..count).collect::<Vec<_>>(), NanMode::String)
    }

    #[test]
    fn lists_are_nested_as_the_shape_is() {
        assert_eq!(bytes(&[]).unwrap(), "0");
        assert_eq!(bytes(&[1]).unwrap(), "[0]");
        assert_eq!(bytes(&[3]).unwrap(), "[0,1,2]");
        assert_eq!(bytes(&[2, 3]).unwrap(), "[[0,1,2],[3,4,5]]");
        assert_eq!(bytes(&[2, 1, 2]).unwrap(), "[[[0,1]],[[2,3]]]");
        assert_eq!(bytes(&[1, 3, 1]).unwrap(), "[[[0],[1],[2]]]");
        assert_eq!(bytes(&[2, 2, 2]).unwrap(), "[[[0,1],[2,3]],[[4,5],[6,7]]]");
    }

    #[test]
    fn an_array_without_elements_is_empty_lists() {
        assert_eq!(bytes(&[0]).unwrap(), "[]");
        assert_eq!(bytes(&[0, 5]).unwrap(), "[]");
        assert_eq!(bytes(&[2, 0]).unwrap(), "[[],[]]");
        assert_eq!(bytes(&[2, 0, 7]).unwrap(), "[[],[]]");
        assert_eq!(bytes(&[1, 2, 0]).unwrap(), "[[[],[]]]");
    }

    #[test]
    fn integers_are_exact() {
        assert_eq!(list(DataType::Int8, &[&[0x80], &[0x7f]]), "[-128,127]");
        assert_eq!(list(DataType::UInt8, &[&[255]]), "[255]");
        assert_eq!(list(DataType::Int16, &[&i16::MIN.to_le_bytes()]), "[-32768]");
        assert_eq!(list(DataType::UInt16, &[&u16::MAX.to_le_bytes()]), "[65535]");
        assert_eq!(list(DataType::Int32, &[&i32::MIN.to_le_bytes()]), "[-2147483648]");
        assert_eq!(list(DataType::UInt32, &[&u32::MAX.to_le_bytes()]), "[4294967295]");
        assert_eq!(list(DataType::Int64, &[&i64::MIN.to_le_bytes()]), "[-9223372036854775808]");
        assert_eq!(list(DataType::UInt64, &[&u64::MAX.to_le_bytes()]), "[18446744073709551615]");
    }

    #[test]
    fn a_bool_is_true_or_false() {
        assert_eq!(list(DataType::Bool, &[&[0], &[1]]), "[false,true]");
    }

    #[test]
    fn a_float_is_the_shortest_text_for_its_own_type() {
        assert_eq!(list(DataType::Float16, &[&[0x66, 0x2e], &[1, 0], &[0, 0x3c]]), "[0.1,6e-8,1.0]");
        let singles = [0.1_f32, -0.0, 1e20, f32::MIN_POSITIVE].map(f32::to_le_bytes);
        let singles: Vec<&[u8]> = singles.iter().map(<[u8; 4]>::as_slice).collect();
        assert_eq!(list(DataType::Float32, &singles), "[0.1,-0.0,1e20,1.1754944e-38]");
        let doubles = [0.1_f64, 5e-324, f64::MAX].map(f64::to_le_bytes);
        let doubles: Vec<&[u8]> = doubles.iter().map(<[u8; 8]>::as_slice).collect();
        assert_eq!(list(DataType::Float64, &doubles), "[0.1,5e-324,1.7976931348623157e308]");
    }

    #[test]
    fn what_json_has_no_number_for_is_a_string_or_null() {
        let singles = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY].map(f32::to_le_bytes).concat();
        let doubles = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(f64::to_le_bytes).concat();
        let halves = [0x01_u8, 0xfe, 0x00, 0x7c, 0x00, 0xfc];
        for (data_type, elements) in [
            (DataType::Float16, &halves as &[u8]),
            (DataType::Float32, &singles),
            (DataType::Float64, &doubles),
        ] {
            let strings = rendered(data_type, &[3], elements, NanMode::String);
            assert_eq!(strings.unwrap(), r#"["NaN","Infinity","-Infinity"]"#);
            assert_eq!(rendered(data_type, &[3], elements, NanMode::Null).unwrap(), "[null,null,null]");
        }
    }

    #[test]
    fn a_complex_number_is_a_pair() {
        let element = [1.5_f32.to_le_bytes(), f32::NAN.to_le_bytes()].concat();
        assert_eq!(rendered(DataType::Complex64, &[], &element, NanMode::String).unwrap(), "[1.5,\"NaN\"]");
        let element = [1.5_f64.to_le_bytes(), (-2.0_f64).to_le_bytes()].concat();
        assert_eq!(list(DataType::Complex128, &[&element, &element]), "[[1.5,-2.0],[1.5,-2.0]]");
    }

    #[test]
    fn raw_bits_are_a_list_of_bytes() {
        assert_eq!(list(DataType::RawBits { bytes: 2 }, &[&[0, 255], &[1, 2]]), "[[0,255],[1,2]]");
    }

    #[test]
    fn too_few_or_too_many_elements_are_an_error() {
        for (shape, elements) in [
            (&[2_u64] as &[u64], &[0_u8, 0] as &[u8]),
            (&[2], &[0; 6]),
            (&[2], &[0; 3]),
            (&[], &[]),
            (&[0], &[0; 2]),
        ] {
            let result = rendered(DataType::Int16, shape, elements, NanMode::String);
            assert_eq!(result, Err(RenderError::ElementCount), "{shape:?}");
        }
        let raw = rendered(DataType::RawBits { bytes: 3 }, &[1], &[1, 2], NanMode::String);
        assert_eq!(raw, Err(RenderError::ElementCount));
    }

    #[test]
    fn an_answer_that_may_be_too_large_is_refused_before_it_is_written() {
        for shape in [&[1_u64 << 40, 0] as &[u64], &[1 << 62, 1 << 62], &[u64::MAX, u64::MAX, 0], &[1 << 20]]
        {
            let result = JsonWriter::new(DataType::UInt8, shape, NanMode::String, 1 << 20);
            assert!(matches!(result, Err(RenderError::TooLarge { .. })), "{shape:?}");
        }
        assert!(JsonWriter::new(DataType::UInt8, &[0, 1 << 40], NanMode::String, 1 << 20).is_ok());
    }

    fn any_data_type() -> impl Strategy<Value = DataType> {
        prop::sample::select(vec![
            DataType::Bool,
            DataType::Int8,
            DataType::Int16,
            DataType::Int32,
            DataType::Int64,
            DataType::UInt8,
            DataType::UInt16,
            DataType::UInt32,
            DataType::UInt64,
            DataType::Float16,
            DataType::Float32,
            DataType::Float64,
            DataType::Complex64,
            DataType::Complex128,
            DataType::RawBits { bytes: 3 },
        ])
    }

    proptest! {
        #[test]
        fn the_estimate_is_never_too_small_and_pieces_make_no_difference(
            data_type in any_data_type(),
            shape in prop::collection::vec(0_u64..4, 0..4),
            random in prop::collection::vec(any::<u8>(), 27 * 16),
            piece in 1_usize..5,
        ) {
            let count = usize::try_from(shape.iter().product::<u64>()).unwrap();
            let elements = &random[..count * data_type.item_bytes()];
            let whole = rendered(data_type, &shape, elements, NanMode::String).unwrap();
            prop_assert!(u64::try_from(whole.len()).unwrap() <= json_bytes_estimate(data_type, &shape), "{}", whole);
            let mut out = Vec::new();
            let mut writer = JsonWriter::new(data_type, &shape, NanMode::String, 1 << 20).unwrap();
            for part in elements.chunks(piece * data_type.item_bytes()) {
                writer.write(part, &mut out).unwrap();
            }
            writer.finish(&mut out).unwrap();
            prop_assert_eq!(String::from_utf8(out).unwrap(), whole);
        }

        #[test]
        fn an_element_reads_back_as_what_it_was(
            data_type in any_data_type(), random in prop::array::uniform16(any::<u8>()),
        ) {
            let element = FillValue::from_bytes(&random[..data_type.item_bytes()]);
            let text = rendered(data_type, &[], element.as_bytes(), NanMode::String).unwrap();
            // Of a NaN the payload is lost, of a bool which of the true bytes it was.
            prop_assume!(!text.contains("NaN") && data_type != DataType::Bool);
            let limits = crate::metadata::MetadataLimits::default();
            let value = crate::metadata::parse_document(text.as_bytes(), &limits).unwrap();
            prop_assert_eq!(FillValue::from_v3(data_type, Some(&value)), Ok(element));
        }
    }
}

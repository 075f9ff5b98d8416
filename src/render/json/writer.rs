//! [`JsonWriter`]: writes elements as nested JSON lists, piece by piece (RFC 8259).
//!
//! This is the format `json`. The module `element` writes one element. Names and shapes are not part of this text.

use super::element::{max_text_bytes, write_element};
use crate::chunk::Elements;
use crate::metadata::DataType;
use crate::render::format::{Encoding, Format};
use crate::render::size::{check_bytes, product};
use crate::render::{NanMode, RenderError, Writer};

pub(in crate::render) const FORMAT: Format = Format {
    name: "json",
    media_type: "application/json",
    extension: "json",
    description: "nested lists. Structs are objects, and dates are ISO 8601 strings",
    header_line: None,
    encoding: Encoding::Written {
        max_bytes: |schema| max_bytes(&schema.data_type, &schema.shape),
        writer: |options, schema, limit| {
            Ok(Box::new(JsonWriter::new(&schema.data_type, &schema.shape, options.nan, limit)?))
        },
    },
};

/// An upper bound of the bytes of an array of this type and shape as nested lists (saturated).
///
/// The bound counts brackets even where there are no elements, as in a shape of `[1 << 40, 0]`. It counts elements of
/// variable length as empty.
fn max_bytes(data_type: &DataType, shape: &[u64]) -> u64 {
    let mut lists: u64 = 1;
    let mut brackets: u64 = 0;
    for &length in shape {
        brackets = brackets.saturating_add(lists.saturating_mul(3));
        lists = lists.saturating_mul(length);
        if length == 0 {
            break;
        }
    }
    lists.saturating_mul(max_text_bytes(data_type).saturating_add(1)).saturating_add(brackets)
}

/// Writes the elements of one array as nested lists; rank 0 is the bare element.
#[derive(Debug)]
pub(in crate::render) struct JsonWriter {
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
    /// [`RenderError::TooLarge`] if [`max_bytes`] is above `limit_bytes`.
    pub(in crate::render) fn new(
        data_type: &DataType,
        shape: &[u64],
        nan: NanMode,
        limit_bytes: u64,
    ) -> Result<Self, RenderError> {
        check_bytes(max_bytes(data_type, shape), limit_bytes)?;
        let total = product(shape);
        Ok(Self { data_type: data_type.clone(), nan, shape: shape.to_vec(), written: 0, total })
    }

    fn write_next(&mut self, element: &[u8], out: &mut Vec<u8>) -> Result<(), RenderError> {
        if self.written == self.total {
            return Err(RenderError::ElementCount);
        }
        self.write_separator(out);
        write_element(&self.data_type, self.nan, element, out)?;
        self.written += 1;
        Ok(())
    }

    /// Writes the separator before the next element: a comma, and the brackets of the lists that end and begin there.
    fn write_separator(&self, out: &mut Vec<u8>) {
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

impl Writer for JsonWriter {
    fn write(&mut self, elements: &Elements, out: &mut Vec<u8>) -> Result<(), RenderError> {
        let data_type = self.data_type.clone();
        elements.try_for_each(&data_type, |element| self.write_next(element, out))
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::metadata::{FillValue, SmallFloat, TimeUnit};
    use crate::render::test_elements::{fixed, step, structure, subarray, variable, write_all};

    fn rendered(
        data_type: &DataType,
        shape: &[u64],
        elements: &[u8],
        nan: NanMode,
    ) -> Result<String, RenderError> {
        let writer = JsonWriter::new(data_type, shape, nan, 1 << 20)?;
        Ok(String::from_utf8(write_all(writer, &[fixed(&[elements])])?).unwrap())
    }

    /// The text of a list of elements.
    fn list(data_type: &DataType, elements: &[&[u8]]) -> String {
        let count = u64::try_from(elements.len()).unwrap();
        rendered(data_type, &[count], &elements.concat(), NanMode::String).unwrap()
    }

    fn bytes(shape: &[u64]) -> Result<String, RenderError> {
        let count = u8::try_from(shape.iter().product::<u64>()).unwrap();
        rendered(&DataType::UInt8, shape, &(0..count).collect::<Vec<_>>(), NanMode::String)
    }

    #[test]
    fn lists_are_nested_as_the_shape_says() {
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
    fn integers_are_written_exactly() {
        assert_eq!(list(&DataType::Int8, &[&[0x80], &[0x7f]]), "[-128,127]");
        assert_eq!(list(&DataType::UInt8, &[&[255]]), "[255]");
        assert_eq!(list(&DataType::Int16, &[&i16::MIN.to_le_bytes()]), "[-32768]");
        assert_eq!(list(&DataType::UInt16, &[&u16::MAX.to_le_bytes()]), "[65535]");
        assert_eq!(list(&DataType::Int32, &[&i32::MIN.to_le_bytes()]), "[-2147483648]");
        assert_eq!(list(&DataType::UInt32, &[&u32::MAX.to_le_bytes()]), "[4294967295]");
        assert_eq!(list(&DataType::Int64, &[&i64::MIN.to_le_bytes()]), "[-9223372036854775808]");
        assert_eq!(list(&DataType::UInt64, &[&u64::MAX.to_le_bytes()]), "[18446744073709551615]");
    }

    #[test]
    fn booleans_are_true_and_false() {
        assert_eq!(list(&DataType::Bool, &[&[0], &[1]]), "[false,true]");
    }

    #[test]
    fn a_float_is_the_shortest_text_for_its_own_type() {
        assert_eq!(list(&DataType::Float16, &[&[0x66, 0x2e], &[1, 0], &[0, 0x3c]]), "[0.1,6e-8,1.0]");
        let singles = [0.1_f32, -0.0, 1e20, f32::MIN_POSITIVE].map(f32::to_le_bytes);
        let singles: Vec<&[u8]> = singles.iter().map(<[u8; 4]>::as_slice).collect();
        assert_eq!(list(&DataType::Float32, &singles), "[0.1,-0.0,1e20,1.1754944e-38]");
        let doubles = [0.1_f64, 5e-324, f64::MAX].map(f64::to_le_bytes);
        let doubles: Vec<&[u8]> = doubles.iter().map(<[u8; 8]>::as_slice).collect();
        assert_eq!(list(&DataType::Float64, &doubles), "[0.1,5e-324,1.7976931348623157e308]");
    }

    #[test]
    fn types_below_a_byte_and_bfloat16_are_numbers() {
        assert_eq!(list(&DataType::Int2, &[&[0xfe], &[1]]), "[-2,1]");
        assert_eq!(list(&DataType::Int4, &[&[0xf8], &[7]]), "[-8,7]");
        assert_eq!(list(&DataType::UInt2, &[&[3]]), "[3]");
        assert_eq!(list(&DataType::UInt4, &[&[15]]), "[15]");
        let brains = [0x3dcd_u16, 0x7f7f, 0xff80, 0x7fc1].map(u16::to_le_bytes);
        let brains: Vec<&[u8]> = brains.iter().map(<[u8; 2]>::as_slice).collect();
        assert_eq!(list(&DataType::BFloat16, &brains), r#"[0.1,3.39e38,"-Infinity","NaN"]"#);
    }

    #[test]
    fn nan_and_infinities_are_strings_or_null() {
        let singles = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY].map(f32::to_le_bytes).concat();
        let doubles = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(f64::to_le_bytes).concat();
        let halves = [0x01_u8, 0xfe, 0x00, 0x7c, 0x00, 0xfc];
        for (data_type, elements) in [
            (DataType::Float16, &halves as &[u8]),
            (DataType::Float32, &singles),
            (DataType::Float64, &doubles),
        ] {
            let strings = rendered(&data_type, &[3], elements, NanMode::String);
            assert_eq!(strings.unwrap(), r#"["NaN","Infinity","-Infinity"]"#);
            assert_eq!(rendered(&data_type, &[3], elements, NanMode::Null).unwrap(), "[null,null,null]");
        }
    }

    #[test]
    fn a_complex_number_is_a_pair() {
        let element = [1.5_f32.to_le_bytes(), f32::NAN.to_le_bytes()].concat();
        assert_eq!(rendered(&DataType::Complex64, &[], &element, NanMode::String).unwrap(), "[1.5,\"NaN\"]");
        let element = [1.5_f64.to_le_bytes(), (-2.0_f64).to_le_bytes()].concat();
        assert_eq!(list(&DataType::Complex128, &[&element, &element]), "[[1.5,-2.0],[1.5,-2.0]]");
    }

    #[test]
    fn raw_bits_are_a_list_of_bytes() {
        assert_eq!(list(&DataType::RawBits { bytes: 2 }, &[&[0, 255], &[1, 2]]), "[[0,255],[1,2]]");
    }

    /// The text of a list of elements of variable length.
    fn variable_list(data_type: &DataType, elements: &[&[u8]]) -> String {
        let shape = [elements.len() as u64];
        let writer = JsonWriter::new(data_type, &shape, NanMode::String, 1 << 20).unwrap();
        String::from_utf8(write_all(writer, &[variable(elements)]).unwrap()).unwrap()
    }

    #[test]
    fn a_struct_is_an_object_with_nested_lists_and_objects() {
        let point = structure(&[("x", DataType::Int16), ("y\"", DataType::Float32)]);
        let data_type = structure(&[
            ("p", point),
            ("q", subarray(DataType::UInt8, &[2, 3])),
            ("s", DataType::NullTerminatedBytes { bytes: 2 }),
        ]);
        let element = [&[0xff, 0xff][..], &f32::NAN.to_le_bytes(), &[1, 2, 3, 4, 5, 6], b"a\0"].concat();
        let text = r#"[{"p":{"x":-1,"y\"":"NaN"},"q":[[1,2,3],[4,5,6]],"s":"a"}]"#;
        assert_eq!(list(&data_type, &[&element]), text);
    }

    #[test]
    fn elements_of_variable_length_are_strings_lists_and_values() {
        let texts: [&[u8]; 4] = [b"", "d\u{e9} \"\\\n".as_bytes(), b"\0", "\u{1f600}".as_bytes()];
        let text = "[\"\",\"d\u{e9} \\\"\\\\\\u000a\",\"\\u0000\",\"\u{1f600}\"]";
        assert_eq!(variable_list(&DataType::String, &texts), text);
        assert_eq!(variable_list(&DataType::VariableBytes, &[b"", b"a\0\xff"]), "[[],[97,0,255]]");
        let values: [&[u8]; 3] = [b"null", br#"{"a":[1.50,"b"]}"#, b"-1"];
        assert_eq!(variable_list(&DataType::Json, &values), r#"[null,{"a":[1.50,"b"]},-1]"#);
        let arrays = DataType::VariableArray(std::sync::Arc::new(DataType::Int16));
        assert_eq!(variable_list(&arrays, &[b"", &[1, 0, 0xff, 0xff]]), "[[],[1,-1]]");
    }

    #[test]
    fn small_floats_are_their_shortest_text_and_nan_is_a_string() {
        let float = |name: &str| DataType::SmallFloat(SmallFloat::from_name(name).unwrap());
        assert_eq!(
            list(&float("float8_e4m3fn"), &[&[0x38], &[0x7f], &[0xff], &[0xb9]]),
            r#"[1.0,"NaN","NaN",-1.1]"#
        );
        let all = list(&float("float8_e5m2"), &[&[0x7c], &[0xfc], &[0x7d], &[0x80]]);
        assert_eq!(all, r#"["Infinity","-Infinity","NaN",-0.0]"#);
        assert_eq!(list(&float("float4_e2m1fn"), &[&[1], &[7], &[15]]), "[0.5,6.0,-6.0]");
    }

    #[test]
    fn complex_numbers_of_small_floats_are_pairs() {
        assert_eq!(list(&DataType::ComplexFloat16, &[&[0x66, 0x2e, 0, 0xfc]]), r#"[[0.1,"-Infinity"]]"#);
        assert_eq!(list(&DataType::ComplexBFloat16, &[&[0xcd, 0x3d, 0xc0, 0x7f]]), r#"[[0.1,"NaN"]]"#);
        let small = DataType::ComplexSmallFloat(SmallFloat::from_name("float8_e4m3fn").unwrap());
        assert_eq!(list(&small, &[&[0x38, 0x7f]]), r#"[[1.0,"NaN"]]"#);
    }

    #[test]
    fn a_date_is_a_string_and_a_time_span_a_number() {
        let elements = [1_709_210_096_i64, -1, i64::MIN].map(i64::to_le_bytes).concat();
        let rendered = |data_type, nan| rendered(&data_type, &[3], &elements, nan).unwrap();
        let date = DataType::DateTime64(step(TimeUnit::Second));
        let dates = r#"["2024-02-29T12:34:56","1969-12-31T23:59:59","NaT"]"#;
        assert_eq!(rendered(date.clone(), NanMode::String), dates);
        assert_eq!(rendered(date, NanMode::Null), dates.replace("\"NaT\"", "null"));
        let span = DataType::TimeDelta64(step(TimeUnit::Second));
        assert_eq!(rendered(span.clone(), NanMode::String), r#"[1709210096,-1,"NaT"]"#);
        assert_eq!(rendered(span, NanMode::Null), "[1709210096,-1,null]");
        let generic = DataType::DateTime64(step(TimeUnit::Generic));
        assert_eq!(rendered(generic, NanMode::Null), "[1709210096,-1,null]");
    }

    #[test]
    fn text_is_a_string_without_padding_zeros() {
        let bytes = DataType::NullTerminatedBytes { bytes: 4 };
        let elements: [&[u8]; 4] = [b"ab\0\0", b"\0\0\0\0", b"a\0b\n", "é\"\\".as_bytes()];
        assert_eq!(list(&bytes, &elements), r#"["ab","","a\u0000b\u000a","é\"\\\\"]"#);
        let text = DataType::FixedLengthUtf32 { code_points: 2 };
        let elements = [['日', '\0'], ['\u{1f600}', '\u{7f}'], ['\0', '\0'], ['\0', '/']]
            .map(|text| text.map(|it| u32::from(it).to_le_bytes()).concat());
        let elements: Vec<&[u8]> = elements.iter().map(Vec::as_slice).collect();
        assert_eq!(list(&text, &elements), "[\"日\",\"\u{1f600}\u{7f}\",\"\",\"\\u0000/\"]");
    }

    #[test]
    fn different_bytes_that_are_not_utf8_have_different_text() {
        let bytes = DataType::NullTerminatedBytes { bytes: 4 };
        let elements: [&[u8]; 4] = [b"\xe9t\0\0", b"\0\xff\0\0", b"ete\0", b"\\xe9"];
        assert_eq!(list(&bytes, &elements), r#"["\\xe9t","\u0000\\xff","ete","\\\\xe9"]"#);
    }

    #[test]
    fn text_with_numbers_that_are_no_unicode_scalar_values_is_rejected() {
        let text = DataType::FixedLengthUtf32 { code_points: 1 };
        for number in [0xd800_u32, 0xdfff, 0x11_0000, u32::MAX] {
            let result = rendered(&text, &[1], &number.to_le_bytes(), NanMode::String);
            assert_eq!(result, Err(RenderError::NotText { number }));
        }
    }

    #[test]
    fn too_few_and_too_many_elements_are_rejected() {
        for (shape, elements) in [
            (&[2_u64] as &[u64], &[0_u8, 0] as &[u8]),
            (&[2], &[0; 6]),
            (&[2], &[0; 3]),
            (&[], &[]),
            (&[0], &[0; 2]),
        ] {
            let result = rendered(&DataType::Int16, shape, elements, NanMode::String);
            assert_eq!(result, Err(RenderError::ElementCount), "{shape:?}");
        }
        for data_type in [
            DataType::RawBits { bytes: 3 },
            DataType::NullTerminatedBytes { bytes: 3 },
            DataType::FixedLengthUtf32 { code_points: 1 },
            DataType::DateTime64(step(TimeUnit::Day)),
            DataType::TimeDelta64(step(TimeUnit::Day)),
        ] {
            let result = rendered(&data_type, &[1], &[1, 0], NanMode::String);
            assert_eq!(result, Err(RenderError::ElementCount), "{data_type:?}");
        }
    }

    #[test]
    fn a_response_that_may_be_too_large_is_rejected_before_writing() {
        for shape in [&[1_u64 << 40, 0] as &[u64], &[1 << 62, 1 << 62], &[u64::MAX, u64::MAX, 0], &[1 << 20]]
        {
            let result = JsonWriter::new(&DataType::UInt8, shape, NanMode::String, 1 << 20);
            assert!(matches!(result, Err(RenderError::TooLarge { .. })), "{shape:?}");
        }
        assert!(JsonWriter::new(&DataType::UInt8, &[0, 1 << 40], NanMode::String, 1 << 20).is_ok());
    }

    fn any_data_type() -> impl Strategy<Value = DataType> {
        let others = [
            DataType::Bool,
            DataType::BFloat16,
            DataType::Complex64,
            DataType::Complex128,
            DataType::RawBits { bytes: 3 },
            DataType::NullTerminatedBytes { bytes: 3 },
            DataType::TimeDelta64(step(TimeUnit::Day)),
            DataType::DateTime64(step(TimeUnit::Year)),
            DataType::DateTime64(step(TimeUnit::Day)),
            DataType::DateTime64(step(TimeUnit::Hour)),
            DataType::DateTime64(step(TimeUnit::Attosecond)),
            DataType::DateTime64(step(TimeUnit::Generic)),
        ];
        prop::sample::select(DataType::NUMPY_REALS.into_iter().chain(others).collect::<Vec<_>>())
    }

    /// Every type of a fixed size.
    fn any_fixed_type() -> impl Strategy<Value = DataType> {
        let mut others = vec![
            DataType::Int2,
            DataType::UInt4,
            DataType::ComplexFloat16,
            DataType::ComplexBFloat16,
            structure(&[
                ("a\"\u{1}", DataType::Float64),
                (
                    "p",
                    structure(&[
                        ("x", DataType::Complex64),
                        ("s", DataType::NullTerminatedBytes { bytes: 3 }),
                    ]),
                ),
                ("q", subarray(DataType::UInt8, &[2, 1, 3])),
            ]),
            structure(&[(
                "t",
                subarray(structure(&[("d", DataType::DateTime64(step(TimeUnit::Second)))]), &[2]),
            )]),
        ];
        for float in SmallFloat::all() {
            others.extend([DataType::SmallFloat(float), DataType::ComplexSmallFloat(float)]);
        }
        prop_oneof![any_data_type(), prop::sample::select(others)]
    }

    proptest! {
        #[test]
        fn output_stays_within_the_bound_and_is_the_same_in_pieces(
            data_type in any_fixed_type(),
            shape in prop::collection::vec(0_u64..4, 0..4),
            random in prop::collection::vec(any::<u8>(), 27 * 40),
            piece in 1_usize..5,
        ) {
            let count = usize::try_from(shape.iter().product::<u64>()).unwrap();
            let elements = &random[..count * data_type.element_bytes()];
            let whole = rendered(&data_type, &shape, elements, NanMode::String).unwrap();
            prop_assert!(u64::try_from(whole.len()).unwrap() <= max_bytes(&data_type, &shape), "{}", whole);
            let mut out = Vec::new();
            let mut writer = JsonWriter::new(&data_type, &shape, NanMode::String, 1 << 20).unwrap();
            for part in elements.chunks(piece * data_type.element_bytes()) {
                writer.write(&Elements::fixed(bytes::Bytes::copy_from_slice(part)), &mut out).unwrap();
            }
            writer.finish(&mut out).unwrap();
            prop_assert_eq!(String::from_utf8(out).unwrap(), whole);
        }

        #[test]
        fn an_element_reads_back_unchanged(
            data_type in any_data_type(), random in prop::array::uniform16(any::<u8>()),
        ) {
            let element = FillValue::from_bytes(&random[..data_type.element_bytes()]);
            let text = rendered(&data_type, &[], element.as_bytes(), NanMode::String).unwrap();
            // A NaN loses its payload, and `true` the byte that it was; dates and text are spelled differently in fill
            // values.
            prop_assume!(!text.contains("NaN") && data_type != DataType::Bool);
            let spelled_otherwise = matches!(data_type, DataType::NullTerminatedBytes { .. } | DataType::DateTime64(_));
            prop_assume!(!spelled_otherwise);
            let limits = crate::metadata::MetadataLimits::default();
            let value = crate::metadata::parse_document(text.as_bytes(), &limits).unwrap();
            prop_assert_eq!(FillValue::from_v3(&data_type, Some(&value)), Ok(element));
        }
    }
}

//! Data types in v2 documents (Zarr v2, "Data type encoding"): numpy's type strings, such as `<f4`, and lists of fields.
//!
//! The filters of the document determine the type of objects (`|O`), so the caller handles it. Extended precision is
//! unsupported, because its format depends on the machine that wrote it.

use serde_json::{Value, json};

use super::names::{SIMPLE_TYPES, is_decimal};
use super::{DataType, Endianness, Field, SmallFloat, StructType, SubarrayType, TimeStep, TimeUnit};
use crate::metadata::MetadataError;

impl DataType {
    /// Parses the `dtype` of a v2 document. Returns the type and the byte order of each simple part (of the type itself if
    /// it is not a struct).
    ///
    /// # Errors
    /// As for [`from_typestr`](Self::from_typestr).
    pub fn from_v2(dtype: &Value) -> Result<(Self, Vec<Endianness>), MetadataError> {
        match dtype {
            Value::String(text) => Self::from_typestr(text)
                .map(|(data_type, order)| (data_type, vec![order.unwrap_or_default()])),
            // The depth limit of documents bounds the recursion.
            Value::Array(fields) => {
                let mut orders = Vec::new();
                let fields = fields
                    .iter()
                    .map(|written| parse_field(written, &mut orders))
                    .collect::<Result<_, _>>()?;
                Ok((Self::Struct(StructType::new(fields)?), orders))
            }
            _ => Err(MetadataError::invalid("dtype", "must be a string or a list of fields")),
        }
    }

    /// The `dtype` of a v2 document for this type, little-endian; `None` if numpy lacks the type. Types of variable length
    /// are `|O`, which requires a filter in the document.
    #[must_use]
    pub fn to_v2(&self) -> Option<Value> {
        let order = if self.endian_unit_bytes() == Some(1) { '|' } else { '<' };
        let simple = |kind: char, size: &dyn std::fmt::Display| Value::from(format!("{order}{kind}{size}"));
        let time = |kind: char, step: &TimeStep| match (step.unit(), step.scale_factor()) {
            (TimeUnit::Generic, 1) => Some(simple(kind, &"8")),
            // The generic unit of numpy allows only steps of 1.
            (TimeUnit::Generic, _) => None,
            _ => Some(simple(kind, &format_args!("8[{step}]"))),
        };
        match self {
            Self::RawBits { bytes } => Some(simple('V', bytes)),
            Self::NullTerminatedBytes { bytes } => Some(simple('S', bytes)),
            Self::FixedLengthUtf32 { code_points } => Some(simple('U', code_points)),
            Self::DateTime64(step) => time('M', step),
            Self::TimeDelta64(step) => time('m', step),
            Self::Struct(structure) => structure.fields().iter().map(field_to_v2).collect(),
            variable if variable.is_variable() => Some(Value::from("|O")),
            named => {
                let (.., kind, bytes) = SIMPLE_TYPES.iter().find(|(known, ..)| known == named)?;
                kind.map(|kind| simple(char::from(kind), bytes))
            }
        }
    }

    /// Parses a type string of numpy. Returns the type, and its byte order if it has one.
    ///
    /// # Errors
    /// [`MetadataError::Unsupported`] for known types that are not implemented, and for elements larger than 1 MiB;
    /// [`MetadataError::Invalid`] for other texts.
    pub fn from_typestr(text: &str) -> Result<(Self, Option<Endianness>), MetadataError> {
        if let Some(data_type) = tensorstore_type(text) {
            let order = (data_type.endian_unit_bytes() != Some(1)).then_some(Endianness::Little);
            return Ok((data_type, order));
        }
        let invalid = || MetadataError::invalid("dtype", format!("`{text}` is not a data type"));
        let mut bytes = text.bytes();
        let order = match bytes.next() {
            Some(b'<') => Some(Endianness::Little),
            Some(b'>') => Some(Endianness::Big),
            Some(b'|') => None,
            _ => return Err(invalid()),
        };
        let kind = bytes.next().ok_or_else(invalid)?;
        // `None` if one of the two characters before is not ASCII.
        let size = text.get(2..).ok_or_else(invalid)?;
        let data_type = match kind {
            b'O' => return Err(MetadataError::unsupported("data type", text)),
            b'M' => Self::DateTime64(parse_step(size).ok_or_else(invalid)?),
            b'm' => Self::TimeDelta64(parse_step(size).ok_or_else(invalid)?),
            _ if !is_decimal(size) => return Err(invalid()),
            _ => sized_type(kind, size, text)?.ok_or_else(invalid)?,
        };
        match order {
            _ if data_type.endian_unit_bytes() == Some(1) => Ok((data_type, None)),
            Some(order) => Ok((data_type, Some(order))),
            None => Err(MetadataError::invalid("dtype", format!("`{text}` gives no byte order"))),
        }
    }
}

/// A field as `[name, dtype]` or `[name, dtype, shape]`; `None` if numpy lacks its type.
fn field_to_v2(field: &Field) -> Option<Value> {
    let name = &*field.name;
    Some(match &field.data_type {
        DataType::Subarray(subarray) => json!([name, subarray.item().to_v2()?, subarray.shape()]),
        data_type => json!([name, data_type.to_v2()?]),
    })
}

/// The type with a name that tensorstore writes for types without a type string: small numbers, little-endian.
fn tensorstore_type(name: &str) -> Option<DataType> {
    match name {
        "bfloat16" => Some(DataType::BFloat16),
        "int2" => Some(DataType::Int2),
        "int4" => Some(DataType::Int4),
        "uint2" => Some(DataType::UInt2),
        "uint4" => Some(DataType::UInt4),
        _ => SmallFloat::from_name(name).map(DataType::SmallFloat),
    }
}

/// Parses a field `[name, dtype]` or `[name, dtype, shape]`, and appends the byte orders of its parts to `orders`.
fn parse_field(written: &Value, orders: &mut Vec<Endianness>) -> Result<Field, MetadataError> {
    let invalid =
        || MetadataError::invalid("dtype", "a field must be a name, a data type and perhaps a shape");
    let (name, dtype, shape) = match written.as_array().map(Vec::as_slice) {
        Some([name, dtype]) => (name, dtype, None),
        Some([name, dtype, shape]) => (name, dtype, Some(shape)),
        _ => return Err(invalid()),
    };
    let name = name.as_str().ok_or_else(invalid)?.into();
    let (mut data_type, own) = DataType::from_v2(dtype)?;
    orders.extend(own);
    if let Some(shape) = shape {
        let edge = |edge: &Value| edge.as_u64().and_then(|edge| u32::try_from(edge).ok());
        let shape: Option<Vec<u32>> = match shape {
            Value::Array(edges) => edges.iter().map(edge).collect(),
            only => edge(only).map(|edge| vec![edge]),
        };
        let shape = shape.ok_or_else(invalid)?;
        // A field without a subarray may have the shape `()`.
        if !shape.is_empty() {
            data_type = DataType::Subarray(SubarrayType::new(data_type, shape)?);
        }
    }
    Ok(Field { name, data_type })
}

/// The type with a kind character and a size: in characters for UTF-32 text, else in bytes.
fn sized_type(kind: u8, size: &str, text: &str) -> Result<Option<DataType>, MetadataError> {
    let unsupported = || MetadataError::unsupported("data type", text);
    let size: u32 = size.parse().ok().ok_or_else(unsupported)?;
    match (kind, size) {
        (b'V', _) => DataType::raw_bits(size, text).map(Some),
        (b'S', _) => DataType::null_terminated_bytes(size, text).map(Some),
        (b'U', _) => {
            DataType::fixed_length_utf32(size.checked_mul(4).ok_or_else(unsupported)?, text).map(Some)
        }
        (b'f', 12 | 16) | (b'c', 24 | 32) => Err(unsupported()),
        _ => Ok(SIMPLE_TYPES
            .iter()
            .find(|(.., known, bytes)| (*known, *bytes) == (Some(kind), size))
            .map(|(data_type, ..)| data_type.clone())),
    }
}

/// Parses the text after `M` or `m`, such as `8[ns]` or `8[25us]`; `8` alone is numpy's spelling of the generic unit.
fn parse_step(size: &str) -> Option<TimeStep> {
    let brackets = size.strip_prefix('8')?;
    if brackets.is_empty() {
        return TimeStep::new(TimeUnit::Generic, 1);
    }
    let step = brackets.strip_prefix('[')?.strip_suffix(']')?;
    let name = step.trim_start_matches(|character: char| character.is_ascii_digit());
    let unit = TimeUnit::from_name(name)?;
    match step.strip_suffix(name)? {
        "" => TimeStep::new(unit, 1),
        digits if is_decimal(digits) => TimeStep::new(unit, digits.parse().ok()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v2(typestr: &str) -> Result<(DataType, Option<Endianness>), MetadataError> {
        DataType::from_typestr(typestr)
    }

    fn step(unit: TimeUnit, scale_factor: u32) -> TimeStep {
        TimeStep::new(unit, scale_factor).unwrap()
    }

    #[test]
    fn a_typestr_gives_the_type_and_the_byte_order() {
        use Endianness::{Big, Little};
        for (typestr, data_type, order) in [
            ("|b1", DataType::Bool, None),
            ("<b1", DataType::Bool, None),
            ("|i1", DataType::Int8, None),
            ("|u1", DataType::UInt8, None),
            (">u1", DataType::UInt8, None),
            ("<i4", DataType::Int32, Some(Little)),
            (">i2", DataType::Int16, Some(Big)),
            ("<u8", DataType::UInt64, Some(Little)),
            (">f2", DataType::Float16, Some(Big)),
            ("<f4", DataType::Float32, Some(Little)),
            (">f8", DataType::Float64, Some(Big)),
            ("<c8", DataType::Complex64, Some(Little)),
            (">c16", DataType::Complex128, Some(Big)),
            ("|V10", DataType::RawBits { bytes: 10 }, None),
            ("|S5", DataType::NullTerminatedBytes { bytes: 5 }, None),
            (">S1", DataType::NullTerminatedBytes { bytes: 1 }, None),
            ("<U4", DataType::FixedLengthUtf32 { code_points: 4 }, Some(Little)),
            (">U1", DataType::FixedLengthUtf32 { code_points: 1 }, Some(Big)),
        ] {
            assert_eq!(v2(typestr), Ok((data_type, order)), "{typestr}");
        }
    }

    #[test]
    fn steps_of_dates_and_time_spans_are_parsed() {
        use Endianness::{Big, Little};
        for (typestr, data_type, order) in [
            ("<M8[ns]", DataType::DateTime64(step(TimeUnit::Nanosecond, 1)), Little),
            (">m8[25us]", DataType::TimeDelta64(step(TimeUnit::Microsecond, 25)), Big),
            ("<M8[25s]", DataType::DateTime64(step(TimeUnit::Second, 25)), Little),
            (">M8[M]", DataType::DateTime64(step(TimeUnit::Month, 1)), Big),
            ("<m8[m]", DataType::TimeDelta64(step(TimeUnit::Minute, 1)), Little),
            ("<M8[2147483647as]", DataType::DateTime64(step(TimeUnit::Attosecond, i32::MAX as u32)), Little),
            ("<M8[\u{3bc}s]", DataType::DateTime64(step(TimeUnit::Microsecond, 1)), Little),
            ("<M8[generic]", DataType::DateTime64(step(TimeUnit::Generic, 1)), Little),
            ("<m8", DataType::TimeDelta64(step(TimeUnit::Generic, 1)), Little),
        ] {
            assert_eq!(v2(typestr), Ok((data_type, Some(order))), "{typestr}");
        }
    }

    #[test]
    fn unsupported_types_are_named_in_the_error() {
        for typestr in [
            "|O",
            "<f16",
            "|V4000000",
            "|V99999999999999",
            "|S9999999999",
            "|S1048577",
            "<U262145",
            "<U2147483647",
            "<U4294967295",
        ] {
            assert_eq!(v2(typestr), Err(MetadataError::unsupported("data type", typestr)));
        }
    }

    #[test]
    fn a_list_of_fields_is_a_struct_with_the_byte_order_of_each_part() {
        use Endianness::{Big, Little};
        let dtype = json!([["a", ">i4"], ["p", [["x", "<f8", [2, 3]], ["s", "|S3"]]], ["q", ">u2", 4]]);
        let (data_type, orders) = DataType::from_v2(&dtype).unwrap();
        assert_eq!(orders, [Big, Little, Little, Big]);
        assert_eq!(data_type.element_bytes(), 4 + 48 + 3 + 8);
        let name = "struct{a: int32, p: struct{x: float64[2, 3], s: null_terminated_bytes[3]}, q: uint16[4]}";
        assert_eq!(data_type.name(), name);
    }

    #[test]
    fn written_types_parse_to_the_same_type() {
        let nested = json!([["a", "<i4"], ["p", [["x", "<f8", [2, 3]], ["s", "|S3"]]], ["q", "<u2", [4]]]);
        for dtype in ["|b1", "|i1", "<u8", "<f2", "<c16", "|V10", "|S5", "<U4", "<M8[25us]", "<m8", "<M8[ns]"]
        {
            let (data_type, _) = DataType::from_v2(&json!(dtype)).unwrap();
            assert_eq!(data_type.to_v2(), Some(json!(dtype)));
        }
        assert_eq!(DataType::from_v2(&nested).unwrap().0.to_v2(), Some(nested));
        assert_eq!(DataType::String.to_v2(), Some(json!("|O")));
        for only_v3 in [DataType::BFloat16, DataType::Int4, DataType::ComplexFloat16] {
            assert_eq!(only_v3.to_v2(), None);
        }
        let generic = DataType::DateTime64(step(TimeUnit::Generic, 3));
        assert_eq!(generic.to_v2(), None);
    }

    #[test]
    fn lists_that_are_not_structs_are_rejected() {
        for dtype in [
            json!([]),
            json!([["a", "<i4"], ["a", "<i2"]]),
            json!([["a"]]),
            json!([["a", "<i4", [0]]]),
            json!([["a", "<i4", [-1]]]),
            json!([["a", "<i4", ["2"]]]),
            json!([[1, "<i4"]]),
            json!(["a", "<i4"]),
            json!([["a", "<i4", 1, 2]]),
            json!([["a", 4]]),
            json!([["a", []]]),
        ] {
            let read = DataType::from_v2(&dtype);
            assert!(matches!(read, Err(MetadataError::Invalid { .. })), "{dtype}: {read:?}");
        }
    }

    #[test]
    fn a_struct_beyond_the_limits_is_unsupported() {
        let wide: Vec<Value> = (0..1025).map(|n| json!([n.to_string(), "|u1"])).collect();
        let mut deep = json!([["x", "|u1"]]);
        for _ in 0..16 {
            deep = json!([["x", deep]]);
        }
        let large = json!([["x", "<f8", [1 << 20, 1 << 20]]]);
        let larger = json!([["x", "<f8", [4_294_967_295_u32, 4_294_967_295_u32, 4_294_967_295_u32]]]);
        let object = json!([["x", "|O"]]);
        for dtype in [json!(wide), deep, large, larger, object] {
            let read = DataType::from_v2(&dtype);
            assert!(matches!(read, Err(MetadataError::Unsupported { .. })), "{read:?}");
        }
    }

    #[test]
    fn invalid_types_are_rejected() {
        for typestr in
            ["", "<", "i4", "<i", "<i3", "<i04", "<i+4", "<x4", "|i4", "|V0", "|b2", "=i4", "<é4", "<f4 "]
        {
            assert!(matches!(v2(typestr), Err(MetadataError::Invalid { .. })), "{typestr}");
        }
        assert!(matches!(DataType::from_v2(&json!(4)), Err(MetadataError::Invalid { .. })));
    }

    #[test]
    fn types_that_only_v3_has_are_rejected() {
        for typestr in
            ["|i0", "<V\u{0}", "<\u{0}2", "|\u{0}1", "float32", "int8", "<b2", "complex64", "string"]
        {
            assert!(matches!(v2(typestr), Err(MetadataError::Invalid { .. })), "{typestr}");
        }
    }

    #[test]
    fn types_that_numpy_lacks_are_parsed_by_the_names_of_tensorstore() {
        assert_eq!(v2("bfloat16"), Ok((DataType::BFloat16, Some(Endianness::Little))));
        assert_eq!(v2("int4"), Ok((DataType::Int4, None)));
        let float = SmallFloat::from_name("float8_e4m3fn").unwrap();
        assert_eq!(v2("float8_e4m3fn"), Ok((DataType::SmallFloat(float), None)));
    }

    #[test]
    fn text_without_length_or_byte_order_is_rejected() {
        for typestr in ["|S0", "<U0", ">U0", "|S", "<U", "|U4", "|S-1", "<U4.0", "|S05", "|S5[s]"] {
            assert!(matches!(v2(typestr), Err(MetadataError::Invalid { .. })), "{typestr}");
        }
    }

    #[test]
    fn dates_with_invalid_steps_are_rejected() {
        for typestr in [
            "|M8[s]",
            "<M",
            "<M4[s]",
            "<M8[",
            "<M8[]",
            "<M8[s",
            "<M8s]",
            "<M8[S]",
            "<M8[0s]",
            "<M8[05s]",
            "<M8[-1s]",
            "<M8[s/100]",
            "<M8[2147483648s]",
            "<M8[99999999999999999999s]",
            "<M8[s]]",
            "<M8[5]",
            "<m8[ns] ",
            "<m8[日]",
        ] {
            assert!(matches!(v2(typestr), Err(MetadataError::Invalid { .. })), "{typestr}");
        }
    }
}

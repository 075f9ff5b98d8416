//! The header of npy files (`numpy.lib.format`, versions 1.0 and 2.0).
//!
//! Canonical elements follow the header unchanged, always in C order.

use std::fmt::Write as _;

use crate::metadata::{DataType, Endianness, Field, SubarrayType, TimeUnit};

/// The header's length is a multiple of this, so that the elements are aligned.
const ALIGNMENT: usize = 64;

/// The header of a file with elements of this type and shape. The elements follow, in canonical form or in big-endian
/// byte order.
///
/// The version is 1.0, or 2.0 where the shape is too long for 1.0. Raw bits are the void type `|V<n>`. numpy has no
/// `bfloat16`; it becomes `<V2`, as numpy's extension for that type writes it.
#[must_use]
pub(super) fn header(data_type: &DataType, shape: &[u64], endian: Endianness) -> Vec<u8> {
    let mut dictionary =
        format!("{{'descr': {}, 'fortran_order': False, 'shape': (", npy_type(data_type, endian));
    for (axis, length) in shape.iter().enumerate() {
        let separator = if axis == 0 { "" } else { " " };
        // Writing to a string does not fail. The comma after a single item makes it a tuple.
        let _ = write!(dictionary, "{separator}{length},");
    }
    if shape.len() > 1 {
        dictionary.pop();
    }
    dictionary.push_str("), }");

    let mut header = b"\x93NUMPY".to_vec();
    if let Ok(length) = u16::try_from(padded_length(dictionary.len(), size_of::<u16>())) {
        header.extend_from_slice(&[1, 0]);
        header.extend_from_slice(&length.to_le_bytes());
    } else {
        // No array has a shape of 4 GiB of text; saturate rather than fail.
        let length = u32::try_from(padded_length(dictionary.len(), size_of::<u32>())).unwrap_or(u32::MAX);
        header.extend_from_slice(&[2, 0]);
        header.extend_from_slice(&length.to_le_bytes());
    }
    header.extend_from_slice(dictionary.as_bytes());
    // The last byte is the newline.
    header.resize((header.len() + 1).next_multiple_of(ALIGNMENT) - 1, b' ');
    header.push(b'\n');
    header
}

/// The length field of the header: bytes of the dictionary, its padding and the newline.
fn padded_length(dictionary: usize, length_field: usize) -> usize {
    let before = b"\x93NUMPY\x01\x00".len() + length_field;
    (before + dictionary + 1).next_multiple_of(ALIGNMENT) - before
}

/// The type as npy files spell it, such as `<f4`, `<M8[25us]`, `<U4` or a list of fields; with quotes.
#[must_use]
pub fn npy_type(data_type: &DataType, endian: Endianness) -> String {
    let simple = |kind: char, size: &dyn std::fmt::Display, unit: usize| {
        let order = match endian {
            _ if unit == 1 => '|',
            Endianness::Little => '<',
            Endianness::Big => '>',
        };
        format!("'{order}{kind}{size}'")
    };
    let unit = data_type.endian_unit_bytes().unwrap_or(1);
    let bytes = data_type.element_bytes();
    match data_type {
        DataType::Bool => simple('b', &bytes, unit),
        DataType::Int2
        | DataType::Int4
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64 => simple('i', &bytes, unit),
        DataType::UInt2
        | DataType::UInt4
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64 => simple('u', &bytes, unit),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => simple('f', &bytes, unit),
        DataType::Complex64 | DataType::Complex128 => simple('c', &bytes, unit),
        DataType::BFloat16
        | DataType::SmallFloat(_)
        | DataType::ComplexFloat16
        | DataType::ComplexBFloat16
        | DataType::ComplexSmallFloat(_)
        | DataType::RawBits { .. } => simple('V', &bytes, unit),
        // numpy writes the generic unit without brackets, whatever its scale factor.
        DataType::DateTime64(step) if step.unit() == TimeUnit::Generic => simple('M', &bytes, unit),
        DataType::DateTime64(step) => simple('M', &format_args!("{bytes}[{step}]"), unit),
        DataType::TimeDelta64(step) if step.unit() == TimeUnit::Generic => simple('m', &bytes, unit),
        DataType::TimeDelta64(step) => simple('m', &format_args!("{bytes}[{step}]"), unit),
        DataType::FixedLengthUtf32 { code_points } => simple('U', code_points, unit),
        DataType::NullTerminatedBytes { .. } => simple('S', &bytes, unit),
        DataType::Struct(structure) => {
            let fields: Vec<String> =
                structure.fields().iter().map(|field| self::field(field, endian)).collect();
            format!("[{}]", fields.join(", "))
        }
        // A subarray has a spelling only as a field (see `field`).
        DataType::Subarray(_)
        | DataType::String
        | DataType::VariableBytes
        | DataType::VariableArray(_)
        | DataType::Json => simple('V', &bytes, 1),
    }
}

/// A field as a tuple: `('name', '<f4')`, with a shape at the end for a subarray.
fn field(field: &Field, endian: Endianness) -> String {
    let name = python_quoted(&field.name);
    match &field.data_type {
        DataType::Subarray(subarray) => {
            let (item, shape) = flattened(subarray);
            let shape: Vec<String> = shape.iter().map(|edge| format!("{edge},")).collect();
            format!("({name}, {}, ({}))", npy_type(item, endian), shape.join(" "))
        }
        data_type => format!("({name}, {})", npy_type(data_type, endian)),
    }
}

/// Nested subarrays as one subarray of more dimensions.
fn flattened(subarray: &SubarrayType) -> (&DataType, Vec<u32>) {
    let mut shape = subarray.shape().to_vec();
    let mut item = subarray.item();
    while let DataType::Subarray(inner) = item {
        shape.extend_from_slice(inner.shape());
        item = inner.item();
    }
    (item, shape)
}

/// A string literal of Python, in ASCII.
fn python_quoted(text: &str) -> String {
    let mut quoted = "'".to_owned();
    for character in text.chars() {
        // Writing to a string does not fail.
        let _ = match character {
            '\'' | '\\' => write!(quoted, "\\{character}"),
            ' '..='~' => write!(quoted, "{character}"),
            _ => write!(quoted, "\\U{:08x}", u32::from(character)),
        };
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::TimeStep;

    #[test]
    fn the_header_has_the_bytes_of_the_format() {
        let mut expected = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        expected.extend_from_slice(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
        expected.extend_from_slice(&[b' '; 58]);
        expected.push(b'\n');
        assert_eq!(expected.len(), 128);
        assert_eq!(header(&DataType::Float32, &[3, 4], Endianness::Little), expected);
    }

    #[test]
    fn a_shape_is_written_as_a_tuple() {
        for (shape, tuple) in [
            (&[] as &[u64], "'shape': (), }"),
            (&[5], "'shape': (5,), }"),
            (&[0, u64::MAX, 1], "(0, 18446744073709551615, 1), }"),
        ] {
            let header = header(&DataType::Int8, shape, Endianness::Little);
            assert!(String::from_utf8_lossy(&header).contains(tuple), "{shape:?}");
        }
    }

    fn step(unit: TimeUnit, scale_factor: u32) -> TimeStep {
        TimeStep::new(unit, scale_factor).unwrap()
    }

    #[test]
    fn types_have_the_names_of_numpy() {
        for (data_type, name) in [
            (DataType::Bool, "|b1"),
            (DataType::Int8, "|i1"),
            (DataType::Int16, "<i2"),
            (DataType::Int32, "<i4"),
            (DataType::Int64, "<i8"),
            (DataType::UInt8, "|u1"),
            (DataType::UInt16, "<u2"),
            (DataType::UInt32, "<u4"),
            (DataType::UInt64, "<u8"),
            (DataType::Float16, "<f2"),
            (DataType::Float32, "<f4"),
            (DataType::Float64, "<f8"),
            (DataType::Complex64, "<c8"),
            (DataType::Complex128, "<c16"),
            (DataType::RawBits { bytes: 3 }, "|V3"),
            (DataType::Int4, "|i1"),
            (DataType::UInt2, "|u1"),
            (DataType::BFloat16, "<V2"),
            (DataType::NullTerminatedBytes { bytes: 5 }, "|S5"),
            (DataType::FixedLengthUtf32 { code_points: 4 }, "<U4"),
            (DataType::DateTime64(step(TimeUnit::Nanosecond, 1)), "<M8[ns]"),
            (DataType::TimeDelta64(step(TimeUnit::Microsecond, 25)), "<m8[25us]"),
            (DataType::DateTime64(step(TimeUnit::Generic, 3)), "<M8"),
        ] {
            let name = format!("'{name}'");
            assert_eq!(npy_type(&data_type, Endianness::Little), name);
            assert_eq!(npy_type(&data_type, Endianness::Big), name.replace('<', ">"));
        }
    }

    #[test]
    fn elements_begin_at_a_multiple_of_64_and_where_the_length_field_says() {
        for rank in 0..60 {
            let header = header(&DataType::UInt16, &vec![10; rank], Endianness::Little);
            assert_eq!(header.len() % ALIGNMENT, 0);
            assert_eq!(10 + usize::from(u16::from_le_bytes([header[8], header[9]])), header.len());
            assert_eq!(header.last(), Some(&b'\n'));
        }
    }

    #[test]
    fn a_shape_too_long_for_version_1_uses_version_2() {
        let header = header(&DataType::UInt16, &vec![1; 30_000], Endianness::Little);
        assert_eq!(header[6..8], [2, 0]);
        let length = u32::from_le_bytes(header[8..12].try_into().unwrap());
        assert_eq!(12 + usize::try_from(length).unwrap(), header.len());
        assert_eq!(header.len() % ALIGNMENT, 0);
    }
}

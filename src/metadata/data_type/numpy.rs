//! Data types in the spellings of numpy's `dtype()`, which the filters of numcodecs use: a character, a kind and a size, or
//! a name, with or without a byte order.
//!
//! The rules are those of a 64-bit little-endian machine: the default order is little-endian, `long` and `int` have 8 bytes.

use super::{DataType, Endianness};
use crate::metadata::MetadataError;

/// Number types: the v2 type string without byte order, and numpy's names and characters.
const NUMBERS: [(&str, &[&str]); 14] = [
    ("b1", &["bool", "bool_", "?"]),
    ("i1", &["int8", "byte", "b"]),
    ("u1", &["uint8", "ubyte", "B"]),
    ("i2", &["int16", "short", "h"]),
    ("u2", &["uint16", "ushort", "H"]),
    ("i4", &["int32", "intc", "i"]),
    ("u4", &["uint32", "uintc", "I"]),
    ("i8", &["int64", "int", "int_", "long", "longlong", "intp", "l", "q", "p", "n"]),
    ("u8", &["uint64", "uint", "ulong", "ulonglong", "uintp", "L", "Q", "P", "N"]),
    ("f2", &["float16", "half", "e"]),
    ("f4", &["float32", "single", "f"]),
    ("f8", &["float64", "double", "float", "d"]),
    ("c8", &["complex64", "csingle", "F"]),
    ("c16", &["complex128", "cdouble", "complex", "D"]),
];

impl DataType {
    /// The type of numpy's `dtype(text)`, and its byte order if it has one. Types that numpy lacks have their names in v2
    /// documents.
    ///
    /// # Errors
    /// [`MetadataError`] as for [`from_typestr`](Self::from_typestr), for unknown types.
    pub fn from_numpy(text: &str) -> Result<(Self, Option<Endianness>), MetadataError> {
        let (is_big, code) = match text.strip_prefix(['<', '>', '=', '|']) {
            // A character may follow a byte order, a name may not.
            Some(code) if code.len() == 1 => (text.starts_with('>'), typestr(code).unwrap_or(code)),
            Some(code) => (text.starts_with('>'), code),
            None => (false, typestr(text).unwrap_or(text)),
        };
        let order = if is_big { '>' } else { '<' };
        let read = Self::from_typestr(&format!("{order}{code}"));
        // The error must quote the text of the document.
        read.or_else(|_error| Self::from_typestr(text))
    }
}

fn typestr(name: &str) -> Option<&'static str> {
    NUMBERS.iter().find(|(_, names)| names.contains(&name)).map(|(typestr, _)| *typestr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_numbers_parse_as_by_numpy_on_a_little_endian_machine() {
        use Endianness::{Big, Little};
        for (data_type, order, spellings) in [
            (
                DataType::Int32,
                Some(Little),
                &["i4", "=i4", "|i4", "<i4", "i", "=i", "|i", "<i", "intc", "int32"][..],
            ),
            (DataType::Int32, Some(Big), &[">i4", ">i"]),
            (DataType::UInt8, None, &["u1", "=u1", "|u1", ">u1", "B", ">B", "ubyte", "uint8"]),
            (DataType::Int8, None, &["i1", "b", "byte"]),
            (DataType::Bool, None, &["?", "|?", "b1", "=b1", "bool", "bool_"]),
            (
                DataType::Int64,
                Some(Little),
                &["i8", "l", "q", "p", "n", "int", "int_", "long", "longlong", "intp"],
            ),
            (
                DataType::UInt64,
                Some(Little),
                &["u8", "L", "Q", "P", "N", "uint", "ulong", "ulonglong", "uintp"],
            ),
            (DataType::Float16, Some(Little), &["f2", "e", "half", "float16"]),
            (DataType::Float32, Some(Little), &["f4", "f", "single", "=f"]),
            (DataType::Float64, Some(Little), &["f8", "d", "double", "float", "|d"]),
            (DataType::Float64, Some(Big), &[">f8", ">d"]),
            (DataType::Complex64, Some(Little), &["c8", "F", "csingle", "complex64"]),
            (DataType::Complex128, Some(Little), &["c16", "D", "cdouble", "complex"]),
        ] {
            for spelling in spellings {
                assert_eq!(DataType::from_numpy(spelling), Ok((data_type.clone(), order)), "{spelling}");
            }
        }
        let text = DataType::NullTerminatedBytes { bytes: 3 };
        assert_eq!(DataType::from_numpy("S3"), Ok((text, None)));
    }

    #[test]
    fn types_that_numpy_rejects_are_rejected() {
        for spelling in
            ["", "<", "=", "<float32", "=float32", "<<i4", "@i4", "f4 ", " f4", "u", "i3", "Float32", "<é"]
        {
            assert!(DataType::from_numpy(spelling).is_err(), "{spelling}");
        }
    }
}

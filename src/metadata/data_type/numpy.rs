//! Data types as numpy's `dtype()` takes them, which the filters of numcodecs hand through: with a byte order or without,
//! by a character, by a kind and a size, or by a name.
//!
//! As on a little-endian machine of 64 bits: what says no order is little-endian, `long` and `int` have 8 bytes.

use super::{DataType, Endianness};
use crate::metadata::MetadataError;

/// Numbers by numpy's names and characters, and what v2 documents call them behind their byte order.
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
    /// The type that numpy's `dtype(text)` is, and the order of its bytes where there is one. Names of types that numpy
    /// itself lacks are those of v2 documents.
    ///
    /// # Errors
    /// [`MetadataError`] as for [`from_typestr`](Self::from_typestr), for what is no type by that name.
    pub fn from_numpy(text: &str) -> Result<(Self, Option<Endianness>), MetadataError> {
        let (is_big, code) = match text.strip_prefix(['<', '>', '=', '|']) {
            // A character may stand behind a byte order, a name may not.
            Some(code) if code.len() == 1 => (text.starts_with('>'), typestr(code).unwrap_or(code)),
            Some(code) => (text.starts_with('>'), code),
            None => (false, typestr(text).unwrap_or(text)),
        };
        let order = if is_big { '>' } else { '<' };
        let read = Self::from_typestr(&format!("{order}{code}"));
        // What says why is what the document says.
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
    fn every_spelling_of_a_number_is_what_numpy_reads_on_a_little_endian_machine() {
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
    fn what_numpy_does_not_take_is_refused() {
        for spelling in
            ["", "<", "=", "<float32", "=float32", "<<i4", "@i4", "f4 ", " f4", "u", "i3", "Float32", "<é"]
        {
            assert!(DataType::from_numpy(spelling).is_err(), "{spelling}");
        }
    }
}

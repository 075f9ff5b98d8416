//! [`DataType`]: the types of elements, and their names in v3 and v2 documents.
//!
//! Zarr core 3.1 "Data types"; Zarr v2 "Data type encoding". What is no core type is refused as unsupported; the
//! rules of fill values are next door.

use serde_json::Value;

use super::MetadataError;
use super::extension::Extension;

/// The order of a number's bytes, as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Endianness {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

impl Endianness {
    /// The word the `bytes` codec has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Little => "little",
            Self::Big => "big",
        }
    }
}

/// Largest element, in bytes: a fill value is held in memory for every array.
const MAX_ITEM_BYTES: u32 = 1 << 20;

/// The core types with a name and a size of their own: name in v3, kind and bytes in v2.
const NAMED: [(DataType, &str, u8, u32); 14] = [
    (DataType::Bool, "bool", b'b', 1),
    (DataType::Int8, "int8", b'i', 1),
    (DataType::Int16, "int16", b'i', 2),
    (DataType::Int32, "int32", b'i', 4),
    (DataType::Int64, "int64", b'i', 8),
    (DataType::UInt8, "uint8", b'u', 1),
    (DataType::UInt16, "uint16", b'u', 2),
    (DataType::UInt32, "uint32", b'u', 4),
    (DataType::UInt64, "uint64", b'u', 8),
    (DataType::Float16, "float16", b'f', 2),
    (DataType::Float32, "float32", b'f', 4),
    (DataType::Float64, "float64", b'f', 8),
    (DataType::Complex64, "complex64", b'c', 8),
    (DataType::Complex128, "complex128", b'c', 16),
];

/// The type of an array's elements.
///
/// In memory an element is always its canonical form: little-endian and packed, a `bool` one byte of 0 or 1, a
/// complex number its real part and then its imaginary part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// `bool`
    Bool,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `uint8`
    UInt8,
    /// `uint16`
    UInt16,
    /// `uint32`
    UInt32,
    /// `uint64`
    UInt64,
    /// `float16`: IEEE 754 binary16
    Float16,
    /// `float32`: IEEE 754 binary32
    Float32,
    /// `float64`: IEEE 754 binary64
    Float64,
    /// `complex64`: two `float32`
    Complex64,
    /// `complex128`: two `float64`
    Complex128,
    /// `r<bits>`: so many raw bytes
    RawBits {
        /// Bytes of an element, at least 1.
        bytes: u32,
    },
}

impl DataType {
    /// Bytes of one element; at least 1.
    #[must_use]
    pub const fn item_bytes(self) -> usize {
        match self {
            Self::Bool | Self::Int8 | Self::UInt8 => 1,
            Self::Int16 | Self::UInt16 | Self::Float16 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 | Self::Complex64 => 8,
            Self::Complex128 => 16,
            Self::RawBits { bytes } => bytes as usize,
        }
    }

    /// Bytes of the unit whose order a byte order is about: half of a complex number, 1 where there is none.
    #[must_use]
    pub const fn endian_unit_bytes(self) -> usize {
        match self {
            Self::Complex64 => 4,
            Self::Complex128 => 8,
            Self::RawBits { .. } => 1,
            other => other.item_bytes(),
        }
    }

    /// The name in a v3 document, such as `float32` or `r24`.
    #[must_use]
    pub fn name(self) -> String {
        match (self, NAMED.iter().find(|(named, ..)| *named == self)) {
            (Self::RawBits { bytes }, _) => format!("r{}", u64::from(bytes) * 8),
            (_, Some((_, name, ..))) => (*name).to_owned(),
            // Not reached: the table holds all but the raw bits, and a test says so.
            (_, None) => String::new(),
        }
    }

    /// The type that a v3 document's `data_type` gives, as a name or as an extension object.
    ///
    /// # Errors
    /// [`MetadataError::Unsupported`] for what is no core type; [`MetadataError::Invalid`] for what is no name, has
    /// a configuration where there is none, or may be ignored.
    pub fn from_v3(data_type: &Value) -> Result<Self, MetadataError> {
        const MEMBER: &str = "data_type";
        let extension = Extension::parse(data_type, MEMBER)?;
        extension.require_understood()?;
        let name = extension.name.as_str();
        let Some(known) = Self::from_name(name)? else {
            return Err(MetadataError::unsupported("data type", name));
        };
        match extension.configuration.keys().next() {
            None => Ok(known),
            Some(_) => Err(MetadataError::invalid(MEMBER, format!("`{name}` has no configuration"))),
        }
    }

    /// The core type of this name, if it is one. `r12` is an error: raw bits come in whole bytes.
    fn from_name(name: &str) -> Result<Option<Self>, MetadataError> {
        if let Some((named, ..)) = NAMED.iter().find(|(_, known, ..)| *known == name) {
            return Ok(Some(*named));
        }
        let Some(bits) = name.strip_prefix('r').filter(|digits| is_decimal(digits)) else {
            return Ok(None);
        };
        match bits.parse::<u32>() {
            Ok(bits) if bits % 8 != 0 => {
                Err(MetadataError::invalid("data_type", format!("`{name}` is not a whole number of bytes")))
            }
            Ok(bits) => Self::raw(bits / 8, name).map(Some),
            Err(_) => Err(MetadataError::unsupported("data type", name)),
        }
    }

    /// The type that a v2 document's `dtype` gives, and the order of its bytes where there is one.
    ///
    /// # Errors
    /// [`MetadataError::Unsupported`] for types that are known but not implemented: strings, dates, objects,
    /// structures; [`MetadataError::Invalid`] for what is no type.
    pub fn from_v2(dtype: &Value) -> Result<(Self, Option<Endianness>), MetadataError> {
        let text = match dtype {
            Value::String(text) => text.as_str(),
            Value::Array(_) => return Err(MetadataError::unsupported("data type", "structured")),
            _ => return Err(MetadataError::invalid("dtype", "must be a string")),
        };
        let invalid = || MetadataError::invalid("dtype", format!("`{text}` is not a data type"));
        let mut bytes = text.bytes();
        let order = match bytes.next() {
            Some(b'<') => Some(Endianness::Little),
            Some(b'>') => Some(Endianness::Big),
            Some(b'|') => None,
            _ => return Err(invalid()),
        };
        let kind = bytes.next().ok_or_else(invalid)?;
        if matches!(kind, b'O' | b'S' | b'U' | b'M' | b'm') {
            return Err(MetadataError::unsupported("data type", text));
        }
        let digits = text.get(2..).filter(|digits| is_decimal(digits)).ok_or_else(invalid)?;
        let size = digits.parse().ok().ok_or_else(|| MetadataError::unsupported("data type", text))?;
        if kind == b'V' {
            return Ok((Self::raw(size, text)?, None));
        }
        // Extended precision is as large as the machine that wrote it likes.
        if matches!((kind, size), (b'f', 12 | 16) | (b'c', 24 | 32)) {
            return Err(MetadataError::unsupported("data type", text));
        }
        let found = NAMED.iter().find(|(.., known, bytes)| (*known, *bytes) == (kind, size));
        let (data_type, ..) = *found.ok_or_else(invalid)?;
        match order {
            _ if data_type.item_bytes() == 1 => Ok((data_type, None)),
            Some(order) => Ok((data_type, Some(order))),
            None => Err(MetadataError::invalid("dtype", format!("`{text}` gives no byte order"))),
        }
    }

    fn raw(bytes: u32, written: &str) -> Result<Self, MetadataError> {
        match bytes {
            0 => Err(MetadataError::invalid("data type", format!("`{written}` has no bytes"))),
            1..=MAX_ITEM_BYTES => Ok(Self::RawBits { bytes }),
            _ => Err(MetadataError::unsupported("data type", written)),
        }
    }
}

/// Whether a text is decimal digits that no zero leads.
fn is_decimal(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn v2(typestr: &str) -> Result<(DataType, Option<Endianness>), MetadataError> {
        DataType::from_v2(&json!(typestr))
    }

    #[test]
    fn every_core_type_is_read_under_the_name_it_is_written_under() {
        let raw = [1, 3, 16].map(|bytes| DataType::RawBits { bytes });
        for data_type in NAMED.iter().map(|(named, ..)| *named).chain(raw) {
            assert_eq!(DataType::from_v3(&json!(data_type.name())), Ok(data_type));
            assert_eq!(
                DataType::from_v3(&json!({ "name": data_type.name(), "configuration": {} })),
                Ok(data_type)
            );
        }
        assert_eq!(DataType::RawBits { bytes: 3 }.name(), "r24");
    }

    #[test]
    fn the_table_and_the_sizes_of_elements_agree() {
        for (data_type, _, _, bytes) in NAMED {
            assert_eq!(data_type.item_bytes(), usize::try_from(bytes).unwrap());
        }
    }

    #[test]
    fn a_v2_type_gives_type_and_byte_order() {
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
        ] {
            assert_eq!(v2(typestr), Ok((data_type, order)), "{typestr}");
        }
    }

    #[test]
    fn known_types_that_are_not_implemented_are_unsupported_by_name() {
        for typestr in ["|O", "|S3", "<U4", "<M8[ns]", ">m8[25s]", "<f16", "|V4000000", "|V99999999999999"] {
            assert_eq!(v2(typestr), Err(MetadataError::unsupported("data type", typestr)));
        }
        let structured = DataType::from_v2(&json!([["a", "<i4"]]));
        assert_eq!(structured, Err(MetadataError::unsupported("data type", "structured")));
        for name in [
            "string",
            "bytes",
            "numpy.datetime64",
            "bfloat16",
            "int4",
            "r99999999999",
            "<f8",
            "https://x.y/z",
        ] {
            assert_eq!(DataType::from_v3(&json!(name)), Err(MetadataError::unsupported("data type", name)));
        }
    }

    #[test]
    fn what_is_no_type_is_invalid() {
        for typestr in
            ["", "<", "i4", "<i", "<i3", "<i04", "<i+4", "<x4", "|i4", "|V0", "|b2", "=i4", "<é4", "<f4 "]
        {
            assert!(matches!(v2(typestr), Err(MetadataError::Invalid { .. })), "{typestr}");
        }
        assert!(matches!(DataType::from_v2(&json!(4)), Err(MetadataError::Invalid { .. })));
        for data_type in [
            json!("r12"),
            json!("r0"),
            json!(""),
            json!(3),
            json!(null),
            json!({ "name": "int8", "must_understand": false }),
            json!({ "name": "int8", "configuration": { "unit": "s" } }),
        ] {
            assert!(
                matches!(DataType::from_v3(&data_type), Err(MetadataError::Invalid { .. })),
                "{data_type}"
            );
        }
    }
}

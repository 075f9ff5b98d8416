//! The types without parameters, and short names of all types for users.

use super::DataType;
use crate::metadata::MetadataError;

/// Maximum size of an element in bytes, because the fill value of every opened array is in memory.
pub(super) const MAX_ITEM_BYTES: u32 = 1 << 20;

/// The types without parameters: type, name in v3, kind character in v2 (if v2 has the type), size of an element in bytes.
pub(super) const SIMPLE_TYPES: [(DataType, &str, Option<u8>, u32); 24] = [
    (DataType::Bool, "bool", Some(b'b'), 1),
    (DataType::Int2, "int2", None, 1),
    (DataType::Int4, "int4", None, 1),
    (DataType::Int8, "int8", Some(b'i'), 1),
    (DataType::Int16, "int16", Some(b'i'), 2),
    (DataType::Int32, "int32", Some(b'i'), 4),
    (DataType::Int64, "int64", Some(b'i'), 8),
    (DataType::UInt2, "uint2", None, 1),
    (DataType::UInt4, "uint4", None, 1),
    (DataType::UInt8, "uint8", Some(b'u'), 1),
    (DataType::UInt16, "uint16", Some(b'u'), 2),
    (DataType::UInt32, "uint32", Some(b'u'), 4),
    (DataType::UInt64, "uint64", Some(b'u'), 8),
    (DataType::Float16, "float16", Some(b'f'), 2),
    (DataType::BFloat16, "bfloat16", None, 2),
    (DataType::Float32, "float32", Some(b'f'), 4),
    (DataType::Float64, "float64", Some(b'f'), 8),
    (DataType::ComplexFloat16, "complex_float16", None, 4),
    (DataType::ComplexBFloat16, "complex_bfloat16", None, 4),
    (DataType::Complex64, "complex64", Some(b'c'), 8),
    (DataType::Complex128, "complex128", Some(b'c'), 16),
    (DataType::String, "string", None, 8),
    (DataType::VariableBytes, "bytes", None, 8),
    (DataType::Json, "json", None, 8),
];

impl DataType {
    /// A short name for users, such as `float32`, `r24`, `numpy.datetime64[25us]` or `fixed_length_utf32[20]` (with the size
    /// of an element in bytes). The name in documents is [`to_metadata`](Self::to_metadata).
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::RawBits { bytes } => format!("r{}", u64::from(*bytes) * 8),
            Self::DateTime64(step) => format!("numpy.datetime64[{step}]"),
            Self::TimeDelta64(step) => format!("numpy.timedelta64[{step}]"),
            Self::FixedLengthUtf32 { .. } => format!("fixed_length_utf32[{}]", self.element_bytes()),
            Self::NullTerminatedBytes { bytes } => format!("null_terminated_bytes[{bytes}]"),
            Self::SmallFloat(float) => float.name().to_owned(),
            Self::ComplexSmallFloat(float) => format!("complex_{}", float.name()),
            Self::Struct(structure) => structure.name(),
            Self::Subarray(subarray) => subarray.name(),
            Self::VariableArray(item) => format!("variable_array[{}]", item.name()),
            named => {
                let found = SIMPLE_TYPES.iter().find(|(known, ..)| known == named);
                // The table has all other types, which a test checks.
                found.map_or_else(String::new, |(_, name, ..)| (*name).to_owned())
            }
        }
    }

    /// Raw bits with a size in bytes. `written` is the name in the document.
    pub(super) fn raw_bits(bytes: u32, written: &str) -> Result<Self, MetadataError> {
        check_length(bytes, written).map(|bytes| Self::RawBits { bytes })
    }

    /// Byte text with a size in bytes. `written` is the name in the document.
    pub(super) fn null_terminated_bytes(bytes: u32, written: &str) -> Result<Self, MetadataError> {
        check_length(bytes, written).map(|bytes| Self::NullTerminatedBytes { bytes })
    }

    /// UTF-32 text with a size in bytes, four for each character. `written` is the name in the document.
    pub(super) fn fixed_length_utf32(bytes: u32, written: &str) -> Result<Self, MetadataError> {
        match check_length(bytes, written)? {
            bytes if bytes.is_multiple_of(4) => Ok(Self::FixedLengthUtf32 { code_points: bytes / 4 }),
            _ => Err(MetadataError::invalid(
                "data type",
                format!("`{written}` is not a whole number of characters"),
            )),
        }
    }
}

/// Checks the size of an element in bytes.
fn check_length(bytes: u32, written: &str) -> Result<u32, MetadataError> {
    match bytes {
        0 => Err(MetadataError::invalid("data type", format!("`{written}` has no bytes"))),
        1..=MAX_ITEM_BYTES => Ok(bytes),
        _ => Err(MetadataError::unsupported("data type", written)),
    }
}

/// Whether a text is decimal digits without a leading zero.
pub(super) fn is_decimal(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::super::{TimeStep, TimeUnit};
    use super::*;

    #[test]
    fn types_with_a_configuration_have_a_short_name() {
        assert_eq!(DataType::RawBits { bytes: 3 }.name(), "r24");
        let step = TimeStep::new(TimeUnit::Microsecond, 25).unwrap();
        assert_eq!(DataType::DateTime64(step).name(), "numpy.datetime64[25us]");
        let step = TimeStep::new(TimeUnit::Second, 1).unwrap();
        assert_eq!(DataType::TimeDelta64(step).name(), "numpy.timedelta64[s]");
        assert_eq!(DataType::FixedLengthUtf32 { code_points: 5 }.name(), "fixed_length_utf32[20]");
        assert_eq!(DataType::NullTerminatedBytes { bytes: 5 }.name(), "null_terminated_bytes[5]");
    }

    #[test]
    fn element_sizes_match_the_table() {
        for (data_type, _, _, bytes) in &SIMPLE_TYPES {
            let bytes = *bytes;
            assert_eq!(data_type.element_bytes(), usize::try_from(bytes).unwrap());
        }
    }
}

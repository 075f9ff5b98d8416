//! [`DataType`]: the types of elements.
//!
//! Zarr core 3.1 "Data types" and the extensions to it. `v2` and `v3` read and write what documents call them; the
//! rules of fill values are next door.

mod numpy;
mod small_float;
mod structure;
mod time;
mod v2;
mod v3;

pub use small_float::SmallFloat;
pub use structure::{Field, StructType, SubarrayType};
pub use time::{TimeStep, TimeUnit};

use std::sync::Arc;

use super::MetadataError;

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

/// The types with a name and a size of their own: name in v3, kind (if v2 has the type) and bytes of an element.
const NAMED: [(DataType, &str, Option<u8>, u32); 24] = [
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

/// The type of an array's elements.
///
/// In memory an element is always its canonical form: little-endian and packed, a `bool` one byte of 0 or 1, an
/// integer of less than 8 bits the `int8` or `uint8` of the same value, a complex number its real part and then its
/// imaginary part, text shorter than its element filled up with zeros, a struct its fields one behind the other. Of
/// a type of variable length, the element itself is only where its bytes stand in a heap (see
/// [`ElementsRequest`](crate::chunk::Elements)).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// `bool`
    Bool,
    /// `int2`: -2 to 1, in a byte of its own
    Int2,
    /// `int4`: -8 to 7, in a byte of its own
    Int4,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `uint2`: 0 to 3, in a byte of its own
    UInt2,
    /// `uint4`: 0 to 15, in a byte of its own
    UInt4,
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
    /// `bfloat16`: the upper half of a `float32`
    BFloat16,
    /// `float32`: IEEE 754 binary32
    Float32,
    /// `float64`: IEEE 754 binary64
    Float64,
    /// A float of less than 16 bits, in a byte of its own
    SmallFloat(SmallFloat),
    /// `complex_float16`: two `float16`
    ComplexFloat16,
    /// `complex_bfloat16`: two `bfloat16`
    ComplexBFloat16,
    /// Two floats of less than 16 bits
    ComplexSmallFloat(SmallFloat),
    /// `complex64`: two `float32`
    Complex64,
    /// `complex128`: two `float64`
    Complex128,
    /// `r<bits>`: so many raw bytes
    RawBits {
        /// Bytes of an element, at least 1.
        bytes: u32,
    },
    /// `numpy.datetime64`: steps since the beginning of 1970, an `int64`. The smallest is no time at all, `NaT`.
    DateTime64(TimeStep),
    /// `numpy.timedelta64`: steps, an `int64`. The smallest is no time span at all, `NaT`.
    TimeDelta64(TimeStep),
    /// `fixed_length_utf32`: characters of four bytes each. Zeros at the end do not belong to the text.
    FixedLengthUtf32 {
        /// Characters of an element, at least 1.
        code_points: u32,
    },
    /// `null_terminated_bytes`: text in an encoding that is not known. Zeros at the end do not belong to it.
    NullTerminatedBytes {
        /// Bytes of an element, at least 1.
        bytes: u32,
    },
    /// `struct`: named fields, each of a type of its own
    Struct(Arc<StructType>),
    /// Several elements of one type, as the field of a struct (v2 only).
    Subarray(Arc<SubarrayType>),
    /// `string`: text of any length, in UTF-8
    String,
    /// `bytes`: any number of bytes
    VariableBytes,
    /// Any number of elements of a fixed size (v2 only, by the filter `vlen-array`).
    VariableArray(Arc<DataType>),
    /// A JSON value (v2 only, by the filter `json2`); its bytes are its text, with the members of objects in order.
    Json,
}

/// Bytes of an element of variable length, without the bytes in the heap that belong to it: an offset and a length.
pub(crate) const VARIABLE_ITEM_BYTES: usize = 8;

impl DataType {
    /// Bytes of one element; at least 1. For types of variable length, without what stands in the heap.
    #[must_use]
    pub fn item_bytes(&self) -> usize {
        match self {
            Self::Bool
            | Self::Int2
            | Self::Int4
            | Self::Int8
            | Self::UInt2
            | Self::UInt4
            | Self::UInt8
            | Self::SmallFloat(_) => 1,
            Self::Int16 | Self::UInt16 | Self::Float16 | Self::BFloat16 | Self::ComplexSmallFloat(_) => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 | Self::ComplexFloat16 | Self::ComplexBFloat16 => 4,
            Self::Int64
            | Self::UInt64
            | Self::Float64
            | Self::Complex64
            | Self::DateTime64(_)
            | Self::TimeDelta64(_) => 8,
            Self::Complex128 => 16,
            Self::RawBits { bytes } | Self::NullTerminatedBytes { bytes } => *bytes as usize,
            Self::FixedLengthUtf32 { code_points } => (*code_points as usize).saturating_mul(4),
            Self::Struct(structure) => structure.item_bytes(),
            Self::Subarray(subarray) => subarray.item_bytes(),
            Self::String | Self::VariableBytes | Self::VariableArray(_) | Self::Json => VARIABLE_ITEM_BYTES,
        }
    }

    /// Whether elements differ in length, so that their bytes stand in a heap.
    #[must_use]
    pub fn is_variable(&self) -> bool {
        matches!(self, Self::String | Self::VariableBytes | Self::VariableArray(_) | Self::Json)
    }

    /// The type of each half of a complex number; `None` for other types.
    #[must_use]
    pub fn complex_half(&self) -> Option<Self> {
        match self {
            Self::ComplexFloat16 => Some(Self::Float16),
            Self::ComplexBFloat16 => Some(Self::BFloat16),
            Self::ComplexSmallFloat(float) => Some(Self::SmallFloat(*float)),
            Self::Complex64 => Some(Self::Float32),
            Self::Complex128 => Some(Self::Float64),
            _ => None,
        }
    }

    /// Bytes of the unit whose order a byte order is about: half of a complex number, a character of text; 1 where
    /// there is none. `None` for structs whose fields differ in it (see [`endian_units`](Self::endian_units)).
    #[must_use]
    pub fn endian_unit_bytes(&self) -> Option<usize> {
        let mut units = self.endian_units().into_iter();
        let (_, first) = units.next()?;
        units.all(|(_, unit)| unit == first).then_some(first)
    }

    /// An element as runs of units of one size: bytes of the run, bytes of a unit of it.
    #[must_use]
    pub fn endian_units(&self) -> Vec<(usize, usize)> {
        self.stored_units(&vec![Endianness::Big; self.simple_parts()])
    }

    /// Bytes of the unit whose order a byte order is about, of a type that is no struct.
    fn simple_unit_bytes(&self) -> usize {
        match self {
            Self::FixedLengthUtf32 { .. } => 4,
            Self::RawBits { .. } | Self::NullTerminatedBytes { .. } => 1,
            variable if variable.is_variable() => 1,
            other => other.complex_half().map_or_else(|| other.item_bytes(), |half| half.item_bytes()),
        }
    }

    /// An element as runs of bytes whose units of some size are reversed where it is stored with these byte orders,
    /// one for each simple part: bytes of the run, bytes of a unit to be reversed (1 if none is). Parts without an
    /// order of their own are little-endian.
    #[must_use]
    pub fn stored_units(&self, orders: &[Endianness]) -> Vec<(usize, usize)> {
        let mut units = Vec::new();
        self.add_stored_units(&mut orders.iter(), &mut units);
        units
    }

    fn add_stored_units(&self, orders: &mut std::slice::Iter<Endianness>, units: &mut Vec<(usize, usize)>) {
        match self {
            Self::Struct(structure) => {
                for field in structure.fields() {
                    field.data_type.add_stored_units(orders, units);
                }
            }
            Self::Subarray(subarray) => {
                let start = units.len();
                subarray.item().add_stored_units(orders, units);
                let item = units.split_off(start);
                match item[..] {
                    [(_, unit)] => units.push((subarray.item_bytes(), unit)),
                    _ => units.extend(item.repeat(subarray.elements())),
                }
            }
            simple => {
                let big = orders.next() == Some(&Endianness::Big);
                let unit = if big { simple.simple_unit_bytes() } else { 1 };
                units.push((simple.item_bytes(), unit));
            }
        }
    }

    /// The number of its simple parts, each of which has a byte order: 1 but for structs.
    #[must_use]
    pub fn simple_parts(&self) -> usize {
        match self {
            Self::Struct(structure) => {
                structure.fields().iter().map(|field| field.data_type.simple_parts()).sum()
            }
            Self::Subarray(subarray) => subarray.item().simple_parts(),
            _ => 1,
        }
    }

    /// A short name, such as `float32`, `r24`, `numpy.datetime64[25us]` or `fixed_length_utf32[20]` (bytes of an
    /// element). It is for people; what documents have is [`to_metadata`](Self::to_metadata).
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::RawBits { bytes } => format!("r{}", u64::from(*bytes) * 8),
            Self::DateTime64(step) => format!("numpy.datetime64[{step}]"),
            Self::TimeDelta64(step) => format!("numpy.timedelta64[{step}]"),
            Self::FixedLengthUtf32 { .. } => format!("fixed_length_utf32[{}]", self.item_bytes()),
            Self::NullTerminatedBytes { bytes } => format!("null_terminated_bytes[{bytes}]"),
            Self::SmallFloat(float) => float.name().to_owned(),
            Self::ComplexSmallFloat(float) => format!("complex_{}", float.name()),
            Self::Struct(structure) => structure.name(),
            Self::Subarray(subarray) => subarray.name(),
            Self::VariableArray(item) => format!("variable_array[{}]", item.name()),
            named => {
                let found = NAMED.iter().find(|(known, ..)| known == named);
                // Always found: the table holds all the others, and a test says so.
                found.map_or_else(String::new, |(_, name, ..)| (*name).to_owned())
            }
        }
    }

    /// Raw bits of so many bytes. `written` is what the document calls them.
    fn raw_bits(bytes: u32, written: &str) -> Result<Self, MetadataError> {
        length(bytes, written).map(|bytes| Self::RawBits { bytes })
    }

    /// Text of so many bytes. `written` is what the document calls it.
    fn null_terminated_bytes(bytes: u32, written: &str) -> Result<Self, MetadataError> {
        length(bytes, written).map(|bytes| Self::NullTerminatedBytes { bytes })
    }

    /// Text of so many bytes, four for each character. `written` is what the document calls it.
    fn fixed_length_utf32(bytes: u32, written: &str) -> Result<Self, MetadataError> {
        match length(bytes, written)? {
            bytes if bytes.is_multiple_of(4) => Ok(Self::FixedLengthUtf32 { code_points: bytes / 4 }),
            _ => Err(MetadataError::invalid("data type", format!("`{written}` has parts of characters"))),
        }
    }
}

/// A length in bytes that an element may have.
fn length(bytes: u32, written: &str) -> Result<u32, MetadataError> {
    match bytes {
        0 => Err(MetadataError::invalid("data type", format!("`{written}` has no bytes"))),
        1..=MAX_ITEM_BYTES => Ok(bytes),
        _ => Err(MetadataError::unsupported("data type", written)),
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
    use super::*;

    #[test]
    fn every_type_has_a_short_name() {
        assert_eq!(DataType::RawBits { bytes: 3 }.name(), "r24");
        let step = TimeStep::new(TimeUnit::Microsecond, 25).unwrap();
        assert_eq!(DataType::DateTime64(step).name(), "numpy.datetime64[25us]");
        let step = TimeStep::new(TimeUnit::Second, 1).unwrap();
        assert_eq!(DataType::TimeDelta64(step).name(), "numpy.timedelta64[s]");
        assert_eq!(DataType::FixedLengthUtf32 { code_points: 5 }.name(), "fixed_length_utf32[20]");
        assert_eq!(DataType::NullTerminatedBytes { bytes: 5 }.name(), "null_terminated_bytes[5]");
    }

    #[test]
    fn the_table_and_the_sizes_of_elements_agree() {
        for (data_type, _, _, bytes) in &NAMED {
            let bytes = *bytes;
            assert_eq!(data_type.item_bytes(), usize::try_from(bytes).unwrap());
        }
    }
}

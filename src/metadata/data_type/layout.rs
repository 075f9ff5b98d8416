//! The size of elements, and the units within them that a byte order reverses.

use super::{DataType, Endianness};

/// Size in bytes of an element of variable length: its offset and length in the heap.
pub(crate) const VARIABLE_ITEM_BYTES: usize = 8;

impl DataType {
    /// The smallest and the largest number of an integer type.
    #[must_use]
    pub const fn integer_bounds(&self) -> Option<(i128, i128)> {
        let (bits, is_signed) = match self {
            Self::Int2 => (2, true),
            Self::Int4 => (4, true),
            Self::Int8 => (8, true),
            Self::Int16 => (16, true),
            Self::Int32 => (32, true),
            Self::Int64 => (64, true),
            Self::UInt2 => (2, false),
            Self::UInt4 => (4, false),
            Self::UInt8 => (8, false),
            Self::UInt16 => (16, false),
            Self::UInt32 => (32, false),
            Self::UInt64 => (64, false),
            _ => return None,
        };
        let count = 1_i128 << bits;
        Some(if is_signed { (-count / 2, count / 2 - 1) } else { (0, count - 1) })
    }

    /// Whether elements are integers, of any number of bits.
    #[must_use]
    pub const fn is_integer(&self) -> bool {
        matches!(
            self,
            Self::Int2
                | Self::Int4
                | Self::Int8
                | Self::Int16
                | Self::Int32
                | Self::Int64
                | Self::UInt2
                | Self::UInt4
                | Self::UInt8
                | Self::UInt16
                | Self::UInt32
                | Self::UInt64
        )
    }

    /// Size of an element in bytes; at least 1. For types of variable length, without the bytes in the heap.
    #[must_use]
    pub fn element_bytes(&self) -> usize {
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
            Self::Struct(structure) => structure.element_bytes(),
            Self::Subarray(subarray) => subarray.element_bytes(),
            Self::String | Self::VariableBytes | Self::VariableArray(_) | Self::Json => VARIABLE_ITEM_BYTES,
        }
    }

    /// Whether elements have variable length, so that their bytes are in a heap.
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

    /// Size in bytes of the unit to which a byte order applies, such as half of a complex number or a UTF-32 character; 1 for
    /// types without byte order. `None` for structs whose fields differ (see [`endian_units`](Self::endian_units)).
    #[must_use]
    pub fn endian_unit_bytes(&self) -> Option<usize> {
        let mut units = self.endian_units().into_iter();
        let (_, first) = units.next()?;
        units.all(|(_, unit)| unit == first).then_some(first)
    }

    /// An element as runs of units of equal size: bytes of the run, bytes of a unit.
    #[must_use]
    pub fn endian_units(&self) -> Vec<(usize, usize)> {
        self.stored_units(&vec![Endianness::Big; self.simple_parts()])
    }

    /// Size in bytes of the unit to which a byte order applies, for a type that is not a struct.
    fn simple_unit_bytes(&self) -> usize {
        match self {
            Self::FixedLengthUtf32 { .. } => 4,
            Self::RawBits { .. } | Self::NullTerminatedBytes { .. } => 1,
            variable if variable.is_variable() => 1,
            other => other.complex_half().map_or_else(|| other.element_bytes(), |half| half.element_bytes()),
        }
    }

    /// An element as runs of bytes, for elements stored with these byte orders, one for each simple part: bytes of the run,
    /// bytes of the units to reverse (1 for no reversal). Parts without an order are little-endian.
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
                    [(_, unit)] => units.push((subarray.element_bytes(), unit)),
                    _ => units.extend(item.repeat(subarray.elements())),
                }
            }
            simple => {
                let big = orders.next() == Some(&Endianness::Big);
                let unit = if big { simple.simple_unit_bytes() } else { 1 };
                units.push((simple.element_bytes(), unit));
            }
        }
    }

    /// The number of simple parts, each with its own byte order: 1 except for structs.
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
}

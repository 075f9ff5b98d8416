//! [`DataType`]: the types of elements (Zarr core 3.1, "Data types").

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
        match self {
            Self::Bool => "bool".to_owned(),
            Self::Int8 => "int8".to_owned(),
            Self::Int16 => "int16".to_owned(),
            Self::Int32 => "int32".to_owned(),
            Self::Int64 => "int64".to_owned(),
            Self::UInt8 => "uint8".to_owned(),
            Self::UInt16 => "uint16".to_owned(),
            Self::UInt32 => "uint32".to_owned(),
            Self::UInt64 => "uint64".to_owned(),
            Self::Float16 => "float16".to_owned(),
            Self::Float32 => "float32".to_owned(),
            Self::Float64 => "float64".to_owned(),
            Self::Complex64 => "complex64".to_owned(),
            Self::Complex128 => "complex128".to_owned(),
            Self::RawBits { bytes } => format!("r{}", u64::from(bytes) * 8),
        }
    }
}

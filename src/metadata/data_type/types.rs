//! [`DataType`]: the types of elements, and the types they contain.
//!
//! The bytes of each type are in `layout`, its names in `names`, `v2` and `v3`.

use std::sync::Arc;

use super::{SmallFloat, TimeStep};

/// The byte order of a stored number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Endianness {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

impl DataType {
    /// The real numbers that numpy has, too.
    pub const NUMPY_REALS: [Self; 11] = [
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::UInt8,
        Self::UInt16,
        Self::UInt32,
        Self::UInt64,
        Self::Float16,
        Self::Float32,
        Self::Float64,
    ];
}

impl Endianness {
    /// The value of `endian` in the `bytes` codec.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Little => "little",
            Self::Big => "big",
        }
    }
}

/// The type of an array's elements.
///
/// In memory, elements have a canonical form: little-endian and packed; a `bool` is one byte of 0 or 1; an integer of less
/// than 8 bits is the `int8` or `uint8` of the same value; a complex number is its real part followed by its imaginary
/// part; text shorter than its element is padded with zeros; a struct is its fields without gaps. An element of variable
/// length is the offset and length of its bytes in a heap (see [`Elements`](crate::chunk::Elements)).
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
    /// `r<bits>`: raw bytes
    RawBits {
        /// Bytes of an element, at least 1.
        bytes: u32,
    },
    /// `numpy.datetime64`: steps since the start of 1970, an `int64`. The smallest value is `NaT`.
    DateTime64(TimeStep),
    /// `numpy.timedelta64`: steps, an `int64`. The smallest value is `NaT`.
    TimeDelta64(TimeStep),
    /// `fixed_length_utf32`: characters of four bytes each. Zeros at the end are padding.
    FixedLengthUtf32 {
        /// Characters of an element, at least 1.
        code_points: u32,
    },
    /// `null_terminated_bytes`: text in an unknown encoding. Zeros at the end are padding.
    NullTerminatedBytes {
        /// Bytes of an element, at least 1.
        bytes: u32,
    },
    /// `struct`: named fields
    Struct(Arc<StructType>),
    /// Several elements of one type, as a field of a struct (v2 only)
    Subarray(Arc<SubarrayType>),
    /// `string`: text of any length, in UTF-8
    String,
    /// `bytes`: any number of bytes
    VariableBytes,
    /// Any number of elements of a fixed size (v2 only, by the filter `vlen-array`)
    VariableArray(Arc<DataType>),
    /// A JSON value (v2 only, by the filter `json2`); its bytes are its text, with the members of objects sorted by name
    Json,
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Its name, unique within the struct.
    pub name: Arc<str>,
    /// Its type, of a fixed size.
    pub data_type: DataType,
}

/// The type of a struct: at least one field, each with a unique name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StructType {
    pub(super) fields: Vec<Field>,
    pub(super) element_bytes: usize,
    pub(super) leaves: usize,
    pub(super) depth: usize,
}

/// The type of a field with several elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SubarrayType {
    pub(super) item: DataType,
    pub(super) shape: Vec<u32>,
    pub(super) elements: usize,
    pub(super) leaves: usize,
    pub(super) depth: usize,
}

//! [`ElementEncoding`]: how the elements of an array become big-endian values of an external type.
//!
//! NetCDF packs values by their size. XDR (RFC 4506), which DAP2 is written in, has no integers of fewer than 32 bits: those of
//! 16 bits take 4 bytes. DAP2 has no integers of 64 bits either.

use bytes::Bytes;
use half::{bf16, f16};

use super::error::DatasetError;
use super::external_type::ExternalType;
use crate::metadata::{DataType, SmallFloat};
use crate::render::byte_order::{push_reversed, reverse_units};

/// Most bytes of a float64's significand: whole numbers to 2^53 are exact, larger ones if their low bits are zero.
const EXACT_BITS: u32 = f64::MANTISSA_DIGITS;

/// How elements become values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementEncoding {
    external: ExternalType,
    step: Step,
    element_bytes: usize,
    /// Bytes of a value as it is sent.
    value_bytes: usize,
}

/// What is done with an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The bytes are reversed.
    Reverse,
    /// An integer is widened, with its sign.
    Widen,
    /// The same, without one.
    WidenUnsigned,
    Half,
    BrainHalf,
    Small(SmallFloat),
    /// An integer becomes one of 32 bits with a sign; its value must fit.
    Narrow {
        is_signed: bool,
    },
    /// An integer becomes a float64; its value must be exact.
    Exact {
        is_signed: bool,
    },
}

impl ElementEncoding {
    /// The encoding of elements in a NetCDF file (CDF-5, of which CDF-2 has some types); `None` if it has no type for them.
    #[must_use]
    pub fn netcdf(data_type: &DataType) -> Option<Self> {
        let external = match data_type {
            DataType::Bool | DataType::Int2 | DataType::Int4 | DataType::Int8 => ExternalType::Byte,
            DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => ExternalType::UByte,
            DataType::Int16 => ExternalType::Short,
            DataType::UInt16 => ExternalType::UShort,
            DataType::Int32 => ExternalType::Int,
            DataType::UInt32 => ExternalType::UInt,
            DataType::Int64 => ExternalType::Int64,
            DataType::UInt64 => ExternalType::UInt64,
            DataType::Float32 => ExternalType::Float,
            DataType::Float64 => ExternalType::Double,
            DataType::DateTime64(step) | DataType::TimeDelta64(step) => {
                super::fill::units_of(*step)?;
                ExternalType::Int64
            }
            other => return Self::small_float(other),
        };
        Some(Self::new(data_type, external, Step::Reverse, external.bytes()))
    }

    /// The encodings of integers that CDF-2 has no type for, in types that it has: as `Int`, and as `Double`. The first that has all
    /// values is the right one. None for other elements.
    #[must_use]
    pub fn netcdf_classic(data_type: &DataType) -> Vec<Self> {
        let is_signed = match data_type {
            DataType::Int64 => true,
            DataType::UInt32 | DataType::UInt64 => false,
            DataType::DateTime64(step) | DataType::TimeDelta64(step)
                if super::fill::units_of(*step).is_some() =>
            {
                true
            }
            _ => return Vec::new(),
        };
        vec![
            Self::new(data_type, ExternalType::Int, Step::Narrow { is_signed }, 4),
            Self::new(data_type, ExternalType::Double, Step::Exact { is_signed }, 8),
        ]
    }

    /// The encoding of elements in a DAP2 response; `None` if it has no type for them. Integers of 64 bits become `Int32` if
    /// `is_narrow`, else `Float64`.
    #[must_use]
    pub fn dap2(data_type: &DataType, is_narrow: bool) -> Option<Self> {
        let wide = |is_signed: bool| {
            if is_narrow {
                Self::new(data_type, ExternalType::Int, Step::Narrow { is_signed }, 4)
            } else {
                Self::new(data_type, ExternalType::Double, Step::Exact { is_signed }, 8)
            }
        };
        Some(match data_type {
            DataType::Bool => Self::new(data_type, ExternalType::UByte, Step::Reverse, 1),
            DataType::Int2 | DataType::Int4 | DataType::Int8 | DataType::Int16 => {
                Self::new(data_type, ExternalType::Short, Step::Widen, 4)
            }
            // netCDF-C reads a `UInt16` and a `UInt32` as integers with a sign.
            DataType::UInt16 => Self::new(data_type, ExternalType::Int, Step::WidenUnsigned, 4),
            DataType::UInt32 => {
                Self::new(data_type, ExternalType::Double, Step::Exact { is_signed: false }, 8)
            }
            DataType::Int64 => wide(true),
            DataType::UInt64 => wide(false),
            DataType::DateTime64(step) | DataType::TimeDelta64(step) => {
                super::fill::units_of(*step)?;
                Self::new(data_type, ExternalType::Double, Step::Exact { is_signed: true }, 8)
            }
            other => return Self::netcdf(other),
        })
    }

    /// The encoding of elements in a DAP4 response; `None` if it has no type for them. Truth values are integers without a sign.
    #[must_use]
    pub fn dap4(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Bool => Some(Self::new(data_type, ExternalType::UByte, Step::Reverse, 1)),
            other => Self::netcdf(other),
        }
    }

    fn new(data_type: &DataType, external: ExternalType, step: Step, value_bytes: usize) -> Self {
        Self { external, step, element_bytes: data_type.element_bytes(), value_bytes }
    }

    fn small_float(data_type: &DataType) -> Option<Self> {
        let step = match data_type {
            DataType::Float16 => Step::Half,
            DataType::BFloat16 => Step::BrainHalf,
            DataType::SmallFloat(float) => Step::Small(*float),
            _ => return None,
        };
        Some(Self::new(data_type, ExternalType::Float, step, 4))
    }

    /// The type of the values.
    #[must_use]
    pub const fn external(&self) -> ExternalType {
        self.external
    }

    /// Bytes of an element.
    #[must_use]
    pub const fn element_bytes(&self) -> usize {
        self.element_bytes
    }

    /// Bytes of a value as it is sent.
    #[must_use]
    pub const fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    /// Whether values have the bytes of their elements.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.step == Step::Reverse && self.element_bytes == 1
    }

    /// The bytes of the values of elements of this many bytes.
    #[must_use]
    pub fn encoded_bytes(&self, element_bytes: u64) -> u64 {
        (element_bytes / self.element_bytes as u64).saturating_mul(self.value_bytes as u64)
    }

    /// Appends the values of whole elements as they are sent.
    ///
    /// # Errors
    /// [`DatasetError::Inexact`].
    pub fn encode(&self, elements: &[u8], out: &mut Vec<u8>) -> Result<(), DatasetError> {
        let items = elements.chunks_exact(self.element_bytes);
        out.reserve(items.len().saturating_mul(self.value_bytes));
        match self.step {
            Step::Reverse if self.is_identity() => out.extend_from_slice(elements),
            Step::Reverse => push_reversed(elements, self.element_bytes, out),
            Step::Widen => items.for_each(|item| out.extend_from_slice(&signed(item).to_be_bytes())),
            Step::WidenUnsigned => {
                items.for_each(|item| out.extend_from_slice(&unsigned(item).to_be_bytes()));
            }
            Step::Half | Step::BrainHalf | Step::Small(_) => {
                items.for_each(|item| out.extend_from_slice(&self.single(item).to_be_bytes()));
            }
            Step::Narrow { is_signed } => {
                for item in items {
                    let number = i32::try_from(wide(item, is_signed));
                    let number = number.map_err(|_too_large| DatasetError::Inexact(64))?;
                    out.extend_from_slice(&number.to_be_bytes());
                }
            }
            Step::Exact { is_signed } => {
                for item in items {
                    out.extend_from_slice(&exact(wide(item, is_signed))?.to_be_bytes());
                }
            }
        }
        Ok(())
    }

    /// The values of whole elements as they are sent. Elements that nothing else holds are reversed in place.
    ///
    /// # Errors
    /// [`DatasetError::Inexact`].
    pub fn encode_bytes(&self, elements: Bytes) -> Result<Bytes, DatasetError> {
        if self.is_identity() {
            return Ok(elements);
        }
        let elements = match elements.try_into_mut() {
            Ok(mut elements) if self.step == Step::Reverse => {
                reverse_units(&mut elements, self.element_bytes);
                return Ok(elements.freeze());
            }
            Ok(elements) => elements.freeze(),
            Err(shared) => shared,
        };
        let mut values = Vec::new();
        self.encode(&elements, &mut values)?;
        Ok(values.into())
    }

    /// The values of whole elements in little-endian order, as DAP4 sends them. Those whose elements are values already are not
    /// copied.
    ///
    /// # Errors
    /// [`DatasetError::Inexact`].
    pub fn encode_little(&self, elements: Bytes) -> Result<Bytes, DatasetError> {
        if self.step == Step::Reverse {
            return Ok(elements);
        }
        let mut values = Vec::new();
        self.encode(&elements, &mut values)?;
        reverse_units(&mut values, self.value_bytes);
        Ok(values.into())
    }

    /// The value of one element, in the bytes of its type; `None` if the type cannot have it.
    #[must_use]
    pub fn value_of(&self, element: &[u8]) -> Option<Vec<u8>> {
        let mut value = Vec::with_capacity(self.value_bytes);
        self.encode(element, &mut value).ok()?;
        // What XDR widens has its value at the end.
        let padding = self.value_bytes.checked_sub(self.external.bytes())?;
        value.drain(..padding.min(value.len()));
        (value.len() == self.external.bytes()).then_some(value)
    }

    fn single(&self, item: &[u8]) -> f32 {
        let pair = || <[u8; 2]>::try_from(item).unwrap_or_default();
        match self.step {
            Step::Half => f16::from_le_bytes(pair()).to_f32(),
            Step::BrainHalf => bf16::from_le_bytes(pair()).to_f32(),
            Step::Small(float) => float.value(item.first().copied().unwrap_or_default()),
            _ => f32::NAN,
        }
    }
}

/// An integer of 8 or 16 bits.
fn signed(item: &[u8]) -> i32 {
    match *item {
        [byte] => i32::from(i8::from_le_bytes([byte])),
        [low, high] => i32::from(i16::from_le_bytes([low, high])),
        _ => 0,
    }
}

fn unsigned(item: &[u8]) -> u32 {
    match *item {
        [byte] => u32::from(byte),
        [low, high] => u32::from(u16::from_le_bytes([low, high])),
        _ => 0,
    }
}

/// An integer of 64 bits, or one of 32 bits without a sign.
fn wide(item: &[u8], is_signed: bool) -> i128 {
    if let Ok(bytes) = <[u8; 4]>::try_from(item) {
        return u32::from_le_bytes(bytes).into();
    }
    let bytes = <[u8; 8]>::try_from(item).unwrap_or_default();
    if is_signed { i64::from_le_bytes(bytes).into() } else { u64::from_le_bytes(bytes).into() }
}

/// An integer as a float64 of the same value.
#[expect(clippy::cast_precision_loss, reason = "the significant bits fit")]
fn exact(number: i128) -> Result<f64, DatasetError> {
    let magnitude = number.unsigned_abs();
    let significant = if magnitude == 0 { 0 } else { magnitude.ilog2() + 1 - magnitude.trailing_zeros() };
    if significant > EXACT_BITS {
        return Err(DatasetError::Inexact(64));
    }
    Ok(number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(encoding: &ElementEncoding, elements: &[u8]) -> Result<Vec<u8>, DatasetError> {
        let mut out = Vec::new();
        encoding.encode(elements, &mut out)?;
        // The same of elements that something else holds, and of others.
        let shared = Bytes::copy_from_slice(elements);
        assert_eq!(encoding.encode_bytes(shared.clone())?, out);
        assert_eq!(shared, elements);
        assert_eq!(encoding.encode_bytes(shared)?, out);
        Ok(out)
    }

    #[test]
    fn elements_are_big_endian_values_of_the_external_type() {
        let netcdf = |data_type: &DataType| ElementEncoding::netcdf(data_type).unwrap();
        assert_eq!(encoded(&netcdf(&DataType::Int16), &[1, 2, 3, 4]), Ok(vec![2, 1, 4, 3]));
        assert_eq!(encoded(&netcdf(&DataType::UInt8), &[1, 255]), Ok(vec![1, 255]));
        let half = f16::from_f32(1.5).to_le_bytes();
        assert_eq!(encoded(&netcdf(&DataType::Float16), &half), Ok(1.5_f32.to_be_bytes().to_vec()));
        assert_eq!(ElementEncoding::netcdf(&DataType::Complex64), None);
    }

    #[test]
    fn dap2_widens_short_integers_and_refuses_long_ones_that_are_not_exact() {
        let short = ElementEncoding::dap2(&DataType::Int16, false).unwrap();
        assert_eq!(encoded(&short, &(-2_i16).to_le_bytes()), Ok((-2_i32).to_be_bytes().to_vec()));
        assert_eq!(short.value_of(&(-2_i16).to_le_bytes()), Some(vec![0xff, 0xfe]));
        let long = ElementEncoding::dap2(&DataType::Int64, false).unwrap();
        let double = |number: f64| Ok(number.to_be_bytes().to_vec());
        for (number, expected) in [
            (0, double(0.0)),
            (i64::MIN, double(-(2_f64.powi(63)))),
            (1_577_836_800_000_000_000, double(1.577_836_8e18)),
            ((1 << 53) + 1, Err(DatasetError::Inexact(64))),
            (i64::MAX, Err(DatasetError::Inexact(64))),
        ] {
            assert_eq!(encoded(&long, &number.to_le_bytes()), expected, "{number}");
        }
        let unsigned = ElementEncoding::dap2(&DataType::UInt32, false).unwrap();
        assert_eq!(encoded(&unsigned, &u32::MAX.to_le_bytes()), double(4_294_967_295.0));
        let narrow = ElementEncoding::dap2(&DataType::UInt64, true).unwrap();
        assert_eq!(encoded(&narrow, &7_u64.to_le_bytes()), Ok(vec![0, 0, 0, 7]));
        assert!(encoded(&narrow, &u64::MAX.to_le_bytes()).is_err());
    }
}

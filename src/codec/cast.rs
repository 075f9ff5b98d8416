//! [`Cast`]: converts real numbers to another data type without changing an integer's value.
//!
//! The rules are those of the `cast_value` codec (Zarr extensions) with rounding to the nearest. Between floats, numbers are
//! rounded. An integer that a float type cannot represent, a fraction cast to an integer, and a number out of range are
//! errors that name the number. Views use this to present elements in another type than the stored one.

use ::bytes::Bytes;

use super::array_to_array::cast_value::Rule;
use super::error::CodecError;
use super::support::number::{self, Number};
use crate::metadata::DataType;

/// Casts elements of one type to another.
#[derive(Debug)]
pub struct Cast {
    from: DataType,
    to: DataType,
    rule: Rule,
}

impl Cast {
    /// The cast from one type to another; `None` if the elements of either are not real numbers.
    #[must_use]
    pub fn new(from: &DataType, to: &DataType) -> Option<Self> {
        let are_real = number::is_real(from) && number::is_real(to);
        let rule = Rule::to_nearest(to).filter(|_| are_real)?;
        Some(Self { from: from.clone(), to: to.clone(), rule })
    }

    /// Casts elements, given in canonical form.
    ///
    /// # Errors
    /// [`CodecError::NotCast`]; [`CodecError::NoMemory`].
    pub fn cast(&self, items: &[u8]) -> Result<Bytes, CodecError> {
        let refused =
            |reason: String| CodecError::NotCast { data_type: self.to.name().into(), reason: reason.into() };
        number::try_convert(items, &self.from, &self.to, |block| {
            for number in block {
                let cast = self.rule.cast(*number).map_err(refused)?;
                if !is_same_number(*number, cast) {
                    return Err(refused(format!("is {}, which the type cannot represent", text(*number))));
                }
                *number = cast;
            }
            Ok(())
        })
    }
}

/// Whether a cast kept the value. Floats cast to floats may be rounded.
fn is_same_number(before: Number, after: Number) -> bool {
    match (before, after) {
        (Number::Float(_), Number::Float(_)) => true,
        (before, after) => exact_integer(before).is_some_and(|before| exact_integer(after) == Some(before)),
    }
}

/// The number as an integer; `None` if it has a fraction, is not finite, or is beyond every integer type.
#[expect(clippy::cast_possible_truncation, reason = "a whole float below 2^64 is cast")]
fn exact_integer(number: Number) -> Option<i128> {
    match number {
        Number::Signed(number) => Some(number.into()),
        Number::Unsigned(number) => Some(number.into()),
        // No integer type reaches further.
        Number::Float(number) if number.fract() == 0.0 && number.abs() <= 2.0_f64.powi(64) => {
            Some(number as i128)
        }
        Number::Float(_) => None,
    }
}

fn text(number: Number) -> String {
    match number {
        Number::Signed(number) => number.to_string(),
        Number::Unsigned(number) => number.to_string(),
        Number::Float(number) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(from: &DataType, to: &DataType, items: &[u8]) -> Result<Vec<u8>, String> {
        let cast = Cast::new(from, to).unwrap().cast(items);
        cast.map(Vec::from).map_err(|error| error.to_string())
    }

    #[test]
    fn an_integer_is_cast_exactly_or_named_in_an_error() {
        let (int64, float64) = (DataType::Int64, DataType::Float64);
        for exact in [0_i64, -1, 1 << 53, -(1 << 53), i64::MIN, (1 << 53) + 2, 3 << 60] {
            let expected = (exact as f64).to_le_bytes();
            assert_eq!(cast(&int64, &float64, &exact.to_le_bytes()).as_deref(), Ok(&expected[..]), "{exact}");
            assert_eq!(
                cast(&float64, &int64, &expected).as_deref(),
                Ok(&exact.to_le_bytes()[..]),
                "{exact}, back"
            );
        }
        for other in [(1_i64 << 53) + 1, i64::MAX, i64::MIN + 1, -(1 << 60) - 3] {
            let error = cast(&int64, &float64, &other.to_le_bytes()).unwrap_err();
            assert!(error.contains(&other.to_string()) && error.contains("float64"), "{error}");
        }
        let largest = u64::MAX.to_le_bytes();
        assert!(cast(&DataType::UInt64, &float64, &largest).is_err());
        assert!(cast(&DataType::UInt64, &int64, &largest).unwrap_err().contains("18446744073709551615"));
        assert_eq!(cast(&DataType::UInt16, &DataType::UInt8, &[255, 0]).as_deref(), Ok(&[255][..]));
        assert!(cast(&DataType::UInt16, &DataType::UInt8, &[0, 1]).unwrap_err().contains("256"));
        assert!(cast(&DataType::Int8, &DataType::UInt8, &[255]).unwrap_err().contains("-1"));
        assert!(cast(&DataType::UInt32, &DataType::Float16, &2049_u32.to_le_bytes()).is_err());
        assert!(cast(&DataType::UInt32, &DataType::Float16, &70_000_u32.to_le_bytes()).is_err());
    }

    #[test]
    fn floats_are_rounded_to_floats_and_never_to_integers() {
        let (float32, float64) = (DataType::Float32, DataType::Float64);
        assert_eq!(
            cast(&float64, &float32, &0.1_f64.to_le_bytes()).as_deref(),
            Ok(&0.1_f32.to_le_bytes()[..])
        );
        for kept in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0] {
            let wide = f64::from(kept).to_le_bytes();
            assert_eq!(cast(&float64, &float32, &wide).as_deref(), Ok(&kept.to_le_bytes()[..]), "{kept}");
        }
        assert!(cast(&float64, &float32, &1e300_f64.to_le_bytes()).is_err());
        for other in [2.5_f64, 0.5, f64::NAN, f64::INFINITY, 1e30, -129.0] {
            let error = cast(&float64, &DataType::Int8, &other.to_le_bytes()).unwrap_err();
            assert!(error.contains("int8"), "{error}");
        }
        assert_eq!(cast(&DataType::Float16, &float32, &[0, 0x3c]).as_deref(), Ok(&1_f32.to_le_bytes()[..]));
    }

    #[test]
    fn types_that_are_not_real_numbers_are_not_cast() {
        for other in [DataType::Bool, DataType::Complex64, DataType::String, DataType::RawBits { bytes: 4 }] {
            assert!(Cast::new(&other, &DataType::Float32).is_none());
            assert!(Cast::new(&DataType::Float32, &other).is_none());
        }
    }
}

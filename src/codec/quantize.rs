//! `quantize`: floats rounded to so many decimal digits, in steps of a power of two (numcodecs, "quantize").
//!
//! What is rounded stays so: decoding only changes the data type back.

use ::bytes::Bytes;

use super::CodecError;
use super::config::Config;
use super::number::{self, Number};
use super::registry::{BindContext, BoundArray, ElementwiseCodec};
use crate::metadata::DataType;

/// More digits than `float64` has on either side of the point.
const MAX_DIGITS: u32 = 300;

#[derive(Debug)]
struct Quantize {
    decoded: DataType,
    encoded: DataType,
    /// Steps in a unit: a power of two.
    scale: f64,
}

pub(super) fn bind(config: &Config, context: &BindContext) -> Result<BoundArray, CodecError> {
    let decoded = config.view("dtype", context.input)?;
    let encoded = config.number_type("astype")?.unwrap_or_else(|| decoded.clone());
    if !number::is_float(&decoded) || !number::is_float(&encoded) {
        return Err(config.invalid("`dtype` and `astype` must be floats"));
    }
    let digits = config.integer("digits")?.and_then(|digits| i32::try_from(digits).ok());
    let Some(digits) = digits.filter(|digits| digits.unsigned_abs() <= MAX_DIGITS) else {
        return Err(config.invalid(format!("`digits` must be between -{MAX_DIGITS} and {MAX_DIGITS}")));
    };
    let output = context.input.retyped(&decoded, &encoded)?;
    let scale = (f64::from(digits) * std::f64::consts::LOG2_10).ceil().exp2();
    Ok((Box::new(Quantize { decoded, encoded, scale }), output))
}

impl ElementwiseCodec for Quantize {
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        if self.encoded == self.decoded {
            return Ok(encoded);
        }
        number::convert(&encoded, &self.encoded, &self.decoded, |_block| {})
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        number::convert(&decoded, &self.decoded, &self.encoded, |block| {
            for number in block {
                let steps = number.float64() * self.scale;
                // A number too large to count in steps has no digits to lose.
                if steps.is_finite() {
                    *number = Number::Float(steps.round_ties_even() / self.scale);
                }
            }
        })
    }
}

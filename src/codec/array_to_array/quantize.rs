//! `quantize`: rounds floats to a number of decimal digits, in steps of a power of two (numcodecs, "quantize").
//!
//! Rounding is not undone: decoding only restores the data type.

use ::bytes::Bytes;

use crate::codec::CodecError;
use crate::codec::contract::ElementwiseCodec;
use crate::codec::factory::{BindContext, BoundArrayToArray, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::codec::support::number::{self, Number};
use crate::metadata::{DataType, V2ByteOrder, V2Codec};

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.quantize"],
    v2: &[V2Codec {
        byte_order: V2ByteOrder::Named { decoded: Some("dtype"), encoded: "astype" },
        ..V2Codec::new("quantize", "numcodecs.quantize")
    }],
    factory: CodecFactory::ArrayToArray(bind),
};

/// More digits than `float64` has on either side of the point.
const MAX_DIGITS: u32 = 300;

#[derive(Debug)]
struct Quantize {
    decoded: DataType,
    encoded: DataType,
    /// Steps per unit: a power of two.
    scale: f64,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToArray, CodecError> {
    let decoded = config.view_type("dtype", context.input)?;
    let encoded = config.numpy_type("astype")?.unwrap_or_else(|| decoded.clone());
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
                // A number that overflows when counted in steps has no digits after the point.
                if steps.is_finite() {
                    *number = Number::Float(steps.round_ties_even() / self.scale);
                }
            }
        })
    }
}

//! `fixedscaleoffset`: `(x - offset) × scale`, rounded to even, as another data type (numcodecs,
//! "fixedscaleoffset").
//!
//! What it loses it does not give back. As in numpy, a float is worked on in its own precision, and an integer in
//! that of `float64`.

use ::bytes::Bytes;
use half::f16;

use super::CodecError;
use super::config::Config;
use super::number::{self, Number};
use super::registry::{BindContext, BoundArray, ElementwiseCodec};
use crate::metadata::DataType;

#[derive(Debug)]
struct FixedScaleOffset {
    decoded: DataType,
    encoded: DataType,
    scale: f64,
    offset: f64,
}

pub(super) fn bind(config: &Config, context: &BindContext) -> Result<BoundArray, CodecError> {
    let decoded = config.view("dtype", context.input)?;
    let encoded = config.number_type("astype")?.unwrap_or_else(|| decoded.clone());
    let required = |key| config.float(key)?.ok_or_else(|| config.invalid(format!("`{key}` is missing")));
    let (scale, offset) = (required("scale")?, required("offset")?);
    if scale == 0.0 {
        return Err(config.invalid("`scale` must not be 0"));
    }
    let output = context.input.retyped(&decoded, &encoded)?;
    Ok((Box::new(FixedScaleOffset { decoded, encoded, scale, offset }), output))
}

impl ElementwiseCodec for FixedScaleOffset {
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        let round = rounding(&self.encoded);
        let (scale, offset) = (round(self.scale), round(self.offset));
        number::convert(&encoded, &self.encoded, &self.decoded, |block| {
            for number in block {
                *number = Number::Float(round(round(number.float64() / scale) + offset));
            }
        })
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let round = rounding(&self.decoded);
        let (scale, offset) = (round(self.scale), round(self.offset));
        number::convert(&decoded, &self.decoded, &self.encoded, |block| {
            for number in block {
                let scaled = round(round(number.float64() - offset) * scale);
                *number = Number::Float(scaled.round_ties_even());
            }
        })
    }
}

/// What rounds to the precision that elements of a type are worked on in.
///
/// One operation in `float64`, rounded, is that operation in the narrower type: it has more than twice the bits.
fn rounding(data_type: &DataType) -> fn(f64) -> f64 {
    match data_type {
        DataType::Float16 => |number| f16::from_f64(number).into(),
        DataType::Float32 => |number| Number::Float(number).float32().into(),
        _ => |number| number,
    }
}

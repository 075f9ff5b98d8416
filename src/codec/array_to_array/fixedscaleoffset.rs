//! `fixedscaleoffset`: `(x - offset) × scale`, rounded to even, as another data type (numcodecs, "fixedscaleoffset").
//!
//! It is lossy. As in numpy, arithmetic on floats has their own precision, and arithmetic on integers that of `float64`.

use ::bytes::Bytes;
use half::f16;

use crate::codec::CodecError;
use crate::codec::contract::ElementwiseCodec;
use crate::codec::factory::{BindContext, BoundArrayToArray, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::codec::support::number::{self, Number};
use crate::metadata::{DataType, V2ByteOrder, V2Codec};

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.fixedscaleoffset"],
    v2: &[V2Codec {
        byte_order: V2ByteOrder::Named { decoded: Some("dtype"), encoded: "astype" },
        ..V2Codec::new("fixedscaleoffset", "numcodecs.fixedscaleoffset")
    }],
    factory: CodecFactory::ArrayToArray(bind),
};

#[derive(Debug)]
struct FixedScaleOffset {
    decoded: DataType,
    encoded: DataType,
    scale: f64,
    offset: f64,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToArray, CodecError> {
    let decoded = config.view_type("dtype", context.input)?;
    let encoded = config.numpy_type("astype")?.unwrap_or_else(|| decoded.clone());
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

/// A function that rounds to the precision of arithmetic on elements of a type.
///
/// One operation in `float64`, rounded, equals the operation in the narrower type, because `float64` has more than twice
/// its bits.
fn rounding(data_type: &DataType) -> fn(f64) -> f64 {
    match data_type {
        DataType::Float16 => |number| f16::from_f64(number).into(),
        DataType::Float32 => |number| Number::Float(number).float32().into(),
        _ => |number| number,
    }
}

//! `scale_offset`: `(x - offset) × scale`, in the arithmetic of the elements' own type (Zarr extensions, "`scale_offset`").
//!
//! Integer arithmetic is exact: a result that the type cannot represent and a division with a remainder are errors. Floats are
//! rounded after every step as in IEEE 754, where too large a number becomes infinity.

use ::bytes::Bytes;
use half::{bf16, f16};
use serde_json::{Value, json};

use crate::codec::CodecError;
use crate::codec::contract::ElementwiseCodec;
use crate::codec::factory::{BindContext, BoundArrayToArray, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::codec::support::number::{self, Number};
use crate::codec::support::representation::Representation;
use crate::metadata::{DataType, FillValue};

pub(crate) const CODEC: Codec =
    Codec { names: &["scale_offset"], v2: &[], factory: CodecFactory::ArrayToArray(bind) };

const NAME: &str = "scale_offset";

#[derive(Debug)]
struct ScaleOffset {
    data_type: DataType,
    offset: Number,
    scale: Number,
    /// Smallest and largest integer of the type; unbounded for floats.
    range: (i128, i128),
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToArray, CodecError> {
    config.require_only(&["offset", "scale"])?;
    let data_type = context.input.data_type.clone();
    if let DataType::SmallFloat(float) = data_type {
        return Err(config.unsupported(&format!("`{}`", float.name())));
    }
    if !number::is_real(&data_type) {
        return Err(config.invalid(format!("cannot scale elements of type `{}`", data_type.name())));
    }
    let scalar = |key, otherwise: Value| config.scalar(&data_type, config.member(key).unwrap_or(&otherwise));
    let (offset, scale) = (scalar("offset", json!(0))?, scalar("scale", json!(1))?);
    if matches!(scale, Number::Signed(0) | Number::Unsigned(0) | Number::Float(0.0)) {
        return Err(config.invalid("`scale` must not be 0"));
    }
    let range = number::integer_range(&data_type)
        .map_or((i128::MIN, i128::MAX), std::ops::RangeInclusive::into_inner);
    let codec = ScaleOffset { data_type, offset, scale, range };
    let fill_value = codec.each(context.input.fill_value.as_bytes(), |fill_value| {
        codec.scaled(fill_value).ok_or_else(|| config.invalid("the fill value is out of range when scaled"))
    })?;
    let fill_value = FillValue::from_bytes(&fill_value);
    let output = Representation { fill_value, ..context.input.clone() };
    Ok((Box::new(codec), output))
}

impl ElementwiseCodec for ScaleOffset {
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        self.each(&encoded, |number| {
            self.unscaled(number).ok_or_else(|| {
                CodecError::corrupt(NAME, format!("{number:?} is not a scaled element of the type"))
            })
        })
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        self.each(&decoded, |number| {
            self.scaled(number)
                .ok_or_else(|| CodecError::encode(NAME, format!("{number:?} is out of range when scaled")))
        })
    }
}

impl ScaleOffset {
    fn each(
        &self,
        elements: &[u8],
        work: impl Fn(Number) -> Result<Number, CodecError>,
    ) -> Result<Bytes, CodecError> {
        number::try_convert(elements, &self.data_type, &self.data_type, |block| {
            for number in block {
                *number = work(*number)?;
            }
            Ok(())
        })
    }

    /// `(number - offset) × scale`; `None` if the type cannot represent the result of a step.
    fn scaled(&self, number: Number) -> Option<Number> {
        use Number::{Float, Signed, Unsigned};
        match (number, self.offset, self.scale) {
            (Signed(number), Signed(offset), Signed(scale)) => {
                let difference = number.checked_sub(offset).filter(|&number| self.has(number))?;
                difference.checked_mul(scale).filter(|&number| self.has(number)).map(Signed)
            }
            (Unsigned(number), Unsigned(offset), Unsigned(scale)) => {
                let difference = number.checked_sub(offset)?;
                difference.checked_mul(scale).filter(|&number| self.has(number)).map(Unsigned)
            }
            _ => {
                let (round, offset, scale) = self.floats();
                Some(Float(round(round(number.float64() - offset) * scale)))
            }
        }
    }

    /// `number / scale + offset`; `None` if there is a remainder or the type cannot represent the result of a step.
    fn unscaled(&self, number: Number) -> Option<Number> {
        use Number::{Float, Signed, Unsigned};
        match (number, self.offset, self.scale) {
            (Signed(number), Signed(offset), Signed(scale)) => {
                let exact = number.checked_rem(scale) == Some(0);
                let quotient = number.checked_div(scale).filter(|&number| exact && self.has(number))?;
                quotient.checked_add(offset).filter(|&number| self.has(number)).map(Signed)
            }
            (Unsigned(number), Unsigned(offset), Unsigned(scale)) => {
                let exact = number.checked_rem(scale) == Some(0);
                let quotient = number.checked_div(scale).filter(|_| exact)?;
                quotient.checked_add(offset).filter(|&number| self.has(number)).map(Unsigned)
            }
            _ => {
                let (round, offset, scale) = self.floats();
                Some(Float(round(round(number.float64() / scale) + offset)))
            }
        }
    }

    fn has(&self, number: impl Into<i128>) -> bool {
        let (least, largest) = self.range;
        (least..=largest).contains(&number.into())
    }

    /// A function that rounds to the type's precision, and offset and scale as floats.
    ///
    /// One operation in `float64`, rounded, equals the operation in a type of less than half its bits. The floats of two
    /// bytes are narrow enough that rounding by way of `float32` changes nothing.
    fn floats(&self) -> (fn(f64) -> f64, f64, f64) {
        let round: fn(f64) -> f64 = match self.data_type {
            DataType::Float16 => |number| f16::from_f32(Number::Float(number).float32()).into(),
            DataType::BFloat16 => |number| bf16::from_f32(Number::Float(number).float32()).into(),
            DataType::Float32 => |number| Number::Float(number).float32().into(),
            _ => |number| number,
        };
        (round, self.offset.float64(), self.scale.float64())
    }
}

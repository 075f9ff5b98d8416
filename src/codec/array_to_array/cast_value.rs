//! `cast_value`: converts the numbers of an array to another data type (Zarr extensions, "`cast_value`").
//!
//! A number becomes the value in the scalar map, or itself if the type can represent it, or the number that it is rounded to;
//! anything else is an error. Complex numbers, dates and `bool` are not supported. The extension requires that fill values
//! survive a round trip. Known writers do not check this, and absent chunks have the array's own fill value, so it is not
//! required here.

use std::collections::HashMap;

use ::bytes::Bytes;

use crate::codec::CodecError;
use crate::codec::contract::ElementwiseCodec;
use crate::codec::factory::{BindContext, BoundArrayToArray, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::codec::support::number::{self, Number};
use crate::codec::support::representation::Representation;
use crate::codec::support::rounding::{FloatFormat, Rounding};
use crate::metadata::{DataType, FillValue, MetadataError};

pub(crate) const CODEC: Codec =
    Codec { names: &["cast_value"], v2: &[], factory: CodecFactory::ArrayToArray(bind) };

const NAME: &str = "cast_value";

/// The modulus of 64-bit integers.
const TWO_TO_THE_64: f64 = 18_446_744_073_709_551_616.0;

/// Below this, every float without a fraction is a 64-bit integer.
const TWO_TO_THE_53: f64 = 9_007_199_254_740_992.0;

#[derive(Debug)]
struct CastValue {
    decoded: DataType,
    encoded: DataType,
    encode: Rule,
    decode: Rule,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToArray, CodecError> {
    config.require_only(&["data_type", "rounding", "out_of_range", "scalar_map"])?;
    let decoded = real(config, context.input.data_type.clone())?;
    let encoded = real(config, data_type(config)?)?;
    let rounding = config.string("rounding")?.unwrap_or("nearest-even");
    let rounding = Rounding::from_name(rounding)
        .ok_or_else(|| config.invalid(format!("`rounding` cannot be `{rounding}`")))?;
    let out_of_range = match config.string("out_of_range")? {
        None => None,
        Some("clamp") => Some(OutOfRange::Clamp),
        Some("wrap") if number::integer_range(&encoded).is_some() => Some(OutOfRange::Wrap),
        Some("wrap") => return Err(config.invalid("`out_of_range` can be `wrap` only for integers")),
        Some(other) => return Err(config.invalid(format!("`out_of_range` cannot be `{other}`"))),
    };
    let rule = |from: &DataType, to: &DataType, direction: &str| {
        let map = scalar_map(config, direction, from, to)?;
        let target = Target::for_type(to).ok_or_else(|| config.unsupported(&format!("`{}`", to.name())))?;
        Ok(Rule { target, rounding, out_of_range, map })
    };
    let encode = rule(&decoded, &encoded, "encode")?;
    let decode = rule(&encoded, &decoded, "decode")?;
    let codec = CastValue { decoded, encoded, encode, decode };
    let fill_value = codec.encoded(context.input.fill_value.as_bytes(), |reason| {
        config.invalid(format!("the fill value {reason}"))
    })?;
    let output = Representation {
        shape: context.input.shape.clone(),
        data_type: codec.encoded.clone(),
        fill_value: FillValue::from_bytes(&fill_value),
    };
    Ok((Box::new(codec), output))
}

fn data_type(config: &CodecConfig) -> Result<DataType, CodecError> {
    let written = config.member("data_type").ok_or_else(|| config.invalid("`data_type` is missing"))?;
    DataType::from_v3(written).map_err(|error| match error {
        MetadataError::Unsupported { name, .. } => config.unsupported(&format!("`data_type` `{name}`")),
        error => config.invalid(error.to_string()),
    })
}

/// A type whose elements are real numbers.
fn real(config: &CodecConfig, data_type: DataType) -> Result<DataType, CodecError> {
    match data_type {
        real if number::is_real(&real) => Ok(real),
        DataType::SmallFloat(float) => Err(config.unsupported(&format!("`{}`", float.name()))),
        other => Err(config.invalid(format!("cannot cast elements of type `{}`", other.name()))),
    }
}

/// The entries of the scalar map for one direction, by the [`key`] of the mapped number.
fn scalar_map(
    config: &CodecConfig,
    direction: &str,
    from: &DataType,
    to: &DataType,
) -> Result<HashMap<u64, Number>, CodecError> {
    let error =
        || config.invalid("`scalar_map` must have only `encode` and `decode`, which are lists of pairs");
    let members = match config.member("scalar_map") {
        None => return Ok(HashMap::new()),
        Some(written) => written.as_object().ok_or_else(error)?,
    };
    if members.keys().any(|key| key != "encode" && key != "decode") {
        return Err(error());
    }
    let mut map = HashMap::new();
    let entries = members.get(direction).filter(|entries| !entries.is_null());
    for entry in
        entries.map_or(Ok(&[][..]), |entries| entries.as_array().map(Vec::as_slice).ok_or_else(error))?
    {
        let Some([input, output]) = entry.as_array().map(Vec::as_slice) else { return Err(error()) };
        let output = config.scalar(to, output)?;
        // The first of several entries for a number counts.
        map.entry(key(config.scalar(from, input)?)).or_insert(output);
    }
    Ok(map)
}

/// A key that equal numbers of one type share. All NaNs are equal, and so are both zeros.
fn key(number: Number) -> u64 {
    match number {
        Number::Signed(number) => number.cast_unsigned(),
        Number::Unsigned(number) => number,
        Number::Float(number) if number.is_nan() => f64::NAN.to_bits(),
        Number::Float(number) => (number + 0.0).to_bits(),
    }
}

impl CastValue {
    fn encoded(&self, decoded: &[u8], to_error: impl Fn(String) -> CodecError) -> Result<Bytes, CodecError> {
        self.encode.cast_all(decoded, &self.decoded, &self.encoded, to_error)
    }
}

impl ElementwiseCodec for CastValue {
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        let to_error = |reason| CodecError::corrupt(NAME, format!("an element {reason}"));
        self.decode.cast_all(&encoded, &self.encoded, &self.decoded, to_error)
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        self.encoded(&decoded, |reason| CodecError::encode(NAME, format!("an element {reason}")))
    }
}

/// The treatment of finite numbers that are out of range of the target type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutOfRange {
    /// The nearest number; infinity for types that have it.
    Clamp,
    /// The congruent number modulo 2^bits, for integer types.
    Wrap,
}

/// The numbers of the target type.
#[derive(Debug)]
enum Target {
    Integer { least: i128, largest: i128 },
    Float(FloatFormat),
}

impl Target {
    fn for_type(data_type: &DataType) -> Option<Self> {
        let integers = number::integer_range(data_type).map(std::ops::RangeInclusive::into_inner);
        let integer = integers.map(|(least, largest)| Self::Integer { least, largest });
        integer.or_else(|| FloatFormat::for_type(data_type).map(Self::Float))
    }
}

/// The rule by which numbers are cast in one direction.
#[derive(Debug)]
pub(crate) struct Rule {
    target: Target,
    rounding: Rounding,
    out_of_range: Option<OutOfRange>,
    map: HashMap<u64, Number>,
}

impl Rule {
    /// Casts to the nearest number, with an error if that is out of range. `None` if the type does not consist of real numbers.
    pub(crate) fn to_nearest(to: &DataType) -> Option<Self> {
        let target = Target::for_type(to)?;
        Some(Self { target, rounding: Rounding::NearestEven, out_of_range: None, map: HashMap::new() })
    }

    fn cast_all(
        &self,
        elements: &[u8],
        from: &DataType,
        to: &DataType,
        to_error: impl Fn(String) -> CodecError,
    ) -> Result<Bytes, CodecError> {
        number::try_convert(elements, from, to, |block| {
            for number in block {
                *number = self.cast(*number).map_err(&to_error)?;
            }
            Ok(())
        })
    }

    /// Casts one number. An error says what is wrong with it.
    pub(crate) fn cast(&self, number: Number) -> Result<Number, String> {
        if !self.map.is_empty()
            && let Some(mapped) = self.map.get(&key(number))
        {
            return Ok(*mapped);
        }
        match self.target {
            Target::Integer { least, largest } => self.integer(number, least, largest),
            Target::Float(format) => self.float(number, format),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the float has no fraction, and a larger one is out of range"
    )]
    fn integer(&self, number: Number, least: i128, largest: i128) -> Result<Number, String> {
        let wrap = self.out_of_range == Some(OutOfRange::Wrap);
        let whole = match number {
            Number::Signed(number) => i128::from(number),
            Number::Unsigned(number) => i128::from(number),
            Number::Float(number) if !number.is_finite() => {
                return Err(format!("is {number}, which no integer type can represent"));
            }
            Number::Float(number) => match self.rounding.round(number) {
                small if small.abs() < TWO_TO_THE_53 => i128::from(small as i64),
                large if wrap => (large % TWO_TO_THE_64) as i128,
                large => large as i128,
            },
        };
        let whole = match self.out_of_range {
            _ if (least..=largest).contains(&whole) => whole,
            Some(OutOfRange::Clamp) => whole.clamp(least, largest),
            Some(OutOfRange::Wrap) => (whole - least).rem_euclid(largest - least + 1) + least,
            None => return Err(format!("is {whole}, which is out of range")),
        };
        let number =
            i64::try_from(whole).map(Number::Signed).or_else(|_| u64::try_from(whole).map(Number::Unsigned));
        number.map_err(|_error| format!("is {whole}, which is out of range"))
    }

    fn float(&self, number: Number, format: FloatFormat) -> Result<Number, String> {
        let float = match number {
            Number::Float(number) if !number.is_finite() => return Ok(Number::Float(number)),
            Number::Float(number) => self.rounding.round_to(number, format),
            Number::Signed(number) => {
                self.rounding.round_integer_to(number < 0, number.unsigned_abs(), format)
            }
            Number::Unsigned(number) => self.rounding.round_integer_to(false, number, format),
        };
        match self.out_of_range {
            _ if float.abs() <= format.largest => Ok(Number::Float(float)),
            Some(OutOfRange::Clamp) => Ok(Number::Float(f64::INFINITY.copysign(float))),
            Some(OutOfRange::Wrap) | None => Err(format!("is {float}, which is out of range")),
        }
    }
}

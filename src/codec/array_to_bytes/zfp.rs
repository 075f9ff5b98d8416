//! `zfp` and `zfpy`: arrays of numbers compressed by zfp (Zarr extensions, "zfp"; numcodecs, "zfpy").
//!
//! The stream of numcodecs has a header with everything but the order of the dimensions; only its number of elements must
//! match the array. The stream of the extension has no header. Integers of fewer than 32 bits are not promoted.

use ::bytes::Bytes;
use zfp_rs::{
    ZfpBitStream, ZfpConfig, ZfpConfigError, ZfpDimensionality, ZfpField, ZfpFieldMetadata, ZfpFieldMut,
    ZfpHeaderMask, ZfpScalar, ZfpScalarType, ZfpStreamAlignment,
};

use crate::chunk::Elements;
use crate::codec::CodecError;
use crate::codec::chain::BoundArrayToBytes;
use crate::codec::contract::ArrayToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;
use crate::metadata::{DataType, V2Codec};

pub(crate) const CODEC: Codec = Codec { names: &["zfp"], v2: &[], factory: CodecFactory::ArrayToBytes(bind) };

pub(crate) const ZFPY: Codec = Codec {
    names: &["numcodecs.zfpy"],
    v2: &[V2Codec::new("zfpy", "numcodecs.zfpy")],
    factory: CodecFactory::ArrayToBytes(bind_zfpy),
};

/// Lengths of up to four dimensions; 0 for the others.
type Dims = [usize; 4];

#[derive(Debug)]
struct Zfp {
    name: &'static str,
    scalar: ZfpScalarType,
    /// The last dimension first.
    dims: Dims,
    config: ZfpConfig,
    has_header: bool,
    /// Bytes of the array.
    decoded: u64,
    /// The most bytes of an encoded chunk.
    encoded: usize,
}

/// Binds the codec of the extension, which has no header.
fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToBytes, CodecError> {
    let (scalar, dims) = field(config, context)?;
    let whole = |key: &str| {
        let number = config.integer(key)?.and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| config.invalid(format!("`{key}` must be a whole number")))
    };
    let float =
        |key: &str| config.float(key)?.ok_or_else(|| config.invalid(format!("`{key}` must be a number")));
    let invalid = |error: ZfpConfigError| config.invalid(error.to_string());
    let parameters = match config.string("mode")? {
        Some("reversible") => ZfpConfig::reversible(),
        Some("fixed_accuracy") => ZfpConfig::fixed_accuracy(float("tolerance")?),
        Some("fixed_precision") => ZfpConfig::fixed_precision(whole("precision")?),
        Some("fixed_rate") => fixed_rate(float("rate")?, scalar, dims).map_err(invalid)?,
        Some("expert") => {
            let least = config.integer("minexp")?.and_then(|number| i32::try_from(number).ok());
            let least = least.ok_or_else(|| config.invalid("`minexp` must be an integer"))?;
            ZfpConfig::expert(whole("minbits")?, whole("maxbits")?, whole("maxprec")?, least)
                .map_err(invalid)?
        }
        _ => return Err(config.invalid("`mode` is not a mode of zfp")),
    };
    Zfp::new("zfp", config, context, parameters, false)
}

/// Binds the codec of numcodecs, whose configuration is for encoding only, because its streams have a header.
fn bind_zfpy(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToBytes, CodecError> {
    let (scalar, dims) = field(config, context)?;
    // A negative parameter counts as absent. Without a parameter the mode is lossless.
    let given = |key: &str| Ok::<_, CodecError>(config.float(key)?.filter(|number| *number >= 0.0));
    let parameters = match config.integer("mode")? {
        Some(2) => given("rate")?.map(|rate| fixed_rate(rate, scalar, dims)).transpose(),
        Some(3) => Ok(config
            .integer("precision")?
            .and_then(|precision| u32::try_from(precision).ok())
            .map(ZfpConfig::fixed_precision)),
        Some(4) => Ok(given("tolerance")?.map(ZfpConfig::fixed_accuracy)),
        _ => Ok(None),
    };
    let parameters = parameters.map_err(|error| config.invalid(error.to_string()))?;
    let parameters = parameters.unwrap_or_else(ZfpConfig::reversible);
    Zfp::new("numcodecs.zfpy", config, context, parameters, true)
}

/// The array's type and dimensions for the library. Dimensions beyond four are merged with the first.
fn field(config: &CodecConfig, context: &BindContext) -> Result<(ZfpScalarType, Dims), CodecError> {
    let scalar = match &context.input.data_type {
        DataType::Int32 => ZfpScalarType::I32,
        // numcodecs encodes dates and time spans as integers.
        DataType::Int64 | DataType::DateTime64(_) | DataType::TimeDelta64(_) => ZfpScalarType::I64,
        DataType::Float32 => ZfpScalarType::F32,
        DataType::Float64 => ZfpScalarType::F64,
        other => return Err(config.unsupported(&format!("elements of type `{}`", other.name()))),
    };
    let too_large = CodecError::ChunkTooLarge { bytes: u64::MAX, limit: context.limits.chunk_bytes };
    let mut dims = [0; 4];
    let shape = if context.input.shape.is_empty() { &[1] } else { context.input.shape.as_slice() };
    for (place, edge) in shape.iter().rev().enumerate() {
        let edge = usize::try_from(*edge).ok().ok_or_else(|| too_large.clone())?;
        if let Some(dim) = dims.get_mut(place) {
            *dim = edge;
        } else if let Some(last) = dims.last_mut() {
            *last = last.checked_mul(edge).ok_or_else(|| too_large.clone())?;
        }
    }
    Ok((scalar, dims))
}

fn fixed_rate(rate: f64, scalar: ZfpScalarType, dims: Dims) -> Result<ZfpConfig, ZfpConfigError> {
    let dimensionality = match dims {
        [_, 0, ..] => ZfpDimensionality::D1,
        [_, _, 0, _] => ZfpDimensionality::D2,
        [.., 0] => ZfpDimensionality::D3,
        _ => ZfpDimensionality::D4,
    };
    ZfpConfig::fixed_rate(rate, scalar, dimensionality, ZfpStreamAlignment::Unaligned)
}

/// The number of elements; `None` if it overflows.
fn count(dims: Dims) -> Option<u64> {
    let used = dims.iter().take_while(|&&edge| edge > 0);
    used.map(|&edge| edge as u64).try_fold(1_u64, u64::checked_mul)
}

impl Zfp {
    #[expect(clippy::new_ret_no_self, reason = "codecs are used only as trait objects")]
    fn new(
        name: &'static str,
        config: &CodecConfig,
        context: &BindContext,
        parameters: ZfpConfig,
        has_header: bool,
    ) -> Result<BoundArrayToBytes, CodecError> {
        let (scalar, dims) = field(config, context)?;
        let decoded = context.size.max();
        // An array without elements has no blocks.
        let encoded = parameters.maximum_size(scalar, dims).filter(|_| decoded > 0).unwrap_or(0);
        let codec = Self { name, scalar, dims, config: parameters, has_header, decoded, encoded };
        Ok(BoundArrayToBytes::Whole(Box::new(codec)))
    }

    fn corrupt(&self, reason: impl Into<String>) -> CodecError {
        CodecError::corrupt(self.name, reason)
    }

    /// Dimensions and parameters from the header, or those that the codec was bound to if it has no header.
    fn header(&self, stream: &mut ZfpBitStream) -> Result<(Dims, ZfpConfig), CodecError> {
        if !self.has_header {
            return Ok((self.dims, self.config));
        }
        let header = stream.read_header(ZfpHeaderMask::FULL);
        let header = header.map_err(|error| self.corrupt(error.to_string()))?;
        let (Some(metadata), Some(config)) = (header.metadata, header.config) else {
            return Err(self.corrupt("the header is incomplete"));
        };
        if metadata.scalar_type != self.scalar || count(metadata.dims) != count(self.dims) {
            return Err(self.corrupt("holds other elements than the chunk"));
        }
        Ok((metadata.dims, config))
    }

    fn decode_as<T: Scalar<N>, const N: usize>(&self, encoded: &[u8]) -> Result<Vec<u8>, CodecError> {
        let refused = |_refused| CodecError::NoMemory { bytes: encoded.len() as u64 };
        let mut stream = ZfpBitStream::from_bytes(encoded).map_err(refused)?;
        let (dims, config) = self.header(&mut stream)?;
        let (mut numbers, count) = self.numbers::<T, N>()?;
        numbers.resize(count, T::default());
        let mut field =
            ZfpFieldMut::new(&mut numbers, dims).map_err(|error| self.corrupt(error.to_string()))?;
        stream.decompress(&config, &mut field).map_err(|error| self.corrupt(error.to_string()))?;
        let mut decoded = buffer::with_capacity(self.decoded)?;
        for number in numbers {
            decoded.extend_from_slice(&number.to_bytes());
        }
        Ok(decoded)
    }

    fn encode_as<T: Scalar<N>, const N: usize>(&self, decoded: &[u8]) -> Result<Vec<u8>, CodecError> {
        let (mut numbers, _) = self.numbers::<T, N>()?;
        numbers.extend(decoded.as_chunks::<N>().0.iter().map(|bytes| T::from_bytes(*bytes)));
        let failed = |error: &dyn std::fmt::Display| CodecError::encode(self.name, error.to_string());
        let mut stream = ZfpBitStream::new(self.encoded).map_err(|error| failed(&error))?;
        if self.has_header {
            let metadata = ZfpFieldMetadata { scalar_type: self.scalar, dims: self.dims };
            let written = stream.write_header(&self.config, &metadata, ZfpHeaderMask::FULL);
            written.map_err(|error| failed(&error))?;
        }
        let field = ZfpField::new(&numbers, self.dims).map_err(|error| failed(&error))?;
        stream.compress(&self.config, &field).map_err(|error| failed(&error))?;
        buffer::copy_of(stream.as_bytes())
    }

    /// A buffer with capacity for all numbers, and their count.
    fn numbers<T, const N: usize>(&self) -> Result<(Vec<T>, usize), CodecError> {
        let refused = || CodecError::NoMemory { bytes: self.decoded };
        let mut numbers = Vec::new();
        let count = usize::try_from(self.decoded / N as u64).ok().ok_or_else(refused)?;
        numbers.try_reserve_exact(count).map_err(|_refused| refused())?;
        Ok((numbers, count))
    }
}

/// A number type of the library with its byte representation.
trait Scalar<const N: usize>: ZfpScalar {
    fn from_bytes(bytes: [u8; N]) -> Self;
    fn to_bytes(self) -> [u8; N];
}

macro_rules! scalars {
    ($($number:ty: $bytes:literal),*) => {$(
        impl Scalar<$bytes> for $number {
            fn from_bytes(bytes: [u8; $bytes]) -> Self {
                Self::from_le_bytes(bytes)
            }

            fn to_bytes(self) -> [u8; $bytes] {
                self.to_le_bytes()
            }
        }
    )*};
}

scalars!(i32: 4, i64: 8, f32: 4, f64: 8);

impl ArrayToBytes for Zfp {
    fn decode(&self, encoded: Bytes) -> Result<Elements, CodecError> {
        self.encoded_size().check(self.name, encoded.len())?;
        if self.decoded == 0 {
            return Ok(Elements::default());
        }
        let decoded = match self.scalar {
            ZfpScalarType::I32 => self.decode_as::<i32, 4>(&encoded),
            ZfpScalarType::I64 => self.decode_as::<i64, 8>(&encoded),
            ZfpScalarType::F32 => self.decode_as::<f32, 4>(&encoded),
            ZfpScalarType::F64 => self.decode_as::<f64, 8>(&encoded),
        }?;
        Ok(Elements::fixed(decoded.into()))
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        if self.decoded == 0 {
            return Ok(Bytes::new());
        }
        let items = decoded.items();
        let encoded = match self.scalar {
            ZfpScalarType::I32 => self.encode_as::<i32, 4>(items),
            ZfpScalarType::I64 => self.encode_as::<i64, 8>(items),
            ZfpScalarType::F32 => self.encode_as::<f32, 4>(items),
            ZfpScalarType::F64 => self.encode_as::<f64, 8>(items),
        }?;
        Ok(Bytes::from(encoded))
    }

    fn encoded_size(&self) -> Size {
        // The chunk may have been written in another mode than the configuration's.
        let bytes = (self.encoded as u64).max(Size::Exact(self.decoded).compressed().max());
        Size::AtMost(bytes)
    }
}

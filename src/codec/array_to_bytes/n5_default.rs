//! `n5_default`: a block of N5 in N5's default mode (Zarr extensions, "`n5_default`").
//!
//! A header with the block's shape is followed by the elements: first dimension fastest, big-endian, optionally compressed.
//! A block may be smaller than the chunk, if its writer truncated it at the array's edge, or larger, if the block's grid
//! is. Blocks of other modes and N5's own metadata are not supported.

use ::bytes::{Buf, Bytes};

use crate::chunk::strided::{Dimension, strides};
use crate::chunk::{Elements, ElementsMut};
use crate::codec::chain::BoundArrayToBytes;
use crate::codec::contract::ArrayToBytes;
use crate::codec::factory::{BindContext, BindInner, Codec, CodecFactory};
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::{Representation, Size};
use crate::codec::{CodecChain, CodecError, CodecLimits};
use crate::metadata::{CodecMetadata, DataType};

pub(crate) const CODEC: Codec =
    Codec { names: &["n5_default"], v2: &[], factory: CodecFactory::ArrayToBytes(bind) };

const NAME: &str = "n5_default";

/// Bytes of the mode and of the number of dimensions.
const FIRST_BYTES: u64 = 4;

/// Largest size of a block, in sizes of the chunk.
const MAX_CHUNKS: u64 = 2;

#[derive(Debug)]
struct N5Block {
    codecs: Vec<CodecMetadata>,
    chunk: Representation,
    chunk_bytes: u64,
    /// The codecs, for blocks of the chunk's shape.
    chain: CodecChain,
    header: Vec<u8>,
    encoded_size: Size,
    limits: CodecLimits,
    depth: usize,
    inner: &'static dyn BindInner,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToBytes, CodecError> {
    config.require_only(&["codecs"])?;
    let chunk = context.input.clone();
    if !is_of_n5(&chunk.data_type) {
        return Err(config.invalid(format!("N5 has no `{}`", chunk.data_type.name())));
    }
    let codecs = config.codecs("codecs")?;
    check(config, &codecs, &chunk)?;
    let header =
        header(&chunk.shape).ok_or_else(|| config.invalid("the shape is too large for a block of N5"))?;
    let bind = |chunk| context.inner.chain(&codecs, chunk, context.limits, context.depth);
    let chain = bind(chunk.clone())?;
    let encoded_size = chain.encoded_size().max().saturating_mul(MAX_CHUNKS);
    let encoded_size = Size::AtMost(encoded_size).plus(header.len() as u64);
    let (limits, depth, chunk_bytes) = (*context.limits, context.depth, context.size.max());
    let inner = context.inner;
    let block = N5Block { codecs, chunk, chunk_bytes, chain, header, encoded_size, limits, depth, inner };
    Ok(BoundArrayToBytes::Whole(Box::new(block)))
}

/// Whether N5 supports elements of this type.
fn is_of_n5(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64
            | DataType::Float32
            | DataType::Float64
    )
}

/// Checks that the codecs describe a block of N5. Their own errors are raised when their chain is bound.
fn check(config: &CodecConfig, codecs: &[CodecMetadata], chunk: &Representation) -> Result<(), CodecError> {
    let ([transpose, bytes] | [transpose, bytes, _]) = codecs else {
        return Err(config.invalid("must have `transpose`, `bytes`, and at most one more codec"));
    };
    if transpose.name != "transpose" || bytes.name != "bytes" {
        return Err(config.invalid("its first codecs must be `transpose` and `bytes`"));
    }
    let order = CodecConfig::new(transpose).numbers("order")?;
    if !order.iter().copied().eq((0..chunk.shape.len() as u64).rev()) {
        return Err(config.invalid("`order` must be that of all dimensions, reversed"));
    }
    match CodecConfig::new(bytes).string("endian")? {
        Some("big") => Ok(()),
        None if chunk.data_type.endian_unit_bytes() == Some(1) => Ok(()),
        _ => Err(config.invalid("`endian` must be `big`")),
    }
}

/// The header of a block: mode, number of dimensions, and the length of each dimension in the array's order. All numbers
/// are big-endian. `None` if one is too large.
fn header(shape: &[u64]) -> Option<Vec<u8>> {
    const DEFAULT_MODE: [u8; 2] = [0; 2];
    let mut header = DEFAULT_MODE.to_vec();
    header.extend(u16::try_from(shape.len()).ok()?.to_be_bytes());
    for &length in shape {
        header.extend(u32::try_from(length).ok()?.to_be_bytes());
    }
    Some(header)
}

impl N5Block {
    /// The shape in a block's header, checked for mode, rank and size.
    fn shape(&self, mut header: &[u8]) -> Result<Vec<u64>, CodecError> {
        let corrupt = |reason: String| CodecError::corrupt(NAME, reason);
        if (header.len() as u64) < FIRST_BYTES {
            return Err(corrupt("is shorter than its header".to_owned()));
        }
        let (mode, rank) = (header.get_u16(), usize::from(header.get_u16()));
        if mode != 0 {
            return Err(corrupt(format!("is a block of mode {mode} instead of 0")));
        }
        if rank != self.chunk.shape.len() {
            let expected = self.chunk.shape.len();
            return Err(corrupt(format!("has {rank} dimensions instead of {expected}")));
        }
        if header.len() < rank * size_of::<u32>() {
            return Err(corrupt("is shorter than its header".to_owned()));
        }
        let shape: Vec<u64> = (0..rank).map(|_| header.get_u32().into()).collect();
        let block = Representation { shape, ..self.chunk.clone() };
        let limit = self.chunk_bytes.saturating_mul(MAX_CHUNKS);
        if block.bytes().is_none_or(|bytes| bytes > limit) {
            return Err(corrupt(format!("has the shape {:?}, too large for its chunk", block.shape)));
        }
        Ok(block.shape)
    }

    /// The elements of a block cropped and padded to the chunk's shape, with the fill value outside the block.
    fn fit_to_chunk(&self, block: &Elements, block_shape: &[u64]) -> Result<Elements, CodecError> {
        let lengths =
            |shape: &[u64]| shape.iter().map(|&edge| usize::try_from(edge)).collect::<Result<Vec<_>, _>>();
        let no_memory = CodecError::NoMemory { bytes: self.chunk_bytes };
        let (Ok(from), Ok(to)) = (lengths(block_shape), lengths(&self.chunk.shape)) else {
            return Err(no_memory);
        };
        let element_bytes = self.chunk.data_type.element_bytes();
        let (from_strides, to_strides) = (strides(&from, element_bytes), strides(&to, element_bytes));
        let dimensions = from.iter().zip(&to).zip(from_strides.into_iter().zip(to_strides));
        let dimensions = dimensions
            .map(|((&from, &to), (from_stride, to_stride))| Dimension {
                length: from.min(to),
                to: to_stride,
                from: from_stride,
            })
            .collect();
        let filled = buffer::repeated(self.chunk.fill_value.as_bytes(), self.chunk_bytes)?;
        let mut chunk = ElementsMut::fixed(filled, element_bytes);
        chunk.copy(dimensions, 0, block, 0).map_err(|_error| no_memory)?;
        Ok(chunk.freeze())
    }
}

impl ArrayToBytes for N5Block {
    fn decode(&self, encoded: Bytes) -> Result<Elements, CodecError> {
        self.encoded_size.check(NAME, encoded.len())?;
        let shape = self.shape(&encoded)?;
        let payload = encoded.slice(self.header.len()..);
        if shape == self.chunk.shape {
            return self.chain.decode(payload);
        }
        let block = Representation { shape: shape.clone(), ..self.chunk.clone() };
        let chain = self
            .inner
            .chain(&self.codecs, block, &self.limits, self.depth)
            .map_err(|error| CodecError::corrupt(NAME, format!("a block of the shape {shape:?}: {error}")))?;
        self.fit_to_chunk(&chain.decode(payload)?, &shape)
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        let payload = self.chain.encode(decoded)?;
        let mut encoded = buffer::with_capacity((self.header.len() + payload.len()) as u64)?;
        encoded.extend_from_slice(&self.header);
        encoded.extend_from_slice(&payload);
        Ok(encoded.into())
    }

    fn encoded_size(&self) -> Size {
        self.encoded_size
    }
}

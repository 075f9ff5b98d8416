//! `transpose`: permutes the dimensions of a chunk (Zarr codecs, "transpose").
//!
//! `B_shape[i] = A_shape[order[i]]`, where A is decoded and B encoded. The orders `"C"` and `"F"` of drafts of v3 are read
//! but never written.

use ::bytes::Bytes;
use serde_json::Value;

use crate::chunk::strided::{Dimension, copy, strides};
use crate::codec::CodecError;
use crate::codec::contract::ElementwiseCodec;
use crate::codec::factory::{BindContext, BoundArrayToArray, Codec, CodecFactory};
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Representation;

pub(crate) const CODEC: Codec =
    Codec { names: &["transpose"], v2: &[], factory: CodecFactory::ArrayToArray(bind) };

/// The codec, bound to a decoded shape.
#[derive(Debug)]
struct Transpose {
    order: Vec<usize>,
    decoded_shape: Vec<usize>,
    element_bytes: usize,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToArray, CodecError> {
    let input = context.input;
    let order = order(config, input.shape.len())?;
    let shape = order.iter().filter_map(|&axis| input.shape.get(axis).copied()).collect();
    let output = Representation { shape, ..input.clone() };
    let element_bytes = input.data_type.element_bytes();
    let lengths = input.shape.iter().map(|&edge| usize::try_from(edge));
    let decoded_shape = lengths.collect::<Result<_, _>>().map_err(|_too_long| CodecError::ChunkTooLarge {
        bytes: context.size.max(),
        limit: context.limits.chunk_bytes,
    })?;
    Ok((Box::new(Transpose { order, decoded_shape, element_bytes }), output))
}

fn order(config: &CodecConfig, rank: usize) -> Result<Vec<usize>, CodecError> {
    match config.member("order") {
        Some(Value::String(name)) if name == "C" => return Ok((0..rank).collect()),
        Some(Value::String(name)) if name == "F" => return Ok((0..rank).rev().collect()),
        _ => {}
    }
    let order: Vec<usize> =
        config.numbers("order")?.into_iter().filter_map(|axis| usize::try_from(axis).ok()).collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted.into_iter().eq(0..rank) {
        Ok(order)
    } else {
        Err(config.invalid(format!("`order` must be a permutation of the {rank} dimensions")))
    }
}

impl ElementwiseCodec for Transpose {
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        self.permute(encoded, false)
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        self.permute(decoded, true)
    }

    fn order(&self) -> Option<&[usize]> {
        Some(&self.order)
    }
}

impl Transpose {
    fn permute(&self, from: Bytes, encode: bool) -> Result<Bytes, CodecError> {
        let shape = &self.decoded_shape;
        let decoded = strides(shape, self.element_bytes);
        let encoded_shape: Vec<usize> = self.order.iter().map(|&axis| shape[axis]).collect();
        let encoded = strides(&encoded_shape, self.element_bytes);
        // Sorted by the dimensions of the destination: encoded dimensions here, decoded ones after the sort below.
        let mut dimensions: Vec<(usize, Dimension)> = self
            .order
            .iter()
            .zip(encoded)
            .map(|(&axis, stride)| {
                let (to, from) = if encode { (stride, decoded[axis]) } else { (decoded[axis], stride) };
                (axis, Dimension { length: shape[axis], to, from })
            })
            .collect();
        if !encode {
            dimensions.sort_unstable_by_key(|&(axis, _)| axis);
        }
        let dimensions: Vec<Dimension> = dimensions.into_iter().map(|(_, dimension)| dimension).collect();
        if dimensions.iter().all(|dimension| dimension.length <= 1 || dimension.to == dimension.from) {
            return Ok(from);
        }
        let mut to = buffer::zeroed(from.len() as u64)?;
        copy(dimensions, self.element_bytes, (&mut to, 0), (&from, 0));
        Ok(Bytes::from(to))
    }
}

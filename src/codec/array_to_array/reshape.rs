//! `reshape`: the elements of an array, in the same order, as an array of another shape (Zarr extensions, "reshape").
//!
//! Elements of any type keep their order in memory. The following codecs see other dimensions, so a shard after this codec is
//! decoded whole.

use ::bytes::Bytes;
use serde_json::Value;

use crate::codec::CodecError;
use crate::codec::contract::ElementwiseCodec;
use crate::codec::factory::{BindContext, BoundArrayToArray, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Representation;

pub(crate) const CODEC: Codec =
    Codec { names: &["reshape"], v2: &[], factory: CodecFactory::ArrayToArray(bind) };

/// Most dimensions of the encoded array.
const MAX_RANK: usize = 64;

#[derive(Debug)]
struct Reshape;

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToArray, CodecError> {
    config.require_only(&["shape"])?;
    let input = &context.input.shape;
    let Some(Value::Array(written)) = config.member("shape") else {
        return Err(config.invalid("`shape` must be a list"));
    };
    if written.len() > MAX_RANK {
        return Err(config.invalid(format!("`shape` has more than {MAX_RANK} dimensions")));
    }
    let edges = written.iter().map(|edge| Edge::parse(config, edge, input)).collect::<Result<Vec<_>, _>>()?;
    let shape = resolve(config, &edges, input)?;
    check_dimensions(config, &edges, &shape, input)?;
    Ok((Box::new(Reshape), Representation { shape, ..context.input.clone() }))
}

impl ElementwiseCodec for Reshape {
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(encoded)
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(decoded)
    }
}

/// An edge of the encoded array's shape, as written.
enum Edge {
    Length(u64),
    /// The product of these edges of the input, all of which exist.
    Product(Vec<usize>),
    /// The remaining elements.
    Rest,
}

impl Edge {
    fn parse(config: &CodecConfig, written: &Value, input: &[u64]) -> Result<Self, CodecError> {
        let error = || config.invalid(format!("{written} is not a valid edge of a shape"));
        match written {
            Value::Number(number) if number.as_i64() == Some(-1) => Ok(Self::Rest),
            Value::Number(number) => {
                number.as_u64().filter(|&length| length > 0).map(Self::Length).ok_or_else(error)
            }
            Value::Array(dimensions) => dimensions
                .iter()
                .map(|dimension| usize::try_from(dimension.as_u64()?).ok().filter(|&at| at < input.len()))
                .collect::<Option<_>>()
                .map(Self::Product)
                .ok_or_else(error),
            _ => Err(error()),
        }
    }
}

/// The encoded array's shape, which has as many elements as the input.
fn resolve(config: &CodecConfig, edges: &[Edge], input: &[u64]) -> Result<Vec<u64>, CodecError> {
    let too_large = || config.invalid("`shape` has more elements than can be counted");
    let elements = product(input).ok_or_else(too_large)?;
    // The rest is the product of the input's edges that no other edge names, also for an array without elements.
    let (mut left, mut lengths, mut rest) = (input.to_vec(), 1_u64, None);
    let mut shape = Vec::with_capacity(edges.len());
    for (place, edge) in edges.iter().enumerate() {
        shape.push(match edge {
            Edge::Length(length) => {
                lengths = lengths.checked_mul(*length).ok_or_else(too_large)?;
                *length
            }
            Edge::Product(dimensions) => {
                let mut edges = Vec::with_capacity(dimensions.len());
                for &dimension in dimensions {
                    edges.extend(input.get(dimension));
                    if let Some(named) = left.get_mut(dimension) {
                        *named = 1;
                    }
                }
                product(&edges).ok_or_else(too_large)?
            }
            Edge::Rest if rest.is_some() => return Err(config.invalid("`shape` has -1 twice")),
            Edge::Rest => {
                rest = Some(place);
                1
            }
        });
    }
    if let Some(edge) = rest.and_then(|place| shape.get_mut(place)) {
        *edge = product(&left).ok_or_else(too_large)? / lengths;
    }
    if product(&shape) == Some(elements) {
        Ok(shape)
    } else {
        Err(config.invalid(format!("`shape` does not have the array's {elements} elements")))
    }
}

/// Checks that the dimensions of the input are named in order, and that each named run of them is exactly one dimension of
/// the output.
fn check_dimensions(
    config: &CodecConfig,
    edges: &[Edge],
    shape: &[u64],
    input: &[u64],
) -> Result<(), CodecError> {
    let mut next = 0;
    for (place, edge) in edges.iter().enumerate() {
        let Edge::Product(dimensions) = edge else { continue };
        for &dimension in dimensions {
            if dimension < next {
                return Err(config.invalid("`shape` must name dimensions in their order"));
            }
            next = dimension + 1;
        }
        let (Some(&first), Some(&last)) = (dimensions.first(), dimensions.last()) else { continue };
        let before = (shape.get(..place).and_then(product), input.get(..first).and_then(product));
        let behind = (shape.get(place + 1..).and_then(product), input.get(last + 1..).and_then(product));
        if before.0 != before.1 || behind.0 != behind.1 {
            return Err(
                config.invalid(format!("the dimensions {dimensions:?} are not dimension {place} of `shape`"))
            );
        }
    }
    Ok(())
}

/// The number of elements; `None` if more than a `u64` can count.
fn product(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1, |elements: u64, &edge| elements.checked_mul(edge))
}

//! Binding: a document's list of codecs becomes a [`CodecChain`] (Zarr core 3.1, "Codecs").
//!
//! Binding visits the codecs in encoding order and passes each one's output to the next as its input. Every error in a
//! configuration is raised here.

use std::sync::Arc;

use super::chain::{BoundArrayToBytes, BoundCodecs, CodecChain, NAME};
use super::chain_id::chain_id;
use super::contract::{ArrayToArray, BytesToBytes};
use super::error::CodecError;
use super::factory::{BindContext, BindInner, Codec, CodecFactory};
use super::limits::CodecLimits;
use super::registry;
use super::support::config::CodecConfig;
use super::support::representation::{Representation, Size};
use crate::metadata::{CodecMetadata, DataType, FillValue};

/// Binds codecs by the table of all codecs.
#[derive(Debug)]
struct Registry;

impl BindInner for Registry {
    fn codec(&self, name: &str) -> Option<&'static Codec> {
        registry::by_name(name)
    }

    fn chain(
        &self,
        codecs: &[CodecMetadata],
        chunk: Representation,
        limits: &CodecLimits,
        depth: usize,
    ) -> Result<CodecChain, CodecError> {
        bind_chain(codecs, chunk, limits, depth)
    }
}

impl CodecChain {
    /// Binds a document's codecs.
    ///
    /// An unknown codec with `"must_understand": false` is skipped; such a chain decodes but does not encode.
    ///
    /// # Errors
    /// [`CodecError`]: unknown codecs, invalid configurations, wrong order, limits. A sharded chunk may exceed the limit
    /// of a chunk if its inner chunks do not and can be read on their own.
    pub fn bind(
        codecs: &[CodecMetadata],
        data_type: &DataType,
        chunk_shape: &[u64],
        fill_value: &FillValue,
        limits: &CodecLimits,
    ) -> Result<Self, CodecError> {
        let chunk = Representation {
            shape: chunk_shape.to_vec(),
            data_type: data_type.clone(),
            fill_value: fill_value.clone(),
        };
        bind_chain(codecs, chunk, limits, 0)
    }
}

/// Binds codecs inside `depth` shards.
fn bind_chain(
    codecs: &[CodecMetadata],
    chunk: Representation,
    limits: &CodecLimits,
    depth: usize,
) -> Result<CodecChain, CodecError> {
    let max_codecs = limits.codecs;
    let too_many = || CodecError::invalid(NAME, format!("more than {max_codecs} codecs"));
    if codecs.len() > max_codecs {
        return Err(too_many());
    }
    if !chunk.data_type.is_variable() && chunk.fill_value.as_bytes().len() != chunk.data_type.element_bytes()
    {
        return Err(CodecError::invalid(NAME, "the fill value does not have the size of an element"));
    }
    let id = chain_id(codecs, &chunk);
    let too_large = |bytes| CodecError::ChunkTooLarge { bytes, limit: limits.chunk_bytes };
    let decoded_bytes = chunk.bytes().ok_or(too_large(u64::MAX))?;
    let mut builder = ChainBuilder::new(chunk, decoded_bytes);
    for codec in codecs {
        builder.add(codec, limits, depth)?;
    }
    let ChainBuilder { size, arrays, largest_array_bytes, array_to_bytes, bytes, order, skipped, .. } =
        builder;
    // Nested codecs count too: the bound on the bytes between two codecs grows with each codec.
    let nested: usize = bytes.iter().map(|(codec, _)| codec.inner_codecs()).sum();
    if codecs.len().saturating_add(nested) > max_codecs {
        return Err(too_many());
    }
    let Some(mut array_to_bytes) = array_to_bytes else {
        return Err(CodecError::invalid(NAME, "there is no array-to-bytes codec"));
    };
    let partial = match (&mut array_to_bytes, order) {
        (BoundArrayToBytes::Sharding(sharding), Some(order)) if bytes.is_empty() => {
            sharding.set_order(order);
            true
        }
        (BoundArrayToBytes::Sharding(_) | BoundArrayToBytes::Whole(_), _) => false,
    };
    if decoded_bytes > limits.chunk_bytes && !partial {
        return Err(too_large(decoded_bytes));
    }
    let limit = limits.chunk_bytes;
    let codecs = BoundCodecs {
        decoded_bytes,
        between_bytes: between_bytes(&bytes).max(largest_array_bytes),
        limit,
        arrays,
        array_to_bytes,
        bytes,
        encoded_size: size,
        partial,
        skipped,
    };
    Ok(CodecChain { codecs: Arc::new(codecs), part: None, id })
}

/// A chain under construction: the state after some of its codecs.
struct ChainBuilder {
    /// The next codec's input; after the array→bytes codec, the array that was encoded.
    array: Representation,
    /// Size of the next codec's input.
    size: Size,
    arrays: Vec<Box<dyn ArrayToArray>>,
    /// Bytes of the largest array between two codecs, if it is larger than the chunk.
    largest_array_bytes: u64,
    array_to_bytes: Option<BoundArrayToBytes>,
    bytes: Vec<(Box<dyn BytesToBytes>, Size)>,
    /// For each dimension of `array`, the dimension of the chunk, as long as the codecs only move elements.
    order: Option<Vec<usize>>,
    skipped: Option<String>,
}

impl ChainBuilder {
    fn new(chunk: Representation, decoded_bytes: u64) -> Self {
        let order = Some((0..chunk.shape.len()).collect());
        let (arrays, bytes) = (Vec::new(), Vec::new());
        let size = Size::Exact(decoded_bytes);
        Self {
            array: chunk,
            size,
            arrays,
            largest_array_bytes: 0,
            array_to_bytes: None,
            bytes,
            order,
            skipped: None,
        }
    }

    fn add(&mut self, codec: &CodecMetadata, limits: &CodecLimits, depth: usize) -> Result<(), CodecError> {
        let Some(known) = registry::by_name(&codec.name) else {
            if codec.must_understand {
                return Err(CodecError::unsupported(&codec.name));
            }
            self.skipped.get_or_insert_with(|| codec.name.clone());
            return Ok(());
        };
        let config = CodecConfig::new(codec);
        let context = BindContext { input: &self.array, size: self.size, limits, depth, inner: &Registry };
        match (known.factory, &self.array_to_bytes) {
            (CodecFactory::ArrayToArray(bind), None) => {
                let (codec, output) = bind(&config, &context)?;
                self.order = self.order.take().and_then(|order| compose(&order, codec.order()?));
                let bytes = output
                    .bytes()
                    .ok_or(CodecError::ChunkTooLarge { bytes: u64::MAX, limit: limits.chunk_bytes })?;
                // A codec that only moves elements may precede a shard that is never decoded whole.
                if bytes > limits.chunk_bytes && codec.order().is_none() {
                    return Err(CodecError::ChunkTooLarge { bytes, limit: limits.chunk_bytes });
                }
                if bytes > self.size.max() {
                    self.largest_array_bytes = self.largest_array_bytes.max(bytes);
                }
                self.size = Size::Exact(bytes);
                self.array = output;
                self.arrays.push(codec);
            }
            (CodecFactory::ArrayToBytes(bind), None) => {
                let codec = bind(&config, &context)?;
                self.size = codec.get().encoded_size();
                self.array_to_bytes = Some(codec);
            }
            (CodecFactory::BytesToBytes(bind), Some(_)) => {
                let max_bytes = limits.between_bytes();
                let decoded = self.size.capped(max_bytes);
                let codec = bind(&config, &BindContext { size: decoded, ..context })?;
                self.size = codec.encoded_size(decoded).capped(max_bytes);
                if self.size.max() > max_bytes {
                    return Err(CodecError::ChunkTooLarge { bytes: self.size.max(), limit: max_bytes });
                }
                self.bytes.push((codec, decoded));
            }
            (CodecFactory::ArrayToArray(_) | CodecFactory::ArrayToBytes(_), Some(_)) => {
                return Err(config.invalid("comes after the array-to-bytes codec"));
            }
            (CodecFactory::BytesToBytes(_), None) => {
                return Err(config.invalid("comes before the array-to-bytes codec"));
            }
        }
        Ok(())
    }
}

/// Largest number of bytes between two of these codecs. If the first codec decodes to a known number of bytes, these are
/// the elements themselves and do not count.
fn between_bytes(codecs: &[(Box<dyn BytesToBytes>, Size)]) -> u64 {
    let sizes = codecs.iter().enumerate().map(|(index, (codec, size))| {
        let own = match size {
            Size::Exact(_) if index == 0 => 0,
            Size::Exact(_) | Size::AtMost(_) | Size::Limited(_) => size.max(),
        };
        own.max(codec.between_bytes(*size))
    });
    sizes.max().unwrap_or(0)
}

/// The order of one transposition after another.
fn compose(first: &[usize], then: &[usize]) -> Option<Vec<usize>> {
    then.iter().map(|&axis| first.get(axis).copied()).collect()
}

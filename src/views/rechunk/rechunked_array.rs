//! [`Rechunked`]: an array as a recipe makes it, known from its metadata alone.
//!
//! The chunks of both format versions have the same bytes, so they are encoded by one chain, that of v3. What cannot be
//! had so, or not within the limits, is refused before anything is read.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::chunk_shape::chunk_shape;
use super::spec::{Codec, RechunkSpec};
use crate::array::Array;
use crate::chunk::{AssembleError, AxisRange, ChunkAxis, CopyRegion, Elements, ElementsMut, Subset};
use crate::codec::{Cast, CodecChain, CodecError, CodecLimits};
use crate::metadata::{
    ArrayMetadata, ChunkGridMetadata, ChunkKeyEncodingMetadata, CodecMetadata, DataType, FillValue,
    Separator, ZarrFormat,
};

/// The attribute in which v2 arrays have the names of their dimensions, as xarray looks for them.
pub(super) const ARRAY_DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// An array as a recipe makes it.
#[derive(Debug)]
pub(super) struct Rechunked {
    array: Arc<Array>,
    chain: CodecChain,
    cast: Option<Cast>,
    codec: Codec,
    pub(super) data_type: DataType,
    pub(super) fill_value: FillValue,
    pub(super) chunk_shape: Vec<u64>,
    grid: Vec<ChunkAxis>,
    limits: CodecLimits,
}

impl Rechunked {
    /// What the recipe makes of an array.
    ///
    /// # Errors
    /// [`CodecError::ChunkTooLarge`]; [`CodecError::NotCast`] if the fill value cannot be.
    pub(super) fn of(
        array: &Arc<Array>,
        recipe: &RechunkSpec,
        limits: &CodecLimits,
    ) -> Result<Self, CodecError> {
        let ArrayMetadata { shape, data_type: stored, fill_value, .. } = array.metadata();
        let cast = recipe.data_types.of(stored);
        let cast = cast.and_then(|to| Some((Cast::new(stored, &to)?, to)));
        let (cast, data_type, fill_value) = match cast {
            None => (None, stored.clone(), fill_value.clone()),
            Some((cast, to)) => {
                let fill_value = FillValue::from_bytes(&cast.cast(fill_value.as_bytes())?);
                (Some(cast), to, fill_value)
            }
        };
        let item_bytes = stored.item_bytes().max(data_type.item_bytes()) as u64;
        let chunk_shape = chunk_shape(&recipe.chunks, shape, item_bytes);
        // While it is made, a chunk is there in both types.
        let bytes = chunk_shape.iter().fold(item_bytes, |bytes, &edge| bytes.saturating_mul(edge));
        if bytes > limits.chunk_bytes {
            return Err(CodecError::ChunkTooLarge { bytes, limit: limits.chunk_bytes });
        }
        let codecs = codecs(recipe.codec, &data_type);
        let chain = CodecChain::bind(&codecs, &data_type, &chunk_shape, &fill_value, limits)?;
        let grid =
            shape.iter().zip(&chunk_shape).map(|(&length, &edge)| ChunkAxis::new(length, edge)).collect();
        Ok(Self {
            array: Arc::clone(array),
            chain,
            cast,
            codec: recipe.codec,
            data_type,
            fill_value,
            chunk_shape,
            grid,
            limits: *limits,
        })
    }

    /// The stored array.
    pub(super) fn array(&self) -> &Arc<Array> {
        &self.array
    }

    /// The codec that was asked for.
    pub(super) fn codec(&self) -> Codec {
        self.codec
    }

    /// The grid.
    pub(super) fn grid(&self) -> &[ChunkAxis] {
        &self.grid
    }

    /// Bytes that a chunk takes at most while it is made, beside those of the stored chunks it is made of.
    pub(super) fn working_bytes(&self) -> u64 {
        self.chain.working_bytes().saturating_mul(3)
    }

    /// The elements of a chunk that lie in the array; `None` if there is no chunk at these coordinates.
    pub(super) fn subset(&self, coords: &[u64]) -> Option<Subset> {
        if coords.len() != self.grid.len() {
            return None;
        }
        let range = |(axis, &coord): (&ChunkAxis, &u64)| {
            if coord >= axis.chunks() {
                return None;
            }
            let chunk = axis.chunk(coord);
            let count = chunk.edge.min(axis.length().checked_sub(chunk.start)?);
            Some(AxisRange { start: chunk.start, count, step: 1, keep: true })
        };
        self.grid.iter().zip(coords).map(range).collect::<Option<_>>().map(Subset)
    }

    /// Encodes the elements of a chunk that lie in the array, which have this shape.
    ///
    /// # Errors
    /// [`CodecError::NotCast`] if one of them cannot be; [`CodecError::Encode`], [`CodecError::NoMemory`].
    pub(super) fn encode(&self, elements: Elements, shape: &[u64]) -> Result<Bytes, CodecError> {
        let elements = self.filled_up(elements, shape)?;
        let elements = match &self.cast {
            None => elements,
            Some(cast) => elements.map_items(|items| cast.cast(&items))?,
        };
        self.chain.encode(elements)
    }

    /// A whole chunk of elements of this shape, with fill values behind them.
    fn filled_up(&self, elements: Elements, shape: &[u64]) -> Result<Elements, CodecError> {
        if shape == self.chunk_shape {
            return Ok(elements);
        }
        let ArrayMetadata { data_type, fill_value, .. } = self.array.metadata();
        let item_bytes = data_type.item_bytes();
        let bytes =
            self.chunk_shape.iter().fold(item_bytes as u64, |bytes, &edge| bytes.saturating_mul(edge));
        let failed = |error| match error {
            AssembleError::HeapTooLarge => CodecError::ChunkTooLarge {
                bytes: self.limits.chunk_bytes.saturating_add(1),
                limit: self.limits.chunk_bytes,
            },
            AssembleError::NoMemory => CodecError::NoMemory { bytes },
            AssembleError::Geometry => CodecError::encode("chunk", "the elements do not fit the chunk"),
        };
        let Ok(length) = usize::try_from(bytes) else { return Err(CodecError::NoMemory { bytes }) };
        let mut items = Vec::new();
        items.try_reserve_exact(length).map_err(|_error| CodecError::NoMemory { bytes })?;
        items.resize(length, 0);
        let whole = if data_type.is_variable() {
            ElementsMut::variable(items, self.limits.chunk_bytes)
        } else {
            ElementsMut::fixed(items, item_bytes)
        };
        let mut whole = whole.filled_with(fill_value.as_bytes()).map_err(failed)?;
        let ranges: Vec<AxisRange> = self.chunk_shape.iter().map(|&edge| AxisRange::whole(edge)).collect();
        let first: Vec<ChunkAxis> =
            self.chunk_shape.iter().zip(shape).map(|(&edge, &count)| ChunkAxis::new(edge, count)).collect();
        if let Some((_, window)) = CopyRegion::packed(&ranges, item_bytes).split_by_chunks(&first).next() {
            whole.copy_from(&elements, shape, &window).map_err(failed)?;
        }
        Ok(whole.freeze())
    }

    /// The array's metadata, as v3 has it.
    pub(super) fn metadata(&self) -> ArrayMetadata {
        let ArrayMetadata { shape, attributes, dimension_names, .. } = self.array.metadata();
        // What v3 has a member for is no attribute there.
        let is_told =
            dimension_names.is_some() && attributes.get(ARRAY_DIMENSIONS) == Some(json!(dimension_names));
        let attributes = if is_told { attributes.without(ARRAY_DIMENSIONS) } else { attributes.clone() };
        ArrayMetadata {
            zarr_format: ZarrFormat::V3,
            shape: shape.clone(),
            data_type: self.data_type.clone(),
            chunk_grid: ChunkGridMetadata::Regular { chunk_shape: self.chunk_shape.clone() },
            chunk_key_encoding: ChunkKeyEncodingMetadata::Default(Separator::Slash),
            fill_value: self.fill_value.clone(),
            codecs: codecs(self.codec, &self.data_type),
            attributes,
            dimension_names: dimension_names.clone(),
        }
    }

    /// Whether v3 has a word for the elements' type.
    pub(super) fn is_in_v3(&self) -> bool {
        is_in_v3(&self.data_type)
    }

    /// What v2 calls the elements' type; `None` if it has no word for it.
    pub(super) fn dtype(&self) -> Option<Value> {
        self.data_type.to_v2()
    }
}

fn is_in_v3(data_type: &DataType) -> bool {
    DataType::from_v3(&data_type.to_metadata()).as_ref() == Ok(data_type)
}

/// The filter of v2 that makes bytes of elements, if it takes one: its name in v2, and what it says.
pub(super) fn filter(data_type: &DataType) -> Option<Value> {
    match data_type {
        DataType::String => Some(json!({ "id": "vlen-utf8" })),
        DataType::VariableBytes => Some(json!({ "id": "vlen-bytes" })),
        DataType::VariableArray(item) => Some(json!({ "id": "vlen-array", "dtype": item.to_v2()? })),
        DataType::Json => Some(json!({ "id": "json2" })),
        _ => None,
    }
}

/// The codecs, in encoding order.
fn codecs(codec: Codec, data_type: &DataType) -> Vec<CodecMetadata> {
    let (name, configuration) = match data_type {
        DataType::String => ("vlen-utf8", json!({})),
        DataType::VariableBytes => ("vlen-bytes", json!({})),
        DataType::VariableArray(_) => ("numcodecs.vlen-array", json!({})),
        DataType::Json => ("numcodecs.json2", json!({})),
        fixed if fixed.endian_unit_bytes() == Some(1) => ("bytes", json!({})),
        _ => ("bytes", json!({ "endian": "little" })),
    };
    std::iter::once(CodecMetadata::new(name, configuration)).chain(codec.in_v3(data_type)).collect()
}

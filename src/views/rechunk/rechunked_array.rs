//! [`RechunkedArray`]: an array, or a coarser level of it, under a rechunk recipe, derived from metadata alone.
//!
//! Chunks have the same bytes in both format versions, so one codec chain, that of v3, encodes them. An array that the
//! recipe cannot be applied to within the limits is rejected before anything is read.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::chunk_shape::chunk_shape;
use super::missing_value::MissingValue;
use super::spec::RechunkSpec;
use crate::array::{Array, ArrayError, Plan, ReadLimits};
use crate::chunk::{AssembleError, AxisRange, ChunkAxis, CopyRegion, Elements, ElementsMut, Subset};
use crate::codec::{Cast, CodecChain, CodecError, CodecLimits, CodecPreset};
use crate::cpu::ComputePool;
use crate::metadata::v2::ARRAY_DIMENSIONS;
use crate::metadata::{
    ArrayMetadata, ChunkGridMetadata, ChunkKeyEncodingMetadata, DataType, FillValue, Separator, ZarrFormat,
};
use crate::reduce::{Method, Reduction};

/// What is shown of a stored array.
#[derive(Clone, Debug)]
pub(in crate::views) struct ShownElements {
    /// Its metadata as shown, apart from what the recipe changes. The data type is the stored one.
    pub(in crate::views) metadata: Arc<ArrayMetadata>,
    /// How the stored elements are reduced to those of the array that is shown.
    pub(in crate::views) reduction: Arc<Reduction>,
}

/// An array under a rechunk recipe.
#[derive(Debug)]
pub(in crate::views) struct RechunkedArray {
    array: Arc<Array>,
    shown: Option<ShownElements>,
    chain: Arc<CodecChain>,
    cast: Option<Cast>,
    codec: CodecPreset,
    pub(in crate::views) data_type: DataType,
    pub(in crate::views) fill_value: FillValue,
    pub(super) missing_value: MissingValue,
    pub(in crate::views) chunk_shape: Vec<u64>,
    grid: Vec<ChunkAxis>,
    limits: CodecLimits,
}

impl RechunkedArray {
    /// Applies the recipe to an array.
    ///
    /// # Errors
    /// [`CodecError::ChunkTooLarge`]; [`CodecError::NotCast`] if the fill value cannot be cast.
    pub(in crate::views) fn new(
        array: &Arc<Array>,
        recipe: &RechunkSpec,
        limits: &CodecLimits,
    ) -> Result<Self, CodecError> {
        Self::showing(array, None, recipe, limits)
    }

    /// Applies the recipe to what is shown of an array; to the array itself, if that is `None`.
    ///
    /// # Errors
    /// As [`RechunkedArray::new`].
    pub(in crate::views) fn showing(
        array: &Arc<Array>,
        shown: Option<ShownElements>,
        recipe: &RechunkSpec,
        limits: &CodecLimits,
    ) -> Result<Self, CodecError> {
        let metadata = shown.as_ref().map_or(array.metadata(), |shown| &*shown.metadata);
        let ArrayMetadata { shape, data_type: stored, fill_value, .. } = metadata;
        let cast = recipe.data_types.target(stored);
        let cast = cast.and_then(|to| Some((Cast::new(stored, &to)?, to)));
        let (cast, data_type, fill_value) = match cast {
            None => (None, stored.clone(), fill_value.clone()),
            Some((cast, to)) => {
                let fill_value = FillValue::from_bytes(&cast.cast(fill_value.as_bytes())?);
                (Some(cast), to, fill_value)
            }
        };
        let missing_value = MissingValue::new(metadata, cast.as_ref(), &data_type, &fill_value);
        let element_bytes = stored.element_bytes().max(data_type.element_bytes()) as u64;
        let chunk_shape = chunk_shape(&recipe.chunks, shape, element_bytes);
        // During encoding, a chunk is in memory in both types.
        let bytes = chunk_shape.iter().fold(element_bytes, |bytes, &edge| bytes.saturating_mul(edge));
        if bytes > limits.chunk_bytes {
            return Err(CodecError::ChunkTooLarge { bytes, limit: limits.chunk_bytes });
        }
        let codecs = recipe.codec.chain(&data_type);
        let chain = Arc::new(CodecChain::bind(&codecs, &data_type, &chunk_shape, &fill_value, limits)?);
        let grid =
            shape.iter().zip(&chunk_shape).map(|(&length, &edge)| ChunkAxis::new(length, edge)).collect();
        Ok(Self {
            array: Arc::clone(array),
            shown,
            chain,
            cast,
            codec: recipe.codec,
            data_type,
            fill_value,
            missing_value,
            chunk_shape,
            grid,
            limits: *limits,
        })
    }

    /// The stored array.
    pub(in crate::views) fn array(&self) -> &Arc<Array> {
        &self.array
    }

    /// The metadata as shown, apart from what the recipe changes.
    pub(super) fn shown(&self) -> &ArrayMetadata {
        self.shown.as_ref().map_or(self.array.metadata(), |shown| &*shown.metadata)
    }

    /// The reduction of the stored elements, if there is one.
    fn reduction(&self) -> Option<&Arc<Reduction>> {
        self.shown.as_ref().map(|shown| &shown.reduction).filter(|reduction| !reduction.is_identity())
    }

    /// The stored elements that one of each dimension is made of.
    pub(in crate::views) fn factors(&self) -> Vec<u64> {
        let rank = self.grid.len();
        self.reduction().map_or_else(|| vec![1; rank], |reduction| reduction.factors(rank))
    }

    /// The elements of an encoded chunk that was not cast.
    ///
    /// # Errors
    /// [`ArrayError::Geometry`] if the bytes are not those of a chunk: a bug.
    pub(in crate::views) async fn decoded(
        &self,
        encoded: &Bytes,
        cpu: &ComputePool,
    ) -> Result<Elements, ArrayError> {
        let (chain, encoded) = (Arc::clone(&self.chain), encoded.clone());
        let decoded = cpu.run(move || chain.decode(encoded)).await?;
        decoded.map_err(|_corrupt| ArrayError::Geometry)
    }

    /// The requested codec.
    pub(super) fn codec(&self) -> CodecPreset {
        self.codec
    }

    /// The grid.
    pub(in crate::views) fn grid(&self) -> &[ChunkAxis] {
        &self.grid
    }

    /// The most bytes that encoding a chunk takes, beside the stored chunks it is derived from.
    pub(in crate::views) fn working_bytes(&self) -> u64 {
        self.chain.working_bytes().saturating_mul(3)
    }

    /// The part of a chunk inside the array as shown; `None` if there is no chunk at these coordinates.
    pub(in crate::views) fn subset(&self, coords: &[u64]) -> Option<Subset> {
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

    /// The stored elements that some elements of the array as shown are made of.
    pub(in crate::views) fn source(&self, subset: &Subset) -> Subset {
        let axes = subset.axes().iter().zip(self.factors()).zip(&self.array.metadata().shape);
        let axis = |((axis, factor), &length): ((&AxisRange, u64), &u64)| {
            let start = axis.start.saturating_mul(factor).min(length);
            let count = axis.count.saturating_mul(factor).min(length - start);
            AxisRange { start, count, step: 1, keep: true }
        };
        Subset(axes.map(axis).collect())
    }

    /// The plan to read the part of a chunk inside the array; `None` if there is no chunk at these coordinates.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`].
    pub(in crate::views) fn plan(
        &self,
        coords: &[u64],
        limits: &ReadLimits,
    ) -> Result<Option<Plan>, ArrayError> {
        let Some(subset) = self.subset(coords) else { return Ok(None) };
        // The result is encoded as a whole, so an array that is not reduced is read as a whole.
        let whole = ReadLimits { segment_size: u64::MAX, ..*limits };
        let plan = match self.reduction() {
            None => Plan::new(&self.array, subset, &whole)?,
            Some(reduction) => {
                let limits = if reduction.reducer().method() == Method::Stride { &whole } else { limits };
                Plan::reduced(&self.array, self.source(&subset), Arc::clone(reduction), limits)?
            }
        };
        Ok(Some(plan))
    }

    /// Encodes the part of a chunk inside the array, whose elements have this shape.
    ///
    /// # Errors
    /// [`CodecError::NotCast`] if an element cannot be cast; [`CodecError::Encode`], [`CodecError::NoMemory`].
    pub(in crate::views) fn encode(&self, elements: Elements, shape: &[u64]) -> Result<Bytes, CodecError> {
        let elements = self.pad_to_chunk(elements, shape)?;
        let elements = match &self.cast {
            None => elements,
            Some(cast) => elements.map_items(|items| cast.cast(&items))?,
        };
        self.chain.encode(elements)
    }

    /// Pads elements of this shape with fill values to a whole chunk.
    fn pad_to_chunk(&self, elements: Elements, shape: &[u64]) -> Result<Elements, CodecError> {
        if shape == self.chunk_shape {
            return Ok(elements);
        }
        let ArrayMetadata { data_type, fill_value, .. } = self.array.metadata();
        let element_bytes = data_type.element_bytes();
        let bytes =
            self.chunk_shape.iter().fold(element_bytes as u64, |bytes, &edge| bytes.saturating_mul(edge));
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
            ElementsMut::fixed(items, element_bytes)
        };
        let mut whole = whole.filled_with(fill_value.as_bytes()).map_err(failed)?;
        let ranges: Vec<AxisRange> = self.chunk_shape.iter().map(|&edge| AxisRange::full(edge)).collect();
        let first: Vec<ChunkAxis> =
            self.chunk_shape.iter().zip(shape).map(|(&edge, &count)| ChunkAxis::new(edge, count)).collect();
        if let Some((_, window)) = CopyRegion::packed(&ranges, element_bytes).split_by_chunks(&first).next() {
            whole.copy_from(&elements, shape, &window).map_err(failed)?;
        }
        Ok(whole.freeze())
    }

    /// The array's metadata in v3.
    pub(super) fn metadata(&self) -> ArrayMetadata {
        let ArrayMetadata { shape, attributes, dimension_names, .. } = self.shown();
        // v3 has a member for these names, so the attribute is not needed.
        let is_redundant =
            dimension_names.is_some() && attributes.get(ARRAY_DIMENSIONS) == Some(json!(dimension_names));
        let attributes =
            if is_redundant { attributes.without(&[ARRAY_DIMENSIONS]) } else { attributes.clone() };
        let attributes = self.missing_value.to_v3(&attributes);
        ArrayMetadata {
            zarr_format: ZarrFormat::V3,
            shape: shape.clone(),
            data_type: self.data_type.clone(),
            chunk_grid: ChunkGridMetadata::Regular { chunk_shape: self.chunk_shape.clone() },
            chunk_key_encoding: ChunkKeyEncodingMetadata::Default(Separator::Slash),
            fill_value: self.fill_value.clone(),
            has_fill_value: true,
            codecs: self.codec.chain(&self.data_type),
            attributes,
            dimension_names: dimension_names.clone(),
        }
    }

    /// Whether v3 has a name for the data type.
    pub(in crate::views) fn has_v3_type(&self) -> bool {
        is_v3_type(&self.data_type)
    }

    /// The name of the data type in v2; `None` if it has none.
    pub(in crate::views) fn v2_dtype(&self) -> Option<Value> {
        self.data_type.to_v2()
    }
}

fn is_v3_type(data_type: &DataType) -> bool {
    DataType::from_v3(&data_type.to_metadata()).as_ref() == Ok(data_type)
}

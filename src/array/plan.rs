//! [`Plan`]: the cost of a selection, known before anything is read.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::bound_array::Array;
use super::error::ArrayError;
use super::gather_plan::{GatherPlan, boxes_bytes, points_bytes};
use super::segments::{ResponseSegment, segments, whole_bytes};
use super::sum_memory;
use crate::chunk::{AssembleError, AxisPositions, AxisRange, ChunkAxis, Points, Subset};
use crate::reduce::{AxisReduction, Method, Reduction};

/// Limits of one read. A request that exceeds one is 413 before anything is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadLimits {
    /// Size of the elements in a response. Texts count as long as they are.
    #[serde(with = "crate::units::size")]
    pub max_response_size: u64,
    /// Size of all chunks that must be decoded for a response.
    #[serde(with = "crate::units::size")]
    pub max_decoded_size: u64,
    /// Chunks that must be decoded for a response; in shards, inner chunks.
    pub max_chunks: u64,
    /// Elements of a response are assembled in segments of this size, as far as the shape of the chunks permits.
    #[serde(with = "crate::units::size")]
    pub segment_size: u64,
    /// Where requests step through an array of a remote mount, the chunks of their next steps are read ahead: at most this many
    /// bytes of decoded chunks at a time. 0 for none.
    #[serde(with = "crate::units::size")]
    pub prefetch_size: u64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            max_response_size: 256 << 20,
            max_decoded_size: 4 << 30,
            max_chunks: 4096,
            segment_size: 32 << 20,
            prefetch_size: 32 << 20,
        }
    }
}

/// The cost of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    response_bytes: u128,
    decoded_bytes: u128,
    chunks: u128,
}

/// A selection of an array that is within the limits.
#[derive(Clone, Debug)]
pub struct Plan {
    array: Arc<Array>,
    subset: Subset,
    response_bytes: u64,
    decoded_bytes: u64,
    chunks: u64,
    band_bytes: u64,
    heap_limit: u64,
    reduction: Option<Arc<Reduction>>,
    /// The statistic over whole dimensions that the response has, if it has one.
    over: Option<Arc<AxisReduction>>,
    /// The lists of positions or the points that the elements are at, if they are at any. The subset is then empty.
    gather: Option<Arc<GatherPlan>>,
    /// Bytes of memory that the points take.
    points_bytes: u64,
}

impl Plan {
    /// Plans to read a subset of an array.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`] with the limit that it exceeds; [`Suggestions`] has slices that do not.
    pub fn new(array: &Arc<Array>, subset: Subset, limits: &ReadLimits) -> Result<Self, ArrayError> {
        let cost = Cost::of(array, &subset);
        if let Some((what, requested, limit)) = cost.excess(limits) {
            return Err(ArrayError::TooLarge { what, requested, limit });
        }
        // Within limits that are u64.
        let within = |cost| u64::try_from(cost).unwrap_or(u64::MAX);
        Ok(Self {
            array: Arc::clone(array),
            subset,
            response_bytes: within(cost.response_bytes),
            decoded_bytes: within(cost.decoded_bytes),
            chunks: within(cost.chunks),
            band_bytes: limits.segment_size.max(1),
            heap_limit: limits.max_response_size,
            reduction: None,
            over: None,
            gather: None,
            points_bytes: 0,
        })
    }

    /// Plans to read the elements at positions along each dimension, or of points, which have their own positions along some
    /// dimensions. The response is assembled as a whole, and each chunk is read once. The work grows with the number of ranges and
    /// points.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`] with the limit that it exceeds.
    pub fn gathered(
        array: &Arc<Array>,
        positions: &[AxisPositions],
        points: Option<&Arc<Points>>,
        limits: &ReadLimits,
    ) -> Result<Self, ArrayError> {
        let item = array.metadata().data_type.element_bytes() as u128;
        let is_of_points = |axis: usize| points.is_some_and(|points| points.axes().contains(&axis));
        let axes = positions.iter().enumerate().filter(|(axis, _)| !is_of_points(*axis));
        let elements = axes.fold(points.map_or(1, |points| points.len() as u128), |all, (_, axis)| {
            all.saturating_mul(axis.count().into())
        });
        let response_bytes = elements.saturating_mul(item);
        // Before the positions are divided by chunks, which takes memory.
        let mut cost = Cost { response_bytes, decoded_bytes: 0, chunks: 0 };
        let check = |cost: &Cost| match cost.excess(limits) {
            Some((what, requested, limit)) => Err(ArrayError::TooLarge { what, requested, limit }),
            None => Ok(()),
        };
        // The longest range along each dimension touches chunks of its own.
        let longest = |(positions, axis): (&AxisPositions, &ChunkAxis)| {
            positions.ranges().iter().map(|range| axis.touched(range).chunks).max().unwrap_or(0)
        };
        let of_axes = positions.iter().zip(array.decoded_axes()).enumerate();
        let of_axes = of_axes.filter(|(axis, _)| !is_of_points(*axis)).map(|(_, along)| longest(along));
        cost.chunks = of_axes.fold(1, |all: u128, chunks| all.saturating_mul(chunks.into()));
        check(&cost)?;
        let gather = GatherPlan::new(array, positions, points)?;
        let (chunks, touched) = gather.touched(array);
        (cost.chunks, cost.decoded_bytes) = (chunks, touched.saturating_mul(item));
        check(&cost)?;
        let within = |cost| u64::try_from(cost).unwrap_or(u64::MAX);
        Ok(Self {
            array: Arc::clone(array),
            subset: Subset(Vec::new()),
            response_bytes: within(cost.response_bytes),
            decoded_bytes: within(cost.decoded_bytes),
            chunks: within(cost.chunks),
            band_bytes: within(cost.response_bytes).max(1),
            heap_limit: limits.max_response_size,
            reduction: None,
            over: None,
            gather: Some(Arc::new(gather)),
            points_bytes: points_bytes(points),
        })
    }

    /// Plans to read a subset of an array and to reduce it. The limits on decoded chunks are for what is read, that on the
    /// response is for the result. Where only the first element of each window counts, the others are not read.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`], also for windows that must be in memory as a whole and are larger than a segment.
    pub fn reduced(
        array: &Arc<Array>,
        subset: Subset,
        reduction: Arc<Reduction>,
        limits: &ReadLimits,
    ) -> Result<Self, ArrayError> {
        let firsts = reduction.firsts(&subset);
        if reduction.reducer().method() == Method::Stride {
            return Self::new(array, firsts, limits);
        }
        if reduction.is_identity() {
            return Self::new(array, subset, limits);
        }
        let item = array.metadata().data_type.element_bytes() as u128;
        let response =
            ("bytes of elements", firsts.elements().saturating_mul(item), limits.max_response_size);
        let window = reduction.largest_window(&subset).saturating_mul(item);
        let whole = ("bytes of one window", window, whole_bytes(limits.segment_size));
        let needs_whole = reduction.reducer().accumulate().is_none();
        for (what, requested, limit) in [Some(response), needs_whole.then_some(whole)].into_iter().flatten() {
            if requested > limit.into() {
                return Err(ArrayError::TooLarge { what, requested, limit });
            }
        }
        let read = ReadLimits { max_response_size: u64::MAX, ..*limits };
        let plan = Self::new(array, subset, &read)?;
        let response_bytes = u64::try_from(response.1).unwrap_or(u64::MAX);
        Ok(Self { response_bytes, reduction: Some(reduction), ..plan })
    }

    /// Plans to read a subset of an array and to reduce whole dimensions of it. The limits on decoded chunks are for what is read,
    /// that on the response is for the result.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`].
    pub fn over(
        array: &Arc<Array>,
        subset: Subset,
        over: Arc<AxisReduction>,
        limits: &ReadLimits,
    ) -> Result<Self, ArrayError> {
        let item = over.data_type().element_bytes() as u128;
        let requested = over.result(&subset).elements().saturating_mul(item);
        let limit = limits.max_response_size;
        if requested > limit.into() {
            return Err(ArrayError::TooLarge { what: "bytes of elements", requested, limit });
        }
        let read = ReadLimits { max_response_size: u64::MAX, ..*limits };
        let response_bytes = u64::try_from(requested).unwrap_or(u64::MAX);
        Ok(Self { response_bytes, over: Some(over), ..Self::new(array, subset, &read)? })
    }

    /// The array.
    #[must_use]
    pub fn array(&self) -> &Arc<Array> {
        &self.array
    }

    /// The elements.
    #[must_use]
    pub fn subset(&self) -> &Subset {
        &self.subset
    }

    /// Bytes of the response's items, known exactly before the first read; of a reduced response, of the results. For elements of
    /// variable length, the bytes in the heap come on top.
    #[must_use]
    pub fn response_bytes(&self) -> u64 {
        self.response_bytes
    }

    /// Decoded bytes of the chunks (inner chunks, if sharded) that the elements are in.
    #[must_use]
    pub fn decoded_bytes(&self) -> u64 {
        self.decoded_bytes
    }

    /// How many chunks (inner chunks, if sharded) the elements are in.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// The same plan, where elements of variable length may have at most this many bytes in one segment.
    #[must_use]
    pub fn with_heap_limit(self, bytes: u64) -> Self {
        Self { heap_limit: self.heap_limit.min(bytes), ..self }
    }

    /// The most bytes that elements of variable length may have in one segment, beside their items.
    #[must_use]
    pub fn heap_limit(&self) -> u64 {
        self.heap_limit
    }

    /// The error of a segment that could not be assembled.
    pub(super) fn assemble_error(&self, error: AssembleError) -> ArrayError {
        match error {
            AssembleError::HeapTooLarge => ArrayError::TooLarge {
                what: "bytes of elements",
                requested: u128::from(self.heap_limit) + 1,
                limit: self.heap_limit,
            },
            AssembleError::Geometry | AssembleError::NoMemory => ArrayError::Geometry,
        }
    }

    /// The most bytes of the response that are assembled at a time.
    #[must_use]
    pub fn segment_bytes(&self) -> u64 {
        self.band_bytes.min(self.response_bytes)
    }

    /// The segments that contain these bytes of the response, in order. The iterator is lazy.
    pub(super) fn segments(&self, bytes: Range<u64>) -> impl Iterator<Item = ResponseSegment> + Send + use<> {
        let rank = self.subset.axes().len();
        let item = self.array.metadata().data_type.element_bytes() as u64;
        let (results, factors, item, band_bytes) = match (&self.reduction, &self.over) {
            (_, Some(over)) => {
                let item = over.data_type().element_bytes() as u64;
                (
                    over.result(&self.subset),
                    vec![1; rank],
                    item,
                    sum_memory::result_band(over, self.band_bytes),
                )
            }
            (Some(reduction), None) => (self.subset.clone(), reduction.factors(rank), item, self.band_bytes),
            (None, None) => (self.subset.clone(), vec![1; rank], item, self.band_bytes),
        };
        let over = self.over.clone().map(|over| (over, self.subset.clone()));
        segments(&self.array, &results, &factors, item, band_bytes, bytes).map(move |segment| match &over {
            None => segment,
            Some((over, whole)) => ResponseSegment { subset: over.source(&segment.subset, whole), ..segment },
        })
    }

    /// The statistic over whole dimensions that the response has, if it has one.
    #[must_use]
    pub fn axis_reduction(&self) -> Option<&Arc<AxisReduction>> {
        self.over.as_ref()
    }

    /// The lists of positions or the points that the elements are at, if they are at any.
    pub(super) fn gather(&self) -> Option<&Arc<GatherPlan>> {
        self.gather.as_ref()
    }

    /// Whether the elements are at lists of positions or at points, so that the plan has no subset.
    #[must_use]
    pub fn is_gathered(&self) -> bool {
        self.gather.is_some()
    }

    /// How the elements are reduced, if they are.
    #[must_use]
    pub fn reduction(&self) -> Option<&Arc<Reduction>> {
        self.reduction.as_ref()
    }

    /// The most bytes of stored elements that are assembled at a time.
    pub(super) fn band_bytes(&self) -> u64 {
        self.band_bytes
    }

    /// Whether all stored elements fit in one segment. They may then be read together with the versions of their chunks.
    #[must_use]
    pub fn is_read_at_once(&self) -> bool {
        let item = self.array.metadata().data_type.element_bytes() as u128;
        self.subset.elements().saturating_mul(item) <= self.band_bytes.into()
    }

    /// The most bytes of stored elements that a reduced response has in memory beside its results; of elements at lists of
    /// positions, the boxes of chunks that they are copied from, and the response once more, where it is converted.
    #[must_use]
    pub fn reduced_source_bytes(&self) -> u64 {
        if self.gather.is_some() {
            let boxes = boxes_bytes(&self.array, self.decoded_bytes);
            return self.response_bytes.saturating_add(boxes).saturating_add(self.points_bytes);
        }
        if self.reduction.is_none() && self.over.is_none() {
            return 0;
        }
        let item = self.array.metadata().data_type.element_bytes() as u128;
        let source = u64::try_from(self.subset.elements().saturating_mul(item)).unwrap_or(u64::MAX);
        if let Some(over) = &self.over {
            return sum_memory::held_bytes(over, source, self.response_bytes, self.band_bytes);
        }
        source.min(whole_bytes(self.band_bytes).saturating_mul(2))
    }
}

impl Cost {
    fn of(array: &Array, subset: &Subset) -> Self {
        let item = array.metadata().data_type.element_bytes() as u128;
        let (mut chunks, mut decoded_bytes): (u128, u128) = (1, item);
        for (range, axis) in subset.axes().iter().zip(array.decoded_axes()) {
            let touched = axis.touched(range);
            chunks = chunks.saturating_mul(touched.chunks.into());
            // The touched chunks are all combinations of those along each axis, so their elements are the product of sums.
            decoded_bytes = decoded_bytes.saturating_mul(touched.elements);
        }
        Self { response_bytes: subset.elements().saturating_mul(item), decoded_bytes, chunks }
    }

    /// The first limit that is exceeded: what is limited, how much was requested, how much is allowed.
    fn excess(&self, limits: &ReadLimits) -> Option<(&'static str, u128, u64)> {
        [
            ("bytes of elements", self.response_bytes, limits.max_response_size),
            ("decoded chunks", self.chunks, limits.max_chunks),
            ("decoded bytes", self.decoded_bytes, limits.max_decoded_size),
        ]
        .into_iter()
        .find(|&(_, requested, limit)| requested > limit.into())
    }
}

/// Slices to request in place of a selection that is too large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suggestions {
    /// Adjacent slices in the grammar of `slice=`; none if not even one element fits.
    pub slices: Vec<String>,
    /// Whether the selection has more than these.
    pub truncated: bool,
}

impl Suggestions {
    /// The selection, halved along its widest dimension until its parts are within the limits and `fits` holds for each. Two
    /// slices of one length may touch different numbers of chunks, so every slice is checked.
    pub fn new(array: &Array, subset: &Subset, limits: &ReadLimits, fits: impl Fn(&Subset) -> bool) -> Self {
        Self::along(array, subset, limits, &vec![Some(1); subset.axes().len()], fits)
    }

    /// The same, where the length of parts along a dimension is a multiple of its unit, but for the last. Without a unit, it is not
    /// halved.
    pub fn along(
        array: &Array,
        subset: &Subset,
        limits: &ReadLimits,
        units: &[Option<u64>],
        fits: impl Fn(&Subset) -> bool,
    ) -> Self {
        let fits = |tile: &Subset| Cost::of(array, tile).excess(limits).is_none() && fits(tile);
        Self::cut(subset, array.decoded_axes(), units, fits)
    }

    /// The same for a write, which costs least where it replaces stored values as a whole.
    pub fn of_write(array: &Array, subset: &Subset, fits: impl Fn(&Subset) -> bool) -> Self {
        Self::cut(subset, array.grid().axes(), &vec![Some(1); subset.axes().len()], fits)
    }

    /// Parts of `subset` for which `fits` holds. Those that are longer than a chunk of `axes` end where one ends.
    fn cut(
        subset: &Subset,
        axes: &[ChunkAxis],
        units: &[Option<u64>],
        fits: impl Fn(&Subset) -> bool,
    ) -> Self {
        let mut counts = subset.axes().iter().map(|range| range.count).collect::<Vec<_>>();
        while !counts.is_empty() {
            let tiles = tiles(subset, axes, &counts, units);
            if tiles.iter().all(&fits) {
                let listed = tiles.iter().fold(0_u128, |sum, tile| sum.saturating_add(tile.elements()));
                let truncated = !tiles.is_empty() && listed < subset.elements();
                return Self { slices: tiles.iter().map(Subset::to_string).collect(), truncated };
            }
            let all = subset.axes().iter().zip(axes).zip(units).zip(&mut counts);
            let longer = all.filter_map(|(((range, axis), unit), count)| {
                let unit = unit.filter(|unit| *count > *unit)?;
                Some((range, axis, unit, count))
            });
            let widest = longer.max_by_key(|(range, axis, _, count)| {
                // Whole chunks first, then elements within one.
                (count.saturating_mul(range.step.unsigned_abs()) / axis.largest_edge().max(1), **count)
            });
            // Otherwise not even one element fits.
            let Some((range, axis, unit, count)) = widest else { break };
            let half = *count / 2;
            *count = match aligned_edge(range, axis, unit) {
                Some(edge) if half >= edge => half / edge * edge,
                _ => (half / unit * unit).max(unit),
            };
        }
        Self::default()
    }
}

/// The edge of the chunks along an axis, if parts of a range with a multiple of `unit` elements can end where chunks end.
fn aligned_edge(range: &AxisRange, axis: &ChunkAxis, unit: u64) -> Option<u64> {
    let is_aligned =
        |edge: u64| edge > 0 && edge.is_multiple_of(unit) && (range.start % edge).is_multiple_of(unit);
    axis.edge().filter(|edge| range.step == 1 && is_aligned(*edge))
}

/// The first parts of a selection that have at most `counts` elements along each axis, next to each other.
fn tiles(subset: &Subset, axes: &[ChunkAxis], counts: &[u64], units: &[Option<u64>]) -> Vec<Subset> {
    const MAX_TILES: u64 = 4;
    // Of each axis: the range, the elements of a part, how many of them the first part lacks, and the number of parts.
    let cuts: Vec<(&AxisRange, u64, u64, u64)> = subset
        .axes()
        .iter()
        .zip(axes)
        .zip(counts)
        .zip(units)
        .map(|(((range, axis), &count), unit)| {
            let edge = aligned_edge(range, axis, unit.unwrap_or(1))
                .filter(|edge| count < range.count && count.is_multiple_of(*edge));
            let lacking = edge.map_or(0, |edge| range.start % edge);
            (range, count, lacking, range.count.saturating_add(lacking).div_ceil(count.max(1)))
        })
        .collect();
    let all = cuts.iter().fold(1_u64, |product, (.., parts)| product.saturating_mul(*parts));
    (0..all.min(MAX_TILES))
        .map(|place| {
            let mut rest = place;
            let mut ranges: Vec<AxisRange> = cuts
                .iter()
                .rev()
                .map(|&(range, count, lacking, parts)| {
                    let part = rest % parts;
                    rest /= parts;
                    let first = part.saturating_mul(count).saturating_sub(lacking);
                    let end = (part + 1).saturating_mul(count).saturating_sub(lacking).min(range.count);
                    range.part(first, end - first)
                })
                .collect();
            ranges.reverse();
            Subset(ranges)
        })
        .collect()
}

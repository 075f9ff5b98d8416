//! [`Plan`]: the cost of a selection, known before anything is read, and the segments that it is read in.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::bound_array::Array;
use super::error::ArrayError;
use crate::chunk::{AssembleError, AxisRange, ChunkAxis, Subset};

/// Limits of one read. A request that exceeds one is 413 before anything is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadLimits {
    /// Size of the elements in a response.
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
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            max_response_size: 256 << 20,
            max_decoded_size: 4 << 30,
            max_chunks: 4096,
            segment_size: 32 << 20,
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
}

/// A part of a response that is assembled at a time: consecutive bytes of it, and the elements that they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResponseSegment {
    pub(super) subset: Subset,
    pub(super) bytes: Range<u64>,
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
        })
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

    /// Bytes of the response's items, known exactly before the first read. For elements of variable length, the bytes in the
    /// heap come on top.
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
    ///
    /// Leading dimensions are taken one element at a time, until the rest of the dimensions fits in a segment. The first
    /// dimension that fits is cut where chunks end, or within chunks where the elements of one chunk do not fit.
    pub(super) fn segments(&self, bytes: Range<u64>) -> impl Iterator<Item = ResponseSegment> + Send + use<> {
        let axes = self.subset.axes().to_vec();
        let grid = self.array.grid().axes().to_vec();
        let item = self.array.metadata().data_type.element_bytes() as u64;
        // Bytes of the response per element of each dimension; within the response limit.
        let mut per_element = vec![item; axes.len()];
        for axis in (1..axes.len()).rev() {
            per_element[axis - 1] = per_element[axis].saturating_mul(axes[axis].count);
        }
        let band_bytes = self.band_bytes;
        let cut =
            per_element.iter().position(|&one| one <= band_bytes).unwrap_or(axes.len().saturating_sub(1));
        let total = self.response_bytes;
        let end = bytes.end.min(total);
        let mut at = bytes.start;
        // The first segment begins where its unit does, which may be before the first requested byte.
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let Some(&unit) = per_element.get(cut) else {
                // Rank 0: one element.
                at = end;
                return Some(ResponseSegment { subset: Subset(Vec::new()), bytes: 0..total });
            };
            let mut subset = Vec::with_capacity(axes.len());
            let mut rest = at;
            for axis in 0..cut {
                subset.push(axes[axis].part(rest / per_element[axis], 1));
                rest %= per_element[axis];
            }
            let first = rest / unit;
            let remaining = axes[cut].part(first, axes[cut].count - first);
            let start = at - rest + first * unit;
            // No further than the requested bytes.
            let limit = (band_bytes / unit).min((end - start).div_ceil(unit));
            let count = segment_length(&remaining, &grid[cut], limit);
            subset.push(remaining.part(0, count));
            subset.extend(axes[cut + 1..].iter().copied());
            at = start + count * unit;
            Some(ResponseSegment { subset: Subset(subset), bytes: start..at })
        })
    }
}

/// How many elements of the range, from its first on, go into a segment of at most `limit` elements: as many whole pieces
/// (the elements in one chunk) as fit, or `limit` elements of a piece that has more.
fn segment_length(range: &AxisRange, axis: &ChunkAxis, limit: u64) -> u64 {
    let mut count = 0;
    for piece in axis.pieces(*range) {
        if count + piece.count > limit {
            break;
        }
        count += piece.count;
    }
    if count == 0 { limit.clamp(1, range.count.max(1)) } else { count }
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
        let mut part = subset.clone();
        let mut cut_along = 0;
        loop {
            let tiles = tiles(subset, &part, cut_along);
            let fits = |tile: &Subset| Cost::of(array, tile).excess(limits).is_none() && fits(tile);
            if tiles.iter().all(fits) {
                let listed = tiles.iter().fold(0_u128, |sum, tile| sum.saturating_add(tile.elements()));
                let truncated = !tiles.is_empty() && listed < subset.elements();
                return Self { slices: tiles.iter().map(slice_text).collect(), truncated };
            }
            let widest =
                part.axes().iter().zip(array.decoded_axes()).enumerate().max_by_key(|(_, (range, axis))| {
                    // Whole chunks first, then elements within one.
                    (
                        range.count.saturating_mul(range.step.unsigned_abs()) / axis.largest_edge().max(1),
                        range.count,
                    )
                });
            match widest {
                Some((axis, (range, _))) if range.count > 1 => {
                    let count = range.count / 2;
                    part.0[axis].count = count;
                    cut_along = axis;
                }
                // Not even one element fits.
                _ => return Self::default(),
            }
        }
    }
}

/// The first parts of a selection of the size of `part`, next to each other along one axis.
fn tiles(subset: &Subset, part: &Subset, axis: usize) -> Vec<Subset> {
    const MAX_TILES: u64 = 4;
    let (Some(whole), Some(step)) = (subset.axes().get(axis), part.axes().get(axis)) else {
        return Vec::new();
    };
    (0..whole.count.div_ceil(step.count.max(1)).min(MAX_TILES))
        .map(|place| {
            let first = place * step.count;
            let mut tile = part.clone();
            tile.0[axis] = whole.part(first, step.count.min(whole.count - first));
            tile
        })
        .collect()
}

/// A subset in the grammar of `slice=`.
fn slice_text(subset: &Subset) -> String {
    let dims: Vec<String> = subset
        .axes()
        .iter()
        .map(|range| match (range.keep, range.step) {
            (false, _) => range.start.to_string(),
            (true, 1) => format!("{}:{}", range.start, range.start.saturating_add(range.count)),
            (true, step) if step > 0 => {
                format!(
                    "{}:{}:{step}",
                    range.start,
                    range.at(range.count.saturating_sub(1)).saturating_add(1)
                )
            }
            (true, step) => match range.at(range.count.saturating_sub(1)) {
                0 => format!("{}::{step}", range.start),
                last => format!("{}:{}:{step}", range.start, last - 1),
            },
        })
        .collect();
    dims.join(",")
}

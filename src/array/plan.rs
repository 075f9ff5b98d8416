//! [`Plan`]: what a selection of an array costs, known before anything is read, and the bands it is read in.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Array, ArrayError};
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

/// What a selection costs.
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

/// A part of an answer that is assembled as one: consecutive bytes of it, and the elements they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) subset: Subset,
    pub(super) bytes: Range<u64>,
}

impl Plan {
    /// Plans to read a subset of an array.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`] says which limit it breaks; [`Suggestions`] has slices that do not.
    pub fn new(array: &Arc<Array>, subset: Subset, limits: &ReadLimits) -> Result<Self, ArrayError> {
        let cost = Cost::of(array, &subset);
        if let Some((what, asked, limit)) = cost.excess(limits) {
            return Err(ArrayError::TooLarge { what, asked, limit });
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

    /// Bytes of the answer's items: known exactly before the first read. Of elements of variable length, what stands in
    /// the heap comes on top.
    #[must_use]
    pub fn response_bytes(&self) -> u64 {
        self.response_bytes
    }

    /// Bytes of the chunks (inner chunks, if sharded) that the elements are in, decoded.
    #[must_use]
    pub fn decoded_bytes(&self) -> u64 {
        self.decoded_bytes
    }

    /// How many chunks (inner chunks, if sharded) the elements are in.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// The same plan, in which elements of variable length may have no more than so many bytes in one band.
    #[must_use]
    pub fn with_heap_limit(self, bytes: u64) -> Self {
        Self { heap_limit: self.heap_limit.min(bytes), ..self }
    }

    /// The most bytes that elements of variable length may have, beside their items, in one band.
    #[must_use]
    pub fn heap_limit(&self) -> u64 {
        self.heap_limit
    }

    /// Why a band could not be put together.
    pub(super) fn unassembled(&self, error: AssembleError) -> ArrayError {
        match error {
            AssembleError::HeapTooLarge => ArrayError::TooLarge {
                what: "bytes of elements",
                asked: u128::from(self.heap_limit) + 1,
                limit: self.heap_limit,
            },
            AssembleError::Geometry | AssembleError::NoMemory => ArrayError::Geometry,
        }
    }

    /// The most bytes of the answer that are assembled at a time.
    #[must_use]
    pub fn segment_bytes(&self) -> u64 {
        self.band_bytes.min(self.response_bytes)
    }

    /// The bands that hold these bytes of the answer, in order. Lazy.
    ///
    /// Leading dimensions are taken an element at a time, until what is left of one element fits a band; the first
    /// dimension that fits is cut where chunks end, or within chunks where one chunk's worth does not fit.
    pub(super) fn segments(&self, bytes: Range<u64>) -> impl Iterator<Item = Segment> + Send + use<> {
        let axes = self.subset.axes().to_vec();
        let grid = self.array.grid().axes().to_vec();
        let item = self.array.metadata().data_type.item_bytes() as u64;
        // Bytes of the answer that one element of each dimension stands for; within the response limit.
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
        // The first band begins where its unit does, which may be before the first byte asked for.
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let Some(&unit) = per_element.get(cut) else {
                // Rank 0: one element.
                at = end;
                return Some(Segment { subset: Subset(Vec::new()), bytes: 0..total });
            };
            let mut subset = Vec::with_capacity(axes.len());
            let mut rest = at;
            for axis in 0..cut {
                subset.push(axes[axis].part(rest / per_element[axis], 1));
                rest %= per_element[axis];
            }
            let first = rest / unit;
            let wanted = axes[cut].part(first, axes[cut].count - first);
            let start = at - rest + first * unit;
            // No further than what is asked for.
            let most = (band_bytes / unit).min((end - start).div_ceil(unit));
            let count = segment_length(&wanted, &grid[cut], most);
            subset.push(wanted.part(0, count));
            subset.extend(axes[cut + 1..].iter().copied());
            at = start + count * unit;
            Some(Segment { subset: Subset(subset), bytes: start..at })
        })
    }
}

/// How many elements of the range, from its first, make a band: as many whole pieces (the elements in one chunk) as `most`
/// elements allow, or `most` of a piece that has more.
fn segment_length(range: &AxisRange, axis: &ChunkAxis, most: u64) -> u64 {
    let mut count = 0;
    for piece in axis.pieces(*range) {
        if count + piece.count > most {
            break;
        }
        count += piece.count;
    }
    if count == 0 { most.clamp(1, range.count.max(1)) } else { count }
}

impl Cost {
    fn of(array: &Array, subset: &Subset) -> Self {
        let item = array.metadata().data_type.item_bytes() as u128;
        let (mut chunks, mut decoded_bytes): (u128, u128) = (1, item);
        for (range, axis) in subset.axes().iter().zip(array.decoded_axes()) {
            let touched = axis.touched(range);
            chunks = chunks.saturating_mul(touched.chunks.into());
            // The chunks touched are all combinations of those along each axis, so their elements are the product of sums.
            decoded_bytes = decoded_bytes.saturating_mul(touched.elements);
        }
        Self { response_bytes: subset.elements().saturating_mul(item), decoded_bytes, chunks }
    }

    /// The first limit that is broken: what is counted, how much was asked, how much is allowed.
    fn excess(&self, limits: &ReadLimits) -> Option<(&'static str, u128, u64)> {
        [
            ("bytes of elements", self.response_bytes, limits.max_response_size),
            ("decoded chunks", self.chunks, limits.max_chunks),
            ("decoded bytes", self.decoded_bytes, limits.max_decoded_size),
        ]
        .into_iter()
        .find(|&(_, asked, limit)| asked > limit.into())
    }
}

/// Slices that can be asked for in place of a selection that is too large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suggestions {
    /// Slices in the grammar of `slice=`, next to each other; none if not even one element fits.
    pub slices: Vec<String>,
    /// Whether the selection has more than these.
    pub truncated: bool,
}

impl Suggestions {
    /// The selection, halved along its widest dimension until its parts are within the limits and `fits` holds for each. A
    /// slice that is as long as one that fits may touch more chunks than it, so every one is looked at.
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

/// The first parts of a selection that are as long as `part`, next to each other along one axis.
fn tiles(subset: &Subset, part: &Subset, axis: usize) -> Vec<Subset> {
    const MOST: u64 = 4;
    let (Some(whole), Some(step)) = (subset.axes().get(axis), part.axes().get(axis)) else {
        return Vec::new();
    };
    (0..whole.count.div_ceil(step.count.max(1)).min(MOST))
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

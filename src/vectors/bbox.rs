//! [`Bbox`]: boxes, and the chunks and bins that they touch (Zarr Vector Format, "Chunk shape": chunk coordinate, read
//! amplification).
//!
//! A chunk contains its lower bound and excludes its upper one. A box contains both, unless it is half-open.
//! Comparisons use `f64`; numbers are clamped before they are converted to integers.

use super::VectorError;
use super::shapes::Shapes;

/// Whether a box contains its upper bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interval {
    /// It does.
    #[default]
    Closed,
    /// It does not.
    HalfOpen,
}

impl Interval {
    /// Its name in a query.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half-open",
        }
    }

    /// The interval of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Closed, Self::HalfOpen].into_iter().find(|interval| interval.as_str() == name)
    }
}

/// An axis-aligned box.
#[derive(Clone, Debug, PartialEq)]
pub struct Bbox {
    /// The lower bound along each axis.
    pub low: Vec<f64>,
    /// The upper bound along each axis.
    pub high: Vec<f64>,
    /// Whether the upper bound belongs to the box.
    pub interval: Interval,
}

/// The first and last coordinate of a range; `None` if it is empty.
pub(super) type CoordRange = Option<(i64, i64)>;

/// The largest chunk or bin coordinate that is distinguished; no grid reaches it.
const MAX_COORD: f64 = 9.0e15;

impl Bbox {
    /// A box in a store with `dims` axes.
    ///
    /// # Errors
    /// [`VectorError::BboxRank`], [`VectorError::BboxNan`], [`VectorError::BboxInverted`].
    pub fn new(low: Vec<f64>, high: Vec<f64>, dims: usize, interval: Interval) -> Result<Self, VectorError> {
        if low.len() != dims || high.len() != dims {
            return Err(VectorError::BboxRank { expected: dims * 2, found: low.len() + high.len() });
        }
        if let Some(place) = low.iter().chain(&high).position(|number| number.is_nan()) {
            return Err(VectorError::BboxNan { index: place });
        }
        for (axis, (&low, &high)) in low.iter().zip(&high).enumerate() {
            if low > high {
                return Err(VectorError::BboxInverted { axis, low, high });
            }
        }
        Ok(Self { low, high, interval })
    }

    /// The box of all space.
    #[must_use]
    pub fn unbounded(dims: usize) -> Self {
        let (low, high) = (vec![f64::NEG_INFINITY; dims], vec![f64::INFINITY; dims]);
        Self { low, high, interval: Interval::Closed }
    }

    /// Whether the box contains a point. A NaN coordinate is in no box.
    pub fn contains(&self, place: impl Iterator<Item = f64>) -> bool {
        let closed = self.interval == Interval::Closed;
        let mut sides = self.low.iter().zip(&self.high).zip(place);
        sides.all(|((&low, &high), at)| low <= at && if closed { at <= high } else { at < high })
    }

    /// Whether the box is empty along an axis.
    fn is_empty_along(&self, axis: usize) -> bool {
        self.interval == Interval::HalfOpen && self.low.get(axis) >= self.high.get(axis)
    }

    /// The cells of edge length `edge` that the box touches along an axis, unclamped.
    fn cell_range(&self, axis: usize, edge: f64) -> Option<(f64, f64)> {
        let (&low, &high) = (self.low.get(axis)?, self.high.get(axis)?);
        if self.is_empty_along(axis) {
            return None;
        }
        let last = match self.interval {
            Interval::Closed => (high / edge).floor(),
            Interval::HalfOpen => (high / edge).ceil() - 1.0,
        };
        Some(((low / edge).floor(), last))
    }

    /// The chunks along an axis that may hold vertices in the box, within `grid`, its first and last chunk.
    ///
    /// Writers of binned points derive a point's chunk from its bin, which rounds differently from the chunk's edge. A
    /// chunk counts if either calculation touches it.
    #[must_use]
    pub fn chunk_span(&self, axis: usize, shapes: &Shapes, grid: (i64, i64)) -> CoordRange {
        let &edge = shapes.chunk.get(axis)?;
        let (mut first, mut last) = self.cell_range(axis, edge)?;
        let bins = shapes.bins_per_chunk.as_ref().and_then(|bins| bins.get(axis));
        if let (Some(&bins), Some(&bin)) = (bins, shapes.bin.get(axis)) {
            let (low, high) = self.cell_range(axis, bin)?;
            #[expect(clippy::cast_precision_loss, reason = "below a billion")]
            let bins = bins as f64;
            first = first.min((low / bins).floor());
            last = last.max((high / bins).floor());
        }
        clamp(first, last, grid)
    }

    /// The bins along an axis that the box touches, within those of the chunks in `grid`.
    #[must_use]
    pub fn bin_span(&self, axis: usize, shapes: &Shapes, grid: (i64, i64)) -> CoordRange {
        let &bin = shapes.bin.get(axis)?;
        let (first, last) = self.cell_range(axis, bin)?;
        clamp(first, last, bins_of_chunks(axis, shapes, grid)?)
    }
}

/// The first and last bin of a range of chunks along an axis.
fn bins_of_chunks(axis: usize, shapes: &Shapes, (first, last): (i64, i64)) -> Option<(i64, i64)> {
    if let Some(&bins) = shapes.bins_per_chunk.as_ref().and_then(|bins| bins.get(axis)) {
        return Some((
            first.saturating_mul(bins),
            last.saturating_add(1).saturating_mul(bins).saturating_sub(1),
        ));
    }
    let (&chunk, &bin) = (shapes.chunk.get(axis)?, shapes.bin.get(axis)?);
    #[expect(clippy::cast_precision_loss, reason = "a bin more or less where numbers are that large")]
    let (low, high) =
        ((first as f64 * chunk / bin).floor(), ((last as f64 + 1.0) * chunk / bin).ceil() - 1.0);
    Some((clamped_integer(low), clamped_integer(high)))
}

/// The part of a cell range that lies within a grid.
fn clamp(first: f64, last: f64, (low, high): (i64, i64)) -> CoordRange {
    if low > high {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "coordinates beyond 2^53 are not distinguished by floats")]
    let (low, high) = (low as f64, high as f64);
    if last < low || first > high || last < first {
        return None;
    }
    Some((clamped_integer(first.max(low)), clamped_integer(last.min(high))))
}

/// A number as an integer of at most [`MAX_COORD`].
#[expect(clippy::cast_possible_truncation, reason = "clamped to what an integer holds")]
fn clamped_integer(number: f64) -> i64 {
    number.clamp(-MAX_COORD, MAX_COORD) as i64
}

/// Read amplification: how much more is read than requested. A ratio is `None` if its denominator is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amplification {
    /// Volume of the chunks read, divided by the volume of the bins that the box touches.
    pub formula: Option<f64>,
    /// The same, counting only the bins in chunks that are read.
    pub per_loaded: Option<f64>,
    /// Rows decoded, divided by rows returned.
    pub rows: Option<f64>,
    /// Bytes fetched, divided by bytes of rows returned.
    pub bytes: Option<f64>,
}

/// The chunks and bins of a level that a box touches.
#[derive(Clone, Debug)]
pub struct TouchedRanges {
    /// The box.
    pub bbox: Bbox,
    /// The first and last chunk along each axis; `None` if the box touches no chunk.
    pub chunks: Option<Vec<(i64, i64)>>,
    /// The first and last bin along each axis; `None` if the box touches no bin.
    pub bins: Option<Vec<(i64, i64)>>,
}

impl TouchedRanges {
    /// The ranges of a box, in a grid given by the first and last chunk along each axis.
    #[must_use]
    pub fn new(bbox: &Bbox, shapes: &Shapes, grid: &[(i64, i64)]) -> Self {
        let spans = |span: fn(&Bbox, usize, &Shapes, (i64, i64)) -> CoordRange| {
            grid.iter().enumerate().map(|(axis, &grid)| span(bbox, axis, shapes, grid)).collect()
        };
        Self { bbox: bbox.clone(), chunks: spans(Bbox::chunk_span), bins: spans(Bbox::bin_span) }
    }

    /// Whether a chunk with these spatial coordinates is touched.
    #[must_use]
    pub fn contains_chunk(&self, spatial: &[i64]) -> bool {
        self.chunks.as_ref().is_some_and(|spans| {
            spans.iter().zip(spatial).all(|(&(first, last), at)| (first..=last).contains(at))
        })
    }

    /// The number of touched chunks, stored or not.
    #[must_use]
    pub fn chunk_count(&self) -> u128 {
        self.chunks.as_deref().map_or(0, volume)
    }

    /// The number of touched bins.
    #[must_use]
    pub fn bin_count(&self) -> u128 {
        self.bins.as_deref().map_or(0, volume)
    }

    /// The number of touched bins in one chunk.
    fn bins_in_chunk(&self, spatial: &[i64], shapes: &Shapes) -> u128 {
        let Some(spans) = &self.bins else { return 0 };
        let mut count: u128 = 1;
        for (axis, (&(first, last), &at)) in spans.iter().zip(spatial).enumerate() {
            let Some((low, high)) = bins_of_chunks(axis, shapes, (at, at)) else { return 0 };
            let (first, last) = (first.max(low), last.min(high));
            let bins = if last < first { 0 } else { u128::from(last.abs_diff(first)) + 1 };
            count = count.saturating_mul(bins);
        }
        count
    }

    /// The amplification known before any vertex is read, with the spatial coordinates of the chunks that will be read.
    pub fn amplification<'a>(
        &self,
        shapes: &Shapes,
        loaded: impl Iterator<Item = &'a [i64]>,
    ) -> Amplification {
        let (mut chunks, mut bins) = (0_u128, 0_u128);
        for spatial in loaded {
            chunks += 1;
            bins = bins.saturating_add(self.bins_in_chunk(spatial, shapes));
        }
        let volume = |edges: &[f64]| edges.iter().product::<f64>();
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let ratio = |bins: u128| {
            (bins > 0).then(|| chunks as f64 * volume(&shapes.chunk) / (bins as f64 * volume(&shapes.bin)))
        };
        Amplification { formula: ratio(self.bin_count()), per_loaded: ratio(bins), rows: None, bytes: None }
    }
}

fn volume(spans: &[(i64, i64)]) -> u128 {
    spans
        .iter()
        .fold(1, |volume: u128, &(first, last)| volume.saturating_mul(u128::from(last.abs_diff(first)) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(chunk: f64, bin: f64) -> Shapes {
        let bins_per_chunk = super::super::shapes::integer_ratio(chunk, bin).map(|ratio| vec![ratio]);
        Shapes { chunk: vec![chunk], bin: vec![bin], bins_per_chunk }
    }

    fn bbox(low: f64, high: f64, interval: Interval) -> Bbox {
        Bbox::new(vec![low], vec![high], 1, interval).unwrap()
    }

    #[test]
    fn a_box_touches_the_chunks_and_bins_of_its_bounds() {
        let shapes = shapes(200.0, 50.0);
        let grid = (0, 5);
        for (low, high, interval, chunks, bins) in [
            (50.0, 100.0, Interval::HalfOpen, Some((0, 0)), Some((1, 1))),
            (50.0, 100.0, Interval::Closed, Some((0, 0)), Some((1, 2))),
            (0.0, 200.0, Interval::HalfOpen, Some((0, 0)), Some((0, 3))),
            (0.0, 200.0, Interval::Closed, Some((0, 1)), Some((0, 4))),
            (50.0, 50.0, Interval::HalfOpen, None, None),
            (f64::NEG_INFINITY, f64::INFINITY, Interval::Closed, Some((0, 5)), Some((0, 23))),
            (f64::NEG_INFINITY, -1e300, Interval::Closed, None, None),
            (1e300, f64::INFINITY, Interval::HalfOpen, None, None),
            (-1e300, 1e300, Interval::HalfOpen, Some((0, 5)), Some((0, 23))),
        ] {
            let bbox = bbox(low, high, interval);
            assert_eq!(bbox.chunk_span(0, &shapes, grid), chunks, "{low} {high} {interval:?}");
            assert_eq!(bbox.bin_span(0, &shapes, grid), bins, "{low} {high} {interval:?}");
        }
    }

    #[test]
    fn a_chunk_reached_by_bin_rounding_is_touched() {
        let bbox = bbox(0.3, 0.3, Interval::Closed);
        assert_eq!(bbox.chunk_span(0, &shapes(0.3, 0.1), (0, 3)), Some((0, 1)));
        assert_eq!(bbox.chunk_span(0, &shapes(0.3, 0.3), (0, 3)), Some((1, 1)));
    }

    #[test]
    fn invalid_boxes_are_rejected() {
        let of = |low: f64, high: f64| Bbox::new(vec![low], vec![high], 1, Interval::Closed);
        assert!(matches!(of(f64::NAN, 1.0), Err(VectorError::BboxNan { index: 0 })));
        assert!(matches!(of(2.0, 1.0), Err(VectorError::BboxInverted { axis: 0, .. })));
        assert!(matches!(
            Bbox::new(vec![], vec![1.0], 1, Interval::Closed),
            Err(VectorError::BboxRank { expected: 2, found: 1 })
        ));
    }

    #[test]
    fn no_box_contains_nan() {
        let all = Bbox::unbounded(1);
        assert!(all.contains([f64::INFINITY].into_iter()) && !all.contains([f64::NAN].into_iter()));
        assert!(!bbox(0.0, 1.0, Interval::HalfOpen).contains([1.0].into_iter()));
        assert!(bbox(0.0, 1.0, Interval::Closed).contains([1.0].into_iter()));
    }
}

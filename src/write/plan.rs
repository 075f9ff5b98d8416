//! [`WritePlan`]: a selection of an array that can be written, and the bands in which its elements are taken.

use std::sync::Arc;

use super::error::WriteError;
use super::options::WriteOptions;
use crate::array::Array;
use crate::chunk::{AxisRange, ChunkAxis, Subset};

/// A selection of an array that can be written within the limits.
#[derive(Clone, Debug)]
pub struct WritePlan {
    array: Arc<Array>,
    subset: Subset,
    /// Bytes of the items of a band.
    band_bytes: u64,
    values: u64,
}

/// What `max_values` limits, in [`WriteError::TooLarge`].
pub(crate) const STORED_CHUNKS: &str = "stored chunks";

/// Bands, in the C order of the selection.
type Bands = Box<dyn Iterator<Item = Subset> + Send>;

impl WritePlan {
    /// Plans to write elements to a subset of an array, taken in bands of at most `band_bytes`.
    ///
    /// # Errors
    /// [`WriteError::Step`]; [`WriteError::TooLarge`]; [`WriteError::Codecs`] if the chunks cannot be encoded.
    pub fn new(
        array: &Arc<Array>,
        subset: Subset,
        band_bytes: u64,
        options: &WriteOptions,
    ) -> Result<Self, WriteError> {
        for (dimension, range) in subset.axes().iter().enumerate() {
            if range.count > 1 && range.step <= 0 {
                return Err(WriteError::Step { dimension, step: range.step });
            }
        }
        let axes = || subset.axes().iter().zip(array.grid().axes());
        let values =
            axes().map(|(range, axis)| u128::from(axis.touched(range).chunks)).fold(1, u128::saturating_mul);
        if values > options.max_values.into() {
            let (what, limit) = (STORED_CHUNKS, options.max_values);
            return Err(WriteError::TooLarge { what, requested: values, limit });
        }
        array
            .first_chain()
            .check_encodable()
            .map_err(|source| WriteError::Codecs { coords: vec![0; subset.axes().len()], source })?;
        let values = u64::try_from(values).unwrap_or(u64::MAX);
        let plan = Self { array: Arc::clone(array), subset, band_bytes, values };
        plan.cut(plan.subset.clone(), 0).map(|_| plan)
    }

    /// The array.
    #[must_use]
    pub fn array(&self) -> &Arc<Array> {
        &self.array
    }

    /// The selection.
    #[must_use]
    pub fn subset(&self) -> &Subset {
        &self.subset
    }

    /// The number of stored values that it writes.
    #[must_use]
    pub fn values(&self) -> u64 {
        self.values
    }

    /// The number of selected elements (saturated).
    #[must_use]
    pub fn elements(&self) -> u64 {
        u64::try_from(self.subset.elements()).unwrap_or(u64::MAX)
    }

    /// The bands: together the selection, in C order, each of whole chunks of the selection along the dimension that is cut.
    #[must_use]
    pub fn bands(&self) -> Bands {
        // `new` has cut it once.
        self.cut(self.subset.clone(), 0).unwrap_or_else(|_error| Box::new(std::iter::empty()))
    }

    /// Cuts a part of the selection, of which only one element is left along each dimension before `dimension`.
    fn cut(&self, part: Subset, dimension: usize) -> Result<Bands, WriteError> {
        if part.elements() == 0 {
            return Ok(Box::new(std::iter::empty()));
        }
        let bytes = self.bytes_of(&part);
        let axes = part.axes().iter().zip(self.array.grid().axes()).enumerate().skip(dimension);
        let found = axes.into_iter().find(|(_, (range, _))| range.count > 1);
        let Some((dimension, (&range, axis))) = found.filter(|_| bytes > self.band_bytes.into()) else {
            return self.fitting(part, bytes);
        };
        let axis = axis.clone();
        let one = bytes / u128::from(range.count);
        let longest = longest_piece(&range, &axis);
        if one.saturating_mul(longest.into()) <= self.band_bytes.into() {
            let most = u64::try_from(u128::from(self.band_bytes) / one.max(1)).unwrap_or(u64::MAX);
            return Ok(Box::new(
                groups(range, &axis, most).map(move |range| with_axis(&part, dimension, range)),
            ));
        }
        if longest > 1 {
            return Err(self.too_large(one.saturating_mul(longest.into())));
        }
        // One element along this dimension in each chunk: the next dimension can be cut as well. All are cut alike.
        let plan = self.clone();
        drop(self.cut(with_axis(&part, dimension, range.part(0, 1)), dimension.saturating_add(1))?);
        let parts = (0..range.count).flat_map(move |place| {
            let part = with_axis(&part, dimension, range.part(place, 1));
            plan.cut(part, dimension.saturating_add(1)).into_iter().flatten()
        });
        Ok(Box::new(parts))
    }

    fn fitting(&self, part: Subset, bytes: u128) -> Result<Bands, WriteError> {
        if bytes > self.band_bytes.into() {
            Err(self.too_large(bytes))
        } else {
            Ok(Box::new(std::iter::once(part)))
        }
    }

    fn too_large(&self, requested: u128) -> WriteError {
        WriteError::TooLarge { what: "bytes of elements at a time", requested, limit: self.band_bytes }
    }

    /// Bytes of the items of a part (saturated).
    fn bytes_of(&self, part: &Subset) -> u128 {
        part.elements().saturating_mul(self.array.metadata().data_type.element_bytes() as u128)
    }
}

/// An upper bound of the elements of a range that lie in one chunk.
fn longest_piece(range: &AxisRange, axis: &ChunkAxis) -> u64 {
    axis.largest_edge().div_ceil(range.step.unsigned_abs().max(1)).min(range.count)
}

/// The range in parts of whole chunks, each with at most `most` elements.
fn groups(range: AxisRange, axis: &ChunkAxis, most: u64) -> impl Iterator<Item = AxisRange> + Send + use<> {
    let mut pieces = axis.pieces(range).map(|piece| piece.count).peekable();
    let mut first = 0;
    std::iter::from_fn(move || {
        let mut count = pieces.next()?;
        while let Some(next) = pieces.next_if(|next| count.saturating_add(*next) <= most) {
            count += next;
        }
        let part = range.part(first, count);
        first += count;
        Some(part)
    })
}

/// The same part with another range along a dimension.
fn with_axis(part: &Subset, dimension: usize, range: AxisRange) -> Subset {
    let mut part = part.clone();
    if let Some(axis) = part.0.get_mut(dimension) {
        *axis = range;
    }
    part
}

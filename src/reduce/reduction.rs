//! [`Reduction`]: what one request applies to a selection: windows of one size, or a cascade of such steps.

use std::ops::Range;
use std::sync::Arc;

use super::reducer::Reducer;
use crate::chunk::{AxisRange, Subset};

/// A reduction of a selection: each step reduces the result of the one before.
///
/// Factors are for the dimensions of the array, in their order; a dimension that an integer index drops has the factor 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reduction {
    reducer: Arc<Reducer>,
    steps: Vec<Vec<u64>>,
}

impl Reduction {
    /// One step: direct windows with a length for each dimension.
    #[must_use]
    pub fn direct(reducer: Reducer, factors: Vec<u64>) -> Self {
        Self { reducer: Arc::new(reducer), steps: vec![factors] }
    }

    /// Halvings of the last two dimensions that are kept (of the last one, if there is only one), as many as it takes that
    /// they have at most `height` and `width` elements.
    #[must_use]
    pub fn fit(reducer: Reducer, subset: &Subset, width: u64, height: u64) -> Self {
        let kept: Vec<usize> =
            subset.axes().iter().enumerate().filter(|(_, axis)| axis.keep).map(|(dim, _)| dim).collect();
        let plane: Vec<(usize, u64)> = kept.iter().rev().copied().zip([width, height]).collect();
        let length = |dim: usize| subset.axes().get(dim).map_or(0, |axis| axis.count);
        let fits = |count: &u32| plane.iter().all(|&(dim, most)| halved(length(dim), *count) <= most.max(1));
        let count = (0..64).find(fits).unwrap_or(64);
        let dimensions: Vec<usize> = plane.iter().map(|&(dim, _)| dim).collect();
        Self::halvings(reducer, subset.axes().len(), &dimensions, count)
    }

    /// That many halvings of some dimensions of an array with this many.
    #[must_use]
    pub fn halvings(reducer: Reducer, rank: usize, dimensions: &[usize], count: u32) -> Self {
        let step = (0..rank).map(|dim| if dimensions.contains(&dim) { 2 } else { 1 }).collect();
        Self { reducer: Arc::new(reducer), steps: vec![step; count as usize] }
    }

    /// These steps, each with a factor for each dimension.
    #[must_use]
    pub fn cascade(reducer: Reducer, steps: Vec<Vec<u64>>) -> Self {
        Self { reducer: Arc::new(reducer), steps }
    }

    /// The method and the type.
    #[must_use]
    pub fn reducer(&self) -> &Arc<Reducer> {
        &self.reducer
    }

    /// The factors of each step.
    #[must_use]
    pub fn steps(&self) -> &[Vec<u64>] {
        &self.steps
    }

    /// The factors of all steps together (saturated), for a number of dimensions.
    #[must_use]
    pub fn factors(&self, rank: usize) -> Vec<u64> {
        let mut factors = vec![1_u64; rank];
        for step in &self.steps {
            for (factor, step) in factors.iter_mut().zip(step) {
                *factor = factor.saturating_mul(*step).max(1);
            }
        }
        factors
    }

    /// Whether it leaves every element as it is.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.steps.iter().flatten().all(|&factor| factor <= 1)
    }

    /// The first steps alone.
    #[must_use]
    pub fn first_steps(&self, count: usize) -> Self {
        let steps = self.steps.get(..count).unwrap_or(&self.steps).to_vec();
        Self { reducer: Arc::clone(&self.reducer), steps }
    }

    /// The steps after the first ones.
    #[must_use]
    pub fn later_steps(&self, count: usize) -> Self {
        Self { reducer: Arc::clone(&self.reducer), steps: self.steps.iter().skip(count).cloned().collect() }
    }

    /// The elements of the largest window of any step (saturated).
    #[must_use]
    pub fn largest_window(&self, subset: &Subset) -> u128 {
        self.steps.iter().map(|step| window(subset, step)).max().unwrap_or(1)
    }

    /// The selected elements that one result is made of, at most (saturated).
    #[must_use]
    pub fn source_window(&self, subset: &Subset) -> u128 {
        window(subset, &self.factors(subset.axes().len()))
    }

    /// The first element of each window: a selection of the shape of the result.
    #[must_use]
    pub fn firsts(&self, subset: &Subset) -> Subset {
        let factors = self.factors(subset.axes().len());
        let axes = subset.axes().iter().zip(factors).map(|(axis, factor)| {
            let step = i64::try_from(u128::from(axis.step.unsigned_abs()).saturating_mul(factor.into()));
            let step = step.unwrap_or(i64::MAX) * axis.step.signum();
            AxisRange { count: axis.count.div_ceil(factor), step, ..*axis }
        });
        Subset(axes.collect())
    }

    /// About `count` parts of a box of this shape in C order, whose results one after the other are that of the box: the bytes of each,
    /// and its shape.
    #[must_use]
    pub fn parts(&self, shape: &[usize], count: usize) -> Vec<(Range<usize>, Vec<usize>)> {
        let whole = shape.iter().product::<usize>() * self.reducer.element_bytes();
        let Some(axis) = shape.iter().position(|&length| length > 1) else {
            return vec![(0..whole, shape.to_vec())];
        };
        let (length, factor) = (shape[axis], self.factors(shape.len())[axis]);
        let factor = usize::try_from(factor).unwrap_or(usize::MAX);
        // No window is in two parts.
        let each = length.div_ceil(factor).div_ceil(count.max(1)).saturating_mul(factor);
        let parts = (0..length).step_by(each.max(1)).map(|start| {
            let (end, bytes) = (start.saturating_add(each).min(length), whole / length);
            let mut shape = shape.to_vec();
            shape[axis] = end - start;
            (start * bytes..end * bytes, shape)
        });
        parts.collect()
    }

    /// Reduces a box of elements of this shape, given in canonical form and C order.
    #[must_use]
    pub fn apply(&self, items: &[u8], shape: &[usize]) -> Vec<u8> {
        let mut shape = shape.to_vec();
        let mut reduced: Option<Vec<u8>> = None;
        for step in &self.steps {
            let factors: Vec<usize> =
                step.iter().map(|&factor| usize::try_from(factor).unwrap_or(usize::MAX).max(1)).collect();
            let items = reduced.as_deref().unwrap_or(items);
            reduced = Some(self.reducer.reduce(items, &shape, &factors));
            for (length, factor) in shape.iter_mut().zip(&factors) {
                *length = length.div_ceil(*factor);
            }
        }
        reduced.unwrap_or_else(|| items.to_vec())
    }
}

/// The length of a dimension after that many halvings.
#[must_use]
pub fn halved(length: u64, halvings: u32) -> u64 {
    length.div_ceil(1_u64.checked_shl(halvings).unwrap_or(u64::MAX))
}

/// The elements of a window with these lengths in a selection, at most (saturated).
fn window(subset: &Subset, factors: &[u64]) -> u128 {
    let edges = subset.axes().iter().zip(factors).map(|(axis, &factor)| factor.min(axis.count));
    edges.fold(1, |product: u128, edge| product.saturating_mul(edge.into()))
}

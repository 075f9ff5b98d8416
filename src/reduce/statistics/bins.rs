//! [`Bins`]: the edges of a histogram.

/// The edges of a histogram: bins of equal width between two values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bins {
    /// The number of bins, at least 1.
    pub count: usize,
    /// The lower edge of the first bin.
    pub low: f64,
    /// The upper edge of the last bin, which belongs to it.
    pub high: f64,
}

impl Bins {
    /// The edges of all bins, as `numpy.linspace` computes them; of a range that is wider than the largest number as well.
    #[must_use]
    pub fn edges(&self) -> Vec<f64> {
        let step = (self.high - self.low) / length(self.count);
        let edge = |at: usize| {
            if at == self.count {
                self.high
            } else if step.is_finite() {
                length(at) * step + self.low
            } else {
                let part = length(at) / length(self.count);
                self.low * (1.0 - part) + self.high * part
            }
        };
        (0..=self.count).map(edge).collect()
    }
}

/// The bin of a value between these edges, as `numpy.histogram` chooses it; `None` outside.
pub(super) fn bin_of(number: f64, edges: &[f64]) -> Option<usize> {
    let (&low, &high) = (edges.first()?, edges.last()?);
    if !(low..=high).contains(&number) {
        return None;
    }
    let above = edges.partition_point(|&edge| edge <= number);
    Some(above.saturating_sub(1).min(edges.len().saturating_sub(2)))
}

#[expect(clippy::cast_precision_loss, reason = "below 2^53 it is exact")]
fn length(count: usize) -> f64 {
    count as f64
}

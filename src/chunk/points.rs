//! [`Points`]: elements that are selected one by one, each by its positions along some of the dimensions.

/// The positions of points along some of the dimensions of an array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// The dimensions, ascending,
    axes: Vec<usize>,
    /// and along each of them the position of every point.
    positions: Vec<Vec<u64>>,
}

impl Points {
    /// Points with these positions along each of these dimensions; `None` if not all have as many, or a dimension occurs twice.
    #[must_use]
    pub fn new(mut along: Vec<(usize, Vec<u64>)>) -> Option<Self> {
        along.sort_by_key(|(axis, _)| *axis);
        let (axes, positions): (Vec<usize>, Vec<Vec<u64>>) = along.into_iter().unzip();
        let are_different = axes.windows(2).all(|pair| pair.first() < pair.last());
        let are_as_many =
            positions.windows(2).all(|pair| pair.first().map(Vec::len) == pair.last().map(Vec::len));
        (are_different && are_as_many).then_some(Self { axes, positions })
    }

    /// The number of points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.positions.first().map_or(0, Vec::len)
    }

    /// Whether there are no points.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dimensions that the points have positions along, ascending.
    #[must_use]
    pub fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// The positions of all points along a dimension, if they have any there.
    #[must_use]
    pub fn along(&self, axis: usize) -> Option<&[u64]> {
        let place = self.axes.iter().position(|&known| known == axis)?;
        self.positions.get(place).map(Vec::as_slice)
    }

    /// The position of a point along each of [`Points::axes`].
    pub(super) fn position(&self, point: usize) -> impl Iterator<Item = u64> + use<'_> {
        self.positions.iter().map(move |along| along.get(point).copied().unwrap_or_default())
    }

    /// The positions of all points along each of [`Points::axes`].
    pub(super) fn positions(&self) -> &[Vec<u64>] {
        &self.positions
    }
}

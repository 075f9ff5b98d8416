//! [`Windows`]: a box of elements divided into windows, as rows that a kernel goes through.

/// A box of elements divided into windows.
///
/// A *row* is what is contiguous in the box and in the result alike: the last dimension that is reduced, with the dimensions
/// after it, whose elements lie side by side. The dimensions before are the outer ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    outer: Vec<Outer>,
    /// Elements of the row's own dimension, and of each of its windows.
    length: usize,
    factor: usize,
    /// Elements of the dimensions after it.
    inner: usize,
}

/// A dimension before those of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outer {
    length: usize,
    factor: usize,
    /// Elements from one index to the next.
    stride: usize,
}

/// The rows that the windows of one row of the result are in.
#[derive(Clone, Debug)]
pub(super) struct SourceRows {
    first: usize,
    /// For each outer dimension the number of rows, and the elements from one to the next.
    spans: Vec<(usize, usize)>,
}

impl Windows {
    /// The windows of these lengths in a box of this shape. A factor of 0 counts as 1.
    pub(super) fn new(shape: &[usize], factors: &[usize]) -> Self {
        let mut axes: Vec<(usize, usize)> = shape
            .iter()
            .zip(factors)
            .map(|(&length, &factor)| (length, factor.clamp(1, length.max(1))))
            .collect();
        let inner_from = axes.iter().rposition(|&(_, factor)| factor > 1).map_or(axes.len(), |at| at + 1);
        let inner = axes.drain(inner_from..).map(|(length, _)| length).product();
        let (length, factor) = axes.pop().unwrap_or((1, 1));
        let mut stride = length * inner;
        let mut outer: Vec<Outer> = Vec::with_capacity(axes.len());
        for (length, factor) in axes.into_iter().rev() {
            outer.push(Outer { length, factor, stride });
            stride *= length;
        }
        outer.reverse();
        Self { outer, length, factor, inner }
    }

    /// Elements of a row, of a window along it, and of the dimensions after it.
    pub(super) fn row(&self) -> (usize, usize, usize) {
        (self.length * self.inner, self.factor, self.inner)
    }

    /// Elements of a row of the result.
    pub(super) fn result_row(&self) -> usize {
        self.length.div_ceil(self.factor) * self.inner
    }

    /// Elements along the row's dimension in the window at this place of a result row.
    pub(super) fn width(&self, place: usize) -> usize {
        let start = place / self.inner.max(1) * self.factor;
        self.factor.min(self.length - start.min(self.length))
    }

    /// The elements of the largest window.
    pub(super) fn largest(&self) -> usize {
        self.outer.iter().map(|axis| axis.factor).product::<usize>() * self.factor
    }

    /// The number of elements of the result.
    pub(super) fn results(&self) -> usize {
        self.outer.iter().map(|axis| axis.length.div_ceil(axis.factor)).product::<usize>() * self.result_row()
    }

    /// Calls `visit` for each row of the result, in C order.
    pub(super) fn for_each_result_row(&self, mut visit: impl FnMut(&SourceRows)) {
        if self.results() == 0 {
            return;
        }
        let mut place = vec![0; self.outer.len()];
        let mut rows = SourceRows { first: 0, spans: vec![(0, 0); self.outer.len()] };
        loop {
            rows.first = 0;
            for ((axis, span), &at) in self.outer.iter().zip(&mut rows.spans).zip(&place) {
                let start = at * axis.factor;
                rows.first += start * axis.stride;
                *span = (axis.factor.min(axis.length - start), axis.stride);
            }
            visit(&rows);
            let next = self.outer.iter().zip(&mut place).rev().find_map(|(axis, at)| {
                *at += 1;
                if *at < axis.length.div_ceil(axis.factor) {
                    return Some(());
                }
                *at = 0;
                None
            });
            if next.is_none() {
                return;
            }
        }
    }
}

impl SourceRows {
    /// The number of rows.
    pub(super) fn count(&self) -> usize {
        self.spans.iter().map(|&(count, _)| count).product()
    }

    /// Calls `visit` with the first element of each row, in C order.
    pub(super) fn for_each(&self, mut visit: impl FnMut(usize)) {
        visit_rows(&self.spans, self.first, &mut visit);
    }
}

fn visit_rows(spans: &[(usize, usize)], at: usize, visit: &mut impl FnMut(usize)) {
    match spans {
        [] => visit(at),
        [(count, stride), rest @ ..] => {
            for index in 0..*count {
                visit_rows(rest, at + index * stride, visit);
            }
        }
    }
}

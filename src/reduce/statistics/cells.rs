//! [`Cells`]: the statistics of elements in groups, which can be merged with those of other elements.

use super::bins::bin_of;
use super::cursor::Cursor;
use super::statistic::Statistic;
use crate::reduce::cf::{CfValues, Visitor, double};
use crate::reduce::exact::{ExactSums, Exponents, Natural, Signed, deviation, mean, rounded};

/// The smallest and the largest value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extremes {
    /// Of integers.
    pub integers: Option<(i128, i128)>,
    /// Of all values.
    pub floats: Option<(f64, f64)>,
}

/// The statistics of elements in groups, the cells.
#[derive(Clone, Debug)]
pub struct Cells {
    /// Values that are neither missing nor NaN.
    count: Vec<u64>,
    /// Elements that the attributes mark as missing.
    missing: Vec<u64>,
    /// Elements that are NaN.
    nan: Vec<u64>,
    extremes: CellExtremes,
    /// The extremes of the finite values of all cells, if these have extremes.
    finite: Option<(f64, f64)>,
    sums: CellSums,
    /// The bins of each cell.
    bins: usize,
    counts: Vec<u64>,
}

/// The extremes of each cell; of a cell without values they are of no meaning.
#[derive(Clone, Debug)]
enum CellExtremes {
    None,
    Integers(Vec<(i128, i128)>),
    Floats(Vec<(f64, f64)>),
}

/// The sums of each cell.
#[derive(Clone, Debug)]
enum CellSums {
    None,
    Integers { sums: Vec<i128>, squares: Option<Vec<[u64; 3]>> },
    Floats { sums: ExactSums, squares: Option<ExactSums>, infinities: Vec<Infinities> },
}

/// The infinities among the numbers of a cell.
#[derive(Clone, Copy, Debug, Default)]
struct Infinities {
    positive: bool,
    negative: bool,
}

impl Cells {
    /// Cells without elements, for all statistics and a histogram with this number of bins.
    #[must_use]
    pub fn new(values: &CfValues, cells: usize, bins: usize) -> Self {
        Self::with(values, cells, true, true, true, bins)
    }

    /// Cells without elements, for one statistic.
    #[must_use]
    pub fn of_one(values: &CfValues, cells: usize, statistic: Statistic) -> Self {
        let has_squares = statistic == Statistic::Std;
        let has_sums = has_squares || matches!(statistic, Statistic::Mean | Statistic::Sum);
        Self::with(values, cells, statistic.needs_values(), has_sums, has_squares, 0)
    }

    fn with(
        values: &CfValues,
        cells: usize,
        has_extremes: bool,
        has_sums: bool,
        has_squares: bool,
        bins: usize,
    ) -> Self {
        let extremes = match (has_extremes, values.are_integers()) {
            (false, _) => CellExtremes::None,
            (true, true) => CellExtremes::Integers(vec![(0, 0); cells]),
            (true, false) => CellExtremes::Floats(vec![(0.0, 0.0); cells]),
        };
        let sums = match (has_sums, values.are_integers()) {
            (false, _) => CellSums::None,
            (true, true) => {
                CellSums::Integers { sums: vec![0; cells], squares: has_squares.then(|| vec![[0; 3]; cells]) }
            }
            (true, false) => CellSums::Floats {
                sums: ExactSums::new(Exponents::Numbers, cells),
                squares: has_squares.then(|| ExactSums::new(Exponents::Squares, cells)),
                infinities: Vec::new(),
            },
        };
        let zeros = || vec![0; cells];
        let counts = vec![0; cells.saturating_mul(bins)];
        Self { count: zeros(), missing: zeros(), nan: zeros(), extremes, finite: None, sums, bins, counts }
    }

    /// The same cells, where the sums of floats may need this number of bytes in all cells together, and those of their squares as
    /// many. Where they need more, the cells are full.
    #[must_use]
    pub fn with_sums_within(self, bytes: u64) -> Self {
        let sums = match self.sums {
            CellSums::Floats { sums, squares, infinities } => CellSums::Floats {
                sums: sums.within(bytes),
                squares: squares.map(|squares| squares.within(bytes)),
                infinities,
            },
            other => other,
        };
        Self { sums, ..self }
    }

    /// Whether sums would have needed more memory than permitted. The statistics are then wrong.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match &self.sums {
            CellSums::Floats { sums, squares, .. } => {
                sums.is_full() || squares.as_ref().is_some_and(ExactSums::is_full)
            }
            CellSums::None | CellSums::Integers { .. } => false,
        }
    }

    /// The number of cells.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.len()
    }

    /// Whether there is no cell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count.is_empty()
    }

    /// Adds elements in canonical form, each to the cell that the cursor gives, and to the bins between these edges.
    pub fn add(&mut self, values: &CfValues, items: &[u8], cursor: &mut Cursor, edges: Option<&[f64]>) {
        values.visit(items, &mut Adder { cells: self, cursor, edges, times: 1 });
    }

    /// Adds a number of equal elements to each cell.
    pub fn add_equal(&mut self, values: &CfValues, item: &[u8], times: u64, edges: Option<&[f64]>) {
        let mut cursor = Cursor::new(&[(self.len(), 1)], 0);
        self.add_equal_to(values, item, (self.len(), times), &mut cursor, edges);
    }

    /// Adds a number of equal elements to each of a number of cells, which the cursor gives: `(cells, times)`.
    pub fn add_equal_to(
        &mut self,
        values: &CfValues,
        item: &[u8],
        (cells, times): (usize, u64),
        cursor: &mut Cursor,
        edges: Option<&[f64]>,
    ) {
        if times == 0 {
            return;
        }
        for _ in 0..cells {
            values.visit(item, &mut Adder { cells: self, cursor, edges, times });
        }
    }

    /// Adds the statistics of other cells, each to the cell that the cursor gives.
    pub fn merge(&mut self, other: &Self, cursor: &Cursor) {
        let mut places = cursor.clone();
        for (from, (&count, (&missing, &nan))) in
            other.count.iter().zip(other.missing.iter().zip(&other.nan)).enumerate()
        {
            let cell = places.next();
            if count > 0 {
                self.extremes.merge(
                    cell,
                    self.count.get(cell).is_some_and(|&has| has > 0),
                    &other.extremes,
                    from,
                );
            }
            add_to(&mut self.count, cell, count);
            add_to(&mut self.missing, cell, missing);
            add_to(&mut self.nan, cell, nan);
            for bin in 0..self.bins.min(other.bins) {
                let counted = other.counts.get(from * other.bins + bin).copied().unwrap_or(0);
                add_to(&mut self.counts, cell * self.bins + bin, counted);
            }
        }
        for end in other.finite.iter().flat_map(|&(low, high)| [low, high]) {
            self.add_finite(end);
        }
        self.sums.merge(&other.sums, cursor);
    }

    /// Values of a cell that are neither missing nor NaN.
    #[must_use]
    pub fn count(&self, cell: usize) -> u64 {
        self.count.get(cell).copied().unwrap_or(0)
    }

    /// Elements of a cell that the attributes mark as missing.
    #[must_use]
    pub fn missing(&self, cell: usize) -> u64 {
        self.missing.get(cell).copied().unwrap_or(0)
    }

    /// Elements of a cell that are NaN.
    #[must_use]
    pub fn nan(&self, cell: usize) -> u64 {
        self.nan.get(cell).copied().unwrap_or(0)
    }

    /// The extremes of a cell.
    #[must_use]
    pub fn extremes(&self, cell: usize) -> Extremes {
        if self.count(cell) == 0 {
            return Extremes::default();
        }
        match &self.extremes {
            CellExtremes::None => Extremes::default(),
            CellExtremes::Integers(pairs) => {
                let integers = pairs.get(cell).copied();
                Extremes { integers, floats: integers.map(|(low, high)| (double(low), double(high))) }
            }
            CellExtremes::Floats(pairs) => Extremes { integers: None, floats: pairs.get(cell).copied() },
        }
    }

    /// The extremes of the finite values of all cells.
    #[must_use]
    pub fn extent(&self) -> Option<(f64, f64)> {
        match &self.extremes {
            CellExtremes::None | CellExtremes::Floats(_) => self.finite,
            CellExtremes::Integers(_) => {
                let all = (0..self.len()).filter_map(|cell| self.extremes(cell).floats);
                all.reduce(|one, other| (lower(one.0, other.0), higher(one.1, other.1)))
            }
        }
    }

    /// The exact sum of a cell of integers.
    #[must_use]
    pub fn integer_sum(&self, cell: usize) -> Option<i128> {
        match &self.sums {
            CellSums::Integers { sums, .. } => sums.get(cell).copied(),
            CellSums::None | CellSums::Floats { .. } => None,
        }
    }

    /// The sum of a cell, rounded once.
    #[must_use]
    pub fn sum(&self, cell: usize) -> f64 {
        self.sums.infinite(cell).unwrap_or_else(|| rounded(&self.sums.sum(cell)))
    }

    /// The mean of a cell, rounded once; `None` without values.
    #[must_use]
    pub fn mean(&self, cell: usize) -> Option<f64> {
        let count = self.count(cell);
        (count > 0).then(|| self.sums.infinite(cell).unwrap_or_else(|| mean(&self.sums.sum(cell), count)))
    }

    /// The standard deviation of a cell as a whole population, rounded once; `None` without values.
    #[must_use]
    pub fn deviation(&self, cell: usize) -> Option<f64> {
        let count = self.count(cell);
        (count > 0).then(|| match self.sums.infinite(cell) {
            Some(_) => f64::NAN,
            None => deviation(&self.sums.sum(cell), &self.sums.squares(cell), count),
        })
    }

    /// The values of a cell in each bin.
    #[must_use]
    pub fn counts(&self, cell: usize) -> &[u64] {
        self.counts.get(cell * self.bins..(cell + 1) * self.bins).unwrap_or_default()
    }

    /// Bytes of memory, about.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let extremes = match &self.extremes {
            CellExtremes::None => 0,
            CellExtremes::Integers(pairs) => size_of_val(&pairs[..]),
            CellExtremes::Floats(pairs) => size_of_val(&pairs[..]),
        };
        let sums = match &self.sums {
            CellSums::None => 0,
            CellSums::Integers { sums, squares } => {
                size_of_val(&sums[..]) + squares.as_ref().map_or(0, |squares| size_of_val(&squares[..]))
            }
            CellSums::Floats { sums, squares, infinities } => {
                let squares = squares.as_ref().map_or(0, ExactSums::memory_bytes);
                sums.memory_bytes() + squares + size_of_val(&infinities[..])
            }
        };
        let counts = 3 * size_of_val(&self.count[..]) + size_of_val(&self.counts[..]);
        (size_of::<Self>() + counts + extremes + sums) as u64
    }

    fn add_integer(&mut self, cell: usize, number: i128, times: u64) {
        let Some(count) = self.count.get_mut(cell) else { return };
        if let CellExtremes::Integers(pairs) = &mut self.extremes
            && let Some(pair) = pairs.get_mut(cell)
        {
            *pair = if *count == 0 { (number, number) } else { (pair.0.min(number), pair.1.max(number)) };
        }
        *count += times;
        if let CellSums::Integers { sums, squares } = &mut self.sums {
            if let Some(sum) = sums.get_mut(cell) {
                *sum = sum.saturating_add(number.saturating_mul(times.into()));
            }
            if let Some(sum) = squares.as_mut().and_then(|squares| squares.get_mut(cell)) {
                add_square(sum, number, times);
            }
        }
    }

    fn add_float(&mut self, cell: usize, number: f64, times: u64) {
        if number.is_nan() {
            add_to(&mut self.nan, cell, times);
            return;
        }
        let Some(count) = self.count.get_mut(cell) else { return };
        if let CellExtremes::Floats(pairs) = &mut self.extremes
            && let Some(pair) = pairs.get_mut(cell)
        {
            *pair =
                if *count == 0 { (number, number) } else { (lower(pair.0, number), higher(pair.1, number)) };
        }
        *count += times;
        if matches!(self.extremes, CellExtremes::Floats(_)) && number.is_finite() {
            self.add_finite(number);
        }
        let cells = self.count.len();
        if let CellSums::Floats { sums, squares, infinities } = &mut self.sums {
            if number.is_infinite() {
                infinities.resize(cells, Infinities::default());
                if let Some(seen) = infinities.get_mut(cell) {
                    *seen = seen.and(Infinities { positive: number > 0.0, negative: number < 0.0 });
                }
                return;
            }
            sums.add(cell, number, times);
            if let Some(squares) = squares {
                squares.add(cell, number, times);
            }
        }
    }

    fn add_finite(&mut self, number: f64) {
        let (low, high) = self.finite.unwrap_or((number, number));
        self.finite = Some((lower(low, number), higher(high, number)));
    }

    fn count_in_bin(&mut self, cell: usize, number: f64, edges: &[f64], times: u64) {
        if let Some(bin) = bin_of(number, edges).filter(|&bin| bin < self.bins) {
            add_to(&mut self.counts, cell * self.bins + bin, times);
        }
    }
}

impl CellExtremes {
    /// Adds the extremes of a cell of others that has values.
    fn merge(&mut self, cell: usize, has_values: bool, others: &Self, other: usize) {
        match (self, others) {
            (Self::Integers(pairs), Self::Integers(others)) => {
                if let (Some(pair), Some(&other)) = (pairs.get_mut(cell), others.get(other)) {
                    *pair = if has_values { (pair.0.min(other.0), pair.1.max(other.1)) } else { other };
                }
            }
            (Self::Floats(pairs), Self::Floats(others)) => {
                if let (Some(pair), Some(&other)) = (pairs.get_mut(cell), others.get(other)) {
                    *pair =
                        if has_values { (lower(pair.0, other.0), higher(pair.1, other.1)) } else { other };
                }
            }
            _ => {}
        }
    }
}

impl CellSums {
    fn merge(&mut self, other: &Self, cursor: &Cursor) {
        match (self, other) {
            (Self::Integers { sums, squares }, Self::Integers { sums: others, squares: other_squares }) => {
                let mut places = cursor.clone();
                for (from, other) in others.iter().enumerate() {
                    let cell = places.next();
                    if let Some(sum) = sums.get_mut(cell) {
                        *sum = sum.saturating_add(*other);
                    }
                    if let Some(sum) = squares.as_mut().and_then(|squares| squares.get_mut(cell))
                        && let Some(other) = other_squares.as_ref().and_then(|squares| squares.get(from))
                    {
                        add_limbs(sum, *other);
                    }
                }
            }
            (
                Self::Floats { sums, squares, infinities },
                Self::Floats { sums: others, squares: other_squares, infinities: other_infinities },
            ) => {
                let places = || {
                    let mut places = cursor.clone();
                    move || places.next()
                };
                sums.merge(others, places());
                if let (Some(squares), Some(others)) = (squares, other_squares) {
                    squares.merge(others, places());
                }
                let mut place = places();
                for other in other_infinities {
                    let cell = place();
                    if infinities.len() <= cell {
                        infinities.resize(cell + 1, Infinities::default());
                    }
                    if let Some(seen) = infinities.get_mut(cell) {
                        *seen = seen.and(*other);
                    }
                }
            }
            _ => {}
        }
    }

    /// The sum of a cell with infinities.
    fn infinite(&self, cell: usize) -> Option<f64> {
        let Self::Floats { infinities, .. } = self else { return None };
        match infinities.get(cell)? {
            Infinities { positive: true, negative: true } => Some(f64::NAN),
            Infinities { positive: true, negative: false } => Some(f64::INFINITY),
            Infinities { positive: false, negative: true } => Some(f64::NEG_INFINITY),
            Infinities { positive: false, negative: false } => None,
        }
    }

    fn sum(&self, cell: usize) -> Signed {
        match self {
            Self::None => Signed::default(),
            Self::Integers { sums, .. } => Signed::integer(sums.get(cell).copied().unwrap_or(0)),
            Self::Floats { sums, .. } => sums.sum(cell),
        }
    }

    fn squares(&self, cell: usize) -> Natural {
        match self {
            Self::None => Natural::default(),
            Self::Integers { squares, .. } => {
                let squares = squares.as_ref().and_then(|squares| squares.get(cell));
                Natural::integer(squares.copied().unwrap_or_default())
            }
            Self::Floats { squares, .. } => {
                squares.as_ref().map(|squares| squares.sum(cell).magnitude).unwrap_or_default()
            }
        }
    }
}

impl Infinities {
    fn and(self, other: Self) -> Self {
        Self { positive: self.positive || other.positive, negative: self.negative || other.negative }
    }
}

/// Adds values to the cells that a cursor gives.
struct Adder<'a> {
    cells: &'a mut Cells,
    cursor: &'a mut Cursor,
    edges: Option<&'a [f64]>,
    times: u64,
}

impl Visitor for Adder<'_> {
    #[inline]
    fn integer(&mut self, number: i128) {
        let cell = self.cursor.next();
        self.cells.add_integer(cell, number, self.times);
        if let Some(edges) = self.edges {
            self.cells.count_in_bin(cell, double(number), edges, self.times);
        }
    }

    #[inline]
    fn float(&mut self, number: f64) {
        let cell = self.cursor.next();
        self.cells.add_float(cell, number, self.times);
        if let Some(edges) = self.edges {
            self.cells.count_in_bin(cell, number, edges, self.times);
        }
    }

    fn missing(&mut self) {
        let cell = self.cursor.next();
        add_to(&mut self.cells.missing, cell, self.times);
    }
}

/// The smaller of two numbers that are not NaN; -0 is below 0.
fn lower(one: f64, other: f64) -> f64 {
    if other.total_cmp(&one).is_lt() { other } else { one }
}

/// The larger of two numbers that are not NaN; 0 is above -0.
fn higher(one: f64, other: f64) -> f64 {
    if other.total_cmp(&one).is_gt() { other } else { one }
}

fn add_to(counts: &mut [u64], place: usize, added: u64) {
    if let Some(count) = counts.get_mut(place) {
        *count += added;
    }
}

/// Adds the square of a number of at most 65 bits that many times.
#[expect(clippy::cast_possible_truncation, reason = "the limbs of a product")]
fn add_square(sum: &mut [u64; 3], number: i128, times: u64) {
    let magnitude = number.unsigned_abs();
    let square = magnitude.wrapping_mul(magnitude);
    let (low, high) = (square & u128::from(u64::MAX), square >> 64);
    let low = low * u128::from(times);
    let high = high * u128::from(times) + (low >> 64);
    add_limbs(sum, [low as u64, high as u64, (high >> 64) as u64]);
}

fn add_limbs(sum: &mut [u64; 3], limbs: [u64; 3]) {
    let mut carry = false;
    for (place, limb) in sum.iter_mut().zip(limbs) {
        let (added, first) = place.overflowing_add(limb);
        let (added, second) = added.overflowing_add(carry.into());
        (*place, carry) = (added, first || second);
    }
}

//! [`Reducer`]: halves a plane of elements several times, row by row.
//!
//! Each halving replaces a window of two by two elements by one: windows begin at the first element, and those at the end are
//! of what is there. A result is rounded to the type of the elements, and the next halving begins with what was rounded.

use bytes::{Bytes, BytesMut};

use super::decoding::Decoding;
use super::numbers::{integer, write_integer, write_number};

/// What the element of a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The mean of the numbers that are not missing; of integers rounded half to even.
    Mean,
    /// The most frequent element that is not missing; of several the smallest.
    Mode,
    /// The smallest number.
    Min,
    /// The largest number.
    Max,
    /// The first element.
    Stride,
}

impl Method {
    /// Parses the name of a method.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "mean" => Self::Mean,
            "mode" => Self::Mode,
            "min" => Self::Min,
            "max" => Self::Max,
            "stride" => Self::Stride,
            _ => return None,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Mode => "mode",
            Self::Min => "min",
            Self::Max => "max",
            Self::Stride => "stride",
        }
    }
}

/// Halves a plane of elements in C order as they arrive. It holds one row for each halving, and the result.
#[derive(Debug)]
pub struct Reducer {
    decoding: Decoding,
    method: Method,
    width: usize,
    element_bytes: usize,
    /// Bytes of less than a row.
    rest: BytesMut,
    /// For each halving a row that waits for the next.
    pending: Vec<Option<Vec<u8>>>,
    reduced: Vec<u8>,
}

impl Reducer {
    /// Halves rows of `width` elements this many times; the decoding says which elements are missing.
    #[must_use]
    pub fn new(decoding: Decoding, method: Method, halvings: u32, width: usize) -> Self {
        let element_bytes = decoding.data_type().element_bytes().max(1);
        let pending = (0..halvings).map(|_| None).collect();
        Self { decoding, method, width, element_bytes, rest: BytesMut::new(), pending, reduced: Vec::new() }
    }

    /// Takes the next elements.
    pub fn push(&mut self, items: Bytes) {
        if self.pending.is_empty() && self.rest.is_empty() {
            self.rest = items.into();
            return;
        }
        self.rest.extend_from_slice(&items);
        let row_bytes = self.width.saturating_mul(self.element_bytes);
        if self.pending.is_empty() || row_bytes == 0 {
            return;
        }
        while self.rest.len() >= row_bytes {
            let row = self.rest.split_to(row_bytes).to_vec();
            self.pass_on(0, row);
        }
    }

    /// The reduced elements.
    #[must_use]
    pub fn finish(mut self) -> Bytes {
        if self.pending.is_empty() {
            return self.rest.freeze();
        }
        for level in 0..self.pending.len() {
            if let Some(row) = self.pending.get_mut(level).and_then(Option::take) {
                let halved = self.halve_rows(&row, &[]);
                self.pass_on(level + 1, halved);
            }
        }
        self.reduced.into()
    }

    /// Takes a row that was halved this many times.
    fn pass_on(&mut self, mut level: usize, mut row: Vec<u8>) {
        while let Some(pending) = self.pending.get_mut(level) {
            let Some(first) = pending.take() else {
                *pending = Some(row);
                return;
            };
            row = self.halve_rows(&first, &row);
            level += 1;
        }
        self.reduced.extend_from_slice(&row);
    }

    /// Halves one or two rows.
    fn halve_rows(&self, first: &[u8], second: &[u8]) -> Vec<u8> {
        let item = self.element_bytes;
        let mut out = Vec::with_capacity(first.len() / 2 + item);
        if self.method == Method::Stride {
            out.extend(first.chunks(item).step_by(2).flatten());
            return out;
        }
        let (mut upper, mut lower) = (Vec::new(), Vec::new());
        self.decoding.comparable(first, &mut upper);
        self.decoding.comparable(second, &mut lower);
        let mut window: Vec<(f64, &[u8])> = Vec::with_capacity(4);
        for column in (0..upper.len()).step_by(2) {
            window.clear();
            for (numbers, items) in [(&upper, first), (&lower, second)] {
                let items = items.chunks(item).zip(numbers).skip(column).take(2);
                window.extend(
                    items.filter(|(_, number)| !number.is_nan()).map(|(item, &number)| (number, item)),
                );
            }
            self.summarize(
                &window,
                first.get(column * item..(column + 1) * item).unwrap_or_default(),
                &mut out,
            );
        }
        out
    }

    /// Appends the element of a window, given the elements of it that are not missing; `missing` is the first of all.
    fn summarize(&self, window: &[(f64, &[u8])], missing: &[u8], out: &mut Vec<u8>) {
        let chosen = match self.method {
            Method::Mean => return self.mean(window, missing, out),
            Method::Min => window.iter().min_by(|(one, _), (other, _)| one.total_cmp(other)),
            Method::Max => window.iter().max_by(|(one, _), (other, _)| one.total_cmp(other)),
            Method::Stride => window.first(),
            Method::Mode => {
                let count = |item: &[u8]| window.iter().filter(|(_, other)| *other == item).count();
                window.iter().min_by(|(one, item), (other, of_other)| {
                    count(of_other).cmp(&count(item)).then(one.total_cmp(other)).then(item.cmp(of_other))
                })
            }
        };
        out.extend_from_slice(chosen.map_or(missing, |(_, item)| *item));
    }

    fn mean(&self, window: &[(f64, &[u8])], missing: &[u8], out: &mut Vec<u8>) {
        let data_type = self.decoding.data_type();
        let Ok(count @ 1..) = i128::try_from(window.len()) else {
            out.extend_from_slice(missing);
            return;
        };
        if let Some(half) = data_type.complex_half() {
            let bytes = half.element_bytes();
            for part in [0..bytes, bytes..2 * bytes] {
                let sum: f64 = window
                    .iter()
                    .filter_map(|(_, item)| Decoding::float(&half, item.get(part.clone())?))
                    .sum();
                #[expect(clippy::cast_precision_loss, reason = "at most 4")]
                write_number(&half, sum / count as f64, out);
            }
            return;
        }
        if window.iter().all(|(_, item)| integer(data_type, item).is_some()) {
            let sum: i128 = window.iter().filter_map(|(_, item)| integer(data_type, item)).sum();
            let (floor, rest) = (sum.div_euclid(count), sum.rem_euclid(count));
            let rounds_up = 2 * rest > count || (2 * rest == count && floor % 2 != 0);
            write_integer(data_type, floor + i128::from(rounds_up), out);
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "at most 4")]
        let mean = window.iter().map(|(number, _)| number).sum::<f64>() / count as f64;
        write_number(data_type, mean, out);
    }
}

/// The length of a side after some halvings.
#[must_use]
pub fn halved(length: u64, halvings: u32) -> u64 {
    length.div_ceil(1_u64.checked_shl(halvings).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "both are integers")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::metadata::DataType;
    use crate::render::raster::Part;

    fn reduced(
        items: &[i16],
        width: usize,
        halvings: u32,
        method: Method,
        fill: i16,
        piece: usize,
    ) -> Vec<i16> {
        let attributes = json!({ "_FillValue": fill });
        let decoding = Decoding::cf(&DataType::Int16, Part::Abs, attributes.as_object().unwrap()).unwrap();
        let mut reducer = Reducer::new(decoding, method, halvings, width);
        let bytes: Vec<u8> = items.iter().flat_map(|item| item.to_le_bytes()).collect();
        for piece in bytes.chunks(piece) {
            reducer.push(Bytes::copy_from_slice(piece));
        }
        reducer.finish().as_chunks::<2>().0.iter().map(|&item| i16::from_le_bytes(item)).collect()
    }

    #[test]
    fn windows_are_halved_by_each_method() {
        let items = [1, 2, 9, 4, 4, 9, 7, 7, -1, -1, -1, -1, 5, 6, -1];
        for method in [Method::Mean, Method::Mode, Method::Min, Method::Max, Method::Stride] {
            for piece in [2, 6, 1000] {
                let found = reduced(&items, 5, 1, method, -1, piece);
                let naive = naive(&items, 5, method, -1);
                assert_eq!(found, naive, "{method:?} {piece}");
            }
        }
    }

    /// The same in other words, for the numbers of this test.
    fn naive(items: &[i16], width: usize, method: Method, fill: i16) -> Vec<i16> {
        let rows: Vec<&[i16]> = items.chunks(width).collect();
        let mut out = Vec::new();
        for pair in rows.chunks(2) {
            for column in (0..width).step_by(2) {
                let all: Vec<i16> =
                    pair.iter().flat_map(|row| row[column..width.min(column + 2)].to_vec()).collect();
                let mut window: Vec<i16> = all.iter().copied().filter(|&item| item != fill).collect();
                window.sort_unstable();
                let mean = || {
                    let mean = f64::from(window.iter().sum::<i16>())
                        / f64::from(u8::try_from(window.len()).unwrap());
                    (-100..100).find(|&whole| f64::from(whole) == mean.round_ties_even()).unwrap()
                };
                let mode = || {
                    let count = |item: i16| window.iter().filter(|&&other| other == item).count();
                    let most = window.iter().map(|&item| count(item)).max().unwrap();
                    window.iter().copied().find(|&item| count(item) == most).unwrap()
                };
                out.push(match method {
                    Method::Stride => all[0],
                    _ if window.is_empty() => fill,
                    Method::Mean => mean(),
                    Method::Min => window[0],
                    Method::Max => window[window.len() - 1],
                    Method::Mode => mode(),
                });
            }
        }
        out
    }

    #[test]
    fn halvings_are_a_cascade() {
        let items: Vec<i16> = (0..70).map(|at| at * at % 31).collect();
        for method in [Method::Mean, Method::Mode, Method::Min, Method::Max, Method::Stride] {
            let once = naive(&items, 7, method, -1);
            let twice = naive(&once, 4, method, -1);
            let thrice = naive(&twice, 2, method, -1);
            assert_eq!(reduced(&items, 7, 2, method, -1, 64), twice, "{method:?}");
            assert_eq!(reduced(&items, 7, 3, method, -1, 1000), thrice, "{method:?}");
            assert_eq!(reduced(&items, 7, 0, method, -1, 10), items, "{method:?}");
        }
        assert_eq!([halved(7, 0), halved(7, 1), halved(7, 2), halved(7, 3), halved(7, 99)], [7, 4, 2, 1, 1]);
    }
}

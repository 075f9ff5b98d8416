//! A naive array in memory and numpy's selections of it: the oracle. It uses nothing of the server's.

use std::fmt;

/// One dimension of a selection, as a client spells it.
#[derive(Clone, Copy, Debug)]
pub enum Dim {
    Index(i64),
    Slice { start: Option<i64>, stop: Option<i64>, step: Option<i64> },
    Ellipsis,
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |number: &Option<i64>| number.map_or(String::new(), |number| number.to_string());
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Slice { start, stop, step: None } => write!(f, "{}:{}", text(start), text(stop)),
            Self::Slice { start, stop, step } => write!(f, "{}:{}:{}", text(start), text(stop), text(step)),
            Self::Ellipsis => f.write_str("..."),
        }
    }
}

/// The text of a complete selection.
pub fn spell(dims: &[Dim]) -> String {
    dims.iter().map(Dim::to_string).collect::<Vec<_>>().join(",")
}

/// All elements of an array, in C order and little endian.
#[derive(Clone, Debug)]
pub struct Model {
    pub shape: Vec<usize>,
    pub element_bytes: usize,
    pub elements: Vec<u8>,
}

/// The elements of a selection, and their shape.
#[derive(Debug, PartialEq, Eq)]
pub struct Selected {
    pub shape: Vec<usize>,
    pub elements: Vec<u8>,
}

impl Model {
    pub fn element(&self, place: &[usize]) -> &[u8] {
        let number = flat(&self.shape, place);
        &self.elements[number * self.element_bytes..][..self.element_bytes]
    }

    /// The result in numpy; every integer must be in range.
    pub fn select(&self, dims: &[Dim]) -> Selected {
        let (shape, places) = self.selected(dims);
        let elements = places.iter().flat_map(|place| self.element(place).to_vec()).collect();
        Selected { shape, elements }
    }

    /// Numpy's `a[dims] = elements`.
    pub fn assign(&mut self, dims: &[Dim], elements: &[u8]) {
        let item = self.element_bytes;
        let (_, places) = self.selected(dims);
        assert_eq!(places.len() * item, elements.len());
        for (place, element) in places.iter().zip(elements.chunks(item)) {
            let at = flat(&self.shape, place) * item;
            self.elements[at..at + item].copy_from_slice(element);
        }
    }

    /// The shape of a selection, and its places in C order.
    fn selected(&self, dims: &[Dim]) -> (Vec<usize>, Vec<Vec<usize>>) {
        let given = dims.iter().filter(|dim| !matches!(dim, Dim::Ellipsis)).count();
        let whole = Dim::Slice { start: None, stop: None, step: None };
        let mut full = Vec::new();
        for dim in dims {
            match dim {
                Dim::Ellipsis => full.extend(vec![whole; self.shape.len() - given]),
                dim => full.push(*dim),
            }
        }
        full.resize(self.shape.len(), whole);
        let axes: Vec<Vec<usize>> =
            full.iter().zip(&self.shape).map(|(dim, &length)| dim.places(length)).collect();
        let counts: Vec<usize> = axes.iter().map(Vec::len).collect();
        let place = |at: Vec<usize>| at.iter().zip(&axes).map(|(&number, axis)| axis[number]).collect();
        let kept = full.iter().zip(&counts).filter(|(dim, _)| !matches!(dim, Dim::Index(_)));
        (kept.map(|(_, &count)| count).collect(), places(&counts).map(place).collect())
    }
}

impl Dim {
    /// The places along an axis that are selected, in order: Python's `range(*slice.indices(length))`.
    fn places(self, length: usize) -> Vec<usize> {
        let length = i64::try_from(length).unwrap();
        let from_end = |number: i64| if number < 0 { number + length } else { number };
        let place = |at: i64| usize::try_from(at).unwrap();
        match self {
            Self::Index(index) => vec![place(from_end(index))],
            Self::Ellipsis => panic!("an ellipsis is no single axis"),
            Self::Slice { start, stop, step } => {
                let step = step.unwrap_or(1);
                let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
                let (first, last) = if step > 0 { (low, high) } else { (high, low) };
                let mut at = start.map_or(first, |start| from_end(start).clamp(low, high));
                let stop = stop.map_or(last, |stop| from_end(stop).clamp(low, high));
                let mut found = Vec::new();
                while if step > 0 { at < stop } else { at > stop } {
                    found.push(place(at));
                    at = at.saturating_add(step);
                }
                found
            }
        }
    }
}

/// The number of a place in C order.
pub fn flat(shape: &[usize], place: &[usize]) -> usize {
    shape.iter().zip(place).fold(0, |number, (&length, &at)| number * length + at)
}

/// All places of a box, in C order.
pub fn places(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape = shape.to_vec();
    let total: usize = shape.iter().product();
    (0..total).map(move |number| {
        let mut rest = number;
        let mut place = vec![0; shape.len()];
        for axis in (0..shape.len()).rev() {
            place[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        place
    })
}

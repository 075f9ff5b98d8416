//! [`Selection`]: the elements that a request selects, in numpy's grammar and with numpy's meaning.
//!
//! ```text
//! slice := dim ("," dim)* [","]    dim := int | [int] ":" [int] [":" [int]] | "..."
//! ```
//! One pair of `[]` or `()` around the whole selection is accepted. Slices are half-open; negative numbers count from the end;
//! missing trailing dimensions are selected in full; stops are clamped; an integer drops its dimension; negative steps
//! reverse.

use super::{AxisRange, Subset};
use crate::error::{Classify, ErrorClass};
use crate::units::counted;

/// A parsed selection, not yet resolved against a shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(Vec<DimSelection>);

/// What is selected along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DimSelection {
    Index(i64),
    Slice { start: Option<i64>, stop: Option<i64>, step: i64 },
    Ellipsis,
}

/// The parser rejects selections with more dimensions than any array may have.
const MAX_DIMENSIONS: usize = 64;

/// Why a selection cannot be parsed or does not fit the array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// A dimension is neither an integer nor a slice nor `...`.
    #[error(
        "`{part}` (dimension {position} of the selection) is not an integer, a slice `start:stop:step` or `...`: elements \
         are selected by index here, and by label with `sel.NAME`"
    )]
    Syntax {
        /// Which of the comma-separated parts, from 0.
        position: usize,
        /// Its text, shortened.
        part: String,
    },
    /// A step of 0.
    #[error("dimension {position} of the selection has a step of 0; a step must not be 0")]
    ZeroStep {
        /// Which of the comma-separated parts, from 0.
        position: usize,
    },
    /// `...` twice.
    #[error("a selection may hold `...` only once")]
    SecondEllipsis,
    /// More parts than the array has dimensions.
    #[error("the selection has {}, the array has {rank}", counted(*.given, "dimension"))]
    TooManyDimensions {
        /// Parts of the selection, without `...`.
        given: usize,
        /// The array's rank.
        rank: usize,
    },
    /// No dimension has this name.
    #[error("no dimension of the array is called `{name}`; its dimensions are {known}")]
    UnknownDimension {
        /// The name.
        name: String,
        /// The names of the dimensions.
        known: String,
    },
    /// The dimensions have no names.
    #[error(
        "no dimension of the array is called `{name}`: they have no names; select by position, with `slice=`, or by their \
         numbers, as in `isel.0=`"
    )]
    NoNames {
        /// The name.
        name: String,
    },
    /// Several dimensions have this name.
    #[error("several dimensions of the array are called `{name}`; select by position, with `slice=`")]
    AmbiguousDimension {
        /// The name.
        name: String,
    },
    /// A dimension is selected twice.
    #[error("the dimension `{name}` is selected twice")]
    DimensionTwice {
        /// The name.
        name: String,
    },
    /// An item of a list is neither an integer nor a slice.
    #[error("`{part}` (item {position} of the list) is not an integer or a slice `start:stop:step`")]
    ListItem {
        /// Which of the items, from 0.
        position: usize,
        /// Its text, shortened.
        part: String,
    },
    /// A list has too many items.
    #[error("the list has {count} items; a list has at most {limit}")]
    ListTooLong {
        /// Its items.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// Points have no dimension along which they have positions.
    #[error(
        "`points` has no dimension: it takes a list of labels for each of its dimensions, `{{\"lat\": [45.2, 60], \"lon\": [7.6, 25]}}`"
    )]
    NoPoints,
    /// Points have more positions along one dimension than along another.
    #[error(
        "points have {count} positions along `{name}` and {other_count} along `{other}`; each point has one along both"
    )]
    PointsDiffer {
        /// One dimension.
        name: String,
        /// The positions along it.
        count: usize,
        /// The other dimension.
        other: String,
        /// The positions along that.
        other_count: usize,
    },
    /// Points have something other than a list along a dimension.
    #[error(
        "points have a list of labels along `{name}`, such as `[45.2, 60]`, or in `isel` a list of positions"
    )]
    PointsNoList {
        /// The dimension.
        name: String,
    },
    /// A point has a slice for a position.
    #[error("the position of a point along `{name}` is an integer, not a slice")]
    PointIsSlice {
        /// The dimension.
        name: String,
    },
    /// A dimension is selected by a list where only a range can be.
    #[error(
        "`{name}` is selected by a list of positions or by points, which `/v1/data` takes for elements as they are stored; select one range \
         here, as in `isel.{name}=0:10`"
    )]
    NoRange {
        /// The name of the dimension.
        name: String,
    },
    /// An integer is outside the array.
    #[error("index {index} is out of range for axis {axis} of length {length}")]
    OutOfRange {
        /// The axis, from 0.
        axis: usize,
        /// Its length.
        length: u64,
        /// The requested index.
        index: i64,
    },
}

impl Classify for SelectionError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Syntax { .. }
            | Self::ZeroStep { .. }
            | Self::SecondEllipsis
            | Self::TooManyDimensions { .. }
            | Self::UnknownDimension { .. }
            | Self::NoNames { .. }
            | Self::AmbiguousDimension { .. }
            | Self::DimensionTwice { .. }
            | Self::ListItem { .. }
            | Self::ListTooLong { .. }
            | Self::NoPoints
            | Self::PointsDiffer { .. }
            | Self::PointsNoList { .. }
            | Self::PointIsSlice { .. }
            | Self::NoRange { .. }
            | Self::OutOfRange { .. } => ErrorClass::InvalidRequest,
        }
    }
}

impl Selection {
    /// Parses a selection. The empty text selects everything.
    ///
    /// # Errors
    /// [`SelectionError`] with the part that is wrong.
    pub fn parse(text: &str) -> Result<Self, SelectionError> {
        let text = text.trim();
        let text = [('[', ']'), ('(', ')')]
            .iter()
            .find_map(|&(open, close)| text.strip_prefix(open)?.strip_suffix(close))
            .unwrap_or(text);
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        // As behind the only element of a tuple.
        let text = text.trim_end();
        let text = text.strip_suffix(',').unwrap_or(text);
        let mut dims = Vec::new();
        for (position, part) in text.split(',').map(str::trim).enumerate() {
            if position >= MAX_DIMENSIONS {
                return Err(SelectionError::TooManyDimensions {
                    given: text.split(',').count(),
                    rank: MAX_DIMENSIONS,
                });
            }
            let dim = DimSelection::parse(part)
                .ok_or_else(|| SelectionError::Syntax { position, part: part.chars().take(40).collect() })?;
            match dim {
                DimSelection::Slice { step: 0, .. } => return Err(SelectionError::ZeroStep { position }),
                DimSelection::Ellipsis if dims.contains(&DimSelection::Ellipsis) => {
                    return Err(SelectionError::SecondEllipsis);
                }
                dim => dims.push(dim),
            }
        }
        Ok(Self(dims))
    }

    /// A selection by the names of dimensions: an integer or a slice for each name. Other dimensions are selected in full.
    ///
    /// # Errors
    /// [`SelectionError`] with the name or the part that is wrong.
    pub fn by_name(pairs: &[(String, String)], names: &[Option<String>]) -> Result<Self, SelectionError> {
        let mut dims = vec![None; names.len()];
        for (name, text) in pairs {
            let axis = dimension_called(name, names)?;
            let &[dim @ (DimSelection::Index(_) | DimSelection::Slice { .. })] =
                Self::parse(text)?.0.as_slice()
            else {
                return Err(SelectionError::Syntax { position: 0, part: text.chars().take(40).collect() });
            };
            if dims.get_mut(axis).and_then(|slot| slot.replace(dim)).is_some() {
                return Err(SelectionError::DimensionTwice { name: name.clone() });
            }
        }
        let whole = DimSelection::Slice { start: None, stop: None, step: 1 };
        Ok(Self(dims.into_iter().map(|dim| dim.unwrap_or(whole)).collect()))
    }

    /// The box that this selects in an array of this shape.
    ///
    /// # Errors
    /// [`SelectionError`] if it has too many dimensions or an integer is out of range.
    pub fn resolve(&self, shape: &[u64]) -> Result<Subset, SelectionError> {
        let given = self.0.iter().filter(|dim| **dim != DimSelection::Ellipsis).count();
        let Some(missing) = shape.len().checked_sub(given) else {
            return Err(SelectionError::TooManyDimensions { given, rank: shape.len() });
        };
        let mut axes: Vec<AxisRange> = Vec::with_capacity(shape.len());
        for dim in &self.0 {
            let axis = axes.len();
            match dim {
                DimSelection::Ellipsis => {
                    axes.extend(shape.iter().skip(axis).take(missing).map(|&length| AxisRange::full(length)));
                }
                DimSelection::Index(_) | DimSelection::Slice { .. } => {
                    axes.push(dim.resolve(axis, shape.get(axis).copied().unwrap_or_default())?);
                }
            }
        }
        axes.extend(shape.iter().skip(axes.len()).map(|&length| AxisRange::full(length)).collect::<Vec<_>>());
        Ok(Subset(axes))
    }
}

/// Which dimension has a name.
///
/// # Errors
/// [`SelectionError::UnknownDimension`] and [`SelectionError::AmbiguousDimension`].
pub fn dimension_called(name: &str, names: &[Option<String>]) -> Result<usize, SelectionError> {
    let mut found = names.iter().enumerate().filter(|(_, known)| known.as_deref() == Some(name));
    match (found.next(), found.next()) {
        (Some((axis, _)), None) => Ok(axis),
        (Some(_), Some(_)) => Err(SelectionError::AmbiguousDimension { name: name.to_owned() }),
        (None, _) => {
            if let Some(axis) = unnamed(name, names) {
                return Ok(axis);
            }
            let name = name.to_owned();
            if names.iter().all(Option::is_none) {
                return Err(SelectionError::NoNames { name });
            }
            let known = (0..)
                .zip(names)
                .map(|(axis, name): (usize, _)| name.clone().unwrap_or_else(|| axis.to_string()));
            let known: Vec<String> = known.collect();
            Err(SelectionError::UnknownDimension { name, known: known.join(", ") })
        }
    }
}

/// The place of a dimension without a name, as its name.
fn unnamed(name: &str, names: &[Option<String>]) -> Option<usize> {
    let axis: usize = name.parse().ok()?;
    // One place has one name: not `00`, nor `+0`.
    (names.get(axis)?.is_none() && axis.to_string() == name).then_some(axis)
}

impl DimSelection {
    /// The elements along an axis of this length.
    pub(super) fn resolve(self, axis: usize, length: u64) -> Result<AxisRange, SelectionError> {
        match self {
            Self::Ellipsis => Ok(AxisRange::full(length)),
            Self::Slice { start, stop, step } => Ok(resolve_slice(start, stop, step, length)),
            Self::Index(index) => {
                let start = u64::try_from(from_end(index, length)).ok().filter(|&start| start < length);
                let start = start.ok_or(SelectionError::OutOfRange { axis, length, index })?;
                Ok(AxisRange { start, count: 1, step: 1, keep: false })
            }
        }
    }

    pub(super) fn parse(part: &str) -> Option<Self> {
        if part == "..." {
            return Some(Self::Ellipsis);
        }
        if !part.contains(':') {
            return parse_int(part).and_then(|index| i64::try_from(index).ok()).map(Self::Index);
        }
        let mut numbers = part.split(':').map(|number| match number.trim() {
            "" => Some(None),
            number => parse_int(number).map(|number| Some(clamped(number))),
        });
        let first = numbers.next()??;
        let stop = numbers.next()?;
        let step = numbers.next().unwrap_or(Some(None))?;
        if numbers.next().is_some() {
            return None;
        }
        Some(Self::Slice { start: first, stop: stop?, step: step.unwrap_or(1) })
    }
}

/// An integer in decimal; of more digits than an `i128` has, the nearest `i128`.
fn parse_int(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_int = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let furthest = if digits.len() < text.len() { i128::MIN } else { i128::MAX };
    is_int.then(|| text.parse().unwrap_or(furthest))
}

/// The nearest `i64`. No axis is longer, so a slice with it selects the same.
fn clamped(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

/// A number that counts from the end if it is negative.
fn from_end(index: i64, length: u64) -> i128 {
    i128::from(index) + if index < 0 { i128::from(length) } else { 0 }
}

/// Python's `slice.indices`.
fn resolve_slice(start: Option<i64>, stop: Option<i64>, step: i64, length: u64) -> AxisRange {
    let end = i128::from(length);
    // A descending slice runs from at most the last element to just before the first.
    let (lowest, highest) = if step > 0 { (0, end) } else { (-1, end - 1) };
    let bound = |given: Option<i64>, default| {
        given.map_or(default, |given| from_end(given, length).clamp(lowest, highest))
    };
    let (first_default, last_default) = if step > 0 { (lowest, highest) } else { (highest, lowest) };
    let (start, stop) = (bound(start, first_default), bound(stop, last_default));
    let distance = if step > 0 { stop - start } else { start - stop };
    let count = if distance > 0 { (distance - 1) / i128::from(step.unsigned_abs()) + 1 } else { 0 };
    // Both lie in 0..=length where the range is not empty.
    let (count, start) = (u64::try_from(count).unwrap_or(0), u64::try_from(start).unwrap_or(0));
    AxisRange { start, count, step, keep: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(text: &str, shape: &[u64]) -> Result<Vec<Vec<u64>>, SelectionError> {
        let subset = Selection::parse(text)?.resolve(shape)?;
        Ok(subset.axes().iter().map(|axis| (0..axis.count).map(|k| axis.at(k)).collect()).collect())
    }

    #[test]
    fn slices_have_the_meaning_of_numpy() {
        for (text, elements) in [
            ("2:5", vec![2, 3, 4]),
            ("-3:", vec![7, 8, 9]),
            (":-8", vec![0, 1]),
            ("::3", vec![0, 3, 6, 9]),
            ("::-1", vec![9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
            ("7:2:-2", vec![7, 5, 3]),
            ("-1:-4:-1", vec![9, 8, 7]),
            ("5:100", vec![5, 6, 7, 8, 9]),
            ("-100:2", vec![0, 1]),
            ("100:-100:-4", vec![9, 5, 1]),
            ("5:5", vec![]),
            ("8:2", vec![]),
            ("100:200", vec![]),
            ("3", vec![3]),
            ("-1", vec![9]),
            ("[3:4]", vec![3]),
            ("(3:4)", vec![3]),
            (" 1 : 3 ", vec![1, 2]),
            ("1:3,", vec![1, 2]),
            ("(3,)", vec![3]),
            ("8:9223372036854775808", vec![8, 9]),
            ("-99999999999999999999999999999999999999999:2:1", vec![0, 1]),
            ("99999999999999999999999999999999999999999::-5", vec![9, 4]),
            ("9223372036854775807:-9223372036854775808:-9223372036854775808", vec![9]),
            ("::9223372036854775807", vec![0]),
        ] {
            assert_eq!(select(text, &[10]).unwrap(), [elements], "{text}");
        }
    }

    #[test]
    fn an_ellipsis_stands_for_the_missing_dimensions() {
        let whole = |n| (0..n).collect::<Vec<u64>>();
        for (text, expected) in [
            ("", vec![whole(2), whole(3), whole(4)]),
            ("...", vec![whole(2), whole(3), whole(4)]),
            ("1", vec![vec![1], whole(3), whole(4)]),
            ("...,1", vec![whole(2), whole(3), vec![1]]),
            ("1,...,2:3", vec![vec![1], whole(3), vec![2]]),
            ("1,2,...,3", vec![vec![1], vec![2], vec![3]]),
        ] {
            assert_eq!(select(text, &[2, 3, 4]).unwrap(), expected, "{text}");
        }
        assert_eq!(select("...", &[]).unwrap(), Vec::<Vec<u64>>::new());
    }

    #[test]
    fn an_integer_drops_its_dimension_and_a_slice_of_one_keeps_it() {
        let subset = Selection::parse("1,1:2").unwrap().resolve(&[4, 4]).unwrap();
        assert_eq!(subset.shape(), [1]);
        assert_eq!(subset.elements(), 1);
    }

    #[test]
    fn an_invalid_slice_is_rejected_with_its_position() {
        use SelectionError as E;
        assert_eq!(select("10", &[10]), Err(E::OutOfRange { axis: 0, length: 10, index: 10 }));
        assert_eq!(select("0,-5", &[1, 4]), Err(E::OutOfRange { axis: 1, length: 4, index: -5 }));
        assert_eq!(select("0", &[0]), Err(E::OutOfRange { axis: 0, length: 0, index: 0 }));
        assert_eq!(select("0,0", &[10]), Err(E::TooManyDimensions { given: 2, rank: 1 }));
        assert_eq!(select("0,...,0", &[10]), Err(E::TooManyDimensions { given: 2, rank: 1 }));
        assert_eq!(select("...,...", &[10]), Err(E::SecondEllipsis));
        assert_eq!(select("::0", &[10]), Err(E::ZeroStep { position: 0 }));
        for text in [
            "a",
            "1,,",
            ",",
            ",1",
            "1:2:3:4",
            "1.5",
            "0x1",
            "+1",
            "--1",
            "1 2",
            "[1",
            "1e3",
            "9223372036854775808",
            "None",
            "٣",
        ] {
            assert!(matches!(select(text, &[10, 10]), Err(E::Syntax { .. })), "{text}");
        }
        assert!(select(&"0,".repeat(100_000), &[1]).is_err());
    }

    #[test]
    fn dimensions_can_be_selected_by_name() {
        let names = ["time", "lat", "lat"].map(|name| Some(name.to_owned()));
        let by_name = |pairs: &[(&str, &str)], names: &[Option<String>]| {
            let pairs: Vec<_> =
                pairs.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
            Selection::by_name(&pairs, names)
        };
        assert_eq!(by_name(&[("time", "2:4")], &names), Selection::parse("2:4,:,:"));
        assert_eq!(by_name(&[("lat", "-1")], &names[..2]), Selection::parse(":,-1"));
        assert!(matches!(by_name(&[("lat", "0")], &names), Err(SelectionError::AmbiguousDimension { .. })));
        assert!(matches!(by_name(&[("lon", "0")], &names), Err(SelectionError::UnknownDimension { .. })));
        let some = [None, Some("1".to_owned()), None];
        assert_eq!(by_name(&[("0", "2:4"), ("2", "5")], &some), Selection::parse("2:4,:,5"));
        assert_eq!(by_name(&[("1", "3")], &some), Selection::parse(":,3,:"), "of this name");
        for name in ["3", "00", "+0", "-1", ""] {
            let refused = by_name(&[(name, "0")], &some);
            assert!(
                matches!(&refused, Err(SelectionError::UnknownDimension { known, .. }) if known == "0, 1, 2"),
                "{name}"
            );
        }
        assert!(matches!(by_name(&[("0", "0")], &names), Err(SelectionError::UnknownDimension { .. })));
        let twice = by_name(&[("time", "0"), ("time", "1")], &names);
        assert!(matches!(twice, Err(SelectionError::DimensionTwice { .. })));
        for text in ["...", "", "0,1", "x"] {
            assert!(by_name(&[("time", text)], &names).is_err(), "{text}");
        }
    }

    #[test]
    fn vast_axes_do_not_overflow() {
        let length = i64::MAX as u64;
        for text in ["::-1", ":", "-1", "::-9223372036854775808"] {
            let subset = Selection::parse(text).unwrap().resolve(&[length, length]).unwrap();
            assert!(subset.axes().iter().all(|axis| axis.count == 0 || axis.at(axis.count - 1) < length));
        }
    }
}

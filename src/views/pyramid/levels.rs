//! [`Levels`]: the axes of an array as an image, and the shapes of its coarser levels.
//!
//! An image has two to five axes in the order time, channel, z, y, x (OME-Zarr 0.5, "multiscales"). Each level halves the
//! rows and the columns of the one before, and z too where that brings the pixels nearer to cubes, until neither side of
//! the plane has more than 256 elements. `/tiles` has the same levels.

use crate::conventions::{DimensionRole, Dimensions};
use crate::error::{Classify, ErrorClass};
use crate::reduce::halved;

use super::spec::PyramidSpec;

/// The longest side of the plane of the coarsest level.
const SMALLEST: u64 = 256;
/// Most axes of an image.
const MAX_AXES: usize = 5;
/// A bound that no array reaches.
const MAX_LEVELS: usize = 64;

/// An axis of an image.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ImageAxis {
    pub(super) name: String,
    /// `time`, `channel` or `space`; `None` for an axis of another type.
    pub(super) kind: Option<&'static str>,
}

/// The axes of an array as an image, and the shapes of its coarser levels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Levels {
    pub(super) axes: Vec<ImageAxis>,
    /// The factors of each step from one level to the next.
    pub(super) steps: Vec<Vec<u64>>,
    /// The shape of each level, from that of the array on.
    pub(super) shapes: Vec<Vec<u64>>,
    /// The dimensions of the rows and of the columns.
    pub(super) plane: (usize, usize),
}

/// An array, as far as its levels depend on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelSource<'a> {
    pub(super) shape: &'a [u64],
    /// The names of the dimensions: its own, or those of its image.
    pub(super) names: &'a [Option<String>],
    pub(super) is_bytes: bool,
    /// The sizes of a pixel along the axes in one unit, if they are known.
    pub(super) pixel: Option<&'a [f64]>,
}

/// Why an array is no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LevelsError {
    /// It has too many dimensions.
    #[error("it has {0} dimensions, and an OME-Zarr image has at most {MAX_AXES}")]
    Rank(usize),
    /// Its dimensions are in another order.
    #[error(
        "its dimensions are not in the order time, channel, z, y, x of an OME-Zarr image; transposed to {0} they would be"
    )]
    Order(String),
}

impl Classify for LevelsError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Rank(_) | Self::Order(_) => ErrorClass::Unsupported,
        }
    }
}

impl Levels {
    /// The levels of an array of two dimensions or more.
    ///
    /// # Errors
    /// [`LevelsError`] if it is no image.
    pub(super) fn new(source: LevelSource<'_>, spec: &PyramidSpec) -> Result<Self, LevelsError> {
        let rank = source.shape.len();
        if rank > MAX_AXES {
            return Err(LevelsError::Rank(rank));
        }
        let dimensions =
            Dimensions { shape: source.shape, names: source.names, is_bytes: source.is_bytes, proposed: &[] };
        let kept: Vec<usize> = (0..rank).collect();
        let plane = dimensions.default_plane(&kept).ok_or(LevelsError::Rank(rank))?;
        let sides = (plane.rows, plane.columns);
        let roles = roles(&dimensions, sides, plane.channels);
        check_order(&roles, source.names)?;
        let axes = axes(&roles, source.names);
        let halved = Halved::new(source, spec, &axes, &roles, sides);
        let (steps, shapes) = halved.steps(source.shape, sides);
        Ok(Self { axes, steps, shapes, plane: sides })
    }

    /// The factors between the array and one of its levels.
    pub(super) fn factors(&self, level: usize) -> Vec<u64> {
        let mut factors = vec![1_u64; self.axes.len()];
        for step in self.steps.iter().take(level) {
            for (factor, step) in factors.iter_mut().zip(step) {
                *factor = factor.saturating_mul(*step);
            }
        }
        factors
    }

    /// The same without the levels from this one on.
    pub(super) fn truncated(mut self, count: usize) -> Self {
        self.shapes.truncate(count.max(1));
        self.steps.truncate(count.max(1) - 1);
        self
    }
}

/// What each dimension is; `None` if that is unknown.
fn roles(
    dimensions: &Dimensions<'_>,
    (rows, columns): (usize, usize),
    channels: Option<usize>,
) -> Vec<Option<DimensionRole>> {
    let rank = dimensions.shape.len();
    let is_unnamed = !dimensions.names.iter().any(Option::is_some);
    let mut roles: Vec<Option<DimensionRole>> = (0..rank)
        .map(|axis| match axis {
            _ if axis == rows => Some(DimensionRole::Rows),
            _ if axis == columns => Some(DimensionRole::Columns),
            _ if channels == Some(axis) => Some(DimensionRole::Channels),
            _ => dimensions
                .role(axis)
                .filter(|role| !matches!(role, DimensionRole::Rows | DimensionRole::Columns)),
        })
        .collect();
    if is_unnamed {
        let rest = [DimensionRole::Heights, DimensionRole::Channels, DimensionRole::Times];
        let mut rest = rest.into_iter().filter(|role| channels.is_none() || *role != DimensionRole::Channels);
        for role in roles.iter_mut().rev().filter(|role| role.is_none()) {
            *role = rest.next();
        }
    }
    // Two axes cannot have one name.
    for axis in 0..rank {
        let (before, rest) = roles.split_at_mut(axis);
        if let Some(role) = rest.first_mut()
            && role.is_some()
            && before.contains(role)
        {
            *role = None;
        }
    }
    roles
}

/// The place of a role in the order of axes.
fn place(role: Option<DimensionRole>) -> u8 {
    match role {
        Some(DimensionRole::Times) => 0,
        Some(DimensionRole::Channels) | None => 1,
        Some(DimensionRole::Heights) => 2,
        Some(DimensionRole::Rows) => 3,
        Some(DimensionRole::Columns) => 4,
    }
}

fn check_order(roles: &[Option<DimensionRole>], names: &[Option<String>]) -> Result<(), LevelsError> {
    if roles.iter().map(|role| place(*role)).is_sorted() {
        return Ok(());
    }
    let mut order: Vec<usize> = (0..roles.len()).collect();
    order.sort_by_key(|&axis| roles.get(axis).map_or(1, |role| place(*role)));
    let name = |axis: &usize| match names.get(*axis) {
        Some(Some(name)) => format!("`{name}`"),
        _ => axis.to_string(),
    };
    let order: Vec<String> = order.iter().map(name).collect();
    Err(LevelsError::Order(format!("({})", order.join(", "))))
}

/// The axes of these roles. Viewers find an axis by its short name.
fn axes(roles: &[Option<DimensionRole>], names: &[Option<String>]) -> Vec<ImageAxis> {
    const SHORT: [&str; 5] = ["t", "c", "z", "y", "x"];
    let mut axes: Vec<ImageAxis> = Vec::with_capacity(roles.len());
    for (at, role) in roles.iter().enumerate() {
        let name = match role {
            Some(DimensionRole::Times) => "t".to_owned(),
            Some(DimensionRole::Channels) => "c".to_owned(),
            Some(DimensionRole::Heights) => "z".to_owned(),
            Some(DimensionRole::Rows) => "y".to_owned(),
            Some(DimensionRole::Columns) => "x".to_owned(),
            None => {
                let own = names.get(at).cloned().flatten();
                let is_free = |name: &String| {
                    !name.is_empty()
                        && !SHORT.contains(&&**name)
                        && !axes.iter().any(|axis| axis.name == *name)
                };
                own.filter(is_free).unwrap_or_else(|| format!("dim_{at}"))
            }
        };
        axes.push(ImageAxis { name, kind: role.map(DimensionRole::as_axis_type) });
    }
    axes
}

/// Which dimensions are halved.
struct Halved<'a> {
    dimensions: Vec<bool>,
    /// The dimension that is halved where that brings pixels nearer to cubes, with the sizes of a pixel.
    heights: Option<(usize, &'a [f64])>,
}

impl<'a> Halved<'a> {
    fn new(
        source: LevelSource<'a>,
        spec: &PyramidSpec,
        axes: &[ImageAxis],
        roles: &[Option<DimensionRole>],
        (rows, columns): (usize, usize),
    ) -> Self {
        let rank = source.shape.len();
        let mut dimensions = vec![false; rank];
        let find = |text: &String| {
            let own = source.names.iter().position(|name| name.as_ref() == Some(text));
            let number = || text.parse::<usize>().ok().filter(|&axis| axis < rank);
            own.or_else(|| axes.iter().position(|axis| axis.name == *text)).or_else(number)
        };
        let named: Vec<(usize, bool)> = match (&spec.axes, &spec.factors) {
            (Some(names), factors) => {
                let wanted =
                    |at: usize| factors.as_ref().is_none_or(|factors| factors.get(at) == Some(&true));
                names.iter().enumerate().filter_map(|(at, name)| Some((find(name)?, wanted(at)))).collect()
            }
            (None, Some(factors)) => (0..rank).rev().zip(factors.iter().rev().copied()).collect(),
            (None, None) => Vec::new(),
        };
        // An array of a hierarchy need not have the axes that another has.
        if named.is_empty() {
            for side in [rows, columns] {
                if let Some(dimension) = dimensions.get_mut(side) {
                    *dimension = true;
                }
            }
            let heights = roles.iter().position(|role| *role == Some(DimensionRole::Heights));
            return Self { dimensions, heights: heights.zip(source.pixel) };
        }
        for (axis, is_halved) in named {
            if let Some(dimension) = dimensions.get_mut(axis) {
                *dimension = is_halved;
            }
        }
        Self { dimensions, heights: None }
    }

    /// The factors of each step, and the shapes.
    fn steps(&self, shape: &[u64], (rows, columns): (usize, usize)) -> (Vec<Vec<u64>>, Vec<Vec<u64>>) {
        let is_halved = |axis: usize| self.dimensions.get(axis) == Some(&true);
        let sides: Vec<usize> = [rows, columns].into_iter().filter(|&side| is_halved(side)).collect();
        let bounded: Vec<usize> =
            if sides.is_empty() { (0..shape.len()).filter(|&axis| is_halved(axis)).collect() } else { sides };
        let (mut steps, mut shapes) = (Vec::new(), vec![shape.to_vec()]);
        let mut pixel = self.heights.map(|(_, pixel)| pixel.to_vec());
        while let Some(last) = shapes.last()
            && bounded.iter().any(|&axis| last.get(axis).is_some_and(|&length| length > SMALLEST))
            && shapes.len() < MAX_LEVELS
        {
            let halves_heights = self.halves_heights(pixel.as_deref(), (rows, columns));
            let step: Vec<u64> = last
                .iter()
                .enumerate()
                .map(|(axis, &length)| {
                    let is_heights = self.heights.is_some_and(|(heights, _)| heights == axis);
                    if length > 1 && (is_halved(axis) || (is_heights && halves_heights)) { 2 } else { 1 }
                })
                .collect();
            for (size, &factor) in pixel.iter_mut().flatten().zip(&step) {
                *size *= if factor == 2 { 2.0 } else { 1.0 };
            }
            let next =
                last.iter().zip(&step).map(|(&length, &by)| halved(length, u32::from(by == 2))).collect();
            steps.push(step);
            shapes.push(next);
        }
        (steps, shapes)
    }

    /// Whether halving z brings the pixels of the next level nearer to cubes.
    fn halves_heights(&self, pixel: Option<&[f64]>, (rows, columns): (usize, usize)) -> bool {
        let Some(((heights, _), pixel)) = self.heights.zip(pixel) else { return false };
        let size = |axis: usize| pixel.get(axis).copied().unwrap_or(1.0);
        // Of the two ratios to the doubled sides of the plane, the one nearer to 1.
        size(heights) < std::f64::consts::SQRT_2 * size(rows).min(size(columns))
    }
}

/// A factor as a number: exact, because it is a power of two.
#[expect(clippy::cast_precision_loss, reason = "powers of two are exact")]
pub(super) fn as_f64(factor: u64) -> f64 {
    factor as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(method: &str) -> PyramidSpec {
        PyramidSpec::parse(method, "auto", "raw", None).unwrap()
    }

    fn names(names: &str, rank: usize) -> Vec<Option<String>> {
        match names {
            "" => vec![None; rank],
            names => names.split(',').map(|name| Some(name.to_owned())).collect(),
        }
    }

    fn levels(shape: &[u64], dimensions: &str, method: &str) -> Result<Levels, LevelsError> {
        let names = names(dimensions, shape.len());
        Levels::new(LevelSource { shape, names: &names, is_bytes: false, pixel: None }, &spec(method))
    }

    #[test]
    fn the_plane_is_halved_until_neither_side_is_over_256() {
        for (shape, dimensions, method, expected) in [
            (&[256, 256][..], "", "auto", &[&[256, 256][..]][..]),
            (&[257, 3], "", "auto", &[&[257, 3], &[129, 2]]),
            (&[1025, 1], "", "auto", &[&[1025, 1], &[513, 1], &[257, 1], &[129, 1]]),
            (&[900, 300, 600], "", "auto", &[&[900, 300, 600], &[900, 150, 300], &[900, 75, 150]]),
            (
                &[900, 300, 600],
                "",
                "auto;factors=2,2,2",
                &[&[900, 300, 600], &[450, 150, 300], &[225, 75, 150]],
            ),
            (
                &[900, 300, 600],
                "",
                "auto;factors=1,2",
                &[&[900, 300, 600], &[900, 300, 300], &[900, 300, 150]],
            ),
            (
                &[600, 300, 300],
                "z,y,x",
                "auto;axes=z",
                &[&[600, 300, 300], &[300, 300, 300], &[150, 300, 300]],
            ),
            (&[300, 300], "lat,lon", "auto;axes=z,y,x", &[&[300, 300], &[150, 150]]),
            (&[300, 300], "lat,lon", "auto;axes=lat", &[&[300, 300], &[150, 300]]),
            (&[300, 300], "lat,lon", "auto;axes=level", &[&[300, 300], &[150, 150]]),
            (&[300, 0], "", "auto", &[&[300, 0], &[150, 0]]),
        ] {
            let found = levels(shape, dimensions, method).unwrap();
            assert_eq!(found.shapes, expected, "{shape:?} {dimensions} {method}");
            assert_eq!(found.steps.len() + 1, found.shapes.len());
        }
    }

    #[test]
    fn heights_are_halved_where_that_makes_pixels_nearer_to_cubes() {
        let (shape, names) = ([64, 2048, 2048], names("z,y,x", 3));
        for (pixel, expected) in [
            ([1.0, 1.0, 1.0], vec![32, 16, 8]),
            ([2.0, 1.0, 1.0], vec![64, 32, 16]),
            ([8.0, 1.0, 1.0], vec![64, 64, 64]),
            ([0.1, 1.0, 1.0], vec![32, 16, 8]),
        ] {
            let source = LevelSource { shape: &shape, names: &names, is_bytes: false, pixel: Some(&pixel) };
            let found = Levels::new(source, &spec("auto")).unwrap();
            let heights: Vec<u64> = found.shapes.iter().skip(1).map(|shape| shape[0]).collect();
            assert_eq!(heights, expected, "{pixel:?}");
        }
    }

    #[test]
    fn axes_have_the_names_and_types_that_viewers_know() {
        for (shape, dimensions, expected) in [
            (&[9, 7][..], "", "y:space x:space"),
            (&[2, 3, 4, 9, 7], "", "t:time c:channel z:space y:space x:space"),
            (&[5, 9, 7], "time,lat,lon", "t:time y:space x:space"),
            (&[5, 6, 9, 7], "member,level,lat,lon", "member:- z:space y:space x:space"),
            (&[5, 6, 9, 7], "z,depth,y,x", "z:space y:space"),
            (&[4, 9, 7], "x,y,x", "dim_0:- y:space x:space"),
        ] {
            let Ok(found) = levels(shape, dimensions, "auto") else {
                assert!(expected == "z:space y:space", "{dimensions}");
                continue;
            };
            let shown: Vec<String> =
                found.axes.iter().map(|axis| format!("{}:{}", axis.name, axis.kind.unwrap_or("-"))).collect();
            assert_eq!(shown.join(" "), expected, "{dimensions}");
        }
    }

    #[test]
    fn what_is_no_image_is_refused_with_the_transpose_that_is_one() {
        assert_eq!(levels(&[1, 2, 3, 4, 5, 6], "", "auto"), Err(LevelsError::Rank(6)));
        for (shape, dimensions, order) in [
            (&[9, 7, 5][..], "y,x,time", "(`time`, `y`, `x`)"),
            (&[9, 7], "x,y", "(`y`, `x`)"),
            (&[2, 3, 9, 7], "z,c,y,x", "(`c`, `z`, `y`, `x`)"),
        ] {
            assert_eq!(levels(shape, dimensions, "auto"), Err(LevelsError::Order(order.to_owned())));
        }
    }
}

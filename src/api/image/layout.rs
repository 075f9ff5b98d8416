//! [`Layout`]: which dimensions of an array are rows, columns and channels, and which index the others have.
//!
//! What the request leaves open is as [`Dimensions`] has it, so that summaries, pictures and pages show the same plane.

use axum::http::StatusCode;

use super::query::ImageQuery;
use super::words::ChannelsWord;
use crate::chunk::{AxisRange, Subset};
use crate::conventions::Dimensions;
use crate::error::ErrorClass;
use crate::http::problem::Problem;

/// The dimensions of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The elements of one plane: rows and columns are ranges, the other dimensions have one index each.
    base: Subset,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// The dimension whose elements are channels, if the request leaves it open.
    pub(crate) channels: Option<usize>,
    /// What the selection leaves of the channels.
    all_channels: Option<AxisRange>,
    /// Whether the channels are red, green and blue, if the request does not say otherwise.
    pub(crate) is_photograph: bool,
}

impl Layout {
    /// The layout of a selection of an array.
    ///
    /// # Errors
    /// 400 if the request does not select a plane, 422 if the array has none.
    pub(crate) fn new(
        dimensions: &Dimensions<'_>,
        selected: &Subset,
        query: &ImageQuery,
    ) -> Result<Self, Problem> {
        let kept: Vec<usize> = (0..dimensions.shape.len()).filter(|&axis| selected.0[axis].keep).collect();
        if dimensions.shape.len() < 2 {
            return Err(no_picture(format!(
                "a picture needs two dimensions, and the array has {}; `/v1/data` has its elements",
                dimensions.shape.len()
            )));
        }
        if dimensions.shape.contains(&0) {
            return Err(no_picture("the array has no elements".to_owned()));
        }
        if kept.len() < 2 {
            return Err(bad("the selection must leave two dimensions, for rows and columns".to_owned()));
        }
        // Colours that the selection cuts are none.
        let is_cut = |axis: usize| !is_whole(&selected.0[axis], dimensions.shape[axis]);
        let is_cut = dimensions
            .default_plane(&kept)
            .is_some_and(|plane| plane.is_photograph && plane.channels.is_some_and(is_cut));
        let dimensions = &Dimensions { is_bytes: dimensions.is_bytes && !is_cut, ..*dimensions };
        let plane = match &query.axes.axes {
            Some(axes) => Some(dimensions.plane_of(&kept, named_plane(dimensions, axes, &kept)?)),
            None => dimensions.default_plane(&kept),
        };
        let plane = plane.ok_or_else(|| bad("the selection must leave two dimensions".to_owned()))?;
        let (rows, columns) = (plane.rows, plane.columns);
        let free: Vec<usize> = kept.into_iter().filter(|&axis| axis != rows && axis != columns).collect();
        // A request for channels means the only dimension that is left.
        let wants = matches!(query.color.channels(), Some(ChannelsWord::Listed(_) | ChannelsWord::Rgb(_)));
        let channels = plane.channels.or_else(|| free.last().copied().filter(|_| wants));
        let base = base(dimensions, selected, (rows, columns), &free, channels)?;
        let all_channels = channels.map(|axis| selected.0[axis]);
        Ok(Self { base, rows, columns, channels, all_channels, is_photograph: plane.is_photograph })
    }

    /// The elements of one channel, or of the only one.
    pub(crate) fn plane(&self, channel: Option<u64>) -> Subset {
        let mut subset = self.base.clone();
        if let (Some(axis), Some(channel)) = (self.channels, channel) {
            subset.0[axis].start = channel;
        }
        subset
    }

    /// The rows and the columns of the plane.
    pub(crate) fn sides(&self) -> (AxisRange, AxisRange) {
        (self.base.0[self.rows], self.base.0[self.columns])
    }

    /// The same with other rows and columns.
    pub(crate) fn with_sides(mut self, rows: AxisRange, columns: AxisRange) -> Self {
        self.base.0[self.rows] = rows;
        self.base.0[self.columns] = columns;
        self
    }

    /// Sets the elements along one dimension.
    pub(super) fn set(&mut self, axis: usize, range: AxisRange) {
        self.base.0[axis] = range;
    }

    /// Whether columns come before rows in the order of the array.
    pub(crate) fn is_transposed(&self) -> bool {
        self.columns < self.rows
    }

    /// The selection that has this layout, if nothing else of the request is changed.
    pub(crate) fn selection(&self) -> Subset {
        let mut subset = self.base.clone();
        if let (Some(axis), Some(range)) = (self.channels, self.all_channels) {
            subset.0[axis] = range;
        }
        subset
    }

    /// The elements of a picture as a selection: all channels where there are several.
    pub(crate) fn shown(&self, all_channels: Option<u64>) -> Subset {
        let mut subset = self.base.clone();
        if let (Some(axis), Some(count)) = (self.channels, all_channels) {
            subset.0[axis] = AxisRange::full(count);
        }
        subset
    }
}

/// The dimensions in `axes`.
fn named_plane(
    dimensions: &Dimensions<'_>,
    axes: &[String; 2],
    kept: &[usize],
) -> Result<(usize, usize), Problem> {
    let find = |name: &String| {
        let by_name = dimensions.names.iter().position(|known| known.as_ref() == Some(name));
        let by_number = || name.parse().ok().filter(|&axis: &usize| axis < dimensions.shape.len());
        let axis = by_name.or_else(by_number).ok_or_else(|| {
            bad(format!("`axes`: there is no dimension `{name}`; there is: {}", known(dimensions)))
        })?;
        if !kept.contains(&axis) {
            return Err(bad(format!("`axes`: the selection has only one index of `{name}`")));
        }
        Ok(axis)
    };
    let [rows, columns] = axes;
    let plane = (find(rows)?, find(columns)?);
    if plane.0 == plane.1 { Err(bad("`axes` names one dimension twice".to_owned())) } else { Ok(plane) }
}

fn known(dimensions: &Dimensions<'_>) -> String {
    let name = |(axis, name): (usize, &Option<String>)| name.clone().unwrap_or_else(|| axis.to_string());
    dimensions.names.iter().enumerate().map(name).collect::<Vec<_>>().join(", ")
}

/// The elements of one plane.
fn base(
    dimensions: &Dimensions<'_>,
    selected: &Subset,
    plane: (usize, usize),
    free: &[usize],
    channels: Option<usize>,
) -> Result<Subset, Problem> {
    let mut base = selected.clone();
    for &axis in free {
        let range = &mut base.0[axis];
        if range.count != 1 && !is_whole(range, dimensions.shape[axis]) {
            let name = dimensions.names.get(axis).cloned().flatten().unwrap_or_else(|| axis.to_string());
            return Err(bad(format!(
                "the selection must leave two dimensions, and it has {} indices of `{name}`; select one of them",
                range.count
            )));
        }
        if range.count != 1 {
            range.start = if Some(axis) == channels { 0 } else { dimensions.default_index(axis) };
            range.count = 1;
            range.step = 1;
        }
        range.keep = false;
    }
    for axis in [plane.0, plane.1] {
        if base.0[axis].count == 0 {
            return Err(bad("the selection has no elements".to_owned()));
        }
    }
    Ok(base)
}

/// Whether a range is all elements of a dimension.
fn is_whole(range: &AxisRange, length: u64) -> bool {
    *range == AxisRange::full(length)
}

fn bad(detail: String) -> Problem {
    Problem::from_class(ErrorClass::InvalidRequest).detail(detail)
}

/// The problem of a node that has no picture.
pub(crate) fn no_picture(detail: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "no-picture").detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Selection;

    fn layout(
        shape: &[u64],
        names: &str,
        is_bytes: bool,
        slice: &str,
        query: &[(&str, &str)],
    ) -> Result<Layout, String> {
        let names: Vec<Option<String>> = match names {
            "" => vec![None; shape.len()],
            names => names.split(',').map(|name| Some(name.to_owned())).collect(),
        };
        let pairs: Vec<_> = query.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let query = ImageQuery::parse(&pairs).unwrap();
        let selected = Selection::parse(slice).unwrap().resolve(shape).unwrap();
        let dimensions = Dimensions { shape, names: &names, is_bytes, proposed: &[("t", 2)] };
        Layout::new(&dimensions, &selected, &query).map_err(|problem| problem.message().to_owned())
    }

    fn text(layout: &Layout) -> String {
        let range = |range: &AxisRange| {
            if range.keep {
                format!("{}:{}", range.start, range.start + range.count)
            } else {
                range.start.to_string()
            }
        };
        let axes: Vec<String> = layout.shown(None).axes().iter().map(range).collect();
        format!(
            "{} rows {} columns {} channels {:?}",
            axes.join(","),
            layout.rows,
            layout.columns,
            layout.channels
        )
    }

    #[test]
    fn the_default_plane_follows_from_names_and_shape() {
        for (shape, names, slice, expected) in [
            (&[9, 7][..], "", "", "0:9,0:7 rows 0 columns 1 channels None"),
            (&[9, 7], "lon,lat", "", "0:9,0:7 rows 1 columns 0 channels None"),
            (&[5, 9, 7], "time,lat,lon", "", "0,0:9,0:7 rows 1 columns 2 channels None"),
            (&[5, 9, 7], "t,z,x", "", "2,0:9,0:7 rows 1 columns 2 channels None"),
            (&[5, 6, 9, 7], "t,z,y,x", "", "2,3,0:9,0:7 rows 2 columns 3 channels None"),
            (&[5, 6, 9, 7], "t,z,y,x", "1", "1,3,0:9,0:7 rows 2 columns 3 channels None"),
            (&[9, 7, 5], "y,x,time", "", "0:9,0:7,0 rows 0 columns 1 channels None"),
            (&[5, 9, 7], "", ":,4", "0:5,4,0:7 rows 0 columns 2 channels None"),
            (&[5, 9, 7], "", "1:2,2:5", "1,2:5,0:7 rows 1 columns 2 channels None"),
            (&[2, 5, 9, 7], "t,c,y,x", "", "0,0,0:9,0:7 rows 2 columns 3 channels Some(1)"),
        ] {
            assert_eq!(
                text(&layout(shape, names, false, slice, &[]).unwrap()),
                expected,
                "{shape:?} {names} {slice}"
            );
        }
    }

    #[test]
    fn bytes_in_threes_are_a_photograph() {
        for (shape, names, expected) in [
            (&[9, 7, 3][..], "", true),
            (&[9, 7, 4], "y,x,band", true),
            (&[3, 9, 7], "c,y,x", true),
            (&[9, 7, 3], "y,x,time", false),
            (&[9, 7, 5], "", false),
            (&[9, 3], "", false),
        ] {
            assert_eq!(
                layout(shape, names, true, "", &[]).unwrap().is_photograph,
                expected,
                "{shape:?} {names}"
            );
            assert!(!layout(shape, names, false, "", &[]).unwrap().is_photograph, "{shape:?} {names}");
        }
    }

    #[test]
    fn axes_choose_the_plane() {
        let chosen =
            |axes| layout(&[5, 9, 7], "t,y,x", false, "", &[("axes", axes)]).map(|layout| text(&layout));
        assert_eq!(chosen("t,x").unwrap(), "0:5,0,0:7 rows 0 columns 2 channels None");
        assert_eq!(chosen("2,1").unwrap(), "2,0:9,0:7 rows 2 columns 1 channels None");
        assert!(chosen("t,q").unwrap_err().contains("t, y, x"));
        assert!(chosen("t,t").unwrap_err().contains("twice"));
        let error = layout(&[5, 9, 7], "t,y,x", false, "1", &[("axes", "t,x")]).unwrap_err();
        assert!(error.contains("only one index of `t`"), "{error}");
    }

    #[test]
    fn what_is_no_plane_is_rejected() {
        for (shape, slice, part) in [
            (&[9][..], "", "two dimensions, and the array has 1"),
            (&[9, 0], "", "no elements"),
            (&[9, 7], "1", "leave two dimensions"),
            (&[9, 7], "3:3", "no elements"),
            (&[5, 9, 7], "1:3", "2 indices of `0`"),
        ] {
            let error = layout(shape, "", false, slice, &[]).unwrap_err();
            assert!(error.contains(part), "{shape:?} {slice}: {error}");
        }
    }
}

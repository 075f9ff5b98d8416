//! [`Layout`]: which dimensions of an array are rows, columns and channels, and which index the others have.
//!
//! It depends on the shape, the names of the dimensions and the request alone, so that the same URL is always the same picture.

use axum::http::StatusCode;

use super::query::ImageQuery;
use super::words::ChannelsWord;
use crate::chunk::{AxisRange, Subset};
use crate::error::ErrorClass;
use crate::http::problem::Problem;

/// Names of dimensions that are rows, columns, channels and heights, in lower case.
const ROWS: [&str; 10] = ["y", "lat", "latitude", "row", "rows", "northing", "j", "rlat", "nav_lat", "yc"];
const COLUMNS: [&str; 11] =
    ["x", "lon", "longitude", "long", "col", "column", "columns", "easting", "i", "rlon", "xc"];
const CHANNELS: [&str; 9] = ["c", "channel", "channels", "band", "bands", "rgb", "rgba", "color", "colour"];
const HEIGHTS: [&str; 14] = [
    "z",
    "depth",
    "level",
    "lev",
    "levels",
    "plev",
    "height",
    "altitude",
    "elevation",
    "pressure",
    "isobaric",
    "sigma",
    "slice",
    "plane",
];

/// What the layout depends on besides the request.
#[derive(Debug)]
pub(crate) struct Dimensions<'a> {
    pub(crate) shape: &'a [u64],
    /// As many as there are dimensions.
    pub(crate) names: &'a [Option<String>],
    /// Whether elements are unsigned bytes, as those of photographs are.
    pub(crate) is_bytes: bool,
    /// Indices of dimensions that the metadata of an image proposes, by name.
    pub(crate) proposed: &'a [(&'a str, u64)],
}

/// The dimensions of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The elements of one plane: rows and columns are ranges, the other dimensions have one index each.
    base: Subset,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// The dimension whose elements are channels, if the request leaves it open.
    pub(crate) channels: Option<usize>,
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
        let photograph = dimensions.photograph_axis(selected, &kept);
        let (rows, columns) = if let Some(axes) = &query.axes {
            dimensions.named_plane(axes, &kept)?
        } else {
            let colorless: Vec<usize> =
                kept.iter().copied().filter(|&axis| Some(axis) != photograph).collect();
            let kept = if colorless.len() < 2 { &kept } else { &colorless };
            dimensions
                .default_plane(kept)
                .ok_or_else(|| bad("the selection must leave two dimensions".to_owned()))?
        };
        let free: Vec<usize> = kept.into_iter().filter(|&axis| axis != rows && axis != columns).collect();
        let channels = dimensions.channel_axis(&free, query);
        let base = dimensions.base(selected, (rows, columns), &free, channels)?;
        let is_photograph = photograph.is_some() && channels == photograph;
        Ok(Self { base, rows, columns, channels, is_photograph })
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

    /// The elements of a picture as a selection: all channels where there are several.
    pub(crate) fn shown(&self, all_channels: Option<u64>) -> Subset {
        let mut subset = self.base.clone();
        if let (Some(axis), Some(count)) = (self.channels, all_channels) {
            subset.0[axis] = AxisRange::full(count);
        }
        subset
    }
}

impl Dimensions<'_> {
    fn is_named(&self, axis: usize, names: &[&str]) -> bool {
        let name = self.names.get(axis).and_then(Option::as_deref).map(str::to_lowercase);
        name.is_some_and(|name| names.contains(&name.as_str()))
    }

    fn is_named_at_all(&self) -> bool {
        self.names.iter().any(Option::is_some)
    }

    /// The dimension of red, green, blue and perhaps opacity: three or four unsigned bytes in the last dimension, or in one
    /// that is called so.
    fn photograph_axis(&self, selected: &Subset, kept: &[usize]) -> Option<usize> {
        let is_colors = |axis: usize| {
            let is_last = axis + 1 == self.shape.len();
            matches!(self.shape[axis], 3 | 4)
                && is_whole(&selected.0[axis], self.shape[axis])
                && (self.is_named(axis, &CHANNELS) || (is_last && !self.is_named_at_all()))
        };
        (self.is_bytes && kept.len() > 2).then(|| kept.iter().copied().find(|&axis| is_colors(axis)))?
    }

    /// The dimensions in `axes`.
    fn named_plane(&self, axes: &[String; 2], kept: &[usize]) -> Result<(usize, usize), Problem> {
        let find = |name: &String| {
            let by_name = self.names.iter().position(|known| known.as_ref() == Some(name));
            let by_number = || name.parse().ok().filter(|&axis: &usize| axis < self.shape.len());
            let axis = by_name.or_else(by_number).ok_or_else(|| {
                bad(format!("`axes`: there is no dimension `{name}`; there is: {}", self.known()))
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

    fn known(&self) -> String {
        let name = |(axis, name): (usize, &Option<String>)| name.clone().unwrap_or_else(|| axis.to_string());
        self.names.iter().enumerate().map(name).collect::<Vec<_>>().join(", ")
    }

    /// Rows and columns by their names, else the last two dimensions.
    fn default_plane(&self, kept: &[usize]) -> Option<(usize, usize)> {
        let last = |names: &[&str]| kept.iter().copied().rfind(|&axis| self.is_named(axis, names));
        if let (Some(rows), Some(columns)) = (last(&ROWS), last(&COLUMNS)) {
            return Some((rows, columns));
        }
        let &[.., rows, columns] = kept else { return None };
        Some((rows, columns))
    }

    /// The dimension of channels: one that is called so, or else the only one that is left, if the request wants channels.
    fn channel_axis(&self, free: &[usize], query: &ImageQuery) -> Option<usize> {
        let named = free.iter().copied().find(|&axis| self.is_named(axis, &CHANNELS));
        let wants = matches!(query.channels, Some(ChannelsWord::Listed(_) | ChannelsWord::Rgb(_)));
        let is_photograph = self.is_bytes
            && query.coloring.is_none()
            && !self.is_named_at_all()
            && free.last() == Some(&(self.shape.len() - 1));
        named.or_else(|| free.last().copied().filter(|_| wants || is_photograph))
    }

    /// The elements of one plane.
    fn base(
        &self,
        selected: &Subset,
        plane: (usize, usize),
        free: &[usize],
        channels: Option<usize>,
    ) -> Result<Subset, Problem> {
        let mut base = selected.clone();
        for &axis in free {
            let range = &mut base.0[axis];
            if range.count != 1 && !is_whole(range, self.shape[axis]) {
                let name = self.names.get(axis).cloned().flatten().unwrap_or_else(|| axis.to_string());
                return Err(bad(format!(
                    "the selection must leave two dimensions, and it has {} indices of `{name}`; select one of them",
                    range.count
                )));
            }
            if range.count != 1 {
                range.start = if Some(axis) == channels { 0 } else { self.default_index(axis) };
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

    /// What the metadata of the image proposes, else the middle of heights and depths, and the first of other dimensions.
    fn default_index(&self, axis: usize) -> u64 {
        let length = self.shape[axis];
        let name = self.names.get(axis).and_then(Option::as_deref).unwrap_or_default();
        let proposed = self.proposed.iter().find(|(known, _)| *known == name).map(|(_, index)| *index);
        let default = if self.is_named(axis, &HEIGHTS) { length / 2 } else { 0 };
        proposed.filter(|&index| index < length).unwrap_or(default)
    }
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

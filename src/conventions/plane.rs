//! [`DefaultPlane`]: which dimensions of an array are rows, columns and channels, and which index the others have, unless a
//! request says otherwise.
//!
//! It depends on the shape, the names of the dimensions and what OME metadata proposes. Summaries, pictures and pages all
//! use it, so they show the same plane.

use super::view::DefaultView;

/// Names of dimensions that are rows, columns, channels, heights and times, in lower case.
const ROWS: [&str; 10] = ["y", "lat", "latitude", "row", "rows", "northing", "j", "rlat", "nav_lat", "yc"];
const COLUMNS: [&str; 12] =
    ["x", "lon", "longitude", "long", "col", "column", "columns", "easting", "i", "rlon", "nav_lon", "xc"];
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
const TIMES: [&str; 4] = ["t", "time", "valid_time", "date"];

/// What the name of a dimension says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimensionRole {
    /// Rows of a picture: `y`, `lat` and the like.
    Rows,
    /// Columns: `x`, `lon` and the like.
    Columns,
    /// Channels: `c`, `band` and the like.
    Channels,
    /// Heights and depths: `z`, `level` and the like.
    Heights,
    /// Times: `t`, `time` and the like.
    Times,
}

impl DimensionRole {
    /// The role of a dimension of this name, in any case.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let is_among = |names: &[&str]| names.contains(&name.as_str());
        [
            (Self::Rows, &ROWS[..]),
            (Self::Columns, &COLUMNS),
            (Self::Channels, &CHANNELS),
            (Self::Heights, &HEIGHTS),
            (Self::Times, &TIMES),
        ]
        .into_iter()
        .find_map(|(role, names)| is_among(names).then_some(role))
    }

    /// The type of such an axis in OME metadata.
    #[must_use]
    pub const fn as_axis_type(self) -> &'static str {
        match self {
            Self::Rows | Self::Columns | Self::Heights => "space",
            Self::Channels => "channel",
            Self::Times => "time",
        }
    }
}

/// The dimensions of an array, as far as its default plane depends on them.
#[derive(Clone, Copy, Debug)]
pub struct Dimensions<'a> {
    /// Elements along each dimension.
    pub shape: &'a [u64],
    /// The names of the dimensions: its own, or those of the image that the array is a level of. A missing one is `None`.
    pub names: &'a [Option<String>],
    /// Whether elements are unsigned bytes, as those of photographs are.
    pub is_bytes: bool,
    /// Indices of dimensions that OME metadata proposes, by name.
    pub proposed: &'a [(&'static str, u64)],
}

/// The default plane of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultPlane {
    /// The dimension of the rows.
    pub rows: usize,
    /// The dimension of the columns.
    pub columns: usize,
    /// The dimension of the channels: one that is called so, or that of the colours of a photograph.
    pub channels: Option<usize>,
    /// Whether the channels are red, green, blue, and perhaps opacity.
    pub is_photograph: bool,
}

impl Dimensions<'_> {
    /// The default plane of the dimensions in `kept`, which a selection keeps, in ascending order; `None` if there are fewer
    /// than two.
    #[must_use]
    pub fn default_plane(&self, kept: &[usize]) -> Option<DefaultPlane> {
        let colors = self.photograph_axis(kept);
        let colorless: Vec<usize> = kept.iter().copied().filter(|&axis| Some(axis) != colors).collect();
        let sides = self.sides(if colorless.len() < 2 { kept } else { &colorless })?;
        Some(self.plane_of(kept, sides))
    }

    /// The plane with these rows and columns, which are among the dimensions in `kept`.
    #[must_use]
    pub fn plane_of(&self, kept: &[usize], (rows, columns): (usize, usize)) -> DefaultPlane {
        let colors = self.photograph_axis(kept);
        let free = || kept.iter().copied().filter(|&axis| axis != rows && axis != columns);
        let named = free().find(|&axis| self.role(axis) == Some(DimensionRole::Channels));
        let channels = named.or_else(|| colors.filter(|&axis| free().any(|free| free == axis)));
        let is_photograph = colors.is_some() && channels == colors;
        DefaultPlane { rows, columns, channels, is_photograph }
    }

    /// The index of a dimension that is neither rows nor columns: what OME metadata proposes, else the middle of heights and
    /// depths, and the first of other dimensions.
    #[must_use]
    pub fn default_index(&self, axis: usize) -> u64 {
        let length = self.shape.get(axis).copied().unwrap_or_default();
        let name = self.names.get(axis).and_then(Option::as_deref).unwrap_or_default();
        let proposed = self.proposed.iter().find(|(known, _)| *known == name).map(|(_, index)| *index);
        let default = if self.role(axis) == Some(DimensionRole::Heights) { length / 2 } else { 0 };
        proposed.filter(|&index| index < length).unwrap_or(default)
    }

    /// What the name of a dimension says.
    #[must_use]
    pub fn role(&self, axis: usize) -> Option<DimensionRole> {
        DimensionRole::of(self.names.get(axis)?.as_deref()?)
    }

    /// The dimension of red, green, blue and perhaps opacity: three or four unsigned bytes in the last dimension, or in one
    /// that is called so.
    fn photograph_axis(&self, kept: &[usize]) -> Option<usize> {
        let is_named_at_all = self.names.iter().any(Option::is_some);
        let is_colors = |axis: usize| {
            let is_last = axis + 1 == self.shape.len();
            matches!(self.shape.get(axis), Some(3 | 4))
                && (self.role(axis) == Some(DimensionRole::Channels) || (is_last && !is_named_at_all))
        };
        (self.is_bytes && kept.len() > 2).then(|| kept.iter().copied().find(|&axis| is_colors(axis)))?
    }

    /// Rows and columns by their names, else the last two dimensions.
    fn sides(&self, kept: &[usize]) -> Option<(usize, usize)> {
        let last = |role| kept.iter().copied().rfind(|&axis| self.role(axis) == Some(role));
        if let (Some(rows), Some(columns)) = (last(DimensionRole::Rows), last(DimensionRole::Columns)) {
            return Some((rows, columns));
        }
        let &[.., rows, columns] = kept else { return None };
        Some((rows, columns))
    }

    /// The default plane of the whole array as a selection, with the dimensions of its rows and columns. Channels that are
    /// drawn together stay whole; the others have an index.
    pub(super) fn view(&self, draws_channels: bool) -> DefaultView {
        let kept: Vec<usize> = (0..self.shape.len()).collect();
        let plane = self.default_plane(&kept);
        let index = |axis: usize| match &plane {
            None => ":".to_owned(),
            Some(plane) if axis == plane.rows || axis == plane.columns => ":".to_owned(),
            Some(plane) if Some(axis) == plane.channels && (plane.is_photograph || draws_channels) => {
                ":".to_owned()
            }
            Some(plane) if Some(axis) == plane.channels => "0".to_owned(),
            Some(_) => self.default_index(axis).to_string(),
        };
        let slice: Vec<String> = kept.into_iter().map(index).collect();
        let name = |axis: usize| {
            let name = self.names.get(axis).cloned().flatten();
            // A name that is not unique, or that is a number, would mean another dimension.
            let is_unique = |name: &String| {
                name.parse::<u64>().is_err()
                    && !name.contains(',')
                    && self.names.iter().filter(|other| other.as_ref() == Some(name)).count() == 1
            };
            name.filter(is_unique).unwrap_or_else(|| axis.to_string())
        };
        let axes = plane.as_ref().map(|plane| [name(plane.rows), name(plane.columns)]);
        DefaultView { slice: slice.join(","), axes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(
        shape: &[u64],
        names: &str,
        is_bytes: bool,
        draws_channels: bool,
    ) -> (String, Option<[String; 2]>) {
        let names: Vec<Option<String>> = match names {
            "" => vec![None; shape.len()],
            names => names.split(',').map(|name| Some(name.to_owned())).collect(),
        };
        let view = Dimensions { shape, names: &names, is_bytes, proposed: &[("t", 2)] }.view(draws_channels);
        (view.slice, view.axes)
    }

    #[test]
    fn the_default_plane_follows_from_names_and_shape() {
        for (shape, names, slice, axes) in [
            (&[][..], "", "", None),
            (&[9], "x", ":", None),
            (&[9, 7], "", ":,:", Some(["0", "1"])),
            (&[9, 7], "lon,lat", ":,:", Some(["lat", "lon"])),
            (&[5, 9, 7], "time,lat,lon", "0,:,:", Some(["lat", "lon"])),
            (&[5, 9, 7], "t,z,x", "2,:,:", Some(["z", "x"])),
            (&[5, 6, 9, 7], "t,z,y,x", "2,3,:,:", Some(["y", "x"])),
            (&[2, 6, 9, 7], "t,Z,Y,X", "0,3,:,:", Some(["Y", "X"])),
            (&[9, 7, 5], "y,x,time", ":,:,0", Some(["y", "x"])),
            (&[2, 5, 9, 7], "t,c,y,x", "0,0,:,:", Some(["y", "x"])),
            (&[0, 9, 7], "z,y,x", "0,:,:", Some(["y", "x"])),
            (&[5, 9, 7], "a,1,1", "0,:,:", Some(["1", "2"])),
        ] {
            let axes = axes.map(|axes| axes.map(str::to_owned));
            assert_eq!(view(shape, names, false, false), (slice.to_owned(), axes), "{shape:?} {names}");
        }
    }

    #[test]
    fn three_or_four_channels_of_bytes_are_a_photograph_and_channels_drawn_together_stay_whole() {
        for (shape, names, is_bytes, draws, slice) in [
            (&[9, 7, 3][..], "", true, false, ":,:,:"),
            (&[9, 7, 3], "", false, false, "0,:,:"),
            (&[9, 7, 4], "y,x,band", true, false, ":,:,:"),
            (&[3, 9, 7], "c,y,x", true, false, ":,:,:"),
            (&[9, 7, 3], "y,x,time", true, false, ":,:,0"),
            (&[5, 9, 7], "c,y,x", false, true, ":,:,:"),
            (&[5, 9, 7], "c,y,x", false, false, "0,:,:"),
            (&[9, 3], "", true, false, ":,:"),
        ] {
            assert_eq!(view(shape, names, is_bytes, draws).0, slice, "{shape:?} {names}");
        }
    }
}

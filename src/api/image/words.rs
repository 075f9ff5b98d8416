//! The words of pictures in URLs: what each parameter may be, and why a query is invalid.

use crate::chunk::SelectionError;
use crate::error::{Classify, ErrorClass, nearest};
use crate::render::raster::Color;

/// Every parameter, for errors and suggestions.
const NAMES: [&str; 30] = [
    "slice",
    "select",
    "axes",
    "size",
    "box",
    "colormap",
    "colormap_name",
    "colors",
    "range",
    "rescale",
    "colorscalerange",
    "scale",
    "below",
    "above",
    "missing",
    "channels",
    "rgb",
    "method",
    "level",
    "origin",
    "part",
    "fields",
    "bits",
    "format",
    "f",
    "decode",
    "width",
    "height",
    "tile",
    "tms",
];
/// The largest picture that the caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PictureSize {
    /// As many pixels as elements.
    Max,
    /// At most this wide and this high.
    Within(u64, u64),
}

/// The colours of numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Coloring {
    /// A colormap by its name.
    Named(String),
    /// The stops of a colormap.
    Stops(Vec<Color>),
    /// A colour for each label.
    Categories,
    /// Shades of gray for programs: the numbers of the range as numbers of pixels.
    None,
}

/// Where the range of the colours comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum RangeWord {
    /// From the attributes, else from a sample of the array.
    #[default]
    Auto,
    /// From the request.
    Given(f64, f64),
    /// The extremes of the elements in the picture.
    Slice,
    /// Two percentiles of the elements in the picture.
    Percentiles(f64, f64),
    /// The extremes of the data type.
    Type,
}

/// Which planes are drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChannelsWord {
    /// Those that the OME metadata shows.
    Omero,
    /// These.
    Listed(Vec<ChannelWord>),
    /// One plane each for red, green and blue.
    Rgb([u64; 3]),
}

/// A channel of a composite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ChannelWord {
    pub(crate) index: u64,
    pub(crate) color: Option<Color>,
    pub(crate) range: Option<(f64, f64)>,
}

/// Which end of the picture the first row is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RowOrigin {
    /// Geographic coordinates with north at the top, everything else with the first row at the top.
    #[default]
    Auto,
    Upper,
    Lower,
}

/// Why a query is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ImageParamError {
    /// The query is not a list of names and values.
    #[error("{0}")]
    Unreadable(String),
    /// The parameter is unknown.
    #[error("`{name}` is not a parameter of pictures;{hint} there is: {known}, isel.NAME", name = .0, hint = hint(.0), known = NAMES.join(", "))]
    Unknown(String),
    /// A parameter occurs twice, or under several of its names.
    #[error("`{0}` is given more than once")]
    Twice(&'static str),
    /// A parameter has an invalid value.
    #[error("`{name}={value}` is not understood; it takes {takes}{more}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The invalid value, shortened.
        value: String,
        /// The valid values.
        takes: &'static str,
        /// A suggestion.
        more: String,
    },
    /// Two parameters exclude each other.
    #[error("`{0}` and `{1}` cannot be combined")]
    Both(&'static str, &'static str),
    /// The selection is invalid.
    #[error(transparent)]
    Selection(#[from] SelectionError),
}

impl Classify for ImageParamError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unreadable(_) | Self::Unknown(_) | Self::Twice(_) | Self::Value { .. } | Self::Both(..) => {
                ErrorClass::InvalidRequest
            }
            Self::Selection(error) => error.class(),
        }
    }
}

fn hint(name: &str) -> String {
    nearest(name, NAMES).map_or_else(String::new, |known| format!(" did you mean `{known}`?"))
}

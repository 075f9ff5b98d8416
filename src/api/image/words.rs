//! The words of pictures in URLs: what each parameter may be.

use crate::render::raster::Color;

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

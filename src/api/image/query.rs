//! [`ImageQuery`]: the query parameters of pictures, parsed once.
//!
//! The words of the page alone are ignored, so that its URL is also the URL of its picture. Any other unknown word is an error.

use crate::chunk::{Selection, SelectionError, Subset};
use crate::error::{Classify, ErrorClass, nearest};
use crate::metadata::ArrayMetadata;
use crate::render::raster::{COLORMAPS, Color, Colormap, Method, Outside, Part, Scale};

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
/// The parameters of the page that do not change its picture.
const OF_PAGE: [&str; 7] = ["tab", "at", "grid", "lock", "play", "pin", "theme"];
/// Prefix of a parameter that selects along a named dimension.
const BY_NAME: &str = "isel.";
/// The longest side of a picture whose size is not requested.
pub(crate) const DEFAULT_SIDE: u64 = 512;
/// Most channels of a composite.
const MOST_CHANNELS: usize = 32;
/// Most stops of a colormap in a URL.
const MOST_STOPS: usize = 256;

/// The largest picture that the caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
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
pub(crate) enum Origin {
    /// Geographic coordinates with north at the top, everything else with the first row at the top.
    #[default]
    Auto,
    Upper,
    Lower,
}

/// A parsed query.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImageQuery {
    selection: Option<Selection>,
    /// Dimension names, each with its selection.
    named: Vec<(String, String)>,
    pub(crate) axes: Option<[String; 2]>,
    pub(crate) size: Option<Size>,
    /// Column, row, width and height of a part of the plane.
    pub(crate) part_of_plane: Option<[u64; 4]>,
    pub(crate) coloring: Option<Coloring>,
    pub(crate) range: Option<RangeWord>,
    pub(crate) scale: Option<Scale>,
    pub(crate) below: Option<Outside>,
    pub(crate) above: Option<Outside>,
    pub(crate) missing: Option<Color>,
    pub(crate) channels: Option<ChannelsWord>,
    /// `None` for `auto`.
    pub(crate) method: Option<Method>,
    pub(crate) level: Option<usize>,
    pub(crate) origin: Option<Origin>,
    pub(crate) part: Option<Part>,
    pub(crate) fields: Option<String>,
    pub(crate) has_16_bits: bool,
    pub(crate) format: Option<String>,
    /// Whether elements are drawn as they are stored.
    pub(crate) is_stored: bool,
    /// Pixels on a side of a tile.
    pub(crate) tile: Option<u32>,
    /// Pixels of a legend.
    pub(crate) legend_size: (Option<u32>, Option<u32>),
}

/// Why a query is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ImageQueryError {
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

impl Classify for ImageQueryError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unreadable(_) | Self::Unknown(_) | Self::Twice(_) | Self::Value { .. } | Self::Both(..) => {
                ErrorClass::InvalidRequest
            }
            Self::Selection(error) => error.class(),
        }
    }
}

impl ImageQuery {
    /// Parses the decoded pairs of a query.
    pub(crate) fn parse(pairs: &[(String, String)]) -> Result<Self, ImageQueryError> {
        let mut query = Self::default();
        let (mut bits, mut decode) = (None, None);
        let mut coloring = None;
        let (mut rgb, mut method_word) = (None, None);
        for (name, value) in pairs {
            let value = value.as_str();
            match name.as_str() {
                "slice" | "select" => once("slice", &mut query.selection, Selection::parse(value)?)?,
                "axes" => once("axes", &mut query.axes, axes(value)?)?,
                "size" => once("size", &mut query.size, size(value)?)?,
                "box" => once("box", &mut query.part_of_plane, part_of_plane(value)?)?,
                "colormap" | "colormap_name" => once("colormap", &mut query.coloring, colormap(value)?)?,
                "colors" => once("colors", &mut coloring, stops(value)?)?,
                "range" | "rescale" | "colorscalerange" => once("range", &mut query.range, range(value)?)?,
                "scale" => once("scale", &mut query.scale, scale(value)?)?,
                "below" => once("below", &mut query.below, outside("below", value)?)?,
                "above" => once("above", &mut query.above, outside("above", value)?)?,
                "missing" => once("missing", &mut query.missing, missing(value)?)?,
                "channels" => once("channels", &mut query.channels, channels(value)?)?,
                "rgb" => once("rgb", &mut rgb, three(value)?)?,
                "method" => once("method", &mut method_word, method(value)?)?,
                "level" => once("level", &mut query.level, level(value)?)?,
                "origin" => once("origin", &mut query.origin, origin(value)?)?,
                "part" => once("part", &mut query.part, part(value)?)?,
                "fields" => once("fields", &mut query.fields, value.to_owned())?,
                "bits" => once("bits", &mut bits, is_16(value)?)?,
                "format" | "f" => once("format", &mut query.format, value.to_owned())?,
                "decode" => once("decode", &mut decode, is_stored(value)?)?,
                "tile" => once("tile", &mut query.tile, tile(value)?)?,
                "width" => once("width", &mut query.legend_size.0, pixels("width", value)?)?,
                "height" => once("height", &mut query.legend_size.1, pixels("height", value)?)?,
                "tms" => {}
                name if OF_PAGE.contains(&name) => {}
                name => match name.strip_prefix(BY_NAME) {
                    Some(dimension) => query.named.push((dimension.to_owned(), value.to_owned())),
                    None => return Err(ImageQueryError::Unknown(name.chars().take(40).collect())),
                },
            }
        }
        query.method = method_word.flatten();
        query.has_16_bits = bits.unwrap_or_default();
        query.is_stored = decode.unwrap_or_default();
        query.combine(coloring, rgb)?;
        Ok(query)
    }

    /// Puts parameters together that say the same in two ways, and rejects those that exclude each other.
    fn combine(&mut self, stops: Option<Coloring>, rgb: Option<[u64; 3]>) -> Result<(), ImageQueryError> {
        if self.selection.is_some() && !self.named.is_empty() {
            return Err(ImageQueryError::Both("slice", "isel.NAME"));
        }
        if let Some(stops) = stops
            && self.coloring.replace(stops).is_some()
        {
            return Err(ImageQueryError::Both("colormap", "colors"));
        }
        if let Some(rgb) = rgb
            && self.channels.replace(ChannelsWord::Rgb(rgb)).is_some()
        {
            return Err(ImageQueryError::Both("channels", "rgb"));
        }
        if self.coloring.is_some() && self.channels.is_some() {
            return Err(ImageQueryError::Both("channels", "colormap"));
        }
        if self.has_16_bits && self.coloring != Some(Coloring::None) {
            return Err(not_understood("bits", "16", "16 only together with `colormap=none`"));
        }
        Ok(())
    }

    /// The colormap that the request names or has the colours of; viridis, if it says nothing.
    pub(crate) fn colormap(&self) -> Option<Colormap> {
        match &self.coloring {
            None => Colormap::named("viridis"),
            Some(Coloring::Named(name)) => Colormap::named(name),
            Some(Coloring::Stops(stops)) => Some(Colormap::from_stops(stops)),
            Some(Coloring::Categories | Coloring::None) => None,
        }
    }

    /// The selected subset of an array whose dimensions have these names; without a selection, the whole array.
    pub(crate) fn subset(
        &self,
        array: &ArrayMetadata,
        names: &[Option<String>],
    ) -> Result<Subset, SelectionError> {
        let named;
        let selection = match &self.selection {
            Some(selection) => selection,
            None if self.named.is_empty() => &Selection::default(),
            None => {
                named = Selection::by_name(&self.named, names)?;
                &named
            }
        };
        selection.resolve(&array.shape)
    }
}

fn hint(name: &str) -> String {
    nearest(name, NAMES).map_or_else(String::new, |known| format!(" did you mean `{known}`?"))
}

fn once<T>(name: &'static str, place: &mut Option<T>, value: T) -> Result<(), ImageQueryError> {
    if place.replace(value).is_some() { Err(ImageQueryError::Twice(name)) } else { Ok(()) }
}

fn not_understood(name: &'static str, value: &str, takes: &'static str) -> ImageQueryError {
    ImageQueryError::Value { name, value: value.chars().take(40).collect(), takes, more: String::new() }
}

fn numbers<T: std::str::FromStr>(value: &str) -> Option<Vec<T>> {
    value.split(',').map(|number| number.trim().parse().ok()).collect()
}

fn axes(value: &str) -> Result<[String; 2], ImageQueryError> {
    let names: Vec<String> = value.split(',').map(|name| name.trim().to_owned()).collect();
    names.try_into().map_err(|_other: Vec<String>| {
        not_understood(
            "axes",
            value,
            "the dimensions of rows and of columns, by name or number: `y,x` or `1,2`",
        )
    })
}

fn size(value: &str) -> Result<Size, ImageQueryError> {
    let sides = match value {
        "max" => return Ok(Size::Max),
        _ => numbers::<u64>(value).unwrap_or_default(),
    };
    match sides[..] {
        [side] if side > 0 => Ok(Size::Within(side, side)),
        [width, height] if width > 0 && height > 0 => Ok(Size::Within(width, height)),
        _ => Err(not_understood("size", value, "`512` for the longer side, `640,480` for both, or `max`")),
    }
}

fn part_of_plane(value: &str) -> Result<[u64; 4], ImageQueryError> {
    let takes = "column, row, width and height in elements, such as `0,0,256,256`";
    let numbers = numbers::<u64>(value).and_then(|numbers| <[u64; 4]>::try_from(numbers).ok());
    numbers
        .filter(|[_, _, width, height]| *width > 0 && *height > 0)
        .ok_or_else(|| not_understood("box", value, takes))
}

fn colormap(value: &str) -> Result<Coloring, ImageQueryError> {
    match value {
        "categories" => return Ok(Coloring::Categories),
        "none" => return Ok(Coloring::None),
        _ => {}
    }
    if Colormap::named(value).is_some() {
        return Ok(Coloring::Named(value.to_owned()));
    }
    let mut names: Vec<&str> = COLORMAPS.to_vec();
    names.extend(["categories", "none"]);
    let near = nearest(value, names.iter().copied()).map(|name| format!("; did you mean `{name}`?"));
    Err(ImageQueryError::Value {
        name: "colormap",
        value: value.chars().take(40).collect(),
        takes: "one of viridis, magma, inferno, plasma, cividis, gray, turbo, RdBu, Spectral and coolwarm, each also with \
                `_r` at its end, or `categories`, or `none`",
        more: near.unwrap_or_default(),
    })
}

fn stops(value: &str) -> Result<Coloring, ImageQueryError> {
    let stops: Option<Vec<Color>> = value.split(',').take(MOST_STOPS + 1).map(Color::parse).collect();
    match stops {
        Some(stops) if (1..=MOST_STOPS).contains(&stops.len()) => Ok(Coloring::Stops(stops)),
        _ => Err(not_understood("colors", value, "up to 256 colours, such as `000000,ff0000,ffffff`")),
    }
}

fn range(value: &str) -> Result<RangeWord, ImageQueryError> {
    match value {
        "auto" => return Ok(RangeWord::Auto),
        "slice" => return Ok(RangeWord::Slice),
        "type" => return Ok(RangeWord::Type),
        _ => {}
    }
    let takes = "`lo,hi`, `auto`, `slice`, percentiles such as `2%,98%`, or `type`";
    let error = || not_understood("range", value, takes);
    let (low, high) = value.split_once(',').ok_or_else(error)?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    match (low.trim().strip_suffix('%'), high.trim().strip_suffix('%')) {
        (Some(low), Some(high)) => match (number(low), number(high)) {
            (Some(low), Some(high)) if 0.0 <= low && low <= high && high <= 100.0 => {
                Ok(RangeWord::Percentiles(low, high))
            }
            _ => Err(error()),
        },
        (None, None) => match (number(low), number(high)) {
            (Some(low), Some(high)) if low <= high => Ok(RangeWord::Given(low, high)),
            (Some(_), Some(_)) => Err(not_understood(
                "range",
                value,
                "the smaller number first; a colormap is reversed by `_r` at the end of its name",
            )),
            _ => Err(error()),
        },
        _ => Err(error()),
    }
}

fn scale(value: &str) -> Result<Scale, ImageQueryError> {
    let takes = "`linear`, `log`, `sqrt` or `gamma:` and an exponent, such as `gamma:0.5`";
    Scale::parse(value).ok_or_else(|| not_understood("scale", value, takes))
}

fn outside(name: &'static str, value: &str) -> Result<Outside, ImageQueryError> {
    match (value, Color::parse(value)) {
        ("extend", _) => Ok(Outside::Extend),
        (_, Some(color)) => Ok(Outside::Color(color)),
        _ => Err(not_understood(name, value, "`extend`, `transparent` or a colour such as `ff0000`")),
    }
}

fn missing(value: &str) -> Result<Color, ImageQueryError> {
    Color::parse(value)
        .ok_or_else(|| not_understood("missing", value, "`transparent` or a colour such as `ff0000`"))
}

/// `omero`, or channels separated by commas: an index, and after colons a colour and the two ends of a range.
fn channels(value: &str) -> Result<ChannelsWord, ImageQueryError> {
    if value == "omero" {
        return Ok(ChannelsWord::Omero);
    }
    let takes = "`omero`, or up to 32 channels such as `0:0000ff:0:1500,2:ff0000` (index, colour, range)";
    let error = || not_understood("channels", value, takes);
    let listed: Vec<&str> = value.split(',').take(MOST_CHANNELS + 1).collect();
    if listed.len() > MOST_CHANNELS {
        return Err(error());
    }
    let channel = |text: &str| {
        let parts: Vec<&str> = text.split(':').collect();
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        let (index, color, range) = match parts[..] {
            [index] => (index, None, None),
            [index, color] => (index, Some(color), None),
            [index, color, low, high] => (index, Some(color), Some((number(low)?, number(high)?))),
            _ => return None,
        };
        let color = match color {
            Some(color) => Some(Color::parse(color)?),
            None => None,
        };
        let is_range = range.is_none_or(|(low, high)| low <= high);
        is_range.then_some(ChannelWord { index: index.trim().parse().ok()?, color, range })
    };
    let listed: Option<Vec<ChannelWord>> = listed.into_iter().map(channel).collect();
    listed.map(ChannelsWord::Listed).ok_or_else(error)
}

fn three(value: &str) -> Result<[u64; 3], ImageQueryError> {
    let numbers = numbers::<u64>(value).and_then(|numbers| <[u64; 3]>::try_from(numbers).ok());
    numbers.ok_or_else(|| not_understood("rgb", value, "three channels, such as `0,1,2`"))
}

/// `None` for `auto`, which depends on the array.
fn method(value: &str) -> Result<Option<Method>, ImageQueryError> {
    let takes = "`auto`, `mean`, `mode`, `min`, `max` or `stride`";
    match (value, Method::parse(value)) {
        ("auto", _) => Ok(None),
        (_, Some(method)) => Ok(Some(method)),
        _ => Err(not_understood("method", value, takes)),
    }
}

fn level(value: &str) -> Result<usize, ImageQueryError> {
    value.parse().ok().ok_or_else(|| not_understood("level", value, "the number of a stored level, from 0"))
}

fn origin(value: &str) -> Result<Origin, ImageQueryError> {
    match value {
        "auto" => Ok(Origin::Auto),
        "upper" => Ok(Origin::Upper),
        "lower" => Ok(Origin::Lower),
        _ => Err(not_understood("origin", value, "`upper`, `lower` or `auto`")),
    }
}

fn part(value: &str) -> Result<Part, ImageQueryError> {
    Part::parse(value).ok_or_else(|| not_understood("part", value, "`abs`, `real`, `imag` or `arg`"))
}

fn is_16(value: &str) -> Result<bool, ImageQueryError> {
    match value {
        "8" => Ok(false),
        "16" => Ok(true),
        _ => Err(not_understood("bits", value, "`8` or `16`")),
    }
}

fn is_stored(value: &str) -> Result<bool, ImageQueryError> {
    match value {
        "none" => Ok(true),
        "cf" => Ok(false),
        _ => Err(not_understood("decode", value, "`cf` or `none`")),
    }
}

fn tile(value: &str) -> Result<u32, ImageQueryError> {
    match value {
        "256" => Ok(256),
        "512" => Ok(512),
        _ => Err(not_understood("tile", value, "`256` or `512`")),
    }
}

fn pixels(name: &'static str, value: &str) -> Result<u32, ImageQueryError> {
    let side = value.parse().ok().filter(|side| (1..=1024).contains(side));
    side.ok_or_else(|| not_understood(name, value, "pixels, from 1 to 1024"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<ImageQuery, ImageQueryError> {
        let pairs: Vec<(String, String)> = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        ImageQuery::parse(&pairs)
    }

    #[test]
    fn a_misspelt_parameter_is_rejected_with_a_suggestion() {
        for (query, part) in [
            ("colromap=viridis", "did you mean `colormap`?"),
            ("slcie=0", "did you mean `slice`?"),
            ("colormap=viridi", "did you mean `viridis`?"),
            ("range=3,1", "`_r`"),
            ("size=0", "`512`"),
            ("box=1,2,3", "column, row"),
            ("scale=symlog", "gamma:0.5"),
            ("bits=16", "colormap=none"),
            ("channels=a", "omero"),
            ("slice=0&isel.x=1", "cannot be combined"),
            ("colormap=gray&colors=ff0000", "cannot be combined"),
            ("rgb=0,1,2&channels=omero", "cannot be combined"),
            ("rescale=0,1&range=0,1", "more than once"),
        ] {
            let error = parse(query).unwrap_err().to_string();
            assert!(error.contains(part), "{query}: {error}");
        }
    }

    #[test]
    fn words_have_the_names_that_other_servers_use_too() {
        for query in ["range=0,1.5e3", "rescale=0,1500", "colorscalerange=0,1500"] {
            assert_eq!(parse(query).unwrap().range, Some(RangeWord::Given(0.0, 1500.0)), "{query}");
        }
        assert_eq!(parse("range=2%,98%").unwrap().range, Some(RangeWord::Percentiles(2.0, 98.0)));
        assert_eq!(parse("colormap_name=magma_r").unwrap().coloring, Some(Coloring::Named("magma_r".into())));
        assert!(parse("tab=line&at=3,4&grid=1&size=max").unwrap().size == Some(Size::Max));
        let query = parse("channels=0:0000ff:0:1500,2:ff0000,3").unwrap();
        let Some(ChannelsWord::Listed(channels)) = query.channels else { panic!("no channels") };
        assert_eq!(
            channels,
            [
                ChannelWord { index: 0, color: Color::parse("0000ff"), range: Some((0.0, 1500.0)) },
                ChannelWord { index: 2, color: Color::parse("ff0000"), range: None },
                ChannelWord { index: 3, color: None, range: None },
            ]
        );
    }
}

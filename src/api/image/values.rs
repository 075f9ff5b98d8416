//! The values of the query parameters of pictures: one function for each parameter.

use super::words::{ChannelWord, ChannelsWord, Coloring, PictureSize, RangeWord, RowOrigin};
use crate::api::query_params::ParamError;
use crate::error::nearest;
use crate::render::raster::{COLORMAPS, Color, Colormap, Outside, Part, Scale};

/// Most channels of a composite.
const MOST_CHANNELS: usize = 32;
/// Most stops of a colormap in a URL.
const MOST_STOPS: usize = 256;

fn numbers<T: std::str::FromStr>(value: &str) -> Option<Vec<T>> {
    value.split(',').map(|number| number.trim().parse().ok()).collect()
}

pub(super) fn axes(value: &str) -> Result<[String; 2], ParamError> {
    let names: Vec<String> = value.split(',').map(|name| name.trim().to_owned()).collect();
    names.try_into().map_err(|_other: Vec<String>| {
        ParamError::value(
            "axes",
            value,
            "the dimensions of rows and of columns, by name or number: `y,x` or `1,2`",
        )
    })
}

pub(super) fn size(value: &str) -> Result<PictureSize, ParamError> {
    let sides = match value {
        "max" => return Ok(PictureSize::Max),
        _ => numbers::<u64>(value).unwrap_or_default(),
    };
    match sides[..] {
        [side] if side > 0 => Ok(PictureSize::Within(side, side)),
        [width, height] if width > 0 && height > 0 => Ok(PictureSize::Within(width, height)),
        _ => Err(ParamError::value("size", value, "`512` for the longer side, `640,480` for both, or `max`")),
    }
}

pub(super) fn part_of_plane(value: &str) -> Result<[u64; 4], ParamError> {
    let takes = "column, row, width and height in elements, such as `0,0,256,256`";
    let numbers = numbers::<u64>(value).and_then(|numbers| <[u64; 4]>::try_from(numbers).ok());
    numbers
        .filter(|[_, _, width, height]| *width > 0 && *height > 0)
        .ok_or_else(|| ParamError::value("box", value, takes))
}

pub(super) fn colormap(value: &str) -> Result<Coloring, ParamError> {
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
    let takes = "one of viridis, magma, inferno, plasma, cividis, gray, turbo, RdBu, Spectral and coolwarm, each also with `_r` \
                 at its end, or `categories`, or `none`";
    Err(ParamError::value_with_hint("colormap", value, takes, near.unwrap_or_default()))
}

pub(super) fn stops(value: &str) -> Result<Coloring, ParamError> {
    let stops: Option<Vec<Color>> = value.split(',').take(MOST_STOPS + 1).map(Color::parse).collect();
    match stops {
        Some(stops) if (1..=MOST_STOPS).contains(&stops.len()) => Ok(Coloring::Stops(stops)),
        _ => Err(ParamError::value("colors", value, "up to 256 colours, such as `000000,ff0000,ffffff`")),
    }
}

pub(super) fn range(value: &str) -> Result<RangeWord, ParamError> {
    match value {
        "auto" => return Ok(RangeWord::Auto),
        "slice" => return Ok(RangeWord::Slice),
        "type" => return Ok(RangeWord::Type),
        _ => {}
    }
    let takes = "`lo,hi`, `auto`, `slice`, percentiles such as `2%,98%`, or `type`";
    let error = || ParamError::value("range", value, takes);
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
            (Some(_), Some(_)) => Err(ParamError::value(
                "range",
                value,
                "the smaller number first; a colormap is reversed by `_r` at the end of its name",
            )),
            _ => Err(error()),
        },
        _ => Err(error()),
    }
}

pub(super) fn scale(value: &str) -> Result<Scale, ParamError> {
    let takes = "`linear`, `log`, `sqrt` or `gamma:` and an exponent, such as `gamma:0.5`";
    Scale::parse(value).ok_or_else(|| ParamError::value("scale", value, takes))
}

pub(super) fn outside(name: &'static str, value: &str) -> Result<Outside, ParamError> {
    match (value, Color::parse(value)) {
        ("extend", _) => Ok(Outside::Extend),
        (_, Some(color)) => Ok(Outside::Color(color)),
        _ => Err(ParamError::value(name, value, "`extend`, `transparent` or a colour such as `ff0000`")),
    }
}

pub(super) fn missing(value: &str) -> Result<Color, ParamError> {
    Color::parse(value)
        .ok_or_else(|| ParamError::value("missing", value, "`transparent` or a colour such as `ff0000`"))
}

/// `omero`, or channels separated by commas: an index, and after colons a colour and the two ends of a range.
pub(super) fn channels(value: &str) -> Result<ChannelsWord, ParamError> {
    if value == "omero" {
        return Ok(ChannelsWord::Omero);
    }
    let takes = "`omero`, or up to 32 channels such as `0:0000ff:0:1500,2:ff0000` (index, colour, range)";
    let error = || ParamError::value("channels", value, takes);
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

pub(super) fn three(value: &str) -> Result<[u64; 3], ParamError> {
    let numbers = numbers::<u64>(value).and_then(|numbers| <[u64; 3]>::try_from(numbers).ok());
    numbers.ok_or_else(|| ParamError::value("rgb", value, "three channels, such as `0,1,2`"))
}

pub(super) fn level(value: &str) -> Result<usize, ParamError> {
    value
        .parse()
        .ok()
        .ok_or_else(|| ParamError::value("level", value, "the number of a stored level, from 0"))
}

pub(super) fn origin(value: &str) -> Result<RowOrigin, ParamError> {
    match value {
        "auto" => Ok(RowOrigin::Auto),
        "upper" => Ok(RowOrigin::Upper),
        "lower" => Ok(RowOrigin::Lower),
        _ => Err(ParamError::value("origin", value, "`upper`, `lower` or `auto`")),
    }
}

pub(super) fn part(value: &str) -> Result<Part, ParamError> {
    Part::parse(value).ok_or_else(|| ParamError::value("part", value, "`abs`, `real`, `imag` or `arg`"))
}

pub(super) fn is_16(value: &str) -> Result<bool, ParamError> {
    match value {
        "8" => Ok(false),
        "16" => Ok(true),
        _ => Err(ParamError::value("bits", value, "`8` or `16`")),
    }
}

pub(super) fn is_stored(value: &str) -> Result<bool, ParamError> {
    match value {
        "none" => Ok(true),
        "cf" => Ok(false),
        _ => Err(ParamError::value("decode", value, "`cf` or `none`")),
    }
}

pub(super) fn tile(value: &str) -> Result<u32, ParamError> {
    match value {
        "256" => Ok(256),
        "512" => Ok(512),
        _ => Err(ParamError::value("tile", value, "`256` or `512`")),
    }
}

pub(super) fn pixels(name: &'static str, value: &str) -> Result<u32, ParamError> {
    let side = value.parse().ok().filter(|side| (1..=1024).contains(side));
    side.ok_or_else(|| ParamError::value(name, value, "pixels, from 1 to 1024"))
}

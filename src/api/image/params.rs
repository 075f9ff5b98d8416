//! The query parameters of pictures, legends and tiles, by what they are about.

use utoipa::IntoParams;

use super::values::{
    axes, channels, colormap, is_16, is_stored, level, missing, origin, outside, part, part_of_plane, pixels,
    range, scale, size, stops, three, tile,
};
use super::words::{ChannelsWord, Coloring, PictureSize, RangeWord, RowOrigin};
use crate::api::data::reduction_query::RequestedMethod;
use crate::api::query_params::{ParamError, ParseParams, QueryParams, once};
use crate::reduce::Method;
use crate::render::raster::{Color, Colormap, Outside, Part, Scale};

/// The parameter with the dimensions of a plane.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AxesParams {
    /// Dimensions of the rows and of the columns, by name or number, such as `y,x`. A dimension that is neither and is selected
    /// whole has its default index.
    #[param(value_type = Option<String>)]
    pub(crate) axes: Option<[String; 2]>,
}

impl QueryParams for AxesParams {}

impl ParseParams for AxesParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        if name == "axes" { once("axes", &mut self.axes, axes(value)?) } else { Ok(false) }
    }
}

/// The parameters that say which part of a plane a picture shows, and how large.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PlaneParams {
    /// Most pixels of the longer side (`512`, the default), or of width and height (`640,480`), or `max`.
    #[param(value_type = Option<String>)]
    pub(crate) size: Option<PictureSize>,
    /// Part of the plane: first column, first row, width and height in elements.
    #[param(rename = "box", value_type = Option<String>)]
    pub(crate) part_of_plane: Option<[u64; 4]>,
    /// Stored level of an OME image, from 0. The default is the smallest that fills the picture.
    #[param(value_type = Option<String>)]
    pub(crate) level: Option<usize>,
    /// Where the first row is: `upper`, `lower` or `auto` (default).
    #[param(value_type = Option<String>)]
    pub(crate) origin: Option<RowOrigin>,
}

impl QueryParams for PlaneParams {}

impl ParseParams for PlaneParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        match name {
            "size" => once("size", &mut self.size, size(value)?),
            "box" => once("box", &mut self.part_of_plane, part_of_plane(value)?),
            "level" => once("level", &mut self.level, level(value)?),
            "origin" => once("origin", &mut self.origin, origin(value)?),
            _ => Ok(false),
        }
    }
}

/// The parameters that say how numbers become colours.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ColorParams {
    /// Colormap: `viridis`, `magma`, `inferno`, `plasma`, `cividis`, `gray`, `turbo`, `RdBu`, `Spectral` or `coolwarm`, each
    /// also with `_r` at its end for the reverse; `categories` for labels; `none` for the numbers of the range as shades of
    /// gray. The default is `viridis`, `gray` for OME images, and `categories` for labels. Alias: `colormap_name`.
    #[param(value_type = Option<String>)]
    colormap: Option<Coloring>,
    /// Colours of a colormap at equal distances, such as `000000,ff0000,ffffff`.
    #[param(value_type = Option<String>)]
    colors: Option<Coloring>,
    /// Range of the colours: `lo,hi`, `auto` (default), `slice` (the extremes of the picture), percentiles of the picture such as
    /// `2%,98%`, or `type`. Aliases: `rescale`, `colorscalerange`.
    #[param(value_type = Option<String>)]
    pub(crate) range: Option<RangeWord>,
    /// Scale of the colours within the range: `linear` (default), `log`, `sqrt` or `gamma:0.5`.
    #[param(value_type = Option<String>)]
    pub(crate) scale: Option<Scale>,
    /// Colour of numbers below the range: `extend` (default), `transparent`, or a colour such as `ff0000` or `ff000080`.
    #[param(value_type = Option<String>)]
    pub(crate) below: Option<Outside>,
    /// Colour of numbers above the range, as `below`.
    #[param(value_type = Option<String>)]
    pub(crate) above: Option<Outside>,
    /// Colour of missing values and NaN: `transparent` (default) or a colour.
    #[param(value_type = Option<String>)]
    pub(crate) missing: Option<Color>,
    /// Channels of a composite: an index each, and after colons a colour and the ends of a range, such as
    /// `0:0000ff:0:1500,2:ff0000`; or `omero` for those that the metadata of an OME image shows.
    #[param(value_type = Option<String>)]
    channels: Option<ChannelsWord>,
    /// Channels of red, green and blue, such as `0,1,2`.
    #[param(value_type = Option<String>)]
    rgb: Option<ChannelsWord>,
    /// Part of complex numbers: `abs` (default), `real`, `imag` or `arg`.
    #[param(value_type = Option<String>)]
    pub(crate) part: Option<Part>,
    /// A field of a struct data type.
    pub(crate) fields: Option<String>,
    /// Bits of each pixel: `8` (default), or `16` together with `colormap=none`.
    #[param(rename = "bits", value_type = Option<String>)]
    has_16_bits: Option<bool>,
    /// `cf` (default) applies `_FillValue`, `missing_value`, `scale_factor`, `add_offset` and `_Unsigned`; `none` draws the stored
    /// numbers.
    #[param(rename = "decode", value_type = Option<String>)]
    is_stored: Option<bool>,
    /// How elements are put together in a smaller picture: `auto` (default: `mode` for labels and bool, else `mean`), `mean`,
    /// `mode`, `min`, `max` or `stride`.
    #[param(value_type = Option<String>)]
    method: Option<RequestedMethod>,
}

impl QueryParams for ColorParams {
    const ALIASES: &'static [(&'static str, &'static str)] =
        &[("colormap_name", "colormap"), ("rescale", "range"), ("colorscalerange", "range")];
}

impl ParseParams for ColorParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        match name {
            "colormap" => once("colormap", &mut self.colormap, colormap(value)?),
            "colors" => once("colors", &mut self.colors, stops(value)?),
            "range" => once("range", &mut self.range, range(value)?),
            "scale" => once("scale", &mut self.scale, scale(value)?),
            "below" => once("below", &mut self.below, outside("below", value)?),
            "above" => once("above", &mut self.above, outside("above", value)?),
            "missing" => once("missing", &mut self.missing, missing(value)?),
            "channels" => once("channels", &mut self.channels, channels(value)?),
            "rgb" => once("rgb", &mut self.rgb, ChannelsWord::Rgb(three(value)?)),
            "part" => once("part", &mut self.part, part(value)?),
            "fields" => once("fields", &mut self.fields, value.to_owned()),
            "bits" => once("bits", &mut self.has_16_bits, is_16(value)?),
            "decode" => once("decode", &mut self.is_stored, is_stored(value)?),
            "method" => once("method", &mut self.method, RequestedMethod::parse(value)?),
            _ => Ok(false),
        }
    }
}

impl ColorParams {
    /// Rejects parameters that exclude each other.
    pub(super) fn check(&self) -> Result<(), ParamError> {
        let exclusive = [
            (self.colormap.is_some() && self.colors.is_some(), "`colormap` and `colors`"),
            (self.channels.is_some() && self.rgb.is_some(), "`channels` and `rgb`"),
            (self.coloring().is_some() && self.channels().is_some(), "`channels` and `colormap`"),
        ];
        if let Some((_, names)) = exclusive.into_iter().find(|(are_both, _)| *are_both) {
            return Err(ParamError::Exclusive(names));
        }
        if self.has_16_bits() && self.coloring() != Some(&Coloring::None) {
            return Err(ParamError::value("bits", "16", "16 only together with `colormap=none`"));
        }
        Ok(())
    }

    /// The colours of numbers, if the request says which.
    pub(crate) fn coloring(&self) -> Option<&Coloring> {
        self.colormap.as_ref().or(self.colors.as_ref())
    }

    /// The planes of a composite, if the request says which.
    pub(crate) fn channels(&self) -> Option<&ChannelsWord> {
        self.channels.as_ref().or(self.rgb.as_ref())
    }

    /// The method for smaller pictures; `None` for `auto`.
    pub(crate) fn method(&self) -> Option<Method> {
        self.method.and_then(RequestedMethod::named)
    }

    /// Whether pixels have 16 bits.
    pub(crate) fn has_16_bits(&self) -> bool {
        self.has_16_bits.unwrap_or_default()
    }

    /// Whether elements are drawn as they are stored.
    pub(crate) fn is_stored(&self) -> bool {
        self.is_stored.unwrap_or_default()
    }

    /// The colormap that the request names or has the colours of; viridis, if it says nothing.
    pub(crate) fn colormap(&self) -> Option<Colormap> {
        match self.coloring() {
            None => Colormap::named("viridis"),
            Some(Coloring::Named(name)) => Colormap::named(name),
            Some(Coloring::Stops(stops)) => Some(Colormap::from_stops(stops)),
            Some(Coloring::Categories | Coloring::None) => None,
        }
    }
}

/// The parameters of tiles.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TileParams {
    /// Pixels on a side of a tile: `256` (default) or `512`.
    #[param(value_type = Option<String>)]
    pub(crate) tile: Option<u32>,
    /// Grid of tiles: `native`, which is the only one.
    tms: Option<String>,
}

impl QueryParams for TileParams {}

impl ParseParams for TileParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        match name {
            "tile" => once("tile", &mut self.tile, tile(value)?),
            "tms" => once("tms", &mut self.tms, value.to_owned()),
            _ => Ok(false),
        }
    }
}

/// The parameters of the size of legends.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LegendParams {
    /// Width of the PNG file of a legend in pixels (256).
    #[param(value_type = Option<String>)]
    pub(crate) width: Option<u32>,
    /// Height of the PNG file of a legend in pixels (16).
    #[param(value_type = Option<String>)]
    pub(crate) height: Option<u32>,
}

impl QueryParams for LegendParams {}

impl ParseParams for LegendParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        match name {
            "width" => once("width", &mut self.width, pixels("width", value)?),
            "height" => once("height", &mut self.height, pixels("height", value)?),
            _ => Ok(false),
        }
    }
}

/// The parameter of the response format.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ImageFormatParams {
    /// Response format: `png`; of legends `json` too. Takes precedence over `Accept`. Alias: `f`.
    pub(crate) format: Option<String>,
}

impl QueryParams for ImageFormatParams {
    const ALIASES: &'static [(&'static str, &'static str)] = &[("f", "format")];
}

impl ParseParams for ImageFormatParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        if name == "format" { once("format", &mut self.format, value.to_owned()) } else { Ok(false) }
    }
}

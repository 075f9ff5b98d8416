//! [`ImageQuery`]: the query parameters of pictures, parsed once.
//!
//! The words of the page alone are ignored, so that its URL is also the URL of its picture. Any other unknown word is an error.

use super::values::{
    axes, channels, colormap, is_16, is_stored, level, method, missing, not_understood, origin, outside,
    part, part_of_plane, pixels, range, scale, size, stops, three, tile,
};
use super::words::{ChannelsWord, Coloring, ImageParamError, PictureSize, RangeWord, RowOrigin};
use crate::api::query_params::is_of_page;
use crate::chunk::{Selection, SelectionError, Subset};
use crate::metadata::ArrayMetadata;
use crate::reduce::Method;
use crate::render::raster::{Color, Colormap, Outside, Part, Scale};

/// Prefix of a parameter that selects along a named dimension.
const BY_NAME: &str = "isel.";
/// The longest side of a picture whose size is not requested.
pub(crate) const DEFAULT_SIDE: u64 = 512;

/// A parsed query.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImageQuery {
    selection: Option<Selection>,
    /// Dimension names, each with its selection.
    named: Vec<(String, String)>,
    pub(crate) axes: Option<[String; 2]>,
    pub(crate) size: Option<PictureSize>,
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
    pub(crate) origin: Option<RowOrigin>,
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

impl ImageQuery {
    /// Parses the decoded pairs of a query.
    pub(crate) fn parse(pairs: &[(String, String)]) -> Result<Self, ImageParamError> {
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
                name if is_of_page(name) => {}
                name => match name.strip_prefix(BY_NAME) {
                    Some(dimension) => query.named.push((dimension.to_owned(), value.to_owned())),
                    None => return Err(ImageParamError::Unknown(name.chars().take(40).collect())),
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
    fn combine(&mut self, stops: Option<Coloring>, rgb: Option<[u64; 3]>) -> Result<(), ImageParamError> {
        if self.selection.is_some() && !self.named.is_empty() {
            return Err(ImageParamError::Both("slice", "isel.NAME"));
        }
        if let Some(stops) = stops
            && self.coloring.replace(stops).is_some()
        {
            return Err(ImageParamError::Both("colormap", "colors"));
        }
        if let Some(rgb) = rgb
            && self.channels.replace(ChannelsWord::Rgb(rgb)).is_some()
        {
            return Err(ImageParamError::Both("channels", "rgb"));
        }
        if self.coloring.is_some() && self.channels.is_some() {
            return Err(ImageParamError::Both("channels", "colormap"));
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

fn once<T>(name: &'static str, place: &mut Option<T>, value: T) -> Result<(), ImageParamError> {
    if place.replace(value).is_some() { Err(ImageParamError::Twice(name)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::words::ChannelWord;
    use super::*;

    fn parse(query: &str) -> Result<ImageQuery, ImageParamError> {
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
        assert!(parse("tab=line&at=3,4&grid=1&size=max").unwrap().size == Some(PictureSize::Max));
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

//! [`ImageQuery`]: the query parameters of pictures, parsed once.
//!
//! Pictures, tiles and legends take the parameters of each other, so that one query says the same in the URLs of all three. The
//! words of the page alone are ignored.

use super::params::{AxesParams, ColorParams, ImageFormatParams, LegendParams, PlaneParams, TileParams};
use crate::api::query_params::{KnownParams, ParamError, ParseParams, is_of_page};
use crate::api::selection::SelectionParams;

/// The longest side of a picture whose size is not requested.
pub(crate) const DEFAULT_SIDE: u64 = 512;

/// A parsed query.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImageQuery {
    pub(crate) selection: SelectionParams,
    pub(crate) axes: AxesParams,
    pub(crate) plane: PlaneParams,
    pub(crate) color: ColorParams,
    pub(crate) tile: TileParams,
    pub(crate) legend: LegendParams,
    pub(crate) format: ImageFormatParams,
}

impl ImageQuery {
    /// Parses the decoded pairs of a query.
    ///
    /// # Errors
    /// [`ParamError`].
    pub(crate) fn parse(pairs: &[(String, String)]) -> Result<Self, ParamError> {
        let mut query = Self::default();
        for (name, value) in pairs {
            let Self { selection, axes, plane, color, tile, legend, format } = &mut query;
            let is_known = selection.take(name, value)?
                || axes.take(name, value)?
                || plane.take(name, value)?
                || color.take(name, value)?
                || tile.take(name, value)?
                || legend.take(name, value)?
                || format.take(name, value)?;
            if !is_known && !is_of_page(name) {
                return Err(ParamError::unknown(name, &Self::known()));
            }
        }
        query.color.check()?;
        Ok(query)
    }

    fn known() -> KnownParams {
        KnownParams::default()
            .and::<SelectionParams>()
            .and::<AxesParams>()
            .and::<PlaneParams>()
            .and::<ColorParams>()
            .and::<TileParams>()
            .and::<LegendParams>()
            .and::<ImageFormatParams>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::{ChannelWord, ChannelsWord, Coloring, PictureSize, RangeWord};
    use super::*;
    use crate::render::raster::Color;

    fn parse(query: &str) -> Result<ImageQuery, ParamError> {
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
            ("slice=0&isel.x=1", "cannot be mixed"),
            ("colormap=gray&colors=ff0000", "cannot be mixed"),
            ("rgb=0,1,2&channels=omero", "cannot be mixed"),
            ("rescale=0,1&range=0,1", "more than once"),
        ] {
            let error = parse(query).unwrap_err().to_string();
            assert!(error.contains(part), "{query}: {error}");
        }
    }

    #[test]
    fn words_have_the_names_that_other_servers_use_too() {
        for query in ["range=0,1.5e3", "rescale=0,1500", "colorscalerange=0,1500"] {
            assert_eq!(parse(query).unwrap().color.range, Some(RangeWord::Given(0.0, 1500.0)), "{query}");
        }
        assert_eq!(parse("range=2%,98%").unwrap().color.range, Some(RangeWord::Percentiles(2.0, 98.0)));
        let query = parse("colormap_name=magma_r").unwrap();
        assert_eq!(query.color.coloring(), Some(&Coloring::Named("magma_r".into())));
        assert!(parse("tab=line&at=3,4&grid=1&size=max").unwrap().plane.size == Some(PictureSize::Max));
        let query = parse("channels=0:0000ff:0:1500,2:ff0000,3").unwrap();
        let Some(ChannelsWord::Listed(channels)) = query.color.channels() else { panic!("no channels") };
        assert_eq!(
            channels[..],
            [
                ChannelWord { index: 0, color: Color::parse("0000ff"), range: Some((0.0, 1500.0)) },
                ChannelWord { index: 2, color: Color::parse("ff0000"), range: None },
                ChannelWord { index: 3, color: None, range: None },
            ]
        );
    }

    #[test]
    fn every_documented_parameter_is_accepted() {
        for name in ImageQuery::known().to_string().replace(" (or ", ", ").replace(')', "").split(", ") {
            let parsed = parse(&format!("{}=0", name.replace("NAME", "x")));
            assert!(!matches!(parsed, Err(ParamError::Unknown { .. })), "{name}");
        }
    }
}

//! The channels of a composite: those of the request, of a photograph, or of the metadata of an image.

use super::layout::Layout;
use super::query::ImageQuery;
use super::subject::Subject;
use super::words::{ChannelWord, ChannelsWord};
use crate::conventions::ChannelSummary;
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::render::raster::Color;

/// The colours of channels that have none of their own, in turn.
const CHANNEL_COLORS: [u32; 6] = [0x00_00ff, 0x00_ff00, 0xff_0000, 0x00_ffff, 0xff_00ff, 0xff_ff00];

/// A channel, its colour, and its range if the request has one.
pub(super) type ChannelPlan = (Option<u64>, Color, Option<(f64, f64)>);

/// The channels of a composite; `None` for one plane.
pub(super) fn channels(
    subject: &Subject,
    layout: &Layout,
    query: &ImageQuery,
    is_labels: bool,
) -> Result<Option<Vec<ChannelPlan>>, Problem> {
    let bad = |detail: String| Problem::from_class(ErrorClass::InvalidRequest).detail(detail);
    let has_omero = subject.ome.as_ref().is_some_and(|ome| !ome.channels.is_empty());
    let word = match query.color.channels() {
        Some(word) => word.clone(),
        None if query.color.coloring().is_some() || is_labels => return Ok(None),
        None if has_omero && layout.channels.is_some() => ChannelsWord::Omero,
        None if layout.is_photograph => ChannelsWord::Rgb([0, 1, 2]),
        None => return Ok(None),
    };
    let axis = layout.channels;
    let Some(axis) = axis else {
        return Err(bad("the array has no dimension of channels that the selection leaves open".to_owned()));
    };
    let length = subject.array.metadata().shape[axis];
    let planes: Vec<ChannelPlan> = match word {
        ChannelsWord::Rgb(indices) => {
            let colors = [0xff_0000, 0x00_ff00, 0x00_00ff].map(Color::opaque);
            indices.into_iter().zip(colors).map(|(index, color)| (Some(index), color, None)).collect()
        }
        ChannelsWord::Listed(words) => {
            let only = words.len() == 1;
            let plan = |(at, word): (usize, &ChannelWord)| {
                (Some(word.index), word.color.unwrap_or_else(|| channel_color(at, only)), word.range)
            };
            words.iter().enumerate().map(plan).collect()
        }
        ChannelsWord::Omero => omero(subject, length).ok_or_else(|| {
            bad("`channels=omero`: the array is in no image with `omero` metadata".to_owned())
        })?,
    };
    if let Some((Some(index), ..)) =
        planes.iter().find(|(index, ..)| index.is_none_or(|index| index >= length))
    {
        return Err(bad(format!("there is no channel {index}; the array has {length}")));
    }
    Ok(Some(planes))
}

/// The channels that the metadata of an image shows.
fn omero(subject: &Subject, length: u64) -> Option<Vec<ChannelPlan>> {
    let channels = &subject.ome.as_ref()?.channels;
    let none_active = !channels.iter().any(|channel| channel.is_active);
    let shown = |(at, _): &(u64, _)| *at < length;
    let shown: Vec<_> =
        (0..).zip(channels).filter(shown).filter(|(_, channel)| none_active || channel.is_active).collect();
    let only = shown.len() == 1;
    let plan = |(turn, (at, channel)): (usize, &(u64, &ChannelSummary))| {
        let own = channel.color.as_deref().and_then(Color::parse);
        (Some(*at), own.unwrap_or_else(|| channel_color(turn, only)), None)
    };
    (!shown.is_empty()).then(|| shown.iter().enumerate().map(plan).collect())
}

/// The colour of a channel that has none of its own.
fn channel_color(turn: usize, only: bool) -> Color {
    Color::opaque(if only { 0xff_ffff } else { CHANNEL_COLORS[turn % CHANNEL_COLORS.len()] })
}

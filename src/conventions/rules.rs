//! Warnings about layouts that read or view badly, and about broken rules of OME-Zarr.

use super::facts::{ArrayFacts, is_integer, product};
use super::level::SummaryLevel;
use super::ome::OmeImage;
use super::plane::DimensionRole;
use super::warning::{LayoutWarning, WayOut};

/// An array of one level that has more bytes is slow to view.
const LARGE_ARRAY_BYTES: u64 = 1_000_000_000;
/// A volume or plane of one level with fewer elements is fast to view, whatever its number of times and channels.
const SMALL_VOLUME: u64 = 1 << 24;
/// A chunk that has more decoded bytes is slow to read in part.
const LARGE_CHUNK_BYTES: u64 = 10_000_000;
/// A chunk that has fewer decoded bytes costs more to find than to read.
const TINY_CHUNK_BYTES: u64 = 4096;
/// An array of fewer chunks is fast to read, however small they are.
const MANY_CHUNKS: u64 = 10_000;
/// Most levels that one warning names.
const MAX_NAMED: usize = 5;

/// Warnings about the chunks of an array.
pub(super) fn of_chunks(array: &ArrayFacts) -> Option<LayoutWarning> {
    let (bytes, chunks) = (array.chunk_bytes()?, array.chunks()?);
    if bytes > LARGE_CHUNK_BYTES && chunks > 0 {
        let detail = format!("each chunk has {bytes} bytes, which are decoded to read any part of it");
        return Some(LayoutWarning::new("large-chunks", detail).with(WayOut::Rechunk));
    }
    if bytes < TINY_CHUNK_BYTES && chunks > MANY_CHUNKS {
        let detail = format!("there are {chunks} chunks of {bytes} bytes each");
        return Some(LayoutWarning::new("tiny-chunks", detail).with(WayOut::Rechunk));
    }
    None
}

/// The warning about a large array without coarser levels.
pub(super) fn of_single_level(array: &ArrayFacts, names: &[Option<String>]) -> Option<LayoutWarning> {
    let bytes = array.bytes();
    let shape = &array.metadata.shape;
    let is_stack = |axis: usize| {
        let role = names.get(axis).and_then(|name| DimensionRole::of(name.as_deref()?));
        matches!(role, Some(DimensionRole::Times | DimensionRole::Channels))
    };
    let volume: Vec<u64> =
        shape.iter().enumerate().filter(|(axis, _)| !is_stack(*axis)).map(|(_, &length)| length).collect();
    if bytes <= LARGE_ARRAY_BYTES || product(&volume) <= SMALL_VOLUME || !array.has_picture() {
        return None;
    }
    let detail = format!("there is one level, of {bytes} bytes: a view of all of it reads all of it");
    Some(LayoutWarning::new("single-level", detail).with(WayOut::Pyramid))
}

/// The warning about dimensions without names.
pub(super) fn of_names(names: &[Option<String>]) -> Option<LayoutWarning> {
    let is_unnamed = names.len() >= 2 && names.iter().all(Option::is_none);
    let detail = "the dimensions have no names, so a viewer guesses what they are";
    is_unnamed.then(|| LayoutWarning::new("no-dimension-names", detail))
}

/// The warning about levels that do not exist.
pub(super) fn of_missing_levels(levels: &[SummaryLevel]) -> Option<LayoutWarning> {
    let missing: Vec<String> = levels
        .iter()
        .filter(|level| level.exists == Some(false))
        .map(|level| format!("`{}`", level.path))
        .collect();
    let more = if missing.len() > MAX_NAMED { " and more" } else { "" };
    let named = missing.get(..MAX_NAMED).unwrap_or(&missing).join(", ");
    let detail = format!("the attributes declare levels that do not exist: {named}{more}");
    (!missing.is_empty()).then(|| LayoutWarning::new("level-missing", detail))
}

/// Warnings about broken rules of OME-Zarr; `arrays` has the levels that could be read.
pub(super) fn of_image(image: &OmeImage, arrays: &[(&str, &ArrayFacts)]) -> Vec<LayoutWarning> {
    let rules: [Option<LayoutWarning>; 5] = [
        axis_order(image),
        axis_count(image),
        level_rank(image, arrays),
        level_order(arrays),
        level_types(image, arrays),
    ];
    rules.into_iter().flatten().collect()
}

/// Axes are ordered: time, then channels or others, then space (OME-Zarr 0.4, "multiscales").
fn axis_order(image: &OmeImage) -> Option<LayoutWarning> {
    let rank = |kind: &str| match kind {
        "time" => 0,
        "space" => 2,
        _ => 1,
    };
    let ranks: Vec<u8> = image.axes.iter().filter_map(|axis| axis.kind.as_deref().map(rank)).collect();
    let detail = "the axes are not in the order time, channel, space";
    (!ranks.is_sorted()).then(|| LayoutWarning::new("ome-axis-order", detail))
}

/// There are two to five axes with different names, of which two or three are of space.
fn axis_count(image: &OmeImage) -> Option<LayoutWarning> {
    let count = image.axes.len();
    if count == 0 {
        return Some(LayoutWarning::new("ome-axes", "the image declares no axes"));
    }
    if !(2..=5).contains(&count) {
        return Some(LayoutWarning::new(
            "ome-axes",
            format!("an image has 2 to 5 axes, and this one {count}"),
        ));
    }
    let space = image.axes.iter().filter(|axis| axis.kind.as_deref() == Some("space")).count();
    if image.axes.iter().any(|axis| axis.kind.is_some()) && !(2..=3).contains(&space) {
        let detail = format!("an image has 2 or 3 axes of the type `space`, and this one {space}");
        return Some(LayoutWarning::new("ome-axes", detail));
    }
    let names: Vec<_> = image.axes.iter().filter_map(|axis| axis.name.as_ref()).collect();
    let is_repeated =
        names.iter().enumerate().any(|(at, name)| names.iter().take(at).any(|other| other == name));
    is_repeated.then(|| LayoutWarning::new("ome-axes", "two axes have the same name"))
}

/// Each level has as many dimensions as there are axes.
fn level_rank(image: &OmeImage, arrays: &[(&str, &ArrayFacts)]) -> Option<LayoutWarning> {
    let axes = image.axes.len();
    let (path, array) = arrays.iter().find(|(_, array)| array.metadata.shape.len() != axes)?;
    let rank = array.metadata.shape.len();
    let detail = format!("the level `{path}` has {rank} dimensions, and the image has {axes} axes");
    (axes > 0).then(|| LayoutWarning::new("ome-level-rank", detail))
}

/// Levels are listed from the largest to the smallest.
fn level_order(arrays: &[(&str, &ArrayFacts)]) -> Option<LayoutWarning> {
    let is_larger = |pair: &&[(&str, &ArrayFacts)]| match pair {
        [(_, first), (_, second)] => product(&second.metadata.shape) > product(&first.metadata.shape),
        _ => false,
    };
    let (path, _) = arrays.windows(2).find(is_larger)?.last()?;
    let detail = format!("the level `{path}` is larger than the one listed before it");
    Some(LayoutWarning::new("ome-level-order", detail))
}

/// All levels have one data type, and labels are integers.
fn level_types(image: &OmeImage, arrays: &[(&str, &ArrayFacts)]) -> Option<LayoutWarning> {
    let (_, first) = arrays.first()?;
    let first = &first.metadata.data_type;
    if image.is_labels && !is_integer(first) {
        let detail = format!(
            "labels are integers, and these have the data type `{}`",
            super::values::cut(&first.name())
        );
        return Some(LayoutWarning::new("ome-data-types", detail));
    }
    let (path, _) = arrays.iter().find(|(_, array)| array.metadata.data_type != *first)?;
    let detail = format!("the level `{path}` has another data type than the first level");
    Some(LayoutWarning::new("ome-data-types", detail))
}

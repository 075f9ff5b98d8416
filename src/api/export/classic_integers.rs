//! Integers that CDF-2 has no type for, in a file that needs CDF-5 for nothing else.
//!
//! Many programs read CDF-2 alone, and times and the variable of a grid mapping are often integers of 64 bits whose values are
//! small. Those of at most one dimension, and the bounds of coordinates, are read before the header: if `Int` has all values of
//! an array, else if `Double` has them exactly, the array has that type in the file. If one of them fits in neither, or together
//! they have too many elements to be read for it, all of them keep their types.

use std::sync::Arc;

use super::error::ExportError;
use super::fitting::first_fitting;
use super::sources::{ExportSource, ExportSources};
use crate::array::{ReadContext, Snapshot};
use crate::render::dataset::{ElementEncoding, is_text};
use crate::services::engine::ArrayEngine;

/// The most elements that are read before the header of a file.
const MAX_ELEMENTS: u128 = 1 << 20;
/// The attribute that names the variable with the bounds of the cells of a coordinate (CF 1.12, section 7.1).
const BOUNDS: &str = "bounds";

/// How the elements of each array are written in a NetCDF file; `None` for texts.
///
/// # Errors
/// Failures of reading.
pub(super) async fn encodings(
    engine: &ArrayEngine,
    sources: &ExportSources,
    snapshots: &[Snapshot],
    trace: &Arc<ReadContext>,
) -> Result<Vec<Option<ElementEncoding>>, ExportError> {
    let sources = &sources.sources;
    let own: Vec<Option<ElementEncoding>> =
        sources.iter().map(|source| ElementEncoding::netcdf(&source.metadata().data_type)).collect();
    let wide = wide(sources);
    let is_other_classic = |(place, encoding): (usize, &Option<ElementEncoding>)| {
        wide.contains(&place) || encoding.as_ref().is_none_or(|encoding| encoding.external().is_classic())
    };
    let elements = wide.iter().filter_map(|&place| sources.get(place));
    let elements = elements.map(|source| source.subset.elements()).fold(0, u128::saturating_add);
    if elements > MAX_ELEMENTS || !own.iter().enumerate().all(is_other_classic) {
        return Ok(own);
    }
    let mut narrowed = own.clone();
    for place in wide {
        let (Some(source), Some(snapshot)) = (sources.get(place), snapshots.get(place)) else { continue };
        let candidates = ElementEncoding::netcdf_classic(&source.metadata().data_type);
        let found = first_fitting(engine, snapshot.clone(), candidates, trace).await?;
        match (found, narrowed.get_mut(place)) {
            (Some(encoding), Some(slot)) => *slot = Some(encoding),
            _ => return Ok(own),
        }
    }
    Ok(narrowed)
}

/// The places of the arrays that may be read for their types.
fn wide(sources: &[ExportSource]) -> Vec<usize> {
    let bounds: Vec<String> = sources.iter().filter_map(bounds_of).collect();
    let is_wide = |source: &ExportSource| {
        let metadata = source.metadata();
        let is_small = metadata.shape.len() <= 1 || bounds.contains(&source.name);
        let has_classic = !ElementEncoding::netcdf_classic(&metadata.data_type).is_empty();
        is_small && has_classic && !is_text(&metadata.data_type)
    };
    (0..).zip(sources).filter(|(_, source)| is_wide(source)).map(|(place, _)| place).collect()
}

fn bounds_of(source: &ExportSource) -> Option<String> {
    source.metadata().attributes.get_short(BOUNDS)?.as_str().map(str::to_owned)
}

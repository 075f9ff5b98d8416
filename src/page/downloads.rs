//! Links to the elements of a view, in each format that has them.
//!
//! What writes a response decides whether a format has the elements.

use maud::{Markup, html};

use super::state::join;
use super::view::Shown;
use super::viewed_array::ViewedArray;
use crate::metadata::Endianness;
use crate::render::dataset::{ElementEncoding, is_text};
use crate::render::{Conversion, FORMATS, FormatOptions, NanMode, ResultSchema, has_parquet_type, writer};

/// Formats that have the values that the picture shows.
const OF_VALUES: [&str; 4] = ["npy", "csv", "json", "arrow"];

/// Links to the elements of the view.
pub(super) fn downloads(viewed: &ViewedArray<'_>) -> Markup {
    let plane = map_plane(viewed);
    let contents = contents(viewed);
    let has = |format: &&str| contents.as_ref().is_some_and(|contents| is_written(contents, format));
    html! {
        span.downloads {
            "This slice as "
            @for (at, format) in OF_VALUES.into_iter().filter(has).enumerate() {
                (if at == 0 { "" } else { ", " })
                a href=(link(viewed, format, &viewed.words_of_elements())) data-format=(format) { (format) }
            }
            // What these have is as it is stored, with what says how to decode it.
            @if has_netcdf(viewed) {
                ", "
                a href=(link(viewed, "nc", &[])) data-format="nc" data-stored { "NetCDF" }
            }
            @if let Some([rows, columns]) = plane {
                span data-plane=(format!("{rows},{columns}")) {
                    ", "
                    a href=(link(viewed, "tiff", &[])) data-format="tiff" data-stored { "GeoTIFF" }
                }
            }
            // A table has whole elements.
            @if viewed.has_tables && viewed.state.get("fields").is_none() {
                "; with its labels as "
                @if has_parquet(viewed) {
                    a href=(table(viewed, "parquet")) data-format="parquet" data-coords="1" { "Parquet" }
                    ", "
                }
                a href=(table(viewed, "csv")) data-format="csv" data-coords="1" { "CSV" }
            }
        }
    }
}

/// The path of the slice in a format, with further words.
fn link(viewed: &ViewedArray<'_>, format: &str, words: &[(&'static str, String)]) -> String {
    let slice = viewed.view.slice(&viewed.facts.shape);
    let words = words.iter().map(|(name, value)| (*name, value.as_str()));
    let query = [("slice", slice.as_str())].into_iter().chain(words).chain([("format", format)]);
    join(&viewed.links.data, query)
}

/// The path of the slice as a long table: a row for each element.
fn table(viewed: &ViewedArray<'_>, format: &str) -> String {
    let mut words = viewed.words_of_elements();
    words.push(("coords", "1".to_owned()));
    link(viewed, format, &words)
}

/// The type and the shape of the elements of the view, as a response has them; `None` if they cannot be read.
fn contents(viewed: &ViewedArray<'_>) -> Option<ResultSchema> {
    let stored = &viewed.array?.metadata().data_type;
    let conversion = match viewed.state.get("fields") {
        Some(names) => Conversion::fields(stored, names, Endianness::Little).ok()?,
        None => Conversion::whole(stored, Endianness::Little),
    };
    let kept = viewed.view.subset.iter().filter(|range| range.keep).map(|range| range.count);
    let shape = kept.chain(conversion.inner_shape().iter().copied()).collect();
    let data_type = conversion.data_type().clone();
    Some(ResultSchema { data_type, shape, dimension_names: None, heading: None })
}

/// Whether a response in a format can have these elements.
fn is_written(contents: &ResultSchema, format: &str) -> bool {
    let format = FORMATS.iter().copied().find(|known| known.name == format);
    let options =
        format.map(|format| FormatOptions { format, endian: Endianness::Little, nan: NanMode::String });
    options.is_some_and(|options| writer(options, contents, u64::MAX).is_ok())
}

/// Whether a response in a format can have the elements of the view.
pub(super) fn has_format(viewed: &ViewedArray<'_>, format: &str) -> bool {
    contents(viewed).is_some_and(|contents| is_written(&contents, format))
}

/// Whether a Parquet file can have the elements and their labels.
fn has_parquet(viewed: &ViewedArray<'_>) -> bool {
    let labels = viewed.coordinates.iter().map(|one| &one.data_type);
    std::iter::once(&viewed.facts.data_type).chain(labels).all(has_parquet_type)
}

/// Whether a NetCDF file can have the elements. It has no fields of structs.
fn has_netcdf(viewed: &ViewedArray<'_>) -> bool {
    let data_type = &viewed.facts.data_type;
    viewed.state.get("fields").is_none()
        && (ElementEncoding::netcdf(data_type).is_some() || is_text(data_type))
}

/// The dimensions of the rows and the columns, if the view is a plane of numbers on a map, as a GeoTIFF file has it.
fn map_plane(viewed: &ViewedArray<'_>) -> Option<[usize; 2]> {
    let Shown::Plane { rows, columns, colors: None } = viewed.view.shown else { return None };
    let stored = [rows.min(columns), rows.max(columns)];
    let axis = |dim: usize| viewed.coordinates.iter().find(|one| one.dim == dim)?.map_axis;
    let is_map = stored.map(axis) == [Some("Y"), Some("X")];
    let is_empty = viewed.view.subset.iter().any(|range| range.count == 0);
    let has_type = ElementEncoding::netcdf(&viewed.facts.data_type).is_some();
    (is_map && !is_empty && has_type && viewed.state.get("fields").is_none()).then_some(stored)
}

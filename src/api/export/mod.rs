//! What responses with several arrays have in common: NetCDF and GeoTIFF files, and DAP.
//!
//! A response is made of [`ExportSources`]: an array or the arrays of a group, with the coordinates of their dimensions, each
//! over its selection. Its bytes are a list of parts of known length ([`ExportBody`]): texts that were written beforehand, and
//! elements that are read and encoded as they are sent. Length and entity tag are therefore known before an element is read.
//! What the caller may not read is as if it was not there.

pub(crate) mod body;
mod classic_integers;
mod decoded_variable;
mod empty_dimensions;
pub(crate) mod error;
pub(crate) mod fitting;
pub(crate) mod geotiff;
mod group_arrays;
pub(crate) mod limits;
mod named_variables;
pub(crate) mod netcdf;
mod plane;
mod plane_crs;
pub(crate) mod respond;
pub(crate) mod response;
pub(crate) mod source_finder;
pub(crate) mod sources;
pub(crate) mod texts;

//! A dataset as other formats know it: named dimensions, variables of their types, and typed attributes.
//!
//! NetCDF files and DAP responses describe the same things in different bytes. What they share is here: the type that the
//! elements of an array become ([`ElementEncoding`]), attributes as typed values ([`ExportAttribute`]), `_FillValue` by the
//! rule of xarray, and which dimensions variables share ([`ExportedDataset`]). Scale and offset are not applied: packed values
//! stay packed, and their attributes say so.

mod attribute;
mod description;
mod element_encoding;
mod error;
mod external_type;
mod fill;
mod texts;

pub use attribute::{AttributeValue, ExportAttribute};
pub use description::{
    ExportedDataset, ExportedDimension, ExportedVariable, VariableEncoding, VariableSource,
};
pub use element_encoding::ElementEncoding;
pub use error::DatasetError;
pub use external_type::ExternalType;
pub use texts::{ExportedTexts, is_text};

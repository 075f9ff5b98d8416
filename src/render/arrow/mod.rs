//! Elements as a stream of Arrow record batches (Arrow columnar format, "IPC Streaming Format").
//!
//! The outermost dimension becomes the rows; rank 0 is one row. The elements of a row are nested lists of fixed size. A
//! row of numbers is one such list, marked as a tensor (Arrow canonical extension types, "Fixed shape tensor"). The
//! only column is called `values`; structs of rank 0 and 1 have a column for each field instead. Rows without elements
//! are rows of empty lists. The schema's metadata holds the rest as JSON: `zarr.shape`, `zarr.dimension_names`,
//! `zarr.data_type`. The module `types` maps data types to Arrow types.

mod columns;
mod table;
#[cfg(test)]
mod tests;
mod types;
mod writer;

#[cfg(feature = "vectors")]
pub(super) use columns::fixed_size_column;
pub(super) use table::{ArrowTable, table_arrays, table_field};
pub(super) use writer::FORMAT;

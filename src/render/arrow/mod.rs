//! Elements as a stream of Arrow record batches (Arrow columnar format, "IPC Streaming Format").
//!
//! The outermost dimension is the rows; a row's elements are nested lists of fixed size, or, of numbers, one such list
//! that is a tensor (Arrow canonical extension types, "Fixed shape tensor"). Rank 0 is one row. The one column is called
//! `values`; structs of rank 0 and 1 have a column for each field instead. Rows without elements are rows of empty lists.
//! What rows and columns do not tell stands in the schema's metadata as JSON: `zarr.shape`, `zarr.dimension_names`,
//! `zarr.data_type`. Which type becomes which is the business of `types`.

mod columns;
#[cfg(test)]
mod tests;
mod types;
mod writer;

pub(super) use columns::fixed;
pub(super) use types::bytes_estimate;
pub(super) use writer::ArrowWriter;

//! Tables as Parquet files (Apache Parquet 2.11): a group of rows for each piece that is written, a page for each column of it.
//!
//! Pages are plain values in zstd, and the footer is put together last, so a file is written in as little memory as a group of rows
//! takes. The crate `parquet` would bring encodings, statistics and a reader, none of which a table needs.

mod described_schema;
mod format;
mod page;
mod table;
mod thrift_writer;
mod times;
mod types;

pub(super) use format::FORMAT;
pub(super) use table::ParquetTable;
pub use table::has_parquet_type;

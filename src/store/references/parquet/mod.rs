//! Directories of references in Parquet, as kerchunk and `VirtualiZarr` write them.
//!
//! `.zmetadata` has the documents of all nodes, and the number of references in a file. The references of an array are
//! in `ARRAY/refs.N.parq`, in the order of its chunks, last dimension fastest: columns `path`, `offset`, `size` and
//! `raw`. A file is read when one of its references is first needed. Of Parquet, `head` and `pages` read what pandas
//! writes there, by fastparquet or pyarrow: flat columns, one group of rows, zstd. The crate `parquet` reads the rest
//! too, but its buffers have the sizes that the file states.

mod fault;
mod grid;
mod head;
mod memory;
mod metadata;
mod pages;
mod parquet_store;
mod records;
mod thrift;

pub use parquet_store::ParquetReferenceStore;
pub use records::check_records;

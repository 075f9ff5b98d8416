//! A store whose values are the entries of a zip file (PKWARE APPNOTE 6.3.10), which lies in another store.
//!
//! What is asked of it becomes byte ranges of that file, all of one version of it: ranges of a stored entry go
//! through as they are, a deflated one is decoded as it is sent, from its beginning to its end, in little memory. The
//! central directory is read once for each version of the file, and held within a budget. It does not write, nor read encrypted files, files in several parts, or other compressions. The
//! CRC-32 of a stored entry is not compared, since mostly parts of it are read; that of a deflated one is.

mod budget;
mod directory;
mod directory_cache;
mod error;
mod inflating;
mod load;
mod read;
mod record;
mod zip_store;

#[cfg(test)]
mod tests;

pub use budget::ZipBudget;
pub use error::ZipError;
pub use zip_store::ZipStore;

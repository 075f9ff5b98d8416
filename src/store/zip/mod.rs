//! A store whose values are the entries of a zip file (PKWARE APPNOTE 6.3.10), which lies in another store.
//!
//! Reads become byte ranges of that file, all of one version of it: a range of a stored entry is passed on as it is,
//! and a deflated entry is decoded as it is sent, from its beginning to its end, in little memory. The central
//! directory is read once for each version of the file, and held within a budget. The store does not write, nor read
//! encrypted files, files in several parts, or other compressions. It compares the CRC-32 of a deflated entry, but not
//! that of a stored one, of which mostly parts are read.

mod directory;
mod error;
mod inflating;
mod load;
mod read;
mod record;
mod zip_store;

#[cfg(test)]
mod tests;

pub use error::ZipError;
pub use zip_store::ZipStore;

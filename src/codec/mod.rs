//! Bytes ⇄ elements: the codecs and the chain of them, bound once to what they work on.
//!
//! Zarr core 3.1, "Codecs". One file per codec, named as in the specification. A document's list of codecs is
//! bound by [`CodecChain::bind`] to data type, chunk shape and fill value; every complaint about the
//! configuration is raised there. What is left to go wrong afterwards is the bytes, and they are hostile:
//! every step knows how many bytes it must make and stops there, and nothing is allocated for the sake of a
//! number read from them.
//!
//! A new codec is a file of its own and a line in `registry`.

mod adler32;
mod astype;
mod base64;
mod bitround;
mod blosc;
mod bounded_writer;
mod buffer;
mod bytes;
mod bz2;
mod cast;
mod cast_value;
mod categorize;
mod chain;
mod checksum;
mod conditional;
mod config;
mod content;
mod crc32;
mod crc32c;
mod delta;
mod error;
mod fixedscaleoffset;
mod fletcher32;
mod gzip;
mod inflate;
mod inflater;
mod jenkins_lookup3;
mod json2;
mod lz4;
mod lzma;
mod n5_default;
mod number;
mod numcodecs_packbits;
mod packbits;
mod pcodec;
mod quantize;
mod registry;
mod representation;
mod reshape;
mod rounding;
mod scale_offset;
pub mod sharding_indexed;
mod shuffle;
mod strings;
mod transpose;
mod vlen;
mod zfp;
mod zlib;
mod zstd;

#[cfg(test)]
mod tests;

pub use self::crc32c::append as crc32c_append;
pub use cast::Cast;
pub use chain::{CodecChain, CodecLimits};
pub use content::ContentCoding;
pub use error::CodecError;
pub use inflater::{Inflated, Inflater};

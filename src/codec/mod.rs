//! Codecs: bytes ⇄ elements. Each codec is bound once to the data it works on; [`CodecChain`] runs them.
//!
//! Zarr core 3.1, "Codecs". A chain is any number of array→array codecs, one array→bytes codec, and any number of
//! bytes→bytes codecs. [`CodecChain::bind`] binds a document's list of codecs to data type, chunk shape and fill value;
//! every error in a configuration is raised there. Afterwards only the bytes can be wrong, and they are treated as hostile:
//! every step knows the size of its output and stops there, and no number read from the bytes sizes an allocation.
//!
//! # Files, from the bottom up
//!
//! | file | content |
//! |---|---|
//! | `support/` | buffers whose allocation may fail, the bounded writer, sizes, configurations, numbers |
//! | `contract` | the traits of bound codecs, one for each stage |
//! | `chain` | [`CodecChain`] and [`Sharded`], the view of a shard that readers of parts use |
//! | `factory` | `Codec`: a codec's names and its bind function; `BindContext`: the data it is bound to |
//! | `array_to_array/`, `array_to_bytes/`, `bytes_to_bytes/` | a file for each codec, and each stage's table |
//! | `preset` | compressors by one word, such as `zstd-3` |
//! | `registry` | lookup by name in the three tables |
//! | `bind` | binds a list of codecs to a chain |
//!
//! A codec with codecs inside (`sharding_indexed`, `conditional`, `n5_default`) binds them by `BindContext::inner`. So no
//! codec names the registry, and no files import each other in a circle.
//!
//! # How to add a codec: `gzip`, for example
//!
//! 1. **The file.** `bytes_to_bytes/gzip.rs` has all that is known of the codec. It begins with its names and its stage:
//!
//!    ```text
//!    pub(crate) const CODEC: Codec = Codec {
//!        names: &["gzip", "numcodecs.gzip"],        // v3: the standard name, then aliases of the same bytes
//!        v2: &[V2Codec::new("gzip", "gzip")],       // v2 `id` (in v1: `compression`), and the name in the model
//!        factory: CodecFactory::BytesToBytes(bind), // the stage, and how the codec is bound
//!    };
//!    ```
//!
//!    A codec that v2 documents do not have says `v2: &[]`. [`V2Codec`](crate::metadata::V2Codec) has fields for a v1
//!    option that is not `level`, for codecs of objects, and for filters that change the byte order.
//! 2. **Binding.** `bind` reads the configuration with `CodecConfig`, whose accessors name the codec and the member in their
//!    errors, and returns the bound codec. `BindContext` has the array before the codec, its size in bytes, and the limits.
//!    An array→array codec also returns the array it encodes to.
//! 3. **The work.** `impl BytesToBytes for Gzip`: `decode` is given the size of its output and must return an error rather
//!    than more or fewer bytes (`BoundedWriter` for streams, `Size::check` at the end); `encode` is the inverse;
//!    `encoded_size` bounds what any legal encoder may produce. Buffers come from `support::buffer`, so that a failed
//!    allocation is an error.
//! 4. **The table.** `bytes_to_bytes/mod.rs` gets `mod gzip;` and `gzip::CODEC,`. Lookup in all versions of the format, the
//!    stage of v2 filters, and the order in a chain follow from it. They are two lines because `cargo fmt` finds
//!    a file only by a `mod` line outside of a macro. Where one of the two is missing, the compiler says so.
//! 5. **Tests.** A row in `tests/it/supported.rs` (which also writes the table of the documentation), values from another
//!    implementation in `codec/tests`, and an entry in `every_compressor` there, for tests with damaged and oversized input.
//!
//! Two cases need a file more. A new dependency needs its line in `Cargo.toml`, and in `tests/it/tidy` the module that may
//! name it. A codec whose v3 configuration has members that v2 documents spell in another way, or that writers leave out,
//! is completed when a document is written: `metadata/codec_spelling.rs`.

mod array_to_array;
mod array_to_bytes;
mod bind;
mod bytes_to_bytes;
mod cast;
mod chain;
mod chain_id;
mod content;
mod contract;
mod error;
mod factory;
mod inflater;
mod limits;
mod preset;
mod registry;
mod shard_index;
mod support;

#[cfg(test)]
mod tests;

pub use bytes_to_bytes::crc32::{RunningCrc32, checksum as crc32};
pub use bytes_to_bytes::crc32c::append as crc32c_append;
pub use bytes_to_bytes::zstd::{decode_zstd, decode_zstd_within};
pub use cast::Cast;
pub use chain::{CodecChain, Sharded};
pub use content::ContentCoding;
pub use error::CodecError;
pub use inflater::{InflateProgress, Inflater};
pub use limits::CodecLimits;
pub use preset::{CodecPreset, v2_filter};
pub use registry::v2_codec;
pub use shard_index::{IndexLocation, ShardIndex};

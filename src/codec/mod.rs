//! Bytes ⇄ elements: the codecs and the chain of them, bound once to what they work on.
//!
//! Zarr core 3.1, "Codecs". One file per codec, named as in the specification. A document's list of codecs is
//! bound by [`CodecChain::bind`] to data type, chunk shape and fill value; every complaint about the configuration
//! is raised there. What is left to go wrong afterwards is the bytes, and they are hostile: every step knows how
//! many bytes it must make and stops there, and nothing is allocated for the sake of a number read from them.

mod chain;
mod error;
pub mod sharding_indexed;

pub use chain::{CodecChain, CodecLimits};
pub use error::CodecError;

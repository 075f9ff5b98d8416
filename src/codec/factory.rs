//! [`Codec`]: what a codec's file says about it, namely its names, its stage, and how it is bound.

use std::fmt;

use super::chain::{BoundArrayToBytes, CodecChain};
use super::contract::{ArrayToArray, BytesToBytes};
use super::error::CodecError;
use super::limits::CodecLimits;
use super::support::config::CodecConfig;
use super::support::representation::{Representation, Size};
use crate::metadata::{CodecMetadata, CodecStage, V2Codec};

/// A codec that this crate implements.
pub(crate) struct Codec {
    /// The names in v3 documents: the standard one first, then aliases with the same encoded bytes.
    pub(crate) names: &'static [&'static str],
    /// The names in v2 documents (`id`) and v1 documents (`compression`); empty if those versions do not have the codec.
    pub(crate) v2: &'static [V2Codec],
    /// How the codec is bound, which also says its stage.
    pub(crate) factory: CodecFactory,
}

/// The bind function of a codec, by stage.
#[derive(Clone, Copy)]
pub(crate) enum CodecFactory {
    /// Array to array; binding also returns the representation of the encoded array.
    ArrayToArray(BindFn<BoundArrayToArray>),
    /// Array to bytes.
    ArrayToBytes(BindFn<BoundArrayToBytes>),
    /// Bytes to bytes.
    BytesToBytes(BindFn<Box<dyn BytesToBytes>>),
}

impl CodecFactory {
    /// The stage of the codec in a chain.
    pub(crate) const fn stage(self) -> CodecStage {
        match self {
            Self::ArrayToArray(_) => CodecStage::ArrayToArray,
            Self::ArrayToBytes(_) => CodecStage::ArrayToBytes,
            Self::BytesToBytes(_) => CodecStage::BytesToBytes,
        }
    }
}

/// Binds a configuration to the data that the codec is given when it encodes.
pub(crate) type BindFn<T> = fn(&CodecConfig, &BindContext) -> Result<T, CodecError>;

/// A bound array→array codec, and the representation of the encoded array.
pub(crate) type BoundArrayToArray = (Box<dyn ArrayToArray>, Representation);

/// The data a codec is bound to, and the means to bind codecs inside it.
#[derive(Clone, Copy)]
pub(crate) struct BindContext<'a> {
    /// The array that the codec encodes; for a bytes→bytes codec, the array that its bytes were encoded from.
    pub(crate) input: &'a Representation,
    /// Size of the codec's input in bytes.
    pub(crate) size: Size,
    /// Limits of the chain.
    pub(crate) limits: &'a CodecLimits,
    /// Number of shards around this chain.
    pub(crate) depth: usize,
    /// Binds the codecs inside this one.
    pub(crate) inner: &'static dyn BindInner,
}

/// Binds the codecs in the configuration of another codec, so that no codec has to name the table of all codecs.
pub(crate) trait BindInner: fmt::Debug + Sync {
    /// The codec with this v3 name.
    fn codec(&self, name: &str) -> Option<&'static Codec>;
    /// Binds a chain that encodes `chunk` inside `depth` shards.
    fn chain(
        &self,
        codecs: &[CodecMetadata],
        chunk: Representation,
        limits: &CodecLimits,
        depth: usize,
    ) -> Result<CodecChain, CodecError>;
}

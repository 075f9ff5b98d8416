//! The data between two codecs of a chain: an array ([`Representation`]) or bytes of a known [`Size`].
//!
//! Zarr core 3.1, "Codecs": both are known before any chunk is read.

use super::number;
use crate::codec::CodecError;
use crate::metadata::{DataType, FillValue};

/// An array between two codecs.
#[derive(Clone, Debug)]
pub(crate) struct Representation {
    /// Elements along each dimension.
    pub(crate) shape: Vec<u64>,
    /// The type of the elements.
    pub(crate) data_type: DataType,
    /// The element of which absent inner chunks consist.
    pub(crate) fill_value: FillValue,
}

impl Representation {
    /// Bytes of the array in canonical form; `None` if more than a `u64` can count.
    pub(crate) fn bytes(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        let item = self.data_type.element_bytes() as u64;
        self.shape.iter().try_fold(item, |bytes, &edge| bytes.checked_mul(edge))
    }

    /// The array with its elements read as the type `view` and converted to the type `to`. The fill value is converted in
    /// the same way.
    pub(crate) fn retyped(&self, view: &DataType, to: &DataType) -> Result<Self, CodecError> {
        let fill_value = number::convert(self.fill_value.as_bytes(), view, to, |_block| {})?;
        let fill_value = FillValue::from_bytes(&fill_value);
        Ok(Self { shape: self.shape.clone(), data_type: to.clone(), fill_value })
    }
}

/// The number of bytes between two codecs, as far as it is known before a chunk is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Exactly this many; otherwise the chunk is corrupt.
    Exact(u64),
    /// No legal encoder produces more. A decoder stops there.
    AtMost(u64),
    /// Legal encoders may produce any number, and more than this are not decoded: elements of variable length.
    Limited(u64),
}

/// Allowance for a compressor's framing.
const FRAMING_BYTES: u64 = 1 << 10;

impl Size {
    /// The largest possible number of bytes.
    pub(crate) fn max(self) -> u64 {
        match self {
            Self::Exact(bytes) | Self::AtMost(bytes) | Self::Limited(bytes) => bytes,
        }
    }

    /// The size with its bound lowered to `most`. An exact size does not change.
    pub(crate) fn capped(self, most: u64) -> Self {
        match self {
            Self::Exact(_) => self,
            Self::AtMost(_) | Self::Limited(_) => self.map(|bytes| bytes.min(most)),
        }
    }

    /// The size where fewer bytes are possible too.
    pub(crate) fn at_most(self) -> Self {
        match self {
            Self::Exact(bytes) => Self::AtMost(bytes),
            Self::AtMost(_) | Self::Limited(_) => self,
        }
    }

    /// The size with its number of bytes changed.
    pub(crate) fn map(self, change: impl FnOnce(u64) -> u64) -> Self {
        match self {
            Self::Exact(bytes) => Self::Exact(change(bytes)),
            Self::AtMost(bytes) => Self::AtMost(change(bytes)),
            Self::Limited(bytes) => Self::Limited(change(bytes)),
        }
    }

    /// The size after a fixed number of bytes is added.
    pub(crate) fn plus(self, bytes: u64) -> Self {
        self.map(|size| size.saturating_add(bytes))
    }

    /// The size after compression.
    ///
    /// Incompressible data grows: by a few bytes in a block of deflate, zstd or blosc, by more if an encoder flushes often.
    /// The first compressor of a chain may double its input. The input of those after it is compressed already; they may
    /// add a sixteenth, so that the bound of a long chain does not multiply.
    pub(crate) fn compressed(self) -> Self {
        let allowance = match self {
            Self::Exact(size) => size,
            Self::AtMost(size) | Self::Limited(size) => size / 16,
        };
        self.at_most().plus(allowance.saturating_add(FRAMING_BYTES))
    }

    /// Checks that `codec` may have decoded to this many bytes.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`] if it may not, [`CodecError::ChunkTooLarge`] over the limit.
    pub(crate) fn check(self, codec: &'static str, bytes: usize) -> Result<(), CodecError> {
        match self {
            Self::Exact(expected) if bytes as u64 != expected => {
                Err(CodecError::corrupt(codec, format!("decodes to {bytes} bytes instead of {expected}")))
            }
            Self::AtMost(limit) if bytes as u64 > limit => Err(CodecError::corrupt(
                codec,
                format!("decodes to {bytes} bytes; at most {limit} are possible"),
            )),
            Self::Limited(limit) if bytes as u64 > limit => {
                Err(CodecError::ChunkTooLarge { bytes: bytes as u64, limit })
            }
            Self::Exact(_) | Self::AtMost(_) | Self::Limited(_) => Ok(()),
        }
    }
}

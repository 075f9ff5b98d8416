//! What stands between two codecs of a chain: an array ([`Representation`]) or bytes of a known [`Size`].
//!
//! Zarr core 3.1, "Codecs": the representation types are known before any chunk is read. Nothing here reads
//! bytes.

use super::CodecError;
use super::number;
use crate::metadata::{DataType, FillValue};

/// An array between two codecs.
#[derive(Clone, Debug)]
pub(super) struct Representation {
    /// Elements along each dimension.
    pub(super) shape: Vec<u64>,
    /// The type of the elements.
    pub(super) data_type: DataType,
    /// The element that absent inner chunks consist of.
    pub(super) fill_value: FillValue,
}

impl Representation {
    /// Bytes of the array in canonical form; `None` if more than a `u64` can count.
    pub(super) fn bytes(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        let item = self.data_type.item_bytes() as u64;
        self.shape.iter().try_fold(item, |bytes, &edge| bytes.checked_mul(edge))
    }

    /// The array with elements of the type `to`, once they are taken for elements of the type `view`. The fill value
    /// is the same number.
    pub(super) fn retyped(&self, view: &DataType, to: &DataType) -> Result<Self, CodecError> {
        let fill_value = number::convert(self.fill_value.as_bytes(), view, to, |_block| {})?;
        let fill_value = FillValue::from_bytes(&fill_value);
        Ok(Self { shape: self.shape.clone(), data_type: to.clone(), fill_value })
    }
}

/// What is known about the number of bytes between two codecs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// So many, or the chunk is corrupt.
    Exact(u64),
    /// No legal encoder makes more; a decoder stops there.
    AtMost(u64),
}

/// What a compressor's framing may cost on top of its payload.
const FRAMING_BYTES: u64 = 1 << 10;

impl Size {
    /// The most bytes there may be.
    pub(super) fn max(self) -> u64 {
        match self {
            Self::Exact(bytes) | Self::AtMost(bytes) => bytes,
        }
    }

    /// The size, where there may be no more than so many bytes. A number that is known stays what it is.
    pub(super) fn within(self, most: u64) -> Self {
        match self {
            Self::Exact(bytes) => Self::Exact(bytes),
            Self::AtMost(bytes) => Self::AtMost(bytes.min(most)),
        }
    }

    /// The size after something of a fixed length is added.
    pub(super) fn plus(self, bytes: u64) -> Self {
        match self {
            Self::Exact(size) => Self::Exact(size.saturating_add(bytes)),
            Self::AtMost(size) => Self::AtMost(size.saturating_add(bytes)),
        }
    }

    /// The size after compression.
    ///
    /// Data that does not compress grows: by a few bytes in a block of deflate, zstd or blosc, by more where
    /// an encoder flushes often. The first compressor of a chain is given twice its input; those behind it
    /// see what is already compressed and are given a sixteenth, so that a chain of many does not multiply
    /// its bound.
    pub(super) fn compressed(self) -> Self {
        let allowance = match self {
            Self::Exact(size) => size,
            Self::AtMost(size) => size / 16,
        };
        Self::AtMost(self.max().saturating_add(allowance).saturating_add(FRAMING_BYTES))
    }

    /// Whether `bytes` is a size that `codec` may have decoded to.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`] if not.
    pub(super) fn check(self, codec: &'static str, bytes: usize) -> Result<(), CodecError> {
        match self {
            Self::Exact(expected) if bytes as u64 != expected => {
                Err(CodecError::corrupt(codec, format!("decodes to {bytes} bytes instead of {expected}")))
            }
            Self::AtMost(limit) if bytes as u64 > limit => {
                Err(CodecError::corrupt(codec, format!("decodes to {bytes} bytes; {limit} are possible")))
            }
            Self::Exact(_) | Self::AtMost(_) => Ok(()),
        }
    }
}

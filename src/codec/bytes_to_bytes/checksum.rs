//! [`Checksum`]: the codec of every 32-bit checksum: four bytes, little-endian, before or after the bytes.
//!
//! Zarr codecs, "crc32c"; numcodecs, "checksum32". A checksum is always verified.

use std::fmt;

use ::bytes::Bytes;

use crate::codec::CodecError;
use crate::codec::contract::BytesToBytes;
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;

const CHECKSUM_BYTES: usize = 4;

/// A checksum of 32 bits.
pub(super) trait Sum: fmt::Debug + Send + Sync {
    const NAME: &'static str;
    fn sum(&self, body: &[u8]) -> u32;
}

/// Where the checksum is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    Start,
    End,
}

impl Location {
    /// The location in a configuration, or the codec's default.
    pub(super) fn from_config(config: &CodecConfig, default: Self) -> Result<Self, CodecError> {
        match config.string("location")? {
            None => Ok(default),
            Some("start") => Ok(Self::Start),
            Some("end") => Ok(Self::End),
            Some(other) => Err(config.invalid(format!("`location` is `{other}`, neither `start` nor `end`"))),
        }
    }
}

/// The codec of a checksum.
#[derive(Debug)]
pub(super) struct Checksum<S> {
    pub(super) sum: S,
    pub(super) location: Location,
}

impl<S: Sum> BytesToBytes for Checksum<S> {
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError> {
        let parts = match self.location {
            Location::Start => encoded.split_first_chunk::<CHECKSUM_BYTES>(),
            Location::End => encoded.split_last_chunk().map(|(body, checksum)| (checksum, body)),
        };
        let Some((checksum, body)) = parts else {
            return Err(CodecError::corrupt(S::NAME, "shorter than a checksum"));
        };
        size.check(S::NAME, body.len())?;
        if self.sum.sum(body) != u32::from_le_bytes(*checksum) {
            return Err(CodecError::corrupt(S::NAME, "the checksum does not match"));
        }
        Ok(encoded.slice_ref(body))
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut encoded = buffer::with_capacity(self.encoded_size(Size::Exact(decoded.len() as u64)).max())?;
        let checksum = self.sum.sum(&decoded).to_le_bytes();
        match self.location {
            Location::Start => {
                encoded.extend_from_slice(&checksum);
                encoded.extend_from_slice(&decoded);
            }
            Location::End => {
                encoded.extend_from_slice(&decoded);
                encoded.extend_from_slice(&checksum);
            }
        }
        Ok(Bytes::from(encoded))
    }

    fn encoded_size(&self, decoded: Size) -> Size {
        decoded.plus(CHECKSUM_BYTES as u64)
    }
}

//! `base64`: bytes as base64 text with padding (numcodecs, "base64"; RFC 4648, section 4).
//!
//! Characters outside the alphabet are errors.

use ::base64::Engine as _;
use ::base64::prelude::BASE64_STANDARD;
use ::bytes::Bytes;

use crate::codec::CodecError;
use crate::codec::contract::BytesToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;
use crate::metadata::V2Codec;

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.base64"],
    v2: &[V2Codec::new("base64", "numcodecs.base64")],
    factory: CodecFactory::BytesToBytes(bind),
};

const NAME: &str = "numcodecs.base64";

#[derive(Debug)]
struct Base64;

#[expect(clippy::unnecessary_wraps, reason = "all bind functions have one signature")]
fn bind(_config: &CodecConfig, _context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    Ok(Box::new(Base64))
}

/// Length of the text of `bytes` bytes.
fn text_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(3).saturating_mul(4)
}

impl BytesToBytes for Base64 {
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError> {
        // Decoding allocates at most the length of the text, which is bounded.
        self.encoded_size(size).check(NAME, encoded.len())?;
        let decoded = BASE64_STANDARD.decode(&encoded);
        let decoded = decoded.map_err(|error| CodecError::corrupt(NAME, error.to_string()))?;
        size.check(NAME, decoded.len())?;
        Ok(Bytes::from(decoded))
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut text = buffer::zeroed(text_bytes(decoded.len() as u64))?;
        let written = BASE64_STANDARD.encode_slice(&decoded, &mut text);
        written.map_err(|error| CodecError::encode(NAME, error.to_string()))?;
        Ok(Bytes::from(text))
    }

    fn encoded_size(&self, decoded: Size) -> Size {
        decoded.map(text_bytes)
    }
}

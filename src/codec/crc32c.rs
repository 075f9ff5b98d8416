//! `crc32c`: a checksum behind the bytes (Zarr codecs, "crc32c"). It is always verified.

use ::bytes::Bytes;

use super::CodecError;
use super::buffer;
use super::config::Config;
use super::registry::{BytesToBytes, Context};
use super::representation::Size;

const NAME: &str = "crc32c";
const CHECKSUM_BYTES: usize = 4;

#[derive(Debug)]
struct Crc32c;

pub(super) fn bind(config: &Config, _context: &Context) -> Result<Box<dyn BytesToBytes>, CodecError> {
    match config.text("location")? {
        None | Some("end") => Ok(Box::new(Crc32c)),
        Some(_) => Err(config.unsupported("a checksum that is not at the end")),
    }
}

impl BytesToBytes for Crc32c {
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError> {
        let Some((body, checksum)) = encoded.split_last_chunk::<CHECKSUM_BYTES>() else {
            return Err(CodecError::corrupt(NAME, "shorter than a checksum"));
        };
        size.check(NAME, body.len())?;
        if ::crc32c::crc32c(body) != u32::from_le_bytes(*checksum) {
            return Err(CodecError::corrupt(NAME, "the checksum does not match"));
        }
        let length = body.len();
        Ok(encoded.slice(..length))
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut encoded = buffer::reserved(self.encoded_size(Size::Exact(decoded.len() as u64)).max())?;
        encoded.extend_from_slice(&decoded);
        encoded.extend_from_slice(&::crc32c::crc32c(&decoded).to_le_bytes());
        Ok(Bytes::from(encoded))
    }

    fn encoded_size(&self, decoded: Size) -> Size {
        decoded.plus(CHECKSUM_BYTES as u64)
    }
}

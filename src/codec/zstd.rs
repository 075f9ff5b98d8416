//! `zstd`: frames of RFC 8878 (Zarr extensions, "zstd"; numcodecs, "zstd").
//!
//! A value is one frame or several, skippable frames among them. The content size a frame declares is never
//! used: the output buffer has the size the chain computed, and decoding stops there. Decoding is from buffer
//! to buffer, so a frame's window is the output itself, and no window is allocated however large a frame says
//! it is. Dictionaries are not supported.

use std::cell::RefCell;

use ::bytes::Bytes;
use ::zstd::bulk::{Compressor, Decompressor};
use ::zstd::zstd_safe::CParameter;

use super::CodecError;
use super::buffer;
use super::config::Config;
use super::registry::{BytesToBytes, Context};
use super::representation::Size;

const NAME: &str = "zstd";

#[derive(Debug)]
struct Zstd {
    level: i32,
    checksum: bool,
}

thread_local! {
    /// A decompressor's tables, 160 KiB worth keeping.
    static DECOMPRESSOR: RefCell<Decompressor<'static>> = RefCell::new(Decompressor::default());
}

pub(super) fn bind(config: &Config, _context: &Context) -> Result<Box<dyn BytesToBytes>, CodecError> {
    // Beyond the library's range the library's own limits are meant: numcodecs writes such levels.
    let level = config.integer("level")?.unwrap_or(0).clamp(-131_072, 22);
    let level = i32::try_from(level).map_err(|error| config.invalid(error.to_string()))?;
    Ok(Box::new(Zstd { level, checksum: config.flag("checksum")?.unwrap_or(false) }))
}

impl BytesToBytes for Zstd {
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError> {
        if encoded.is_empty() {
            return Err(CodecError::corrupt(NAME, "there is no frame"));
        }
        let mut decoded = buffer::reserved(size.max())?;
        DECOMPRESSOR
            .with_borrow_mut(|decompressor| decompressor.decompress_to_buffer(&encoded, &mut decoded))
            .map_err(|error| CodecError::corrupt(NAME, error.to_string()))?;
        size.check(NAME, decoded.len())?;
        Ok(Bytes::from(decoded))
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        // Compressing from a buffer records the content size, which older readers need.
        let encoded = Compressor::new(self.level).and_then(|mut compressor| {
            compressor.set_parameter(CParameter::ChecksumFlag(self.checksum))?;
            compressor.compress(&decoded)
        });
        encoded.map(Bytes::from).map_err(|error| CodecError::encode(NAME, error.to_string()))
    }

    fn encoded_size(&self, decoded: Size) -> Size {
        decoded.compressed()
    }
}

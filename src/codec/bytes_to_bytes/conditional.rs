//! `conditional`: bytes→bytes codecs that are applied to some chunks only (Zarr extensions, "conditional").
//!
//! A chunk begins with one bit for each codec that says whether it was applied; the first codec's bit is the lowest bit of
//! the first byte. The bits also determine the sizes between the codecs. The encoder applies either all codecs, if that
//! makes the chunk shorter, or none: a shuffle is of use only together with the compressor after it.

use ::bytes::Bytes;
use serde_json::Value;

use crate::codec::CodecError;
use crate::codec::contract::BytesToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;

pub(crate) const CODEC: Codec =
    Codec { names: &["conditional"], v2: &[], factory: CodecFactory::BytesToBytes(bind) };

const NAME: &str = "conditional";

/// Most bits of the header.
const MAX_HEADER_BITS: u64 = 1 << 10;

#[derive(Debug)]
struct Conditional {
    codecs: Vec<Box<dyn BytesToBytes>>,
    header_bytes: usize,
    /// The most bytes between two of the codecs.
    max_between_bytes: u64,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    config.require_only(&["codecs", "header_bits"])?;
    // Checked before any inner codec is bound, so that nested lists take no longer than the longest allowed list.
    let most = context.limits.codecs;
    if config.member("codecs").is_some_and(|codecs| count(codecs) > most) {
        return Err(config.invalid(format!("has more than {most} codecs")));
    }
    let max_between_bytes = context.limits.between_bytes();
    let mut codecs = Vec::new();
    let mut size = context.size;
    for codec in config.codecs("codecs")? {
        let inner = CodecConfig::new(&codec);
        let bound = match context.inner.codec(&codec.name).map(|codec| codec.factory) {
            Some(CodecFactory::BytesToBytes(bind)) => bind(&inner, &BindContext { size, ..*context })?,
            Some(CodecFactory::ArrayToArray(_) | CodecFactory::ArrayToBytes(_)) => {
                return Err(inner
                    .invalid("is not allowed inside `conditional`, whose codecs all encode bytes to bytes"));
            }
            // Only the chunks say whether it was applied, and none has been read yet.
            None => return Err(CodecError::Unsupported(codec.name)),
        };
        // The codec may have been skipped.
        size = bound.encoded_size(size).at_most().capped(max_between_bytes);
        codecs.push(bound);
    }
    let default = codecs.len().div_ceil(8) * 8;
    let header_bits = match config.integer("header_bits")? {
        None => default as u64,
        Some(bits) => u64::try_from(bits)
            .ok()
            .filter(|bits| bits.is_multiple_of(8))
            .ok_or_else(|| config.invalid("`header_bits` must be a multiple of 8"))?,
    };
    if header_bits < codecs.len() as u64 || header_bits > MAX_HEADER_BITS {
        return Err(config
            .invalid(format!("`header_bits` must be between the number of codecs and {MAX_HEADER_BITS}")));
    }
    let header_bytes = usize::try_from(header_bits / 8).unwrap_or(default / 8);
    Ok(Box::new(Conditional { codecs, header_bytes, max_between_bytes }))
}

/// The number of codecs in a list and in the lists inside it.
fn count(codecs: &Value) -> usize {
    let codecs = codecs.as_array().map(Vec::as_slice).unwrap_or_default();
    codecs.iter().map(|codec| 1 + codec.pointer("/configuration/codecs").map_or(0, count)).sum()
}

impl Conditional {
    fn corrupt(reason: &str) -> CodecError {
        CodecError::corrupt(NAME, reason)
    }
}

impl BytesToBytes for Conditional {
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError> {
        let Some((header, _)) = encoded.split_at_checked(self.header_bytes) else {
            return Err(Self::corrupt("is shorter than its header"));
        };
        let bit = |index: usize| header.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1);
        if (self.codecs.len()..self.header_bytes * 8).any(bit) {
            return Err(Self::corrupt("the header applies a codec that does not exist"));
        }
        let applied = self.codecs.iter().enumerate().filter(|&(index, _)| bit(index));
        let mut sizes = Vec::new();
        let mut before = size;
        for (_, codec) in applied {
            sizes.push((codec, before));
            before = codec.encoded_size(before).capped(self.max_between_bytes);
        }
        let mut bytes = encoded.slice(self.header_bytes..);
        for (codec, size) in sizes.into_iter().rev() {
            bytes = codec.decode(bytes, size)?;
        }
        size.check(NAME, bytes.len())?;
        Ok(bytes)
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut bytes = decoded.clone();
        for codec in &self.codecs {
            bytes = codec.encode(bytes)?;
        }
        let all = bytes.len() < decoded.len();
        let bytes = if all { bytes } else { decoded };
        let mut encoded = buffer::with_capacity((self.header_bytes + bytes.len()) as u64)?;
        encoded.resize(self.header_bytes, 0);
        if all {
            for index in 0..self.codecs.len() {
                if let Some(byte) = encoded.get_mut(index / 8) {
                    *byte |= 1 << (index % 8);
                }
            }
        }
        encoded.extend_from_slice(&bytes);
        Ok(encoded.into())
    }

    fn inner_codecs(&self) -> usize {
        self.codecs.iter().map(|codec| 1 + codec.inner_codecs()).sum()
    }

    fn between_bytes(&self, decoded: Size) -> u64 {
        let (mut most, mut size) = (0, decoded);
        for (index, codec) in self.codecs.iter().enumerate() {
            let between = if index == 0 { 0 } else { size.max() };
            most = most.max(between).max(codec.between_bytes(size));
            size = codec.encoded_size(size).capped(self.max_between_bytes);
        }
        most
    }

    fn encoded_size(&self, decoded: Size) -> Size {
        // No codec lowers the bound, so it also holds for chunks with some codecs skipped.
        let most = self.codecs.iter().fold(decoded, |size, codec| codec.encoded_size(size));
        match (most.plus(self.header_bytes as u64), self.codecs.is_empty()) {
            (exact, true) => exact,
            (most, false) => most.at_most(),
        }
    }
}

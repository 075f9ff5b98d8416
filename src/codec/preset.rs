//! [`CodecPreset`]: compressors by one word, such as `zstd-3`, for views and for new arrays.
//!
//! A word has a codec and optionally a level. Each number has only one spelling.

use std::fmt;

use serde_json::{Value, json};

use crate::metadata::{CodecMetadata, DataType};

/// The largest element size that fits into blosc's header.
const MAX_TYPE_BYTES: usize = 255;

/// A compressor of chunks, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecPreset {
    /// No codec: the bytes of the elements.
    Raw,
    /// `zstd` of this level.
    Zstd(u8),
    /// `gzip` of this level.
    Gzip(u8),
    /// `blosc` with lz4 of this level, shuffled by the size of elements.
    BloscLz4(u8),
    /// `blosc` with zstd of this level.
    BloscZstd(u8),
}

/// The word, with its level.
impl fmt::Display for CodecPreset {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raw => out.write_str("raw"),
            Self::Zstd(level) => write!(out, "zstd-{level}"),
            Self::Gzip(level) => write!(out, "gzip-{level}"),
            Self::BloscLz4(level) => write!(out, "blosc-lz4-{level}"),
            Self::BloscZstd(level) => write!(out, "blosc-zstd-{level}"),
        }
    }
}

impl CodecPreset {
    /// Parses a word: `raw`, `zstd`, `zstd-1` to `zstd-19`, `gzip-5`, `blosc-lz4`, `blosc-zstd-5`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        /// Higher levels take a disproportionate amount of memory and time.
        const MAX_ZSTD_LEVEL: u8 = 19;
        if text == "raw" {
            return Some(Self::Raw);
        }
        let (make, default, max, level): (fn(u8) -> Self, _, _, _) =
            if let Some(level) = text.strip_prefix("blosc-lz4") {
                (Self::BloscLz4, 5, 9, level)
            } else if let Some(level) = text.strip_prefix("blosc-zstd") {
                (Self::BloscZstd, 5, 9, level)
            } else if let Some(level) = text.strip_prefix("zstd") {
                (Self::Zstd, 3, MAX_ZSTD_LEVEL, level)
            } else {
                (Self::Gzip, 5, 9, text.strip_prefix("gzip")?)
            };
        let level = match level.strip_prefix('-') {
            None if level.is_empty() => default,
            None => return None,
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|_| !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit()))?,
        };
        (level <= max).then(|| make(level))
    }

    /// The codec in a v3 document, for elements of this type.
    fn to_v3(self, data_type: &DataType) -> Option<CodecMetadata> {
        let (type_bytes, shuffle) = blosc_shuffle(data_type);
        let shuffle = ["noshuffle", "shuffle", "bitshuffle"].get(shuffle).copied().unwrap_or("noshuffle");
        let blosc = |cname: &str, level: u8| {
            let configuration = json!({
                "typesize": type_bytes, "cname": cname, "clevel": level, "shuffle": shuffle, "blocksize": 0,
            });
            Some(CodecMetadata::new("blosc", configuration))
        };
        match self {
            Self::Raw => None,
            Self::Zstd(level) => {
                Some(CodecMetadata::new("zstd", json!({ "level": level, "checksum": false })))
            }
            Self::Gzip(level) => Some(CodecMetadata::new("gzip", json!({ "level": level }))),
            Self::BloscLz4(level) => blosc("lz4", level),
            Self::BloscZstd(level) => blosc("zstd", level),
        }
    }

    /// The codecs of chunks of elements of this type, in encoding order.
    #[must_use]
    pub fn chain(self, data_type: &DataType) -> Vec<CodecMetadata> {
        let (name, configuration) = match data_type {
            DataType::String => ("vlen-utf8", json!({})),
            DataType::VariableBytes => ("vlen-bytes", json!({})),
            DataType::VariableArray(_) => ("numcodecs.vlen-array", json!({})),
            DataType::Json => ("numcodecs.json2", json!({})),
            fixed if fixed.endian_unit_bytes() == Some(1) => ("bytes", json!({})),
            _ => ("bytes", json!({ "endian": "little" })),
        };
        std::iter::once(CodecMetadata::new(name, configuration)).chain(self.to_v3(data_type)).collect()
    }

    /// The `compressor` in a v2 document.
    #[must_use]
    pub fn to_v2(self, data_type: &DataType) -> Value {
        let blosc = |cname: &str, level: u8| {
            let (_, shuffle) = blosc_shuffle(data_type);
            json!({ "id": "blosc", "cname": cname, "clevel": level, "shuffle": shuffle, "blocksize": 0 })
        };
        match self {
            Self::Raw => Value::Null,
            Self::Zstd(level) => json!({ "id": "zstd", "level": level }),
            Self::Gzip(level) => json!({ "id": "gzip", "level": level }),
            Self::BloscLz4(level) => blosc("lz4", level),
            Self::BloscZstd(level) => blosc("zstd", level),
        }
    }
}

/// The element size that blosc shuffles by, and its shuffle mode: as in numcodecs, single bytes are shuffled by bits.
fn blosc_shuffle(data_type: &DataType) -> (usize, usize) {
    match data_type.element_bytes() {
        _ if data_type.is_variable() => (1, 0),
        1 => (1, 2),
        bytes @ 2..=MAX_TYPE_BYTES => (bytes, 1),
        _ => (1, 0),
    }
}

/// The v2 filter that turns elements into bytes, if the type needs one: its identifier and configuration.
#[must_use]
pub fn v2_filter(data_type: &DataType) -> Option<Value> {
    match data_type {
        DataType::String => Some(json!({ "id": "vlen-utf8" })),
        DataType::VariableBytes => Some(json!({ "id": "vlen-bytes" })),
        DataType::VariableArray(item) => Some(json!({ "id": "vlen-array", "dtype": item.to_v2()? })),
        DataType::Json => Some(json!({ "id": "json2" })),
        _ => None,
    }
}

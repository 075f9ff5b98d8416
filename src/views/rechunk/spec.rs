//! [`RechunkSpec`]: how a hierarchy is shown anew, as the segments of a URL say it.
//!
//! `64,64,64` or `auto`, then a codec such as `zstd-3` or `raw`, then perhaps `dtype=safe`. A segment that begins with
//! `dtype=` is never the first of a key: whoever has a node of such a name puts `dtype=stored` before it. There is one
//! spelling for each number, so that caches hold one copy. What a recipe makes of an array is said elsewhere.

use std::fmt;

use serde_json::{Value, json};

use crate::error::{Classify, ErrorClass};
use crate::metadata::{CodecMetadata, DataType};

/// What the third segment begins with, if there is one.
const DATA_TYPE: &str = "dtype=";
/// Most dimensions of an array.
const MOST_DIMENSIONS: usize = 32;
/// The types that elements can be cast to by name.
const NAMED: [DataType; 11] = [
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt16,
    DataType::UInt32,
    DataType::UInt64,
    DataType::Float16,
    DataType::Float32,
    DataType::Float64,
];
/// The largest element size that blosc's header has room for.
const MOST_TYPE_BYTES: usize = 255;

/// How a hierarchy is shown anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RechunkSpec {
    pub(super) chunks: Chunks,
    pub(super) codec: Codec,
    pub(super) data_types: DataTypes,
}

/// Which shape chunks have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Chunks {
    /// One that suits the array.
    Auto,
    /// This one, where it has as many dimensions as the array.
    Of(Vec<u64>),
}

/// What chunks are encoded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// Nothing but the elements' bytes.
    Raw,
    /// `zstd` of this level.
    Zstd(u8),
    /// `gzip` of this level.
    Gzip(u8),
    /// `blosc` around lz4, of this level, shuffled by the elements' size.
    BloscLz4(u8),
    /// `blosc` around zstd.
    BloscZstd(u8),
}

/// Which types elements have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DataTypes {
    /// Those they are stored in.
    Stored,
    /// Those that a browser holds: no float16, and no integer of 64 bits.
    Safe,
    /// This one, for real numbers.
    Named(DataType),
}

/// Why segments are no recipe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RechunkSpecError {
    /// Not the shape of chunks.
    #[error(
        "the segment after the mount is `auto` or the shape of chunks, such as `64,64,64`: at most {MOST_DIMENSIONS} \
         numbers from 1 on, without zeros before them"
    )]
    Chunks,
    /// Not a codec.
    #[error(
        "the segment after the chunks is a codec: `raw`, `zstd`, `zstd-1` to `zstd-19`, `gzip`, `gzip-1` to `gzip-9`, \
         `blosc-lz4`, `blosc-zstd`, or either with `-1` to `-9` behind it"
    )]
    Codec,
    /// Not a data type.
    #[error(
        "the segment after the codec that begins with `dtype=` goes on with `safe`, `stored`, or one of {}",
        names()
    )]
    DataType,
}

impl Classify for RechunkSpecError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Chunks | Self::Codec | Self::DataType => ErrorClass::InvalidRequest,
        }
    }
}

fn names() -> String {
    let names: Vec<String> = NAMED.iter().map(|data_type| format!("`{}`", data_type.name())).collect();
    names.join(", ")
}

impl RechunkSpec {
    /// Whether a segment stands for a data type, which is then the third of a recipe.
    #[must_use]
    pub fn is_data_type(segment: &str) -> bool {
        segment.starts_with(DATA_TYPE)
    }

    /// The recipe of these segments.
    ///
    /// # Errors
    /// [`RechunkSpecError`] lists what there is.
    pub fn parse(chunks: &str, codec: &str, data_type: Option<&str>) -> Result<Self, RechunkSpecError> {
        Ok(Self {
            chunks: Chunks::parse(chunks).ok_or(RechunkSpecError::Chunks)?,
            codec: Codec::parse(codec).ok_or(RechunkSpecError::Codec)?,
            data_types: data_type
                .map_or(Some(DataTypes::Stored), DataTypes::parse)
                .ok_or(RechunkSpecError::DataType)?,
        })
    }
}

/// The recipe with all that it leaves open filled in, so that two of one meaning are one text.
impl fmt::Display for RechunkSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.chunks {
            Chunks::Auto => out.write_str("auto")?,
            Chunks::Of(edges) => {
                for (place, edge) in edges.iter().enumerate() {
                    write!(out, "{}{edge}", if place > 0 { "," } else { "" })?;
                }
            }
        }
        match self.codec {
            Codec::Raw => out.write_str("/raw")?,
            Codec::Zstd(level) => write!(out, "/zstd-{level}")?,
            Codec::Gzip(level) => write!(out, "/gzip-{level}")?,
            Codec::BloscLz4(level) => write!(out, "/blosc-lz4-{level}")?,
            Codec::BloscZstd(level) => write!(out, "/blosc-zstd-{level}")?,
        }
        match &self.data_types {
            DataTypes::Stored => Ok(()),
            DataTypes::Safe => write!(out, "/{DATA_TYPE}safe"),
            DataTypes::Named(data_type) => write!(out, "/{DATA_TYPE}{}", data_type.name()),
        }
    }
}

/// A number from 1 on in its one spelling.
fn number(digits: &str) -> Option<u64> {
    let is_plain = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| digits.parse().ok())?
}

impl Chunks {
    fn parse(text: &str) -> Option<Self> {
        if text == "auto" {
            return Some(Self::Auto);
        }
        let edges: Vec<u64> = text.split(',').take(MOST_DIMENSIONS + 1).map(number).collect::<Option<_>>()?;
        (edges.len() <= MOST_DIMENSIONS).then_some(Self::Of(edges))
    }
}

impl Codec {
    fn parse(text: &str) -> Option<Self> {
        /// Beyond these, a compressor takes memory and time out of all proportion.
        const MOST_ZSTD: u8 = 19;
        if text == "raw" {
            return Some(Self::Raw);
        }
        let (make, default, most, level): (fn(u8) -> Self, _, _, _) =
            if let Some(level) = text.strip_prefix("blosc-lz4") {
                (Self::BloscLz4, 5, 9, level)
            } else if let Some(level) = text.strip_prefix("blosc-zstd") {
                (Self::BloscZstd, 5, 9, level)
            } else if let Some(level) = text.strip_prefix("zstd") {
                (Self::Zstd, 3, MOST_ZSTD, level)
            } else {
                (Self::Gzip, 5, 9, text.strip_prefix("gzip")?)
            };
        let level = match level.strip_prefix('-') {
            None if level.is_empty() => default,
            None => return None,
            Some(digits) => u8::try_from(number(digits)?).ok()?,
        };
        (level <= most).then(|| make(level))
    }

    /// The codec of a document of v3, for elements of this type.
    pub(super) fn in_v3(self, data_type: &DataType) -> Option<CodecMetadata> {
        let (type_bytes, shuffle) = shuffled(data_type);
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

    /// The `compressor` of a document of v2.
    pub(super) fn in_v2(self, data_type: &DataType) -> Value {
        let blosc = |cname: &str, level: u8| {
            let (_, shuffle) = shuffled(data_type);
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

/// The size of what blosc shuffles, and how: as numcodecs has it, single bytes by their bits.
fn shuffled(data_type: &DataType) -> (usize, usize) {
    match data_type.item_bytes() {
        _ if data_type.is_variable() => (1, 0),
        1 => (1, 2),
        bytes @ 2..=MOST_TYPE_BYTES => (bytes, 1),
        _ => (1, 0),
    }
}

impl DataTypes {
    fn parse(segment: &str) -> Option<Self> {
        let name = segment.strip_prefix(DATA_TYPE)?;
        match name {
            "stored" => Some(Self::Stored),
            "safe" => Some(Self::Safe),
            _ => NAMED.iter().find(|known| known.name() == name).cloned().map(Self::Named),
        }
    }

    /// The type that elements of this type are cast to, if they are.
    pub(super) fn of(&self, stored: &DataType) -> Option<DataType> {
        let target = match (self, stored) {
            (Self::Named(data_type), _) => data_type.clone(),
            (Self::Safe, DataType::Float16 | DataType::BFloat16) => DataType::Float32,
            (Self::Safe, DataType::Int64 | DataType::UInt64) => DataType::Float64,
            (Self::Stored | Self::Safe, _) => return None,
        };
        (target != *stored).then_some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(segments: &str) -> Result<String, RechunkSpecError> {
        let mut segments = segments.split('/');
        let (chunks, codec) = (segments.next().unwrap(), segments.next().unwrap());
        RechunkSpec::parse(chunks, codec, segments.next()).map(|recipe| recipe.to_string())
    }

    #[test]
    fn what_a_recipe_leaves_open_is_filled_in() {
        for (segments, expected) in [
            ("64,64,64/zstd-3", "64,64,64/zstd-3"),
            ("64/zstd", "64/zstd-3"),
            ("auto/raw/dtype=stored", "auto/raw"),
            ("1/gzip/dtype=safe", "1/gzip-5/dtype=safe"),
            ("18446744073709551615/blosc-lz4-1/dtype=uint8", "18446744073709551615/blosc-lz4-1/dtype=uint8"),
            ("auto/blosc-zstd", "auto/blosc-zstd-5"),
            ("auto/zstd-19/dtype=float32", "auto/zstd-19/dtype=float32"),
        ] {
            assert_eq!(parsed(segments).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn what_is_no_recipe_is_told_what_there_is() {
        let many = vec!["1"; 33].join(",");
        for chunks in [
            "",
            "0",
            "64,0",
            "064",
            "+64",
            "-1",
            "64,",
            ",64",
            "64;64",
            "Auto",
            "18446744073709551616",
            &many,
        ] {
            assert_eq!(parsed(&format!("{chunks}/raw")), Err(RechunkSpecError::Chunks), "{chunks}");
        }
        for codec in [
            "", "Raw", "raw-1", "zstd-0", "zstd-20", "zstd-", "zstd3", "zstd--3", "zstd-03", "gzip-10",
            "blosc", "lz4",
        ] {
            assert_eq!(parsed(&format!("1/{codec}")), Err(RechunkSpecError::Codec), "{codec}");
        }
        for data_type in ["dtype=", "dtype=string", "dtype=Safe", "dtype=<f4", "safe"] {
            assert_eq!(parsed(&format!("1/raw/{data_type}")), Err(RechunkSpecError::DataType), "{data_type}");
        }
        let text = RechunkSpecError::DataType.to_string();
        assert!(text.contains("`safe`") && text.contains("`float64`"), "{text}");
    }

    #[test]
    fn what_a_browser_holds_stays_as_it_is() {
        for (stored, expected) in [
            (DataType::Float16, Some(DataType::Float32)),
            (DataType::Int64, Some(DataType::Float64)),
            (DataType::UInt64, Some(DataType::Float64)),
            (DataType::Int32, None),
            (DataType::Float64, None),
            (DataType::String, None),
        ] {
            assert_eq!(DataTypes::Safe.of(&stored), expected, "{stored:?}");
        }
    }
}

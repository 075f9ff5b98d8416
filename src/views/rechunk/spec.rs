//! [`RechunkSpec`]: a rechunk recipe, parsed from the segments of a URL.
//!
//! The segments are `64,64,64` or `auto`, then a codec such as `zstd-3` or `raw`, then optionally `dtype=safe`. A
//! segment that begins with `dtype=` is never the first segment of a key; put `dtype=stored` before a node of such a
//! name. Each number has only one spelling, so that HTTP caches hold one copy. The module `rechunked_array` applies a
//! recipe.

use std::fmt;

use crate::codec::CodecPreset;
use crate::error::{Classify, ErrorClass};
use crate::metadata::DataType;

/// The beginning of the optional third segment.
const DATA_TYPE: &str = "dtype=";
/// Most dimensions of an array.
const MAX_DIMENSIONS: usize = 32;

/// A rechunk recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RechunkSpec {
    pub(super) chunks: ChunkShapeSpec,
    pub(super) codec: CodecPreset,
    pub(in crate::views) data_types: DataTypeSpec,
}

/// The shape of chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChunkShapeSpec {
    /// Chosen for the array.
    Auto,
    /// This one, for arrays of its rank.
    Shape(Vec<u64>),
}

/// The data types of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataTypeSpec {
    /// The stored ones.
    Stored,
    /// Types that browsers support: no float16, and no integers of 64 bits.
    Safe,
    /// This one, for real numbers.
    Named(DataType),
}

/// Why segments are not a recipe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RechunkSpecError {
    /// An invalid chunk shape.
    #[error(
        "the segment after the mount must be `auto` or a chunk shape such as `64,64,64`: at most {MAX_DIMENSIONS} \
         numbers from 1 on, without leading zeros"
    )]
    Chunks,
    /// An invalid codec.
    #[error(
        "the segment after the chunks must be a codec: `raw`, `zstd`, `zstd-1` to `zstd-19`, `gzip`, `gzip-1` to `gzip-9`, \
         `blosc-lz4`, `blosc-zstd`, or either with `-1` to `-9` appended"
    )]
    Codec,
    /// An invalid data type.
    #[error(
        "a segment after the codec that begins with `dtype=` must continue with `safe`, `stored`, or one of {}",
        type_names()
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

fn type_names() -> String {
    let names: Vec<String> =
        DataType::NUMPY_REALS.iter().map(|data_type| format!("`{}`", data_type.name())).collect();
    names.join(", ")
}

impl RechunkSpec {
    /// The same recipe without a cast.
    pub(in crate::views) fn with_stored_types(&self) -> Self {
        Self { data_types: DataTypeSpec::Stored, ..self.clone() }
    }

    /// Whether a segment names a data type, and so is the third of a recipe.
    #[must_use]
    pub fn is_data_type(segment: &str) -> bool {
        segment.starts_with(DATA_TYPE)
    }

    /// Parses the segments of a recipe.
    ///
    /// # Errors
    /// [`RechunkSpecError`], which lists the valid segments.
    pub fn parse(chunks: &str, codec: &str, data_type: Option<&str>) -> Result<Self, RechunkSpecError> {
        Ok(Self {
            chunks: ChunkShapeSpec::parse(chunks).ok_or(RechunkSpecError::Chunks)?,
            codec: CodecPreset::parse(codec).ok_or(RechunkSpecError::Codec)?,
            data_types: data_type
                .map_or(Some(DataTypeSpec::Stored), DataTypeSpec::parse)
                .ok_or(RechunkSpecError::DataType)?,
        })
    }
}

/// The recipe with all defaults filled in: recipes of the same meaning have the same text.
impl fmt::Display for RechunkSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.chunks {
            ChunkShapeSpec::Auto => out.write_str("auto")?,
            ChunkShapeSpec::Shape(edges) => {
                for (place, edge) in edges.iter().enumerate() {
                    write!(out, "{}{edge}", if place > 0 { "," } else { "" })?;
                }
            }
        }
        write!(out, "/{}", self.codec)?;
        match &self.data_types {
            DataTypeSpec::Stored => Ok(()),
            DataTypeSpec::Safe => write!(out, "/{DATA_TYPE}safe"),
            DataTypeSpec::Named(data_type) => write!(out, "/{DATA_TYPE}{}", data_type.name()),
        }
    }
}

/// A number from 1 on, without leading zeros.
fn parse_number(digits: &str) -> Option<u64> {
    let is_plain = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| digits.parse().ok())?
}

impl ChunkShapeSpec {
    fn parse(text: &str) -> Option<Self> {
        if text == "auto" {
            return Some(Self::Auto);
        }
        let edges: Vec<u64> =
            text.split(',').take(MAX_DIMENSIONS + 1).map(parse_number).collect::<Option<_>>()?;
        (edges.len() <= MAX_DIMENSIONS).then_some(Self::Shape(edges))
    }
}

impl DataTypeSpec {
    fn parse(segment: &str) -> Option<Self> {
        Self::from_name(segment.strip_prefix(DATA_TYPE)?)
    }

    /// The types that a request names: `safe`, `stored`, or the name of a type of real numbers.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "stored" => Some(Self::Stored),
            "safe" => Some(Self::Safe),
            _ => DataType::NUMPY_REALS.iter().find(|known| known.name() == name).cloned().map(Self::Named),
        }
    }

    /// The type that elements of this type are cast to; `None` if they are not cast.
    #[must_use]
    pub fn target(&self, stored: &DataType) -> Option<DataType> {
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
    fn fills_in_the_defaults_of_a_recipe() {
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
    fn rejects_invalid_segments_with_the_valid_ones() {
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
    fn safe_types_change_only_what_browsers_lack() {
        for (stored, expected) in [
            (DataType::Float16, Some(DataType::Float32)),
            (DataType::Int64, Some(DataType::Float64)),
            (DataType::UInt64, Some(DataType::Float64)),
            (DataType::Int32, None),
            (DataType::Float64, None),
            (DataType::String, None),
        ] {
            assert_eq!(DataTypeSpec::Safe.target(&stored), expected, "{stored:?}");
        }
    }
}

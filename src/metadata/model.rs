//! The one model of nodes: what is left of a document once its format version no longer matters.

use serde_json::{Map, Value};

use super::{Attributes, ChunkGridMetadata, ChunkKeyEncodingMetadata, DataType, FillValue};

/// The version of the Zarr format a document is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZarrFormat {
    /// Zarr v1: `meta`, `attrs`.
    V1,
    /// Zarr v2: `.zarray`, `.zgroup`, `.zattrs`.
    V2,
    /// Zarr v3: `zarr.json`.
    V3,
}

impl ZarrFormat {
    /// The number a document gives.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }
}

/// Array or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// An array.
    Array,
    /// A group.
    Group,
}

impl NodeKind {
    /// The word of the specification's `node_type`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Group => "group",
        }
    }
}

/// An array's metadata, of any format version.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayMetadata {
    /// The version of the document it came from.
    pub zarr_format: ZarrFormat,
    /// Elements along each dimension. May be empty (rank 0), and may hold zeros.
    pub shape: Vec<u64>,
    /// The type of the elements.
    pub data_type: DataType,
    /// How the array is divided into chunks; of the same rank as `shape`.
    pub chunk_grid: ChunkGridMetadata,
    /// How a chunk's coordinates become a key.
    pub chunk_key_encoding: ChunkKeyEncodingMetadata,
    /// The element that chunks that are not there consist of.
    pub fill_value: FillValue,
    /// The codecs in encoding order. For v2: `transpose` if the order is F, then `bytes`, then the compressor,
    /// under their v3 names.
    pub codecs: Vec<CodecMetadata>,
    /// The user's attributes, as written.
    pub attributes: Attributes,
    /// A name or none for each dimension; for v2 from `_ARRAY_DIMENSIONS`, if that fits.
    pub dimension_names: Option<Vec<Option<String>>>,
}

/// A group's metadata, of any format version.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupMetadata {
    /// The version of the document it came from.
    pub zarr_format: ZarrFormat,
    /// Whether the document holds copies of those of the nodes below (inline consolidated metadata).
    pub is_consolidated: bool,
    /// The user's attributes, as written.
    pub attributes: Attributes,
}

impl ArrayMetadata {
    /// Bytes of memory that it takes, at most, where its documents have so many.
    #[must_use]
    pub fn memory_bytes(&self, document_bytes: u64) -> u64 {
        let attributes = self.attributes.text().len() as u64;
        let rest = document_bytes.saturating_sub(attributes).saturating_mul(MODEL_RATIO);
        let codecs = self.codecs.iter().flat_map(|codec| codec.configuration.values());
        codecs.map(value_bytes).fold(rest.saturating_add(self.attributes.memory_bytes()), u64::saturating_add)
    }
}

/// Bytes that the model takes for each of a document's that are neither attributes nor configurations of codecs, at most.
const MODEL_RATIO: u64 = 8;

/// Bytes of memory that a value takes, at most. Recursive in its nesting, which is bounded where it was parsed.
fn value_bytes(value: &Value) -> u64 {
    /// A name, its places in a table, and room to grow.
    const MEMBER_BYTES: u64 = 256;
    let inside = match value {
        Value::Null | Value::Bool(_) => 0,
        Value::Number(number) => number.as_str().len() as u64,
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(value_bytes).fold(0, u64::saturating_add),
        Value::Object(members) => {
            let member = |(name, value)| {
                MEMBER_BYTES.saturating_add(String::len(name) as u64).saturating_add(value_bytes(value))
            };
            members.iter().map(member).fold(MEMBER_BYTES, u64::saturating_add)
        }
    };
    inside.saturating_add(2 * size_of::<Value>() as u64)
}

/// One codec of a chain, as the document gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct CodecMetadata {
    /// The registered name.
    pub name: String,
    /// Its configuration; empty if there is none.
    pub configuration: Map<String, Value>,
    /// Whether a reader that does not know it must give up.
    pub must_understand: bool,
}

impl CodecMetadata {
    /// A codec with a configuration given as a JSON object; anything else counts as empty.
    #[must_use]
    pub fn new(name: &str, configuration: Value) -> Self {
        let configuration = match configuration {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        Self { name: name.to_owned(), configuration, must_understand: true }
    }
}

//! The model of arrays and groups, independent of the Zarr format version.

use serde_json::{Map, Value};

use super::{Attributes, ChunkGridMetadata, ChunkKeyEncodingMetadata, DataType, FillValue};

/// The Zarr format version of a document.
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
    /// The number in `zarr_format`.
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
    /// The value of `node_type`.
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
    /// The format of its documents.
    pub zarr_format: ZarrFormat,
    /// Elements along each dimension. Empty for rank 0; lengths may be 0.
    pub shape: Vec<u64>,
    /// The data type of the elements.
    pub data_type: DataType,
    /// The chunk grid; of the same rank as `shape`.
    pub chunk_grid: ChunkGridMetadata,
    /// How a chunk's coordinates are encoded as a key.
    pub chunk_key_encoding: ChunkKeyEncodingMetadata,
    /// The value of all elements of absent chunks.
    pub fill_value: FillValue,
    /// Whether the documents state the fill value. In v2 it may be `null`, which is [`FillValue::of_null`].
    pub has_fill_value: bool,
    /// The codecs in encoding order. For v2: `transpose` if the order is F, then `bytes`, then the compressor,
    /// under their v3 names.
    pub codecs: Vec<CodecMetadata>,
    /// The user attributes, as written.
    pub attributes: Attributes,
    /// An optional name for each dimension; for v2 from `_ARRAY_DIMENSIONS`, if it has a name for each dimension.
    pub dimension_names: Option<Vec<Option<String>>>,
}

/// A group's metadata, of any format version.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupMetadata {
    /// The format of its documents.
    pub zarr_format: ZarrFormat,
    /// Whether the document has inline consolidated metadata.
    pub is_consolidated: bool,
    /// The user attributes, as written.
    pub attributes: Attributes,
}

impl ArrayMetadata {
    /// Whether an array of each has the same elements in the same stored values: all that decides about that is the same, which is
    /// neither the lengths of dimensions nor their names, nor attributes.
    #[must_use]
    pub fn is_stored_as(&self, other: &Self) -> bool {
        // A separator that a document of v2 leaves out was found among the stored keys.
        let unknown = ChunkKeyEncodingMetadata::V2Unspecified;
        let has_same_keys = self.chunk_key_encoding == other.chunk_key_encoding
            || self.chunk_key_encoding == unknown
            || other.chunk_key_encoding == unknown;
        has_same_keys
            && self.zarr_format == other.zarr_format
            && self.shape.len() == other.shape.len()
            && self.data_type == other.data_type
            && self.chunk_grid == other.chunk_grid
            && self.fill_value == other.fill_value
            && self.codecs == other.codecs
    }

    /// Upper bound on its memory in bytes, given the total size of its documents.
    #[must_use]
    pub fn memory_bytes(&self, document_bytes: u64) -> u64 {
        let attributes = self.attributes.text().len() as u64;
        let rest = document_bytes.saturating_sub(attributes).saturating_mul(MODEL_RATIO);
        let codecs = self.codecs.iter().flat_map(|codec| codec.configuration.values());
        codecs.map(value_bytes).fold(rest.saturating_add(self.attributes.memory_bytes()), u64::saturating_add)
    }
}

/// Upper bound on the memory of the model per byte of a document outside attributes and codec configurations.
const MODEL_RATIO: u64 = 8;

/// Upper bound on the memory of a value in bytes. Recursive in its nesting, which the parser bounds.
fn value_bytes(value: &Value) -> u64 {
    /// A name, its entries in a table, and spare capacity.
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

/// A codec of a chain, as in the document.
#[derive(Clone, Debug, PartialEq)]
pub struct CodecMetadata {
    /// The registered name.
    pub name: String,
    /// Its configuration; empty if there is none.
    pub configuration: Map<String, Value>,
    /// Whether a reader that does not know the codec must fail.
    pub must_understand: bool,
}

impl CodecMetadata {
    /// A codec with a configuration, which should be a JSON object; other values count as empty.
    #[must_use]
    pub fn new(name: &str, configuration: Value) -> Self {
        let configuration = match configuration {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        Self { name: name.to_owned(), configuration, must_understand: true }
    }
}

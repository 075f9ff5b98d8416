//! [`NewNode`]: what a client says of a new node, and the documents that follow from it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::documents::NodeDocuments;
use super::error::NodeWriteError;
use super::stored_document::StoredDocument;
use crate::chunk::auto_chunk_shape;
use crate::codec::{CodecPreset, v2_filter};
use crate::error::nearest;
use crate::metadata::v2::ARRAY_DIMENSIONS;
use crate::metadata::{ArrayMetadata, DataType, FillValue, MetadataLimits, ZarrFormat};

/// Most bytes of a shard of an automatic shape.
const MAX_AUTO_SHARD_BYTES: u64 = 64 << 20;
/// Members that only whole documents have.
const OF_DOCUMENTS: [&str; 4] = ["chunk_grid", "chunk_key_encoding", "dtype", "compressor"];

/// Members of a description, each with what it is.
const MEMBERS: [(&str, &str); 11] = [
    ("shape", "a list of whole numbers, such as `[100, 200]`"),
    ("data_type", "the name of a type, such as `float32`, or an object"),
    ("chunks", "a list of whole numbers, such as `[10, 20]`, or a word such as `auto`"),
    ("shards", "a list of whole numbers, such as `[10, 20]`, or a word such as `auto`"),
    ("codecs", "a word such as `zstd-3`, or a list of codecs as in `zarr.json`"),
    ("fill_value", "an element"),
    ("dimension_names", "a list of texts, or `null` in place of a name"),
    ("attributes", "an object"),
    ("zarr_format", "2 or 3"),
    ("node_type", "`array` or `group`"),
    ("like", "the path of an array"),
];

/// What is wrong with a description: the first member that is unknown or has no such value.
fn explain(members: &Value, error: &serde_json::Error) -> String {
    let is_wrong = |(name, value): &(&String, &Value)| {
        Description::deserialize(&json!({ name.as_str(): value })).is_err()
    };
    let Some((name, _)) = members.as_object().into_iter().flatten().find(is_wrong) else {
        return error.to_string();
    };
    if let Some((_, what)) = MEMBERS.iter().find(|(known, _)| known == name) {
        return format!("`{name}` must be {what}");
    }
    let shown: String = name.chars().take(SHOWN_CHARACTERS).collect();
    match nearest(name, MEMBERS.iter().map(|(known, _)| *known)) {
        Some(meant) => format!("`{shown}` is no member of the body; did you mean `{meant}`?"),
        None => format!(
            "`{shown}` is no member of the body; it has {}, or is a whole `zarr.json` or `.zarray`",
            MEMBERS.map(|(known, _)| format!("`{known}`")).join(", ")
        ),
    }
}

/// Longest part of a name that an error repeats, in characters.
const SHOWN_CHARACTERS: usize = 40;

/// What a client says of a new node.
#[derive(Clone, Debug, PartialEq)]
pub struct NewNode(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// A whole `zarr.json` or `.zarray`.
    Document(Map<String, Value>),
    /// A description, which may leave out all but the shape and the data type.
    Described(Box<Description>),
}

/// A node with defaults for what is not said.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    node_type: Option<String>,
    zarr_format: Option<u8>,
    shape: Option<Vec<u64>>,
    data_type: Option<Value>,
    chunks: Option<ShapeWord>,
    shards: Option<ShapeWord>,
    codecs: Option<CodecsWord>,
    fill_value: Option<Value>,
    dimension_names: Option<Vec<Option<String>>>,
    attributes: Option<Map<String, Value>>,
    like: Option<String>,
}

/// An array from which a new one takes what is not said.
pub struct LikeArray {
    pub(super) metadata: Arc<ArrayMetadata>,
    /// Of an array of v2: its `.zarray`, which has the codecs as v2 has them.
    pub(super) zarray: Option<StoredDocument>,
}

impl LikeArray {
    /// The members of the `.zarray`.
    fn zarray(&self) -> Option<Map<String, Value>> {
        serde_json::from_slice(&self.zarray.as_ref()?.text).ok()
    }
}

/// The shape of chunks: numbers, or a word.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "the shape of chunks or shards is a list of numbers, or a word such as `auto`")]
enum ShapeWord {
    Shape(Vec<u64>),
    Word(String),
}

/// Codecs: a word such as `zstd-3`, or those of a document.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "`codecs` is a word such as `zstd-3`, or a list of codecs as in `zarr.json`")]
enum CodecsWord {
    Word(String),
    Listed(Vec<Value>),
}

fn invalid(text: impl Into<String>) -> NodeWriteError {
    NodeWriteError::Invalid(text.into())
}

impl Default for NewNode {
    /// An empty document, which no node can have.
    fn default() -> Self {
        Self(Kind::Document(Map::new()))
    }
}

impl NewNode {
    /// Reads what a client says.
    ///
    /// # Errors
    /// [`NodeWriteError::Invalid`] for anything but the members of a description or a document.
    pub fn from_json(members: Map<String, Value>) -> Result<Self, NodeWriteError> {
        if let Some(member) = OF_DOCUMENTS.iter().find(|member| members.contains_key(**member)) {
            if members.contains_key("zarr_format") {
                return Ok(Self(Kind::Document(members)));
            }
            return Err(invalid(format!(
                "`{member}` is a member of whole documents, and those have `zarr_format`; a description has `data_type`, `chunks` \
                 and `codecs`"
            )));
        }
        let members = Value::Object(members);
        match Description::deserialize(&members) {
            Ok(described) => Ok(Self(Kind::Described(Box::new(described)))),
            Err(error) => Err(invalid(explain(&members, &error))),
        }
    }

    /// A new array of this shape and type, with defaults for all else.
    #[must_use]
    pub fn array(shape: Vec<u64>, data_type: &DataType) -> Self {
        Self(Kind::Described(Box::new(Description {
            shape: Some(shape),
            data_type: Some(data_type.to_metadata()),
            ..Description::default()
        })))
    }

    /// The path of the array from which what is not said is taken.
    #[must_use]
    pub fn like(&self) -> Option<&str> {
        match &self.0 {
            Kind::Document(_) => None,
            Kind::Described(described) => described.like.as_deref(),
        }
    }

    /// The documents. `like` is the array from which what is not said is taken.
    ///
    /// # Errors
    /// [`NodeWriteError::Invalid`], [`NodeWriteError::Document`].
    pub fn documents(
        &self,
        like: Option<&LikeArray>,
        limits: &MetadataLimits,
    ) -> Result<NodeDocuments, NodeWriteError> {
        match &self.0 {
            Kind::Document(members) => document(members.clone(), limits),
            Kind::Described(described) => described.documents(like, limits),
        }
    }
}

/// The documents of a node whose document a client sends as a whole.
fn document(
    mut members: Map<String, Value>,
    limits: &MetadataLimits,
) -> Result<NodeDocuments, NodeWriteError> {
    if members.get("zarr_format").and_then(Value::as_u64) != Some(2) {
        return NodeDocuments::of_v3(&Value::Object(members), limits);
    }
    let attributes = match members.shift_remove("attributes") {
        None => Map::new(),
        Some(Value::Object(attributes)) => attributes,
        Some(_) => return Err(invalid("`attributes` must be an object")),
    };
    NodeDocuments::of_v2_array(&Value::Object(members), &attributes, limits)
}

impl Description {
    fn documents(
        &self,
        like: Option<&LikeArray>,
        limits: &MetadataLimits,
    ) -> Result<NodeDocuments, NodeWriteError> {
        let format = match (self.zarr_format, like) {
            (None, Some(like)) if like.metadata.zarr_format == ZarrFormat::V2 => ZarrFormat::V2,
            (None | Some(3), _) => ZarrFormat::V3,
            (Some(2), _) => ZarrFormat::V2,
            (Some(_), _) => return Err(invalid("`zarr_format` must be 2 or 3")),
        };
        match self.node_type.as_deref() {
            Some("group") => {
                let is_group = self.clone().without_group_members() == Self::default();
                if !is_group {
                    return Err(invalid("a group has `attributes` and `zarr_format` alone"));
                }
                let attributes = self.attributes.clone().unwrap_or_default();
                return NodeDocuments::of_group(format, &attributes, limits);
            }
            None | Some("array") => {}
            Some(_) => return Err(invalid("`node_type` must be `array` or `group`")),
        }
        let parts = self.parts(like.map(|like| &*like.metadata), limits)?;
        if format == ZarrFormat::V3 {
            NodeDocuments::of_v3(&parts.zarr_json(), limits)
        } else {
            let zarray = like.and_then(LikeArray::zarray).unwrap_or_default();
            let (zarray, attributes) = parts.zarray(self.of_zarray(zarray))?;
            NodeDocuments::of_v2_array(&zarray, &attributes, limits)
        }
    }

    /// The members of another array's `.zarray` that are not said, and do not follow from what is said.
    fn of_zarray(&self, mut zarray: Map<String, Value>) -> Map<String, Value> {
        let is_said = |member: &str| match member {
            "order" | "dimension_separator" => false,
            "dtype" => self.data_type.is_some(),
            "fill_value" => self.data_type.is_some() || self.fill_value.is_some(),
            "compressor" | "filters" => self.data_type.is_some() || self.codecs.is_some(),
            _ => true,
        };
        zarray.retain(|member, _| !is_said(member));
        zarray
    }

    /// Without the members that a group may have.
    fn without_group_members(self) -> Self {
        Self { node_type: None, zarr_format: None, attributes: None, ..self }
    }

    /// The parts of an array's document, with defaults for what is not said.
    fn parts(
        &self,
        like: Option<&ArrayMetadata>,
        limits: &MetadataLimits,
    ) -> Result<ArrayParts, NodeWriteError> {
        let of_like = like.map(LikeParts::of);
        let shape = self.shape.clone().or_else(|| like.map(|like| like.shape.clone()));
        let shape = shape
            .ok_or_else(|| invalid("`shape` is missing: the number of elements along each dimension"))?;
        if shape.len() > limits.rank {
            return Err(invalid(format!("`shape`: an array has at most {} dimensions", limits.rank)));
        }
        let data_type = match (&self.data_type, like) {
            (Some(named), _) => data_type(named)?,
            (None, Some(like)) => like.data_type.clone(),
            (None, None) => return Err(invalid("`data_type` is missing, for example `float32`")),
        };
        let item = data_type.element_bytes().max(1) as u64;
        let chunks = match (&self.chunks, &of_like) {
            (Some(ShapeWord::Shape(chunks)), _) => chunks.clone(),
            (Some(ShapeWord::Word(word)), _) if word == "auto" => auto_chunk_shape(&shape, item),
            (Some(ShapeWord::Word(_)), _) => {
                return Err(invalid("`chunks` must be a list of numbers, or `auto`"));
            }
            (None, Some(LikeParts { chunks: Some(chunks), .. })) if chunks.len() == shape.len() => {
                chunks.clone()
            }
            (None, _) => auto_chunk_shape(&shape, item),
        };
        let shards = match (&self.shards, &of_like) {
            (Some(ShapeWord::Shape(shards)), _) => Some(shards.clone()),
            (Some(ShapeWord::Word(word)), _) if word == "auto" => {
                Some(auto_shard_shape(&shape, &chunks, item))
            }
            (Some(ShapeWord::Word(word)), _) if word == "none" => None,
            (Some(ShapeWord::Word(_)), _) => {
                return Err(invalid("`shards` must be a list of numbers, `auto` or `none`"));
            }
            (None, Some(like)) if self.chunks.is_none() => {
                like.shards.clone().filter(|shards| shards.len() == shape.len())
            }
            (None, _) => None,
        };
        let codecs = match (&self.codecs, of_like) {
            (Some(CodecsWord::Word(word)), _) => Codecs::Preset(preset(word)?),
            (Some(CodecsWord::Listed(codecs)), _) => Codecs::Listed(codecs.clone()),
            (None, Some(LikeParts { codecs, .. })) if self.data_type.is_none() => Codecs::Listed(codecs),
            (None, _) => Codecs::Preset(preset("zstd-3")?),
        };
        let fill_value = match (&self.fill_value, like) {
            (Some(value), _) => value.clone(),
            (None, Some(like)) if like.data_type == data_type => like.fill_value.to_json(&data_type),
            (None, _) => FillValue::zero(&data_type).to_json(&data_type),
        };
        let of_rank = |names: &Vec<_>| names.len() == shape.len();
        let names = self.dimension_names.clone();
        let names = names.or_else(|| like?.dimension_names.clone().filter(of_rank));
        let attributes = self.attributes.clone();
        let attributes = attributes.or_else(|| {
            let mut attributes = Map::clone(&like?.attributes.object());
            // Of v2: they are among the names already.
            if like?.zarr_format == ZarrFormat::V2 && like?.dimension_names.is_some() {
                attributes.shift_remove(ARRAY_DIMENSIONS);
            }
            Some(attributes)
        });
        Ok(ArrayParts {
            shape,
            data_type,
            chunks,
            shards,
            codecs,
            fill_value,
            names,
            attributes: attributes.unwrap_or_default(),
        })
    }
}

/// The data type of a name or an object of v3, or of a numpy type string.
fn data_type(named: &Value) -> Result<DataType, NodeWriteError> {
    DataType::from_v3(named).or_else(|error| {
        let of_numpy = named.as_str().and_then(|text| DataType::from_numpy(text).ok());
        of_numpy.map(|(data_type, _)| data_type).ok_or(NodeWriteError::Document(error))
    })
}

fn preset(word: &str) -> Result<CodecPreset, NodeWriteError> {
    CodecPreset::parse(word).ok_or_else(|| {
        invalid(
            "`codecs` must be `raw`, `zstd-3`, `gzip-5`, `blosc-lz4`, `blosc-zstd` or one of these with another level, or a \
             list of codecs as in `zarr.json`",
        )
    })
}

/// The shape of shards: chunks, doubled along one dimension after the other.
fn auto_shard_shape(shape: &[u64], chunks: &[u64], element_bytes: u64) -> Vec<u64> {
    let mut shards = chunks.to_vec();
    let bytes = |shards: &[u64]| {
        shards.iter().fold(u128::from(element_bytes), |bytes, edge| bytes.saturating_mul((*edge).into()))
    };
    loop {
        // Of the shortest edges that can grow, the last.
        let growing = shards.iter().zip(shape).enumerate().rev().filter(|(_, (edge, length))| edge < length);
        let Some((axis, _)) = growing.min_by_key(|(_, (edge, _))| **edge) else { return shards };
        let mut longer = shards.clone();
        if let Some(edge) = longer.get_mut(axis) {
            *edge = edge.saturating_mul(2);
        }
        if bytes(&longer) > MAX_AUTO_SHARD_BYTES.into() {
            return shards;
        }
        shards = longer;
    }
}

/// What another array has, in the words of a description.
struct LikeParts {
    chunks: Option<Vec<u64>>,
    shards: Option<Vec<u64>>,
    codecs: Vec<Value>,
}

impl LikeParts {
    fn of(array: &ArrayMetadata) -> Self {
        let document = array.to_document();
        let numbers = |value: &Value| {
            value.as_array().and_then(|edges| edges.iter().map(Value::as_u64).collect::<Option<Vec<_>>>())
        };
        let stored = numbers(&document["chunk_grid"]["configuration"]["chunk_shape"]);
        let codecs = document["codecs"].as_array().cloned().unwrap_or_default();
        match codecs.as_slice() {
            [sharding] if sharding["name"] == "sharding_indexed" => Self {
                chunks: numbers(&sharding["configuration"]["chunk_shape"]),
                shards: stored,
                codecs: sharding["configuration"]["codecs"].as_array().cloned().unwrap_or_default(),
            },
            _ => Self { chunks: stored, shards: None, codecs },
        }
    }
}

/// The codecs of a new array.
enum Codecs {
    Preset(CodecPreset),
    Listed(Vec<Value>),
}

/// The parts of the document of a new array.
struct ArrayParts {
    shape: Vec<u64>,
    data_type: DataType,
    chunks: Vec<u64>,
    shards: Option<Vec<u64>>,
    codecs: Codecs,
    fill_value: Value,
    names: Option<Vec<Option<String>>>,
    attributes: Map<String, Value>,
}

impl ArrayParts {
    /// The codecs of chunks, or of inner chunks, as v3 has them.
    fn codecs(&self) -> Vec<Value> {
        match &self.codecs {
            Codecs::Listed(codecs) => codecs.clone(),
            Codecs::Preset(preset) => {
                let chain = preset.chain(&self.data_type).into_iter();
                chain
                    .map(|codec| {
                        if codec.configuration.is_empty() && !codec.name.starts_with("numcodecs.") {
                            json!({ "name": codec.name })
                        } else {
                            json!({ "name": codec.name, "configuration": codec.configuration })
                        }
                    })
                    .collect()
            }
        }
    }

    /// The `zarr.json`.
    fn zarr_json(&self) -> Value {
        let mut codecs = self.codecs();
        if self.shards.is_some() {
            codecs = vec![json!({
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": self.chunks,
                    "codecs": codecs,
                    "index_codecs": [
                        { "name": "bytes", "configuration": { "endian": "little" } },
                        { "name": "crc32c" },
                    ],
                    "index_location": "end",
                },
            })];
        }
        let mut document = json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": self.shape,
            "data_type": self.data_type.to_metadata(),
            "chunk_grid": {
                "name": "regular",
                "configuration": { "chunk_shape": self.shards.as_ref().unwrap_or(&self.chunks) },
            },
            "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
            "fill_value": self.fill_value,
            "codecs": codecs,
            "attributes": self.attributes,
        });
        if let (Some(names), Some(members)) = (&self.names, document.as_object_mut()) {
            members.insert("dimension_names".to_owned(), json!(names));
        }
        document
    }

    /// The `.zarray`, and the attributes. Members that are taken from another array are as they are there.
    fn zarray(&self, mut taken: Map<String, Value>) -> Result<(Value, Map<String, Value>), NodeWriteError> {
        if self.shards.is_some() {
            return Err(invalid("`shards`: arrays of v2 have no shards"));
        }
        let dtype = self.data_type.to_v2();
        let dtype = dtype.ok_or_else(|| invalid("`data_type`: v2 has no such data type"))?;
        let fill_value = FillValue::from_v3(&self.data_type, Some(&self.fill_value));
        let fill_value = fill_value.map_err(NodeWriteError::Document)?.to_v2(&self.data_type);
        let (compressor, filters) = match &self.codecs {
            Codecs::Preset(preset) => {
                let filters = v2_filter(&self.data_type).map(|filter| [filter]);
                (preset.to_v2(&self.data_type), json!(filters))
            }
            Codecs::Listed(_) if taken.contains_key("compressor") => (Value::Null, Value::Null),
            Codecs::Listed(_) => {
                return Err(invalid(
                    "`codecs`: for an array of v2, name a compressor by a word, or send a whole `.zarray`",
                ));
            }
        };
        let mut zarray = json!({
            "zarr_format": 2,
            "shape": self.shape,
            "chunks": self.chunks,
            "dtype": dtype,
            "compressor": compressor,
            "fill_value": fill_value,
            "order": "C",
            "filters": filters,
            "dimension_separator": ".",
        });
        if let Some(members) = zarray.as_object_mut() {
            members.append(&mut taken);
        }
        let mut attributes = self.attributes.clone();
        if let Some(names) = &self.names {
            if names.len() != self.shape.len() || names.iter().any(Option::is_none) {
                return Err(invalid(
                    "`dimension_names`: an array of v2 has a name for each dimension, or none",
                ));
            }
            attributes.entry(ARRAY_DIMENSIONS).or_insert_with(|| json!(names));
        }
        Ok((zarray, attributes))
    }
}

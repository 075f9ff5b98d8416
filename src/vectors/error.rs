//! [`VectorError`]: why a vector store has no answer.

use super::coord::format_coord;
use super::payload::PayloadError;
use crate::array::ArrayError;
use crate::cpu::ComputePoolError;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::HierarchyError;
use crate::key::{KeyError, NodePath};
use crate::store::StoreError;

/// Why a vector store has no answer. Each reason has a name of its own ([`VectorError::code`]).
#[derive(Clone, Debug, thiserror::Error)]
pub enum VectorError {
    /// A node or its elements cannot be had.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The store below failed.
    #[error("`{key}` cannot be read: {source}")]
    Store {
        /// What was read.
        key: String,
        /// Why not.
        source: StoreError,
    },
    /// A path that no key can be made of.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Work had no result.
    #[error(transparent)]
    Cpu(#[from] ComputePoolError),
    /// Not a vector store.
    #[error("`{path}` is not a store in Zarr Vector Format")]
    NotAStore {
        /// The path asked for.
        path: NodePath,
    },
    /// No such level.
    #[error("there is no level {level}; there are: {known:?}")]
    LevelNotFound {
        /// The level asked for.
        level: u64,
        /// The levels there are.
        known: Vec<u64>,
    },
    /// No such chunk.
    #[error(
        "there is no chunk `{chunk}`: a chunk is named by its coordinates with dots between, such as `0.-1.2`"
    )]
    ChunkNotFound {
        /// The chunk asked for.
        chunk: String,
    },
    /// No such objects.
    #[error("there are no objects {ids:?}")]
    ObjectNotFound {
        /// Those that there are not.
        ids: Vec<i64>,
    },
    /// No such attribute.
    #[error("there is no attribute `{name}`; there are: {known:?}")]
    AttributeNotFound {
        /// The attribute asked for.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// No such group of objects.
    #[error("there is no group {group}; there are {groups}")]
    GroupNotFound {
        /// The group asked for.
        group: u64,
        /// How many there are.
        groups: u64,
    },
    /// A box of another rank.
    #[error("a box has {expected} numbers here (the least of each axis, then the largest), not {found}")]
    BboxRank {
        /// Numbers it should have.
        expected: usize,
        /// Numbers it has.
        found: usize,
    },
    /// A box with a number that is none.
    #[error("number {place} of the box is NaN")]
    BboxNan {
        /// Which, from 0.
        index: usize,
    },
    /// A box whose end is before its beginning.
    #[error("the box ends before it begins, along axis {axis}: {low} is more than {high}")]
    BboxInverted {
        /// The axis.
        axis: usize,
        /// Its beginning.
        low: f64,
        /// Its end.
        high: f64,
    },
    /// A level that is no number.
    #[error("`{0}` is no level: a level is a decimal number without leading zeros, or 1 to 5 of validation")]
    BadLevel(String),
    /// A parameter that is not understood.
    #[error("`{name}` takes {takes}")]
    BadParam {
        /// The parameter.
        name: String,
        /// What it takes.
        takes: String,
    },
    /// Stored bytes that are not what the metadata says.
    #[error("chunk `{chunk}` of `{path}` is corrupt: {reason}")]
    Corrupt {
        /// The array.
        path: String,
        /// The chunk, or the row.
        chunk: String,
        /// What is wrong.
        reason: String,
    },
    /// An object whose manifest cannot be used.
    #[error("the manifest of object {object} is corrupt: {reason}")]
    CorruptManifest {
        /// The object.
        object: i64,
        /// What is wrong.
        reason: String,
    },
    /// More than an answer may have.
    #[error(
        "the answer has about {estimate} {what}; the limit is {limit}: ask for a smaller box, or page with `limit`, or take `format=arrow`"
    )]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// How many there are, about.
        estimate: u64,
        /// How many there may be.
        limit: u64,
    },
    /// Metadata that does not allow an answer.
    #[error("the store's metadata cannot be used: {detail} (checks: {checks:?})")]
    InvalidMetadata {
        /// The checks of validation that say so.
        checks: Vec<&'static str>,
        /// What is wrong.
        detail: String,
    },
    /// An encoding that is not read here.
    #[error("`{path}` is encoded as `{encoding}`, which is not read here")]
    UnsupportedEncoding {
        /// The array.
        path: String,
        /// The encoding.
        encoding: String,
    },
    /// Something that is not read of stores of this profile.
    #[error("{what} are not read of stores of profile {profile}")]
    UnsupportedInProfile {
        /// What was asked for.
        what: &'static str,
        /// The profile.
        profile: &'static str,
    },
}

impl VectorError {
    /// A stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Array(_) | Self::Store { .. } | Self::Key(_) | Self::Cpu(_) => self.class().name(),
            Self::NotAStore { .. } => "not_a_zvf_store",
            Self::LevelNotFound { .. } => "level_not_found",
            Self::ChunkNotFound { .. } => "chunk_not_found",
            Self::ObjectNotFound { .. } => "object_not_found",
            Self::AttributeNotFound { .. } => "attribute_not_found",
            Self::GroupNotFound { .. } => "group_not_found",
            Self::BboxRank { .. } => "bbox_rank",
            Self::BboxNan { .. } => "bbox_nan",
            Self::BboxInverted { .. } => "bbox_inverted",
            Self::BadLevel(_) => "bad_level",
            Self::BadParam { .. } => "bad_param",
            Self::Corrupt { .. } => "corrupt_chunk",
            Self::CorruptManifest { .. } => "corrupt_manifest",
            Self::TooMany { what: "rows", .. } => "too_many_rows",
            Self::TooMany { .. } => "too_large",
            Self::InvalidMetadata { .. } => "invalid_metadata",
            Self::UnsupportedEncoding { .. } => "unsupported_encoding",
            Self::UnsupportedInProfile { .. } => "unsupported_in_profile",
        }
    }

    /// A payload that is not what it should be.
    #[must_use]
    pub fn corrupt_chunk(path: &NodePath, chunk: &[i64], reason: &PayloadError) -> Self {
        Self::Corrupt {
            path: path.as_str().to_owned(),
            chunk: format_coord(chunk),
            reason: reason.to_string(),
        }
    }

    /// A parameter that is not understood.
    #[must_use]
    pub fn bad_param(name: &str, takes: impl Into<String>) -> Self {
        Self::BadParam { name: name.to_owned(), takes: takes.into() }
    }

    /// Metadata that a check of validation would complain about.
    #[must_use]
    pub fn invalid_metadata(check: &'static str, detail: impl Into<String>) -> Self {
        Self::InvalidMetadata { checks: vec![check], detail: detail.into() }
    }

    /// Whether only one chunk is the victim, so that the others can be answered.
    #[must_use]
    pub fn is_corrupt_chunk(&self) -> bool {
        matches!(self, Self::Corrupt { .. })
    }

    /// Whether there is no node, or none that would be a vector store.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::NotAStore { .. } => true,
            Self::Array(ArrayError::Hierarchy(error)) => {
                matches!(error, HierarchyError::NoSuchNode { .. } | HierarchyError::NoSuchDependent { .. })
            }
            _ => false,
        }
    }
}

impl From<HierarchyError> for VectorError {
    fn from(error: HierarchyError) -> Self {
        Self::Array(error.into())
    }
}

impl Classify for VectorError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Array(error) => error.class(),
            Self::Store { source, .. } => source.class(),
            Self::Key(error) => error.class(),
            Self::Cpu(error) => error.class(),
            Self::NotAStore { .. }
            | Self::LevelNotFound { .. }
            | Self::ChunkNotFound { .. }
            | Self::ObjectNotFound { .. }
            | Self::AttributeNotFound { .. }
            | Self::GroupNotFound { .. } => ErrorClass::NotFound,
            Self::BboxRank { .. }
            | Self::BboxNan { .. }
            | Self::BboxInverted { .. }
            | Self::BadLevel(_)
            | Self::BadParam { .. } => ErrorClass::InvalidRequest,
            // The stored data clashes with its metadata; whoever asked can ask for the rest.
            Self::Corrupt { .. } => ErrorClass::Conflict,
            Self::CorruptManifest { .. } => ErrorClass::CorruptData,
            Self::TooMany { .. } => ErrorClass::TooLarge,
            Self::InvalidMetadata { .. } => ErrorClass::InvalidMetadata,
            Self::UnsupportedEncoding { .. } | Self::UnsupportedInProfile { .. } => ErrorClass::Unsupported,
        }
    }
}

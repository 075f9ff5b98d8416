//! [`VectorError`]: why a request to a vector store fails.

use super::coord::format_coord;
use super::payload::PayloadError;
use crate::array::ArrayError;
use crate::cpu::ComputePoolError;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::HierarchyError;
use crate::key::{KeyError, NodePath};
use crate::store::StoreError;

/// Why a request to a vector store fails. Each reason has a stable code ([`VectorError::code`]).
#[derive(Clone, Debug, thiserror::Error)]
pub enum VectorError {
    /// A node or its elements cannot be read.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The underlying store failed.
    #[error("`{key}` cannot be read: {source}")]
    Store {
        /// The key that was read.
        key: String,
        /// The store's error.
        source: StoreError,
    },
    /// A path from which no key can be formed.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The compute pool did not return a result.
    #[error(transparent)]
    Cpu(#[from] ComputePoolError),
    /// The node is not a vector store.
    #[error("`{path}` is not a store in Zarr Vector Format")]
    NotAStore {
        /// The requested path.
        path: NodePath,
    },
    /// The level does not exist.
    #[error("there is no level {level}; there are: {known:?}")]
    LevelNotFound {
        /// The requested level.
        level: u64,
        /// The existing levels.
        known: Vec<u64>,
    },
    /// The chunk does not exist.
    #[error("there is no chunk `{chunk}`: give its coordinates separated by dots, such as `0.-1.2`")]
    ChunkNotFound {
        /// The requested chunk.
        chunk: String,
    },
    /// None of the objects exists.
    #[error("there are no objects {ids:?}")]
    ObjectNotFound {
        /// The missing ids.
        ids: Vec<i64>,
    },
    /// The attribute does not exist.
    #[error("there is no attribute `{name}`; there are: {known:?}")]
    AttributeNotFound {
        /// The requested attribute.
        name: String,
        /// The existing attributes.
        known: Vec<String>,
    },
    /// The group of objects does not exist.
    #[error("there is no group {group}; there are {groups}")]
    GroupNotFound {
        /// The requested group.
        group: u64,
        /// The number of groups.
        groups: u64,
    },
    /// A box with the wrong number of axes.
    #[error("a box has {expected} numbers here (the least of each axis, then the largest), not {found}")]
    BboxRank {
        /// The required number of coordinates.
        expected: usize,
        /// The given number of coordinates.
        found: usize,
    },
    /// A box with a NaN coordinate.
    #[error("number {index} of the box is NaN")]
    BboxNan {
        /// The position of the NaN, from 0.
        index: usize,
    },
    /// A box whose upper end is below its lower one.
    #[error("the box ends before it begins, along axis {axis}: {low} is more than {high}")]
    BboxInverted {
        /// The axis.
        axis: usize,
        /// Its lower end.
        low: f64,
        /// Its upper end.
        high: f64,
    },
    /// A level that is not a number.
    #[error("`{0}` is not a level: give a decimal number without leading zeros, or 1 to 5 for validation")]
    BadLevel(String),
    /// An invalid query parameter.
    #[error("`{name}` takes {takes}")]
    BadParam {
        /// The parameter.
        name: String,
        /// The values it accepts.
        takes: String,
    },
    /// Stored bytes that contradict the metadata.
    #[error("chunk `{chunk}` of `{path}` is corrupt: {reason}")]
    Corrupt {
        /// The array.
        path: String,
        /// The chunk, or the row.
        chunk: String,
        /// What is wrong.
        reason: String,
    },
    /// An invalid manifest of an object.
    #[error("the manifest of object {object} is corrupt: {reason}")]
    CorruptManifest {
        /// The id of the object.
        object: i64,
        /// What is wrong.
        reason: String,
    },
    /// A result above a limit.
    #[error(
        "the response has about {estimate} {what}; the limit is {limit}: request a smaller box, use pages with `limit`, or `format=arrow`"
    )]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// The count, possibly estimated.
        estimate: u64,
        /// The limit.
        limit: u64,
    },
    /// Metadata that does not suffice to answer.
    #[error("the store's metadata cannot be used: {detail} (checks: {checks:?})")]
    InvalidMetadata {
        /// The validation checks that report it.
        checks: Vec<&'static str>,
        /// What is wrong.
        detail: String,
    },
    /// An encoding that is not supported.
    #[error("`{path}` has the encoding `{encoding}`, which is not supported")]
    UnsupportedEncoding {
        /// The array.
        path: String,
        /// The encoding.
        encoding: String,
    },
    /// A feature that is not supported for this profile.
    #[error("{what} are not supported in profile {profile}")]
    UnsupportedInProfile {
        /// The feature.
        what: &'static str,
        /// The profile.
        profile: &'static str,
    },
}

impl VectorError {
    /// The stable code of the error, as in the `code` member of a problem document.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Array(_) | Self::Store { .. } | Self::Key(_) | Self::Cpu(_) => self.class().as_str(),
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

    /// A payload that cannot be parsed.
    #[must_use]
    pub fn corrupt_chunk(path: &NodePath, chunk: &[i64], reason: &PayloadError) -> Self {
        Self::Corrupt {
            path: path.as_str().to_owned(),
            chunk: format_coord(chunk),
            reason: reason.to_string(),
        }
    }

    /// An invalid query parameter.
    #[must_use]
    pub fn bad_param(name: &str, takes: impl Into<String>) -> Self {
        Self::BadParam { name: name.to_owned(), takes: takes.into() }
    }

    /// Metadata that fails a validation check.
    #[must_use]
    pub fn invalid_metadata(check: &'static str, detail: impl Into<String>) -> Self {
        Self::InvalidMetadata { checks: vec![check], detail: detail.into() }
    }

    /// Whether the error concerns one chunk alone, so that the others can still be returned.
    #[must_use]
    pub fn is_corrupt_chunk(&self) -> bool {
        matches!(self, Self::Corrupt { .. })
    }

    /// Whether the path has no node, or a node that is not a vector store.
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
            // The stored data contradicts its metadata; the client can request the other chunks.
            Self::Corrupt { .. } => ErrorClass::Conflict,
            Self::CorruptManifest { .. } => ErrorClass::CorruptData,
            Self::TooMany { .. } => ErrorClass::TooLarge,
            Self::InvalidMetadata { .. } => ErrorClass::InvalidMetadata,
            Self::UnsupportedEncoding { .. } | Self::UnsupportedInProfile { .. } => ErrorClass::Unsupported,
        }
    }
}

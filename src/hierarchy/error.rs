//! [`HierarchyError`]: why there is no node to be had.

use crate::cpu::ComputePoolError;
use crate::error::{Classify, ErrorClass};
use crate::key::{KeyError, NodePath, StoreKey};
use crate::metadata::MetadataError;
use crate::metadata::dependents::DependentError;
use crate::store::StoreError;

/// Why a node cannot be opened or listed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HierarchyError {
    /// No metadata document stands under the path, by the backend's own word.
    #[error("there is no array or group at `{path}`")]
    NoSuchNode {
        /// The path asked for.
        path: NodePath,
    },
    /// Nothing is stored under the path, and the array above declares nothing there.
    #[error("the array `{primary}` declares no dependent array `{path}`")]
    NoSuchDependent {
        /// The path asked for.
        path: NodePath,
        /// The array.
        primary: NodePath,
    },
    /// A dependent array cannot be used, or the document that declares it.
    #[error("`{path}`: {source}")]
    Dependent {
        /// The path asked for.
        path: NodePath,
        /// Why.
        source: DependentError,
    },
    /// A document could not be read.
    #[error("`{key}` cannot be read: {source}")]
    Store {
        /// The document's key.
        key: String,
        /// Why.
        source: StoreError,
    },
    /// A document cannot be used.
    #[error("`{key}`: {source}")]
    Metadata {
        /// The document's key.
        key: StoreKey,
        /// Why.
        source: MetadataError,
    },
    /// Consolidated metadata of so many nodes is not made.
    #[error(
        "more than {limit} nodes are below `{path}`: ask for the consolidated metadata of a group below it, or open \
         its nodes one by one"
    )]
    TooManyNodes {
        /// The group.
        path: NodePath,
        /// Nodes allowed.
        limit: usize,
    },
    /// Consolidated metadata of so many bytes is not made.
    #[error(
        "the documents of the nodes below `{path}` have more than {limit} bytes: ask for the consolidated metadata of \
         a group below it, or open its nodes one by one"
    )]
    TooLong {
        /// The group.
        path: NodePath,
        /// Bytes allowed.
        limit: usize,
    },
    /// Consolidated metadata cannot be made where nobody knows which nodes there are.
    #[error("consolidated metadata of `{path}` cannot be made: the store cannot list the nodes below it")]
    NotListable {
        /// The group.
        path: NodePath,
    },
    /// There is no room now for what would be held.
    #[error("there is no room for the consolidated metadata of `{path}` now")]
    NoRoom {
        /// The group.
        path: NodePath,
    },
    /// There is never room for what would be held.
    #[error(
        "to make the consolidated metadata of `{path}` takes more than the {limit} bytes of memory that one request can \
         have (`http.inflight_size`): ask for that of a group below it, or open its nodes one by one"
    )]
    NeverRoom {
        /// The group.
        path: NodePath,
        /// Bytes that one request can have.
        limit: u64,
    },
    /// Parsing had no result.
    #[error(transparent)]
    Cpu(#[from] ComputePoolError),
    /// The path leaves no room for the key of a document below it.
    #[error("the path `{path}` is too long: {source}")]
    Path {
        /// The path asked for.
        path: NodePath,
        /// Why.
        source: KeyError,
    },
}

impl HierarchyError {
    /// Whether it comes of what the caller may hold, or of a server that is busy, and not of what is stored: another caller
    /// who asks for the same need not meet it.
    pub(super) fn is_of_caller(&self) -> bool {
        match self {
            Self::NoRoom { .. }
            | Self::NeverRoom { .. }
            | Self::Store { source: StoreError::NoRoom | StoreError::NoRoomToRead(_), .. } => true,
            // All would ask a backend that is busy, one after the other.
            Self::Store { source: StoreError::Busy(_), .. } => false,
            error => error.class() == ErrorClass::Overloaded,
        }
    }
}

impl Classify for HierarchyError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NoSuchNode { .. } | Self::NoSuchDependent { .. } => ErrorClass::NotFound,
            Self::Dependent { source, .. } => source.class(),
            Self::Store { source, .. } => source.class(),
            Self::Metadata { source, .. } => source.class(),
            Self::TooManyNodes { .. } | Self::TooLong { .. } | Self::NeverRoom { .. } => ErrorClass::TooLarge,
            Self::NotListable { .. } => ErrorClass::Unsupported,
            Self::NoRoom { .. } => ErrorClass::Overloaded,
            Self::Cpu(error) => error.class(),
            Self::Path { source, .. } => source.class(),
        }
    }
}

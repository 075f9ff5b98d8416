//! [`HierarchyError`]: why a node cannot be opened, listed or consolidated.

use crate::cpu::ComputePoolError;
use crate::error::{Classify, ErrorClass};
use crate::key::{KeyError, NodePath, StoreKey};
use crate::metadata::MetadataError;
use crate::metadata::dependents::DependentError;
use crate::store::StoreError;

/// Why a node cannot be opened or listed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HierarchyError {
    /// The backend confirmed that no metadata document is stored under the path.
    #[error("there is no array or group at `{path}`")]
    NoSuchNode {
        /// The requested path.
        path: NodePath,
    },
    /// Nothing is stored under the path, and the array above does not declare it.
    #[error("the array `{primary}` declares no dependent array `{path}`")]
    NoSuchDependent {
        /// The requested path.
        path: NodePath,
        /// The array.
        primary: NodePath,
    },
    /// A dependent array, or the document that declares it, is invalid.
    #[error("`{path}`: {source}")]
    Dependent {
        /// The requested path.
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
    /// A document is invalid or unsupported.
    #[error("`{key}`: {source}")]
    Metadata {
        /// The document's key.
        key: StoreKey,
        /// Why.
        source: MetadataError,
    },
    /// Consolidated metadata would have more nodes than the limit.
    #[error(
        "more than {limit} nodes are below `{path}`: request the consolidated metadata of a group below it, or open \
         its nodes one by one"
    )]
    TooManyNodes {
        /// The group.
        path: NodePath,
        /// Nodes allowed.
        limit: usize,
    },
    /// Consolidated metadata would have more bytes than the limit.
    #[error(
        "the documents of the nodes below `{path}` have more than {limit} bytes: request the consolidated metadata of \
         a group below it, or open its nodes one by one"
    )]
    TooLong {
        /// The group.
        path: NodePath,
        /// Bytes allowed.
        limit: usize,
    },
    /// Consolidated metadata cannot be built because the store cannot list.
    #[error("consolidated metadata of `{path}` cannot be built: the store cannot list the nodes below it")]
    NotListable {
        /// The group.
        path: NodePath,
    },
    /// The memory budget is exhausted by other requests; a later retry can succeed.
    #[error("too little memory is free to build the consolidated metadata of `{path}`: retry later")]
    BudgetExhausted {
        /// The group.
        path: NodePath,
    },
    /// The build needs more memory than one request can have.
    #[error(
        "building the consolidated metadata of `{path}` needs more than the {limit} bytes of memory that one request can \
         have (`http.inflight_size`): request that of a group below it, or open its nodes one by one"
    )]
    OverBudget {
        /// The group.
        path: NodePath,
        /// Bytes that one request can have.
        limit: u64,
    },
    /// The compute pool returned no result.
    #[error(transparent)]
    Cpu(#[from] ComputePoolError),
    /// The path is too long for the key of a document below it.
    #[error("the path `{path}` is too long: {source}")]
    Path {
        /// The requested path.
        path: NodePath,
        /// Why.
        source: KeyError,
    },
}

impl HierarchyError {
    /// Whether what is stored of this node is at fault, so that other nodes may well be read.
    #[must_use]
    pub fn is_of_stored_node(&self) -> bool {
        match self {
            Self::Metadata { .. } => true,
            Self::Store { source, .. } => {
                matches!(source.class(), ErrorClass::ReferenceBroken | ErrorClass::ReferenceRefused)
            }
            Self::NoSuchNode { .. }
            | Self::NoSuchDependent { .. }
            | Self::Dependent { .. }
            | Self::TooManyNodes { .. }
            | Self::TooLong { .. }
            | Self::OverBudget { .. }
            | Self::NotListable { .. }
            | Self::BudgetExhausted { .. }
            | Self::Cpu(_)
            | Self::Path { .. } => false,
        }
    }

    /// Whether the error comes from the caller's memory budget or from load on the server, so that another caller may not
    /// meet it. False for errors about stored data.
    pub(super) fn is_caller_specific(&self) -> bool {
        match self {
            Self::BudgetExhausted { .. }
            | Self::OverBudget { .. }
            | Self::Store { source: StoreError::NoUploadMemory | StoreError::OverBudget(_), .. } => true,
            // If not shared, every waiting caller would in turn send requests to a busy backend.
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
            Self::TooManyNodes { .. } | Self::TooLong { .. } | Self::OverBudget { .. } => {
                ErrorClass::TooLarge
            }
            Self::NotListable { .. } => ErrorClass::Unsupported,
            Self::BudgetExhausted { .. } => ErrorClass::Overloaded,
            Self::Cpu(error) => error.class(),
            Self::Path { source, .. } => source.class(),
        }
    }
}

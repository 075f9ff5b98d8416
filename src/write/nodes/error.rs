//! [`NodeWriteError`]: why a node cannot be created, changed or erased.

use crate::array::ArrayError;
use crate::cpu::ComputePoolError;
use crate::error::{Classify, ErrorClass, WriteEffect};
use crate::hierarchy::HierarchyError;
use crate::key::{NodePath, StoreKey};
use crate::metadata::MetadataError;
use crate::store::{BudgetExceeded, StoreError};
use crate::write::settled::is_settled;
use crate::write::{LeaseError, WriteError};

/// Why a node cannot be created, changed or erased.
#[derive(Debug, thiserror::Error)]
pub enum NodeWriteError {
    /// What the client says of the node is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The document of the new node is not one that this server can read.
    #[error("the document cannot be read back: {0}")]
    Document(MetadataError),
    /// The array of the new document cannot be read.
    #[error("the array cannot be read back: {0}")]
    Unreadable(ArrayError),
    /// There is a node at the path.
    #[error(
        "there is a node at `{path}`, or a document of one: PATCH changes a node, and DELETE of `/v1/nodes` or of `/store` erases it"
    )]
    Exists {
        /// The path.
        path: NodePath,
    },
    /// Values are stored below the path of a new array.
    #[error(
        "values are stored below `{path}`, which would be chunks of the array; DELETE of `/store/MOUNT{path}/` erases them"
    )]
    NotEmpty {
        /// The path.
        path: NodePath,
    },
    /// Others have erased or stored values of a node while it was made.
    #[error("others erased or stored values below `{path}` while the node was made, so that it is not made")]
    ValuesChanged {
        /// The path.
        path: NodePath,
    },
    /// Others go on to store values below a path that is erased.
    #[error(
        "values below `{path}` were erased, but others are storing values there just now: send the request again when they have ended"
    )]
    StillStored {
        /// The path.
        path: NodePath,
    },
    /// A node above the path is an array.
    #[error("`{array}` is an array, which has no nodes below it")]
    BelowArray {
        /// The array.
        array: NodePath,
    },
    /// The groups above the node do not exist, and the caller may not make them.
    #[error("there is no group at `{group}`, and these credentials may not make it")]
    NoGroupAbove {
        /// The path of the group.
        group: NodePath,
    },
    /// The node is of a kind that cannot be changed.
    #[error("{0}")]
    Unsupported(&'static str),
    /// More stored chunks would have to be erased than one request may erase.
    #[error(
        "{chunks} chunks would be erased or checked, and the limit is {limit} (`write.max_values`): change the shape in steps"
    )]
    TooManyChunks {
        /// The chunks.
        chunks: u128,
        /// The limit.
        limit: u64,
    },
    /// The node is not as the request expects it.
    #[error("the condition does not hold; nothing was written")]
    ConditionFailed,
    /// Others changed the document at each attempt.
    #[error("others are changing `{key}` just now; nothing was written")]
    Contended {
        /// The document.
        key: StoreKey,
    },
    /// The backend does not check conditions, so that the changes of others could be lost.
    #[error(
        "changing `{key}` is not supported: the backend does not check conditions; set `writers = \"one\"` of the mount if this server alone writes to it"
    )]
    NoConditions {
        /// The document.
        key: StoreKey,
    },
    /// The node cannot be opened.
    #[error(transparent)]
    Node(#[from] ArrayError),
    /// The documents of the node cannot be read.
    #[error(transparent)]
    Hierarchy(#[from] HierarchyError),
    /// Elements outside of the old shape cannot be replaced by the fill value.
    #[error(transparent)]
    Elements(#[from] WriteError),
    /// The backend failed.
    #[error("`{key}`: {source}")]
    Store {
        /// The key.
        key: String,
        /// Why.
        source: StoreError,
    },
    /// The node is stored, but not all that follows from it.
    #[error("the node is stored, but {left}: {source}")]
    Incomplete {
        /// What is not done.
        left: &'static str,
        /// Why.
        source: Box<Self>,
    },
    /// Another server appends to the array, or changes its shape.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The memory for a document is not there.
    #[error(transparent)]
    Budget(#[from] BudgetExceeded),
    /// The work on the pool of threads failed.
    #[error(transparent)]
    Cpu(#[from] ComputePoolError),
}

impl NodeWriteError {
    /// The same error of a step after the node was stored.
    pub(super) fn after_storing(self, left: &'static str) -> Self {
        Self::Incomplete { left, source: Box::new(self) }
    }

    /// Whether no change of the document can still arrive.
    pub(in crate::write) fn is_settled(&self) -> bool {
        match self {
            Self::Store { source, .. } => is_settled(source),
            Self::Lease(error) => error.is_settled(),
            _ => true,
        }
    }

    /// A failure of the backend at a key.
    pub(super) fn store(key: &StoreKey, source: StoreError) -> Self {
        Self::Store { key: key.to_string(), source }
    }
}

impl Classify for NodeWriteError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Invalid(_) => ErrorClass::InvalidRequest,
            Self::Document(error) => of_request(error.class()),
            Self::Unreadable(error) => of_request(error.class()),
            Self::Exists { .. } | Self::ConditionFailed => ErrorClass::PreconditionFailed,
            Self::BelowArray { .. } | Self::NotEmpty { .. } | Self::ValuesChanged { .. } => {
                ErrorClass::Conflict
            }
            Self::NoGroupAbove { .. } => ErrorClass::NotAllowed,
            Self::Unsupported(_) | Self::NoConditions { .. } => ErrorClass::Unsupported,
            Self::TooManyChunks { .. } => ErrorClass::TooLarge,
            Self::Contended { .. } | Self::StillStored { .. } => ErrorClass::Overloaded,
            Self::Node(error) => error.class(),
            Self::Hierarchy(error) => error.class(),
            Self::Elements(error) => error.class(),
            Self::Store { source, .. } => source.class(),
            Self::Incomplete { source, .. } => source.class(),
            Self::Lease(error) => error.class(),
            Self::Budget(error) => error.class(),
            Self::Cpu(error) => error.class(),
        }
    }

    fn written(&self) -> Option<WriteEffect> {
        match self {
            Self::Store { source, .. } => source.written(),
            Self::Elements(error) => error.written(),
            _ => None,
        }
    }
}

/// The class of a document that a request sent: what is wrong with it is wrong with the request.
fn of_request(class: ErrorClass) -> ErrorClass {
    match class {
        ErrorClass::InvalidMetadata => ErrorClass::InvalidRequest,
        class => class,
    }
}

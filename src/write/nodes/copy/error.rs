//! [`NodeCopyError`]: why a node cannot be copied or moved.

use crate::error::{Classify, ErrorClass, WriteEffect};
use crate::key::StoreKey;
use crate::store::{BudgetExceeded, StoreError};
use crate::write::{LeaseError, NodeWriteError};

/// Why a node cannot be copied or moved.
#[derive(Debug, thiserror::Error)]
pub enum NodeCopyError {
    /// One of the nodes is in the other.
    #[error("source and target are the same node, or one is in the other")]
    Overlapping,
    /// The source is of a format that is only read.
    #[error("nodes of Zarr v1 are only read")]
    OfV1,
    /// There is a value at the target that is none of the source's.
    #[error("`{key}` is stored at the target already, and is no copy of what the source has")]
    NotOfSource {
        /// Its key.
        key: StoreKey,
    },
    /// There is a node at the target of a move, and something at the source that is not at the target.
    #[error(
        "there is a node at the target, and `{key}` of the source is not the same there: DELETE of the source erases what is left of it"
    )]
    NotAtTarget {
        /// Its key at the source.
        key: StoreKey,
    },
    /// There are too many values.
    #[error(
        "more than {limit} values would be copied (`write.max_values`): copy the nodes below it one by one"
    )]
    TooManyValues {
        /// The limit.
        limit: u64,
    },
    /// A value is too long.
    #[error("`{key}` has {size} bytes; at most {limit} are stored (`http.max_value_size`)")]
    ValueTooLarge {
        /// Its key.
        key: StoreKey,
        /// Its length in bytes.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The documents are too many, or too long.
    #[error(
        "the metadata documents are more than {number}, or have more than {bytes} bytes together: copy the nodes below it one by one"
    )]
    TooManyDocuments {
        /// The most documents.
        number: usize,
        /// Their most bytes.
        bytes: u64,
    },
    /// The keys of the source cannot be listed.
    #[error("the backend of the source cannot list keys, so that its nodes cannot be copied")]
    NotListable,
    /// The backend of the target does not check conditions, or has no place for the record of a lease.
    #[error(
        "nodes cannot be copied to this backend: it does not check conditions, or has no place for records of the server; \
         set `writers = \"one\"` of the mount if this server alone writes to it"
    )]
    NoConditions,
    /// Others changed the source.
    #[error("`{key}` of the source changed while it was copied")]
    SourceChanged {
        /// The key.
        key: StoreKey,
    },
    /// Another request writes to the same path.
    #[error("another request copies a node to this path just now, or changes the array there")]
    Busy,
    /// A step at one of the nodes failed.
    #[error(transparent)]
    Node(NodeWriteError),
    /// A value could not be read or stored.
    #[error("`{key}`: {source}")]
    Value {
        /// Its key at the source, or the prefix.
        key: String,
        /// Why.
        source: StoreError,
    },
    /// The memory is not there.
    #[error(transparent)]
    Budget(#[from] BudgetExceeded),
    /// The node is at its target, but not all that follows from it is done.
    #[error("the node is at its target, but {left}: {source}")]
    Incomplete {
        /// What is not done.
        left: &'static str,
        /// Why.
        source: Box<Self>,
    },
    /// The node was moved, but for values that were written in the meantime.
    #[error(
        "the node is at its target, but {values} values of the source were written while it was moved, and are kept there"
    )]
    Kept {
        /// The number of values.
        values: u64,
    },
}

/// A copy that failed.
#[derive(Debug)]
pub struct NodeCopyFailure {
    /// Why.
    pub error: NodeCopyError,
    /// Whether anything was written.
    pub has_written: bool,
}

impl NodeCopyError {
    /// The same error of a step after the node was stored.
    pub(super) fn after_storing(self, left: &'static str) -> Self {
        Self::Incomplete { left, source: Box::new(self) }
    }

    /// A failure of a store at a key or a prefix.
    pub(super) fn value(key: &str, source: StoreError) -> Self {
        match source {
            StoreError::NotListable => Self::NotListable,
            StoreError::NotSupported(_) => Self::NoConditions,
            source => Self::Value { key: key.to_owned(), source },
        }
    }

    /// Whether nothing of what was begun can still arrive.
    pub(super) fn is_settled(&self) -> bool {
        self.class() != ErrorClass::TimedOut && self.written() != Some(WriteEffect::Unknown)
    }

    /// Whether the node is at its target.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Incomplete { .. } | Self::Kept { .. })
    }
}

impl From<LeaseError> for NodeCopyError {
    fn from(error: LeaseError) -> Self {
        match error {
            LeaseError::Owned | LeaseError::Making | LeaseError::Lost => Self::Busy,
            LeaseError::NoConditions => Self::NoConditions,
            error => Self::Node(error.into()),
        }
    }
}

impl From<NodeWriteError> for NodeCopyError {
    fn from(error: NodeWriteError) -> Self {
        match error {
            NodeWriteError::Lease(error) => error.into(),
            NodeWriteError::NoConditions { .. } => Self::NoConditions,
            error => Self::Node(error),
        }
    }
}

impl Classify for NodeCopyError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Overlapping | Self::NotOfSource { .. } | Self::NotAtTarget { .. } | Self::Kept { .. } => {
                ErrorClass::Conflict
            }
            Self::OfV1 | Self::NotListable | Self::NoConditions => ErrorClass::Unsupported,
            Self::TooManyValues { .. } | Self::ValueTooLarge { .. } | Self::TooManyDocuments { .. } => {
                ErrorClass::TooLarge
            }
            Self::SourceChanged { .. } | Self::Busy => ErrorClass::Overloaded,
            Self::Node(error) => error.class(),
            Self::Value { source, .. } => source.class(),
            Self::Budget(error) => error.class(),
            Self::Incomplete { source, .. } => source.class(),
        }
    }

    fn written(&self) -> Option<WriteEffect> {
        match self {
            Self::Node(error) => error.written(),
            Self::Value { source, .. } => source.written(),
            Self::Overlapping
            | Self::OfV1
            | Self::NotOfSource { .. }
            | Self::NotAtTarget { .. }
            | Self::TooManyValues { .. }
            | Self::ValueTooLarge { .. }
            | Self::TooManyDocuments { .. }
            | Self::NotListable
            | Self::NoConditions
            | Self::SourceChanged { .. }
            | Self::Busy
            | Self::Budget(_)
            | Self::Incomplete { .. }
            | Self::Kept { .. } => None,
        }
    }
}

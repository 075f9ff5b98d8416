//! [`AppendError`]: why elements cannot be appended.

use std::sync::Arc;

use crate::cpu::ComputePoolError;
use crate::error::{Classify, ErrorClass, WriteEffect};
use crate::key::NodePath;
use crate::write::{LeaseError, NodeWriteError, WriteError};

/// Why elements cannot be appended. Unless it says otherwise, nothing of them is seen.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The array has another length than the request expects.
    #[error("the array has the length {length} along the dimension, and `at` is {at}; nothing was written")]
    NotTheEnd {
        /// What the request expects.
        at: u64,
        /// The length.
        length: u64,
    },
    /// The key of the request was used for other elements.
    #[error("the key `{name}` was used to append other elements; nothing was written")]
    KeyUsed {
        /// The key.
        name: String,
    },
    /// The array has another shape than when the request was checked.
    #[error("the array has the shape {shape:?} now; nothing was written")]
    AnotherShape {
        /// Its shape.
        shape: Vec<u64>,
    },
    /// The arrays of a group do not have the same length.
    #[error("`{}` has the length {}, and `{}` {}; nothing was written", one.0, one.1, other.0, other.1)]
    DifferentLengths {
        /// An array and its length along the dimension.
        one: (NodePath, u64),
        /// Another one.
        other: (NodePath, u64),
    },
    /// No array is named.
    #[error("there is no array to append to; nothing was written")]
    NoArrays,
    /// Others changed the array at each attempt.
    #[error("others are changing the array just now; nothing was written")]
    Contended,
    /// While the request waited, many others were stored: its key may have been used since, and dropped.
    #[error(
        "many appends were stored while this one waited, and its key may have been used since; nothing was written"
    )]
    TooLate,
    /// It is not known whether the array has its new shape.
    #[error("it is not known whether the elements were appended: {0}")]
    Unknown(#[source] Box<NodeWriteError>),
    /// It is not known whether the arrays of a group get their shapes.
    #[error("it is not known whether the elements were appended: {0}")]
    Undecided(#[source] LeaseError),
    /// Another server has taken the group over. If the step was decided before, that one finishes it.
    #[error("it is not known whether the elements were appended: another server took the group over")]
    TakenOver,
    /// The task that appends broke off.
    #[error("it is not known whether the elements were appended")]
    Lost,
    /// Another server has the array.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The document of the array cannot be read or stored.
    #[error(transparent)]
    Node(Box<NodeWriteError>),
    /// The elements cannot be stored.
    #[error(transparent)]
    Elements(#[from] WriteError),
    /// The work on the pool of threads failed.
    #[error(transparent)]
    Cpu(#[from] ComputePoolError),
}

impl AppendError {
    /// Whether a change of a document, or the decision of a step, can still arrive.
    pub(super) fn may_arrive(&self) -> bool {
        match self {
            Self::Undecided(_) | Self::TakenOver => true,
            Self::Unknown(error) => !error.is_settled(),
            _ => false,
        }
    }

    /// Whether what was read has changed since, so that it is read again.
    pub(super) fn is_overtaken(&self) -> bool {
        matches!(self, Self::Node(error) if matches!(**error, NodeWriteError::ConditionFailed))
    }
}

impl From<NodeWriteError> for AppendError {
    fn from(error: NodeWriteError) -> Self {
        match error {
            NodeWriteError::Lease(error) => Self::Lease(error),
            error => Self::Node(Box::new(error)),
        }
    }
}

/// All appends that are stored together have the same error.
impl Classify for Arc<AppendError> {
    fn class(&self) -> ErrorClass {
        AppendError::class(self)
    }

    fn written(&self) -> Option<WriteEffect> {
        AppendError::written(self)
    }
}

impl Classify for AppendError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NotTheEnd { .. } | Self::AnotherShape { .. } | Self::DifferentLengths { .. } => {
                ErrorClass::Conflict
            }
            Self::KeyUsed { .. } | Self::NoArrays => ErrorClass::InvalidRequest,
            Self::Contended | Self::TooLate | Self::TakenOver => ErrorClass::Overloaded,
            Self::Unknown(error) | Self::Node(error) => error.class(),
            Self::Lost => ErrorClass::Internal,
            Self::Lease(error) | Self::Undecided(error) => error.class(),
            Self::Elements(error) => error.class(),
            Self::Cpu(error) => error.class(),
        }
    }

    fn written(&self) -> Option<WriteEffect> {
        Some(match self {
            Self::Unknown(_) | Self::Undecided(_) | Self::TakenOver | Self::Lost => WriteEffect::Unknown,
            // Elements beyond the shape are not seen.
            Self::NotTheEnd { .. }
            | Self::KeyUsed { .. }
            | Self::AnotherShape { .. }
            | Self::DifferentLengths { .. }
            | Self::NoArrays
            | Self::Contended
            | Self::TooLate
            | Self::Lease(_)
            | Self::Node(_)
            | Self::Elements(_)
            | Self::Cpu(_) => WriteEffect::No,
        })
    }
}

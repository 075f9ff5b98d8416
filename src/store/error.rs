//! [`StoreError`]: the failures of a store.

use std::sync::Arc;

use super::{BudgetExceeded, PrivateAddress, ReferenceError, ZipError};
use crate::error::{Classify, ErrorClass, WriteEffect};

/// A failure of a store. Absence is not one.
///
/// The text of a backend's own error may name hosts, buckets and paths: it is for the log, reached through `source()`,
/// and never part of this error's own text. All waiters of one load share its error, so it can be cloned.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The store was opened for reading only.
    #[error("the store is read-only")]
    ReadOnly,
    /// The backend cannot list.
    #[error("the backend cannot list keys")]
    NotListable,
    /// The backend cannot do this at all.
    #[error("the backend does not support {0}")]
    NotSupported(&'static str),
    /// The backend cannot have this key (a name too long for the file system).
    #[error("the key is not valid for this backend: {0}")]
    InvalidKey(&'static str),
    /// A key would have to be a prefix as well.
    #[error("the key clashes with another: on this backend a key cannot also be a prefix")]
    KeyClash,
    /// A [`super::WriteCondition`] does not hold; nothing was written.
    #[error("the condition on the stored value does not hold")]
    ConditionFailed,
    /// The value no longer has the requested version.
    #[error("the stored value changed while it was read")]
    VersionChanged,
    /// The range has no byte of the value, which is `size` bytes long.
    #[error("the range lies outside the value of {size} bytes")]
    RangeNotSatisfiable {
        /// The value's length in bytes.
        size: u64,
    },
    /// The value is longer than the caller's limit.
    #[error("the stored value has {size} bytes; at most {limit} are read here")]
    ValueTooLarge {
        /// The value's length in bytes.
        size: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The backend sent more or fewer bytes than it promised.
    #[error("the backend sent a body of another length than it promised")]
    WrongLength,
    /// The sender of a value to be stored broke off; nothing was written.
    #[error("the body ended early: {0}")]
    BodyAborted(&'static str),
    /// The value to be stored is longer than the limit; nothing was written.
    #[error("the body is longer than {limit} bytes")]
    BodyTooLarge {
        /// Bytes allowed.
        limit: u64,
    },
    /// The value must be held in memory to be stored, and there is not enough memory now; nothing was written.
    #[error("there is no memory left for a value that must be held to be stored; nothing was written")]
    NoUploadMemory,
    /// The memory for a listing or a generated document does not fit into the request's budget.
    #[error("{0}")]
    OverBudget(#[from] BudgetExceeded),
    /// The value would get another length than the writer of a part states; nothing was written.
    #[error("the value would become {result} bytes long, not {asked}")]
    LengthMismatch {
        /// The length that the writer states.
        asked: u64,
        /// The length that it would have.
        result: u64,
    },
    /// Ranges that are read together are longer than the limit.
    #[error("the parts have more than {limit} bytes together")]
    PartsTooLarge {
        /// Bytes allowed.
        limit: u64,
    },
    /// The value is derived from others, and cannot be built.
    #[error("the value cannot be derived from what is stored: {source}")]
    Derived {
        /// The class of that failure.
        class: ErrorClass,
        /// Why.
        source: Shared,
    },
    /// The value is derived from others, and is not ready yet.
    #[error("{source}")]
    NotBuilt {
        /// The class of that failure.
        class: ErrorClass,
        /// Why.
        source: Shared,
    },
    /// A symbolic link at the key or above it leads to no value.
    #[error("a symbolic link at `{key}` or above it {fault}")]
    Link {
        /// The key, or the prefix.
        key: Arc<str>,
        /// Why not.
        fault: LinkFault,
    },
    /// The zip file cannot be read.
    #[error(transparent)]
    Zip(#[from] ZipError),
    /// The document of references, or the reference, cannot be read.
    #[error(transparent)]
    References(#[from] ReferenceError),
    /// The name of the backend's host leads to an address of this network, where requests must not go.
    #[error("the name of the backend's host leads to {0}")]
    NotPublic(PrivateAddress),
    /// Another server writes to the same root directory; only one may.
    #[error("another server has the directory open for writing")]
    RootInUse(#[source] Shared),
    /// The backend is full.
    #[error("the storage of the backend is full")]
    StorageFull(#[source] Shared),
    /// The backend is too busy, or is not asked because it failed too often.
    #[error("{}", busy_text(.0))]
    Busy(#[source] Shared),
    /// Other writers changed this value at each attempt; nothing was written.
    #[error("others are writing this value just now; nothing was written")]
    Contended(#[source] Option<Shared>),
    /// The response to a conditional write was lost, and the stored value does not show whether it was carried out.
    #[error("it is not known whether the value was written")]
    OutcomeUnknown(#[source] Shared),
    /// The backend did not answer in time.
    #[error("the backend did not answer in time")]
    TimedOut(#[source] Shared),
    /// The backend refused, failed or sent an invalid response.
    #[error("the backend failed")]
    Backend(#[source] Shared),
}

/// The backend failed so often that it is not asked for a while: the circuit breaker is open.
#[derive(Debug, thiserror::Error)]
#[error("the backend failed too often, and is asked again within a second")]
pub(in crate::store) struct CircuitOpen;

/// The directory of the backend is missing.
#[derive(Debug, thiserror::Error)]
#[error("its directory is missing")]
pub(in crate::store) struct DirectoryMissing;

/// What the error [`StoreError::Busy`] says of its cause.
fn busy_text(source: &Shared) -> &'static str {
    if source.is::<CircuitOpen>() {
        "the backend failed too often, and is asked again within a second"
    } else {
        "the backend is too busy"
    }
}

/// Why a symbolic link leads to no value. The text says what the operator can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkFault {
    /// The store follows no links.
    #[error(
        "is not followed: put what it leads to in its place, or set the mount's option `symlinks` to \"within\" \
         (Linux with `openat2`) or \"follow\""
    )]
    Refused,
    /// It leads out of the directory, or to the server's own files in it.
    #[error(
        "leads out of the mount's directory, as absolute links always do: make it relative and let it stay inside, or \
         set the mount's option `symlinks` to \"follow\""
    )]
    LeadsOut,
    /// It leads back to itself, or through too many other links.
    #[error(
        "leads in a circle, or through too many others: remove it, or let it lead to a file or a directory"
    )]
    Loops,
    /// It leads to nothing.
    #[error("leads to nothing: remove it, or restore what it leads to")]
    Dangles,
}

/// The cause of a failure, shared.
pub type Shared = Arc<dyn std::error::Error + Send + Sync>;

impl Classify for StoreError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::ReadOnly | Self::NotListable | Self::NotSupported(_) => ErrorClass::NotAllowed,
            Self::InvalidKey(_) | Self::BodyAborted(_) => ErrorClass::InvalidRequest,
            Self::KeyClash | Self::LengthMismatch { .. } => ErrorClass::Conflict,
            Self::ConditionFailed => ErrorClass::PreconditionFailed,
            Self::RangeNotSatisfiable { .. } => ErrorClass::RangeNotSatisfiable,
            Self::BodyTooLarge { .. } | Self::PartsTooLarge { .. } => ErrorClass::TooLarge,
            Self::ValueTooLarge { .. } => ErrorClass::CorruptData,
            Self::WrongLength | Self::RootInUse(_) | Self::Backend(_) => ErrorClass::BackendFailed,
            Self::StorageFull(_) => ErrorClass::StorageFull,
            Self::VersionChanged
            | Self::Busy(_)
            | Self::NoUploadMemory
            | Self::Contended(_)
            | Self::OutcomeUnknown(_) => ErrorClass::Overloaded,
            Self::TimedOut(_) => ErrorClass::TimedOut,
            Self::Derived { class, .. } | Self::NotBuilt { class, .. } => *class,
            Self::Link { .. } => ErrorClass::UnusableLink,
            Self::OverBudget(error) => error.class(),
            Self::Zip(error) => error.class(),
            Self::References(error) => error.class(),
            Self::NotPublic(_) => ErrorClass::ReferenceRefused,
        }
    }

    fn written(&self) -> Option<WriteEffect> {
        match self {
            Self::Contended(_) | Self::StorageFull(_) | Self::NoUploadMemory => Some(WriteEffect::No),
            Self::OutcomeUnknown(_) => Some(WriteEffect::Unknown),
            Self::ReadOnly
            | Self::NotListable
            | Self::NotSupported(_)
            | Self::InvalidKey(_)
            | Self::KeyClash
            | Self::ConditionFailed
            | Self::VersionChanged
            | Self::RangeNotSatisfiable { .. }
            | Self::ValueTooLarge { .. }
            | Self::WrongLength
            | Self::BodyAborted(_)
            | Self::BodyTooLarge { .. }
            | Self::LengthMismatch { .. }
            | Self::PartsTooLarge { .. }
            | Self::Derived { .. }
            | Self::NotBuilt { .. }
            | Self::Link { .. }
            | Self::OverBudget(_)
            | Self::Zip(_)
            | Self::References(_)
            | Self::NotPublic(_)
            | Self::RootInUse(_)
            | Self::Busy(_)
            | Self::TimedOut(_)
            | Self::Backend(_) => None,
        }
    }
}

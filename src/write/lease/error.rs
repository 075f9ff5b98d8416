//! [`LeaseError`]: why a server may not change the end of an array.

use crate::error::{Classify, ErrorClass};
use crate::store::StoreError;
use crate::write::settled::is_settled;

/// Why a server may not change the end of an array.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another owner appends to the array, or changes its shape, or has begun to and broken off.
    #[error(
        "another server appends to the array, or an append to it has just broken off; nothing was written"
    )]
    Owned,
    /// A node is being made at the path.
    #[error("a node is being made at the path just now; nothing was written")]
    Making,
    /// Another server has the lease now.
    #[error("another server took the array over; nothing was written")]
    Lost,
    /// The backend does not check conditions, so that the changes of other servers could be lost.
    #[error(
        "changing the length of an array is not supported: the backend does not check conditions; nothing was written; \
         set `writers = \"one\"` of the mount if this server alone writes to it"
    )]
    NoConditions,
    /// What is stored as the record of the lease is none.
    #[error(
        "the record of appends at `{key}` is not one of this server; nothing was written: delete it in the backend \
         while no server appends there, and no append that is sent again after that is recognized"
    )]
    BrokenRecord {
        /// Its place in the backend, below the URL of the mount.
        key: String,
    },
    /// The record would be longer than what is read.
    #[error(
        "too much is appended in one step for its record; nothing was written: append to fewer arrays at a time"
    )]
    TooLong,
    /// The record cannot be read or stored.
    #[error("the record of appends to the array: {0}")]
    Record(#[source] StoreError),
}

impl LeaseError {
    /// Whether no change of the record can still arrive.
    pub(in crate::write) fn is_settled(&self) -> bool {
        match self {
            Self::Record(source) => is_settled(source),
            Self::Owned
            | Self::Making
            | Self::Lost
            | Self::NoConditions
            | Self::BrokenRecord { .. }
            | Self::TooLong => true,
        }
    }
}

impl Classify for LeaseError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Owned | Self::Making | Self::Lost => ErrorClass::Overloaded,
            Self::NoConditions => ErrorClass::Unsupported,
            Self::TooLong => ErrorClass::TooLarge,
            Self::BrokenRecord { .. } => ErrorClass::CorruptData,
            Self::Record(source) => source.class(),
        }
    }
}

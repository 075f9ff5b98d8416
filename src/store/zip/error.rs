//! [`ZipError`]: faults of a zip file, and failures of reading it.

use crate::codec::CodecError;
use crate::cpu::ComputePoolError;
use crate::error::{Classify, ErrorClass};
use crate::store::container::OverBudget;

/// Why a zip file, or one entry of it, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZipError {
    /// There is no file. That is a failure, not an absence of keys: the store itself is missing.
    #[error("the zip file does not exist")]
    NoFile,
    /// The file is no zip file, or contradicts itself.
    #[error("the zip file is broken: {0}")]
    Broken(&'static str),
    /// The compression method of an entry is not supported; the number is that of APPNOTE 4.4.5.
    #[error("the zip entry is compressed with method {0}; only 0 (stored) and 8 (deflated) are supported")]
    Method(u16),
    /// Another feature of zip files that is not supported.
    #[error("a zip file with {0} is not supported")]
    Feature(&'static str),
    /// Longer than the limit for memory.
    #[error("the zip file's {what} measures {size}; at most {limit} are supported")]
    TooLarge {
        /// What is too large, and its unit.
        what: &'static str,
        /// The size that the file states.
        size: u64,
        /// The largest size allowed.
        limit: u64,
    },
    /// Its directory does not fit into the budget for the directories of all zip files.
    #[error(
        "the zip file's directory of entries takes {needed} bytes of memory, which exceeds what is free of the {limit} bytes for \
         those of all zip files: raise `cache.zip_directory_size`"
    )]
    OverBudget {
        /// The bytes it takes, or a lower bound of them.
        needed: u64,
        /// The budget for all directories, in bytes.
        limit: u64,
    },
    /// An entry's bytes contradict its header.
    #[error("the zip entry cannot be decoded: {0}")]
    Inflate(#[from] CodecError),
    /// The task on the compute pool failed.
    #[error(transparent)]
    Cpu(#[from] ComputePoolError),
}

impl Classify for ZipError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NoFile => ErrorClass::BackendFailed,
            Self::Broken(_) => ErrorClass::CorruptData,
            Self::Method(_) | Self::Feature(_) | Self::TooLarge { .. } => ErrorClass::Unsupported,
            Self::OverBudget { .. } => ErrorClass::OverBudget,
            Self::Inflate(error) => error.class(),
            Self::Cpu(error) => error.class(),
        }
    }
}

impl From<OverBudget> for ZipError {
    fn from(OverBudget { needed, limit }: OverBudget) -> Self {
        Self::OverBudget { needed, limit }
    }
}

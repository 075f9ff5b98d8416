//! [`ZipError`]: what can be wrong with a zip file, or go wrong while it is read.

use crate::codec::CodecError;
use crate::cpu::ComputePoolError;
use crate::error::{Classify, ErrorClass};

/// Why a zip file, or one entry of it, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZipError {
    /// There is no file. That is a failure and no absence of keys: what is missing is the store itself.
    #[error("the zip file does not exist")]
    NoFile,
    /// The file is no zip file, or contradicts itself.
    #[error("the zip file is broken: {0}")]
    Broken(&'static str),
    /// An entry is compressed in a way that is not read here; the number is that of APPNOTE 4.4.5.
    #[error("the zip entry is compressed with method {0}; only 0 (stored) and 8 (deflated) are supported")]
    Method(u16),
    /// Something else that zip files may have and that is not read here.
    #[error("a zip file with {0} is not supported")]
    Feature(&'static str),
    /// More than is read into memory.
    #[error("the zip file's {what} measures {size}; at most {limit} are supported")]
    TooLarge {
        /// What is too large, and its unit.
        what: &'static str,
        /// How large it says it is.
        size: u64,
        /// How large it may be.
        limit: u64,
    },
    /// Its directory does not fit into what the directories of all zip files may take of memory.
    #[error(
        "the zip file's directory of entries takes {needed} bytes of memory, and the {limit} bytes for those of all zip files \
         have no room for it: raise `cache.zip_directory_size`"
    )]
    OverBudget {
        /// Bytes that it takes, or at least takes.
        needed: u64,
        /// Bytes for all of them.
        limit: u64,
    },
    /// An entry's bytes are not what its header says.
    #[error("the zip entry cannot be decoded: {0}")]
    Inflate(#[from] CodecError),
    /// The work on it has no result.
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

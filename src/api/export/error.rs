//! [`ExportError`]: why a response with several arrays cannot be sent.

use crate::array::ArrayError;
use crate::cpu::ComputePoolError;
use crate::error::{Classify, ErrorClass};
use crate::render::dataset::DatasetError;

/// A failure to produce a response with several arrays.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    /// Elements cannot be read.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// Elements cannot be written in the requested format.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

impl From<ComputePoolError> for ExportError {
    fn from(error: ComputePoolError) -> Self {
        Self::Array(error.into())
    }
}

impl ExportError {
    /// The limit that the elements exceed, if that is why they cannot be sent.
    pub(crate) fn exceeded_limit(&self) -> Option<u64> {
        match self {
            Self::Array(error) => error.exceeded_limit(),
            Self::Dataset(_) => None,
        }
    }

    /// Whether a stored value changed while it was read, so that starting again can help.
    pub(crate) fn is_changed(&self) -> bool {
        matches!(self, Self::Array(error) if error.is_changed())
    }
}

impl Classify for ExportError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Array(error) => error.class(),
            Self::Dataset(error) => error.class(),
        }
    }
}

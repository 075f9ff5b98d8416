//! [`ViewError`]: why a view cannot show a value.

use std::sync::Arc;

use crate::array::ArrayError;
use crate::codec::CodecError;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::HierarchyError;
use crate::key::NodePath;
use crate::store::StoreError;

/// Why a view cannot show a value. A view is a store, so callers see it as a [`StoreError`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum ViewError {
    /// The source of the value cannot be read.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The rechunk recipe does not apply to an array.
    #[error("`{path}` cannot be rechunked in this way: {source}")]
    Rechunk {
        /// The array.
        path: NodePath,
        /// The reason.
        source: CodecError,
    },
    /// An array has more chunks along a dimension than a listing allows.
    #[error(
        "`{path}` has more than {limit} chunks along a dimension, too many to list: request larger chunks"
    )]
    TooManyAlongDimension {
        /// The array.
        path: NodePath,
        /// Chunks allowed.
        limit: usize,
    },
    /// An array has more chunks than a listing allows.
    #[error(
        "`{path}` has more than {limit} stored chunks, too many to list at once: list below one of its prefixes"
    )]
    TooManyChunks {
        /// The array.
        path: NodePath,
        /// Chunks allowed.
        limit: usize,
    },
}

impl Classify for ViewError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Array(error) => error.class(),
            Self::Rechunk { source, .. } => source.class(),
            Self::TooManyChunks { .. } | Self::TooManyAlongDimension { .. } => ErrorClass::TooLarge,
        }
    }
}

impl From<ViewError> for StoreError {
    fn from(error: ViewError) -> Self {
        match error {
            // A failure of the underlying store is one of the view.
            ViewError::Array(
                ArrayError::Store { source, .. }
                | ArrayError::Hierarchy(HierarchyError::Store { source, .. }),
            ) => source,
            error => Self::Derived { class: error.class(), source: Arc::new(error) },
        }
    }
}

/// Converts a failure into that of a store.
pub(super) fn to_store_error(error: impl Into<ViewError>) -> StoreError {
    error.into().into()
}

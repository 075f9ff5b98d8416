//! [`ViewError`]: why a view cannot show something.

use std::sync::Arc;

use crate::array::ArrayError;
use crate::codec::CodecError;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::HierarchyError;
use crate::key::NodePath;
use crate::store::StoreError;

/// Why a view cannot show something. As a view is a store, it is told as a [`StoreError`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum ViewError {
    /// What it is made of cannot be had.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// What a recipe makes of an array cannot be had.
    #[error("`{path}` cannot be rechunked so: {source}")]
    Rechunk {
        /// The array.
        path: NodePath,
        /// Why.
        source: CodecError,
    },
    /// An array of more chunks along a dimension than are listed.
    #[error("`{path}` has more than {limit} chunks side by side, which are not listed: ask for larger ones")]
    TooManySideBySide {
        /// The array.
        path: NodePath,
        /// Chunks allowed.
        limit: usize,
    },
    /// An array of more chunks than are listed.
    #[error("more than {limit} chunks are stored of `{path}`: list what is below one of its prefixes")]
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
            Self::TooManyChunks { .. } | Self::TooManySideBySide { .. } => ErrorClass::TooLarge,
        }
    }
}

impl From<ViewError> for StoreError {
    fn from(error: ViewError) -> Self {
        match error {
            // The store's own failures are those of the view.
            ViewError::Array(
                ArrayError::Store { source, .. }
                | ArrayError::Hierarchy(HierarchyError::Store { source, .. }),
            ) => source,
            error => Self::Derived { class: error.class(), source: Arc::new(error) },
        }
    }
}

/// A failure as a store tells it.
pub(super) fn failed(error: impl Into<ViewError>) -> StoreError {
    error.into().into()
}

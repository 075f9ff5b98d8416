//! [`ViewError`]: why a view cannot show a value.

use std::sync::Arc;

use super::pyramid::LevelsError;
use crate::array::ArrayError;
use crate::codec::CodecError;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::HierarchyError;
use crate::key::NodePath;
use crate::reduce::ReduceError;
use crate::store::StoreError;

/// Why a view cannot show a value. A view is a store, so callers see it as a [`StoreError`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum ViewError {
    /// The source of the value cannot be read.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// The rechunk recipe does not apply to an array.
    #[error("`{path}` cannot be rechunked in this way: {source}")]
    Rechunk {
        /// The array.
        path: NodePath,
        /// The reason.
        source: CodecError,
    },
    /// An array has no coarser levels.
    #[error("`{path}` cannot be shown as an image: {source}")]
    Levels {
        /// The array.
        path: NodePath,
        /// The reason.
        source: LevelsError,
    },
    /// The elements of an array cannot be reduced in this way.
    #[error("`{path}` has no levels of this kind: {source}")]
    Reduce {
        /// The array.
        path: NodePath,
        /// The reason.
        source: ReduceError,
    },
    /// A chunk of a level is being computed.
    #[error(
        "this chunk of `{path}` is made of many others, and is being built; retry after the time in `Retry-After`"
    )]
    BeingBuilt {
        /// The level.
        path: NodePath,
    },
    /// As many chunks of levels as possible are being computed.
    #[error("too many chunks are being built")]
    BuildsFull,
    /// Whether a chunk of a level is current cannot be found out with few requests.
    #[error(
        "this chunk of `{path}` is made of so much that its version cannot be checked for each request: give the mount \
         the freshness `ttl:` or `immutable`, or request finer levels"
    )]
    NotRevalidated {
        /// The level.
        path: NodePath,
    },
    /// A chunk of a level cannot be computed in bounded memory.
    #[error(
        "chunks of `{path}` are too large to be built from finer levels: request smaller ones of even lengths"
    )]
    BuildTooLarge {
        /// The level.
        path: NodePath,
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
            Self::Store(error) => error.class(),
            Self::Rechunk { source, .. } => source.class(),
            Self::Levels { source, .. } => source.class(),
            Self::Reduce { source, .. } => source.class(),
            Self::BeingBuilt { .. } => ErrorClass::BeingBuilt,
            Self::BuildsFull => ErrorClass::Overloaded,
            Self::NotRevalidated { .. } => ErrorClass::Conflict,
            Self::TooManyChunks { .. } | Self::TooManyAlongDimension { .. } | Self::BuildTooLarge { .. } => {
                ErrorClass::TooLarge
            }
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
            ViewError::Store(error) => error,
            error @ (ViewError::BeingBuilt { .. } | ViewError::BuildsFull) => {
                Self::NotBuilt { class: error.class(), source: Arc::new(error) }
            }
            error => Self::Derived { class: error.class(), source: Arc::new(error) },
        }
    }
}

/// Converts a failure into that of a store.
pub(super) fn to_store_error(error: impl Into<ViewError>) -> StoreError {
    error.into().into()
}

//! [`Consolidated`]: a consolidated metadata document built from the documents of nodes, and the builds in flight.

use std::sync::Arc;

use bytes::Bytes;

use super::HierarchyError;
use super::shared_build::SharedBuild;
use crate::key::NodePath;
use crate::store::Version;

/// Consolidated metadata that was made. Clones share it.
#[derive(Clone, Debug)]
pub struct Consolidated {
    /// The document.
    pub text: Bytes,
    /// Its version.
    pub version: Version,
}

/// Documents that are being made, by what they show, where they stand, and how.
pub(super) type Makings =
    SharedBuild<(Arc<str>, NodePath, How), Result<Option<Consolidated>, HierarchyError>>;

/// No document in the making. Those who wait for one share it, and its failure where that is about what is stored.
pub(super) fn makings() -> Makings {
    Makings::new(|made| !made.as_ref().is_err_and(HierarchyError::is_of_caller))
}

/// How a document is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum How {
    Zmetadata,
    Inline { rebuild: bool, below_arrays: bool },
}

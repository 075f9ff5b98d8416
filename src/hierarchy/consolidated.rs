//! [`Consolidated`]: consolidated metadata built on request, and the builds in flight.

use std::sync::Arc;

use bytes::Bytes;

use super::HierarchyError;
use super::shared_build::SharedBuild;
use crate::key::NodePath;
use crate::store::Version;

/// Consolidated metadata built from the documents of nodes. Clones share it.
#[derive(Clone, Debug)]
pub struct Consolidated {
    /// The document.
    pub text: Bytes,
    /// Its version.
    pub version: Version,
}

/// The builds in flight, by name of the view, path of the group, and target.
pub(super) type Builds =
    SharedBuild<(Arc<str>, NodePath, BuildTarget), Result<Option<Consolidated>, HierarchyError>>;

/// No builds. Waiting callers share a result, and also an error unless it is specific to one caller.
pub(super) fn new_builds() -> Builds {
    Builds::new(|result| !result.as_ref().is_err_and(HierarchyError::is_caller_specific))
}

/// The document to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum BuildTarget {
    Zmetadata,
    Inline { rebuild: bool, below_arrays: bool },
}

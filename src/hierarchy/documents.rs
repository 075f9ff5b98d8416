//! [`Located`]: the documents of a node, by their names and versions (Zarr core 3.1, "Stored representation"; Zarr v2, "Hierarchies").

use super::HierarchyError;
use crate::key::{NodePath, StoreKey};
use crate::metadata::ZarrFormat;
use crate::store::Version;

pub(super) const ZARR_JSON: &str = "zarr.json";
pub(super) const ZARRAY: &str = ".zarray";
pub(super) const ZGROUP: &str = ".zgroup";
pub(super) const ZATTRS: &str = ".zattrs";
pub(super) const META: &str = "meta";
pub(super) const ATTRS: &str = "attrs";

/// The documents of a node with their versions. For one path, equal values mean that the node is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Located {
    pub(super) documents: Documents,
    pub(super) bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Documents {
    V3 {
        zarr_json: Version,
    },
    V2Array {
        zarray: Version,
        zattrs: Option<Version>,
    },
    V2Group {
        zgroup: Version,
        zattrs: Option<Version>,
    },
    V1Array {
        meta: Version,
        attrs: Option<Version>,
    },
    /// A dependent array: nothing is stored under its path, the array `primary` declares it.
    Dependent {
        primary: NodePath,
        zarr_json: Version,
    },
}

impl Located {
    /// The versions of the documents, in a fixed order.
    pub fn versions(&self) -> impl Iterator<Item = Option<&Version>> {
        let (first, second) = match &self.documents {
            Documents::V3 { zarr_json } | Documents::Dependent { zarr_json, .. } => (zarr_json, None),
            Documents::V2Array { zarray: first, zattrs: second }
            | Documents::V2Group { zgroup: first, zattrs: second }
            | Documents::V1Array { meta: first, attrs: second } => (first, second.as_ref()),
        };
        [Some(first), second].into_iter()
    }

    /// The format of the documents.
    #[must_use]
    pub fn zarr_format(&self) -> ZarrFormat {
        match &self.documents {
            Documents::V3 { .. } | Documents::Dependent { .. } => ZarrFormat::V3,
            Documents::V2Array { .. } | Documents::V2Group { .. } => ZarrFormat::V2,
            Documents::V1Array { .. } => ZarrFormat::V1,
        }
    }

    /// Whether unchanged documents are certain to keep these versions.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.versions().flatten().all(Version::is_settled)
    }

    /// Total size of the documents in bytes.
    #[must_use]
    pub fn document_bytes(&self) -> u64 {
        self.bytes
    }
    /// Whether this is a dependent array.
    #[must_use]
    pub fn is_dependent(&self) -> bool {
        matches!(self.documents, Documents::Dependent { .. })
    }

    /// The location of a dependent array, if this is the location of its primary.
    #[must_use]
    pub fn for_dependent(&self, primary: &NodePath) -> Option<Self> {
        let Documents::V3 { zarr_json } = &self.documents else { return None };
        let documents = Documents::Dependent { primary: primary.clone(), zarr_json: zarr_json.clone() };
        Some(Self { documents, bytes: self.bytes })
    }
}

/// The conditions under which a dependent array is unchanged: keys with the version that each must have, or `None` if it
/// must be absent.
///
/// Nothing may be stored at the dependent's path, and the primary's document must be unchanged and the nearest above.
pub(super) fn version_conditions<'v>(
    path: &NodePath,
    primary: &NodePath,
    zarr_json: &'v Version,
) -> Result<Vec<(StoreKey, Option<&'v Version>)>, HierarchyError> {
    let mut keys = vec![(document_key(primary, ZARR_JSON)?, Some(zarr_json))];
    for name in [ZARRAY, ZGROUP, META] {
        keys.push((document_key(path, name)?, None));
    }
    let mut above = Some(path.clone());
    while let Some(at) = above.filter(|at| at != primary) {
        keys.push((document_key(&at, ZARR_JSON)?, None));
        above = at.parent();
    }
    Ok(keys)
}

/// The key of a node's document.
pub(super) fn document_key(path: &NodePath, name: &str) -> Result<StoreKey, HierarchyError> {
    path.prefix().key(name).map_err(|source| HierarchyError::Path { path: path.clone(), source })
}

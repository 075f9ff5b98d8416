//! Which documents stand under a path, and at which versions.

use futures::future::try_join3;

use super::documents::{
    ATTRS, Documents, Located, META, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, conditions, document_key,
};
use super::{Hierarchy, HierarchyError};
use crate::key::NodePath;
use crate::store::ValueInfo;

impl Hierarchy {
    /// Which documents stand under the path. Reads none of them, so that a `meta` that is no document of Zarr v1 counts
    /// until it is read.
    ///
    /// # Errors
    /// [`HierarchyError::NoSuchNode`] if there is none; failures of the store.
    pub async fn locate(&self, path: &NodePath) -> Result<Located, HierarchyError> {
        if let Some(zarr_json) = self.look(path, ZARR_JSON).await? {
            let bytes = zarr_json.size;
            return Ok(Located { documents: Documents::V3 { zarr_json: zarr_json.version }, bytes });
        }
        let (zarray, zgroup, zattrs) =
            try_join3(self.look(path, ZARRAY), self.look(path, ZGROUP), self.look(path, ZATTRS)).await?;
        let (is_array, document) = match (zarray, zgroup) {
            (Some(zarray), _) => (true, zarray),
            (None, Some(zgroup)) => (false, zgroup),
            (None, None) => return self.locate_v1(path).await,
        };
        let bytes = document.size.saturating_add(zattrs.as_ref().map_or(0, |zattrs| zattrs.size));
        let (version, zattrs) = (document.version, zattrs.map(|zattrs| zattrs.version));
        let documents = if is_array {
            Documents::V2Array { zarray: version, zattrs }
        } else {
            Documents::V2Group { zgroup: version, zattrs }
        };
        Ok(Located { documents, bytes })
    }

    /// Whether it is plain, without any waiting, that these documents still stand under the path as they were located.
    #[must_use]
    pub fn is_still(&self, path: &NodePath, located: &Located) -> bool {
        let still = |name, version| {
            document_key(path, name).is_ok_and(|key| self.store.validate_cached(&key, version))
        };
        match &located.documents {
            Documents::V3 { zarr_json } => still(ZARR_JSON, Some(zarr_json)),
            Documents::V2Array { zarray, zattrs } => {
                still(ZARR_JSON, None) && still(ZARRAY, Some(zarray)) && still(ZATTRS, zattrs.as_ref())
            }
            Documents::V2Group { zgroup, zattrs } => {
                still(ZARR_JSON, None)
                    && still(ZARRAY, None)
                    && still(ZGROUP, Some(zgroup))
                    && still(ZATTRS, zattrs.as_ref())
            }
            Documents::Dependent { primary, zarr_json } => {
                conditions(path, primary, zarr_json).is_ok_and(|keys| {
                    keys.iter().all(|(key, version)| self.store.validate_cached(key, *version))
                })
            }
            Documents::V1Array { .. } => false,
        }
    }

    async fn locate_v1(&self, path: &NodePath) -> Result<Located, HierarchyError> {
        let Some(meta) = self.look(path, META).await? else {
            return Err(HierarchyError::NoSuchNode { path: path.clone() });
        };
        let attrs = self.look(path, ATTRS).await?;
        let bytes = meta.size.saturating_add(attrs.as_ref().map_or(0, |attrs| attrs.size));
        let attrs = attrs.map(|attrs| attrs.version);
        Ok(Located { documents: Documents::V1Array { meta: meta.version, attrs }, bytes })
    }

    pub(super) async fn look(
        &self,
        path: &NodePath,
        name: &str,
    ) -> Result<Option<ValueInfo>, HierarchyError> {
        let key = document_key(path, name)?;
        let info = self.store.head(&key).await;
        info.map_err(|source| HierarchyError::Store { key: key.to_string(), source })
    }
}

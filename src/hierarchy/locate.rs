//! Locating the documents of a node: which ones are stored under a path, and at which versions.

use futures::future::try_join3;

use super::documents::{
    ATTRS, Documents, Located, META, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, document_key, version_conditions,
};
use super::{Hierarchy, HierarchyError};
use crate::key::NodePath;
use crate::store::ValueInfo;

impl Hierarchy {
    /// Finds the documents stored under a path. It does not read them, so a `meta` counts even if it is not a document of
    /// Zarr v1.
    ///
    /// # Errors
    /// [`HierarchyError::NoSuchNode`] if there is none; failures of the store.
    pub async fn locate(&self, path: &NodePath) -> Result<Located, HierarchyError> {
        if let Some(zarr_json) = self.head_document(path, ZARR_JSON).await? {
            let bytes = zarr_json.size;
            return Ok(Located { documents: Documents::V3 { zarr_json: zarr_json.version }, bytes });
        }
        let (zarray, zgroup, zattrs) = try_join3(
            self.head_document(path, ZARRAY),
            self.head_document(path, ZGROUP),
            self.head_document(path, ZATTRS),
        )
        .await?;
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

    /// Whether the documents are known, without I/O, to be unchanged since they were located.
    #[must_use]
    pub fn validate_cached(&self, path: &NodePath, located: &Located) -> bool {
        let is_current = |name, version| {
            document_key(path, name).is_ok_and(|key| self.store.validate_cached(&key, version))
        };
        match &located.documents {
            Documents::V3 { zarr_json } => is_current(ZARR_JSON, Some(zarr_json)),
            Documents::V2Array { zarray, zattrs } => {
                is_current(ZARR_JSON, None)
                    && is_current(ZARRAY, Some(zarray))
                    && is_current(ZATTRS, zattrs.as_ref())
            }
            Documents::V2Group { zgroup, zattrs } => {
                is_current(ZARR_JSON, None)
                    && is_current(ZARRAY, None)
                    && is_current(ZGROUP, Some(zgroup))
                    && is_current(ZATTRS, zattrs.as_ref())
            }
            Documents::Dependent { primary, zarr_json } => version_conditions(path, primary, zarr_json)
                .is_ok_and(|keys| {
                    keys.iter().all(|(key, version)| self.store.validate_cached(key, *version))
                }),
            Documents::V1Array { .. } => false,
        }
    }

    async fn locate_v1(&self, path: &NodePath) -> Result<Located, HierarchyError> {
        let Some(meta) = self.head_document(path, META).await? else {
            return Err(HierarchyError::NoSuchNode { path: path.clone() });
        };
        let attrs = self.head_document(path, ATTRS).await?;
        let bytes = meta.size.saturating_add(attrs.as_ref().map_or(0, |attrs| attrs.size));
        let attrs = attrs.map(|attrs| attrs.version);
        Ok(Located { documents: Documents::V1Array { meta: meta.version, attrs }, bytes })
    }

    pub(super) async fn head_document(
        &self,
        path: &NodePath,
        name: &str,
    ) -> Result<Option<ValueInfo>, HierarchyError> {
        let key = document_key(path, name)?;
        let info = self.store.head(&key).await;
        info.map_err(|source| HierarchyError::Store { key: key.to_string(), source })
    }
}

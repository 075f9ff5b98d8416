//! Locating the documents of a node: which ones are stored under a path, and at which versions.

use std::pin::pin;

use futures::future::{Either, select, try_join};

use super::documents::{
    ATTRS, Documents, Located, META, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, document_key, version_conditions,
};
use super::found_documents::{DocumentTexts, FoundDocument, FoundDocuments};
use super::{Hierarchy, HierarchyError};
use crate::key::{NodePath, StoreKey};
use crate::store::{ByteRange, ValueInfo};

/// What a lookup requests of each document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requested {
    /// Its size and version.
    Info,
    /// Its text too.
    Text,
}

/// The documents of v2 at a path.
type DocumentsOfV2 = (Option<FoundDocument>, Option<FoundDocument>);

impl Hierarchy {
    /// Finds the documents stored under a path. It does not read them, so a `meta` counts even if it is not a document of
    /// Zarr v1.
    ///
    /// # Errors
    /// [`HierarchyError::NoSuchNode`] if there is none; failures of the store.
    pub async fn locate(&self, path: &NodePath) -> Result<Located, HierarchyError> {
        Ok(self.lookup(path, Requested::Info).await?.located)
    }

    /// As [`Self::locate`], for documents that are read next. Where each lookup takes a network request, these requests read
    /// the documents.
    ///
    /// # Errors
    /// As [`Self::locate`].
    pub async fn locate_to_read(&self, path: &NodePath) -> Result<FoundDocuments, HierarchyError> {
        let requested = if self.store.capabilities().near { Requested::Info } else { Requested::Text };
        self.lookup(path, requested).await
    }

    async fn lookup(&self, path: &NodePath, requested: Requested) -> Result<FoundDocuments, HierarchyError> {
        let v3 = || self.find_document(path, ZARR_JSON, requested);
        // Boxed as the requests side by side are: most nodes that are found need one document.
        let v2 = || {
            let zarray = self.find_document(path, ZARRAY, requested);
            Box::pin(try_join(zarray, self.find_document(path, ZATTRS, requested)))
        };
        // Where the last node was of v3, the next one likely is too, and needs no other request.
        let is_side_by_side = !self.store.capabilities().near && !self.is_v3_likely();
        let found = if is_side_by_side {
            Box::pin(side_by_side(v3(), v2())).await?
        } else {
            match v3().await? {
                Some(zarr_json) => Either::Left(zarr_json),
                None => Either::Right(v2().await?),
            }
        };
        let mut texts = DocumentTexts::default();
        match found {
            Either::Left(document) => {
                self.set_v3_likely(true);
                let bytes = document.info.size;
                let zarr_json = texts.add(ZARR_JSON, document);
                Ok(FoundDocuments::new(Documents::V3 { zarr_json }, bytes, texts))
            }
            Either::Right((zarray, zattrs)) => {
                let (is_array, document) = match zarray {
                    Some(zarray) => (true, zarray),
                    None => match self.find_document(path, ZGROUP, requested).await? {
                        Some(zgroup) => (false, zgroup),
                        None => return self.locate_v1(path).await.map(FoundDocuments::from),
                    },
                };
                self.set_v3_likely(false);
                let attributes = zattrs.as_ref().map_or(0, |zattrs| zattrs.info.size);
                let bytes = document.info.size.saturating_add(attributes);
                let zattrs = zattrs.map(|zattrs| texts.add(ZATTRS, zattrs));
                let documents = if is_array {
                    Documents::V2Array { zarray: texts.add(ZARRAY, document), zattrs }
                } else {
                    Documents::V2Group { zgroup: texts.add(ZGROUP, document), zattrs }
                };
                Ok(FoundDocuments::new(documents, bytes, texts))
            }
        }
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

    /// Whether it is known, without I/O, that no document of a node is stored under a path.
    #[must_use]
    pub fn validate_absent(&self, path: &NodePath) -> bool {
        let is_absent =
            |name| document_key(path, name).is_ok_and(|key| self.store.validate_cached(&key, None));
        [ZARR_JSON, ZARRAY, ZGROUP, META].into_iter().all(is_absent)
    }

    /// All documents that [`Self::validate_cached`] and [`Self::validate_absent`] may check of a path, whatever was located there.
    #[must_use]
    pub fn checked_documents(path: &NodePath) -> Vec<StoreKey> {
        let own = [ZARRAY, ZGROUP, ZATTRS, META].map(|name| document_key(path, name));
        // A dependent array is declared by a document above its path.
        let nodes = std::iter::successors(Some(path.clone()), NodePath::parent);
        nodes.map(|node| document_key(&node, ZARR_JSON)).chain(own).filter_map(Result::ok).collect()
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
    async fn find_document(
        &self,
        path: &NodePath,
        name: &str,
        requested: Requested,
    ) -> Result<Option<FoundDocument>, HierarchyError> {
        if requested == Requested::Info {
            let info = self.head_document(path, name).await?;
            return Ok(info.map(|info| FoundDocument { info, text: None }));
        }
        let key = document_key(path, name)?;
        let value = self.store.get(&key, ByteRange::Whole, None).await;
        let value = value.map_err(|source| HierarchyError::Store { key: key.to_string(), source })?;
        let Some(value) = value else { return Ok(None) };
        let info = value.info.clone();
        // A longer document is read when there is a slot for it. What cannot be read now is read again, with its errors.
        let limit = self.limits.document_bytes as u64;
        let text = if info.size <= limit { value.bytes(limit).await.ok() } else { None };
        Ok(Some(FoundDocument { info, text }))
    }
}

/// The document of v3, or else those of v2. Both are requested at once, and those of v2 are given up where they do not count.
async fn side_by_side(
    v3: impl Future<Output = Result<Option<FoundDocument>, HierarchyError>>,
    v2: impl Future<Output = Result<DocumentsOfV2, HierarchyError>>,
) -> Result<Either<FoundDocument, DocumentsOfV2>, HierarchyError> {
    match select(pin!(v3), pin!(v2)).await {
        Either::Left((v3, v2)) => match v3? {
            Some(zarr_json) => Ok(Either::Left(zarr_json)),
            None => v2.await.map(Either::Right),
        },
        Either::Right((v2, v3)) => match v3.await? {
            Some(zarr_json) => Ok(Either::Left(zarr_json)),
            None => v2.map(Either::Right),
        },
    }
}

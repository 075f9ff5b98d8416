//! Detection of the chunk key separator of v2 arrays whose documents give none (Zarr v2, "Chunks").
//!
//! The specification's default is `.`, but writers of nested keys (`0/0`) omitted the separator for years. With the
//! wrong separator, the whole array would read as fill values. So each load of such an array checks the stored keys.
//! Arrays whose documents give the separator cost no request.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};

use super::{Hierarchy, HierarchyError};
use crate::chunk::ChunkKeyEncoding;
use crate::error::{Classify, ErrorClass};
use crate::key::NodePath;
use crate::metadata::{ArrayMetadata, ChunkKeyEncodingMetadata, Separator};

/// Maximum number of keys to list if the first chunk is missing.
const MAX_LISTED_KEYS: usize = 100;

impl Hierarchy {
    /// The array with its separator detected; unchanged if there are no chunks.
    pub(super) async fn detect_separator(
        &self,
        path: &NodePath,
        array: Arc<ArrayMetadata>,
    ) -> Result<Arc<ArrayMetadata>, HierarchyError> {
        if array.chunk_key_encoding != ChunkKeyEncodingMetadata::V2Unspecified {
            return Ok(array);
        }
        let separator = match self.separator {
            Some(separator) => separator,
            // An array without elements has no chunks.
            None if array.shape.contains(&0) => Separator::Dot,
            None => match self.probe_separator(path, array.shape.len()).await? {
                Some(separator) => separator,
                None => return Ok(array),
            },
        };
        let chunk_key_encoding = ChunkKeyEncodingMetadata::V2(separator);
        Ok(Arc::new(ArrayMetadata { chunk_key_encoding, ..Arc::unwrap_or_clone(array) }))
    }

    /// The separator of the first chunk's key or of any listed chunk key; the default `.` if the store cannot list.
    /// `None` if there are no chunks.
    async fn probe_separator(
        &self,
        path: &NodePath,
        rank: usize,
    ) -> Result<Option<Separator>, HierarchyError> {
        let encodings = [Separator::Dot, Separator::Slash]
            .map(|separator| (separator, ChunkKeyEncoding::new(ChunkKeyEncodingMetadata::V2(separator))));
        let first = vec![0; rank];
        for (separator, encoding) in &encodings {
            let key = path.prefix().key(&encoding.encode(&first));
            let key = key.map_err(|source| HierarchyError::Path { path: path.clone(), source })?;
            let found = self.store.head(&key).await;
            if found.map_err(|source| HierarchyError::Store { key: key.to_string(), source })?.is_some() {
                return Ok(Some(*separator));
            }
        }
        let mut keys = self.store.list_prefix(path.prefix(), None).take(MAX_LISTED_KEYS);
        loop {
            match keys.try_next().await {
                Ok(Some(entry)) => {
                    let below = entry.key.as_str().strip_prefix(path.prefix().as_str()).unwrap_or_default();
                    let fits =
                        |(_, encoding): &&(_, ChunkKeyEncoding)| encoding.decode(below, rank).is_some();
                    if let Some((separator, _)) = encodings.iter().find(fits) {
                        return Ok(Some(*separator));
                    }
                }
                Ok(None) => return Ok(None),
                // A retry may succeed, and a guess would be cached.
                Err(source) if matches!(source.class(), ErrorClass::Overloaded | ErrorClass::TimedOut) => {
                    return Err(HierarchyError::Store { key: path.prefix().to_string(), source });
                }
                // Buckets that allow reads but not listings are common.
                Err(error) => {
                    tracing::debug!(%path, %error, "cannot detect the separator of chunk keys");
                    return Ok(Some(Separator::Dot));
                }
            }
        }
    }
}

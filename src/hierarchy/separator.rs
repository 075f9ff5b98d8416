//! What stands in the keys of the chunks of v2 arrays whose documents do not say (Zarr v2, "Chunks").
//!
//! The specification has `.`, but stores that nested their keys (`0/0`) wrote documents without a word of it for
//! years. Taken for the other kind, an array would read as nothing but fill values. So the store is asked, once for
//! each opening of such an array: documents that name their separator cost nothing here.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};

use super::{Hierarchy, HierarchyError};
use crate::chunk::ChunkKeyEncoding;
use crate::error::{Classify, ErrorClass};
use crate::key::NodePath;
use crate::metadata::{ArrayMetadata, ChunkKeyEncodingMetadata, Separator};

/// Keys of an array that are looked at where its first chunk is missing.
const MOST_KEYS: usize = 100;

impl Hierarchy {
    /// The array with its separator settled, unless there are no chunks to show it.
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
            // An array without elements has no chunks to be missed.
            None if array.shape.contains(&0) => Separator::Dot,
            None => match self.separator_of_keys(path, array.shape.len()).await? {
                Some(separator) => separator,
                None => return Ok(array),
            },
        };
        let chunk_key_encoding = ChunkKeyEncodingMetadata::V2(separator);
        Ok(Arc::new(ArrayMetadata { chunk_key_encoding, ..Arc::unwrap_or_clone(array) }))
    }

    /// The separator of the first chunk's key, or of any chunk's; of the specification, if the store does not tell.
    /// `None` if there are no chunks yet.
    async fn separator_of_keys(
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
        let mut keys = self.store.list_prefix(path.prefix(), None).take(MOST_KEYS);
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
                // Asked again, the store may answer, and the answer would be remembered.
                Err(source) if matches!(source.class(), ErrorClass::Overloaded | ErrorClass::TimedOut) => {
                    return Err(HierarchyError::Store { key: path.prefix().to_string(), source });
                }
                // Buckets that may be read but not listed are common.
                Err(error) => {
                    tracing::debug!(%path, %error, "cannot look for the separator of chunk keys");
                    return Ok(Some(Separator::Dot));
                }
            }
        }
    }
}

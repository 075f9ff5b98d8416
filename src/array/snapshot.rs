//! [`Snapshot`]: the versions of the stored chunks that a plan touches, known before any of their bytes.

use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::{ArrayError, Plan, StoredValue};
use crate::chunk::{ChunkCoords, Window};
use crate::store::Version;

/// Versions asked for at a time.
const CONCURRENCY: usize = 32;

/// A plan, and for each stored chunk it touches the version it is read at, or that it does not exist.
///
/// Chunk by chunk this is one version; over several chunks it is not one moment, as with any Zarr client.
#[derive(Clone, Debug)]
pub struct Snapshot {
    plan: Plan,
    chunks: Arc<HashMap<ChunkCoords, Option<Arc<StoredValue>>>>,
}

impl Snapshot {
    /// Asks the store for the versions of the chunks that a plan touches.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn take(plan: &Plan) -> Result<Self, ArrayError> {
        let array = Arc::clone(plan.array());
        let coords: Vec<ChunkCoords> = Window::packed(plan.subset().axes(), 1)
            .cut(array.grid().axes())
            .map(|(coords, _)| coords)
            .collect();
        let chunks = stream::iter(coords)
            .map(|coords| {
                let array = Arc::clone(&array);
                async move {
                    let key = array.chunk_key(&coords)?;
                    let value = match array.store.head(&key).await {
                        Ok(Some(info)) => {
                            let (mount, store) = (Arc::clone(&array.mount), Arc::clone(&array.store));
                            Some(Arc::new(StoredValue { mount, store, key, info }))
                        }
                        Ok(None) => None,
                        Err(source) => return Err(ArrayError::Store { key, source }),
                    };
                    Ok((coords, value))
                }
            })
            .buffer_unordered(CONCURRENCY)
            .try_collect()
            .await?;
        Ok(Self { plan: plan.clone(), chunks: Arc::new(chunks) })
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The version of each chunk, in C order of their coordinates; `None` where there is no such chunk.
    #[must_use]
    pub fn versions(&self) -> Vec<(&ChunkCoords, Option<&Version>)> {
        let mut versions: Vec<_> = self
            .chunks
            .iter()
            .map(|(coords, value)| (coords, value.as_ref().map(|value| &value.info.version)))
            .collect();
        versions.sort_unstable_by_key(|(coords, _)| *coords);
        versions
    }

    /// When the newest of the chunks was written, if the store says so of all of them.
    #[must_use]
    pub fn modified(&self) -> Option<std::time::SystemTime> {
        self.chunks.values().flatten().map(|value| value.info.modified).max().flatten()
    }

    /// The stored chunk at these coordinates; `None` if there is none.
    pub(super) fn value(&self, coords: &[u64]) -> Option<&Arc<StoredValue>> {
        self.chunks.get(coords)?.as_ref()
    }
}

//! [`StoredKey`], [`StoredValue`] and [`Found`]: where a chunk is stored, at which version, and what is known of it.

use std::sync::Arc;

use super::{ArrayError, Trace};
use crate::chunk::Elements;
use crate::codec::sharding_indexed::ShardIndex;
use crate::key::StoreKey;
use crate::store::{SharedStore, ValueInfo};

/// A stored chunk (or shard) at one version.
#[derive(Clone, Debug)]
pub struct StoredValue {
    /// The mount's name, which keeps equal keys of different mounts apart.
    pub mount: Arc<str>,
    /// Where it is stored.
    pub store: SharedStore,
    /// Its key.
    pub key: StoreKey,
    /// Its size and version.
    pub info: ValueInfo,
}

/// Where a chunk (or shard) is stored, if it is.
#[derive(Clone, Debug)]
pub struct StoredKey {
    /// The mount's name, which keeps equal keys of different mounts apart.
    pub mount: Arc<str>,
    /// The store.
    pub store: SharedStore,
    /// The key.
    pub key: StoreKey,
}

impl StoredKey {
    /// The version that is stored now; `None` if there is none. Waits for a turn of the request.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn look(&self, trace: &Trace) -> Result<Option<Arc<StoredValue>>, ArrayError> {
        let _turn = trace.turn().await;
        match self.store.head(&self.key).await {
            Ok(info) => Ok(info.map(|info| self.at(info))),
            Err(source) => Err(ArrayError::Store { key: self.key.clone(), source }),
        }
    }

    /// The value at a version.
    #[must_use]
    pub fn at(&self, info: ValueInfo) -> Arc<StoredValue> {
        let Self { mount, store, key } = self.clone();
        Arc::new(StoredValue { mount, store, key, info })
    }
}

/// What is stored under a key now, and what is known of it already.
#[derive(Clone, Debug)]
pub struct Found {
    /// The value; `None` if there is none.
    pub value: Option<Arc<StoredValue>>,
    /// What was read of it, at its version.
    pub part: FoundPart,
}

/// What is known of a value that was found.
#[derive(Clone, Debug)]
pub enum FoundPart {
    /// Its version alone.
    Nothing,
    /// All its elements.
    Elements(Elements),
    /// Of a shard, the index.
    Index(Arc<ShardIndex>),
}

impl Found {
    /// A value of which the version is known, or that there is none.
    #[must_use]
    pub fn seen(value: Option<Arc<StoredValue>>) -> Self {
        Self { value, part: FoundPart::Nothing }
    }
}

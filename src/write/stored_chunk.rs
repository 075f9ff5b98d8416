//! [`StoredChunk`]: a stored value of an array, its codecs, and how elements are laid over it.

use std::sync::Arc;

use bytes::Bytes;

use super::chunk_part::ChunkPart;
use super::error::WriteError;
use super::overlay::Overlay;
use super::uncached::as_stored;
use crate::array::{Array, ArrayError, StoredKey};
use crate::chunk::ChunkCoords;
use crate::codec::CodecChain;
use crate::cpu::ComputePool;
use crate::key::StoreKey;
use crate::store::{ByteRange, StoreError, ValueBody, Version, WriteCondition};

/// A stored value: its mount and its key.
pub(super) type ValuePlace = (Arc<str>, StoreKey);

/// Whether a value of this version, or (`None`) the absence of one, may be written over.
pub type VersionCheck = Arc<dyn Fn(Option<&Version>) -> bool + Send + Sync>;

/// A chunk (or a shard) of an array, to be written.
#[derive(Clone, Debug)]
pub(super) struct StoredChunk {
    array: Arc<Array>,
    chain: Arc<CodecChain>,
    coords: ChunkCoords,
    shape: Vec<u64>,
    /// The lengths of the chunk within the array.
    inside: Vec<u64>,
    pub(super) place: StoredKey,
}

/// A value as it is stored now.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) bytes: Option<Bytes>,
    version: Option<Version>,
}

/// How an attempt to store a value ended.
#[derive(Debug)]
pub(super) enum StoreAttempt {
    /// It is stored, at this version if the backend reports one.
    Done(Option<Version>),
    /// The condition does not hold: another process has changed the value.
    Changed,
}

impl StoredChunk {
    /// The chunk with these coordinates.
    ///
    /// # Errors
    /// [`WriteError::Array`].
    pub(super) fn new(array: &Arc<Array>, coords: ChunkCoords) -> Result<Self, WriteError> {
        let shape = array.grid().chunk_shape_at(&coords);
        let chain = array.chain_for(&coords, &shape)?;
        let place = array.stored_key(&coords)?;
        let inside = array.grid().chunk_ranges(&coords).ok_or(ArrayError::Geometry)?;
        let inside = inside.iter().map(|range| range.count).collect();
        Ok(Self { array: Arc::clone(array), chain, coords, shape, inside, place })
    }

    /// The stored value: its mount and its key.
    pub(super) fn name(&self) -> ValuePlace {
        (Arc::clone(&self.place.mount), self.place.key.clone())
    }

    /// Whether a part has an element for each place of the chunk. The places of a chunk at the edge that lie outside of the array
    /// count too: by the time that the chunk is stored, the array may have grown, and another client may have written there.
    pub(super) fn is_covered(&self, part: &ChunkPart) -> bool {
        part.covers(&self.shape)
    }

    /// Whether both are the same chunk of the same array, so that parts of both can be laid over one value together. An array that was
    /// created again as another one may have the same codecs.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.chain.id() == other.chain.id()
            && self.inside == other.inside
            && self.coords == other.coords
            && (Arc::ptr_eq(&self.array, &other.array)
                || self.array.metadata().is_stored_as(other.array.metadata()))
    }

    /// The version that is stored now, read past all caches.
    ///
    /// # Errors
    /// [`WriteError::Read`].
    pub(super) async fn version(&self) -> Result<Option<Version>, WriteError> {
        let key = &self.place.key;
        let info = as_stored(&*self.place.store).head(key).await;
        let info = info.map_err(|source| WriteError::Read { key: key.clone(), source })?;
        Ok(info.map(|info| info.version))
    }

    /// The version of the value that is stored now, without its bytes.
    ///
    /// # Errors
    /// [`WriteError::Read`].
    pub(super) async fn lookup(&self) -> Result<Current, WriteError> {
        Ok(Current { bytes: None, version: self.version().await? })
    }

    /// The value that is stored now.
    ///
    /// # Errors
    /// [`WriteError::Read`]; [`ArrayError::ChunkTooLong`].
    pub(super) async fn read(&self) -> Result<Current, WriteError> {
        let key = &self.place.key;
        let failed = |source| WriteError::Read { key: key.clone(), source };
        let value = self.place.store.get(key, ByteRange::Whole, None).await.map_err(failed)?;
        let Some(value) = value else { return Ok(Current { bytes: None, version: None }) };
        let (size, limit) = (value.info.size, self.chain.encoded_limit());
        if size > limit {
            return Err(ArrayError::ChunkTooLong { key: key.clone(), size, limit }.into());
        }
        let version = value.info.version.clone();
        let bytes = value.bytes(limit).await.map_err(failed)?;
        Ok(Current { bytes: Some(bytes), version: Some(version) })
    }

    /// Encodes the chunk with these parts, on the pool; `None` if all of it is the fill value now and such chunks are erased.
    ///
    /// # Errors
    /// [`WriteError::Codecs`].
    pub(super) async fn encode(
        &self,
        cpu: &ComputePool,
        stored: Option<Bytes>,
        parts: &Arc<Vec<ChunkPart>>,
        erases_fill: bool,
    ) -> Result<Option<Bytes>, WriteError> {
        let (chunk, parts) = (self.clone(), Arc::clone(parts));
        let encoded = cpu.run(move || {
            let overlay = Overlay::of(chunk.array.metadata());
            overlay.encode(&chunk.chain, &chunk.shape, stored, &parts, erases_fill)
        });
        encoded.await?.map_err(|source| WriteError::Codecs { coords: self.coords.clone(), source })
    }

    /// Stores the encoded chunk, or erases it, if the value is still as it was `read`. Without that, in any case.
    ///
    /// # Errors
    /// [`WriteError::NoConditions`], [`WriteError::Store`].
    pub(super) async fn store(
        &self,
        encoded: Option<Bytes>,
        read: Option<&Current>,
    ) -> Result<StoreAttempt, WriteError> {
        let key = &self.place.key;
        let no_conditions = || WriteError::NoConditions { key: key.clone() };
        let condition = match read {
            None => WriteCondition::Always,
            Some(Current { version: None, .. }) => WriteCondition::IfAbsent,
            Some(Current { version: Some(version), .. }) => {
                WriteCondition::IfVersion(version.pin().ok_or_else(no_conditions)?.clone())
            }
        };
        let is_conditional = condition != WriteCondition::Always;
        let store = &self.place.store;
        let stored = match encoded {
            Some(bytes) => {
                let outcome = store.set(key, ValueBody::Bytes(bytes).into_stream(), condition).await;
                outcome.map(|outcome| outcome.version)
            }
            // There is nothing to erase.
            None if condition == WriteCondition::IfAbsent => Ok(None),
            None => store.erase(key, condition).await.map(|_existed| None),
        };
        match stored {
            Ok(version) => Ok(StoreAttempt::Done(version)),
            Err(StoreError::ConditionFailed | StoreError::VersionChanged) if is_conditional => {
                Ok(StoreAttempt::Changed)
            }
            Err(StoreError::NotSupported(_)) if is_conditional => Err(no_conditions()),
            Err(source) => Err(WriteError::Store { key: key.clone(), source }),
        }
    }

    /// Erases what was stored at this version, unless it has changed since.
    ///
    /// # Errors
    /// [`WriteError::Store`].
    pub(super) async fn withdraw(&self, version: Version) -> Result<(), WriteError> {
        let key = &self.place.key;
        match self.place.store.erase(key, WriteCondition::IfVersion(version)).await {
            Ok(_) | Err(StoreError::ConditionFailed | StoreError::VersionChanged) => Ok(()),
            Err(source) => Err(WriteError::Store { key: key.clone(), source }),
        }
    }
}

impl Current {
    /// Whether there is no value.
    pub(super) fn is_absent(&self) -> bool {
        self.version.is_none()
    }

    /// Whether a check allows to write over this value.
    pub(super) fn passes(&self, check: &VersionCheck) -> bool {
        check(self.version.as_ref())
    }
}

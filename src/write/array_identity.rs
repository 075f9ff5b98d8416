//! [`ArrayIdentity`]: whether the array of a write is still the one that its elements were made for.
//!
//! A body may arrive slowly. In the meantime the array may be erased, and created again with another type or other chunks: elements
//! in the form of the former one would be garbage in it. So its document is checked again when values are stored. A new shape,
//! as by an append, and other attributes are no other array.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::error::WriteError;
use super::uncached::as_stored;
use crate::array::OpenNode;
use crate::codec::v2_codec;
use crate::cpu::ComputePool;
use crate::hierarchy::Node;
use crate::key::{NodePath, StoreKey};
use crate::metadata::{ArrayMetadata, MetadataLimits, ZarrFormat, v2, v3};
use crate::store::{ByteRange, MemoryBudget, Reservation, SharedStore, StoreError, Version};

/// Bytes of memory for each byte of a document that is parsed.
const PARSED_RATIO: u64 = 16;

/// The array that elements were made for, and the versions of its document that are known to be of it.
#[derive(Debug)]
pub struct ArrayIdentity {
    store: SharedStore,
    path: NodePath,
    key: StoreKey,
    metadata: Arc<ArrayMetadata>,
    known: Mutex<Vec<Version>>,
    /// When the last check began that found the array.
    checked: tokio::sync::Mutex<Option<Instant>>,
    limits: MetadataLimits,
    cpu: ComputePool,
    budget: Arc<dyn MemoryBudget>,
}

impl ArrayIdentity {
    /// The array of an open node. `None` if it has no document of its own that could be read again: arrays of v1, and those that
    /// others declare.
    pub(super) fn new(
        (store, path): (&SharedStore, &NodePath),
        opened: &OpenNode,
        (limits, cpu, budget): (MetadataLimits, &ComputePool, &Arc<dyn MemoryBudget>),
    ) -> Option<Self> {
        let Node::Array(metadata) = &opened.node else { return None };
        if opened.dependent.is_some() {
            return None;
        }
        let name = match metadata.zarr_format {
            ZarrFormat::V1 => return None,
            ZarrFormat::V2 => ".zarray",
            ZarrFormat::V3 => "zarr.json",
        };
        Some(Self {
            store: Arc::clone(store),
            path: path.clone(),
            key: path.prefix().key(name).ok()?,
            metadata: Arc::clone(metadata),
            known: Mutex::new(opened.located.versions().flatten().cloned().collect()),
            checked: tokio::sync::Mutex::default(),
            limits,
            cpu: cpu.clone(),
            budget: Arc::clone(budget),
        })
    }

    /// Checks that it is the array that is stored at some time after `since`. Values that are stored at the same time share a
    /// check.
    ///
    /// # Errors
    /// [`WriteError::Replaced`] if it is another one, or gone; [`WriteError::Read`].
    pub(super) async fn check_since(&self, since: Instant) -> Result<(), WriteError> {
        let mut checked = self.checked.lock().await;
        if checked.is_none_or(|checked| checked < since) {
            let began = Instant::now();
            self.check().await?;
            *checked = Some(began);
        }
        Ok(())
    }

    async fn check(&self) -> Result<(), WriteError> {
        let found = as_stored(&*self.store).head(&self.key).await.map_err(|source| self.failed(source))?;
        let found = found.ok_or_else(|| self.replaced())?;
        if self.known().iter().any(|known| known.matches(&found.version)) {
            return Ok(());
        }
        let value = as_stored(&*self.store).get(&self.key, ByteRange::Whole, None).await;
        let value = value.map_err(|source| self.failed(source))?.ok_or_else(|| self.replaced())?;
        let mut memory = Reservation::new(Some(&self.budget));
        let reserved = memory.grow(value.info.size.saturating_mul(PARSED_RATIO));
        reserved.map_err(|error| self.failed(StoreError::OverBudget(error)))?;
        let version = value.info.version.clone();
        let text = value.bytes(self.limits.document_bytes as u64).await;
        let text = text.map_err(|source| self.failed(source))?;
        let (limits, known, bytes) = (self.limits, Arc::clone(&self.metadata), text.len() as u64);
        let is_same = self.cpu.run_document(bytes, move || is_same(&known, &text, &limits)).await?;
        if !is_same {
            return Err(self.replaced());
        }
        self.known().push(version);
        Ok(())
    }

    fn replaced(&self) -> WriteError {
        WriteError::Replaced { path: self.path.clone() }
    }

    fn failed(&self, source: StoreError) -> WriteError {
        WriteError::Read { key: self.key.clone(), source }
    }

    /// No code panics while it holds the lock.
    fn known(&self) -> std::sync::MutexGuard<'_, Vec<Version>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a document is of an array with the same stored values.
fn is_same(known: &ArrayMetadata, text: &[u8], limits: &MetadataLimits) -> bool {
    if known.zarr_format == ZarrFormat::V2 {
        return v2::parse_array(text, None, v2_codec, limits).is_ok_and(|array| known.is_stored_as(&array));
    }
    matches!(v3::parse(text, limits), Ok(v3::V3Node::Array(array)) if known.is_stored_as(&array))
}

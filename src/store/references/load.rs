//! The references of the current version of the document: read once for each version, and cached.
//!
//! Callers that come while it is read wait for it instead of reading it too, and share its failure. The fact that a
//! version of a document is refused is cached like its references; a failure of the backend is not. The memory for it is
//! reserved before it is read, and that of the previous version is released first.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::loaded::Document;
use super::reference_store::{ReferenceStore, TRIES};
use super::{ReferenceError, parse_kerchunk};
use crate::store::{ByteRange, StoreError, ValueInfo};

impl ReferenceStore {
    /// The references of the current version of the document.
    pub(super) async fn current_document(&self) -> Result<Arc<Document>, StoreError> {
        for _ in 0..TRIES {
            let info = self.inner.head(&self.file).await?.ok_or(ReferenceError::NoDocument)?;
            if let Some(outcome) = self.loaded.outcome_for(&info.version) {
                return Ok(outcome?);
            }
            let failures = self.loaded.failures.load(Ordering::Relaxed);
            let mut failure = self.loaded.loading.lock().await;
            if let Some(outcome) = self.loaded.outcome_for(&info.version) {
                return Ok(outcome?);
            }
            if let Some(failure) = &*failure
                && self.loaded.failures.load(Ordering::Relaxed) != failures
            {
                // The load that this call waited for failed.
                return Err(failure.clone());
            }
            // The budget need not hold two versions at once.
            self.loaded.replace(None);
            let version = info.version.clone();
            let outcome = match self.load(info).await {
                Ok(document) => Ok(Arc::new(document)),
                Err(StoreError::References(error)) if error.is_lasting() => Err(error),
                Err(StoreError::VersionChanged) => continue,
                Err(error) => {
                    self.loaded.failures.fetch_add(1, Ordering::Relaxed);
                    return Err(failure.insert(error).clone());
                }
            };
            self.loaded.replace(Some((version, outcome.clone())));
            return Ok(outcome?);
        }
        Err(StoreError::VersionChanged)
    }

    /// Reads one version of the document.
    async fn load(&self, info: ValueInfo) -> Result<Document, StoreError> {
        // Held until the parser has reserved as much.
        let mut reserved = self.budget.empty();
        reserved.resize(info.size)?;
        let value = self.inner.get(&self.file, ByteRange::Whole, Some(&info.version)).await?;
        let bytes = value.ok_or(StoreError::VersionChanged)?.bytes(info.size).await?;
        let (budget, size) = (self.budget.clone(), info.size);
        let parse = move || {
            drop(reserved);
            parse_kerchunk(&bytes, &budget)
        };
        let table = self.cpu.run_document(size, parse).await.map_err(ReferenceError::Cpu)??;
        Ok(Document { info, table })
    }
}

//! What is parsed of the current version of a document: read once for each version, and cached.
//!
//! Callers that come while it is read wait for it instead of reading it too, and share its failure. The fact that a
//! version of a document is refused is cached like its references; a failure of the backend is not. The memory for it is
//! reserved before it is read, and that of the previous version is released first.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::loaded::Loaded;
use super::{ReferenceError, ReferencesBudget};
use crate::cpu::ComputePool;
use crate::key::StoreKey;
use crate::store::{ByteRange, SharedStore, StoreError, ValueInfo};

/// The most attempts of a read, if the document changes meanwhile.
pub(super) const TRIES: usize = 3;

/// What is parsed of the current version of the document `file`, by `load` if it is not cached.
pub(super) async fn current<T, F: Future<Output = Result<T, StoreError>>>(
    loaded: &Loaded<T>,
    (inner, file): (&SharedStore, &StoreKey),
    load: impl Fn(ValueInfo) -> F,
) -> Result<Arc<T>, StoreError> {
    for _ in 0..TRIES {
        let info = inner.head(file).await?.ok_or(ReferenceError::NoDocument)?;
        if let Some(outcome) = loaded.outcome_for(&info.version) {
            return Ok(outcome?);
        }
        let failures = loaded.failures.load(Ordering::Relaxed);
        let mut failure = loaded.loading.lock().await;
        if let Some(outcome) = loaded.outcome_for(&info.version) {
            return Ok(outcome?);
        }
        if let Some(failure) = &*failure
            && loaded.failures.load(Ordering::Relaxed) != failures
        {
            // The load that this call waited for failed.
            return Err(failure.clone());
        }
        // The budget need not hold two versions at once.
        loaded.replace(None);
        let version = info.version.clone();
        let outcome = match load(info).await {
            Ok(parsed) => Ok(Arc::new(parsed)),
            Err(StoreError::References(error)) if error.is_lasting() => Err(error),
            Err(StoreError::VersionChanged) => continue,
            Err(error) => {
                loaded.failures.fetch_add(1, Ordering::Relaxed);
                return Err(failure.insert(error).clone());
            }
        };
        loaded.replace(Some((version, outcome.clone())));
        return Ok(outcome?);
    }
    Err(StoreError::VersionChanged)
}

/// Reads one version of a file, and parses it on the pool.
pub(super) async fn parsed<T: Send + 'static>(
    (inner, file): (&SharedStore, &StoreKey),
    info: ValueInfo,
    (cpu, budget): (&ComputePool, &ReferencesBudget),
    parse: impl FnOnce(&Bytes, &ReferencesBudget) -> Result<T, ReferenceError> + Send + 'static,
) -> Result<T, StoreError> {
    // Held until the parser has reserved as much.
    let mut reserved = budget.empty();
    reserved.resize(info.size)?;
    let value = inner.get(file, ByteRange::Whole, Some(&info.version)).await?;
    let bytes = value.ok_or(StoreError::VersionChanged)?.bytes(info.size).await?;
    let budget = budget.clone();
    let parse = move || {
        drop(reserved);
        parse(&bytes, &budget)
    };
    Ok(cpu.run_document(info.size, parse).await.map_err(ReferenceError::Cpu)??)
}

//! The central directory of the current version of the file: read once for each version, and cached.
//!
//! Callers that come while it is read wait for it instead of reading it too, and share its failure. The fact that a
//! version of a file is broken is cached like a directory; a failure of the backend is not. The memory for a directory
//! is reserved before it is read, and that of the previous version is released first.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::ZipError;
use super::directory::Directory;
use super::record::{END_BYTES, find_end};
use super::zip_store::{TRIES, ZipStore};
use crate::store::{ByteRange, StoreError, ValueInfo, Version};

/// Bytes at the end of a file that are read first: most directories lie within them.
const TAIL_BYTES: u64 = 256 << 10;
const _: () = assert!(TAIL_BYTES >= END_BYTES as u64, "the end record must be found in the tail");

impl ZipStore {
    /// The cached directory. The file may have changed since.
    pub(super) fn cached_directory(&self) -> Option<Arc<Directory>> {
        self.cache.last().and_then(|(_, outcome)| outcome.ok())
    }

    /// The directory of the current version of the file.
    pub(super) async fn current_directory(&self) -> Result<Arc<Directory>, StoreError> {
        for _ in 0..TRIES {
            let info = self.inner.head(&self.file).await?.ok_or(ZipError::NoFile)?;
            if let Some(outcome) = self.cache.outcome_for(&info.version) {
                return Ok(outcome?);
            }
            let failures = self.cache.failures.load(Ordering::Relaxed);
            let mut failure = self.cache.loading.lock().await;
            if let Some(outcome) = self.cache.outcome_for(&info.version) {
                return Ok(outcome?);
            }
            if let Some(failure) = &*failure
                && self.cache.failures.load(Ordering::Relaxed) != failures
            {
                // The load that this call waited for failed.
                return Err(failure.clone());
            }
            // The budget need not hold two versions at once.
            self.cache.replace(None);
            let version = info.version.clone();
            let outcome = match self.load(info).await {
                Ok(directory) => Ok(Arc::new(directory)),
                Err(StoreError::Zip(error)) if is_lasting(&error) => Err(error),
                Err(StoreError::VersionChanged) => continue,
                Err(error) => {
                    self.cache.failures.fetch_add(1, Ordering::Relaxed);
                    return Err(failure.insert(error).clone());
                }
            };
            self.cache.replace(Some((version, outcome.clone())));
            return Ok(outcome?);
        }
        Err(StoreError::VersionChanged)
    }

    /// Reads the directory of one version of the file.
    async fn load(&self, file: ValueInfo) -> Result<Directory, StoreError> {
        if file.size == 0 {
            return Err(ZipError::Broken("it is empty").into());
        }
        let tail_start = file.size.saturating_sub(TAIL_BYTES);
        let tail = self.read_range(tail_start, file.size, &file.version, TAIL_BYTES).await?;
        let size = file.size;
        let (end, tail) = self.run_on_pool(move || Ok((find_end(&tail, size)?, tail))).await?;
        let range = end.directory.clone();
        let mut reserved = self.budget.empty();
        reserved.grow(range.end.saturating_sub(range.start))?;
        let bytes = if let Some(start) = range.start.checked_sub(tail_start) {
            let places = usize::try_from(start).ok().zip(usize::try_from(range.end - tail_start).ok());
            let (start, end) = places.filter(|(_, end)| *end <= tail.len()).ok_or(StoreError::WrongLength)?;
            // A copy, because the directory stays long and the rest of the tail must not.
            Bytes::copy_from_slice(tail.get(start..end).unwrap_or_default())
        } else {
            self.read_range(range.start, range.end, &file.version, range.end - range.start).await?
        };
        drop(tail);
        self.run_on_pool(move || Directory::parse(bytes, end, file, reserved)).await
    }

    /// A range of one version of the file, which is known to lie within it.
    pub(super) async fn read_range(
        &self,
        start: u64,
        end: u64,
        version: &Version,
        limit: u64,
    ) -> Result<Bytes, StoreError> {
        let range = ByteRange::Bounded(start, end);
        let value = self.inner.get(&self.file, range, Some(version)).await?;
        let value = value.ok_or(StoreError::VersionChanged)?;
        if value.range != (start..end) {
            return Err(StoreError::WrongLength);
        }
        value.bytes(limit).await
    }

    /// Runs CPU work on the pool.
    pub(super) async fn run_on_pool<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ZipError> + Send + 'static,
    ) -> Result<T, StoreError> {
        Ok(self.cpu.run(work).await.map_err(ZipError::Cpu)??)
    }
}

/// Whether an error is a property of this version of the file, and so will occur again.
fn is_lasting(error: &ZipError) -> bool {
    match error {
        ZipError::Broken(_) | ZipError::Method(_) | ZipError::Feature(_) | ZipError::TooLarge { .. } => true,
        // Lasting if it is too large even alone; otherwise other mounts may release memory.
        ZipError::OverBudget { needed, limit } => needed > limit,
        ZipError::NoFile | ZipError::Inflate(_) | ZipError::Cpu(_) => false,
    }
}

//! The central directory of the file as it is now: read once for each version of it, and remembered.
//!
//! Whoever comes while it is read waits for it instead of reading it, too, and has its failure if it fails. That a version of
//! a file is broken is remembered like a directory; that a backend failed is not. Its memory is reserved before it is read,
//! and that of the version before is given back first.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::ZipError;
use super::directory::Directory;
use super::record::{END_BYTES, find_end};
use super::zip_store::{TRIES, ZipStore};
use crate::store::{ByteRange, StoreError, ValueInfo, Version};

/// Bytes at the end of a file that are read first: most directories lie in them whole.
const TAIL_BYTES: u64 = 256 << 10;
const _: () = assert!(TAIL_BYTES >= END_BYTES as u64, "the end record must be found in the tail");

impl ZipStore {
    /// The directory as it was when last looked at. The file may have changed since.
    pub(super) fn remembered(&self) -> Option<Arc<Directory>> {
        self.remembered.last().and_then(|(_, outcome)| outcome.ok())
    }

    /// The directory of the file as it is now.
    pub(super) async fn current(&self) -> Result<Arc<Directory>, StoreError> {
        for _ in 0..TRIES {
            let info = self.inner.head(&self.file).await?.ok_or(ZipError::NoFile)?;
            if let Some(outcome) = self.remembered.of(&info.version) {
                return Ok(outcome?);
            }
            let failures = self.remembered.failures.load(Ordering::Relaxed);
            let mut failure = self.remembered.loading.lock().await;
            if let Some(outcome) = self.remembered.of(&info.version) {
                return Ok(outcome?);
            }
            if let Some(failure) = &*failure
                && self.remembered.failures.load(Ordering::Relaxed) != failures
            {
                // It failed while this one waited for it.
                return Err(failure.clone());
            }
            // Two versions need not fit beside each other.
            self.remembered.set(None);
            let version = info.version.clone();
            let outcome = match self.load(info).await {
                Ok(directory) => Ok(Arc::new(directory)),
                Err(StoreError::Zip(error)) if is_lasting(&error) => Err(error),
                Err(StoreError::VersionChanged) => continue,
                Err(error) => {
                    self.remembered.failures.fetch_add(1, Ordering::Relaxed);
                    return Err(failure.insert(error).clone());
                }
            };
            self.remembered.set(Some((version, outcome.clone())));
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
        let tail = self.part(tail_start, file.size, &file.version, TAIL_BYTES).await?;
        let size = file.size;
        let (end, tail) = self.work(move || Ok((find_end(&tail, size)?, tail))).await?;
        let range = end.directory.clone();
        let mut reserved = self.budget.nothing();
        reserved.grow(range.end.saturating_sub(range.start))?;
        let bytes = if let Some(start) = range.start.checked_sub(tail_start) {
            let places = usize::try_from(start).ok().zip(usize::try_from(range.end - tail_start).ok());
            let (start, end) = places.filter(|(_, end)| *end <= tail.len()).ok_or(StoreError::WrongLength)?;
            // A copy, as it stays for long and the rest of the tail need not.
            Bytes::copy_from_slice(tail.get(start..end).unwrap_or_default())
        } else {
            self.part(range.start, range.end, &file.version, range.end - range.start).await?
        };
        drop(tail);
        self.work(move || Directory::parse(bytes, end, file, reserved)).await
    }

    /// A part of one version of the file, which is known to have it.
    pub(super) async fn part(
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

    /// Does what takes the CPU its time.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ZipError> + Send + 'static,
    ) -> Result<T, StoreError> {
        Ok(self.cpu.run(work).await.map_err(ZipError::Cpu)??)
    }
}

/// Whether an error says something of the file, and so will be there again.
fn is_lasting(error: &ZipError) -> bool {
    match error {
        ZipError::Broken(_) | ZipError::Method(_) | ZipError::Feature(_) | ZipError::TooLarge { .. } => true,
        // Where it would be too large alone; else it waits for others to end.
        ZipError::OverBudget { needed, limit } => needed > limit,
        ZipError::NoFile | ZipError::Inflate(_) | ZipError::Cpu(_) => false,
    }
}

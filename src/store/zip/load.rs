//! The central directory of the current version of the file: read once for each version, and cached.

use std::sync::Arc;

use bytes::Bytes;

use super::ZipError;
use super::directory::Directory;
use super::record::{END_BYTES, find_end};
use super::zip_store::ZipStore;
use crate::store::container::ContainerError;
use crate::store::{ByteRange, StoreError, ValueInfo, Version};

/// Bytes at the end of a file that are read first: most directories lie within them.
const TAIL_BYTES: u64 = 256 << 10;
const _: () = assert!(TAIL_BYTES >= END_BYTES as u64, "the end record must be found in the tail");

impl ZipStore {
    /// The cached directory. The file may have changed since.
    pub(super) fn cached_directory(&self) -> Option<Arc<Directory>> {
        self.cache.last()
    }

    /// The directory of the current version of the file.
    pub(super) async fn current_directory(&self) -> Result<Arc<Directory>, StoreError> {
        self.cache.current((&self.inner, &self.file), |file| self.load(file)).await
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
        reserved.grow(range.end.saturating_sub(range.start)).map_err(ZipError::from)?;
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

impl ContainerError for ZipError {
    const NO_FILE: Self = Self::NoFile;

    fn of(error: &StoreError) -> Option<&Self> {
        if let StoreError::Zip(error) = error { Some(error) } else { None }
    }

    fn is_lasting(&self) -> bool {
        match self {
            Self::Broken(_) | Self::Method(_) | Self::Feature(_) | Self::TooLarge { .. } => true,
            // Lasting if it is too large even alone; otherwise other mounts may release memory.
            Self::OverBudget { needed, limit } => needed > limit,
            Self::NoFile | Self::Inflate(_) | Self::Cpu(_) => false,
        }
    }
}

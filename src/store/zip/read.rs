//! Reading an entry: its local header gives the offset of its bytes, which then are a range of the file.
//!
//! Everything is read at the version of the file to which the directory belongs. An entry may not reach into the next
//! one or into the directory: a file that claims so is broken.

use std::ops::Range;

use bytes::Bytes;

use super::ZipError;
use super::directory::{Directory, Storage, ZipEntry};
use super::inflating::inflate;
use super::record::{LOCAL_BYTES, local_length};
use super::zip_store::ZipStore;
use crate::key::StoreKey;
use crate::store::{ByteRange, StoreError, Value, ValueBody, Version};

/// An entry of up to this many bytes in the file is read together with its header.
const SINGLE_READ_BYTES: u64 = 64 << 10;

impl ZipStore {
    /// Reads with a directory that may be out of date. `None` if the read did not prove that it is current.
    pub(super) async fn read_if_current(
        &self,
        directory: &Directory,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Option<Result<Value, StoreError>> {
        let entry = directory.find(key)?;
        let is_wanted = if_match.is_none_or(|version| *version == directory.info(&entry).version);
        let has_bytes = range.resolve(entry.size).is_some_and(|range| !range.is_empty());
        if !is_wanted || !has_bytes || entry.storage().is_err() {
            return None;
        }
        match self.read(directory, &entry, range).await {
            Err(StoreError::VersionChanged) => None,
            outcome => Some(outcome),
        }
    }

    /// Reads an entry.
    pub(super) async fn read(
        &self,
        directory: &Directory,
        entry: &ZipEntry<'_>,
        range: ByteRange,
    ) -> Result<Value, StoreError> {
        let storage = entry.storage()?;
        let size = entry.size;
        let range = range.resolve(size).ok_or(StoreError::RangeNotSatisfiable { size })?;
        let body = match storage {
            _ if range.is_empty() => ValueBody::Bytes(Bytes::new()),
            Storage::Stored => self.stored(directory, entry, range.clone()).await?,
            Storage::Deflated => {
                let body = self.stored(directory, entry, 0..entry.compressed).await?;
                let (info, all) = (directory.file.clone(), 0..entry.compressed);
                let encoded = Value::new(info, all, body).into_exact_stream();
                inflate(self.cpu.clone(), entry, encoded, range.clone()).await?
            }
        };
        Ok(Value::new(directory.info(entry), range, body))
    }

    /// A range of an entry's bytes in the file, still compressed if it is.
    async fn stored(
        &self,
        directory: &Directory,
        entry: &ZipEntry<'_>,
        range: Range<u64>,
    ) -> Result<ValueBody, StoreError> {
        let version = &directory.file.version;
        let data = if let Some(data) = directory.data(entry) {
            data
        } else {
            let entry_range = entry_range(entry)?;
            let header = self
                .read_range(entry_range.start, entry_range.end, version, entry_range.end - entry_range.start)
                .await?;
            let length = local_length(&header, entry.key, entry.method)?;
            let data = data_start(entry, length)?;
            directory.cache_header_length(entry, length);
            if entry_range.end == entry.end {
                let bytes = length.saturating_add(range.start)..length.saturating_add(range.end);
                return Ok(ValueBody::Bytes(slice_range(&header, &bytes)?));
            }
            data
        };
        let (start, end) = (data.saturating_add(range.start), data.saturating_add(range.end));
        let value = self.inner.get(&self.file, ByteRange::Bounded(start, end), Some(version)).await?;
        let value = value.ok_or(StoreError::VersionChanged)?;
        if value.range == (start..end) { Ok(value.body) } else { Err(StoreError::WrongLength) }
    }
}

/// The range of the file that is read for an entry's local header: the complete entry if it is short.
fn entry_range(entry: &ZipEntry<'_>) -> Result<Range<u64>, ZipError> {
    let header = entry.offset.checked_add(LOCAL_BYTES + entry.key.len() as u64);
    match header {
        Some(header) if header <= entry.end => {
            let all = entry.end - entry.offset <= SINGLE_READ_BYTES;
            Ok(entry.offset..if all { entry.end } else { header })
        }
        _ => Err(ZipError::Broken("an entry is too short for its header")),
    }
}

/// The offset of an entry's bytes; an error if they reach into the next entry.
fn data_start(entry: &ZipEntry<'_>, header_length: u64) -> Result<u64, ZipError> {
    let data = entry.offset.checked_add(header_length);
    let end = data.and_then(|data| data.checked_add(entry.compressed));
    match (data, end) {
        (Some(data), Some(end)) if end <= entry.end => Ok(data),
        _ => Err(ZipError::Broken("an entry reaches into what follows it")),
    }
}

/// A range of bytes in memory.
fn slice_range(bytes: &Bytes, range: &Range<u64>) -> Result<Bytes, StoreError> {
    match (usize::try_from(range.start), usize::try_from(range.end)) {
        (Ok(start), Ok(end)) if start <= end && end <= bytes.len() => Ok(bytes.slice(start..end)),
        _ => Err(StoreError::WrongLength),
    }
}

//! Reading what a key leads to: bytes of the document, a complete file, or a range of one.
//!
//! The version of a value combines the document's version, the reference's place in it, and the version of what it
//! leads to. A file that is absent, or ends before the range does, is an error, never an absence.

use std::ops::Range;

use bytes::Bytes;

use super::allowed::AllowList;
use super::load::LoadedReferences;
use super::table::Reference;
use super::{BrokenReference, ReferenceError, RefusedReference};
use crate::key::StoreKey;
use crate::store::{ByteRange, SharedStore, StoreError, Value, ValueBody, ValueInfo, Version};

/// Size and version of the value at an index.
pub(super) async fn info(
    allowed: &AllowList,
    document: &LoadedReferences,
    at: usize,
) -> Result<Option<ValueInfo>, StoreError> {
    let (url, part) = match document.table.reference(at) {
        None => return Ok(None),
        Some(Reference::Inline(bytes)) => return Ok(Some(document.own_info(at, bytes.len() as u64))),
        Some(Reference::Whole(url)) => (url, None),
        Some(Reference::Part { url, offset, length }) => (url, Some((offset, length))),
    };
    let (store, key) = allowed.resolve(url)?;
    let info = head(store, &key, url).await?;
    let size = match part {
        None => info.size,
        Some((offset, length)) if offset.checked_add(length).is_some_and(|end| end <= info.size) => length,
        Some(_) => return Err(BrokenReference::Short.of(url).into()),
    };
    Ok(Some(document.referent_info(at, &info, size)))
}

/// As [`info`], for a listing: of a reference that is refused, the length is what the document says. `None` if it says none.
pub(super) async fn listed_info(
    allowed: &AllowList,
    document: &LoadedReferences,
    at: usize,
) -> Result<Option<ValueInfo>, StoreError> {
    match info(allowed, document, at).await {
        Err(StoreError::References(ReferenceError::Refused { .. })) => {
            Ok(match document.table.reference(at) {
                Some(Reference::Part { length, .. }) => Some(document.own_info(at, length)),
                _ => None,
            })
        }
        outcome => outcome,
    }
}

/// The value of a key, or a part of it.
pub(super) async fn read(
    allowed: &AllowList,
    document: &LoadedReferences,
    key: &StoreKey,
    range: ByteRange,
) -> Result<Option<Value>, StoreError> {
    let Some(at) = document.table.find(key.as_str()) else { return Ok(None) };
    match document.table.reference(at) {
        None => Ok(None),
        Some(Reference::Inline(bytes)) => {
            let info = document.own_info(at, bytes.len() as u64);
            inline(&bytes, info, range).map(Some)
        }
        Some(Reference::Whole(url)) => {
            let (store, key) = allowed.resolve(url)?;
            let value = get(store, &key, range, (url, None)).await?;
            let size = value.info.size;
            Ok(Some(Value { info: document.referent_info(at, &value.info, size), ..value }))
        }
        Some(Reference::Part { url, offset, length }) => {
            let (store, key) = allowed.resolve(url)?;
            let (info, range, body) = part((store, &key, url), (offset, length), range, None).await?;
            Ok(Some(Value::new(document.referent_info(at, &info, length), range, body)))
        }
    }
}

/// A range of a part of a file, offset and length, with what the file is: at a version, if one is given.
pub(super) async fn part(
    (store, key, url): (&SharedStore, &StoreKey, &str),
    (offset, length): (u64, u64),
    range: ByteRange,
    if_match: Option<&Version>,
) -> Result<(ValueInfo, Range<u64>, ValueBody), StoreError> {
    let range = range.resolve(length).ok_or(StoreError::RangeNotSatisfiable { size: length })?;
    let ends = offset.checked_add(range.start).zip(offset.checked_add(range.end));
    let (start, end) = ends.ok_or_else(|| BrokenReference::Short.of(url))?;
    let (info, body) = if range.is_empty() {
        (head(store, key, url).await?, ValueBody::Bytes(Bytes::new()))
    } else {
        let value = get(store, key, ByteRange::Bounded(start, end), (url, if_match)).await;
        let value = value.map_err(|error| match error {
            StoreError::RangeNotSatisfiable { .. } => BrokenReference::Short.of(url).into(),
            error => error,
        })?;
        if value.range != (start..end) {
            return Err(BrokenReference::Short.of(url).into());
        }
        (value.info, value.body)
    };
    if offset.checked_add(length).is_none_or(|end| end > info.size) {
        return Err(BrokenReference::Short.of(url).into());
    }
    Ok((info, range, body))
}

/// A range of bytes that are in memory.
pub(super) fn inline(bytes: &Bytes, info: ValueInfo, range: ByteRange) -> Result<Value, StoreError> {
    let size = bytes.len() as u64;
    let range = range.resolve(size).ok_or(StoreError::RangeNotSatisfiable { size })?;
    let places = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
    let (start, end) = places.ok_or(StoreError::WrongLength)?;
    let body = ValueBody::Bytes(bytes.slice(start..end));
    Ok(Value::new(info, range, body))
}

impl LoadedReferences {
    /// The information about a value of `size` bytes, from the document alone.
    fn own_info(&self, at: usize, size: u64) -> ValueInfo {
        let version = self.info.version.for_part(&at.to_string());
        ValueInfo { size, version, modified: self.info.modified }
    }

    /// The information about a value of `size` bytes that is, or lies in, the file that `referent` describes.
    fn referent_info(&self, at: usize, referent: &ValueInfo, size: u64) -> ValueInfo {
        let version = self.info.version.for_part(&at.to_string()).combined(&referent.version);
        // The value is as old as the later one of the two.
        let modified = self.info.modified.zip(referent.modified).map(|(one, two)| one.max(two));
        ValueInfo { size, version, modified }
    }
}

pub(super) async fn head(store: &SharedStore, key: &StoreKey, url: &str) -> Result<ValueInfo, StoreError> {
    let info = store.head(key).await.map_err(|error| referent_error(error, url))?;
    info.ok_or_else(|| BrokenReference::Missing.of(url).into())
}

async fn get(
    store: &SharedStore,
    key: &StoreKey,
    range: ByteRange,
    (url, if_match): (&str, Option<&Version>),
) -> Result<Value, StoreError> {
    let value = store.get(key, range, if_match).await.map_err(|error| match error {
        StoreError::VersionChanged if if_match.is_some() => BrokenReference::Changed.of(url).into(),
        error => referent_error(error, url),
    })?;
    value.ok_or_else(|| BrokenReference::Missing.of(url).into())
}

/// The failure to read what a reference leads to. What would be a fault of the request for a key of the client is one of
/// the reference here.
fn referent_error(error: StoreError, url: &str) -> StoreError {
    match error {
        StoreError::InvalidKey(reason) => RefusedReference::Name(reason).of(url).into(),
        StoreError::NotPublic(address) => RefusedReference::Resolved(address).of(url).into(),
        StoreError::Link { .. } => BrokenReference::Link.of(url).into(),
        error => error,
    }
}

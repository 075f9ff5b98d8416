//! Reading values: one open descriptor for one version.
//!
//! A writer that replaces the file while it is read does no harm: the descriptor still holds the old one. A
//! program that writes into the file is noticed by its modification time and size, and the read begins again or
//! ends in an error, so that bytes of two contents are not mixed. The kernel sets the time before it copies the bytes of
//! a write. If the copy takes longer than `FINE_STEP`, a read meanwhile may mix both contents.

use std::ops::Range;
use std::sync::Arc;

use super::open_value::{OpenValue, close_detached, read_piece, try_read};
use super::root::{Root, TryOpen};
use super::version::{FileState, info_of, is_version_of};
use crate::cpu::on_pool_thread;
use crate::key::StoreKey;
use crate::store::capabilities::NONBLOCKING_READ_BYTES;
use crate::store::{ByteRange, StoreError, Value, ValueBody, ValueInfo, Version};

/// Up to this length, in bytes, a range is read by the same call that opens the file; longer ones later.
const SINGLE_READ_BYTES: u64 = 1 << 20;
/// The most attempts of a read, if the file is written to meanwhile.
const ATTEMPTS: usize = 3;

/// Size and version of a key's value.
pub(super) fn head(root: &Root, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
    Ok(root.open_file(key.as_str())?.map(|(_, file_state)| info_of(&file_state)))
}

/// [`head`] without blocking.
pub(super) fn try_head(root: &Root, key: &StoreKey) -> Result<Option<ValueInfo>, WouldBlock> {
    match root.try_open_file(key.as_str()) {
        TryOpen::WouldBlock => Err(WouldBlock),
        TryOpen::Absent => Ok(None),
        TryOpen::Open(file, file_state) => {
            close_detached(file, &file_state.stat);
            Ok(Some(info_of(&file_state)))
        }
    }
}

/// Whether it is known without blocking that a key's file has this version, or (`None`) that there is no file.
pub(super) fn validate_cached(root: &Root, key: &StoreKey, version: Option<&Version>) -> bool {
    match version {
        Some(version) => root.try_stat(key.as_str()).is_some_and(|stat| is_version_of(version, &stat)),
        None => root.try_is_absent(key.as_str()),
    }
}

/// The non-blocking form has no answer: call the blocking one.
pub(super) struct WouldBlock;

/// What [`start`] found: a value that is complete, or one that is still to be read.
pub(super) enum Started {
    Complete(Value),
    Opened(Box<OpenValue>),
}

impl Started {
    /// Size and version of the value.
    pub(super) fn info(&self) -> &ValueInfo {
        match self {
            Self::Complete(value) => &value.info,
            Self::Opened(opened) => &opened.info,
        }
    }
}

/// Opens a key's value, and reads the range if it is short.
pub(super) fn start(
    root: &Root,
    key: &StoreKey,
    range: ByteRange,
    if_match: Option<&Version>,
) -> Result<Option<Started>, StoreError> {
    for _ in 0..ATTEMPTS {
        let Some((file, file_state)) = root.open_file(key.as_str())? else {
            return Ok(None);
        };
        let (info, range) = check_and_resolve(&file_state, range, if_match)?;
        if range.end - range.start > SINGLE_READ_BYTES {
            let (stat, nonblocking) = (file_state.stat, root.nonblocking);
            let opened = OpenValue { file: Arc::new(file), stat, info, range, nonblocking };
            return Ok(Some(Started::Opened(Box::new(opened))));
        }
        if let Some(bytes) = read_piece(&file, &file_state.stat, range.clone())? {
            return Ok(Some(Started::Complete(Value::new(info, range, ValueBody::Bytes(bytes)))));
        }
    }
    Err(StoreError::VersionChanged)
}

/// [`start`] without blocking, and without a read that would delay other tasks.
pub(super) fn try_start(
    root: &Root,
    key: &StoreKey,
    range: ByteRange,
    if_match: Option<&Version>,
) -> Result<Result<Option<Started>, StoreError>, WouldBlock> {
    let (file, file_state) = match root.try_open_file(key.as_str()) {
        TryOpen::WouldBlock => return Err(WouldBlock),
        TryOpen::Absent => return Ok(Ok(None)),
        TryOpen::Open(file, file_state) => (file, file_state),
    };
    let (info, range) = match check_and_resolve(&file_state, range, if_match) {
        Ok(check_and_resolve) => check_and_resolve,
        Err(error) => return Ok(Err(error)),
    };
    let (length, stat) = (range.end - range.start, file_state.stat);
    if length > SINGLE_READ_BYTES {
        let opened = OpenValue { file: Arc::new(file), stat, info, range, nonblocking: root.nonblocking };
        return Ok(Ok(Some(Started::Opened(Box::new(opened)))));
    }
    // A longer read would delay other tasks of a thread of the reactor.
    let longest = if on_pool_thread() { SINGLE_READ_BYTES } else { NONBLOCKING_READ_BYTES };
    let mut bytes = match usize::try_from(length) {
        Ok(capacity) if length <= longest => vec![0; capacity],
        _ => return Err(WouldBlock),
    };
    let Some(after) = try_read(&file, &stat, &mut bytes, range.start) else {
        close_detached(file, &stat);
        return Err(WouldBlock);
    };
    close_detached(file, &after);
    Ok(Ok(Some(Started::Complete(Value::new(info, range, ValueBody::Bytes(bytes.into()))))))
}

/// Size and version of a file, and the range resolved against it; an error if it does not have the version of
/// `if_match`.
fn check_and_resolve(
    file_state: &FileState,
    range: ByteRange,
    if_match: Option<&Version>,
) -> Result<(ValueInfo, Range<u64>), StoreError> {
    let mut info = info_of(file_state);
    if let Some(version) = if_match {
        if !version.matches(&info.version) {
            return Err(StoreError::VersionChanged);
        }
        info.version = version.clone();
    }
    let size = info.size;
    let range = range.resolve(size).ok_or(StoreError::RangeNotSatisfiable { size })?;
    Ok((info, range))
}

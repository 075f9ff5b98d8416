//! Reading values: one open descriptor for one version.
//!
//! A writer that replaces the file while it is read does no harm: the descriptor still holds the old one. A
//! program that writes into the file is noticed by its modification time and size, and the read begins again or
//! ends in an error; bytes of two contents are never mixed.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{StreamExt, unfold};
use rustix::fs::{Stat, fstat};

use super::blocking::Blocking;
use super::failure::{io, os};
use super::root::Root;
use super::version::{info_of, size_of, was_written_between};
use crate::key::StoreKey;
use crate::store::{ByteRange, StoreError, Value, ValueBody, ValueInfo, ValueStream, Version};

/// Up to this length, what is asked for is read in the one hop that opens the file.
const AT_ONCE_BYTES: u64 = 1 << 20;
/// Longer reads come in pieces of this length.
const PIECE_BYTES: u64 = 512 << 10;
/// How often a read begins again because the file was written to meanwhile.
const TRIES: usize = 3;

/// Size and version of a key's value.
pub(super) fn head(root: &Root, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
    Ok(root.open_file(key.as_str())?.map(|(_, stat)| info_of(&stat)))
}

/// What [`start`] found: a value that is complete, or one that is still to be streamed.
pub(super) enum Started {
    Complete(Value),
    Streamed(Opened),
}

/// An open file and what is wanted of it.
pub(super) struct Opened {
    file: Arc<File>,
    stat: Stat,
    range: Range<u64>,
}

/// Opens a key's value and reads it, if little is asked for.
pub(super) fn start(
    root: &Root,
    key: &StoreKey,
    range: ByteRange,
    if_match: Option<&Version>,
) -> Result<Option<Started>, StoreError> {
    for _ in 0..TRIES {
        let Some((file, stat)) = root.open_file(key.as_str())? else {
            return Ok(None);
        };
        let info = info_of(&stat);
        if if_match.is_some_and(|version| *version != info.version) {
            return Err(StoreError::VersionChanged);
        }
        let size = size_of(&stat);
        let range = range.resolve(size).ok_or(StoreError::RangeNotSatisfiable { size })?;
        if range.end - range.start > AT_ONCE_BYTES {
            return Ok(Some(Started::Streamed(Opened { file: Arc::new(file), stat, range })));
        }
        if let Some(bytes) = read_piece(&file, &stat, range.clone())? {
            return Ok(Some(Started::Complete(Value { info, range, body: ValueBody::Bytes(bytes) })));
        }
    }
    Err(StoreError::VersionChanged)
}

/// The bytes of a range; `None` if the file was written to since `stat` was taken.
fn read_piece(file: &File, stat: &Stat, range: Range<u64>) -> Result<Option<Bytes>, StoreError> {
    let Ok(length) = usize::try_from(range.end - range.start) else {
        return Err(StoreError::WrongLength);
    };
    let mut bytes = vec![0; length];
    match file.read_exact_at(&mut bytes, range.start) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(io("read the value's file", &error)),
    }
    let after = fstat(file).map_err(|errno| os("look at the value's file", errno))?;
    Ok((!was_written_between(stat, &after)).then(|| bytes.into()))
}

impl Opened {
    /// The value, whose bytes are read as they are asked for.
    pub(super) fn into_value(self, blocking: Blocking) -> Value {
        let (info, range) = (info_of(&self.stat), self.range.clone());
        Value { info, range, body: ValueBody::Stream(self.stream(blocking)) }
    }

    fn stream(self, blocking: Blocking) -> ValueStream {
        unfold(Some((self, blocking)), |state| async {
            let (mut opened, blocking) = state?;
            let at = opened.range.start;
            if at >= opened.range.end {
                return None;
            }
            let next = opened.range.end.min(at.saturating_add(PIECE_BYTES));
            let (file, stat) = (Arc::clone(&opened.file), opened.stat);
            let read = move || read_piece(&file, &stat, at..next)?.ok_or(StoreError::VersionChanged);
            let piece = blocking.run(read).await;
            opened.range.start = next;
            let next = piece.is_ok().then_some((opened, blocking));
            Some((piece, next))
        })
        .boxed()
    }
}

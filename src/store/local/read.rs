//! Reading values: one open descriptor for one version.
//!
//! A writer that replaces the file while it is read does no harm: the descriptor still holds the old one. A
//! program that writes into the file is noticed by its modification time and size, and the read begins again or
//! ends in an error; bytes of two contents are never mixed.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{StreamExt, unfold};
use rustix::buffer::spare_capacity;
use rustix::fs::{Stat, fstat};
use rustix::io::{Errno, pread};

use super::blocking::{Blocking, detach};
use super::failure::os;
use super::nonblocking;
use super::piece_buffers::{PieceBuffer, PieceLength};
use super::root::{Root, TryOpen};
use super::version::{FileState, info_of, is_version_of, was_written_between};
use crate::key::StoreKey;
use crate::store::capabilities::NONBLOCKING_READ_BYTES;
use crate::store::{ByteRange, StoreError, Value, ValueBody, ValueInfo, ValueStream, Version};

/// Up to this length, in bytes, a range is read by the same blocking call that opens the file.
const SINGLE_READ_BYTES: u64 = 1 << 20;
/// Longer ranges are read in pieces of this length, in bytes.
const PIECE_BYTES: u64 = 512 << 10;
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

/// What [`start`] found: a value that is complete, or one that is still to be streamed.
pub(super) enum Started {
    Complete(Value),
    Streamed(Box<OpenValue>),
}

impl Started {
    /// Size and version of the value.
    pub(super) fn info(&self) -> &ValueInfo {
        match self {
            Self::Complete(value) => &value.info,
            Self::Streamed(opened) => &opened.info,
        }
    }
}

/// An open file, and the range of it that is still to be read.
pub(super) struct OpenValue {
    file: Arc<File>,
    stat: Stat,
    info: ValueInfo,
    range: Range<u64>,
    /// Length of the next long piece. It begins short and grows with each piece that the client takes: thousands of clients
    /// that take nothing would otherwise hold long ones.
    long_piece: PieceLength,
    /// Whether the next piece is a long one. Pieces that are in memory are short and long in turn: a connection polls for more
    /// when little is left to send, and while it sends the short piece, the buffer of the long one becomes free again. A streamed
    /// value counts for the sum of both (`http.streamed_response_size`).
    is_long: bool,
    /// Whether pieces are tried without blocking.
    nonblocking: bool,
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
            return Ok(Some(Started::Streamed(OpenValue::new(
                file,
                file_state.stat,
                info,
                range,
                root.nonblocking,
            ))));
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
        return Ok(Ok(Some(Started::Streamed(OpenValue::new(file, stat, info, range, root.nonblocking)))));
    }
    let mut bytes = match usize::try_from(length) {
        Ok(capacity) if length <= NONBLOCKING_READ_BYTES => vec![0; capacity],
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

/// The bytes of a range; `None` if the file was written to since `stat` was taken.
fn read_piece(file: &File, stat: &Stat, range: Range<u64>) -> Result<Option<Bytes>, StoreError> {
    let Ok(length) = usize::try_from(range.end - range.start) else {
        return Err(StoreError::WrongLength);
    };
    // Not zeroed first: for long ranges that takes a third of the time of the read.
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let at = range.start + bytes.len() as u64;
        match pread(file, spare_capacity(&mut bytes), at) {
            Ok(0) => return Ok(None),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(os("read the value's file", errno)),
        }
    }
    // The allocation may be longer than it had to be.
    bytes.truncate(length);
    let after = fstat(file).map_err(|errno| os("stat the value's file", errno))?;
    Ok((!was_written_between(stat, &after)).then(|| bytes.into()))
}

/// Fills a buffer with bytes of the version that `stat` belongs to, and returns the file's `stat` after that; `None` if
/// it would block, or fails.
fn try_read(file: &File, stat: &Stat, bytes: &mut [u8], at: u64) -> Option<Stat> {
    if !bytes.is_empty() && !nonblocking::read(file, bytes, at) {
        return None;
    }
    fstat(file).ok().filter(|after| !was_written_between(stat, after))
}

/// Closes a file, on a blocking thread if its name is gone: that may free all of it on the disk.
fn close_detached(file: File, stat: &Stat) {
    if stat.st_nlink == 0 {
        detach(move || drop(file));
    }
}

impl OpenValue {
    fn new(file: File, stat: Stat, info: ValueInfo, range: Range<u64>, nonblocking: bool) -> Box<Self> {
        Box::new(Self {
            file: Arc::new(file),
            stat,
            info,
            range,
            long_piece: PieceLength::Short,
            is_long: false,
            nonblocking,
        })
    }

    /// The value, with a body that is read as it is polled.
    pub(super) fn into_value(self, blocking: Blocking) -> Value {
        let (info, range) = (self.info.clone(), self.range.clone());
        Value::new(info, range, ValueBody::Stream(self.stream(blocking)))
    }

    fn stream(self, blocking: Blocking) -> ValueStream {
        unfold(Some((self, blocking)), |state| async {
            let (mut opened, blocking) = state?;
            let at = opened.range.start;
            if at >= opened.range.end {
                return None;
            }
            // A reader that collects pieces that are all in memory must yield to other tasks.
            tokio::task::consume_budget().await;
            if let Some(piece) = opened.try_piece() {
                return Some((Ok(piece), Some((opened, blocking))));
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

    /// The next piece, if it is in memory.
    fn try_piece(&mut self) -> Option<Bytes> {
        if !self.nonblocking {
            return None;
        }
        let longest = if self.is_long { self.long_piece } else { PieceLength::Short };
        let mut buffer = PieceBuffer::take(self.range.end - self.range.start, longest);
        try_read(&self.file, &self.stat, buffer.piece_mut(), self.range.start)?;
        let piece = buffer.into_piece();
        if self.is_long {
            self.long_piece = self.long_piece.longer();
        }
        self.is_long = !self.is_long;
        self.range.start += u64::try_from(piece.len()).ok()?;
        Some(piece)
    }
}

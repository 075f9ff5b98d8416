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

use super::blocking::{Blocking, detach};
use super::failure::{io, os};
use super::nonblocking;
use super::root::{OpenNow, Root};
use super::settled::Looked;
use super::version::{info_of, is_version_of, was_written_between};
use crate::key::StoreKey;
use crate::store::{ByteRange, StoreError, Value, ValueBody, ValueInfo, ValueStream, Version};

/// Up to this length, what is asked for is read in the one hop that opens the file.
const AT_ONCE_BYTES: u64 = 1 << 20;
/// Longer reads come in pieces of this length.
const PIECE_BYTES: u64 = 512 << 10;
/// Up to this length, what is asked for is read without a hop, if it is in memory. That takes less time than a hop; for
/// longer, others would wait.
const NOW_BYTES: u64 = 512 << 10;
/// Pieces that are in memory are short and long in turn. A connection asks for more when little is left to send: while the
/// short one is on its way, the buffer of the long one is there again. Both together are what a streamed value counts for
/// (`http.streamed_response_size`).
const SHORT_PIECE: usize = 64 << 10;
const LONG_PIECE: usize = 960 << 10;
/// How often a read begins again because the file was written to meanwhile.
const TRIES: usize = 3;

/// Size and version of a key's value.
pub(super) fn head(root: &Root, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
    Ok(root.open_file(key.as_str())?.map(|(_, looked)| info_of(&looked)))
}

/// As [`head`], if it can be told without waiting; `Err` if it cannot.
pub(super) fn head_now(root: &Root, key: &StoreKey) -> Result<Option<ValueInfo>, Waits> {
    match root.open_file_now(key.as_str()) {
        OpenNow::Unknown => Err(Waits),
        OpenNow::Absent => Ok(None),
        OpenNow::Found(file, looked) => {
            let_go(file, &looked.stat);
            Ok(Some(info_of(&looked)))
        }
    }
}

/// Whether it is plain that a key's file is of this version, or (`None`) that there is none.
pub(super) fn still_has(root: &Root, key: &StoreKey, version: Option<&Version>) -> bool {
    match version {
        Some(version) => root.look_now(key.as_str()).is_some_and(|stat| is_version_of(version, &stat)),
        None => root.is_absent_now(key.as_str()),
    }
}

/// Says that an answer takes waiting.
pub(super) struct Waits;

/// What [`start`] found: a value that is complete, or one that is still to be streamed.
pub(super) enum Started {
    Complete(Value),
    Streamed(Box<Opened>),
}

impl Started {
    /// What is known of the value.
    pub(super) fn info(&self) -> &ValueInfo {
        match self {
            Self::Complete(value) => &value.info,
            Self::Streamed(opened) => &opened.info,
        }
    }
}

/// An open file and what is wanted of it.
pub(super) struct Opened {
    file: Arc<File>,
    stat: Stat,
    info: ValueInfo,
    range: Range<u64>,
    /// Buffers that were handed out, the one that is used next first.
    lent: [Bytes; 2],
    /// Length of the next long piece. It begins short and doubles with each that is taken: for thousands of clients who take
    /// nothing, the kernel would otherwise be busy with clearing memory.
    long: usize,
    /// Whether the next piece is a long one.
    is_long: bool,
    /// Whether pieces are looked for in memory.
    now: bool,
}

/// Opens a key's value and reads it, if little is asked for.
pub(super) fn start(
    root: &Root,
    key: &StoreKey,
    range: ByteRange,
    if_match: Option<&Version>,
) -> Result<Option<Started>, StoreError> {
    for _ in 0..TRIES {
        let Some((file, looked)) = root.open_file(key.as_str())? else {
            return Ok(None);
        };
        let (info, range) = wanted(&looked, range, if_match)?;
        if range.end - range.start > AT_ONCE_BYTES {
            return Ok(Some(Started::Streamed(Opened::new(file, looked.stat, info, range, root.now))));
        }
        if let Some(bytes) = read_piece(&file, &looked.stat, range.clone())? {
            return Ok(Some(Started::Complete(Value { info, range, body: ValueBody::Bytes(bytes) })));
        }
    }
    Err(StoreError::VersionChanged)
}

/// As [`start`], if it can be done without waiting and without keeping others waiting.
pub(super) fn start_now(
    root: &Root,
    key: &StoreKey,
    range: ByteRange,
    if_match: Option<&Version>,
) -> Result<Result<Option<Started>, StoreError>, Waits> {
    let (file, looked) = match root.open_file_now(key.as_str()) {
        OpenNow::Unknown => return Err(Waits),
        OpenNow::Absent => return Ok(Ok(None)),
        OpenNow::Found(file, looked) => (file, looked),
    };
    let (info, range) = match wanted(&looked, range, if_match) {
        Ok(wanted) => wanted,
        Err(error) => return Ok(Err(error)),
    };
    let (length, stat) = (range.end - range.start, looked.stat);
    if length > AT_ONCE_BYTES {
        return Ok(Ok(Some(Started::Streamed(Opened::new(file, stat, info, range, root.now)))));
    }
    let mut bytes = match usize::try_from(length) {
        Ok(capacity) if length <= NOW_BYTES => vec![0; capacity],
        _ => return Err(Waits),
    };
    let Some(after) = read_now(&file, &stat, &mut bytes, range.start) else {
        let_go(file, &stat);
        return Err(Waits);
    };
    let_go(file, &after);
    Ok(Ok(Some(Started::Complete(Value { info, range, body: ValueBody::Bytes(bytes.into()) }))))
}

/// What is known of a file, and which of its bytes are wanted.
fn wanted(
    looked: &Looked,
    range: ByteRange,
    if_match: Option<&Version>,
) -> Result<(ValueInfo, Range<u64>), StoreError> {
    let mut info = info_of(looked);
    if let Some(version) = if_match {
        if !version.holds_for(&info.version) {
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
    let mut bytes = vec![0; length];
    match file.read_exact_at(&mut bytes, range.start) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(io("read the value's file", &error)),
    }
    let after = fstat(file).map_err(|errno| os("look at the value's file", errno))?;
    Ok((!was_written_between(stat, &after)).then(|| bytes.into()))
}

/// Fills a buffer with bytes of the version that `stat` is of, and says how the file looks after that; `None` if that
/// takes waiting, or cannot be done.
fn read_now(file: &File, stat: &Stat, bytes: &mut [u8], at: u64) -> Option<Stat> {
    if !bytes.is_empty() && !nonblocking::read(file, bytes, at) {
        return None;
    }
    fstat(file).ok().filter(|after| !was_written_between(stat, after))
}

/// Closes a file that has just looked like this. If its name is gone, this may free all of it: a matter of the disk.
fn let_go(file: File, stat: &Stat) {
    if stat.st_nlink == 0 {
        detach(move || drop(file));
    }
}

impl Opened {
    fn new(file: File, stat: Stat, info: ValueInfo, range: Range<u64>, now: bool) -> Box<Self> {
        let lent = [const { Bytes::new() }; 2];
        Box::new(Self {
            file: Arc::new(file),
            stat,
            info,
            range,
            lent,
            long: SHORT_PIECE,
            is_long: false,
            now,
        })
    }

    /// The value, whose bytes are read as they are asked for.
    pub(super) fn into_value(self, blocking: Blocking) -> Value {
        let (info, range) = (self.info.clone(), self.range.clone());
        Value { info, range, body: ValueBody::Stream(self.stream(blocking)) }
    }

    fn stream(self, blocking: Blocking) -> ValueStream {
        unfold(Some((self, blocking)), |state| async {
            let (mut opened, blocking) = state?;
            let at = opened.range.start;
            if at >= opened.range.end {
                return None;
            }
            // Whoever collects pieces that are all at hand gives others their turn.
            tokio::task::consume_budget().await;
            if let Some(piece) = opened.piece_now() {
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

    /// The next piece, if it is in memory. Its buffer is used again once whoever got it has let go of it.
    fn piece_now(&mut self) -> Option<Bytes> {
        if !self.now {
            return None;
        }
        let [next, other] = &mut self.lent;
        let most = if self.is_long { self.long } else { SHORT_PIECE };
        let mut bytes = std::mem::take(next).try_into_mut().unwrap_or_default();
        bytes.resize(most, 0);
        let left = usize::try_from(self.range.end - self.range.start).unwrap_or(usize::MAX);
        let piece = bytes.get_mut(..left.min(most))?;
        let length = piece.len();
        let is_read = read_now(&self.file, &self.stat, piece, self.range.start).is_some();
        let bytes = bytes.freeze();
        if !is_read {
            *next = bytes;
            return None;
        }
        *next = std::mem::replace(other, bytes.clone());
        if self.is_long {
            self.long = LONG_PIECE.min(2 * self.long);
        }
        self.is_long = !self.is_long;
        self.range.start += u64::try_from(length).ok()?;
        Some(bytes.slice(..length))
    }
}

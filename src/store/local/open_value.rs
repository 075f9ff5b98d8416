//! [`OpenValue`]: a range of an open file that is still to be read, in pieces or at once.

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
use super::version::was_written_between;
use crate::store::{FileBody, StoreError, Value, ValueBody, ValueInfo, ValueStream};

/// Pieces that are not in memory are read in this length, in bytes.
const PIECE_BYTES: u64 = 512 << 10;

/// An open file, and the range of it that is still to be read.
pub(super) struct OpenValue {
    pub(super) file: Arc<File>,
    pub(super) stat: Stat,
    pub(super) info: ValueInfo,
    pub(super) range: Range<u64>,
    /// Whether pieces are tried without blocking.
    pub(super) nonblocking: bool,
}

/// The pieces of an open value.
struct Pieces {
    opened: OpenValue,
    blocking: Blocking,
    /// Length of the next long piece. It begins short and grows with each piece that the client takes: thousands of clients
    /// that take nothing would otherwise hold long ones.
    long_piece: PieceLength,
    /// Whether the next piece is a long one. Pieces that are in memory are short and long in turn: a connection polls for more
    /// when little is left to send, and while it sends the short piece, the buffer of the long one becomes free again. A streamed
    /// value counts for the sum of both (`http.streamed_response_size`).
    is_long: bool,
}

/// An open value that is read without blocking where that is possible.
struct NonblockingBody {
    opened: OpenValue,
    blocking: Blocking,
}

impl OpenValue {
    /// The value, with a body that is still to be read.
    pub(super) fn into_value(self, blocking: Blocking) -> Value {
        let (info, range) = (self.info.clone(), self.range.clone());
        let body = if self.nonblocking {
            ValueBody::File(Box::new(NonblockingBody { opened: self, blocking }))
        } else {
            ValueBody::Stream(self.into_pieces(blocking))
        };
        Value::new(info, range, body)
    }

    fn into_pieces(self, blocking: Blocking) -> ValueStream {
        let pieces = Pieces { opened: self, blocking, long_piece: PieceLength::Short, is_long: false };
        unfold(Some(pieces), |pieces| async {
            let mut pieces = pieces?;
            let piece = pieces.next().await?;
            let next = piece.is_ok().then_some(pieces);
            Some((piece, next))
        })
        .boxed()
    }
}

impl Pieces {
    async fn next(&mut self) -> Option<Result<Bytes, StoreError>> {
        let at = self.opened.range.start;
        if at >= self.opened.range.end {
            return None;
        }
        // A reader that collects pieces that are all in memory must yield to other tasks.
        tokio::task::consume_budget().await;
        if let Some(piece) = self.try_next() {
            return Some(Ok(piece));
        }
        let next = self.opened.range.end.min(at.saturating_add(PIECE_BYTES));
        let (file, stat) = (Arc::clone(&self.opened.file), self.opened.stat);
        let read = move || read_piece(&file, &stat, at..next)?.ok_or(StoreError::VersionChanged);
        let piece = self.blocking.run(read).await;
        self.opened.range.start = next;
        Some(piece)
    }

    /// The next piece, if it is in memory.
    fn try_next(&mut self) -> Option<Bytes> {
        let OpenValue { file, stat, range, nonblocking, .. } = &mut self.opened;
        if !*nonblocking {
            return None;
        }
        let longest = if self.is_long { self.long_piece } else { PieceLength::Short };
        let mut buffer = PieceBuffer::take(range.end - range.start, longest);
        try_read(file, stat, buffer.piece_mut(), range.start)?;
        let piece = buffer.into_piece();
        if self.is_long {
            self.long_piece = self.long_piece.longer();
        }
        self.is_long = !self.is_long;
        range.start += piece.len() as u64;
        Some(piece)
    }
}

impl FileBody for NonblockingBody {
    fn into_stream(self: Box<Self>) -> ValueStream {
        self.opened.into_pieces(self.blocking)
    }

    fn begins_in_memory(&self) -> bool {
        let OpenValue { file, range, .. } = &self.opened;
        // As long as the first piece of the stream: after a shorter read, the kernel reads less ahead.
        let mut piece = PieceBuffer::take(range.end - range.start, PieceLength::Short);
        nonblocking::read(file, piece.piece_mut(), range.start)
    }

    fn try_read(self: Box<Self>) -> Result<Bytes, Box<dyn FileBody>> {
        let OpenValue { file, stat, range, .. } = &self.opened;
        let Ok(length) = usize::try_from(range.end - range.start) else { return Err(self) };
        // Zeroing takes 3 to 9 % of the time of reading and decoding. There is no safe `preadv2` for memory that is not initialized.
        let mut bytes = vec![0; length];
        let has_failed = try_read(file, stat, &mut bytes, range.start).is_none();
        if has_failed { Err(self) } else { Ok(bytes.into()) }
    }
}

/// The bytes of a range; `None` if the file was written to since `stat` was taken.
pub(super) fn read_piece(file: &File, stat: &Stat, range: Range<u64>) -> Result<Option<Bytes>, StoreError> {
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
pub(super) fn try_read(file: &File, stat: &Stat, bytes: &mut [u8], at: u64) -> Option<Stat> {
    if !bytes.is_empty() && !nonblocking::read(file, bytes, at) {
        return None;
    }
    fstat(file).ok().filter(|after| !was_written_between(stat, after))
}

/// Closes a file, on a blocking thread if its name is gone: that may free all of it on the disk.
pub(super) fn close_detached(file: File, stat: &Stat) {
    if stat.st_nlink == 0 {
        detach(move || drop(file));
    }
}

//! The file in memory of Linux: `memfd_create`.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock};

use bytes::Bytes;
use memmap2::{Mmap, MmapOptions};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create, sendfile};
use rustix::io::{Errno, pwrite};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

/// What each part has of the file, most of which is a hole. No page of the kernel is as long, huge ones included, so none has bytes of
/// two parts, and none is freed in part: of a page that is freed in part, the kernel clears the bytes, also if a socket has yet to send them.
const SPAN_BYTES: u64 = 1 << 30;
/// Bytes that are copied to the file at a time. Between two copies, other tasks run.
const COPY_BYTES: usize = 512 << 10;
/// Shorter bytes are copied to the socket, which takes less time than to find them and to call `sendfile`.
const LEAST_SENT: usize = 64 << 10;

/// The file, if the system has such files.
static FILE: LazyLock<Option<OwnedFd>> = LazyLock::new(|| create().ok());
/// How many parts there have been. Each has a span of its own.
static SPANS: AtomicU64 = AtomicU64::new(0);
/// The parts, by the address of their first byte: the length of each and its offset. No code panics while it holds the lock.
static PARTS: RwLock<BTreeMap<usize, (usize, u64)>> = RwLock::new(BTreeMap::new());

/// A file whose memory can be freed.
fn create() -> Result<OwnedFd, Errno> {
    let create = |flags| memfd_create("zarrd values", MemfdFlags::CLOEXEC | flags);
    // Systems may require the flag, and older ones do not know it.
    let file = create(MemfdFlags::NOEXEC_SEAL).or_else(|_unknown| create(MemfdFlags::empty()))?;
    free(&file, 0)?;
    Ok(file)
}

/// Frees the pages of a span. Sockets that have yet to send some of them keep those, with their bytes.
fn free(file: &OwnedFd, start: u64) -> Result<(), Errno> {
    fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, SPAN_BYTES)
}

/// A span of the file, whose pages are freed when it is dropped.
#[derive(Debug)]
struct Span {
    file: &'static OwnedFd,
    start: u64,
}

impl Drop for Span {
    fn drop(&mut self) {
        // The system has freed a span before, when the file was created.
        let _ = free(self.file, self.start);
    }
}

/// A part of the file that is being written.
#[derive(Debug)]
pub(crate) struct FilePartWriter {
    span: Span,
    length: u64,
    written: u64,
}

impl FilePartWriter {
    /// A writer of a part of this length; `None` where there are no files in memory, or it does not fit.
    pub(crate) fn new(length: u64) -> Option<Self> {
        let file = FILE.as_ref().filter(|_| length <= SPAN_BYTES)?;
        let start = SPANS.fetch_add(1, Ordering::Relaxed).checked_mul(SPAN_BYTES)?;
        Some(Self { span: Span { file, start }, length, written: 0 })
    }

    /// Writes the next bytes, while other tasks go on.
    ///
    /// # Errors
    /// The bytes do not fit in the part, or the system refuses the memory.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > self.length - self.written {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let next = rest.get(..COPY_BYTES).unwrap_or(rest);
            let written = pwrite(self.span.file, next, self.span.start + self.written)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.written += written as u64;
            rest = rest.get(written..).unwrap_or_default();
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// The part, once all of it was written.
    ///
    /// # Errors
    /// It is not yet all written, or cannot be mapped.
    #[expect(unsafe_code, reason = "a mapped file could change; this one cannot")]
    pub(crate) fn finish(self) -> io::Result<FilePart> {
        if self.written != self.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let length = usize::try_from(self.length).map_err(|_too_long| io::ErrorKind::FileTooLarge)?;
        // Mapped at once, because that is resident memory of the process, which is measured.
        let mut options = MmapOptions::new();
        options.offset(self.span.start).len(length).populate();
        // SAFETY: nothing writes to these bytes any more: only a `FilePartWriter` writes, each to a span of its own, and this one ends
        // here. The file is never truncated, and the pages are freed only after the map is dropped.
        let map = unsafe { options.map(self.span.file)? };
        let mut parts = PARTS.write().unwrap_or_else(PoisonError::into_inner);
        parts.insert(map.as_ptr().addr(), (length, self.span.start));
        Ok(FilePart { map, _span: self.span })
    }
}

/// A part of the file.
#[derive(Debug)]
pub(crate) struct FilePart {
    // Dropped before the pages are freed.
    map: Mmap,
    _span: Span,
}

impl FilePart {
    /// The bytes. `owner` is dropped after them.
    pub(crate) fn into_bytes(self, owner: impl Send + 'static) -> Bytes {
        struct Owned<O>(FilePart, O);
        impl<O> AsRef<[u8]> for Owned<O> {
            fn as_ref(&self) -> &[u8] {
                &self.0.map
            }
        }
        Bytes::from_owner(Owned(self, owner))
    }
}

impl Drop for FilePart {
    fn drop(&mut self) {
        // Before the addresses can be those of another part.
        PARTS.write().unwrap_or_else(PoisonError::into_inner).remove(&self.map.as_ptr().addr());
    }
}

/// The offset in the file of bytes that are in it, and are long enough to be sent without copying.
fn offset_of(bytes: &[u8]) -> Option<u64> {
    if bytes.len() < LEAST_SENT {
        return None;
    }
    let address = bytes.as_ptr().addr();
    let parts = PARTS.read().unwrap_or_else(PoisonError::into_inner);
    let (first, (length, offset)) = parts.range(..=address).next_back()?;
    let before = address - first;
    (before + bytes.len() <= *length).then_some(offset + before as u64)
}

/// The first of these buffers that [`send`] sends without copying.
#[must_use]
pub(crate) fn first_sendable(buffers: &[IoSlice<'_>]) -> Option<usize> {
    buffers.iter().position(|buffer| offset_of(buffer).is_some())
}

/// Sends, without waiting, the buffers before the first sendable one ([`first_sendable`]), or that one if they are empty. Returns how
/// many bytes were sent.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`], and the other errors of `sendmsg`.
pub(crate) fn send(buffers: &[IoSlice<'_>], first: usize, socket: impl AsFd) -> io::Result<usize> {
    let (before, rest) = buffers.split_at_checked(first).unwrap_or((buffers, &[]));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let copy = |buffers, flags| sendmsg(&socket, buffers, &mut SendAncillaryBuffer::default(), flags);
    if before.iter().any(|buffer| !buffer.is_empty()) {
        // The kernel waits for what follows, and sends both in one segment.
        return Ok(copy(before, flags | SendFlags::MORE)?);
    }
    let bytes: &[u8] = rest.first().map_or(&[], |buffer| buffer);
    if let (Some(mut offset), Some(file)) = (offset_of(bytes), FILE.as_ref()) {
        match sendfile(&socket, file, Some(&mut offset), bytes.len()) {
            Ok(sent) if sent > 0 => return Ok(sent),
            Err(Errno::AGAIN) => return Err(Errno::AGAIN.into()),
            // A system that has no `sendfile` from such files. If it is the socket that fails, `sendmsg` fails as well.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(copy(rest, flags)?)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use super::*;

    fn pattern(seed: usize, length: usize) -> Vec<u8> {
        (0..length).map(|at| ((at + seed) % 251 + 1) as u8).collect()
    }

    async fn part(bytes: &[u8]) -> Bytes {
        let mut writer = FilePartWriter::new(bytes.len() as u64).unwrap();
        for piece in bytes.chunks(300_000) {
            writer.write(piece).await.unwrap();
        }
        writer.finish().unwrap().into_bytes(())
    }

    /// Bytes of memory of the span that begins at an offset.
    fn bytes_in_memory(offset: u64) -> usize {
        let mut found = vec![1; 4 << 20];
        let read = rustix::io::pread(FILE.as_ref().unwrap(), &mut found, offset).unwrap();
        found.truncate(read);
        // No byte of a pattern is zero, and holes are.
        found.iter().filter(|&&byte| byte != 0).count()
    }

    #[tokio::test]
    async fn a_part_has_the_bytes_that_were_written_and_parts_of_it_are_found() {
        let (one, two) = (pattern(1, 1_000_001), pattern(2, 200_000));
        let (first, second) = (part(&one).await, part(&two).await);
        assert_eq!((&first[..], &second[..]), (&one[..], &two[..]));
        let sendable = |buffers: &[&[u8]]| {
            first_sendable(&buffers.iter().map(|bytes| IoSlice::new(bytes)).collect::<Vec<_>>())
        };
        assert_eq!(sendable(&[&first]), Some(0));
        assert_eq!(sendable(&[&one, b"", &second[1000..100_000], &first]), Some(2));
        assert_eq!(sendable(&[&one, &first[..LEAST_SENT - 1]]), None);
        let offset = offset_of(&first).unwrap();
        assert_eq!(offset_of(&first[4321..]), Some(offset + 4321));
    }

    #[tokio::test]
    async fn a_part_is_complete_or_an_error() {
        let mut short = FilePartWriter::new(10).unwrap();
        short.write(&[1; 9]).await.unwrap();
        assert!(short.finish().is_err());
        let mut long = FilePartWriter::new(10).unwrap();
        assert!(long.write(&[1; 11]).await.is_err());
        assert!(FilePartWriter::new(SPAN_BYTES + 1).is_none());
    }

    /// Sends the end of a part, as much as the socket takes, and drops the part before the client reads.
    async fn check_sent_before_dropped(length: usize) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        let expected = pattern(7, length);
        let owner = Arc::new(());
        let mut writer = FilePartWriter::new(length as u64).unwrap();
        writer.write(&expected).await.unwrap();
        let bytes = writer.finish().unwrap().into_bytes(Arc::clone(&owner));
        let start = length - 150_000;
        let sent = send(&[IoSlice::new(&bytes[start..])], 0, &server).unwrap();
        assert_eq!(sent, 150_000, "the socket takes all of it");
        let offset = offset_of(&bytes).unwrap();
        assert_eq!(bytes_in_memory(offset), length);
        drop(bytes);
        assert_eq!(Arc::strong_count(&owner), 1, "the owner is dropped with the bytes");
        assert_eq!(bytes_in_memory(offset), 0, "the memory is freed");
        // Others are written now, to what would be the same memory.
        let others = [part(&pattern(9, length)).await, part(&pattern(11, length)).await];
        drop(server);
        let mut received = Vec::new();
        (&client).read_to_end(&mut received).unwrap();
        assert!(received == expected[start..], "the bytes are those of the part that was dropped");
        drop(others);
    }

    #[tokio::test]
    async fn what_was_sent_stays_the_same_after_the_part_was_dropped_and_its_memory_is_freed() {
        for length in [1 << 20, (1 << 20) + 100, 1_500_001, (2 << 20) - 1, 3_000_000] {
            check_sent_before_dropped(length).await;
        }
    }

    /// Sends buffers in as many calls as it takes, and returns what arrives.
    fn sent(buffers: &[&[u8]]) -> Vec<u8> {
        let (mut here, there) = UnixStream::pair().unwrap();
        let all: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let reader = std::thread::spawn(move || {
            let mut received = Vec::new();
            here.read_to_end(&mut received).unwrap();
            received
        });
        let mut done = 0;
        while done < all {
            let mut skipped = done;
            let mut left = Vec::new();
            for buffer in buffers {
                let skip = skipped.min(buffer.len());
                skipped -= skip;
                left.push(IoSlice::new(&buffer[skip..]));
            }
            let Some(first) = first_sendable(&left) else {
                done += (&there).write_vectored(&left).unwrap();
                continue;
            };
            match send(&left, first, &there) {
                Ok(sent) => done += sent,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        drop(there);
        reader.join().unwrap()
    }

    #[tokio::test]
    async fn buffers_are_sent_in_their_order_whether_they_are_in_the_file_or_not() {
        let (one, two, other) =
            (part(&pattern(3, 300_001)).await, part(&pattern(4, 100_000)).await, pattern(5, 90_000));
        for buffers in [
            vec![&one[..]],
            vec![b"head", &one[..], &two[..]],
            vec![b"", &one[7..200_000], &other, &two[..], b"tail"],
            vec![&other, b"", &one[..100], &two[..]],
        ] {
            assert!(sent(&buffers) == buffers.concat());
        }
    }

    #[tokio::test]
    async fn what_the_kernel_does_not_send_from_the_file_is_copied() {
        let part = part(&pattern(3, 100_000)).await;
        // The kernel sends nothing to files that are appended to, and only sockets can be written to otherwise.
        let directory = tempfile::tempdir().unwrap();
        let appended =
            std::fs::File::options().append(true).create(true).open(directory.path().join("a")).unwrap();
        let failed = send(&[IoSlice::new(&part)], 0, appended).unwrap_err();
        assert_eq!(failed.raw_os_error(), Some(Errno::NOTSOCK.raw_os_error()));
    }
}

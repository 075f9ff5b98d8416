//! [`FilePart`]: bytes in a file in memory (`memfd_create`), which the kernel sends to a socket without copying them.
//!
//! Files on a disk are not sent so, because other programs may write to them meanwhile. Nothing but this module can write to the file
//! in memory, and it writes each part once, before anything else gets it. The pages of a dropped part are freed, and its offsets are
//! not used again: what the kernel has not sent yet of it keeps its pages.

mod mapped_range;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock};

use bytes::Bytes;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create, sendfile};
use rustix::io::{Errno, pwrite};
use rustix::net::SendFlags;

use self::mapped_range::{HUGE_PAGE_BYTES, MappedRange};

/// Offsets of parts are multiples of this, so that no page belongs to two parts.
const ALIGNMENT: u64 = HUGE_PAGE_BYTES as u64;
/// Bytes that are copied to the file at a time, between which other tasks run.
const COPY_BYTES: usize = 512 << 10;
/// Shorter bytes are copied, which takes less time than to find them and to call `sendfile`.
const LEAST_SENT: usize = 64 << 10;

/// The file, if the system has such files.
static FILE: LazyLock<Option<OwnedFd>> = LazyLock::new(|| create().ok());
/// The first offset after all parts.
static END: AtomicU64 = AtomicU64::new(0);
/// The parts, by the address of their first byte: the length of each and its offset. No code panics while it holds the lock.
static PARTS: RwLock<BTreeMap<usize, (usize, u64)>> = RwLock::new(BTreeMap::new());

fn create() -> Result<OwnedFd, Errno> {
    let create = |flags| memfd_create("zarrd values", MemfdFlags::CLOEXEC | flags);
    // Systems may require the flag, and older ones do not know it.
    create(MemfdFlags::NOEXEC_SEAL).or_else(|_unknown| create(MemfdFlags::empty()))
}

/// A range of the file. Its pages are freed when it is dropped.
#[derive(Debug)]
struct FileRange {
    file: &'static OwnedFd,
    range: Range<u64>,
}

impl Drop for FileRange {
    fn drop(&mut self) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // It fails only where a file system cannot do it, and this one can.
        let _ = fallocate(self.file, flags, self.range.start, self.range.end - self.range.start);
    }
}

/// A part of the file that is being written.
#[derive(Debug)]
pub(super) struct FilePartWriter {
    place: FileRange,
    written: u64,
}

impl FilePartWriter {
    /// A writer of a part of this length; `None` where there are no files in memory.
    pub(super) fn new(length: u64) -> Option<Self> {
        let file = FILE.as_ref()?;
        let start = END.fetch_add(length.next_multiple_of(ALIGNMENT), Ordering::Relaxed);
        Some(Self { place: FileRange { file, range: start..start + length }, written: 0 })
    }

    /// Writes the next bytes, while other tasks go on.
    ///
    /// # Errors
    /// The bytes do not fit in the part, or the system refuses the memory.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Range { start, end } = self.place.range;
        if bytes.len() as u64 > end - start - self.written {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let next = rest.get(..COPY_BYTES).unwrap_or(rest);
            let written = pwrite(self.place.file, next, start + self.written)?;
            self.written += written as u64;
            rest = rest.get(written..).unwrap_or_default();
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// The part, once all of it was written. This copies it once more where that gives huge pages.
    ///
    /// # Errors
    /// It is not yet all written, or cannot be mapped.
    #[expect(unsafe_code, reason = "a mapped file could change; this one cannot")]
    pub(super) fn finish(self) -> io::Result<FilePart> {
        let Range { start, end } = self.place.range;
        if start + self.written != end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let length = usize::try_from(end - start).map_err(|_too_long| io::ErrorKind::FileTooLarge)?;
        // SAFETY: nothing writes to these bytes any more: only a `FilePartWriter` writes, each to offsets of its own, and this one
        // ends here. The file is never truncated, and the pages are freed only after the map is dropped.
        let map = unsafe { MappedRange::new(self.place.file, start, length)? };
        let mut parts = PARTS.write().unwrap_or_else(PoisonError::into_inner);
        parts.insert(map.as_bytes().as_ptr().addr(), (length, start));
        Ok(FilePart { map, _place: self.place })
    }
}

/// A part of the file.
#[derive(Debug)]
pub(super) struct FilePart {
    // Dropped before the pages are freed.
    map: MappedRange,
    _place: FileRange,
}

impl FilePart {
    /// The bytes. `owner` is dropped with them.
    pub(super) fn into_bytes(self, owner: impl Send + 'static) -> Bytes {
        struct Owned<O>(FilePart, O);
        impl<O> AsRef<[u8]> for Owned<O> {
            fn as_ref(&self) -> &[u8] {
                self.0.map.as_bytes()
            }
        }
        Bytes::from_owner(Owned(self, owner))
    }
}

impl Drop for FilePart {
    fn drop(&mut self) {
        PARTS.write().unwrap_or_else(PoisonError::into_inner).remove(&self.map.as_bytes().as_ptr().addr());
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

/// Whether [`send`] sends these bytes.
#[must_use]
pub fn is_sendable(bytes: &[u8]) -> bool {
    offset_of(bytes).is_some()
}

/// Sends bytes to a socket without waiting, and returns how many were sent. The kernel copies those that are not in the file, or where it
/// has no `sendfile`.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`], and what else `send` returns.
pub fn send(bytes: &[u8], socket: impl AsFd) -> io::Result<usize> {
    if let (Some(mut offset), Some(file)) = (offset_of(bytes), FILE.as_ref()) {
        match sendfile(&socket, file, Some(&mut offset), bytes.len()) {
            Ok(sent) if sent > 0 => return Ok(sent),
            Err(Errno::AGAIN) => return Err(Errno::AGAIN.into()),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(rustix::net::send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;

    use super::*;

    async fn part(bytes: &[u8]) -> Bytes {
        let mut writer = FilePartWriter::new(bytes.len() as u64).unwrap();
        for piece in bytes.chunks(300_000) {
            writer.write(piece).await.unwrap();
        }
        writer.finish().unwrap().into_bytes(())
    }

    fn pattern(seed: usize, length: usize) -> Vec<u8> {
        (0..length).map(|at| ((at + seed) % 251) as u8).collect()
    }

    #[tokio::test]
    async fn a_part_has_the_bytes_that_were_written_and_parts_of_it_are_found() {
        let (one, two) = (pattern(1, 1_000_001), pattern(2, 200_000));
        let (first, second) = (part(&one).await, part(&two).await);
        assert_eq!((&first[..], &second[..]), (&one[..], &two[..]));
        assert!(is_sendable(&first) && is_sendable(&second[1000..100_000]));
        assert!(!is_sendable(&one) && !is_sendable(&first[..LEAST_SENT - 1]));
        let offset = offset_of(&first).unwrap();
        assert_eq!(offset_of(&first[4321..]), Some(offset + 4321));
    }

    #[tokio::test]
    async fn what_the_kernel_does_not_send_from_the_file_is_copied() {
        let (part, other) = (part(&pattern(3, 100_000)).await, pattern(5, 100_000));
        let (mut here, there) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut received = vec![0; LEAST_SENT];
        for bytes in [&part[..], &other] {
            assert!(send(bytes, &there).unwrap() >= LEAST_SENT);
            here.read_exact(&mut received).unwrap();
            assert!(received == bytes[..LEAST_SENT]);
            here.set_nonblocking(true).unwrap();
            while here.read(&mut [0; 4096]).is_ok_and(|more| more > 0) {}
            here.set_nonblocking(false).unwrap();
        }
        // The kernel sends nothing to files that are appended to, and `send` is for sockets.
        let directory = tempfile::tempdir().unwrap();
        let appended =
            std::fs::File::options().append(true).create(true).open(directory.path().join("a")).unwrap();
        assert_eq!(send(&part, appended).unwrap_err().raw_os_error(), Some(Errno::NOTSOCK.raw_os_error()));
    }

    #[tokio::test]
    async fn a_part_is_complete_or_an_error() {
        let mut short = FilePartWriter::new(10).unwrap();
        short.write(&[1; 9]).await.unwrap();
        assert!(short.finish().is_err());
        let mut long = FilePartWriter::new(10).unwrap();
        assert!(long.write(&[1; 11]).await.is_err());
    }

    #[tokio::test]
    async fn what_was_sent_stays_the_same_after_the_part_was_dropped_and_its_memory_is_freed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        let expected = pattern(7, 4 << 20);
        let owner = Arc::new(());
        let mut writer = FilePartWriter::new(expected.len() as u64).unwrap();
        writer.write(&expected).await.unwrap();
        let bytes = writer.finish().unwrap().into_bytes(Arc::clone(&owner));
        let mut sent = 0;
        while sent < bytes.len() {
            match send(&bytes[sent..], &server) {
                Ok(more) => sent += more,
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        assert!(sent > LEAST_SENT, "the socket takes some of it");
        let (address, offset) = (bytes.as_ptr().addr(), offset_of(&bytes).unwrap());
        drop(bytes);
        assert_eq!(Arc::strong_count(&owner), 1, "the owner is dropped with the bytes");
        assert!(PARTS.read().unwrap().get(&address).is_none_or(|(_, at)| *at != offset));
        let mut freed = vec![1; 1 << 20];
        assert_eq!(rustix::io::pread(FILE.as_ref().unwrap(), &mut freed, offset), Ok(1 << 20));
        assert!(freed.iter().all(|&byte| byte == 0), "a hole reads as zeros");
        // Others are written now, to what would be the same memory.
        let others = [part(&pattern(9, 4 << 20)).await, part(&pattern(11, 4 << 20)).await];
        drop(server);
        let mut received = Vec::new();
        (&client).read_to_end(&mut received).unwrap();
        assert_eq!(received.len(), sent);
        assert!(received == expected[..sent], "the bytes are those of the part that was dropped");
        drop(others);
    }
}

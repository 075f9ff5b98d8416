//! [`Segment`]: one file of the disk cache: records one after the other, and a table of them once it is complete.
//!
//! A segment is written from its beginning to its end, and then only read until it is removed. Nothing is ever overwritten, so a
//! server that is killed leaves whole records and at most a torn one at the end. A segment without a valid table, such as the one
//! that was written last, is searched for records.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, BufMut};
use twox_hash::XxHash3_128;

use super::record::{ALIGNMENT, MAX_DATA, MAX_HEAD, Record, RecordKind};
use crate::store::nonblocking;

/// Length of the head of a segment.
pub(super) const HEAD: u64 = ALIGNMENT as u64;
/// Length of the end of a segment that is complete: it says where the table is.
pub(super) const TRAILER: usize = 32;
/// Bytes that a record takes in the table beside its head.
const TABLE_ENTRY: usize = 8;
/// Permissions of files: what is cached may be readable by this server's credentials alone.
pub(super) const OWNER_ONLY: u32 = 0o600;
const MAGIC: &[u8; 8] = b"zarrdsg1";
/// The largest number of a segment of an earlier run. Files with larger ones are from another program.
const MAX_NUMBER: u64 = u64::MAX >> 1;
const END: &[u8; 8] = b"zarrdend";
/// How much is read at a time to search for records.
const WINDOW: usize = 1 << 20;

/// Whether a read may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// It blocks.
    ForDisk,
    /// It fails with [`io::ErrorKind::WouldBlock`] unless the system has the bytes in memory.
    Never,
}

/// A file with records.
#[derive(Debug)]
pub(super) struct Segment {
    /// The files are in the order of these numbers.
    pub(super) number: u64,
    /// Drawn for each segment; seeds its checksums.
    nonce: u64,
    path: PathBuf,
    file: File,
    is_nonblocking: bool,
    /// Bytes that are written.
    length: AtomicU64,
}

/// A record, and where it begins.
pub(super) type Placed = (u32, Record);

impl Segment {
    /// The name of the file with a number.
    pub(super) fn file_name(number: u64) -> String {
        format!("segment-{number:016x}")
    }

    /// The number of the file with a name; `None` if no segment has such a name.
    pub(super) fn number_of(name: &str) -> Option<u64> {
        let number = u64::from_str_radix(name.strip_prefix("segment-")?, 16).ok()?;
        // The next one must have a number too.
        (Self::file_name(number) == name && number <= MAX_NUMBER).then_some(number)
    }

    /// A new segment.
    pub(super) fn create(directory: &Path, number: u64, nonce: u64) -> io::Result<Self> {
        let path = directory.join(Self::file_name(number));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(OWNER_ONLY).open(&path)?;
        let mut head = Vec::with_capacity(ALIGNMENT);
        head.put_slice(MAGIC);
        head.put_u64_le(number);
        head.put_u64_le(nonce);
        head.put_u128_le(XxHash3_128::oneshot(&head));
        head.resize(ALIGNMENT, 0);
        let segment = Self::new(number, nonce, (path, file), HEAD);
        if let Err(error) = segment.file.write_all_at(&head, 0) {
            segment.remove();
            return Err(error);
        }
        Ok(segment)
    }

    /// Opens a segment; `None` if the file is none, as after a crash at its creation.
    pub(super) fn open(directory: &Path, number: u64) -> io::Result<Option<Self>> {
        let path = directory.join(Self::file_name(number));
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let length = file.metadata()?.len();
        let mut head = [0; ALIGNMENT];
        if length < HEAD {
            return Ok(None);
        }
        file.read_exact_at(&mut head, 0)?;
        let (covered, rest) = head.split_at(24);
        let mut fields = covered;
        let is_valid = fields.copy_to_bytes(8).as_ref() == MAGIC
            && fields.get_u64_le() == number
            && rest.get(..16) == Some(&XxHash3_128::oneshot(covered).to_le_bytes());
        let nonce = fields.get_u64_le();
        Ok(is_valid.then(|| Self::new(number, nonce, (path, file), length)))
    }

    fn new(number: u64, nonce: u64, (path, file): (PathBuf, File), length: u64) -> Self {
        let is_nonblocking = nonblocking::is_supported(&file);
        Self { number, nonce, path, file, is_nonblocking, length: AtomicU64::new(length) }
    }

    /// Bytes of the file.
    pub(super) fn length(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    pub(super) fn nonce(&self) -> u64 {
        self.nonce
    }

    /// Whether the file can be read without waiting.
    pub(super) fn is_nonblocking(&self) -> bool {
        self.is_nonblocking
    }

    /// Reads bytes. Blocks.
    pub(super) fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.read_into(offset, &mut bytes, Wait::ForDisk)?;
        Ok(bytes)
    }

    /// Reads as many bytes as a buffer has.
    pub(super) fn read_into(&self, offset: u64, buffer: &mut [u8], wait: Wait) -> io::Result<()> {
        match wait {
            Wait::ForDisk => self.file.read_exact_at(buffer, offset),
            Wait::Never if self.is_nonblocking && nonblocking::read(&self.file, buffer, offset) => Ok(()),
            Wait::Never => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Writes bytes after the last ones. If that fails, nothing more may be written.
    pub(super) fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let at = self.length();
        self.file.write_all_at(bytes, at)?;
        self.length.store(at + bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Makes what was written durable, and its name too.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        match self.path.parent() {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }

    /// Removes what a failed write left at the end, as far as that is possible.
    pub(super) fn trim(&self) {
        // Without it, the rest is found to be no record.
        let _ = self.file.set_len(self.length());
    }

    /// Removes the file. Who reads from it reads on. Returns whether it is gone, as it is with a directory that vanished. A
    /// file that cannot be removed is emptied: the next start must not find in it what was purged. Another file of its name, as in a
    /// directory that came in place of this one, stays.
    pub(super) fn remove(&self) -> bool {
        let identity = |about: std::fs::Metadata| (about.dev(), about.ino());
        let named = match std::fs::symlink_metadata(&self.path) {
            Ok(about) => identity(about),
            Err(error) => return error.kind() == io::ErrorKind::NotFound || self.file.set_len(0).is_ok(),
        };
        if self.file.metadata().is_ok_and(|about| identity(about) != named) {
            return false;
        }
        match std::fs::remove_file(&self.path) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound || self.file.set_len(0).is_ok(),
        }
    }

    /// The records of the segment, by its table or, if there is none, by a search. Their data is not verified.
    pub(super) fn records(&self) -> io::Result<Vec<Placed>> {
        match self.table()? {
            Some(records) => Ok(records),
            None => self.search(),
        }
    }

    fn table(&self) -> io::Result<Option<Vec<Placed>>> {
        let Some(end) = self.length().checked_sub(TRAILER as u64) else { return Ok(None) };
        let trailer = self.read(end, TRAILER)?;
        let Some(offset) = parse_trailer(&trailer, self.nonce) else { return Ok(None) };
        let Some(length) = end.checked_sub(offset).and_then(|length| usize::try_from(length).ok()) else {
            return Ok(None);
        };
        let bytes = self.read(offset, length)?;
        let table =
            Record::decode(&bytes, self.nonce, offset).filter(|record| record.kind == RecordKind::Table);
        let Some(mut entries) = table.as_ref().and_then(|table| table.verified(&bytes, self.nonce)) else {
            return Ok(None);
        };
        let mut records = Vec::new();
        while entries.len() >= TABLE_ENTRY {
            let (at, length) = (entries.get_u32_le(), entries.get_u32_le() as usize);
            let Some(head) = entries.get(..length) else { return Ok(None) };
            let Some(record) = Record::decode(head, self.nonce, at.into()) else { return Ok(None) };
            records.push((at, record));
            entries.advance(length);
        }
        Ok(Some(records))
    }

    /// Every record that begins at a multiple of [`ALIGNMENT`]. Where there is none, the search goes on behind.
    fn search(&self) -> io::Result<Vec<Placed>> {
        let (mut records, mut at, end) = (Vec::new(), HEAD, self.length());
        let (mut window, mut window_at) = (Vec::new(), 0);
        while at < end {
            let ahead = usize::try_from(at - window_at).unwrap_or(usize::MAX);
            let left = end - at;
            if window.len().saturating_sub(ahead) < MAX_HEAD.min(usize::try_from(left).unwrap_or(usize::MAX))
            {
                let length = usize::try_from(left).unwrap_or(usize::MAX).min(WINDOW);
                (window, window_at) = (self.read(at, length)?, at);
            }
            let from = usize::try_from(at - window_at).unwrap_or(usize::MAX);
            let found = Record::decode(window.get(from..).unwrap_or_default(), self.nonce, at);
            let is_value = found.as_ref().is_some_and(|record| record.kind != RecordKind::Table);
            at += found.as_ref().map_or(ALIGNMENT as u64, |record| record.length() as u64);
            if let (Some(record), Ok(place), true) = (found, u32::try_from(at), is_value)
                && at <= end
                && record.data_length <= MAX_DATA
            {
                let length = u32::try_from(record.length()).unwrap_or(u32::MAX);
                records.push((place.saturating_sub(length), record));
            }
        }
        Ok(records)
    }
}

/// Where the table of a complete segment begins.
fn parse_trailer(mut trailer: &[u8], nonce: u64) -> Option<u64> {
    let covered = trailer.get(..16)?;
    let sum = trailer.get(16..TRAILER)?;
    let is_valid = sum == XxHash3_128::oneshot_with_seed(nonce, covered).to_le_bytes();
    let magic = trailer.copy_to_bytes(8);
    (is_valid && magic.as_ref() == END).then(|| trailer.get_u64_le())
}

/// The table of a segment while it is written.
#[derive(Debug, Default)]
pub(super) struct Table(Vec<u8>);

impl Table {
    /// Adds a record, from its encoded bytes.
    pub(super) fn add(&mut self, at: u32, record: &Record, encoded: &[u8]) {
        let head = encoded.get(..record.head_length()).unwrap_or_default();
        self.0.put_u32_le(at);
        self.0.put_u32_le(u32::try_from(head.len()).unwrap_or_default());
        self.0.put_slice(head);
    }

    /// Bytes that a segment takes at its end if this record is added.
    pub(super) fn bytes_with(&self, record: &Record) -> u64 {
        let entry = TABLE_ENTRY + record.head_length();
        (2 * ALIGNMENT + self.0.len() + entry + ALIGNMENT + TRAILER) as u64
    }

    /// The end of a segment of this length: its table, and where that is.
    pub(super) fn encode(&self, nonce: u64, at: u64) -> Vec<u8> {
        let empty = || Box::<str>::from("");
        let record = Record {
            kind: RecordKind::Table,
            scope: empty(),
            key: empty(),
            tag: empty(),
            start: 0,
            size: self.0.len() as u64,
            modified: None,
            data_length: self.0.len(),
        };
        let mut bytes = record.encode(&self.0, nonce, at);
        let mut trailer = Vec::with_capacity(TRAILER);
        trailer.put_slice(END);
        trailer.put_u64_le(at);
        trailer.put_u128_le(XxHash3_128::oneshot_with_seed(nonce, &trailer));
        bytes.extend_from_slice(&trailer);
        bytes
    }
}

//! Zip files of other programs, and generated ones that are valid, broken or hostile.

mod budgets;
mod changes;
mod fixtures;
mod hostile;
mod structure;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use super::{ZipError, ZipStore};
use crate::codec::ContentCoding;
use crate::key::{StoreKey, StorePrefix};
use crate::store::ContainerBudget;
use crate::store::tests::{cpu, key, put};
use crate::store::{
    ByteRange, Capabilities, DirEntries, ListEntry, ObjectBackend, SetResult, SharedStore, Shortcuts, Store,
    StoreError, StoreKind, Value, ValueInfo, ValueStream, Version, WriteCondition,
};

/// Where the zip file lies in the store below.
const FILE: &str = "some/file.zip";
/// The flag of an encrypted entry.
const ENCRYPTED: u16 = 1;

/// An entry as it is written. What its local header says is the same if nothing else is set.
#[derive(Clone, Debug)]
struct Entry {
    name: Vec<u8>,
    local_name: Vec<u8>,
    data: Vec<u8>,
    compressed: u64,
    size: u64,
    crc: u32,
    method: u16,
    local_method: u16,
    flags: u16,
    /// Length of the local header's extra field.
    local_extra: u16,
    /// Where the directory says the entry is, if not where it is.
    offset: Option<u64>,
    /// Whether sizes and offset are in a zip64 field.
    zip64: bool,
    /// Empty extra fields of others that the directory has before that one.
    extra_fields: usize,
}

fn stored(name: impl AsRef<[u8]>, data: impl AsRef<[u8]>) -> Entry {
    let (name, data) = (name.as_ref().to_vec(), data.as_ref().to_vec());
    let size = data.len() as u64;
    Entry {
        local_name: name.clone(),
        name,
        compressed: size,
        size,
        crc: crc32(&data),
        data,
        method: 0,
        local_method: 0,
        flags: 0,
        local_extra: 0,
        offset: None,
        zip64: false,
        extra_fields: 0,
    }
}

/// An entry in one deflate block that holds its bytes as they are.
fn deflated(name: &str, data: &[u8]) -> Entry {
    let length = u16::try_from(data.len()).unwrap();
    let mut encoded = vec![1];
    encoded.extend(length.to_le_bytes());
    encoded.extend((!length).to_le_bytes());
    encoded.extend(data);
    let entry = stored(name, &encoded);
    Entry { size: length.into(), crc: crc32(data), method: 8, local_method: 8, ..entry }
}

/// An entry that is compressed.
fn compressed(name: &str, data: &[u8]) -> Entry {
    // A gzip stream is a header of ten bytes, what is wanted here, and a trailer of eight.
    let gzip = ContentCoding::Gzip.encode(data).unwrap();
    let entry = stored(name, &gzip[10..gzip.len() - 8]);
    Entry { size: data.len() as u64, crc: crc32(data), method: 8, local_method: 8, ..entry }
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        (0..8).fold(crc ^ u32::from(byte), step)
    })
}

/// A zip file as it is written.
#[derive(Clone, Debug, Default)]
struct Zip {
    entries: Vec<Entry>,
    before: Vec<u8>,
    comment: Vec<u8>,
    /// The number of entries it says it has, if another.
    count: Option<u64>,
    /// The length and offset of the directory that it says, if others.
    directory: Option<(u64, u64)>,
    /// Whether it has a zip64 end record.
    zip64: bool,
    disk: u16,
}

impl Zip {
    fn of(entries: impl IntoIterator<Item = Entry>) -> Self {
        Self { entries: entries.into_iter().collect(), ..Self::default() }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let mut directory = Vec::new();
        for entry in &self.entries {
            let offset = entry.offset.unwrap_or(file.len() as u64);
            entry.local(&mut file);
            entry.central(offset, &mut directory);
        }
        let (length, offset) = self.directory.unwrap_or((directory.len() as u64, file.len() as u64));
        file.extend(&directory);
        let count = self.count.unwrap_or(self.entries.len() as u64);
        if self.zip64 {
            let end = file.len() as u64;
            file.extend(b"PK\x06\x06");
            file.extend(44_u64.to_le_bytes());
            file.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            for number in [count, count, length, offset, u64::from_le_bytes(*b"PK\x06\x07\0\0\0\0"), end] {
                file.extend(number.to_le_bytes());
            }
            file.extend(1_u32.to_le_bytes());
        }
        file.extend(b"PK\x05\x06");
        for number in [self.disk, self.disk] {
            file.extend(number.to_le_bytes());
        }
        let (count, length, offset) = if self.zip64 {
            (0xffff, u32::MAX, u32::MAX)
        } else {
            (count as u16, length as u32, offset as u32)
        };
        file.extend(count.to_le_bytes());
        file.extend(count.to_le_bytes());
        file.extend(length.to_le_bytes());
        file.extend(offset.to_le_bytes());
        file.extend(u16::try_from(self.comment.len()).unwrap().to_le_bytes());
        file.extend(&self.comment);
        [self.before.clone(), file].concat()
    }
}

impl Entry {
    fn local(&self, file: &mut Vec<u8>) {
        file.extend(b"PK\x03\x04\x14\0");
        file.extend(self.flags.to_le_bytes());
        file.extend(self.local_method.to_le_bytes());
        // No time, and the CRC-32 and sizes left to the directory.
        file.extend([0; 16]);
        file.extend(u16::try_from(self.local_name.len()).unwrap().to_le_bytes());
        file.extend(self.local_extra.to_le_bytes());
        file.extend(&self.local_name);
        file.extend(vec![0; self.local_extra.into()]);
        file.extend(&self.data);
    }

    fn central(&self, offset: u64, directory: &mut Vec<u8>) {
        let numbers = [self.size, self.compressed, offset];
        let mut extra = [0x99, 0x99, 0, 0].repeat(self.extra_fields);
        let [size, compressed, offset] = if self.zip64 {
            // A field of another program precedes it.
            extra.extend([0x55, 0x54, 1, 0, 9, 1, 0, 24, 0]);
            extra.extend(numbers.map(u64::to_le_bytes).concat());
            [u32::MAX; 3]
        } else {
            numbers.map(|number| u32::try_from(number).unwrap())
        };
        directory.extend(b"PK\x01\x02\x14\0\x14\0");
        directory.extend(self.flags.to_le_bytes());
        directory.extend(self.method.to_le_bytes());
        directory.extend([0; 4]);
        for number in [self.crc, compressed, size] {
            directory.extend(number.to_le_bytes());
        }
        for length in [self.name.len(), extra.len(), 0] {
            directory.extend(u16::try_from(length).unwrap().to_le_bytes());
        }
        directory.extend([0; 8]);
        directory.extend(offset.to_le_bytes());
        directory.extend(&self.name);
        directory.extend(extra);
    }
}

/// What a test does to the store below, and sees of it.
#[derive(Debug)]
struct Below {
    inner: ObjectBackend,
    heads: Mutex<usize>,
    gets: Mutex<Vec<ByteRange>>,
    /// Whether reads fail.
    fails: AtomicBool,
    /// The next content of the file, and the number of reads before it.
    next: Mutex<Option<(usize, Bytes)>>,
    /// Whether its versions are weak.
    weak: bool,
}

impl Below {
    fn new(weak: bool) -> Arc<Self> {
        let inner = ObjectBackend::memory(true);
        Arc::new(Self {
            inner,
            heads: Mutex::default(),
            gets: Mutex::default(),
            fails: AtomicBool::new(false),
            next: Mutex::default(),
            weak,
        })
    }

    async fn holds(&self, bytes: impl Into<Bytes>) {
        put(&self.inner, FILE, bytes).await;
    }

    /// Lets the file become another after `reads` reads.
    fn becomes(&self, reads: usize, bytes: impl Into<Bytes>) {
        *self.next.lock().unwrap() = Some((reads, bytes.into()));
    }

    fn gets(&self) -> Vec<ByteRange> {
        std::mem::take(&mut self.gets.lock().unwrap())
    }

    fn said(&self, info: ValueInfo) -> ValueInfo {
        if !self.weak {
            return info;
        }
        ValueInfo { version: Version::weak(info.version.tag()), ..info }
    }

    /// The zip store over the file.
    fn zip(self: &Arc<Self>) -> ZipStore {
        self.zip_within(&ContainerBudget::default())
    }

    /// The same, whose directory shares a budget.
    fn zip_within(self: &Arc<Self>, directories: &ContainerBudget) -> ZipStore {
        ZipStore::new(Arc::clone(self) as SharedStore, key(FILE), cpu(), directories.clone())
    }
}

#[async_trait]
impl Store for Below {
    fn kind(&self) -> StoreKind {
        self.inner.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        *self.heads.lock().unwrap() += 1;
        Ok(self.inner.head(key).await?.map(|info| self.said(info)))
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        let due = {
            let mut next = self.next.lock().unwrap();
            match &mut *next {
                Some((0, _)) => next.take(),
                Some((reads, _)) => {
                    *reads -= 1;
                    None
                }
                None => None,
            }
        };
        if let Some((_, bytes)) = due {
            self.holds(bytes).await;
        }
        self.gets.lock().unwrap().push(range);
        if self.fails.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
            return Err(StoreError::WrongLength);
        }
        let if_match = if_match.map(|version| Version::strong(version.tag()));
        let value = self.inner.get(key, range, if_match.as_ref()).await?;
        Ok(value.map(|value| Value { info: self.said(value.info.clone()), ..value }))
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        self.inner.set(key, body, condition).await
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        self.inner.erase(key, condition).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        self.inner.erase_prefix(prefix).await
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        self.inner.list_dir_after(prefix, after)
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        self.inner.list_prefix(prefix, after)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }
}

impl Shortcuts for Below {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}

/// A store over a zip file of these bytes.
async fn over(bytes: impl Into<Bytes>) -> ZipStore {
    let below = Below::new(false);
    below.holds(bytes).await;
    below.zip()
}

/// Why a value cannot be read.
async fn refusal(store: &ZipStore, text: &str) -> ZipError {
    let read = async {
        let value = store.get(&key(text), ByteRange::Whole, None).await?;
        value.expect("there is such a key").bytes(1 << 30).await
    };
    match read.await {
        Err(StoreError::Zip(error)) => error,
        other => panic!("{text}: {other:?}"),
    }
}

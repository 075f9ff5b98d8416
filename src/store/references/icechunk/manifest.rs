//! [`ChunkManifest`]: where the chunks of arrays are.
//!
//! The file is kept as it is once it is decompressed, and searched by halves. All of it is read once before: a chunk that
//! were not found in a damaged file would read as fill values.

use bytes::Bytes;

use super::file::{self, FileKind, Opened};
use super::flat::{FlatTable, Malformed, Vector};
use super::id::{ObjectId, StoredNodeId};
use super::location::reference_url;
use super::snapshot::{LEAST_TABLE_BYTES, MAX_RANK};
use crate::codec::decode_zstd_within;
use crate::store::container::ContainerBudget;
use crate::store::references::ReferenceError;
use crate::store::references::table::MAX_URL_BYTES;

/// The places of the fields of a manifest.
mod field {
    pub(super) const ID: usize = 0;
    pub(super) const ARRAYS: usize = 1;
    pub(super) const DICTIONARY: usize = 2;
    pub(super) const COMPRESSION: usize = 3;
}

/// The places of the fields of a reference.
mod chunk {
    pub(super) const INDEX: usize = 0;
    pub(super) const INLINE: usize = 1;
    pub(super) const OFFSET: usize = 2;
    pub(super) const LENGTH: usize = 3;
    pub(super) const FILE: usize = 4;
    pub(super) const LOCATION: usize = 5;
    pub(super) const ETAG: usize = 6;
    pub(super) const MODIFIED: usize = 7;
    pub(super) const COMPRESSED: usize = 8;
}

/// Bytes of a place of a chunk along one dimension.
const PLACE_BYTES: usize = 4;
/// Longest compressed location and longest entity tag of a reference, in bytes.
const MAX_COMPRESSED_BYTES: usize = 4 << 10;
const MAX_TAG_BYTES: usize = 1 << 10;
/// Longest dictionary of a manifest, in bytes: it is loaded for each location. That of zstd's own tools has 112 KiB.
const MAX_DICTIONARY_BYTES: usize = 1 << 20;
/// The value of a manifest's compression that means that there is none.
const NOT_COMPRESSED: u8 = 0;

/// Where chunks are.
#[derive(Debug)]
pub(super) struct ChunkManifest {
    opened: Opened,
    /// Sorted by node.
    arrays: Vec<ArrayEntry>,
    /// Where the dictionary of locations is; `None` if none are compressed.
    has_dictionary: bool,
}

#[derive(Clone, Copy, Debug)]
struct ArrayEntry {
    node: StoredNodeId,
    /// Where the vector of its references is.
    refs: u32,
}

/// Where a chunk is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkReference {
    /// In the manifest.
    Inline(Bytes),
    /// In a file of the repository.
    Native {
        /// The file.
        file: ObjectId,
        /// Where it begins, in bytes.
        offset: u64,
        /// Its length in bytes.
        length: u64,
    },
    /// In a file outside of the repository.
    Virtual {
        /// The URL of the file.
        url: String,
        /// Where it begins, in bytes.
        offset: u64,
        /// Its length in bytes.
        length: u64,
        /// What the file must still be.
        checksum: Option<ReferentCheck>,
    },
}

/// What a file must be, to be the one that a reference was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferentCheck {
    /// It has this entity tag.
    Tag(String),
    /// It was not modified after this time, in seconds since 1970.
    Modified(u32),
}

impl ChunkManifest {
    /// Parses the file of a manifest.
    pub(super) fn parse(
        file: &Bytes,
        id: ObjectId,
        budget: &ContainerBudget,
    ) -> Result<Self, ReferenceError> {
        let mut opened = file::open(file, FileKind::Manifest, budget)?;
        let bytes = opened.bytes.clone();
        let root = FlatTable::root(&bytes)?;
        if root.fixed(field::ID)? != Some(id.0) {
            return Err(ReferenceError::Repository("a manifest has another id than its name says"));
        }
        let arrays = root.vector_of_tables(field::ARRAYS)?.ok_or(Malformed)?;
        let index = arrays.len().saturating_mul(size_of::<ArrayEntry>());
        opened.reserved.resize(bytes.len().saturating_add(index) as u64)?;
        let mut entries = Vec::with_capacity(arrays.len());
        let mut walked = 0_usize;
        for table in arrays.tables() {
            let table = table?;
            let node = StoredNodeId(table.fixed(0)?.ok_or(Malformed)?);
            let refs = table.vector_of_tables(1)?.ok_or(Malformed)?;
            walked = walked.saturating_add(refs.len());
            if walked > bytes.len() / LEAST_TABLE_BYTES {
                return Err(ReferenceError::Repository("a manifest has one reference in many places"));
            }
            check(refs)?;
            entries
                .push(ArrayEntry { node, refs: u32::try_from(refs.place()).map_err(|_narrow| Malformed)? });
        }
        entries.sort_unstable_by_key(|entry| entry.node);
        if entries.iter().zip(entries.iter().skip(1)).any(|(one, two)| one.node == two.node) {
            return Err(ReferenceError::Repository("a manifest has an array twice"));
        }
        let dictionary = root.bytes(field::DICTIONARY)?;
        if dictionary.is_some_and(|dictionary| dictionary.len() > MAX_DICTIONARY_BYTES) {
            return Err(ReferenceError::Repository("the dictionary of a manifest is longer than 1 MiB"));
        }
        let has_dictionary =
            dictionary.is_some() && root.fixed(field::COMPRESSION)? != Some([NOT_COMPRESSED]);
        Ok(Self { opened, arrays: entries, has_dictionary })
    }

    /// The references of an array.
    fn refs(&self, node: StoredNodeId) -> Result<Option<Vector<'_>>, Malformed> {
        let Ok(at) = self.arrays.binary_search_by_key(&node, |entry| entry.node) else { return Ok(None) };
        let entry = self.arrays.get(at).ok_or(Malformed)?;
        let place = usize::try_from(entry.refs).map_err(|_narrow| Malformed)?;
        Vector::at(&self.opened.bytes, place, PLACE_BYTES).map(Some)
    }

    /// How many chunks of an array have references.
    pub(super) fn count(&self, node: StoredNodeId) -> usize {
        self.refs(node).ok().flatten().map_or(0, |refs| refs.len())
    }

    /// The places of the chunks of an array that have references, in their order.
    pub(super) fn chunks(&self, node: StoredNodeId) -> impl Iterator<Item = Vec<u32>> {
        let refs = self.refs(node).ok().flatten();
        let count = refs.map_or(0, |refs| refs.len());
        (0..count).filter_map(move |at| Some(places(&refs?.table(at).ok()?).ok()?.collect()))
    }

    /// Where a chunk of an array is; `None` if there is no such chunk.
    pub(super) fn find(
        &self,
        node: StoredNodeId,
        chunk: &[u32],
    ) -> Result<Option<ChunkReference>, ReferenceError> {
        let Some(refs) = self.refs(node)? else { return Ok(None) };
        let (mut low, mut high) = (0, refs.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let table = refs.table(middle)?;
            match places(&table)?.cmp(chunk.iter().copied()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.reference(&table).map(Some),
            }
        }
        Ok(None)
    }

    /// Finds every reference; returns how many there are.
    pub(super) fn find_all(&self) -> Result<usize, ReferenceError> {
        let mut count = 0;
        for array in &self.arrays {
            for chunk in self.chunks(array.node) {
                if self.find(array.node, &chunk)?.is_some() {
                    count += 1;
                }
            }
        }
        Ok(count)
    }

    fn reference(&self, table: &FlatTable<'_>) -> Result<ChunkReference, ReferenceError> {
        if let Some(bytes) = table.bytes(chunk::INLINE)? {
            return Ok(ChunkReference::Inline(self.opened.bytes.slice_ref(bytes)));
        }
        let (offset, length) = (table.u64(chunk::OFFSET)?, table.u64(chunk::LENGTH)?);
        if let Some(file) = table.fixed(chunk::FILE)? {
            return Ok(ChunkReference::Native { file: ObjectId(file), offset, length });
        }
        let url = match (table.text(chunk::LOCATION)?, table.bytes(chunk::COMPRESSED)?) {
            (Some(url), _) if url.len() <= MAX_URL_BYTES => url.to_owned(),
            (None, Some(compressed)) => self.location(compressed)?,
            _ => return Err(ReferenceError::Repository("a URL is longer than 4096 bytes")),
        };
        let checksum = match (table.text(chunk::ETAG)?, table.u32(chunk::MODIFIED)?) {
            (Some(tag), _) => Some(ReferentCheck::Tag(tag.to_owned())),
            (None, 0) => None,
            (None, modified) => Some(ReferentCheck::Modified(modified)),
        };
        Ok(ChunkReference::Virtual { url: reference_url(url)?, offset, length, checksum })
    }

    /// A compressed location.
    fn location(&self, compressed: &[u8]) -> Result<String, ReferenceError> {
        let refused = || ReferenceError::Repository("a location cannot be decompressed");
        let root = FlatTable::root(&self.opened.bytes)?;
        let dictionary = root.bytes(field::DICTIONARY)?.filter(|_| self.has_dictionary);
        let url = decode_zstd_within(compressed, MAX_URL_BYTES, dictionary.unwrap_or_default());
        let url = url.ok().flatten().ok_or_else(refused)?;
        String::from_utf8(url).map_err(|_invalid| refused())
    }
}

/// Checks the references of an array: each is whole, of one kind, and after the one before it.
fn check(refs: Vector<'_>) -> Result<(), ReferenceError> {
    let mut before: Option<FlatTable<'_>> = None;
    for table in refs.tables() {
        let table = table?;
        if places(&table)?.count() > MAX_RANK {
            return Err(ReferenceError::Repository("a chunk has more than 64 dimensions"));
        }
        if let Some(before) = before
            && places(&before)?.cmp(places(&table)?) != std::cmp::Ordering::Less
        {
            return Err(ReferenceError::Repository("the references of an array are not sorted"));
        }
        before = Some(table);
        // Before the texts are parsed: references may share them, so that all together are longer than the file.
        let is_within = |index: usize, most: usize| {
            Ok::<_, Malformed>(table.bytes(index)?.is_none_or(|bytes| bytes.len() <= most))
        };
        if !is_within(chunk::LOCATION, MAX_URL_BYTES)? || !is_within(chunk::COMPRESSED, MAX_COMPRESSED_BYTES)?
        {
            return Err(ReferenceError::Repository("a URL is longer than 4096 bytes"));
        }
        if !is_within(chunk::ETAG, MAX_TAG_BYTES)? {
            return Err(ReferenceError::Repository("an entity tag is longer than 1024 bytes"));
        }
        let is_inline = table.bytes(chunk::INLINE)?.is_some();
        let is_native = table.fixed::<{ ObjectId::BYTES }>(chunk::FILE)?.is_some();
        let is_virtual = table.text(chunk::LOCATION)?.is_some() || table.bytes(chunk::COMPRESSED)?.is_some();
        if [is_inline, is_native, is_virtual].iter().filter(|is_set| **is_set).count() != 1 {
            return Err(ReferenceError::Repository("a reference is not of exactly one kind"));
        }
        let end = table.u64(chunk::OFFSET)?.checked_add(table.u64(chunk::LENGTH)?);
        if end.is_none_or(|end| end > i64::MAX.unsigned_abs()) {
            return Err(ReferenceError::Repository("a range ends after the longest file"));
        }
        table.text(chunk::ETAG)?;
    }
    Ok(())
}

/// The place of a chunk.
fn places<'a>(table: &FlatTable<'a>) -> Result<impl Iterator<Item = u32> + use<'a>, Malformed> {
    let index = table.vector(chunk::INDEX, PLACE_BYTES)?.ok_or(Malformed)?;
    Ok((0..index.len()).map(move |at| index.fixed(at).map_or(0, u32::from_le_bytes)))
}

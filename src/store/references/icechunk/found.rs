//! [`Found`]: what a key of a snapshot leads to, its version, and its bytes.
//!
//! The version of what cannot change says what it is: no backend is asked for it. That of a remote file, without an
//! entity tag in its reference, is the file's.

use bytes::Bytes;

use super::id::ObjectId;
use super::manifest::{ChunkReference, ReferentCheck};
use super::snapshot::{CHUNKS, DOCUMENT, NodeOf, RepositorySnapshot};
use super::source::Source;
use crate::key::StoreKey;
use crate::store::references::allowed::AllowList;
use crate::store::references::{BrokenReference, ReferenceError, read};
use crate::store::{ByteRange, SharedStore, StoreError, Value, ValueInfo, Version};

/// What the tags of versions begin with that never stand for another content.
const FIXED: &str = "ice-";

/// What a key leads to.
#[derive(Debug)]
pub(super) enum Found {
    /// Bytes of a snapshot or a manifest.
    Bytes(Bytes),
    /// The document of one of two nodes with the same path.
    Ambiguous(Bytes),
    /// A chunk in a file.
    Chunk(ChunkReference),
}

/// Whether a version never stands for another content.
pub(super) fn is_fixed(version: &Version) -> bool {
    version.is_strong() && version.tag().starts_with(FIXED)
}

/// The array and the place of the chunk that a key names: `PATH/c/0/1`.
///
/// # Errors
/// [`ReferenceError::TwoNodes`], if there are two nodes at its path: either may be the array.
fn chunk_of<'a>(
    snapshot: &'a RepositorySnapshot,
    key: &str,
) -> Result<Option<(NodeOf<'a>, Vec<u32>)>, ReferenceError> {
    let mut rest = key;
    let mut places = Vec::new();
    loop {
        let (before, last) = rest.rsplit_once('/').unwrap_or(("", rest));
        if last == CHUNKS {
            let node = match snapshot.node(before) {
                Some(node) if node.has_twin => return Err(ReferenceError::TwoNodes),
                Some(node) if node.rank_if_array() == Some(places.len()) => node,
                Some(_) | None => return Ok(None),
            };
            places.reverse();
            return Ok(Some((node, places)));
        }
        let Ok(place) = last.parse::<u32>() else { return Ok(None) };
        // One spelling of each number.
        if before.is_empty() || place.to_string() != last {
            return Ok(None);
        }
        places.push(place);
        rest = before;
    }
}

/// What a key of a snapshot leads to; `None` if there is no such key.
pub(super) async fn find(
    source: &Source,
    snapshot: &RepositorySnapshot,
    key: &str,
) -> Result<Option<Found>, StoreError> {
    let path = key.strip_suffix(DOCUMENT).and_then(|path| match path {
        "" => Some(""),
        path => path.strip_suffix('/'),
    });
    if let Some(path) = path {
        return Ok(snapshot.node(path).map(|node| {
            // A copy: what is cached of it would keep all of the snapshot.
            let document = Bytes::copy_from_slice(&snapshot.document(&node));
            if node.has_twin { Found::Ambiguous(document) } else { Found::Bytes(document) }
        }));
    }
    let Some((node, places)) = chunk_of(snapshot, key)? else { return Ok(None) };
    let id = node.id().map_err(ReferenceError::from)?;
    let mut manifest = None;
    for known in node.all_manifests() {
        let known = known.map_err(ReferenceError::from)?;
        if known.has(&places).map_err(ReferenceError::from)? {
            manifest = Some(known.id);
            break;
        }
    }
    let Some(manifest) = manifest else { return Ok(None) };
    let found = source.held.manifest(manifest).await?;
    let found = found.ok_or_else(|| BrokenReference::Missing.of(&format!("manifests/{manifest}")))?;
    Ok(found.find(id, &places)?.map(|reference| match reference {
        ChunkReference::Inline(bytes) => Found::Bytes(Bytes::copy_from_slice(&bytes)),
        reference => Found::Chunk(reference),
    }))
}

/// Where chunks are read.
#[derive(Debug)]
pub(super) struct Places {
    /// The repository.
    pub(super) inner: SharedStore,
    pub(super) allowed: AllowList,
}

impl Places {
    /// Size and version of what was found.
    pub(super) async fn info(&self, found: &Found) -> Result<ValueInfo, StoreError> {
        if let Found::Ambiguous(_) = found {
            return Err(ReferenceError::TwoNodes.into());
        }
        let known = known_info(found);
        let Found::Chunk(ChunkReference::Virtual { url, offset, length, checksum }) = found else {
            return known.ok_or(StoreError::WrongLength);
        };
        // What is refused to reads is refused to lookups, though it is known what it is.
        let (store, key) = self.allowed.resolve(url)?;
        if let Some(info) = known {
            return Ok(info);
        }
        let referent = read::head(store, &key, url).await?;
        if offset.checked_add(*length).is_none_or(|end| end > referent.size) {
            return Err(BrokenReference::Short.of(url).into());
        }
        virtual_info((url, *offset, *length), checksum.as_ref(), &referent)
    }

    /// Size and version of what was found, as listings have it: also of what is refused to reads, a chunk whose reference has its
    /// length or the document of one of two nodes.
    pub(super) async fn listed_info(&self, found: &Found) -> Result<ValueInfo, StoreError> {
        if let Found::Ambiguous(document) = found {
            return Ok(bytes_info(document));
        }
        let outcome = self.info(found).await;
        if let Err(StoreError::References(ReferenceError::Refused { .. })) = outcome
            && let Found::Chunk(ChunkReference::Virtual { url, offset, length, .. }) = found
        {
            return Ok(ValueInfo {
                size: *length,
                version: own_version(url, *offset, *length),
                modified: None,
            });
        }
        outcome
    }

    /// What was found, or a part of it.
    pub(super) async fn read(&self, found: &Found, range: ByteRange) -> Result<Value, StoreError> {
        let reference = match found {
            Found::Bytes(bytes) => return read::inline(bytes, bytes_info(bytes), range),
            Found::Ambiguous(_) => return Err(ReferenceError::TwoNodes.into()),
            Found::Chunk(reference) => reference,
        };
        match reference {
            ChunkReference::Inline(bytes) => read::inline(bytes, bytes_info(bytes), range),
            ChunkReference::Native { file, offset, length } => {
                let path = format!("chunks/{file}");
                let key = StoreKey::parse(&path).map_err(|_fixed| StoreError::WrongLength)?;
                let place = (&self.inner, &key, &*path);
                let (_, range, body) = read::part(place, (*offset, *length), range, None).await?;
                Ok(Value::new(native_info(file, *offset, *length), range, body))
            }
            ChunkReference::Virtual { url, offset, length, checksum } => {
                let (store, key) = self.allowed.resolve(url)?;
                let tag = match checksum {
                    Some(ReferentCheck::Tag(tag)) => Some(Version::strong(unquoted(tag))),
                    Some(ReferentCheck::Modified(_)) | None => None,
                };
                let place = (store, &key, &**url);
                let (referent, range, body) =
                    read::part(place, (*offset, *length), range, tag.as_ref()).await?;
                let info = match known_info(found) {
                    Some(info) => info,
                    None => virtual_info((url, *offset, *length), checksum.as_ref(), &referent)?,
                };
                Ok(Value::new(info, range, body))
            }
        }
    }
}

/// Size and version, where no backend need be asked.
fn known_info(found: &Found) -> Option<ValueInfo> {
    match found {
        Found::Bytes(bytes) | Found::Chunk(ChunkReference::Inline(bytes)) => Some(bytes_info(bytes)),
        Found::Chunk(ChunkReference::Native { file, offset, length }) => {
            Some(native_info(file, *offset, *length))
        }
        Found::Chunk(ChunkReference::Virtual {
            url,
            offset,
            length,
            checksum: Some(ReferentCheck::Tag(tag)),
        }) => {
            let text = format!("{url}\n{offset}\n{length}\n{tag}");
            Some(fixed_info(Version::from_own_text(text.as_bytes()).tag(), *length))
        }
        Found::Ambiguous(_) | Found::Chunk(ChunkReference::Virtual { .. }) => None,
    }
}

fn fixed_info(tag: &str, size: u64) -> ValueInfo {
    ValueInfo { size, version: Version::strong(&format!("{FIXED}{tag}")), modified: None }
}

fn bytes_info(bytes: &Bytes) -> ValueInfo {
    fixed_info(Version::from_own_text(bytes).tag(), bytes.len() as u64)
}

fn native_info(file: &ObjectId, offset: u64, length: u64) -> ValueInfo {
    fixed_info(&format!("{file}.{offset:x}.{length:x}"), length)
}

/// Size and version of a chunk in a remote file.
fn virtual_info(
    (url, offset, length): (&str, u64, u64),
    checksum: Option<&ReferentCheck>,
    referent: &ValueInfo,
) -> Result<ValueInfo, StoreError> {
    if let Some(ReferentCheck::Modified(seconds)) = checksum {
        let modified = referent.modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        if modified.is_none_or(|modified| modified.as_secs() > u64::from(*seconds)) {
            return Err(BrokenReference::Changed.of(url).into());
        }
    }
    let own = own_version(url, offset, length);
    Ok(ValueInfo { size: length, version: own.combined(&referent.version), modified: referent.modified })
}

/// The version of a reference itself.
fn own_version(url: &str, offset: u64, length: u64) -> Version {
    Version::from_own_text(format!("{url}\n{offset}\n{length}").as_bytes())
}

/// An entity tag without its quotes.
fn unquoted(tag: &str) -> &str {
    tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(tag)
}

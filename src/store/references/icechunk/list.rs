//! Listings of a snapshot: nodes from the snapshot alone, chunks from the manifests of their arrays.

use std::sync::Arc;

use futures::stream::{Stream, StreamExt, TryStreamExt, iter};

use super::found;
use super::manifest::ChunkManifest;
use super::reader::RepositoryReader;
use super::snapshot::{CHUNKS, DOCUMENT, KeysOf, NodeOf, RepositorySnapshot};
use super::version::MARK;
use crate::key::{StoreKey, StorePrefix};
use crate::store::references::listed_items::{FEW, ListedItems};
use crate::store::references::reference_store::LISTED_AT_ONCE;
use crate::store::references::{BrokenReference, ReferenceError};
use crate::store::{DirEntry, ListEntry, StoreError};

/// Bytes of memory for each key of a listing, beside its text.
const LISTED_BYTES: u64 = 64;

/// A snapshot to list, and what comes before its keys.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) reader: RepositoryReader,
    pub(super) snapshot: Arc<RepositorySnapshot>,
    /// `@branch.NAME/`, or nothing.
    pub(super) pin: Arc<str>,
}

/// A document, or all chunks of the array at a path.
enum Part {
    Document(String),
    Chunks(String),
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

impl Listed {
    fn part(&self, at: usize) -> Option<Part> {
        Some(match self.snapshot.keys_at(at)? {
            KeysOf::Document(node) => Part::Document(joined(node.path, DOCUMENT)),
            KeysOf::Chunks(node) => Part::Chunks(node.path.to_owned()),
        })
    }

    /// Whether a key of the version that the mount names is hidden, because its first segment names a version.
    fn is_hidden(&self, key: &str) -> bool {
        self.pin.is_empty() && key.starts_with(MARK)
    }

    /// Whether a listing after a text has this key or prefix.
    fn lists(&self, text: &str, after: &str) -> bool {
        text > after && !self.is_hidden(text)
    }

    /// Items of a listing, which are few.
    fn items<T: Send + 'static>(&self, first: Vec<T>) -> ListedItems<T> {
        ListedItems::new(first, &self.reader.source().cpu, self.reader.budget().empty())
    }

    /// The keys of an array's chunks, in no order.
    async fn chunk_keys(&self, path: &str) -> Result<ListedItems<String>, StoreError> {
        let mut keys = self.items(Vec::new());
        let snapshot = Arc::clone(&self.snapshot);
        let Some(node) = snapshot.node(path).filter(|node| node.is_array) else {
            return Ok(keys);
        };
        let held = &self.reader.source().held;
        let entry = LISTED_BYTES.saturating_add(2 * joined(path, CHUNKS).len() as u64);
        let id = node.id().map_err(ReferenceError::from)?;
        for (at, known) in node.all_manifests().enumerate() {
            let known = known.map_err(ReferenceError::from)?;
            let manifest = held.manifest(known.id).await?;
            let manifest =
                manifest.ok_or_else(|| BrokenReference::Missing.of(&format!("manifests/{}", known.id)))?;
            let more = manifest.count(id) as u64;
            let count = (keys.count() as u64).saturating_add(more);
            while let Err(error) = keys.reserved.resize(count.saturating_mul(entry)) {
                if !held.evict() {
                    return Err(ReferenceError::from(error).into());
                }
            }
            let (snapshot, path) = (Arc::clone(&self.snapshot), path.to_owned());
            let add = move |mut keys: Vec<String>| {
                add_chunks(&snapshot, &path, (at, &manifest), &mut keys)?;
                Ok(keys)
            };
            keys = keys.change(more.saturating_mul(entry), add).await?;
            tokio::task::consume_budget().await;
        }
        Ok(keys)
    }

    /// The entries of keys, in their order.
    fn entries<K: Iterator<Item = String> + Send>(
        self,
        keys: K,
    ) -> impl Stream<Item = Result<ListEntry, StoreError>> + Send {
        let entries = iter(keys).map(move |key| {
            let listed = self.clone();
            async move { listed.entry(&key).await }
        });
        entries.buffered(LISTED_AT_ONCE).try_filter_map(|entry| std::future::ready(Ok(entry)))
    }

    async fn entry(&self, key: &str) -> Result<Option<ListEntry>, StoreError> {
        let Some(found) = found::find(self.reader.source(), &self.snapshot, key).await? else {
            return Ok(None);
        };
        let info = self.reader.places().listed_info(&found).await?;
        let key =
            StoreKey::parse(&format!("{}{key}", self.pin)).map_err(|_checked| StoreError::WrongLength)?;
        Ok(Some(ListEntry { key, info }))
    }

    /// All keys below a prefix of the snapshot, after a text.
    pub(super) fn below(
        self,
        prefix: String,
        after: String,
    ) -> impl Stream<Item = Result<ListEntry, StoreError>> + Send + use<> {
        let begin = prefix.as_str().max(after.as_str());
        let mut first = self.snapshot.first_from(begin);
        // The chunks of an array that the listing begins within.
        let covers = |at: usize| match self.part(at) {
            Some(Part::Chunks(path)) => begin.starts_with(&format!("{}/", joined(&path, CHUNKS))),
            Some(Part::Document(_)) | None => false,
        };
        if let Some(before) = first.checked_sub(1).filter(|before| covers(*before)) {
            first = before;
        }
        let (listed, wanted) = (self.clone(), prefix.clone());
        let parts = (first..).map_while(move |at| listed.part(at)).take_while(move |part| match part {
            Part::Document(key) => key.starts_with(&wanted),
            Part::Chunks(path) => {
                let key = joined(path, CHUNKS);
                key.starts_with(&wanted) || wanted.starts_with(&format!("{key}/"))
            }
        });
        let parts = iter(parts).then(move |part| {
            let (listed, prefix, after) = (self.clone(), prefix.clone(), after.clone());
            async move {
                let (document, chunks) = match part {
                    // It begins with the prefix.
                    Part::Document(key) => (Some(key).filter(|key| listed.lists(key, &after)), None),
                    Part::Chunks(path) => {
                        let keys = listed.chunk_keys(&path).await?;
                        let (bytes, chosen) = (keys.reserved.bytes(), listed.clone());
                        let choose = move |mut keys: Vec<String>| {
                            keys.retain(|key| key.starts_with(&prefix) && chosen.lists(key, &after));
                            keys.sort_unstable();
                            Ok(keys)
                        };
                        (None, Some(keys.change(bytes, choose).await?.into_items()))
                    }
                };
                let keys = document.into_iter().chain(chunks.into_iter().flatten());
                Ok::<_, StoreError>(listed.entries(keys))
            }
        });
        parts.try_flatten()
    }

    /// What is directly under a prefix of the snapshot, after a text.
    pub(super) async fn directly_in(
        self,
        prefix: String,
        after: String,
    ) -> Result<impl Stream<Item = Result<DirEntry, StoreError>> + Send + use<>, StoreError> {
        let listed = self.clone();
        let found = if let Some(path) = self.array_above(&prefix) {
            let keys = self.chunk_keys(&path).await?;
            let bytes = keys.reserved.bytes();
            let group = move |mut keys: Vec<String>| {
                keys.sort_unstable();
                Ok(listed.chosen(grouped(keys, &prefix), &after))
            };
            keys.change(bytes, group).await?
        } else {
            let mut at = self.snapshot.first_from(&prefix);
            let first: Vec<_> = std::iter::from_fn(|| self.next_under(&prefix, &mut at)).take(FEW).collect();
            let bytes = if first.len() < FEW { 0 } else { u64::MAX };
            let add = move |mut found: Vec<(String, bool)>| {
                found.extend(std::iter::from_fn(|| listed.next_under(&prefix, &mut at)));
                found.dedup();
                Ok(listed.chosen(found, &after))
            };
            self.items(first).change(bytes, add).await?
        };
        let entries = iter(found.into_items()).map(move |(text, is_prefix)| {
            let listed = self.clone();
            async move {
                if is_prefix {
                    let prefix = StorePrefix::parse(&format!("{}{text}", listed.pin));
                    return Ok(Some(DirEntry::Prefix(prefix.map_err(|_checked| StoreError::WrongLength)?)));
                }
                Ok(listed.entry(&text).await?.map(DirEntry::Key))
            }
        });
        let entries = entries.buffered(LISTED_AT_ONCE);
        Ok(entries.try_filter_map(|entry| std::future::ready(Ok(entry))))
    }

    /// Of keys and prefixes, those that a listing after a text has, in their order.
    fn chosen(&self, mut found: Vec<(String, bool)>, after: &str) -> Vec<(String, bool)> {
        found.retain(|(text, _)| self.lists(text, after));
        found.sort_unstable();
        found
    }

    /// The document or node directly under a prefix at the place `at` in the order of keys, which advances beyond it: its text, and
    /// whether that is a prefix.
    fn next_under(&self, prefix: &str, at: &mut usize) -> Option<(String, bool)> {
        loop {
            let (key, array) = match self.part(*at)? {
                Part::Document(key) => (key, None),
                Part::Chunks(path) => (joined(&path, CHUNKS), Some(path)),
            };
            let rest = key.strip_prefix(prefix)?;
            if let Some((name, _)) = rest.split_once('/') {
                // `0` comes after `/`.
                *at = self.snapshot.first_from(&format!("{prefix}{name}0"));
                return Some((format!("{prefix}{name}/"), true));
            }
            *at += 1;
            let node = array.as_deref().and_then(|path| self.snapshot.node(path));
            match node {
                None => return Some((key, false)),
                Some(node) if node.rank().is_ok_and(|rank| rank == 0) => return Some((key, false)),
                Some(node) if has_manifests(&node) => return Some((format!("{key}/"), true)),
                Some(_) => {}
            }
        }
    }

    /// The array whose chunks are under a prefix: `PATH/c/`, `PATH/c/0/`.
    fn array_above(&self, prefix: &str) -> Option<String> {
        let mut rest = prefix.strip_suffix('/')?;
        loop {
            let (before, last) = rest.rsplit_once('/').unwrap_or(("", rest));
            if last == CHUNKS && self.snapshot.node(before).is_some_and(|node| node.is_array) {
                return Some(before.to_owned());
            }
            if before.is_empty() || last.parse::<u32>().is_err() {
                return None;
            }
            rest = before;
        }
    }
}

/// Adds the keys of an array's chunks that are in one of its manifests, which is the one at this place.
fn add_chunks(
    snapshot: &RepositorySnapshot,
    path: &str,
    (at, manifest): (usize, &ChunkManifest),
    keys: &mut Vec<String>,
) -> Result<(), ReferenceError> {
    let Some(node) = snapshot.node(path) else { return Ok(()) };
    let (known, begin) = (node.manifest_at(at)?, joined(path, CHUNKS));
    for chunk in manifest.chunks(node.id()?) {
        if known.has(&chunk)? {
            let places = chunk.iter().flat_map(|place| ["/".to_owned(), place.to_string()]);
            keys.push(places.fold(begin.clone(), |key, part| key + &part));
        }
    }
    Ok(())
}

/// What is directly under a prefix, of sorted keys: texts, and whether each is a prefix.
fn grouped(keys: Vec<String>, prefix: &str) -> Vec<(String, bool)> {
    let mut found: Vec<(String, bool)> = Vec::new();
    for key in keys {
        let Some(rest) = key.strip_prefix(prefix) else { continue };
        match rest.split_once('/') {
            None => found.push((key, false)),
            Some((name, _)) => {
                let directory = format!("{prefix}{name}/");
                if found.last().is_none_or(|(last, _)| *last != directory) {
                    found.push((directory, true));
                }
            }
        }
    }
    found
}

fn has_manifests(node: &NodeOf<'_>) -> bool {
    node.all_manifests().next().is_some()
}

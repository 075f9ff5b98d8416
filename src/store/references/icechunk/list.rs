//! Listings of a snapshot: nodes from the snapshot alone, chunks from the manifests of their arrays.

use std::sync::Arc;

use futures::stream::{Stream, StreamExt, TryStreamExt, iter};

use super::found;
use super::reader::RepositoryReader;
use super::snapshot::{CHUNKS, DOCUMENT, KeysOf, NodeOf, RepositorySnapshot};
use super::version::MARK;
use crate::key::{StoreKey, StorePrefix};
use crate::store::container::ContainerReservation;
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

    /// The keys of an array's chunks, sorted, with the memory for them.
    async fn chunk_keys(&self, path: &str) -> Result<(Vec<String>, ContainerReservation), StoreError> {
        let (mut keys, mut reserved) = (Vec::new(), self.reader.budget().empty());
        let snapshot = Arc::clone(&self.snapshot);
        let Some(node) = snapshot.node(path).filter(|node| node.is_array) else {
            return Ok((keys, reserved));
        };
        let begin = joined(path, CHUNKS);
        let entry = LISTED_BYTES.saturating_add(2 * begin.len() as u64);
        let id = node.id().map_err(ReferenceError::from)?;
        for known in node.all_manifests() {
            let known = known.map_err(ReferenceError::from)?;
            let manifest = self.reader.source().held.manifest(known.id).await?;
            let manifest =
                manifest.ok_or_else(|| BrokenReference::Missing.of(&format!("manifests/{}", known.id)))?;
            let count = (keys.len() as u64).saturating_add(manifest.count(id) as u64);
            while let Err(error) = reserved.resize(count.saturating_mul(entry)) {
                if !self.reader.source().held.evict() {
                    return Err(ReferenceError::from(error).into());
                }
            }
            for chunk in manifest.chunks(id) {
                if known.has(&chunk).map_err(ReferenceError::from)? {
                    let places = chunk.iter().flat_map(|place| ["/".to_owned(), place.to_string()]);
                    keys.push(places.fold(begin.clone(), |key, part| key + &part));
                }
            }
            tokio::task::consume_budget().await;
        }
        keys.sort_unstable();
        Ok((keys, reserved))
    }

    /// The entries of keys, in their order.
    fn entries(self, keys: Vec<String>) -> impl Stream<Item = Result<ListEntry, StoreError>> + Send + use<> {
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
                let (keys, reserved) = match part {
                    Part::Document(key) => (vec![key], listed.reader.budget().empty()),
                    Part::Chunks(path) => listed.chunk_keys(&path).await?,
                };
                let is_listed =
                    |key: &String| *key > after && key.starts_with(&prefix) && !listed.is_hidden(key);
                let keys = keys.into_iter().filter(is_listed).collect();
                // The reservation is held as long as the keys are.
                Ok::<_, StoreError>(listed.entries(keys).map(move |entry| {
                    let _held = &reserved;
                    entry
                }))
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
        let mut found: Vec<(String, bool)> = Vec::new();
        let mut held = None;
        if let Some(path) = self.array_above(&prefix) {
            let (keys, reserved) = self.chunk_keys(&path).await?;
            for key in keys {
                let Some(rest) = key.strip_prefix(&prefix) else { continue };
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
            held = Some(reserved);
        } else {
            self.add_nodes(&prefix, &mut found);
        }
        found.retain(|(text, _)| *text > after && !self.is_hidden(text));
        found.sort_unstable();
        let entries = iter(found).map(move |(text, is_prefix)| {
            let _held = &held;
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

    /// Adds the documents and the nodes under a prefix: texts, and whether each is a prefix.
    fn add_nodes(&self, prefix: &str, found: &mut Vec<(String, bool)>) {
        let mut at = self.snapshot.first_from(prefix);
        while let Some(part) = self.part(at) {
            let (key, array) = match part {
                Part::Document(key) => (key, None),
                Part::Chunks(path) => (joined(&path, CHUNKS), Some(path)),
            };
            let Some(rest) = key.strip_prefix(prefix) else { break };
            if let Some((name, _)) = rest.split_once('/') {
                let below = format!("{prefix}{name}/");
                // `0` comes after `/`.
                at = self.snapshot.first_from(&format!("{prefix}{name}0"));
                found.push((below, true));
                continue;
            }
            at += 1;
            let node = array.as_deref().and_then(|path| self.snapshot.node(path));
            match node {
                None => found.push((key, false)),
                Some(node) if node.rank().is_ok_and(|rank| rank == 0) => found.push((key, false)),
                Some(node) if has_manifests(&node) => found.push((format!("{key}/"), true)),
                Some(_) => {}
            }
        }
        found.dedup();
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

fn has_manifests(node: &NodeOf<'_>) -> bool {
    node.all_manifests().next().is_some()
}

//! Listing a remote backend, in the order of the keys' bytes.
//!
//! S3, GCS, Azure and memory list in that order; the response of a web server (`PROPFIND`, complete at once) is sorted
//! here. The entries directly under a prefix come in pages (`pages`) if the backend has them. Empty objects whose names
//! end in `/`, which some tools leave behind as "directories", are not keys.

use std::collections::BTreeSet;
use std::pin::Pin;

use futures::stream::{BoxStream, Peekable, StreamExt, TryStreamExt, iter, once, try_unfold};
use object_store::{Error, ListResult, ObjectMeta, ObjectStore};

use super::failure::list_failure;
use super::object_backend::ObjectBackend;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{DirEntries, DirEntry, ListEntry, StoreError, StoreKind};

type Entries = BoxStream<'static, Result<ListEntry, StoreError>>;

impl ObjectBackend {
    pub(super) fn list_directly_under(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        if self.pages.is_some() {
            return super::pages::list(self.clone(), prefix, after);
        }
        let (ours, prefix, after) = (self.clone(), prefix.clone(), after.to_owned());
        once(async move { ours.complete_directory(&prefix, &after).await })
            .map_ok(|entries| iter(entries.into_iter().map(Ok)))
            .try_flatten()
            .boxed()
    }

    /// All entries of a directory after a text, from a backend that has no pages.
    async fn complete_directory(
        &self,
        prefix: &StorePrefix,
        after: &str,
    ) -> Result<Vec<DirEntry>, StoreError> {
        let directory = self.directory(prefix)?;
        let under = (!directory.as_ref().is_empty()).then_some(&directory);
        match self.client().list_with_delimiter(under).await {
            Ok(found) => Ok(self.entries(prefix, after, &found)),
            Err(Error::NotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(list_failure(error, self.kind)),
        }
    }

    /// The entries of a backend's response that are directly under a prefix of this store and after a text, in order.
    pub(super) fn entries(&self, prefix: &StorePrefix, after: &str, found: &ListResult) -> Vec<DirEntry> {
        let prefixes: BTreeSet<_> = found.common_prefixes.iter().filter_map(|path| self.key(path)).collect();
        let is_marker = |entry: &ListEntry| entry.info.size == 0 && prefixes.contains(&entry.key);
        let keys = found.objects.iter().filter_map(|meta| self.entry(meta));
        let keys = keys.filter(|entry| !is_marker(entry)).map(DirEntry::Key);
        let mut entries: Vec<_> =
            keys.chain(prefixes.iter().map(|key| DirEntry::Prefix(key.as_prefix()))).collect();
        entries.retain(|entry| {
            let text = entry.text();
            text.len() > prefix.as_str().len() && text.starts_with(prefix.as_str()) && text > after
        });
        entries.sort_unstable_by(|one, other| one.text().cmp(other.text()));
        entries.dedup_by(|one, other| one.text() == other.text());
        entries
    }

    pub(super) fn list_all_under(&self, prefix: &StorePrefix, after: Option<&StoreKey>) -> Entries {
        let (directory, offset) = match (self.directory(prefix), after.map(|key| self.path(key)).transpose())
        {
            (Ok(directory), Ok(offset)) => (directory, offset),
            (Err(error), _) | (_, Err(error)) => return once(std::future::ready(Err(error))).boxed(),
        };
        let under = (!directory.as_ref().is_empty()).then_some(&directory);
        let kind = self.kind;
        let found = match &offset {
            Some(offset) if kind != StoreKind::HTTP => self.client().list_with_offset(under, offset),
            _ => self.client().list(under),
        };
        // Not every server begins at the requested offset.
        let (ours, under, after) = (self.clone(), prefix.clone(), after.cloned());
        let is_wanted = move |key: &StoreKey| {
            key.as_str().starts_with(under.as_str()) && after.as_ref().is_none_or(|after| key > after)
        };
        let entries = found
            .map_err(move |error| list_failure(error, kind))
            .try_filter_map(move |meta| std::future::ready(Ok(ours.entry(&meta))))
            .try_filter(move |entry| std::future::ready(is_wanted(&entry.key)))
            .boxed();
        if kind != StoreKind::HTTP {
            return in_order(entries);
        }
        once(sorted(entries)).map_ok(iter).try_flatten().boxed()
    }

    fn entry(&self, meta: &ObjectMeta) -> Option<ListEntry> {
        Some(ListEntry { key: self.key(&meta.location)?, info: self.info(meta) })
    }
}

/// An ordered listing without the "directories": these come at the position of their prefix, before or among its keys,
/// and are out of order as keys.
fn in_order(entries: Entries) -> Entries {
    let state: (Peekable<Entries>, Option<StoreKey>) = (entries.peekable(), None);
    try_unfold(state, |(mut entries, mut last)| async move {
        while let Some(entry) = entries.try_next().await? {
            let is_late = last.as_ref().is_some_and(|last| entry.key <= *last);
            if entry.info.size == 0 {
                let next = Pin::new(&mut entries).peek().await;
                let prefix = entry.key.as_prefix();
                let is_marker =
                    matches!(next, Some(Ok(next)) if next.key.as_str().starts_with(prefix.as_str()));
                if is_marker || is_late {
                    continue;
                }
            }
            if is_late {
                return Err(StoreError::NotSupported("listing in order"));
            }
            last = Some(entry.key.clone());
            return Ok(Some((entry, (entries, last))));
        }
        Ok(None)
    })
    .boxed()
}

async fn sorted(entries: Entries) -> Result<Vec<Result<ListEntry, StoreError>>, StoreError> {
    let mut entries: Vec<ListEntry> = entries.try_collect().await?;
    entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    entries.dedup_by(|a, b| a.key == b.key);
    Ok(entries.into_iter().map(Ok).collect())
}

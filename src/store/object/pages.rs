//! Listing a directory of a remote backend page by page, from any position, holding one page at most.
//!
//! S3, GCS and Azure return pages of keys and common prefixes in the order of their bytes, from a requested offset. A
//! backend with other pages is an error rather than a wrong listing.

use std::borrow::Cow;

use futures::stream::{StreamExt, TryStreamExt, iter, try_unfold};
use object_store::Error;
use object_store::list::PaginatedListOptions;

use super::failure::list_failure;
use super::object_backend::ObjectBackend;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{DirEntries, DirEntry, StoreError};

/// The entries directly under a prefix, after a text.
pub(super) fn list(backend: ObjectBackend, prefix: &StorePrefix, after: &str) -> DirEntries {
    let pages = Listing {
        backend,
        prefix: prefix.clone(),
        begin: after.to_owned(),
        last: after.to_owned(),
        token: None,
        is_done: false,
    };
    try_unfold(pages, |mut pages| async move {
        Ok::<_, StoreError>(pages.next().await?.map(|entries| (iter(entries).map(Ok), pages)))
    })
    .try_flatten()
    .boxed()
}

struct Listing {
    backend: ObjectBackend,
    prefix: StorePrefix,
    /// Every entry comes after this text.
    begin: String,
    /// Every further entry comes after this text.
    last: String,
    /// The backend's continuation token.
    token: Option<String>,
    is_done: bool,
}

impl Listing {
    async fn next(&mut self) -> Result<Option<Vec<DirEntry>>, StoreError> {
        if self.is_done {
            return Ok(None);
        }
        let directory = self.backend.directory(&self.prefix)?;
        let directory =
            Some(directory.as_ref()).filter(|text| !text.is_empty()).map(|text| format!("{text}/"));
        let is_first = self.token.is_none();
        let options = PaginatedListOptions {
            offset: self.offset()?,
            delimiter: Some(Cow::Borrowed("/")),
            page_token: self.token.take(),
            ..PaginatedListOptions::default()
        };
        let Some(client) = self.backend.pages() else { return Ok(None) };
        let found = match client.list_paginated(directory.as_deref(), options).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) if is_first => return Ok(None),
            Err(error) => return Err(list_failure(error, self.backend.kind)),
        };
        self.token = found.page_token.filter(|token| !token.is_empty());
        self.is_done = self.token.is_none();
        // Not every server begins at the requested offset, and some repeat a prefix on the next page.
        let mut entries = self.backend.entries(&self.prefix, &self.begin, &found.result);
        entries.retain(|entry| !matches!(entry, DirEntry::Prefix(prefix) if prefix.as_str() == self.last));
        if entries.first().is_some_and(|first| first.text() <= self.last.as_str()) {
            return Err(StoreError::NotSupported("listing in order"));
        }
        let Some(last) = entries.last().map(|last| last.text().to_owned()) else {
            return Ok(Some(entries));
        };
        if !self.is_done {
            self.leave_out_directories(&mut entries, &last).await?;
        }
        self.last = last;
        Ok(Some(entries))
    }

    /// The offset for the backend: a key no later than the text, since not every text is a key.
    fn offset(&self) -> Result<Option<String>, StoreError> {
        // Pages with a token continue by that, but need the same parameters.
        let floor =
            StoreKey::longest_prefix(&self.begin).filter(|floor| floor.as_str() > self.prefix.as_str());
        floor.map(|floor| Ok(self.backend.path(&floor)?.to_string())).transpose()
    }

    /// Leaves out empty objects with the name of a prefix that is on the next page.
    async fn leave_out_directories(&self, entries: &mut Vec<DirEntry>, last: &str) -> Result<(), StoreError> {
        let mut directories = Vec::new();
        for entry in &*entries {
            let DirEntry::Key(entry) = entry else { continue };
            let prefix = entry.key.as_prefix();
            if entry.info.size == 0
                && prefix.as_str() > last
                && self.backend.list_all_under(&prefix, None).try_next().await?.is_some()
            {
                directories.push(entry.key.clone());
            }
        }
        entries.retain(|entry| !matches!(entry, DirEntry::Key(entry) if directories.contains(&entry.key)));
        Ok(())
    }
}

//! [`ReferenceStore`]: the verbs of the store interface over a document of references.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::join;
use futures::stream::{BoxStream, StreamExt, TryStreamExt, iter, once};

use super::ReferenceError;
use super::allowed::AllowList;
use super::load::{LoadedReferences, parsed};
use super::table::ReferenceTable;
use super::{parse_kerchunk, read};
use crate::cpu::ComputePool;
use crate::key::{StoreKey, StorePrefix};
use crate::store::container::{IndexCache, TRIES};
use crate::store::{
    BackendState, ByteRange, Capabilities, ContainerBudget, DirEntries, DirEntry, ListEntry, SharedStore,
    Shortcuts, Store, StoreError, StoreKind, Value, ValueInfo, Version,
};

/// The most files that one listing asks for their sizes at one time.
pub(super) const LISTED_AT_ONCE: usize = 16;

/// A read-only store over a document of references. Clones share what is loaded of it.
#[derive(Clone, Debug)]
pub struct ReferenceStore {
    pub(super) inner: SharedStore,
    /// The document's key in `inner`.
    pub(super) file: StoreKey,
    pub(super) allowed: Arc<AllowList>,
    pub(super) cpu: ComputePool,
    pub(super) budget: ContainerBudget,
    pub(super) loaded: Arc<IndexCache<LoadedReferences, ReferenceError>>,
}

impl ReferenceStore {
    /// A store over the document that is the value of `file` in `inner`. It is held within a budget, and read by the
    /// first request.
    #[must_use]
    pub(in crate::store) fn new(
        inner: SharedStore,
        file: StoreKey,
        allowed: AllowList,
        cpu: ComputePool,
        budget: ContainerBudget,
    ) -> Self {
        Self { inner, file, allowed: Arc::new(allowed), cpu, budget, loaded: Arc::default() }
    }

    /// The references of the current version of the document.
    async fn current_document(&self) -> Result<Arc<LoadedReferences>, StoreError> {
        let file = (&self.inner, &self.file);
        let load = async |info: ValueInfo| {
            let parse = |bytes: &Bytes, budget: &ContainerBudget| parse_kerchunk(bytes, budget);
            let table = parsed(file, info.clone(), (&self.cpu, &self.budget), parse).await?;
            Ok(LoadedReferences { info, table })
        };
        self.loaded.current(file, load).await
    }

    async fn read_once(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Value>, StoreError> {
        let Some(cached) = self.loaded.last() else {
            let current = self.current_document().await?;
            return read::read(&self.allowed, &current, key, range).await;
        };
        // Whether the document is still this one is found out while the value is read.
        let (current, value) =
            join(self.current_document(), read::read(&self.allowed, &cached, key, range)).await;
        let current = current?;
        if Arc::ptr_eq(&current, &cached) {
            value
        } else {
            read::read(&self.allowed, &current, key, range).await
        }
    }

    /// An entry of a listing.
    async fn listed(&self, document: &LoadedReferences, at: usize) -> Result<Option<ListEntry>, StoreError> {
        let Some(key) = document.table.key(at) else { return Ok(None) };
        let key = StoreKey::parse(key).map_err(|_checked| StoreError::WrongLength)?;
        Ok(read::listed_info(&self.allowed, document, at).await?.map(|info| ListEntry { key, info }))
    }
}

#[async_trait]
impl Store for ReferenceStore {
    fn kind(&self) -> StoreKind {
        StoreKind::KERCHUNK
    }

    fn is_replaced(&self) -> bool {
        self.inner.is_replaced() || self.allowed.stores().any(|store| store.is_replaced())
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        let document = self.current_document().await?;
        match document.table.find(key.as_str()) {
            None => Ok(None),
            Some(at) => read::info(&self.allowed, &document, at).await,
        }
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        for _ in 0..TRIES {
            match self.read_once(key, range).await {
                Err(StoreError::VersionChanged) => {}
                Ok(Some(value)) if if_match.is_some_and(|version| !version.matches(&value.info.version)) => {
                    return Err(StoreError::VersionChanged);
                }
                outcome => return Ok(outcome?.map(|value| value.with_requested_version(if_match))),
            }
        }
        Err(StoreError::VersionChanged)
    }

    /// The files of complete references are asked for their sizes, several at a time.
    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        let (store, prefix, after) = (self.clone(), prefix.clone(), after.to_owned());
        let entries = async move {
            let document = store.current_document().await?;
            let found = Arc::clone(&document);
            let mut next = document.table.first_from(prefix.as_str().max(&after));
            let steps = std::iter::from_fn(move || next_under(&found.table, &prefix, &mut next));
            let steps = steps.filter(move |step| step.text > after);
            let entries = iter(steps).map(move |step| {
                let (store, document) = (store.clone(), Arc::clone(&document));
                async move {
                    // Finding an entry takes time, and there may be many.
                    tokio::task::consume_budget().await;
                    match step.prefix {
                        Some(prefix) => Ok(Some(DirEntry::Prefix(prefix))),
                        None => Ok(store.listed(&document, step.at).await?.map(DirEntry::Key)),
                    }
                }
            });
            let entries = entries.buffered(LISTED_AT_ONCE);
            Ok::<_, StoreError>(entries.try_filter_map(|entry| std::future::ready(Ok(entry))))
        };
        once(entries).try_flatten().boxed()
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        let (store, prefix, after) = (self.clone(), prefix.clone(), after.cloned());
        let entries = async move {
            let document = store.current_document().await?;
            let begin = after.as_ref().map_or("", StoreKey::as_str).max(prefix.as_str());
            let first = document.table.first_from(begin);
            let found = Arc::clone(&document);
            let is_listed = move |at: &usize| {
                let key = found.table.key(*at);
                key.is_some_and(|key| key.starts_with(prefix.as_str()))
            };
            let found = Arc::clone(&document);
            let is_after = move |at: &usize| {
                found
                    .table
                    .key(*at)
                    .is_some_and(|key| after.as_ref().is_none_or(|after| key > after.as_str()))
            };
            let entries = iter((first..).take_while(is_listed).filter(is_after)).map(move |at| {
                let (store, document) = (store.clone(), Arc::clone(&document));
                async move {
                    tokio::task::consume_budget().await;
                    store.listed(&document, at).await
                }
            });
            let entries = entries.buffered(LISTED_AT_ONCE);
            Ok::<_, StoreError>(entries.try_filter_map(|entry| std::future::ready(Ok(entry))))
        };
        once(entries).try_flatten().boxed()
    }

    /// Requests the document's version, and reads it unless it is cached.
    async fn check(&self) -> Result<(), StoreError> {
        self.current_document().await.map(drop)
    }
}

/// A key directly under a prefix, or a prefix.
pub(super) struct ListedStep {
    pub(super) text: String,
    pub(super) at: usize,
    pub(super) prefix: Option<StorePrefix>,
}

/// The key or prefix directly under `prefix` at the index `next`, which advances beyond it.
pub(super) fn next_under(
    table: &ReferenceTable,
    prefix: &StorePrefix,
    next: &mut usize,
) -> Option<ListedStep> {
    let at = *next;
    let key = table.key(at)?;
    let rest = key.strip_prefix(prefix.as_str())?;
    let Some((name, _)) = rest.split_once('/') else {
        *next = at + 1;
        return Some(ListedStep { text: key.to_owned(), at, prefix: None });
    };
    let below = prefix.join(name).ok()?;
    *next = table.first_behind(below.as_str());
    Some(ListedStep { text: below.as_str().to_owned(), at, prefix: Some(below) })
}

impl Shortcuts for ReferenceStore {
    fn capabilities(&self) -> Capabilities {
        self.allowed.capabilities(&self.inner)
    }

    fn backend(&self) -> Option<BackendState> {
        self.inner.backend()
    }
}

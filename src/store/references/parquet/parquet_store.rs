//! [`ParquetReferenceStore`]: the verbs of the store interface over a directory of references in Parquet.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, Stream, StreamExt, TryStreamExt, iter, once};

use super::metadata::{KEY, Metadata, RecordFile};
use super::records;
use crate::cpu::ComputePool;
use crate::key::{KeyError, StoreKey, StorePrefix};
use crate::store::container::{ContainerReservation, IndexCache, TRIES};
use crate::store::references::allowed::AllowList;
use crate::store::references::listed_items::{FEW, ListedItems};
use crate::store::references::load::{LoadedReferences, parsed};
use crate::store::references::read;
use crate::store::references::reference_store::{LISTED_AT_ONCE, next_under};
use crate::store::{
    BackendState, ByteRange, Capabilities, ContainerBudget, DirEntries, DirEntry, ListEntry, ReferenceError,
    ReferenceTable, RefusedReference, SharedStore, Shortcuts, Store, StoreError, StoreKind, Value, ValueInfo,
    Version,
};

/// The most files of references that are held at one time.
const MAX_HELD: usize = 64;
/// The most files of an array that are asked for one by one, where the directory cannot be listed.
const MAX_ASKED: u64 = 1000;
/// Bytes of memory for each key of a listing.
const LISTED_BYTES: u64 = 64;

/// A read-only store over a directory of references. Clones share what is loaded of it.
#[derive(Clone, Debug)]
pub struct ParquetReferenceStore {
    inner: SharedStore,
    metadata_key: StoreKey,
    allowed: Arc<AllowList>,
    cpu: ComputePool,
    budget: ContainerBudget,
    metadata: Arc<IndexCache<Metadata, ReferenceError>>,
    records: Arc<Records>,
}

/// The files that were read last, the last one at the end.
#[derive(Debug, Default)]
struct Records {
    held: Mutex<Vec<(StoreKey, Arc<LoadedReferences>)>>,
    /// Held while a file is read.
    loading: tokio::sync::Mutex<()>,
}

impl Records {
    /// The references of a file at a version.
    fn find(&self, file: &StoreKey, version: &Version) -> Option<Arc<LoadedReferences>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let at =
            held.iter().position(|(known, document)| known == file && document.info.version == *version)?;
        let found = held.remove(at);
        held.push(found);
        held.last().map(|(_, document)| Arc::clone(document))
    }

    /// Evicts what was not read for the longest time. `false` if nothing is held.
    fn evict(&self) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_held = !held.is_empty();
        let evicted = is_held.then(|| held.remove(0));
        drop(held);
        drop(evicted);
        is_held
    }

    fn insert(&self, file: StoreKey, document: Arc<LoadedReferences>) {
        if !document.info.version.is_settled() {
            return;
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|(known, _)| *known != file);
        if held.len() >= MAX_HELD {
            held.remove(0);
        }
        held.push((file, document));
    }
}

/// What has the reference of a key: the document of all documents, or a file of references.
enum Source {
    Documents(Arc<Metadata>),
    Record(Arc<LoadedReferences>),
}

impl ParquetReferenceStore {
    /// A store over the directory `inner`.
    ///
    /// # Errors
    /// None: the key of the documents is one.
    pub(in crate::store) fn new(
        inner: SharedStore,
        allowed: AllowList,
        cpu: ComputePool,
        budget: ContainerBudget,
    ) -> Result<Self, KeyError> {
        Ok(Self {
            inner,
            metadata_key: StoreKey::parse(KEY)?,
            allowed: Arc::new(allowed),
            cpu,
            budget,
            metadata: Arc::default(),
            records: Arc::default(),
        })
    }

    async fn current_metadata(&self) -> Result<Arc<Metadata>, StoreError> {
        let file = (&self.inner, &self.metadata_key);
        let load = async |info: ValueInfo| {
            let version = info.version.clone();
            let parse = move |bytes: &Bytes, budget: &ContainerBudget| {
                Metadata::parse(bytes, (info.version, info.modified), budget)
            };
            let info = ValueInfo { size: info.size, version, modified: info.modified };
            parsed(file, info, (&self.cpu, &self.budget), parse).await
        };
        self.metadata.current(file, load).await
    }

    /// The references of a file; `None` if there is no such file, as where no chunk of it has a reference.
    async fn record(
        &self,
        metadata: &Metadata,
        place: &RecordFile,
    ) -> Result<Option<Arc<LoadedReferences>>, StoreError> {
        let file = StoreKey::parse(&place.file()).map_err(|fault| RefusedReference::Path(fault).of(KEY))?;
        for _ in 0..TRIES {
            let Some(found) = self.inner.head(&file).await? else { return Ok(None) };
            let version = metadata.documents.info.version.combined(&found.version);
            if let Some(record) = self.records.find(&file, &version) {
                return Ok(Some(record));
            }
            let _loading = self.records.loading.lock().await;
            if let Some(record) = self.records.find(&file, &version) {
                return Ok(Some(record));
            }
            match self.load(&file, found.clone(), place).await {
                Ok(table) => {
                    let record = Arc::new(LoadedReferences { info: ValueInfo { version, ..found }, table });
                    self.records.insert(file, Arc::clone(&record));
                    return Ok(Some(record));
                }
                Err(StoreError::VersionChanged) => {}
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::VersionChanged)
    }

    /// Reads a file. Others are evicted for it.
    async fn load(
        &self,
        file: &StoreKey,
        found: ValueInfo,
        place: &RecordFile,
    ) -> Result<ReferenceTable, StoreError> {
        loop {
            let place = place.clone();
            let parse = move |bytes: &Bytes, budget: &ContainerBudget| {
                records::parse(bytes, budget, (&place.prefix, &place.chunks, place.first), place.rows)
            };
            match parsed((&self.inner, file), found.clone(), (&self.cpu, &self.budget), parse).await {
                Err(StoreError::References(ReferenceError::OverBudget { .. })) if self.records.evict() => {}
                outcome => return outcome,
            }
        }
    }

    /// What has the reference of a key: the documents, or a file of references. `None` if nothing has.
    async fn source(&self, metadata: &Arc<Metadata>, key: &str) -> Result<Option<Source>, StoreError> {
        if metadata.documents.table.find(key).is_some() {
            return Ok(Some(Source::Documents(Arc::clone(metadata))));
        }
        let Some(place) = metadata.place(key) else { return Ok(None) };
        Ok(self.record(metadata, &place).await?.map(Source::Record))
    }

    async fn info(&self, metadata: &Arc<Metadata>, key: &str) -> Result<Option<ValueInfo>, StoreError> {
        let Some(source) = self.source(metadata, key).await? else { return Ok(None) };
        match source.document().table.find(key) {
            None => Ok(None),
            Some(at) => read::info(&self.allowed, source.document(), at).await,
        }
    }

    /// As [`ParquetReferenceStore::info`], for a listing ([`read::listed_info`]).
    async fn listed(&self, metadata: &Arc<Metadata>, key: &str) -> Result<Option<ValueInfo>, StoreError> {
        let Some(source) = self.source(metadata, key).await? else { return Ok(None) };
        match source.document().table.find(key) {
            None => Ok(None),
            Some(at) => read::listed_info(&self.allowed, source.document(), at).await,
        }
    }

    /// The numbers of the files of an array that exist, in order. Where the directory cannot be listed, those that may exist.
    async fn record_numbers(
        &self,
        metadata: &Metadata,
        prefix: &str,
        reserved: &mut ContainerReservation,
    ) -> Result<Vec<u64>, StoreError> {
        let count = metadata.record_count(prefix);
        if count == 0 {
            return Ok(Vec::new());
        }
        let directory = StorePrefix::parse(prefix).map_err(|fault| RefusedReference::Path(fault).of(KEY))?;
        let mut entries = self.inner.list_dir_after(&directory, "");
        let mut numbers = Vec::new();
        loop {
            match entries.try_next().await {
                Ok(Some(DirEntry::Key(entry))) => {
                    let name = entry.key.as_str().strip_prefix(prefix).unwrap_or_default();
                    if let Some(number) = RecordFile::number(name, count) {
                        reserved.grow(size_of::<u64>() as u64 * 2).map_err(ReferenceError::from)?;
                        numbers.push(number);
                    }
                }
                Ok(Some(DirEntry::Prefix(_))) => {}
                Ok(None) => break,
                Err(StoreError::NotListable) if count <= MAX_ASKED => return Ok((0..count).collect()),
                Err(StoreError::NotListable) => {
                    return Err(ReferenceError::Record(
                        "an array may have more than 1000 files, and the directory cannot be listed",
                    )
                    .into());
                }
                Err(error) => return Err(error),
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Items of a listing, which are few.
    fn items<T: Send + 'static>(&self, first: Vec<T>) -> ListedItems<T> {
        ListedItems::new(first, &self.cpu, self.budget.empty())
    }

    /// The keys of an array's chunks, in no order.
    async fn chunk_keys(&self, metadata: &Metadata, prefix: &str) -> Result<ListedItems<String>, StoreError> {
        let mut keys = self.items(Vec::new());
        let mut listed = self.budget.empty();
        for number in self.record_numbers(metadata, prefix, &mut listed).await? {
            let Some(place) = metadata.record(prefix, number) else { continue };
            let Some(record) = self.record(metadata, &place).await? else { continue };
            let more = record.table.len() as u64;
            let count = (keys.count() as u64).saturating_add(more);
            while let Err(error) = keys.reserved.resize(count.saturating_mul(LISTED_BYTES)) {
                if !self.records.evict() {
                    return Err(ReferenceError::from(error).into());
                }
            }
            let add = move |mut keys: Vec<String>| {
                let table = &record.table;
                keys.extend((0..table.len()).filter_map(|at| table.key(at)).map(str::to_owned));
                Ok(keys)
            };
            keys = keys.change(more.saturating_mul(LISTED_BYTES), add).await?;
            tokio::task::consume_budget().await;
        }
        Ok(keys)
    }

    /// The entries of keys, in their order.
    fn entries<K: Iterator<Item = String> + Send>(
        &self,
        metadata: &Arc<Metadata>,
        keys: K,
    ) -> impl Stream<Item = Result<ListEntry, StoreError>> + Send + use<K> {
        let (store, metadata) = (self.clone(), Arc::clone(metadata));
        let entries = iter(keys).map(move |key| {
            let (store, metadata) = (store.clone(), Arc::clone(&metadata));
            async move {
                let info = store.listed(&metadata, &key).await?;
                let key = StoreKey::parse(&key).map_err(|_checked| StoreError::WrongLength)?;
                Ok(info.map(|info| ListEntry { key, info }))
            }
        });
        entries.buffered(LISTED_AT_ONCE).try_filter_map(|entry| std::future::ready(Ok(entry)))
    }

    /// All keys below a prefix.
    async fn listed_below(
        self,
        prefix: StorePrefix,
        after: String,
    ) -> Result<impl Stream<Item = Result<ListEntry, StoreError>>, StoreError> {
        let metadata = self.current_metadata().await?;
        let documents = metadata.documents.table.count_below(prefix.as_str()) as u64;
        let (known, begin) = (Arc::clone(&metadata), after.clone());
        let add = move |mut parts: Vec<(String, bool)>| {
            add_parts(&known, prefix.as_str(), &begin, &mut parts);
            Ok(parts)
        };
        let parts = self.items(Vec::new()).change(documents.saturating_mul(LISTED_BYTES), add).await?;
        let parts = iter(parts.into_items()).then(move |(part, is_array)| {
            let (store, metadata, after) = (self.clone(), Arc::clone(&metadata), after.clone());
            async move {
                let (document, chunks) = match part.strip_suffix('0').filter(|_| is_array) {
                    None => (Some(part), None),
                    Some(array) => {
                        let keys = store.chunk_keys(&metadata, array).await?;
                        let bytes = keys.reserved.bytes();
                        let choose = move |mut keys: Vec<String>| {
                            keys.retain(|key| *key > after);
                            keys.sort_unstable();
                            Ok(keys)
                        };
                        (None, Some(keys.change(bytes, choose).await?.into_items()))
                    }
                };
                let keys = document.into_iter().chain(chunks.into_iter().flatten());
                Ok::<_, StoreError>(store.entries(&metadata, keys))
            }
        });
        Ok(parts.try_flatten())
    }

    /// What is directly under a prefix.
    async fn listed_in(
        self,
        prefix: StorePrefix,
        after: String,
    ) -> Result<impl Stream<Item = Result<DirEntry, StoreError>>, StoreError> {
        let metadata = self.current_metadata().await?;
        let keys = self.chunk_keys(&metadata, prefix.as_str()).await?;
        let mut next = metadata.documents.table.first_from(prefix.as_str());
        let known = Arc::clone(&metadata);
        let mut steps = std::iter::from_fn(move || next_under(&known.documents.table, &prefix, &mut next));
        let first: Vec<_> = steps.by_ref().take(FEW).collect();
        let bytes = if first.len() < FEW { keys.reserved.bytes() } else { u64::MAX };
        let add = move |keys: Vec<String>| {
            let steps = first.into_iter().chain(steps).map(|step| (step.text, step.prefix));
            let mut texts: Vec<_> = steps.chain(keys.into_iter().map(|key| (key, None))).collect();
            texts.retain(|(text, _)| *text > after);
            texts.sort_unstable_by(|one, two| one.0.cmp(&two.0));
            Ok(texts)
        };
        let texts = keys.change(bytes, add).await?;
        let entries = iter(texts.into_items()).map(move |(text, prefix)| {
            let (store, metadata) = (self.clone(), Arc::clone(&metadata));
            async move {
                if let Some(prefix) = prefix {
                    return Ok(Some(DirEntry::Prefix(prefix)));
                }
                let info = store.listed(&metadata, &text).await?;
                let key = StoreKey::parse(&text).map_err(|_checked| StoreError::WrongLength)?;
                Ok(info.map(|info| DirEntry::Key(ListEntry { key, info })))
            }
        });
        let entries = entries.buffered(LISTED_AT_ONCE);
        Ok(entries.try_filter_map(|entry| std::future::ready(Ok(entry))))
    }
}

/// Adds the parts of a listing below a prefix and after a text, in their order: the keys of documents, and for each array a text that
/// begins as the keys of its chunks. These begin with a digit, and no document of it does.
fn add_parts(metadata: &Metadata, prefix: &str, after: &str, parts: &mut Vec<(String, bool)>) {
    let documents = &metadata.documents.table;
    let at = documents.first_from(prefix);
    let keys = (at..).map_while(|at| documents.key(at)).take_while(|key| key.starts_with(prefix));
    parts.extend(keys.filter(|key| *key > after).map(|key| (key.to_owned(), false)));
    let above = prefix.rfind('/').map_or("", |end| prefix.get(..=end).unwrap_or_default());
    parts.extend(metadata.arrays_below(above).map(|array| (format!("{array}0"), true)));
    parts.sort_unstable();
}

impl Source {
    fn document(&self) -> &LoadedReferences {
        match self {
            Self::Documents(metadata) => &metadata.documents,
            Self::Record(record) => record,
        }
    }
}

#[async_trait]
impl Store for ParquetReferenceStore {
    fn kind(&self) -> StoreKind {
        StoreKind::KERCHUNK
    }

    fn is_replaced(&self) -> bool {
        self.inner.is_replaced() || self.allowed.stores().any(|store| store.is_replaced())
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        let metadata = self.current_metadata().await?;
        self.info(&metadata, key.as_str()).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        for _ in 0..TRIES {
            let metadata = self.current_metadata().await?;
            let Some(source) = self.source(&metadata, key.as_str()).await? else { return Ok(None) };
            match read::read(&self.allowed, source.document(), key, range).await {
                Err(StoreError::VersionChanged) => {}
                Ok(Some(value)) if if_match.is_some_and(|version| !version.matches(&value.info.version)) => {
                    return Err(StoreError::VersionChanged);
                }
                outcome => return Ok(outcome?.map(|value| value.with_requested_version(if_match))),
            }
        }
        Err(StoreError::VersionChanged)
    }

    /// For the keys of chunks, all files of references of the array are read.
    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        once(self.clone().listed_in(prefix.clone(), after.to_owned())).try_flatten().boxed()
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        let after = after.map(|after| after.as_str().to_owned()).unwrap_or_default();
        once(self.clone().listed_below(prefix.clone(), after)).try_flatten().boxed()
    }

    /// Requests the version of the documents, and reads them unless they are cached.
    async fn check(&self) -> Result<(), StoreError> {
        self.current_metadata().await.map(drop)
    }
}

impl Shortcuts for ParquetReferenceStore {
    fn capabilities(&self) -> Capabilities {
        self.allowed.capabilities(&self.inner)
    }

    fn backend(&self) -> Option<BackendState> {
        self.inner.backend()
    }
}

//! [`DerivedChunk`]: a chunk that is encoded on request, and its version.
//!
//! The version is a digest of the recipe, of the array's documents and of each stored chunk that the chunk overlaps, so
//! it is known without reading a chunk. If none of these chunks is stored, the derived one does not exist either.
//! Encoded chunks are cached. Otherwise all stored chunks are read at once; of their decoded elements only those that
//! other derived chunks need too are cached.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::TryStreamExt;

use super::rechunked_array::RechunkedArray;
use super::rechunker::Rechunker;
use super::resolve_key::NamedChunk;
use super::version_digest::VersionDigest;
use crate::array::{ArrayError, Plan, ReadContext, ReadLimits, Reader, Snapshot};
use crate::cache::{EncodedChunk, EncodedKey};
use crate::chunk::Elements;
use crate::store::{ByteRange, StoreError, Value, ValueInfo, Version};
use crate::views::derived_store::slice_document;
use crate::views::error::{ViewError, to_store_error};
use crate::views::view::MAX_ATTEMPTS;

/// A chunk that is encoded on request.
#[derive(Debug)]
pub(in crate::views) struct DerivedChunk {
    key: EncodedKey,
    rechunked: Arc<RechunkedArray>,
    plan: Plan,
    target: NamedChunk,
}

impl DerivedChunk {
    /// The chunk that a key names in a rechunked array; `None` if it is outside the array.
    ///
    /// # Errors
    /// [`ArrayError`] if reading its elements is over the limits.
    pub(in crate::views) fn new(
        shared: &Rechunker,
        recipe: Arc<str>,
        rechunked: RechunkedArray,
        named: NamedChunk,
    ) -> Result<Option<Self>, ArrayError> {
        Self::within(shared, recipe, rechunked, named, &shared.limits().read)
    }

    /// The same within other limits of what is read.
    ///
    /// # Errors
    /// As [`DerivedChunk::new`].
    pub(in crate::views) fn within(
        shared: &Rechunker,
        recipe: Arc<str>,
        rechunked: RechunkedArray,
        named: NamedChunk,
        read: &ReadLimits,
    ) -> Result<Option<Self>, ArrayError> {
        let Some(plan) = rechunked.plan(&named.coords, read)? else { return Ok(None) };
        let plan = plan.with_heap_limit(shared.limits().codec().chunk_bytes);
        let name = EncodedKey {
            mount: Arc::clone(shared.mount()),
            path: named.path.clone(),
            recipe,
            coords: named.coords.clone(),
        };
        Ok(Some(Self { key: name, rechunked: Arc::new(rechunked), plan, target: named }))
    }

    /// The version of the chunk, with a size of 0; `None` if none of its stored chunks exists.
    ///
    /// # Errors
    /// Failures of the store.
    pub(in crate::views) async fn lookup(&self, shared: &Rechunker) -> Result<Option<ValueInfo>, ViewError> {
        if let Some(known) = self.known(shared) {
            return Ok(known.map(|(version, _)| chunk_info(0, version)));
        }
        Ok(self.version_now(shared).await?.map(|version| chunk_info(0, version)))
    }

    /// The version of the chunk as it is now; `None` if none of its stored chunks exists.
    ///
    /// # Errors
    /// Failures of the store.
    pub(in crate::views) async fn version_now(
        &self,
        shared: &Rechunker,
    ) -> Result<Option<Version>, ArrayError> {
        let reader = shared.reader();
        let snapshot = reader.lookup_versions(&self.plan, &reader.read_context(&self.key.mount)).await?;
        Ok(self.version(&snapshot))
    }

    /// The chunk as it was last encoded, if the store allows to rely on an earlier check of it.
    fn known(&self, shared: &Rechunker) -> Option<EncodedChunk> {
        let now = Instant::now();
        let horizon = shared.opener().hierarchy().store().freshness_horizon(now);
        if horizon >= now {
            return None;
        }
        let known = shared.encoded().latest(&self.key)?;
        let version = known.as_ref().map(|(version, _)| version);
        let documents = &self.target.opened.located;
        shared.validations().is_current(&self.key, documents, version, horizon).then_some(known)
    }

    /// The same as [`DerivedChunk::get_or_encode`] for a response: an earlier check of the chunk counts where the store
    /// allows that. What is made of several chunks must not rely on it, because they would be of different times. Also
    /// returns whether the chunk was encoded before.
    async fn respond(
        self: &Arc<Self>,
        shared: &Rechunker,
    ) -> Result<(Option<(Bytes, ValueInfo)>, bool), ViewError> {
        if let Some(known) = self.known(shared) {
            let found = known.map(|(version, chunk)| (chunk.clone(), chunk_info(chunk.len(), version)));
            return Ok((found, true));
        }
        let (began, encodes) = (Instant::now(), Arc::default());
        let was_cached = shared.encoded().contains(&self.key);
        let made = self.get_noting(shared, &encodes).await?;
        if shared.opener().hierarchy().store().freshness_horizon(began) < began {
            let version = made.as_ref().map(|(_, info)| &info.version);
            shared.validations().record(&self.key, &self.target.opened.located, version, began);
        }
        Ok((made, was_cached && !encodes.load(Ordering::Relaxed)))
    }

    /// The encoded chunk; `None` if none of its stored chunks exists.
    ///
    /// # Errors
    /// Failures of the store; stored chunks that cannot be decoded; elements that cannot be cast.
    pub(in crate::views) async fn get_or_encode(
        self: &Arc<Self>,
        shared: &Rechunker,
    ) -> Result<Option<(Bytes, ValueInfo)>, ViewError> {
        self.get_noting(shared, &Arc::default()).await
    }

    /// The same, which notes in `encodes` whether the chunk was encoded for it.
    async fn get_noting(
        self: &Arc<Self>,
        shared: &Rechunker,
        encodes: &Arc<AtomicBool>,
    ) -> Result<Option<(Bytes, ValueInfo)>, ViewError> {
        let mut tries = 1;
        loop {
            match self.attempt(shared, encodes).await {
                Err(error) if error.is_changed() && tries < MAX_ATTEMPTS => tries += 1,
                encoded => {
                    return Ok(
                        encoded?.map(|(version, chunk)| (chunk.clone(), chunk_info(chunk.len(), version)))
                    );
                }
            }
        }
    }

    /// The size and version of the chunk. If it is not encoded for that, its size is 0.
    ///
    /// # Errors
    /// As [`DerivedChunk::get_or_encode`].
    pub(in crate::views) async fn info(
        self: &Arc<Self>,
        shared: &Rechunker,
        encodes: bool,
    ) -> Result<Option<ValueInfo>, StoreError> {
        if !encodes {
            return self.lookup(shared).await.map_err(to_store_error);
        }
        let (generated, _) = self.respond(shared).await.map_err(to_store_error)?;
        Ok(generated.map(|(_, info)| info))
    }

    /// A range of the encoded chunk; of the given version, if one is given.
    ///
    /// # Errors
    /// As [`DerivedChunk::get_or_encode`]; [`StoreError::VersionChanged`], [`StoreError::RangeNotSatisfiable`].
    pub(in crate::views) async fn read(
        self: &Arc<Self>,
        shared: &Rechunker,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        // A chunk of another version need not be encoded.
        if let Some(version) = if_match
            && let Some(info) = self.lookup(shared).await.map_err(to_store_error)?
            && info.version != *version
        {
            return Err(StoreError::VersionChanged);
        }
        match self.respond(shared).await.map_err(to_store_error)? {
            (None, _) => Ok(None),
            (Some((bytes, info)), is_cached) => {
                let value = slice_document(&bytes, info, range, if_match)?;
                Ok(Some(Value { is_cached, ..value }))
            }
        }
    }

    async fn attempt(
        self: &Arc<Self>,
        shared: &Rechunker,
        encodes: &Arc<AtomicBool>,
    ) -> Result<EncodedChunk, ArrayError> {
        let trace = shared.reader().read_context(&self.key.mount);
        let lookup = || -> BoxFuture<'_, _> {
            Box::pin(async { Ok(self.version(&shared.reader().lookup_versions(&self.plan, &trace).await?)) })
        };
        let (chunk, rechunker) = (Arc::clone(self), shared.clone());
        let (name, traced, encodes) = (&self.key, Arc::clone(&trace), Arc::clone(encodes));
        let encode = Box::pin(async move {
            let _memory = rechunker.budget().acquire(chunk.working_bytes()).await;
            let version =
                async { Ok(chunk.version(&rechunker.reader().lookup_versions(&chunk.plan, &traced).await?)) };
            let encode = {
                let (chunk, rechunker, traced) = (Arc::clone(&chunk), rechunker.clone(), Arc::clone(&traced));
                let cpu = rechunker.cpu().clone();
                async move {
                    encodes.store(true, Ordering::Relaxed);
                    cpu.spawn_future(async move { chunk.encode(&rechunker, &traced).await }).await?
                }
            };
            rechunker.encoded().from_disk_or_encode(&chunk.key, version, encode).await
        });
        shared.encoded().get(name, lookup, encode).await
    }

    /// Reads the elements and encodes them.
    async fn encode(&self, shared: &Rechunker, trace: &Arc<ReadContext>) -> Result<EncodedChunk, ArrayError> {
        // The encoded chunk is cached, so a stored chunk that no other derived chunk needs is not.
        let reader = shared.reader().clone().without_caching();
        let snapshot = reader.snapshot(&self.plan, trace).await?;
        let Some(version) = self.version(&snapshot) else { return Ok(None) };
        let shape = self.rechunked.subset(&self.key.coords).ok_or(ArrayError::Geometry)?.shape();
        let elements = read_elements(&reader, snapshot, trace).await?;
        let _encoder = shared.budget().acquire_encoder(self.rechunked.working_bytes()).await;
        let (start, rechunked) = (Instant::now(), Arc::clone(&self.rechunked));
        let encoded = shared.cpu().run(move || rechunked.encode(elements, &shape)).await?;
        trace.add_encode_time(start);
        let failed = |source| ArrayError::ChunkCodecs {
            path: self.target.path.clone(),
            coords: self.target.coords.clone(),
            shape: self.rechunked.chunk_shape.clone(),
            source,
        };
        Ok(Some((version, shrink_to_fit(encoded.map_err(failed)?))))
    }

    /// The decoded bytes of the stored chunks that it is made of.
    pub(in crate::views) fn decoded_bytes(&self) -> u64 {
        self.plan.decoded_bytes()
    }

    /// The most bytes that reading and encoding it takes, beside the stored chunks.
    fn working_bytes(&self) -> u64 {
        self.rechunked.working_bytes().saturating_add(self.plan.reduced_source_bytes())
    }

    /// The version; `None` if no stored chunk exists.
    fn version(&self, snapshot: &Snapshot) -> Option<Version> {
        if snapshot.versions().all(|version| version.is_none()) {
            return None;
        }
        let mut digest = VersionDigest::new(&self.key, self.target.opened.located.versions());
        snapshot.versions().for_each(|version| digest.add(version));
        Some(digest.finish())
    }
}

/// The same bytes without spare capacity, which would count as long as they are cached.
pub(in crate::views) fn shrink_to_fit(encoded: Bytes) -> Bytes {
    match encoded.try_into_mut() {
        Ok(own) if own.capacity() == own.len() => own.freeze(),
        Ok(own) => Bytes::copy_from_slice(&own),
        Err(part) => Bytes::copy_from_slice(&part),
    }
}

/// Size and version of a chunk. It has no modification time, since any of its sources may have been erased since.
pub(in crate::views) fn chunk_info(size: usize, version: Version) -> ValueInfo {
    ValueInfo { size: size as u64, version, modified: None }
}

/// All elements of a snapshot. Those of variable length must fit in one band.
async fn read_elements(
    reader: &Reader,
    snapshot: Snapshot,
    trace: &Arc<ReadContext>,
) -> Result<Elements, ArrayError> {
    let bytes = snapshot.plan().response_bytes();
    let is_variable = snapshot.plan().array().metadata().data_type.is_variable();
    let mut bands = reader.elements(snapshot, 0..bytes, trace);
    let first = bands.try_next().await?.unwrap_or_default();
    let Some(second) = bands.try_next().await? else { return Ok(first) };
    if is_variable {
        return Err(ArrayError::Geometry);
    }
    let mut items = Vec::with_capacity(usize::try_from(bytes).map_err(|_too_many| ArrayError::Geometry)?);
    items.extend_from_slice(first.items());
    items.extend_from_slice(second.items());
    drop((first, second));
    while let Some(band) = bands.try_next().await? {
        items.extend_from_slice(band.items());
    }
    Ok(Elements::fixed(items.into()))
}

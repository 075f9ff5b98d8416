//! [`DerivedChunk`]: a chunk that is encoded on request, and its version.
//!
//! The version is a digest of the recipe, of the array's documents and of each stored chunk that the chunk overlaps, so
//! it is known without reading a chunk. If none of these chunks is stored, the derived one does not exist either.
//! Encoded chunks are cached. Otherwise all stored chunks are read at once; of their decoded elements only those that
//! other derived chunks need too are cached.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::TryStreamExt;
use sha2::{Digest, Sha256};

use super::rechunked_array::RechunkedArray;
use super::rechunker::Rechunker;
use super::resolve_key::NamedChunk;
use crate::array::{ArrayError, Plan, ReadContext, ReadLimits, Reader, Snapshot};
use crate::cache::{EncodedChunk, EncodedKey};
use crate::chunk::Elements;
use crate::store::{ValueInfo, Version};
use crate::views::error::ViewError;
use crate::views::view::MAX_ATTEMPTS;

/// Identifies the encoder in versions: another release may encode other bytes.
const ENCODER_VERSION: &str = concat!("rechunked by ", env!("CARGO_PKG_VERSION"));

/// A chunk that is encoded on request.
pub(super) struct DerivedChunk {
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
    pub(super) fn new(
        shared: &Rechunker,
        recipe: Arc<str>,
        rechunked: RechunkedArray,
        named: NamedChunk,
    ) -> Result<Option<Self>, ArrayError> {
        let Some(subset) = rechunked.subset(&named.coords) else { return Ok(None) };
        let limits = shared.limits();
        // All of it is needed at once.
        let read = ReadLimits { segment_size: u64::MAX, ..limits.read };
        let plan = Plan::new(rechunked.array(), subset, &read)?;
        let plan = plan.with_heap_limit(limits.codec().chunk_bytes);
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
    pub(super) async fn lookup(&self, shared: &Rechunker) -> Result<Option<ValueInfo>, ViewError> {
        let reader = shared.reader();
        let snapshot = reader.lookup_versions(&self.plan, &reader.read_context(&self.key.mount)).await?;
        Ok(self.version(&snapshot).map(|version| chunk_info(0, version)))
    }

    /// The encoded chunk; `None` if none of its stored chunks exists.
    ///
    /// # Errors
    /// Failures of the store; stored chunks that cannot be decoded; elements that cannot be cast.
    pub(super) async fn get_or_encode(
        self: &Arc<Self>,
        shared: &Rechunker,
    ) -> Result<Option<(Bytes, ValueInfo)>, ViewError> {
        let mut tries = 1;
        loop {
            match self.attempt(shared).await {
                Err(error) if error.is_changed() && tries < MAX_ATTEMPTS => tries += 1,
                encoded => {
                    return Ok(
                        encoded?.map(|(version, chunk)| (chunk.clone(), chunk_info(chunk.len(), version)))
                    );
                }
            }
        }
    }

    async fn attempt(self: &Arc<Self>, shared: &Rechunker) -> Result<EncodedChunk, ArrayError> {
        let trace = shared.reader().read_context(&self.key.mount);
        let lookup = || -> BoxFuture<'_, _> {
            Box::pin(async { Ok(self.version(&shared.reader().lookup_versions(&self.plan, &trace).await?)) })
        };
        let (chunk, rechunker) = (Arc::clone(self), shared.clone());
        let (name, traced) = (&self.key, Arc::clone(&trace));
        let encode = Box::pin(async move {
            let _memory = rechunker.budget().acquire(chunk.rechunked.working_bytes()).await;
            let cpu = rechunker.cpu().clone();
            cpu.spawn_future(async move { chunk.encode(&rechunker, &traced).await }).await?
        });
        shared.encoded().get(name, lookup, encode).await
    }

    /// Reads the elements and encodes them.
    async fn encode(&self, shared: &Rechunker, trace: &Arc<ReadContext>) -> Result<EncodedChunk, ArrayError> {
        // The encoded chunk is cached, so a stored chunk that no other derived chunk needs is not.
        let reader = shared.reader().clone().without_caching();
        let snapshot = reader.snapshot(&self.plan, trace).await?;
        let Some(version) = self.version(&snapshot) else { return Ok(None) };
        let shape = snapshot.plan().subset().shape();
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

    /// The version; `None` if no stored chunk exists.
    fn version(&self, snapshot: &Snapshot) -> Option<Version> {
        if snapshot.versions().all(|version| version.is_none()) {
            return None;
        }
        let mut strong = true;
        let mut digest = Sha256::new();
        // The parts contain no zero byte: tags are visible ASCII.
        let mut add = |part: &[u8]| {
            digest.update(part);
            digest.update([0]);
        };
        add(ENCODER_VERSION.as_bytes());
        add(self.key.recipe.as_bytes());
        add(format!("{:?}", self.key.coords).as_bytes());
        for version in self.target.opened.located.versions().chain(snapshot.versions()) {
            strong &= version.is_none_or(Version::is_strong);
            add(version.map_or(b"", |version| version.tag().as_bytes()));
        }
        let tag = hex(&digest.finalize());
        Some(if strong { Version::strong(&tag) } else { Version::weak(&tag) })
    }
}

/// The same bytes without spare capacity, which would count as long as they are cached.
fn shrink_to_fit(encoded: Bytes) -> Bytes {
    match encoded.try_into_mut() {
        Ok(own) if own.capacity() == own.len() => own.freeze(),
        Ok(own) => Bytes::copy_from_slice(&own),
        Err(part) => Bytes::copy_from_slice(&part),
    }
}

/// Size and version of a chunk. It has no modification time, since any of its sources may have been erased since.
fn chunk_info(size: usize, version: Version) -> ValueInfo {
    ValueInfo { size: size as u64, version, modified: None }
}

/// All elements of a snapshot, which fit in one band.
async fn read_elements(
    reader: &Reader,
    snapshot: Snapshot,
    trace: &Arc<ReadContext>,
) -> Result<Elements, ArrayError> {
    let bytes = snapshot.plan().response_bytes();
    let mut bands = reader.elements(snapshot, 0..bytes, trace);
    let elements = bands.try_next().await?.unwrap_or_default();
    match bands.try_next().await? {
        None => Ok(elements),
        Some(_) => Err(ArrayError::Geometry),
    }
}

/// The first 128 bits of a digest in hexadecimal.
fn hex(digest: &[u8]) -> String {
    let digits = digest.iter().take(16).flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

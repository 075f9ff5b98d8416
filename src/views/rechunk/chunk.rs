//! A chunk in the making: the versions of what it is made of, and its bytes.
//!
//! The version of a chunk names the recipe, the array's documents and each stored chunk that it touches, so it is known
//! without a read. Where none of these is stored, there is no chunk either. What was made is remembered; else all that
//! it takes is read at once. Of what was decoded for that, only chunks that others are made of too are remembered.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::TryStreamExt;
use sha2::{Digest, Sha256};

use super::named::NamedChunk;
use super::rechunked::Rechunked;
use super::store::{RechunkStore, Rechunker};
use crate::array::{ArrayError, Plan, ReadContext, ReadLimits, Reader, Snapshot};
use crate::cache::{EncodedChunk, EncodedKey};
use crate::chunk::Elements;
use crate::store::{StoreError, ValueInfo, Version};
use crate::views::error::{ViewError, failed};
use crate::views::view::TRIES;

/// What is made, and by which rules: another release may make other bytes.
const MADE_BY: &str = concat!("rechunked by ", env!("CARGO_PKG_VERSION"));

/// A chunk that is to be made.
pub(super) struct Chunk {
    name: EncodedKey,
    rechunked: Arc<Rechunked>,
    plan: Plan,
    named: NamedChunk,
}

impl RechunkStore {
    /// The chunk that a key names, if it is in the array.
    ///
    /// # Errors
    /// What it takes is over the limits, or no chunks are made of this array.
    pub(super) fn chunk(&self, named: NamedChunk) -> Result<Option<Chunk>, StoreError> {
        let rechunked = self.rechunked(&named.path, &named.opened)?;
        let Some(subset) = rechunked.subset(&named.coords) else { return Ok(None) };
        let limits = self.shared().limits();
        // All of it is needed at once.
        let read = ReadLimits { segment_size: u64::MAX, ..limits.read };
        let plan = Plan::new(rechunked.array(), subset, &read).map_err(failed)?;
        let plan = plan.with_heap_limit(limits.codec().chunk_bytes);
        let name = EncodedKey {
            mount: Arc::clone(self.shared().mount()),
            path: named.path.clone(),
            recipe: Arc::clone(self.recipe_text()),
            coords: named.coords.clone(),
        };
        Ok(Some(Chunk { name, rechunked: Arc::new(rechunked), plan, named }))
    }
}

impl Chunk {
    /// The version of the chunk, and no size; `None` if nothing is stored of it.
    ///
    /// # Errors
    /// Failures of the store.
    pub(super) async fn look(&self, shared: &Rechunker) -> Result<Option<ValueInfo>, ViewError> {
        let reader = shared.reader();
        let snapshot = reader.lookup_versions(&self.plan, &reader.trace(&self.name.mount)).await?;
        Ok(self.version(&snapshot).map(|version| info(0, version)))
    }

    /// The chunk; `None` if nothing is stored of it.
    ///
    /// # Errors
    /// Failures of the store; stored chunks that do not decode; elements that cannot be cast.
    pub(super) async fn make(
        self: &Arc<Self>,
        shared: &Rechunker,
    ) -> Result<Option<(Bytes, ValueInfo)>, ViewError> {
        let mut tries = 1;
        loop {
            match self.attempt(shared).await {
                Err(error) if error.is_changed() && tries < TRIES => tries += 1,
                made => return Ok(made?.map(|(version, chunk)| (chunk.clone(), info(chunk.len(), version)))),
            }
        }
    }

    async fn attempt(self: &Arc<Self>, shared: &Rechunker) -> Result<EncodedChunk, ArrayError> {
        let trace = shared.reader().trace(&self.name.mount);
        let look = || -> BoxFuture<'_, _> {
            Box::pin(async { Ok(self.version(&shared.reader().lookup_versions(&self.plan, &trace).await?)) })
        };
        let (chunk, making) = (Arc::clone(self), shared.clone());
        let (name, traced) = (&self.name, Arc::clone(&trace));
        let make = Box::pin(async move {
            let _room = making.room().take(chunk.rechunked.working_bytes()).await;
            let cpu = making.cpu().clone();
            cpu.spawn_future(async move { chunk.made(&making, &traced).await }).await?
        });
        shared.encoded().get(name, look, make).await
    }

    /// Reads what it is made of, and encodes that.
    async fn made(&self, shared: &Rechunker, trace: &Arc<ReadContext>) -> Result<EncodedChunk, ArrayError> {
        // What was made of a stored chunk is remembered, so that one that is needed for nothing else need not be.
        let reader = shared.reader().clone().without_caching();
        let snapshot = reader.snapshot(&self.plan, trace).await?;
        let Some(version) = self.version(&snapshot) else { return Ok(None) };
        let shape = snapshot.plan().subset().shape();
        let elements = elements(&reader, snapshot, trace).await?;
        let _turn = shared.room().encoder(self.rechunked.working_bytes()).await;
        let (start, rechunked) = (Instant::now(), Arc::clone(&self.rechunked));
        let encoded = shared.cpu().run(move || rechunked.encode(elements, &shape)).await?;
        trace.encoded_since(start);
        let failed = |source| ArrayError::ChunkCodecs {
            path: self.named.path.clone(),
            coords: self.named.coords.clone(),
            shape: self.rechunked.chunk_shape.clone(),
            source,
        };
        Ok(Some((version, packed(encoded.map_err(failed)?))))
    }

    /// The version; `None` if no stored chunk is there.
    fn version(&self, snapshot: &Snapshot) -> Option<Version> {
        if snapshot.versions().all(|version| version.is_none()) {
            return None;
        }
        let mut strong = true;
        let mut digest = Sha256::new();
        // No part has a zero in it: tags are visible ASCII.
        let mut add = |part: &[u8]| {
            digest.update(part);
            digest.update([0]);
        };
        add(MADE_BY.as_bytes());
        add(self.name.recipe.as_bytes());
        add(format!("{:?}", self.name.coords).as_bytes());
        for version in self.named.opened.located.versions().chain(snapshot.versions()) {
            strong &= version.is_none_or(Version::is_strong);
            add(version.map_or(b"", |version| version.tag().as_bytes()));
        }
        let tag = hex(&digest.finalize());
        Some(if strong { Version::strong(&tag) } else { Version::weak(&tag) })
    }
}

/// The same bytes with no more room than they need, which counts as long as they are remembered.
fn packed(encoded: Bytes) -> Bytes {
    match encoded.try_into_mut() {
        Ok(own) if own.capacity() == own.len() => own.freeze(),
        Ok(own) => Bytes::copy_from_slice(&own),
        Err(part) => Bytes::copy_from_slice(&part),
    }
}

/// What is known of a chunk. It is as old as nothing that it is made of: one of these may have been erased since.
fn info(size: usize, version: Version) -> ValueInfo {
    ValueInfo { size: size as u64, version, modified: None }
}

/// All elements of a snapshot, which fit in one band.
async fn elements(
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

/// The front of a digest: 128 bits in hexadecimal.
fn hex(digest: &[u8]) -> String {
    let digits = digest.iter().take(16).flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

//! [`Array`]: an array whose metadata is bound to a chunk grid, chunk keys and codecs.

use std::sync::Arc;

use super::chains::Chains;
use super::error::ArrayError;
use super::stored::StoredKey;
use crate::chunk::{ChunkAxis, ChunkCoords, ChunkGrid, ChunkKeyEncoding, Runs};
use crate::codec::{CodecChain, CodecLimits};
use crate::key::{NodePath, StoreKey};
use crate::metadata::ArrayMetadata;
use crate::store::SharedStore;

/// An array whose metadata is checked and bound: from here on only stored bytes can be wrong.
#[derive(Debug)]
pub struct Array {
    mount: Arc<str>,
    store: SharedStore,
    path: NodePath,
    metadata: Arc<ArrayMetadata>,
    grid: ChunkGrid,
    chunk_keys: ChunkKeyEncoding,
    chains: Chains,
    /// The shape of stored chunks, if all have the same.
    chunk_shape: Option<Arc<[u64]>>,
    decoded_axes: Vec<ChunkAxis>,
}

impl Array {
    /// Binds an array's metadata. Where chunks have several shapes, the codecs are bound to that of the first chunk. Errors
    /// for another shape appear when a chunk of it is read.
    ///
    /// # Errors
    /// [`ArrayError::Codecs`].
    pub fn bind(
        mount: Arc<str>,
        store: SharedStore,
        path: NodePath,
        metadata: Arc<ArrayMetadata>,
        limits: &CodecLimits,
    ) -> Result<Self, ArrayError> {
        let grid = ChunkGrid::new(&metadata.shape, &metadata.chunk_grid);
        let chains = Chains::bind(&metadata, grid.first_chunk_shape(), limits)
            .map_err(|source| ArrayError::Codecs { path: path.clone(), source })?;
        let chunk_keys = ChunkKeyEncoding::new(metadata.chunk_key_encoding.clone());
        let decoded_axes = decoded_axes(&grid, chains.first());
        let chunk_shape = grid.chunk_shape().map(Arc::from);
        Ok(Self { mount, store, path, metadata, grid, chunk_keys, chains, chunk_shape, decoded_axes })
    }

    /// The name of the array's mount.
    #[must_use]
    pub fn mount(&self) -> &Arc<str> {
        &self.mount
    }

    /// The array's path in its hierarchy.
    #[must_use]
    pub fn path(&self) -> &NodePath {
        &self.path
    }

    /// The metadata.
    #[must_use]
    pub fn metadata(&self) -> &ArrayMetadata {
        &self.metadata
    }

    /// The same, shared.
    #[must_use]
    pub fn shared_metadata(&self) -> &Arc<ArrayMetadata> {
        &self.metadata
    }

    /// The grid of stored chunks (of shards, if the array is sharded).
    #[must_use]
    pub fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// Whether the array is sharded: whether parts of a stored chunk are read through its index.
    #[must_use]
    pub fn is_sharded(&self) -> bool {
        // This depends on the codecs alone, not on a chunk's shape.
        self.chains.first().sharding().is_some()
    }

    /// Decoded bytes of the smallest chunk that is decoded on its own: a chunk, or an inner chunk of a shard. Where the sizes
    /// of chunks differ, those of the first.
    pub(super) fn decoded_bytes(&self) -> u64 {
        self.decoding_chain().decoded_bytes()
    }

    /// Whether a small part of such a chunk is decoded without the rest of it.
    pub(super) fn decodes_parts(&self) -> bool {
        let item = self.metadata.data_type.element_bytes();
        let one = Runs { start: 0, count: 1, length: item, stride: item };
        self.store.capabilities().near && self.decoding_chain().part(one).is_some()
    }

    /// The codecs of such a chunk.
    fn decoding_chain(&self) -> &CodecChain {
        let mut chain: &CodecChain = self.chains.first();
        while let Some(sharding) = chain.sharding() {
            chain = sharding.inner_chain();
        }
        chain
    }

    /// The shape of a stored chunk.
    pub(super) fn chunk_shape_at(&self, coords: &[u64]) -> Arc<[u64]> {
        self.chunk_shape.clone().unwrap_or_else(|| self.grid.chunk_shape_at(coords).into())
    }

    /// The codecs bound to the shape of the first chunk.
    #[must_use]
    pub fn first_chain(&self) -> &Arc<CodecChain> {
        self.chains.first()
    }

    /// The codecs bound to this shape of a stored chunk, if they are cached.
    pub(super) fn bound_chain(&self, shape: &[u64]) -> Option<Arc<CodecChain>> {
        self.chains.get(shape)
    }

    /// The codecs bound to the shape of a stored chunk.
    ///
    /// # Errors
    /// [`ArrayError::ChunkCodecs`] if they cannot be used on this shape.
    pub fn chain_for(&self, coords: &[u64], shape: &[u64]) -> Result<Arc<CodecChain>, ArrayError> {
        self.chains.get_or_bind(&self.metadata, shape).map_err(|source| ArrayError::ChunkCodecs {
            path: self.path.clone(),
            coords: coords.to_vec(),
            shape: shape.to_vec(),
            source,
        })
    }

    /// The key of a stored chunk.
    ///
    /// # Errors
    /// [`ArrayError::ChunkKey`] if it would be longer than a key may be.
    pub fn chunk_key(&self, coords: &[u64]) -> Result<StoreKey, ArrayError> {
        self.path.prefix().key(&self.chunk_keys.encode(coords)).map_err(|source| ArrayError::ChunkKey {
            path: self.path.clone(),
            coords: coords.to_vec(),
            source,
        })
    }

    /// The coordinates of the stored chunk with this key below the array's prefix; `None` if it is not the key of a chunk.
    #[must_use]
    pub fn chunk_coords(&self, below: &str) -> Option<ChunkCoords> {
        self.chunk_keys.decode(below, self.metadata.shape.len())
    }

    /// The store and key of a stored chunk.
    ///
    /// # Errors
    /// Those of [`Array::chunk_key`].
    pub fn stored_key(&self, coords: &[u64]) -> Result<StoredKey, ArrayError> {
        let key = self.chunk_key(coords)?;
        Ok(StoredKey { mount: Arc::clone(&self.mount), store: Arc::clone(&self.store), key })
    }

    /// The dimensions of the array divided into the smallest chunks that are decoded on their own: the innermost inner
    /// chunks of a sharded array, else the chunks.
    #[must_use]
    pub fn decoded_axes(&self) -> &[ChunkAxis] {
        &self.decoded_axes
    }

    /// The shape of these chunks in the array's dimensions; `None` if their shapes differ.
    #[must_use]
    pub fn decoded_chunk_shape(&self) -> Option<Vec<u64>> {
        self.decoded_axes.iter().map(ChunkAxis::edge).collect()
    }
}

/// The grid of the chunks that are decoded on their own. Inner chunks have one shape even where shards differ, and they fill
/// each shard: together they are a regular grid over whole shards, which may reach beyond the end of the array.
fn decoded_axes(grid: &ChunkGrid, chain: &CodecChain) -> Vec<ChunkAxis> {
    let mut axes = grid.axes().to_vec();
    // The dimension of the array that each dimension of the current shard space is.
    let mut dims: Vec<usize> = (0..axes.len()).collect();
    let mut chain = chain;
    while let Some(sharding) = chain.sharding() {
        dims = sharding.order().iter().filter_map(|&dim| dims.get(dim).copied()).collect();
        for (&dim, &edge) in dims.iter().zip(sharding.inner_shape()) {
            if let Some(axis) = axes.get_mut(dim) {
                *axis = ChunkAxis::new(axis.end(), edge);
            }
        }
        chain = sharding.inner_chain();
    }
    axes
}

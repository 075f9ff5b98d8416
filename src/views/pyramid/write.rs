//! [`PyramidTarget`]: writes all that a pyramid shows into another store.
//!
//! Level 0 is copied, or encoded by the recipe if it is stored in Zarr v2. Each further level is read from the one before it
//! that was just written: a level is defined by the one before it, so its chunks are those of the view, byte for byte. The
//! array is read twice at most, and memory is that of a few chunks.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::built_chunk::LevelChunk;
use super::image::Image;
use super::list::is_unreadable;
use super::nodes::{PyramidArray, ShownNode, recipe_of_level};
use super::view::PyramidStore;
use crate::array::{Array, ArrayError};
use crate::chunk::{ChunkAxis, ChunkCoords};
use crate::error::Classify;
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::metadata::ZarrFormat;
use crate::store::{ByteRange, SharedStore, Store, StoreError, ValueBody, ValueStream, WriteCondition};
use crate::views::error::{ViewError, to_store_error};
use crate::views::rechunk::{
    DerivedChunk, ListItem, NamedChunk, RechunkedArray, Rechunker, ShownElements, Walked, find_node,
};

/// Chunks that are written concurrently. The budget of the rechunker bounds their memory.
const CONCURRENCY: usize = 8;

/// A node that was written.
#[derive(Clone, Debug)]
pub struct WrittenNode {
    /// Its path.
    pub path: NodePath,
    /// The chunks that were written.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Why it is no image and was copied as it is stored, with all values below its path.
    pub copied_because: Option<String>,
}

/// Where a pyramid is written.
#[derive(Debug)]
pub struct PyramidTarget {
    /// What reads and encodes the arrays that were written.
    pub rechunker: Rechunker,
}

/// A pyramid that is being written.
struct Writing<'a, F> {
    view: &'a PyramidStore,
    target: &'a Rechunker,
    report: &'a F,
}

impl PyramidTarget {
    /// Writes all that a pyramid of the stored types shows into the target, and calls `report` after each array. What cannot be
    /// shown is copied as it is stored.
    ///
    /// # Errors
    /// Failures of the stores; a chunk of an image that cannot be decoded.
    pub async fn write<F: Fn(WrittenNode) + Sync>(
        &self,
        view: &PyramidStore,
        report: &F,
    ) -> Result<(), StoreError> {
        let view = &view.with_stored_types();
        Writing { view, target: &self.rechunker, report }.node(NodePath::root()).await
    }
}

impl<F: Fn(WrittenNode) + Sync> Writing<'_, F> {
    fn store(&self) -> &SharedStore {
        self.target.opener().hierarchy().store()
    }

    /// Writes the node at a path and all below it.
    fn node(&self, path: NodePath) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let found = match self.view.find(&path).await {
                Err(error) if is_unreadable(error.class()) => return self.copy(path, &error).await,
                found => found.map_err(to_store_error)?,
            };
            match found {
                Some(ShownNode::Array(array)) => {
                    if let Err(error) = self.check(&array) {
                        return self.copy(path, &error).await;
                    }
                    let written = self.array(array).await?;
                    (self.report)(written);
                    Ok(())
                }
                Some(ShownNode::Image(image)) => {
                    // Each level is read from the one before.
                    let levels: Vec<NodePath> =
                        (0..image.names.len()).filter_map(|level| image.level_path(level)).collect();
                    self.group(path.prefix(), &levels).await?;
                    // A stored level further below was written with its group.
                    for level in levels.into_iter().filter(|level| level.parent().as_ref() == Some(&path)) {
                        self.node(level).await?;
                    }
                    Ok(())
                }
                Some(ShownNode::Group(_)) | None => self.group(path.prefix(), &[]).await,
            }
        })
    }

    /// Whether an array that is shown on its own can be written as it is shown.
    fn check(&self, array: &PyramidArray) -> Result<(), ViewError> {
        if array.level.is_some() || array.as_stored == Some(ZarrFormat::V3) {
            return Ok(());
        }
        array.rechunked(self.view.pyramids(), &self.view.spec().recipe).map(|_| ())
    }

    /// Copies all values of a node that cannot be shown.
    async fn copy(&self, path: NodePath, reason: &ViewError) -> Result<(), StoreError> {
        let base = self.view.base_store();
        let copied = base.list_prefix(path.prefix(), None).map_ok(|entry| async move {
            let Some(value) = base.get(&entry.key, ByteRange::Whole, None).await? else { return Ok((0, 0)) };
            let is_document = matches!(entry.key.name(), "zarr.json" | ".zarray" | ".zattrs" | ".zgroup");
            self.store().set(&entry.key, value.into_exact_stream(), WriteCondition::Always).await?;
            Ok(if is_document { (0, 0) } else { (1, entry.info.size) })
        });
        let (chunks, bytes) = copied.try_buffer_unordered(CONCURRENCY).try_fold((0, 0), sum).await?;
        (self.report)(WrittenNode { path, chunks, bytes, copied_because: Some(reason.to_string()) });
        Ok(())
    }

    /// Writes what is directly below a prefix, and all nodes below that but these.
    async fn group(&self, prefix: &StorePrefix, later: &[NodePath]) -> Result<(), StoreError> {
        let mut items = self.view.children(prefix, "", &mut None).await?;
        while let Some(item) = items.try_next().await? {
            match item {
                ListItem::Stored(entry) => self.value(&entry.key).await?,
                ListItem::Generated(key) => self.value(&key).await?,
                ListItem::Prefix(prefix) => {
                    let path = NodePath::parse(prefix.as_str()).map_err(|_invalid| StoreError::KeyClash)?;
                    if !later.contains(&path) {
                        self.node(path).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes one value of the view, if it exists.
    async fn value(&self, key: &StoreKey) -> Result<(), StoreError> {
        let Some(value) = self.view.get(key, ByteRange::Whole, None).await? else { return Ok(()) };
        self.store().set(key, value.into_exact_stream(), WriteCondition::Always).await.map(|_| ())
    }

    /// Writes the document and the chunks of an array.
    async fn array(&self, array: PyramidArray) -> Result<WrittenNode, StoreError> {
        let path = array.path.clone();
        let document = path.prefix().key("zarr.json").map_err(|_too_long| StoreError::KeyClash)?;
        self.value(&document).await?;
        let level = array.level.clone().filter(|(_, level)| *level > 0);
        let (chunks, bytes) = match level {
            None if array.as_stored == Some(ZarrFormat::V3) => self.copied(path.prefix()).await?,
            None => self.encoded(array).await?,
            Some((image, level)) => self.level(&image, level).await.map_err(to_store_error)?,
        };
        Ok(WrittenNode { path, chunks, bytes, copied_because: None })
    }

    /// Copies the chunks of an array that are shown as they are stored.
    async fn copied(&self, prefix: &StorePrefix) -> Result<(u64, u64), StoreError> {
        let entries = self.view.list_prefix(prefix, None);
        let chunks = entries.try_filter(|entry| std::future::ready(entry.key.name() != "zarr.json"));
        let copied = chunks.map_ok(|entry| async move {
            self.value(&entry.key).await?;
            Ok((1, entry.info.size))
        });
        copied.try_buffer_unordered(CONCURRENCY).try_fold((0, 0), sum).await
    }

    /// Writes the chunks of an array that is encoded by the recipe.
    async fn encoded(&self, array: PyramidArray) -> Result<(u64, u64), StoreError> {
        let view = self.view;
        let rechunked = array.rechunked(view.pyramids(), &view.spec().recipe).map_err(to_store_error)?;
        let array = &array;
        let chunk = |coords: ChunkCoords| async move {
            let again = PyramidArray {
                path: array.path.clone(),
                source: Arc::clone(&array.source),
                stored_at: array.stored_at.clone(),
                level: array.level.clone(),
                as_stored: array.as_stored,
            };
            match view.chunks().chunk(again, coords)? {
                LevelChunk::Derived(chunk) => chunk.get_or_encode(&view.pyramids().rechunker).await,
                _ => Ok(None),
            }
        };
        self.all_chunks(&array.path, rechunked.grid(), chunk).await
    }

    /// Writes the chunks of a level, made from the level before.
    async fn level(&self, image: &Arc<Image>, level: usize) -> Result<(u64, u64), ViewError> {
        let finer = image.level_path(level - 1).ok_or(ArrayError::Geometry)?;
        let opened =
            find_node(self.target.opener(), &finer, Instant::now()).await?.ok_or(ArrayError::Geometry)?;
        let array = Arc::clone(opened.array()?);
        let path = image.level_path(level).ok_or(ArrayError::Geometry)?;
        let step = image.levels.steps.get(level - 1).cloned().unwrap_or_default();
        let shown =
            ShownElements { metadata: image.shown(level)?.metadata, reduction: image.reduction(vec![step])? };
        let recipe = recipe_of_level(&self.view.spec().recipe.to_string(), image, level);
        let grid = self.rechunked(&path, &array, &shown)?.grid().to_vec();
        let (path, array, shown, recipe, opened) = (&path, &array, &shown, &recipe, &opened);
        let chunk = |coords: ChunkCoords| async move {
            let rechunked = self.rechunked(path, array, shown)?;
            let named = NamedChunk { path: path.clone(), opened: Arc::clone(opened), coords };
            match DerivedChunk::new(self.target, Arc::clone(recipe), rechunked, named)? {
                Some(chunk) => Arc::new(chunk).get_or_encode(self.target).await,
                None => Ok(None),
            }
        };
        self.all_chunks(path, &grid, chunk).await.map_err(ViewError::Store)
    }

    fn rechunked(
        &self,
        path: &NodePath,
        array: &Arc<Array>,
        shown: &ShownElements,
    ) -> Result<RechunkedArray, ViewError> {
        let limits = self.target.limits().codec();
        RechunkedArray::showing(array, Some(shown.clone()), &self.view.spec().recipe, &limits)
            .map_err(|source| ViewError::Rechunk { path: path.clone(), source })
    }

    /// Writes every chunk of a grid that `make` makes.
    async fn all_chunks<
        M: Future<Output = Result<Option<(Bytes, crate::store::ValueInfo)>, ViewError>> + Send,
    >(
        &self,
        path: &NodePath,
        grid: &[ChunkAxis],
        make: impl Fn(ChunkCoords) -> M + Sync,
    ) -> Result<(u64, u64), StoreError> {
        let make = &make;
        let written = stream::iter(places(grid)).map(|coords| async move {
            let numbers = coords.iter().fold("c".to_owned(), |key, number| format!("{key}/{number}"));
            let key = path.prefix().key(&numbers).map_err(|_too_long| StoreError::KeyClash)?;
            let Some((bytes, _)) = make(coords).await.map_err(to_store_error)? else { return Ok((0, 0)) };
            let size = bytes.len() as u64;
            let body: ValueStream = ValueBody::Bytes(bytes).into_stream().boxed();
            self.store().set(&key, body, WriteCondition::Always).await?;
            Ok((1, size))
        });
        written.buffer_unordered(CONCURRENCY).try_fold((0, 0), sum).await
    }
}

async fn sum(all: (u64, u64), one: (u64, u64)) -> Result<(u64, u64), StoreError> {
    Ok((all.0 + one.0, all.1 + one.1))
}

/// The coordinates of all chunks of a grid, in C order.
fn places(grid: &[ChunkAxis]) -> impl Iterator<Item = ChunkCoords> + Send + use<> {
    let counts: Vec<u64> = grid.iter().map(ChunkAxis::chunks).collect();
    let mut next = (!counts.contains(&0)).then(|| vec![0_u64; counts.len()]);
    std::iter::from_fn(move || {
        let current = next.take()?;
        let mut following = current.clone();
        for (place, &count) in following.iter_mut().zip(&counts).rev() {
            *place += 1;
            if *place < count {
                next = Some(following);
                break;
            }
            *place = 0;
        }
        Some(current)
    })
}

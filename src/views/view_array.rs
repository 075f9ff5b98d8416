//! [`ViewArray`]: an array whose chunks a view shows under other keys than they are stored under, or in parts.
//!
//! The chunks of an array that another declares stand below that one's path, and are shown below its own.

use std::ops::Range;
use std::sync::Arc;

use super::geometry::{Geometry, Place};
use super::kind::ViewKind;
use super::{plain, unshard};
use crate::array::{Array, ArrayError, ChunkSource, ReadContext, StoredValue};
use crate::chunk::{ChunkCoords, ChunkGrid, ChunkKeyEncoding};
use crate::codec::CodecChain;
use crate::codec::sharding_indexed::ShardIndex;
use crate::key::{NodePath, StorePrefix};
use crate::metadata::{ArrayMetadata, ChunkKeyEncodingMetadata, Separator, ZarrFormat};

/// How the chunks of an array are shown.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The shown keys.
    keys: ChunkKeyEncoding,
    /// What their encoding is.
    encoding: ChunkKeyEncodingMetadata,
    is_rebased: bool,
    geometry: Geometry,
}

impl Shape {
    /// How a view shows the chunks of an array; `None` if it shows them as they are stored.
    pub(crate) fn of(
        kind: ViewKind,
        metadata: &ArrayMetadata,
        grid: &ChunkGrid,
        chain: &CodecChain,
    ) -> Option<Self> {
        if metadata.zarr_format != ZarrFormat::V3 {
            return None;
        }
        let is_rebased = plain::is_rebased(&metadata.chunk_key_encoding);
        let unsharded = match kind {
            ViewKind::Plain => None,
            ViewKind::Unshard => Geometry::unsharded(grid, chain),
        };
        if !is_rebased && unsharded.is_none() {
            return None;
        }
        let geometry = unsharded.unwrap_or_else(|| Geometry::whole(grid));
        Some(if is_rebased {
            Self::rebased(geometry)
        } else {
            Self::with_keys(&metadata.chunk_key_encoding, geometry)
        })
    }

    /// How a view shows the chunks of an array that another declares: below its own path, with keys of the default
    /// encoding.
    pub(crate) fn of_declared(kind: ViewKind, grid: &ChunkGrid, chain: &CodecChain) -> Self {
        let unsharded = match kind {
            ViewKind::Plain => None,
            ViewKind::Unshard => Geometry::unsharded(grid, chain),
        };
        Self::rebased(unsharded.unwrap_or_else(|| Geometry::whole(grid)))
    }

    fn with_keys(encoding: &ChunkKeyEncodingMetadata, geometry: Geometry) -> Self {
        let (keys, encoding) = (ChunkKeyEncoding::new(encoding.clone()), encoding.clone());
        Self { keys, encoding, is_rebased: false, geometry }
    }

    fn rebased(geometry: Geometry) -> Self {
        let encoding = ChunkKeyEncodingMetadata::Default(Separator::Slash);
        Self { keys: ChunkKeyEncoding::canonical(), encoding, is_rebased: true, geometry }
    }

    /// Changes the array's document to what is shown. Returns whether anything changed.
    pub(crate) fn apply(&self, document: &mut serde_json::Map<String, serde_json::Value>) -> bool {
        if self.is_rebased {
            plain::rebase(document);
        }
        unshard::unshard(document, &self.geometry) || self.is_rebased
    }
}

/// An array, and how its chunks are shown.
#[derive(Debug)]
pub(crate) struct ViewArray {
    path: NodePath,
    array: Arc<Array>,
    shape: Arc<Shape>,
}

/// Which stored keys may be shown below a prefix.
pub(crate) enum Scope {
    /// Those of stored chunks below this prefix, and whatever else is there.
    Chunks(StorePrefix),
    /// Nothing but what is no chunk.
    Others,
}

impl ViewArray {
    /// The array at a path; `None` if its chunks are shown as they are stored.
    pub(crate) fn for_node(kind: ViewKind, path: NodePath, array: &Arc<Array>) -> Option<Self> {
        let shape = Arc::new(Shape::of(kind, array.metadata(), array.grid(), array.first_chain())?);
        Some(Self { path, array: Arc::clone(array), shape })
    }

    /// The array at a path, whose chunks are shown as they are stored.
    pub(crate) fn unchanged(path: NodePath, array: &Arc<Array>) -> Self {
        let shape = Shape::with_keys(&array.metadata().chunk_key_encoding, Geometry::whole(array.grid()));
        Self { path, array: Arc::clone(array), shape: Arc::new(shape) }
    }

    /// An array that another declares at a path.
    pub(crate) fn of_declared(kind: ViewKind, path: NodePath, array: &Arc<Array>) -> Self {
        let shape = Shape::of_declared(kind, array.grid(), array.first_chain());
        Self { path, array: Arc::clone(array), shape: Arc::new(shape) }
    }

    /// How its chunks are shown.
    pub(crate) fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// The path that it is shown at.
    pub(crate) fn path(&self) -> &NodePath {
        &self.path
    }

    /// The array.
    pub(crate) fn array(&self) -> &Arc<Array> {
        &self.array
    }

    /// Where shown chunks lie.
    pub(crate) fn geometry(&self) -> &Geometry {
        &self.shape.geometry
    }

    /// The key of a shown chunk.
    pub(crate) fn key(&self, coords: &[u64]) -> String {
        format!("{}{}", self.path.prefix(), self.shape.keys.encode(coords))
    }

    /// What the keys of all chunks whose first coordinates are these begin with: at least one, and not all of them.
    pub(crate) fn key_start(&self, coords: &[u64]) -> String {
        let mut start = self.key(coords);
        start.push(match &self.shape.encoding {
            ChunkKeyEncodingMetadata::Default(separator) | ChunkKeyEncodingMetadata::V2(separator) => {
                separator.as_char()
            }
            ChunkKeyEncodingMetadata::V2Unspecified => Separator::Dot.as_char(),
            // Shown as `default` with this separator.
            ChunkKeyEncodingMetadata::Extended(_) => Separator::Slash.as_char(),
        });
        start
    }

    /// The coordinates that a key would have as that of a shown chunk.
    pub(crate) fn decode(&self, key: &str) -> Option<ChunkCoords> {
        self.shape.keys.decode(self.below(key)?, self.geometry().rank())
    }

    /// The coordinates of the stored chunk that a stored key is of.
    pub(crate) fn decode_stored(&self, key: &str) -> Option<ChunkCoords> {
        self.array.chunk_coords(key.strip_prefix(self.array.path().prefix().as_str())?)
    }

    /// The longest prefix that the keys of all stored chunks begin with.
    pub(crate) fn stored_prefix(&self) -> StorePrefix {
        let root = self.array.path().prefix();
        let folder = match &self.array.metadata().chunk_key_encoding {
            ChunkKeyEncodingMetadata::Extended(keys) => {
                keys.before.rsplit_once('/').map(|(folder, _)| folder)
            }
            ChunkKeyEncodingMetadata::Default(_)
            | ChunkKeyEncodingMetadata::V2(_)
            | ChunkKeyEncodingMetadata::V2Unspecified => None,
        };
        folder.and_then(|folder| root.join(folder).ok()).unwrap_or_else(|| root.clone())
    }

    /// A key or prefix without the array's prefix.
    fn below<'k>(&self, key: &'k str) -> Option<&'k str> {
        key.strip_prefix(self.path.prefix().as_str())
    }

    /// Where what is shown below a prefix is stored: as little as the keys let it be.
    pub(crate) fn scope(&self, prefix: &StorePrefix) -> Scope {
        let Some(below) = self.below(prefix.as_str()).and_then(|below| below.strip_suffix('/')) else {
            return Scope::Chunks(self.stored_prefix());
        };
        let all_chunks = || Scope::Chunks(self.stored_prefix());
        let numbers = match &self.shape.encoding {
            ChunkKeyEncodingMetadata::Default(Separator::Slash) => match below.strip_prefix('c') {
                Some("") => "",
                Some(rest) => match rest.strip_prefix('/') {
                    Some(numbers) => numbers,
                    None => return Scope::Others,
                },
                None => return Scope::Others,
            },
            ChunkKeyEncodingMetadata::V2(Separator::Slash) => below,
            // Their keys have no prefixes.
            ChunkKeyEncodingMetadata::Default(Separator::Dot)
            | ChunkKeyEncodingMetadata::V2(Separator::Dot)
            | ChunkKeyEncodingMetadata::V2Unspecified
            | ChunkKeyEncodingMetadata::Extended(_) => return Scope::Others,
        };
        let rank = self.geometry().rank();
        let shown: Vec<&str> = numbers.split('/').filter(|number| !number.is_empty()).collect();
        // With as many coordinates as there are, it is a chunk's key, and nothing is below.
        let start = ChunkKeyEncoding::new(ChunkKeyEncodingMetadata::V2(Separator::Slash));
        let Some(shown) = start.decode(numbers, shown.len()).filter(|shown| shown.len() < rank) else {
            return if numbers.is_empty() && rank > 0 { all_chunks() } else { Scope::Others };
        };
        if self.shape.is_rebased {
            return all_chunks();
        }
        let stored: Vec<u64> =
            shown.iter().enumerate().map(|(dim, &number)| self.geometry().stored(dim, number)).collect();
        StorePrefix::parse(&self.key_start(&stored)).map_or_else(|_| all_chunks(), Scope::Chunks)
    }

    /// The codecs of a stored chunk.
    pub(crate) fn chain(&self, stored: &[u64]) -> Result<Arc<CodecChain>, ArrayError> {
        self.array.chain_of(stored, &self.array.grid().shape_of(stored))
    }

    /// Where an inner chunk stands in a stored value, by its number in the index of each shard that it is in, of which
    /// the first may be at hand; `None` if it is absent.
    pub(crate) async fn part(
        &self,
        source: &dyn ChunkSource,
        value: &Arc<StoredValue>,
        index: Option<Arc<ShardIndex>>,
        place: &Place,
        trace: &Arc<ReadContext>,
    ) -> Result<Option<Range<u64>>, ArrayError> {
        let (mut range, mut index) = (0..value.info.size, index);
        let mut chain = self.chain(&place.stored)?;
        for &number in &place.numbers {
            let found = match index.take() {
                Some(index) => index,
                None => source.shard_index(value, &chain, range.clone(), trace).await?,
            };
            let Some(inner) = found.get(number) else { return Ok(None) };
            // Checked to lie inside the shard when the index was decoded.
            range = range.start + inner.start..range.start + inner.end;
            let Some(sharding) = chain.sharding() else { return Err(ArrayError::Geometry) };
            let inner_chain = Arc::clone(sharding.inner_chain());
            chain = inner_chain;
        }
        Ok(Some(range))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::views::test_arrays::shown;

    #[test]
    fn rebased_keys_are_those_of_the_default_encoding() {
        let shown = shown(&[8, 8], &[4, 4], None, ("v2", "."), true);
        assert_eq!(shown.key(&[1, 0]), "a/c/1/0");
        assert_eq!((shown.decode("a/c/1/0"), shown.decode("a/1.0")), (Some(vec![1, 0]), None));
        assert_eq!(shown.decode_stored("a/1.0"), Some(vec![1, 0]));
        let place = shown.geometry().place(&[1, 0]).unwrap();
        assert_eq!(shown.array().stored_key(&place.stored).unwrap().key.as_str(), "a/1.0");
        let mut document = serde_json::Map::new();
        assert!(shown.shape.apply(&mut document));
        let encoding = json!({"name": "default", "configuration": {"separator": "/"}});
        assert_eq!(document.get("chunk_key_encoding"), Some(&encoding));
    }

    #[test]
    fn no_more_is_listed_than_may_be_shown_below_a_prefix() {
        let slashes = shown(&[8, 64], &[4, 16], Some(&[2, 2]), ("default", "/"), false);
        let bare = shown(&[8, 64], &[4, 16], Some(&[2, 2]), ("v2", "/"), false);
        let dots = shown(&[8, 64], &[4, 16], Some(&[2, 2]), ("default", "."), false);
        let rebased = shown(&[8, 64], &[4, 16], Some(&[2, 2]), ("v2", "."), true);
        for (shown, prefix, chunks) in [
            (&slashes, "a/", Some("a/")),
            (&slashes, "a/c/", Some("a/")),
            (&slashes, "a/c/3/", Some("a/c/1/")),
            (&slashes, "a/c/3/5/", None),
            (&slashes, "a/c/03/", None),
            (&slashes, "a/d/", None),
            (&slashes, "a/cd/", None),
            (&bare, "a/3/", Some("a/1/")),
            (&bare, "a/c/", None),
            (&dots, "a/", Some("a/")),
            (&dots, "a/c/", None),
            (&rebased, "a/c/3/", Some("a/")),
        ] {
            let scope = shown.scope(&StorePrefix::parse(prefix).unwrap());
            let (listed, with_chunks) = match scope {
                Scope::Chunks(listed) => (listed, true),
                Scope::Others => (StorePrefix::root(), false),
            };
            assert_eq!(
                (listed.as_str(), with_chunks),
                (chunks.unwrap_or_default(), chunks.is_some()),
                "{prefix}"
            );
        }
    }
}

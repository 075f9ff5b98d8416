//! [`ViewArray`]: an array whose chunks a view shows under other keys, or in parts.
//!
//! The chunks of a declared array are stored below the path of the primary array, and shown below its own path.

use std::ops::Range;
use std::sync::Arc;

use super::geometry::{ChunkGeometry, StoredLocation};
use super::kind::ViewKind;
use super::{plain, unshard};
use crate::array::{Array, ArrayError, ChunkSource, ReadContext, StoredValue};
use crate::chunk::{ChunkCoords, ChunkGrid, ChunkKeyEncoding};
use crate::codec::{CodecChain, ShardIndex};
use crate::key::{NodePath, StorePrefix};
use crate::metadata::{ArrayMetadata, ChunkKeyEncodingMetadata, Separator, ZarrFormat};

/// The mapping of the view chunks of an array to its stored chunks.
#[derive(Debug)]
pub(crate) struct ChunkMapping {
    /// Encodes the keys of view chunks.
    keys: ChunkKeyEncoding,
    /// Their encoding.
    encoding: ChunkKeyEncodingMetadata,
    is_rebased: bool,
    geometry: ChunkGeometry,
}

impl ChunkMapping {
    /// The mapping of an array; `None` if the view leaves its chunks unchanged.
    pub(crate) fn for_array(
        kind: ViewKind,
        metadata: &ArrayMetadata,
        grid: &ChunkGrid,
        chain: &CodecChain,
    ) -> Option<Self> {
        if metadata.zarr_format != ZarrFormat::V3 {
            return None;
        }
        let is_rebased = plain::needs_default_encoding(&metadata.chunk_key_encoding);
        let unsharded = match kind {
            ViewKind::Plain => None,
            ViewKind::Unshard => ChunkGeometry::unsharded(grid, chain),
        };
        if !is_rebased && unsharded.is_none() {
            return None;
        }
        let geometry = unsharded.unwrap_or_else(|| ChunkGeometry::identity(grid));
        Some(if is_rebased {
            Self::rebased(geometry)
        } else {
            Self::with_keys(&metadata.chunk_key_encoding, geometry)
        })
    }

    /// The mapping of a declared array: its chunks are below its own path, with keys of the default encoding.
    pub(crate) fn for_declared(kind: ViewKind, grid: &ChunkGrid, chain: &CodecChain) -> Self {
        let unsharded = match kind {
            ViewKind::Plain => None,
            ViewKind::Unshard => ChunkGeometry::unsharded(grid, chain),
        };
        Self::rebased(unsharded.unwrap_or_else(|| ChunkGeometry::identity(grid)))
    }

    fn with_keys(encoding: &ChunkKeyEncodingMetadata, geometry: ChunkGeometry) -> Self {
        let (keys, encoding) = (ChunkKeyEncoding::new(encoding.clone()), encoding.clone());
        Self { keys, encoding, is_rebased: false, geometry }
    }

    fn rebased(geometry: ChunkGeometry) -> Self {
        let encoding = ChunkKeyEncodingMetadata::Default(Separator::Slash);
        Self { keys: ChunkKeyEncoding::canonical(), encoding, is_rebased: true, geometry }
    }

    /// Rewrites the array's document for the view. Returns whether anything changed.
    pub(crate) fn apply(&self, document: &mut serde_json::Map<String, serde_json::Value>) -> bool {
        if self.is_rebased {
            plain::set_default_encoding(document);
        }
        unshard::unshard(document, &self.geometry) || self.is_rebased
    }
}

/// An array with the mapping of its chunks.
#[derive(Debug)]
pub(crate) struct ViewArray {
    path: NodePath,
    array: Arc<Array>,
    mapping: Arc<ChunkMapping>,
}

/// The stored keys that a listing below a prefix needs.
pub(crate) enum ListingScope {
    /// The stored chunks below this prefix, and other keys.
    Chunks(StorePrefix),
    /// Other keys only.
    Others,
}

impl ViewArray {
    /// The array at a path; `None` if the view leaves its chunks unchanged.
    pub(crate) fn for_node(kind: ViewKind, path: NodePath, array: &Arc<Array>) -> Option<Self> {
        let shape =
            Arc::new(ChunkMapping::for_array(kind, array.metadata(), array.grid(), array.first_chain())?);
        Some(Self { path, array: Arc::clone(array), mapping: shape })
    }

    /// The array at a path, with unchanged chunks.
    pub(crate) fn unchanged(path: NodePath, array: &Arc<Array>) -> Self {
        let shape = ChunkMapping::with_keys(
            &array.metadata().chunk_key_encoding,
            ChunkGeometry::identity(array.grid()),
        );
        Self { path, array: Arc::clone(array), mapping: Arc::new(shape) }
    }

    /// An array that another declares at this path.
    pub(crate) fn for_declared(kind: ViewKind, path: NodePath, array: &Arc<Array>) -> Self {
        let shape = ChunkMapping::for_declared(kind, array.grid(), array.first_chain());
        Self { path, array: Arc::clone(array), mapping: Arc::new(shape) }
    }

    /// The mapping of its chunks.
    pub(crate) fn mapping(&self) -> &Arc<ChunkMapping> {
        &self.mapping
    }

    /// The path in the view.
    pub(crate) fn path(&self) -> &NodePath {
        &self.path
    }

    /// The array.
    pub(crate) fn array(&self) -> &Arc<Array> {
        &self.array
    }

    /// The location of view chunks.
    pub(crate) fn geometry(&self) -> &ChunkGeometry {
        &self.mapping.geometry
    }

    /// The key of a view chunk.
    pub(crate) fn key(&self, coords: &[u64]) -> String {
        format!("{}{}", self.path.prefix(), self.mapping.keys.encode(coords))
    }

    /// The common beginning of the keys of all chunks with these first coordinates: at least one coordinate, and fewer
    /// than the rank.
    pub(crate) fn key_start(&self, coords: &[u64]) -> String {
        let mut start = self.key(coords);
        start.push(match &self.mapping.encoding {
            ChunkKeyEncodingMetadata::Default(separator) | ChunkKeyEncodingMetadata::V2(separator) => {
                separator.as_char()
            }
            ChunkKeyEncodingMetadata::V2Unspecified => Separator::Dot.as_char(),
            // Shown as `default` with this separator.
            ChunkKeyEncodingMetadata::Extended(_) => Separator::Slash.as_char(),
        });
        start
    }

    /// The coordinates of the view chunk with this key.
    pub(crate) fn decode_key(&self, key: &str) -> Option<ChunkCoords> {
        self.mapping.keys.decode(self.strip_path(key)?, self.geometry().rank())
    }

    /// The coordinates of the stored chunk with this key.
    pub(crate) fn decode_stored(&self, key: &str) -> Option<ChunkCoords> {
        self.array.chunk_coords(key.strip_prefix(self.array.path().prefix().as_str())?)
    }

    /// The longest common prefix of the keys of stored chunks.
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

    /// A key or prefix without that of the array.
    fn strip_path<'k>(&self, key: &'k str) -> Option<&'k str> {
        key.strip_prefix(self.path.prefix().as_str())
    }

    /// The narrowest prefix of the stored keys that may be shown below a prefix.
    pub(crate) fn listing_scope(&self, prefix: &StorePrefix) -> ListingScope {
        let Some(below) = self.strip_path(prefix.as_str()).and_then(|below| below.strip_suffix('/')) else {
            return ListingScope::Chunks(self.stored_prefix());
        };
        let all_chunks = || ListingScope::Chunks(self.stored_prefix());
        let numbers = match &self.mapping.encoding {
            ChunkKeyEncodingMetadata::Default(Separator::Slash) => match below.strip_prefix('c') {
                Some("") => "",
                Some(rest) => match rest.strip_prefix('/') {
                    Some(numbers) => numbers,
                    None => return ListingScope::Others,
                },
                None => return ListingScope::Others,
            },
            ChunkKeyEncodingMetadata::V2(Separator::Slash) => below,
            // Their keys contain no slash.
            ChunkKeyEncodingMetadata::Default(Separator::Dot)
            | ChunkKeyEncodingMetadata::V2(Separator::Dot)
            | ChunkKeyEncodingMetadata::V2Unspecified
            | ChunkKeyEncodingMetadata::Extended(_) => return ListingScope::Others,
        };
        let rank = self.geometry().rank();
        let coords: Vec<&str> = numbers.split('/').filter(|number| !number.is_empty()).collect();
        // With as many coordinates as the rank it is the key of a chunk, and nothing is below.
        let start = ChunkKeyEncoding::new(ChunkKeyEncodingMetadata::V2(Separator::Slash));
        let Some(coords) = start.decode(numbers, coords.len()).filter(|coords| coords.len() < rank) else {
            return if numbers.is_empty() && rank > 0 { all_chunks() } else { ListingScope::Others };
        };
        if self.mapping.is_rebased {
            return all_chunks();
        }
        let stored: Vec<u64> = coords
            .iter()
            .enumerate()
            .map(|(dim, &number)| self.geometry().stored_coord(dim, number))
            .collect();
        StorePrefix::parse(&self.key_start(&stored)).map_or_else(|_| all_chunks(), ListingScope::Chunks)
    }

    /// The codecs of a stored chunk.
    pub(crate) fn chain(&self, stored: &[u64]) -> Result<Arc<CodecChain>, ArrayError> {
        self.array.chain_for(stored, &self.array.grid().chunk_shape_at(stored))
    }

    /// The byte range of a view chunk in a stored value; `None` if it is absent. `index` is that of the outermost
    /// shard, if it is in memory already.
    pub(crate) async fn byte_range(
        &self,
        source: &dyn ChunkSource,
        value: &Arc<StoredValue>,
        index: Option<Arc<ShardIndex>>,
        location: &StoredLocation,
        trace: &Arc<ReadContext>,
    ) -> Result<Option<Range<u64>>, ArrayError> {
        let (mut range, mut index) = (0..value.info.size, index);
        let mut chain = self.chain(&location.stored)?;
        for &number in &location.index_positions {
            let found = match index.take() {
                Some(index) => index,
                None => source.shard_index(value, &chain, range.clone(), trace).await?,
            };
            let Some(inner) = found.get(number) else { return Ok(None) };
            // The index decoder has checked that it lies inside the shard.
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
    use crate::views::test_arrays::view_array;

    #[test]
    fn rebased_keys_have_the_default_encoding() {
        let array = view_array(&[8, 8], &[4, 4], None, ("v2", "."), true);
        assert_eq!(array.key(&[1, 0]), "a/c/1/0");
        assert_eq!((array.decode_key("a/c/1/0"), array.decode_key("a/1.0")), (Some(vec![1, 0]), None));
        assert_eq!(array.decode_stored("a/1.0"), Some(vec![1, 0]));
        let location = array.geometry().locate(&[1, 0]).unwrap();
        assert_eq!(array.array().stored_key(&location.stored).unwrap().key.as_str(), "a/1.0");
        let mut document = serde_json::Map::new();
        assert!(array.mapping.apply(&mut document));
        let encoding = json!({"name": "default", "configuration": {"separator": "/"}});
        assert_eq!(document.get("chunk_key_encoding"), Some(&encoding));
    }

    #[test]
    fn lists_only_stored_keys_that_may_be_shown_below_a_prefix() {
        let slashes = view_array(&[8, 64], &[4, 16], Some(&[2, 2]), ("default", "/"), false);
        let bare = view_array(&[8, 64], &[4, 16], Some(&[2, 2]), ("v2", "/"), false);
        let dots = view_array(&[8, 64], &[4, 16], Some(&[2, 2]), ("default", "."), false);
        let rebased = view_array(&[8, 64], &[4, 16], Some(&[2, 2]), ("v2", "."), true);
        for (array, prefix, chunks) in [
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
            let scope = array.listing_scope(&StorePrefix::parse(prefix).unwrap());
            let (listed, with_chunks) = match scope {
                ListingScope::Chunks(listed) => (listed, true),
                ListingScope::Others => (StorePrefix::root(), false),
            };
            assert_eq!(
                (listed.as_str(), with_chunks),
                (chunks.unwrap_or_default(), chunks.is_some()),
                "{prefix}"
            );
        }
    }
}

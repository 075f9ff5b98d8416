//! [`ChunkGeometry`]: the location of view chunks in stored chunks.
//!
//! All inner chunks have one shape and fill their shards. Over the whole array they are a regular grid, even where
//! shards differ in shape. Coordinates count chunks; elements are not touched.

use crate::chunk::{ChunkAxis, ChunkCoords, ChunkGrid};
use crate::codec::CodecChain;
use crate::codec::Sharded;

/// The location of view chunks in stored chunks.
#[derive(Debug)]
pub(super) struct ChunkGeometry {
    /// View chunks along each dimension that contain elements of the array.
    chunk_counts: Vec<u64>,
    /// The grid of stored chunks.
    stored_axes: Vec<ChunkAxis>,
    /// The shape of a view chunk, if it differs from that of a stored one.
    inner_shape: Option<Vec<u64>>,
    /// The shards around view chunks, from the outermost inwards.
    shards: Vec<ShardLevel>,
}

/// Shards of one depth.
#[derive(Debug)]
struct ShardLevel {
    /// For each dimension of the shard, the dimension of the enclosing array or shard.
    order: Vec<usize>,
    /// View chunks in one of its inner chunks, along each of its dimensions.
    units: Vec<u64>,
}

/// The location of one view chunk.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StoredLocation {
    /// The stored chunk.
    pub(super) stored: ChunkCoords,
    /// For each shard around the chunk, from the outermost inwards, its position in the index.
    pub(super) index_positions: Vec<usize>,
}

impl ChunkGeometry {
    /// Stored chunks, unchanged.
    pub(super) fn identity(grid: &ChunkGrid) -> Self {
        let (chunk_counts, stored_axes) = (grid.grid_shape(), grid.axes().to_vec());
        Self { chunk_counts, stored_axes, inner_shape: None, shards: Vec::new() }
    }

    /// The innermost inner chunks of shards; `None` if there are no shards, or they cannot be read in parts.
    pub(super) fn unsharded(grid: &ChunkGrid, chain: &CodecChain) -> Option<Self> {
        let mut inner_shape = grid.first_chunk_shape();
        // For each dimension of the current shard, that of the array.
        let mut dims: Vec<usize> = (0..inner_shape.len()).collect();
        let (mut shards, mut chain) = (Vec::new(), chain);
        while let Some(sharding) = chain.sharding() {
            dims = sharding.order().iter().filter_map(|&dim| dims.get(dim).copied()).collect();
            for (&dim, &edge) in dims.iter().zip(sharding.inner_shape()) {
                *inner_shape.get_mut(dim)? = edge;
            }
            shards.push((sharding, dims.clone()));
            chain = sharding.inner_chain();
        }
        let outermost = shards.first()?;
        let first_dims = outermost.1.iter().zip(outermost.0.inner_shape());
        let mut first_dims = first_dims.map(|(&dim, &edge)| Some(grid.axes().get(dim)?.is_tiled_by(edge)));
        // Of later shards of other shapes it is not known yet whether inner chunks fill them.
        if !first_dims.all(|is_filled| is_filled == Some(true)) {
            return None;
        }
        let shard = |(sharding, dims): (&dyn Sharded, Vec<usize>)| {
            let units = dims.iter().zip(sharding.inner_shape());
            let units = units.map(|(&dim, &edge)| Some(ratio(edge, *inner_shape.get(dim)?)));
            Some(ShardLevel { order: sharding.order().to_vec(), units: units.collect::<Option<_>>()? })
        };
        let shards = shards.into_iter().map(shard).collect::<Option<_>>()?;
        let edges = inner_shape.iter().zip(grid.axes());
        let chunk_counts = edges.map(|(&edge, axis)| ChunkAxis::new(axis.length(), edge).chunks()).collect();
        Some(Self { chunk_counts, stored_axes: grid.axes().to_vec(), inner_shape: Some(inner_shape), shards })
    }

    /// The shape of a view chunk in the array's dimensions, if it differs from that of a stored one.
    pub(super) fn inner_shape(&self) -> Option<&[u64]> {
        self.inner_shape.as_deref()
    }

    /// How many nested shards enclose a view chunk.
    pub(super) fn depth(&self) -> usize {
        self.shards.len()
    }

    /// Dimensions of the array.
    pub(super) fn rank(&self) -> usize {
        self.chunk_counts.len()
    }

    /// View chunks along a dimension.
    pub(super) fn chunk_count(&self, dim: usize) -> u64 {
        self.chunk_counts.get(dim).copied().unwrap_or_default()
    }

    /// The coordinate of the stored chunk that contains view chunks of this coordinate, along one dimension.
    pub(super) fn stored_coord(&self, dim: usize, shown: u64) -> u64 {
        self.locate_along(dim, shown).map_or(shown, |within| within.stored)
    }

    /// The location of view chunks of this coordinate along one dimension; `None` if they are stored chunks.
    fn locate_along(&self, dim: usize, shown: u64) -> Option<AxisLocation> {
        let edge = (*self.inner_shape.as_ref()?.get(dim)?).max(1);
        let axis = self.stored_axes.get(dim)?;
        let chunk = axis.chunk_containing(shown.saturating_mul(edge));
        let offset = shown.saturating_sub(chunk.start / edge);
        Some(AxisLocation { stored: chunk.coord, offset, count: ratio(chunk.edge, edge) })
    }

    /// The location of a view chunk; `None` outside the array.
    pub(super) fn locate(&self, coords: &[u64]) -> Option<StoredLocation> {
        let is_within = coords.len() == self.rank()
            && coords.iter().zip(&self.chunk_counts).all(|(coord, shown)| coord < shown);
        if !is_within {
            return None;
        }
        if self.shards.is_empty() {
            return Some(StoredLocation { stored: coords.to_vec(), index_positions: Vec::new() });
        }
        let within = coords.iter().enumerate().map(|(dim, &coord)| self.locate_along(dim, coord));
        let within = within.collect::<Option<Vec<_>>>()?;
        let stored = within.iter().map(|within| within.stored).collect();
        // The offset of the chunk in the current shard, and the number of chunks along each dimension.
        let mut offsets: Vec<(u64, u64)> =
            within.iter().map(|within| (within.offset, within.count)).collect();
        let mut index_positions = Vec::with_capacity(self.shards.len());
        for ShardLevel { order, units } in &self.shards {
            offsets = order.iter().map(|&dim| offsets.get(dim).copied()).collect::<Option<_>>()?;
            let mut along =
                offsets.iter().zip(units).map(|(&(offset, count), &unit)| (offset / unit, count / unit));
            let number = along
                .try_fold(0_u64, |number, (offset, count)| number.checked_mul(count)?.checked_add(offset))?;
            index_positions.push(usize::try_from(number).ok()?);
            for ((offset, count), &unit) in offsets.iter_mut().zip(units) {
                *offset %= unit;
                *count = unit;
            }
        }
        Some(StoredLocation { stored, index_positions })
    }
}

/// The location of a view chunk along one dimension.
struct AxisLocation {
    /// The coordinate of the stored chunk.
    stored: u64,
    /// View chunks before it in the stored chunk.
    offset: u64,
    /// View chunks in the stored chunk.
    count: u64,
}

/// How many inner edges fit an outer one. Either may be 0 where the array is empty.
fn ratio(outer: u64, inner: u64) -> u64 {
    outer.checked_div(inner).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::codec::CodecLimits;
    use crate::metadata::{ChunkEdges, ChunkGridMetadata, CodecMetadata, DataType, EdgeRun, FillValue};

    fn shards(chunk_shape: &[u64], codecs: &serde_json::Value) -> serde_json::Value {
        let index_codecs = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
        json!({"name": "sharding_indexed", "configuration": {
            "chunk_shape": chunk_shape, "codecs": codecs, "index_codecs": index_codecs,
        }})
    }

    /// The geometry of an array of bytes.
    fn geometry(shape: &[u64], chunk_shape: &[u64], codecs: &serde_json::Value) -> Option<ChunkGeometry> {
        let codecs: Vec<CodecMetadata> = codecs
            .as_array()
            .unwrap()
            .iter()
            .map(|codec| CodecMetadata::new(codec["name"].as_str().unwrap(), codec["configuration"].clone()))
            .collect();
        let fill = FillValue::from_bytes(&[0]);
        let limits = CodecLimits::default();
        let chain = CodecChain::bind(&codecs, &DataType::UInt8, chunk_shape, &fill, &limits).unwrap();
        ChunkGeometry::unsharded(&ChunkGrid::regular(shape, chunk_shape), &chain)
    }

    #[test]
    fn splits_shards_of_different_shapes_that_inner_chunks_fill() {
        let edges = |runs: &[(u64, u64)]| {
            let runs = runs.iter().map(|&(edge, count)| EdgeRun { edge, count });
            ChunkGridMetadata::Rectilinear { edges: vec![ChunkEdges::Runs(runs.collect())] }
        };
        let codecs = [CodecMetadata::new(
            "sharding_indexed",
            shards(&[2], &json!([{"name": "bytes"}]))["configuration"].clone(),
        )];
        let geometry = |runs: &[(u64, u64)]| {
            let grid = ChunkGrid::new(&[20], &edges(runs));
            let (fill, limits) = (FillValue::from_bytes(&[0]), CodecLimits::default());
            let shape = grid.first_chunk_shape();
            let chain = CodecChain::bind(&codecs, &DataType::UInt8, &shape, &fill, &limits).unwrap();
            ChunkGeometry::unsharded(&grid, &chain)
        };
        let found = geometry(&[(4, 2), (6, 2)]).unwrap();
        assert_eq!((found.inner_shape(), found.chunk_count(0)), (Some(&[2][..]), 10));
        let offsets: Vec<_> = (0..10).map(|at| found.locate(&[at]).unwrap()).collect();
        let offsets: Vec<_> =
            offsets.iter().map(|place| (place.stored[0], place.index_positions[0])).collect();
        assert_eq!(offsets, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (3, 2)]);
        assert!(geometry(&[(4, 2), (5, 1), (7, 1)]).is_none());
    }

    fn transpose(order: &[usize]) -> serde_json::Value {
        json!({"name": "transpose", "configuration": {"order": order}})
    }

    #[test]
    fn locates_an_inner_chunk_in_its_shard() {
        let found =
            geometry(&[10, 9], &[4, 6], &json!([shards(&[2, 3], &json!([{"name": "bytes"}]))])).unwrap();
        assert_eq!(found.inner_shape(), Some(&[2, 3][..]));
        assert_eq!((found.chunk_count(0), found.chunk_count(1), found.depth()), (5, 3, 1));
        let place = |row, column| found.locate(&[row, column]);
        assert_eq!(place(0, 0), Some(StoredLocation { stored: vec![0, 0], index_positions: vec![0] }));
        assert_eq!(place(3, 2), Some(StoredLocation { stored: vec![1, 1], index_positions: vec![2] }));
        assert_eq!(place(4, 1), Some(StoredLocation { stored: vec![2, 0], index_positions: vec![1] }));
        assert_eq!((place(5, 0), place(0, 3), found.locate(&[0])), (None, None, None));
    }

    #[test]
    fn reverts_transpositions_before_shards() {
        // The dimensions of the shard are the array's last, first and middle one.
        let codecs = json!([transpose(&[2, 0, 1]), shards(&[5, 1, 3], &json!([{"name": "bytes"}]))]);
        let found = geometry(&[4, 6, 10], &[4, 6, 10], &codecs).unwrap();
        assert_eq!(found.inner_shape(), Some(&[1, 3, 5][..]));
        // 2 × 4 × 2 inner chunks.
        assert_eq!(found.locate(&[3, 1, 1]).unwrap().index_positions, [8 + 2 * 3 + 1]);
    }

    #[test]
    fn splits_nested_shards_down_to_the_innermost() {
        let innermost = shards(&[1, 2], &json!([{"name": "bytes"}]));
        let codecs = json!([shards(&[4, 6], &json!([transpose(&[1, 0]), innermost]))]);
        let found = geometry(&[8, 12], &[8, 12], &codecs).unwrap();
        // In the transposed space of 6 × 4, an innermost chunk has 1 × 2.
        assert_eq!(found.inner_shape(), Some(&[2, 1][..]));
        assert_eq!((found.depth(), found.chunk_count(0), found.chunk_count(1)), (2, 4, 12));
        // Row 3 is the second of two in the second row of inner shards, column 7 the second of six in the second column.
        assert_eq!(found.locate(&[3, 7]).unwrap().index_positions, [3, 2 + 1]);
    }

    #[test]
    fn does_not_split_what_cannot_be_read_in_parts() {
        let sharded = shards(&[2], &json!([{"name": "bytes"}]));
        assert!(geometry(&[8], &[4], &json!([{"name": "bytes"}])).is_none());
        assert!(geometry(&[8], &[4], &json!([sharded, {"name": "crc32c"}])).is_none());
    }

    #[test]
    fn an_array_without_elements_has_no_chunks() {
        let found = geometry(&[0], &[4], &json!([shards(&[2], &json!([{"name": "bytes"}]))])).unwrap();
        assert_eq!(found.locate(&[0]), None);
    }
}

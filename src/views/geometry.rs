//! [`Geometry`]: where the chunks that a view shows of an array lie in those that are stored.
//!
//! Inner chunks of shards are of one shape and fill their shards, so over the whole array they are a regular grid, also
//! where shards differ in shape. Coordinates are counted in chunks; no elements are moved.

use crate::chunk::{ChunkAxis, ChunkCoords, ChunkGrid};
use crate::codec::CodecChain;
use crate::codec::Sharded;

/// Where shown chunks lie.
#[derive(Debug)]
pub(super) struct Geometry {
    /// Shown chunks along each dimension that have elements of the array.
    shown: Vec<u64>,
    /// The grid of stored chunks.
    stored: Vec<ChunkAxis>,
    /// The shape of a shown chunk, where it is not that of a stored one.
    inner_shape: Option<Vec<u64>>,
    /// The shards that shown chunks are in, from the outermost inwards.
    shards: Vec<Shard>,
}

/// Shards of one depth.
#[derive(Debug)]
struct Shard {
    /// For each dimension of the shard, the dimension of what it is in.
    order: Vec<usize>,
    /// Shown chunks in one of its inner chunks, along each of its dimensions.
    units: Vec<u64>,
}

/// Where one shown chunk lies.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The stored chunk.
    pub(super) stored: ChunkCoords,
    /// For each shard that it is in, from the outermost inwards, its number in the index.
    pub(super) numbers: Vec<usize>,
}

impl Geometry {
    /// Stored chunks, shown as they are.
    pub(super) fn whole(grid: &ChunkGrid) -> Self {
        let (shown, stored) = (grid.grid_shape(), grid.axes().to_vec());
        Self { shown, stored, inner_shape: None, shards: Vec::new() }
    }

    /// The innermost inner chunks of shards; `None` if there are no shards that can be read in parts.
    pub(super) fn unsharded(grid: &ChunkGrid, chain: &CodecChain) -> Option<Self> {
        let mut inner_shape = grid.first_chunk_shape();
        // Where each dimension of the current shard stands in the array's.
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
        // Of shards of another shape than the first one's, it is not known yet.
        if !first_dims.all(|is_filled| is_filled == Some(true)) {
            return None;
        }
        let shard = |(sharding, dims): (&dyn Sharded, Vec<usize>)| {
            let units = dims.iter().zip(sharding.inner_shape());
            let units = units.map(|(&dim, &edge)| Some(ratio(edge, *inner_shape.get(dim)?)));
            Some(Shard { order: sharding.order().to_vec(), units: units.collect::<Option<_>>()? })
        };
        let shards = shards.into_iter().map(shard).collect::<Option<_>>()?;
        let edges = inner_shape.iter().zip(grid.axes());
        let shown = edges.map(|(&edge, axis)| ChunkAxis::new(axis.length(), edge).chunks()).collect();
        Some(Self { shown, stored: grid.axes().to_vec(), inner_shape: Some(inner_shape), shards })
    }

    /// The shape of a shown chunk in the array's dimensions, where it is not that of a stored one.
    pub(super) fn inner_shape(&self) -> Option<&[u64]> {
        self.inner_shape.as_deref()
    }

    /// How many shards a shown chunk is in, one in the other.
    pub(super) fn depth(&self) -> usize {
        self.shards.len()
    }

    /// Dimensions of the array.
    pub(super) fn rank(&self) -> usize {
        self.shown.len()
    }

    /// Shown chunks along a dimension.
    pub(super) fn shown(&self, dim: usize) -> u64 {
        self.shown.get(dim).copied().unwrap_or_default()
    }

    /// The coordinate of the stored chunk that shown ones with this coordinate lie in, along one dimension.
    pub(super) fn stored(&self, dim: usize, shown: u64) -> u64 {
        self.within(dim, shown).map_or(shown, |within| within.stored)
    }

    /// Where shown chunks with this coordinate lie, along one dimension; `None` if they are stored chunks.
    fn within(&self, dim: usize, shown: u64) -> Option<Within> {
        let edge = (*self.inner_shape.as_ref()?.get(dim)?).max(1);
        let axis = self.stored.get(dim)?;
        let chunk = axis.chunk_containing(shown.saturating_mul(edge));
        let at = shown.saturating_sub(chunk.start / edge);
        Some(Within { stored: chunk.coord, at, of: ratio(chunk.edge, edge) })
    }

    /// Where a shown chunk lies; `None` outside the array.
    pub(super) fn place(&self, coords: &[u64]) -> Option<Place> {
        let is_within =
            coords.len() == self.rank() && coords.iter().zip(&self.shown).all(|(coord, shown)| coord < shown);
        if !is_within {
            return None;
        }
        if self.shards.is_empty() {
            return Some(Place { stored: coords.to_vec(), numbers: Vec::new() });
        }
        let within = coords.iter().enumerate().map(|(dim, &coord)| self.within(dim, coord));
        let within = within.collect::<Option<Vec<_>>>()?;
        let stored = within.iter().map(|within| within.stored).collect();
        // Where the chunk is in the current shard, and how many there are along it.
        let mut places: Vec<(u64, u64)> = within.iter().map(|within| (within.at, within.of)).collect();
        let mut numbers = Vec::with_capacity(self.shards.len());
        for Shard { order, units } in &self.shards {
            places = order.iter().map(|&dim| places.get(dim).copied()).collect::<Option<_>>()?;
            let mut along = places.iter().zip(units).map(|(&(at, of), &unit)| (at / unit, of / unit));
            let number = along.try_fold(0_u64, |number, (at, of)| number.checked_mul(of)?.checked_add(at))?;
            numbers.push(usize::try_from(number).ok()?);
            for ((at, of), &unit) in places.iter_mut().zip(units) {
                *at %= unit;
                *of = unit;
            }
        }
        Some(Place { stored, numbers })
    }
}

/// Where a shown chunk lies along one dimension.
struct Within {
    /// The coordinate of the stored chunk.
    stored: u64,
    /// Shown chunks before it in that one.
    at: u64,
    /// Shown chunks in that one.
    of: u64,
}

/// How many inner edges make an outer one. Either may be 0 where the array's is.
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
    fn geometry(shape: &[u64], chunk_shape: &[u64], codecs: &serde_json::Value) -> Option<Geometry> {
        let codecs: Vec<CodecMetadata> = codecs
            .as_array()
            .unwrap()
            .iter()
            .map(|codec| CodecMetadata::new(codec["name"].as_str().unwrap(), codec["configuration"].clone()))
            .collect();
        let fill = FillValue::from_bytes(&[0]);
        let limits = CodecLimits::default();
        let chain = CodecChain::bind(&codecs, &DataType::UInt8, chunk_shape, &fill, &limits).unwrap();
        Geometry::unsharded(&ChunkGrid::regular(shape, chunk_shape), &chain)
    }

    #[test]
    fn shards_of_differing_shapes_are_taken_apart_where_inner_chunks_fill_them() {
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
            Geometry::unsharded(&grid, &chain)
        };
        let found = geometry(&[(4, 2), (6, 2)]).unwrap();
        assert_eq!((found.inner_shape(), found.shown(0)), (Some(&[2][..]), 10));
        let places: Vec<_> = (0..10).map(|at| found.place(&[at]).unwrap()).collect();
        let places: Vec<_> = places.iter().map(|place| (place.stored[0], place.numbers[0])).collect();
        assert_eq!(places, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (3, 2)]);
        assert!(geometry(&[(4, 2), (5, 1), (7, 1)]).is_none());
    }

    fn transpose(order: &[usize]) -> serde_json::Value {
        json!({"name": "transpose", "configuration": {"order": order}})
    }

    #[test]
    fn an_inner_chunk_lies_where_its_shard_has_it() {
        let found =
            geometry(&[10, 9], &[4, 6], &json!([shards(&[2, 3], &json!([{"name": "bytes"}]))])).unwrap();
        assert_eq!(found.inner_shape(), Some(&[2, 3][..]));
        assert_eq!((found.shown(0), found.shown(1), found.depth()), (5, 3, 1));
        let place = |row, column| found.place(&[row, column]);
        assert_eq!(place(0, 0), Some(Place { stored: vec![0, 0], numbers: vec![0] }));
        assert_eq!(place(3, 2), Some(Place { stored: vec![1, 1], numbers: vec![2] }));
        assert_eq!(place(4, 1), Some(Place { stored: vec![2, 0], numbers: vec![1] }));
        assert_eq!((place(5, 0), place(0, 3), found.place(&[0])), (None, None, None));
    }

    #[test]
    fn transpositions_before_shards_are_taken_back() {
        // The shard's dimensions are the array's last, first and middle one.
        let codecs = json!([transpose(&[2, 0, 1]), shards(&[5, 1, 3], &json!([{"name": "bytes"}]))]);
        let found = geometry(&[4, 6, 10], &[4, 6, 10], &codecs).unwrap();
        assert_eq!(found.inner_shape(), Some(&[1, 3, 5][..]));
        // 2 × 4 × 2 inner chunks.
        assert_eq!(found.place(&[3, 1, 1]).unwrap().numbers, [8 + 2 * 3 + 1]);
    }

    #[test]
    fn shards_in_shards_are_taken_apart_to_the_last() {
        let innermost = shards(&[1, 2], &json!([{"name": "bytes"}]));
        let codecs = json!([shards(&[4, 6], &json!([transpose(&[1, 0]), innermost]))]);
        let found = geometry(&[8, 12], &[8, 12], &codecs).unwrap();
        // In the transposed space of 6 × 4, an innermost chunk has 1 × 2.
        assert_eq!(found.inner_shape(), Some(&[2, 1][..]));
        assert_eq!((found.depth(), found.shown(0), found.shown(1)), (2, 4, 12));
        // Row 3 is the second of two in the second row of inner shards, column 7 the second of six in the second column.
        assert_eq!(found.place(&[3, 7]).unwrap().numbers, [3, 2 + 1]);
    }

    #[test]
    fn what_cannot_be_read_in_parts_is_not_taken_apart() {
        let sharded = shards(&[2], &json!([{"name": "bytes"}]));
        assert!(geometry(&[8], &[4], &json!([{"name": "bytes"}])).is_none());
        assert!(geometry(&[8], &[4], &json!([sharded, {"name": "crc32c"}])).is_none());
    }

    #[test]
    fn an_array_without_elements_shows_no_chunks() {
        let found = geometry(&[0], &[4], &json!([shards(&[2], &json!([{"name": "bytes"}]))])).unwrap();
        assert_eq!(found.place(&[0]), None);
    }
}

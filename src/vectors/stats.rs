//! [`LevelStats`]: how vertices are distributed over chunks, compared with the recommendations of the format (Zarr
//! Vector Format, "Chunk shape": chunk size and data volume).

use futures::stream::{self, StreamExt, TryStreamExt};

use super::chunk::ChunkVertices;
use super::level::ResolutionLevel;
use super::objects::ObjectIndex;
use super::{Coord, VectorError};

/// The number of chunks read concurrently.
const CONCURRENCY: usize = 8;
/// The largest number of chunks read of a level; of more chunks, an evenly spaced sample.
const SAMPLE: usize = 4096;

/// The minimum, median and maximum of some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryStats {
    /// The minimum.
    pub min: u64,
    /// The median; of an even count, the upper one.
    pub median: u64,
    /// The maximum.
    pub max: u64,
}

impl SummaryStats {
    fn from_values(mut numbers: Vec<u64>) -> Option<Self> {
        numbers.sort_unstable();
        let (&least, &largest) = (numbers.first()?, numbers.last()?);
        Some(Self { min: least, median: *numbers.get(numbers.len() / 2)?, max: largest })
    }
}

/// Statistics of the chunks of a level.
#[derive(Clone, Debug)]
pub struct LevelStats {
    /// The number of chunks that hold vertices.
    pub chunks: u64,
    /// The number of chunks that were read.
    pub sampled: u64,
    /// The number of vertices in the chunks that were read.
    pub vertices: u64,
    /// Vertices in a chunk.
    pub vertices_per_chunk: Option<SummaryStats>,
    /// Stored bytes of a chunk's positions.
    pub encoded_bytes_per_chunk: Option<SummaryStats>,
    /// Objects with a part in a chunk.
    pub objects_per_chunk: Option<SummaryStats>,
    /// Vertices in a chunk if they were spread evenly over the bounds.
    pub expected_vertices_per_chunk: Option<f64>,
    /// Recommendations of the format that the level does not follow: a code and a detail each.
    pub warnings: Vec<(&'static str, String)>,
}

impl LevelStats {
    /// Reads a sample of the chunks of a level.
    ///
    /// # Errors
    /// [`VectorError`].
    pub async fn collect(level: &ResolutionLevel) -> Result<Self, VectorError> {
        let cells = level.non_empty_chunks().await?.cells;
        let step = cells.len().div_ceil(SAMPLE).max(1);
        let sample: Vec<Coord> = cells.iter().step_by(step).cloned().collect();
        let sampled = sample.len() as u64;
        let measured: Vec<(u64, u64)> = stream::iter(sample)
            .map(|coord| {
                let level = level.clone();
                async move { measure_chunk(&level, &coord).await }
            })
            .buffered(CONCURRENCY)
            .try_collect()
            .await?;
        let vertices: u64 = measured.iter().map(|(rows, _)| rows).sum();
        let objects_per_chunk = count_objects_per_chunk(level).await?;
        let mut stats = Self {
            chunks: cells.len() as u64,
            sampled,
            vertices,
            vertices_per_chunk: SummaryStats::from_values(measured.iter().map(|(rows, _)| *rows).collect()),
            encoded_bytes_per_chunk: SummaryStats::from_values(
                measured.iter().map(|(_, bytes)| *bytes).collect(),
            ),
            objects_per_chunk,
            expected_vertices_per_chunk: expected_vertices(level, vertices, step),
            warnings: Vec::new(),
        };
        stats.warnings = stats.advice(&level.store.root.geometry_types());
        Ok(stats)
    }

    /// The recommendations that the level does not follow, for these geometry types.
    fn advice(&self, geometry: &[String]) -> Vec<(&'static str, String)> {
        let mut warnings = Vec::new();
        let mut warn = |code, detail: String| warnings.push((code, detail));
        if self.chunks > 1_000_000 {
            warn(
                "chunk_count_over_1e6",
                format!("{} chunks: larger chunks or shards are easier to manage", self.chunks),
            );
        }
        let is_of = |name: &str| geometry.iter().any(|kind| kind == name);
        if let Some(SummaryStats { median, .. }) = self.vertices_per_chunk.filter(|_| is_of("point_cloud")) {
            if median < 10_000 {
                warn(
                    "vertices_per_chunk_below_10000",
                    format!("half of the chunks have at most {median} vertices"),
                );
            }
            if median > 100_000 {
                warn(
                    "vertices_per_chunk_above_100000",
                    format!("half of the chunks have {median} vertices or more"),
                );
            }
        }
        if let Some(SummaryStats { median, .. }) = self.objects_per_chunk.filter(|_| is_of("streamline"))
            && !(50..=500).contains(&median)
        {
            warn("objects_per_chunk_outside_50_500", format!("the median chunk has {median} objects"));
        }
        if let Some(SummaryStats { median, .. }) = self.encoded_bytes_per_chunk
            && median < 128 << 10
        {
            warn(
                "encoded_chunk_below_128KiB",
                format!("half of the chunks have at most {median} stored bytes"),
            );
        }
        warnings
    }
}

async fn measure_chunk(level: &ResolutionLevel, coord: &[i64]) -> Result<(u64, u64), VectorError> {
    let rows =
        ChunkVertices::read(level, coord, false).await?.map_or(0, |chunk| chunk.positions.rows() as u64);
    let bytes = level.vertices.encoded_bytes(&level.store.context, coord).await?;
    Ok((rows, bytes.unwrap_or_default()))
}

/// The number of objects with a part in each chunk.
async fn count_objects_per_chunk(level: &ResolutionLevel) -> Result<Option<SummaryStats>, VectorError> {
    let Some(index) = ObjectIndex::open(level).await? else { return Ok(None) };
    let mut counts: std::collections::HashMap<Coord, u64> = std::collections::HashMap::new();
    for object in index.read_all().await? {
        let mut chunks: Vec<&[i64]> = object.manifest.fragments().map(|(chunk, _)| chunk).collect();
        chunks.sort_unstable();
        chunks.dedup();
        for chunk in chunks {
            *counts.entry(chunk.to_vec()).or_default() += 1;
        }
    }
    Ok(SummaryStats::from_values(counts.into_values().collect()))
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn expected_vertices(level: &ResolutionLevel, sampled: u64, step: usize) -> Option<f64> {
    let (low, high) = level.store.root.bounds()?;
    let total = level.vertex_count().map_or(sampled as f64 * step as f64, |count| count as f64);
    let space: f64 = low.iter().zip(&high).map(|(low, high)| high - low).product();
    let chunk: f64 = level.shapes.chunk.iter().product();
    let expected = total * chunk / space;
    (space > 0.0 && expected.is_finite()).then_some(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_warn_where_recommendations_are_not_followed() {
        let spread = |median| Some(SummaryStats { min: 0, median, max: median });
        let stats = |chunks, rows, bytes, objects| LevelStats {
            chunks,
            sampled: 1,
            vertices: 1,
            vertices_per_chunk: spread(rows),
            encoded_bytes_per_chunk: spread(bytes),
            objects_per_chunk: spread(objects),
            expected_vertices_per_chunk: None,
            warnings: Vec::new(),
        };
        let codes = |stats: LevelStats, geometry: &str| {
            stats.advice(&[geometry.to_owned()]).into_iter().map(|(code, _)| code).collect::<Vec<_>>()
        };
        assert_eq!(codes(stats(1, 50_000, 1 << 20, 0), "point_cloud"), [""; 0]);
        assert_eq!(
            codes(stats(2_000_000, 9_999, 1000, 0), "point_cloud"),
            ["chunk_count_over_1e6", "vertices_per_chunk_below_10000", "encoded_chunk_below_128KiB"]
        );
        assert_eq!(codes(stats(1, 100_001, 1 << 20, 0), "point_cloud"), ["vertices_per_chunk_above_100000"]);
        assert_eq!(codes(stats(1, 1, 1 << 20, 49), "streamline"), ["objects_per_chunk_outside_50_500"]);
        assert_eq!(codes(stats(1, 1, 1 << 20, 500), "streamline"), [""; 0]);
    }
}

//! Chunk grids in documents: `regular` (Zarr core 3.1, "Regular grid") and `rectilinear` (the extension of that name,
//! with the kind `inline`).
//!
//! Runs of equal chunks stay runs, because a document of a few bytes may describe 2^62 chunks. The module `chunk`
//! computes the positions of chunks.

use serde_json::{Value, json};

use super::MetadataError;
use super::extension::{self, Extension, required};
use crate::units::counted;

const CHUNK_SHAPE: &str = "chunk_shape";
const CHUNK_SHAPES: &str = "chunk_shapes";
const KIND: &str = "kind";

/// Maximum edge, and maximum count of a run.
const MAX_EDGE: u64 = i64::MAX.unsigned_abs();

/// Maximum number of edges and runs that a document may give for one dimension.
const MAX_RUNS: usize = 1 << 20;

/// How an array is divided into chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkGridMetadata {
    /// Chunks of one shape, aligned at the origin. An edge is 0 only if the dimension's length is 0.
    Regular {
        /// Elements along each dimension of a chunk.
        chunk_shape: Vec<u64>,
    },
    /// Chunks whose edges vary along each dimension, independently of the others.
    Rectilinear {
        /// The edges along each dimension.
        edges: Vec<ChunkEdges>,
    },
}

/// The edges of chunks along one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkEdges {
    /// One edge for all chunks; at least 1.
    Regular(u64),
    /// Consecutive edges. Their sum is at least the dimension's length; the last ones may lie partly or wholly beyond its
    /// end.
    Runs(Vec<EdgeRun>),
}

/// Consecutive chunks with equal edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeRun {
    /// Elements along each chunk; from 1 to 2^63 − 1.
    pub edge: u64,
    /// Number of chunks; from 1 to 2^63 − 1.
    pub count: u64,
}

impl ChunkGridMetadata {
    /// Parses the member `chunk_grid` of a v3 document, for an array of this shape.
    pub(super) fn from_v3(value: &Value, shape: &[u64]) -> Result<Self, MetadataError> {
        let grid = Extension::parse(value, "chunk_grid")?;
        grid.require_understood()?;
        match grid.name.as_str() {
            "regular" => {
                grid.require_only(&[CHUNK_SHAPE])?;
                let chunk_shape = required(&grid.configuration, CHUNK_SHAPE)?;
                let chunk_shape = extension::chunk_shape(chunk_shape, CHUNK_SHAPE, shape)?;
                Ok(Self::Regular { chunk_shape })
            }
            "rectilinear" => Ok(Self::Rectilinear { edges: rectilinear(&grid, shape)? }),
            _ => Err(MetadataError::unsupported("chunk grid", grid.name)),
        }
    }

    /// The grid as a member of a v3 document; an edge of 0 is written as 1.
    #[must_use]
    pub fn to_document(&self) -> Value {
        match self {
            Self::Regular { chunk_shape } => {
                let chunk_shape: Vec<u64> = chunk_shape.iter().map(|&edge| edge.max(1)).collect();
                json!({ "name": "regular", "configuration": { CHUNK_SHAPE: chunk_shape } })
            }
            Self::Rectilinear { edges } => {
                let edges: Vec<Value> = edges.iter().map(ChunkEdges::to_document).collect();
                json!({ "name": "rectilinear", "configuration": { KIND: "inline", CHUNK_SHAPES: edges } })
            }
        }
    }
}

impl ChunkEdges {
    fn parse(value: &Value, length: u64) -> Result<Self, MetadataError> {
        if value.is_number() {
            return positive_integer(value).map(Self::Regular);
        }
        let mut runs: Vec<EdgeRun> = Vec::new();
        for item in extension::items(value, CHUNK_SHAPES, MAX_RUNS)? {
            let run = EdgeRun::parse(item)?;
            match runs.last_mut() {
                // Counts whose sum would exceed the maximum stay two runs.
                Some(last) if last.edge == run.edge && last.count <= MAX_EDGE - run.count => {
                    last.count += run.count;
                }
                _ => runs.push(run),
            }
        }
        let sum = runs
            .iter()
            .fold(0, |sum: u128, run| sum.saturating_add(u128::from(run.edge) * u128::from(run.count)));
        if sum < length.into() {
            let reason = format!("has edges of {sum} elements in all along a dimension of {length}");
            return Err(MetadataError::invalid(CHUNK_SHAPES, reason));
        }
        runs.shrink_to_fit();
        Ok(Self::Runs(runs))
    }

    /// The edges as in a v3 document: one for all chunks, or a list of edges and runs `[edge, count]`.
    #[must_use]
    pub fn to_document(&self) -> Value {
        match self {
            Self::Regular(edge) => json!(edge),
            Self::Runs(runs) => runs
                .iter()
                .map(|run| if run.count == 1 { json!(run.edge) } else { json!([run.edge, run.count]) })
                .collect(),
        }
    }
}

impl EdgeRun {
    /// Parses an edge, or a run `[edge, count]`.
    fn parse(value: &Value) -> Result<Self, MetadataError> {
        match value.as_array().map(Vec::as_slice) {
            None => Ok(Self { edge: positive_integer(value)?, count: 1 }),
            Some([edge, count]) => {
                Ok(Self { edge: positive_integer(edge)?, count: positive_integer(count)? })
            }
            Some(_) => Err(MetadataError::invalid(CHUNK_SHAPES, "a run must be an edge and a count")),
        }
    }
}

fn rectilinear(grid: &Extension, shape: &[u64]) -> Result<Vec<ChunkEdges>, MetadataError> {
    match required(&grid.configuration, KIND)?.as_str() {
        Some("inline") => {}
        Some(kind) => return Err(MetadataError::unsupported("kind of rectilinear chunk grid", kind)),
        None => return Err(MetadataError::invalid(KIND, "must be a string")),
    }
    grid.require_only(&[KIND, CHUNK_SHAPES])?;
    let edges = extension::items(required(&grid.configuration, CHUNK_SHAPES)?, CHUNK_SHAPES, usize::MAX)?;
    if edges.len() != shape.len() {
        let reason = format!("has {}; the array has {}", counted(edges.len(), "dimension"), shape.len());
        return Err(MetadataError::invalid(CHUNK_SHAPES, reason));
    }
    edges.iter().zip(shape).map(|(edges, &length)| ChunkEdges::parse(edges, length)).collect()
}

/// Parses an edge or a count: an integer without fraction or exponent, from 1 to 2^63 − 1.
fn positive_integer(value: &Value) -> Result<u64, MetadataError> {
    value
        .as_u64()
        .filter(|number| (1..=MAX_EDGE).contains(number))
        .ok_or_else(|| MetadataError::invalid(CHUNK_SHAPES, "must hold integers from 1 to 2^63 - 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(shape: &[u64], edges: &Value) -> Result<ChunkGridMetadata, MetadataError> {
        let grid =
            json!({ "name": "rectilinear", "configuration": { "kind": "inline", "chunk_shapes": edges } });
        ChunkGridMetadata::from_v3(&grid, shape)
    }

    fn run(edge: u64, count: u64) -> EdgeRun {
        EdgeRun { edge, count }
    }

    #[test]
    fn every_form_of_edges_in_the_extension_parses() {
        let edges = json!([4, [1, 2, 3], [[4, 2]], [[1, 3], 3], [4, 4, 4]]);
        let expected = [
            ChunkEdges::Regular(4),
            ChunkEdges::Runs(vec![run(1, 1), run(2, 1), run(3, 1)]),
            ChunkEdges::Runs(vec![run(4, 2)]),
            ChunkEdges::Runs(vec![run(1, 3), run(3, 1)]),
            ChunkEdges::Runs(vec![run(4, 3)]),
        ];
        assert_eq!(
            parse(&[6, 6, 6, 6, 6], &edges),
            Ok(ChunkGridMetadata::Rectilinear { edges: expected.to_vec() })
        );
    }

    #[test]
    fn written_runs_parse_to_the_same_grid() {
        let grid = parse(&[6, 9, 0, 0], &json!([4, [[2, 1], 2, [2, 3], 1], [], [7, 7]])).unwrap();
        let document = grid.to_document();
        let edges = &document["configuration"]["chunk_shapes"];
        assert_eq!(*edges, json!([4, [[2, 5], 1], [], [[7, 2]]]));
        assert_eq!(ChunkGridMetadata::from_v3(&document, &[6, 9, 0, 0]), Ok(grid));
    }

    #[test]
    fn edges_may_end_beyond_the_array_and_not_before_it() {
        assert!(parse(&[6], &json!([[[2, 3]]])).is_ok());
        assert!(parse(&[6], &json!([[5, 1, 100, 100]])).is_ok());
        for edges in [json!([[2, 2]]), json!([[[2, 2], 1]]), json!([[]])] {
            assert!(parse(&[6], &edges).is_err(), "{edges}");
        }
    }

    #[test]
    fn huge_runs_are_neither_expanded_nor_wrapped_around() {
        let most = i64::MAX;
        for edges in [
            json!([[[1, 1_u64 << 62]]]),
            json!([[[most, most], [most, most], [most, most]]]),
            json!([[[1, most], [1, most], [1, most], [1, most]]]),
        ] {
            assert!(parse(&[1 << 62], &edges).is_ok(), "{edges}");
        }
        // 2^32 edges of 2^32 are 2^64 elements, which is 0 where sums wrap.
        let wide = json!([[[1_u64 << 32, 1_u64 << 32], [1_u64 << 32, 1]]]);
        assert!(parse(&[most.unsigned_abs()], &wide).is_ok());
        let many = Value::from((0..=MAX_RUNS).map(|edge| 1 + edge % 2).collect::<Vec<_>>());
        assert!(parse(&[6], &json!([many])).is_err());
    }

    #[test]
    fn edges_and_counts_that_are_not_positive_integers_are_rejected() {
        for edges in [
            "[0]",
            "[-1]",
            "[6.0]",
            "[[0, 6]]",
            "[[6, 0], 6]",
            "[[6, -1]]",
            "[[6]]",
            "[[]]",
            "[[2, 3, 1]]",
            "[[[2, 3]]]",
            "[9223372036854775808]",
            "[[1, 9223372036854775808]]",
            "[[1, 1e3]]",
            "[\"6\"]",
            "[null]",
            "\"6\"",
            "null",
            "{}",
            "0",
            "-6",
            "6.0",
            "9223372036854775808",
        ] {
            let edges: Value = serde_json::from_str(&format!("[{edges}]")).unwrap();
            assert!(matches!(parse(&[6], &edges), Err(MetadataError::Invalid { .. })), "{edges}");
        }
    }

    #[test]
    fn an_unknown_kind_is_unsupported_and_a_missing_kind_is_invalid() {
        let grid = |configuration: Value| {
            ChunkGridMetadata::from_v3(
                &json!({ "name": "rectilinear", "configuration": configuration }),
                &[6],
            )
        };
        let error = grid(json!({ "kind": "external", "chunk_shapes": "edges" }));
        assert_eq!(error, Err(MetadataError::unsupported("kind of rectilinear chunk grid", "external")));
        for configuration in [
            json!({ "chunk_shapes": [[6]] }),
            json!({ "kind": 1, "chunk_shapes": [[6]] }),
            json!({ "kind": "inline" }),
            json!({ "kind": "inline", "chunk_shapes": [[6], [6]] }),
            json!({ "kind": "inline", "chunk_shapes": [6], "offset": [1] }),
        ] {
            assert!(
                matches!(grid(configuration.clone()), Err(MetadataError::Invalid { .. })),
                "{configuration}"
            );
        }
    }
}

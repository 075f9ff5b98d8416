//! [`ResolutionLevel`]: one level of a store, with its shapes, its vertices and its chunk grid.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::Value;

use super::bbox::TouchedRanges;
use super::cells::{CellArray, NonEmptyCells};
use super::json::{JsonObject, is_true, string};
use super::payload::number_type;
use super::root::Profile;
use super::shapes::{Shapes, level_metadata};
use super::store::{LevelName, VectorStore};
use super::{Bbox, Coord, VectorError};
use crate::key::NodePath;
use crate::metadata::DataType;

/// The number of levels opened concurrently.
const CONCURRENCY: usize = 8;

/// An opened level of a store.
#[derive(Clone, Debug)]
pub struct ResolutionLevel {
    /// The store that it belongs to.
    pub store: VectorStore,
    /// Its number and name.
    pub name: LevelName,
    /// The path of its group.
    pub path: NodePath,
    /// Its own metadata.
    pub attributes: Arc<JsonObject>,
    /// The shapes of its chunks and bins.
    pub shapes: Shapes,
    /// The number of spatial axes.
    pub dims: usize,
    /// The data type of coordinates: float16, float32 or float64.
    pub coordinate_type: DataType,
    /// The positions of vertices.
    pub vertices: CellArray,
    /// The fragment index of each chunk, if it is stored.
    pub fragments: Option<CellArray>,
}

impl ResolutionLevel {
    /// Opens a level.
    ///
    /// # Errors
    /// [`VectorError::InvalidMetadata`] if it cannot be read, [`VectorError::UnsupportedEncoding`].
    pub async fn open(store: &VectorStore, name: &LevelName) -> Result<Self, VectorError> {
        let path = store.path.child(&name.name)?;
        let profile = store.root.profile;
        let group = store.level_attributes(&path).await?.unwrap_or_default();
        let attributes = Arc::new(level_metadata(profile, &group).cloned().unwrap_or_default());
        let shapes = Shapes::from_metadata(&store.root, &name.name, &attributes)?;
        let dims = shapes.chunk.len();
        let vertices = path.child("vertices")?;
        let vertices = store.open_cells(vertices, dims).await?.ok_or_else(|| {
            VectorError::invalid_metadata(
                "vertices_array",
                format!("there is no `{}/vertices`", path.as_str()),
            )
        })?;
        let kind = coordinate_type(&vertices, dims)?;
        let fragments = match profile {
            Profile::Doc => "vertex_group_offsets",
            Profile::V7 | Profile::V9 => "vertex_fragments",
        };
        let fragments = store.open_cells(path.child(fragments)?, dims).await?;
        Ok(Self {
            store: store.clone(),
            name: name.clone(),
            path,
            attributes,
            shapes,
            dims,
            coordinate_type: kind,
            vertices,
            fragments,
        })
    }

    /// The number of axes before the spatial ones: 1 if chunks are also split by an attribute, else 0.
    #[must_use]
    pub fn leading_axes(&self) -> usize {
        self.vertices.leading_axes()
    }

    /// The number of vertices that the level's metadata declares.
    #[must_use]
    pub fn vertex_count(&self) -> Option<u64> {
        self.attributes.get("vertex_count")?.as_u64()
    }

    /// Whether the metadata allows fragments to share rows.
    #[must_use]
    pub fn shares_fragments(&self) -> bool {
        is_true(&self.attributes, "shared_fragments")
    }

    /// Whether the metadata declares that the fragments of each chunk are ranges that cover it.
    #[must_use]
    pub fn declares_tiling(&self) -> bool {
        is_true(&self.attributes, "fragments_tile")
    }

    /// The attribute by which chunks are split, and its value at each coordinate of the leading axis.
    #[must_use]
    pub fn chunk_attribute(&self) -> Option<(String, Vec<String>)> {
        if self.leading_axes() == 0 {
            return None;
        }
        let name = string(&self.attributes, "chunk_attribute_name")?;
        let values = self.attributes.get("chunk_attribute_values")?.as_array()?;
        let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some((name.to_owned(), values.iter().map(value).collect()))
    }

    /// The chunks that hold vertices.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn non_empty_chunks(&self) -> Result<NonEmptyCells, VectorError> {
        self.vertices.non_empty_cells(&self.store.context).await
    }

    /// The first and last chunk along each spatial axis: of the array's grid, or, where each chunk has its own array,
    /// of the store's bounds joined with the chunks in `occupied`.
    #[must_use]
    pub fn chunk_grid(&self, occupied: &[Coord]) -> Vec<(i64, i64)> {
        let lead = self.leading_axes();
        if let Some(grid) = self.vertices.grid() {
            let origin = self.vertices.origin().iter().skip(lead);
            let length = |length: u64| i64::try_from(length).unwrap_or(i64::MAX).saturating_sub(1);
            let axes = origin.zip(grid.iter().skip(lead));
            return axes.map(|(&first, &edge)| (first, first.saturating_add(length(edge)))).collect();
        }
        let bounds = self.store.root.bounds();
        let bounds = bounds.filter(|(low, high)| low.len() == self.dims && high.len() == self.dims);
        let bounded = bounds.and_then(|(low, high)| {
            // The chunks of the bounds, in a practically unbounded grid.
            let bbox = Bbox::new(low, high, self.dims, super::Interval::Closed).ok()?;
            let endless = vec![(i64::MIN / 4, i64::MAX / 4); self.dims];
            TouchedRanges::new(&bbox, &self.shapes, &endless).chunks
        });
        (0..self.dims)
            .map(|axis| {
                let stored = occupied.iter().filter_map(|coord| coord.get(lead + axis).copied());
                let ends = stored.fold(None, |ends: Option<(i64, i64)>, at| {
                    Some(ends.map_or((at, at), |(low, high)| (low.min(at), high.max(at))))
                });
                let bounded = bounded.as_ref().and_then(|bounds| bounds.get(axis).copied());
                match (ends, bounded) {
                    (Some((low, high)), Some((first, last))) => (low.min(first), high.max(last)),
                    (Some(ends), None) | (None, Some(ends)) => ends,
                    (None, None) => (0, -1),
                }
            })
            .collect()
    }

    /// The lower and upper corner of a chunk.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "coordinates beyond 2^53 have no exact place at all")]
    pub fn chunk_bounds(&self, coord: &[i64]) -> (Vec<f64>, Vec<f64>) {
        let spatial = coord.iter().skip(self.leading_axes());
        let axes = || spatial.clone().zip(&self.shapes.chunk);
        (
            axes().map(|(&at, edge)| at as f64 * edge).collect(),
            axes().map(|(&at, edge)| (at as f64 + 1.0) * edge).collect(),
        )
    }
}

impl VectorStore {
    /// Opens a level by its number.
    ///
    /// # Errors
    /// [`VectorError::LevelNotFound`], [`VectorError::InvalidMetadata`].
    pub async fn level(&self, index: u64) -> Result<ResolutionLevel, VectorError> {
        let found = self.levels.iter().find(|level| level.index == index);
        let name = found.ok_or_else(|| VectorError::LevelNotFound {
            level: index,
            known: self.levels.iter().map(|level| level.index).collect(),
        })?;
        ResolutionLevel::open(self, name).await
    }

    /// Opens every level; one that cannot be used is returned as its error.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn all_levels(
        &self,
    ) -> Result<Vec<(LevelName, Result<ResolutionLevel, VectorError>)>, VectorError> {
        let open = |name: LevelName| async move {
            match ResolutionLevel::open(self, &name).await {
                Err(error @ (VectorError::Store { .. } | VectorError::Cpu(_))) => Err(error),
                outcome => Ok((name, outcome)),
            }
        };
        let opening: Vec<_> = self.levels.iter().cloned().map(open).collect();
        stream::iter(opening).buffered(CONCURRENCY).try_collect().await
    }
}

/// The data type of the coordinates of vertices.
fn coordinate_type(vertices: &CellArray, dims: usize) -> Result<DataType, VectorError> {
    let path = vertices.path.as_str();
    check_encoding(vertices, "raw")?;
    let kind = if let (Some(array), None) = (vertices.array(), string(&vertices.attributes, "dtype")) {
        let metadata = array.metadata();
        // A dense array has the type of its coordinates, which are its last dimension.
        if metadata.data_type.is_variable() {
            None
        } else {
            if metadata.shape.len() != dims + 2 || metadata.shape.last() != Some(&(dims as u64)) {
                let detail = format!("`{path}` has the shape {:?} for {dims} axes", metadata.shape);
                return Err(VectorError::invalid_metadata("doc_array_shapes", detail));
            }
            Some(metadata.data_type.clone())
        }
    } else {
        string(&vertices.attributes, "dtype").and_then(number_type)
    };
    let is_float =
        |kind: &DataType| matches!(kind, DataType::Float16 | DataType::Float32 | DataType::Float64);
    kind.filter(is_float).ok_or_else(|| {
        let written = vertices.attributes.get("dtype");
        let detail = format!("`{path}` has coordinates of type {written:?}, not float16, float32 or float64");
        VectorError::invalid_metadata("array_attrs", detail)
    })
}

/// Rejects payloads with another encoding than `known`.
pub(super) fn check_encoding(cells: &CellArray, known: &str) -> Result<(), VectorError> {
    match string(&cells.attributes, "encoding") {
        Some(encoding) if encoding != known => Err(VectorError::UnsupportedEncoding {
            path: cells.path.as_str().to_owned(),
            encoding: encoding.to_owned(),
        }),
        _ => Ok(()),
    }
}

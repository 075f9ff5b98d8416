//! [`CellArray`]: the payloads of one kind, a cell for each chunk of a level, whichever profile the store has.
//!
//! Of the newer layout the cells are elements of variable length of one array; of the older each is an array of bytes of
//! its own, named by its chunk; of the documents' layout a chunk of a dense array. Reads go through the array room, so
//! codecs, shards, memory and limits are its business; what a payload means is not decided here.

mod keys;
mod list;
mod short_keys;

pub use keys::{Keys, ShardPlace};
pub use list::NonEmptyCells;

use std::sync::Arc;

use bytes::Bytes;

use super::context::Context;
use super::json::{Object, integers};
use super::root::Profile;
use super::{Coord, VectorError, dotted};
use crate::array::{Array, ArrayError};
use crate::chunk::{AxisRange, Subset};
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::Node;
use crate::key::NodePath;
use crate::metadata::DataType;

/// The payloads of one kind of a level.
#[derive(Clone, Debug)]
pub struct CellArray {
    /// Where they stand.
    pub path: NodePath,
    /// What the node that holds them says.
    pub attributes: Arc<Object>,
    kind: Kind,
    /// Spatial axes.
    dims: usize,
    /// Axes before the spatial ones.
    lead: usize,
    /// The coordinates of the first cell.
    origin: Coord,
}

#[derive(Clone, Debug)]
enum Kind {
    /// One array of variable length.
    Ragged(Arc<Array>),
    /// An array for each cell.
    Children,
    /// A dense array, of which each chunk is a cell.
    Dense(Arc<Array>),
}

impl CellArray {
    /// The payloads at a path, if there are any.
    ///
    /// # Errors
    /// [`VectorError::InvalidMetadata`] if what stands there holds no payloads.
    pub async fn open(
        context: &Context,
        path: NodePath,
        profile: Profile,
        dims: usize,
    ) -> Result<Option<Self>, VectorError> {
        let Some(opened) = context.node(&path).await? else { return Ok(None) };
        let (kind, attributes, rank) = match (&opened.node, profile) {
            (Node::Group(group), Profile::V7) => (Kind::Children, &group.attributes, dims),
            (Node::Array(metadata), Profile::V9) => {
                if metadata.data_type != DataType::VariableBytes {
                    let found = metadata.data_type.name();
                    return Err(wrong_node(
                        &path,
                        &format!("it holds {found}, not bytes of variable length"),
                    ));
                }
                let array = Arc::clone(opened.array()?);
                (Kind::Ragged(array), &metadata.attributes, metadata.shape.len())
            }
            (Node::Array(metadata), Profile::Doc) => {
                if metadata.data_type.is_variable() || metadata.shape.len() <= dims {
                    return Err(wrong_node(&path, "it is no dense array of chunks"));
                }
                let array = Arc::clone(opened.array()?);
                (Kind::Dense(array), &metadata.attributes, dims)
            }
            (Node::Array(_), Profile::V7) => return Err(wrong_node(&path, "it is an array, not a group")),
            (Node::Group(_), Profile::V9 | Profile::Doc) => {
                return Err(wrong_node(&path, "it is a group, not an array"));
            }
        };
        // Shared, as it may name a great many chunks.
        let attributes = context.object(attributes).await?;
        let lead = rank.checked_sub(dims).filter(|&lead| lead <= 1).ok_or_else(|| {
            let detail = format!("`{}` has {rank} dimensions for {dims} axes", path.as_str());
            VectorError::invalid("chunk_grid_consistent", detail)
        })?;
        let origin = origin_of(&attributes, dims, lead).ok_or_else(|| {
            VectorError::invalid("array_attrs", format!("`chunk_grid_origin` of `{}` is none", path.as_str()))
        })?;
        Ok(Some(Self { path, attributes, kind, dims, lead, origin }))
    }

    /// Axes before the spatial ones.
    #[must_use]
    pub fn lead(&self) -> usize {
        self.lead
    }

    /// The number of coordinates of a cell.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.lead + self.dims
    }

    /// The coordinates of the first cell.
    #[must_use]
    pub fn origin(&self) -> &[i64] {
        &self.origin
    }

    /// The array that holds all cells, if one does.
    #[must_use]
    pub fn array(&self) -> Option<&Arc<Array>> {
        match &self.kind {
            Kind::Ragged(array) | Kind::Dense(array) => Some(array),
            Kind::Children => None,
        }
    }

    /// How many cells there are room for along each axis, if that is said.
    #[must_use]
    pub fn grid(&self) -> Option<Vec<u64>> {
        let shape = &self.array()?.metadata().shape;
        Some(shape.get(..self.rank())?.to_vec())
    }

    /// Whether cells are parts of shards.
    #[must_use]
    pub fn is_sharded(&self) -> bool {
        self.array().is_some_and(|array| array.is_sharded())
    }

    /// The place of a cell in the array; `None` if it is not in it, or there is no one array.
    #[must_use]
    pub fn cell(&self, coord: &[i64]) -> Option<Vec<u64>> {
        if coord.len() != self.rank() {
            return None;
        }
        let cells =
            coord.iter().zip(&self.origin).map(|(&at, &origin)| u64::try_from(at.checked_sub(origin)?).ok());
        let cells: Vec<u64> = cells.collect::<Option<_>>()?;
        let is_inside = self.grid()?.iter().zip(&cells).all(|(length, cell)| cell < length);
        is_inside.then_some(cells)
    }

    /// The coordinates of the cell at a place in the array.
    fn coord(&self, cell: &[u64]) -> Option<Coord> {
        let coords = cell
            .iter()
            .zip(&self.origin)
            .map(|(&cell, &origin)| origin.checked_add(i64::try_from(cell).ok()?));
        coords.collect()
    }

    /// The payload of a cell: decoded, and not yet understood. `None` if nothing is stored there.
    ///
    /// # Errors
    /// [`VectorError::Corrupt`] if it does not decode.
    pub async fn payload(&self, context: &Context, coord: &[i64]) -> Result<Option<Bytes>, VectorError> {
        let payload = match (&self.kind, self.cell(coord)) {
            (Kind::Children, _) => self.child(context, coord).await,
            (Kind::Ragged(array), Some(cell)) => Self::ragged(context, array, &cell).await,
            (Kind::Dense(array), Some(cell)) => self.dense(context, array, &cell).await,
            (Kind::Ragged(_) | Kind::Dense(_), None) => return Ok(None),
        };
        payload.map_err(|error| self.corrupt(coord, error))
    }

    async fn ragged(
        context: &Context,
        array: &Arc<Array>,
        cell: &[u64],
    ) -> Result<Option<Bytes>, VectorError> {
        let one = cell.iter().map(|&start| AxisRange { start, count: 1, step: 1, keep: true }).collect();
        let texts = context.elements(array, Subset(one)).await?.into_texts();
        Ok(texts.into_iter().next().filter(|payload| !payload.is_empty()))
    }

    async fn child(&self, context: &Context, coord: &[i64]) -> Result<Option<Bytes>, VectorError> {
        let Some(array) = context.array(&self.path.child(&dotted(coord))?).await? else { return Ok(None) };
        let metadata = array.metadata();
        if metadata.data_type != DataType::UInt8 || metadata.shape.len() != 1 {
            return Err(wrong_node(&self.path, "a chunk is no list of bytes"));
        }
        let whole = Subset::full(&metadata.shape);
        let payload = context.elements(&array, whole).await?.into_items();
        Ok(Some(payload).filter(|payload| !payload.is_empty()))
    }

    async fn dense(
        &self,
        context: &Context,
        array: &Arc<Array>,
        cell: &[u64],
    ) -> Result<Option<Bytes>, VectorError> {
        let one = || Subset(self.dense_ranges(array, cell));
        let found = context.elements(array, one()).await?;
        if found.is_stored {
            return Ok(Some(found.into_items()));
        }
        // What the documents' example gives for a key has fewer coordinates than such an array's keys have.
        let short = Arc::new(short_keys::bind(context, &self.path, array, self.dims)?);
        let found = context.elements(&short, one()).await?;
        Ok(found.is_stored.then(|| found.into_items()))
    }

    /// All of a cell of a dense array.
    fn dense_ranges(&self, array: &Array, cell: &[u64]) -> Vec<AxisRange> {
        let shape = &array.metadata().shape;
        let one = cell.iter().map(|&start| AxisRange { start, count: 1, step: 1, keep: true });
        let rest = shape.iter().skip(self.dims).map(|&length| AxisRange::full(length));
        one.chain(rest).collect()
    }

    /// An error of the array room as one about a cell, where it is about what is stored there.
    fn corrupt(&self, coord: &[i64], error: VectorError) -> VectorError {
        match error {
            VectorError::Array(source) if source.class() == ErrorClass::CorruptData => VectorError::Corrupt {
                path: self.path.as_str().to_owned(),
                chunk: dotted(coord),
                reason: source.to_string(),
            },
            VectorError::Array(ArrayError::TooLarge { limit, .. }) => {
                VectorError::TooMany { what: "bytes in a chunk", estimate: limit.saturating_add(1), limit }
            }
            error => error,
        }
    }
}

/// The coordinates of the first cell, zeros if nothing is said.
fn origin_of(attributes: &Object, dims: usize, lead: usize) -> Option<Coord> {
    let Some(written) = attributes.get("chunk_grid_origin").filter(|value| !value.is_null()) else {
        return Some(vec![0; dims + lead]);
    };
    let mut origin = integers(Some(written))?;
    if origin.len() == dims && lead == 1 {
        origin.insert(0, 0);
    }
    (origin.len() == dims + lead).then_some(origin)
}

fn wrong_node(path: &NodePath, what: &str) -> VectorError {
    VectorError::invalid("vertices_array", format!("`{}`: {what}", path.as_str()))
}

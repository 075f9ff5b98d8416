//! [`CellArray`]: opens the payloads of one kind and reads single cells.

use std::sync::Arc;

use bytes::Bytes;

use super::short_keys;
use crate::array::{Array, ArrayError};
use crate::chunk::{AxisRange, Subset};
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::Node;
use crate::key::NodePath;
use crate::metadata::DataType;
use crate::vectors::context::VectorContext;
use crate::vectors::json::{JsonObject, integers};
use crate::vectors::root::Profile;
use crate::vectors::{Coord, VectorError, format_coord};

/// The payloads of one kind of a level.
#[derive(Clone, Debug)]
pub struct CellArray {
    /// The path of the array or group that holds the cells.
    pub path: NodePath,
    /// The attributes of that node.
    pub attributes: Arc<JsonObject>,
    pub(super) layout: CellLayout,
    /// The number of spatial axes.
    pub(super) dims: usize,
    /// The number of axes before the spatial ones.
    leading_axes: usize,
    /// The coordinates of the first cell.
    origin: Coord,
}

/// How cells are stored.
#[derive(Clone, Debug)]
pub(super) enum CellLayout {
    /// One array of variable-length elements, one for each cell.
    VariableLength(Arc<Array>),
    /// One array for each cell.
    ArrayPerCell,
    /// One dense array; each of its chunks is a cell.
    Dense(Arc<Array>),
}

impl CellArray {
    /// Opens the payloads at a path; `None` if the path has no node.
    ///
    /// # Errors
    /// [`VectorError::InvalidMetadata`] if the node cannot hold payloads.
    pub async fn open(
        context: &VectorContext,
        path: NodePath,
        profile: Profile,
        dims: usize,
    ) -> Result<Option<Self>, VectorError> {
        let Some(opened) = context.node(&path).await? else { return Ok(None) };
        let (kind, attributes, rank) = match (&opened.node, profile) {
            (Node::Group(group), Profile::V7) => (CellLayout::ArrayPerCell, &group.attributes, dims),
            (Node::Array(metadata), Profile::V9) => {
                if metadata.data_type != DataType::VariableBytes {
                    let found = metadata.data_type.name();
                    return Err(wrong_node(&path, &format!("it holds {found}, not variable-length bytes")));
                }
                let array = Arc::clone(opened.array()?);
                (CellLayout::VariableLength(array), &metadata.attributes, metadata.shape.len())
            }
            (Node::Array(metadata), Profile::Doc) => {
                if metadata.data_type.is_variable() || metadata.shape.len() <= dims {
                    return Err(wrong_node(&path, "it is not a dense array of chunks"));
                }
                let array = Arc::clone(opened.array()?);
                (CellLayout::Dense(array), &metadata.attributes, dims)
            }
            (Node::Array(_), Profile::V7) => return Err(wrong_node(&path, "it is an array, not a group")),
            (Node::Group(_), Profile::V9 | Profile::Doc) => {
                return Err(wrong_node(&path, "it is a group, not an array"));
            }
        };
        // Shared, because `nonempty_chunks` may be long.
        let attributes = context.parse_attributes(attributes).await?;
        let lead = rank.checked_sub(dims).filter(|&lead| lead <= 1).ok_or_else(|| {
            let detail = format!("`{}` has {rank} dimensions for {dims} axes", path.as_str());
            VectorError::invalid_metadata("chunk_grid_consistent", detail)
        })?;
        let origin = origin_of(&attributes, dims, lead).ok_or_else(|| {
            VectorError::invalid_metadata(
                "array_attrs",
                format!("`chunk_grid_origin` of `{}` is not the coordinates of a chunk", path.as_str()),
            )
        })?;
        Ok(Some(Self { path, attributes, layout: kind, dims, leading_axes: lead, origin }))
    }

    /// The number of axes before the spatial ones: 0, or 1 if chunks are also split by an attribute.
    #[must_use]
    pub fn leading_axes(&self) -> usize {
        self.leading_axes
    }

    /// The number of coordinates of a cell.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.leading_axes + self.dims
    }

    /// The coordinates of the first cell.
    #[must_use]
    pub fn origin(&self) -> &[i64] {
        &self.origin
    }

    /// The array that holds all cells; `None` if each cell has its own.
    #[must_use]
    pub fn array(&self) -> Option<&Arc<Array>> {
        match &self.layout {
            CellLayout::VariableLength(array) | CellLayout::Dense(array) => Some(array),
            CellLayout::ArrayPerCell => None,
        }
    }

    /// The number of cells along each axis; `None` if each cell has its own array.
    #[must_use]
    pub fn grid(&self) -> Option<Vec<u64>> {
        let shape = &self.array()?.metadata().shape;
        Some(shape.get(..self.rank())?.to_vec())
    }

    /// Whether cells are inner chunks of shards.
    #[must_use]
    pub fn is_sharded(&self) -> bool {
        self.array().is_some_and(|array| array.is_sharded())
    }

    /// The index of a cell in the array; `None` if the coordinates lie outside the array or each cell has its own.
    #[must_use]
    pub fn grid_index(&self, coord: &[i64]) -> Option<Vec<u64>> {
        if coord.len() != self.rank() {
            return None;
        }
        let cells =
            coord.iter().zip(&self.origin).map(|(&at, &origin)| u64::try_from(at.checked_sub(origin)?).ok());
        let cells: Vec<u64> = cells.collect::<Option<_>>()?;
        let is_inside = self.grid()?.iter().zip(&cells).all(|(length, cell)| cell < length);
        is_inside.then_some(cells)
    }

    /// The coordinates of the cell at an index of the array.
    pub(super) fn coord_at(&self, cell: &[u64]) -> Option<Coord> {
        let coords = cell
            .iter()
            .zip(&self.origin)
            .map(|(&cell, &origin)| origin.checked_add(i64::try_from(cell).ok()?));
        coords.collect()
    }

    /// The payload of a cell, decompressed but not parsed; `None` if nothing is stored.
    ///
    /// # Errors
    /// [`VectorError::Corrupt`] if it does not decode.
    pub async fn payload(
        &self,
        context: &VectorContext,
        coord: &[i64],
    ) -> Result<Option<Bytes>, VectorError> {
        let payload = match (&self.layout, self.grid_index(coord)) {
            (CellLayout::ArrayPerCell, _) => self.child_payload(context, coord).await,
            (CellLayout::VariableLength(array), Some(cell)) => {
                Self::variable_length_payload(context, array, &cell).await
            }
            (CellLayout::Dense(array), Some(cell)) => self.dense_payload(context, array, &cell).await,
            (CellLayout::VariableLength(_) | CellLayout::Dense(_), None) => return Ok(None),
        };
        payload.map_err(|error| self.cell_error(coord, error))
    }

    async fn variable_length_payload(
        context: &VectorContext,
        array: &Arc<Array>,
        cell: &[u64],
    ) -> Result<Option<Bytes>, VectorError> {
        let one = cell.iter().map(|&start| AxisRange { start, count: 1, step: 1, keep: true }).collect();
        let texts = context.read_elements(array, Subset(one)).await?.into_elements();
        Ok(texts.into_iter().next().filter(|payload| !payload.is_empty()))
    }

    async fn child_payload(
        &self,
        context: &VectorContext,
        coord: &[i64],
    ) -> Result<Option<Bytes>, VectorError> {
        let Some(array) = context.array(&self.path.child(&format_coord(coord))?).await? else {
            return Ok(None);
        };
        let metadata = array.metadata();
        if metadata.data_type != DataType::UInt8 || metadata.shape.len() != 1 {
            return Err(wrong_node(&self.path, "a chunk is not a one-dimensional array of bytes"));
        }
        let whole = Subset::full(&metadata.shape);
        let payload = context.read_elements(&array, whole).await?.into_bytes();
        Ok(Some(payload).filter(|payload| !payload.is_empty()))
    }

    async fn dense_payload(
        &self,
        context: &VectorContext,
        array: &Arc<Array>,
        cell: &[u64],
    ) -> Result<Option<Bytes>, VectorError> {
        let one = || Subset(self.dense_ranges(array, cell));
        let found = context.read_elements(array, one()).await?;
        if found.is_stored {
            return Ok(Some(found.into_bytes()));
        }
        // The keys in the documents' example have fewer coordinates than the encoded keys of such an array.
        let short = Arc::new(short_keys::bind(context, &self.path, array, self.dims)?);
        let found = context.read_elements(&short, one()).await?;
        Ok(found.is_stored.then(|| found.into_bytes()))
    }

    /// The ranges of a dense array that make up one cell.
    fn dense_ranges(&self, array: &Array, cell: &[u64]) -> Vec<AxisRange> {
        let shape = &array.metadata().shape;
        let one = cell.iter().map(|&start| AxisRange { start, count: 1, step: 1, keep: true });
        let rest = shape.iter().skip(self.dims).map(|&length| AxisRange::full(length));
        one.chain(rest).collect()
    }

    /// Maps an array error to an error of this cell if its stored bytes are the cause.
    fn cell_error(&self, coord: &[i64], error: VectorError) -> VectorError {
        match error {
            VectorError::Array(source) if source.class() == ErrorClass::CorruptData => VectorError::Corrupt {
                path: self.path.as_str().to_owned(),
                chunk: format_coord(coord),
                reason: source.to_string(),
            },
            VectorError::Array(ArrayError::TooLarge { limit, .. }) => {
                VectorError::TooMany { what: "bytes in a chunk", estimate: limit.saturating_add(1), limit }
            }
            error => error,
        }
    }
}

/// The coordinates of the first cell; zeros if the attributes have none.
fn origin_of(attributes: &JsonObject, dims: usize, lead: usize) -> Option<Coord> {
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
    VectorError::invalid_metadata("vertices_array", format!("`{}`: {what}", path.as_str()))
}

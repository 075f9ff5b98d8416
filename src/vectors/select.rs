//! Selecting rows of a chunk: [`Batch`] holds them, and [`Schema`] describes all batches of a response.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::attributes::VertexAttribute;
use super::chunk::ChunkVertices;
use super::payload::Fragment;
use super::root::Axis;
use super::{Bbox, Coord, VectorError, format_coord};
use crate::metadata::DataType;

/// An attribute's column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The data type of its values.
    pub kind: DataType,
    /// The number of values in a row.
    pub width: usize,
    /// Whether each row is a list, even of one value.
    pub is_list: bool,
    /// The category of each code, if values are codes.
    pub categories: Option<Arc<[String]>>,
    /// Whether the categories are ordered.
    pub is_ordered: bool,
}

/// Which of the columns that every vertex has are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a set of names")]
pub struct Columns {
    /// The position.
    pub position: bool,
    /// The chunk that holds the vertex.
    pub chunk: bool,
    /// The row in that chunk.
    pub row: bool,
    /// The fragment that the vertex belongs to.
    pub fragment: bool,
    /// The object that the vertex belongs to.
    pub object_id: bool,
}

impl Default for Columns {
    fn default() -> Self {
        Self { position: true, chunk: true, row: true, fragment: false, object_id: false }
    }
}

/// The columns of a response.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The columns that every vertex has.
    pub columns: Columns,
    /// The data type of coordinates.
    pub kind: DataType,
    /// The axes.
    pub axes: Vec<Axis>,
    /// The number of coordinates of a chunk.
    pub chunk_rank: usize,
    /// The requested attributes.
    pub attributes: Vec<Column>,
    /// Further metadata, by name.
    pub notes: Vec<(String, String)>,
}

impl Schema {
    /// The approximate size of a row in bytes.
    #[must_use]
    pub fn row_bytes(&self) -> u64 {
        let position = self.kind.element_bytes() * self.axes.len();
        let attributes =
            self.attributes.iter().map(|column| column.kind.element_bytes().saturating_mul(column.width));
        let own = 8 * self.chunk_rank + 4 + 4 + 8;
        attributes.fold((position + own) as u64, |bytes, column| bytes.saturating_add(column as u64))
    }
}

/// Rows of one chunk.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The chunk.
    pub chunk: Coord,
    /// The row numbers in the chunk.
    pub rows: Vec<u32>,
    /// The positions, little-endian.
    pub positions: Vec<u8>,
    /// The fragment of each row; empty if not requested.
    pub fragments: Vec<Option<u32>>,
    /// The object of each row; empty if not requested.
    pub objects: Vec<Option<i64>>,
    /// The values of each attribute, little-endian.
    pub attributes: Vec<Vec<u8>>,
}

/// The object that each fragment of a chunk belongs to; of several, the one with the smallest id.
pub(super) type FragmentOwners = HashMap<u32, i64>;

/// Which rows of a chunk are selected.
#[derive(Clone, Debug)]
pub(super) enum RowSelection {
    /// Rows in any of these boxes.
    Boxes(Arc<[Bbox]>),
    /// All rows.
    All,
    /// Rows of these fragments.
    Fragments(Arc<[u32]>),
}

/// The selected rows of a chunk, in fragment order, each once.
pub(super) fn select_rows(
    chunk: &ChunkVertices,
    selection: &RowSelection,
    owners: Option<&FragmentOwners>,
) -> Result<Vec<u32>, VectorError> {
    match selection {
        RowSelection::All => Ok(chunk.vertex_rows()),
        RowSelection::Boxes(boxes) => {
            let mut rows = chunk.vertex_rows();
            rows.retain(|&row| is_in_any_box(chunk, row, boxes));
            Ok(rows)
        }
        RowSelection::Fragments(fragments) => {
            let mut seen = vec![false; chunk.positions.rows()];
            let mut rows = Vec::new();
            for &fragment in fragments.iter() {
                for row in find_fragment(chunk, fragment, owners)?.rows() {
                    let Ok(place) = usize::try_from(row) else { continue };
                    if let Some(seen) = seen.get_mut(place).filter(|seen| !**seen) {
                        *seen = true;
                        rows.extend(u32::try_from(row));
                    }
                }
            }
            Ok(rows)
        }
    }
}

/// A fragment of a chunk that a manifest names.
pub(super) fn find_fragment<'a>(
    chunk: &'a ChunkVertices,
    fragment: u32,
    owners: Option<&FragmentOwners>,
) -> Result<Fragment<'a>, VectorError> {
    let found = chunk.fragments.as_ref().and_then(|fragments| fragments.get(usize::try_from(fragment).ok()?));
    found.ok_or_else(|| VectorError::CorruptManifest {
        object: owners.and_then(|owners| owners.get(&fragment).copied()).unwrap_or_default(),
        reason: format!(
            "it names fragment {fragment} of chunk `{}`, which does not exist",
            format_coord(&chunk.coord)
        ),
    })
}

/// Whether a row is in any of the boxes.
pub(super) fn is_in_any_box(chunk: &ChunkVertices, row: u32, boxes: &[Bbox]) -> bool {
    boxes.iter().any(|bbox| bbox.contains(chunk.positions.coordinates(row as usize)))
}

/// Copies the columns of rows of a chunk into a batch.
pub(super) fn gather_rows(
    chunk: &ChunkVertices,
    rows: Vec<u32>,
    columns: Columns,
    owners: Option<&FragmentOwners>,
    attributes: &[(Arc<VertexAttribute>, Bytes)],
) -> Batch {
    let mut positions = Vec::new();
    if columns.position {
        positions.reserve_exact(rows.len().saturating_mul(chunk.positions.row_bytes()));
        for &row in &rows {
            positions.extend_from_slice(chunk.positions.row(row as usize));
        }
    }
    let (mut fragments, mut objects) = (Vec::new(), Vec::new());
    if columns.fragment || columns.object_id {
        let of_row = fragments_of_rows(chunk);
        let found: Vec<Option<u32>> =
            rows.iter().map(|&row| of_row.get(row as usize).copied().flatten()).collect();
        if columns.object_id {
            let owner = |fragment: &Option<u32>| owners?.get(&(*fragment)?).copied();
            objects = found.iter().map(owner).collect();
        }
        if columns.fragment {
            fragments = found;
        }
    }
    let values = attributes.iter().map(|(attribute, values)| {
        let size = attribute.row_bytes();
        let mut gathered = Vec::with_capacity(rows.len().saturating_mul(size));
        for &row in &rows {
            let start = (row as usize).saturating_mul(size);
            gathered.extend_from_slice(values.get(start..start.saturating_add(size)).unwrap_or_default());
        }
        gathered
    });
    let attributes = values.collect();
    Batch { chunk: chunk.coord.clone(), rows, positions, fragments, objects, attributes }
}

/// The first fragment that contains each row of a chunk.
fn fragments_of_rows(chunk: &ChunkVertices) -> Vec<Option<u32>> {
    let mut of_row = vec![None; chunk.positions.rows()];
    for (number, fragment) in
        (0_u32..).zip(chunk.fragments.iter().flat_map(super::payload::FragmentIndex::iter))
    {
        for row in fragment.rows() {
            if let Some(place) = usize::try_from(row).ok().and_then(|row| of_row.get_mut(row)) {
                place.get_or_insert(number);
            }
        }
    }
    of_row
}

impl Batch {
    /// Drops the first `skip` rows, and all after the next `most`.
    pub(super) fn slice_rows(&mut self, skip: usize, most: usize, schema: &Schema) {
        let skip = skip.min(self.rows.len());
        let end = skip.saturating_add(most).min(self.rows.len());
        if skip == 0 && end == self.rows.len() {
            return;
        }
        let bytes = |items: &mut Vec<u8>, row: usize| {
            let (start, end) =
                (skip.saturating_mul(row).min(items.len()), end.saturating_mul(row).min(items.len()));
            items.truncate(end);
            items.drain(..start);
        };
        bytes(&mut self.positions, schema.kind.element_bytes().saturating_mul(schema.axes.len()));
        for (values, column) in self.attributes.iter_mut().zip(&schema.attributes) {
            bytes(values, column.kind.element_bytes().saturating_mul(column.width));
        }
        keep_range(&mut self.rows, skip, end);
        keep_range(&mut self.fragments, skip, end);
        keep_range(&mut self.objects, skip, end);
    }
}

fn keep_range<T>(items: &mut Vec<T>, start: usize, end: usize) {
    items.truncate(end);
    items.drain(..start.min(items.len()));
}

impl VertexAttribute {
    /// The column that describes this attribute in a schema.
    #[must_use]
    pub fn column(&self) -> Column {
        Column {
            name: self.name.clone(),
            kind: self.data_type.clone(),
            width: self.width,
            is_list: self.width != 1 || self.channels.is_some(),
            categories: self.categories.as_ref().map(|categories| categories.as_slice().into()),
            is_ordered: self.is_ordered,
        }
    }
}

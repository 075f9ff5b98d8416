//! Choosing rows of a chunk: [`Batch`], and the [`Schema`] that all batches of an answer have.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::attributes::VertexAttribute;
use super::chunk::ChunkVertices;
use super::payload::Fragment;
use super::root::Axis;
use super::{Bbox, Coord, VectorError, format_coord};
use crate::metadata::DataType;

/// A column of numbers.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The type of its numbers.
    pub kind: DataType,
    /// Numbers of a row.
    pub width: usize,
    /// Whether each row is a list even if it is of one number.
    pub is_list: bool,
    /// What the numbers stand for, if they are codes.
    pub categories: Option<Arc<[String]>>,
    /// Whether the categories have an order.
    pub is_ordered: bool,
}

/// Which of the columns that every vertex has are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a set of names")]
pub struct Columns {
    /// Where it is.
    pub position: bool,
    /// The chunk it is in.
    pub chunk: bool,
    /// Its row in the chunk.
    pub row: bool,
    /// The fragment it belongs to.
    pub fragment: bool,
    /// The object it belongs to.
    pub object_id: bool,
}

impl Default for Columns {
    fn default() -> Self {
        Self { position: true, chunk: true, row: true, fragment: false, object_id: false }
    }
}

/// What the rows of an answer have.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The columns that every vertex has.
    pub columns: Columns,
    /// The type of coordinates.
    pub kind: DataType,
    /// The axes.
    pub axes: Vec<Axis>,
    /// Coordinates of a chunk.
    pub chunk_rank: usize,
    /// The attributes asked for.
    pub attributes: Vec<Column>,
    /// What else there is to say, by name.
    pub notes: Vec<(String, String)>,
}

impl Schema {
    /// Bytes of a row, about.
    #[must_use]
    pub fn row_bytes(&self) -> u64 {
        let position = self.kind.item_bytes() * self.axes.len();
        let attributes =
            self.attributes.iter().map(|column| column.kind.item_bytes().saturating_mul(column.width));
        let own = 8 * self.chunk_rank + 4 + 4 + 8;
        attributes.fold((position + own) as u64, |bytes, column| bytes.saturating_add(column as u64))
    }
}

/// Rows of one chunk.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The chunk.
    pub chunk: Coord,
    /// The rows, by their numbers in the chunk.
    pub rows: Vec<u32>,
    /// Where they are: little-endian.
    pub positions: Vec<u8>,
    /// The fragment of each; empty if that was not asked for.
    pub fragments: Vec<Option<u32>>,
    /// The object of each; empty if that was not asked for.
    pub objects: Vec<Option<i64>>,
    /// The values of each attribute, little-endian.
    pub attributes: Vec<Vec<u8>>,
}

/// Which object each fragment of a chunk belongs to: the first, if several share it.
pub(super) type FragmentOwners = HashMap<u32, i64>;

/// Which rows of a chunk are wanted.
#[derive(Clone, Debug)]
pub(super) enum RowSelection {
    /// Those in one of these boxes.
    Boxes(Arc<[Bbox]>),
    /// All.
    All,
    /// Those of these fragments.
    Fragments(Arc<[u32]>),
}

/// The rows of a chunk that are wanted, in fragment order.
pub(super) fn select_rows(
    chunk: &ChunkVertices,
    pick: &RowSelection,
    owners: Option<&FragmentOwners>,
) -> Result<Vec<u32>, VectorError> {
    match pick {
        RowSelection::All => Ok(chunk.vertex_rows()),
        RowSelection::Boxes(boxes) => {
            let mut rows = chunk.vertex_rows();
            rows.retain(|&row| is_in_any_box(chunk, row, boxes));
            Ok(rows)
        }
        RowSelection::Fragments(wanted) => {
            let mut seen = vec![false; chunk.positions.rows()];
            let mut rows = Vec::new();
            for &fragment in wanted.iter() {
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

/// A fragment that an object names.
pub(super) fn find_fragment<'a>(
    chunk: &'a ChunkVertices,
    fragment: u32,
    owners: Option<&FragmentOwners>,
) -> Result<Fragment<'a>, VectorError> {
    let found = chunk.fragments.as_ref().and_then(|fragments| fragments.get(usize::try_from(fragment).ok()?));
    found.ok_or_else(|| VectorError::CorruptManifest {
        object: owners.and_then(|owners| owners.get(&fragment).copied()).unwrap_or_default(),
        reason: format!(
            "it names fragment {fragment} of chunk `{}`, which has none such",
            format_coord(&chunk.coord)
        ),
    })
}

/// Whether a row is in one of the boxes.
pub(super) fn is_in_any_box(chunk: &ChunkVertices, row: u32, boxes: &[Bbox]) -> bool {
    boxes.iter().any(|bbox| bbox.contains(chunk.positions.coordinates(row as usize)))
}

/// Gathers rows of a chunk.
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

/// The first fragment that has each row of a chunk.
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
    /// Leaves out the first rows, and all beyond so many.
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
        bytes(&mut self.positions, schema.kind.item_bytes().saturating_mul(schema.axes.len()));
        for (values, column) in self.attributes.iter_mut().zip(&schema.attributes) {
            bytes(values, column.kind.item_bytes().saturating_mul(column.width));
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
    /// The column that holds it.
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

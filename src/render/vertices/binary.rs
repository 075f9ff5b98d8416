//! Vertices as one binary frame: a length of four bytes, a header in JSON, and the columns, each at a multiple of eight
//! bytes.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::vectors::{Batch, Schema};

/// Columns begin at a multiple of this many bytes.
const ALIGNMENT: usize = 8;

/// Collects columns until the frame is written.
#[derive(Debug)]
pub struct BinaryVertices {
    schema: Arc<Schema>,
    rows: u64,
    positions: Vec<u8>,
    chunks: Vec<u8>,
    row_numbers: Vec<u8>,
    fragments: Vec<u8>,
    objects: Vec<u8>,
    /// Whether each row belongs to an object: one byte each.
    has_object: Vec<u8>,
    attributes: Vec<Vec<u8>>,
}

/// A complete column.
struct BinaryColumn {
    name: String,
    kind: String,
    width: usize,
    bytes: Vec<u8>,
    categories: Option<Arc<[String]>>,
}

impl BinaryVertices {
    /// A writer of rows of this schema.
    #[must_use]
    pub fn new(schema: Arc<Schema>) -> Self {
        let attributes = vec![Vec::new(); schema.attributes.len()];
        Self {
            schema,
            rows: 0,
            positions: Vec::new(),
            chunks: Vec::new(),
            row_numbers: Vec::new(),
            fragments: Vec::new(),
            objects: Vec::new(),
            has_object: Vec::new(),
            attributes,
        }
    }

    /// Adds the rows of a chunk.
    pub fn write(&mut self, batch: &Batch) {
        let columns = self.schema.columns;
        self.rows += batch.rows.len() as u64;
        self.positions.extend_from_slice(&batch.positions);
        if columns.chunk {
            let one: Vec<u8> = batch.chunk.iter().flat_map(|at| at.to_le_bytes()).collect();
            self.chunks.extend(one.repeat(batch.rows.len()));
        }
        if columns.row {
            self.row_numbers.extend(batch.rows.iter().flat_map(|row| row.to_le_bytes()));
        }
        // The largest number stands for none.
        let fragments = batch.fragments.iter().map(|fragment| fragment.unwrap_or(u32::MAX));
        self.fragments.extend(fragments.flat_map(u32::to_le_bytes));
        self.objects.extend(batch.objects.iter().flat_map(|id| id.unwrap_or_default().to_le_bytes()));
        self.has_object.extend(batch.objects.iter().map(|id| u8::from(id.is_some())));
        for (column, values) in self.attributes.iter_mut().zip(&batch.attributes) {
            column.extend_from_slice(values);
        }
    }

    /// Bytes of the columns so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let own = [
            &self.positions,
            &self.chunks,
            &self.row_numbers,
            &self.fragments,
            &self.objects,
            &self.has_object,
        ];
        own.into_iter().chain(&self.attributes).map(|column| column.len() as u64).sum()
    }

    /// The frame, with these additional members in its header.
    #[must_use]
    pub fn finish(self, rest: Map<String, Value>) -> Vec<u8> {
        let rows = self.rows;
        let parts = self.into_columns();
        let (mut offset, mut columns) = (0_usize, Vec::new());
        for part in &parts {
            columns.push(json!({
                "name": part.name, "dtype": part.kind, "width": part.width,
                "offset": offset, "length": part.bytes.len(),
            }));
            if let (Some(categories), Some(Value::Object(column))) = (&part.categories, columns.last_mut()) {
                column.insert("categories".to_owned(), json!(**categories));
            }
            offset += part.bytes.len().next_multiple_of(ALIGNMENT);
        }
        let mut header = Map::new();
        header.insert("rows".to_owned(), json!(rows));
        header.insert("columns".to_owned(), Value::Array(columns));
        header.extend(rest);
        let header = Value::Object(header).to_string();
        // The header is far below 4 GiB: it contains no rows.
        let length = u32::try_from(header.len()).unwrap_or(u32::MAX);
        let mut frame = length.to_le_bytes().to_vec();
        frame.extend_from_slice(header.as_bytes());
        pad_to_alignment(&mut frame);
        for part in parts {
            frame.extend_from_slice(&part.bytes);
            pad_to_alignment(&mut frame);
        }
        frame
    }

    fn into_columns(self) -> Vec<BinaryColumn> {
        let Schema { columns, kind, axes, chunk_rank: coordinates, attributes, .. } = &*self.schema;
        let own = [
            (columns.position, "position", kind.name(), axes.len(), self.positions),
            (columns.chunk, "chunk", "int64".to_owned(), *coordinates, self.chunks),
            (columns.row, "row", "uint32".to_owned(), 1, self.row_numbers),
            (columns.fragment, "fragment", "uint32".to_owned(), 1, self.fragments),
            (columns.object_id, "object_id", "int64".to_owned(), 1, self.objects),
            (columns.object_id, "has_object_id", "bool".to_owned(), 1, self.has_object),
        ];
        let own =
            own.into_iter().filter(|(is_wanted, ..)| *is_wanted).map(|(_, name, kind, width, bytes)| {
                BinaryColumn { name: name.to_owned(), kind, width, bytes, categories: None }
            });
        let values = attributes.iter().zip(self.attributes).map(|(column, bytes)| BinaryColumn {
            name: column.name.clone(),
            kind: column.kind.name(),
            width: column.width,
            bytes,
            categories: column.categories.clone(),
        });
        own.chain(values).collect()
    }
}

fn pad_to_alignment(frame: &mut Vec<u8>) {
    frame.resize(frame.len().next_multiple_of(ALIGNMENT), 0);
}

//! Vertices as one JSON object: positions, attributes, chunks and row numbers. NaN is null.

use std::io::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::codes::category_indices;
use crate::metadata::DataType;
use crate::render::json::write_element;
use crate::render::{NanMode, RenderError};
use crate::vectors::{Batch, Column, Schema};

/// Collects the members until the object is written.
#[derive(Debug)]
pub struct JsonVertices {
    schema: Arc<Schema>,
    positions: Vec<u8>,
    attributes: Vec<Vec<u8>>,
    chunks: Vec<u8>,
    fragments: Vec<u8>,
    objects: Vec<u8>,
}

impl JsonVertices {
    /// A writer of rows of this schema.
    #[must_use]
    pub fn new(schema: Arc<Schema>) -> Self {
        let attributes = vec![Vec::new(); schema.attributes.len()];
        let (positions, chunks, fragments, objects) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { schema, positions, attributes, chunks, fragments, objects }
    }

    /// Adds the rows of a chunk.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`].
    pub fn write(&mut self, batch: &Batch) -> Result<(), RenderError> {
        let Schema { columns, kind, axes, attributes, .. } = &*self.schema;
        if columns.position {
            write_rows(kind, axes.len(), true, &batch.positions, &mut self.positions)?;
        }
        for ((column, values), out) in attributes.iter().zip(&batch.attributes).zip(&mut self.attributes) {
            if column.categories.is_some() {
                write_categories(column, values, out);
            } else {
                write_rows(&column.kind, column.width, column.is_list, values, out)?;
            }
        }
        if columns.chunk {
            let mut chunk = json!({ "coord": batch.chunk });
            match &mut chunk {
                Value::Object(chunk) if columns.row => chunk.insert("rows".to_owned(), json!(batch.rows)),
                Value::Object(chunk) => chunk.insert("count".to_owned(), json!(batch.rows.len())),
                _ => None,
            };
            append_value(&mut self.chunks, &chunk);
        }
        batch.fragments.iter().for_each(|fragment| append_value(&mut self.fragments, &json!(fragment)));
        batch.objects.iter().for_each(|id| append_value(&mut self.objects, &json!(id)));
        Ok(())
    }

    /// Bytes so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let own = [&self.positions, &self.chunks, &self.fragments, &self.objects];
        own.into_iter().chain(&self.attributes).map(|part| part.len() as u64).sum()
    }

    /// The object, with these additional members after the rows.
    #[must_use]
    pub fn finish(self, rest: Map<String, Value>) -> Vec<u8> {
        let columns = self.schema.columns;
        let mut out = b"{".to_vec();
        if columns.position {
            write_list_member(&mut out, "positions", &self.positions);
        }
        let mut attributes = b"{".to_vec();
        for (column, values) in self.schema.attributes.iter().zip(&self.attributes) {
            write_list_member(&mut attributes, &column.name, values);
        }
        attributes.push(b'}');
        write_member_name(&mut out, "attributes");
        out.append(&mut attributes);
        if columns.chunk {
            write_list_member(&mut out, "chunks", &self.chunks);
        }
        if columns.fragment {
            write_list_member(&mut out, "fragments", &self.fragments);
        }
        if columns.object_id {
            write_list_member(&mut out, "object_ids", &self.objects);
        }
        for (name, value) in rest {
            write_member_name(&mut out, &name);
            // Writing to a vector does not fail.
            let _ = write!(out, "{value}");
        }
        out.push(b'}');
        out
    }
}

fn write_member_name(out: &mut Vec<u8>, name: &str) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    let _ = write!(out, "{}:", Value::from(name));
}

/// Writes a member that is a list of these items.
fn write_list_member(out: &mut Vec<u8>, name: &str, items: &[u8]) {
    write_member_name(out, name);
    out.push(b'[');
    out.extend_from_slice(items);
    out.push(b']');
}

fn append_value(out: &mut Vec<u8>, value: &Value) {
    if !out.is_empty() {
        out.push(b',');
    }
    let _ = write!(out, "{value}");
}

/// Writes rows of numbers: as lists, or one number each.
fn write_rows(
    kind: &DataType,
    width: usize,
    is_list: bool,
    values: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), RenderError> {
    let size = kind.element_bytes();
    for row in values.chunks_exact(size.saturating_mul(width).max(1)) {
        if !out.is_empty() {
            out.push(b',');
        }
        if is_list {
            out.push(b'[');
        }
        for (index, item) in row.chunks_exact(size).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_element(kind, NanMode::Null, item, out)?;
        }
        if is_list {
            out.push(b']');
        }
    }
    Ok(())
}

/// Writes the categories of codes.
fn write_categories(column: &Column, values: &[u8], out: &mut Vec<u8>) {
    let texts = column.categories.as_deref().unwrap_or_default();
    let of =
        |code: &Option<usize>| code.and_then(|code| texts.get(code)).map_or(Value::Null, |text| json!(text));
    let found: Vec<Value> = category_indices(column, values).iter().map(of).collect();
    if column.is_list {
        found.chunks(column.width.max(1)).for_each(|row| append_value(out, &json!(row)));
    } else {
        for value in &found {
            append_value(out, value);
        }
    }
}

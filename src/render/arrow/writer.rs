//! [`ArrowWriter`]: writes elements as a stream of Arrow record batches, a batch of whole rows at a time.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Fields, Schema, SchemaRef};

use super::{columns, types};
use crate::chunk::Elements;
use crate::metadata::DataType;
use crate::render::format::{Encoding, Format};
use crate::render::size::{check_bytes, product};
use crate::render::{RenderError, ResultSchema, Writer};

/// The name of the only column.
const COLUMN: &str = "values";

pub(in crate::render) const FORMAT: Format = Format {
    name: "arrow",
    media_type: "application/vnd.apache.arrow.stream",
    extension: "arrow",
    description: "an Arrow IPC stream of record batches, with the outermost dimension as rows. It has a column \
        `values`, or one column for each field of a struct",
    header_line: None,
    encoding: Encoding::Written {
        max_bytes: types::max_bytes,
        writer: |_, schema, limit| Ok(Box::new(ArrowWriter::new(schema, limit)?)),
    },
};

/// Writes complete rows as they arrive, one record batch per call.
pub(in crate::render) struct ArrowWriter {
    data_type: DataType,
    /// Lengths of the nested lists of a row; one length if a row is a tensor, none if it is one element.
    inner_shape: Vec<u64>,
    /// Elements of a row; at least 1.
    row_elements: usize,
    pub(super) schema: SchemaRef,
    stream: StreamWriter<Vec<u8>>,
    /// Elements written or pending.
    received: u64,
    /// Elements of the whole array.
    total: u64,
    /// The number of rows, if rows have no elements; else 0.
    empty_rows: usize,
    /// Items of an incomplete row.
    pending_items: Vec<u8>,
    /// Elements of variable length of an incomplete row.
    pending_values: Vec<Vec<u8>>,
}

impl fmt::Debug for ArrowWriter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ArrowWriter").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl From<ArrowError> for RenderError {
    fn from(error: ArrowError) -> Self {
        Self::ArrowFailed { reason: error.to_string() }
    }
}

/// The number of rows, if Arrow can count them.
fn row_count(shape: &[u64]) -> Result<usize, RenderError> {
    let rows = shape.first().copied().unwrap_or(1);
    let limit = i64::MAX.unsigned_abs();
    usize::try_from(rows).ok().filter(|_| rows <= limit).ok_or(RenderError::TooLarge { bytes: rows, limit })
}

impl ArrowWriter {
    /// A writer for these elements.
    ///
    /// # Errors
    /// [`RenderError::TooLarge`].
    pub(in crate::render) fn new(schema: &ResultSchema, limit: u64) -> Result<Self, RenderError> {
        let ResultSchema { data_type, shape, dimension_names, .. } = schema;
        check_bytes(types::max_bytes(schema), limit)?;
        let inner = shape.get(1..).unwrap_or_default();
        let row_elements = product(inner);
        types::list_size(row_elements)?;
        let fields = match data_type {
            DataType::Struct(structure) if inner.is_empty() => types::fields(structure)?,
            _ => {
                let inner_names = dimension_names.as_ref().and_then(|names| names.get(1..));
                Fields::from(vec![types::column(COLUMN, data_type, inner, inner_names)?])
            }
        };
        let mut metadata = HashMap::from([
            ("zarr.shape".to_owned(), format!("{shape:?}")),
            ("zarr.data_type".to_owned(), data_type.to_metadata().to_string()),
        ]);
        if let Some(names) = dimension_names {
            metadata.insert("zarr.dimension_names".to_owned(), serde_json::json!(names).to_string());
        }
        let stream_schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let inner_shape = if types::is_tensor_type(data_type) && !inner.is_empty() {
            vec![row_elements]
        } else {
            inner.to_vec()
        };
        Ok(Self {
            data_type: data_type.clone(),
            inner_shape,
            row_elements: usize::try_from(row_elements).unwrap_or(usize::MAX).max(1),
            stream: StreamWriter::try_new(Vec::new(), &stream_schema)?,
            schema: stream_schema,
            received: 0,
            total: schema.element_count(),
            empty_rows: if row_elements == 0 { row_count(shape)? } else { 0 },
            pending_items: Vec::new(),
            pending_values: Vec::new(),
        })
    }

    fn count_elements(&mut self, elements: u64) -> Result<(), RenderError> {
        self.received = self.received.saturating_add(elements);
        if self.received > self.total { Err(RenderError::ElementCount) } else { Ok(()) }
    }

    /// Writes the complete rows of these elements.
    fn write_batch(&mut self, elements: arrow_array::ArrayRef) -> Result<(), RenderError> {
        let rows = elements.len() / self.row_elements;
        if rows == 0 {
            return Ok(());
        }
        let columns = match (&self.data_type, &self.inner_shape[..]) {
            (DataType::Struct(_), []) => columns::struct_columns(&elements)?,
            (_, inner_shape) => {
                let field: &Field = self.schema.field(0);
                vec![columns::nest_lists(elements, field.data_type(), inner_shape.len())?]
            }
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        Ok(self.stream.write(&batch)?)
    }
}

impl Writer for ArrowWriter {
    fn write(&mut self, elements: &Elements, out: &mut Vec<u8>) -> Result<(), RenderError> {
        if self.data_type.is_variable() {
            let kept = std::mem::take(&mut self.pending_values);
            let texts: Vec<&[u8]> =
                kept.iter().map(Vec::as_slice).chain(elements.variable_elements()).collect();
            self.count_elements((texts.len() - kept.len()) as u64)?;
            let (whole, rest) = texts.split_at(texts.len() / self.row_elements * self.row_elements);
            self.pending_values = rest.iter().map(|text| text.to_vec()).collect();
            self.write_batch(columns::variable_size_column(&self.data_type, whole)?)?;
        } else {
            let element_bytes = self.data_type.element_bytes();
            if !elements.items().len().is_multiple_of(element_bytes) {
                return Err(RenderError::ElementCount);
            }
            self.count_elements((elements.items().len() / element_bytes) as u64)?;
            let mut items = std::mem::take(&mut self.pending_items);
            items.extend_from_slice(elements.items());
            let row_bytes = self.row_elements.saturating_mul(element_bytes);
            let (whole, rest) = items.split_at(items.len() / row_bytes * row_bytes);
            self.pending_items = rest.to_vec();
            self.write_batch(columns::fixed_size_column(&self.data_type, whole)?)?;
        }
        out.append(self.stream.get_mut());
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError> {
        if self.received != self.total {
            return Err(RenderError::ElementCount);
        }
        if self.empty_rows > 0 {
            let lists = columns::empty_lists(self.schema.field(0).data_type(), self.empty_rows)?;
            self.stream.write(&RecordBatch::try_new(Arc::clone(&self.schema), vec![lists])?)?;
        }
        self.stream.finish()?;
        out.append(self.stream.get_mut());
        Ok(())
    }
}

//! Vertices as a stream of Arrow record batches (Arrow columnar format, "IPC Streaming Format"), one batch per chunk.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::types::{Int32Type, Int64Type, UInt32Type};
use arrow_array::{
    ArrayRef, DictionaryArray, FixedSizeListArray, PrimitiveArray, RecordBatch, RecordBatchOptions,
    StringArray,
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema, SchemaRef};
use serde_json::json;

use super::codes::category_indices;
use crate::render::RenderError;
use crate::render::arrow::fixed_size_column;
use crate::vectors::{Batch, Column, Schema};

/// The name of the items of a list, as in other implementations.
const ITEM: &str = "item";

/// Writes batches as they arrive.
pub struct ArrowVertices {
    schema: Arc<Schema>,
    arrow: SchemaRef,
    /// The categories of each attribute that has any.
    categories: Vec<Option<ArrayRef>>,
    stream: StreamWriter<Vec<u8>>,
}

impl fmt::Debug for ArrowVertices {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ArrowVertices").field("schema", &self.arrow).finish_non_exhaustive()
    }
}

impl ArrowVertices {
    /// A writer of rows of this schema.
    ///
    /// # Errors
    /// [`RenderError::ArrowFailed`].
    pub fn new(schema: Arc<Schema>) -> Result<Self, RenderError> {
        let arrow = Arc::new(arrow_schema(&schema)?);
        let texts = |column: &Column| -> Option<ArrayRef> {
            let categories = column.categories.as_ref()?;
            Some(Arc::new(StringArray::from_iter_values(categories.iter())))
        };
        let categories = schema.attributes.iter().map(texts).collect();
        let stream = StreamWriter::try_new(Vec::new(), &arrow)?;
        Ok(Self { schema, arrow, categories, stream })
    }

    /// Appends the rows of a chunk.
    ///
    /// # Errors
    /// [`RenderError::ArrowFailed`].
    pub fn write(&mut self, batch: &Batch, out: &mut Vec<u8>) -> Result<(), RenderError> {
        let Schema { columns, kind, axes, chunk_rank: coordinates, attributes, .. } = &*self.schema;
        let rows = batch.rows.len();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(5 + attributes.len());
        if columns.position {
            arrays.push(list_column(fixed_size_column(kind, &batch.positions)?, axes.len())?);
        }
        if columns.chunk {
            let repeated = batch.chunk.iter().copied().cycle().take(rows.saturating_mul(batch.chunk.len()));
            arrays.push(list_column(
                Arc::new(PrimitiveArray::<Int64Type>::from_iter_values(repeated)),
                *coordinates,
            )?);
        }
        if columns.row {
            arrays.push(Arc::new(PrimitiveArray::<UInt32Type>::from_iter_values(batch.rows.iter().copied())));
        }
        if columns.fragment {
            arrays.push(Arc::new(batch.fragments.iter().copied().collect::<PrimitiveArray<UInt32Type>>()));
        }
        if columns.object_id {
            arrays.push(Arc::new(batch.objects.iter().copied().collect::<PrimitiveArray<Int64Type>>()));
        }
        for ((column, values), categories) in attributes.iter().zip(&batch.attributes).zip(&self.categories) {
            let array = match categories {
                Some(categories) => dictionary_column(column, values, categories)?,
                None => fixed_size_column(&column.kind, values)?,
            };
            arrays.push(if column.is_list { list_column(array, column.width)? } else { array });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.arrow), arrays, &options)?;
        self.stream.write(&batch)?;
        out.append(self.stream.get_mut());
        Ok(())
    }

    /// Appends the end of the stream, and its beginning if there were no rows.
    ///
    /// # Errors
    /// [`RenderError::ArrowFailed`].
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), RenderError> {
        self.stream.finish()?;
        out.append(self.stream.get_mut());
        Ok(())
    }
}

fn arrow_schema(schema: &Schema) -> Result<ArrowSchema, RenderError> {
    let Schema { columns, kind, axes, chunk_rank: coordinates, attributes, notes } = schema;
    let number = |kind| Ok::<_, RenderError>(fixed_size_column(kind, &[])?.data_type().clone());
    let mut fields = Vec::new();
    if columns.position {
        let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
        let units: Vec<Option<&str>> = axes.iter().map(|axis| axis.unit.as_deref()).collect();
        let metadata = HashMap::from([
            ("axes".to_owned(), json!(names).to_string()),
            ("units".to_owned(), json!(units).to_string()),
        ]);
        let field = Field::new("position", list_type(number(kind)?, axes.len())?, false);
        fields.push(field.with_metadata(metadata));
    }
    if columns.chunk {
        fields.push(Field::new("chunk", list_type(ArrowType::Int64, *coordinates)?, false));
    }
    let scalars = [
        (columns.row, Field::new("row", ArrowType::UInt32, false)),
        (columns.fragment, Field::new("fragment", ArrowType::UInt32, true)),
        (columns.object_id, Field::new("object_id", ArrowType::Int64, true)),
    ];
    fields.extend(scalars.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, field)| field));
    for column in attributes {
        let one = match &column.categories {
            Some(_) => ArrowType::Dictionary(Box::new(ArrowType::Int32), Box::new(ArrowType::Utf8)),
            None => number(&column.kind)?,
        };
        let whole = if column.is_list { list_type(one, column.width)? } else { one };
        fields.push(Field::new(&column.name, whole, column.categories.is_some()));
    }
    let metadata: HashMap<String, String> = notes.iter().cloned().collect();
    Ok(ArrowSchema::new_with_metadata(fields, metadata))
}

fn item_field(kind: ArrowType) -> Arc<Field> {
    Arc::new(Field::new(ITEM, kind, true))
}

fn list_type(kind: ArrowType, size: usize) -> Result<ArrowType, RenderError> {
    Ok(ArrowType::FixedSizeList(item_field(kind), list_size(size)?))
}

fn list_size(size: usize) -> Result<i32, RenderError> {
    i32::try_from(size).map_err(|_too_long| RenderError::ElementCount)
}

fn list_column(items: ArrayRef, size: usize) -> Result<ArrayRef, RenderError> {
    let field = item_field(items.data_type().clone());
    Ok(Arc::new(FixedSizeListArray::try_new(field, list_size(size)?, items, None)?))
}

fn dictionary_column(column: &Column, values: &[u8], categories: &ArrayRef) -> Result<ArrayRef, RenderError> {
    let keys = category_indices(column, values).into_iter().map(|code| i32::try_from(code?).ok());
    let keys: PrimitiveArray<Int32Type> = keys.collect();
    Ok(Arc::new(DictionaryArray::try_new(keys, Arc::clone(categories))?))
}

//! [`ArrowTable`]: writes a table as a stream of Arrow record batches, with a column of its own type for each name.

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Field, Schema, SchemaRef};

use super::{columns, types};
use crate::metadata::DataType;
use crate::render::RenderError;
use crate::render::table::{
    ColumnContent, ElementTable, LabelColumn, LabelSource, TableColumn, TableRows, TableWriter,
    position_element,
};

/// Writes the rows of one call as one record batch.
pub(in crate::render) struct ArrowTable {
    columns: Vec<TableColumn>,
    schema: SchemaRef,
    stream: StreamWriter<Vec<u8>>,
}

impl fmt::Debug for ArrowTable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ArrowTable").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl ArrowTable {
    /// A table of these columns.
    ///
    /// # Errors
    /// [`RenderError`] if Arrow has no such type.
    pub(in crate::render) fn new(columns: Vec<TableColumn>) -> Result<Self, RenderError> {
        let fields: Vec<Field> = columns.iter().map(table_field).collect::<Result<_, _>>()?;
        let schema = Arc::new(Schema::new(fields));
        let stream = StreamWriter::try_new(Vec::new(), &schema)?;
        Ok(Self { columns, schema, stream })
    }
}

/// The field of a column.
///
/// # Errors
/// [`RenderError`] if Arrow has no such type.
pub(in crate::render) fn table_field(column: &TableColumn) -> Result<Field, RenderError> {
    let field = types::field(&column.name, &column.data_type)?;
    let Some(units) = &column.units else { return Ok(field) };
    let mut metadata = field.metadata().clone();
    metadata.insert("units".to_owned(), units.units.clone());
    metadata.insert("calendar".to_owned(), units.calendar.clone());
    Ok(field.with_metadata(metadata))
}

/// Rows as an array for each column.
///
/// # Errors
/// [`RenderError::ElementCount`] if there are not as many elements as rows; what Arrow cannot represent.
pub(in crate::render) fn table_arrays(
    columns: &[TableColumn],
    rows: &TableRows,
) -> Result<Vec<ArrayRef>, RenderError> {
    let mut values = rows.values.iter();
    let mut arrays = Vec::with_capacity(columns.len());
    for column in columns {
        arrays.push(match &column.content {
            ColumnContent::Values => {
                let elements = values.next().ok_or(RenderError::ElementCount)?;
                if column.data_type.is_variable() {
                    let elements: Vec<&[u8]> = elements.variable_elements().collect();
                    columns::variable_size_column(&column.data_type, &elements)?
                } else {
                    columns::fixed_size_column(&column.data_type, elements.items())?
                }
            }
            ColumnContent::Labels(labels) => label_array(&column.data_type, labels, rows)?,
        });
    }
    if arrays.iter().any(|array| array.len() != rows.count) {
        return Err(RenderError::ElementCount);
    }
    Ok(arrays)
}

/// A column of labels.
fn label_array(
    data_type: &DataType,
    labels: &LabelColumn,
    rows: &TableRows,
) -> Result<ArrayRef, RenderError> {
    let places = (0..rows.count as u64).map(|row| labels.place(rows.first.saturating_add(row)));
    let elements = match &labels.labels {
        LabelSource::Positions(range) => {
            let positions: Vec<[u8; 8]> = places.map(|place| position_element(range, place)).collect();
            return columns::fixed_size_column(data_type, positions.as_flattened());
        }
        LabelSource::Elements(elements) => ElementTable::new(data_type, elements),
    };
    let label = |place: u64| elements.get(usize::try_from(place).unwrap_or(usize::MAX));
    let labels: Vec<&[u8]> = places.map(label).collect::<Result<_, _>>()?;
    if data_type.is_variable() {
        columns::variable_size_column(data_type, &labels)
    } else {
        columns::fixed_size_column(data_type, &labels.concat())
    }
}

impl TableWriter for ArrowTable {
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError> {
        out.append(self.stream.get_mut());
        Ok(())
    }

    fn write(&mut self, rows: &TableRows, out: &mut Vec<u8>) -> Result<(), RenderError> {
        let arrays = table_arrays(&self.columns, rows)?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.count));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        self.stream.write(&batch)?;
        out.append(self.stream.get_mut());
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError> {
        self.stream.finish()?;
        out.append(self.stream.get_mut());
        Ok(())
    }
}

//! [`TextTable`]: a table as CSV (RFC 4180), or as a JSON list of an object for each row.

use super::column::{ColumnContent, LabelColumn, LabelSource, TableColumn, position_element};
use super::writer::{ElementTable, TableRows, TableWriter};
use crate::chunk::AxisRange;
use crate::metadata::DataType;
use crate::render::csv::{write_cell, write_quoted};
use crate::render::json::write_element;
use crate::render::{NanMode, RenderError};

/// The syntax of a text.
#[derive(Clone, Copy, Debug)]
enum TextSyntax {
    Csv,
    Json,
}

/// Writes a table as text.
#[derive(Debug)]
pub(super) struct TextTable {
    syntax: TextSyntax,
    nan: NanMode,
    columns: Vec<TextColumn>,
    /// What comes before the rows.
    beginning: Vec<u8>,
    has_rows: bool,
    /// A buffer for one cell, reused.
    cell: Vec<u8>,
}

/// A column, and what comes before its cell in a row.
#[derive(Debug)]
struct TextColumn {
    before: Vec<u8>,
    data_type: DataType,
    cells: TextCells,
}

/// Where the cells of a column are from.
#[derive(Debug)]
enum TextCells {
    /// The elements of the rows.
    Values,
    /// Labels, as text.
    Labels { column: LabelColumn, text: Vec<u8>, ends: Vec<usize> },
    /// Positions.
    Positions { column: LabelColumn, range: AxisRange },
}

impl TextTable {
    /// A table as CSV, with a line of names or without.
    ///
    /// # Errors
    /// [`RenderError`] if a label is no text.
    pub(super) fn csv(columns: Vec<TableColumn>, header: bool) -> Result<Self, RenderError> {
        let mut beginning = Vec::new();
        if header {
            for (place, column) in columns.iter().enumerate() {
                if place > 0 {
                    beginning.push(b',');
                }
                write_quoted(column.name.as_bytes(), &mut beginning);
            }
            beginning.extend_from_slice(b"\r\n");
        }
        let before = |place, _: &str| if place > 0 { b",".to_vec() } else { Vec::new() };
        Self::new(TextSyntax::Csv, NanMode::String, columns, beginning, before)
    }

    /// A table as JSON.
    ///
    /// # Errors
    /// [`RenderError`] if a label is no text.
    pub(super) fn json(columns: Vec<TableColumn>, nan: NanMode) -> Result<Self, RenderError> {
        let before = |place, name: &str| {
            let opening = if place > 0 { "," } else { "{" };
            format!("{opening}{}:", serde_json::Value::from(name)).into_bytes()
        };
        Self::new(TextSyntax::Json, nan, columns, b"[".to_vec(), before)
    }

    fn new(
        syntax: TextSyntax,
        nan: NanMode,
        columns: Vec<TableColumn>,
        beginning: Vec<u8>,
        before: impl Fn(usize, &str) -> Vec<u8>,
    ) -> Result<Self, RenderError> {
        let mut cell = Vec::new();
        let mut text_columns = Vec::with_capacity(columns.len());
        for (place, column) in columns.into_iter().enumerate() {
            let cells = match column.content {
                ColumnContent::Values => TextCells::Values,
                ColumnContent::Labels(labels) => match &labels.labels {
                    LabelSource::Positions(range) => {
                        let range = *range;
                        TextCells::Positions { column: labels, range }
                    }
                    LabelSource::Elements(elements) => {
                        let (mut text, mut ends) = (Vec::new(), Vec::new());
                        elements.try_for_each(&column.data_type, |element| {
                            syntax.write(&column.data_type, nan, element, &mut cell, &mut text)?;
                            ends.push(text.len());
                            Ok::<_, RenderError>(())
                        })?;
                        text.shrink_to_fit();
                        TextCells::Labels { column: labels, text, ends }
                    }
                },
            };
            let before = before(place, &column.name);
            text_columns.push(TextColumn { before, data_type: column.data_type, cells });
        }
        Ok(Self { syntax, nan, columns: text_columns, beginning, has_rows: false, cell })
    }
}

impl TextSyntax {
    /// Writes one element.
    fn write(
        self,
        data_type: &DataType,
        nan: NanMode,
        element: &[u8],
        cell: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        match self {
            Self::Csv => write_cell(data_type, nan, element, cell, out),
            Self::Json => write_element(data_type, nan, element, out),
        }
    }
}

impl TableWriter for TextTable {
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError> {
        out.append(&mut self.beginning);
        Ok(())
    }

    fn write(&mut self, rows: &TableRows, out: &mut Vec<u8>) -> Result<(), RenderError> {
        let Self { syntax, nan, columns, has_rows, cell, .. } = self;
        let of_values = columns.iter().filter(|column| matches!(column.cells, TextCells::Values));
        let values: Vec<ElementTable<'_>> = of_values
            .zip(&rows.values)
            .map(|(column, elements)| ElementTable::new(&column.data_type, elements))
            .collect();
        for place in 0..rows.count {
            let row = rows.first.saturating_add(place as u64);
            if *has_rows && matches!(syntax, TextSyntax::Json) {
                out.extend_from_slice(b",\n");
            }
            let mut next = values.iter();
            for column in columns.iter() {
                out.extend_from_slice(&column.before);
                match &column.cells {
                    TextCells::Values => {
                        let element = next.next().ok_or(RenderError::ElementCount)?.get(place)?;
                        syntax.write(&column.data_type, *nan, element, cell, out)?;
                    }
                    TextCells::Labels { column, text, ends } => {
                        let label = usize::try_from(column.place(row)).unwrap_or(usize::MAX);
                        let start = label.checked_sub(1).map_or(Some(&0), |before| ends.get(before));
                        let text = start.zip(ends.get(label)).and_then(|(&start, &end)| text.get(start..end));
                        out.extend_from_slice(text.ok_or(RenderError::ElementCount)?);
                    }
                    TextCells::Positions { column: labels, range } => {
                        let element = position_element(range, labels.place(row));
                        syntax.write(&column.data_type, *nan, &element, cell, out)?;
                    }
                }
            }
            match syntax {
                TextSyntax::Csv => out.extend_from_slice(b"\r\n"),
                TextSyntax::Json => out.push(b'}'),
            }
            *has_rows = true;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError> {
        if matches!(self.syntax, TextSyntax::Json) {
            out.extend_from_slice(b"]\n");
        }
        Ok(())
    }
}

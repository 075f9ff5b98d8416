//! Elements as rows and columns of text (RFC 4180): cells separated by commas, every row ended by CRLF.
//!
//! Rank 0 is one cell, rank 1 a column, rank 2 rows and columns, all without a header. Structs of rank 0 and 1 are a row
//! each, under a header of their fields' names; fields of a struct within a struct have columns of their own (`p.x`). An
//! array without elements has no rows.
//!
//! | type | cell |
//! |---|---|
//! | numbers, dates | as in JSON without quotes; `NaN`, `Infinity`, `-Infinity`, `NaT` |
//! | complex numbers | `1.0+2.0j`, as Python writes them |
//! | text | as it is; in quotes where it must be, and where it is empty |
//! | bytes, and text of bytes that is not UTF-8 | hexadecimal |
//! | lists, JSON values | their JSON, in quotes |
//!
//! Nothing is guessed about spreadsheets: a text that begins with `=` is that text.

use std::io::Write as _;

use super::json::{longest_text, write_element};
use super::value::Value;
use super::{Contents, NanMode, RenderError, Writer, check_bytes};
use crate::chunk::Elements;
use crate::metadata::DataType;

/// The most bytes an answer takes, as far as type and shape tell (saturated).
pub(super) fn bytes_estimate(contents: &Contents) -> u64 {
    let columns = columns(&contents.data_type);
    let row = columns.iter().map(|column| longest_cell(&column.data_type)).fold(0, u64::saturating_add);
    let header = columns.iter().map(|column| column.name.len() as u64 * 2 + 4).sum::<u64>();
    contents.elements().saturating_mul(row).saturating_add(header)
}

/// The longest cell, and what separates it from the next.
fn longest_cell(data_type: &DataType) -> u64 {
    let json = longest_text(data_type);
    // In quotes, every quote is written twice.
    let cell = if matches!(data_type, DataType::Subarray(_)) { json.saturating_mul(2) } else { json };
    cell.saturating_add(4)
}

/// A column: a field, or the element itself.
#[derive(Debug)]
struct Column {
    name: String,
    at: usize,
    data_type: DataType,
}

/// The columns of elements of this type.
fn columns(data_type: &DataType) -> Vec<Column> {
    let mut found = Vec::new();
    add_columns("", 0, data_type, &mut found);
    found
}

fn add_columns(name: &str, at: usize, data_type: &DataType, found: &mut Vec<Column>) {
    match data_type {
        DataType::Struct(structure) => {
            let before = if name.is_empty() { String::new() } else { format!("{name}.") };
            for (offset, field) in structure.fields_at() {
                add_columns(&format!("{before}{}", field.name), at + offset, &field.data_type, found);
            }
        }
        _ => found.push(Column { name: name.to_owned(), at, data_type: data_type.clone() }),
    }
}

/// Writes elements as CSV.
#[derive(Debug)]
pub(super) struct CsvWriter {
    data_type: DataType,
    columns: Vec<Column>,
    nan: NanMode,
    /// Elements of a row.
    row_elements: u64,
    /// Elements written.
    written: u64,
    /// Elements of the whole array.
    total: u64,
    /// What stands before the first row, until it is written.
    header: Vec<u8>,
    /// A cell in the making.
    cell: Vec<u8>,
}

impl CsvWriter {
    /// A writer for these elements; lists have NaN in them as JSON has it.
    ///
    /// # Errors
    /// [`RenderError::Rank`], [`RenderError::TooLarge`].
    pub(super) fn new(contents: &Contents, nan: NanMode, limit: u64) -> Result<Self, RenderError> {
        let Contents { data_type, shape, .. } = contents;
        let is_struct = matches!(data_type, DataType::Struct(_));
        let most = if is_struct { 1 } else { 2 };
        if shape.len() > most {
            return Err(RenderError::Rank { rank: shape.len(), most });
        }
        check_bytes(bytes_estimate(contents), limit)?;
        let columns = columns(data_type);
        let mut header = Vec::new();
        if is_struct {
            for (place, column) in columns.iter().enumerate() {
                if place > 0 {
                    header.push(b',');
                }
                write_quoted(column.name.as_bytes(), &mut header);
            }
            header.extend_from_slice(b"\r\n");
        }
        let row_elements = shape.get(1).copied().unwrap_or(1);
        let (data_type, total) = (data_type.clone(), contents.elements());
        Ok(Self { data_type, columns, nan, row_elements, written: 0, total, header, cell: Vec::new() })
    }

    fn write_one(&mut self, element: &[u8], out: &mut Vec<u8>) -> Result<(), RenderError> {
        if self.written == self.total {
            return Err(RenderError::ElementCount);
        }
        if self.data_type.is_variable() {
            write_cell(&self.data_type, self.nan, element, &mut self.cell, out)?;
        } else {
            for (place, column) in self.columns.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                let end = column.at + column.data_type.item_bytes();
                let field = element.get(column.at..end).ok_or(RenderError::ElementCount)?;
                write_cell(&column.data_type, self.nan, field, &mut self.cell, out)?;
            }
        }
        self.written += 1;
        let row_ends = self.written.is_multiple_of(self.row_elements);
        out.extend_from_slice(if row_ends { b"\r\n" } else { b"," });
        Ok(())
    }
}

impl Writer for CsvWriter {
    fn write(&mut self, elements: &Elements, out: &mut Vec<u8>) -> Result<(), RenderError> {
        out.append(&mut self.header);
        if self.data_type.is_variable() {
            elements.texts().try_for_each(|text| self.write_one(text, out))
        } else {
            let items = elements.items().chunks(self.data_type.item_bytes());
            items.into_iter().try_for_each(|item| self.write_one(item, out))
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError> {
        out.append(&mut self.header);
        if self.written == self.total { Ok(()) } else { Err(RenderError::ElementCount) }
    }
}

fn write_cell(
    data_type: &DataType,
    nan: NanMode,
    element: &[u8],
    cell: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), RenderError> {
    // Writing to a vector does not fail.
    let _ = match Value::of(data_type, element)? {
        Value::Bool(truth) => write!(out, "{truth}"),
        Value::Signed(number) => write!(out, "{number}"),
        Value::Unsigned(number) => write!(out, "{number}"),
        Value::Float(float) => write!(out, "{float}"),
        Value::Complex(real, imaginary) => {
            let imaginary = imaginary.to_string();
            let sign = if imaginary.starts_with('-') { "" } else { "+" };
            write!(out, "{real}{sign}{imaginary}j")
        }
        Value::Date(date) => write!(out, "{date}"),
        Value::NotATime => write!(out, "NaT"),
        Value::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}")),
        Value::Text(text) => {
            write_quoted(text.as_bytes(), out);
            Ok(())
        }
        Value::Json(text) => {
            write_quoted(text, out);
            Ok(())
        }
        Value::Struct(..) | Value::List { .. } => {
            cell.clear();
            write_element(data_type, nan, element, cell)?;
            write_quoted(cell, out);
            Ok(())
        }
    };
    Ok(())
}

/// A text as a cell. An empty one is in quotes, or a column of empty texts would be blank lines, which readers skip.
fn write_quoted(text: &[u8], out: &mut Vec<u8>) {
    if !text.is_empty() && !text.iter().any(|byte| matches!(byte, b'"' | b',' | b'\r' | b'\n')) {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for &byte in text {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

//! Elements as CSV (RFC 4180): rows of cells, separated by commas and ended by CRLF.
//!
//! Rank 0 is one cell, rank 1 a column, rank 2 rows and columns. Structs of rank 0 and 1 are one row each, and the
//! fields of a nested struct have columns of their own (`p.x`). An array without elements has no rows.
//!
//! The header line is optional. It contains the names of the fields; for rank 0 and 1 the name of the array; for rank 2
//! the indices of the columns in the array, also where only some of them were selected.
//!
//! | type | cell |
//! |---|---|
//! | numbers, dates | as in JSON without quotes; `NaN`, `Infinity`, `-Infinity`, `NaT` |
//! | complex numbers | `1.0+2.0j`, as Python writes them |
//! | text | unchanged; quoted where necessary |
//! | text of bytes | as UTF-8, with `\xHH` for each byte that is not and `\\` for `\` |
//! | bytes | hexadecimal |
//! | empty text and bytes | `""`, since readers skip blank lines |
//! | lists, JSON values | their JSON, quoted |
//!
//! Nothing is changed for the sake of spreadsheets: a text that begins with `=` is written as it is.

use std::io::Write as _;

use super::format::{Encoding, Format, HeaderLine};
use super::json::{max_text_bytes, write_element};
use super::size::check_bytes;
use super::value::ElementValue;
use super::{NanMode, RenderError, ResultSchema, Writer};
use crate::chunk::Elements;
use crate::metadata::DataType;

pub(super) const FORMAT: Format = Format {
    name: "csv",
    media_type: "text/csv",
    extension: "csv",
    description: "rows and columns, for at most two dimensions. The header line has the names of the struct fields, \
        the name of the array, or the indices of the columns; `header=absent` omits it",
    header_line: Some(HeaderLine {
        // RFC 4180, section 3.
        present: "text/csv; charset=utf-8; header=present",
        absent: "text/csv; charset=utf-8; header=absent",
    }),
    encoding: Encoding::Written {
        max_bytes,
        writer: |options, schema, limit| Ok(Box::new(CsvWriter::new(schema, options.nan, limit)?)),
    },
};

/// An upper bound of the bytes of a response, derived from type and shape (saturated).
fn max_bytes(schema: &ResultSchema) -> u64 {
    let columns = columns(&schema.data_type);
    let row = columns.iter().map(|column| max_cell_bytes(&column.data_type)).fold(0, u64::saturating_add);
    schema.element_count().saturating_mul(row).saturating_add(header_bytes(schema, &columns))
}

/// The most bytes of the header line.
fn header_bytes(ResultSchema { data_type, shape, heading, .. }: &ResultSchema, columns: &[Column]) -> u64 {
    let quoted = |name: &str| name.len() as u64 * 2 + 4;
    match heading {
        None => 0,
        Some(_) if matches!(data_type, DataType::Struct(_)) => {
            columns.iter().map(|column| quoted(&column.name)).sum()
        }
        // The longest number, and a comma.
        Some(_) if shape.len() == 2 => shape.last().copied().unwrap_or_default().saturating_mul(21),
        Some(heading) => quoted(&heading.name),
    }
}

/// Writes the header line.
fn header_line(
    ResultSchema { data_type, shape, heading, .. }: &ResultSchema,
    columns: &[Column],
    out: &mut Vec<u8>,
) {
    let Some(heading) = heading else { return };
    if matches!(data_type, DataType::Struct(_)) {
        for (index, column) in columns.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_quoted(column.name.as_bytes(), out);
        }
    } else if let [_, length] = **shape {
        if length == 0 {
            return;
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        for (place, index) in heading.columns.iter().take(length).enumerate() {
            let comma = if place > 0 { "," } else { "" };
            // Writing to a vector does not fail.
            let _ = write!(out, "{comma}{index}");
        }
    } else {
        write_quoted(heading.name.as_bytes(), out);
    }
    out.extend_from_slice(b"\r\n");
}

/// The most bytes of a cell and its separator.
fn max_cell_bytes(data_type: &DataType) -> u64 {
    let json = max_text_bytes(data_type);
    // Each quote in a quoted cell is written twice.
    let cell = if matches!(data_type, DataType::Subarray(_)) { json.saturating_mul(2) } else { json };
    cell.saturating_add(4)
}

/// A column: a field, or the element itself.
#[derive(Debug)]
struct Column {
    name: String,
    offset: usize,
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
        _ => found.push(Column { name: name.to_owned(), offset: at, data_type: data_type.clone() }),
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
    /// The schema of the header line, until that is written.
    pending_header: Option<ResultSchema>,
    /// A buffer for one cell, reused.
    cell: Vec<u8>,
}

impl CsvWriter {
    /// A writer for these elements. NaN in lists is written as in JSON.
    ///
    /// # Errors
    /// [`RenderError::Rank`], [`RenderError::TooLarge`].
    pub(super) fn new(schema: &ResultSchema, nan: NanMode, limit: u64) -> Result<Self, RenderError> {
        let ResultSchema { data_type, shape, .. } = schema;
        let is_struct = matches!(data_type, DataType::Struct(_));
        let max = if is_struct { 1 } else { 2 };
        if shape.len() > max {
            return Err(RenderError::Rank { rank: shape.len(), max });
        }
        check_bytes(max_bytes(schema), limit)?;
        let columns = columns(data_type);
        let pending_header = Some(schema.clone());
        let row_elements = shape.get(1).copied().unwrap_or(1);
        let (data_type, total) = (data_type.clone(), schema.element_count());
        Ok(Self {
            data_type,
            columns,
            nan,
            row_elements,
            written: 0,
            total,
            pending_header,
            cell: Vec::new(),
        })
    }

    /// Writes the header line, once.
    fn write_header(&mut self, out: &mut Vec<u8>) {
        if let Some(schema) = self.pending_header.take() {
            header_line(&schema, &self.columns, out);
        }
    }

    fn write_next(&mut self, element: &[u8], out: &mut Vec<u8>) -> Result<(), RenderError> {
        if self.written == self.total {
            return Err(RenderError::ElementCount);
        }
        if self.data_type.is_variable() {
            write_cell(&self.data_type, self.nan, element, &mut self.cell, out)?;
        } else {
            for (index, column) in self.columns.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                let end = column.offset + column.data_type.element_bytes();
                let field = element.get(column.offset..end).ok_or(RenderError::ElementCount)?;
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
        self.write_header(out);
        let data_type = self.data_type.clone();
        elements.try_for_each(&data_type, |element| self.write_next(element, out))
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError> {
        self.write_header(out);
        if self.written == self.total { Ok(()) } else { Err(RenderError::ElementCount) }
    }
}

/// Writes an element as a cell. `cell` is a buffer, reused.
pub(super) fn write_cell(
    data_type: &DataType,
    nan: NanMode,
    element: &[u8],
    cell: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), RenderError> {
    // Writing to a vector does not fail.
    let _ = match ElementValue::from_element(data_type, element)? {
        ElementValue::Bool(truth) => write!(out, "{truth}"),
        ElementValue::Signed(number) => write!(out, "{number}"),
        ElementValue::Unsigned(number) => write!(out, "{number}"),
        ElementValue::Float(float) => write!(out, "{float}"),
        ElementValue::Complex(real, imaginary) => {
            let imaginary = imaginary.to_string();
            let sign = if imaginary.starts_with('-') { "" } else { "+" };
            write!(out, "{real}{sign}{imaginary}j")
        }
        ElementValue::Date(date) => write!(out, "{date}"),
        ElementValue::NotATime => write!(out, "NaT"),
        ElementValue::Bytes([]) => write!(out, "\"\""),
        ElementValue::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}")),
        ElementValue::Text(text) => {
            write_quoted(text.as_bytes(), out);
            Ok(())
        }
        ElementValue::Json(text) => {
            write_quoted(text, out);
            Ok(())
        }
        ElementValue::Struct(..) | ElementValue::List { .. } => {
            cell.clear();
            write_element(data_type, nan, element, cell)?;
            write_quoted(cell, out);
            Ok(())
        }
    };
    Ok(())
}

/// Writes a text as a cell, quoted where necessary.
pub(super) fn write_quoted(text: &[u8], out: &mut Vec<u8>) {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chunk::{AxisPositions, AxisRange};
    use crate::metadata::TimeUnit;
    use crate::render::Heading;
    use crate::render::test_elements::{fixed, schema, step, structure, subarray, variable, write_all};

    fn csv(data_type: &DataType, shape: &[u64], parts: &[Elements]) -> Result<String, RenderError> {
        let writer = CsvWriter::new(&schema(data_type, shape), NanMode::String, 1 << 20)?;
        Ok(String::from_utf8(write_all(writer, parts)?).unwrap())
    }

    /// As [`csv`], with a header line.
    fn headed(data_type: &DataType, shape: &[u64], columns: AxisRange, parts: &[Elements]) -> String {
        let heading = Some(Heading { name: "t\"2".to_owned(), columns: AxisPositions::Range(columns) });
        let schema = ResultSchema { heading, ..schema(data_type, shape) };
        let text = write_all(CsvWriter::new(&schema, NanMode::String, 1 << 20).unwrap(), parts).unwrap();
        assert!(text.len() as u64 <= max_bytes(&schema));
        String::from_utf8(text).unwrap()
    }

    /// The text of one column.
    fn column(data_type: &DataType, elements: &[&[u8]]) -> String {
        let parts = if data_type.is_variable() { variable(elements) } else { fixed(elements) };
        csv(data_type, &[elements.len() as u64], &[parts]).unwrap()
    }

    #[test]
    fn dimensions_are_written_as_rows_and_columns() {
        let numbers = [fixed(&[&[1, 2, 3, 4]]), fixed(&[&[5, 6]])];
        assert_eq!(csv(&DataType::UInt8, &[6], &numbers).unwrap(), "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n");
        assert_eq!(csv(&DataType::UInt8, &[2, 3], &numbers).unwrap(), "1,2,3\r\n4,5,6\r\n");
        assert_eq!(csv(&DataType::UInt8, &[], &[fixed(&[&[7]])]).unwrap(), "7\r\n");
        assert_eq!(csv(&DataType::UInt8, &[0, 3], &[]).unwrap(), "");
        assert_eq!(csv(&DataType::UInt8, &[3, 0], &[]).unwrap(), "");
    }

    #[test]
    fn the_header_line_names_the_columns() {
        let numbers = [fixed(&[&[1, 2, 3, 4, 5, 6]])];
        let whole = AxisRange::full(3);
        assert_eq!(
            headed(&DataType::UInt8, &[6], whole, &numbers),
            "\"t\"\"2\"\r\n1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n"
        );
        assert_eq!(headed(&DataType::UInt8, &[], whole, &[fixed(&[&[7]])]), "\"t\"\"2\"\r\n7\r\n");
        assert_eq!(headed(&DataType::UInt8, &[2, 3], whole, &numbers), "0,1,2\r\n1,2,3\r\n4,5,6\r\n");
        let backwards = AxisRange { start: 109, count: 3, step: -2, keep: true };
        assert_eq!(
            headed(&DataType::UInt8, &[2, 3], backwards, &numbers),
            "109,107,105\r\n1,2,3\r\n4,5,6\r\n"
        );
        assert_eq!(headed(&DataType::UInt8, &[0, 3], whole, &[]), "0,1,2\r\n");
        assert_eq!(headed(&DataType::UInt8, &[3, 0], AxisRange::full(0), &[]), "");
    }

    #[test]
    fn a_header_line_that_may_be_too_long_is_rejected_before_writing() {
        let heading =
            Some(Heading { name: String::new(), columns: AxisPositions::Range(AxisRange::full(1 << 40)) });
        let schema = ResultSchema { heading, ..schema(&DataType::UInt8, &[0, 1 << 40]) };
        let result = CsvWriter::new(&schema, NanMode::String, 1 << 20).map(drop);
        assert!(matches!(result, Err(RenderError::TooLarge { .. })));
    }

    #[test]
    fn more_than_two_dimensions_are_rejected_with_advice() {
        let error = csv(&DataType::UInt8, &[1, 1, 1], &[]).unwrap_err();
        assert_eq!(error, RenderError::Rank { rank: 3, max: 2 });
        assert!(error.to_string().contains("`slice`"), "{error}");
        let data_type = structure(&[("a", DataType::UInt8)]);
        assert_eq!(csv(&data_type, &[1, 1], &[]), Err(RenderError::Rank { rank: 2, max: 1 }));
    }

    #[test]
    fn numbers_and_times_are_written_without_quotes() {
        assert_eq!(column(&DataType::Bool, &[&[0], &[1]]), "false\r\ntrue\r\n");
        assert_eq!(column(&DataType::Int16, &[&[0, 0x80]]), "-32768\r\n");
        let floats = [0.1_f32, f32::NAN, f32::NEG_INFINITY].map(f32::to_le_bytes).concat();
        assert_eq!(
            column(&DataType::Float32, &[&floats[..4], &floats[4..8], &floats[8..]]),
            "0.1\r\nNaN\r\n-Infinity\r\n"
        );
        let steps = [0, i64::MIN].map(i64::to_le_bytes);
        let steps = [&steps[0][..], &steps[1]];
        assert_eq!(column(&DataType::DateTime64(step(TimeUnit::Day)), &steps), "1970-01-01\r\nNaT\r\n");
        assert_eq!(column(&DataType::TimeDelta64(step(TimeUnit::Day)), &steps), "0\r\nNaT\r\n");
    }

    #[test]
    fn complex_numbers_are_written_as_python_reads_them() {
        let complex = |real: f64, imaginary: f64| [real, imaginary].map(f64::to_le_bytes).concat();
        let elements = [complex(1.0, 2.5), complex(-0.5, -1.0), complex(f64::NAN, f64::INFINITY)];
        let elements: Vec<&[u8]> = elements.iter().map(Vec::as_slice).collect();
        let text = "1.0+2.5j\r\n-0.5-1.0j\r\nNaN+Infinityj\r\n";
        assert_eq!(column(&DataType::Complex128, &elements), text);
    }

    #[test]
    fn text_is_quoted_where_necessary_and_where_empty() {
        let elements: [&[u8]; 6] = [b"plain text", b"", b"a,b", b"a\"b", b"a\nb", b"=1"];
        let text = "plain text\r\n\"\"\r\n\"a,b\"\r\n\"a\"\"b\"\r\n\"a\nb\"\r\n=1\r\n";
        assert_eq!(column(&DataType::String, &elements), text);
    }

    #[test]
    fn bytes_are_hexadecimal_or_escaped_text_and_lists_and_values_are_json() {
        assert_eq!(column(&DataType::VariableBytes, &[b"\x00\xff", b""]), "00ff\r\n\"\"\r\n");
        assert_eq!(column(&DataType::RawBits { bytes: 2 }, &[b"az"]), "617a\r\n");
        let bytes = DataType::NullTerminatedBytes { bytes: 2 };
        assert_eq!(column(&bytes, &[b"a\0", b"\xe9t", b"\\x"]), "a\r\n\\xe9t\r\n\\\\x\r\n");
        assert_eq!(column(&DataType::Json, &[br#"{"a":[1,2]}"#]), "\"{\"\"a\"\":[1,2]}\"\r\n");
        let arrays = DataType::VariableArray(std::sync::Arc::new(DataType::UInt8));
        assert_eq!(column(&arrays, &[&[1, 2], &[]]), "\"[1,2]\"\r\n[]\r\n");
    }

    #[test]
    fn a_struct_is_a_row_below_the_names_of_its_fields() {
        let point = structure(&[("x", DataType::Int8), ("y,z", DataType::UInt8)]);
        let data_type =
            structure(&[("a", DataType::UInt8), ("p", point), ("q", subarray(DataType::UInt8, &[2]))]);
        let (header, row) = ("a,p.x,\"p.y,z\",q\r\n", "1,-1,2,\"[3,4]\"\r\n");
        assert_eq!(column(&data_type, &[&[1, 0xff, 2, 3, 4]]), row);
        let whole = AxisRange::full(1);
        let elements = [fixed(&[&[1, 0xff, 2, 3, 4]])];
        assert_eq!(headed(&data_type, &[1], whole, &elements), format!("{header}{row}"));
        assert_eq!(headed(&data_type, &[], whole, &elements), format!("{header}{row}"));
        assert_eq!(headed(&data_type, &[0], whole, &[]), header);
    }

    #[test]
    fn too_few_and_too_many_elements_are_rejected() {
        for (shape, elements) in [([2], &[0_u8, 0] as &[u8]), ([2], &[0; 6]), ([2], &[0; 3]), ([0], &[0; 2])]
        {
            let result = csv(&DataType::Int16, &shape, &[fixed(&[elements])]);
            assert_eq!(result, Err(RenderError::ElementCount), "{shape:?}");
        }
    }

    #[test]
    fn a_response_that_may_be_too_large_is_rejected_before_writing() {
        let result = csv(&DataType::UInt8, &[1 << 40, 1 << 40], &[]);
        assert!(matches!(result, Err(RenderError::TooLarge { .. })));
    }

    proptest! {
        #[test]
        fn output_stays_within_the_bound(
            data_type in prop::sample::select(vec![
                DataType::Float64,
                DataType::Complex128,
                DataType::RawBits { bytes: 3 },
                DataType::NullTerminatedBytes { bytes: 3 },
                DataType::DateTime64(step(TimeUnit::Attosecond)),
                structure(&[
                    ("a\"", DataType::NullTerminatedBytes { bytes: 2 }),
                    ("q", subarray(DataType::NullTerminatedBytes { bytes: 2 }, &[2, 2])),
                    ("d", subarray(DataType::DateTime64(step(TimeUnit::Day)), &[2])),
                ]),
            ]),
            random in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b'\n')], 3 * 40),
        ) {
            let items = &random[..3 * data_type.element_bytes()];
            let text = csv(&data_type, &[3], &[fixed(&[items])]).unwrap();
            prop_assert!(text.len() as u64 <= max_bytes(&schema(&data_type, &[3])), "{}", text);
        }
    }
}

//! [`table_writer`]: the writer of a table in one of the formats that have tables.

use super::column::TableColumn;
use super::text::TextTable;
use super::writer::TableWriter;
use crate::render::arrow::{self, ArrowTable};
use crate::render::csv;
use crate::render::json;
use crate::render::parquet::{self, ParquetTable};
use crate::render::{Format, NanMode, RenderError};

/// The formats of tables; the first is the default.
pub const TABLE_FORMATS: &[&Format] = &[&csv::FORMAT, &json::FORMAT, &arrow::FORMAT, &parquet::FORMAT];

/// Bytes of the rows that are written at a time.
const BATCH_BYTES: u64 = 1 << 20;
/// The same of rows that are compressed.
const LONG_BATCH_BYTES: u64 = 4 << 20;
/// Bytes of a cell that is not text, beside its element.
const CELL_BYTES: u64 = 8;

/// A format of a table, and its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// One of [`TABLE_FORMATS`].
    pub format: &'static Format,
    /// How JSON writes values that it has no number for.
    pub nan: NanMode,
    /// Whether CSV begins with a line of the names of the columns.
    pub header: bool,
}

impl TableOptions {
    /// Bytes of the rows that are written at a time, about: what is compressed together is longer.
    #[must_use]
    pub fn batch_bytes(self) -> u64 {
        if self.format.is_table() { LONG_BATCH_BYTES } else { BATCH_BYTES }
    }

    /// The most bytes that a byte of an element of variable length is written as.
    #[must_use]
    pub fn text_growth(self) -> u64 {
        match self.format.name {
            // `\u0001`.
            "json" => 6,
            // A quote, which is written twice.
            "csv" => 2,
            _ => 1,
        }
    }

    /// Bytes of the names in each row, as they are written.
    #[must_use]
    pub fn name_bytes(self, columns: &[TableColumn]) -> u128 {
        if self.format.name != "json" {
            return 0;
        }
        let bytes = |column: &TableColumn| serde_json::Value::from(&*column.name).to_string().len() as u128;
        columns.iter().map(bytes).sum()
    }

    /// The most bytes of a row of these columns, about; of elements of variable length those of empty ones.
    #[must_use]
    pub fn row_bytes(self, columns: &[TableColumn]) -> u64 {
        let cell = |column: &TableColumn| match self.format.name {
            "json" => column.max_named_bytes(),
            "csv" => column.max_bytes(),
            _ => (column.data_type.element_bytes() as u64).saturating_add(CELL_BYTES),
        };
        columns.iter().map(cell).fold(1, u64::saturating_add)
    }
}

/// The writer of a table. Labels as text are written once, which takes time.
///
/// # Errors
/// [`RenderError`] if the format cannot have a column.
pub fn table_writer(
    options: TableOptions,
    columns: Vec<TableColumn>,
) -> Result<Box<dyn TableWriter>, RenderError> {
    let TableOptions { format, nan, header } = options;
    Ok(match format.name {
        "json" => Box::new(TextTable::json(columns, nan)?),
        "parquet" => Box::new(ParquetTable::new(columns)?),
        "arrow" => Box::new(ArrowTable::new(columns)?),
        _ => Box::new(TextTable::csv(columns, header)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{AxisRange, Elements};
    use crate::metadata::{DataType, TimeUnit};
    use crate::render::table::{ColumnContent, LabelColumn, LabelSource, TableRows, TimeUnits};
    use crate::render::test_elements::{fixed, step, variable};

    /// Two stations over three days, with a number and a text at each.
    fn columns() -> Vec<TableColumn> {
        let labels = |name: &str, data_type, labels, count, repeat| TableColumn {
            name: name.to_owned(),
            data_type,
            units: None,
            content: ColumnContent::Labels(LabelColumn { labels, count, repeat }),
        };
        let values = |name: &str, data_type| TableColumn {
            name: name.to_owned(),
            data_type,
            units: None,
            content: ColumnContent::Values,
        };
        let days = [0_i64, 1, i64::MIN].map(i64::to_le_bytes).concat();
        let days = LabelSource::Elements(Elements::fixed(days.into()));
        vec![
            labels("station", DataType::String, LabelSource::Elements(variable(&[b"a,b", b"\"c\""])), 2, 3),
            labels("day", DataType::DateTime64(step(TimeUnit::Day)), days, 3, 1),
            labels("x", DataType::Int64, LabelSource::Positions(AxisRange::full(6)), 6, 1),
            values("t\"2", DataType::Float32),
            values("note", DataType::String),
        ]
    }

    fn rows(first: u64, numbers: &[f32], notes: &[&[u8]]) -> TableRows {
        let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        TableRows { first, count: notes.len(), values: vec![fixed(&[&numbers]), variable(notes)] }
    }

    fn written(format: &'static Format, header: bool) -> Vec<u8> {
        let options = TableOptions { format, nan: NanMode::Null, header };
        let mut writer = table_writer(options, columns()).unwrap();
        let mut out = Vec::new();
        writer.begin(&mut out).unwrap();
        writer.write(&rows(0, &[0.5, f32::NAN], &[b"one", b""]), &mut out).unwrap();
        writer.write(&rows(2, &[-1.0, 2.0, 3.0, 4.0], &[b"x", b"y", b"z", b"w"]), &mut out).unwrap();
        writer.finish(&mut out).unwrap();
        out
    }

    #[test]
    fn csv_has_a_line_for_each_element_whatever_pieces_it_is_written_in() {
        let text = String::from_utf8(written(&csv::FORMAT, true)).unwrap();
        let lines = [
            "station,day,x,\"t\"\"2\",note",
            "\"a,b\",1970-01-01,0,0.5,one",
            "\"a,b\",1970-01-02,1,NaN,\"\"",
            "\"a,b\",NaT,2,-1.0,x",
            "\"\"\"c\"\"\",1970-01-01,3,2.0,y",
            "\"\"\"c\"\"\",1970-01-02,4,3.0,z",
            "\"\"\"c\"\"\",NaT,5,4.0,w",
            "",
        ];
        assert_eq!(text, lines.join("\r\n"));
        let without = String::from_utf8(written(&csv::FORMAT, false)).unwrap();
        assert_eq!(without, lines[1..].join("\r\n"));
    }

    #[test]
    fn json_has_an_object_for_each_element() {
        let json: serde_json::Value = serde_json::from_slice(&written(&json::FORMAT, true)).unwrap();
        assert_eq!(json.as_array().unwrap().len(), 6);
        let row = |station: &str, day, x: u8, number, note: &str| serde_json::json!({"station": station, "day": day, "x": x, "t\"2": number, "note": note});
        assert_eq!(json[1], row("a,b", Some("1970-01-02"), 1, None, ""));
        assert_eq!(json[5], row("\"c\"", None, 5, Some(4.0), "w"));
    }

    #[test]
    fn arrow_has_a_column_of_its_own_type_for_each_name() {
        use arrow_array::cast::AsArray;
        use arrow_array::types::{Date32Type, Float32Type, Int64Type};
        let mut columns = columns();
        columns[2].units = Some(TimeUnits { units: "days".to_owned(), calendar: "noleap".to_owned() });
        let options = TableOptions { format: &arrow::FORMAT, nan: NanMode::Null, header: true };
        let mut writer = table_writer(options, columns).unwrap();
        let mut out = Vec::new();
        writer.begin(&mut out).unwrap();
        writer.write(&rows(0, &[0.5; 6], &[b"n".as_slice(); 6]), &mut out).unwrap();
        writer.finish(&mut out).unwrap();
        let reader = arrow_ipc::reader::StreamReader::try_new(&out[..], None).unwrap();
        let batches: Vec<_> = reader.collect::<Result<_, _>>().unwrap();
        let (batch, schema) = (&batches[0], batches[0].schema());
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["station", "day", "x", "t\"2", "note"]);
        assert_eq!(schema.field(2).metadata()["calendar"], "noleap");
        let texts =
            |place: usize| batch.column(place).as_string::<i32>().iter().flatten().collect::<Vec<_>>();
        assert_eq!(texts(0), ["a,b", "a,b", "a,b", "\"c\"", "\"c\"", "\"c\""]);
        assert_eq!(texts(4), ["n"; 6]);
        let days: Vec<_> = batch.column(1).as_primitive::<Date32Type>().iter().collect();
        assert_eq!(days, [Some(0), Some(1), None, Some(0), Some(1), None]);
        assert_eq!(batch.column(2).as_primitive::<Int64Type>().values(), &[0, 1, 2, 3, 4, 5]);
        assert_eq!(batch.column(3).as_primitive::<Float32Type>().values(), &[0.5; 6]);
    }

    #[test]
    fn rows_without_elements_are_an_error() {
        for format in TABLE_FORMATS {
            let options = TableOptions { format, nan: NanMode::Null, header: true };
            let mut writer = table_writer(options, columns()).unwrap();
            let mut out = Vec::new();
            writer.begin(&mut out).unwrap();
            let short = TableRows { count: 3, ..rows(0, &[1.0, 2.0], &[b"a", b"b"]) };
            assert!(writer.write(&short, &mut out).is_err(), "{format:?}");
        }
    }
}

//! [`ParquetTable`]: writes a table as a Parquet file.

use arrow_schema::Field;

use super::described_schema;
use super::page::page;
use super::thrift_writer::ThriftWriter;
use super::times::StoredTime;
use super::types::ParquetType;
use crate::codec::ContentCoding;
use crate::metadata::DataType;
use crate::render::RenderError;
use crate::render::arrow::{table_arrays, table_field};
use crate::render::table::{ColumnContent, TableColumn, TableRows, TableWriter};

/// The first and the last bytes of a file.
const MAGIC: &[u8] = b"PAR1";
/// What wrote a file.
const CREATED_BY: &str = concat!("zarrd version ", env!("CARGO_PKG_VERSION"));
/// The numbers of encodings: plain values, and runs of levels.
const PLAIN: i32 = 0;
const RUNS: i32 = 3;
/// The numbers of codecs.
const UNCOMPRESSED: i32 = 0;
const ZSTD: i32 = 6;
/// Bytes of a column of a group in the footer, beside its name, at most.
const DESCRIBED_BYTES: u64 = 80;
/// How many times the footer is in memory when it is written: with the unused capacity, and behind the last rows.
const FOOTER_COPIES: u64 = 3;

/// The values of a column in a group of rows.
#[derive(Clone, Copy, Debug)]
struct ColumnChunk {
    offset: u64,
    codec: i32,
    /// Bytes with the head of the page,
    stored_bytes: u64,
    /// and before they were compressed.
    plain_bytes: u64,
}

/// Some rows, written.
#[derive(Debug)]
struct RowGroup {
    rows: u64,
    chunks: Vec<ColumnChunk>,
}

/// Writes the rows of one call as one group.
#[derive(Debug)]
pub(in crate::render) struct ParquetTable {
    columns: Vec<TableColumn>,
    types: Vec<ParquetType>,
    /// How times are stored that the file has no type for.
    times: Vec<Option<StoredTime>>,
    /// The columns as Arrow has them, if some of them are not what they are without that.
    schema: Option<String>,
    groups: Vec<RowGroup>,
    /// Bytes that are written.
    written: u64,
    /// Bytes of memory of a group, and of its description in the footer.
    group_bytes: u64,
}

/// Whether a Parquet file has columns of a type.
#[must_use]
pub fn has_parquet_type(data_type: &DataType) -> bool {
    let column = TableColumn {
        name: String::new(),
        data_type: data_type.clone(),
        units: None,
        content: ColumnContent::Values,
    };
    let field = table_field(&column).ok();
    field.is_some_and(|field| ParquetType::of(field.data_type(), field.is_nullable()).is_some())
}

impl ParquetTable {
    /// A table of these columns.
    ///
    /// # Errors
    /// [`RenderError::UnsupportedType`].
    pub(in crate::render) fn new(columns: Vec<TableColumn>) -> Result<Self, RenderError> {
        let times: Vec<Option<StoredTime>> =
            columns.iter().map(|column| StoredTime::of(&column.data_type)).collect();
        let field = |(column, time): (&TableColumn, &Option<StoredTime>)| {
            let field = table_field(column)?;
            Ok(match time {
                // The type of the array is in the metadata of a field, and that is another one.
                Some(time) => Field::new(field.name(), time.arrow_type(), field.is_nullable()),
                None => field,
            })
        };
        let fields: Vec<Field> = columns.iter().zip(&times).map(field).collect::<Result<_, RenderError>>()?;
        let of_column = |(column, field): (&TableColumn, &Field)| {
            ParquetType::of(field.data_type(), field.is_nullable())
                .ok_or_else(|| RenderError::UnsupportedType { data_type: column.data_type.name() })
        };
        let types = columns.iter().zip(&fields).map(of_column).collect::<Result<_, _>>()?;
        let is_needed = columns.iter().zip(&fields).any(|(column, field)| {
            let is_time = matches!(column.data_type, DataType::DateTime64(_) | DataType::TimeDelta64(_));
            described_schema::is_needed(field.data_type(), is_time)
        });
        let schema = is_needed.then(|| described_schema::text(&fields));
        let group_bytes = columns.iter().map(described_bytes).fold(DESCRIBED_BYTES, u64::saturating_add);
        Ok(Self { columns, types, times, schema, groups: Vec::new(), written: 0, group_bytes })
    }

    /// The footer (`FileMetaData`).
    fn footer(&self) -> Vec<u8> {
        let mut out = Vec::new();
        ThriftWriter::write(&mut out, |file| {
            file.i32(1, 2);
            let elements: Vec<Option<(&TableColumn, ParquetType)>> = std::iter::once(None)
                .chain(self.columns.iter().zip(self.types.iter().copied()).map(Some))
                .collect();
            file.structures(2, &elements, |element, column| {
                if let Some((column, kind)) = column {
                    kind.write(&column.name, element);
                } else {
                    element.text(4, "schema");
                    element.i32(5, i32::try_from(self.columns.len()).unwrap_or(i32::MAX));
                }
            });
            file.i64(3, self.groups.iter().map(|group| group.rows).sum());
            file.structures(4, &self.groups, |out, group| self.put_group(out, group));
            let schema = self.schema.as_deref().map(|schema| (described_schema::KEY.to_owned(), schema));
            let pairs: Vec<(String, &str)> = self.columns.iter().flat_map(units).chain(schema).collect();
            if !pairs.is_empty() {
                file.structures(5, &pairs, |pair, (key, value)| {
                    pair.text(1, key);
                    pair.text(2, value);
                });
            }
            file.text(6, CREATED_BY);
        });
        out
    }

    /// The description of a group (`RowGroup`).
    fn put_group(&self, out: &mut ThriftWriter<'_>, group: &RowGroup) {
        let columns: Vec<(&TableColumn, ParquetType, ColumnChunk)> = self
            .columns
            .iter()
            .zip(&self.types)
            .zip(&group.chunks)
            .map(|((column, &kind), &chunk)| (column, kind, chunk))
            .collect();
        out.structures(1, &columns, |out, (column, kind, chunk)| {
            out.i64(2, chunk.offset);
            out.structure(3, |metadata| {
                metadata.i32(1, kind.physical as i32);
                metadata.i32s(2, &[PLAIN, RUNS]);
                metadata.texts(3, &[&column.name]);
                metadata.i32(4, chunk.codec);
                metadata.i64(5, group.rows);
                metadata.i64(6, chunk.plain_bytes);
                metadata.i64(7, chunk.stored_bytes);
                metadata.i64(9, chunk.offset);
            });
        });
        out.i64(2, group.chunks.iter().map(|chunk| chunk.plain_bytes).sum());
        out.i64(3, group.rows);
    }
}

/// Bytes of memory of a column of a group, and of its description in the footer.
fn described_bytes(column: &TableColumn) -> u64 {
    let described = DESCRIBED_BYTES.saturating_add(column.name.len() as u64);
    described.saturating_mul(FOOTER_COPIES).saturating_add(size_of::<ColumnChunk>() as u64)
}

/// What the numbers of a column count, as the metadata of the file has it.
fn units(column: &TableColumn) -> Vec<(String, &str)> {
    let Some(units) = &column.units else { return Vec::new() };
    let key = |of| format!("{}.{of}", column.name);
    vec![(key("units"), &units.units), (key("calendar"), &units.calendar)]
}

/// A size in the head of a page.
fn size(bytes: usize) -> Result<i32, RenderError> {
    let limit = i32::MAX.unsigned_abs().into();
    i32::try_from(bytes).map_err(|_too_large| RenderError::TooLarge { bytes: bytes as u64, limit })
}

impl TableWriter for ParquetTable {
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError> {
        out.extend_from_slice(MAGIC);
        self.written = MAGIC.len() as u64;
        Ok(())
    }

    fn write(&mut self, rows: &TableRows, out: &mut Vec<u8>) -> Result<(), RenderError> {
        if rows.count == 0 {
            return Ok(());
        }
        let mut chunks = Vec::with_capacity(self.columns.len());
        let arrays = table_arrays(&self.columns, rows)?;
        for ((column, kind), time) in arrays.iter().zip(&self.types).zip(&self.times) {
            let cast = time.map(|time| time.cast(column)).transpose()?;
            let plain = page(cast.as_ref().unwrap_or(column), kind.is_optional)?;
            let (codec, stored) = match ContentCoding::Zstd.encode(&plain) {
                Ok(encoded) if encoded.len() < plain.len() => (ZSTD, encoded),
                // Without memory for it, or without a gain, they are stored as they are.
                Ok(_) | Err(_) => (UNCOMPRESSED, plain.clone()),
            };
            let (plain_size, stored_size, count) =
                (size(plain.len())?, size(stored.len())?, size(rows.count)?);
            let start = out.len();
            ThriftWriter::write(out, |head| {
                head.i32(1, 0);
                head.i32(2, plain_size);
                head.i32(3, stored_size);
                head.structure(5, |data| {
                    data.i32(1, count);
                    data.i32(2, PLAIN);
                    data.i32(3, RUNS);
                    data.i32(4, RUNS);
                });
            });
            let head_bytes = (out.len() - start) as u64;
            out.extend_from_slice(&stored);
            let (stored_bytes, plain_bytes) =
                (head_bytes + stored.len() as u64, head_bytes + plain.len() as u64);
            chunks.push(ColumnChunk { offset: self.written, codec, stored_bytes, plain_bytes });
            self.written = self.written.saturating_add(stored_bytes);
        }
        self.groups.push(RowGroup { rows: rows.count as u64, chunks });
        Ok(())
    }

    fn kept_bytes(&self) -> u64 {
        self.group_bytes.saturating_mul(self.groups.len() as u64)
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError> {
        let footer = self.footer();
        let length = u32::try_from(size(footer.len())?).unwrap_or(u32::MAX);
        out.extend_from_slice(&footer);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(MAGIC);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::table::ColumnContent;
    use crate::render::test_elements::fixed;

    #[test]
    fn what_is_kept_for_the_footer_is_counted() {
        let column = |place: usize| TableColumn {
            name: format!("{place}{}", "n".repeat(place)),
            data_type: DataType::Float64,
            units: None,
            content: ColumnContent::Values,
        };
        let mut table = ParquetTable::new((0..60).map(column).collect()).unwrap();
        let (mut rows, mut footer) = (Vec::new(), Vec::new());
        table.begin(&mut rows).unwrap();
        for first in 0..300 {
            let values = vec![fixed(&[&[7; 8]]); 60];
            table.write(&TableRows { first, count: 1, values }, &mut rows).unwrap();
        }
        table.finish(&mut footer).unwrap();
        let kept = (size_of::<ColumnChunk>() * 60 * 300) as u64;
        let counted = table.kept_bytes();
        assert!(counted > kept + 2 * footer.len() as u64, "{counted} {kept} {}", footer.len());
        assert!(counted < 2 * (kept + 3 * footer.len() as u64), "{counted} {kept} {}", footer.len());
    }
}

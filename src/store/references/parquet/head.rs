//! The head of a Parquet file, which stands at its end: the columns, and where their pages are.

use super::fault::ParquetFault;
use super::thrift::Thrift;

/// The first and the last bytes of a file.
const MAGIC: &[u8] = b"PAR1";

/// The most rows of a file.
pub(super) const MAX_ROWS: usize = 1 << 20;

const BROKEN: ParquetFault = "its head is broken";

/// The physical type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhysicalType {
    Int32,
    Int64,
    ByteArray,
}

/// A column of the one group of rows.
#[derive(Clone, Debug)]
pub(super) struct RecordColumn {
    pub(super) name: Vec<u8>,
    pub(super) kind: PhysicalType,
    /// Whether rows may have no value.
    pub(super) is_optional: bool,
    pub(super) is_compressed: bool,
    /// Where its first page begins.
    pub(super) start: usize,
}

/// What the head says.
#[derive(Debug)]
pub(super) struct ParquetHead {
    pub(super) rows: usize,
    pub(super) columns: Vec<RecordColumn>,
}

/// The most columns.
const MAX_COLUMNS: usize = 16;

#[derive(Default)]
struct Found {
    name: Vec<u8>,
    kind: i64,
    codec: i64,
    data: usize,
    dictionary: Option<usize>,
}

impl ParquetHead {
    pub(super) fn parse(file: &[u8]) -> Result<Self, ParquetFault> {
        let inner = file.strip_prefix(MAGIC).and_then(|rest| rest.strip_suffix(MAGIC));
        let (inner, length) =
            inner.and_then(|inner| inner.split_last_chunk()).ok_or("it is no Parquet file")?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_large| BROKEN)?;
        let start = inner.len().checked_sub(length).ok_or(BROKEN)?;
        let (mut rows, mut groups) = (0, 0);
        let (mut optional, mut found): (Vec<(Vec<u8>, bool)>, Vec<Found>) = (Vec::new(), Vec::new());
        Thrift::new(inner.get(start..).unwrap_or_default()).fields(|thrift, id, _| {
            match id {
                2 => thrift.items(|thrift| {
                    let (mut name, mut repetition) = (Vec::new(), 0);
                    thrift.fields(|thrift, id, _| {
                        match id {
                            3 => repetition = thrift.integer()?,
                            4 => name = thrift.bytes()?.to_vec(),
                            _ => return Ok(false),
                        }
                        Ok(true)
                    })?;
                    if repetition > 1 || optional.len() > MAX_COLUMNS {
                        return Err("it has columns that are not of references");
                    }
                    optional.push((name, repetition == 1));
                    Ok(())
                })?,
                3 => rows = thrift.size()?,
                4 => thrift.items(|thrift| {
                    groups += 1;
                    group(thrift, &mut found)
                })?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if rows > MAX_ROWS || (groups != 1 && rows > 0) {
            return Err("it has too many rows, or several groups of them");
        }
        let columns = found.into_iter().map(|column| {
            let is_optional = optional.iter().skip(1).find(|(name, _)| *name == column.name);
            Ok(RecordColumn {
                kind: match column.kind {
                    1 => PhysicalType::Int32,
                    2 => PhysicalType::Int64,
                    6 => PhysicalType::ByteArray,
                    _ => return Err("a column has a type that is not supported"),
                },
                is_optional: is_optional.ok_or(BROKEN)?.1,
                is_compressed: match column.codec {
                    0 => false,
                    6 => true,
                    _ => return Err("it is compressed by another codec than zstd"),
                },
                start: column.dictionary.map_or(column.data, |dictionary| dictionary.min(column.data)),
                name: column.name,
            })
        });
        Ok(Self { rows, columns: columns.collect::<Result<_, ParquetFault>>()? })
    }
}

/// A group of rows.
fn group(thrift: &mut Thrift<'_>, found: &mut Vec<Found>) -> Result<(), ParquetFault> {
    thrift.fields(|thrift, id, _| {
        if id != 1 {
            return Ok(false);
        }
        thrift.items(|thrift| {
            let mut column = Found::default();
            thrift.fields(|thrift, id, _| {
                if id != 3 {
                    return Ok(false);
                }
                thrift.fields(|thrift, id, _| {
                    match id {
                        1 => column.kind = thrift.integer()?,
                        3 => thrift.items(|thrift| {
                            column.name = thrift.bytes()?.to_vec();
                            Ok(())
                        })?,
                        4 => column.codec = thrift.integer()?,
                        9 => column.data = thrift.size()?,
                        11 => column.dictionary = Some(thrift.size()?).filter(|offset| *offset > 0),
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                Ok(true)
            })?;
            if found.len() >= MAX_COLUMNS {
                return Err("it has columns that are not of references");
            }
            found.push(column);
            Ok(())
        })?;
        Ok(true)
    })
}

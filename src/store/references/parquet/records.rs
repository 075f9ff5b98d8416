//! The references in one file: its rows as entries of a table.

use bytes::Bytes;

use super::grid::ChunkNumbers;
use super::head::ParquetHead;
use super::memory::PageMemory;
use super::pages::{self, ColumnValues};
use crate::store::references::table::TableBuilder;
use crate::store::{ContainerBudget, ReferenceError, ReferenceTable};

/// The references of a file, whose first row is the chunk `first` of the array below `prefix`. A file has `most_rows` of them
/// where the array has as many.
pub(super) fn parse(
    file: &Bytes,
    budget: &ContainerBudget,
    (prefix, chunks, first): (&str, &ChunkNumbers, u64),
    most_rows: u64,
) -> Result<ReferenceTable, ReferenceError> {
    let mut table = TableBuilder::new(budget, file.len() as u64)?;
    let mut memory = PageMemory::new(budget);
    let least_rows = chunks.total().saturating_sub(first).min(most_rows);
    let added = rows(file, (&mut table, &mut memory), least_rows, |row| {
        let number = first.checked_add(row).filter(|number| *number < chunks.total())?;
        Some(format!("{prefix}{}", chunks.name(number)))
    });
    added.map_err(|error| memory.over().map_or(error, ReferenceError::from))?;
    drop(memory);
    table.finish()
}

/// Adds the rows that have a key, of which there must be as many as the file has chunks.
fn rows(
    file: &Bytes,
    (table, memory): (&mut TableBuilder, &mut PageMemory),
    least_rows: u64,
    key: impl Fn(u64) -> Option<String>,
) -> Result<(), ReferenceError> {
    let head = ParquetHead::parse(file).map_err(ReferenceError::Record)?;
    // Chunks without a row would be absent, and read as fill values.
    if (head.rows as u64) < least_rows {
        return Err(ReferenceError::Record("it has fewer rows than there are chunks in it"));
    }
    let column = |name: &[u8], memory: &mut PageMemory| {
        let column = head.columns.iter().find(|column| column.name == name);
        column.map(|column| pages::read(file, column, head.rows, memory)).transpose()
    };
    let texts = |name: &[u8], memory: &mut PageMemory| match column(name, memory)? {
        Some(ColumnValues::Integers(_)) => Err("a column has another type than references have"),
        Some(ColumnValues::Texts(values)) => Ok(Some(values)),
        None => Ok(None),
    };
    let integers = |name: &[u8], memory: &mut PageMemory| match column(name, memory)? {
        Some(ColumnValues::Texts(_)) => Err("a column has another type than references have"),
        Some(ColumnValues::Integers(values)) => Ok(Some(values)),
        None => Ok(None),
    };
    let refused = ReferenceError::Record;
    let (paths, raws) = (texts(b"path", memory).map_err(refused)?, texts(b"raw", memory).map_err(refused)?);
    let offsets = integers(b"offset", memory).map_err(refused)?;
    let sizes = integers(b"size", memory).map_err(refused)?;
    // So would all chunks be without the first of them.
    if paths.is_none() || offsets.is_none() || sizes.is_none() {
        return Err(refused("it lacks one of the columns `path`, `offset` and `size`"));
    }
    for row in 0..head.rows {
        let Some(key) = key(row as u64) else { break };
        let bytes = |values: &Option<Vec<Option<Bytes>>>| values.as_ref()?.get(row)?.clone();
        let number = |values: &Option<Vec<Option<i64>>>| {
            let number = values.as_ref().and_then(|values| values.get(row).copied().flatten());
            let number = number.and_then(|number| u64::try_from(number).ok());
            number.ok_or_else(|| refused("an offset or a size is missing or negative"))
        };
        if let Some(raw) = bytes(&raws) {
            table.push_inline(&key, &raw)?;
        } else if let Some(path) = bytes(&paths) {
            let path = str::from_utf8(&path).map_err(|_invalid| refused("a path is not UTF-8"))?;
            let (offset, size) = (number(&offsets)?, number(&sizes)?);
            table.push_url(&key, path, (offset != 0 || size != 0).then_some((offset, size)))?;
        }
    }
    Ok(())
}

/// Reads a file as if it were one of an array of one dimension, for tests with arbitrary files.
///
/// # Errors
/// [`ReferenceError`].
pub fn check_records(file: &[u8], budget: &ContainerBudget) -> Result<ReferenceTable, ReferenceError> {
    let chunks = ChunkNumbers::new(&[u64::MAX], &[1]).ok_or(ReferenceError::Record(""))?;
    parse(&Bytes::copy_from_slice(file), budget, ("a/", &chunks, 0), 0)
}

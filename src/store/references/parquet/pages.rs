//! The values of one column: its pages, decompressed and decoded.
//!
//! Encodings are those that pandas writes by fastparquet and pyarrow: plain values, and indices into a dictionary.

use bytes::Bytes;

use super::fault::ParquetFault;
use super::head::{MAX_ROWS, PhysicalType, RecordColumn};
use super::memory::PageMemory;
use super::thrift::Thrift;
use crate::codec::{crc32, decode_zstd};

/// The longest page, in bytes, decompressed.
const MAX_PAGE_BYTES: usize = 64 << 20;

const CUT: ParquetFault = "it ends within a page";
const BROKEN: ParquetFault = "a page is broken";

/// The values of a column, one for each row; `None` where there is none.
#[derive(Debug)]
pub(super) enum ColumnValues {
    Integers(Vec<Option<i64>>),
    Texts(Vec<Option<Bytes>>),
}

/// The plain values of a page or a dictionary.
enum Plain {
    Integers(Vec<i64>),
    Texts(Vec<Bytes>),
}

#[derive(Default)]
struct PageHead {
    kind: i64,
    decoded: usize,
    encoded: usize,
    values: usize,
    encoding: i64,
    /// The CRC-32 of the page as it is stored, if the writer added one.
    checksum: Option<i64>,
    /// Of version 2: lengths of the levels of nesting, which are not compressed.
    definition: usize,
    repetition: usize,
    is_stored: bool,
}

impl PageHead {
    fn parse(thrift: &mut Thrift<'_>) -> Result<Self, ParquetFault> {
        let mut head = Self::default();
        thrift.fields(|thrift, id, _| {
            match id {
                1 => head.kind = thrift.integer()?,
                2 => head.decoded = thrift.size()?,
                3 => head.encoded = thrift.size()?,
                4 => head.checksum = Some(thrift.integer()?),
                5 | 7 => thrift.fields(|thrift, id, _| {
                    match id {
                        1 => head.values = thrift.size()?,
                        2 => head.encoding = thrift.integer()?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?,
                8 => thrift.fields(|thrift, id, kind| {
                    match id {
                        1 => head.values = thrift.size()?,
                        4 => head.encoding = thrift.integer()?,
                        5 => head.definition = thrift.size()?,
                        6 => head.repetition = thrift.size()?,
                        // 2 is false.
                        7 => {
                            head.is_stored = kind == 2;
                            return Ok(false);
                        }
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if head.decoded > MAX_PAGE_BYTES || head.values > MAX_ROWS {
            return Err("a page is too long");
        }
        Ok(head)
    }
}

const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
const DATA_2: i64 = 3;
const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE_DICTIONARY: i64 = 8;

/// Reads the values of a column in a file. What it takes is charged before it is decompressed and decoded.
pub(super) fn read(
    file: &Bytes,
    column: &RecordColumn,
    rows: usize,
    memory: &mut PageMemory,
) -> Result<ColumnValues, ParquetFault> {
    let mut values = match column.kind {
        PhysicalType::Int32 | PhysicalType::Int64 => ColumnValues::Integers(Vec::new()),
        PhysicalType::ByteArray => ColumnValues::Texts(Vec::new()),
    };
    let (mut at, mut dictionary) = (column.start, None);
    while values.len() < rows {
        let bytes = file.get(at..).ok_or(CUT)?;
        let mut thrift = Thrift::new(bytes);
        let head = PageHead::parse(&mut thrift)?;
        let begin = at + (bytes.len() - thrift.rest().len());
        let end = begin.checked_add(head.encoded).filter(|end| *end <= file.len()).ok_or(CUT)?;
        let page = file.slice(begin..end);
        at = end;
        if head.checksum.is_some_and(|expected| expected != i64::from(crc32(&page).cast_signed())) {
            return Err("a page has another checksum than its head says");
        }
        let is_data = matches!(head.kind, DATA | DATA_2);
        if is_data && head.values > rows - values.len() {
            return Err("a column has more values than there are rows");
        }
        if is_data || head.kind == DICTIONARY {
            memory.charge(head.decoded, head.values)?;
        }
        match head.kind {
            DICTIONARY => {
                let page = decoded(page, head.decoded, column.is_compressed)?;
                dictionary = Some(plain(&page, column.kind, head.values)?.0);
            }
            DATA => {
                let page = decoded(page, head.decoded, column.is_compressed)?;
                let (levels, page) = if column.is_optional {
                    let (length, rest) = page.split_first_chunk().ok_or(CUT)?;
                    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_large| BROKEN)?;
                    let (levels, _) = rest.split_at_checked(length).ok_or(CUT)?;
                    (Some(hybrid(levels, 1, head.values)?), page.slice(4 + length..))
                } else {
                    (None, page)
                };
                values.append(&page, &head, levels.as_deref(), column, dictionary.as_ref())?;
            }
            DATA_2 => {
                let levels = head.repetition.checked_add(head.definition).ok_or(BROKEN)?;
                if levels > page.len() || levels > head.decoded {
                    return Err(CUT);
                }
                let defined = column
                    .is_optional
                    .then(|| hybrid(page.get(head.repetition..levels).ok_or(CUT)?, 1, head.values));
                let is_compressed = column.is_compressed && !head.is_stored;
                let page = decoded(page.slice(levels..), head.decoded - levels, is_compressed)?;
                values.append(&page, &head, defined.transpose()?.as_deref(), column, dictionary.as_ref())?;
            }
            // An index of pages.
            _ => {}
        }
        if head.encoded == 0 && head.values == 0 {
            return Err(BROKEN);
        }
    }
    Ok(values)
}

fn decoded(page: Bytes, length: usize, is_compressed: bool) -> Result<Bytes, ParquetFault> {
    // Without a value, a page may still have an empty frame.
    let page = if length == 0 {
        Bytes::new()
    } else if is_compressed {
        decode_zstd(page, length as u64).map_err(|_corrupt| "a page cannot be decompressed")?
    } else {
        page
    };
    if page.len() == length { Ok(page) } else { Err(BROKEN) }
}

/// Plain values, and how many bytes they take.
fn plain(page: &Bytes, kind: PhysicalType, count: usize) -> Result<(Plain, usize), ParquetFault> {
    let integers = |size: usize, read: fn(&[u8]) -> i64| {
        let bytes = count.checked_mul(size).ok_or(BROKEN)?;
        let values = page.get(..bytes).ok_or(CUT)?.chunks_exact(size).map(read).collect();
        Ok((Plain::Integers(values), bytes))
    };
    match kind {
        PhysicalType::Int32 => {
            integers(4, |bytes| bytes.try_into().map(i32::from_le_bytes).unwrap_or_default().into())
        }
        PhysicalType::Int64 => {
            integers(8, |bytes| bytes.try_into().map(i64::from_le_bytes).unwrap_or_default())
        }
        PhysicalType::ByteArray => {
            if count.saturating_mul(4) > page.len() {
                return Err(CUT);
            }
            let (mut texts, mut at) = (Vec::with_capacity(count), 0_usize);
            for _ in 0..count {
                let length = page.get(at..).and_then(|rest| rest.first_chunk()).ok_or(CUT)?;
                let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_large| BROKEN)?;
                let begin = at + 4;
                let end = begin.checked_add(length).filter(|end| *end <= page.len()).ok_or(CUT)?;
                texts.push(page.slice(begin..end));
                at = end;
            }
            Ok((Plain::Texts(texts), at))
        }
    }
}

/// Numbers of `width` bits in runs: repeated ones, and packed ones.
fn hybrid(bytes: &[u8], width: u32, count: usize) -> Result<Vec<u32>, ParquetFault> {
    if width > 24 || count > MAX_ROWS {
        return Err(BROKEN);
    }
    let (mut numbers, mut rest) = (Vec::new(), bytes);
    let take = |rest: &mut &[u8], length: usize| {
        let (taken, behind) = rest.split_at_checked(length).ok_or(CUT)?;
        *rest = behind;
        let number =
            |taken: &[u8]| taken.iter().rev().fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
        Ok::<_, ParquetFault>((taken.to_vec(), if length <= 8 { number(taken) } else { 0 }))
    };
    while numbers.len() < count {
        let mut head = 0_u64;
        for shift in (0..35).step_by(7) {
            let (_, byte) = take(&mut rest, 1)?;
            head |= (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let (length, left) = (usize::try_from(head >> 1).map_err(|_large| BROKEN)?, count - numbers.len());
        if head & 1 == 0 {
            let (_, number) = take(&mut rest, width.div_ceil(8) as usize)?;
            let number = u32::try_from(number).map_err(|_large| BROKEN)?;
            if length == 0 {
                return Err(BROKEN);
            }
            numbers.extend(std::iter::repeat_n(number, length.min(left)));
        } else {
            let packed = length.checked_mul(width as usize).ok_or(BROKEN)?;
            // The last run may be cut where its numbers end.
            let needed = (left.saturating_mul(width as usize)).div_ceil(8);
            let here = packed.min(needed);
            if length == 0 {
                return Err(CUT);
            }
            let (packed, _) = take(&mut rest, here)?;
            let numbers_here = length.saturating_mul(8).min(left);
            let bit = |at: usize| packed.get(at / 8).is_some_and(|byte| (byte >> (at % 8)) & 1 == 1);
            numbers.extend((0..numbers_here).map(|number| {
                let first = number * width as usize;
                (0..width).fold(0, |value, at| value | (u32::from(bit(first + at as usize)) << at))
            }));
        }
    }
    Ok(numbers)
}

impl ColumnValues {
    fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// Adds the values of a page. `levels` says which rows have one: all, if it is `None`.
    fn append(
        &mut self,
        page: &Bytes,
        head: &PageHead,
        levels: Option<&[u32]>,
        column: &RecordColumn,
        dictionary: Option<&Plain>,
    ) -> Result<(), ParquetFault> {
        let is_there = |row: usize| levels.is_none_or(|levels| levels.get(row) == Some(&1));
        let count = (0..head.values).filter(|row| is_there(*row)).count();
        let (values, indices) = match (head.encoding, dictionary) {
            (PLAIN, _) => (&plain(page, column.kind, count)?.0, None),
            (PLAIN_DICTIONARY | RLE_DICTIONARY, Some(dictionary)) => {
                let indices = match page.split_first() {
                    None if count == 0 => Vec::new(),
                    None => return Err(CUT),
                    Some((0, _)) => vec![0; count],
                    Some((width, rest)) => hybrid(rest, (*width).into(), count)?,
                };
                (dictionary, Some(indices))
            }
            _ => return Err("a column has an encoding that is not supported"),
        };
        let mut next = 0;
        for row in 0..head.values {
            let at = if is_there(row) {
                let at = match &indices {
                    None => next,
                    Some(indices) => {
                        indices.get(next).and_then(|at| usize::try_from(*at).ok()).ok_or(BROKEN)?
                    }
                };
                next += 1;
                Some(at)
            } else {
                None
            };
            match (&mut *self, values) {
                (Self::Integers(all), Plain::Integers(values)) => {
                    all.push(at.map(|at| values.get(at).copied().ok_or(BROKEN)).transpose()?);
                }
                (Self::Texts(all), Plain::Texts(values)) => {
                    all.push(at.map(|at| values.get(at).cloned().ok_or(BROKEN)).transpose()?);
                }
                _ => return Err(BROKEN),
            }
        }
        Ok(())
    }
}

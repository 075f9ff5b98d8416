//! The records of a zip file, parsed from bytes in memory (PKWARE APPNOTE 6.3.10, sections 4.3 and 4.5.3).
//!
//! Parsing does no I/O and allocates nothing: every number may come from an attacker, and is checked against the
//! available bytes. The records are few and fixed, and the checks stay visible here; crates for zip files need the
//! whole file, a blocking reader, or memory for as many entries as the file claims.

use std::ops::Range;

use super::ZipError;

/// Bytes at the end of a file that are searched for its end record with all that belongs to it: records of 22, 20 and
/// 56 bytes and the longest comment.
pub(super) const END_BYTES: usize = 22 + 20 + 56 + 0xffff;
/// Length of a local header without its name and extra field.
pub(super) const LOCAL_BYTES: u64 = 30;

const END: u32 = 0x0605_4b50;
const LOCATOR: u32 = 0x0706_4b50;
const LOCATOR_LENGTH: usize = 20;
const END_64: u32 = 0x0606_4b50;
const END_64_LENGTH: usize = 56;
const CENTRAL: u32 = 0x0201_4b50;
const LOCAL: u32 = 0x0403_4b50;
/// The id of the extra field for numbers that do not fit into 32 bits.
const EXTRA_64: u16 = 1;
/// The most extra fields that are searched for it. Programs write it first or after a few; a record can have 16,383,
/// and is parsed again each time it is needed.
const EXTRA_FIELDS: usize = 64;

/// The central directory, as the end record describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The range of the central directory in the file.
    pub(super) directory: Range<u64>,
    /// Bytes before the zip file proper, which are added to the offsets in it.
    pub(super) base: u64,
    /// Entries in the directory.
    pub(super) entries: u64,
    /// Whether that number is exact, and not truncated to 16 bits.
    pub(super) exact: bool,
}

/// A record of the central directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Central<'a> {
    /// Whether the entry is encrypted in any way.
    pub(super) encrypted: bool,
    /// The compression method.
    pub(super) method: u16,
    /// CRC-32 of its bytes.
    pub(super) crc: u32,
    /// Its compressed size, in bytes.
    pub(super) compressed: u64,
    /// Its uncompressed size, in bytes.
    pub(super) size: u64,
    /// Its name as it is written.
    pub(super) name: &'a [u8],
    /// The offset of its local header, from the beginning of the zip file proper.
    pub(super) offset: u64,
}

/// Finds the end record in the last bytes of a file of `size` bytes.
///
/// A comment may contain bytes that resemble one. The last that fits is taken: its comment ends with the file, and its
/// directory lies before it.
pub(super) fn find_end(tail: &[u8], size: u64) -> Result<End, ZipError> {
    let start = size.saturating_sub(tail.len() as u64);
    let mut complaint = ZipError::Broken("it has no end record");
    let candidates = tail.len().saturating_sub(END_BYTES)..tail.len();
    for at in candidates.rev() {
        match end_at(tail, at, start) {
            None => {}
            Some(Ok(end)) => return Ok(end),
            Some(Err(error)) => complaint = error,
        }
    }
    Err(complaint)
}

/// The end record at an offset in the tail; `None` if there is none.
fn end_at(tail: &[u8], at: usize, start: u64) -> Option<Result<End, ZipError>> {
    let mut fields = Fields(tail.get(at..)?);
    if fields.u32()? != END {
        return None;
    }
    let (disk, directory_disk) = (fields.u16()?, fields.u16()?);
    let (_, entries) = (fields.u16()?, fields.u16()?);
    let (length, offset) = (fields.u32()?, fields.u32()?);
    if usize::from(fields.u16()?) != fields.0.len() {
        return None;
    }
    let has_more = disk == u16::MAX || entries == u16::MAX || length == u32::MAX || offset == u32::MAX;
    // Some programs write a zip64 end record without need, and it counts: the directory ends where it begins.
    match end_64_before(tail, at, start) {
        Some(end) => return Some(end),
        None if has_more && has_locator(tail, at) => {
            return Some(Err(ZipError::Broken("its zip64 end record is not where it should be")));
        }
        None => {}
    }
    if disk != 0 || directory_disk != 0 {
        return Some(Err(ZipError::Feature("several parts")));
    }
    let end = start + at as u64;
    Some(directory(end, length.into(), offset.into(), entries.into(), false))
}

/// Whether the end record at `at` follows a locator of a zip64 end record.
fn has_locator(tail: &[u8], at: usize) -> bool {
    let locator = at.checked_sub(LOCATOR_LENGTH).and_then(|at| tail.get(at..));
    locator.is_some_and(|locator| locator.starts_with(&LOCATOR.to_le_bytes()))
}

/// The zip64 end record that belongs to the end record at `at`, if its locator leads to one.
fn end_64_before(tail: &[u8], at: usize, start: u64) -> Option<Result<End, ZipError>> {
    if !has_locator(tail, at) {
        return None;
    }
    let locator_at = at.checked_sub(LOCATOR_LENGTH)?;
    let mut fields = Fields(tail.get(locator_at..)?);
    let (_signature, _disk) = (fields.u32()?, fields.u32()?);
    // At the offset it states, and directly before its locator if other bytes precede the zip file.
    let said = fields.u64()?.checked_sub(start).and_then(|at| usize::try_from(at).ok());
    let places = [said, locator_at.checked_sub(END_64_LENGTH)];
    places.into_iter().flatten().find_map(|at| end_64_at(tail, at, locator_at, start))
}

/// The zip64 end record at an offset in the tail, if it ends where its locator begins.
fn end_64_at(tail: &[u8], at: usize, locator_at: usize, start: u64) -> Option<Result<End, ZipError>> {
    let mut fields = Fields(tail.get(at..locator_at)?);
    if fields.u32()? != END_64 || fields.u64()? != fields.0.len() as u64 {
        return None;
    }
    let _versions = fields.u32()?;
    let (disk, directory_disk) = (fields.u32()?, fields.u32()?);
    let (_, entries) = (fields.u64()?, fields.u64()?);
    let (length, offset) = (fields.u64()?, fields.u64()?);
    if disk != 0 || directory_disk != 0 {
        return Some(Err(ZipError::Feature("several parts")));
    }
    Some(directory(start + at as u64, length, offset, entries, true))
}

/// A directory that ends at `end`. Its real offset follows from its length; the difference to the offset it states is
/// the length of what precedes the zip file.
fn directory(end: u64, length: u64, offset: u64, entries: u64, exact: bool) -> Result<End, ZipError> {
    let start = end.checked_sub(length);
    let base = start.and_then(|start| start.checked_sub(offset));
    match (start, base) {
        (Some(start), Some(base)) => Ok(End { directory: start..end, base, entries, exact }),
        _ => Err(ZipError::Broken("its central directory lies outside the file")),
    }
}

/// The first record of the rest of a central directory, and the bytes after it.
pub(super) fn central(bytes: &[u8]) -> Result<(Central<'_>, &[u8]), ZipError> {
    central_or_none(bytes).ok_or(ZipError::Broken("its central directory has incomplete records"))?
}

type Record<'a> = (Central<'a>, &'a [u8]);

fn central_or_none(bytes: &[u8]) -> Option<Result<Record<'_>, ZipError>> {
    let mut fields = Fields(bytes);
    if fields.u32()? != CENTRAL {
        return None;
    }
    let _versions = fields.u32()?;
    let (flags, method) = (fields.u16()?, fields.u16()?);
    let _time = fields.u32()?;
    let (crc, compressed, size) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let [name, extra, comment] = [fields.u16()?, fields.u16()?, fields.u16()?];
    let (disk, _internal, _external) = (fields.u16()?, fields.u16()?, fields.u32()?);
    let offset = fields.u32()?;
    let (name, extra) = (fields.bytes(name.into())?, fields.bytes(extra.into())?);
    fields.bytes(comment.into())?;
    let [size, compressed, offset] = match widened([size, compressed, offset], extra) {
        Ok(wide) => wide,
        Err(error) => return Some(Err(error)),
    };
    if disk != 0 && disk != u16::MAX {
        return Some(Err(ZipError::Feature("several parts")));
    }
    // Encrypted; strongly encrypted; with a masked local header.
    let encrypted = flags & (1 | 1 << 6 | 1 << 13) != 0;
    Some(Ok((Central { encrypted, method, crc, compressed, size, name, offset }, fields.0)))
}

/// Size, compressed size and offset. Those with all bits set are in the zip64 field, in this order, if there is one.
/// The extra fields are parsed only for them.
fn widened(numbers: [u32; 3], extra: &[u8]) -> Result<[u64; 3], ZipError> {
    let mut wide = numbers.map(u64::from);
    if !numbers.contains(&u32::MAX) {
        return Ok(wide);
    }
    let Some(mut field) = extra_64(extra)? else { return Ok(wide) };
    for number in wide.iter_mut().filter(|number| **number == u64::from(u32::MAX)) {
        *number = field.u64().ok_or(ZipError::Broken("the zip64 field of an entry is too short"))?;
    }
    Ok(wide)
}

/// The zip64 field among the extra fields. Malformed fields are skipped: they belong to other programs.
fn extra_64(extra: &[u8]) -> Result<Option<Fields<'_>>, ZipError> {
    let mut fields = Fields(extra);
    for _ in 0..EXTRA_FIELDS {
        let Some((id, body)) = fields.extra() else { return Ok(None) };
        if id == EXTRA_64 {
            return Ok(Some(Fields(body)));
        }
    }
    if fields.extra().is_none() {
        Ok(None)
    } else {
        Err(ZipError::Feature("entries of more than 64 extra fields"))
    }
}

/// The length of the local header at the beginning of `bytes`, which must match the entry in the directory.
pub(super) fn local_length(bytes: &[u8], name: &str, method: u16) -> Result<u64, ZipError> {
    local_or_none(bytes, name, method)
        .ok_or(ZipError::Broken("an entry's local header is not what the central directory says"))
}

fn local_or_none(bytes: &[u8], name: &str, method: u16) -> Option<u64> {
    let mut fields = Fields(bytes);
    if fields.u32()? != LOCAL {
        return None;
    }
    let (_version, flags, local_method) = (fields.u16()?, fields.u16()?, fields.u16()?);
    // Time, CRC-32 and sizes may be zero here; the directory has them all.
    fields.bytes(16)?;
    let (name_length, extra_length) = (fields.u16()?, fields.u16()?);
    let agrees = flags & 1 == 0 && local_method == method;
    if !agrees || fields.bytes(name_length.into())? != name.as_bytes() {
        return None;
    }
    Some(LOCAL_BYTES + u64::from(name_length) + u64::from(extra_length))
}

/// Reads little-endian numbers in sequence; `None` at the end of the bytes.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// An extra field: its id and its bytes.
    fn extra(&mut self) -> Option<(u16, &'a [u8])> {
        let (id, length) = (self.u16()?, self.u16()?);
        Some((id, self.bytes(length.into())?))
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

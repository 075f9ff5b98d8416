//! Thrift's compact protocol, as far as the heads of Parquet files need it: fields are visited, and others skipped.

use super::fault::ParquetFault;

/// Thrift's type of a field.
pub(super) type ThriftType = u8;

const STRUCT: ThriftType = 12;
const LIST: ThriftType = 9;
const SET: ThriftType = 10;
const MAP: ThriftType = 11;
/// The deepest nesting.
const MAX_DEPTH: u32 = 16;

const CUT: ParquetFault = "it ends within its head";
const BROKEN: ParquetFault = "its head is broken";

/// Bytes that are read from their front.
#[derive(Debug)]
pub(super) struct Thrift<'a> {
    rest: &'a [u8],
    depth: u32,
}

impl<'a> Thrift<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, depth: 0 }
    }

    /// What was not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn byte(&mut self) -> Result<u8, ParquetFault> {
        let (byte, rest) = self.rest.split_first().ok_or(CUT)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn varint(&mut self) -> Result<u64, ParquetFault> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(BROKEN)
    }

    /// An integer of 16, 32 or 64 bits.
    pub(super) fn integer(&mut self) -> Result<i64, ParquetFault> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// A size or a count.
    pub(super) fn size(&mut self) -> Result<usize, ParquetFault> {
        usize::try_from(self.integer()?).map_err(|_negative| BROKEN)
    }

    /// Bytes or a text.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], ParquetFault> {
        let length = usize::try_from(self.varint()?).map_err(|_large| BROKEN)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Visits the fields of a struct. `visit` reads the value, or returns `false` for it to be skipped.
    pub(super) fn fields(
        &mut self,
        mut visit: impl FnMut(&mut Self, i64, ThriftType) -> Result<bool, ParquetFault>,
    ) -> Result<(), ParquetFault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(BROKEN);
        }
        let mut id = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                self.depth -= 1;
                return Ok(());
            }
            id = match head >> 4 {
                0 => self.integer()?,
                delta => id.checked_add(i64::from(delta)).ok_or(BROKEN)?,
            };
            let kind = head & 0xf;
            if !visit(self, id, kind)? {
                self.skip(kind)?;
            }
        }
    }

    /// Visits the items of a list.
    pub(super) fn items(
        &mut self,
        mut visit: impl FnMut(&mut Self) -> Result<(), ParquetFault>,
    ) -> Result<(), ParquetFault> {
        let (_, count) = self.list()?;
        (0..count).try_for_each(|_| visit(self))
    }

    fn list(&mut self) -> Result<(ThriftType, u64), ParquetFault> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => count.into(),
        };
        // Every item takes a byte at least.
        if count > self.rest.len() as u64 { Err(CUT) } else { Ok((head & 0xf, count)) }
    }

    fn skip(&mut self, kind: ThriftType) -> Result<(), ParquetFault> {
        match kind {
            // A field that is true or false has its value in its head.
            1 | 2 => Ok(()),
            3 => self.byte().map(drop),
            4..=6 => self.varint().map(drop),
            7 => (0..8).try_for_each(|_| self.byte().map(drop)),
            8 => self.bytes().map(drop),
            LIST | SET => {
                let (kind, count) = self.list()?;
                self.nested(|thrift| (0..count).try_for_each(|_| thrift.skip_item(kind)))
            }
            MAP => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                if count > self.rest.len() as u64 {
                    return Err(CUT);
                }
                let kinds = self.byte()?;
                self.nested(|thrift| {
                    (0..count).try_for_each(|_| {
                        thrift.skip_item(kinds >> 4)?;
                        thrift.skip_item(kinds & 0xf)
                    })
                })
            }
            STRUCT => self.fields(|_, _, _| Ok(false)),
            _ => Err(BROKEN),
        }
    }

    /// In lists, what is true or false takes a byte.
    fn skip_item(&mut self, kind: ThriftType) -> Result<(), ParquetFault> {
        match kind {
            1 | 2 => self.byte().map(drop),
            kind => self.skip(kind),
        }
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), ParquetFault>,
    ) -> Result<(), ParquetFault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(BROKEN);
        }
        read(self)?;
        self.depth -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_field_does_not_overflow() {
        // A byte with its number, the largest there is, and then one whose number is one more.
        let bytes = [&[0x03, 0xfe][..], &[0xff; 8], &[0x01, 0x00, 0x13, 0x00, 0x00]].concat();
        let mut numbers = Vec::new();
        let outcome = Thrift::new(&bytes).fields(|_, id, _| {
            numbers.push(id);
            Ok(false)
        });
        assert_eq!((outcome, numbers), (Err(BROKEN), vec![i64::MAX]));
    }
}

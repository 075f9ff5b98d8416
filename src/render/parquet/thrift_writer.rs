//! [`ThriftWriter`]: Thrift's compact protocol, as far as the heads and the footer of Parquet files need it.

/// The types of fields.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A struct that is written field by field, in the order of their numbers.
#[derive(Debug)]
pub(super) struct ThriftWriter<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

impl<'a> ThriftWriter<'a> {
    /// Writes a struct.
    pub(super) fn write(out: &'a mut Vec<u8>, fields: impl FnOnce(&mut ThriftWriter<'_>)) {
        fields(&mut ThriftWriter { out, last: 0 });
        out.push(0);
    }

    fn head(&mut self, number: u8, kind: u8) {
        self.out.push((number.saturating_sub(self.last) << 4) | kind);
        self.last = number;
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push((value & 0x7f).to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.out.push(value.to_le_bytes()[0]);
    }

    fn zigzag(&mut self, value: i64) {
        self.varint(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    pub(super) fn boolean(&mut self, number: u8, value: bool) {
        self.head(number, if value { TRUE } else { FALSE });
    }

    pub(super) fn byte(&mut self, number: u8, value: u8) {
        self.head(number, BYTE);
        self.out.push(value);
    }

    pub(super) fn i32(&mut self, number: u8, value: i32) {
        self.head(number, I32);
        self.zigzag(value.into());
    }

    /// A number that is never negative.
    pub(super) fn i64(&mut self, number: u8, value: u64) {
        self.head(number, I64);
        self.zigzag(i64::try_from(value).unwrap_or(i64::MAX));
    }

    pub(super) fn text(&mut self, number: u8, text: &str) {
        self.head(number, BINARY);
        self.bare_text(text);
    }

    fn bare_text(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(super) fn structure(&mut self, number: u8, fields: impl FnOnce(&mut ThriftWriter<'_>)) {
        self.head(number, STRUCT);
        ThriftWriter::write(self.out, fields);
    }

    fn list_head(&mut self, number: u8, kind: u8, length: usize) {
        self.head(number, LIST);
        if let Ok(short @ ..15) = u8::try_from(length) {
            self.out.push((short << 4) | kind);
        } else {
            self.out.push(0xf0 | kind);
            self.varint(length as u64);
        }
    }

    pub(super) fn i32s(&mut self, number: u8, values: &[i32]) {
        self.list_head(number, I32, values.len());
        for &value in values {
            self.zigzag(value.into());
        }
    }

    pub(super) fn texts(&mut self, number: u8, texts: &[&str]) {
        self.list_head(number, BINARY, texts.len());
        for text in texts {
            self.bare_text(text);
        }
    }

    pub(super) fn structures<T>(
        &mut self,
        number: u8,
        items: &[T],
        fields: impl Fn(&mut ThriftWriter<'_>, &T),
    ) {
        self.list_head(number, STRUCT, items.len());
        for item in items {
            ThriftWriter::write(self.out, |writer| fields(writer, item));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_protocol_says() {
        let mut out = Vec::new();
        ThriftWriter::write(&mut out, |writer| {
            writer.i32(1, -1);
            writer.i64(3, 300);
            writer.text(4, "ab");
            writer.structure(5, |inner| inner.boolean(2, false));
            writer.i32s(6, &[0, 3]);
        });
        let expected = [0x15, 1, 0x26, 0xd8, 4, 0x18, 2, b'a', b'b', 0x1c, 0x22, 0, 0x19, 0x25, 0, 6, 0];
        assert_eq!(out, expected);
    }

    #[test]
    fn a_long_list_has_its_length_behind_its_head() {
        let mut out = Vec::new();
        ThriftWriter::write(&mut out, |writer| writer.i32s(1, &[0; 15]));
        assert_eq!(out[..3], [0x19, 0xf5, 15]);
        assert_eq!(out.len(), 3 + 15 + 1);
    }
}

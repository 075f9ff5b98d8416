//! [`Record`]: the form of what is written into segment files, with the checksums that every read verifies.
//!
//! A record is a head of fixed length, the texts that name its value (scope, key, version), and bytes of that value. One
//! checksum covers the head and the texts, another the bytes; the first covers the second too. Both begin from the random number
//! of the segment, and the first from the record's offset as well, so that bytes of a value cannot pass for a record, however
//! they were chosen. Numbers are little endian.

use std::time::{Duration, SystemTime};

use bytes::{Buf, BufMut};
use twox_hash::XxHash3_128;

/// Records begin at multiples of this, so that a search for them is short.
pub(super) const ALIGNMENT: usize = 64;
/// The most bytes of a value in one record. A read of any part verifies, and so reads, the whole record.
pub(super) const MAX_DATA: usize = 256 << 10;
/// The longest text of a name.
const MAX_TEXT: usize = 4 << 10;
/// Length of the head without the texts.
const FIXED: usize = 88;
/// How much of that its checksum covers.
const CHECKED: usize = FIXED - 16;
/// Where the checksum of the data is.
const DATA_SUM: usize = 56;
const MAGIC: &[u8; 4] = b"zrec";

/// What a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// Bytes of a value.
    Value,
    /// Everything of this scope below the prefix `key` that was written earlier is purged.
    Purge,
    /// The heads of the records of a segment that is complete.
    Table,
}

impl RecordKind {
    const ALL: [Self; 3] = [Self::Value, Self::Purge, Self::Table];

    fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// A record without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) kind: RecordKind,
    /// The store that the value is of.
    pub(super) scope: Box<str>,
    /// The key of the value, or a prefix.
    pub(super) key: Box<str>,
    /// The tag of the value's version.
    pub(super) tag: Box<str>,
    /// Where the bytes begin in the value.
    pub(super) start: u64,
    /// Length of the complete value.
    pub(super) size: u64,
    pub(super) modified: Option<SystemTime>,
    /// How many bytes of the value there are.
    pub(super) data_length: usize,
}

impl Record {
    /// Whether its texts are short enough to be written.
    pub(super) fn is_writable(&self) -> bool {
        [&self.scope, &self.key, &self.tag].iter().all(|text| text.len() <= MAX_TEXT)
    }

    /// Length of the head with the texts.
    pub(super) fn head_length(&self) -> usize {
        FIXED + self.scope.len() + self.key.len() + self.tag.len()
    }

    /// Length of the whole record, with the padding that aligns the next one.
    pub(super) fn length(&self) -> usize {
        (self.head_length() + self.data_length).next_multiple_of(ALIGNMENT)
    }

    /// The bytes of the record at an offset of a segment.
    pub(super) fn encode(&self, data: &[u8], nonce: u64, offset: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length());
        bytes.put_slice(MAGIC);
        bytes.put_u8(self.kind.number());
        bytes.put_u8(u8::from(self.modified.is_some()));
        bytes.put_u16_le(0);
        for length in [self.scope.len(), self.key.len(), self.tag.len(), data.len()] {
            bytes.put_u32_le(u32::try_from(length).unwrap_or(u32::MAX));
        }
        bytes.put_u64_le(self.start);
        bytes.put_u64_le(self.size);
        let (seconds, nanos) = self.modified.map(to_unix).unwrap_or_default();
        bytes.put_i64_le(seconds);
        bytes.put_u32_le(nanos);
        bytes.put_u32_le(0);
        bytes.put_u128_le(XxHash3_128::oneshot_with_seed(nonce, data));
        bytes.put_u128_le(0);
        for text in [&self.scope, &self.key, &self.tag] {
            bytes.put_slice(text.as_bytes());
        }
        let sum = head_sum(&bytes, nonce, offset);
        if let Some(place) = bytes.get_mut(CHECKED..FIXED) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
        bytes.put_slice(data);
        bytes.resize(self.length(), 0);
        bytes
    }

    /// The record that begins with these bytes and was written at this offset; `None` if none was. The bytes of the value are
    /// not verified.
    pub(super) fn decode(bytes: &[u8], nonce: u64, offset: u64) -> Option<Self> {
        let head = bytes.get(..FIXED)?;
        let mut fields = head;
        if fields.copy_to_bytes(4).as_ref() != MAGIC {
            return None;
        }
        let (kind, has_time) = (fields.get_u8(), fields.get_u8());
        let kind = RecordKind::ALL.into_iter().find(|known| known.number() == kind)?;
        fields.advance(2);
        let lengths = [(); 4].map(|()| fields.get_u32_le() as usize);
        let [scope, key, tag, data_length] = lengths;
        if [scope, key, tag].iter().any(|length| *length > MAX_TEXT) {
            return None;
        }
        let (start, size) = (fields.get_u64_le(), fields.get_u64_le());
        let (seconds, nanos) = (fields.get_i64_le(), fields.get_u32_le());
        let texts = bytes.get(FIXED..FIXED + scope + key + tag)?;
        let sum = u128::from_le_bytes(head.get(CHECKED..)?.try_into().ok()?);
        if head_sum(bytes.get(..FIXED + texts.len())?, nonce, offset) != sum {
            return None;
        }
        let text = |from: usize, length: usize| {
            std::str::from_utf8(texts.get(from..from + length)?).ok().map(Box::<str>::from)
        };
        let modified = if has_time == 1 { Some(from_unix(seconds, nanos)?) } else { None };
        Some(Self {
            kind,
            scope: text(0, scope)?,
            key: text(scope, key)?,
            tag: text(scope + key, tag)?,
            start,
            size,
            modified,
            data_length,
        })
    }

    /// The bytes of the value in those of the record, if they are those that were written. `bytes` was decoded to `self`.
    pub(super) fn verified<'a>(&self, bytes: &'a [u8], nonce: u64) -> Option<&'a [u8]> {
        let data = bytes.get(self.head_length()..self.head_length().checked_add(self.data_length)?)?;
        let sum = u128::from_le_bytes(bytes.get(DATA_SUM..CHECKED)?.try_into().ok()?);
        (XxHash3_128::oneshot_with_seed(nonce, data) == sum).then_some(data)
    }
}

/// The most bytes that a head takes.
pub(super) const MAX_HEAD: usize = FIXED + 3 * MAX_TEXT;

/// The checksum of a head with its texts, at an offset of a segment. Its own place counts as zeros.
fn head_sum(head: &[u8], nonce: u64, offset: u64) -> u128 {
    let seed = nonce ^ offset.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (fixed, texts) = head.split_at(FIXED.min(head.len()));
    let mut covered = Vec::with_capacity(head.len());
    covered.extend_from_slice(fixed.get(..CHECKED).unwrap_or(fixed));
    covered.extend_from_slice(texts);
    XxHash3_128::oneshot_with_seed(seed, &covered)
}

/// Seconds since 1970, rounded down, and the nanoseconds above them.
fn to_unix(time: SystemTime) -> (i64, u32) {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => (seconds(after), after.subsec_nanos()),
        Err(before) if before.duration().subsec_nanos() == 0 => (-seconds(before.duration()), 0),
        Err(before) => (-1 - seconds(before.duration()), 1_000_000_000 - before.duration().subsec_nanos()),
    }
}

fn from_unix(seconds: i64, nanos: u32) -> Option<SystemTime> {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let epoch = SystemTime::UNIX_EPOCH;
    let time = if seconds < 0 { epoch.checked_sub(whole) } else { epoch.checked_add(whole) };
    time?.checked_add(Duration::from_nanos(nanos.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            kind: RecordKind::Value,
            scope: "m@0".into(),
            key: "a/c/0".into(),
            tag: "etag".into(),
            start: 256 << 10,
            size: 1 << 20,
            modified: Some(SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 5)),
            data_length: 100,
        }
    }

    #[test]
    fn a_record_is_decoded_as_it_was_encoded() {
        let before_1970 = SystemTime::UNIX_EPOCH - Duration::new(3, 250_000_000);
        for modified in [record().modified, None, Some(SystemTime::UNIX_EPOCH), Some(before_1970)] {
            let (record, data) = (Record { modified, ..record() }, [7; 100]);
            let bytes = record.encode(&data, 3, 128);
            assert_eq!(bytes.len(), record.length());
            assert_eq!(bytes.len() % ALIGNMENT, 0);
            assert_eq!(Record::decode(&bytes, 3, 128).as_ref(), Some(&record));
            assert_eq!(record.verified(&bytes, 3), Some(&data[..]));
        }
    }

    #[test]
    fn every_flipped_bit_and_every_missing_byte_is_found() {
        let (record, data) = (record(), [7; 100]);
        let bytes = record.encode(&data, 3, 128);
        let found = |bytes: &[u8]| {
            let decoded = Record::decode(bytes, 3, 128)?;
            let data = decoded.verified(bytes, 3)?.to_vec();
            Some((decoded, data))
        };
        let used = record.head_length() + data.len();
        for bit in 0..used * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(found(&damaged), None, "bit {bit}");
        }
        for length in 0..used {
            assert_eq!(found(&bytes[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn a_record_is_valid_at_its_own_place_only() {
        let bytes = record().encode(&[7; 100], 3, 128);
        assert_eq!(Record::decode(&bytes, 4, 128), None, "another segment");
        assert_eq!(Record::decode(&bytes, 3, 192), None, "another offset");
    }
}

//! [`PayloadReader`]: reads little-endian numbers from a payload, with bounds checks.

use super::PayloadError;

/// The unread rest of a payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct PayloadReader<'a>(&'a [u8]);

impl<'a> PayloadReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next `bytes` bytes.
    pub(super) fn take(&mut self, bytes: usize, what: &'static str) -> Result<&'a [u8], PayloadError> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(PayloadError::Short(what))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], PayloadError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(PayloadError::Short(what))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self, what: &'static str) -> Result<u8, PayloadError> {
        self.array(what).map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, PayloadError> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, PayloadError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn i64(&mut self, what: &'static str) -> Result<i64, PayloadError> {
        self.array(what).map(i64::from_le_bytes)
    }

    /// The next `count` numbers. Memory is allocated only for bytes that are present.
    pub(super) fn i64s(&mut self, count: u64, what: &'static str) -> Result<Vec<i64>, PayloadError> {
        let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(8));
        let taken = self.take(bytes.ok_or(PayloadError::Short(what))?, what)?;
        let (numbers, _) = taken.as_chunks();
        Ok(numbers.iter().map(|&number| i64::from_le_bytes(number)).collect())
    }

    /// The unread bytes.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Rejects unread bytes.
    pub(super) fn end(&self) -> Result<(), PayloadError> {
        if self.0.is_empty() { Ok(()) } else { Err(PayloadError::Trailing(self.0.len())) }
    }
}

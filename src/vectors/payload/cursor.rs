//! [`Cursor`]: little-endian numbers, one after the other, and never past the end.

use super::PayloadError;

/// A place in a payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct PayloadReader<'a>(&'a [u8]);

impl<'a> PayloadReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// So many bytes.
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

    /// So many numbers: no more memory is taken than there are bytes for.
    pub(super) fn i64s(&mut self, count: u64, what: &'static str) -> Result<Vec<i64>, PayloadError> {
        let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(8));
        let taken = self.take(bytes.ok_or(PayloadError::Short(what))?, what)?;
        let (numbers, _) = taken.as_chunks();
        Ok(numbers.iter().map(|&number| i64::from_le_bytes(number)).collect())
    }

    /// The bytes that are left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Refuses bytes behind the end.
    pub(super) fn end(&self) -> Result<(), PayloadError> {
        if self.0.is_empty() { Ok(()) } else { Err(PayloadError::Trailing(self.0.len())) }
    }
}

//! [`FlatTable`] and [`Vector`]: reading flatbuffers, every place checked as it is read.
//!
//! A table has a list of the places of its fields, which may lead anywhere: each read checks that it lies within the
//! buffer, and none follows more than one offset. So what walks a fixed schema ends, and allocates nothing. Places may be
//! shared, so a caller that walks vectors of vectors bounds their lengths together.

use crate::store::references::ReferenceError;

/// What is read leads out of the buffer, or is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Malformed;

impl From<Malformed> for ReferenceError {
    fn from(Malformed: Malformed) -> Self {
        Self::Repository("one of its files is damaged")
    }
}

/// The size of offsets and lengths.
const WORD: usize = 4;
/// The size of the places of fields.
const PLACE: usize = 2;
/// The size of what a list of places begins with.
const HEAD: usize = 4;

/// The bytes of a buffer at a place.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Malformed> {
    let end = at.checked_add(N).ok_or(Malformed)?;
    bytes.get(at..end).and_then(|part| part.try_into().ok()).ok_or(Malformed)
}

fn word(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    usize::try_from(u32::from_le_bytes(array(bytes, at)?)).map_err(|_narrow| Malformed)
}

/// The place that the offset at a place leads to.
fn follow(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    at.checked_add(word(bytes, at)?).filter(|at| *at < bytes.len()).ok_or(Malformed)
}

/// A table in a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlatTable<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the list of places is, and how many fields it has.
    fields: (usize, usize),
}

/// A vector in a buffer: where its items begin, and how many it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vector<'a> {
    bytes: &'a [u8],
    at: usize,
    count: usize,
}

impl<'a> FlatTable<'a> {
    /// The table that the buffer begins with.
    pub(super) fn root(bytes: &'a [u8]) -> Result<Self, Malformed> {
        Self::at(bytes, follow(bytes, 0)?)
    }

    /// The table at a place.
    pub(super) fn at(bytes: &'a [u8], at: usize) -> Result<Self, Malformed> {
        let back = i32::from_le_bytes(array(bytes, at)?);
        let list = i64::try_from(at).ok().and_then(|at| at.checked_sub(i64::from(back)));
        let list = list.and_then(|list| usize::try_from(list).ok()).ok_or(Malformed)?;
        let length = usize::from(u16::from_le_bytes(array(bytes, list)?));
        let is_whole = list.checked_add(length).is_some_and(|end| end <= bytes.len());
        let fields = length.checked_sub(HEAD).filter(|_| is_whole).ok_or(Malformed)? / PLACE;
        Ok(Self { bytes, at, fields: (list + HEAD, fields) })
    }

    /// Where the table is.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Where a field is; `None` if it is not set.
    fn field(&self, index: usize) -> Result<Option<usize>, Malformed> {
        let (list, count) = self.fields;
        if index >= count {
            return Ok(None);
        }
        let place = usize::from(u16::from_le_bytes(array(self.bytes, list + index * PLACE)?));
        Ok((place != 0).then(|| self.at.saturating_add(place)))
    }

    /// A field of `N` bytes.
    pub(super) fn fixed<const N: usize>(&self, index: usize) -> Result<Option<[u8; N]>, Malformed> {
        self.field(index)?.map(|at| array(self.bytes, at)).transpose()
    }

    /// An unsigned integer of one byte; 0 if it is not set.
    pub(super) fn u8(&self, index: usize) -> Result<u8, Malformed> {
        Ok(self.fixed(index)?.map_or(0, u8::from_le_bytes))
    }

    /// An unsigned integer of 4 bytes; 0 if it is not set.
    pub(super) fn u32(&self, index: usize) -> Result<u32, Malformed> {
        Ok(self.fixed(index)?.map_or(0, u32::from_le_bytes))
    }

    /// An integer of 4 bytes; 0 if it is not set.
    pub(super) fn i32(&self, index: usize) -> Result<i32, Malformed> {
        Ok(self.fixed(index)?.map_or(0, i32::from_le_bytes))
    }

    /// An unsigned integer of 8 bytes; 0 if it is not set.
    pub(super) fn u64(&self, index: usize) -> Result<u64, Malformed> {
        Ok(self.fixed(index)?.map_or(0, u64::from_le_bytes))
    }

    /// A table.
    pub(super) fn table(&self, index: usize) -> Result<Option<Self>, Malformed> {
        self.field(index)?.map(|at| Self::at(self.bytes, follow(self.bytes, at)?)).transpose()
    }

    /// A vector whose items take `item` bytes each; tables and texts take 4.
    pub(super) fn vector(&self, index: usize, item: usize) -> Result<Option<Vector<'a>>, Malformed> {
        let Some(at) = self.field(index)? else { return Ok(None) };
        Vector::at(self.bytes, follow(self.bytes, at)?, item).map(Some)
    }

    /// A vector of tables or texts.
    pub(super) fn vector_of_tables(&self, index: usize) -> Result<Option<Vector<'a>>, Malformed> {
        self.vector(index, WORD)
    }

    /// Bytes.
    pub(super) fn bytes(&self, index: usize) -> Result<Option<&'a [u8]>, Malformed> {
        Ok(self.vector(index, 1)?.map(|bytes| bytes.as_bytes()))
    }

    /// A text.
    pub(super) fn text(&self, index: usize) -> Result<Option<&'a str>, Malformed> {
        let bytes = self.bytes(index)?;
        bytes.map(|bytes| std::str::from_utf8(bytes).map_err(|_invalid| Malformed)).transpose()
    }
}

impl<'a> Vector<'a> {
    /// The vector at a place.
    pub(super) fn at(bytes: &'a [u8], at: usize, item: usize) -> Result<Self, Malformed> {
        let count = word(bytes, at)?;
        let end = count.checked_mul(item).and_then(|length| at.checked_add(WORD)?.checked_add(length));
        if end.is_some_and(|end| end <= bytes.len()) {
            Ok(Self { bytes, at: at + WORD, count })
        } else {
            Err(Malformed)
        }
    }

    /// How many items it has.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Where the vector is, for [`Vector::at`].
    pub(super) fn place(&self) -> usize {
        self.at - WORD
    }

    /// The bytes of a vector of bytes.
    pub(super) fn as_bytes(&self) -> &'a [u8] {
        self.bytes.get(self.at..self.at.saturating_add(self.count)).unwrap_or_default()
    }

    /// The item at an index, of `N` bytes.
    pub(super) fn fixed<const N: usize>(&self, index: usize) -> Result<[u8; N], Malformed> {
        array(self.bytes, self.place_of(index, N)?)
    }

    /// The table at an index.
    pub(super) fn table(&self, index: usize) -> Result<FlatTable<'a>, Malformed> {
        FlatTable::at(self.bytes, follow(self.bytes, self.place_of(index, WORD)?)?)
    }

    /// All tables.
    pub(super) fn tables(self) -> impl Iterator<Item = Result<FlatTable<'a>, Malformed>> {
        (0..self.count).map(move |index| self.table(index))
    }

    fn place_of(&self, index: usize, item: usize) -> Result<usize, Malformed> {
        let place = index.checked_mul(item).and_then(|offset| self.at.checked_add(offset));
        place.filter(|_| index < self.count).ok_or(Malformed)
    }
}

//! [`ExportedTexts`]: the elements of an array of texts, in UTF-8.

use super::error::DatasetError;
use crate::chunk::Elements;
use crate::metadata::DataType;

/// Texts one after the other, and where each ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportedTexts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Whether elements are texts.
#[must_use]
pub fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::String | DataType::FixedLengthUtf32 { .. } | DataType::NullTerminatedBytes { .. }
    )
}

impl ExportedTexts {
    /// Appends the texts of elements of a type.
    ///
    /// # Errors
    /// [`DatasetError::NotText`].
    pub fn append(&mut self, data_type: &DataType, elements: &Elements) -> Result<(), DatasetError> {
        match data_type {
            DataType::String => {
                for text in elements.variable_elements() {
                    self.bytes.extend_from_slice(text);
                    self.ends.push(self.bytes.len());
                }
            }
            DataType::FixedLengthUtf32 { .. } => {
                for item in elements.items().chunks_exact(data_type.element_bytes()) {
                    self.append_characters(item)?;
                }
            }
            _ => {
                for item in elements.items().chunks_exact(data_type.element_bytes()) {
                    let length = item.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                    self.bytes.extend_from_slice(item.get(..length).unwrap_or_default());
                    self.ends.push(self.bytes.len());
                }
            }
        }
        Ok(())
    }

    /// Appends a text of characters of four bytes each; zeros at its end are padding.
    fn append_characters(&mut self, item: &[u8]) -> Result<(), DatasetError> {
        let numbers = item.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
        let length = numbers.clone().rposition(|number| number != 0).map_or(0, |last| last + 1);
        for number in numbers.take(length) {
            let character = char::from_u32(number).ok_or(DatasetError::NotText { number })?;
            self.bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// The texts.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let text = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            text
        })
    }

    /// Bytes of the longest text.
    #[must_use]
    pub fn longest_bytes(&self) -> u64 {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let longest = starts.zip(&self.ends).map(|(start, end)| end - start).max();
        longest.unwrap_or(0) as u64
    }

    /// The bytes that all texts have in cells of this length.
    #[must_use]
    pub fn cells_bytes(&self, cell_bytes: u64) -> u64 {
        cell_bytes.saturating_mul(self.ends.len() as u64)
    }

    /// The texts in cells of this length, padded with zeros.
    #[must_use]
    pub fn cells(&self, cell_bytes: u64) -> Vec<u8> {
        let cell = usize::try_from(cell_bytes).unwrap_or(0);
        let mut cells = Vec::with_capacity(self.ends.len().saturating_mul(cell));
        for text in self.iter() {
            let end = cells.len() + cell;
            cells.extend_from_slice(text.get(..cell).unwrap_or(text));
            cells.resize(end, 0);
        }
        cells
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (self.bytes.len() as u64).saturating_add((self.ends.len() as u64).saturating_mul(8))
    }
}

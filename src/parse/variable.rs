//! [`VariableElements`]: elements of variable length, built one by one; and texts of a fixed length as such elements.

use super::error::ParseError;
use crate::chunk::{Elements, VarSlice};
use crate::metadata::{DataType, MetadataLimits, canonical_json, parse_value};

/// Elements of variable length that are built one by one.
#[derive(Debug)]
pub(super) struct VariableElements<'a> {
    data_type: &'a DataType,
    slices: Vec<u8>,
    heap: Vec<u8>,
}

impl<'a> VariableElements<'a> {
    pub(super) fn new(data_type: &'a DataType) -> Self {
        Self { data_type, slices: Vec::new(), heap: Vec::new() }
    }

    /// Adds the bytes of an element.
    ///
    /// # Errors
    /// [`ParseError::Element`] if they are not one of the type; [`ParseError::TooLong`].
    pub(super) fn push(&mut self, element: &[u8]) -> Result<(), ParseError> {
        let number = (self.slices.len() / VarSlice::BYTES) as u64;
        let wrong = |reason: String| ParseError::Element { number, reason };
        match self.data_type {
            DataType::String if str::from_utf8(element).is_err() => {
                return Err(wrong("is not UTF-8".to_owned()));
            }
            DataType::VariableArray(item) if !element.len().is_multiple_of(item.element_bytes()) => {
                return Err(wrong(format!(
                    "is not a number of whole items of {} bytes",
                    item.element_bytes()
                )));
            }
            DataType::Json => {
                let value = parse_value(element, &MetadataLimits::default())
                    .map_err(|error| wrong(error.to_string()))?;
                return self.append(canonical_json(&value).as_bytes());
            }
            _ => {}
        }
        self.append(element)
    }

    fn append(&mut self, element: &[u8]) -> Result<(), ParseError> {
        let slice = u32::try_from(self.heap.len()).ok().zip(u32::try_from(element.len()).ok());
        let Some((offset, length)) = slice else {
            return Err(ParseError::TooLong { limit: u32::MAX.into() });
        };
        self.slices.extend_from_slice(&VarSlice { offset, length }.to_item());
        self.heap.extend_from_slice(element);
        Ok(())
    }

    pub(super) fn finish(self) -> Elements {
        Elements::variable(self.slices.into(), self.heap.into())
    }
}

/// Texts (UTF-32 in this byte order) or bytes of a fixed length, padded with zeros, as elements of variable length.
///
/// # Errors
/// As for the elements themselves: [`ParseError::Element`], [`ParseError::TooLong`].
pub fn parse_padded(data_type: &DataType, items: &[u8], item_bytes: usize) -> Result<Elements, ParseError> {
    let mut elements = VariableElements::new(data_type);
    for (number, item) in (0..).zip(items.chunks(item_bytes.max(1))) {
        if *data_type == DataType::String {
            let (characters, _) = item.as_chunks();
            let length =
                characters.iter().rposition(|character| *character != [0; 4]).map_or(0, |last| last + 1);
            let text: Option<String> = characters
                .iter()
                .take(length)
                .map(|bytes| char::from_u32(u32::from_le_bytes(*bytes)))
                .collect();
            let reason = || "has a code point that is no character".to_owned();
            elements
                .push(text.ok_or_else(|| ParseError::Element { number, reason: reason() })?.as_bytes())?;
        } else {
            let length = item.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            elements.push(item.get(..length).unwrap_or_default())?;
        }
    }
    Ok(elements.finish())
}

//! `categorize`: each text as the number of its label (numcodecs, "categorize").
//!
//! The first label is 1. 0 is the empty text and whatever has no label; so is a number without a label when it is
//! decoded. A label longer than the elements is cut off, as numpy does.

use std::collections::HashMap;

use ::bytes::Bytes;
use serde_json::Value;

use super::CodecError;
use super::buffer;
use super::config::Config;
use super::number;
use super::registry::{ArrayToArray, BindContext, BoundArray};
use super::representation::Representation;
use super::strings::StringsWriter;
use crate::chunk::{Elements, VarSlice};
use crate::metadata::{DataType, FillValue, without_padding};

const NAME: &str = "numcodecs.categorize";
/// Bytes of a number while it is worked on.
const WIDE: usize = 8;

#[derive(Debug)]
struct Categorize {
    /// The labels as elements are: text in UTF-8, or characters of four bytes, no more than an element has.
    labels: Vec<Vec<u8>>,
    /// The number of each label, without padding; of labels that stand there twice the last one.
    numbers: HashMap<Vec<u8>, u64>,
    /// The type of the texts.
    texts: DataType,
    /// The type of the numbers.
    stored: DataType,
    /// The most bytes that texts may have.
    limit: u64,
}

pub(super) fn bind(config: &Config, context: &BindContext) -> Result<BoundArray, CodecError> {
    let texts = context.input.data_type.clone();
    let is_fixed = match &texts {
        DataType::String => false,
        DataType::FixedLengthUtf32 { .. } => true,
        other => return Err(config.invalid(format!("has labels for texts, not for `{}`", other.name()))),
    };
    let wrong = || config.invalid("`labels` must be a list of texts");
    let written = config.member("labels").and_then(Value::as_array).ok_or_else(wrong)?;
    let (mut labels, mut numbers) = (Vec::new(), HashMap::new());
    for (number, label) in (1..).zip(written) {
        let label = label.as_str().ok_or_else(wrong)?;
        let mut element = if is_fixed {
            label.chars().flat_map(|character| u32::from(character).to_le_bytes()).collect()
        } else {
            label.as_bytes().to_vec()
        };
        if !is_fixed || element.len() <= texts.item_bytes() {
            numbers.insert(without_padding(&element).to_vec(), number);
        } else {
            element.truncate(texts.item_bytes());
        }
        labels.push(element);
    }
    let stored = config.number_type("astype")?.unwrap_or(DataType::UInt8);
    if number::is_float(&stored) {
        return Err(config.invalid("`astype` must be an integer"));
    }
    let codec = Categorize { labels, numbers, texts, stored, limit: context.limits.chunk_bytes };
    let fill = codec.narrow(&codec.number(context.input.fill_value.as_bytes()).to_le_bytes())?;
    let output = Representation {
        shape: context.input.shape.clone(),
        data_type: codec.stored.clone(),
        fill_value: FillValue::from_bytes(&fill),
    };
    Ok((Box::new(codec), output))
}

impl Categorize {
    fn number(&self, text: &[u8]) -> u64 {
        self.numbers.get(without_padding(text)).copied().unwrap_or(0)
    }

    /// Wide numbers as they are stored.
    fn narrow(&self, wide: &[u8]) -> Result<Bytes, CodecError> {
        number::convert(wide, &DataType::UInt64, &self.stored, |_block| {})
    }

    /// Numbers as they are stored, wide.
    fn wide(&self, stored: &[u8]) -> Result<Bytes, CodecError> {
        number::convert(stored, &self.stored, &DataType::UInt64, |_block| {})
    }
}

/// What has the number of a label; none has 0.
fn labelled<T>(labels: &[T], wide: [u8; WIDE]) -> Option<&T> {
    let number = usize::try_from(u64::from_le_bytes(wide)).ok()?;
    labels.get(number.checked_sub(1)?)
}

impl ArrayToArray for Categorize {
    fn decode(&self, encoded: Elements) -> Result<Elements, CodecError> {
        let wide = self.wide(encoded.items())?;
        let (wide, _) = wide.as_chunks::<WIDE>();
        if self.texts == DataType::String {
            let mut texts = StringsWriter::new(wide.len() as u64, self.limit)?;
            let spans =
                self.labels.iter().map(|label| texts.store(label)).collect::<Result<Vec<VarSlice>, _>>()?;
            for number in wide {
                texts.push(labelled(&spans, *number).copied().unwrap_or_default());
            }
            return Ok(texts.finish());
        }
        let item_bytes = self.texts.item_bytes();
        let mut decoded = buffer::zeroed((wide.len() as u64).saturating_mul(item_bytes as u64))?;
        for (number, element) in wide.iter().zip(decoded.chunks_exact_mut(item_bytes)) {
            if let Some(label) = labelled(&self.labels, *number) {
                element.iter_mut().zip(label).for_each(|(to, from)| *to = *from);
            }
        }
        Ok(Elements::fixed(decoded.into()))
    }

    fn encode(&self, decoded: Elements) -> Result<Elements, CodecError> {
        let last = (self.labels.len() as u64).to_le_bytes();
        if *self.wide(&self.narrow(&last)?)? != last {
            return Err(CodecError::encode(
                NAME,
                format!("more labels than `{}` counts", self.stored.name()),
            ));
        }
        let count = decoded.items().len() / self.texts.item_bytes();
        let mut wide = buffer::reserved((count as u64).saturating_mul(WIDE as u64))?;
        if self.texts == DataType::String {
            decoded
                .variable_elements()
                .for_each(|text| wide.extend_from_slice(&self.number(text).to_le_bytes()));
        } else {
            let elements = decoded.items().chunks_exact(self.texts.item_bytes());
            elements.for_each(|text| wide.extend_from_slice(&self.number(text).to_le_bytes()));
        }
        self.narrow(&wide).map(Elements::fixed)
    }
}

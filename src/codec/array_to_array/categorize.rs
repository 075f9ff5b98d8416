//! `categorize`: stores each string as the number of its label (numcodecs, "categorize").
//!
//! Labels are numbered from 1. A string without a label is stored as 0; 0 and numbers without a label decode to the empty
//! string. A label longer than the elements is truncated, as in numpy.

use std::collections::HashMap;

use ::bytes::Bytes;
use serde_json::Value;

use crate::chunk::{Elements, VarSlice};
use crate::codec::CodecError;
use crate::codec::contract::ArrayToArray;
use crate::codec::factory::{BindContext, BoundArrayToArray, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Representation;
use crate::codec::support::strings::StringsWriter;
use crate::codec::support::{buffer, number};
use crate::metadata::{DataType, FillValue, V2ByteOrder, V2Codec, V2Objects, without_padding};

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.categorize"],
    v2: &[V2Codec {
        objects: Some(V2Objects::Strings),
        byte_order: V2ByteOrder::Named { decoded: None, encoded: "astype" },
        ..V2Codec::new("categorize", "numcodecs.categorize")
    }],
    factory: CodecFactory::ArrayToArray(bind),
};

const NAME: &str = "numcodecs.categorize";
/// Bytes of a number during conversion.
const WIDE: usize = 8;

#[derive(Debug)]
struct Categorize {
    /// The labels in the form of elements: UTF-8, or characters of four bytes and no longer than an element.
    labels: Vec<Vec<u8>>,
    /// The number of each label, without padding; of equal labels the last number.
    numbers: HashMap<Vec<u8>, u64>,
    /// The type of the strings.
    texts: DataType,
    /// The type of the numbers.
    stored: DataType,
    /// The most bytes that all strings may have.
    limit: u64,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToArray, CodecError> {
    let texts = context.input.data_type.clone();
    let is_fixed = match &texts {
        DataType::String => false,
        DataType::FixedLengthUtf32 { .. } => true,
        other => return Err(config.invalid(format!("encodes strings and not `{}`", other.name()))),
    };
    let wrong = || config.invalid("`labels` must be a list of strings");
    let written = config.member("labels").and_then(Value::as_array).ok_or_else(wrong)?;
    let (mut labels, mut numbers) = (Vec::new(), HashMap::new());
    for (number, label) in (1..).zip(written) {
        let label = label.as_str().ok_or_else(wrong)?;
        let mut element = if is_fixed {
            label.chars().flat_map(|character| u32::from(character).to_le_bytes()).collect()
        } else {
            label.as_bytes().to_vec()
        };
        if !is_fixed || element.len() <= texts.element_bytes() {
            numbers.insert(without_padding(&element).to_vec(), number);
        } else {
            element.truncate(texts.element_bytes());
        }
        labels.push(element);
    }
    let stored = config.numpy_type("astype")?.unwrap_or(DataType::UInt8);
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

    /// Converts numbers from `uint64` to the stored type.
    fn narrow(&self, wide: &[u8]) -> Result<Bytes, CodecError> {
        number::convert(wide, &DataType::UInt64, &self.stored, |_block| {})
    }

    /// Converts numbers from the stored type to `uint64`.
    fn wide(&self, stored: &[u8]) -> Result<Bytes, CodecError> {
        number::convert(stored, &self.stored, &DataType::UInt64, |_block| {})
    }
}

/// The entry of a label number; none for 0.
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
        let element_bytes = self.texts.element_bytes();
        let mut decoded = buffer::zeroed((wide.len() as u64).saturating_mul(element_bytes as u64))?;
        for (number, element) in wide.iter().zip(decoded.chunks_exact_mut(element_bytes)) {
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
        let count = decoded.items().len() / self.texts.element_bytes();
        let mut wide = buffer::with_capacity((count as u64).saturating_mul(WIDE as u64))?;
        if self.texts == DataType::String {
            decoded
                .variable_elements()
                .for_each(|text| wide.extend_from_slice(&self.number(text).to_le_bytes()));
        } else {
            let elements = decoded.items().chunks_exact(self.texts.element_bytes());
            elements.for_each(|text| wide.extend_from_slice(&self.number(text).to_le_bytes()));
        }
        self.narrow(&wide).map(Elements::fixed)
    }
}

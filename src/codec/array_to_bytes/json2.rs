//! `json2`: a JSON list of the elements, nested like the array, then the data type and the shape (numcodecs, "json2"; its
//! older format "json" has no shape).
//!
//! Elements are parsed one at a time, so that parsing needs memory for the largest element only. The list may be nested like
//! the chunk or like the shape in it. The data type in it is ignored, because the array has one. The bare words `NaN` and
//! `Infinity` are numbers in arrays of numbers and strings in arrays of JSON values.

use std::iter::Take;

use ::bytes::Bytes;
use serde_json::Value;

use crate::chunk::Elements;
use crate::codec::CodecError;
use crate::codec::chain::BoundArrayToBytes;
use crate::codec::contract::ArrayToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;
use crate::codec::support::strings::StringsWriter;
use crate::codec::support::{buffer, number};
use crate::metadata::{DataType, FillValue, MetadataLimits, V2Codec, V2Objects, canonical_json, parse_value};

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.json2"],
    v2: &[
        V2Codec { objects: Some(V2Objects::Json), ..V2Codec::new("json2", "numcodecs.json2") },
        V2Codec { objects: Some(V2Objects::Json), ..V2Codec::new("json", "numcodecs.json2") },
    ],
    factory: CodecFactory::ArrayToBytes(bind),
};

const NAME: &str = "numcodecs.json2";

#[derive(Debug)]
struct Json2 {
    data_type: DataType,
    /// The name of the data type in encoded chunks.
    dtype: String,
    shape: Vec<u64>,
    /// Elements of the array.
    count: u64,
    /// The most bytes of an encoded and of a decoded chunk.
    limit: u64,
    limits: MetadataLimits,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToBytes, CodecError> {
    let data_type = context.input.data_type.clone();
    let Some(dtype) = dtype(&data_type) else {
        return Err(config.unsupported(&format!("elements of type `{}`", data_type.name())));
    };
    let element_bytes = data_type.element_bytes() as u64;
    Ok(BoundArrayToBytes::Whole(Box::new(Json2 {
        dtype,
        shape: context.input.shape.clone(),
        count: context.size.max() / element_bytes,
        limit: context.limits.chunk_bytes,
        limits: MetadataLimits::default(),
        data_type,
    })))
}

/// numpy's name of a type whose elements are JSON values.
fn dtype(data_type: &DataType) -> Option<String> {
    let kind = match data_type {
        DataType::Json | DataType::String => return Some("|O".to_owned()),
        DataType::FixedLengthUtf32 { code_points } => return Some(format!("<U{code_points}")),
        DataType::Bool => 'b',
        float if number::is_float(float) => 'f',
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => 'i',
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => 'u',
        _ => return None,
    };
    let bytes = data_type.element_bytes();
    Some(format!("{}{kind}{bytes}", if bytes == 1 { '|' } else { '<' }))
}

/// The destination of decoded elements.
enum Output {
    Fixed(Vec<u8>),
    Variable(StringsWriter),
}

impl Output {
    fn push(&mut self, element: &[u8]) -> Result<(), CodecError> {
        match self {
            Self::Fixed(items) => items.extend_from_slice(element),
            Self::Variable(texts) => {
                let span = texts.store(element)?;
                texts.push(span);
            }
        }
        Ok(())
    }
}

impl Json2 {
    fn element(&self, text: &[u8]) -> Result<FillValue, CodecError> {
        let corrupt = |error: &dyn std::fmt::Display| CodecError::corrupt(NAME, error.to_string());
        let value = parse_value(text, &self.limits).map_err(|error| corrupt(&error))?;
        if value.is_null() && self.data_type != DataType::Json {
            return Err(corrupt(&"an element is `null`"));
        }
        FillValue::from_v3(&self.data_type, Some(&value)).map_err(|error| corrupt(&error))
    }

    /// Reads nested lists, one level for each dimension of the shape.
    fn read(&self, values: Take<Values>, shape: &[u64], output: &mut Output) -> Result<(), CodecError> {
        let (edge, inner) = shape.split_first().map_or((1, shape), |(&edge, inner)| (edge, inner));
        let wrong =
            || CodecError::corrupt(NAME, format!("a list does not have the {edge} values of its shape"));
        let mut read = 0;
        for value in values {
            if read == edge {
                return Err(wrong());
            }
            read += 1;
            if inner.is_empty() {
                output.push(self.element(value)?.as_bytes())?;
            } else {
                let list = inside(value).ok_or_else(wrong)?;
                self.read(Values::new(list).take(usize::MAX), inner, output)?;
            }
        }
        if read == edge { Ok(()) } else { Err(wrong()) }
    }

    /// The shape at the end of the list, if it has as many elements as the array.
    fn shape(&self, written: &[u8]) -> Result<Vec<u64>, CodecError> {
        let wrong = |reason: &str| CodecError::corrupt(NAME, format!("the shape at the end {reason}"));
        let limits = MetadataLimits { document_bytes: 1 << 10, depth: 1, ..self.limits };
        let value = parse_value(written, &limits).map_err(|error| wrong(&error.to_string()))?;
        let edges = value.as_array().into_iter().flatten().map(Value::as_u64);
        let shape: Option<Vec<u64>> = edges.collect();
        let shape = shape.filter(|shape| shape.len() <= limits.rank);
        let shape = shape.ok_or_else(|| wrong("is not a list of lengths"))?;
        let count = shape.iter().try_fold(1_u64, |count, &edge| count.checked_mul(edge));
        match count {
            Some(count) if count == self.count => Ok(shape),
            _ => Err(wrong("is not that of the chunk")),
        }
    }

    /// Writes one element.
    fn write_element(&self, element: &[u8], text: &mut Vec<u8>) -> Result<(), CodecError> {
        let value = match self.data_type {
            DataType::Json => {
                let value = parse_value(element, &self.limits);
                value.map_err(|error| CodecError::encode(NAME, error.to_string()))?
            }
            _ => FillValue::from_bytes(element).to_json(&self.data_type),
        };
        match &value {
            Value::Null if self.data_type != DataType::Json => {
                return Err(CodecError::encode(NAME, "an element is not a string"));
            }
            // NaN and infinities are bare words, since JSON has no such numbers. The payload of a NaN is lost.
            Value::String(word) if number::is_float(&self.data_type) => {
                let word = if word.starts_with("0x") { "NaN" } else { word };
                text.extend_from_slice(word.as_bytes());
            }
            value => text.extend_from_slice(canonical_json(value).as_bytes()),
        }
        if text.len() as u64 > self.limit {
            return Err(CodecError::ChunkTooLarge { bytes: text.len() as u64, limit: self.limit });
        }
        Ok(())
    }

    /// Writes nested lists, without the outermost brackets.
    fn write(
        &self,
        shape: &[u64],
        elements: &mut dyn Iterator<Item = &[u8]>,
        text: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let Some((&edge, inner)) = shape.split_first() else {
            return elements.next().map_or(Ok(()), |element| self.write_element(element, text));
        };
        for place in 0..edge {
            if place > 0 {
                text.push(b',');
            }
            if inner.is_empty() {
                self.write(inner, elements, text)?;
            } else {
                text.push(b'[');
                self.write(inner, elements, text)?;
                text.push(b']');
            }
        }
        Ok(())
    }
}

impl ArrayToBytes for Json2 {
    fn decode(&self, encoded: Bytes) -> Result<Elements, CodecError> {
        self.encoded_size().check(NAME, encoded.len())?;
        let list = inside(&encoded).ok_or_else(|| CodecError::corrupt(NAME, "is not a list"))?;
        let (mut values, mut before, mut last) = (0_usize, &[][..], &[][..]);
        for value in Values::new(list) {
            (values, before, last) = (values + 1, last, value);
        }
        let is = |value: &[u8], first| value.trim_ascii_start().first() == Some(&first);
        let (shape, behind) = if is(before, b'"') && is(last, b'[') {
            (self.shape(last)?, 2)
        } else if is(last, b'"') {
            (self.shape.clone(), 1)
        } else {
            return Err(CodecError::corrupt(NAME, "there is no data type at the end"));
        };
        let values = values.saturating_sub(behind);
        // A flat list of all elements is accepted for any shape.
        let is_flat = values as u64 == self.count && shape.first() != Some(&self.count);
        let shape = if is_flat { vec![self.count] } else { shape };
        let mut output = if self.data_type.is_variable() {
            Output::Variable(StringsWriter::new(self.count, self.limit)?)
        } else {
            Output::Fixed(buffer::with_capacity(
                self.count.saturating_mul(self.data_type.element_bytes() as u64),
            )?)
        };
        self.read(Values::new(list).take(values), &shape, &mut output)?;
        Ok(match output {
            Output::Fixed(items) => Elements::fixed(items.into()),
            Output::Variable(texts) => texts.finish(),
        })
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        // An array without elements is written as an empty list of one dimension.
        let shape = if self.count == 0 { &[0] } else { self.shape.as_slice() };
        let mut text = vec![b'['];
        if self.data_type.is_variable() {
            self.write(shape, &mut decoded.variable_elements(), &mut text)?;
        } else {
            let mut elements = decoded.items().chunks_exact(self.data_type.element_bytes());
            self.write(shape, &mut elements, &mut text)?;
        }
        let comma = if self.count == 0 { "" } else { "," };
        let shape = Value::from(shape);
        text.extend_from_slice(format!("{comma}\"{}\",{shape}]", self.dtype).as_bytes());
        Ok(Bytes::from(text))
    }

    fn encoded_size(&self) -> Size {
        Size::Limited(self.limit)
    }
}

/// The text between the brackets of a list.
fn inside(text: &[u8]) -> Option<&[u8]> {
    text.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")
}

/// The texts of the values of a list. They are not checked to be JSON here.
struct Values<'a>(Option<&'a [u8]>);

impl<'a> Values<'a> {
    fn new(list: &'a [u8]) -> Self {
        Self(Some(list).filter(|list| !list.trim_ascii().is_empty()))
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let list = self.0.take()?;
        let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
        for (at, byte) in list.iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_text => escaped = true,
                b'"' => in_text = !in_text,
                _ if in_text => {}
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => {
                    self.0 = list.get(at + 1..);
                    return list.get(..at);
                }
                _ => {}
            }
        }
        Some(list)
    }
}

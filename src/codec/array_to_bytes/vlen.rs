//! `vlen-utf8`, `vlen-bytes` and `vlen-array`: variable-length elements with length prefixes (Zarr extensions, "vlen-utf8",
//! "vlen-bytes"; numcodecs).
//!
//! The encoded form is the number of elements, then each element's number of bytes and its bytes. Numbers are `u32`,
//! little-endian. Decoding copies no bytes: decoded elements are slices of the encoded chunk.

use ::bytes::Bytes;

use crate::chunk::{Elements, VarSlice};
use crate::codec::CodecError;
use crate::codec::chain::BoundArrayToBytes;
use crate::codec::contract::ArrayToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;
use crate::metadata::{DataType, V2Codec, V2Objects};

pub(crate) const BYTES: Codec = Codec {
    names: &["vlen-bytes", "numcodecs.vlen-bytes"],
    v2: &[V2Codec { objects: Some(V2Objects::Bytes), ..V2Codec::new("vlen-bytes", "vlen-bytes") }],
    factory: CodecFactory::ArrayToBytes(bind_bytes),
};

pub(crate) const UTF8: Codec = Codec {
    names: &["vlen-utf8", "numcodecs.vlen-utf8"],
    v2: &[V2Codec { objects: Some(V2Objects::Strings), ..V2Codec::new("vlen-utf8", "vlen-utf8") }],
    factory: CodecFactory::ArrayToBytes(bind_utf8),
};

pub(crate) const ARRAY: Codec = Codec {
    names: &["numcodecs.vlen-array"],
    v2: &[V2Codec { objects: Some(V2Objects::Arrays), ..V2Codec::new("vlen-array", "numcodecs.vlen-array") }],
    factory: CodecFactory::ArrayToBytes(bind_array),
};

/// Bytes of a length prefix, and of the number of elements.
const LENGTH_BYTES: u64 = 4;

/// The requirement on an element's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Any,
    Utf8,
    /// A multiple of this many bytes.
    Items(usize),
}

#[derive(Debug)]
struct Vlen {
    name: &'static str,
    /// Elements of the array.
    count: u64,
    content: Content,
    /// The most bytes of an encoded chunk.
    limit: u64,
}

fn bind_utf8(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToBytes, CodecError> {
    match &context.input.data_type {
        DataType::String => Ok(Vlen::new("vlen-utf8", Content::Utf8, context)),
        other => Err(config.invalid(format!("encodes `string` and not `{}`", other.name()))),
    }
}

fn bind_bytes(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToBytes, CodecError> {
    match &context.input.data_type {
        DataType::VariableBytes => Ok(Vlen::new("vlen-bytes", Content::Any, context)),
        other => Err(config.invalid(format!("encodes `bytes` and not `{}`", other.name()))),
    }
}

fn bind_array(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToBytes, CodecError> {
    match &context.input.data_type {
        DataType::VariableArray(item) => {
            Ok(Vlen::new("vlen-array", Content::Items(item.element_bytes()), context))
        }
        other => Err(config.invalid(format!("does not encode `{}`", other.name()))),
    }
}

impl Vlen {
    #[expect(clippy::new_ret_no_self, reason = "codecs are used only as trait objects")]
    fn new(name: &'static str, content: Content, context: &BindContext) -> BoundArrayToBytes {
        let count = context.size.max() / VarSlice::BYTES as u64;
        // A decoded chunk is the encoded one and a slice of it for each element.
        let limit = context.limits.chunk_bytes.saturating_sub(context.size.max());
        BoundArrayToBytes::Whole(Box::new(Self { name, count, content, limit }))
    }

    fn corrupt(&self, reason: impl Into<String>) -> CodecError {
        CodecError::corrupt(self.name, reason)
    }

    fn check(&self, element: &[u8]) -> Result<(), CodecError> {
        match self.content {
            Content::Utf8 if std::str::from_utf8(element).is_err() => {
                Err(self.corrupt("an element is not UTF-8"))
            }
            Content::Items(bytes) if !element.len().is_multiple_of(bytes) => {
                Err(self.corrupt("an element is not a whole number of items"))
            }
            Content::Any | Content::Utf8 | Content::Items(_) => Ok(()),
        }
    }
}

impl ArrayToBytes for Vlen {
    fn decode(&self, encoded: Bytes) -> Result<Elements, CodecError> {
        self.encoded_size().check(self.name, encoded.len())?;
        let mut rest = encoded.as_ref();
        let count = number(&mut rest).ok_or_else(|| self.corrupt("the number of elements is missing"))?;
        if u64::from(count) != self.count {
            let expected = self.count;
            return Err(self.corrupt(format!("holds {count} elements instead of {expected}")));
        }
        let mut spans = buffer::with_capacity(self.count * VarSlice::BYTES as u64)?;
        for index in 0..count {
            let length = number(&mut rest);
            let element = length.and_then(|length| Some((length, rest.split_at_checked(length as usize)?)));
            let Some((length, (element, behind))) = element else {
                return Err(self.corrupt(format!("element {index} ends after the chunk")));
            };
            self.check(element)?;
            let offset = encoded.len() - rest.len();
            // The limit is below 4 GiB.
            let offset = u32::try_from(offset).map_err(|_too_far| self.corrupt("is too long"))?;
            spans.extend_from_slice(&VarSlice { offset, length }.to_item());
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(self.corrupt(format!("{} bytes after the last element", rest.len())));
        }
        Ok(Elements::variable(spans.into(), encoded))
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        let number = |length: usize| {
            u32::try_from(length).map_err(|_too_long| CodecError::encode(self.name, "more than 4 GiB"))
        };
        let texts = decoded.variable_elements();
        let bytes = texts.map(|text| text.len() as u64 + LENGTH_BYTES).sum::<u64>() + LENGTH_BYTES;
        if bytes > self.limit {
            return Err(CodecError::ChunkTooLarge { bytes, limit: self.limit });
        }
        let mut encoded = buffer::with_capacity(bytes)?;
        encoded.extend_from_slice(&number(decoded.variable_elements().len())?.to_le_bytes());
        for text in decoded.variable_elements() {
            self.check(text)?;
            encoded.extend_from_slice(&number(text.len())?.to_le_bytes());
            encoded.extend_from_slice(text);
        }
        Ok(encoded.into())
    }

    fn encoded_size(&self) -> Size {
        Size::Limited(self.limit)
    }
}

/// Removes a number from the front.
fn number(rest: &mut &[u8]) -> Option<u32> {
    let (number, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u32::from_le_bytes(*number))
}

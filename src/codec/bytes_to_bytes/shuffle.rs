//! `shuffle`: stores the first bytes of all elements, then the second bytes, and so on (numcodecs, "shuffle").
//!
//! The bytes must be a whole number of elements, as in numcodecs. With elements of 1 byte nothing moves. `elementsize` 0 means
//! the same in numcodecs; in netCDF-C, which writes it, it means the size of the array's elements. If these differ, the
//! meaning is ambiguous and the configuration is refused.

use ::bytes::Bytes;

use crate::codec::CodecError;
use crate::codec::contract::BytesToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;
use crate::metadata::V2Codec;

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.shuffle"],
    v2: &[V2Codec::new("shuffle", "numcodecs.shuffle")],
    factory: CodecFactory::BytesToBytes(bind),
};

const NAME: &str = "numcodecs.shuffle";
const DEFAULT_ELEMENT_BYTES: i64 = 4;

#[derive(Debug)]
struct Shuffle {
    /// At least 1.
    element_bytes: usize,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    let element_bytes = config.integer("elementsize")?.unwrap_or(DEFAULT_ELEMENT_BYTES);
    let element_bytes = usize::try_from(element_bytes)
        .map_err(|_negative| config.invalid("`elementsize` must not be negative"))?;
    if element_bytes == 0 && context.input.data_type.element_bytes() > 1 {
        return Err(config.unsupported(
            "`elementsize` 0, which means nothing to numcodecs and the size of an element to netCDF-C: write the size",
        ));
    }
    let element_bytes = element_bytes.max(1);
    match context.size {
        Size::Exact(bytes) if bytes % element_bytes as u64 != 0 => Err(config
            .invalid(format!("{bytes} bytes are not a whole number of elements of {element_bytes} bytes"))),
        Size::Exact(_) | Size::AtMost(_) | Size::Limited(_) => Ok(Box::new(Shuffle { element_bytes })),
    }
}

impl BytesToBytes for Shuffle {
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError> {
        size.check(NAME, encoded.len())?;
        if !encoded.len().is_multiple_of(self.element_bytes) {
            return Err(CodecError::corrupt(NAME, "not a whole number of elements"));
        }
        let count = encoded.len() / self.element_bytes;
        transposed(encoded, self.element_bytes, count)
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        if !decoded.len().is_multiple_of(self.element_bytes) {
            return Err(CodecError::encode(NAME, "not a whole number of elements"));
        }
        let count = decoded.len() / self.element_bytes;
        transposed(decoded, count, self.element_bytes)
    }

    fn encoded_size(&self, decoded: Size) -> Size {
        decoded
    }
}

/// Transposes the bytes from `rows` × `columns` to `columns` × `rows`.
fn transposed(bytes: Bytes, rows: usize, columns: usize) -> Result<Bytes, CodecError> {
    if rows <= 1 || columns <= 1 {
        return Ok(bytes);
    }
    let mut transposed = buffer::zeroed(bytes.len() as u64)?;
    for (column, to) in transposed.chunks_exact_mut(rows).enumerate() {
        let from = bytes.iter().skip(column).step_by(columns);
        to.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
    }
    Ok(Bytes::from(transposed))
}

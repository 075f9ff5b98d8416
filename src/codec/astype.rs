//! `astype`: elements of another data type (numcodecs, "astype").
//!
//! Casts are numpy's; which they are is the business of `number`.

use ::bytes::Bytes;

use super::CodecError;
use super::config::Config;
use super::number;
use super::registry::{BindContext, BoundArray, ElementwiseCodec};
use crate::metadata::DataType;

#[derive(Debug)]
struct AsType {
    decoded: DataType,
    encoded: DataType,
}

pub(super) fn bind(config: &Config, context: &BindContext) -> Result<BoundArray, CodecError> {
    let decoded = config.view("decode_dtype", context.input)?;
    let encoded = config.number_type("encode_dtype")?.unwrap_or_else(|| decoded.clone());
    let output = context.input.retyped(&decoded, &encoded)?;
    Ok((Box::new(AsType { decoded, encoded }), output))
}

impl ElementwiseCodec for AsType {
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        number::convert(&encoded, &self.encoded, &self.decoded, |_block| {})
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        number::convert(&decoded, &self.decoded, &self.encoded, |_block| {})
    }
}

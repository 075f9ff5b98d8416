//! `astype`: elements of another data type (numcodecs, "astype").
//!
//! The casts are numpy's, as implemented in `support::number`.

use ::bytes::Bytes;

use crate::codec::CodecError;
use crate::codec::contract::ElementwiseCodec;
use crate::codec::factory::{BindContext, BoundArrayToArray, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::codec::support::number;
use crate::metadata::{DataType, V2ByteOrder, V2Codec};

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.astype"],
    v2: &[V2Codec {
        byte_order: V2ByteOrder::Named { decoded: Some("decode_dtype"), encoded: "encode_dtype" },
        ..V2Codec::new("astype", "numcodecs.astype")
    }],
    factory: CodecFactory::ArrayToArray(bind),
};

#[derive(Debug)]
struct AsType {
    decoded: DataType,
    encoded: DataType,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToArray, CodecError> {
    let decoded = config.view_type("decode_dtype", context.input)?;
    let encoded = config.numpy_type("encode_dtype")?.unwrap_or_else(|| decoded.clone());
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
